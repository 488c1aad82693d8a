"""A bandit whose arms are bandits: model selection among private policies."""

from collections.abc import Iterator
import uuid
from contextlib import contextmanager, suppress
from dataclasses import field
from math import inf, pi, sqrt
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import clone

from .._compat import forgets_rows
from .._estimation._public_maps import TargetMap
from .._estimation._targets import LocationQuery
from .._parameters import ArrayLike, Count, Delta, Epsilon, Level, attribute, parameters
from .._stored import stored_in_policies
from ..exceptions import BudgetExceeded
from ..privacy import Cost, Guarantee, Trust, open_stream, parallel_part, prepaid
from ._policy._base import NO_LIMIT, BasePolicy
from ._ucb._sums import GrowingTimes

if TYPE_CHECKING:
    from .._contracts import Array

# code -> paper (Cutkosky, Das and Purohit 2020, as in "Improved rate for locally differentially
# private linear bandits", Algorithm 2):
#   _counts -> T(i, t),  _totals / _counts -> mu^_i,  regret_bounds -> (C_i, alpha_i),
#   _regrets -> sum of mu^_{tau-1} - y~_tau


@stored_in_policies
@parameters
class BanditCombiner(BasePolicy):
    """Play the policy of the largest upper confidence bound on its mean reward.

    Each policy claims a bound C n^alpha on its regret after n rounds of its own. A policy whose
    rewards contradict its claim is dropped. Every user is handed to one policy, and in addition
    reports the reward with noise of its own. A reward belongs to the policy that acted, however
    late it comes: `update` takes rounds in the order in which `act` was asked, or as ``players``
    says.

    Parameters
    ----------
    policies : list of policies
        Cloned, then played; their own budgets are for their own reports.
    epsilon : float in (0, inf], default=1.0
        Privacy parameter; ``inf`` is the same as no privacy. It is that of the additional report of
        the reward.
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of users.
    regret_bounds : list of (C, alpha), default=None
        Claims, in units where rewards span an interval of length 2. None: sqrt(n_features) for C
        and 1/2 for alpha, for all.
    targets : list of float, default=None
        R_i, which makes good bounds cost less; None: the claim at the horizon.
    horizon : int, default=10_000
        Public number of rounds.
    bounds_y : (float, float), default=(-1, 1)
        Public range (low, high) to which rewards are clipped.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of all deviation bounds together.
    update_every : int or "auto", default="auto"
        Public number of rounds between two choices; "auto" is a 200th of the horizon.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Attributes
    ----------
    policies_ : list of policies
    active_ : ndarray of bool of shape (n_policies,)
        Which have not been dropped.
    choice_ : int
        The policy that plays next.
    n_rounds_ : int
    n_actions_ : int
    n_features_in_ : int
    players_ : ndarray of int of shape (n_rounds,)
        Which policy chose each action of the last `act`.
    propensities_ : ndarray of shape (n_rounds,)
        Probability of each action of the last `act`, by the policy that played.
    privacy_report_ : list of PrivacyReport
        Reports of the policies that played, as far as they have one.

    Notes
    -----
    **Privacy guarantee**: the choice of a policy is post-processing of noisy rewards of earlier
    users. A user pays for the reward's report and for that of one policy: `guarantee` composes the
    two for the most expensive policy, exactly where both are Gaussian. Policies share no users.

    There is no ``max_visits``: the m rounds of a person could be with any of the policies, and no
    smaller price is known for that than m rounds with every one of them. ``user_guarantee(m)`` says
    what those are promised who are in m rounds.

    The mean of n noisy rewards is within sqrt(2 (1 + s^2) log(pi^2 n^2 M / (3 f)) / n) of its
    expectation, for all n and M policies at once with probability 1 - f. A reward in an interval of
    length 2 plus noise of standard deviation s is (1 + s^2)-sub-Gaussian. The regret claims are not
    checked by anything but the rewards.

    An upper bound on a mean reward is at most 1, the largest reward. The published algorithm bounds
    by 1 what is added to the mean of the noisy rewards, which may be off by more: a policy with bad
    luck in its first rounds is then never played again.

    References
    ----------
    A. Cutkosky, A. Das and M. Purohit (2020). Upper confidence bounds for combining stochastic
    bandits. arXiv:2012.13115.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import BanditCombiner, OnlineLinUCB, RandomPolicy
    >>> policies = [OnlineLinUCB(epsilon=2.0, random_state=0), RandomPolicy(random_state=0)]
    >>> combiner = BanditCombiner(policies=policies, epsilon=1.0, horizon=1_000, random_state=0)
    >>> contexts = np.random.RandomState(0).normal(size=(5, 4, 3)) / 3.0
    >>> actions = combiner.act(contexts)
    >>> combiner.update(contexts, actions, np.zeros(5)).choice_
    1
    """

    policies: list[Any] | tuple[Any, ...] = field(kw_only=False)
    epsilon: Epsilon = 1.0
    delta: Delta = 1e-6
    regret_bounds: ArrayLike | None = None
    targets: ArrayLike | None = None
    horizon: Count = 10_000
    bounds_y: ArrayLike = (-1.0, 1.0)
    confidence_level: Level = 0.95
    update_every: Count | Literal["auto"] = "auto"

    # Noisy rewards of the users of each policy: no user is in two
    _streams: Any = attribute()
    _starts_as_it_acts = True

    @property
    def rounds_until_update_(self) -> Any:
        """Public number of further rounds in which the policy will not change."""
        if not self._has_begun:
            return 1
        left = self._period - self.n_rounds_ % self._period
        return min(left, self.policies_[self.choice_].rounds_until_update_)

    @property
    def guarantee(self) -> Guarantee:
        """The promise to a user: the report of the reward, and the most expensive policy."""
        trust = Trust.of("local", self._stated_budget)
        own = trust.guarantee("user", currency="gdp")
        users = self.policies
        if self._streams:
            streams = self._streams.values()
            own = Guarantee.weakest(stream.guarantee.protecting("user") for stream in streams)
            users = self.policies_
        return Guarantee.weakest([own + policy.guarantee for policy in users])

    @property
    def privacy_report_(self) -> Any:
        """Reports of the policies that have one."""
        found = (getattr(policy, "privacy_report_", None) for policy in self.policies_)
        return [report for report in found if report is not None]

    @property
    def _period(self) -> int:
        return GrowingTimes.even(self.update_every, self.horizon).every

    def _start(self, n_phi: int) -> None:
        if not self.policies:
            raise ValueError("policies must have at least one policy.")
        for policy in self.policies:
            if not isinstance(policy, BasePolicy):
                raise TypeError(f"policies must hold policies of skpriv.bandits, not {policy!r}.")
        if any(policy.max_visits is not None for policy in self.policies):
            raise ValueError(NO_PERSONS)
        count = len(self.policies)
        self._bounds = self._checked("regret_bounds", [(sqrt(n_phi), 0.5)] * count, (count, 2))
        at_horizon = self._bounds[:, 0] * self.horizon ** self._bounds[:, 1]
        self._targets = self._checked("targets", at_horizon, (count,))
        self.policies_ = [clone(policy) for policy in self.policies]
        for index, policy in enumerate(self.policies_):
            policy._numbering = self._numbering.part(index)
        self._counts, self._totals, self._regrets = (np.zeros(count) for _ in range(3))
        self.active_ = np.ones(count, bool)
        self.choice_ = 0
        self._partition = uuid.uuid4().hex
        self._waiting: list[int] = []  # policy of each round without a reward so far, in order
        self._block = np.zeros(count, np.intp)  # rounds since the last choice
        self._read = np.zeros(count)  # noisy totals at the last choice
        self._noise = self._noise_state()
        self._streams = {}
        for policy in self.policies:  # It refuses what is wrong in public before a charge.
            with prepaid(Cost()), suppress(BudgetExceeded):
                clone(policy)._begin(self.n_actions_, self.n_features_in_)
        self._open_stream(0)
        self._choose_policy()

    def _open_stream(self, player: int) -> None:
        """Open, hence charge, the sum of the noisy rewards of a policy's users."""
        if player in self._streams:
            return
        target = TargetMap(tuple(map(float, self.bounds_y)), fit_intercept=True)
        query = LocationQuery(target, name="reward")  # rewards brought to [-1, 1]
        budget = self._stated_budget
        name = type(self).__name__
        with self._handed_over(player):
            stream = open_stream("local", query, budget, NO_LIMIT, self._noise, name)
            self._streams[player] = stream.number(self._numbering.part(f"rewards {player}"))

    def _checked(self, name: str, default: Any, shape: tuple[int, ...]) -> np.ndarray:
        value = getattr(self, name)
        array = np.asarray(default if value is None else value, float)
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {shape}: one entry a policy.")
        return array

    @forgets_rows
    def update(
        self,
        contexts: Any = None,
        actions: Any = None,
        rewards: Any = None,
        *,
        rows: Any = None,
        users: Any = None,
        players: Any = None,
    ) -> Self:
        """Learn from the rewards of some rounds: as many at once as one likes.

        Parameters
        ----------
        contexts, actions, rewards, rows : array-like
            The same as for the other policies.
        users : None
            People are not counted, see Notes.
        players : array-like of int of shape (n_rounds,), default=None
            Which policy chose each action, as ``players_`` told after `act`: public. None takes the
            rounds that were acted on since players were given and did not come back yet, in their
            order, and beyond them those of the policy that is chosen now.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As for the other policies, or if a player is unknown, or users are given.
        PrivacyError
            If an earlier update was interrupted while it added rounds, as for the other policies.
        """
        with self._turn_lock:  # before it, another thread's update would have these players
            self._given_players = players
            try:
                return super().update(contexts, actions, rewards, rows=rows, users=users)
            finally:
                del self._given_players

    def _checked_users(self, users: list[str] | None, n_rounds: int) -> None:
        if users is not None:
            raise ValueError(NO_PERSONS)

    def _begin_policy(self, player: int) -> None:
        """Begin a policy unless it has begun: charged once, in whatever copy it begins again."""
        policy = self.policies_[player]
        if not policy._has_begun:
            with self._handed_over(player), policy._numbering.once("start"):
                policy._begin(self.n_actions_, self.n_features_in_)

    def _act(self, contexts: np.ndarray, available: Any, rng: np.random.RandomState) -> Any:
        self._begin_policy(self.choice_)
        with self._handed_over(self.choice_):
            acted = self.policies_[self.choice_].act(contexts, available, return_propensities=True)
        self.players_ = np.full(len(contexts), self.choice_)
        self._waiting += [self.choice_] * len(contexts)
        return acted

    def _chances(self, contexts: np.ndarray, available: Any) -> "Array":
        self._begin_policy(self.choice_)
        with self._handed_over(self.choice_):
            return self.policies_[self.choice_].probabilities(contexts, available)

    def _players(self, n: int) -> np.ndarray:
        """Policy that chose the action, of each of these rounds."""
        if self._given_players is None:
            return np.array((self._waiting[:n] + [self.choice_] * n)[:n], np.intp)
        players = np.asarray(self._given_players)
        count = len(self.policies_)
        numbered = players.shape == (n,) and players.dtype.kind in "iu"
        if not numbered or ((players < 0) | (players >= count)).any():
            raise ValueError(f"players must be indices of the {count} policies, of shape ({n},).")
        return players

    def _pay(self, n_rounds: int) -> None:
        """Open, hence charge, what the rounds need, or refuse them while nothing has changed."""
        self._check_sums(n_rounds)
        for player in np.unique(self._players(n_rounds)).tolist():
            self._open_stream(player)
            self._begin_policy(player)

    def _update(self, rows: np.ndarray, rewards: np.ndarray) -> None:
        start = 0
        failure = None
        players = self._players(len(rewards))
        with self._whole_update():
            while start < len(rewards) and failure is None:
                stop = min(len(rewards), start + self._period - self.n_rounds_ % self._period)
                # A part has rounds of one policy alone, and none after the next choice.
                change = np.flatnonzero(players[start:stop] != players[start])
                stop = start + int(change[0]) if len(change) else stop
                part = slice(start, stop)
                taken, failure = self._credit(int(players[start]), rows[part], rewards[part])
                self.n_rounds_ += taken
                start += taken
                if taken and self.n_rounds_ % self._period == 0:
                    self._close_block()
            # With players given, the caller keeps the order, and nothing is waited for.
            del self._waiting[: start if self._given_players is None else None]
        if failure is not None:
            raise failure

    def _credit(
        self, player: int, rows: np.ndarray, rewards: np.ndarray
    ) -> tuple[int, BaseException | None]:
        """Give rounds to the policy that acted in them; return how many it took, and what failed.

        A policy that fails says by its number of rounds which ones it has taken, unless it was
        interrupted while it added them: then this update is the last one, as it is of that policy.
        """
        policy = self.policies_[player]
        failure = None
        before = policy.n_rounds_
        with self._handed_over(player):
            try:
                policy.update(rows=rows, rewards=rewards)
            except BaseException as error:
                if policy._midway:
                    raise
                failure = error
        taken = policy.n_rounds_ - before
        if taken:
            self._streams[player].push(rows[:taken], rewards[:taken])
        self._block[player] += taken
        return taken, failure

    @contextmanager
    def _handed_over(self, player: int) -> Iterator[None]:
        """Charge for the users of one policy: no user is served by two."""
        with self._accounting(), parallel_part(player, partition=self._partition):
            yield

    def _close_block(self) -> None:
        """Count noisy rewards of a block, drop policies that break their claims, choose anew."""
        for i in np.flatnonzero(self._block):
            n = self._block[i]
            before = self._read[i]
            self._read[i] = float(self._streams[i].read().value[0])
            reward = self._read[i] - before
            if self._counts[i]:
                self._regrets[i] += n * self._totals[i] / self._counts[i] - reward
            self._counts[i] += n
            self._totals[i] += reward
            if self._regrets[i] > self._claims()[i] and self.active_.sum() > 1:
                self.active_[i] = False
        self._block[:] = 0
        self._choose_policy()

    def _claims(self) -> "Array":
        """Regret bounds plus deviations of the sums of the noisy rewards, after T(i, t) rounds."""
        n = np.maximum(self._counts, 1.0)
        variance = 1.0 + self._streams[0].noise.scale ** 2
        failure = 1.0 - self.confidence_level
        union = np.log(pi**2 * n**2 * len(n) / (3.0 * failure))
        return self._bounds[:, 0] * n ** self._bounds[:, 1] + np.sqrt(2.0 * variance * n * union)

    def _choose_policy(self) -> None:
        """Policy of the largest U(i, t - 1); one that was never played comes first.

        U is an upper bound on a mean reward, which is at most 1. The published one adds at most 1
        to the mean of the noisy rewards, which may be below the true mean by more than that.
        """
        upper = (self._totals + self._claims()) / np.maximum(self._counts, 1.0)
        upper = np.minimum(1.0, upper) - self._targets / self.horizon
        upper[self._counts == 0.0] = inf
        self.choice_ = int(np.where(self.active_, upper, -inf).argmax())


NO_PERSONS = (
    "BanditCombiner protects single rounds and counts nobody: the m rounds of a person could be "
    "with any of its policies, and no smaller price is known for that than m rounds with every one "
    "of them. Leave max_visits out of its policies, and users out of act and update. "
    "user_guarantee(m) says what those are promised who are in m rounds."
)
