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

from .._estimation._intervals import two_sided_quantile
from .._linalg import ROUNDED
from .._printing import Printed, Table, axes_in_rows, pyplot
from ..preprocessing import Date
from ..privacy import ROUNDING, Query


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


WIDEST_LABEL = 18  # characters of a level that are shown


def draw(description: Any, axes: Any = None) -> np.ndarray:
    """Draw a histogram of each number and bars of each list, with intervals.

    Parameters
    ----------
    description : Description
    axes : sequence of matplotlib axes, default=None
        One for each column. None makes a figure.

    Returns
    -------
    ndarray of matplotlib axes
    """
    columns = list(description.columns.values())
    if axes is None:
        axes = axes_in_rows(pyplot("Description.plot").subplots, len(columns))
    axes = np.ravel(axes)
    if len(axes) < len(columns):
        raise ValueError(f"axes must have one entry for each of {len(columns)} columns.")
    for ax, column in zip(axes, columns, strict=False):
        if hasattr(column, "edges"):
            _histogram(ax, column)
        else:
            _bars(ax, column)
        ax.set_title(column.name)
    return axes


def _histogram(ax, column):
    ax.stairs(np.maximum(column.counts, 0.0), column.edges, fill=True, alpha=0.5)
    median = column.quantiles[0.5].estimate
    ax.axvline(median, color="C1", label=f"median {_short(median)}")
    ax.set(ylabel="rows", ylim=(0.0, None))
    if not isinstance(median, float):
        ax.tick_params(axis="x", rotation=30)
    ax.legend(fontsize="small")


def _bars(ax, column):
    names, numbers = zip(*column.rows(), strict=True)
    values, low, high = np.array([(one.estimate, one.low, one.high) for one in numbers]).T
    places = np.arange(len(names))
    ax.barh(places, values, alpha=0.5, xerr=np.maximum([values - low, high - values], 0.0))
    ax.set_yticks(places, [_short(said) for said in names])
    ax.invert_yaxis()
    ax.set(xlabel="rows", xlim=(0.0, None))


def _short(said):
    said = f"{said:.4g}" if isinstance(said, float) else str(said)
    return said if len(said) <= WIDEST_LABEL else said[: WIDEST_LABEL - 1] + "…"


QUANTILES = (0.25, 0.5, 0.75)
HISTOGRAM_LEVEL = 5  # of the tree, whose 32 equal parts are the bins of the histogram


@dataclass(frozen=True)
class Estimated:
    """A released number with its standard error and its interval.

    Attributes
    ----------
    estimate : float or date
        The released number.
    std_error : float
        Its standard error; NaN for a quantile, whose interval is not symmetric.
    low, high : float or date
        The ends of its interval.
    """

    estimate: Any
    std_error: float
    low: Any
    high: Any


@dataclass(frozen=True)
class LineDescription:
    """What is released of a column of numbers or dates.

    Attributes
    ----------
    name : str
        The name of the column.
    missing : Estimated or None
        The number of cells that are missing or cannot be read; None where persons are protected,
        since the number of rows is not public then.
    mean, std : Estimated
        Mean and standard deviation of the cells that have a value, which are clipped to the public
        range. The standard deviation of dates is in days.
    quantiles : dict of float to Estimated
        The quartiles.
    at_low, at_high : Estimated
        Numbers of cells at or beyond the two ends of the public range.
    edges : list
        The ends of the bins of the histogram.
    counts : ndarray of shape (n_bins,)
        The noisy number of cells in each bin.
    count_error : float
        The standard deviation of the noise of each of them.
    """

    name: str
    missing: Estimated | None
    mean: Estimated
    std: Estimated
    quantiles: dict
    at_low: Estimated
    at_high: Estimated
    edges: list
    counts: np.ndarray
    count_error: float

    def rows(self) -> list[tuple[str, Estimated]]:
        """Names of the numbers and the numbers, for a table."""
        quantiles = [(f"{q:.0%} quantile", found) for q, found in self.quantiles.items()]
        ends = [("at or below the range", self.at_low), ("at or above the range", self.at_high)]
        return [
            *([] if self.missing is None else [("missing", self.missing)]),
            ("mean", self.mean),
            ("std. deviation", self.std),
            *quantiles,
            *ends,
        ]


