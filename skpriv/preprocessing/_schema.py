"""What is public about a table: the type of each column, with its range or its list."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from .._printing import first_names
from .._stored import stored
from ..records import as_rows, cells, is_lazy, present_names, silence
from ._columns import Boolean, Categorical, ColumnType, Date, Numeric, Ordinal, codes_by_text
from ._values import codes_of, text

TYPES = {kind.kind: kind for kind in (Numeric, Categorical, Ordinal, Boolean, Date)}
# What a column of texts may be; of those that read as many cells the first is taken.
_GUESSED = (
    Boolean(), Numeric(), Date(), Numeric(decimal=","),
    *(Date(format=written) for written in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")),
    *(Numeric(decimal=mark, thousands=gap) for mark, gap in ((",", " "), (",", "."), (None, ","))),
)  # fmt: skip
_HEAD = """\
# What is public about each column. Ranges and lists come from what the columns mean, or from a code
# book; never from the rows: a minimum, a maximum or a rare category is one person's value. Delete
# the tables of columns that are not to be used, such as names and numbers of people.
"""


@stored
class Schema(Mapping):
    """The types of the columns of a table, with public ranges and lists.

    Parameters
    ----------
    columns : mapping of str to column type
        :class:`Numeric`, :class:`Categorical`, :class:`Ordinal`, :class:`Boolean` or
        :class:`Date`. The target may be one of them.
    target : str, default=None
        The column that is predicted. It is not encoded.

    Notes
    -----
    **Privacy guarantee**: a schema holds public knowledge only. `template` reads the names and
    the types of the columns of a frame and no value; but a reader of CSV files derives types from
    values, so look at a template before you publish it.

    Examples
    --------
    >>> from skpriv.preprocessing import Categorical, Numeric, Schema
    >>> schema = Schema({"age": Numeric(0, 120), "sex": Categorical(["F", "M"])})
    >>> print(schema)
    [age]
    type = "numeric"
    low = 0.0
    high = 120.0
    <BLANKLINE>
    [sex]
    type = "categorical"
    categories = ["F", "M"]
    other = true
    <BLANKLINE>
    >>> Schema.from_toml(schema.to_toml()) == schema
    True
    """

    def __init__(self, columns: Any, *, target: Any = None) -> None:
        if not isinstance(columns, Mapping):
            raise TypeError(
                "a schema must be a mapping of column names to types: Schema.read(path) reads one."
            )
        for name, column in columns.items():
            if not isinstance(name, str) or not isinstance(column, ColumnType):
                raise TypeError(
                    f"columns must map names to Numeric, Categorical, Ordinal, Boolean or Date, "
                    f"but column {name!r} is a {type(column).__name__}."
                )
        if target is not None:
            (target,) = present_names([target], columns, "target", "the schema")
        self._columns, self._target = dict(columns), target

    @property
    def columns(self) -> Any:
        """The column types by name, read-only."""
        return MappingProxyType(self._columns)

    @property
    def target(self) -> str | None:
        """Name of the column that is predicted, or None."""
        return self._target

    def __getitem__(self, name):
        return self._columns[name]

    def __iter__(self):
        return iter(self._columns)

    def __len__(self):
        return len(self._columns)

    def __eq__(self, other):
        if not isinstance(other, Schema):
            return NotImplemented
        return list(self.items()) == list(other.items()) and self.target == other.target

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self):
        columns = ", ".join(f"{name!r}: {column!r}" for name, column in self.items())
        target = "" if self.target is None else f", target={self.target!r}"
        return f"Schema({{{columns}}}{target})"

    def __str__(self):
        return self.to_toml()

    def with_target(self, target: Any) -> "Schema":
        """The same columns, one of which is the target."""
        return Schema(self, target=target)

    def check_filled(self, names: Any = None) -> None:
        """Raise `ValueError` if a range or a list is still open.

        Parameters
        ----------
        names : iterable of str, default=None
            Only these columns.
        """
        names = self if names is None else names
        for name in present_names(names, self, "names", "the schema"):
            if self[name].is_open:
                what = " and ".join(line.split()[0] for line in self[name].to_fill_in)
                raise ValueError(
                    f"Column {name!r} of the schema is still open: give {what}, from what the "
                    "column means and never from the rows."
                )

    @property
    def bounds_y(self) -> tuple[float, float]:
        """Public range (low, high) of the target, for ``bounds_y`` of a regressor."""
        if self.target is None:
            raise ValueError("The schema has no target: say which with schema.with_target(name).")
        column = self[self.target]
        if isinstance(column, Boolean):
            return 0.0, 1.0
        if not isinstance(column, Numeric):
            raise ValueError(
                f"The target {self.target!r} is {column.kind}, but it must be numeric or boolean."
            )
        self.check_filled([self.target])
        return column.low, column.high

    def read_target(self, frame: Any) -> np.ndarray:
        """Values of the target in a frame; a cell that cannot be read is the public constant.

        Parameters
        ----------
        frame : data frame
            A frame with a column of the target's name.

        Returns
        -------
        ndarray of shape (n_rows,)
            Targets in `bounds_y`. What is missing is ``missing`` of the target's type where that
            is a constant, else the middle of the range: rows are not left out, because the number
            of rows is public.
        """
        low, high = self.bounds_y
        z = self[self.target].encode(self._cells(frame))[:, 0]
        return np.clip(low + (z + 1.0) * (high / 2.0 - low / 2.0), low, high)

    @property
    def classes(self) -> tuple:
        """Public classes of the target, for ``classes`` of a classifier.

        They are the categories, as text, of a categorical or ordinal target. A truth value is False
        or True, and a number has the ends of its range.
        """
        column = None if self.target is None else self[self.target]
        if isinstance(column, Boolean):
            return False, True
        if not isinstance(column, Categorical | Ordinal):
            return tuple(int(end) if end == int(end) else end for end in self.bounds_y)
        self.check_filled([self.target])
        return tuple(map(str, column.categories))

    def read_labels(self, frame: Any) -> np.ndarray:
        """Labels of the target in a frame, for a classifier.

        Parameters
        ----------
        frame : data frame
            A frame with a column of the target's name.

        Returns
        -------
        ndarray of shape (n_rows,)
            Members of `classes` as objects, and None where a cell is none of them.
        """
        column = None if self.target is None else self[self.target]
        if isinstance(column, Boolean):  # A missing cell is .5, or a constant.
            found = np.array([0, 2, 1])[(2.0 * self.read_target(frame)).astype(int)]
        elif isinstance(column, Categorical | Ordinal):
            codes = codes_by_text(column.categories, column.spellings)
            found = codes_of(self._cells(frame), codes, -1, -1)
        else:
            return self.read_target(frame)
        return np.array([*self.classes, None], dtype=object)[found]

    def _cells(self, frame):
        """The column of the target, of frames that are lazy as well."""
        return columns_of(frame, [self.target]).get_column(self.target)

    @classmethod
    def template(cls, frame: Any, *, target: Any = None) -> "Schema":
        """Schema of a frame with names and types only; ranges and lists are left open.

        Parameters
        ----------
        frame : data frame
            A frame of pandas, polars, Arrow or another library that narwhals knows.
        target : str, default=None
            The column that is predicted.

        Returns
        -------
        Schema
            A schema to be written with `write`, filled in by a person, and read with `read`.

        Notes
        -----
        Types are guesses from the dtypes of the frame, and no value is looked at: a column of
        numbers that are codes is "numeric" here, and one of dtype object or text "categorical",
        numbers in texts included. What dtype a reader of CSV files gave to a column may depend on
        a single cell, so that a person decides: change the type where the column means another.

        Examples
        --------
        >>> import pandas as pd
        >>> from skpriv.preprocessing import Schema
        >>> print(Schema.template(pd.DataFrame({"age": [31, 48]})))
        [age]
        type = "numeric"
        # low =
        # high =
        <BLANKLINE>
        """
        dtypes = nw.from_native(frame).collect_schema()
        return cls({str(name): _open_type(dtype) for name, dtype in dtypes.items()}, target=target)

    @classmethod
    def read(cls, path: Any) -> "Schema":
        """Read a TOML file.

        Parameters
        ----------
        path : path-like

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            It names the column and the remedy.
        """
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("The schema is not in UTF-8: save it in this encoding.") from None
        return cls.from_toml(text)

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        """Schema of a TOML text: a table for each column."""
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"The schema is not TOML: {error}.") from error
        if not tables:
            raise ValueError('The schema has no columns: write a table for each, such as ["age"].')
        columns, targets = {}, []
        for name, table in tables.items():
            if not isinstance(table, dict):
                raise ValueError(
                    f"{name!r} of the schema is no column: a column is a table, [{name}], with a "
                    "type and its range or list."
                )
            table = dict(table)
            role = table.pop("role", None)
            if role not in (None, "target"):
                raise ValueError(f"Column {name!r}: role={role!r} can only be 'target'.")
            targets += [name] * (role == "target")
            columns[name] = _column(name, table)
        if len(targets) > 1:
            raise ValueError(
                f"The schema has {len(targets)} targets, {first_names(targets)}: keep one."
            )
        return cls(columns, target=targets[0] if targets else None)

    def write(self, path: Any) -> None:
        """Write a TOML file. What is still open stands there as a comment, to be filled in.

        Parameters
        ----------
        path : path-like
        """
        Path(path).write_text(_HEAD + "\n" + self.to_toml(), encoding="utf-8")

    def to_toml(self) -> str:
        """The schema as a TOML text."""
        tables = []
        for name, column in self.items():
            table = {"type": column.kind} | {
                f.name: getattr(column, f.name) for f in fields(column)
            }
            table["role"] = "target" if name == self.target else None
            lines = [f"[{_key(name)}]"]
            lines += [f"{key} = {_toml(v)}" for key, v in table.items() if v is not None]
            lines += [f"# {line}" for line in column.to_fill_in * column.is_open]
            tables.append("\n".join(lines) + "\n")
        return "\n".join(tables)


def as_frame(X):
    """A data frame of any library by the methods of narwhals."""
    try:
        return nw.from_native(X)
    except TypeError:
        raise TypeError(
            f"X is a {type(X).__name__}, but it must be a data frame (pandas, polars, Arrow): "
            "columns are found by name. For arrays of numbers there is BoundsScaler."
        ) from None


def columns_of(X, names):
    """A frame of some columns of a table in memory, by these names and not as the table has them.

    Lazy frames are collected.
    """
    frame = as_frame(X)
    columns = present_names(names, frame.collect_schema().names(), "The schema", "the table")
    own = zip(names, columns, strict=True)
    found: Any = frame.select(nw.col(column).alias(name) for name, column in own)
    return found.collect() if isinstance(found, nw.LazyFrame) else found


def column_names(X):
    """Names of the columns of a table, in memory or read in batches."""
    if not is_lazy(X):
        return list(as_frame(X).collect_schema().names())
    names = as_rows(X).names
    return list(as_frame(X).columns) if names is None else names


def _column(name, table):
    kind = table.pop("type", None)
    if kind not in TYPES:
        given = "has no type" if kind is None else f"has the type {kind!r}"
        raise ValueError(f"Column {name!r} {given}: it must be one of {', '.join(TYPES)}.")
    names = [f.name for f in fields(TYPES[kind])]
    strange = [key for key in table if key not in names]
    if strange:
        raise ValueError(
            f"Column {name!r} has {strange[0]!r}, but a column of type {kind!r} can have "
            f"{', '.join(names)}."
        )
    try:
        return TYPES[kind](**table)
    except ValueError as error:
        raise ValueError(f"Column {name!r}: {error}") from None


def _open_type(dtype):
    """The type of a column by that of the frame; the categories of a frame are its values."""
    if isinstance(dtype, nw.Boolean):
        return Boolean()
    if isinstance(dtype, nw.Date | nw.Datetime):
        return Date()
    return Numeric() if dtype.is_numeric() else Categorical()


@silence()
def guessed_type(series: Any) -> ColumnType:
    """Guess the open type of a column from its cells: of texts, what most of them say.

    At least nine tenths must say it. A column of the numbers 0 and 1 alone is one of truth values.

    Parameters
    ----------
    series : Series
        A column of a frame of narwhals.

    Returns
    -------
    ColumnType
        A type without its range or list. It is a guess about private cells, for the curator.
    """
    if not isinstance(series.dtype, nw.String | nw.Object):
        return _open_type(series.dtype)
    filled = sum(text(cell) is not None for cell in cells(series))
    best: ColumnType = Categorical()
    most_read = 0
    for kind in _GUESSED:
        if most_read < filled and (found := np.isfinite(kind._read(series)).sum()) > most_read:
            best, most_read = kind, found
    return best if most_read >= 0.9 * filled else Categorical()


def _key(name):
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _toml(name)


def _toml(value):
    """A value in TOML, which is that of JSON but for tables and for the character DEL."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml(key)} = {_toml(to)}' for key, to in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
