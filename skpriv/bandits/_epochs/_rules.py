"""The rules of choice: SquareCB, epsilon-greedy, and elimination of actions on spanners."""

from dataclasses import field
from math import pi
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from scipy.special import ndtri

from ..._compat import HasMethods
from ..._estimation._oracle import PoolsFits, interval_claims
from ..._linalg import ROUNDED, TINY
from ..._parameters import Level, NotNegative, attribute, parameters
from ..._stored import stored_in_policies
from .._policy._draws import HALF_NORMAL, Region, distinct, flat, inverse_gap, shares
from ._oracles import coef_posterior, pools, reward_range
from ._policy import OraclePolicy, comparable

if TYPE_CHECKING:
    from ..._contracts import Array


def spanner(vectors: np.ndarray, mask: np.ndarray, approximation: float = 2.0) -> np.ndarray:
    """Mark a few vectors of each round whose combinations with small coefficients are the rest.

    Parameters
    ----------
    vectors : ndarray of shape (n_rounds, n_vectors, n_features)
    mask : ndarray of bool, shape (n_rounds, n_vectors)
        Vectors that count, in each round.
    approximation : float, default=2.0
        C > 1.

    Returns
    -------
    ndarray of bool, shape (n_rounds, n_vectors)
        A mask of at most ``n_features`` a round, linearly independent. Every vector of the mask is
        a combination of them with coefficients in [-C, C] (up to 1e-9 of the longest one, for
        coordinates of directions in which the set is that thin).

    Notes
    -----
    Awerbuch and Kleinberg (2008), Section 2.3: start from the unit vectors and exchange one for a
    vector of the set, first to fill the basis (here with full pivoting), then as long as that
    multiplies the determinant by more than C. The ratio of determinants is the coordinate of the
    new vector in the present basis, so coordinates alone are kept, and updated as in Gauss-Jordan
    elimination. Unit vectors that are left at the end have no part in any vector of the set.
    """
    n, n_vectors, d = vectors.shape
    chosen = np.zeros((n, n_vectors), bool)
    counted = np.where(mask[:, :, None], vectors, 0.0)
    longest = np.sqrt(np.einsum("nkd,nkd->nk", counted, counted).max(axis=1))
    scale = np.where(longest > 0.0, longest, 1.0)
    # coordinates: (n, d, k), of vector k in the basis of its round
    coordinates = np.swapaxes(counted / scale[:, None, None], 1, 2).copy()
    basis = np.full((n, d), -1)
    # The basis is filled, and then improved. Swaps multiply the determinant by more than C, so that
    # these are more than are needed.
    for fills, threshold, times in (True, ROUNDED, d), (False, approximation, 200 * d):
        rounds = np.arange(n)  # rounds whose basis is not final
        for _ in range(times):
            slots = (basis[rounds] < 0) == fills
            places = np.abs(coordinates[rounds]) * slots[:, :, None]
            rounds, slot, vector = _largest(places, rounds, threshold)
            if not len(rounds):
                break
            _exchange(coordinates, basis, rounds, slot, vector)
    index, slot = np.nonzero(basis >= 0)
    chosen[index, basis[index, slot]] = True
    return chosen


