"""What every policy is: choices, events, state, and the report of a whole run."""

from abc import ABC, abstractmethod
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any, Self, cast, overload

import numpy as np
from sklearn.base import BaseEstimator

from .._compat import forgets_rows
from .._estimation._public_maps import column_bounds
from .._parameters import Count, RandomState, attribute, parameters
from .._printing import Printed, Table
from .._stored import frozen, set_state, stored_in_policies
from ..exceptions import PrivacyError
from ..privacy import (
    Accounted, Budget, Cost, Guarantee, Numbering, PrivacyReport, TurnLock, protecting,
)  # fmt: skip
from ..records import check_shape, finite, floats, in_memory, public_shape, silence
from ._draws import by_chance, in_blocks, uniform
from ._state import save, tell_taken
from ._visits import Visits

HEADERS = ("epoch", "rounds", "mu, at most", "epsilon", "delta")


@stored_in_policies
@frozen
class Epoch:
    """A closed epoch: its public rounds, and what the fit to them reports.

    Parameters
    ----------
    rounds : (int, int)
        First round, and the one after the last.
    report : PrivacyReport or None
        None if the oracle is not private.
    """

    rounds: tuple[int, int]
    report: PrivacyReport | None

    @property
    def guarantee(self) -> Guarantee:
        """The promise to its users."""
        return self.report.guarantee.protecting("user") if self.report else Guarantee.absent("user")


