"""Certified intervals from the last Newton step: no assumption on the coefficients or the noise.

Notation, in means over the n records of the last step, taken at a released b0 with residuals
c = w (r - m) - e'b0 clipped at R: z = H d + S - Q + N_z for d = b* - b0, S = mean(e w zeta) with
|zeta| <= 2 and E[zeta | x] = 0 (linearity), and Q = mean(e (c - clip(c))) what is cut. H_L = H +
N_L; the noises are fresh, of known law, and independent of each other. With u = H_L^-1 x,

    x'b0 + u'z - x'b* = u'S - u'Q + u'N_z - u'N_L d,

where u depends on the rows and on N_L alone, so that it is independent of zeta and N_z.

*What is cut.* |u'Q| <= |u| X, with X the mean of (|c| - R)_+, and X is released in two ways: itself
with noise, and as the part of the records beyond .75 R, which is at least the part that is cut,
times the largest excess E of a target and a row inside of their bounds. Both are X' = X + s N at
least, with a noise N of known scale, so that |u| X <= |u| (X' - s N): N joins the Gaussian terms.

*The main part.* u'S is, given the rows and N_L, a sum of terms of mean zero and at most
B = 2 |u| / n, with variance V: P(u'S > sqrt(2 V t) + B t / 3) <= exp(-t) (Bernstein). Given zeta
and all before the last step, u'N_z - s |u| N is G times one normal variable,
G^2 = (s_z^2 + s^2) |u|^2.
G depends on zeta, through R and E, but that variable N does not. So P(u'S + G N > sqrt(2 V t +
G^2 q^2) + B t / 3 for any G >= 0) is at most the probability that (t(u'S), N) leaves the region
t <= t0 (1 - (N_+ / q)^2), N <= q, of which that is the support function:
exp(-t0) / 2 + int_0^q phi(a) exp(-t0 (1 - a^2 / q^2)) da + P(N > q).

*The noise of H_L* acts on d, which it is independent of. For a v that is computed from the Gram
matrix of another release, |u'N_L d| <= |v'N_L d| + |u - v| |N_L d|: one normal variable of variance
s_L^2 (|v|^2 |d|^2 + (v'd)^2) / 2, and a norm whose law is known, times a difference of two noises.

*The distance.* With g = b0 + H_L^-1 z, H_L (b* - g) = Q - S - N_z + N_L d, so that

    |b* - g| <= (|S| + X + |N_z| + |N_L d|) / smallest eigenvalue of H_L,
    |d| <= |g - b0| + |b* - g|,

which is solved for |d|. Where it cannot be solved the fit is not resolved. The location m may
depend on the records: b* is then random through m alone, of which zeta's part in S, the noises and
u need no independence, because mean(e w) = H c exactly for the c with psi'c = 1, so that S is the
same for every m.

*The variance of S* is read off the residual Gram of the step, of clipped residuals:
(w zeta)^2 <= clip(c)^2 + (2 R + E) (|c| - R)_+ - 2 w zeta e'd. The cross term has mean zero but for
d, and is bounded by |d| times a norm (Bousquet). From realised squares to variances by a Chernoff
bound for terms in [0, B]: sqrt(V) <= sqrt(B l / 2) + sqrt(B l / 2 + Q) but for exp(-l).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from ._intervals import split_failure

RANGE = 2.0  # |zeta| <= 2
ROUNDS = 6  # of sharpening tau: each is valid, whatever their number
NOISE_PART = 0.25  # of the main part's failure, for the noise beyond q
FLOOR = 0.5  # of the noise of the Gram matrix that v comes from


class _Failures(NamedTuple):
    """Parts of a failure probability: one for each event, and all are named here.

    Of the distance: ``excess``, what is cut (from all the answers about it); ``sums``, |S| and the
    sum of terms |e|^2 e w zeta; ``moment`` and ``design``, the norms of N_z and N_L d; ``largest``
    and ``trace``, of H; ``total`` and ``weak``, noises of the trace and of the largest eigenvalue
    of the residual Gram; ``variances``, from realised squares to variances, for both of these.
    At a point: ``main``; ``second``, v'N_L d; ``direction``, N_L along v; ``seen``, the noise of
    the residual Gram along v; ``realised``, from realised squares to V; ``cross``, its cross term.
    """

    main: float
    second: float
    direction: float
    sums: float
    moment: float
    design: float
    excess: float
    largest: float
    trace: float
    seen: float
    realised: float
    cross: float
    total: float
    weak: float
    variances: float


WEIGHTS = _Failures(
    main=0.74, second=0.06, direction=0.01, sums=0.02, moment=0.02, design=0.02, excess=0.04,
    largest=0.014, trace=0.014, seen=0.014, realised=0.014, cross=0.014,
    total=0.005, weak=0.005, variances=0.01,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Bounds:
    """What holds at once, but for its part of the failure probability."""

    distance: float  # |g - b*|
    moved: float  # |b* - b0|
    squares: float  # mean of c^2 - clip(c)^2
    largest: float  # eigenvalue of H


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
    failure = _Failures(*split_failure(1.0 - confidence_level, *WEIGHTS))
    first, last = fit.first, fit.newton[-1]
    centre, half = points @ fit.b, np.full(len(points), np.inf)
    if last.excesses is None:
        return centre, half
    smallest = float(np.linalg.eigvalsh(last.gram)[0])
    if smallest <= 0.0 and last.gram_scale:
        return centre, half
    inverse = np.linalg.pinv(last.gram, hermitian=True)
    noise = _goe_norm(len(inverse), failure.design) * last.gram_scale  # |N_L d| / |d|
    step = inverse @ last.moment
    bounds = _distance(last, step, smallest, noise, failure)
    if bounds is None:
        return centre, half
    dual = points @ inverse
    squares = np.einsum("ij,ij->i", dual, dual)
    lengths = np.sqrt(squares)
    variance = _variance(last, dual, squares, bounds, failure) / last.n
    t, q = _region(0.5 * failure.main / len(last.excesses))
    for excess, scale in last.excesses:
        gaussian = (last.moment_scale**2 + scale**2) * squares
        main = np.sqrt(2.0 * t * variance + gaussian * q**2) + RANGE * lengths / last.n * t / 3.0
        half = np.minimum(half, main + lengths * max(excess, -scale))
    if last.gram_scale:
        values, vectors = np.linalg.eigh(first.gram)
        floor = max(FLOOR * first.gram_scale * sqrt(2.0 * len(values)), 1e-14 * values[-1], 1e-300)
        other = ((points @ vectors) / np.maximum(values, floor)) @ vectors.T
        longest = np.linalg.norm(other, axis=1)
        along = np.minimum(np.abs(other @ step) + longest * bounds.distance, longest * bounds.moved)
        design = last.gram_scale * np.sqrt(((longest * bounds.moved) ** 2 + along**2) / 2.0)
        half += stats.norm.isf(0.5 * failure.second) * design
        half += np.linalg.norm(dual - other, axis=1) * noise * bounds.moved
    return points @ (last.point + step), half


def _distance(last, step, smallest, noise, failure):
    """Bound on |g - b*| and |b* - b0| from the equation, and on what is cut; or None."""
    p, n = len(step), last.n
    if smallest <= noise and last.gram_scale:
        return None
    away = float(np.linalg.norm(step))
    privacy = last.moment_scale * stats.chi.isf(failure.moment, p)
    quantile = stats.norm.isf(failure.excess / len(last.excesses))
    excess = max(min(x + quantile * scale for x, scale in last.excesses), 0.0)
    widths = 2.0 * last.limit + last.most_excess
    length = log(2.0 / failure.sums)

    def size(total, weak):
        """Bound on |S| if mean(|e|^2 w^2 zeta^2) <= total and mean(ee' w^2 zeta^2) <= weak I.

        By Bousquet's inequality: E|S| <= sqrt(total / n), terms of size RANGE / n. It holds for
        mean(|e|^2 e w zeta) too, whose terms are no larger.
        """
        root = sqrt(total / n)
        deviation = sqrt(2.0 * length * (weak / n + 2.0 * RANGE * root / n))
        return root + deviation + RANGE * length / (3.0 * n)

    def solved(total, weak):
        """Bound on |g - b*|."""
        known = size(total, weak) + excess + privacy
        return (known + noise * away) / (smallest - noise) if last.gram_scale else 0.0

    error = _operator_norm(p, failure.largest)
    largest = min(float(np.linalg.eigvalsh(last.gram)[-1]) + error * last.gram_scale, 1.0)
    error = sqrt(p) * stats.norm.isf(failure.trace)
    trace = min(max(float(np.trace(last.gram)) + error * last.gram_scale, largest), 1.0)
    total, weak = trace, largest  # E zeta^2 <= 1
    tau = solved(total, weak)
    seen = np.trace(last.residual_gram)
    seen += sqrt(p) * stats.norm.isf(failure.total) * last.residual_scale
    most = float(np.linalg.eigvalsh(last.residual_gram)[-1])
    most += _operator_norm(p, failure.weak) * last.residual_scale
    seen, most = (max(value, 0.0) + widths * excess for value in (seen, most))
    tail = RANGE**2 * log(2.0 * p / failure.variances) / n / 2.0
    for _ in range(ROUNDS):
        moved = tau + away
        # mean((w zeta)^2 |e|^2) is that of c^2 less 2 d'mean(|e|^2 e w zeta); in any direction,
        # the root of its mean is at most that of c^2 and of (e'd)^2 together
        trace_seen = seen + 2.0 * moved * size(total, weak)
        weak_seen = (sqrt(most) + moved * sqrt(largest)) ** 2
        total = min(total, (sqrt(tail) + sqrt(tail + trace_seen)) ** 2)
        weak = min(weak, total, (sqrt(tail) + sqrt(tail + weak_seen)) ** 2)
        tau = min(tau, solved(total, weak))
    return _Bounds(float(tau), float(tau + away), widths * excess, largest)


def _variance(last, dual, squares, bounds, failure):
    """Bound on mean((v'e)^2 w^2 E zeta^2) at each point."""
    p = len(last.moment)
    noise = _operator_norm(p, failure.direction) * last.gram_scale  # dual depends on it
    design = np.einsum("ij,ij->i", dual @ last.gram, dual)
    most = np.clip(design + noise * squares, 0.0, squares)  # E zeta^2 <= 1 and |e| <= 1
    seen = np.einsum("ij,ij->i", dual @ last.residual_gram, dual)
    seen += stats.norm.isf(failure.seen) * last.residual_scale * squares
    seen = np.maximum(seen, 0.0) + bounds.squares * squares
    n, length = last.n, log(1.0 / failure.cross)
    tail = RANGE**2 * squares * log(1.0 / failure.realised) / n / 2.0
    variance = most
    for _ in range(ROUNDS):
        # 2 |d| |mean((v'e)^2 e w zeta)|, by Bousquet's inequality for its norm
        root = np.sqrt(squares * variance / n)
        cross = root + np.sqrt(2.0 * length * root * (root + 2.0 * RANGE * squares / n))
        cross += RANGE * squares * length / (3.0 * n)
        realised = seen + 2.0 * bounds.moved * cross
        away = bounds.moved * np.sqrt(bounds.largest * squares)  # root of mean((v'e)^2 (e'd)^2)
        realised = np.minimum(realised, (np.sqrt(seen) + away) ** 2)
        variance = np.minimum(variance, (np.sqrt(tail) + np.sqrt(tail + realised)) ** 2)
    return variance


def _operator_norm(p, failure):
    """Upper quantile of the largest eigenvalue of GOE(1): Gordon's mean and concentration."""
    return sqrt(2.0 * p) + sqrt(2.0 * log(1.0 / failure))


def _goe_norm(p, failure):
    """Upper quantile of |N u|, |u| = 1, N GOE(1): chi2_1 + chi2_{p-1} / 2 (Laurent, Massart)."""
    length = log(1.0 / failure)
    return sqrt((p + 1) / 2.0 + 2.0 * sqrt((1.0 + (p - 1) / 4.0) * length) + 2.0 * length)


@lru_cache(maxsize=64)
def _region(failure):
    """(t0, q) of the region that the main part leaves with this probability: see above."""
    q = float(stats.norm.isf(NOISE_PART * failure))
    nodes, weights = special.roots_legendre(60)
    a = 0.5 * q * (nodes + 1.0)
    density = 0.5 * q * weights * stats.norm.pdf(a)

    def excess(t):
        left = 0.5 * np.exp(-t) + density @ np.exp(-t * (1.0 - (a / q) ** 2))
        return left - (1.0 - NOISE_PART) * failure

    return float(optimize.brentq(excess, 0.0, 100.0)) * (1.0 + 1e-9), q
