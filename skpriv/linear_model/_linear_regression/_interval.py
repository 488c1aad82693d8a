"""Confidence interval of a fitted function from its released Newton equations."""

import numpy as np
from scipy import stats

from ..._equations._certified._newton import certified
from ..._equations._intervals import ConfidenceInterval


def function_interval(fit, target, phi, predicted, confidence_level, method):
    """Interval for the regression function at rows of features.

    Parameters
    ----------
    fit : NewtonFit
    target : TargetMap
    phi : ndarray of shape (n_rows, p)
    predicted : ndarray of shape (n_rows,)
        Predictions, which the interval contains.
    confidence_level : float in (0, 1)
    method : {"asymptotic", "certified"}

    Returns
    -------
    ConfidenceInterval
        The bounds of the target where the fit does not resolve a row's direction.
    """
    if not fit.newton:
        nothing = np.zeros(len(phi))
        return inside(target, nothing, nothing, nothing > 0.0, predicted)
    points = fit.points(phi)
    if method == "certified":
        centre, half = certified(fit, points, confidence_level)
        found = np.isfinite(half)
    else:
        estimate = fit.estimate(points)
        centre, found = estimate.value, estimate.resolved
        deviation = np.sqrt(sum(estimate.variances()))
        half = stats.norm.ppf(0.5 + confidence_level / 2.0) * deviation
    return inside(target, fit.location + centre, half, found, predicted)


def inside(target, centre, half, found, predicted):
    """Interval in the units of y and inside bounds_y, which it is where nothing is found."""
    low, high = (np.full(len(half), float(bound)) for bound in target.bounds_y)
    # Where the line leaves the bounds, the interval ends there with the width that it has.
    centre, half = centre[found], np.minimum(half[found], 2.0)
    low[found] = target.unscaled(np.minimum(centre, 1.0) - half)
    high[found] = target.unscaled(np.maximum(centre, -1.0) + half)
    return ConfidenceInterval(np.minimum(low, predicted), np.maximum(high, predicted))
