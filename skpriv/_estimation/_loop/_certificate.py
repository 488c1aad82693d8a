"""Certified intervals from the last Newton step: no assumption on the coefficients or the noise.

Notation, in means over the n records of the last step, taken at a released b0 with residuals
c = w (r - m) - e'b0: z = H d + S - Q + N_z for d = b* - b0, S = mean(e w zeta) with |zeta| <= 2 and
E[zeta | x] = 0 (linearity), and Q what the step cuts, the mean of k e sign(c) (|c| - R)_+ for k = 1
plus the slope by which residuals beyond R count for less. H_L = H + N_L; the noises are fresh, of
known law, and independent of each other. With u = H_L^-1 x,

    x'b0 + u'z - x'b* = u'S - u'Q + u'N_z - u'N_L d,

where u depends on the rows and on N_L alone, so that it is independent of zeta and N_z.

*What is cut.* |u'Q| <= k |u| X, with X the mean of |e| (|c| - R)_+, which is released as
X' = X + s N: k |u| X = k |u| (X' - s N), and N joins the Gaussian terms.

*The main part.* u'S is, given the rows and N_L, a sum of terms of mean zero and at most
B = 2 |u| / n, with variance V: P(u'S > sqrt(2 V t) + B t / 3) <= exp(-t) (Bernstein). Given zeta
and all before the last step, u'N_z - k s |u| N is G times one normal variable,
G^2 = (s_z^2 + k^2 s^2) |u|^2.
G depends on zeta, through R and E, but that variable N does not. So P(u'S + G N > sqrt(2 V t +
G^2 q^2) + B t / 3 for any G >= 0) is at most the probability that (t(u'S), N) leaves the region
t <= t0 (1 - (N_+ / q)^2), N <= q, of which that is the support function:
exp(-t0) / 2 + int_0^q phi(a) exp(-t0 (1 - a^2 / q^2)) da + P(N > q).

*The noise of H_L* acts on d, which it is independent of. For a v that is computed from the Gram
matrix of another release, |u'N_L d| <= |v'N_L d| + |u - v| |N_L d|: one normal variable of variance
s_L^2 (|v|^2 |d|^2 + (v'd)^2) / 2, and a norm whose law is known, times a difference of two noises.
v is that of an estimate that is close to it, see `denoised_gram`.

*The distance.* d'H_L d = d'(z - S + Q - N_z) + d'N_L d, where given d the two noises together are
one normal variable of deviation |d| (s_z^2 + s_L^2 |d|^2)^(1/2) at most. So with one-sided q

    d'(H_L - q s_L I) d <= d'z + |d| C,    C = |S| + k X + q s_z,

and d'(H_L - q s_L I) d - d'z >= a |d|^2 - z'(H_L - (q s_L + a) I)^-1 z / 4 for any a below the
smallest eigenvalue of that matrix (complete the square): each a bounds |d|, the least counts. Where
there is none the fit is not resolved. The location m may depend on the records: b* is then random
through m alone, of which zeta's part in S, the noises and u need no independence, because
mean(e w) = H c exactly for the c with psi'c = 1, so that S is the same for every m.

|S| is bounded by Bousquet's inequality, whose two variances, the trace and the largest eigenvalue
of mean(ee' w^2 E zeta^2), are read off the residual Gram of the step. The eigenvector of the latter
depends on the rows alone, so that the noise along it is one normal variable; the same for H.

*Variances* along any such vector v: w^2 zeta^2 <= clip(c)^2 + (2 R + E) (|c| - R)_+ - 2 w zeta e'd,
in the mean v'Gv + (2 R + E) |v|^2 X and a cross term, for the residual Gram G and the largest
excess E. The noises of G and X' are one normal variable together. The cross term has mean zero but
for d, and is bounded by |d| times a norm (Bousquet). From realised squares to variances by a
Chernoff bound, see `expected_sum`.
"""

from dataclasses import dataclass
from math import hypot, log, sqrt

import numpy as np
from scipy import stats

from ..._linalg import RELATIVE_ZERO
from .._tails import (
    RANGE,
    SHARPENINGS,
    expected_sum,
    largest_sum,
    main_region,
    norm_quantile,
    operator_quantile,
    shared,
)
from ._estimate import noise_floor
from ._pool import denoised_gram

SHIFTS = np.linspace(0.02, 0.98, 49)[:, None]  # of the smallest eigenvalue: see `_distance`


