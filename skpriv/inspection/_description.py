"""Private counts, means, quantiles and histograms of the columns of a table.

The questions are bounded sums of each column, with their joint sensitivities. Rows are those of a
`TableEncoder`. A coded column is one of a public list of points. All statements are for replacing
one record by another. The blocks of the columns stand side by side in one vector, so that their
squared changes add up.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from itertools import pairwise, product
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._estimation._levels import two_sided_quantile
from .._parameters import Level, PrivacyModel, RandomState, validated
from .._printing import (
    Printed,
    Table,
    given_axes,
    installed,
    level_ticks,
    picture_text,
    short_number,
)
from .._stored import frozen, frozen_object
from ..preprocessing import CountsQuery, Date, Numeric, Schema, TableEncoder, as_schema
from ..privacy import ROUNDING, Groups, Query, open_session
from ..records import from_table, is_lazy, present_names
from ._distribution import (
    ColumnRange, Distribution, DistributionQuery, equal_parts, positive_budget,
)  # fmt: skip

if TYPE_CHECKING:
    from .._contracts import Array


@frozen_object
class Coded:
    """A column with a public list of levels, or a range that is cut into equal parts.

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
    levels: tuple[Any, ...]
    at: slice
    points: np.ndarray

    def codes(self, X: np.ndarray) -> "Array":
        """Number of the nearest level of each row, whatever the row is."""
        squares = (self.points**2).sum(axis=1) / 2.0
        return np.argmax(X[:, self.at] @ self.points.T - squares, axis=1)


@frozen
class Binned(ColumnRange):
    """A range that is cut into parts of equal length; the last code is that of missing cells.

    Attributes
    ----------
    levels : tuple of str
        What each code means.
    """

    levels: tuple[Any, ...]

    def codes(self, X: np.ndarray) -> np.ndarray:
        """Number of the part of each row."""
        z, missing = self.values(X)
        return np.where(missing, len(self.levels) - 1, equal_parts(z, len(self.levels) - 1))


@frozen
class ColumnMomentsQuery(Query):
    """Sums of (z, sqrt(2) z^2, 1) over the cells of each range that have a value.

    A column moves by at most 2, so that K columns move by 2 sqrt(K). Between two values z and z'
    with u = |z - z'| and v = |z + z'| <= 2 - u the squared change is u^2 (1 + 2 v^2), at most
    u^2 (1 + 2 (2 - u)^2). The slope of this bound in u is u times 2 + 4 (2 - u) (2 - 2 u), which is
    2 + 8 (2 - u) (1 - u) >= 2 - 2 = 0, since (2 - u) (u - 1) <= 1/4 on [1, 2]. It is largest at
    u = 2: 4, attained by z = 1 and z' = -1. Between a value and a missing cell it is
    z^2 + 2 z^4 + 1 <= 4, which z = 1 attains.

    The rows of a person may be fewer than the most, so that missing cells are not all that is left:
    half of their number is a fourth coordinate. A row that is not there is 0, at most
    z^2 + 2 z^4 + 1 <= 4 from a value and 1/4 from a missing cell. A value and a missing cell are
    4 + 1/4 apart at most.
    """

    ranges: tuple[ColumnRange, ...]
    of_persons: bool = False
    name = "means and numbers of values"

    @property
    def sensitivity(self) -> float:
        """Largest change when a record is replaced, rounded up."""
        return sqrt((4.0 + 0.25 * self.of_persons) * len(self.ranges)) * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return ((3 + self.of_persons) * len(self.ranges),)

    def sum(self, X: np.ndarray, y: Any) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        parts = []
        for column in self.ranges:
            z, missing = column.values(X)
            absent = np.count_nonzero(missing)
            parts += [z.sum(), sqrt(2.0) * (z @ z), len(z) - absent]
            parts += [0.5 * absent] * self.of_persons
        return np.array(parts)


QUANTILES = (0.25, 0.5, 0.75)


@frozen
class Estimated:
    """A released number with its standard error and its interval.

    Attributes
    ----------
    estimate : float or date
        The released number.
    std_error : float
        Its standard error; NaN for a quantile, whose interval is not symmetric, and infinite for
        a standard deviation that noise hides, which prints as a dash.
    low, high : float or date
        The ends of its interval.
    """

    estimate: Any
    std_error: float
    low: Any
    high: Any


