"""Certified intervals from noisy normal equations, whose width follows the targets' own noise.

Released are b = A0 theta* + S + N_b and A = A0 + N, S = sum e zeta with E[zeta | row] = 0 and
|zeta| <= 2; the noises are Gaussian and independent. For the solution theta = A^-1 b, v = A^-T x
and v0 = A0^-T x,

    x'theta - x'theta* = v'S + v0'(N_b - N theta*) + (v - v0)'(N_b - N theta*),
    v - v0 = -A^-T N'v0.

v0 and theta* do not depend on noise. So the second term is one normal variable, and of the noise in
all directions only the norms of N'v0 and N theta* are needed, two vectors of known law: each is at
most s q times the length of v0 or theta*, and with k = s q / (smallest singular value of A) < 1

    |v0| <= |v| / (1 - k),   |v - v0| <= k |v0|,   |(v - v0)'N theta*| <= k |v0| s q |theta*|.

Given the rows and N, (v - v0)'N_b is normal. (If A0 is singular there is no v0, but a unit vector u
with A'u = N'u; the event of v0 is then one of u, on which k >= 1 and nothing is said.) Gaussian
thinning gives a v that is independent of the noise it meets by more noise; here it is not needed.
Where k is large v'S + v'N_b and |v'N theta*| <= |v| s q |theta*| are less: both bounds are taken,
and the smaller one counts.

*The main part.* Given rows and noises v'S is a sum of terms of mean zero and at most B = 2 |v|,
with variance V = sum (v'e)^2 E zeta^2: P(v'S > sqrt(2 V t) + B t / 3) <= exp(-t) (Bernstein). With
the normal variable v0'(N_b - N theta*) = G z, whose law does not depend on zeta, let t(v'S) be the
level that v'S reaches. Where t <= t0 (1 - (z_+ / q)^2) and z <= q,

    v'S + G z <= sqrt(2 V t0 + G^2 q^2) + B t0 / 3

for any V and G, also those that depend on the noises and on what is released, and the pair leaves
that region with probability at most
exp(-t0) / 2 + int_0^q density(z) exp(-t0 (1 - (z / q)^2)) dz + P(z > q).

*The variance* is read off the released sum of e e'u^2, u = r - clip(phi'theta_R) at a released
theta_R, whose noise is new: v'R v with one normal quantile. What the clip of u cut is released, too
(`ResidualGramQuery`), and counts |v|^2 times. zeta = u - d with |d| <= |phi'(theta* - theta_R)|:

    sum (v'e)^2 zeta^2 <= sum (v'e)^2 u^2 - 2 sum (v'e)^2 zeta d.

The last sum has mean zero but for theta_R, which has seen the targets. Over all theta_R within a
distance D of theta* its largest value has mean at most 2 D |v| sqrt(V) (symmetrisation, and
contraction since d is 1-Lipschitz in phi'theta_R), and exceeds it as Klein and Rio (2005) say; D is
rounded up to a public grid, over which a union bound goes. From realised squares to variances by a
Chernoff bound for terms in [0, B^2]: sqrt(V) <= B sqrt(l / 2) + sqrt(B^2 l / 2 + Q) but for
exp(-l). Without a residual Gram (local reports) V <= sum (v'e)^2, since E zeta^2 <= 1.

*The distance* |theta - theta*| <= |A^-1 S| + |A^-1 N_b| + k |theta*|. The second is a quadratic
form of normal variables (Laurent and Massart 2000), the first the norm of a sum of terms of length
at most 2 |A^-1| (Klein and Rio), with variances that are read off the residual Gram in the same
way. It bounds |theta*| <= |theta| + |theta - theta*|: nothing is assumed. Sharper is the same with
the unit vector u of theta*, which is fixed: u'theta - |theta*| = w'(S + N_b) - w'N theta* for
w = A^-T u, whose first part is one sum and one normal variable given the rows and N. The bounds on
variances and on the distance need each other; rounds sharpen both, and each round is valid.
"""

from math import inf, isfinite, log, sqrt
from typing import NamedTuple

import numpy as np
from scipy import stats

from ._intervals import certified_by_norm, split_failure
from ._tails import RANGE, SHARPENINGS, event, main_region, norm_quantile, operator_quantile

# Where a norm is assumed: mean eigenvalue that the design of rows in the unit ball can have, over
# the norm of its noise, from which these intervals are taken and not those of `_intervals`, which
# need no resolution. On even designs they are as wide at 30 to 90; at 100 these are 1.2 to 2 times
# narrower, and leave room for a smallest eigenvalue of a fiftieth of the mean.
CLEAR = 100.0
# Part of the failure probability that is left to those others then, for points in directions that
# rows hardly have: log(1 / .9) more in the exponent makes these wider by about 1%.
LEFT = 0.1
DISTANCES = np.geomspace(2.0**-12, 2.0, 27)  # public grid of D


