"""What every policy is: choices, events, state, and the report of a whole run."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Self, overload

import numpy as np
from sklearn.base import BaseEstimator

from .._compat import forgets_rows
from .._parameters import Count, RandomState, parameters
from .._printing import Printed, Table
from ..privacy import MODELS, Accounted, Budget, Cost, Guarantee, Numbering, PrivacyReport, Trust
from ..records import check_shape, finite, floats, public_shape
from ._draws import by_chance, uniform
from ._state import AddsWhole, Lock, Raw, save
from ._visits import LearnsFromPersons, Visits, checked_users

HEADERS = ("epoch", "rounds", "mu, at most", "guarantee of the fit")


@dataclass(frozen=True)
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


@dataclass(frozen=True, repr=False)
class EpochsReport(Printed):
    """What a policy that learns by epochs released; prints as a table, and in HTML.

    Attributes
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
        closed = (
            epoch.report.guarantee.protecting("user") if epoch.report else Guarantee.absent("user")
            for epoch in self.epochs
        )
        return Guarantee.weakest([self.promise, *closed])

    @property
    def privacy(self) -> str:
        """Who is trusted: "central", "local", "shuffle", or "none" for no privacy."""
        return self.guarantee.model

    @property
    def budget(self) -> Budget:
        """What one user may lose in the whole run."""
        return Budget(self.guarantee.epsilon, self.guarantee.delta)

    @property
    def total(self) -> Cost:
        """Cost to one user: that of the most expensive epoch, since epochs are disjoint."""
        if self.epochs and not self.guarantee.private:
            return Cost(gaussian=inf)
        return Cost.maximum([e.report.total for e in self.epochs if e.report] or [Cost()])

    def _lines(self):
        for index, epoch in enumerate(self.epochs):
            rounds = f"{epoch.rounds[0]}-{epoch.rounds[1] - 1}"
            if epoch.report is None:
                yield (str(index), rounds, "inf", "none")
            else:
                mu = (2.0 * epoch.report.total.amount("zcdp")) ** 0.5
                yield (str(index), rounds, f"{mu:.4g}", str(epoch.report.guarantee))

    def _parts(self):
        return [f"{self.name}: {self.guarantee}", Table(HEADERS, [*self._lines()], len(HEADERS))]


def report_of(name, oracle, epochs, currency=None):
    """Report of a policy that gives each epoch to a clone of this oracle, and gave these.

    An oracle is private only if it says so itself: what is wrapped in a pipeline is not looked at.
    The guarantee is the weakest of what was fitted and of what will be; a currency in which its
    fits are known to be paid tells more of the latter.
    """
    return EpochsReport(name, trust_of(oracle).guarantee("user", currency), list(epochs))


def charged_report(oracle):
    """Report of a fit that was charged, and refused its rows; None if it is not private."""
    trust, name = trust_of(oracle), type(oracle).__name__
    if trust.exact:
        return None
    secure, charged = getattr(oracle, "random_state", 0) is None, Cost.from_budget(trust.budget)
    return PrivacyReport(name, trust.model, trust.budget, secure, charged=charged)


def trust_of(oracle):
    """Who is trusted by an oracle; one that does not say so is not private."""
    epsilon, delta = getattr(oracle, "epsilon", inf), getattr(oracle, "delta", 0.0)
    model = getattr(oracle, "privacy", "none")
    return Trust.of(model if model in MODELS else "none", Budget(epsilon, delta))


MAX_SEED = np.iinfo(np.int32).max
FOREVER = 2**62  # rounds


