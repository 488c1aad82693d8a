"""Certified intervals from first moments that cut nothing: no assumption on the coefficients.

Notation, in means over the n records of the first equation: y = H b* + S + N_y with
S = mean(e w zeta), |zeta| <= 2 and E[zeta | x] = 0 (linearity), H_1 = H + N_1, both noises known
in law and independent of each other. Let v be computed from the Gram matrix of *another* release,
so that it is independent of zeta, N_y and N_1. For any released g, with rest = x - H_1 v,

    v'y + rest'g - x'b* = v'S + v'N_y - v'N_1 b* - rest'(b* - g).

The first three terms have mean zero given the rows: S is a sum of bounded terms (Bernstein), the
others are one Gaussian variable of variance s_y^2 |v|^2 + s_1^2 (|v|^2 |b*|^2 + (v'b*)^2) / 2. The
last is at most |rest| tau for tau >= |b* - g|, and no bound on |b*| is assumed: by
H_1 (b* - g) = y - H_1 g - S - N_y + N_1 b*,

    |b* - g| <= |H_1^-1 (y - H_1 g)| + (|S| + |N_y| + |N_1 b*|) / smallest eigenvalue of H_1,

which is solved for |b* - g| since |b*| <= |g| + |b* - g|. Where it cannot be solved the fit is not
resolved. The location m may depend on the records: b* is then random through m alone, of which
zeta's part in S, N_y, N_1 and v need no independence, because mean(e w) = H c exactly for the c
with psi'c = 1, so that S is the same for every m.

The variance of S is read off the residual Gram of the last Newton step, taken at g with residuals c
cut at R: (w zeta)^2 <= clip(c)^2 - 2 w zeta e'(b* - g) where c is not cut, and |w zeta| <= 2 on the
others, which are counted. The cross term has mean zero but for b*, and is bounded by tau times a
norm (Bousquet). From realised squares to variances by a Chernoff bound for terms in [0, B]:
sqrt(V) <= sqrt(B l / 2) + sqrt(B l / 2 + Q) but for exp(-l).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt

import numpy as np
from scipy import special, stats

RANGE = 2.0  # |zeta| <= 2
# Parts of the failure probability.
MAIN, DIRECTION = 0.82, 0.03
RESIDUAL, MOMENT, DESIGN, COUNT, GRAM, SPREAD = 0.03, 0.02, 0.02, 0.03, 0.03, 0.02
ROUNDS = 6  # of sharpening tau: each is valid, whatever their number
CURVES = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 31)])  # Bernstein's scale over deviations
SHARES = np.linspace(0.0, 1.0, 21)  # of the variance that is the target's


@dataclass(frozen=True, eq=False)
class _Bounds:
    """What holds at once, but for its part of the failure probability."""

    distance: float  # tau
    norm: float  # of b*
    cut: float  # part of the records that may have been cut in the last step


def certified(fit, points, confidence_level):
    """Centre and half-width of intervals for x'b* at fixed points; infinite if not resolved.

    Parameters
    ----------
    fit : NewtonFit
    points : ndarray of shape (n_points, p)
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
    """
    failure = 1.0 - confidence_level
    first, last = fit.first, fit.newton[-1]
    centre, half = points @ fit.b, np.full(len(points), np.inf)
    if not first.whole:
        return centre, half
    bounds = _distance(fit, failure)
    if bounds is None:
        return centre, half
    g = last.point
    values, vectors = np.linalg.eigh(last.gram)
    floor = max(0.5 * last.gram_scale * sqrt(2.0 * len(values)), 1e-14 * values[-1], 1e-300)
    dual = ((points @ vectors) / np.maximum(values, floor)) @ vectors.T
    if fit.same_rows and not last.gram_scale:
        dual = points @ np.linalg.pinv(first.gram)
    rest = points - dual @ first.gram
    squares = np.einsum("ij,ij->i", dual, dual)
    along = np.abs(dual @ g) + np.sqrt(squares) * bounds.distance
    gaussian = first.moment_scale**2 * squares + 0.5 * first.gram_scale**2 * (
        squares * bounds.norm**2 + np.minimum(along, np.sqrt(squares) * bounds.norm) ** 2
    )
    variance = _variance(fit, dual, squares, bounds, failure) / first.n
    scale = RANGE * np.sqrt(squares) / first.n
    main = _quantile(variance, gaussian, scale, MAIN * failure)
    half = main + np.linalg.norm(rest, axis=1) * bounds.distance
    return dual @ first.moment + rest @ g, half


def _distance(fit, failure):
    """Bound on |b* - g| and |b*| from the equations, or None."""
    first, last = fit.first, fit.newton[-1]
    p, n = len(first.moment), first.n
    smallest = float(np.linalg.eigvalsh(first.gram)[0])
    noise = _goe_norm(p, DESIGN * failure) * first.gram_scale  # |N_1 u| for a unit u
    if smallest <= noise or smallest <= 0.0:
        return None
    g = last.point
    start = float(np.linalg.norm(np.linalg.solve(first.gram, first.moment - first.gram @ g)))
    privacy = first.moment_scale * stats.chi.isf(MOMENT * failure, p)
    cut = last.nearly_cut + stats.norm.isf(COUNT * failure) * last.cut_scale
    cut = min(max(cut, 0.0), 1.0)
    length = log(1.0 / (RESIDUAL * failure))

    def solved(total, weak):
        """tau, if mean(|e|^2 w^2 zeta^2) <= total and mean(ee' w^2 zeta^2) <= weak I on average."""
        # |S| by Bousquet's inequality: E|S| <= sqrt(total / n), terms of size RANGE / n.
        root = sqrt(total / n)
        size = root + sqrt(2.0 * length * (weak / n + 2.0 * RANGE * root / n))
        size += RANGE * length / (3.0 * n)
        return (start + (size + privacy + noise * np.linalg.norm(g)) / smallest) / (
            1.0 - noise / smallest
        )

    error = _operator_norm(p, GRAM * failure / 2.0)
    largest = min(float(np.linalg.eigvalsh(first.gram)[-1]) + error * first.gram_scale, 1.0)
    error = sqrt(p) * stats.norm.isf(GRAM * failure / 2.0)
    trace = min(max(float(np.trace(first.gram)) + error * first.gram_scale, largest), 1.0)
    tau = solved(trace, largest)  # E zeta^2 <= 1
    if fit.same_rows:
        quantile = stats.norm.isf(SPREAD * failure / 4.0)
        seen = np.trace(last.residual_gram) + sqrt(p) * quantile * last.residual_scale
        most = float(np.linalg.eigvalsh(last.residual_gram)[-1])
        most += _operator_norm(p, SPREAD * failure / 4.0) * last.residual_scale
        tail = RANGE**2 * log(4.0 * p / (SPREAD * failure)) / n / 2.0
        for _ in range(ROUNDS):
            moved = tau * sqrt(largest)  # root mean square of e'(b* - g)
            total, weak = (
                (sqrt(max(value, 0.0)) + moved) ** 2 + RANGE**2 * cut for value in (seen, most)
            )
            total, weak = ((sqrt(tail) + sqrt(tail + value)) ** 2 for value in (total, weak))
            total = min(total, trace)
            tau = min(tau, solved(total, min(weak, largest, total)))
    return _Bounds(float(tau), float(tau + np.linalg.norm(g)), cut)


def _variance(fit, dual, squares, bounds, failure):
    """Bound on mean((v'e)^2 w^2 E zeta^2) at each point."""
    first, last = fit.first, fit.newton[-1]
    p = len(first.moment)
    noise = _goe_norm(p, DIRECTION * failure) * first.gram_scale
    design = np.einsum("ij,ij->i", dual @ first.gram, dual)
    most = np.clip(design + noise * squares, 0.0, squares)  # E zeta^2 <= 1 and |e| <= 1
    if not fit.same_rows:
        return most
    seen = np.einsum("ij,ij->i", dual @ last.residual_gram, dual)
    seen += stats.norm.isf(GRAM * failure / 4.0) * last.residual_scale * squares
    seen = np.maximum(seen, 0.0) + RANGE**2 * bounds.cut * squares
    n, length = first.n, log(4.0 / (GRAM * failure))
    tail = RANGE**2 * squares * length / n / 2.0
    variance = most
    for _ in range(ROUNDS):
        # 2 tau |mean((v'e)^2 e w zeta)|, by Bousquet's inequality for its norm
        root = np.sqrt(squares * variance / n)
        cross = root + np.sqrt(2.0 * length * root * (root + 2.0 * RANGE * squares / n))
        cross += RANGE * squares * length / (3.0 * n)
        realised = seen + 2.0 * bounds.distance * cross
        variance = np.minimum(variance, (np.sqrt(tail) + np.sqrt(tail + realised)) ** 2)
    return variance


def _operator_norm(p, failure):
    """Upper quantile of the largest eigenvalue of GOE(1): Gordon's mean and concentration."""
    return sqrt(2.0 * p) + sqrt(2.0 * log(1.0 / failure))


def _goe_norm(p, failure):
    """Upper quantile of |N u|, |u| = 1, N GOE(1): chi2_1 + chi2_{p-1} / 2 (Laurent, Massart)."""
    length = log(1.0 / failure)
    return sqrt((p + 1) / 2.0 + 2.0 * sqrt((1.0 + (p - 1) / 4.0) * length) + 2.0 * length)


def _quantile(variance, gaussian, scale, failure):
    """h with P(|X + Z| > h) <= failure: Bernstein terms X of this variance, Z ~ N(0, gaussian).

    In units of the standard deviation of both, h grows with X's share of the variance and with
    Bernstein's scale: both are rounded up to a grid.
    """
    total = np.sqrt(variance + gaussian)
    total = np.maximum(total, 1e-300)
    share = np.clip(np.searchsorted(SHARES, variance / total**2), 0, len(SHARES) - 1)
    curve = np.searchsorted(CURVES, scale / total)
    table = np.append(_table(round(failure, 12)), np.full((1, len(SHARES)), np.inf), axis=0)
    return total * table[curve, share]


@lru_cache(maxsize=16)
def _table(failure):
    """The h of :func:`_quantile` on the grid, rounded up.

    P(X + Z > h) <= E min(1, exp(-(h - Z)_+^2 / (2 (V + B (h - Z)_+ / 3)))): Bernstein for each
    value of Z, which is independent of X given the rows.
    """
    nodes, weights = special.roots_legendre(300)
    z = 8.5 * nodes
    weights = 8.5 * weights * stats.norm.pdf(z)
    missing = 2.0 * stats.norm.sf(8.5)
    table = np.empty((len(CURVES), len(SHARES)))
    largest = np.zeros(len(CURVES))
    for column, share in enumerate(SHARES):
        low, high = np.zeros(len(CURVES)), np.full(len(CURVES), 60.0)
        for _ in range(40):
            middle = (low + high) / 2.0
            gap = np.maximum(middle[:, None] - sqrt(1.0 - share) * z, 0.0)
            spread = 2.0 * (share + CURVES[:, None] * gap / 3.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                exponent = np.where(gap > 0.0, gap**2 / np.maximum(spread, 1e-300), 0.0)
            above = 2.0 * (np.exp(-np.minimum(exponent, 700.0)) @ weights + missing) > failure
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        largest = np.maximum(largest, high)
        table[:, column] = largest * (1.0 + 1e-3)
    return table
