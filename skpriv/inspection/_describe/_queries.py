"""What `describe` asks of the rows: bounded sums of each column, with their joint sensitivities.

Rows are those of a `TableEncoder`: a number or a date is a pair (z, 0) with z in [-1, 1], or (0, 1)
where the cell is missing, divided by the public norm; a coded column is one of a public list of
points. All statements are for replacing one record by another. The blocks of the columns stand side
by side in one vector, so that their squared changes add up. The distribution of a column is found
from the noisy counts of a binary tree.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._linalg import ROUNDED
from ...privacy import ROUNDING, Query


@dataclass(frozen=True)
class ColumnRange:
    """A column of numbers or dates: where it stands in the encoded row.

    Attributes
    ----------
    name : str
        The name of the column.
    at : int
        The first of its two columns in the encoded row.
    norm : float
        The public divisor of encoded rows.
    """

    name: str
    at: int
    norm: float

    def values(self, X: Any, y: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Positions in [-1, 1], 0 where missing, and whether each cell is missing."""
        z, absent = self.norm * X[:, self.at], self.norm * X[:, self.at + 1]
        missing = ~(np.abs(absent) < 0.5) | np.isnan(z)
        return np.where(missing, 0.0, np.clip(z, -1.0, 1.0)), missing


@dataclass(frozen=True)
class Ranged:
    """A vector of numbers with a public range, in the place of the target.

    Attributes
    ----------
    low, high : float
        The public range, to which numbers are clipped.
    """

    low: float
    high: float

    def values(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Positions in [-1, 1], 0 where missing, and whether each number is missing."""
        half = self.high / 2.0 - self.low / 2.0
        z = np.clip((np.clip(y, self.low, self.high) - self.low) / half - 1.0, -1.0, 1.0)
        missing = np.isnan(z)
        return np.where(missing, 0.0, z), missing


@dataclass(frozen=True, eq=False)
class Coded:
    """A column with a public list of levels, or a line that is cut into equal parts.

    Attributes
    ----------
    name : str
        The name of the column.
    levels : tuple of str
        What each code means.
    at : slice
        The columns of the encoded row that it reads.
    points : ndarray of shape (n_levels, width)
        The encoded row of each level.
    """

    name: str
    levels: tuple
    at: slice
    points: np.ndarray

    def codes(self, X: Any) -> np.ndarray:
        """Number of the nearest level of each row, whatever the row is."""
        squares = (self.points**2).sum(axis=1) / 2.0
        return np.argmax(X[:, self.at] @ self.points.T - squares, axis=1)


@dataclass(frozen=True)
class Binned:
    """A line that is cut into parts of equal length; the last code is that of missing cells."""

    line: ColumnRange
    levels: tuple

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.line.name

    def codes(self, X: Any) -> np.ndarray:
        """Number of the part of each row."""
        z, missing = self.line.values(X)
        parts = len(self.levels) - 1
        codes = np.minimum(((z + 1.0) / 2.0 * parts).astype(np.intp), parts - 1)
        return np.where(missing, parts, codes)


@dataclass(frozen=True)
class ColumnMomentsQuery(Query):
    """Sums of (z, sqrt(2) z^2, 1) over the cells of each line that have a value.

    A column moves by at most 2, so that K columns move by 2 sqrt(K). Between two values z and z'
    with u = |z - z'| and v = |z + z'| <= 2 - u the squared change is u^2 (1 + 2 v^2), at most
    u^2 (1 + 2 (2 - u)^2). The slope of this bound in u is u times 2 + 4 (2 - u) (2 - 2 u), which is
    2 + 8 (2 - u) (1 - u) >= 2 - 2 = 0, since (2 - u) (u - 1) <= 1/4 on [1, 2]. It is largest at
    u = 2: 4, attained by z = 1 and z' = -1. Between a value and a missing cell it is
    z^2 + 2 z^4 + 1 <= 4, which z = 1 attains.
    """

    lines: tuple[ColumnRange, ...]
    name: str = "means and numbers of values"

    @property
    def sensitivity(self) -> float:
        """Largest change when a record is replaced, rounded up."""
        return 2.0 * sqrt(len(self.lines)) * ROUNDING

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of coordinates."""
        return (3 * len(self.lines),)

    def sum(self, X: Any, y: Any) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        parts = []
        for line in self.lines:
            z, missing = line.values(X)
            parts += [z.sum(), sqrt(2.0) * (z @ z), float(np.count_nonzero(~missing))]
        return np.array(parts)


@dataclass(frozen=True)
class DistributionQuery(Query):
    """Counts of each line in all nodes of a binary tree over its range, and at its two ends.

    A value is in one node of each of the levels 1 to `depth`, and perhaps at one end. Replacing it
    moves two counts by 1 at each level, and at most two at the ends: 2 depth + 2 in squares, which
    the two ends of the range attain. A missing cell is in no node. The sums are whole numbers.
    """

    lines: tuple[ColumnRange | Ranged, ...]
    depth: int
    name: str = "distributions"

    @property
    def sensitivity(self) -> float:
        """Largest change when a record is replaced, rounded up."""
        return sqrt((2.0 * self.depth + 2.0) * len(self.lines)) * ROUNDING

    @property
    def size(self) -> int:
        """Number of counts of one line: all nodes but the root, and the two ends."""
        return 2 ** (self.depth + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of coordinates."""
        return (self.size * len(self.lines),)

    def sum(self, X: Any, y: Any) -> np.ndarray:
        """Exact counts over a chunk of rows, from the leaves up."""
        parts, leaves = [], 2**self.depth
        for line in self.lines:
            z, missing = line.values(X, y)
            z = z[~missing]
            leaf = np.minimum(((z + 1.0) / 2.0 * leaves).astype(np.intp), leaves - 1)
            counts = np.bincount(leaf, minlength=leaves).astype(float)
            while len(counts) > 1:
                parts.append(counts)
                counts = counts.reshape(-1, 2).sum(axis=1)
            ends = np.count_nonzero(z <= ROUNDED - 1.0), np.count_nonzero(z >= 1.0 - ROUNDED)
            parts.append(np.array(ends, dtype=float))
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class CountsQuery(Query):
    """Counts of the cells of tables: the levels of one column, or the pairs of levels of two.

    A record is in one cell of each table: replacing it moves two counts by 1, so that T tables move
    by sqrt(2 T).
    """

    tables: tuple[tuple, ...]
    name: str = "counts"

    @property
    def sensitivity(self) -> float:
        """Largest change when a record is replaced, rounded up."""
        return sqrt(2.0 * len(self.tables)) * ROUNDING

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of all tables."""
        return (sum(map(cells, self.tables)),)

    def sum(self, X: Any, y: Any) -> np.ndarray:
        """Exact counts over a chunk of rows."""
        parts = []
        for table in self.tables:
            code = np.zeros(len(X), dtype=np.intp)
            for column in table:
                code = code * len(column.levels) + column.codes(X)
            parts.append(np.bincount(code, minlength=cells(table)))
        return np.concatenate(parts).astype(float)


def cells(table: Any) -> int:
    """Number of cells of a table of one or two columns."""
    return int(np.prod([len(column.levels) for column in table]))


class Distribution:
    """Ranks, quantiles and bins from noisy counts in the nodes of a binary tree.

    Each node and the nodes below it tell its count independently, so that they are averaged from
    the leaves up by their variances (Hay, Rastogi, Miklau and Suciu 2010, section 4): with noise of
    variance 1 a leaf has variance 1, and a node above children of variance v has 2 v / (2 v + 1).
    The count left of a grid point is a sum of such nodes, which are disjoint and hence independent,
    and so is the count right of it.

    Parameters
    ----------
    levels : list of ndarray
        Noisy counts of the nodes of each level, the leaves first, then 2^(depth - 1) nodes, and so
        on down to the two halves of the range.
    scale : float
        The standard deviation of the noise of each count.
    values : (float, float)
        The estimated number of cells that are not missing, and its standard deviation.
    """

    def __init__(self, levels: Any, scale: float, values: tuple[float, float]) -> None:
        self.depth = len(levels)
        self._count, self._count_variance = values[0], values[1] ** 2
        self._nodes, self._variances = [np.asarray(levels[0])], [1.0]
        for counts in levels[1:]:
            below, v = self._nodes[-1].reshape(-1, 2).sum(axis=1), self._variances[-1]
            self._nodes.append((2.0 * v * counts + below) / (2.0 * v + 1.0))
            self._variances.append(2.0 * v / (2.0 * v + 1.0))
        self._variances = [scale**2 * v for v in self._variances]

    def bins(self, level: int) -> tuple[np.ndarray, float]:
        """Counts in 2^level equal parts of the range, and the standard deviation of each."""
        place = self.depth - level
        return self._nodes[place], float(np.sqrt(self._variances[place]))

    def excess(self, q: float) -> tuple[np.ndarray, np.ndarray]:
        """Count left of each grid point minus q times the count of all, and its variance.

        Left and right counts, of variances a and b, and the number of values, of variance v, are
        weighed for the least variance: w on the left one has w^2 a + (1 - w)^2 b + (1 - q - w)^2 v,
        which is least at w = (b + (1 - q) v) / (a + b + v).
        """
        left, a = self._prefixes(self._nodes)
        right, b = self._prefixes([nodes[::-1] for nodes in self._nodes])
        right, b, v = right[::-1], b[::-1], self._count_variance
        total = a + b + v
        w = (b + (1.0 - q) * v) / np.where(total > 0.0, total, 1.0)
        w = np.where(total > 0.0, w, 1.0)
        value = w * (left - q * self._count) + (1.0 - w) * ((1.0 - q) * self._count - right)
        # The ends are known: nothing is left of the first point, and everything of the last one.
        value[[0, -1]] = -q * self._count, (1.0 - q) * self._count
        variance = w**2 * a + (1.0 - w) ** 2 * b + (1.0 - q - w) ** 2 * v
        variance[[0, -1]] = q**2 * v, (1.0 - q) ** 2 * v
        return value, variance

    def quantile(self, q: float, z: float, sampling: float) -> tuple[float, float, float]:
        """Quantile on [0, 1] with the ends of its interval.

        A cell between two grid points stays in the interval unless the count left of its first one
        is too large or that left of its last one too small to be told from noise. The noise at a
        grid point does not depend on which cells are left, so that the cell of the true quantile is
        left out with the probability that z stands for.

        Parameters
        ----------
        q : float in (0, 1)
        z : float
            Normal deviate of the interval.
        sampling : float
            Part of the sampling variance that counts: 1 for a population, 0 for the table itself.
        """
        value, variance = self.excess(q)
        sampled = sampling * max(self._count, 1.0) * q * (1.0 - q)
        half = z * np.sqrt(variance + sampled)
        weights = 1.0 / np.maximum(variance, 1e-12 * max(float(variance.max()), 1.0))
        found = _crossing(isotonic_regression(value, sample_weight=weights))
        low = _crossing(isotonic_regression(value + half, sample_weight=weights), -1)
        high = _crossing(isotonic_regression(value - half, sample_weight=weights), 1)
        return found, min(low, found), max(high, found)

    def _prefixes(self, nodes):
        """Sum of the nodes that make up what is left of each grid point, and its variance."""
        points = np.arange(2**self.depth + 1)
        value, variance = np.zeros(len(points)), np.zeros(len(points))
        for height in range(self.depth):
            taken = (points >> height) & 1 == 1
            value[taken] += nodes[height][(points[taken] >> height) - 1]
            variance[taken] += self._variances[height]
        # The whole range is its two halves.
        value[-1], variance[-1] = nodes[-1].sum(), 2.0 * self._variances[-1]
        return value, variance


def _crossing(rising, side=0):
    """Where increasing values at equal steps on [0, 1] pass 0: inside a cell, or at its end."""
    last = len(rising) - 1
    cell = int(np.clip(np.searchsorted(rising, 0.0) - 1, 0, last - 1))
    if side:
        return (cell + (side > 0)) / last
    step = rising[cell + 1] - rising[cell]
    inside = -rising[cell] / step if step > 0.0 else 0.5
    return float((cell + np.clip(inside, 0.0, 1.0)) / last)


def tree_levels(value: Any, i: int, n_lines: int) -> tuple[list, np.ndarray]:
    """Counts of the nodes of the tree of a line, the leaves first, and those at the two ends."""
    size = len(value) // n_lines
    mine, start, levels = value[i * size : (i + 1) * size], 0, []
    width = size // 2
    while width > 1:
        levels.append(mine[start : start + width])
        start, width = start + width, width // 2
    return levels, mine[start:]