@dataclass(frozen=True, repr=False)
class EpochsReport(Printed):
    """The released answers of a policy that learns by epochs; prints as a table, and in HTML.

    Parameters
    ----------
    name : str
        The policy.
    promise : Guarantee
        What users of the epochs to come are promised.
    epochs : list of Epoch
        The closed ones, in order.
    """

    name: str
    promise: Guarantee
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of what users were promised, and of what is to come.

        Joint differential privacy where a curator is trusted (Kearns et al. 2014): the actions of
        all others are protected.
        """
        return Guarantee.weakest([self.promise, *(epoch.guarantee for epoch in self.epochs)])

    @property
    def privacy(self) -> str:
        """Who is trusted: "central", "local", "shuffle", or "none" for no privacy."""
        return self.guarantee.model

    @property
    def budget(self) -> Budget:
        """The loss of one user in the whole run, at most."""
        return Budget(self.guarantee.epsilon, self.guarantee.delta)

    @property
    def total(self) -> Cost:
        """Cost to one user: that of the most expensive epoch, since epochs are disjoint."""
        if self.epochs and not self.guarantee.private:
            return Cost(gaussian=inf)
        return Cost.maximum([e.report.total for e in self.epochs if e.report] or [Cost()])

    def _parts(self):
        lines = []
        for index, epoch in enumerate(self.epochs):
            mu = sqrt(2.0 * epoch.report.total.amount("zcdp")) if epoch.report else inf
            rounds = f"{epoch.rounds[0]}-{epoch.rounds[1] - 1}"
            promised = epoch.guarantee
            cost = f"{mu:.4g}", f"{promised.epsilon:.6g}", f"{promised.delta:g}"
            lines.append((str(index), rounds, *cost))
        return [f"{self.name}: {self.guarantee}", Table(HEADERS, lines, len(HEADERS))]


def divided_budget(budget, releases, currency):
    """Budget of each of so many releases about one person, which are paid in this currency.

    Squares of mu add up, and so do values of rho. If the currency is not known (None), epsilon and
    delta are added up, which always holds.
    """
    if currency is None or not budget.mu > 0.0:
        return Budget(budget.epsilon / releases, budget.delta / releases)
    if currency == "zcdp":
        return Budget.from_rho(budget.rho / releases, budget.delta)
    return Budget.from_mu(budget.mu / sqrt(releases), budget.delta)


MAX_SEED = np.iinfo(np.int32).max
# Number of rounds, reads or users where there is no limit. JSON and floats hold it exactly.
NO_LIMIT = 2**53


@parameters
class BasePolicy(Accounted, BaseEstimator, ABC):
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

    random_state: RandomState = None

    # Parameters that only some policies have, and what they are for all others
    shared = True
    n_actions = max_visits = bounds_y = cast(Any, None)

    _numbering: Any = attribute()  # of the answers, which all copies share
    _visits: Any = attribute()  # of persons, if they are counted
    _starts_as_it_acts = False  # whether `act` may begin, and charge, some part of it
    # Whether rounds are learned from when their rewards come
    _out_of_order: bool = attribute(False)
    _reads_values = True  # whether actions depend on contexts and rewards
    _in_parts = False  # whether one call of `_update` has no rounds beyond a change of the policy
    # Whether an update that adds rounds to sums did not come to its end
    _midway: bool = attribute(False)

    @property
    def _can_be_late(self):
        """Whether rewards may come in any order."""
        return False

    @property
    def _one_mechanism(self):
        """Whether all rounds of a person are in one release, and not each in one of its own."""
        return False

    @property
    def _answer_number(self):
        """Number of the answer that the next rounds will be in, the same in all copies."""
        return None

    @overload
    def act(self, contexts: Any, available: Any = None, users: Any = None) -> np.ndarray: ...

    @overload
    def act(
        self, contexts: Any, available: Any = None, users: Any = None, *, return_propensities: bool
    ) -> Any: ...

    @silence()
    def act(
        self,
        contexts: Any,
        available: Any = None,
        users: Any = None,
        *,
        return_propensities: bool = False,
    ) -> Any:
        """Choose an action in each of some rounds; the policy does not change between them.

        Parameters
        ----------
        contexts : array-like of shape (n_rounds, n_actions, n_features)
            Features of every action. Actions may come and go from call to call: it is the features
            that are learned about. With ``shared=False`` (n_rounds, n_features): features of the
            round, the same for all ``n_actions`` actions, each of which has its own weights.
        available : array-like of bool of shape (n_rounds, n_actions) or (n_actions,), default=None
            Which actions may be played; None: all. At least one in every round.
        users : sequence of shape (n_rounds,), default=None
            Who came, for policies with ``max_visits``. The action does not depend on it: `update`
            counts.
        return_propensities : bool, default=False
            Whether to return the propensities too.

        Returns
        -------
        actions : ndarray of shape (n_rounds,), of dtype intp
            `propensities_` has their probabilities.
        propensities : ndarray of shape (n_rounds,)
            Probability of each action given its context and what was available. Only with
            ``return_propensities=True``, which is safe when several threads act.

        Raises
        ------
        ValueError
            If the contexts or the mask have the wrong shape, or a round has no action; nothing has
            changed then.
        InvalidValues
            If contexts are not finite numbers: what the policy costs from its start on has been
            charged by then.
        """
        with self._turn_lock:
            if users is not None:
                self._checked_users(users, self._checked_shape(contexts)[0])
            phi, available = self._opened(contexts, available)
            actions, propensities = self._act(phi, available, self._rng)
            self.propensities_ = propensities
        return (actions, propensities) if return_propensities else actions

    def _opened(self, contexts, available):
        """Features of rounds and what may be played in them; the first rounds start the policy."""
        shape = self._checked_shape(contexts)
        n_actions = self._actions_of(shape)
        available = checked_available(available, shape[0], n_actions)
        if not self._has_begun:
            self._begin(n_actions, shape[-1])
        numbers = floats(contexts)
        if self._reads_values:
            finite(numbers)
        self.n_actions_ = n_actions
        return self._phi(numbers), available

    @silence()
    def probabilities(self, contexts: Any, available: Any = None) -> np.ndarray:
        """Probability with which `act` would play each action; nothing is drawn.

        Parameters
        ----------
        contexts : array-like
            The same as for `act`.
        available : array-like of bool of shape (n_rounds, n_actions) or (n_actions,), default=None
            Which actions may be played, as for `act`; None allows all.

        Returns
        -------
        probabilities : ndarray of shape (n_rounds, n_actions)
            Given the context and what is available.

        Raises
        ------
        ValueError
            As `act`.
        """
        with self._turn_lock:
            phi, available = self._opened(contexts, available)
            return np.broadcast_to(self._quiet_chances(phi, available), phi.shape[:2]).copy()

    def _quiet_chances(self, phi, available):
        """The same as `_chances`, checked."""
        chosen = (self._chances if len(phi) else uniform)(phi, available)
        played = np.abs(chosen if available is None else chosen * available)
        gaps = abs(np.sum(chosen, axis=-1) - 1.0) + abs(played.sum(axis=-1) - 1.0)
        if np.shape(chosen)[1:] != phi.shape[1:2] or not (gaps < 1e-6).all():
            raise ValueError(
                f"{type(self).__name__}._choose must return the probability of each action, in an "
                "array of shape (n_rounds, n_actions): none below 0, 0 where an action is not "
                "available, and 1 in the sum of a round."
            )
        return chosen

    @silence()
    def rank(self, contexts: Any, k: int, available: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Choose the first ``k`` actions of each round, such as the places of a page.

        The first place is drawn as `act` draws; each further one as `act` would if the actions
        before it could not be played. Give the first place, and its reward, to `update`: one round
        of a user is one record.

        Parameters
        ----------
        contexts : array-like
            The same as for `act`.
        k : int
            Number of places, at most the number of available actions in any round.
        available : array-like of bool of shape (n_rounds, n_actions) or (n_actions,), default=None
            Which actions may be played, as for `act`; None allows all.

        Returns
        -------
        ranking : ndarray of shape (n_rounds, k), of dtype intp
            Different actions, the first place first.
        propensities : ndarray of shape (n_rounds, k)
            Probability of the action of each place, given its context and the places before it:
            the first column is what `act` has as ``propensities_``.

        Raises
        ------
        ValueError
            As `act`, or if a round has fewer available actions.
        """
        with self._turn_lock:
            phi, left = self._opened(contexts, available)
            n, n_actions = phi.shape[:2]
            least = n_actions if left is None else left.sum(axis=1).min(initial=n_actions)
            if k != int(k) or not 1 <= k <= least:
                raise ValueError(f"k={k} must be an int from 1 to the number of available actions.")
            places = [by_chance(self._quiet_chances(phi, left), n, self._rng)]
            while len(places) < k:
                left = np.broadcast_to(True if left is None else left, (n, n_actions)).copy()
                left[np.arange(n), places[-1][0]] = False
                places.append(by_chance(self._quiet_chances(phi, left), n, self._rng))
        ranking, propensities = map(np.column_stack, zip(*places, strict=True))
        return ranking, propensities

    def _actions_of(self, shape):
        """Number of actions of what has this shape, as far as it is known."""
        of_contexts = shape[1] if len(shape) == 3 else None
        if self.shared:
            return of_contexts
        return self.n_actions_ if self._has_begun else self.n_actions

    @property
    def _has_begun(self):
        """Whether the policy has the state of a run, whose start was charged."""
        return hasattr(self, "n_rounds_")

    @property
    def _has_learned(self):
        """Whether anything was learned."""
        return False

    @property
    def _turn_lock(self):
        """Lock of this object, which its copies do not share; whoever comes first makes it."""
        return self.__dict__.setdefault("_lock", TurnLock())

    def __getstate__(self) -> Any:
        # A copy that is begun in the midst of an update waits for its end, and every answer from
        # then on is written down where the copy finds it.
        with self._turn_lock:
            if self._numbering is not None:
                self._numbering.share()
            return deepcopy(super().__getstate__())

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

    def _updated(self, contexts, actions, rewards, rows, users):
        """Check what is public, charge, and only then look at values."""
        started = self._has_begun
        of_rows = rows is not None
        if not started and contexts is None:
            raise ValueError("before the first act, update needs contexts and not rows.")
        if rewards is None or (contexts is not None) == of_rows:
            raise ValueError("update needs rewards, and either contexts or rows.")
        rows = rows if of_rows else contexts
        shape = self._checked_shape(rows, of_rows)
        n_actions = self._actions_of(shape)
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
        rows = self._blocks(rows, actions)
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

    @property
    def rounds_until_update_(self) -> int:
        """Public number of further rounds in which the policy will not change; at least 1."""
        return 1

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The promise to a user, from what was charged: :class:`skpriv.privacy.Guarantee`."""

    @property
    def _gram_blocks(self):
        """Number of blocks of the Gram matrix: actions that have weights of their own."""
        return 1 if self.shared else self.n_actions_

    @property
    def notes_(self) -> list[str]:
        """What the released answers say of bounds that do not suit, and of weights not known.

        Sentences, if rows have nearly all the length ``data_norm``, one feature has all of their
        length, rewards use a small part of ``bounds_y``, or noise hides the weights of an action or
        a feature. They follow from released sums, the law of their noise and public numbers, and
        cost no privacy. A report of running sums ends with them. The policies of a combiner have
        their own.

        Each is said once noise does not explain it. For `LinUCB` with four shared weights, a
        curator and epsilon 1 that is after about 100,000 rounds whose rewards use little of
        ``bounds_y``, and after 200,000 whose rewards are all beyond its end: no sentence is no
        proof that the bounds suit.
        """
        return []

    def user_guarantee(self, max_visits: int) -> Guarantee:
        """The promise to users who may be in up to ``max_visits`` rounds.

        Parameters
        ----------
        max_visits : int
            Public. A user who comes more often must be played without being learned from: leave
            those rounds out of `update` by a rule that depends on the numbers of visits alone, and
            take these for public too.

        Returns
        -------
        Guarantee
            The same as `guarantee`, with the privacy losses of all visits together.
        """
        return self.guarantee.visited(max_visits)

    def _acting(self):
        """Policy that acts as this one does while it learns, with turns of its own.

        Learning replaces what is read by those who act, and does not change it.
        """
        acting = object.__new__(type(self))
        set_state(acting, **{**vars(self), "_lock": TurnLock()})
        return acting

    def reset(self) -> Self:
        """Forget everything, as `sklearn.base.clone` does, but in place.

        Privacy that was spent stays spent: what comes after the reset is charged in addition.

        Returns
        -------
        self
        """
        for name in vars(self).keys() - self.get_params(deep=False).keys():
            # The turns of threads, and accountants of another process, stay.
            if name != "_lock" and not name.startswith("_skpriv"):
                delattr(self, name)
        return self

    def save(self, path: Any, *, raw_path: Any = None) -> None:
        """Write the policy, as it is now, to a file from which :func:`skpriv.bandits.load` reads.

        Parameters
        ----------
        path : str or path-like
            File to write; a file of this name is replaced.
        raw_path : str or path-like, default=None
            Another file for what an open epoch must keep: the records, or their exact sums, that no
            released answer covers yet; and for who came in it, and the propensities of the last
            `act`, which tell of its contexts. This is **raw data**, to be kept as the data is kept.
            None writes it into the one file, which then is raw data too.

        Raises
        ------
        ValueError
            If the policy has not acted yet: there is nothing to keep.
        """
        if not self._has_begun:
            raise ValueError(f"this {type(self).__name__} has not acted: there is nothing to keep.")
        with self._turn_lock:
            save(self, path, raw_path)

    def _act(self, contexts, available, rng):
        """Return actions (dtype intp) and their propensities, both of shape (n_rounds,)."""
        return by_chance(self._quiet_chances(contexts, available), len(contexts), rng)

    def _chances(self, contexts, available):
        """Return probabilities of all actions, of shape (n_rounds or 1, n_actions).

        ``available`` is None or a mask (n_rounds, n_actions), with an action in every round. With 1
        for n_rounds they are those of all rounds. Before anything is learned all are equally
        likely, and then `_choose` has the same arguments.
        """
        choose = self._choose if self._has_learned else uniform
        return choose(contexts, available)

    def _choose(self, contexts, available):
        """Return probabilities, as `_chances`, by what was learned."""
        raise NotImplementedError

    def _pay(self, n_rounds):
        """Charge what these rounds still cost; their values are looked at afterwards."""

    def _check_values(self, *arrays):
        """Refuse, by one fixed sentence, what is no finite number, or an unknown action.

        All that the rounds cost has been charged. A policy whose charge comes later leaves it to
        what is charged then.
        """
        if self._reads_values:
            finite(*arrays)

    @abstractmethod
    def _update(self, rows, rewards):
        """Take in phi of the chosen actions of at least one round, and add to ``n_rounds_``."""

    def _start(self, n_phi):
        """Make the state of a subclass; ``self._rng`` may be drawn from."""

    def _begin(self, n_actions, n_features):
        """Check the parameters and make the state; nothing has changed if that raises."""
        self._validate_params()
        if self.bounds_y is not None:
            column_bounds(self.bounds_y, [], 1, "bounds_y")
        seed: Any = self.random_state
        max_visits = self._max_visits
        before = set(vars(self))
        try:
            # Never NumPy's global stream, which could not be pickled along with the policy.
            ours = isinstance(seed, np.random.RandomState)
            self._rng: Any = seed if ours else np.random.RandomState(seed)
            self.n_actions_ = n_actions
            self.n_features_in_ = n_features
            if self._numbering is None:
                self._numbering = Numbering()
            people = self._numbering.part("people")
            self._visits = None if max_visits is None else Visits(int(max_visits), people)
            self._start(n_features * (1 if self.shared else n_actions))
            self.n_rounds_ = 0
        except BaseException:
            for name in set(vars(self)) - before:
                delattr(self, name)
            raise

    def _noise_state(self):
        """Generator of reproducible privacy noise, or None for secure noise."""
        if self.random_state is None:
            return None
        return np.random.RandomState(self._rng.randint(MAX_SEED))

    @contextmanager
    def _whole_update(self):
        """Note that rounds are being added to sums, which `_check_sums` refuses if interrupted."""
        self._midway = True
        yield
        self._midway = False

    def _check_sums(self, n_rounds):
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

    def __copy__(self):
        # A shallow copy would share sums and records, and draw answers of its own
        return deepcopy(self)

    @contextmanager
    def _accounting(self):
        """Charge for persons, where rounds of one person are counted."""
        max_visits = self._max_visits
        protected = nullcontext() if max_visits is None else protecting("", max_visits)
        with super()._accounting(), protected:
            yield

    @property
    def _max_visits(self):
        """Rounds of a person that are learned from, None where rounds are protected alone."""
        if self._visits is not None:
            return self._visits.max_visits
        return None if self._has_begun else self.max_visits

    def _of_persons(self, guarantee):
        """Promise to a person, by the one that is made for a round or for all of the rounds."""
        if self._max_visits is None:
            return guarantee
        promise = guarantee.of_person if self._one_mechanism else guarantee.repeated
        return promise(self._max_visits)

    @property
    def _neutral_reward(self):
        """Public reward of a round that keeps its place, and from which nothing is to be learned.

        Its features are 0. The reward is what a policy expects of such features before it has
        learned: the value in the range of rewards that is nearest to 0, if there is no intercept.
        """
        return float(self._bounded(0.0))

    def _bounded(self, rewards):
        """Rewards inside of their public range, if there is one."""
        return rewards if self.bounds_y is None else np.clip(rewards, *self.bounds_y)

    def _checked_users(self, users, n_rounds):
        """A list of the people of these rounds; an error says nothing of who they are."""
        max_visits = self._max_visits
        if max_visits is None and users is None:
            return None
        if users is None:
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

    def _update_parts(self, rows, rewards, users):
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
    def _without_repeats(self, visits, rows, rewards, users, until):
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

    def _phi(self, contexts):
        """Features phi(x, a), of shape (n_rounds, n_actions, n_phi).

        With ``shared=False``, phi(x, a) = e_a (x) x: one regression with a block an action, so
        that the privacy noise is calibrated to a change of the action too.
        """
        if self.shared:
            return contexts
        return in_blocks(contexts, self.n_actions_)

    def _blocks(self, rows, actions):
        """Rows phi(x, a) of the chosen actions; with ``shared=False`` x is in the block of a."""
        if self.shared:
            return rows
        blocks = np.eye(self.n_actions_)[actions][:, :, None] * rows[:, None]
        return blocks.reshape(len(rows), self.n_actions_ * rows.shape[1])

    def _checked_shape(self, contexts, of_rows=False):
        """Shape of contexts, or of one row a round: it is public, and no value is looked at."""
        shape = public_shape(contexts)
        n_actions = self.n_actions
        if not self.shared and n_actions is None:
            raise ValueError("shared=False needs the parameter n_actions.")
        name = "contexts"
        wanted = "(n_actions, n_features); with shared=False it is (n_features,)"
        fits = len(shape) == 3 and n_actions in (None, shape[1])
        if of_rows or not self.shared:
            name = "rows" if of_rows else name
            wanted = (
                "(n_features,): the features of the chosen action, or with shared=False those of "
                "the round. Features of each action in contexts need shared=True"
            )
            fits = len(shape) == 2
        if self._has_begun and shape[-1:] != (self.n_features_in_,):
            fits = False
            wanted += f", and {self.n_features_in_} features as the first rounds had"
        if not fits or 0 in shape[1:]:
            raise ValueError(
                f"{name} have shape {shape[1:]} in a round, which must be {wanted}. Rounds are "
                "the first axis, but for the one of Loop.rank."
            )
        return shape


@stored_in_policies
@parameters
class RandomPolicy(BasePolicy):
    """Choose every action with the same probability: the reference that must be beaten.

    Parameters
    ----------
    shared : bool, default=True
        False if contexts are features of the round alone.

    Attributes
    ----------
    n_rounds_ : int
        Rounds that `update` has taken in.
    n_actions_ : int
    n_features_in_ : int
    propensities_ : ndarray of shape (n_rounds,)
        Probability of each action of the last `act`: one over the number of actions.

    Notes
    -----
    **Privacy guarantee**: actions do not depend on any context or reward.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import RandomPolicy
    >>> policy = RandomPolicy(random_state=0)
    >>> policy.act(np.ones((5, 3, 2)))
    array([1, 2, 1, 1, 1])
    >>> policy.propensities_.round(2)
    array([0.33, 0.33, 0.33, 0.33, 0.33])
    """

    shared: bool = True
    n_actions: Count | None = None

    _reads_values = False

    @property
    def rounds_until_update_(self) -> int:
        """Public number of further rounds in which the policy will not change: all."""
        return NO_LIMIT

    @property
    def guarantee(self) -> Guarantee:
        """Perfect privacy: actions depend on no context and no reward."""
        return Guarantee.perfect("user")

    def _phi(self, contexts):
        if self.shared:
            return contexts
        return np.broadcast_to(0.0, (len(contexts), self.n_actions_, 1))  # nothing is looked at

    def _update(self, rows, rewards):
        self.n_rounds_ += len(rewards)


@silence()
def checked_available(available, n_rounds, n_actions):
    """Mask of what may be played, one row a round; None where all may be, or nothing is said."""
    if available is None:
        return None
    try:
        available = np.asarray(available) if in_memory(available) else np.empty(0)
    except Exception:  # ragged, or of objects of their own kind
        available = np.empty(0)
    if available.dtype != bool or available.shape not in ((n_rounds, n_actions), (n_actions,)):
        raise ValueError(
            f"available must be a mask, an array of bool of shape ({n_actions},), or with a row "
            f"for each round ({n_rounds}, {n_actions})."
        )
    if available.all():
        return None
    if not available.any(axis=-1).all():
        raise ValueError("available has a round without an action: let each have one.")
    return np.broadcast_to(available, (n_rounds, n_actions))


def known_actions(actions, n_actions):
    """Actions, 0 in place of those that are unknown, and which are valid: private, like rewards."""
    actions = floats(actions)
    valid = (actions >= 0) & (actions < n_actions) & (actions == np.floor(actions))
    return np.where(valid, actions, 0).astype(np.intp), valid