class _SharpFailures(NamedTuple):
    """Parts of a failure probability, one for each event.

    ``main``; ``bounded``, the main part without the noise of the design; ``size``, of |theta*|;
    ``norms`` of N'v0 and N theta*; ``moment``, |A^-1 N_b|; ``follows``, (v - v0)'N_b; ``sums``,
    |A^-1 S|; ``gram``, the noise of sum e e'; ``excess``, of what was cut; ``seen``, of the
    residual Gram along v; ``realised`` and ``cross``, from it to V; ``total``, ``weak``,
    ``squares`` and ``whole``: noises, realised squares and cross term of the variances of |A^-1 S|.
    """

    main: float = 0.64
    bounded: float = 0.1
    size: float = 0.02
    norms: float = 0.06
    moment: float = 0.015
    follows: float = 0.03
    sums: float = 0.015
    gram: float = 0.01
    excess: float = 0.03
    seen: float = 0.03
    realised: float = 0.01
    cross: float = 0.01
    total: float = 0.01
    weak: float = 0.01
    squares: float = 0.005
    whole: float = 0.005


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


def certified_by_equations(equations, points, theta_bound, confidence_level):
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


def _resolvable(equations):
    """Whether the design of rows in the unit ball can stand above its noise, by public numbers.

    Without noise both kinds of intervals hold given the rows, whose rank decides.
    """
    p = len(equations.target)
    if equations.exact:
        return np.linalg.matrix_rank(equations.design, hermitian=equations.symmetric) == p
    noise = equations.design_scale * sqrt(p if not equations.symmetric else p / 2)
    return equations.n / p > CLEAR * noise


def _sharp(equations, points, theta_bound, failure):
    """Centres and half-widths; infinite where the design does not stand above its noise."""
    shares = split_failure(failure, *_SharpFailures())
    parts = _SharpFailures(
        *map(event, (f"sharp: {name}" for name in _SharpFailures._fields), shares)
    )
    nothing = np.zeros(len(points)), np.full(len(points), inf)
    solved = _solve(equations, inf if theta_bound is None else theta_bound, parts)
    if solved is None:
        return nothing
    V = points @ solved.inverse
    squares = np.einsum("ij,ij->i", V, V)
    lengths = np.sqrt(squares)
    variance = _variance(equations, V, squares, solved, parts)
    longest = lengths / (1.0 - solved.ratio)  # |v0|
    t, q = main_region(parts.main / 2.0)
    size, scale = solved.size, equations.target_scale
    along = longest * size
    design = equations.design_scale**2 * along**2
    if equations.symmetric:  # (v0'theta*)^2
        other = np.abs(V @ solved.theta) + lengths * solved.distance + (longest - lengths) * size
        design = (design + equations.design_scale**2 * np.minimum(along, other) ** 2) / 2.0
    noise = (scale * longest) ** 2 + design
    half = np.sqrt(2.0 * t * variance + noise * q**2) + RANGE * lengths * t / 3.0
    follows = scale * stats.norm.isf(parts.follows / 2.0) + solved.noise * size
    half += solved.ratio * longest * follows
    t, q = main_region(parts.bounded / 2.0)
    bounded = np.sqrt(2.0 * t * variance + (scale * lengths * q) ** 2) + RANGE * lengths * t / 3.0
    return points @ solved.theta, np.minimum(half, bounded + lengths * solved.noise * size)


def _solve(equations, theta_bound, parts):
    """Solution and the bounds on its error, or None if it is not resolved."""
    p = len(equations.target)
    left, singular, right = np.linalg.svd(equations.design)
    smallest = float(singular[-1])
    if not smallest > singular[0] * p * np.finfo(float).eps:
        return None
    rest = 0.5 if equations.symmetric else 1.0
    noise = equations.design_scale * norm_quantile(1.0, rest, p, parts.norms / 2.0)
    ratio = noise / smallest
    if ratio >= 1.0:
        return None
    inverse = (right.T / singular) @ left.T
    theta = inverse @ equations.target
    length, start = log(1.0 / parts.moment), float(np.linalg.norm(theta))
    squares = singular**-2.0
    privacy = squares.sum() + 2.0 * sqrt((squares**2).sum() * length) + 2.0 * squares[-1] * length
    privacy = equations.target_scale * sqrt(privacy)
    excess = equations.residual_excess
    excess = max(excess + stats.norm.isf(parts.excess) * equations.excess_scale, 0.0)
    slack = operator_quantile(equations.gram_scale, p, parts.gram)
    away = [float(np.linalg.norm(theta - np.array(at))) for at in equations.residual_thetas]
    bounds = _SumBounds(equations, inverse, 1.0 / smallest, slack, excess, parts)
    t, q = main_region(parts.size)
    distance = size = inf
    for _ in range(SHARPENINGS):
        known = bounds.norm(distance + max(away, default=inf)) + privacy
        distance = min(distance, (known + ratio * start) / (1.0 - ratio))
        along = sqrt(2.0 * t * bounds.weak + (equations.target_scale * q / smallest) ** 2)
        along += RANGE * t / (3.0 * smallest)
        size = min(theta_bound, size, start + distance, (start + along) / (1.0 - ratio))
        distance = min(distance, known + ratio * size)
    seen_from = distance + max(away, default=inf)
    fits = len(away)
    return _Solved(inverse, theta, ratio, noise, size, distance, seen_from, excess, slack, fits)


