"""Coverage and width of intervals."""

from typing import Any
import numpy as np
from sklearn.utils import check_consistent_length

from ..exceptions import InvalidValues
from ..records import INVALID_VALUES, floats, public_shape, silence


def check_vector(values: Any, name: str) -> np.ndarray:
    """One-dimensional float array; infinite ends of intervals are allowed, NaN is not."""
    shape = public_shape(values)
    if len(shape) != 1 and shape[1:] != (1,):
        raise ValueError(f"{name} of shape {shape} must be one-dimensional.")
    read = floats(values, infinite=True).reshape(-1)
    if np.isnan(read).any():
        raise InvalidValues(INVALID_VALUES)
    return read


def check_interval(low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
    """The two ends as float arrays, in order and of one length."""
    low = check_vector(low, "low")
    high = check_vector(high, "high")
    check_consistent_length(low, high)
    if (low > high).any():
        raise ValueError("low must not exceed high, but it does in some row.")
    if np.isposinf(low).any() or np.isneginf(high).any():
        raise ValueError("low must be below +inf and high above -inf.")
    return low, high


def check_weight(sample_weight: Any, *others: np.ndarray) -> np.ndarray | None:
    """Non-negative finite weights with a positive sum, or None."""
    if sample_weight is None:
        return None
    weight = check_vector(sample_weight, "sample_weight")
    check_consistent_length(weight, *others)
    if not np.isfinite(weight).all() or (weight < 0).any() or weight.sum() == 0:
        raise ValueError("sample_weight must be finite and non-negative, and not all zero.")
    return weight


@silence()
def interval_coverage_score(
    f_true: Any, low: Any, high: Any, *, sample_weight: Any = None
) -> float:
    """Fraction of the intervals that contain the truth, ends included.

    Parameters
    ----------
    f_true : array-like of shape (n_samples,)
        What the intervals are for: values of the regression function f*(x) for confidence
        intervals, held-out targets y for prediction intervals; see Notes.

    low, high : array-like of shape (n_samples,)
        Ends of the intervals, as ``confidence_interval`` or ``prediction_interval`` returns them.
        They may be infinite.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None weighs all samples alike.

    Returns
    -------
    score : float
        Between 0 and 1. It should be at least the confidence level.

    Raises
    ------
    ValueError
        If a low end exceeds its high end, if the lengths differ, or on NaN.

    See Also
    --------
    interval_mean_width : The price of coverage; an infinite interval covers everything.

    Notes
    -----
    A prediction interval is for a new target, and targets of held-out rows are known: their score
    is a true number, on real data too.

    On real data f*(x) is not known. A confidence interval is for f*(x), so single targets y, which
    scatter around it, are covered less often than the confidence level says, however good the
    interval is: ``interval_coverage_score(y, low, high)`` is no test of it. As a proxy, take the
    mean of y over the samples that share one x (or nearly), weighted by their number; it
    approaches f*(x) as the groups grow. It is computed from y with no privacy, so it is for
    study and not for release.

    Examples
    --------
    >>> from skpriv.metrics import interval_coverage_score
    >>> interval_coverage_score([0.0, 1.0, 2.0, 3.0], [-1, 0, 1, 4], [1, 1, 3, 5])
    0.75

    Held-out targets, and the prediction intervals of a private fit:

    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 2))
    >>> y = X @ [0.5, 0.2] + rng.normal(scale=0.1, size=20_000)
    >>> est = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), calibration_size=0.2, random_state=0)
    >>> est = est.fit(X[:10_000], y[:10_000])
    >>> low, high = est.prediction_interval(X[10_000:], confidence_level=0.9)
    >>> bool(abs(interval_coverage_score(y[10_000:], low, high) - 0.9) < 0.03)
    True
    """
    low, high = check_interval(low, high)
    f_true = check_vector(f_true, "f_true")
    check_consistent_length(f_true, low)
    weight = check_weight(sample_weight, low)
    return float(np.average((low <= f_true) & (f_true <= high), weights=weight))


@silence()
def interval_mean_width(low: Any, high: Any, *, sample_weight: Any = None) -> float:
    """Mean width of intervals, in the units of the target.

    Parameters
    ----------
    low, high : array-like of shape (n_samples,)
        Ends of the intervals, as ``confidence_interval`` or ``prediction_interval`` returns them.
        They may be infinite.

    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None weighs all samples alike.

    Returns
    -------
    width : float
        The width, at least 0; infinite if an interval of positive weight is.

    Raises
    ------
    ValueError
        If a low end exceeds its high end, if the lengths differ, or on NaN.

    See Also
    --------
    interval_coverage_score : How often the intervals hold the truth.

    Examples
    --------
    >>> from skpriv.metrics import interval_mean_width
    >>> interval_mean_width([0.0, 1.0], [1.0, 4.0])
    2.0
    """
    low, high = check_interval(low, high)
    weight = check_weight(sample_weight, low)
    width = high - low
    if weight is not None:  # inf * 0 is NaN
        width = width[weight > 0]
        weight = weight[weight > 0]
    return float(np.average(width, weights=weight))
