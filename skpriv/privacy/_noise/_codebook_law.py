"""Laws of the codebook channel: its moments, the best code for a use, and sums of reports."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, log, sqrt

import numpy as np
from scipy import special

from .._accounting._cost import Cost
from ._codebook import index_weights

NODES = 1200
SPREAD = 9.0  # of the coordinate of a uniform direction, in its standard deviations
TYPICAL_NORM = 0.5  # of theta*, public: the code is chosen for the noise of N_b - N_A theta*


@dataclass(frozen=True)
class Codebook:
    """One report a user: the index of a public direction about a secret unit vector v.

    With rank r uniform in 1..m with probability P, else in m+1..K, the direction of the index is
    t v + sqrt(1 - t^2) w: (1 + t) / 2 is the Beta((D-1)/2, (D-1)/2) quantile of a
    Beta(K + 1 - r, r) variable, and w is uniform on the unit sphere orthogonal to v, independent
    of t. All moments below follow from this law; see docs/codebook.md.

    Parameters
    ----------
    size : int >= 2
        Length D of the vectors.
    epsilon : float
    count, nearest : int
        K directions, of which the m nearest are preferred; m <= K / 2.

    Attributes
    ----------
    probability : float
        P, that the reported direction is one of the m nearest: m a / (m a + (K - m) b).
    mean : float
        c1 = E t: direction / c1 is unbiased for v.
    contrast : float
        c2: (f f' - I / D) / c2 + I / D is unbiased for v v', f the direction.
    """

    size: int
    epsilon: float
    count: int
    nearest: int

    def __post_init__(self):
        if self.size < 2 or not 1 <= 2 * self.nearest <= self.count:
            raise ValueError(
                f"a codebook needs size >= 2 and 1 <= nearest <= count / 2, got {self}."
            )

    @cached_property
    def probability(self):
        """Probability P of the m nearest together."""
        near, far = index_weights(self.epsilon)
        inside = self.nearest * near
        return inside / (inside + (self.count - self.nearest) * far)

    @cached_property
    def gain(self):
        """(P - q) / (1 - q), q = m / K: the part of the m nearest beyond a uniform direction."""
        near, far = index_weights(self.epsilon)
        inside, outside = self.nearest * near, (self.count - self.nearest) * far
        return self.nearest * (near - far) / (inside + outside)

    @cached_property
    def _near(self):
        """Nodes t, their weights for a uniform direction, and for one of the m nearest."""
        t, uniform, below = _coordinate(self.size)
        # I(t) = P(a direction at t is among the m nearest of K)
        among = special.betainc(self.count - self.nearest, self.nearest, below)
        return t, uniform, uniform * among * (self.count / self.nearest)

    def moment(self, order):
        """E t^order, for orders 1 to 4: uniform directions have 0, 1 / D, 0, 3 / (D (D + 2))."""
        D = self.size
        uniform = (0.0, 1.0 / D, 0.0, 3.0 / (D * (D + 2.0)))[order - 1]
        t, _, near = self._near
        return (1.0 - self.gain) * uniform + self.gain * float(near @ t**order)

    @cached_property
    def mean(self):
        """c1 = E t."""
        return self.moment(1)

    @cached_property
    def contrast(self):
        """c2 = (D E t^2 - 1) / (D - 1): E f f' = c2 v v' + (1 - c2) I / D."""
        D = self.size
        t, _, near = self._near
        return self.gain * (float(near @ t**2) - 1.0 / D) * D / (D - 1.0)

    @property
    def along(self):
        """Variance of direction / c1 along v."""
        return self.moment(2) / self.mean**2 - 1.0

    @property
    def across(self):
        """Variance of direction / c1 in each direction orthogonal to v."""
        return (1.0 - self.moment(2)) / ((self.size - 1.0) * self.mean**2)

    @cached_property
    def proxy_along(self):
        """Sub-Gaussian variance proxy of t / c1 - 1, on a grid of exponents."""
        t, uniform, near = self._near
        law = (1.0 - self.gain) * uniform + self.gain * near
        x = t / self.mean - 1.0
        steps = np.geomspace(1e-2, 300.0, 400)
        exponents = np.concatenate([-steps, steps])[:, None]
        largest = (exponents * x).max(axis=1, keepdims=True)
        logs = np.log(np.exp(exponents * x - largest) @ law) + largest[:, 0]
        return float((2.0 * logs / exponents[:, 0] ** 2).max()) * (1.0 + 1e-3)

    @property
    def proxy_across(self):
        """Sub-Gaussian variance proxy across v: w has smaller moments than N(0, I / (D - 1))."""
        return 1.0 / ((self.size - 1.0) * self.mean**2)

    def noise(self, use="moments"):
        """Public figure of merit of a code: the mean variance of a coordinate, for one user.

        "vector" is for direction / c1; "moments" for N_b - N_A theta* of lifted reports, theta* of
        norm ``TYPICAL_NORM``; "square" for the estimate of v v'.
        """
        D = self.size
        if self.mean <= 0.0:
            return inf  # epsilon < 2^-40
        vector = (1.0 / self.mean**2 - 1.0) / D
        if use == "vector":
            return vector
        if self.contrast <= 0.0:
            return inf
        entries = D * (D + 1.0) / 2.0 - 1.0
        square = (1.0 - 1.0 / D) * (1.0 / self.contrast**2 - 1.0) / entries
        if use == "square":
            return square
        return vector + TYPICAL_NORM**2 / 2.0 * D / (D - 1.0) * square


@lru_cache(maxsize=256)
def best_codebook(size, epsilon, use="moments"):
    """Code of the smallest noise for a use, from public numbers alone.

    K = 64 directions up to epsilon 2, 256 up to 4, 1024 above are within 4% of the best possible
    (that of PrivUnit) for vectors; m is then the best.

    Parameters
    ----------
    size : int
    epsilon : float
    use : {"vector", "moments", "square"}

    Returns
    -------
    Codebook
    """
    count = 64 if epsilon <= 2.0 else 256 if epsilon <= 4.0 else 1024

    def noise(nearest):
        return Codebook(size, epsilon, count, nearest).noise(use)

    coarse = sorted({max(1, round(m)) for m in np.geomspace(1.0, count / 2.0, 40)})
    best = min(coarse, key=noise)
    near = range(max(1, int(0.9 * best)), min(count // 2, int(1.1 * best) + 1) + 1)
    return Codebook(size, epsilon, count, min(near, key=noise))


@lru_cache(maxsize=64)
def _coordinate(size):
    """Nodes, weights and distribution function of a coordinate of a uniform unit vector.

    In the angle, where its density is sin^(D-2), by Gauss and Legendre.
    """
    half = min(np.pi / 2.0, SPREAD / sqrt(size)) if size > 2 else np.pi / 2.0
    x, weights = np.polynomial.legendre.leggauss(NODES)
    t = np.sin(half * x)
    weights = weights * np.cos(half * x) ** (size - 2)
    beta = (size - 1) / 2.0
    return t, weights / weights.sum(), special.betainc(beta, beta, (1.0 + t) / 2.0)


@dataclass(frozen=True)
class CodebookNoise:
    """What the codebook channel adds to a sum of lifted moments, (sum r phi, sum phi phi').

    Each user sends one index about u = s (phi, sqrt(1 - |phi|^2)), s = 1 or -1 with mean r. With f
    the direction of the index, f / c1 is unbiased for r phi and (f f' - I / D) / c2 + I / D for
    phi phi'. The two errors are dependent, and their sums have no closed law: bounds are for sums
    of independent bounded terms, and :meth:`variance` has the exact second moments.

    Parameters
    ----------
    code : Codebook
    reports : int, default=1
        Number of users in the sum.
    """

    code: Codebook
    reports: int = 1

    def cost(self, sensitivity):
        """Price of one report: epsilon, whatever the vectors."""
        return Cost.from_epsilon(self.code.epsilon)

    def summed(self, reports):
        """Law of the sum over this many times the users."""
        return CodebookNoise(self.code, self.reports * reports)

    @property
    def scale(self):
        """Root mean square of an orthonormal coordinate of the noise of sum r phi."""
        return sqrt(self.reports * self.code.noise("vector"))

    @property
    def square_scale(self):
        """Root mean square of an orthonormal coordinate of the noise of sum phi phi'."""
        return sqrt(self.reports * self.code.noise("square"))

    def norm_bound(self, theta_norm, failure):
        """Bound on |sum of (b_i - A_i theta*)|, targets' noise included, for |theta*| <= this.

        b_i and A_i are a report's estimates of r phi and phi phi', and E[r | phi] = phi'theta*: the
        terms are independent, have mean zero given the rows, and bounded norm. Cauchy and Schwarz
        bound the mean of the norm of their sum, Klein and Rio (2005, Theorem 1.1) what exceeds it.
        """
        total, weak, bound = _term_bounds(self.code, float(theta_norm))
        tail, mean = log(1.0 / failure), sqrt(self.reports * total)
        variance = self.reports * weak + 2.0 * bound * mean
        first = 3.0 * bound * tail
        return mean + 0.5 * (first + sqrt(first**2 + 8.0 * tail * variance))

    def operator_bound(self, failure):
        """Bound on the operator norm of the noise of sum phi phi', by matrix Bernstein.

        A term (f f' - E f f') / c2 has norm at most 1 / c2, since f is a unit vector, and mean
        square E f f' (I - E f f') / c2^2, whose eigenvalues are those of E f f' in l (1 - l).
        """
        D, c2 = self.code.size, self.code.contrast
        values = np.array([c2 + (1.0 - c2) / D, (1.0 - c2) / D])
        variance = self.reports * float((values * (1.0 - values)).max()) / c2**2
        tail = log(2.0 * D / failure)
        first = tail / (3.0 * c2)
        return first + sqrt(first**2 + 2.0 * variance * tail)

    def __str__(self):
        return "codebook"


@lru_cache(maxsize=256)
def _term_bounds(code, theta_norm):
    """Largest mean square of |G| and of <x, G> for unit x, and |G|, of a term G = b - A theta.

    G = f / c1 - f z / c2 + k theta with z = f'theta and k = (1 / c2 - 1) / D. The largest over a
    grid of |theta| and of phi'theta, with a margin for the grid (polynomials of degree 4).
    """
    values = [
        _term_moments(code, norm, mean / norm if norm else 0.0)
        for norm in theta_norm * np.linspace(0.0, 1.0, 21)
        for mean in min(norm, 1.0) * np.linspace(0.0, 1.0, 21)
    ]
    total, weak = (max(column) for column in zip(*values, strict=True))
    k = (1.0 / code.contrast - 1.0) / code.size
    bound = 1.0 / code.mean + theta_norm / code.contrast + k * theta_norm  # |z| <= |theta|
    return 1.01 * total, 1.01 * weak, bound


def _term_moments(code, norm, cosine):
    """Sum of all but the least of the eigenvalues of E G G', and the largest, given the row.

    The coordinate of G that lifted the row is not used: its variance is at least the least
    eigenvalue. E G = 0 gives E G G' = E f f' (1 / c1 - z / c2)^2 - k^2 theta theta'. In coordinates
    along the lifted row, along the rest of theta, and beyond, f = (s t, sqrt(1 - t^2) w), s of mean
    phi'theta = norm cosine, and w has the moments of a uniform unit vector of D - 1 coordinates.
    """
    D, c1, c2 = code.size, code.mean, code.contrast
    t1, t2, t3, t4 = (code.moment(order) for order in (1, 2, 3, 4))
    mean, sine = norm * cosine, sqrt(max(1.0 - cosine**2, 0.0))
    two, four = 1.0 / (D - 1.0), 1.0 / ((D - 1.0) * (D + 1.0))
    y2, y4, xy2 = (1.0 - t2) * two, (1.0 - 2.0 * t2 + t4) * four, mean * (t1 - t3) * two
    x2y2 = (t2 - t4) * two
    cross, square = 2.0 * norm / (c1 * c2), (norm / c2) ** 2
    xx = t2 / c1**2 - cross * cosine * mean * t3 + square * (cosine**2 * t4 + sine**2 * x2y2)
    yy = y2 / c1**2 - cross * cosine * xy2 + square * (cosine**2 * x2y2 + 3.0 * sine**2 * y4)
    xy = -cross * sine * xy2 + square * 2.0 * cosine * sine * x2y2
    rest = y2 / c1**2 - cross * cosine * xy2 + square * (cosine**2 * x2y2 + sine**2 * y4)
    k2 = ((1.0 / c2 - 1.0) / D * norm) ** 2
    block = np.array([[xx, xy], [xy, yy]]) - k2 * np.outer((cosine, sine), (cosine, sine))
    values = np.append(np.linalg.eigvalsh(block), [rest] * (D - 2))
    return values.sum() - values.min(), values.max()