class _SumBounds:
    """Bound on |A^-1 S|, from the Gram matrix and from the residual Gram."""

    def __init__(self, equations, inverse, longest, slack, excess, parts):
        both = inverse.T @ inverse  # of |A^-1 e|^2
        p, self.longest, self.parts = len(both), longest, parts
        self.fits = len(equations.residual_thetas)
        spread = float(np.trace(both))
        self.total = float((both * equations.gram).sum()) + slack * spread
        self.total = min(max(self.total, 0.0), equations.n * longest**2)
        largest = float(np.linalg.eigvalsh(inverse @ _upper(equations.gram) @ inverse.T)[-1])
        self.largest = self.weak = min(max(largest + slack * longest**2, 0.0), self.total)
        self.seen = self.most = inf
        if equations.residual_thetas:
            scale, R = equations.residual_scale, _upper(equations.residual_gram)
            cut = excess * longest**2
            quantile = stats.norm.isf(parts.total) * scale
            self.seen = float((both * R).sum()) + quantile * float(np.linalg.norm(both))
            self.seen = max(self.seen, 0.0) + cut
            most = float(np.linalg.eigvalsh(inverse @ R @ inverse.T)[-1])
            most += operator_quantile(scale, p, parts.weak) * longest**2
            self.most = max(most, 0.0) + cut

    def norm(self, distance):
        """Bound on |A^-1 S| if |theta_R - theta*| is at most the distance."""
        size, parts = self.longest**2, self.parts
        if isfinite(distance):
            cross = float(_cross(size, self.total, distance, parts.whole, self.fits))
            realised = self.seen + 2.0 * cross
            self.total = min(self.total, float(_expected(size, realised, parts.squares / 2.0)))
            realised = (sqrt(self.most) + distance * sqrt(self.largest)) ** 2
            weak = float(_expected(size, realised, parts.squares / 2.0))
            self.weak = min(self.weak, weak, self.total)
        length, root, term = log(1.0 / parts.sums), sqrt(self.total), RANGE * self.longest
        deviation = sqrt(2.0 * length * (self.weak + 2.0 * term * root))
        return root + deviation + 2.0 * term * length / 3.0


def _variance(equations, V, squares, solved, parts):
    """Bound on sum (v'e)^2 E zeta^2 at each point."""
    variance = np.einsum("ij,ij->i", V @ equations.gram, V) + solved.slack * squares
    variance = np.clip(variance, 0.0, equations.n * squares)  # E zeta^2 <= 1 and |e| <= 1
    if not equations.residual_thetas:
        return variance
    seen = np.einsum("ij,ij->i", V @ equations.residual_gram, V)
    seen += stats.norm.isf(parts.seen) * equations.residual_scale * squares
    seen = np.maximum(seen, 0.0) + solved.excess * squares
    for _ in range(SHARPENINGS):
        cross = _cross(squares, variance, solved.seen_from, parts.cross, solved.fits)
        variance = np.minimum(variance, _expected(squares, seen + 2.0 * cross, parts.realised))
    return variance


def _cross(size, variance, distance, failure, fits=1):
    """Bound on -sum a zeta d for 0 <= a <= size with sum a E zeta^2 = variance.

    Of pooled sums each part has its own theta_R, and the means add up: by Cauchy and Schwarz to at
    most the root of their number times that of one.
    """
    reach = float(DISTANCES[np.searchsorted(DISTANCES, distance)]) if distance <= 2.0 else inf
    if not isfinite(reach):
        return np.full(np.shape(size), inf)
    length = log(len(DISTANCES) / failure)
    term = RANGE * reach * size
    mean = 2.0 * reach * np.sqrt(fits * size * variance)
    weak = reach**2 * size * variance
    return mean + np.sqrt(2.0 * length * (weak + 2.0 * term * mean)) + 2.0 * term * length / 3.0


def _expected(size, realised, failure):
    """Bound on an expected sum of squares, each at most 4 size, from the sum itself."""
    tail = RANGE**2 * size * log(1.0 / failure) / 2.0
    return (np.sqrt(tail) + np.sqrt(tail + realised)) ** 2


def _upper(matrix):
    """The symmetric matrix, rounding apart."""
    return (matrix + matrix.T) / 2.0