# Parts of the failure probability: the main part has as many times that of each of the four that
# are next as these have that of each of the others. A number for each of the 17 would make
# intervals 1% narrower. At a point: v'N_L d (second), the noise of the variance (seen), from
# realised squares to it, its cross term, N_z along a vector, and N_L along u (direction). For all
# points: |S| and the sum of terms |e|^2 e w zeta (sums), what is cut (excess), the noise along d
# (pull), |N_L d| (design), the largest eigenvalue and the trace of H, both of the residual Gram
# (weak, total), the cross term along its eigenvector (tilt), from realised squares to variances.
RATIO = 8.0
STEP_EVENTS = {
    "main": RATIO**2,
    **dict.fromkeys(("second", "seen", "realised", "sums"), RATIO),
    **dict.fromkeys(("along", "direction", "cross", "excess", "pull", "design"), 1.0),
    **dict.fromkeys(("largest", "trace", "total", "weak", "tilt", "variances"), 1.0),
}


@dataclass(frozen=True, eq=False)
class _Bounds:
    """What holds at once, but for its part of the failure probability."""

    moved: float  # |d|
    missed: float  # |S| + |Q| + |N_L d|
    largest: float  # eigenvalue of H


def certified_by_step(fit, points, confidence_level):
    """Centre and half-width of intervals for x'b* at fixed points; infinite if not resolved.

    Parameters
    ----------
    fit : LoopFit
    points : ndarray of shape (n_points, p)
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
    """
    failure = shared(1.0 - confidence_level, STEP_EVENTS, "step: ")
    last = fit.last
    unknown = points @ fit.b, np.full(len(points), np.inf)
    if last.most_excess is None:
        return unknown
    values, vectors = np.linalg.eigh(last.gram)
    if not last.gram_scale:
        vectors = vectors[:, values > RELATIVE_ZERO * values[-1]]
        values = values[values > RELATIVE_ZERO * values[-1]]
    noise = norm_quantile(1.0, 0.5, len(values), failure.design) * last.gram_scale  # |N_L d| / |d|
    bounds = _distance(last, values, vectors, noise, failure)
    if bounds is None:
        return unknown
    inverse = (vectors / values) @ vectors.T
    step, dual = inverse @ last.moment, points @ inverse
    half = _main(last, dual, _variance(last, dual, bounds, failure), failure)
    if last.gram_scale:
        other = points @ _independent_inverse(*fit.first_slope())
        half += _design_noise(last, other, inverse, bounds, failure)
        half += np.linalg.norm(dual - other, axis=1) * noise * bounds.moved
    return points @ (last.point + step), half


def _design_noise(last, other, inverse, bounds, failure):
    """Bound on |v'N_L d| at each v of ``other``."""
    longest = np.linalg.norm(other, axis=1)
    turned = np.linalg.norm(other @ inverse, axis=1)  # v'(d - H_L^-1 z) = v'H_L^-1 (Q - S - ...)
    along = bounds.missed + stats.norm.isf(0.5 * failure.along) * last.moment_scale
    along = np.abs(other @ inverse @ last.moment) + turned * along
    along = np.minimum(along, longest * bounds.moved)
    deviation = last.gram_scale * np.sqrt(((longest * bounds.moved) ** 2 + along**2) / 2.0)
    return stats.norm.isf(0.5 * failure.second) * deviation


def _independent_inverse(gram, scale):
    """Inverse of the Gram matrix of another release, shrunk by its noise: any matrix is valid."""
    values, vectors, _ = denoised_gram(gram, scale)
    floor = max(noise_floor(values, scale), 1e-14 * values.max(), 1e-300)
    return (vectors / np.maximum(values, floor)) @ vectors.T


