"""Certified and normal intervals of solved equations, the quantiles and the certificates.

A certified interval holds on the intersection of some events. By the union bound it fails with at
most the sum of their probabilities. Each place that turns a failure probability into a quantile
passes it through `event`. So a test can add up what was used, and not what was planned.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from math import inf, isfinite, log, sqrt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import optimize, special, stats

from .._linalg import FLOAT_STEP, ROUNDED, blocks_of, lengths_of, norm_of, quadratic_forms, trace_of
from ._levels import USUAL_QUANTILE, one_sided_quantile, two_sided_quantile

if TYPE_CHECKING:
    from .._contracts import Array, Scalar
    from ._moments import NormalEquations
    from ._public_maps import RecordMap

# A test sets this to a function of the name and the failure probability of an event, which returns
# the probability that the quantile is to have.
on_event: Callable[[str, float], float] | None = None


def event(name: str, failure: float) -> float:
    """Failure probability of an event, where its quantile is taken."""
    return failure if on_event is None else on_event(name, failure)


def split_failure(failure: float, *weights: float) -> tuple[float, ...]:
    """Divide a failure probability over the parts of a bound, in proportion to public weights.

    By the union bound all parts hold at once, but for this probability. A part that cannot fail,
    such as that of noise without privacy, has the weight 0 and leaves its share to the others.

    Examples
    --------
    >>> from skpriv._estimation._intervals import split_failure
    >>> split_failure(0.5, 3.0, 1.0, 0.0)
    (0.375, 0.125, 0.0)
    """
    total = sum(weights)
    return tuple(failure * weight / total for weight in weights)


def shared(failure: float, weights: Mapping[str, float], title: str = "") -> SimpleNamespace:
    """Divide a failure probability over named events, each of which is noted.

    Parameters
    ----------
    failure : float
    weights : mapping of str to float
        Public weight of each event; one with the weight 0 cannot fail, and is not noted.
    title : str
        What the names of the events begin with.

    Returns
    -------
    SimpleNamespace
        The failure probability of each event, as an attribute by its name.
    """
    parts = zip(weights, split_failure(failure, *weights.values()), strict=True)
    used = {name: event(title + name, part) if part else 0.0 for name, part in parts}
    return SimpleNamespace(**used)


RANGE = 2.0  # a scaled target in [-1, 1] is at most that far from its mean: |zeta| <= 2
SHARPENINGS = 6  # times that a bound is put into itself; the result of each time is valid
ROUNDED_UP = 1.0 + 1e-4  # factor on quantiles by quadrature, above their error
TIMES_UP = 1.0 + ROUNDED


def norm_quantile(first: float, rest: float, p: int, failure: float) -> float:
    """Upper quantile of the square root of first chi2_1 + rest chi2_{p-1}.

    With GOE noise N theta ~ N(0, (s^2/2) ||theta||^2 (I + uu')), u = theta / ||theta||: that is
    s ||theta|| times the quantile for 1 and 1/2.
    """
    return sqrt(first) * _unit_norm_quantile(rest / first, p, failure) if first else 0.0


def operator_quantile(scale: float, p: int, failure: float) -> float:
    """Upper quantile of the largest eigenvalue of GOE(scale): Gordon's mean plus concentration."""
    return scale * (sqrt(2.0 * p) + sqrt(2.0 * log(1.0 / failure)))


def largest_sum(
    mean: float | np.ndarray,
    weak: float | np.ndarray,
    term: float | np.ndarray,
    length: float,
    last: float = 2.0,
) -> float | np.ndarray:
    """Bound on the supremum of sums of independent terms, but for exp(-length).

    The mean of the supremum and the largest variance of a sum are bounded by `mean` and `weak`, and
    each term by `term`. It is the inequality of Klein and Rio (2005), and with ``last=1`` that of
    Bousquet, for terms that have one law.
    """
    return mean + np.sqrt(2.0 * length * (weak + 2.0 * term * mean)) + last * term * length / 3.0


def expected_sum(realised: float | np.ndarray, unit: float | np.ndarray) -> float | np.ndarray:
    """Bound on the mean v of a sum of independent terms in [0, b] from its value r, unit = b l.

    It fails with probability exp(-l): P(sum <= r) <= exp(-(v - r - r log(v / r)) / b) (Chernoff).
    Newton's method from above stays above.
    """
    realised = np.clip(realised, 1e-9 * unit + 1e-300, 1e200)  # a row of zeros has the unit 0
    value = (np.sqrt(unit / 2.0) + np.sqrt(unit / 2.0 + realised)) ** 2
    for _ in range(4):
        left = value - realised - realised * np.log(value / realised) - unit
        value = value - np.maximum(left, 0.0) / np.maximum(1.0 - realised / value, 1e-12)
    return value


@lru_cache(maxsize=256)
def main_region(failure: float) -> tuple[float, float]:
    """(t0, q) such that a sum of bounded terms and a normal variable of any scale are bounded.

    Let P(S > sqrt(2 V t) + B t / 3) <= exp(-t) (Bernstein) and N ~ N(0, 1), independent of S. For
    any scale G >= 0, even one that depends on S, S + G N > sqrt(2 V t0 + (G q)^2) + B t0 / 3 only
    if (t(S), N) leaves the region t <= t0 (1 - (N_+ / q)^2), N <= q, of which that is the support
    function, with probability
    exp(-t0) / 2 + int_0^q phi(a) exp(-t0 (1 - a^2 / q^2)) da + P(N > q).

    A fifth of it is P(N > q). Widths change by 2% at most between 0.15 and 0.25, where the two
    deviations are about equal.

    Parameters
    ----------
    failure : float
        Probability of failure of one side.
    """
    q = one_sided_quantile(0.2 * failure)
    nodes, weights = special.roots_legendre(60)
    a = 0.5 * q * (nodes + 1.0)
    density = 0.5 * q * weights * stats.norm.pdf(a)

    def excess(t: float) -> "Scalar":
        left = 0.5 * np.exp(-t) + density @ np.exp(-t * (1.0 - (a / q) ** 2))
        return left - 0.8 * failure

    return float(optimize.brentq(excess, 0.0, 100.0)) * TIMES_UP, q


_gauss_legendre = lru_cache(maxsize=1)(np.polynomial.legendre.leggauss)


@lru_cache(maxsize=1024)
def _unit_norm_quantile(rest: float, p: int, failure: float) -> float:
    """Upper quantile of the square root of chi2_1 + rest chi2_{p-1}, by quadrature, rounded up."""
    if p == 1 or rest == 1.0:
        return float(stats.chi.isf(failure, p))
    nodes, weights = _gauss_legendre(400)
    z = 6.0 * (nodes + 1.0)  # [0, 12]
    density = 6.0 * weights * 2.0 * stats.norm.pdf(z)

    def excess(q: float) -> "Scalar":
        halves = np.maximum(q - z**2, 0.0) / (2.0 * rest)
        return density @ special.gammaincc((p - 1) / 2.0, halves) - failure  # chi-squared tail

    upper = p + 4.0 * sqrt(p * log(1.0 / failure)) + 4.0 * log(1.0 / failure)
    return sqrt(optimize.brentq(excess, 0.0, upper)) * ROUNDED_UP


# Part of the failure probability for the Gram matrix, whose noise is concentrated. The rest is
# divided between the noise of targets and of privacy, by the best of TARGET_PARTS at a typical v.
GRAM_PART = 0.05
TARGET_PARTS = np.array([0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9])
# Tikhonov path of v in units of the noise scale; it is public, the same for every data set.
TIKHONOV_PATH = np.concatenate([[0.0], np.geomspace(0.2, 40.0, 18)])
# Norms of theta* that are tried as bounds; above the last one intervals are all of the range.
NORMS = np.geomspace(0.125, 64.0, 28)
# Normal intervals that assume no norm need a released design that is resolved. Its smallest
# singular value, in deviations of its noise, must exceed the normal quantile of the level by so
# much; levels below .95 need what .95 needs.
RESOLUTION_ABOVE_QUANTILE = 1.5


class ConfidenceInterval(NamedTuple):
    """Ends of intervals, one for each row."""

    low: np.ndarray
    high: np.ndarray


def noise_share(
    robust: np.ndarray, equal: np.ndarray, noise: np.ndarray, unequal: float = 1.0
) -> "Array":
    """Weight of equal variances in ``(1 - share) * robust + share * equal``.

    The residuals of records may have unequal variances. Robust variances allow for that, but are
    released with noise. The share is noise^2 / (k^2 + noise^2), where k says how far unequal
    variances may move a variance from `equal`: by `unequal` times `equal`, or, where that is more,
    by sqrt(d^2 - (1.96 noise)^2) if `robust` is larger than `equal` by d > 1.96 noise.

    Parameters
    ----------
    robust, equal : ndarray
        Robust variances, and those that equal variances would give.
    noise : ndarray
        Standard deviations of the noise of robust variances.
    unequal : float, default=1.0
        How far unequal variances may move a variance, as a multiple of `equal`.

    Returns
    -------
    ndarray
        Between 0 and 1.
    """
    excess = np.maximum(robust - equal, 0.0)
    limit = USUAL_QUANTILE * noise
    seen = np.sqrt(np.maximum(excess - limit, 0.0)) * np.sqrt(excess + limit)
    moved = np.maximum(unequal * equal, seen)
    return (noise / np.maximum(np.hypot(moved, noise), 1e-300)) ** 2


def shrunk_covariance(
    robust: np.ndarray, equal: np.ndarray, noise: np.ndarray, unequal: float = 1.0
) -> "Array":
    """Robust covariance, of which each variance is shrunk to the equal one by its `noise_share`."""
    share = noise_share(np.diagonal(robust), np.diagonal(equal), noise, unequal)
    of_robust = np.sqrt(1.0 - share)
    of_equal = np.sqrt(share)
    return np.outer(of_robust, of_robust) * robust + np.outer(of_equal, of_equal) * equal


def unknown_at(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half-width where nothing is known of any point."""
    return np.zeros(len(points)), np.full(len(points), inf)


def inside_bounds(
    target: "RecordMap",
    centre: np.ndarray,
    half: float | np.ndarray,
    predicted: np.ndarray,
    limit: float | np.ndarray = 1.0,
) -> ConfidenceInterval:
    """Intervals in the units of y and inside of its bounds, from those in scaled units.

    Every released result has ``interval(points, confidence_level, method)``, which gives a centre
    and a half-width at each point; this is the one way from there to the units of y.

    The function lies within the limits. If an interval leaves them, it ends there with the width
    that it has: none has width zero because both ends were cut. And it contains the prediction,
    which is shrunk otherwise than its centre. Within the limits it only grows by that.

    Parameters
    ----------
    target : RecordMap
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
    low = target.unscale((np.minimum(centre, limit) - half).clip(-limit, limit))
    high = target.unscale((np.maximum(centre, -limit) + half).clip(-limit, limit))
    return ConfidenceInterval(np.minimum(low, predicted), np.maximum(high, predicted))


def certified_by_norm(
    equations: "NormalEquations", points: np.ndarray, theta_bound: Any, confidence_level: float
) -> tuple[np.ndarray, np.ndarray]:
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
    of_gram = event("noise of the Gram matrix", GRAM_PART * failure)
    slack = operator_quantile(equations.gram_scale, len(equations.target), of_gram)

    def half_width(V: np.ndarray, squares: np.ndarray, bias: np.ndarray) -> "Array":
        quadratic = quadratic_forms(V, equations.gram) + slack * squares
        proxy = quadratic.clip(0.0, equations.n * squares) + joined**2 * squares
        return factor * np.sqrt(proxy) + remainder * np.sqrt(squares) + theta_bound * bias

    return _best_on_path(equations, points, half_width)


def _certified_jointly(
    equations: "NormalEquations", points: np.ndarray, theta_bound: Any, failure: float
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals from one bound on |target - design theta*|, targets' noise and privacy together.

    For dependent noises no v is independent of either. The bound is uniform over v, so that the
    interval holds for all x at once.
    """
    # On the event of the norm's bound the reports bound ||theta*|| too, at no further cost.
    failure = event("errors of the reports", failure)
    theta_bound = min(_joint_bound(equations, failure), inf if theta_bound is None else theta_bound)
    if not isfinite(theta_bound):
        return unknown_at(points)
    bound = equations.law.norm_bound(theta_bound, failure)

    def half_width(V: np.ndarray, squares: np.ndarray, bias: np.ndarray) -> "Array":
        return bound * np.sqrt(squares) + theta_bound * bias

    return _best_on_path(equations, points, half_width)


def _joint_bound(equations: "NormalEquations", failure: float) -> float:
    """Upper bound on t = ||theta*|| on the event of `norm_bound` itself; infinite if there is none.

    There t <= ||design^-1 target|| + bound(t) / s, s the smallest singular value of the released
    design. bound(t) / t decreases in t, because the terms of the bound are a part that does not
    depend on theta* and one in proportion to t: no t beyond one that fails can be a solution.
    """
    left, singular, _ = np.linalg.svd(equations.design)
    if not singular[-1] > singular[0] * len(singular) * FLOAT_STEP:
        return inf
    centre = norm_of((equations.target @ left) / singular)

    def step(t: float) -> "Scalar":
        return centre + equations.law.norm_bound(t, failure) / singular[-1]

    # Beyond a norm at which the step is no larger there is no solution; the step from it is one
    # more bound. The norms that are tried are public, so that their bounds are found again.
    for norm in NORMS:
        if (bounded := step(float(norm))) <= norm:
            return bounded
    return inf


def _division(
    equations: "NormalEquations", theta_bound: float, failure: float
) -> tuple[float, float, float]:
    """Sub-Gaussian factor, scale of the noise joined to the targets', quantile of the rest.

    The narrowest of both ways and all ``TARGET_PARTS`` at v'Gv = ||v||^2 n / p; everything that
    enters is public, so that the choice needs no event of its own.
    """
    if equations.exact:
        return sqrt(2.0 * log(2.0 / event("errors of the targets", failure))), 0.0, 0.0
    p = len(equations.target)
    b = equations.target_scale**2
    a = (equations.design_scale * theta_bound) ** 2
    rest = a / 2.0 if equations.symmetric else a  # variance of N_A theta off its direction
    joined = equations.target_scale

    def ways(targets: float, noise: float) -> Iterator[tuple[float, float, float]]:
        factor = sqrt(2.0 * log(2.0 / targets))
        yield factor, 0.0, norm_quantile(b + a, b + rest, p, noise)
        yield factor, joined, norm_quantile(a, rest, p, noise)

    def width(way: tuple[float, float, float]) -> float:
        factor, joined, remainder = way
        return factor * sqrt(equations.n / p + joined**2) + remainder

    parts = [
        split_failure(failure, part, GRAM_PART, 1.0 - GRAM_PART - part)[::2]
        for part in TARGET_PARTS
    ]
    targets, noise = min(parts, key=lambda part: min(map(width, ways(*part))))
    targets = event("errors of the targets", targets)
    return min(ways(targets, event("noise at theta", noise)), key=width)


def asymptotic_interval(
    equations: "NormalEquations",
    points: np.ndarray,
    theta: np.ndarray,
    theta_bound: float | None,
    confidence_level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Normal intervals by the delta method, with plug-in theta and the released residual Gram.

    Exact as n grows, where the design is resolved above its noise. Directions that are not
    resolved are bounded by ``theta_bound`` as in :func:`certified_by_norm`; without one the
    interval is that of the solution itself, and infinite where a direction is not resolved.
    """
    quantile = two_sided_quantile(confidence_level)
    if theta_bound is None:
        return solved_interval(equations, points, confidence_level)

    def half_width(V: np.ndarray, squares: np.ndarray, bias: np.ndarray) -> "Array":
        return quantile * np.sqrt(_variance(equations, V, squares, theta)) + theta_bound * bias

    return _best_on_path(equations, points, half_width)


def solved_interval(
    equations: "NormalEquations", points: np.ndarray, confidence_level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Normal intervals about the solution theta = design^-1 target, at v = design^-T x.

    v has seen the noise of the design that it meets. This is of second order, and where the
    smallest singular value is at least 3.5 of its deviations the coverage stays near the level: of
    one weak direction .95 from five deviations on, whatever its coefficient, and never below .91
    over all of its strengths, what is not resolved counted as covered; of directions that are all
    as weak .95 to .98, up to 60 of them (benchmarks/thinning.py). A v that is independent of the
    noise, by Gaussian thinning, is wider by a third to a multiple there.
    """
    quantile = two_sided_quantile(confidence_level)
    found = equations.across_empty_cells(partial(_stands_out, quantile=quantile))
    equations = found.equations
    in_reach = found.tells(points)
    if not _stands_out(equations, quantile):
        return unknown_at(points)
    inverse = np.linalg.inv(equations.design)
    V = points @ found.vectors @ inverse
    theta = inverse @ equations.target
    variance = _variance(equations, V, quadratic_forms(V), theta)
    half = quantile * np.sqrt(variance + quadratic_forms(V, found.moved))
    return np.where(in_reach, V @ equations.target, 0.0), np.where(in_reach, half, inf)


def _stands_out(equations: "NormalEquations", quantile: float) -> bool:
    """Whether the smallest singular value of a design is far enough above its noise."""
    singular = np.linalg.svd(equations.design, compute_uv=False)
    least = RESOLUTION_ABOVE_QUANTILE + max(USUAL_QUANTILE, quantile)
    if equations.law is not None:  # the norm of noise alone
        least = sqrt(2.0 * len(singular))
    least = max(least * equations.design_scale, singular[0] * len(singular) * FLOAT_STEP)
    smallest = singular[-1]
    if equations.symmetric:  # a noise that turned an eigenvalue negative hides it
        smallest = np.linalg.eigvalsh(equations.design)[0]
    return bool(smallest > least)


def _variance(
    equations: "NormalEquations", V: np.ndarray, squares: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Variance of v'(target - design theta*) to first order, with theta in place of theta*."""
    if equations.law is not None:  # the sandwich has everything
        return quadratic_forms(V, equations.residual_gram)
    variance = _residual_variance(equations, V, squares) + equations.spread(theta) * squares
    if equations.symmetric:
        variance += (equations.design_scale * (V @ theta)) ** 2 / 2.0
    return variance


def _residual_variance(equations: "NormalEquations", V: np.ndarray, squares: np.ndarray) -> "Array":
    """Variance of v' sum e zeta: the released residual Gram, at most the Gram itself (|r| <= 1).

    If it is noisy, the variance that equal variances would give has the weight `noise_share`.
    """
    bound = np.maximum(quadratic_forms(V, equations.gram), 0.0)
    if equations.sampling_gram is None:
        return bound
    robust = quadratic_forms(V, equations.sampling_gram)
    equal = equations.residual_level(trace_of(equations.gram)) * bound
    share = noise_share(robust, equal, equations.residual_scale * squares)
    return np.clip((1.0 - share) * robust + share * equal, 0.0, bound)


def _best_on_path(
    equations: "NormalEquations", points: np.ndarray, half_width: Callable[..., Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Narrowest interval over v = P h(S) R'x for design = P S R', and over v = 0."""
    left, singular, right = np.linalg.svd(equations.design)
    tiny = singular[0] * len(singular) * FLOAT_STEP
    scale = max(equations.design_scale, 1.0)
    centre = np.empty(len(points))
    half = np.empty(len(points))
    for rows in blocks_of(len(points), 2 * points.shape[1]):
        X = points[rows]
        best_half = half_width(np.zeros_like(X), np.zeros(len(X)), lengths_of(X))
        best_centre = np.zeros(len(X))
        rotated = X @ right.T
        for penalty in scale * TIKHONOV_PATH:
            filtered = np.where(
                singular > tiny, singular / (np.maximum(singular, tiny) ** 2 + penalty**2), 0.0
            )
            V = (rotated * filtered) @ left.T
            squares = quadratic_forms(V)
            bias = lengths_of(V @ equations.design - X)
            width = half_width(V, squares, bias)
            better = width < best_half
            best_half[better] = width[better]
            best_centre[better] = (V @ equations.target)[better]
        centre[rows] = best_centre
        half[rows] = best_half
    return centre, half


# If a norm is assumed, sharp intervals are taken from here on, and `certified_by_norm`, which needs
# no resolution, below. It is the largest mean eigenvalue of a design of rows in the unit ball, over
# the norm of its noise. On even designs both are as wide at 30 to 90; at 100 these are 1.2 to 2
# times narrower, and leave room for a smallest eigenvalue of a fiftieth of the mean.
CLEAR = 100.0
# Part of the failure probability that is left to those others then, for points in directions that
# rows hardly have: log(1 / .9) more in the exponent makes these wider by about 1%.
LEFT = 0.1
DISTANCES = np.geomspace(2.0**-12, 2.0, 27)  # public grid of D


# Parts of the failure probability, one for each event: the main part, and that without the noise of
# the design; of |theta*|; the norms of N'v0 and N theta*; |A^-1 N_b|; (v - v0)'N_b; |A^-1 S|; the
# noise of sum e e'; of what was cut; of the residual Gram along v; from it to V, realised and cross
# term; and noises, realised squares and cross term of the variances of |A^-1 S|.
SHARP_EVENTS = {
    "main": 0.64, "bounded": 0.1, "size": 0.02, "norms": 0.06, "moment": 0.015, "follows": 0.03,
    "sums": 0.015, "gram": 0.01, "excess": 0.03, "seen": 0.03, "realised": 0.01, "cross": 0.01,
    "total": 0.01, "weak": 0.01, "squares": 0.005, "whole": 0.005,
}  # fmt: skip


class _Solved(NamedTuple):
    """The solution, and what bounds its error but for a part of the failure probability."""

    inverse: np.ndarray  # A^-1
    theta: np.ndarray
    ratio: float  # k
    noise: float  # s q
    size: float  # |theta*|
    distance: float  # |theta - theta*|
    seen_from: float  # |theta_R - theta*|
    excess: float
    slack: float  # of the noise of sum e e', in any direction
    fits: int  # number of theta_R


def certified_by_equations(
    equations: "NormalEquations",
    points: np.ndarray,
    theta_bound: float | None,
    confidence_level: float,
) -> Any:
    """Finite-sample intervals: at each fixed x, coverage of at least the level for any n.

    Parameters
    ----------
    equations : NormalEquations
    points : ndarray of shape (n_points, p)
    theta_bound : float or None
        Assumed bound on ||theta*||; None assumes none.
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
        Half-widths are infinite where the equations do not bound ||theta*||.
    """
    failure = 1.0 - confidence_level
    joint = equations.law is not None
    if joint or (theta_bound is not None and not _resolvable(equations)):
        return certified_by_norm(equations, points, theta_bound, confidence_level)
    if theta_bound is None or equations.exact:
        return _sharp(equations, points, theta_bound, failure)
    left, failure = split_failure(failure, LEFT, 1.0 - LEFT)
    found = _sharp(equations, points, theta_bound, failure)
    other = certified_by_norm(equations, points, theta_bound, 1.0 - left)
    return np.where(other[1] < found[1], other, found)  # both hold, but for the whole of it


def _resolvable(equations: "NormalEquations") -> bool:
    """Whether the design of rows in the unit ball can stand above its noise, by public numbers.

    Without noise both kinds of intervals hold given the rows, whose rank decides.
    """
    p = len(equations.target)
    if equations.exact:
        return bool(np.linalg.matrix_rank(equations.design, hermitian=equations.symmetric) == p)
    noise = equations.design_scale * sqrt(p if not equations.symmetric else p / 2)
    return equations.n / p > CLEAR * noise


def _sharp(
    equations: "NormalEquations", points: np.ndarray, theta_bound: float | None, failure: float
) -> tuple[np.ndarray, np.ndarray]:
    """Centres and half-widths; infinite where the design does not stand above its noise."""
    parts = shared(failure, SHARP_EVENTS, "sharp: ")
    solved = _solve(equations, inf if theta_bound is None else theta_bound, parts)
    if solved is None:
        return unknown_at(points)
    V = points @ solved.inverse
    squares = quadratic_forms(V)
    lengths = np.sqrt(squares)
    variance = _sharp_variance(equations, V, squares, solved, parts)
    longest = lengths / (1.0 - solved.ratio)  # |v0|
    t, q = main_region(parts.main / 2.0)
    size = solved.size
    scale = equations.target_scale
    along = longest * size
    design = equations.design_scale**2 * along**2
    if equations.symmetric:  # (v0'theta*)^2
        other = np.abs(V @ solved.theta) + lengths * solved.distance + (longest - lengths) * size
        design = (design + equations.design_scale**2 * np.minimum(along, other) ** 2) / 2.0
    noise = (scale * longest) ** 2 + design
    reach = RANGE * lengths / 3.0
    half = np.sqrt(2.0 * t * variance + noise * q**2) + reach * t
    follows = scale * one_sided_quantile(parts.follows / 2.0) + solved.noise * size
    half += solved.ratio * longest * follows
    t, q = main_region(parts.bounded / 2.0)
    bounded = np.sqrt(2.0 * t * variance + (scale * lengths * q) ** 2) + reach * t
    return points @ solved.theta, np.minimum(half, bounded + lengths * solved.noise * size)


def _solve(
    equations: "NormalEquations", theta_bound: float, parts: SimpleNamespace
) -> _Solved | None:
    """Solution and the bounds on its error, or None if it is not resolved."""
    p = len(equations.target)
    left, singular, right = np.linalg.svd(equations.design)
    smallest = float(singular[-1])
    if not smallest > singular[0] * p * FLOAT_STEP:
        return None
    rest = 0.5 if equations.symmetric else 1.0
    noise = equations.design_scale * norm_quantile(1.0, rest, p, parts.norms / 2.0)
    ratio = noise / smallest
    if ratio >= 1.0:
        return None
    inverse = (right.T / singular) @ left.T
    theta = inverse @ equations.target
    length = log(1.0 / parts.moment)
    start = norm_of(theta)
    squares = singular**-2.0
    privacy = squares.sum() + 2.0 * sqrt((squares**2).sum() * length) + 2.0 * squares[-1] * length
    privacy = equations.target_scale * sqrt(privacy)
    excess = equations.residual_excess
    excess = max(excess + one_sided_quantile(parts.excess) * equations.excess_scale, 0.0)
    slack = operator_quantile(equations.gram_scale, p, parts.gram)
    away = [norm_of(theta - np.array(at)) for at in equations.residual_thetas]
    bounds = _SumBounds(equations, inverse, 1.0 / smallest, slack, excess, parts)
    t, q = main_region(parts.size)
    distance = size = inf
    for _ in range(SHARPENINGS):
        noise_norm = bounds.norm(distance + max(away, default=inf)) + privacy
        distance = min(distance, (noise_norm + ratio * start) / (1.0 - ratio))
        along = sqrt(2.0 * t * bounds.weak + (equations.target_scale * q / smallest) ** 2)
        along += RANGE * t / (3.0 * smallest)
        size = min(theta_bound, size, start + distance, (start + along) / (1.0 - ratio))
        distance = min(distance, noise_norm + ratio * size)
    seen_from = distance + max(away, default=inf)
    fits = len(away)
    return _Solved(inverse, theta, ratio, noise, size, distance, seen_from, excess, slack, fits)


class _SumBounds:
    """Bound on |A^-1 S|, from the Gram matrix and from the residual Gram."""

    def __init__(
        self,
        equations: "NormalEquations",
        inverse: np.ndarray,
        longest: float,
        slack: float,
        excess: float,
        parts: SimpleNamespace,
    ) -> None:
        both = inverse.T @ inverse  # of |A^-1 e|^2
        p = len(both)
        self.longest = longest
        self.parts = parts
        self.fits = len(equations.residual_thetas)
        self.total = (both * equations.gram).sum() + slack * trace_of(both)
        self.total = min(max(self.total, 0.0), equations.n * longest**2)
        largest = float(np.linalg.eigvalsh(inverse @ _upper(equations.gram) @ inverse.T)[-1])
        self.largest = self.weak = min(max(largest + slack * longest**2, 0.0), self.total)
        self.seen = self.seen_largest = inf
        if equations.residual_thetas:
            scale = equations.residual_scale
            R = _upper(equations.residual_gram)
            cut = excess * longest**2
            quantile = one_sided_quantile(parts.total) * scale
            self.seen = (both * R).sum() + quantile * norm_of(both)
            self.seen = max(self.seen, 0.0) + cut
            weak = float(np.linalg.eigvalsh(inverse @ R @ inverse.T)[-1])
            weak += operator_quantile(scale, p, parts.weak) * longest**2
            self.seen_largest = max(weak, 0.0) + cut

    def norm(self, distance: float) -> float:
        """Bound on |A^-1 S| if |theta_R - theta*| is at most the distance."""
        size = self.longest**2
        parts = self.parts
        if isfinite(distance) and self.fits:
            cross = float(_cross(size, self.total, distance, parts.whole, self.fits))
            realised = self.seen + 2.0 * cross
            unit = RANGE**2 * size * log(2.0 / parts.squares)
            self.total = min(self.total, expected_sum(realised, unit))
            realised = (sqrt(self.seen_largest) + distance * sqrt(self.largest)) ** 2
            weak = float(expected_sum(realised, unit))
            self.weak = min(self.weak, weak, self.total)
        length = log(1.0 / parts.sums)
        return float(largest_sum(sqrt(self.total), self.weak, RANGE * self.longest, length))


def _sharp_variance(
    equations: "NormalEquations",
    V: np.ndarray,
    squares: np.ndarray,
    solved: _Solved,
    parts: SimpleNamespace,
) -> np.ndarray:
    """Bound on sum (v'e)^2 E zeta^2 at each point."""
    variance = quadratic_forms(V, equations.gram) + solved.slack * squares
    variance = variance.clip(0.0, equations.n * squares)  # E zeta^2 <= 1 and |e| <= 1
    if not equations.residual_thetas:
        return variance
    seen = quadratic_forms(V, equations.residual_gram)
    seen += one_sided_quantile(parts.seen) * equations.residual_scale * squares
    seen = np.maximum(seen, 0.0) + solved.excess * squares
    unit = RANGE**2 * squares * log(1.0 / parts.realised)
    for _ in range(SHARPENINGS):
        cross = _cross(squares, variance, solved.seen_from, parts.cross, solved.fits)
        variance = np.minimum(variance, expected_sum(seen + 2.0 * cross, unit))
    return variance


def _cross(
    size: float | np.ndarray,
    variance: float | np.ndarray,
    distance: float,
    failure: float,
    fits: int = 1,
) -> float | np.ndarray:
    """Bound on -sum a zeta d for 0 <= a <= size with sum a E zeta^2 = variance.

    Each part of pooled sums has its own theta_R, and the means add up: by Cauchy and Schwarz to at
    most the root of their number times that of one.
    """
    if not distance <= DISTANCES[-1]:
        return np.full(np.shape(size), inf)
    reach = float(DISTANCES[np.searchsorted(DISTANCES, distance)])
    length = log(len(DISTANCES) / failure)
    mean = 2.0 * reach * np.sqrt(fits * size * variance)
    return largest_sum(mean, reach**2 * size * variance, RANGE * reach * size, length)


def _upper(matrix: np.ndarray) -> "Array":
    """The symmetric matrix, rounding apart."""
    return (matrix + matrix.T) / 2.0
