"""How well a released fit describes the records: the explained part, with its uncertainty.

All of it follows from what a fit has released. The slope of a fit of the loop is the Gram matrix of
the rows, with the weights of the fit, and a mean square of residuals goes with it. Moments have the
sum of squares of any line.
"""

from dataclasses import replace
from math import hypot, inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, expit, ndtr

from .._linalg import SQRT2, norm_of, trace_of
from .._stored import frozen, stored
from ._loop._law import FITTED
from ._loop._score import CUT
from ._moments import SQUARE_WEIGHT, NormalEquations

if TYPE_CHECKING:
    from .._contracts import Array, Scalar
    from ._coefficients import Solved
    from ._loop._fit import LoopFit
    from ._public_maps import RecordMap

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
NODE_WEIGHTS /= NODE_WEIGHTS.sum()
# Mean square beyond R over R^2 J, and its deviation: one over the power of the tail is uniform
# between 0 and 1/3.
TAIL = 0.19
TAIL_DEVIATION = 0.22
WIDEST = 6.0  # largest standard deviation of log-odds that is considered


@stored
@frozen
class Statistic:
    """A number about a fit, with its standard error; infinite where it is not told from noise.

    Attributes
    ----------
    name : str
    value, std_error : float
    largest : float
        It is between 0 and this.
    """

    name: str
    value: float
    std_error: float
    largest: float = 1e300

    @property
    def is_resolved(self) -> bool:
        """Whether the answers say more than its possible values do."""
        return self.std_error < self.largest / 4.0

    def ends(self, quantile: float) -> tuple[float, float]:
        """Ends of the interval whose half-width is so many standard errors."""
        half = quantile * self.std_error
        return max(self.value - half, 0.0), min(self.value + half, self.largest)


def linear_part(fit: "LoopFit", constant: np.ndarray) -> tuple[float, float]:
    """Variance of the linear part of a fit over the records, and its standard error.

    The released slope is D = mean(w e e'). With k'e = 1 for every record, the variance of e'b with
    weights w is b'(D - Dk k'D / k'Dk)b / k'Dk. The noise of b makes it larger in the mean by the
    trace of that matrix times the covariance of b, which is taken off.

    Parameters
    ----------
    fit : LoopFit
    constant : ndarray of shape (p,)
        The constant as a function of the features.

    Returns
    -------
    (float, float)
    """
    pooled = fit.pooled(FITTED)
    law = fit.law(FITTED)
    b = law.solution
    k = np.linalg.solve(fit.W.T, constant)
    covariance = sum(law.covariances(np.eye(len(b))))
    level = max(k @ pooled.slope @ k, pooled.slope_scale, 1e-300)
    along = pooled.slope @ k
    centred = (pooled.slope - np.outer(along, along) / level) / level
    value = float(b @ centred @ b - trace_of(centred @ covariance))
    turned = 2.0 * centred @ b
    noise = pooled.slope_scale * (b @ b) / level
    return max(value, 0.0), sqrt(max(turned @ covariance @ turned, 0.0) + noise**2)


def linear_statistics(
    fit: "LoopFit", constant: np.ndarray, radius: float
) -> tuple[Statistic, Statistic]:
    """R2 and the residual deviation of a line, with what its clips take away.

    The mean square of residuals is released with those beyond R cut to R. The part J beyond .75 R
    is released, too. Normal residuals tell the rest, but tails may be heavier: with a tail like the
    power -a, the mean of c^2 - R^2 over residuals c beyond R is 2 (.75)^a J R^2 / (a - 2). The
    truth is taken to be such that 1 / a is uniform between 0 and 1/3, which gives a mean of .19 J
    R^2 and a deviation of .22 J R^2. Where J is less than twice that of normal residuals, twice its
    excess stands for it. Cut rows are not in the slope, so that the explained part is uncertain by
    a part J of it, too.

    The part that normal residuals add is as uncertain as it is large: weights of far rows and noise
    of few records make clipped squares too small as well. Without that, intervals of the deviation
    held the truth in 0 to .3 of fits to 2,000 rows of 10 columns, whose clips are tight.

    The variance of squares is that of normal residuals and R^4 J. Where nothing is cut, it is 8
    squares of the variance, as for the exponential distribution. The linear part is sampled as if
    it were normal.

    Parameters
    ----------
    fit : LoopFit
    constant : ndarray of shape (p,)
    radius : float
        Half of the range of the target.

    Returns
    -------
    tuple of Statistic
    """
    explained, error = linear_part(fit, constant)
    last = fit.last
    clips = last.limit < last.widest
    near = max(last.nearly_cut, 0.0) * clips
    usual = 2.0 * ndtr(-CUT * last.limit / sqrt(max(fit.variance, 1e-300)))
    beyond = last.limit**2 * max(min(near, 2.0 * (near - usual)), 0.0)
    rest = fit.variance + TAIL * beyond
    squares = (2.0 if clips else 8.0) * rest**2 + last.limit**4 * near
    noise = last.square_scale * rest / max(last.square, 2.0 * last.square_scale, 1e-300)
    error = hypot(error, explained * near, explained * sqrt(2.0 / last.n))
    rest_error = hypot(noise, sqrt(squares / last.n), fit.variance - last.square)
    return _of_parts(explained, error, rest, rest_error, beyond, radius)


