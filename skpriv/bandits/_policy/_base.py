"""What every policy is: it acts, it learns, and it has the state of a run."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..._compat import forgets_rows
from ..._parameters import attribute, parameters
from ...exceptions import PrivacyError
from ...records import check_shape, finite, floats, in_memory, public_shape, silence
from ._acting import ActingPolicy
from ._actions import known_actions
from ._state import tell_taken

if TYPE_CHECKING:
    from ._visits import Visits

# Number of rounds, reads or users where there is no limit. JSON and floats hold it exactly.
NO_LIMIT = 2**53


@parameters
class BasePolicy(ActingPolicy):
    """Base class of the bandit policies; not for direct use.

    A policy has keyword-only parameters, some of which this class knows by name if a policy has
    them: ``shared`` and ``n_actions`` (see `act`), ``bounds_y`` (rewards are clipped to it) and
    ``random_state`` (of everything random that is not privacy noise).

    A subclass implements `guarantee`, `_update`, which adds to ``n_rounds_``, and either `_chances`
    or both `_choose` and `_has_learned`. It may implement `_pay`, and `_start`, which is called
    once, before the others, when ``n_actions_`` and ``n_features_in_`` are known. Arguments of the
    hooks have been checked; contexts are phi(x, a) of shape (n_rounds, n_actions, n_phi).

    Threads may share a policy: `act`, `update` and `save` take turns. A pickle and a deep copy do
    not: make them while no other thread updates the policy, since rounds that come meanwhile may be
    in a copy twice. An update that adds rounds to sums and is interrupted is the last one: whoever
    repeats its rounds would add them twice, and a record would move an answer by twice its
    sensitivity.

    Parameters
    ----------
    random_state : None, int or RandomState, default=None
        Seed of the actions.

    Other Parameters
    ----------------
    shared : bool, default=True
        False if contexts are features of the round alone, with weights for each action.
    n_actions : int, default=None
        Number of actions; needed with ``shared=False``.
    max_visits : int or None, default=None
        Public: the guarantee is that of a person, who is learned from in at most so many rounds and
        at most once between two changes of the policy; `update` needs ``users``. None protects
        single rounds: whoever comes twice is two users.

    Attributes
    ----------
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
        Number of features of the contexts as they are passed.
    propensities_ : ndarray of shape (n_rounds,)
        Probability, given its context, of each action of the last `act`.
    """

    _in_parts = False  # whether one call of `_update` has no rounds beyond a change of the policy
    # Whether an update that adds rounds to sums did not come to its end
    _midway: bool = attribute(False)

    def _pay(self, n_rounds: int) -> Any:
        """Charge what these rounds still cost; their values are looked at afterwards."""

    def _check_values(self, *arrays: np.ndarray) -> None:
        """Refuse, by one fixed sentence, what is no finite number, or an unknown action.

        All that the rounds cost has been charged. A policy whose charge comes later leaves it to
        what is charged then.
        """
        if self._reads_values:
            finite(*arrays)

    @abstractmethod
    def _update(self, rows: np.ndarray, rewards: np.ndarray) -> Any:
        """Take in phi of the chosen actions of at least one round, and add to ``n_rounds_``."""

    @forgets_rows
    @silence()
    def update(
        self,
        contexts: Any = None,
        actions: Any = None,
        rewards: Any = None,
        *,
        rows: Any = None,
        users: Any = None,
    ) -> Self:
        """Learn from the rewards of some rounds: as many at once as one likes.

        They may be the logs of another policy, and come before the first `act`: a warm start.

        Parameters
        ----------
        contexts : array-like
            The contexts as given to `act`.
        actions : array-like of shape (n_rounds,)
            Integers from 0 to ``n_actions - 1``.
        rewards : array-like of shape (n_rounds,)
            Rewards of these actions; clipped to the declared bounds.
        rows : array-like of shape (n_rounds, n_features), default=None
            Features of the chosen actions, in place of ``contexts`` (and of ``actions``, unless
            ``shared=False``): the others are not needed.
        users : sequence of shape (n_rounds,), default=None
            Who came in each round, for policies with ``max_visits``: names or numbers, of which
            keyed hashes are counted. A person is learned from in at most ``max_visits`` rounds, and
            at most once between two changes of the policy. All other rounds keep their places, as
            rounds without features and with a neutral reward, and so do those of nobody: None, NaN
            and their like, and floats of 2**53 or more, to which whole numbers were rounded.
            Equal numbers are one person, and so are 1 and "1": whoever is counted
            under one name is not learned from more often by another way to write it.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If shapes do not fit; nothing was learned then.
        InvalidValues
            If a context or reward is no finite number, or an action is unknown. It is told after
            the charge, and for policies that learn by epochs when the epoch closes, which is lost.
        PrivacyError
            If an earlier update of a policy of running sums was interrupted while it added rounds,
            which would count twice: load the policy as it was saved before, or reset it.
        """
        with self._turn_lock:
            self._updated(contexts, actions, rewards, rows, users)
        return self

    def _updated(
        self,
        contexts: np.ndarray | None,
        actions: Any,
        rewards: Any,
        rows: np.ndarray | None,
        users: list[str] | None,
    ) -> None:
        """Check what is public, charge, and only then look at values."""
        started = self._has_begun
        of_rows = rows is not None
        if not started and contexts is None:
            raise ValueError("before the first act, update needs contexts and not rows.")
        if rewards is None or (contexts is not None) == of_rows:
            raise ValueError("update needs rewards, and either contexts or rows.")
        rows = rows if of_rows else contexts
        space = self._space
        shape = space.checked_shape(rows, of_rows)
        n_actions = space.count(shape)
        check_shape(rewards, "rewards", shape[:1])
        if n_actions is not None:
            check_shape(actions, "actions", shape[:1])
        users = self._checked_users(users, shape[0])
        if not started:  # a warm start from logs
            self._begin(n_actions, shape[-1])
        if not shape[0]:
            return
        self._pay(shape[0])  # before any value is looked at
        rows = floats(rows)
        rewards = floats(rewards)
        if n_actions is not None:
            actions, valid = known_actions(actions, n_actions)
            rewards = np.where(valid, rewards, np.nan)
        if len(shape) == 3:  # contexts hold features of each action
            rows = rows[np.arange(len(actions)), actions]
        rewards = self._bounded(rewards)
        self._check_values(rows, rewards)
        rows = space.chosen(rows, actions)
        before = self.n_rounds_
        try:
            if users is None and not self._in_parts:
                self._update(rows, rewards)
            else:
                self._update_parts(rows, rewards, users)
        except BaseException as error:
            if not self._midway:
                tell_taken(error, self.n_rounds_ - before, len(rewards))
            raise

    def _update_parts(self, rows: np.ndarray, rewards: np.ndarray, users: list[str] | None) -> None:
        """Take in rounds, a part at a time in which the policy does not change.

        A person is in one round of such a part. Rounds that are not to be learned from keep their
        places, and are blank.
        """
        taken = 0
        while taken < len(rewards):
            until = self.rounds_until_update_
            part = slice(taken, min(taken + until, len(rewards)))
            given = rows[part], rewards[part]
            if users is None:
                self._update(*given)
            else:
                with self._without_repeats(self._visits, *given, users[part], until) as new:
                    self._update(*new)
            taken = part.stop

    @contextmanager
    def _without_repeats(
        self,
        visits: "Visits",
        rows: np.ndarray,
        rewards: np.ndarray,
        users: Any,
        until: int,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows and rewards up to the next change of the policy, which comes after so many rounds.

        Those that are not to be learned from are blank. If the rounds are not taken in, they do not
        count as visits.
        """
        before = self.n_rounds_
        admitted, names = visits.admit(users, before + until, self._answer_number)
        blank = np.where(admitted, rewards, self._neutral_reward)
        try:
            yield np.where(admitted[:, None], rows, 0.0), blank
        except BaseException:
            if self.n_rounds_ == before:
                visits.restore(names)
            raise

    def _checked_users(self, users: list[str] | None, n_rounds: int) -> list[str] | None:
        """A list of the people of these rounds; an error says nothing of who they are."""
        max_visits = self._max_visits
        if users is None:
            if max_visits is None:
                return None
            raise ValueError(f"max_visits={max_visits} needs users: who came in each round.")
        if max_visits is None:
            raise ValueError(
                "users are counted by a policy with max_visits=: how many rounds of a person it "
                "may learn from."
            )
        if not in_memory(users):
            raise TypeError(
                f"users must be in memory: pass numpy.asarray of this {type(users).__name__}."
            )
        if public_shape(users) != (n_rounds,):
            raise ValueError(
                f"users of shape {public_shape(users)} must have shape ({n_rounds},): who came in "
                "each round."
            )
        return list(users)

    def _bounded(self, rewards: Any) -> Any:
        """Rewards inside of their public range, if there is one."""
        return rewards if self.bounds_y is None else rewards.clip(*self.bounds_y)

    @property
    def _neutral_reward(self) -> float:
        """Public reward of a round that keeps its place, and from which nothing is to be learned.

        Its features are 0. The reward is what a policy expects of such features before it has
        learned: the value in the range of rewards that is nearest to 0, if there is no intercept.
        """
        return float(self._bounded(np.float64(0.0)))

    @contextmanager
    def _whole_update(self) -> Iterator[None]:
        """Note that rounds are being added to sums, which `_check_sums` refuses if interrupted."""
        self._midway = True
        yield
        self._midway = False

    def _check_sums(self, n_rounds: int) -> None:
        """Refuse to add so many rounds to sums, while nothing has changed.

        After an update that was interrupted while it added rounds; or where they lead to an answer
        that cannot be written down for the copies of the policy.
        """
        if self._midway:
            raise PrivacyError(
                f"an update of this {type(self).__name__} was interrupted while it added rounds, "
                "which would count twice if they came again: go on with the policy as it was "
                "saved before (skpriv.bandits.load), or reset it."
            )
        if n_rounds >= self.rounds_until_update_:
            self._numbering.check()
