"""PrivUnit, pure local privacy for unit vectors, and Hadamard rows that spread blocks on users."""

from typing import Any
from dataclasses import dataclass
from functools import lru_cache
from math import expm1, lgamma, pi, sqrt

import numpy as np
from scipy import optimize, special

from ...exceptions import PrivacyError
from .._accounting._cost import Cost
from ._laws import NO_SECURE_REPORTS, Noise


@dataclass(frozen=True)
class UnitCap:
    """PrivUnit on the sphere in R^size (Bhowmick et al. 2018), its two levels chosen together.

    A report V is uniform on the cap <V, v> >= height with probability p, else on the rest of the
    sphere. With q the part of the sphere in the cap, p = e^epsilon q / (e^epsilon q + 1 - q), so
    that densities of one report under two vectors differ by at most p (1 - q) / ((1 - p) q), which
    is e^epsilon. E[V] = mean v; V / mean is unbiased, and has norm 1 / mean always.

    Attributes
    ----------
    height : float in [0, 1)
        Makes the mean as large as it can be; 0 is the hemisphere.
    part, probability : float
        q and p.
    mean : float
        E <V, v>.
    along : float
        E <V, v>^2.
    """

    size: int
    epsilon: float
    height: float
    part: float
    probability: float
    mean: float
    along: float

    @classmethod
    def at(cls, size, epsilon, height):
        """PrivUnit with this height of the cap."""
        half = (size - 1) / 2.0
        q = float(special.betainc(half, half, (1.0 - height) / 2.0))
        inverse = np.exp(-epsilon)
        # e^-epsilon (e^epsilon q + 1 - q); where both underflow, the mean does too, and is not best
        total = max(q + inverse * (1.0 - q), np.finfo(float).tiny)
        front = lgamma(size / 2.0) - lgamma(half)
        first = np.exp(front) * (1.0 - height**2) ** half / (sqrt(pi) * (size - 1))
        second = float(special.betainc(half, 1.5, 1.0 - height**2)) / (2.0 * size)
        # (first, second) moment of <V, v> on the cap, weighted by 1 / total and inverse / total
        mean = -expm1(-epsilon) * first / total
        along = (second + inverse * (1.0 / size - second)) / total
        return cls(size, epsilon, height, q, q / total, float(mean), float(along))

    def density(self, t):
        """Density of a report V at t = <V, v>, over that of a uniform direction."""
        p, q = self.probability, self.part
        return np.where(t >= self.height, p / q, (1.0 - p) / (1.0 - q))

    @property
    def across(self):
        """E <V, w>^2 for each unit w orthogonal to v."""
        return (1.0 - self.along) / (self.size - 1)

    def reports(self, vectors, rng):
        """Reports about the rows, unit vectors; ``rng`` None, secure draws, cannot be had."""
        if rng is None:
            raise PrivacyError(NO_SECURE_REPORTS)
        inside = rng.uniform(size=len(vectors)) < self.probability
        tail = rng.uniform(size=len(vectors)) * np.where(inside, self.part, 1.0 - self.part)
        half = (self.size - 1) / 2.0
        heights = 2.0 * special.betaincinv(half, half, tail) - 1.0
        heights = np.where(inside, -heights, heights)  # the cap is an upper tail
        beside = rng.normal(size=vectors.shape)
        beside -= np.einsum("ij,ij->i", beside, vectors)[:, None] * vectors
        beside *= (np.sqrt(1.0 - heights**2) / np.linalg.norm(beside, axis=1))[:, None]
        return heights[:, None] * vectors + beside


@lru_cache(maxsize=64)
def best_cap(size, epsilon):
    """PrivUnit of the smallest variance: the mean is largest."""
    found = optimize.minimize_scalar(
        lambda height: -UnitCap.at(size, epsilon, height).mean,
        bounds=(0.0, min(1.0, sqrt(4.0 * (epsilon + 2.0) / size))),  # q is about e^(-size h^2 / 2)
        method="bounded",
        options={"xatol": 1e-9},
    )
    caps = [UnitCap.at(size, epsilon, height) for height in (0.0, float(found.x))]
    return max(caps, key=lambda cap: cap.mean)