def _largest(
    values: np.ndarray, rounds: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rounds whose largest coordinate exceeds the threshold, and where it is."""
    shape = values.shape[1:]
    flat = values.reshape(len(values), shape[0] * shape[1])
    place = np.argmax(flat, axis=1)
    above = flat.max(axis=1) > threshold
    slot, vector = np.unravel_index(place[above], shape)
    return rounds[above], slot, vector


def _exchange(
    coordinates: np.ndarray,
    basis: np.ndarray,
    rounds: np.ndarray,
    slot: np.ndarray,
    vector: np.ndarray,
) -> None:
    """Put a vector into a slot of the basis, and change the coordinates accordingly."""
    index = np.arange(len(rounds))
    old = coordinates[rounds]  # (m, d, k)
    column = old[index, :, vector]  # (m, d)
    row = old[index, slot] / column[index, slot][:, None]  # (m, k)
    column[index, slot] -= 1.0
    coordinates[rounds] = old - column[:, :, None] * row[:, None, :]
    basis[rounds, slot] = vector


# A third of the weight of LinSquareCB, which learns more often. Two thirds have a tenth more regret
# on real tables, and less on linear environments (docs/evidence/bandits.md).
ERROR_WEIGHT = 15.0

# Latest fits that elimination asks, which bounds its file and the time of a choice. Epochs that
# double are fewer.
MOST_FITS = 64

# code -> paper (Foster and Rakhlin 2020; Simchi-Levi and Xu 2022, FALCON):
#   SquareCB._weight -> gamma_m
# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025, Algorithms 3 and 4):
#   alive -> A^(j-1)(x),  spanner(alive) -> A_sp^(j)(x),  failure -> delta_j / K


@stored_in_policies
@parameters
class EpochGreedy(OraclePolicy):
    """Play the action of the largest prediction, but for what the predictions cannot tell.

    The first epoch is played at random. After that predictions get a random bonus of about their
    error, if the oracle knows it. Without a bonus contexts that vary enough must explore (Bastani,
    Bayati and Khosravi 2021), and do so with dense random features; with fixed arms, a greedy
    policy may never find the best one.

    Parameters
    ----------
    exploration : float >= 0, default=1.0
        Standard deviations of the posterior of each prediction that its bonus has: times the
        absolute value of a normal variable of standard deviation 0.75, one a round. 0 is greedy;
        and oracles without a method ``posterior`` are played greedily.

    Attributes
    ----------
    oracle_ : regressor
        Fitted to the last epoch that closed, or pooled from all of them.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`.
    changes_ : list of int
        Numbers of rounds at which the released fits said that the world had changed.
    privacy_report_ : EpochsReport
        What the closed epochs cost.

    See Also
    --------
    FLIPHAT : With the sparse private regressor.

    Notes
    -----
    **Privacy guarantee**: that of one fit of the oracle, as joint differential privacy (local, if
    the oracle is local): every user's row enters exactly one fit, and the actions of other users
    are computed from the answers. The number of rounds and the schedule are public.

    References
    ----------
    S. Chakraborty, S. Roy and D. Basu (2024). FLIPHAT: joint differential privacy for high
    dimensional sparse linear bandits. Sections 5 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import EpochGreedy, LinearEnvironment, simulate
    >>> from skpriv.linear_model import SSPRegressor
    >>> oracle = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, random_state=0)
    >>> env = LinearEnvironment(n_actions=4, n_features=3)
    >>> result = simulate([EpochGreedy(oracle=oracle)], env, horizon=4000, random_state=0)
    >>> result.privacy_reports[0][0].guarantee
    Guarantee(epsilon=1, delta=1e-06, model='central', unit='user')
    """

    exploration: NotNegative = 1.0

    def _learn(self, oracle: Any, n_fitted: int) -> None:
        self.oracle_ = oracle
        self._region = coef_posterior(oracle) if self.exploration and pools(oracle) else None

    @property
    def _bonuses(self) -> "Array":
        return self.exploration * HALF_NORMAL


@stored_in_policies
@parameters
class SquareCB(OraclePolicy):
    """SquareCB: play actions with probabilities in inverse proportion to their gap to the best.

    P(a) = 1 / (K + weight * gap_a) for all actions but the best, which has the rest. gap_a is the
    difference of the predictions. If the oracle knows their error, this is its unit, and each
    prediction gets a random bonus of about its own error, as in `EpochGreedy`, unless epochs are to
    forget: an action that is new is tried. Else the unit is half the range of the rewards, and any
    regressor will do as an oracle. The first epoch is played at random.

    Parameters
    ----------
    gap_weight : float or "auto", default="auto"
        How greedy to be. "auto" is 15 times the square root of K, with gaps in units of the root
        mean square error of the predictions, if the oracle knows it (it has a method
        ``prediction_error``, as `SSPRegressor`). Else it is the square root of K times the number
        of rounds that the oracle was fitted to.

    Attributes
    ----------
    oracle_ : regressor
        Fitted to the last epoch that closed.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`.
    changes_ : list of int
        Numbers of rounds at which the released fits said that the world had changed.
    privacy_report_ : EpochsReport
        What the closed epochs cost.

    Notes
    -----
    **Privacy guarantee**: that of one fit of the oracle, as joint differential privacy (local, if
    the oracle is local): every user's row enters exactly one fit, and the actions of other users
    are computed from the answers. The number of rounds and the schedule are public.

    References
    ----------
    D. Foster and A. Rakhlin (2020). Beyond UCB: optimal and efficient contextual bandits with
    regression oracles. ICML.

    D. Simchi-Levi and Y. Xu (2022). Bypassing the monster: a faster and simpler optimal algorithm
    for contextual bandits under realizability. Mathematics of Operations Research.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import SquareCB
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> policy = SquareCB(oracle=SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, random_state=0
    ... ), random_state=0)
    >>> contexts = rng.uniform(-0.5, 0.5, size=(64, 3, 2))
    >>> actions = policy.act(contexts)
    >>> rewards = contexts[np.arange(64), actions, 0]
    >>> policy.update(contexts, actions, rewards).epoch_
    1
    """

    gap_weight: NotNegative | Literal["auto"] = "auto"

    def _learn(self, oracle: Any, n_fitted: int) -> None:
        weight = self.gap_weight
        error = None
        if weight == "auto":
            weight = np.sqrt(self.n_actions_ * n_fitted)
            error = oracle.prediction_error() if pools(oracle) else None
        if error is None:
            self._region = None
            self._weight = 2.0 * weight / np.ptp(reward_range(oracle))
        else:
            self._region = coef_posterior(oracle)
            self._weight = ERROR_WEIGHT * np.sqrt(self.n_actions_) / max(error, TINY)
        self.oracle_ = oracle

    @property
    def _bonuses(self) -> "Array":
        """No bonus if epochs forget: each would explore anew what the last hardly played."""
        return np.zeros(1) if self.forget else HALF_NORMAL

    def _played(self, index: np.ndarray, available: np.ndarray | None = None) -> np.ndarray:
        return inverse_gap(index, self._weight, available)


@stored_in_policies
@parameters
class ActionElimination(OraclePolicy):
    """RegCB: play at random among the actions that no confidence interval has ruled out.

    An action survives in a round if in every epoch the upper end of the interval for its mean
    reward is at least the largest lower end of all actions. With the promised probability the best
    action survives in every round. If no action survives all epochs, the newer ones are believed.

    Parameters
    ----------
    oracle : regressor with ``confidence_interval``
        A clone of it is fitted to each epoch.
    exploration : {"uniform", "spanner"}, default="uniform"
        Play any of the surviving actions, or any of a 2-approximate barycentric spanner of them:
        at most ``n_features`` actions of which all others are combinations with coefficients in
        [-2, 2]. The second is for many actions.
    confidence_level : float in (0, 1), default=0.95
        Probability that in a given round, under any epoch, all intervals used hold.
    interval : {"auto", "posterior", "certified", "asymptotic"}, default="auto"
        "posterior": an action is dropped if it is below the best one by more than a normal quantile
        of standard deviations of their difference, by one posterior from the pooled sums of all
        epochs. This is not a proved interval, but one that misses no more often if the model holds.
        Sums that cannot be added (codebook reports of `ReweightedRegressor`) have a posterior of
        each epoch. Else the papers' form, with intervals of every epoch, by this ``method`` of the
        oracle. At most the 64 latest epochs are asked, and none from before a noticed change.
        "auto" is "posterior" for oracles that have one, and "certified" for others;
        `LogisticRegression` has "asymptotic" ones alone.

    Attributes
    ----------
    oracle_ : regressor
        Fitted to the last epoch that closed, or pooled from all of them.
    n_rounds_ : int
        Rounds that `update` has taken in.
    epoch_ : int
        Index of the present epoch.
    rounds_until_update_ : int
        Rounds until it closes.
    propensities_ : ndarray of shape (n_rounds,)
        Probabilities of the last `act`: one over the number of actions among which it drew.
    changes_ : list of int
        Numbers of rounds at which the released fits said that the world had changed.
    privacy_report_ : EpochsReport
        What the closed epochs cost.

    Notes
    -----
    **Privacy guarantee**: that of one fit of the oracle, as joint differential privacy (local, if
    the oracle is local): every user's row enters exactly one fit, and the actions of other users
    are computed from the answers. The number of rounds and the schedule are public.

    The intervals of epoch j, counted from 1, have level 1 - (1 - confidence_level) 6 / (pi^2 j^2 K)
    for each of K actions, so that levels need no horizon.

    References
    ----------
    F. Chen, J. Li, A. Rakhlin and D. Simchi-Levi (2025). Near-optimal private learning in linear
    contextual bandits: Algorithms 3 and 4.

    B. Awerbuch and R. Kleinberg (2008). Online linear optimization and adaptive routing. Journal of
    Computer and System Sciences.

    Examples
    --------
    >>> from skpriv.bandits import ActionElimination, LinearEnvironment, simulate
    >>> from skpriv.linear_model import SSPRegressor
    >>> oracle = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=2.0, random_state=0)
    >>> env = LinearEnvironment(n_actions=3, n_features=2, contexts="fixed")
    >>> policy = ActionElimination(oracle=oracle, exploration="spanner")
    >>> result = simulate([policy], env, horizon=5000, random_state=0)
    >>> result.regret_.shape
    (1, 1, 5000)
    """

    oracle: Annotated[Any, HasMethods(["fit", "confidence_interval"])] = field(kw_only=False)
    exploration: Literal["uniform", "spanner"] = "uniform"
    confidence_level: Level = 0.95
    interval: Literal["auto", "posterior", "certified", "asymptotic"] = "auto"

    # Numbers of epochs, and their fits or posteriors: what they ruled out does not come back
    _fits: Any = attribute(())

    def _start(self, n_phi: int) -> None:
        pooled = isinstance(self.oracle, PoolsFits)
        has = interval_claims(self.oracle) + ("posterior",) * pooled
        kind = self._kind(pooled)
        if kind not in has:  # found now, and not when the first epoch closes
            raise ValueError(
                f"interval={self.interval!r} needs {kind} intervals, and the oracle "
                f"{type(self.oracle).__name__} has {' and '.join(has) or 'none'}: pass the kind "
                "that it has as interval, or another oracle."
            )
        super()._start(n_phi)

    def _with_past(self, oracle: Any, n_fitted: int) -> Any:
        pooled = super()._with_past(oracle, n_fitted)
        posterior = self._kind(pools(oracle)) == "posterior"
        added = posterior and (pooled is not oracle or comparable(oracle))
        changed = self._windows is not None and self.n_rounds_ in self._windows.changes
        past = () if self.forget or added or changed else self._fits
        used = pooled if posterior else oracle  # the papers take intervals of one epoch
        fit = coef_posterior(used) if posterior else used
        self._fits = [*past, (len(self._epochs), fit)][-MOST_FITS:]
        return used

    def _kind(self, pooled: bool) -> str:
        """Kind of intervals that is asked of an oracle with sums, or of one without."""
        if self.interval != "auto":
            return self.interval
        return "posterior" if pooled else "certified"

    def _choose(self, contexts: np.ndarray, available: np.ndarray | None) -> np.ndarray:
        """Play all actions that no epoch has ruled out. The latest is asked first.

        An epoch that rules out all that newer ones left contradicts them, and is not heard. Levels
        add up: 6 / (pi j)^2 has the sum 1 over j = 1, 2, ...
        """
        contexts = distinct(contexts, available)
        shape = contexts.shape[:2]
        alive = mask = np.broadcast_to(True if available is None else available, shape)
        for epoch, fit in reversed(self._fits):
            if (alive.sum(axis=1) == 1).all():  # no fit leaves none of them
                break
            failure = (1.0 - self.confidence_level) * 6.0 / (pi * epoch) ** 2 / mask.shape[1]
            left = alive & self._possible(fit, failure, contexts, mask)
            alive = np.where(left.any(axis=1, keepdims=True), left, alive)
        return shares(alive)

    def _chances(self, contexts: np.ndarray, available: Any) -> np.ndarray:
        chances = super()._chances(contexts, available)
        if self.exploration == "uniform":
            return chances
        contexts = distinct(contexts, available)
        alive = np.broadcast_to(chances > 0.0, contexts.shape[:2])
        spanning = spanner(contexts, alive)
        # If all features are zero, nothing is spanned, and all of the actions are played.
        return shares(np.where(spanning.any(axis=1, keepdims=True), spanning, alive))

    def _possible(
        self, fit: Any, failure: float, contexts: np.ndarray, mask: np.ndarray
    ) -> "Array":
        """Actions that may be the best, by one epoch: others than of the mask rule out no action.

        By a posterior of differences to the best mean, or by intervals of all means.
        """
        if isinstance(fit, Region):
            means = np.where(mask, contexts @ fit.centre, -np.inf)
            best = contexts[np.arange(len(contexts)), means.argmax(axis=1)]
            rows, shape = flat(contexts - best[:, None])
            ahead, spread = fit.bounds(rows)
            return (ahead >= ndtri(failure) * spread).reshape(shape)
        rows, shape = flat(contexts)
        ends = fit.confidence_interval(
            rows, confidence_level=1.0 - failure, method=self._kind(False)
        )
        low, high = (np.where(mask, end.reshape(shape), -np.inf) for end in ends)
        return high >= low.max(axis=1, keepdims=True)