def _distance(last, values, vectors, noise, failure):
    """Bounds on |b* - b0| and what belongs to it, or None where there are none."""
    p, n = len(last.moment), last.n
    pull = stats.norm.isf(failure.pull)
    smallest = float(values[0]) - pull * last.gram_scale
    if smallest <= 0.0:
        return None
    excess = max(last.excess + stats.norm.isf(failure.excess) * last.excess_scale, 0.0)
    cut, squares = (1.0 + last.fall) * excess, (2.0 * last.limit + last.most_excess) * excess
    shifts = SHIFTS * smallest
    pulls = (vectors.T @ last.moment) ** 2 / (values - pull * last.gram_scale - shifts)
    shifts, pulls = shifts[:, 0], SHIFTS[:, 0] * smallest * pulls.sum(axis=1)

    def size(total, weak):
        """Bound on |S| if mean(|e|^2 w^2 zeta^2) <= total and mean(ee' w^2 zeta^2) <= weak I.

        By Bousquet's inequality: E|S| <= sqrt(total / n), terms of size RANGE / n. It holds for
        mean(|e|^2 e w zeta) too, whose terms are no larger.
        """
        return _sum_norm(total, weak, 1.0, n, log(2.0 / failure.sums))

    def solved(total, weak):
        """Bound on |d|."""
        known = size(total, weak) + cut + pull * last.moment_scale
        return float(((known + np.sqrt(known**2 + pulls)) / (2.0 * shifts)).min())

    largest = float(values[-1]) + stats.norm.isf(failure.largest) * last.gram_scale
    largest = min(largest, 1.0)
    trace = float(values.sum()) + sqrt(p) * stats.norm.isf(failure.trace) * last.gram_scale
    total, weak = min(max(trace, largest), 1.0), largest  # E zeta^2 <= 1
    moved = solved(total, weak)
    seen = float(np.trace(last.residual_gram))
    seen += sqrt(p) * stats.norm.isf(failure.total) * last.residual_scale
    most = float(np.linalg.eigvalsh(last.residual_gram)[-1])
    most += stats.norm.isf(failure.weak) * last.residual_scale
    seen, most = (max(value, 0.0) + squares for value in (seen, most))
    unit = RANGE**2 * log(2.0 / failure.variances) / n
    for _ in range(SHARPENINGS):
        # mean((w zeta)^2 |e|^2) is that of c^2 less 2 d'mean(|e|^2 e w zeta); in any direction,
        # the root of its mean is at most that of c^2 and of (e'd)^2 together
        tilt = 2.0 * moved * _sum_norm(weak, weak, 1.0, n, log(1.0 / failure.tilt))
        weak_seen = min((sqrt(most) + moved * sqrt(largest)) ** 2, most + tilt)
        total = min(total, expected_sum(seen + 2.0 * moved * size(total, weak), unit))
        weak = min(weak, total, expected_sum(weak_seen, unit))
        moved = min(moved, solved(total, weak))
    return _Bounds(moved, size(total, weak) + cut + noise * moved, largest)


def _variance(last, dual, bounds, failure):
    """Bound on mean((v'e)^2 w^2 E zeta^2) at each v of ``dual``."""
    n, squares = last.n, np.einsum("ij,ij->i", dual, dual)
    noise = operator_quantile(last.gram_scale, len(last.moment), failure.direction)  # dual has it
    design = np.einsum("ij,ij->i", dual @ last.gram, dual)
    variance = np.clip(design + noise * squares, 0.0, squares)  # E zeta^2 <= 1 and |e| <= 1
    widths = 2.0 * last.limit + last.most_excess
    scale = hypot(last.residual_scale, widths * last.excess_scale)
    seen = widths * last.excess + stats.norm.isf(failure.seen) * scale
    seen = np.einsum("ij,ij->i", dual @ last.residual_gram, dual) + seen * squares
    seen = np.maximum(seen, 0.0)
    unit = RANGE**2 * squares * log(1.0 / failure.realised) / n
    away = bounds.moved * np.sqrt(bounds.largest * squares)  # root of mean((v'e)^2 (e'd)^2)
    for _ in range(SHARPENINGS):
        least = squares * variance
        cross = _sum_norm(least, least, squares, n, log(1.0 / failure.cross))
        realised = np.minimum(seen + 2.0 * bounds.moved * cross, (np.sqrt(seen) + away) ** 2)
        variance = np.minimum(variance, expected_sum(realised, unit))
    return variance


def _main(last, dual, variance, failure):
    """The main part at each point: sampling, what is cut, and the noise of the moment."""
    (t, q), lost = main_region(0.5 * failure.main), 1.0 + last.fall
    lengths = np.linalg.norm(dual, axis=1)
    gaussian = q**2 * (last.moment_scale**2 + (lost * last.excess_scale) ** 2)
    main = np.sqrt(2.0 * t * variance / last.n + gaussian * lengths**2)
    return main + (RANGE / last.n * t / 3.0 + lost * last.excess) * lengths


def _sum_norm(total, weak, largest, n, length):
    """Norm of a mean of n independent vectors, but for exp(-length): Bousquet's inequality.

    Of mean squared length ``total``, variance ``weak`` in any direction, and RANGE largest long.
    """
    return largest_sum(np.sqrt(total / n), weak / n, RANGE * largest / n, length, last=1.0)
