"""The types of columns: what a cell may be, a number or one of a list, and where it goes.

Every type maps a column to a block: an array of shape (n_rows, width) whose rows have an l2 norm
of at most 1. A missing cell is the zero row of its block, unless its type says otherwise.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from datetime import date
from functools import cached_property
from math import inf, nan, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from scipy.special import ndtri

from .._estimation._levels import usual_moments
from .._linalg import FLOAT_STEP, lengths_of
from .._stored import frozen, stored
from ..records import (
    READ_AS_NUMBERS,
    present_names,
    silence,
)
from ._values import (
    SECONDS, booleans_of, codes_of, composed, days, days_of, number, numbers_of, text, truth_word,
)  # fmt: skip

if TYPE_CHECKING:
    from .._contracts import Array, Scalar

INDICATOR = "indicator"
OTHER = "other"
MISSING = "missing"
# States of a cell: it is taken as it is, moved to an end of the range, "other", cannot be read, or
# says that nothing is known.
READ, CLIPPED, UNLISTED, LOST, ABSENT = range(5)
DAYS_PER_YEAR = (date(401, 1, 1) - date(1, 1, 1)).days / 400  # the mean of the calendar


@frozen
class Block:
    """What a column becomes: names of its columns, and their way back.

    ``ranges`` are the ends of each column, shape (width, 2). ``effects`` and ``matrix`` say how the
    coefficients of the block, `beta`, are told in the units of the column: ``matrix @ beta``. The
    intercept grows by ``offset @ beta``. ``cells`` are functions of the block, as coefficients and
    an intercept, that are 1 for a level, or for missing values, and 0 for all others. A cell that
    is the mean of all levels has a part of each. ``reference`` is the level of a list that the
    others are told against; it is empty of other columns.
    """

    names: list[Any]
    ranges: np.ndarray
    effects: list[Any]
    matrix: np.ndarray
    offset: np.ndarray
    cells: np.ndarray
    reference: str = ""


def level_cells(rows: np.ndarray) -> np.ndarray:
    """Functions of a block, one row each, that are 1 at one of these rows and 0 at all others.

    Parameters
    ----------
    rows : ndarray of shape (n_levels, width)
        Rows of the levels; there are no functions if one of them is a weighted sum of others.

    Returns
    -------
    ndarray of shape (n_levels, width + 1), the intercept last
    """
    with_one = np.column_stack([rows, np.ones(len(rows))])
    if np.linalg.matrix_rank(with_one) < len(rows):
        return np.empty((0, with_one.shape[1]))
    return np.linalg.pinv(with_one).T


class ColumnType:
    """Base class of the types of columns; not for direct use.

    A subclass is a dataclass of public facts, with the methods ``encode`` and ``decode`` between a
    column and its block, ``states`` of the cells, and ``block(name)``. Displays ask for the numbers
    of public values, of the rows of a block, and of cells, and for the one that effects are told
    against. `is_open` says whether a person has still to fill in the range or the list, and
    `to_fill_in` what that person writes.

    Attributes
    ----------
    coded : (list of str, ndarray) or None
        Levels and their rows of the block; None for numbers and dates.
    to_consider : tuple of str
        What a template asks for besides, and what may be left out.
    """

    kind: ClassVar[str]
    encode: Callable[[Any], np.ndarray]
    decode: Callable[[np.ndarray], list[Any]]
    states: Callable[[Any], np.ndarray]
    block: Callable[[str], Block]
    _public_values: Callable[[int], np.ndarray]
    _values_of: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    _values_in: Callable[[Any], tuple[np.ndarray, np.ndarray]]
    _reference: Any
    to_fill_in: ClassVar[tuple[str, ...]] = ()
    to_consider: ClassVar[tuple[str, ...]] = ('missing = "indicator"',)
    readable: ClassVar[Any] = READ_AS_NUMBERS  # kinds of dtypes whose cells it can read
    is_open: Any = False
    coded: Any = None
    _level_names: Any = None  # the reference first
    usual: Any = None
    missing: Any

    @property
    def stand_in(self) -> str:
        """What a cell without a value counts as where nobody said it; empty if somebody did."""
        return "" if self.missing is not None else "the middle of the range"

    @property
    def has_indicator(self) -> bool:
        """Whether missing cells have a column of their own."""
        return bool(self.missing == INDICATOR)

    def expected_shares(self, given: Any = None, smallest: float | None = None) -> dict[str, Any]:
        """Expected shares of the levels of a column, of which some are given.

        Parameters
        ----------
        given : mapping of str to float, default=None
            Shares of some levels. The others have equal parts of the rest, but for "other" and
            "missing", which have none.
        smallest : float, default=None
            Share of the last level, where nothing is given.

        Returns
        -------
        dict of str to float
            Share of each level, in [0, 1]; they add up to 1.
        """
        levels = [] if self.coded is None else list(self.coded[0])
        usual = [level for level in levels if level not in (OTHER, MISSING)]
        named = dict(given or {})
        if smallest is not None and not named and len(usual) > 1:
            named = {usual[-1]: smallest}
        names = present_names(named, [*levels, MISSING], "shares", "this column", what="levels")
        # As they are written in the list
        named = dict(zip(names, map(float, named.values()), strict=True))
        left = 1.0 - sum(named.values())
        rest = [level for level in usual if level not in named]
        if min([left, *named.values()]) < -1e-9:
            raise ValueError("shares must not be negative, nor add up to more than 1.")
        return named | dict.fromkeys(rest, max(left, 0.0) / max(len(rest), 1))

    def imagined(self, quantiles: np.ndarray, shares: Any) -> "Array":
        """Block of made-up cells, which have these shares of levels.

        Parameters
        ----------
        quantiles : ndarray of shape (n_rows,)
            Numbers in (0, 1), spread evenly.
        shares : dict of str to float
            The levels and their shares, from `expected_shares`.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Encoded rows, as `encode` returns them.
        """
        names, rows = self.coded
        ends = np.cumsum([shares.get(name, 0.0) for name in names])
        return rows[np.searchsorted(ends[:-1], quantiles * ends[-1], side="right")]


class _Line(ColumnType):
    """A column on a line: z in [-1, 1], and an indicator of missing values if it is asked for.

    A row of the block is (z, 0), or (0, 1) where the cell is missing: its norm is at most 1, so
    that the indicator needs no room of its own.

    A subclass has the public ends of its numbers (`_ends`). It reads the number of each cell, which
    is NaN where the cell is missing (`_read`). It knows the number of a public value, and the value
    of a number (`_number`, `_value`). An effect has a name (`_effect`), and is told in the units
    ``(z + offset) * scale``, of which `_units` is the pair (scale, offset).
    """

    _ends: Any
    _units: Any
    _read: Callable[[Any], np.ndarray]
    _number: Callable[[Any], float]
    _value: Callable[[float], Any]
    _effect: Callable[[str], str]
    reference_position: Any = -1.0  # Missing cells are told against the value at this position.

    def __repr__(self) -> str:
        # Parameters that were not set are left out: there are many, and a column has few.
        values = asdict(cast(Any, self)).items()
        said = ", ".join(f"{name}={value!r}" for name, value in values if value is not None)
        return f"{type(self).__name__}({said})"

    @silence()
    def encode(self, series: Any) -> np.ndarray:
        """Encode the cells of a column as rows of norm at most 1.

        Parameters
        ----------
        series : series of a data frame
            Cells of the column.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Encoded rows; cells that cannot be read are missing ones.
        """
        z = self._position(self._read(series))
        absent = np.isnan(z)
        if self.has_indicator:
            return np.column_stack([np.where(absent, 0.0, z), absent])
        constant = 0.0 if self.missing is None else self._position(self._number(self.missing))
        return np.where(absent, constant, z)[:, None]

    @silence()
    def states(self, series: Any) -> np.ndarray:
        """State of each cell: READ, CLIPPED or LOST.

        Parameters
        ----------
        series : series of a data frame
            Cells of the column.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            One state for each cell.
        """
        numbers = self._read(series)
        low, high = self._ends
        outside = (numbers < low) | (numbers > high)
        return np.select([np.isnan(numbers), outside], [LOST, CLIPPED], READ)

    def decode(self, block: np.ndarray) -> list[Any]:
        """Values of the rows of a block, None where missing: undoes `encode`.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Encoded rows of the column.

        Returns
        -------
        list of shape (n_rows,)
            Cells in the units of the table.
        """
        absent = (block[:, -1] > 0.5) & self.has_indicator
        return [None if no else self._from_z(z) for z, no in zip(block[:, 0], absent, strict=True)]

    def block(self, name: str) -> Block:
        """Names and way back of the block of a column of this name.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        Block
            Names of the encoded columns, their ranges, and the map to the units of the table.
        """
        scale, offset = self._units
        size = 1 + self.has_indicator
        names = [self._column_name(name), f"{name}=missing"]
        effects = [self._effect(name), self.missing_effect(name)]
        # f = beta z = (beta / scale) value - beta offset; a missing cell has z = 0.
        matrix = np.array([[1.0 / scale, 0.0], [-self.reference_position, 1.0]])[:size, :size]
        shift = np.array([-offset, 0.0])
        ranges = np.array([[-1.0, 1.0], [0.0, 1.0]])
        return Block(names[:size], ranges[:size], effects[:size], matrix, shift[:size], self._cells)

    @property
    def _cells(self) -> np.ndarray:
        """Cells of the levels, where there are two, and of missing values."""
        cells = level_cells(self.coded[1]) if self.coded else ()
        if len(cells) or not self.has_indicator:
            return np.reshape(cells, (-1, 2 + self.has_indicator))
        return np.array([[0.0, 1.0, 0.0]])

    def missing_effect(self, name: str) -> str:
        """Name of the effect of a missing cell.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        str
            The name, such as "age=missing against 50".
        """
        value = self._from_z(self.reference_position)
        return f"{name}=missing against {f'{value:g}' if isinstance(value, float) else value}"

    @property
    def _reference(self) -> "Scalar":
        """The value against which a missing cell is told."""
        return self._in_units(self.reference_position)

    def _public_values(self, count: int) -> "Array":
        """Values at equal steps over the range; of a column with levels the levels."""
        return self._in_units(np.linspace(-1.0, 1.0, count))

    def _values_of(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values of the rows of a block, and whether an indicator says that they are missing."""
        absent = (block[:, -1] > 0.5) & self.has_indicator
        return np.where(absent, self._reference, self._in_units(block[:, 0])), absent

    def _values_in(self, series: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same of the cells of a column."""
        return self._values_of(self.encode(series))

    def _in_units(self, z: Any) -> Any:
        """The numbers of positions in [-1, 1], in the units in which effects are told."""
        scale, offset = self._units
        return (z + offset) * scale

    def _position(self, numbers: Any) -> Any:
        """Position of numbers in [-1, 1]; those outside of the range are moved to its ends."""
        low, high = self._ends
        half = self._half
        return np.clip((np.clip(numbers, low, high) - low - half) / half, -1.0, 1.0)

    def _from_z(self, z: Any) -> Any:
        """Value of a position."""
        low, high = self._ends
        number = low + (np.clip(z, -1.0, 1.0) + 1.0) * self._half
        return self._value(float(np.clip(number, low, high)))

    @property
    def _half(self) -> Any:
        low, high = self._ends
        return (high - low) / 2.0

    def _column_name(self, name: str) -> str:
        return name


@dataclass(frozen=True, repr=False)
class _Range(_Line):
    """A line between two public ends, which a person gives.

    A subclass checks each public value, and returns it as it is kept (`_checked`).
    """

    _checked: ClassVar[Callable[..., Any]]  # not a field of the dataclass
    low: Any = None
    high: Any = None
    _: KW_ONLY
    missing: Any = None
    typical: Any = None
    to_fill_in = ("low =", "high =")

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high are a public range: give both.")
        constant = None if self.has_indicator else self.missing
        inside = {"missing": constant, "typical": self.typical}
        for name, value in {"low": self.low, "high": self.high, **inside}.items():
            if value is not None:
                object.__setattr__(self, name, self._checked(name, value))
        if not (self.is_open or 0.0 < self._half < inf):
            raise ValueError(f"low={self.low!r} must be below high={self.high!r}.")
        low, high = (-inf, inf) if self.is_open else self._ends
        for name, value in inside.items():
            if value is not None and not low <= self._number(value) <= high:
                raise ValueError(f"{name}={value!r} must be a public constant from low to high.")
        if self.typical is not None and not self.has_indicator:
            raise ValueError('typical is for missing="indicator": take it out, or set that.')

    def imagined(self, quantiles: np.ndarray, shares: Any) -> np.ndarray:
        """Block of made-up cells: numbers that are spread over the range, and missing ones.

        Parameters
        ----------
        quantiles : ndarray of shape (n_rows,)
            Numbers in (0, 1), spread evenly.
        shares : dict of str to float
            The share of missing cells, from `expected_shares`.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Encoded rows, as `encode` returns them.
        """
        absent = shares.get(MISSING, 0.0) * self.has_indicator
        z = 2.0 * np.maximum(quantiles - absent, 0.0) / (1.0 - absent) - 1.0
        if self.usual:  # nine tenths of them, and normal
            mean, deviation = usual_moments(*self.usual)
            z = self._position(mean + deviation * ndtri(np.clip((z + 1.0) / 2.0, 1e-9, 1.0 - 1e-9)))
        is_absent = quantiles < absent
        rows = np.column_stack([np.where(is_absent, 0.0, z), is_absent])
        return rows[:, : 1 + self.has_indicator]

    @property
    def is_open(self) -> bool:
        """Whether a person has still to fill in the range."""
        return self.low is None

    @property
    def reference_position(self) -> float:
        """Position of the value against which a missing cell is told."""
        middle = sum(self.usual) / 2.0 if self.usual else None
        value = middle if self.typical is None else self._number(self.typical)
        return 0.0 if value is None else float(self._position(value))

    @property
    def _ends(self) -> tuple[float, float]:
        return self._number(self.low), self._number(self.high)


@stored
@dataclass(frozen=True, repr=False, kw_only=True)
class Numeric(_Range):
    """A column of numbers with a public range.

    Parameters
    ----------
    low, high : float
        Public range, finite, with low < high; numbers outside of it are clipped. It comes from
        what the column means, never from the rows.
    missing : None, "indicator" or float, default=None
        What stands for a missing cell: the middle of the range, a column of its own, or this
        public constant in the range.
    typical : float, default=None
        The value in the range against which the effect of a missing cell is told, such as 20 where
        the range is (0, 600); it needs ``missing="indicator"``. By default it is the middle of
        ``usual``, or else of the range, which may be far from every row. It changes the table of
        coefficients, and not what is released.
    unit : str, default=None
        The unit of the numbers, for tables of coefficients: with "year", "age per year". Durations
        are read in it, where it is "second", "minute", "hour", "day" or "week".
    decimal : str, default="."
        The decimal mark of numbers that are texts, as in ``pandas.read_csv``. With "," the text
        "12,5" is read as 12.5, and a text with a point is missing.
    thousands : str or None, default=None
        The mark between groups of digits in texts, as in ``pandas.read_csv``: with "," the text
        "1,234" is read as 1234. A blank, " ", stands for every kind of blank. Currency signs
        before or after a number are always left out.
    usual : (float, float), default=None
        A public guess of where most numbers are, inside the range: an income from 0 to 1,000,000
        may usually be from 20,000 to 80,000. Like the range, it comes from what the column means
        and never from the rows. It clips nothing.

    Examples
    --------
    >>> from skpriv.preprocessing import Numeric
    >>> Numeric(0, 120, unit="year")
    Numeric(low=0.0, high=120.0, unit='year')
    >>> Numeric(0, 1e6, decimal=",", thousands=".")
    Numeric(low=0.0, high=1000000.0, decimal=',', thousands='.')
    """

    unit: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    usual: Any = None
    kind = "numeric"
    to_consider = ("usual = [ , ]", 'missing = "indicator"')

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.unit is None or isinstance(self.unit, str)):
            raise ValueError("unit must be a text.")
        for name in ("decimal", "thousands"):
            mark = "," if getattr(self, name) is None else getattr(self, name)
            if not isinstance(mark, str) or len(mark) != 1 or mark.isalnum() or mark in "+-":
                said = "must be one character, such as ',' or '.' or ' '."
                raise ValueError(f"{name}={mark!r} {said}")
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise ValueError("thousands must not be the decimal mark: pass decimal=',' with it.")
        if self.usual is not None:
            self._check_usual()

    def _check_usual(self) -> None:
        """Keep the usual range as a pair of floats; it is a range inside the public one."""
        pair = self.usual if isinstance(self.usual, list | tuple) else ()
        if len(pair) != 2:
            raise ValueError(f"usual={self.usual!r} must be two numbers, [low, high].")
        low, high = (self._checked("usual", value) for value in pair)
        if not low < high or not (self.is_open or self.low <= low and high <= self.high):
            raise ValueError(
                f"usual={self.usual!r} must be a range inside the public one, from low to high."
            )
        object.__setattr__(self, "usual", (low, high))

    def _checked(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real) or np.isnan(number(value)):
            allowed = 'a finite number, or "indicator"' if name == "missing" else "a finite number"
            raise ValueError(f"{name}={value!r} must be {allowed}.")
        return float(value)

    def _number(self, value: Any) -> "Scalar":
        return value

    _value = _number

    def _read(self, series: Any) -> np.ndarray:
        return numbers_of(series, self.decimal or ".", self.thousands, self._seconds)

    @property
    def _seconds(self) -> float:
        """Length of the unit; NaN of what has no fixed length, or is no time."""
        return SECONDS.get((self.unit or "").removesuffix("s"), nan)

    @property
    def readable(self) -> Any:
        """Kinds of dtypes whose cells it can read."""
        return READ_AS_NUMBERS if np.isnan(self._seconds) else READ_AS_NUMBERS | {"durations"}

    def _effect(self, name: str) -> str:
        return f"{name} per {self.unit}" if self.unit else name

    def _in_units(self, z: Any) -> Any:
        return np.clip(self.low + (z + 1.0) * self._half, self.low, self.high)  # exact at the ends

    @property
    def _units(self) -> tuple[float, float]:
        return self._half, (self.low + self._half) / self._half


@stored
@dataclass(frozen=True, repr=False, kw_only=True)
class Date(_Range):
    """A column of dates with a public range; its coefficient is a change per year.

    Dates and times are understood (those with a zone are taken to UTC), and texts in the ISO
    format or in the one that is given.

    Parameters
    ----------
    low, high : date or str
        Public range, dates or ISO texts such as "2015-01-31"; dates outside of it are clipped.
        The intercept of a fit in the units of the table is that at `low`.
    missing : None, "indicator", date or str, default=None
        What stands for a missing cell: the middle of the range, a column of its own, or this
        public date in the range.
    typical : date or str, default=None
        The date in the range against which the effect of a missing cell is told; it needs
        ``missing="indicator"``. By default it is the middle of the range.
    format : str or None, default=None
        The format of dates that are texts, as in ``pandas.to_datetime`` and
        ``datetime.strptime``: "%d/%m/%Y" for "31/12/2020". None reads ISO texts. The ends of the
        range are always ISO texts.

    Examples
    --------
    >>> from skpriv.preprocessing import Date
    >>> Date("2015-01-01", "2024-12-31")
    Date(low='2015-01-01', high='2024-12-31')
    >>> Date("2015-01-01", "2024-12-31", format="%d/%m/%Y")
    Date(low='2015-01-01', high='2024-12-31', format='%d/%m/%Y')
    """

    format: str | None = None
    kind = "date"
    to_fill_in = ("low = 2015-01-01", "high = 2024-12-31")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.format is None or isinstance(self.format, str) and "%" in self.format):
            raise ValueError(
                f"format={self.format!r} must be a format of dates such as '%d/%m/%Y'."
            )

    @property
    def readable(self) -> Any:
        """Kinds of dtypes whose cells it can read: no number is written as 31.12.2020."""
        marked = {*"./: -"} & {*(self.format or "")}
        return {None, "dates", "periods", "texts", "texts" if marked else "numbers"}

    def _checked(self, name: str, value: Any) -> Any:
        if not isinstance(value, date | str) or np.isnan(days(value)):
            raise ValueError(f'{name}={value!r} must be a date, such as "2015-01-31".')
        return text(value)

    _number = staticmethod(days)

    def _value(self, number: float) -> date:
        return date.fromordinal(date(1970, 1, 1).toordinal() + round(number))

    def _read(self, series: Any) -> np.ndarray:
        return days_of(series, self.format)

    def _effect(self, name: str) -> str:
        return f"{name} per year"

    @property
    def _units(self) -> tuple[float, float]:
        return self._half / DAYS_PER_YEAR, 1.0


class _Levels(_Line):
    """A line of levels at equal steps, in their order: the number of a level is its place."""

    _levels: Any

    def _value(self, number: float) -> Any:
        return self._levels[round(number)]

    @property
    def _level_names(self) -> list[str]:
        return list(map(str, self._levels))

    def _public_values(self, count: int) -> np.ndarray:
        return np.arange(len(self._levels), dtype=float)

    @property
    def _ends(self) -> tuple[float, float]:
        return 0.0, len(self._levels) - 1.0

    @property
    def _units(self) -> tuple[float, float]:
        return self._half, 1.0

    @property
    def coded(self) -> Any:
        """Levels and their rows of the block."""
        names = self._level_names
        z = np.linspace(-1.0, 1.0, len(names))[:, None]
        if not self.has_indicator:
            return names, z
        return [*names, "missing"], np.vstack([np.pad(z, ((0, 0), (0, 1))), [[0.0, 1.0]]])


@stored
@dataclass(frozen=True, repr=False, kw_only=True)
class Boolean(_Levels):
    """A column of true and false; 0 and 1, "yes" and "no" are understood.

    True is +1 and False is -1, which is all the room that one feature has. The coefficient in the
    units of the table is the effect of true against false.

    Parameters
    ----------
    missing : None, "indicator" or bool, default=None
        What stands for a missing cell: halfway, a column of its own, or this public constant.
    true, false : list of str or int, default=None
        The words of this column for true and for false, such as ``["ja", "j"]``, in letters of any
        size. They go before the usual ones: with ``true=[1], false=[2]`` the cell 2 is false. The
        first of each names the value in tables, such as "smoker=ja".

    Examples
    --------
    >>> from skpriv.preprocessing import Boolean
    >>> Boolean(true=["ja"], false=["nein"], missing=False)
    Boolean(missing=False, true=('ja',), false=('nein',))
    """

    missing: Any = None
    true: Any = None
    false: Any = None
    kind = "boolean"
    _number = staticmethod(float)

    def __post_init__(self) -> None:
        if self.missing not in (None, INDICATOR, True, False):
            raise ValueError('missing must be "indicator", true or false.')
        for name in ("true", "false"):
            if (words := getattr(self, name)) is not None:
                object.__setattr__(self, name, _checked_list(words, name))
        words = [truth_word(word) for word in (*(self.true or ()), *(self.false or ()))]
        if len(set(words)) < len(words):
            raise ValueError("true and false must not have a word in common.")

    def _read(self, series: Any) -> np.ndarray:
        own = dict.fromkeys(self.true or (), 1.0) | dict.fromkeys(self.false or (), 0.0)
        return booleans_of(series, {truth_word(word): value for word, value in own.items()})

    @property
    def _levels(self) -> tuple[Any, ...]:
        """False and true, in the first words of the table for them."""
        return (self.false or (False,))[0], (self.true or (True,))[0]

    @property
    def coded(self) -> Any:
        """Levels and their rows of the block."""
        names, rows = super().coded
        return [{"False": "false", "True": "true"}.get(name, name) for name in names], rows

    def _effect(self, name: str) -> str:
        return f"{name}={self._levels[1]}"

    _column_name = _effect


class _Listed(ColumnType):
    """A column with a public list, which a person gives."""

    categories: Any
    spellings: Any
    other: Any = False
    readable = READ_AS_NUMBERS | {"dates", "periods", "times of day", "intervals"}
    to_fill_in = ("categories = []",)
    to_consider = (
        'spellings = { "..." = "..." }', 'missing = "indicator"',
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.categories is not None:
            object.__setattr__(self, "categories", _checked_list(self.categories))
        codes = codes_by_text(self.categories or ())
        if not isinstance(self.spellings or {}, Mapping):
            raise ValueError("spellings must map other spellings to what is in categories.")
        for spelling, listed in (self.spellings or {}).items():
            if _said(listed) not in {MISSING, *codes}:
                raise ValueError(
                    f"spellings: {spelling!r} stands for {listed!r}, which must be in categories, "
                    "or 'missing'."
                )
        constant = not (self.missing is None or self.has_indicator or self.is_open)
        if constant and _said(self.missing) not in codes:
            raise ValueError(f'missing={self.missing!r} must be "indicator" or in categories.')

    @property
    def is_open(self) -> bool:
        """Whether a person has still to fill in the list."""
        return self.categories is None

    @silence()
    def states(self, series: Any) -> np.ndarray:
        """State of each cell: READ, UNLISTED, LOST or ABSENT.

        Parameters
        ----------
        series : series of a data frame
            Cells of the column.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            One state for each cell.
        """
        listed = {
            said: ABSENT if code is None else READ
            for said, code in codes_by_text(self.categories, self.spellings).items()
        }
        return codes_of(series, listed, UNLISTED if self.other else LOST, LOST)


@stored
@frozen
class Categorical(_Listed):
    """A column with a public list of categories, of which the first is the reference.

    Parameters
    ----------
    categories : list of str, int or bool
        Public: from a code book, never from the rows. Coefficients in the units of the table are
        effects against the first one.
    other : bool, default=True
        Whether cells that are not in the list have a category "other". If not, they are missing.
        Nothing about them is reported, neither in `fit` nor later.
    missing : None, "indicator" or a category, default=None
        What stands for a missing cell: "other" (without it, the zero row, which is the average of
        the categories), a category "missing" of its own, or this category.
    spellings : mapping of str to category, default=None
        Other spellings of listed categories, such as ``{"medecine": "Médecine"}``, and words for a
        missing cell, such as ``{"inconnu": "missing"}``.

    Notes
    -----
    K categories are the K corners of a regular simplex on the unit sphere of K - 1 dimensions.
    Every row has norm 1, and all pairs are equally far apart. Their mean squared distance is 2K /
    (K - 1), the largest that K unit vectors can have. The distance of one-hot columns is 2. Their
    mean is zero, so that the columns are not collinear with an intercept, and a ridge treats all
    categories alike. There is a column for each category but the reference.

    Examples
    --------
    >>> from skpriv.preprocessing import Categorical
    >>> Categorical(["F", "M"], other=False)
    Categorical(categories=('F', 'M'), other=False, missing=None)
    """

    categories: Any = None
    _: KW_ONLY
    other: bool = True
    missing: Any = None
    spellings: Any = field(default=None, repr=False, hash=False)
    kind = "categorical"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.other, bool):
            raise ValueError("other must be true or false.")

    @property
    def stand_in(self) -> str:
        """What a cell that is missing or not listed counts as where nobody said it."""
        return "" if self.other or self.missing is not None else "the mean of all levels"

    @property
    def levels(self) -> list[str]:
        """All categories of the block, "other" and "missing" where they are asked for."""
        extra = [OTHER] * self.other + [MISSING] * self.has_indicator
        return list(dict.fromkeys([*map(str, self.categories), *extra]))

    @silence()
    def encode(self, series: Any) -> "Array":
        """Encode the cells of a column as rows of norm at most 1.

        Parameters
        ----------
        series : series of a data frame
            Cells of the column.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Encoded rows; cells that cannot be read are missing ones.
        """
        return np.vstack([self._corners, np.zeros(len(self.levels) - 1)])[self._codes(series)]

    _reference = 0.0  # the number of the first level

    @property
    def _level_names(self) -> list[str]:
        return self.levels

    def _public_values(self, count: int) -> np.ndarray:
        return np.arange(len(self.levels), dtype=float)

    def _values_of(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the levels of the rows of a block; none needs an indicator."""
        return np.argmax(block @ self._corners.T, axis=1), np.zeros(len(block), bool)

    def _values_in(self, series: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same of the cells of a column; one that is no level counts as the reference."""
        return self._codes(series) % len(self.levels), np.zeros(len(series), bool)

    def _codes(self, series: Any) -> np.ndarray:
        """Number of the level of each cell; their number where the cell is none of them."""
        levels = self.levels
        listed = codes_by_text(self.categories, self.spellings)
        nothing = len(levels)  # the number of the zero row
        unknown = levels.index(OTHER) if self.other else nothing
        if self.has_indicator:
            absent = levels.index(MISSING)
        else:
            absent = unknown if self.missing is None else listed[_said(self.missing)]
        return codes_of(series, listed, unknown if self.other else absent, absent)

    def decode(self, block: np.ndarray) -> list[Any]:
        """Values of the rows of a block, None where missing: undoes `encode`.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Encoded rows of the column.

        Returns
        -------
        list of shape (n_rows,)
            Cells in the units of the table.
        """
        values = np.array(self.levels, object)[np.argmax(block @ self._corners.T, axis=1)]
        absent = lengths_of(block) < 0.5
        absent |= (values == MISSING) & self.has_indicator
        return [None if no else value for value, no in zip(values, absent, strict=True)]

    def block(self, name: str) -> Block:
        """Names and way back of the block of a column of this name.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        Block
            Names of the encoded columns, their ranges, and the map to the units of the table.
        """
        names = [f"{name}={level}" for level in self.levels[1:]]
        corners = self._corners
        ranges = np.column_stack([corners.min(axis=0), corners.max(axis=0)])
        shifts = corners[1:] - corners[0]
        cells = level_cells(corners)
        return Block(names, ranges, list(names), shifts, corners[0], cells, self.levels[0])

    @property
    def coded(self) -> Any:
        """Levels and their rows of the block."""
        return self.levels, self._corners

    @cached_property
    def _corners(self) -> np.ndarray:
        return simplex(len(self.levels))


@stored
@frozen
class Ordinal(_Listed, _Levels):
    """A column of levels with an order, at equal steps; its coefficient is a change per level.

    Parameters
    ----------
    categories : list of str, int or bool
        The levels, at least two, from the lowest to the highest: public, never from the rows. A
        cell that is not in the list is missing.
    missing : None, "indicator" or a level, default=None
        What stands for a missing cell: halfway, a column of its own, or this level.
    spellings : mapping of str to level, default=None
        Other spellings of levels, such as ``{"medecine": "Médecine"}``, and words for a missing
        cell, such as ``{"inconnu": "missing"}``.

    Examples
    --------
    >>> from skpriv.preprocessing import Ordinal
    >>> Ordinal(["mild", "moderate", "severe"])
    Ordinal(categories=('mild', 'moderate', 'severe'), missing=None)
    """

    categories: Any = None
    _: KW_ONLY
    missing: Any = None
    spellings: Any = field(default=None, repr=False, hash=False)
    kind = "ordinal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_open and len(self.categories) < 2:
            raise ValueError("categories must be at least two levels.")

    @property
    def _levels(self) -> Any:
        return self.categories

    def _read(self, series: Any) -> np.ndarray:
        codes = codes_of(series, codes_by_text(self.categories, self.spellings), -1, -1)
        return np.where(codes < 0, nan, codes)

    def _number(self, level: Any) -> Any:
        return codes_by_text(self.categories)[_said(level)]

    def _effect(self, name: str) -> str:
        return f"{name} per level"


def simplex(size: int) -> np.ndarray:
    """Corners of a regular simplex on the unit sphere, one a row, in size - 1 dimensions.

    The first is c (1, ..., 1), the others are a e_j + b (1, ..., 1): with m = size - 1,
    c = -1 / sqrt(m), a = sqrt((m + 1) / m) and b = (1 - sqrt(m + 1)) / m^1.5. Then
    |corner|^2 = 1 and <corner, corner'> = -1 / m. (For two it is -1 and 1.)

    Returns
    -------
    ndarray of shape (size, size - 1), rows of norm at most 1 in floating point too
    """
    m = size - 1
    if m < 2:
        return np.array([[-1.0], [1.0]]) if m else np.zeros((1, 0))
    corners = np.full((size, m), (1.0 - sqrt(size)) / m**1.5)
    corners[1:] += sqrt(size / m) * np.eye(m)
    corners[0] = -1.0 / sqrt(m)
    # Each entry was rounded a few times, and m squares are summed for the norm.
    return corners * (1.0 - (m + 8) * FLOAT_STEP)


def _checked_list(values: Any, name: str = "categories") -> tuple[Any, ...]:
    """A public list as it is kept, or an error."""
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list.")
    if not values:
        raise ValueError(f"{name} must not be empty.")
    for value in values:
        if not isinstance(value, str | int | float) or value in (inf, -inf):
            raise ValueError(f"{name} must be texts or numbers, not {value!r}.")
        if not str(value).strip() or value != value:
            raise ValueError(f"{name} must not hold an empty text or NaN: that is a missing cell.")
    count = Counter(map(_said, values))
    twice = [value for value in values if count[_said(value)] > 1]
    if twice:
        raise ValueError(f"{name} lists {twice[0]!r} twice: 1, 1.0, True and '1' are the same.")
    return tuple(values)


def _said(value: Any) -> str:
    """Canonical text of a category; a marker of missing values stands for itself."""
    return text(value) if text(value) is not None else composed(str(value))


def codes_by_text(
    categories: Iterable[Any], spellings: dict[str, str] | None = None
) -> dict[str, Any]:
    """Code of each category, by canonical text, as it is written, and by other spellings.

    A spelling of what is missing has none.
    """
    written = {composed(str(value)): code for code, value in enumerate(categories)}
    codes = written | {_said(value): code for code, value in enumerate(categories)}
    others = (spellings or {}).items()
    return {_said(spelling): codes.get(_said(listed)) for spelling, listed in others} | codes
