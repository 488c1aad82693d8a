"""Public facts about a table: the type of each column, with its range or its list."""

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from .._printing import first_names
from .._stored import frozen, stored
from ..records import (
    as_rows, dtypes_of, held_back, is_lazy, kind_of, present_names, refuse_dtypes, same_names,
    silence,
)  # fmt: skip
from ._columns._levels import Boolean, Ordinal
from ._columns._lists import Categorical, codes_by_text
from ._columns._ranges import Date, Numeric
from ._columns._type import ColumnType
from ._values import codes_of, days, number

if TYPE_CHECKING:
    from .._contracts import Array

TYPES = {kind.kind: kind for kind in (Numeric, Categorical, Ordinal, Boolean, Date)}
# The possible types of a column of texts; of those that read as many cells the first is taken.
_GUESSED = (
    Boolean(), Numeric(), Date(), Numeric(decimal=","),
    *(Date(format=written) for written in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")),
    *(Numeric(decimal=mark, thousands=gap) for mark, gap in ((",", " "), (",", "."), (None, ","))),
)  # fmt: skip
_HEAD = """\
# What is public about each column. Ranges and lists come from what the columns mean, or from a code
# book; never from the rows: a minimum, a maximum or a rare category is one person's value. Delete
# the tables of columns that are not to be used, such as names and numbers of people.
#
# A column may have, besides its range or its list:
#   usual = [20, 60]                where most numbers are: a public guess, which clips nothing
#   missing = "indicator"           missing cells have a coefficient; or the value that they get
#   spellings = { "fem." = "F" }    other spellings of what is listed
#   true = ["ja"], false = ["nein"] the words of a boolean column
#   role = "outcome"                no feature unless it is named; role = "target" is predicted
# The file may begin with, once for all commands:
#   encoding = "cp1252", sep = ";", decimal = ",", thousands = "."  how a CSV file is written
#   person = "patient", limit = 1   whose row it is, and the most rows of a person that are used
"""
ROLES = "target", "outcome"


@stored
@frozen
class TableFormat:
    """How a CSV file is written and whose its rows are, which a schema says once for all.

    Parameters
    ----------
    encoding : str, default=None
        Such as "cp1252".
    sep : str, default=None
        The character between two cells.
    decimal, thousands : str, default=None
        Marks of numbers in texts, for columns that say nothing of it.
    person : str, default=None
        The column that says whose row it is. It is no column of the schema.
    limit : int, default=None
        Most rows of a person that are used.
    """

    encoding: str | None = None
    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    person: str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("encoding", "sep", "person"):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str) and value):
                raise ValueError(f"{name}={value!r} must be a text.")
        if self.encoding is not None:
            try:  # it is none of bytes, such as hex, and reads what is wrong as a mark
                b"\n\xff\xff\xff".decode(self.encoding, errors="replace")
            except (LookupError, ValueError):
                raise ValueError(
                    f"encoding={self.encoding!r} is no encoding of texts: such as utf-8, latin-1 "
                    "or cp1252."
                ) from None
        sep = ";" if self.sep is None else self.sep
        if len(sep) != 1 or sep.isalnum() or sep in '"\r\n\0':
            raise ValueError(f"sep={sep!r} must be one character, such as ';' or a tab.")
        Numeric(decimal=self.decimal, thousands=self.thousands)  # which checks them
        limit = 1 if self.limit is None else self.limit
        if type(limit) is not int or limit < 1:
            raise ValueError(f"limit={limit!r} must be a number of rows, at least 1.")
        if self.limit is not None and self.person is None:
            raise ValueError("limit needs person, the column that says whose row it is.")

    def given(self) -> dict[str, Any]:
        """The statements, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def applied(self, column: ColumnType) -> ColumnType:
        """A column whose numbers have these marks, unless it says its own."""
        if not isinstance(column, Numeric) or column.decimal is not None or self.decimal is None:
            return column
        return replace(column, decimal=self.decimal, thousands=column.thousands or self.thousands)

    def inherits(self, column: Numeric) -> bool:
        """Whether a column needs no marks of its own where a schema has these."""
        mine = self.decimal, self.thousands
        return self.decimal is not None and (column.decimal, column.thousands) == mine


@stored
@dataclass(init=False, eq=False, repr=False)
class Schema(Mapping[str, ColumnType]):
    """The types of the columns of a table, with public ranges and lists.

    Parameters
    ----------
    columns : mapping of str to column type
        :class:`Numeric`, :class:`Categorical`, :class:`Ordinal`, :class:`Boolean` or
        :class:`Date`. The target may be one of them.
    target : str, default=None
        The column that is predicted. It is not encoded.
    outcomes : list of str, default=()
        Columns that come after what the features describe, such as a length of stay and a death:
        they are no features, unless a formula or a list of features names them.
    **table_format : str or int
        How a CSV file is written, and whose its rows are, for all commands: ``encoding``, ``sep``,
        ``decimal`` and ``thousands``; ``person``, the column that says whose row it is, and
        ``limit``, the most rows of a person that are used.

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

    _columns: dict[str, ColumnType]
    _target: str | None
    # Models of older versions have schemas without these
    _outcomes: tuple[str, ...] = ()
    _format: TableFormat = TableFormat()

    def __init__(
        self, columns: Any, *, target: Any = None, outcomes: Any = (), **table_format: Any
    ) -> None:
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
        self._format = TableFormat(**table_format)
        person = self._format.person
        if person is not None and same_names([person], columns) != [None]:
            raise ValueError(
                f"person={person!r} says whose row it is, and the schema has a table for it: take "
                "it out."
            )
        found = present_names(outcomes, columns, "outcomes", "the schema")
        self._outcomes = tuple(name for name in found if name != target)
        self._target = target
        self._columns = {}
        for name, column in columns.items():
            try:
                self._columns[name] = self._format.applied(column)
            except ValueError as error:
                raise ValueError(f"Column {name!r}: {error}") from None

    @property
    def columns(self) -> Mapping[str, ColumnType]:
        """The column types by name, read-only."""
        return MappingProxyType(self._columns)

    @property
    def target(self) -> str | None:
        """Name of the column that is predicted, or None."""
        return self._target

    @property
    def _target_name(self) -> str:
        if self.target is None:
            raise ValueError("The schema has no target: say which with schema.with_target(name).")
        return self.target

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Columns that are no features unless they are named; the target is none of them."""
        return self._outcomes

    @property
    def features(self) -> list[str]:
        """The columns but the target and the outcomes."""
        return [name for name in self if name != self.target and name not in self.outcomes]

    @property
    def table_format(self) -> TableFormat:
        """How a CSV file is written, and whose its rows are."""
        return self._format

    def __getitem__(self, name: str) -> ColumnType:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self.to_toml() == other.to_toml()

    @property
    def _settings(self) -> dict[str, Any]:
        """What the schema says beside its columns, as arguments of the constructor."""
        return {
            "target": self.target, "outcomes": list(self.outcomes), **self.table_format.given(),
        }  # fmt: skip

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        columns = ", ".join(f"{name!r}: {column!r}" for name, column in self.items())
        options = "".join(
            f", {name}={said!r}" for name, said in self._settings.items() if said not in (None, [])
        )
        return f"Schema({{{columns}}}{options})"

    def __str__(self) -> str:
        return self.to_toml()

    def with_target(self, target: str) -> "Schema":
        """The same columns, one of which is the target.

        Parameters
        ----------
        target : str or None
            Name of the column that is the target; None for a schema without one.

        Returns
        -------
        Schema
            A new schema, in which an earlier target is an outcome.
        """
        outcomes = [*([] if self.target is None else [self.target]), *self.outcomes]
        return Schema(self, **self._settings | {"target": target, "outcomes": outcomes})

    def with_format(self, **table_format: Any) -> "Schema":
        """The same schema for a table that is written in another way; None leaves what it says.

        Parameters
        ----------
        **table_format : str
            Settings of the file, such as ``decimal`` and ``missing``, as in the constructor.

        Returns
        -------
        Schema
            A new schema with these settings.
        """
        said = {name: value for name, value in table_format.items() if value is not None}
        columns = {name: self._unmarked(column) for name, column in self.items()}
        return Schema(columns, **self._settings | said)

    def select(self, names: Iterable[str]) -> "Schema":
        """Some of the columns, in the order of the schema; the target and outcomes among them stay.

        Parameters
        ----------
        names : iterable of str
            Names of the columns to keep.

        Returns
        -------
        Schema
            A new schema of these columns.
        """
        chosen = present_names(names, self, "names", "the schema")
        roles = {
            "target": self.target if self.target in chosen else None,
            "outcomes": [name for name in self.outcomes if name in chosen],
        }
        columns = {name: column for name, column in self.items() if name in chosen}
        return Schema(columns, **self._settings | roles)

    def groups(self, frame: Any) -> dict[str, Any]:
        """Whose each row is, as keywords of `fit` and :func:`skpriv.describe`.

        Parameters
        ----------
        frame : data frame
            A frame in memory with the column ``person`` of the schema.

        Returns
        -------
        dict
            ``groups`` and ``max_rows_per_group``; empty if the schema names no person.

        Raises
        ------
        ValueError
            If the rows are read in batches: pass ``groups`` yourself.

        Examples
        --------
        >>> import pandas as pd
        >>> from skpriv.preprocessing import Numeric, Schema
        >>> schema = Schema({"cost": Numeric(0, 1000)}, person="patient", limit=2)
        >>> visits = pd.DataFrame({"patient": ["a", "b", "a"], "cost": [20, 30, 50]})
        >>> keywords = schema.groups(visits)
        >>> keywords["groups"].tolist(), keywords["max_rows_per_group"]
        (['a', 'b', 'a'], 2)
        """
        person = self.table_format.person
        limit = self.table_format.limit or 1
        if person is None:
            return {}
        if is_lazy(frame):
            raise ValueError(
                f"The schema says that {person!r} is whose row it is, and the rows are read in "
                "batches: pass groups and max_rows_per_group."
            )
        people = columns_of(frame, [person]).get_column(person)
        return {"groups": people.to_native(), "max_rows_per_group": limit}

    def _unmarked(self, column: ColumnType) -> ColumnType:
        """A column without the marks of numbers that it has of the whole schema."""
        if isinstance(column, Numeric) and self.table_format.inherits(column):
            return replace(column, decimal=None, thousands=None)
        return column

    def check_filled(self, names: Iterable[str] | None = None) -> None:
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

    def check_dtypes(self, table: Any, names: Iterable[str]) -> None:
        """Refuse columns whose dtypes, which are public, let nobody read a cell; with the remedy.

        Parameters
        ----------
        table : data frame or rows
            Its dtypes alone are looked at. How many cells are missing is private.
        names : iterable of str
            The columns of the schema that are read.
        """
        dtypes = as_rows(table).dtypes if is_lazy(table) else dtypes_of(table)
        names = present_names(names, self, "names", "the schema")
        for name, own in zip(names, same_names(names, dtypes), strict=True):
            if own is not None:
                refuse_dtypes(
                    {own: dtypes[own]}, "the table",
                    f"the type {self[name].kind!r} does not read", self[name].readable,
                )  # fmt: skip

    @property
    def bounds_y(self) -> tuple[float, float]:
        """Public range (low, high) of the target, for ``bounds_y`` of a regressor."""
        column = self[self._target_name]
        if isinstance(column, Boolean):
            return 0.0, 1.0
        if not isinstance(column, Numeric):
            raise ValueError(
                f"The target {self.target!r} is {column.kind}, but it must be numeric or boolean."
            )
        self.check_filled([self._target_name])
        return column.low, column.high

    def read_target(self, frame: Any) -> np.ndarray:
        """Values of the target in a frame; a cell that cannot be read is the public constant.

        Parameters
        ----------
        frame : data frame
            A frame in memory with a column of the target's name.

        Returns
        -------
        ndarray of shape (n_rows,)
            Targets in `bounds_y`. A missing target is ``missing`` of the target's type where that
            is a constant, else the middle of the range: rows are not left out, because the number
            of rows is public. With `weights` such a row counts for nothing.
        """
        low, high = self.bounds_y

        def numbers(cells: Any) -> "Array":
            z = self[self._target_name].encode(cells)[:, 0]
            return np.clip(low + (z + 1.0) * (high / 2.0 - low / 2.0), low, high)

        return self._read(numbers, frame, np.nan)

    def weights(self, frame: Any) -> dict[str, Any]:
        """Which rows have a target, as keywords of `fit`: a row without one counts for nothing.

        The target's type asks for it by ``missing="indicator"``, which is public. Classifiers need
        no weights: they learn nothing from a row without a label.

        Parameters
        ----------
        frame : data frame
            A frame in memory with a column of the target's name.

        Returns
        -------
        dict
            ``sample_weight``, 1 or 0 for each row and private, and its public bound ``max_weight``
            of 1. It is empty if the target is of another type than a number or a truth value, or
            has no ``missing="indicator"``.

        Examples
        --------
        >>> import pandas as pd
        >>> from skpriv.preprocessing import Numeric, Schema
        >>> schema = Schema({"days": Numeric(0, 60, missing="indicator")}, target="days")
        >>> schema.weights(pd.DataFrame({"days": [10, None]}))["sample_weight"].tolist()
        [1.0, 0.0]
        """
        column = None if self.target is None else self.get(self.target)
        if not isinstance(column, Numeric | Boolean) or not column.has_indicator:
            return {}
        filled = self._read(lambda cells: 1.0 - column.encode(cells)[:, 1], frame, 0.0)
        return {"sample_weight": filled, "max_weight": 1.0}

    @property
    def classes(self) -> tuple[Any, ...]:
        """Public classes of the target, for ``classes`` of a classifier.

        They are the categories, as text, of a categorical or ordinal target. A truth value is False
        or True, or else its words for them, as text. A number has the ends of its range.
        """
        column = self[self._target_name]
        if isinstance(column, Boolean):
            return tuple(map(str, column._levels)) if column.true or column.false else (False, True)
        if not isinstance(column, Categorical | Ordinal):
            return tuple(int(end) if end == int(end) else end for end in self.bounds_y)
        self.check_filled([self._target_name])
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
        column = self[self._target_name]
        if not isinstance(column, Boolean | Categorical | Ordinal):
            return self.read_target(frame)

        def labels(cells: Any) -> "Array":
            if isinstance(column, Boolean):  # A missing cell is .5, or a constant.
                found = np.array([0, 2, 1])[column.encode(cells)[:, 0].astype(int) + 1]
            else:
                found = codes_of(cells, codes_by_text(column.categories, column.spellings), -1, -1)
            return np.array([*self.classes, None], object)[found]

        return self._read(labels, frame, None)

    def _read(self, read: Callable[..., Any], frame: Any, nothing: Any) -> "Array":
        """What is read of the cells of the target, before a charge."""
        if is_lazy(frame):
            raise TypeError(
                f"frame must be in memory, and not a {type(frame).__name__}: pass what its "
                "collect() or compute() returns."
            )
        names = [self._target_name]
        self.check_dtypes(frame, names)
        present_names(names, column_names(frame), "The schema", "the table")

        def evaluate(table: Any) -> "Array":
            return read(columns_of(table, names).get_column(*names))

        return held_back(evaluate, frame, nothing)

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
        numbers in texts included. The dtype that a reader of CSV files gave to a column may depend
        on a single cell, so that a person decides: change the type where the column means another.

        Examples
        --------
        >>> import pandas as pd
        >>> from skpriv.preprocessing import Schema
        >>> print(Schema.template(pd.DataFrame({"age": [31, 48]})))
        [age]
        type = "numeric"
        # low =
        # high =
        # usual = [ , ]
        # missing = "indicator"
        <BLANKLINE>
        """
        columns = {str(name): _open_type(dtype) for name, dtype in dtypes_of(frame).items()}
        return cls(columns, target=target)

    @classmethod
    def read(cls, path: Any) -> "Schema":
        """Read a TOML file.

        Parameters
        ----------
        path : path-like
            TOML file, such as `write` makes.

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
        """Schema of a TOML text: a table for each column.

        Parameters
        ----------
        text : str
            TOML, such as `to_toml` returns.

        Returns
        -------
        Schema
            Schema with the columns in the order of the text.
        """
        try:
            tables = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # or it has too many digits or brackets
            raise ValueError(f"The schema is not TOML: {error}.") from None
        columns = {}
        table_format = {}
        roles = {}
        allowed = [field.name for field in fields(TableFormat)]
        for name, table in tables.items():
            if not isinstance(table, dict):
                if name not in allowed:
                    raise ValueError(
                        f"{name!r} of the schema is no column: a column is a table, [{name}], with "
                        f"a type and its range or list. Above all tables may stand "
                        f"{', '.join(allowed)}."
                    )
                table_format[name] = table
                continue
            table = dict(table)
            roles[name] = role = table.pop("role", None)
            if role not in (None, *ROLES):
                raise ValueError(f"Column {name!r}: role={role!r} must be 'target' or 'outcome'.")
            if "thousands" in table:
                table = {"decimal": table_format.get("decimal")} | table
            columns[name] = _column(name, table)
        if not columns:
            raise ValueError('The schema has no columns: write a table for each, such as ["age"].')
        targets, outcomes = ([name for name in roles if roles[name] == role] for role in ROLES)
        if len(targets) > 1:
            raise ValueError(
                f"The schema has {len(targets)} targets, {first_names(targets)}: keep one."
            )
        return cls(columns, target=next(iter(targets), None), outcomes=outcomes, **table_format)

    def write(self, path: Any) -> None:
        """Write a TOML file. Open choices stand there as comments, to be filled in.

        Parameters
        ----------
        path : path-like
            File to write; a file of this name is replaced.
        """
        Path(path).write_text(self.to_toml(explained=True), encoding="utf-8")

    def to_toml(self, *, explained: bool = False) -> str:
        """The schema as a TOML text.

        Parameters
        ----------
        explained : bool, default=False
            Whether it begins with comments for whoever fills it in.

        Returns
        -------
        str
            TOML, which `from_toml` reads.
        """
        said = self.table_format.given().items()
        tables = ["".join(f"{key} = {_toml(value)}\n" for key, value in said)] if said else []
        for name, column in self.items():
            written: Any = self._unmarked(column)
            roles = {self.target: "target"} | dict.fromkeys(self.outcomes, "outcome")
            table = {"type": column.kind, **asdict(written), "role": roles.get(name)}
            lines = [f"[{_key(name)}]"]
            lines += [f"{key} = {_toml(v)}" for key, v in table.items() if v is not None]
            open_lines = (*column.to_fill_in, *column.to_consider) if column.is_open else ()
            lines += [f"# {line}" for line in open_lines]
            tables.append("\n".join(lines) + "\n")
        return "\n".join([_HEAD, *tables] if explained else tables)


def as_frame(X: Any) -> Any:
    """A data frame of any library by the methods of narwhals."""
    try:
        return nw.from_native(X)
    except TypeError:
        raise TypeError(
            f"X is a {type(X).__name__}, but it must be a data frame (pandas, polars, Arrow): "
            "columns are found by name. For arrays of numbers there is BoundsScaler."
        ) from None


def columns_of(X: Any, names: list[str]) -> Any:
    """A frame of some columns of a table in memory, by these names and not by the table's."""
    frame = as_frame(X)
    own = zip(names, present_names(names, frame.columns, "The schema", "the table"), strict=True)
    return frame.select(nw.col(column).alias(name) for name, column in own)


