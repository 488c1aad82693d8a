"""Certified intervals of a line from its last Newton step.

They assume nothing of the coefficients or the noise. They are derived in
docs/mathematics/linear_regression.md, whose letters are used here.
"""

from math import hypot, log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from ..._linalg import RELATIVE_ZERO, lengths_of, quadratic_forms, trace_of
from .._intervals import (
    RANGE,
    SHARPENINGS,
    expected_sum,
    largest_sum,
    main_region,
    norm_quantile,
    operator_quantile,
    shared,
)
from .._levels import one_sided_quantile

if TYPE_CHECKING:
    from types import SimpleNamespace
    from ..._contracts import Array
    from ._score import ScoreEquation

SHIFTS = np.linspace(0.02, 0.98, 49)[:, None]  # of the smallest eigenvalue: see `_distance`


# Weights by which the failure probability is divided among the events of a certified interval. One
# for each of the 15 by itself would make intervals 1% narrower. Events at a point: the noise of the
# variance (seen), from realised squares to it (realised), its cross term (cross), and N_L along u
# (direction). Events for all points: |S| and
# the sum of terms |e|^2 e w zeta (sums), what is cut (excess), the noise along d (pull), and |N_L
# d| (design). For H, and for the residual Gram, the largest eigenvalue and the trace (largest,
# trace; weak, total). The cross term along the eigenvector of the latter (tilt), and from realised
# squares to variances (variances).
STEP_EVENTS = {
    "main": 64.0,
    **dict.fromkeys(("seen", "realised", "sums"), 8.0),
    **dict.fromkeys(("direction", "cross", "excess", "pull", "design"), 1.0),
    **dict.fromkeys(("largest", "trace", "total", "weak", "tilt", "variances"), 1.0),
}


