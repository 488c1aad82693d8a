"""Columns with a public range: numbers and dates."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import date
from math import inf, nan
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import ndtri

from ..._estimation._levels import usual_moments
from ..._stored import stored
from ...records import READ_AS_NUMBERS
from .._values import SECONDS, days, days_of, number, numbers_of, text
from ._line import ColumnOnLine
from ._type import MISSING

if TYPE_CHECKING:
    from ..._contracts import Scalar

DAYS_PER_YEAR = (date(401, 1, 1) - date(1, 1, 1)).days / 400  # the mean of the calendar


@dataclass(frozen=True, repr=False)
class ColumnOfRange(ColumnOnLine):
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
class Numeric(ColumnOfRange):
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
class Date(ColumnOfRange):
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