@parameters
class BasePolicy(AddsWhole, LearnsFromPersons, Accounted, BaseEstimator, ABC):
    """Base class of the bandit policies; not for direct use.

    A policy has keyword-only parameters, some of which this class knows by name if a policy has
    them: ``shared`` and ``n_actions`` (see `act`), ``bounds_y`` (rewards are clipped to it) and
    ``random_state`` (of everything random that is not privacy noise).

    A subclass implements `_update`, and `_chances`, or `_choose` and `_knows`. It may implement
    `_start`, called once, before the first of them, when ``n_actions_`` and ``n_features_in_`` are
    known. Arguments of the hooks have been checked; contexts are phi(x, a) of shape (n_rounds,
    n_actions, n_phi).

    Threads may share a policy: `act` and `update` take turns.

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

    _late = False  # whether rounds are learned from when their rewards come
    _looks = True  # whether anything depends on contexts and rewards

    @overload
    def act(self, contexts: Any, available: Any = None, users: Any = None) -> np.ndarray: ...

    @overload
    def act(
        self,
        contexts: Any,
        available: Any = None,
        users: Any = None,
        *,
        return_propensities: bool,
    ) -> Any: ...

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
        with self._turn:
            actions, propensities = self._acted(contexts, available, users)
            self.propensities_ = propensities
        return (actions, propensities) if return_propensities else actions

    def _acted(self, contexts, available, users=None):
        if users is not None:
            checked_users(users, self._context_shape(contexts)[0], self._max_visits)
        phi, available = self._opened(contexts, available)
        if not len(phi):
            return np.empty(0, dtype=np.intp), np.empty(0)
        with np.errstate(all="ignore"):  # a warning would tell of a context
            return self._act(phi, available, self._rng)

    def _opened(self, contexts, available):
        """Features of rounds and what may be played in them; the first rounds start the policy."""
        shape = self._context_shape(contexts)
        n_actions = shape[1] if self._shared else self.n_actions
        available = checked_available(available, shape[0], n_actions)
        if not hasattr(self, "n_rounds_"):
            self._begin(n_actions, shape[-1])
        contexts = floats(contexts)
        if self._looks:
            finite(contexts)
        self.n_actions_ = n_actions
        return self._phi(contexts), available

    def probabilities(self, contexts: Any, available: Any = None) -> np.ndarray:
        """Probability with which `act` would play each action; nothing is drawn.

        Parameters
        ----------
        contexts : array-like
            The same as for `act`.
        available : array-like of bool of shape (n_rounds, n_actions) or (n_actions,), default=None

        Returns
        -------
        probabilities : ndarray of shape (n_rounds, n_actions)
            Given the context and what is available.

        Raises
        ------
        ValueError
            As `act`.
        """
        with self._turn:
            phi, available = self._opened(contexts, available)
            return self._played(phi, available).copy()

    def _played(self, phi, available):
        """Probabilities of shape (n_rounds, n_actions)."""
        shape = len(phi), self.n_actions_
        if not len(phi):
            return np.empty(shape)
        with np.errstate(all="ignore"):
            return np.broadcast_to(self._chances(phi, available), shape)

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
        with self._turn:
            phi, available = self._opened(contexts, available)
            n, rounds = len(phi), np.arange(len(phi))
            left = np.array(
                np.ones((n, self.n_actions_), dtype=bool) if available is None else available
            )
            if k != int(k) or k < 1 or (n and k > left.sum(axis=1).min()):
                raise ValueError(f"k={k} must be an int from 1 to the number of available actions.")
            ranking, propensities = np.empty((n, k), dtype=np.intp), np.empty((n, k))
            for place in range(int(k) if n else 0):
                chances = self._played(phi, left)
                ranking[:, place], propensities[:, place] = by_chance(chances, n, self._rng)
                left[rounds, ranking[:, place]] = False
        return ranking, propensities

    @property
    def _knows(self):
        """Whether anything was learned."""
        return False

    @property
    def _turn(self):
        """Lock of this object; it is made once, whoever comes first."""
        return self.__dict__.setdefault("_lock", Lock())

    @forgets_rows
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
        with self._turn:
            if not hasattr(self, "n_rounds_"):  # a warm start from logs
                if contexts is None:
                    raise ValueError("before the first act, update needs contexts and not rows.")
                shape = self._context_shape(contexts)
                self._begin(shape[1] if self._shared else self.n_actions, shape[-1])
            self._updated(contexts, actions, rewards, rows, users)
        return self

    def _updated(self, contexts, actions, rewards, rows, users):
        if rewards is None or (contexts is None) == (rows is None):
            raise ValueError("update needs rewards, and either contexts or rows.")
        if rows is None and self._shared:
            shape = self._context_shape(contexts)
            n_actions = shape[1]
        else:
            shape = self._row_shape(contexts if rows is None else rows)
            n_actions = None if self._shared else self.n_actions
        check_shape(rewards, "rewards", shape[:1])
        if n_actions is not None:
            check_shape(actions, "actions", shape[:1])
        users = checked_users(users, shape[0], self._max_visits)
        if not shape[0]:
            return
        self._pay(shape[0])  # before any value is looked at
        rewards = floats(rewards)
        if n_actions is not None:
            actions, known = known_actions(actions, n_actions)
            rewards = np.where(known, rewards, np.nan)
        rows = floats(contexts if rows is None else rows)
        if rows.ndim == 3:
            rows = rows[np.arange(len(actions)), actions]
        rewards = self._bounded(rewards)
        self._check_values(rows, rewards)
        rows = rows if self._shared else self._blocks(rows, actions)
        if users is None:
            self._update(rows, rewards)
        else:
            self._update_persons(rows, rewards, users)

    @property
    def rounds_until_update_(self) -> int:
        """Public number of further rounds in which the policy will not change; at least 1."""
        return 1

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What a user is promised, from what was charged: :class:`skpriv.privacy.Guarantee`."""

    def user_guarantee(self, max_visits: int) -> Guarantee:
        """What users are promised who may be in up to ``max_visits`` rounds.

        Parameters
        ----------
        max_visits : int
            Public. Whoever comes more often must be played without being learned from: leave those
            rounds out of `update` by a rule that depends on the numbers of visits alone, and take
            these for public too.

        Returns
        -------
        Guarantee
            The same as `guarantee`, with the privacy losses of all visits together.
        """
        return self.guarantee.visited(max_visits)

    def reset(self) -> Self:
        """Forget everything, as `sklearn.base.clone` does, but in place.

        Privacy that was spent stays spent: what comes after the reset is charged in addition.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name not in self.get_params(deep=False)]:
            # The turns of threads, and accountants of another process, stay.
            if name != "_lock" and not name.startswith("_skpriv"):
                delattr(self, name)
        return self

    def save(self, path: Any, *, raw_path: Any = None) -> None:
        """Write the policy, as it is now, to a file from which :func:`skpriv.bandits.load` reads.

        Parameters
        ----------
        path : str or path-like
        raw_path : str or path-like, default=None
            Another file for what an open epoch must keep: the records, or their exact sums, that
            no released answer covers yet. That is **raw data**, to be kept as the data is kept.
            None writes it into the one file, which then is raw data too.

        Raises
        ------
        ValueError
            If the policy has not acted yet: there is nothing to keep.
        """
        if not hasattr(self, "n_rounds_"):
            raise ValueError(f"this {type(self).__name__} has not acted: there is nothing to keep.")
        save(self, path, raw_path, (Raw, *self._raw_kinds))

    _raw_kinds: ClassVar[tuple] = ()  # classes of a subclass's objects that hold raw data

    def _act(self, contexts, available, rng):
        """Return actions (dtype intp) and their propensities, both of shape (n_rounds,)."""
        return by_chance(self._chances(contexts, available), len(contexts), rng)

    def _chances(self, contexts, available):
        """Return probabilities of all actions, of shape (n_rounds or 1, n_actions).

        ``available`` is None or a mask (n_rounds, n_actions), with an action in every round. With 1
        for n_rounds they are those of all rounds. Before anything is learned all are equally
        likely, and then `_choose` has the same arguments.
        """
        choose = self._choose if self._knows else uniform
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
        if self._looks:
            finite(*arrays)

    @abstractmethod
    def _update(self, rows, rewards):
        """Take in phi of the chosen actions of at least one round, and add to ``n_rounds_``."""

    def _start(self, n_phi):
        """Make the state of a subclass; ``self._rng`` may be drawn from."""

    def _begin(self, n_actions, n_features):
        """Check the parameters and make the state; nothing has changed if that raises."""
        self._validate_params()
        bounds = getattr(self, "bounds_y", None)
        if bounds is not None:
            check_bounds(bounds)
        seed, before = getattr(self, "random_state", None), set(vars(self))
        is_stream = isinstance(seed, np.random.RandomState)
        try:
            # Never NumPy's global stream, which could not be pickled along with the policy.
            self._rng: Any = seed if is_stream else np.random.RandomState(seed)
            self.n_actions_, self.n_features_in_ = n_actions, n_features
            if not hasattr(self, "_numbering"):
                self._numbering = Numbering()
            most = getattr(self, "max_visits", None)
            visits = None if most is None else Visits(int(most), self._numbering.part("people"))
            self._visits: Any = visits
            self._start(n_features * (1 if self._shared else n_actions))
            self.n_rounds_ = 0
        except BaseException:
            for name in set(vars(self)) - before:
                delattr(self, name)
            raise

    @property
    def _shared(self):
        return getattr(self, "shared", True)

    def _phi(self, contexts):
        """Features phi(x, a), of shape (n_rounds, n_actions, n_phi).

        With ``shared=False``, phi(x, a) = e_a (x) x: one regression with a block an action, so
        that the privacy noise is calibrated to a change of the action too.
        """
        if self._shared:
            return contexts
        n, d = contexts.shape
        blocks = np.zeros((n, self.n_actions_, self.n_actions_, d))
        index = np.arange(self.n_actions_)
        blocks[:, index, index] = contexts[:, None, :]
        return blocks.reshape(n, self.n_actions_, self.n_actions_ * d)

    def _blocks(self, rows, actions):
        """Rows phi(x, a) of the chosen actions with ``shared=False``: x in the block of a."""
        n, d = rows.shape
        blocks = np.zeros((n, self.n_actions, d))
        blocks[np.arange(n), actions] = rows
        return blocks.reshape(n, -1)

    def _context_shape(self, contexts):
        """Checked shape of contexts, which is public; no value is looked at."""
        n_actions = getattr(self, "n_actions", None)
        if self._shared:
            return self._known_features(context_shape(contexts, n_actions))
        if n_actions is None:
            raise ValueError("shared=False needs the parameter n_actions.")
        return self._row_shape(contexts)

    def _row_shape(self, rows):
        return self._known_features(row_shape(rows))

    def _known_features(self, shape):
        if hasattr(self, "n_rounds_") and shape[-1] != self.n_features_in_:
            raise ValueError(
                f"contexts of shape {shape} must have shape (..., {self.n_features_in_}): as "
                "many features as in the first call of act."
            )
        return shape


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

    _looks = False

    @property
    def rounds_until_update_(self) -> int:
        """Public number of further rounds in which the policy will not change: all."""
        return FOREVER

    @property
    def guarantee(self) -> Guarantee:
        """Perfect privacy: actions depend on no context and no reward."""
        return Guarantee.perfect("user")

    def _phi(self, contexts):
        if self._shared:
            return contexts
        return np.broadcast_to(0.0, (len(contexts), self.n_actions_, 1))  # nothing is looked at

    def _blocks(self, rows, actions):
        return rows

    def _update(self, rows, rewards):
        self.n_rounds_ += len(rewards)


def checked_available(available, n_rounds, n_actions):
    if available is None:
        return None
    try:
        available = np.asarray(available)
    except Exception:  # ragged, or of objects of their own kind
        available = np.empty(0)
    if available.dtype != bool or available.shape not in ((n_rounds, n_actions), (n_actions,)):
        raise ValueError(
            f"available must be a mask, an array of bool of shape ({n_rounds}, {n_actions}) or "
            f"({n_actions},)."
        )
    if available.all():
        return None
    if not available.any(axis=-1).all():
        raise ValueError("a round has no available action.")
    return np.broadcast_to(available, (n_rounds, n_actions))


def context_shape(contexts, n_actions):
    """Shape of contexts of all actions, checked; ``n_actions`` is None if it may vary."""
    shape, wanted = public_shape(contexts), "(n_rounds, n_actions, n_features)"
    known = len(shape) == 3
    if known and n_actions is not None:
        known, wanted = shape[1] == n_actions, wanted + f" with {n_actions} actions"
    if not known or 0 in shape[1:]:
        raise ValueError(
            f"contexts of shape {shape} must have shape {wanted}; with shared=False it is "
            "(n_rounds, n_features)."
        )
    return shape


def row_shape(rows):
    """Shape of one row a round, checked."""
    shape = public_shape(rows)
    if len(shape) != 2 or not shape[1]:
        raise ValueError(
            f"rows of shape {shape} must have shape (n_rounds, n_features): the features of chosen "
            "actions, or with shared=False those of rounds. Features of each action in contexts "
            "need shared=True."
        )
    return shape


def known_actions(actions, n_actions):
    """Actions, 0 in place of those that are unknown, and which are known: private, like rewards."""
    actions = floats(actions)
    known = (actions >= 0) & (actions < n_actions) & (actions == np.floor(actions))
    return np.where(known, actions, 0).astype(np.intp), known


def check_bounds(bounds):
    bounds = np.asarray(bounds, dtype=float)
    if bounds.shape != (2,) or not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
        raise ValueError(
            f"bounds_y={bounds!r} must be two finite numbers (low, high) with low < high: the "
            "public range of the rewards, not one read off the data."
        )
