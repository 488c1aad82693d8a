"""Confidence intervals for the regression function, from noisy normal equations.

For any v computed from released answers other than ``target`` and from the query point x,

    v'target - x'theta* = v'sum e zeta + v'(N_b - N_A theta*) + (design'v - x)'theta*,

so that x'theta* lies within three terms of v'target. The first is sub-Gaussian with variance proxy
v'Gv given the rows and N_A (targets lie in an interval of length 2), and ||theta*|| times
||design'v - x|| bounds the third. The second is bounded in one of two ways, whichever is narrower
at a typical v (a public choice): "joint", ||v|| times a quantile of ||N_b - N_A theta*||; or
"split", where v'N_b joins the first term (N_b is independent of v) and ||v|| times a quantile of
||N_A theta*|| is left. Any v is valid, and is chosen on a public path.
"""

from math import inf, isfinite, log, sqrt
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy import stats

from .._linalg import blocks_of
from ._tails import event, norm_quantile, operator_quantile

# The Gram matrix (concentrated) has one part of the failure probability; the rest is divided
# between the targets' noise and the privacy noise, by the best of these at a typical v.
GRAM_PART = 0.05
TARGET_PARTS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9])
# Tikhonov path of v in units of the noise scale (public, the same for every data set).
PATH = np.concatenate([[0.0], np.geomspace(0.2, 40.0, 18)])
NORMS = np.geomspace(0.125, 64.0, 28)  # of theta*; above them intervals are the whole range
# Smallest singular value of the released design, in deviations of its noise, for normal intervals
# that assume no norm: this number, or this much above the normal quantile of the level.
MIN_RESOLUTION_FOR_INTERVALS, RESOLUTION_ABOVE_QUANTILE = 3.5, 1.5


class ConfidenceInterval(NamedTuple):
    """Ends of intervals, one for each row."""

    low: np.ndarray
    high: np.ndarray


def split_failure(failure, *weights):
    """Divide a failure probability over the parts of a bound, in proportion to public weights.

    By the union bound all parts hold at once but for the whole of it. A part that cannot fail, such
    as that of noise without privacy, has the weight 0 and leaves its share to the others.

    Examples
    --------
    >>> from skpriv._estimation._intervals import split_failure
    >>> split_failure(0.5, 3.0, 1.0, 0.0)
    (0.375, 0.125, 0.0)
    """
    whole = sum(weights)
    return tuple(failure * weight / whole for weight in weights)


def check_level(confidence_level):
    """Refuse what is no level of an interval."""
    if not isinstance(confidence_level, Real) or not 0.0 < float(confidence_level) < 1.0:
        raise ValueError(f"confidence_level={confidence_level!r} must lie in (0, 1), as a number.")


def two_sided_quantile(confidence_level):
    """Half-width, in standard errors, of a normal interval with equal tails.

    All two-sided normal levels are made here: a level that is put in the place of a probability
    would make 90% of what is called 95%.

    Examples
    --------
    >>> from skpriv._estimation._intervals import two_sided_quantile
    >>> round(two_sided_quantile(0.95), 2)
    1.96
    """
    return float(stats.norm.isf((1.0 - confidence_level) / 2.0))


def inside_bounds(target, centre, half, predicted, limit=1.0):
    """Intervals in the units of y and inside of its bounds, from those in scaled units.

    Whatever was released has ``interval(points, confidence_level, method)``, which gives a centre
    and a half-width at each point; this is the one way from there to the units of y.

    The function lies within the limits. Where an interval leaves them, it ends there with the width
    that it has: none has width zero because both ends were cut. And it contains the prediction,
    which is shrunk otherwise than its centre. Within the limits it only grows by that.

    Parameters
    ----------
    target : Scaling or TargetMap
    centre, half : ndarrays of shape (n_points,)
        A half-width is infinite where nothing is known: the interval is the bounds of y there.
    predicted : ndarray of shape (n_points,)
        Predictions in the units of y; outside of its bounds the nearest bound counts.
    limit : float or ndarray of shape (n_points,)
        Bound on the absolute value of the function in scaled units, at most 1.

    Returns
    -------
    ConfidenceInterval
    """
    predicted = np.clip(predicted, *target.bounds_y)
    low = target.unscale(np.clip(np.minimum(centre, limit) - half, -limit, limit))
    high = target.unscale(np.clip(np.maximum(centre, -limit) + half, -limit, limit))
    return ConfidenceInterval(np.minimum(low, predicted), np.maximum(high, predicted))