def column_names(X: Any) -> list[str]:
    """Names of the columns of a table, in memory or read in batches."""
    names = as_rows(X).names if is_lazy(X) else None
    # Without dtypes: narwhals looks at objects to guess theirs
    return list(as_frame(X).columns) if names is None else names


def _column(name: str, table: dict[str, Any]) -> ColumnType:
    kind = table.pop("type", None)
    if kind not in list(TYPES):
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


_OF_KINDS: dict[str | None, ColumnType] = {
    "numbers": Numeric(), "truth values": Boolean(), "dates": Date(), "periods": Date(),
    "intervals": Ordinal(), "durations": Numeric(unit="day"),
}  # fmt: skip


def _open_type(dtype: Any) -> ColumnType:
    """The type of a column by that of the frame; the categories of a frame are its values."""
    return _OF_KINDS.get(kind_of(dtype), Categorical())


MOST = 0.9  # part of the cells that must say what a type is guessed from
MOST_GUESSED = 2**12  # cells that a guess is made from: to read millions of texts takes minutes


@silence()
def guessed_type(series: Any) -> ColumnType:
    """Guess the open type of a column from its cells: of texts, what most of them say.

    At least nine tenths must say it, of some thousand cells from the whole column. If these are the
    numbers 0 and 1 alone, the column is one of truth values.

    Parameters
    ----------
    series : Series
        A column of a frame of narwhals.

    Returns
    -------
    ColumnType
        A type without its range or list. It is a guess about private cells, for the curator.

    Examples
    --------
    >>> import narwhals.stable.v2 as nw
    >>> import pandas as pd
    >>> from skpriv.preprocessing import guessed_type
    >>> guessed_type(nw.from_native(pd.Series(["1,5", "2,25", ""]), series_only=True))
    Numeric(decimal=',')
    """
    (dtype,) = dtypes_of(series).values()
    if kind_of(dtype) not in ("texts", None):
        return _open_type(dtype)
    series = series[:: len(series) // MOST_GUESSED + 1]
    filled = codes_of(series, {}, 1, 0).sum()
    best: ColumnType = Categorical()
    most_read = 0
    for kind in _GUESSED:
        if most_read < filled and (found := np.isfinite(kind._read(series)).sum()) > most_read:
            best = kind
            most_read = found
    return best if most_read >= MOST * filled else Categorical()


def reads_as_value(name: str) -> bool:
    """Whether a text is a number or a date, or has digits and no letter: no name of a column."""
    has_digit = any(character.isdigit() for character in name)
    is_name = any(character.isalpha() for character in name)
    return has_digit and (not is_name or np.isfinite(number(name)) or np.isfinite(days(name)))


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _toml(name)


def _toml(value: Any) -> str:
    """A value in TOML, which is that of JSON but for tables and for the character DEL."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml(key)} = {_toml(to)}' for key, to in value.items())} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
