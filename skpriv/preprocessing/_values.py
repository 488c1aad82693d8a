"""The value of one cell of a table, for any type of its column.

The type of a column is not public: one text among numbers makes it a column of texts, one hole
makes integers into floats. So a cell is read for what it says: ``1``, ``1.0`` and ``"1"`` are the
same, and a change of one record changes no other row. All functions are total: what cannot be
read is missing.
"""

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from enum import Enum
from functools import partial
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from ..records import MISSING_WORDS, arrow_classes, cells, identity, in_utc, moment, silence

if TYPE_CHECKING:
    from .._contracts import Array, Scalar

_TRUTH_NUMBERS = dict.fromkeys(("yes", "y", "t", "1"), 1.0) | dict.fromkeys(
    ("no", "n", "f", "0"), 0.0
)
_EPOCH = datetime(1970, 1, 1)
DAY = timedelta(days=1).total_seconds()
LONGEST = 2.0**62  # microseconds: of twice as many there are no integers
_INTERVAL = re.compile(r"(?<=^[\[(])([^,]+), ([^,]+)(?=[\])]$)")
# Units of a fixed length, in seconds
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": DAY, "week": 7.0 * DAY}
# Blanks between groups of digits: the plain, no-break, narrow no-break, thin and figure space.
_BLANKS = " \u00a0\u202f\u2009\u2007"


def composed(value: str) -> str:
    """A text without blanks at its ends, in the composed Unicode form (NFC).

    The same accented word can be written as one character or as a letter and an accent: both
    are one category.
    """
    return unicodedata.normalize("NFC", value).strip()


def real(value: Any) -> Any:
    """A cell, without the imaginary part that another row's complex number gave to it."""
    is_complex = issubclass(type(value), complex | np.complexfloating)
    return value.real if is_complex and value.imag == 0.0 else value


def number(
    value: Any, decimal: str = ".", thousands: str | None = None, seconds: float = nan
) -> float:
    """The finite number of a cell, else NaN.

    Parameters
    ----------
    value : object
    decimal : str
        The decimal mark of numbers in texts.
    thousands : str or None
        The mark between groups of digits in texts; a blank stands for all kinds of blanks.
    seconds : float
        Length of the unit in which durations are told; NaN where they are no numbers.
    """
    if isinstance(value, str):
        value = composed(value)
        if value.casefold() in ("true", "false"):
            return float(value.casefold() == "true")
        value = _plain_number(value, decimal, thousands)
    if isinstance(value, np.datetime64):
        return nan  # A column of times has no numbers either.
    try:
        if isinstance(value, timedelta):  # of pandas too, whose nanoseconds are cut
            value = np.timedelta64(timedelta(value.days, value.seconds, value.microseconds))
        if isinstance(value, np.timedelta64):
            value = _in_units(value, seconds)
        result = float(real(value))
    except Exception:  # A cell may hold any object, which may raise any error.
        return nan
    return result if isfinite(result) else nan


def _plain_number(said: str, decimal: str, thousands: str | None) -> Any:
    """The text of a number with a decimal point alone; a currency sign at an end is dropped."""
    sign = said[:1] if said[:1] in ("-", "+", "\u2212") else ""
    said = said[len(sign) :].strip()
    if said and unicodedata.category(said[0]) == "Sc":
        said = said[1:].lstrip()
        if not sign and said[:1] in ("-", "+", "\u2212"):
            sign = said[0]
            said = said[1:]
    elif said and unicodedata.category(said[-1]) == "Sc":
        said = said[:-1].rstrip()
    if thousands is not None:
        mark = f"[{re.escape(_BLANKS if thousands in _BLANKS else thousands)}]"
        # Before two or three digits and another mark, and before the last three: 1.5 is not 15.
        said = re.sub(rf"(?<=\d){mark}(?=\d{{2,3}}{mark}|\d{{3}}(?!\d))", "", said)
    if decimal != ".":
        # If the decimal mark is another one, a text with a point is not a number.
        said = said.replace(".", "\0").replace(decimal, ".")
    return ("-" if sign == "\u2212" else sign) + said


def text(value: Any) -> Any:
    """The name of a cell (see :func:`skpriv.records.identity`); None where it is missing.

    The ends of an interval are numbers: a missing cell makes floats of those of all others.
    """
    said = identity(value)
    if said is None or said.casefold() in MISSING_WORDS:
        return None
    return _INTERVAL.sub(lambda ends: f"{identity(ends[1])}, {identity(ends[2])}", said)


def truth_word(value: Any) -> str | None:
    """The truth value of a cell, or None."""
    said = identity(value)
    return None if said is None else said.casefold()