def certified_by_norm(equations, points, theta_bound, confidence_level):
    """Finite-sample intervals: at each fixed x, coverage of at least the level for any n.

    Parameters
    ----------
    equations : NormalEquations
    points : ndarray of shape (n_points, p)
    theta_bound : float or None
        Assumed bound on ||theta*||; None is for codebook reports, which bound it themselves.
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
        Half-widths are infinite where the reports do not bound ||theta*||.
    """
    failure = 1.0 - confidence_level
    if equations.law is not None:
        return _certified_jointly(equations, points, theta_bound, failure)
    factor, joined, remainder = _division(equations, theta_bound, failure)
    of_gram, _ = split_failure(failure, GRAM_PART, 1.0 - GRAM_PART)
    of_gram = event("noise of the Gram matrix", of_gram)
    slack = operator_quantile(equations.gram_scale, len(equations.target), of_gram)

    def half_width(V, squares, bias):
        quadratic = np.einsum("ij,ij->i", V @ equations.gram, V) + slack * squares
        proxy = np.clip(quadratic, 0.0, equations.n * squares) + joined**2 * squares
        return factor * np.sqrt(proxy) + remainder * np.sqrt(squares) + theta_bound * bias

    return _best_on_path(equations, points, half_width)


def _certified_jointly(equations, points, theta_bound, failure):
    """Intervals from one bound on |target - design theta*|, targets' noise and privacy together.

    For dependent noises no v is independent of either. The bound is uniform over v, so that the
    interval holds for all x at once.
    """
    # On the event of the norm's bound the reports bound ||theta*|| too, at no further cost.
    failure = event("errors of the reports", failure)
    theta_bound = min(_joint_bound(equations, failure), inf if theta_bound is None else theta_bound)
    if not isfinite(theta_bound):
        return np.zeros(len(points)), np.full(len(points), np.inf)
    bound = equations.law.norm_bound(theta_bound, failure)

    def half_width(V, squares, bias):
        return bound * np.sqrt(squares) + theta_bound * bias

    return _best_on_path(equations, points, half_width)


def _joint_bound(equations, failure):
    """Upper bound on t = ||theta*|| on the event of `norm_bound` itself; infinite if there is none.

    There t <= ||design^-1 target|| + bound(t) / s, s the smallest singular value of the released
    design. bound(t) / t decreases in t, because the terms of the bound are a part that does not
    depend on theta* and one in proportion to t: no t beyond one that fails can be a solution.
    """
    left, singular, _ = np.linalg.svd(equations.design)
    if not singular[-1] > singular[0] * len(singular) * np.finfo(float).eps:
        return inf
    centre = float(np.linalg.norm((equations.target @ left) / singular))

    def step(t):
        return centre + equations.law.norm_bound(t, failure) / float(singular[-1])

    # Beyond a norm at which the step is no larger there is no solution; the step from it is one
    # more bound. The norms that are tried are public, so that their bounds are found again.
    for norm in NORMS:
        if (bounded := step(float(norm))) <= norm:
            return bounded
    return inf


def _division(equations, theta_bound, failure):
    """Sub-Gaussian factor, scale of the noise joined to the targets', quantile of the rest.

    The narrowest of both ways and all ``TARGET_PARTS`` at v'Gv = ||v||^2 n / p; everything that
    enters is public, so that the choice needs no event of its own.
    """
    if equations.exact:
        return sqrt(2.0 * log(2.0 / event("errors of the targets", failure))), 0.0, 0.0
    p = len(equations.target)
    b, a = equations.target_scale**2, (equations.design_scale * theta_bound) ** 2
    rest = a / 2.0 if equations.symmetric else a  # variance of N_A theta off its direction
    joined = equations.target_scale

    def ways(targets, noise):
        factor = sqrt(2.0 * log(2.0 / targets))
        yield factor, 0.0, norm_quantile(b + a, b + rest, p, noise)
        yield factor, joined, norm_quantile(a, rest, p, noise)

    def width(way):
        factor, joined, remainder = way
        return factor * sqrt(equations.n / p + joined**2) + remainder

    parts = [
        split_failure(failure, part, GRAM_PART, 1.0 - GRAM_PART - part)[::2]
        for part in TARGET_PARTS
    ]
    targets, noise = min(parts, key=lambda part: min(map(width, ways(*part))))
    used = event("errors of the targets", targets), event("noise at theta", noise)
    return min(ways(*used), key=width)


