"""What `describe` asks of the rows: bounded sums of each column, with their joint sensitivities.

Rows are those of a `TableEncoder`: a number or a date is a pair (z, 0) with z in [-1, 1], or (0, 1)
where the cell is missing, divided by the public norm; a coded column is one of a public list of
points. All statements are for replacing one record by another. The blocks of the columns stand side
by side in one vector, so that their squared changes add up.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

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