@frozen
class RangeDescription:
    """Released description of a column of numbers or dates.

    Attributes
    ----------
    name : str
        The name of the column.
    missing : Estimated
        The number of cells that are missing or cannot be read.
    values : Estimated
        The number of cells that have a value.
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
    missing: Estimated
    values: Estimated
    mean: Estimated
    std: Estimated
    quantiles: dict[float, Any]
    at_low: Estimated
    at_high: Estimated
    edges: list[Any]
    counts: np.ndarray
    count_error: float

    def rows(self) -> list[tuple[str, Estimated]]:
        """Names of the numbers and the numbers, for a table."""
        rows = [("missing", self.missing), ("mean", self.mean), ("std. deviation", self.std)]
        rows += [(f"{q:.0%} quantile", found) for q, found in self.quantiles.items()]
        rows += [("at or below the range", self.at_low), ("at or above the range", self.at_high)]
        return rows


@frozen
class CountsDescription:
    """Released description of a column with a public list, or of a pair of columns.

    Attributes
    ----------
    name : str
        The name of the column, or of both.
    counts : dict of str (or pair of str) to Estimated
        The number of rows of each level, or of each pair of levels.
    """

    name: str
    counts: dict[str, Any]

    def rows(self) -> list[tuple[str, Estimated]]:
        """Names of the numbers and the numbers, for a table."""
        names = (key if isinstance(key, str) else " and ".join(key) for key in self.counts)
        return list(zip(names, self.counts.values(), strict=True))


def values_at(column: Any, z: Any) -> Any:
    """Values of a column of numbers or dates at positions in [-1, 1]."""
    return column.decode(np.column_stack([z, np.zeros(len(z))]))


class Description(Printed):
    """A private description of a table; see :func:`skpriv.describe`.

    Parameters
    ----------
    schema : Schema
        Columns that are described.
    answers : iterable of (Query, Answer)
        Noisy sums about the columns.
    report : PrivacyReport
        What was asked of the rows, and at what price.
    confidence_level : float
        Confidence level of each interval, in (0, 1).
    estimand : {"table", "population"}
        What the intervals are for.

    Attributes
    ----------
    n : int
        The public number of rows, or of persons where they are protected.
    columns : dict of str to RangeDescription or CountsDescription
        What is released of each column. ``description[name]`` is the same.
    pairs : dict of (str, str) to CountsDescription
        The two-way counts that were asked for.
    privacy_report : PrivacyReport
        The ``report``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpriv import describe
    >>> from skpriv.preprocessing import Numeric
    >>> table = pd.DataFrame({"age": [30.0, 40.0, 50.0] * 1000})
    >>> found = describe(table, {"age": Numeric(0, 100)}, epsilon=5.0, delta=1e-6, random_state=0)
    >>> round(found["age"].mean.estimate)
    40
    """

    def __init__(
        self, schema: Any, answers: Any, report: Any, confidence_level: float, estimand: str
    ) -> None:
        self.n = report.size
        self.privacy_report = report
        self.estimand = estimand
        self.confidence_level = confidence_level
        self._z = two_sided_quantile(confidence_level)
        self._sampling = float(estimand == "population")
        # A sum about persons is the sum over their rows, divided by `places`.
        self._places = report.rows_per_unit or 1
        self._largest_count = self.n * self._places
        # Each query with its sums over rows, and the standard deviation of their noise.
        by_query = {
            type(query): (query, self._places * answer.value, self._places * answer.noise.scale)
            for query, answer in answers
        }
        found: dict[Any, Any] = {}
        if ColumnMomentsQuery in by_query:
            query, sums, scale = by_query[ColumnMomentsQuery]
            trees, counts, tree_scale = by_query[DistributionQuery]
            by_range = sums.reshape(len(query.ranges), -1)
            parts = zip(query.ranges, by_range, trees.tables(counts), strict=True)
            for column, moments, tree in parts:
                name = column.name
                found[name] = self._range(name, schema[name], moments, tree, scale, tree_scale)
        if CountsQuery in by_query:
            query, sums, scale = by_query[CountsQuery]
            for table, counts in zip(query.tables, query.split(sums), strict=True):
                names = tuple(column.name for column in table)
                pair = len(table) > 1
                keys = product(*(column.levels for column in table)) if pair else table[0].levels
                cells = zip(keys, counts, strict=True)
                found[names if pair else names[0]] = CountsDescription(
                    " and ".join(names), {key: self._count(count, scale) for key, count in cells}
                )
        self.columns = {name: found[name] for name in schema}
        self.pairs = {names: part for names, part in found.items() if names not in schema}

    def __getitem__(self, name: Any) -> Any:
        return self.pairs[name] if isinstance(name, tuple) else self.columns[name]

    def _estimated(
        self,
        value: float,
        error: float,
        ends: tuple[float, float],
        in_units: Callable[..., Any],
        std_error: float,
    ) -> Estimated:
        """A number between two ends with its interval.

        ``in_units`` takes the number and the ends of its interval to the units of the table.
        """
        half = self._z * error
        value, low, high = in_units(np.clip([value, value - half, value + half], *ends))
        return Estimated(value, std_error, low, high)

    def _count(self, value: float, scale: float) -> Estimated:
        """A count of rows with its interval, inside of what is possible."""
        share = min(max(value / self._largest_count, 0.0), 1.0)
        error = sqrt(scale**2 + self._sampling * self._largest_count * share * (1.0 - share))
        return self._estimated(value, error, (0.0, self._largest_count), np.ndarray.tolist, error)

    def _range(
        self,
        name: str,
        column: Any,
        moments: np.ndarray,
        tree: list[np.ndarray],
        scale: float,
        tree_scale: float,
    ) -> RangeDescription:
        """A number or date: from its moments, its tree and the deviations of their noise."""
        first, second, values, *absent = moments.tolist()
        second /= sqrt(2.0)
        missing = self._count(2.0 * absent[0], 2.0 * scale) if absent else self._count(
            self.n - values, scale
        )  # fmt: skip
        count = float(np.clip(values, 1.0, self._largest_count))
        *levels, ends = tree
        distribution = Distribution(levels, tree_scale, (count, scale))
        mean = first / count
        square = second / count
        spread = max(square - mean**2, 0.0)
        # Errors of a ratio and of a variance, to first order. The three sums have equal noise; the
        # second one is of sqrt(2) z^2, so that the variance of the noise of z^2 is half of it.
        mean_variance = scale**2 * (1.0 + mean**2) / count**2
        terms = (0.5, (2.0 * mean) ** 2, (square - 2.0 * mean**2) ** 2)
        spread_variance = scale**2 * sum(terms) / count**2
        if self._sampling:
            # No fourth moment is released. About the mean m it is at most (1 + |m|)^2 times the
            # variance, since no position in [-1, 1] is further than 1 + |m| from m.
            mean_variance += spread / count
            spread_variance += max((1.0 + abs(mean)) ** 2 - spread, 0.0) * spread / count
        at_low, at_high = (self._count(float(end), tree_scale) for end in ends)
        counts, count_error = distribution.bins(5)  # This level of the tree has 32 equal parts.
        low, high = values_at(column, [-1.0, 1.0])
        half = (high - low).days / 2.0 if isinstance(column, Date) else (high - low) / 2.0
        mean_error = sqrt(mean_variance)
        spread_error = sqrt(spread_variance)
        return RangeDescription(
            name=name,
            missing=missing,
            values=self._count(values, scale),
            mean=self._estimated(
                mean, mean_error, (-1.0, 1.0), partial(values_at, column), half * mean_error
            ),
            std=self._estimated(
                spread, spread_error, (0.0, 1.0), lambda x: (half * np.sqrt(x)).tolist(),
                half * spread_error / (2.0 * sqrt(spread))
                if spread else inf if spread_error else 0.0,
            ),
            quantiles={q: self._quantile(column, distribution, q) for q in QUANTILES},
            at_low=at_low,
            at_high=at_high,
            edges=values_at(column, np.linspace(-1.0, 1.0, len(counts) + 1)),
            counts=counts,
            count_error=count_error,
        )  # fmt: skip

    def _quantile(self, column: Any, distribution: Distribution, q: float) -> Estimated:
        found = distribution.quantile(q, self._z, self._sampling)
        value, low, high = values_at(column, 2.0 * np.array(found) - 1.0)
        return Estimated(value, float("nan"), low, high)

    def _parts(self) -> Iterator[Table | str]:
        whose = "these rows" if self.estimand == "table" else "the population"
        units = "rows"
        if self.privacy_report.rows_per_unit is not None:
            units = f"persons, at most {self._places} of the rows of each"
        yield f"{self.n:,} {units}. Intervals are for the numbers of {whose}."
        yield ""
        rows = [
            (
                name, said, "-" if found.std_error == inf else short_number(found.estimate),
                *map(short_number, (found.low, found.high)),
            )
            for name, said, found in self._rows()
        ]  # fmt: skip
        yield Table(
            ("column", "", "estimate", f"{self.confidence_level:.0%} interval", ""), rows, left=2
        )
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
        names = ["column", "statistic", "estimate", "std_error", "low", "high"]
        rows = [(name, said, *astuple(found)) for name, said, found in self._rows()]
        return installed("pandas", "data").DataFrame(rows, columns=names)

    def plot(self, axes: Any = None) -> Any:
        """Draw one picture for each column: a histogram, or bars of counts with intervals.

        Parameters
        ----------
        axes : sequence of matplotlib axes, default=None
            One for each column. None makes a figure.

        Returns
        -------
        ndarray of matplotlib axes
            One axes for each column.
        """
        axes = given_axes(axes, len(self.columns), "Description.plot")
        for ax, column in zip(axes, self.columns.values(), strict=True):
            draw = _histogram if isinstance(column, RangeDescription) else _bars
            draw(ax, column, self._z)
            ax.tick_params(axis="x", rotation=30)
            ax.set_title(picture_text(column.name, 24))
        return axes

    def _rows(self) -> list[tuple[str, str, Estimated]]:
        """Name of the column, name of the number, and the number."""
        parts = [*self.columns.values(), *self.pairs.values()]
        return [(part.name, said, found) for part in parts for said, found in part.rows()]


def _histogram(ax: Any, column: RangeDescription, z: float) -> None:
    ax.stairs(np.maximum(column.counts, 0.0), column.edges, fill=True, alpha=0.5)
    low, high = (np.maximum(column.counts + k * column.count_error, 0.0) for k in (-z, z))
    ax.stairs(high, column.edges, baseline=low, fill=True, color="0.3", alpha=0.3, label="interval")
    median = column.quantiles[0.5].estimate
    ax.axvline(median, color="C1", label=f"median {short_number(median)}")
    ax.set(ylabel="rows", ylim=(0.0, None))
    ax.legend(fontsize="x-small", frameon=False)


def _bars(ax: Any, column: CountsDescription, _: float) -> None:
    names, numbers = zip(*column.rows())
    values, low, high = np.array([(one.estimate, one.low, one.high) for one in numbers]).T
    heights = np.arange(len(names))
    ax.barh(heights, values, alpha=0.5, xerr=np.maximum([values - low, high - values], 0.0))
    level_ticks(ax.yaxis, names)
    ax.invert_yaxis()
    ax.set(xlabel="rows", xlim=(0.0, None))


# Levels of the tree of `describe`: a leaf is 1/2048 of the range of a column, .05% of it.
DISTRIBUTION_DEPTH = 11


@validated
def describe(
    table: Any,
    schema: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    columns: Any = None,
    pairs: Any = (),
    confidence_level: Level = 0.95,
    estimand: Literal["table", "population"] = "table",
    privacy: PrivacyModel = "central",
    groups: Any = None,
    max_rows_per_group: int | None = None,
    random_state: RandomState = None,
) -> Description:
    """Describe the columns of a table with differential privacy, each number with an interval.

    Numbers and dates get a mean, a standard deviation, quantiles and a histogram. Categories,
    levels and truth values get counts. All columns get a count of missing cells. One budget pays
    for all of them together, and it is charged before a cell is read.

    Parameters
    ----------
    table : data frame, Dask frame or rows
        A table of pandas, polars, Arrow, Dask or another library that narwhals knows, or rows of
        :mod:`skpriv.records`.
    schema : Schema or mapping of str to column type
        The public ranges and lists of the columns. Columns that the schema does not name are left
        out, and a target is described like any other column.
    epsilon : float in (0, inf]
        Privacy parameter of the whole description; ``inf`` adds no noise.
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of rows.
    columns : list of str, default=None
        The columns that are described. None describes all columns of the schema. Fewer columns
        have less noise each.
    pairs : sequence of (str, str), default=()
        Pairs of columns for which two-way counts are wanted. Numbers and dates are cut into four
        equal parts of their range.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of each interval by itself.
    estimand : {"table", "population"}, default="table"
        What the intervals are for. With "table" they contain the number that the table itself has,
        or with `groups` the rows that were drawn, and count the privacy noise alone. With
        "population" rows are taken to be independent draws, and the intervals of means, quantiles
        and shares count the sampling error too.
    privacy : str, default="central"
        The privacy model.
    groups : array-like of shape (n_rows,), default=None
        The person to whom each row belongs; None takes the column that the schema names. Then the
        guarantee is for all rows of a person, the number of persons is public in place of the
        number of rows.
    max_rows_per_group : int, default=None
        The most rows of each person that are used, with `groups`. The others are left out of
        all counts, and the noise grows in proportion to it.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    Description
        It prints as a table. ``to_frame()`` gives all numbers with their intervals, and ``plot()``
        draws one picture for each column.

    Raises
    ------
    ValueError
        If a column is absent, or its range or list is still open. No value is read by then.
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one row, or of
    all rows of a person with `groups`. Released are three Gaussian answers at most: moments and
    numbers of values, counts in a binary tree over the range of each number, and counts of levels
    and pairs. The budget is divided in proportion to their sensitivities, which makes the sum of
    their noise variances least. The sensitivities are derived in the docstrings of the queries. The
    number of rows and the schema are public.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from skpriv import describe
    >>> from skpriv.preprocessing import Categorical, Numeric, Schema
    >>> rng = np.random.RandomState(0)
    >>> table = pd.DataFrame(
    ...     {"age": rng.randint(18, 90, 60_000), "sex": rng.choice(["F", "M"], 60_000)}
    ... )
    >>> schema = Schema({"age": Numeric(0, 120), "sex": Categorical(["F", "M"], other=False)})
    >>> found = describe(table, schema, epsilon=1.0, delta=1e-6, random_state=0)
    >>> bool(abs(found["age"].mean.estimate - table["age"].mean()) < 0.5)
    True
    """
    if groups is None and (people := as_schema(schema).groups(table)):
        groups = people["groups"]
        max_rows_per_group = max_rows_per_group or people["max_rows_per_group"]
    schema = _chosen(schema, columns)
    schema.check_filled()
    if (groups is None) != (max_rows_per_group is None):
        raise ValueError("groups and max_rows_per_group go together: give both or neither.")
    persons = None if groups is None else Groups(groups, max_rows_per_group)
    rows = table if is_lazy(table) else from_table(table)
    encoder = TableEncoder(Schema(dict(schema))).fit(rows)
    present_names(schema, encoder.feature_names_in_, "schema", "the table")
    encoded = encoder.transform(rows)  # Cells are read when the session asks for them.
    if not encoded.n:
        raise ValueError("table has no rows.")
    ranges, coded = _ranges_and_coded(encoder, schema)
    tables = [(column,) for column in coded] + _tables(pairs, schema, ranges, coded)
    queries = []
    if ranges:
        moments = ColumnMomentsQuery(tuple(ranges), persons is not None)
        queries += [moments, DistributionQuery(moments.ranges, DISTRIBUTION_DEPTH)]
    if tables:
        queries.append(CountsQuery(tuple(tables)))
    session = open_session(
        privacy, encoded, None, positive_budget(epsilon, delta), random_state, "describe",
        groups=persons,
    )  # fmt: skip
    del table, rows, encoded  # Only the session has the data now.
    total = sum(query.sensitivity for query in queries)
    answers = [(query, session.sum(query, query.sensitivity / total)) for query in queries]
    return Description(schema, answers, session.report, confidence_level, estimand)


def _chosen(schema: Schema | dict[str, Any], columns: Any) -> Schema:
    """The columns that are described; each gets a place for missing cells."""
    types: Mapping[str, Any] = as_schema(schema)
    columns = types if columns is None else columns
    names = present_names(columns, types, "columns", "the schema")
    if not names:
        raise ValueError("columns must name at least one column of the schema.")
    return Schema({name: replace(types[name], missing="indicator") for name in names})


def _ranges_and_coded(encoder: Any, schema: Schema) -> tuple[list[ColumnRange], list[Coded]]:
    """Ranges and coded columns of the encoded rows."""
    ranges = []
    coded = []
    for name, at in encoder.blocks_.items():
        if isinstance(schema[name], Numeric | Date):
            ranges.append(ColumnRange(name, at.start, encoder.norm_))
        else:
            levels, points = encoder.coded_levels(name)
            coded.append(Coded(name, tuple(levels), at, points))
    return ranges, coded


def _tables(
    pairs: Sequence[tuple[str, str]], schema: Schema, ranges: list[ColumnRange], coded: list[Coded]
) -> list[tuple[Any, ...]]:
    """The pairs of columns of which two-way counts are wanted."""
    by_name: dict[str, Any] = {column.name: column for column in coded}
    for column in ranges:
        # A two-way table has four parts of a range: more parts would have fewer rows in each cell.
        ends = values_at(schema[column.name], np.linspace(-1.0, 1.0, 5))
        labels = [f"{low} to {high}" for low, high in pairwise(map(short_number, ends))]
        by_name[column.name] = Binned(column.name, column.at, column.norm, (*labels, "missing"))
    tables = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError("pairs must be pairs of two different columns: (name, name).")
        names = present_names(pair, by_name, "pairs", "the description")
        tables.append(tuple(by_name[name] for name in names))
    return tables