@dataclass(frozen=True)
class CountsDescription:
    """What is released of a column with a public list, or of a pair of columns.

    Attributes
    ----------
    name : str
        The name of the column, or of both.
    counts : dict of str (or pair of str) to Estimated
        The number of rows of each level, or of each pair of levels.
    """

    name: str
    counts: dict

    def rows(self) -> list[tuple[str, Estimated]]:
        """Names of the numbers and the numbers, for a table."""
        return [
            (level if isinstance(level, str) else " and ".join(level), found)
            for level, found in self.counts.items()
        ]


def _values(column, z):
    z = np.asarray(z, dtype=float)
    return column.decode(np.column_stack([z, np.zeros(len(z))]))


def _half(column):
    """Half of the range, in the units of the column; days of dates."""
    low, high = _values(column, [-1.0, 1.0])
    return (high - low).days / 2.0 if isinstance(column, Date) else (high - low) / 2.0


class Description(Printed):
    """A private description of a table; see :func:`skpriv.describe`.

    Attributes
    ----------
    n : int
        The public number of rows, or of persons where they are protected.
    columns : dict of str to LineDescription or CountsDescription
        What is released of each column. ``description[name]`` is the same.
    pairs : dict of (str, str) to CountsDescription
        The two-way counts that were asked for.
    confidence_level : float
        Confidence level of each interval.
    estimand : str
        What the intervals are for: "table" or "population".
    privacy_report : PrivacyReport
        What was asked of the rows, and at what price.
    """

    def __init__(
        self,
        schema: Any,
        columns: Any,
        tables: Any,
        answers: Any,
        report: Any,
        confidence_level: float,
        estimand: str,
    ) -> None:
        self.n, self.privacy_report, self.estimand = report.size, report, estimand
        self.confidence_level = confidence_level
        self._z, self._sampling = (
            two_sided_quantile(confidence_level),
            float(estimand == "population"),
        )
        # A sum about persons is one over m of the sum over their rows.
        self._persons, self._places = report.rows_per_unit is not None, report.rows_per_unit or 1
        self._most, self._unit = self.n * self._places, "persons" if self._persons else "rows"
        found = {
            line.name: self._line(i, line, schema, columns, answers)
            for i, line in enumerate(columns)
        }
        self.pairs: dict[Any, Any] = {}
        start = 0
        for table in tables:
            stop = start + cells(table)
            names = tuple(column.name for column in table)
            counts = self._counts(table, answers[CountsQuery], slice(start, stop))
            kept = found if len(names) == 1 else self.pairs
            kept[names[0] if len(names) == 1 else names] = CountsDescription(
                " and ".join(names), counts
            )
            start = stop
        self.columns = {name: found[name] for name in schema}

    def __getitem__(self, name: Any) -> Any:
        return self.pairs[name] if isinstance(name, tuple) else self.columns[name]

    def _counts(self, table, answer, at):
        values, scale = self._places * answer.value[at], self._places * answer.noise.scale
        levels = [column.levels for column in table]
        names = levels[0] if len(levels) == 1 else [(a, b) for a in levels[0] for b in levels[1]]
        return {
            name: self._count(float(value), scale)
            for name, value in zip(names, values, strict=True)
        }

    def _count(self, value, scale):
        """A count of rows with its interval, inside of what is possible."""
        share = min(max(value / self._most, 0.0), 1.0)
        error = sqrt(scale**2 + self._sampling * self._most * share * (1.0 - share))
        ends = np.clip([value - self._z * error, value + self._z * error], 0.0, self._most)
        middle = float(np.clip(value, 0.0, self._most))
        return Estimated(middle, error, float(ends[0]), float(ends[1]))

    def _line(self, i, line, schema, lines, answers):
        column = schema[line.name]
        moments, tree = answers[ColumnMomentsQuery], answers[DistributionQuery]
        first, second, values = self._places * moments.value[3 * i : 3 * i + 3]
        second, scale = second / sqrt(2.0), self._places * moments.noise.scale
        count = float(np.clip(values, 1.0, self._most))
        levels, ends = tree_levels(self._places * tree.value, i, len(lines))
        tree_scale = self._places * tree.noise.scale
        distribution = Distribution(levels, tree_scale, (count, scale))
        mean, square = first / count, second / count
        spread = max(square - mean**2, 0.0)
        # Errors of a ratio and of a variance, to first order; the three sums have equal noise.
        mean_variance = scale**2 * (1.0 + mean**2) / count**2
        terms = (0.5, (2.0 * mean) ** 2, (square - 2.0 * mean**2) ** 2)
        spread_variance = scale**2 * sum(terms) / count**2
        if self._sampling:
            mean_variance += spread / count
            spread_variance += max(1.0 - spread, 0.0) * spread / count
        at_low, at_high = (self._count(float(end), tree_scale) for end in ends)
        counts, count_error = distribution.bins(HISTOGRAM_LEVEL)
        return LineDescription(
            name=line.name,
            missing=None if self._persons else self._count(self.n - float(values), scale),
            mean=self._point(column, mean, sqrt(mean_variance)),
            std=self._deviation(column, spread, sqrt(spread_variance)),
            quantiles={q: self._quantile(column, distribution, q) for q in QUANTILES},
            at_low=at_low,
            at_high=at_high,
            edges=_values(column, np.linspace(-1.0, 1.0, 2**HISTOGRAM_LEVEL + 1)),
            counts=counts,
            count_error=count_error,
        )

    def _point(self, column, z, error):
        """A position in [-1, 1] with its interval, in the units of the column."""
        ends = [z, z - self._z * error, z + self._z * error]
        value, low, high = _values(column, np.clip(ends, -1.0, 1.0))
        return Estimated(value, error * _half(column), low, high)

    def _deviation(self, column, spread, error):
        """A standard deviation from a variance of positions with its error."""
        ends = np.clip([spread - self._z * error, spread + self._z * error], 0.0, 1.0)
        low, high = _half(column) * np.sqrt(ends)
        std = sqrt(spread)
        return Estimated(
            std * _half(column),
            error * _half(column) / max(2.0 * std, 1e-9),
            float(low),
            float(high),
        )

    def _quantile(self, column, distribution, q):
        found = distribution.quantile(q, self._z, self._sampling)
        value, low, high = _values(column, 2.0 * np.array(found) - 1.0)
        return Estimated(value, float("nan"), low, high)

    def __repr__(self) -> str:
        return f"<Description of {len(self.columns)} columns and {self.n} {self._unit}>"

    def _parts(self):
        whose = "this table" if self.estimand == "table" else "the population"
        yield f"{self.n:,} {self._unit}. Intervals are for the numbers of {whose}."
        yield ""
        header = ("column", "", "estimate", f"{self.confidence_level:.0%} interval", "")
        yield Table(header, [_said(row) for row in self._rows()], left=2)
        yield ""
        yield str(self.privacy_report.guarantee)

    def to_frame(self) -> Any:
        """All numbers as a pandas data frame, one a row.

        Returns
        -------
        pandas.DataFrame
            A data frame with the columns ``column``, ``statistic``, ``estimate``, ``std_error``,
            ``low``, ``high``.
        """
        import pandas as pd

        names = ["column", "statistic", "estimate", "std_error", "low", "high"]
        rows = [
            (name, said, found.estimate, found.std_error, found.low, found.high)
            for name, said, found in self._rows()
        ]
        return pd.DataFrame(rows, columns=names)

    def plot(self, axes: Any = None) -> Any:
        """Draw one picture for each column: a histogram, or bars of counts with intervals.

        Parameters
        ----------
        axes : sequence of matplotlib axes, default=None
            One for each column. None makes a figure.

        Returns
        -------
        ndarray of matplotlib axes
        """

        return draw(self, axes)

    def _rows(self):
        everything = [*self.columns.items()]
        everything += [(found.name, found) for found in self.pairs.values()]
        return [(name, said, found) for name, part in everything for said, found in part.rows()]


def _said(row):
    name, said, found = row
    return name, said, *(_number(value) for value in (found.estimate, found.low, found.high))


def _number(value):
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
