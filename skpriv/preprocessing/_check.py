"""How the cells of a table fit a schema: exact counts, for the curator's eyes."""

from collections import Counter
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np

from .._parameters import validated
from .._printing import Printed, Table, installed
from .._stored import frozen, frozen_object
from ..privacy import ROUNDING, Query
from ..records import as_rows, cells, from_table, identity, is_lazy, present_names, same_names
from ._columns import LOST
from ._encoder import as_schema
from ._schema import column_names, columns_of
from ._values import text

# Names of the states of a cell, in their order; LOST is divided into unreadable and missing.
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
    """

    tables: tuple[tuple, ...]
    name = "counts"

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
            code = np.zeros(len(X), dtype=np.intp)
            for column in table:
                code = code * len(column.levels) + column.codes(X)
            parts.append(np.bincount(code, minlength=size))
        return np.concatenate(parts).astype(float)

    def split(self, value: np.ndarray) -> list:
        """Counts of each table."""
        return np.split(value, np.cumsum(self._sizes)[:-1])

    @property
    def _sizes(self):
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

    def codes(self, X: Any) -> np.ndarray:
        """Number of the state of each row; what is no state counts as missing."""
        last = len(STATES) - 1
        return np.clip(np.nan_to_num(X[:, self.at], nan=last), 0, last).astype(np.intp)


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
    strange : dict of str to list of (str, int)
        The most frequent cells that are not listed or cannot be read, with their numbers.
    stand_ins : dict of str to str
        What a cell of a column without a value counts as where the schema does not say it.
    """

    columns: list
    counts: np.ndarray
    n: int
    strange: dict
    stand_ins: dict

    def _parts(self):
        yield f"{_HEAD}\n{self.n:,} rows."
        yield ""
        cells = zip(self.columns, self.counts.astype(int), strict=True)
        yield Table(("column", *STATES), [(name, *(f"{c:,}" for c in row)) for name, row in cells])
        for name, found in self.strange.items():
            listed = ", ".join(f"{cell!r} ({number:,})" for cell, number in found)
            yield f"In {name} are not listed or cannot be read: {listed}"
        lost = self.counts[:, STATES.index("unreadable") :].sum(axis=1)
        for name, count in zip(self.columns, lost, strict=True):
            if name in self.stand_ins and count:
                yield (
                    f"{name}: cells without a value ({count:,.0f}) count as {self.stand_ins[name]}:"
                    " `missing` is not given."
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
def check_table(table: Any, schema: Any) -> TableCheck:
    """Count how the cells of a table fit a schema.

    The counts are exact. They are private, for the eyes of the curator who has the table anyway,
    and they must not be released: :func:`skpriv.describe` releases counts with noise.

    Parameters
    ----------
    table : data frame or rows
        A table of pandas, polars, Arrow, Dask or another library that narwhals knows.
    schema : Schema or mapping of str to column type
        The public types of the columns. Columns that it does not name are left out.

    Returns
    -------
    TableCheck
        It prints as a table.

    Raises
    ------
    ValueError
        If the schema is not filled in, or names a column, other than its target, that the
        table has not.

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
    age: cells without a value (1) count as the middle of the range: `missing` is not given.
    day: cells without a value (2) count as the middle of the range: `missing` is not given.
    """
    schema = as_schema(schema)
    rows = table if is_lazy(table) else from_table(table)
    names = column_names(table)
    named = zip(schema, same_names(schema, names), strict=True)
    columns = [name for name, own in named if own is not None or name != schema.target]
    present_names(columns or schema, names, "schema", "the table")
    schema.check_filled(columns)
    schema.check_dtypes(table, columns)

    def states(frame):
        frame = columns_of(frame, columns)
        return np.column_stack([_cell_states(frame[name], schema[name]) for name in columns])

    cells = as_rows(rows).mapped(states, len(columns), columns, numeric=False)
    query = CountsQuery(tuple((CellStates(at),) for at in range(len(columns))))
    stand_ins = {name: schema[name].stand_in for name in columns if schema[name].stand_in}
    counts = cells.sum(query).reshape(len(columns), -1)
    strange = {} if is_lazy(table) else _strange(columns_of(table, columns), schema)
    return TableCheck(columns, counts, cells.n, strange, stand_ins)


def _strange(frame, schema):
    """The most frequent cells of each column that are not listed or cannot be read."""
    found = {}
    for name in frame.columns:
        states = zip(cells(frame[name]), _cell_states(frame[name], schema[name]), strict=True)
        wrong = (str(cell) for cell, state in states if STATES[state] in ("other", "unreadable"))
        if common := Counter(wrong).most_common(5):
            found[name] = common
    return found


def _cell_states(series, column):
    """Number of the state of each cell of a column."""
    states = column.states(series)
    empty = np.array([_empty(value) for value in cells(series)], dtype=bool)
    return np.where((states == LOST) & empty, STATES.index("missing"), states)


def _empty(value):
    """Whether a cell holds nothing, or a word for nothing."""
    if isinstance(value, str | bytes):
        return text(value) is None
    try:
        return identity(value) is None and bool(value is None or value != value)
    except Exception:  # Such as pandas.NA, of which nobody knows whether it equals itself.
        return type(value).__name__ == "NAType"