def _of_parts(
    explained: float, error: float, rest: float, rest_error: float, beyond: float, radius: float
) -> tuple[Statistic, Statistic]:
    """The same by the variance that is explained and the rest, their errors, and R^2 J."""
    rest = max(rest, 1e-150)  # that of a constant target is 0 without noise
    total = explained + rest
    rest_error = hypot(rest_error, TAIL_DEVIATION * beyond)
    part = hypot(error * rest, rest_error * explained) / total**2
    return _of_line(explained / total, part, rest, rest_error, radius)


def _of_line(
    part: float, part_error: float, square: float, error: float, radius: float
) -> tuple[Statistic, Statistic]:
    """The explained part and the residual deviation, by the mean square of residuals."""
    deviation = radius * sqrt(square)
    return (
        Statistic("R-squared", part, part_error, 1.0),
        Statistic("residual deviation", deviation, deviation * error / (2.0 * square)),
    )


def moment_statistics(
    moments: "NormalEquations",
    solved: "Solved",
    rows: "RecordMap",
    places: slice = slice(None),
    own: float = 1.0,
) -> tuple[Statistic, Statistic]:
    """R2 and the residual deviation of a line, by moments.

    With z = (r, phi) and Z = sum zz', the sum of squared residuals of a line t is Q(t) = v'Z v for
    v = (-1, t). Noise moves <M, Z> by the norm of M, whose entries count sqrt(2) fold for r phi and
    1 / w fold for r^2. A line that solves these sums has a Q that is too small in the mean by
    tr(D C), with the covariance C of the line. One by instruments is independent of their noise,
    and its Q is too large by that. R2 is 1 - Q(t) / Q(m), with the constant line m of the mean.

    The variance of squared residuals is that of an exponential distribution, 8 squares of their
    mean. The linear part is sampled as if it were normal, and its mean goes with residuals.

    Parameters
    ----------
    moments : NormalEquations
        The answer to a `MomentsQuery`.
    solved : Solved
    rows : RecordMap
        It has an intercept.
    places : ndarray of int, default=all
        Coordinates of phi that are in the line.
    own : float, default=1.0
        -1 if instruments solved the line.

    Returns
    -------
    (Statistic, Statistic)
    """
    D = moments.design
    b = moments.target
    Z = np.block([[moments.square, b], [b[:, None], D]])
    scales = np.pad(np.ones(D.shape), (1, 0), constant_values=SQRT2)
    scales[0, 0] = 1.0 / SQUARE_WEIGHT
    vectors = np.eye(len(b))[:, places] @ solved.vectors
    covariance = vectors @ (solved.sampling + solved.privacy) @ vectors.T
    line = np.append(-1.0, vectors @ solved.theta)
    constant = rows.row_map.constant
    n = float(constant @ D @ constant)
    mean = np.append(-1.0, constant * (constant @ b) / n)
    square = np.outer(line, line)
    gradient = 2.0 * (Z @ line)[1:]
    moved = sqrt(max(gradient @ covariance @ gradient, 0.0))
    noise = hypot(moments.design_scale * norm_of(scales * square), moved)
    rest = max(line @ Z @ line + own * trace_of(D @ covariance), 0.1 * noise, 1e-300)
    total = max(mean @ Z @ mean, rest)
    left = rest / total
    of_part = moments.design_scale * norm_of(scales * (square - left * np.outer(mean, mean)))
    sampled = left * sqrt((1.0 - left) * (10.0 - 6.0 * left) / n)
    error = hypot(noise, rest * sqrt(8.0 / n)) / n
    return _of_line(1.0 - left, hypot(of_part / total, sampled), rest / n, error, rows.radius)


