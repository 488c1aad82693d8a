"""Reports by the codebook channel: the law of one, the best code for a use, the sums of many."""

import secrets
from bisect import bisect_left
from functools import lru_cache
from math import inf, log, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from ... import _wire
from ..._linalg import BLOCK_ENTRIES, blocks_of, quadratic_forms, unwarned, vech
from ..._stored import frozen, frozen_object, stored
from ..._wire import draw_ranks

if TYPE_CHECKING:
    from ..._contracts import Array

UNIFORM_STEPS = 2**53  # of a uniform number between 0 and 1, of which NumPy draws 53 bits
TYPICAL_NORM = 0.5  # public norm of theta* for which a code is chosen, by the noise b - A theta*


@stored
@frozen
class Codebook:
    """One report a user: the index of a public direction about a secret unit vector v.

    With rank r uniform in 1..m with probability P, else in m+1..K, the direction of the index is
    t v + sqrt(1 - t^2) w: (1 + t) / 2 is the Beta((D-1)/2, (D-1)/2) quantile of a
    Beta(K + 1 - r, r) variable, and w is uniform on the unit sphere orthogonal to v, independent
    of t. All moments below follow from this law; see docs/mathematics/codebook.md.

    Parameters
    ----------
    size : int >= 2
        Length D of the vectors.
    epsilon : float
        Privacy parameter of one report, above 0.
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

    def __post_init__(self) -> None:
        if self.size < 2 or not 1 <= 2 * self.nearest <= self.count:
            raise ValueError(
                f"a codebook needs size >= 2 and 1 <= nearest <= count / 2, got {self}."
            )

    @property
    def probability(self) -> float:
        """Probability P of the m nearest together, rounded down to whole steps of 2^-53.

        Uniform numbers of NumPy have such steps, so that a simulated report has exactly this P, and
        the others are never less likely than they may be. From an epsilon of 36 on, where 1 - P has
        few steps, the nearest double is too large by .19 of an epsilon, and more.
        """
        inside, _, all_weights = self._weights
        return (inside * UNIFORM_STEPS // all_weights) / UNIFORM_STEPS

    @property
    def gain(self) -> float:
        """(P - q) / (1 - q), q = m / K: the part of the m nearest beyond a uniform direction."""
        inside, alike, all_weights = self._weights
        return (inside - alike) / all_weights

    @property
    def _weights(self) -> tuple[int, int, int]:
        """Weights of the m nearest, of as many others, and of all: integers of any length."""
        near, far = _wire.index_weights(self.epsilon)
        m = int(self.nearest)
        return m * near, m * far, m * near + (int(self.count) - m) * far

    @property
    def log_ratio(self) -> float:
        """Largest log ratio of the probabilities of one report: log(a / b), at most epsilon.

        These belong to the weights that are drawn by, and to the law of a simulated report: the
        larger one.
        """
        near, far = _wire.index_weights(self.epsilon)
        others = self.count - self.nearest
        odds = self.probability / (1.0 - self.probability) * others / self.nearest
        return max(log(near) - log(far), log(odds))

    def density(self, t: float) -> "Array":
        """Density of a reported direction f at t = <f, v>, over that of a uniform direction.

        Parameters
        ----------
        t : float or ndarray
            Inner product of the direction and the vector, in [-1, 1].

        Returns
        -------
        ndarray
            Ratio of the densities, above 0.
        """
        beta = (self.size - 1) / 2.0
        K = self.count
        m = self.nearest
        among = special.betainc(K - m, m, special.betainc(beta, beta, (1.0 + t) / 2.0))
        return 1.0 - self.gain + self.gain * K / m * among

    def moment(self, order: int) -> float:
        """E t^order, for orders 1 to 4: uniform directions have 0, 1 / D, 0, 3 / (D (D + 2)).

        Parameters
        ----------
        order : int
            Power of t, from 1 to 4.

        Returns
        -------
        float
            The moment, in [-1, 1].
        """
        D = self.size
        uniform = (0.0, 1.0 / D, 0.0, 3.0 / (D * (D + 2.0)))[order - 1]
        near = _near_moments(D, self.count, self.nearest)[order - 1]
        return (1.0 - self.gain) * uniform + self.gain * near

    @property
    def mean(self) -> float:
        """c1 = E t."""
        return _near_moments(self.size, self.count, self.nearest)[0] * self.gain

    @property
    def contrast(self) -> float:
        """c2 = (D E t^2 - 1) / (D - 1): E f f' = c2 v v' + (1 - c2) I / D."""
        D = self.size
        square = _near_moments(D, self.count, self.nearest)[1]
        return self.gain * (square - 1.0 / D) * D / (D - 1.0)

    @property
    def along(self) -> float:
        """E <f, v>^2 = E t^2 of a reported direction f."""
        return self.moment(2)

    @property
    def across(self) -> float:
        """E <f, w>^2 for each unit w orthogonal to v."""
        return (1.0 - self.moment(2)) / (self.size - 1.0)

    def noise(self, use: str = "moments") -> float:
        """Public figure of merit of a code: the mean variance of a coordinate, for one user.

        "vector" is for direction / c1; "moments" for N_b - N_A theta* of lifted reports, theta* of
        norm ``TYPICAL_NORM``; "square" for the estimate of v v'.

        Parameters
        ----------
        use : {"vector", "moments", "square"}, default="moments"
            What is estimated from the reports.

        Returns
        -------
        float
            The variance, at least 0; infinity if the reports tell nothing.
        """
        D = self.size
        if self.mean <= 0.0:
            return inf  # where epsilon is below 2^-40
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
def best_codebook(size: int, epsilon: float, use: str = "moments") -> "Codebook":
    """Code of the smallest noise for a use, from public numbers alone.

    K = 64 directions up to epsilon 2, 256 up to 4, 1024 above are within 4% of the best possible
    for vectors; m is then the best.

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

    def noise(nearest: int) -> float:
        return Codebook(size, epsilon, count, nearest).noise(use)

    # As m grows the noise falls, and then it rises.
    smaller = range(1, count // 2)
    rises = bisect_left(smaller, True, key=lambda nearest: noise(nearest) <= noise(nearest + 1))
    return Codebook(size, epsilon, count, rises + 1)


@lru_cache(maxsize=1024)
def _near_moments(size: int, count: int, nearest: int) -> tuple[float, ...]:
    """E t^k of one of the m nearest, for k = 1 to 4."""
    t, uniform, below = _coordinate(size)
    # Probability that a direction at t is one of the m nearest of K.
    among = special.betainc(count - nearest, nearest, below)
    with unwarned():
        near = uniform * among * (count / nearest)
        return tuple(float(near @ t**order) for order in (1, 2, 3, 4))


@lru_cache(maxsize=64)
def _coordinate(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and distribution function of a coordinate of a uniform unit vector.

    In the angle, where its density is sin^(D-2), by Gauss and Legendre.
    """
    # The nodes cover nine standard deviations of the coordinate.
    half = min(pi / 2.0, 9.0 / sqrt(size)) if size > 2 else pi / 2.0
    x, weights = special.roots_legendre(1200)
    t = np.sin(half * x)
    weights = weights * np.cos(half * x) ** (size - 2)
    beta = (size - 1) / 2.0
    return t, weights / weights.sum(), special.betainc(beta, beta, (1.0 + t) / 2.0)


def secure_directions(vectors: np.ndarray, code: Codebook) -> np.ndarray:
    """Reported directions of users, by a codebook and an exact draw for each of them.

    The work of single devices, many at a time. The ranks are drawn first, by exact integers of the
    operating system, apart from everything else; the codebooks are public random directions, made
    in an order that no secret has part in; the reported one is the member of that rank in an order
    by nearness. This order may come from any arithmetic: it is a permutation, so that every
    direction keeps its weight of a or b, and delta stays 0. (The law of rank, Beta and orthogonal
    part, drawn in floating point, would have the same law only up to rounding, which depends on the
    secret: it is for study.)

    Parameters
    ----------
    vectors : ndarray of shape (n, size)
        Secret unit vectors.
    code : Codebook

    Returns
    -------
    ndarray of shape (n, size)
    """
    n, size = vectors.shape
    public = np.random.Generator(np.random.SFC64(secrets.randbits(256)))
    ranks = draw_ranks(n, code.count, code.nearest, code.epsilon)
    reported = np.empty((n, size))
    users = max(1, BLOCK_ENTRIES // (code.count * size))  # so many codebooks fit into the cache
    for start in range(0, n, users):
        part = slice(start, min(n, start + users))
        secret = vectors[part].astype(np.float32)
        books = public.standard_normal((len(secret), code.count, size), dtype=np.float32)
        lengths = np.sqrt(np.einsum("ukj,ukj->uk", books, books))
        nearness = np.matmul(books, secret[:, :, None])[:, :, 0] / lengths
        order = np.argpartition(-nearness, code.nearest - 1, axis=1)
        each = np.arange(len(secret))
        chosen = books[each, order[each, ranks[part]]].astype(float)
        reported[part] = chosen / np.sqrt(quadratic_forms(chosen))[:, None]
    return reported


def simulated_directions(
    vectors: np.ndarray, code: Codebook, rng: np.random.RandomState
) -> "Array":
    """Reported directions of users by their law, without codebooks: O(size) a user, for study.

    Parameters
    ----------
    vectors : ndarray of shape (n, size)
        Unit vectors.
    code : Codebook
    rng : RandomState

    Returns
    -------
    ndarray of shape (n, size)
    """
    n = len(vectors)
    K = code.count
    m = code.nearest
    inside = rng.uniform(size=n) < code.probability
    rank = np.where(inside, rng.randint(1, m + 1, size=n), rng.randint(m + 1, K + 1, size=n))
    half = (code.size - 1) / 2.0
    t = 2.0 * special.betaincinv(half, half, rng.beta(K + 1.0 - rank, rank)) - 1.0
    beside = rng.normal(size=vectors.shape)
    beside -= np.einsum("ij,ij->i", beside, vectors)[:, None] * vectors
    beside *= (np.sqrt(1.0 - t**2) / np.sqrt(quadratic_forms(beside)))[:, None]
    return t[:, None] * vectors + beside


def reported_about(
    vectors: np.ndarray, code: Codebook, rng: np.random.RandomState | None
) -> np.ndarray:
    """Reported directions of users: by codebooks and exact draws, or by their law for study."""
    if rng is None:
        return secure_directions(vectors, code)
    return simulated_directions(vectors, code, rng)


def random_signs(means: np.ndarray, rng: Any) -> np.ndarray:
    """Random signs with these means; without a generator by a secure seed. See `draw_sign`."""
    if rng is None:
        rng = np.random.Generator(np.random.SFC64(secrets.randbits(256)))
    return np.where(rng.uniform(size=len(means)) < (1.0 + means) / 2.0, 1.0, -1.0)


@frozen_object
class LiftedReports:
    """Reported directions of lifted moments, and the sums that they estimate.

    Public once they are sent: all that is computed here is post-processing.

    Parameters
    ----------
    directions : ndarray of shape (n, size)
        Unit vectors f, one a user.
    code : Codebook
    """

    directions: np.ndarray
    code: Codebook

    def part(self, chosen: Any) -> "LiftedReports":
        """Some of the reports, by a slice or by their places."""
        return LiftedReports(self.directions[chosen], self.code)

    def unordered(self) -> "LiftedReports":
        """The reports as a shuffler sends them on: their order follows from them alone.

        Sums depend on the order of their terms, in their last digit.
        """
        last = self.directions[:, -1]
        order = np.argsort(last, kind="stable")
        if not (np.diff(last[order]) > 0.0).all():  # others part ties
            order = np.lexsort(self.directions.T)
        return self.part(order)

    @property
    def target(self) -> "Array":
        """Estimate of sum r phi."""
        return self.directions[:, :-1].sum(axis=0) / self.code.mean

    @property
    def square(self) -> "Array":
        """Estimate of sum phi phi'."""
        n = len(self.directions)
        D = self.code.size
        c2 = self.code.contrast
        rows = self.directions[:, :-1]
        return rows.T @ rows / c2 + n / D * (1.0 - 1.0 / c2) * np.eye(D - 1)

    def moments(self) -> np.ndarray:
        """(sum r phi, vech sum phi phi', n): the last is the sum of squares of the signs."""
        return np.concatenate([self.target, vech(self.square), [float(len(self.directions))]])

    def error_gram(self, theta: np.ndarray) -> np.ndarray:
        """Sum of g g', g = b_i - A_i theta: the sandwich of the equations, privacy included."""
        D = self.code.size
        c1 = self.code.mean
        c2 = self.code.contrast
        total = np.zeros((D - 1, D - 1))
        for block in blocks_of(len(self.directions), D):
            rows = self.directions[block, :-1]
            terms = rows * (1.0 / c1 - rows @ theta / c2)[:, None]
            terms += (1.0 / c2 - 1.0) / D * theta
            total += terms.T @ terms
        return total
