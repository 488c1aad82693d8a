"""Value of a policy from the data of another one, under differential privacy."""

from dataclasses import dataclass
from math import sqrt
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from ..._compat import Interval, StrOptions, validate_params
from ...privacy import ROUNDING, Budget, Query, open_stream

VALUE_WEIGHT = 1.5  # of t^2 beside t: free, see ValueQuery


class PrivateValue(NamedTuple):
    """Private estimate of a policy's mean reward, with an interval.

    Parameters
    ----------
    value : float
    low : float
    high : float
        Of the confidence interval, which counts the noise and the number of rounds.
    noise_share : float
        Part of the interval's variance that comes from privacy.
    """

    value: float
    low: float
    high: float
    noise_share: float


@dataclass(frozen=True)
class ValueQuery(Query):
    """Sum of (t, 1.5 t^2), t = (direct - middle + w (r - predicted)) / bound in [-1, 1].

    Rows are (w, direct, predicted); w is clipped to [0, max_weight], all others to the range of the
    rewards; NaN becomes 0. Sensitivity 2: with d = |t - t'| and s = |t + t'|, d + s <= 2, replacing
    a round moves the squared norm by d^2 (1 + 2.25 s^2), at most 4: attained at t = -t' = 1, and
    below 3.6 where it has another local maximum (d of about 1.4).
    """

    low: float
    high: float
    max_weight: float
    bound: float
    name: str = "value"
    shape: tuple = (2,)
    sensitivity: float = 2.0 * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rounds."""
        middle = self.low / 2.0 + self.high / 2.0
        w = np.clip(np.nan_to_num(X[:, 0], nan=0.0), 0.0, self.max_weight)
        direct, predicted, r = (
            np.clip(np.nan_to_num(part, nan=middle), self.low, self.high)
            for part in (X[:, 1], X[:, 2], y)
        )
        t = np.clip((direct - middle + w * (r - predicted)) / self.bound, -1.0, 1.0)
        return np.array([t.sum(), VALUE_WEIGHT * (t @ t)])


@validate_params(
    {
        "target": ["array-like"],
        "actions": ["array-like"],
        "rewards": ["array-like"],
        "propensities": ["array-like"],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "bounds_y": ["array-like"],
        "max_weight": [Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions({"ips", "dr"})],
        "predictions": ["array-like", None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def private_off_policy_value(
    target: Any,
    actions: Any,
    rewards: Any,
    propensities: Any,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    bounds_y: Any = (0.0, 1.0),
    max_weight: float = 10.0,
    method: str = "ips",
    predictions: Any = None,
    confidence_level: float = 0.95,
    random_state: int | np.random.RandomState | None = None,
) -> "PrivateValue":
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
    delta : float in (0, 1), default=1e-6
        Privacy parameters.
    bounds_y : (float, float), default=(0, 1)
        Public range to which rewards and predictions are clipped.
    max_weight : float > 0, default=10.0
        Public: probability ratios (target to data) are clipped to it. The noise grows with it;
        below the largest ratio the value is biased towards the middle of ``bounds_y``, or towards
        the predictions.
    method : {"ips", "dr"}, default="ips"
        Inverse propensity score, of rewards less the middle of their range; or doubly robust.
    predictions : array-like of shape (n_rounds, n_actions), default=None
        Predicted rewards of all actions, for "dr": from a model fitted to other users, or released
        with privacy.
    confidence_level : float in (0, 1), default=0.95
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    PrivateValue
        Named tuple (value, low, high, noise_share).

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy when one round (context, action,
    propensity and reward) is replaced, by Gaussian DP. Released: noisy sums of the clipped terms
    and of their squares. Public: the number of rounds and all parameters. A user with k rounds
    pays k times the square root of the Gaussian cost.

    The interval is normal: of the mean of independent terms, with the released variance plus a
    quantile of its noise, and the noise of the sum.

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
    rows = _rows(target, actions, propensities, method, predictions, bounds_y)
    rewards = np.asarray(rewards, dtype=float)
    if rewards.shape != (len(rows),):
        raise ValueError(f"rewards of shape {rewards.shape} must have shape ({len(rows)},).")
    low, high = map(float, bounds_y)
    middle, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    bound = half * (max_weight if method == "ips" else 1.0 + 2.0 * max_weight)
    query = ValueQuery(low=low, high=high, max_weight=float(max_weight), bound=bound)
    budget = Budget(float(epsilon), float(delta))
    stream = open_stream("central", query, budget, 1, random_state, "private_off_policy_value")
    answer = stream.push(rows, rewards).read()
    n, sigma = len(rows), answer.noise.scale
    quantile = float(norm.ppf(0.5 + confidence_level / 2.0))
    mean = float(np.clip(answer.value[0] / n, -1.0, 1.0))
    square = answer.value[1] / (VALUE_WEIGHT * n) + quantile * sigma / (VALUE_WEIGHT * n)
    variance = float(np.clip(square - mean**2, 0.0, 1.0))
    noise, rounds = (sigma / n) ** 2, variance / n
    width = quantile * sqrt(noise + rounds) * bound
    value = middle + bound * mean
    share = noise / (noise + rounds) if noise else 0.0
    return PrivateValue(value, value - width, value + width, share)


def _rows(target, actions, propensities, method, predictions, bounds_y):
    """Rows (weight, direct, predicted) of all rounds; only what is public is checked."""
    actions = np.nan_to_num(np.asarray(actions, dtype=float)).astype(np.intp)
    target = np.asarray(target)
    propensities, n = np.asarray(propensities, dtype=float), len(actions)
    bounds = np.asarray(bounds_y, dtype=float)
    if bounds.shape != (2,) or not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
        raise ValueError("bounds_y must be two finite numbers (low, high) with low < high.")
    if n < 1 or actions.shape != (n,) or propensities.shape != (n,):
        raise ValueError("actions and propensities must have the same shape (n_rounds,).")
    if target.ndim not in (1, 2) or len(target) != n:
        raise ValueError("target must have shape (n_rounds,) or (n_rounds, n_actions).")
    rounds = np.arange(n)
    if target.ndim == 1:
        played = (target == actions).astype(float)
    else:
        played = target[rounds, np.clip(actions, 0, target.shape[1] - 1)].astype(float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        weights = played / propensities
    if method == "ips":
        middle = np.full(n, bounds.mean())
        return np.column_stack([weights, middle, middle])
    predictions = None if predictions is None else np.asarray(predictions, dtype=float)
    if predictions is None or predictions.ndim != 2 or len(predictions) != n:
        raise ValueError("method='dr' needs predictions of shape (n_rounds, n_actions).")
    predictions = np.clip(predictions, *bounds)
    last = predictions.shape[1] - 1
    predicted = predictions[rounds, np.clip(actions, 0, last)]
    if target.ndim == 1:
        direct = predictions[rounds, np.clip(target.astype(np.intp), 0, last)]
    else:
        direct = np.einsum("nk,nk->n", np.clip(target, 0.0, 1.0), predictions)
    return np.column_stack([weights, direct, predicted])