def asymptotic(equations, points, theta, theta_bound, confidence_level):
    """Normal intervals by the delta method, with plug-in theta and the released residual Gram.

    Exact as n grows, where the design is resolved above its noise. Directions that are not
    resolved are bounded by ``theta_bound`` as in :func:`certified_by_norm`; without one the
    interval is that of the solution itself, and infinite where a direction is not resolved.
    """
    quantile = two_sided_quantile(confidence_level)
    if theta_bound is None and equations.law is None:
        return _solved(equations, points, quantile)
    if theta_bound is None:
        theta_bound = _joint_bound(equations, split_failure(1.0 - confidence_level, 0.1, 0.9)[0])
        if not isfinite(theta_bound):
            return np.zeros(len(points)), np.full(len(points), np.inf)

    def half_width(V, squares, bias):
        return quantile * np.sqrt(_variance(equations, V, squares, theta)) + theta_bound * bias

    return _best_on_path(equations, points, half_width)


def _solved(equations, points, quantile):
    """Normal intervals about the solution theta = design^-1 target, at v = design^-T x.

    v has seen the noise of the design that it meets. That is of second order, and where the
    smallest singular value is at least 3.5 of its deviations the coverage stays near the
    level: of one weak direction .95 from five deviations on, whatever its coefficient, and never
    below .91 over all of its strengths, what is not resolved counted as covered; of directions that
    are all as weak .95 to .98, up to 60 of them (benchmarks/thinning.py). A v that is independent
    of the noise, by Gaussian thinning, is wider by a third to a multiple there.
    """
    left, singular, right = np.linalg.svd(equations.design)
    least = (
        max(MIN_RESOLUTION_FOR_INTERVALS, RESOLUTION_ABOVE_QUANTILE + quantile)
        * equations.design_scale
    )
    least = max(least, singular[0] * len(left) * np.finfo(float).eps)
    if not singular[-1] > least:
        return np.zeros(len(points)), np.full(len(points), np.inf)
    inverse = (right.T / singular) @ left.T
    V, theta = points @ inverse, inverse @ equations.target
    squares = np.einsum("ij,ij->i", V, V)
    return V @ equations.target, quantile * np.sqrt(_variance(equations, V, squares, theta))


def _variance(equations, V, squares, theta):
    """Variance of v'(target - design theta*) to first order, with theta in place of theta*."""
    if equations.law is not None:  # the sandwich has everything
        return np.einsum("ij,ij->i", V @ equations.residual_gram, V)
    divisor = 2.0 if equations.symmetric else 1.0
    spread = equations.target_scale**2 + equations.design_scale**2 * (theta @ theta) / divisor
    variance = _residual_variance(equations, V, squares) + spread * squares
    if equations.symmetric:
        variance += (equations.design_scale * (V @ theta)) ** 2 / 2.0
    return variance


def _residual_variance(equations, V, squares):
    """Variance of v' sum e zeta: the released residual Gram, at most the Gram itself (|r| <= 1).

    Where it is noisy the variance that equal variances would give is leant on, as in `sandwich`.
    """
    bound = np.maximum(np.einsum("ij,ij->i", V @ equations.gram, V), 0.0)
    if equations.sampling_gram is None:
        return bound
    robust = np.einsum("ij,ij->i", V @ equations.sampling_gram, V)
    equal = equations.residual_level(float(np.trace(equations.gram))) * bound
    noise = equations.residual_scale * squares
    weight = equal**2 / np.maximum(equal**2 + noise**2, 1e-300)
    return np.clip(weight * robust + (1.0 - weight) * equal, 0.0, bound)


def _best_on_path(equations, points, half_width):
    """Narrowest interval over v = P h(S) R'x for design = P S R', and over v = 0."""
    left, singular, right = np.linalg.svd(equations.design)
    tiny = singular[0] * len(singular) * np.finfo(float).eps
    scale = max(equations.design_scale, 1.0)
    centre, half = np.empty(len(points)), np.empty(len(points))
    for rows in blocks_of(len(points), 2 * points.shape[1]):
        X = points[rows]
        best_half = half_width(np.zeros_like(X), np.zeros(len(X)), np.linalg.norm(X, axis=1))
        best_centre = np.zeros(len(X))
        rotated = X @ right.T
        for penalty in scale * PATH:
            filtered = np.where(
                singular > tiny, singular / (np.maximum(singular, tiny) ** 2 + penalty**2), 0.0
            )
            V = (rotated * filtered) @ left.T
            squares = np.einsum("ij,ij->i", V, V)
            bias = np.linalg.norm(V @ equations.design - X, axis=1)
            width = half_width(V, squares, bias)
            better = width < best_half
            best_half[better] = width[better]
            best_centre[better] = (V @ equations.target)[better]
        centre[rows], half[rows] = best_centre, best_half
    return centre, half
