"""How the cells of a table fit a schema: for the curator's eyes, or with noise for a release."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from .._estimation._levels import two_sided_quantile
from .._parameters import Level, RandomState, validated
from .._printing import Printed, Table, installed
from .._stored import frozen, frozen_object
from ..privacy import ROUNDING, Budget, Groups, Query, open_session
from ..records import as_rows, cells, from_table, is_lazy, present_names, same_names
from ._columns._type import ABSENT, LOST
from ._encoder import as_schema
from ._schema import column_names, columns_of
from ._values import codes_of

if TYPE_CHECKING:
    from .._contracts import Array
    from ._schema import Schema

# Names of the states of a cell, in their order.
STATES = ("read", "clipped", "other", "unreadable", "missing")
_HEAD = "For the curator's eyes only. These are exact counts of private rows: do not release them."


@frozen_object
class CountsQuery(Query):
    """Counts of the cells of tables: the levels of one column, or the pairs of levels of two.

    A record is in one cell of each table: replacing it moves two counts by 1, so that T tables move
    by sqrt(2 T).

    Parameters
    ----------
    tables : tuple of tuples
        One column or two each: any objects with ``levels``, and with ``codes``, which makes the
        number of the level of each row of a chunk, whatever the row is.
    name : str
    """

    tables: tuple[tuple[Any, ...], ...]
    name: str = "counts"

    @property
    def sensitivity(self) -> float:
        """Largest change when a record is replaced, rounded up."""
        return sqrt(2.0 * len(self.tables)) * ROUNDING

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells of all tables."""
        return (sum(self._sizes),)

    def sum(self, X: Any, y: Any) -> np.ndarray:
        """Exact counts over a chunk of rows."""
        parts = []
        for table, size in zip(self.tables, self._sizes, strict=True):
            code = np.zeros(len(X), np.intp)
            for column in table:
                code = code * len(column.levels) + column.codes(X)
            parts.append(np.bincount(code, minlength=size))
        return np.concatenate(parts).astype(float)

    def split(self, value: np.ndarray) -> list[Any]:
        """Counts of each table."""
        return np.split(value, np.cumsum(self._sizes)[:-1])

    @property
    def _sizes(self) -> list[int]:
        return [prod(len(column.levels) for column in table) for table in self.tables]


