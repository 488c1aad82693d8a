"""The types of columns: what a cell may be, and where it goes in the unit ball.

Every type maps a column to a block: an array of shape (n_rows, width) whose rows have an l2 norm
of at most 1. A missing cell is the zero row of its block, unless its type says otherwise.
"""

from dataclasses import dataclass, field
from datetime import date
from math import isfinite
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ._values import booleans_of, days, days_of, number, numbers_of, text

INDICATOR = "indicator"
# States of a cell: taken as it is, moved to the end of the range, "other", or not to be read
READ, CLIPPED, UNLISTED, LOST = range(4)
DAYS_PER_YEAR = (date(401, 1, 1) - date(1, 1, 1)).days / 400  # of the calendar


@dataclass(frozen=True)
class Block:
    """What a column becomes: names of its columns, and their way back.

    ``ranges`` are the ends of each column, shape (width, 2). ``effects`` and ``matrix`` say how the
    coefficients of the block, `beta`, are told in the units of the column: ``matrix @ beta``. The
    intercept grows by ``offset @ beta``.
    """

    names: list
    ranges: np.ndarray
    effects: list
    matrix: np.ndarray
    offset: np.ndarray

    @property
    def width(self):
        """Number of columns of the block."""
        return len(self.names)


class ColumnType:
    """Base class of the types of columns; not for direct use."""

    kind: ClassVar[str]

    @property
    def is_open(self) -> bool:
        """Whether a person has still to fill in the range or the list."""
        raise NotImplementedError

    def encode(self, series: Any) -> np.ndarray:
        """Block of a column: array of shape (n_rows, width), rows of norm at most 1."""
        raise NotImplementedError

    def decode(self, block: Any) -> Any:
        """Values of the rows of a block, None where missing: undoes `encode`."""
        raise NotImplementedError

    def states(self, series: Any) -> np.ndarray:
        """State of each cell: one of READ, CLIPPED, UNLISTED and LOST."""
        raise NotImplementedError

    def block(self, name: str) -> Any:
        """Names and way back of the block of a column of this name."""
        raise NotImplementedError

    @property
    def coded(self) -> Any:
        """Levels and their rows of the block, (list of str, ndarray); None of numbers and dates."""
        return None


class _Line(ColumnType):
    """A column on a line: z in [-1, 1], and an indicator of missing values if it is asked for.

    A row of the block is (z, 0), or (0, 1) where the cell is missing: its norm is at most 1, so
    that the indicator needs no room of its own.
    """

    missing: Any

    def _z(self, series):
        """Position of each cell in [-1, 1], NaN where it is missing."""
        raise NotImplementedError

    def _outside(self, series):
        """Whether each cell is a value outside of the public range."""
        return np.zeros(len(series), dtype=bool)

    def _from_z(self, z):
        """Value of a position."""
        raise NotImplementedError

    def _constant(self):
        """Position of the public constant that stands for missing values."""
        raise NotImplementedError

    def _reference(self):
        """Position of the value against which a missing cell is told, and its text."""
        return -1.0, str(self._from_z(-1.0))

    def _effect(self, name):
        """Name of the effect, and the scale and offset of value = (z + offset) * scale."""
        raise NotImplementedError

    def encode(self, series: Any) -> np.ndarray:
        z = self._z(series)
        absent = np.isnan(z)
        z = np.clip(np.where(absent, 0.0 if self._has_indicator else self._constant(), z), -1, 1)
        return np.column_stack([z, absent]) if self._has_indicator else z[:, None]

    def states(self, series: Any) -> np.ndarray:
        states = np.where(self._outside(series), CLIPPED, READ)
        return np.where(np.isnan(self._z(series)), LOST, states)

    def decode(self, block: Any) -> Any:
        absent = block[:, 1] > 0.5 if self._has_indicator else np.zeros(len(block), dtype=bool)
        z = np.clip(block[:, 0], -1.0, 1.0)
        return [None if no else self._from_z(float(at)) for at, no in zip(z, absent, strict=True)]

    def block(self, name: str) -> Any:
        effect, scale, offset = self._effect(name)
        names, effects = [self._column_name(name)], [effect]
        # f = beta z = (beta / scale) value - beta offset; a missing cell has z = 0.
        matrix, shift, ranges = np.array([[1.0 / scale]]), np.array([-offset]), [[-1.0, 1.0]]
        if self._has_indicator:
            z, reference = self._reference()
            names = [*names, f"{name}=missing"]
            effects = [*effects, f"{name}=missing against {reference}"]
            matrix, shift = np.array([[1.0 / scale, 0.0], [-z, 1.0]]), np.array([-offset, 0.0])
            ranges = [*ranges, [0.0, 1.0]]
        return Block(names, np.array(ranges), effects, matrix, shift)

    def _levels_at(self, levels):
        """Levels at equal steps from -1 to 1, and "missing" where it has an indicator."""
        z = np.linspace(-1.0, 1.0, len(levels))[:, None]
        if not self._has_indicator:
            return levels, z
        return [*levels, "missing"], np.vstack([np.pad(z, ((0, 0), (0, 1))), [[0.0, 1.0]]])

    @property
    def _has_indicator(self):
        return self.missing == INDICATOR

    def _column_name(self, name):
        return name


