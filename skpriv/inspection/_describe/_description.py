"""What a private description of a table says: a table, a frame, and one picture for each column."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from ..._estimation._intervals import two_sided_quantile
from ..._printing import Printed, Table, axes_in_rows, pyplot
from ...preprocessing import Date
from ._queries import (
    ColumnMomentsQuery,
    CountsQuery,
    Distribution,
    DistributionQuery,
    cells,
    tree_levels,
)

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
    edges, counts = column.edges, np.maximum(column.counts, 0.0)
    ax.stairs(counts, _places(edges), fill=True, alpha=0.5)
    median = column.quantiles[0.5].estimate
    ax.axvline(_places([median])[0], color="C1", label=f"median {_short(median)}")
    ax.set(ylabel="rows", ylim=(0.0, None))
    if not isinstance(edges[0], float):
        ax.xaxis_date()
        ax.tick_params(axis="x", rotation=30)
    ax.legend(fontsize="small")


def _places(values):
    if isinstance(values[0], float):
        return np.asarray(values)
    from matplotlib.dates import date2num

    return date2num(values)


def _bars(ax, column):
    rows = column.rows()
    places = np.arange(len(rows))
    values = [found.estimate for _, found in rows]
    lengths = [
        [found.estimate - found.low for _, found in rows],
        [found.high - found.estimate for _, found in rows],
    ]
    ax.barh(places, values, alpha=0.5, xerr=np.maximum(lengths, 0.0))
    ax.set_yticks(places, [_short(said) for said, _ in rows])
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


class Parts:
    """Reads the released answers of a description.

    Parameters
    ----------
    schema : Schema
        The columns that are described.
    lines : list of Line
    tables : list of tuple
        The tables of counts, of one column or of two.
    answers : dict of type to Answer
        The answer to each query, by its class.
    confidence_level : float
    estimand : {"table", "population"}
    """

    def __init__(self, schema, lines, tables, answers, confidence_level, estimand):
        self._schema, self._lines, self._tables = schema, lines, tables
        self._answers, self.confidence_level = answers, confidence_level
        self.estimand = estimand
        self._z = two_sided_quantile(confidence_level)
        self._sampling = float(estimand == "population")

    def count(self, n, largest):
        """Take the public number of records: of rows, or of persons with so many rows at most.

        A sum about persons is one over m of the sum over their rows.
        """
        self.n, self._persons, self._places = n, largest is not None, largest or 1
        self._most = n * self._places

    def columns(self):
        """The description of each column, in the order of the schema."""
        found = {line.name: self._line(i, line) for i, line in enumerate(self._lines)}
        pairs = {}
        start = 0
        for table in self._tables:
            stop = start + cells(table)
            names = tuple(column.name for column in table)
            counted = self._counts(table, slice(start, stop))
            if len(names) == 1:
                found[names[0]] = CountsDescription(names[0], counted)
            else:
                pairs[names] = CountsDescription(" and ".join(names), counted)
            start = stop
        return {name: found[name] for name in self._schema}, pairs

    def _counts(self, table, at):
        answer = self._answers[CountsQuery]
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

    def _line(self, i, line):
        column = self._schema[line.name]
        moments, tree = self._answers[ColumnMomentsQuery], self._answers[DistributionQuery]
        first, second, values = self._places * moments.value[3 * i : 3 * i + 3]
        second, scale = second / sqrt(2.0), self._places * moments.noise.scale
        count = float(np.clip(values, 1.0, self._most))
        levels, ends = tree_levels(self._places * tree.value, i, len(self._lines))
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

    def __init__(self, parts: Any, report: Any) -> None:
        self.columns, self.pairs = parts.columns()
        self.n, self.confidence_level = parts.n, parts.confidence_level
        self.estimand, self.privacy_report = parts.estimand, report
        self._unit = "persons" if report.rows_per_unit is not None else "rows"

    def __getitem__(self, name: Any) -> Any:
        return self.pairs[name] if isinstance(name, tuple) else self.columns[name]

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
