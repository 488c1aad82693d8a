"""Private value of a policy, from logs of another one that acted at random."""

from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._linalg import unwarned
from .._estimation._levels import two_sided_quantile
from .._estimation._public_maps import column_bounds
from .._parameters import ArrayLike, Level, Positive, Probability, RandomState, validated
from .._stored import frozen
from ..privacy import ROUNDING, Budget, Query, open_stream
from ..records import check_shape, floats, public_shape
from ._policy._actions import known_actions

if TYPE_CHECKING:
    from .._contracts import Array

VALUE_WEIGHT = 1.5  # of t^2 beside t: free, see ValueQuery
# Of u^2 beside u in FilledQuery: 6% of noise for the variances of both ends, which count least.
SQUARE_WEIGHT = 0.5


class PrivateValue(NamedTuple):
    """Private estimate of a policy's mean reward, with an interval.

    Parameters
    ----------
    value : float
        Estimate of the mean reward, within ``bounds_y``.
    low : float
        Lower end of the confidence interval.
    high : float
        Upper end of the confidence interval, which counts the noise and the number of rounds.
    noise_share : float
        Part of the interval's variance that comes from privacy.
    missing : float
        Estimate of the part of the target policy's probability that clipped weights leave out, or
        that the data's policy never played; 0 where public numbers exclude it. Nothing is known of
        its rewards but their range, and the interval allows for all of it.
    """

    value: float
    low: float
    high: float
    noise_share: float
    missing: float = 0.0


