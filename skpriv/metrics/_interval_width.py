"""How wide intervals are."""

import numpy as np

from ._validation import check_interval, check_weight


def interval_mean_width(low, high, *, sample_weight=None):
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
        At least 0; infinite if an interval of positive weight is.

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
        width, weight = width[weight > 0], weight[weight > 0]
    return float(np.average(width, weights=weight))