@dataclass(frozen=True)
class Numeric(_Line):
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
        the range is (0, 600); it needs ``missing="indicator"``. By default it is the middle of the
        range, which may be far from every row. It changes the table of coefficients, and not what
        is released.
    unit : str, default=None
        The unit of the numbers, for tables of coefficients: with "year", "age per year".
    decimal : str, default="."
        The decimal mark of numbers that are texts, as in ``pandas.read_csv``. With "," the text
        "12,5" is read as 12.5, and a text with a point is missing.
    thousands : str or None, default=None
        The mark between groups of digits in texts, as in ``pandas.read_csv``: with "," the text
        "1,234" is read as 1234. A blank, " ", stands for every kind of blank. Currency signs
        before or after a number are always left out.

    Examples
    --------
    >>> from skpriv.preprocessing import Numeric
    >>> Numeric(0, 120, unit="year")
    Numeric(low=0.0, high=120.0, missing=None, unit='year')
    >>> Numeric(0, 1e6, decimal=",", thousands=".")
    Numeric(low=0.0, high=1000000.0, missing=None, unit=None, decimal=',', thousands='.')
    """

    low: Any = None
    high: Any = None
    missing: Any = field(default=None, kw_only=True)
    typical: Any = field(default=None, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)
    decimal: str | None = field(default=None, kw_only=True)
    thousands: str | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "numeric"

    def __post_init__(self):
        _check_range(self, _float)
        if self.missing is not None and not self._has_indicator:
            _set(self, "missing", _inside(self, _float("missing", self.missing)))
        _check_typical(self, _float)
        if not (self.unit is None or isinstance(self.unit, str)):
            raise ValueError("unit must be a text.")
        for name in ("decimal", "thousands"):
            _check_mark(name, getattr(self, name))
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise ValueError("thousands must not be the decimal mark: pass decimal=',' with it.")

    def __repr__(self):
        # What nobody set is left out, since it concerns few columns.
        marks = {name: getattr(self, name) for name in ("typical", "decimal", "thousands")}
        said = "".join(f", {name}={mark!r}" for name, mark in marks.items() if mark is not None)
        return (
            f"Numeric(low={self.low!r}, high={self.high!r}, missing={self.missing!r}, "
            f"unit={self.unit!r}{said})"
        )

    @property
    def is_open(self) -> bool:
        return self.low is None

    def _z(self, series):
        return self._at(self._read(series))

    def _read(self, series):
        return numbers_of(series, self.decimal or ".", self.thousands)

    def _outside(self, series):
        values = self._read(series)
        return (values < self.low) | (values > self.high)

    def _at(self, values):
        low, high = self.low, self.high
        return np.clip((np.clip(values, low, high) - low - self._half) / self._half, -1.0, 1.0)

    def _from_z(self, z):
        return float(np.clip(self.low + (z + 1.0) * self._half, self.low, self.high))

    def _constant(self):
        return 0.0 if self.missing is None else float(self._at(np.array(self.missing)))

    def _reference(self):
        z = 0.0 if self.typical is None else float(self._at(np.array(self.typical)))
        return z, f"{self._from_z(z):g}"

    def _effect(self, name):
        effect = f"{name} per {self.unit}" if self.unit else name
        return effect, self._half, (self.low + self._half) / self._half

    @property
    def _half(self):
        return (self.high - self.low) / 2.0


@dataclass(frozen=True)
class Date(_Line):
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
    Date(low='2015-01-01', high='2024-12-31', missing=None)
    >>> Date("2015-01-01", "2024-12-31", format="%d/%m/%Y")
    Date(low='2015-01-01', high='2024-12-31', missing=None, format='%d/%m/%Y')
    """

    low: Any = None
    high: Any = None
    missing: Any = field(default=None, kw_only=True)
    typical: Any = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "date"

    def __post_init__(self):
        if not (self.format is None or isinstance(self.format, str) and "%" in self.format):
            raise ValueError(
                f"format={self.format!r} must be a format of dates such as '%d/%m/%Y'."
            )
        _check_range(self, _iso)
        if self.missing is not None and not self._has_indicator:
            _set(self, "missing", _inside(self, _iso("missing", self.missing), days))
        _check_typical(self, _iso, days)

    def __repr__(self):
        marks = {name: getattr(self, name) for name in ("typical", "format")}
        said = "".join(f", {name}={mark!r}" for name, mark in marks.items() if mark is not None)
        return f"Date(low={self.low!r}, high={self.high!r}, missing={self.missing!r}{said})"

    @property
    def is_open(self) -> bool:
        return self.low is None

    def _z(self, series):
        return self._at(days_of(series, self.format))

    def _outside(self, series):
        values = days_of(series, self.format)
        return (values < days(self.low)) | (values > days(self.high))

    def _at(self, values):
        low, high = days(self.low), days(self.high)
        return (np.clip(values, low, high) - low) / (high - low) * 2.0 - 1.0

    def _from_z(self, z):
        at = days(self.low) + (z + 1.0) * self._half
        return date.fromordinal(date(1970, 1, 1).toordinal() + round(at))

    def _constant(self):
        return 0.0 if self.missing is None else float(self._at(days(self.missing)))

    def _reference(self):
        z = 0.0 if self.typical is None else float(self._at(days(self.typical)))
        return z, str(self._from_z(z))

    def _effect(self, name):
        return f"{name} per year", self._half / DAYS_PER_YEAR, 1.0

    @property
    def _half(self):
        return (days(self.high) - days(self.low)) / 2.0


