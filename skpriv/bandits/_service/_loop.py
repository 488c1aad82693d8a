"""The memory of a service that plays a policy."""

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ..._parameters import Count, Finite, Positive, validated
from ...privacy import Hashed, activated, capture
from ...records import finite_numbers, name_of
from .._policy._actions import checked_available
from .._policy._base import NO_LIMIT, BasePolicy
from ._store import (
    CAME,
    IN_RANGE,
    Store,
    begun,
    check_same,
    event_name,
    hash_of,
    repeated,
    sentence_of,
    served,
)

if TYPE_CHECKING:
    from ._store import Transaction

# Number of events that are read or forgotten at once, while others wait a few milliseconds. A
# policy that may change at any round learns so many in one transaction.
EVENTS_AT_ONCE = 200
PAUSE = 0.01  # seconds in which others can use the file, between two such parts
LOG = logging.getLogger("skpriv.bandits")


class Loop:
    """Ask a policy for actions, and bring it the rewards when they come.

    Events are kept in a file. A policy learns from each of them once: in the order in which they
    were ranked, or with ``in_order=False`` in that in which rewards arrive. Several threads and
    processes may share the file. A process that is killed at any instant loses nothing that was
    acknowledged.

    Parameters
    ----------
    policy : policy or None
        Not yet used: a file does not begin with one that has acted. If the file holds a policy
        already, that one goes on, and this one must be of the same class with the same parameters.
        None goes on with the policy of the file and its ``in_order``.
    path : str or path-like
        The file; SQLite's locks must work on its file system.
    cutoff : float > 0 or None, default=None
        Public: seconds after which an event without a reward gets `default_reward`. The file keeps
        both: a number holds from now on for all workers and for all events that wait. None is that
        of the file, which begins with 3600.
    default_reward : float or None, default=None
        Public. None is that of the file, which begins with 0.
    learn_every : int, default=1
        Public: the policy is given events when there are so many, and only when it can learn from
        them: a private policy changes at public times, and before them there is nothing to do.
    max_visits : int, default=None
        Public: rounds of a person that the policy learns from at most, as its parameter of this
        name. The guarantee is a person's then, and `rank` needs ``user``.
    learn : {"here", "elsewhere"}, default="here"
        Whether `rank` and `reward` learn when something is due. "elsewhere" leaves it to another
        process that calls `learn` again and again, so that no request waits for it.
    in_order : bool, default=True
        Whether an event without a reward holds up those after it, until its `cutoff`. False learns
        each event when its reward has come, or at its cutoff, at the next public time: for `LinUCB`
        and `LinSquareCB` with ``privacy="central"``. Until then what comes fast counts for more: if
        good rewards come soon and bad ones late, the newest estimates are too high.
    clock : callable, default=None
        Seconds, as :func:`time.time`; another one for tests and replays.

    Attributes
    ----------
    policy : policy
        The policy as of the last event that was learned.

    Notes
    -----
    **Privacy guarantee**: that of the policy. An event is one user's round. Its place among the
    rounds is that of its `rank`, which is public; whether and when its reward came decides about
    its reward alone. The time at which learning goes on is not covered: it waits for the oldest
    event, at most for `cutoff`. With ``in_order=False`` it is covered: learning goes on at public
    numbers of ranks, and a reward that comes earlier or later is in another sum, which costs no
    more (docs/mathematics/bandits.md).

    The first `rank` on a file starts the policy, and charges for it, once for all workers: the
    accountants under which this object was made, also after their blocks have ended. A charge is
    about a part of the data only if it is called for inside of that part. Before an answer of the
    policy is shown, it is written down outside of the file: in the ledger of the accountant under
    which the file was made, or in a file of the folder ``SKPRIV_STATE``. A process that comes to
    the same answer again, after a crash or with a backup of the file, repeats it, and refuses to
    learn where he does not find what was written down. docs/deployment.md says what to back up, and
    how to move a service.

    `rank` does not fail because learning does: the policy goes on with what it has learned.
    `troubles` says what went wrong. If nothing was charged, such as when the budget of a ledger is
    spent, learning is tried again after a minute. A fit that fails once it was charged is lost with
    its epoch, and is not made again.

    The file holds raw features of the actions that were played, and rewards, until they are
    learned; of learned events it keeps identifier, action, propensity, and a hash of the question
    whose key is written down outside of the file. The policy in it holds
    released answers and, if it is one of running sums, exact sums. Keep it as you keep the data.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from skpriv.bandits import LinUCB, Loop
    >>> folder = tempfile.TemporaryDirectory()
    >>> policy = LinUCB(privacy="central", bounds_y=(0, 1), random_state=0)
    >>> loop = Loop(policy, pathlib.Path(folder.name) / "service.sqlite")
    >>> action, propensity = loop.rank("visit 1", np.eye(2))
    >>> loop.reward("visit 1", 1.0)
    'taken'
    >>> loop.reward("visit 1", 0.0)
    'repeated'
    >>> loop.status()["events"], loop.troubles
    (1, [])
    >>> folder.cleanup()
    """

    policy: Any

    @validated
    def __init__(
        self,
        policy: BasePolicy | None,
        path: Any,
        *,
        cutoff: Positive | None = None,
        default_reward: Finite | None = None,
        learn_every: Count = 1,
        max_visits: Count | None = None,
        learn: Literal["here", "elsewhere"] = "here",
        in_order: bool = True,
        clock: Annotated[Any, callable, None] = None,
    ) -> None:
        if policy is not None:
            policy = served(policy, max_visits, in_order)
        self._accountants = capture(with_parts=False)  # events may come from other parts
        self.learn_every = int(learn_every)
        self._clock = clock or time.time
        self._here = learn == "here"
        self._forgotten = 0
        self._store = Store(path)
        self._failed_at = -np.inf
        self._learners: Any = {}  # locks of those who learn, by their processes
        with self._store.transaction() as held:
            if held.version() is None:
                held.save(0, 1, begun(policy, in_order))
            held.set(cutoff, default_reward)
            self._version: Any = None
            self._closed = 0
            self._newest = held.last()  # number of the newest event that this process has seen
            self._refresh(held)
            if policy is not None:
                check_same(self.policy, policy, in_order)
            else:  # whoever goes on with the file is charged as those who made it
                self._accountants += self.policy._numbering.accountants
        questions = self.policy._numbering.part("questions")  # the key is not in this file
        self._key = questions.settle(-2, np.frombuffer(os.urandom(32))[None]).tobytes()
        self._forget()

    def rank(
        self,
        event_id: Any,
        contexts: Any,
        available: Any = None,
        user: Any = None,
        *,
        k: int | None = None,
    ) -> Any:
        """Choose the action of a new event, or its first ``k`` actions.

        Parameters
        ----------
        event_id : str, int, or tuple of them
            Name of this event alone. A repeated one gets the action that it got before; another
            question under its name is an error, also after it was learned. Equal numbers are one
            name, and so are 1 and "1"; a tuple is none of its texts.
        contexts : array-like of shape (n_actions, n_features), or (n_features,)
            One round of what the policy's ``act`` takes.
        available : array-like of shape (n_actions,), default=None
            Mask of the actions that may be played.
        user : str, int, or tuple of them, default=None
            Who comes, for a policy with ``max_visits``. A keyed hash of it is kept, until the event
            is learned; and how often it was learned from.
        k : int, default=None
            Number of places, such as those of a page: as for the policy's ``rank``. The reward is
            that of the first one.

        Returns
        -------
        action : int, or list of k of them
            Chosen action, from 0 to ``n_actions - 1``; with ``k`` different ones, the first place
            first.
        propensity : float, or list of k of them
            Probability with which it was chosen, given the places before it.

        Raises
        ------
        ValueError
            If contexts or mask have the wrong shape, or are no finite numbers; or if another
            question was asked under the name of the event.
        BudgetExceeded
            If the first event of a file cannot pay for the policy.
        """
        contexts = finite_numbers(contexts, "contexts")[None]
        actions, propensities = self.rank_many([event_id], contexts, available, [user], k=k)
        return actions.tolist()[0], propensities.tolist()[0]

    def rank_many(
        self,
        event_ids: Any,
        contexts: Any,
        available: Any = None,
        users: Any = None,
        *,
        k: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose the actions of several new events, in one transaction.

        Parameters
        ----------
        event_ids : list of str
            Names of the events, each as for `rank`.
        contexts : array-like of shape (n_events, n_actions, n_features), or (n_events, n_features)
            What the policy's ``act`` takes, one round an event.
        available : array-like of shape (n_events, n_actions) or (n_actions,), default=None
            Masks of the actions that may be played; None allows all.
        users : list, default=None
            Who comes in each event, as for `rank`.
        k : int, default=None
            Number of places of each event, as for `rank`.

        Returns
        -------
        actions : ndarray of int of shape (n_events,), or (n_events, k)
            Chosen action of each event.
        propensities : ndarray of shape (n_events,), or (n_events, k)
            Probability with which each of them was chosen.
        """
        contexts = finite_numbers(contexts, "contexts")
        shape = self.policy._space.checked_shape(contexts)
        n_actions = self.policy._space.count(shape)
        available = checked_available(available, shape[0], n_actions)
        users = [None] * len(event_ids) if users is None else list(users)
        names = [event_name(name) for name in event_ids]
        counts = len(names), shape[0], len(users)
        if len({*counts, 0}) != 2:
            raise ValueError(
                "{} events have contexts of {} rounds and {} users: pass one of each for an "
                "event.".format(*counts)
            )
        if len(set(names)) < len(names):
            raise ValueError("an event must not come twice in one call.")
        if self.policy._max_visits is not None and None in map(name_of, users):
            raise ValueError("this policy protects people: rank needs user, who comes.")
        self._learn_if_due()
        masks = np.broadcast_to(available is None or available, (shape[0], n_actions))
        hashes = [hash_of(self._key, *each) for each in zip(names, contexts, masks, strict=True)]
        with self._store.transaction() as held:
            found = [held.find(name) for name in names]
            self._refresh(held)
            places = [repeated(row, each, k) for row, each in zip(found, hashes, strict=True)]
            new = [at for at, place in enumerate(places) if place is None]
            if new:
                choice = None if available is None else available[new]
                events = list(zip(names, hashes, users, strict=True))
                for at, place in self._acted(held, new, events, contexts[new], choice, k):
                    places[at] = place
        numbers = np.frombuffer(b"".join(places)).reshape(shape[0], 2, -1)
        numbers = numbers[:, :, 0] if k is None else numbers
        return numbers[:, 0].astype(np.intp), numbers[:, 1]

    def reward(self, event_id: Any, reward: Any) -> str:
        """Bring the reward of an event.

        Parameters
        ----------
        event_id : str
            Name of the event, as given to `rank`.
        reward : float
            Its reward, in the units of the declared bounds; it is clipped to them. How many were
            clipped is not counted, since that number is as private as the rewards: whoever sends a
            reward can compare it with the bounds, which are public, as the example of a service
            does. `notes_` of the policy say by released sums whether the bounds suit.

        Returns
        -------
        status : {"taken", "repeated", "late", "unknown"}
            Only "taken" counts: "repeated" has a reward already or was withdrawn (which of them is
            as private as a reward, so that no answer tells it), "late" has passed the cut-off or
            was learned, "unknown" was never ranked.
        """
        if type(reward) is not float or not isfinite(reward):
            (reward,) = finite_numbers([reward], "reward", (1,)).tolist()
        return self._brought([event_id], [reward])[0]

    def reward_many(self, event_ids: Any, rewards: Any) -> list[str]:
        """Bring the rewards of several events, in one transaction: all of them, or none.

        Parameters
        ----------
        event_ids : list of str
            Names of the events, as given to `rank`.
        rewards : array-like of shape (n_events,)
            Their rewards; they are clipped to the declared bounds.

        Returns
        -------
        statuses : list of str
            The statuses, as of `reward`.
        """
        rewards = finite_numbers(rewards, "reward", (len(event_ids),))
        return self._brought(event_ids, rewards.tolist())

    def withdraw(self, event_id: Any) -> str:
        """Say that the action of an event was never shown: nothing is learned from it.

        The event keeps its place among the rounds, which is public. It is learned as a round
        without features and with a neutral reward, is a visit of its user as any other, and holds
        up no event behind it. Whether an event was withdrawn is as private as its reward: one
        record is replaced (docs/mathematics/bandits.md).

        Parameters
        ----------
        event_id : str
            Name of the event, as given to `rank`; it cannot be ranked again.

        Returns
        -------
        status : {"taken", "repeated", "late", "unknown"}
            The same as of `reward`; "repeated" has a reward already, or was withdrawn.
        """
        return self._brought([event_id], [None])[0]

    def _brought(self, event_ids: Sequence[Any], rewards: Sequence[Any]) -> list[str]:
        """Statuses of rewards; None withdraws the event."""
        names = [event_name(name) for name in event_ids]
        with self._store.transaction() as held:
            pairs = zip(names, rewards, strict=True)
            statuses = [self._rewarded(held, *pair) for pair in pairs]
        # Out of order, the number of ranks decides when is learned, and no reward does.
        if "taken" in statuses and not self.policy._out_of_order:
            self._learn_if_due()
        return statuses

    def learn(self, *, force: bool = False) -> int:
        """Let the policy learn all events up to the first that still waits for its reward.

        `rank` and `reward` call it when there is something to learn, unless the service learns
        elsewhere. Meanwhile others rank and bring rewards, but for a policy that combines others or
        learns out of order. Errors are kept in `troubles`, and not raised.

        Parameters
        ----------
        force : bool, default=False
            Whether to give the policy events from which it cannot learn yet, too, and to try again
            what failed less than a minute ago.

        Returns
        -------
        learned : int
            Number of events.
        """
        with self._learning:
            return self._learned_all(force)

    def _learned_all(self, force: bool) -> int:
        """Learn as often as there is something to learn; return the number of events."""
        total = 0
        learned = None
        while learned != 0 and (force or self._may_try()):
            try:
                learned = self._learned(force)
                if learned:
                    self._forget()
            except Exception as error:
                self._version = None  # the policy in memory may have learned some of the events
                # Learning that failed before anything was charged is tried again after a minute
                self._failed_at = self._clock()
                with self._store.transaction() as held:
                    self._note(held, error, "nothing was lost, and it is tried again")
                break
            except BaseException:
                self._version = None
                raise
            total += learned or 0
        return total

    @property
    def n_events(self) -> int:
        """Number of events that were ranked."""
        held: Transaction
        with self._store.reading() as held:
            return held.last()

    @property
    def n_learned(self) -> int:
        """Number of events that the policy is done with.

        With ``max_visits`` it counts those of further visits, too, of which nothing was used. With
        ``in_order=False`` it counts those in whose places the policy has learned: how many rewards
        came is private.
        """
        held: Transaction
        with self._store.reading() as held:
            return held.first_open() - 1

    @property
    def troubles(self) -> list[tuple[float, str]]:
        """Errors of learning, in any worker: time and sentence, the last one last.

        Nothing in it depends on a value of the data.
        """
        held: Transaction
        with self._store.reading() as held:
            return held.troubles()

    @property
    def guarantee(self) -> Any:
        """The promise of the policy to those who come."""
        with self._store.lock:
            return self.policy.guarantee

    def status(self) -> dict[str, Any]:
        """Numbers for whoever watches the service; none is about what is in an event.

        Returns
        -------
        status : dict
            ``events``, ``learned`` (as `n_learned`), ``waiting`` (all others), ``version`` (it
            grows when the policy is saved or the cutoff changes), ``rounds_until_update``,
            ``troubles`` (their number),
            ``last_trouble`` (a sentence, or None), ``clock_behind`` and ``guarantee``. The clock is
            so many seconds behind a `rank` that waits for its reward, or the last one, or with
            ``in_order=False`` any. It went back, and nothing reaches its cutoff before.
        """
        with self._store.transaction() as held:
            self._refresh(held)
            events = held.last()
            learned = held.first_open() - 1
            troubles = held.troubles()
            # Events before it have their rewards, which is private where they come out of order
            waiting = 0 if self.policy._out_of_order else learned + 1
            return {
                "events": events,
                "learned": learned,
                "waiting": events - learned,
                "version": self._version,
                "rounds_until_update": self.policy.rounds_until_update_,
                "troubles": len(troubles),
                "last_trouble": troubles[-1][1] if troubles else None,
                "clock_behind": held.behind(self._clock(), waiting),
                "guarantee": str(self.guarantee),
            }

    def backup(self, path: Any) -> None:
        """Copy the file, as of one instant, while it is in use.

        Parameters
        ----------
        path : str or path-like
            What is there is replaced. The copy holds raw data, as the file does.
        """
        self._store.backup(path)

    @property
    def _learning(self) -> Any:
        """Lock of this process, to be taken before that of the file, never while that is held."""
        return self._learners.setdefault(os.getpid(), threading.Lock())

    @contextmanager
    def _charging(self, policy: BasePolicy, what: str) -> Iterator[None]:
        """Charge what a policy does once, to the accountants under which this object was made."""
        with activated(self._accountants), policy._numbering.once(what):
            yield

    def _acted(
        self,
        held: "Transaction",
        new: list[int],
        events: list[tuple[str, bytes, str | None]],
        contexts: np.ndarray,
        available: Any,
        k: Any,
    ) -> Iterator[tuple[int, bytes]]:
        """Act on new events, of (name, hash, user), keep them, and yield (number, places)."""
        started = self.policy._has_begun
        try:
            starts = not started or self.policy._starts_as_it_acts
            with self._charging(self.policy, "start") if starts else nullcontext():
                chosen = self.policy.rank(contexts, 1 if k is None else k, available)
            if not started:  # kept for all workers, since its start was charged
                self._version += 1
                held.save(self._version, held.first_open(), self.policy)
        except BaseException:
            if not started:
                self._version = None
            raise
        actions = chosen[0][:, 0]
        rows = contexts if contexts.ndim == 2 else contexts[np.arange(len(actions)), actions]
        player = self.policy.choice_ if self.policy._starts_as_it_acts else None
        now = self._clock()
        visits = self.policy._visits
        for at, row, action, place in zip(new, rows, actions.tolist(), np.hstack(chosen)):
            name, question, user = events[at]
            hashed = visits and visits.hashed(user)
            place_bytes = place.tobytes()
            self._newest = held.add(
                now, player, name, place_bytes, question, action, row.tobytes(), hashed
            )
            yield at, place_bytes

    def _rewarded(self, held: "Transaction", name: str, reward: float | None) -> str:
        _, cutoff, first, _, _, learned, before, ranked, number = held.find(name)
        if number is None:
            return "unknown"
        self._newest = max(self._newest, number)
        if before is not None or learned == 2:
            return "repeated"
        closed = not self.policy._out_of_order and number < first
        if learned or closed or self._clock() > ranked + cutoff:
            return "late"
        value = self.policy._neutral_reward if reward is None else reward
        held.set_reward(number, value, reward is None)
        return "taken"

    def _may_try(self) -> Any:
        """Whether learning has not failed within a minute of now, whichever way the clock went."""
        return abs(self._clock() - self._failed_at) >= 60.0

    def _learn_if_due(self) -> None:
        while self._here and self._newest >= self._due_from and self._may_try():
            with self._store.reading() as held:
                due = self._due(held)[1]
            if not due or not self._learning.acquire(blocking=False):
                return  # another thread learns, and looks for more when it is done
            try:
                self._learned_all(False)
            finally:
                self._learning.release()

    def _due(self, held: "Transaction", force: bool = False) -> tuple[int, int]:
        """Number of the first event to learn, and how many the policy is to be given now."""
        until = self.policy.rounds_until_update_
        if self.policy._out_of_order:  # events whose rewards have come, in any order
            first = held.first_open()
            closed = held.last() + 1 - first
            least = largest = min(until, max(self.learn_every, EVENTS_AT_ONCE))
        else:  # each event before `_closed` has its reward, or has passed the cutoff
            first, self._closed = held.first_waiting(self._closed, self._clock())
            closed = self._closed - first
            if until >= NO_LIMIT:  # the policy never learns: its events need not be kept
                until = 1
            least = max(until, self.learn_every)
            # Learning ends at a public time: the saved policy holds no rows of an open epoch.
            largest = EVENTS_AT_ONCE if until == 1 else until
        self._due_from = first + least - 1
        return first, min(closed, largest) if closed >= least or force else 0

    def _learned(self, force: bool) -> int | None:
        """Learn what is due and save the policy; return how many events, None if overtaken.

        Nobody waits for the policy to learn: another object acts as it did, until it is taken over
        in a short transaction, or read from the file again. Answers are numbered, so that whoever
        learns the same events at the same time gets the same ones, and the first who saves them
        goes on.
        """
        with self._store.reading() as held:
            self._due(held)  # a long look, while others write
        with self._store.transaction() as held:
            self._refresh(held)
            first, n = self._due(held, force)
            if not n:
                return 0
            if self.policy._out_of_order:
                return self._learned_late(held, first, n)
            if self.policy._starts_as_it_acts:  # a combiner changes while it acts
                taught = self._taught(self.policy, first, held.events(IN_RANGE, first, first + n))
                return self._keep(held, self.policy, first, *taught)
            version = self._version
            policy = self.policy
            held.close_before(first + n)  # rewards come too late now, whatever another clock says
        events = []
        for start in range(first, first + n, EVENTS_AT_ONCE):
            with self._store.reading() as held:
                events += held.events(IN_RANGE, start, min(start + EVENTS_AT_ONCE, first + n))
        if any(row is None for row, *_ in events):  # another worker has learned them
            return None
        acting = policy._acting()
        self.policy = acting
        taught = self._taught(policy, first, events)
        with self._store.transaction() as held:
            if held.version() != version:
                return None
            policy.n_actions_ = acting.n_actions_  # of contexts that came meanwhile
            return self._keep(held, policy, first, *taught)

    def _taught(
        self, policy: BasePolicy, first: int, events: list[tuple[Any, ...]]
    ) -> tuple[int, Any]:
        """Give events to a policy; return how many it took, and an error that did not undo it."""
        n = len(events)
        rows, actions, rewards, players, users, _ = zip(*events)
        failure = None
        given: Any = {"rows": np.frombuffer(b"".join(rows)).reshape(n, -1)}
        if players[0] is not None:
            given["players"] = np.array(players)
        if policy._visits is not None:
            given["users"] = [user and Hashed(user) for user in users]
        try:
            with self._charging(policy, f"events from {first}"):
                policy.update(None, np.array(actions, np.intp), np.array(rewards), **given)
        except Exception as error:
            n = getattr(error, "rounds_taken", 0)
            failure = error
            if not n:
                raise
        return n, failure

    def _keep(self, held: "Transaction", policy: Any, first: int, n: int, failure: Any) -> int:
        """Save a policy that has learned n events, and play it from now on."""
        if failure is not None:
            self._note(held, failure, "its rounds are spent, and nothing was learned from them")
        self.policy = policy
        self._version += 1
        held.save(self._version, first + n, policy)
        return n

    def _forget(self) -> None:
        """Remove what the file holds of learned events, a few at a time."""
        while not self.policy._out_of_order:
            with self._store.transaction() as held:
                start = self._forgotten = held.oldest(self._forgotten)
                stop = min(held.first_open(), held.last() + 1, start + EVENTS_AT_ONCE)
                held.forget(IN_RANGE, start, stop)
            if stop < start + EVENTS_AT_ONCE:
                return
            time.sleep(PAUSE)

    def _learned_late(self, held: "Transaction", first: int, n: int) -> int:
        """Give the policy the rewards that came, in the places of the next n events."""
        self._closed = held.oldest(self._closed)
        now = self._clock()
        # A blank round is added, so that there is always a round.
        blank = bytes(8 * self.policy.n_features_in_), 0, self.policy._neutral_reward, 0, None, None
        events = [*held.events(CAME, self._closed, now), blank]
        rows, actions, rewards, _, users, names = zip(*events)
        if self.policy._visits is not None:
            names = tuple(user and Hashed(user) for user in users)
        features = np.frombuffer(b"".join(rows)).reshape(len(events), -1)
        with self._charging(self.policy, f"events from {first}"):
            self.policy._update_late(n, np.array(rewards), features, np.array(actions), names)
        held.forget(CAME, self._closed, now)
        return self._keep(held, self.policy, first, n, None)

    def _note(self, held: "Transaction", error: Any, meaning: str) -> None:
        """Keep what went wrong, for whoever watches the service."""
        sentence = sentence_of(error, meaning)
        held.note(self._clock(), sentence)
        LOG.warning(sentence)

    def _refresh(self, held: "Transaction") -> None:
        """Take over what another thread or process has learned."""
        version = held.version()
        if version != self._version:
            self.policy = held.policy()  # first: a file that cannot be read is read again
            self._due_from = 0  # no event before it lets the policy learn
            self._version = version
            self._closed *= self.policy._out_of_order