def certified_by_step(
    last: "ScoreEquation", b: np.ndarray, points: np.ndarray, confidence_level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Centre and half-width of intervals for x'b* at fixed points; infinite if not resolved.

    Parameters
    ----------
    last : ScoreEquation
        The last equation of a fit.
    b : ndarray of shape (p,)
        The fit.
    points : ndarray of shape (n_points, p)
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
    """
    failure = shared(1.0 - confidence_level, STEP_EVENTS, "step: ")
    unknown = points @ b, np.full(len(points), np.inf)
    if last.most_excess is None:
        return unknown
    values, vectors = np.linalg.eigh(last.gram)
    if not last.gram_scale:
        seen = values > RELATIVE_ZERO * values[-1]
        vectors = vectors[:, seen]
        values = values[seen]
    moved = _distance(last, values, vectors, failure)
    if moved is None:
        return unknown
    inverse = (vectors / values) @ vectors.T
    step = inverse @ last.moment
    dual = points @ inverse
    half = _main(last, dual, _variance(last, dual, moved, failure), failure)
    noise = norm_quantile(1.0, 0.5, len(values), failure.design) * last.gram_scale  # |N_L d| / |d|
    half += lengths_of(dual) * noise * moved
    return points @ (last.point + step), half


def _distance(
    last: "ScoreEquation",
    values: np.ndarray,
    vectors: np.ndarray,
    failure: "SimpleNamespace",
) -> float | None:
    """Bound on |b* - b0|, or None where there is none."""
    p = len(last.moment)
    n = last.n
    pull = one_sided_quantile(failure.pull)
    smallest = values[0] - pull * last.gram_scale
    if smallest <= 0.0:
        return None
    excess = max(last.excess + one_sided_quantile(failure.excess) * last.excess_scale, 0.0)
    cut = (1.0 + last.fall) * excess
    squares = (2.0 * last.limit + last.most_excess) * excess
    shifts = SHIFTS * smallest
    pulls = (vectors.T @ last.moment) ** 2 / (values - pull * last.gram_scale - shifts)
    shifts = shifts[:, 0]
    pulls = SHIFTS[:, 0] * smallest * pulls.sum(axis=1)

    def size(total: float, weak: float) -> Any:
        """Bound on |S| if mean(|e|^2 w^2 zeta^2) <= total and mean(ee' w^2 zeta^2) <= weak I.

        By Bousquet's inequality: E|S| <= sqrt(total / n), terms of size RANGE / n. It holds for
        mean(|e|^2 e w zeta) too, whose terms are no larger.
        """
        return _sum_norm(total, weak, 1.0, n, log(2.0 / failure.sums))

    def solved(total: float, weak: float) -> float:
        """Bound on |d|."""
        noise_norm = size(total, weak) + cut + pull * last.moment_scale
        return float(((noise_norm + np.sqrt(noise_norm**2 + pulls)) / (2.0 * shifts)).min())

    largest = values[-1] + one_sided_quantile(failure.largest) * last.gram_scale
    largest = min(largest, 1.0)
    trace = values.sum() + sqrt(p) * one_sided_quantile(failure.trace) * last.gram_scale
    total = min(max(trace, largest), 1.0)  # E zeta^2 <= 1
    weak = largest
    moved = solved(total, weak)
    residual_trace = trace_of(last.residual_gram)
    residual_trace += sqrt(p) * one_sided_quantile(failure.total) * last.residual_scale
    residual_largest = float(np.linalg.eigvalsh(last.residual_gram)[-1])
    residual_largest += one_sided_quantile(failure.weak) * last.residual_scale
    residual_trace = max(residual_trace, 0.0) + squares
    residual_largest = max(residual_largest, 0.0) + squares
    unit = RANGE**2 * log(2.0 / failure.variances) / n
    for _ in range(SHARPENINGS):
        # mean((w zeta)^2 |e|^2) is that of c^2 less 2 d'mean(|e|^2 e w zeta), in any direction, too
        tilt = 2.0 * moved * _sum_norm(weak, weak, 1.0, n, log(1.0 / failure.tilt))
        total = min(total, expected_sum(residual_trace + 2.0 * moved * size(total, weak), unit))
        weak = min(weak, total, expected_sum(residual_largest + tilt, unit))
        moved = min(moved, solved(total, weak))
    return moved


def _variance(
    last: "ScoreEquation",
    dual: np.ndarray,
    moved: float,
    failure: "SimpleNamespace",
) -> np.ndarray:
    """Bound on mean((v'e)^2 w^2 E zeta^2) at each v of ``dual``."""
    n = last.n
    squares = quadratic_forms(dual)
    noise = operator_quantile(last.gram_scale, len(last.moment), failure.direction)  # dual has it
    design = quadratic_forms(dual, last.gram)
    variance = (design + noise * squares).clip(0.0, squares)  # E zeta^2 <= 1 and |e| <= 1
    widths = 2.0 * last.limit + last.most_excess
    scale = hypot(last.residual_scale, widths * last.excess_scale)
    seen = widths * last.excess + one_sided_quantile(failure.seen) * scale
    seen = quadratic_forms(dual, last.residual_gram) + seen * squares
    seen = np.maximum(seen, 0.0)
    unit = RANGE**2 * squares * log(1.0 / failure.realised) / n
    for _ in range(SHARPENINGS):
        least = squares * variance
        cross = _sum_norm(least, least, squares, n, log(1.0 / failure.cross))
        variance = np.minimum(variance, expected_sum(seen + 2.0 * moved * cross, unit))
    return variance


def _main(
    last: "ScoreEquation",
    dual: np.ndarray,
    variance: np.ndarray,
    failure: "SimpleNamespace",
) -> "Array":
    """The main part at each point: sampling, what is cut, and the noise of the moment."""
    t, q = main_region(0.5 * failure.main)
    lost = 1.0 + last.fall
    lengths = lengths_of(dual)
    gaussian = q**2 * (last.moment_scale**2 + (lost * last.excess_scale) ** 2)
    main = np.sqrt(2.0 * t * variance / last.n + gaussian * lengths**2)
    return main + (RANGE / last.n * t / 3.0 + lost * last.excess) * lengths


def _sum_norm(
    total: Any,
    weak: Any,
    largest: Any,
    n: float,
    length: float,
) -> Any:
    """Norm of a mean of n independent vectors, but for exp(-length): Bousquet's inequality.

    Of mean squared length ``total``, variance ``weak`` in any direction, and RANGE largest long.
    """
    return largest_sum(np.sqrt(total / n), weak / n, RANGE * largest / n, length, last=1.0)