@frozen
class CellStates:
    """A column of numbers of states, such as those of the cells of a table.

    Parameters
    ----------
    at : int
        Its place in the row.
    """

    at: int
    levels = STATES

    def codes(self, X: Any) -> "Array":
        """Number of the state of each row; what is no state counts as missing."""
        last = len(STATES) - 1
        return np.nan_to_num(X[:, self.at], nan=last).clip(0, last).astype(np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class TableCheck(Printed):
    """Counts of the cells of each column that were read, clipped, not listed, or lost.

    Parameters
    ----------
    columns : list of str
        The columns of the schema that are in the table.
    counts : ndarray of shape (n_columns, 5)
        Numbers of cells that are "read" as they are, "clipped" to the range, "other" (not in the
        list), "unreadable" (neither empty nor of the type) and "missing".
    n : int
        Number of rows.
    std_error : float
        The standard deviation of the noise of each count, 0 where counts are exact.
    confidence_level : float
        Confidence level of the intervals of noisy counts.
    report : PrivacyReport or None
        What was paid for noisy counts.
    strange : dict of str to list of (str, int)
        The most frequent cells that are not listed or cannot be read, with their numbers, where
        counts are exact.
    stand_ins : dict of str to str
        What a cell of a column without a value counts as where the schema does not say it.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpriv.preprocessing import Numeric, check_table
    >>> found = check_table(pd.DataFrame({"age": [30, 400, None]}), {"age": Numeric(0, 120)})
    >>> found.to_frame().loc["age", ["read", "clipped", "missing"]].tolist()
    [1.0, 1.0, 1.0]
    """

    columns: list[Any]
    counts: np.ndarray
    n: int
    std_error: float = 0.0
    confidence_level: float = 0.95
    report: Any = None
    strange: dict[str, Any] = field(default_factory=dict)
    stand_ins: dict[str, Any] = field(default_factory=dict)

    def _parts(self) -> Iterator[Table | str]:
        half = two_sided_quantile(self.confidence_level) * self.std_error
        largest = self.report and self.report.rows_per_unit
        said = np.clip(np.round(self.counts), 0, self.n * (largest or 1)).astype(int)
        if self.report is None:
            yield f"{_HEAD}\n{self.n:,} rows."
        else:
            yield (
                f"{self.n:,} {'persons' if largest else 'rows'}. Each count is noisy: "
                f"its {self.confidence_level:.0%} interval is {half:,.0f} to each "
                f"side.\n{self.report.guarantee}"
            )
        yield ""
        yield Table(
            ("column", *STATES),
            [
                (name, *(f"{c:,}" for c in row))
                for name, row in zip(self.columns, said, strict=True)
            ],
        )
        for name, found in self.strange.items():
            yield f"In {name} are not listed or cannot be read: " + ", ".join(
                f"{cell!r} ({number:,})" for cell, number in found
            )
        if self.strange:
            yield (
                "The schema says how cells are written, by true = [...], false = [...], spellings "
                "or format."
            )
        for name, row in zip(self.columns, self.counts, strict=True):
            count = row[STATES.index("unreadable") :].sum()
            if name in self.stand_ins and count > half * sqrt(2.0):
                yield (
                    f"{name}: cells without a value (about {count:,.0f}) count as "
                    f"{self.stand_ins[name]}: `missing` is not given."
                )

    def to_frame(self) -> Any:
        """The counts as a pandas data frame, one row a column.

        Returns
        -------
        pandas.DataFrame
            Counts by column of the table (rows) and state of the cells (columns).
        """
        pd = installed("pandas", "data")
        return pd.DataFrame(self.counts, index=self.columns, columns=list(STATES))


@validated
def check_table(
    table: Any,
    schema: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    confidence_level: Level = 0.95,
    groups: Any = None,
    max_rows_per_group: int | None = None,
    random_state: RandomState = None,
) -> TableCheck:
    """Count how the cells of a table fit a schema.

    Without an epsilon the counts are exact. They are private then, for the eyes of the curator who
    has the table anyway, and they must not be released. With an epsilon they are noisy and may be
    released.

    Parameters
    ----------
    table : data frame or rows
        A table of pandas, polars, Arrow, Dask or another library that narwhals knows.
    schema : Schema or mapping of str to column type
        The public types of the columns. Columns that it does not name are left out.
    epsilon : float in (0, inf], default=None
        Privacy parameter. None gives exact counts, which are not for release.
    delta : float in (0, 1), default=None
        Privacy parameter; required with `epsilon`.
    confidence_level : float in (0, 1), default=0.95
        Confidence level of the intervals of noisy counts.
    groups : array-like of shape (n_rows,), default=None
        The person to whom each row belongs, for noisy counts; None takes the column that the schema
        names. Then all rows of a person are
        protected, and the number of persons is public in place of the number of rows.
    max_rows_per_group : int, default=None
        The most rows of each person that are counted, with `groups`.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    TableCheck
        It prints as a table.

    Raises
    ------
    ValueError
        If the schema is not filled in, or names a column, other than its target, that the
        table has not.
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay for noisy counts.

    Notes
    -----
    **Privacy guarantee**: with an epsilon, (epsilon, delta)-differential privacy under replacement
    of one row, or of all rows of a person with `groups`, by one Gaussian answer that is charged
    before a cell is read. Without one there is no guarantee.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpriv.preprocessing import Date, Numeric, Schema, check_table
    >>> table = pd.DataFrame({"age": ["31", "130", "?"], "day": ["2020-01-31", "31/12/2020", ""]})
    >>> schema = Schema({"age": Numeric(0, 120), "day": Date("2015-01-01", "2024-12-31")})
    >>> print(check_table(table, schema))
    For the curator's eyes only. These are exact counts of private rows: do not release them.
    3 rows.
    <BLANKLINE>
    column  read  clipped  other  unreadable  missing
    age        1        1      0           1        0
    day        1        0      0           1        1
    In age are not listed or cannot be read: '?' (1)
    In day are not listed or cannot be read: '31/12/2020' (1)
    The schema says how cells are written, by true = [...], false = [...], spellings or format.
    age: cells without a value (about 1) count as the middle of the range: `missing` is not given.
    day: cells without a value (about 2) count as the middle of the range: `missing` is not given.
    """
    if epsilon is None and (delta is not None or groups is not None):
        raise ValueError("delta and groups need epsilon: without it the counts are exact.")
    schema = as_schema(schema)
    if epsilon is not None and groups is None and (people := schema.groups(table)):
        groups = people["groups"]
        max_rows_per_group = max_rows_per_group or people["max_rows_per_group"]
    rows = table if is_lazy(table) else from_table(table)
    names = column_names(table)
    named = zip(schema, same_names(schema, names), strict=True)
    columns = [name for name, own in named if own is not None or name != schema.target]
    present_names(columns or schema, names, "schema", "the table")
    schema.check_filled(columns)
    schema.check_dtypes(table, columns)

    def states(frame: Any) -> np.ndarray:
        frame = columns_of(frame, columns)
        return np.column_stack([_cell_states(frame[name], schema[name]) for name in columns])

    cells = as_rows(rows).mapped(states, len(columns), columns, numeric=False)
    query = CountsQuery(tuple((CellStates(at),) for at in range(len(columns))), "states of cells")
    stand_ins = {name: schema[name].stand_in for name in columns if schema[name].stand_in}
    if epsilon is None:
        counts = cells.sum(query).reshape(len(columns), -1)
        strange = {} if is_lazy(table) else _strange(columns_of(table, columns), schema)
        return TableCheck(columns, counts, cells.n, strange=strange, stand_ins=stand_ins)
    if delta is None:
        raise ValueError("delta is required with epsilon: choose it well below 1 over the rows.")
    budget = Budget(epsilon, delta)
    persons = None if groups is None else Groups(groups, max_rows_per_group)
    session = open_session("central", cells, None, budget, random_state, "check", groups=persons)
    answer = session.sum(query, 1.0)
    counts = answer.value.reshape(len(columns), -1)
    scale = answer.noise.scale
    report = session.report
    return TableCheck(columns, counts, session.n, scale, confidence_level, report, {}, stand_ins)


def _strange(frame: Any, schema: "Schema") -> dict[str, list[tuple[str, int]]]:
    """The most frequent cells of each column that are not listed or cannot be read."""
    found = {}
    for name in frame.columns:
        states = zip(cells(frame[name]), _cell_states(frame[name], schema[name]), strict=True)
        wrong = (str(cell) for cell, state in states if STATES[state] in ("other", "unreadable"))
        if common := Counter(wrong).most_common(5):
            found[name] = common
    return found


def _cell_states(series: Any, column: Any) -> np.ndarray:
    """Number of the state of each cell of a column."""
    states = column.states(series)
    return np.where((states == LOST) & (codes_of(series, {}, 1, 0) == 0), ABSENT, states)