@frozen
class WeightedRewards:
    """The common part of queries of rounds whose row is the weight: rewards are clipped to a
    range."""

    low: float
    high: float
    max_weight: float

    @property
    def middle(self) -> float:
        """Middle of the range of the rewards, whose ends may be so large that their sum is none."""
        return self.low / 2.0 + self.high / 2.0

    @property
    def bound(self) -> float:
        """Largest distance of a weighted reward from the middle, by which terms are divided."""
        return self.max_weight * (self.high / 2.0 - self.low / 2.0)

    def sides(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u = w (r - low) / c and v = w (high - r) / c, c = max_weight (high - low), of each round.

        They are clipped, whatever a row holds. Both factors are divided by their bounds first: a
        product may be larger than the largest number.
        """
        share = (np.nan_to_num(X[:, 0]) / self.max_weight).clip(0.0, 1.0)
        r = np.nan_to_num(y, nan=self.middle).clip(self.low, self.high)
        part = np.clip((r / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0), 0.0, 1.0)
        return share * part, share * (1.0 - part)


@frozen
class ValueQuery(WeightedRewards, Query):
    """Sum of (t, 1.5 t^2), t = w (r - middle) / bound in [-1, 1].

    A row is the weight w, clipped to [0, max_weight]; rewards are clipped to their range; NaN
    becomes 0 and the middle. Sensitivity 2: with d = |t - t'| and s = |t + t'|, d + s <= 2,
    replacing a round moves the squared norm by d^2 (1 + 2.25 s^2), at most 4: attained at
    t = -t' = 1, and below 3.6 where it has another local maximum (d of about 1.4).
    """

    name = "value"
    shape = (2,)
    sensitivity = 2.0 * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rounds."""
        t = np.subtract(*self.sides(X, y))
        return np.array([t.sum(), VALUE_WEIGHT * (t @ t)])


@frozen
class FilledQuery(WeightedRewards, Query):
    """Sum of (u - v, sqrt(3) (u + v), .5 u^2, .5 v^2): what bounds a value from both sides.

    Both sides of the weighted rewards are at least 0, and u + v = w / max_weight <= 1.

    Sensitivity sqrt(4 + 2 / 4). With a and b the changes of u and v, (a - b)^2 + 3 (a + b)^2 = 4
    (a^2 + a b + b^2). With one sign |a| + |b| <= 1, and it is at most 4 (|a| + |b|)^2 <= 4; of two
    signs at most 4 max(a^2, b^2) <= 4. Squares of u and v move by at most 1 each. From (u, v) = (1,
    0) to (0, 1) all of it is attained.
    """

    name = "filled value"
    shape = (4,)
    sensitivity = sqrt(4.0 + 2.0 * SQUARE_WEIGHT**2) * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rounds."""
        u, v = self.sides(X, y)
        return np.array(
            [
                (u - v).sum(),
                sqrt(3.0) * (u + v).sum(),
                SQUARE_WEIGHT * (u @ u),
                SQUARE_WEIGHT * (v @ v),
            ]
        )


@validated
def private_off_policy_value(
    target: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    propensities: ArrayLike,
    *,
    epsilon: Positive = 1.0,
    delta: Level = 1e-6,
    bounds_y: ArrayLike = (0.0, 1.0),
    max_weight: Positive = 10.0,
    least_propensity: Probability | None = None,
    confidence_level: Level = 0.95,
    random_state: RandomState = None,
) -> PrivateValue:
    """Estimate the mean reward of a policy from logs, and protect the users in the logs.

    Parameters
    ----------
    target : array-like of shape (n_rounds,) or (n_rounds, n_actions)
        What the policy would do: its actions as integers, or their probabilities.
    actions : array-like of shape (n_rounds,)
        Actions in the data.
    rewards : array-like of shape (n_rounds,)
        Their rewards.
    propensities : array-like of shape (n_rounds,)
        Probabilities with which the data's actions were drawn.
    epsilon : float > 0, default=1.0
        Privacy parameter; smaller is more private.
    delta : float in (0, 1), default=1e-6
        Privacy parameters.
    bounds_y : (float, float), default=(0, 1)
        Public range to which rewards are clipped.
    max_weight : float > 0, default=10.0
        Public: probability ratios (target to data) are clipped to it. The noise grows with it. If
        it is below the largest ratio, the value is biased towards the middle of ``bounds_y``; the
        interval allows for that, and ``missing`` says how much it is.
    least_propensity : float in (0, 1], default=None
        Public: a lower bound on the probability with which the data's policy plays any action. If
        ``max_weight`` is at least one over it, no ratio is clipped, and the interval need not allow
        for it: it is shorter. Do not read it off the data. It is ``1 / n_actions`` for
        `RandomPolicy`, and the floor that a policy of your own keeps; private policies that learn
        have none that is known in advance.
    confidence_level : float in (0, 1), default=0.95
        Probability, in (0, 1), with which the interval contains the mean reward.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    PrivateValue
        Named tuple (value, low, high, noise_share, missing).

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy when one round (context, action,
    propensity and reward) is replaced, by Gaussian DP. Released: noisy sums of the clipped terms
    and of their squares. Public: the number of rounds and all parameters. A user with k rounds
    loses k times the mu of one round: an accountant whose unit is a person refuses the release, so
    that it needs a ledger of rows, and ``epsilon`` for a round that is small enough for k of them.

    The value is the inverse propensity score of rewards less the middle of their range. A doubly
    robust one was never better under privacy: its terms have twice the range, hence the noise.

    The interval is normal: of the mean of independent terms, with the released variance plus a
    quantile of its noise, and the noise of the sum. If ratios may be clipped, its ends are those of
    the two extremes: what is missing earns the lowest reward, or the highest. With w the clipped
    weight and W the ratio, E[W] <= 1 and low <= r <= high give E[W r] >= low + E[w (r - low)] and
    E[W r] <= high - E[w (high - r)], whatever ``max_weight`` is. Each end is estimated by itself.
    If they contradict E[W] <= 1, something is no probability, and the interval is ``bounds_y``.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.bandits import private_off_policy_value
    >>> rng = np.random.default_rng(0)
    >>> actions = rng.integers(2, size=20_000)
    >>> rewards = (rng.random(20_000) < 0.3 + 0.4 * actions).astype(float)
    >>> always_one, halves = np.ones(20_000, dtype=int), np.full(20_000, 0.5)
    >>> value = private_off_policy_value(
    ...     always_one, actions, rewards, halves, epsilon=1.0, max_weight=2.0, random_state=0
    ... )
    >>> bool(value.low < 0.7 < value.high), bool(value.high - value.low < 0.05)
    (True, True)
    """
    low, high = np.concatenate(column_bounds(bounds_y, [], 1, "bounds_y")).tolist()
    _check_shapes(target, actions, rewards, propensities)
    covered = least_propensity is not None and max_weight * least_propensity >= 1.0
    query = (ValueQuery if covered else FilledQuery)(low, high, float(max_weight))
    budget = Budget(epsilon, delta)
    stream = open_stream("central", query, budget, 1, random_state, "private_off_policy_value")
    # The values are read after the charge.
    target, actions, rewards, propensities = map(floats, (target, actions, rewards, propensities))
    answer = stream.push(_weights(target, actions, propensities), rewards).read()
    interval = _unclipped if covered else _filled
    quantile = two_sided_quantile(confidence_level)
    n = answer.n
    found = interval(query, answer.value / n, answer.noise.scale / n, n, quantile)
    return PrivateValue(*map(float, found))


def _unclipped(
    query: Any, means: np.ndarray, sigma: float, n: float, quantile: float
) -> PrivateValue:
    """Value and interval where no ratio is clipped, from means of n rounds and their noise."""
    mean = np.clip(means[0], -1.0, 1.0)
    square = (means[1] + quantile * sigma) / VALUE_WEIGHT
    rounds = (square - mean**2).clip(0.0, 1.0) / n
    width = quantile * sqrt(sigma**2 + rounds) * query.bound
    value = query.middle + query.bound * mean
    share = sigma**2 / (sigma**2 + rounds) if sigma else 0.0
    return PrivateValue(value, value - width, value + width, share)


def _filled(query: Any, means: np.ndarray, sigma: float, n: float, quantile: float) -> PrivateValue:
    """Value, and an interval between the extremes of what is missing; from the same."""
    range_y = query.low, query.high
    noise = sigma**2 / 3.0  # of u and v: (1 + 1 / 3) / 4
    total = means[1] / sqrt(3.0)
    sides = (total + np.array([1.0, -1.0]) * means[0]) / 2.0
    squares = (means[2:] + quantile * sigma) / SQUARE_WEIGHT
    rounds = (squares - sides.clip(0.0, 1.0) ** 2).clip(0.0, 0.25) / n
    ends = 2.0 * query.bound * (sides - quantile * np.sqrt(noise + rounds))
    value = np.clip(query.middle + query.bound * np.clip(means[0], -1.0, 1.0), *range_y)
    interval = query.low + ends[0], query.high - ends[1]
    if interval[0] > interval[1]:  # weights of a mean above 1, as no probabilities have
        interval = range_y  # nothing is known
    first = np.clip(interval[0], query.low, value)
    last = np.clip(interval[1], value, query.high)
    share = noise / (noise + rounds.mean()) if sigma else 0.0
    return PrivateValue(
        value, first, last, share, np.clip(1.0 - query.max_weight * total, 0.0, 1.0)
    )


def _check_shapes(
    target: np.ndarray, actions: np.ndarray, rewards: Any, propensities: np.ndarray
) -> None:
    """Refuse shapes, which are public, that do not fit."""
    shape = public_shape(target)
    n = shape[:1]
    for values, name in (
        (actions, "actions"),
        (rewards, "rewards"),
        (propensities, "propensities"),
    ):
        check_shape(values, name, n)
    if len(shape) not in (1, 2) or 0 in shape:
        raise ValueError("target must have shape (n_rounds,) or (n_rounds, n_actions).")


def _weights(target: np.ndarray, actions: np.ndarray, propensities: np.ndarray) -> "Array":
    """Ratios of probabilities of all rounds, of shape (n_rounds, 1); whatever the values are."""
    if target.ndim == 1:
        played = (target == actions).astype(float)
    else:
        index, valid = known_actions(actions, target.shape[1])
        played = np.where(valid, target[np.arange(len(actions)), index], 0.0)
    with unwarned():
        return (played / propensities)[:, None]
