"""Reports of many users by the codebook channel, and what their sums estimate."""

from typing import Any
import secrets
from dataclasses import dataclass
from math import pi, prod

import numpy as np
from scipy import special

from ..._linalg import BLOCK_ENTRIES, blocks_of, vech
from ._codebook import draw_ranks, lifted
from ._codebook_law import Codebook


def secure_directions(vectors, code):
    """Reported directions of users, by a codebook and an exact draw for each of them.

    What single devices do, many at a time. The ranks are drawn first, by exact integers of the
    operating system, apart from everything else; the codebooks are public random directions, made
    in an order that no secret has part in; the reported one is the member of that rank in an order
    by nearness. That order may come from any arithmetic: it is a permutation, so that every
    direction keeps its weight of a or b, and delta stays 0. (The law of rank, Beta and orthogonal
    part, drawn in floating point, would have the same law only up to rounding, which depends on
    the secret: it is for study.)

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
    users = max(1, BLOCK_ENTRIES // (code.count * size))  # whose codebooks are in the cache
    for start in range(0, n, users):
        part = slice(start, min(n, start + users))
        secret = vectors[part].astype(np.float32)
        books = _normals(public, (len(secret), code.count, size))
        lengths = np.sqrt(np.einsum("ukj,ukj->uk", books, books))
        nearness = np.matmul(books, secret[:, :, None])[:, :, 0] / lengths
        order = np.argpartition(-nearness, code.nearest - 1, axis=1)
        each = np.arange(len(secret))
        chosen = books[each, order[each, ranks[part]]].astype(float)
        reported[part] = chosen / np.sqrt(np.einsum("ij,ij->i", chosen, chosen))[:, None]
    return reported


def _normals(public, shape):
    """Normal variables of single precision by Box and Muller, as devices make them.

    That takes less than half the time of the generator's own, and its radius ends at 5.8.
    """
    size = prod(shape)
    radius, angle = public.random((2, -(-size // 2)), dtype=np.float32)
    np.subtract(1.0, radius, out=radius)
    np.log(radius, out=radius)
    radius *= -2.0
    np.sqrt(radius, out=radius)
    angle *= 2.0 * pi
    found = np.empty((2, len(radius)), dtype=np.float32)
    for function, out in zip((np.cos, np.sin), found, strict=True):
        np.multiply(function(angle), radius, out=out)
    return found.reshape(-1)[:size].reshape(shape)


def simulated_directions(vectors, code, rng):
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
    n, K, m = len(vectors), code.count, code.nearest
    inside = rng.uniform(size=n) < code.probability
    rank = np.where(inside, rng.randint(1, m + 1, size=n), rng.randint(m + 1, K + 1, size=n))
    half = (code.size - 1) / 2.0
    t = 2.0 * special.betaincinv(half, half, rng.beta(K + 1.0 - rank, rank)) - 1.0
    beside = rng.normal(size=vectors.shape)
    beside -= np.einsum("ij,ij->i", beside, vectors)[:, None] * vectors
    beside *= (np.sqrt(1.0 - t**2) / np.sqrt(np.einsum("ij,ij->i", beside, beside)))[:, None]
    return t[:, None] * vectors + beside


def lifted_directions(rows, r, code, rng=None):
    """Reported directions of users with rows phi in the unit ball and targets r in [-1, 1].

    Parameters
    ----------
    rows : ndarray of shape (n, size - 1)
    r : ndarray of shape (n,)
    code : Codebook
    rng : None or RandomState
        None is secure: codebooks and exact draws.

    Returns
    -------
    ndarray of shape (n, size)
    """
    units = lifted(rows, random_signs(r, rng))
    if rng is None:
        return secure_directions(units, code)
    return simulated_directions(units, code, rng)


def random_signs(means, rng=None):
    """Signs of these means; None takes the operating system's seed. See `draw_sign`."""
    if rng is None:
        rng = np.random.Generator(np.random.SFC64(secrets.randbits(256)))
    return np.where(rng.uniform(size=len(means)) < (1.0 + means) / 2.0, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
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

    def part(self, chosen: Any) -> Any:
        """Some of the reports, by a slice."""
        return LiftedReports(self.directions[chosen], self.code)

    @property
    def target(self) -> Any:
        """Estimate of sum r phi."""
        return self.directions[:, :-1].sum(axis=0) / self.code.mean

    @property
    def square(self) -> Any:
        """Estimate of sum phi phi'."""
        n, D, c2 = len(self.directions), self.code.size, self.code.contrast
        products = self.directions[:, :-1].T @ self.directions[:, :-1]
        return products / c2 + n / D * (1.0 - 1.0 / c2) * np.eye(D - 1)

    def moments(self) -> Any:
        """(sum r phi, vech sum phi phi', n): the last is the sum of squares of the signs."""
        return np.concatenate([self.target, vech(self.square), [float(len(self.directions))]])

    def error_gram(self, theta: Any) -> Any:
        """Sum of g g', g = b_i - A_i theta: the sandwich of the equations, privacy included."""
        D, c1, c2 = self.code.size, self.code.mean, self.code.contrast
        total = np.zeros((D - 1, D - 1))
        for block in blocks_of(len(self.directions), D):
            rows = self.directions[block, :-1]
            terms = rows * (1.0 / c1 - rows @ theta / c2)[:, None]
            terms += (1.0 / c2 - 1.0) / D * theta
            total += terms.T @ terms
        return total