def weighted_statistics(
    equations: "NormalEquations", theta: np.ndarray, rows: "RecordMap"
) -> tuple[Statistic]:
    """The residual deviation of re-weighted rows, by the trace of their residual Gram matrix.

    These residuals are clipped at five of their deviations. Squares have the variance of those of
    an exponential variable.

    Parameters
    ----------
    equations : NormalEquations
    theta : ndarray of shape (p,)
    rows : RecordMap

    Returns
    -------
    tuple of Statistic
    """
    low, high = np.square(equations.residual_deviation(theta))
    rest = max((low + high) / 2.0, 1e-300)
    noise = (high - low) / 4.0 if low else high  # of a square that noise may explain
    error = hypot(noise, rest * sqrt(8.0 / equations.n))
    _, found = _of_line(0.0, inf, rest, error, rows.radius)
    return (replace(found, name="residual deviation (clipped)"),)


def count_statistics(fit: "LoopFit", largest: float) -> tuple[Statistic, Statistic]:
    """R2 and the residual deviation of counts, by the last question about their mean.

    It asked the mean square of residuals, and that of the means of the fit about their middle, less
    those of records with large residuals: they are taken to be as many as squares of residuals are
    in the mean, up to as much again. Residuals beyond the clip are as in `linear_statistics`, and
    squares have the variance of those of an exponential variable, and R^4 J.

    Parameters
    ----------
    fit : LoopFit
    largest : float
        The largest count.

    Returns
    -------
    tuple of Statistic
    """
    mean: Any = fit.mean  # of counts it is always known
    limit, unit, *means, noise = mean.counts
    square, near, around = np.maximum(means, [noise, 0.0, 0.0]).tolist()
    part = (unit / limit) ** 2
    explained = part * around / (1.0 - min(square, 0.5))
    error = hypot(part * noise, explained * square, explained * sqrt(8.0 / fit.n))
    rest = square + TAIL * near
    rest_error = hypot(noise, sqrt((8.0 * rest**2 + near) / fit.n))
    return _of_parts(explained, error, rest, rest_error, near, largest * limit)


def logistic_statistics(fit: "LoopFit", constant: np.ndarray, rate: float) -> tuple[Statistic]:
    """Explained deviance of a logistic fit (McFadden), as if its log-odds were normal.

    The slope of the scores weighs records by p(1 - p). So the released variance is that of log-odds
    with these weights, which tells that of normal log-odds with the released mean rate.

    Parameters
    ----------
    fit : LoopFit
    constant : ndarray of shape (p,)
    rate : float

    Returns
    -------
    tuple of Statistic
    """
    variance, error = linear_part(fit, constant)
    value = _explained_deviance(variance, rate)
    # An increasing function, which is steepest at its begin
    half = (_explained_deviance(variance + error, rate) - value) if error < WIDEST else inf
    return (Statistic("explained deviance", value, half, 1.0),)


def _explained_deviance(weighted: float, rate: float) -> float:
    """1 - E h(p) / h(E p) for normal log-odds with this rate and variance weighted by p(1 - p)."""

    def odds(deviation: float) -> "Array":
        centre = brentq(lambda m: NODE_WEIGHTS @ expit(m + deviation * NODES) - rate, -900.0, 900.0)
        return centre + deviation * NODES

    def excess(deviation: float) -> "Scalar":
        eta = odds(deviation)
        weights = NODE_WEIGHTS * expit(eta) * expit(-eta)
        weights /= weights.sum()
        return weights @ (eta - weights @ eta) ** 2 - weighted

    if weighted <= 0.0:
        return 0.0
    p = expit(odds(brentq(excess, 0.0, WIDEST) if excess(WIDEST) > 0.0 else WIDEST))
    left = NODE_WEIGHTS @ (entr(p) + entr(1.0 - p))
    return 1.0 - float(left / (entr(rate) + entr(1.0 - rate)))
