"""Codebook reports on Hadamard rows, which spread the blocks of a sum over the users."""

from typing import Any
from dataclasses import dataclass
from math import sqrt

import numpy as np

from .._accounting._cost import Cost
from ._codebook_law import best_codebook
from ._laws import Noise


@dataclass(frozen=True)
class CodebookBlocksNoise(Noise):
    """What codebook reports, spread over rows of a Hadamard matrix, add to the sums of blocks.

    A user has a vector of norm at most radius in one of several blocks, completed to length radius
    by its last coordinate, which is not for use. The user draws a public random row j, and sends a
    codebook report of the unit vector times the entry of the matrix at j and the block. The sum
    over users of a block's entries times reports is unbiased for the block's sum: other blocks meet
    a sign that is 1 or -1 with even odds. There is no exact law of a sum, but independent bounded
    terms. The price rests on one exact integer draw, of the index; the row of the matrix is drawn
    without a look at the record, and the sign that it gives the vector is part of the secret.

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
        return best_codebook(self.size, self.epsilon, "vector")

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
        return CodebookBlocksNoise(self.epsilon, self.size, self.radius, self.blocks, reports)

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
        """One report about each row, the direction of an index."""
        return source.codebook_reports(vectors, self.cap)

    def estimate(self, buckets: Any) -> np.ndarray:
        """Unbiased sums of the blocks, from the sums of the reports that drew each row."""
        totals = walsh_hadamard(buckets)[: self.blocks]
        return self.radius / self.cap.mean * totals

    def __str__(self):
        return "codebook"


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