@dataclass(frozen=True)
class PrivUnitNoise(Noise):
    """What PrivUnit reports, spread over rows of a Hadamard matrix, add to the sums of blocks.

    A user has a vector of norm at most radius in one of several blocks, completed to length radius
    by its last coordinate, which is not for use. The user draws a public random row j, and sends
    PrivUnit of the unit vector times the entry of the matrix at j and the block. The sum over users
    of a block's entries times reports is unbiased for the block's sum: other blocks meet a sign
    that is 1 or -1 with even odds. There is no exact law of a sum, but independent bounded terms.

    Parameters
    ----------
    epsilon : float
    size : int
        Length of the vectors, the last coordinate included.
    radius : float
    blocks : int
        Number of blocks.
    reports : int, default=1
        Number of users in the sum.
    """

    epsilon: float
    size: int
    radius: float
    blocks: int
    reports: int = 1

    @property
    def cap(self) -> Any:
        """Law of one report."""
        return best_cap(self.size, self.epsilon)

    @property
    def rows(self) -> Any:
        """Rows of the Hadamard matrix: a power of 2, at least the number of blocks."""
        return 1 << max(self.blocks - 1, 0).bit_length()

    @property
    def scale(self) -> float:  # type: ignore[override]
        """Standard deviation of a coordinate of the sum, on average over coordinates."""
        return self.radius / self.cap.mean * sqrt(self.reports / self.size)

    @property
    def bound(self) -> float:
        """Bound on the norm of one report's error in a block."""
        return self.radius * (1.0 / self.cap.mean + 1.0)

    @property
    def across(self) -> float:
        """Variance of one report's error in directions orthogonal to its vector."""
        return (self.radius / self.cap.mean) ** 2 * self.cap.across

    @property
    def along(self) -> float:
        """Second moment of one report's error along its vector, in any block.

        In blocks of others the report has its whole second moment there, in its own the variance.
        """
        own = self.cap.along / self.cap.mean**2 - 1.0
        return self.radius**2 * (own + (self.blocks > 1))

    def cost(self, sensitivity: float) -> Cost:
        """Price of one report: epsilon, whatever the vectors."""
        return Cost.from_epsilon(self.epsilon)

    def summed(self, reports: Any) -> Any:
        """Law of the sum over this many users."""
        reports *= self.reports
        return type(self)(self.epsilon, self.size, self.radius, self.blocks, reports)

    def collected(self, query: Any, rows: Any, users: Any, source: Any) -> Any:
        """Sums of blocks from one report a user, which no single draw can replace."""
        buckets = np.zeros((self.rows, self.size))

        def report(X, y):
            return query.reports(X, y, self, source)

        for sent, reports in rows.each(report, users, self.size):
            for column, values in zip(buckets.T, reports.T, strict=True):
                column += np.bincount(sent, values, minlength=self.rows)
        return self.estimate(buckets)

    def directions(self, vectors: Any, source: Any) -> Any:
        """One report about each row, a unit vector."""
        return source.unit_reports(vectors, self.cap)

    def estimate(self, buckets: Any) -> np.ndarray:
        """Unbiased sums of the blocks, from the sums of the reports that drew each row."""
        totals = walsh_hadamard(buckets)[: self.blocks]
        return self.radius / self.cap.mean * totals

    def __str__(self):
        return "PrivUnit"


def hadamard_entries(rows: Any, columns: Any) -> np.ndarray:
    """Entries 1 or -1 of Sylvester's matrix: the parity of the bits that both indices share."""
    bits = np.bitwise_and(rows, columns)
    for shift in (32, 16, 8, 4, 2, 1):
        bits = bits ^ (bits >> shift)
    return 1.0 - 2.0 * (bits & 1)


def walsh_hadamard(values):
    """Product of Sylvester's matrix with an array of 2^k rows, in k steps."""
    result, step = np.array(values, dtype=float), 1
    tail = result.shape[1:]
    while step < len(result):
        pairs = result.reshape(-1, 2, step, *tail)
        result = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        result = result.reshape(-1, *tail)
        step *= 2
    return result