def days(value: Any, format: str | None = None) -> float:
    """Days since 1970 of a date, a time or their text, else NaN; zones are taken to UTC.

    Parameters
    ----------
    value : object
    format : str or None
        The format of dates in texts, as of ``datetime.strptime``; None is ISO 8601.
    """
    try:
        value = moment(value.start_time if type(value).__name__ == "Period" else value)
        if isinstance(value, str) and format is not None:
            value = datetime.strptime(composed(value), format)
        elif not isinstance(value, date):
            value = datetime.fromisoformat(text(value))
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        # The same division as that of a column of times, to the last bit
        return number((in_utc(value) - _EPOCH) / timedelta(microseconds=1) / (1e6 * DAY))
    except Exception:  # It is no date, or out of the calendar.
        return nan


def _in_units(durations: Any, seconds: float) -> Any:
    """Durations of NumPy as numbers of units of so many seconds, NaN where they are missing."""
    durations = np.asarray(durations)
    parts = durations.astype("timedelta64[us]")
    unit = np.ones((), durations.dtype) / np.timedelta64(1, "us")
    lost = np.isnat(parts) | (np.abs(durations.astype(float)) * unit >= LONGEST)
    return np.where(lost, nan, parts.astype(float) / (1e6 * seconds))


def numbers_of(
    series: Any, decimal: str = ".", thousands: str | None = None, seconds: float = nan
) -> "Array":
    """Float array of a column, NaN where nothing can be read."""
    if series.dtype == nw.Duration:
        with suppress(Exception):
            return _in_units(series.to_numpy(), seconds)
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        # Missing cells go first: pandas 2.1 makes objects of Arrow columns that have some. Arrow
        # refuses a column for one integer that is not exact in floats.
        with suppress(Exception):
            values = series.cast(nw.Float64).fill_null(0.0).to_numpy().astype(float)
            values[series.is_null().to_numpy().astype(bool)] = nan
            return np.where(np.isfinite(values), values, nan)
    return _mapped(series, partial(number, decimal=decimal, thousands=thousands, seconds=seconds))


def booleans_of(series: Any, words: Any) -> np.ndarray:
    """Array of 1.0, 0.0 and NaN, by these words and the usual ones."""
    truths = _TRUTH_NUMBERS | words
    return _mapped(series, lambda value: truths.get(truth_word(value), nan))


def days_of(series: Any, format: str | None = None) -> "Array":
    """Array of days since 1970 and NaN."""
    if isinstance(series.dtype, nw.Date | nw.Datetime):
        with suppress(Exception):  # One date may be out of the calendar.
            return series.dt.timestamp("us").to_numpy().astype(float) / (1e6 * DAY)
    return _mapped(series, partial(days, format=format))


def codes_of(series: Any, levels: dict[str, int], unknown: int, missing: int) -> np.ndarray:
    """Integer codes of a column of categories.

    Parameters
    ----------
    series : narwhals Series
    levels : dict of str and (int or None)
        Codes of the public categories, by canonical text and as they are written; None of a text
        that says that nothing is known.
    unknown, missing : int
        Codes of what is not listed, and of what is missing.
    """

    def code(value: Any) -> int:
        # A listed category wins over the markers of missing values ("NA" may be a country).
        is_listed = isinstance(value, str) and composed(value) in levels
        said = composed(value) if is_listed else text(value)
        found = None if said is None else levels.get(said, unknown)
        return missing if found is None else found

    return _mapped(series, code).astype(np.intp)


# Equal values of these types say the same. Equal moments need not: they may be in two time zones.
_PLAIN = (str, int, float, bool, type(None))


@silence()
def _mapped(series: Any, function: Callable[..., Any]) -> np.ndarray:
    """Apply a function to each cell, and to plain values that are repeated only once."""
    if series.implementation.is_pyarrow() and series.dtype in (nw.String, nw.Categorical):
        return _looked_up(series.to_native(), function)
    mapped = {}
    out = np.empty(len(series))
    for i, value in enumerate(cells(series)):
        # Equal values of different types need not say the same: True == 1.
        key = (type(value), value) if type(value) in _PLAIN else None
        if key is None or key not in mapped:
            mapped[key] = _said(function, value)
        out[i] = mapped[key]
    return out


def _looked_up(column: Any, function: Callable[..., Any]) -> np.ndarray:
    """The same of Arrow's texts, which it numbers: numbers are looked up without a loop."""
    found = [np.empty(0)]
    for chunk in column.chunks:
        coded = chunk if "DictionaryArray" in arrow_classes(chunk) else chunk.dictionary_encode()
        said = [_said(function, value) for value in (*cells(coded.dictionary), None)]
        places = coded.indices.fill_null(len(said) - 1).to_numpy(zero_copy_only=False)
        found.append(np.array(said, float)[places.astype(np.intp)])
    return np.concatenate(found)


def _said(function: Callable[..., Any], value: Any) -> "Scalar":
    """What a cell says; one that lets nobody read it is missing.

    Bytes are a text in UTF-8, as some programs write it, and a member of an enumeration its value.
    """
    with suppress(Exception):
        value = value.decode() if isinstance(value, bytes) else value
        return function(value.value if isinstance(value, Enum) else value)
    return function(None)