@dataclass(frozen=True)
class Boolean(_Line):
    """A column of true and false; 0 and 1, "yes" and "no" are understood. Other words are those of
    a :class:`Categorical`.

    True is +1 and False is -1, which is all the room that one feature has. The coefficient in the
    units of the table is the effect of true against false.

    Parameters
    ----------
    missing : None, "indicator" or bool, default=None
        What stands for a missing cell: halfway, a column of its own, or this public constant.

    Examples
    --------
    >>> from skpriv.preprocessing import Boolean
    >>> Boolean(missing=False)
    Boolean(missing=False)
    """

    missing: Any = field(default=None, kw_only=True)
    kind: ClassVar[str] = "boolean"

    def __post_init__(self):
        if self.missing not in (None, INDICATOR, True, False):
            raise ValueError('missing must be "indicator", true or false.')

    is_open = False

    def _z(self, series):
        return 2.0 * booleans_of(series) - 1.0

    def _from_z(self, z):
        return z > 0.0

    @property
    def coded(self) -> Any:
        return self._levels_at(["false", "true"])

    def _constant(self):
        return 0.0 if self.missing is None else 2.0 * float(self.missing) - 1.0

    def _effect(self, name):
        return f"{name}=True", 0.5, 1.0

    def _column_name(self, name):
        return f"{name}=True"


def _set(instance, name, value):
    object.__setattr__(instance, name, value)  # the dataclasses are frozen


def _check_range(column, convert):
    """Convert low and high, or leave both open."""
    if column.low is None and column.high is None:
        return
    if column.low is None or column.high is None:
        raise ValueError("low and high are a public range: give both.")
    for name in ("low", "high"):
        _set(column, name, convert(name, getattr(column, name)))
    measure = days if convert is _iso else float
    width = measure(column.high) - measure(column.low)
    if not (isfinite(width) and width / 2.0 > 0.0):
        raise ValueError(f"low={column.low!r} must be below high={column.high!r}.")


def _check_mark(name, mark):
    """Raise `ValueError` unless the mark is None or one character that is no part of a number."""
    if mark is None:
        return
    if not isinstance(mark, str) or len(mark) != 1 or mark.isalnum() or mark in "+-":
        raise ValueError(f"{name}={mark!r} must be one character, such as ',' or '.' or ' '.")


def _check_typical(column, convert, measure=float):
    """Convert typical, which only an indicator of missing cells needs."""
    if column.typical is None:
        return
    if not column._has_indicator:
        raise ValueError('typical is for missing="indicator": take it out, or set that.')
    _set(column, "typical", _inside(column, convert("typical", column.typical), measure, "typical"))


def _inside(column, value, measure=float, name="missing"):
    if column.low is None or measure(column.low) <= measure(value) <= measure(column.high):
        return value
    raise ValueError(f"{name}={value!r} must be a public constant from low to high.")


def _float(name, value):
    if isinstance(value, bool) or not isinstance(value, Real) or np.isnan(number(value)):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    return float(value)


def _iso(name, value):
    if not isinstance(value, date | str) or np.isnan(days(value)):
        raise ValueError(f'{name}={value!r} must be a date, such as "2015-01-31".')
    return text(value)
