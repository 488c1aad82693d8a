"""Who or what a value names: one text for all the ways in which it can be written.

People, headers, levels and labels are compared by this text and by nothing else. Readers of tables
do not agree: the same identifier is ``17`` in one file, ``17.0`` beside a missing cell, ``"17 "``
in a CSV file and ``Decimal("17")`` in a database, and an accented letter is one character or two. A
person under two names would have twice the rows that a guarantee speaks of.
"""

import re
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, datetime, timezone
from decimal import MAX_EMAX, Context, Decimal
from enum import Enum
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from .._printing import first_names
from ._values import _array, cells, dtype_of, is_column, silence

# Words that readers of tables take for a missing cell; those of pandas, and \N of databases.
MISSING_WORDS = {
    "", "na", "n/a", "#n/a", "#n/a n/a", "#na", "<na>", "nan", "-nan", "1.#qnan", "-1.#qnan",
    "1.#ind", "-1.#ind", "nat", "null", "none", "\\n",
}  # fmt: skip
_TRUTH_CODES = {"true": "1", "false": "0"}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.IGNORECASE)
# Longer numbers are never written out: Decimal("1e999999999") would take a gigabyte and hours.
MOST_DIGITS = 4300  # Python writes no longer integers
WIDE_NUMBERS = Context(prec=10_000, Emax=MAX_EMAX)
_COMMA = re.compile(r"([+-]?\d+),00?")  # whole numbers of files with a decimal comma
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)? ?(Z|[+-]\d\d(:?\d\d)?)?",
    re.ASCII | re.IGNORECASE,
)
# Dashes and apostrophes, which programs replace while one types.
_ALIKE = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"))
_ALIKE |= str.maketrans(dict.fromkeys("\u2018\u2019\u00b4", "'"))
_RAISED = ("<super>", "<sub>", "<fraction>")  # which would make the number 102 of 10 squared


def identity(value: Any) -> str | None:
    """One text for all ways to write a value, or None where there is none.

    Texts are composed (NFC), and so are compatible characters such as letters of full width; blanks
    of any kind at an end are dropped, and those inside are one blank. A text of a number is that
    number, and equal numbers have one text whatever their type: ``"1"`` for 1, 1.0, "1.0", "01",
    ``Decimal(1)`` and True. Integers are exact, other numbers those of a float64. A time at
    midnight is its date. Bytes are text in UTF-8. None, NaN, NaT, NA, blanks and what has no text
    are None. Private cells are read in `silence`.
    """
    with suppress(Exception):  # a cell may hold any object, which may raise any error
        return _text_of(value)
    return None


def _text_of(value: Any) -> str | None:
    if isinstance(value, str):
        return _text_of_text(value)
    if isinstance(value, bytes):
        return _text_of_text(value.decode())
    if np.ma.is_masked(value):  # whatever is behind the mask
        return None
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if (
        isinstance(value, list | tuple | dict | set | frozenset | np.ndarray)
        or value is None
        or bool(value != value)  # NaN and NaT
    ):
        return None
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, complex | np.complexfloating) and value.imag == 0.0:
        value = value.real
    if isinstance(value, Real | Decimal):
        return _text_of_number(value)
    if isinstance(value, Enum):
        return _text_of(value.value)
    if isinstance(value, date | np.datetime64):
        value = moment(value)
        return None if value is None else _text_of_text(value.isoformat())
    kind: Any = type(value)
    unnamed = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    return None if unnamed else _text_of_text(str(value))  # such as an interval or a UUID


def _text_of_text(text: str) -> str | None:
    if not (text.isascii() and text.isprintable()):
        text = _folded(text)
    text = " ".join(text.split())
    if written := _COMMA.fullmatch(text):
        text = written[1]
    if _NUMBER.fullmatch(text):
        return _text_of_number(Decimal(text))
    if _TIME.fullmatch(text):
        return _text_of_time(text)
    return _TRUTH_CODES.get(text.casefold(), text) or None


def _text_of_time(text: str) -> str:
    """One text of a moment, in UTC if it has a zone; a day's beginning is its date."""
    try:
        found = in_utc(datetime.fromisoformat(text.upper().replace(" Z", "Z")))
    except (ValueError, OverflowError):  # no time of the calendar
        return text
    return found.isoformat().removesuffix("T00:00:00")


def _folded(text: str) -> str:
    """The same text in the composed form, without characters that nobody sees."""
    seen = (c for c in " ".join(text.split()) if unicodedata.category(c) not in ("Cc", "Cf"))
    plain = (
        c if unicodedata.decomposition(c).startswith(_RAISED) else unicodedata.normalize("NFKC", c)
        for c in "".join(seen).translate(_ALIKE)
    )
    return unicodedata.normalize("NFC", "".join(plain))


def _text_of_number(number: Any) -> str:
    if isinstance(number, Decimal) and number.adjusted() >= MOST_DIGITS:
        return str(WIDE_NUMBERS.normalize(WIDE_NUMBERS.add(number, 0)))
    if int(number) == number:
        return str(int(number))
    # A number of 32 bits is the shortest decimal that it stands for, as it is where it is printed.
    value = float(str(number)) if isinstance(number, np.floating) else float(number)
    return str(int(value)) if value.is_integer() else repr(value)


def same_names(names: Iterable[str | None], present: Iterable[str]) -> list[Any]:
    """The column that each of some names means, as it is written where it is; None if it is absent.

    A column of this very name is meant, or else the only one of the same `identity`.

    Parameters
    ----------
    names, present : iterable of str
    """
    present = dict.fromkeys(present)
    alike: dict[str | None, list[Any]] = {None: []}
    for column in present:
        alike.setdefault(identity(column), []).append(column)
    alike[None] = [None]  # a column without a name is not meant
    found: list[Any] = []
    meant: dict[Any, str | None] = {}
    for name in names:
        columns = [name] if name in present else alike.get(identity(name), [None])
        if len(columns) > 1:
            raise ValueError(
                f"{name!r} may be any of the columns {columns!r}, which differ in blanks or in the "
                "form of letters alone: rename all but one."
            )
        column = columns[0]
        if column is not None and meant.setdefault(column, name) != name:
            raise ValueError(
                f"{meant[column]!r} and {name!r} are two names of the column {column!r}: keep one."
            )
        found.append(column)
    return found


def present_names(
    names: Iterable[str | None],
    present: Iterable[str],
    who: str,
    where: str,
    error: type[Exception] = ValueError,
    what: str = "columns",
) -> list[Any]:
    """Columns by their names (see `same_names`), or an error that says which are not there.

    Parameters
    ----------
    names, present : iterable of str
    who, where : str
        What has the names, and what has not the columns.
    error : type, default=ValueError
    what : str, default="columns"
        What the names are of.
    """
    names = list(names)
    present = list(present)
    found = same_names(names, present)
    if absent := [repr(name) for name, column in zip(names, found) if column is None]:
        others = f"not among the {what} of {where}: {first_names(present)}"
        raise error(f"{who} names {first_names(absent)}, {others}.")
    return found


def moment(value: Any) -> Any:
    """A time as one of whole microseconds, whatever library made it; other cells stay as they are.

    One text in a column of times turns it into a column of objects. Times of NumPy, and times with
    nanoseconds, must then be read as they are in a column of times.
    """
    if isinstance(value, np.datetime64):
        found = value.astype("datetime64[us]").item()  # a number if it is out of the calendar
        return found if isinstance(found, datetime) else None
    if isinstance(value, datetime):  # of pandas too, whose nanoseconds are cut
        return datetime.combine(value.date(), value.timetz())
    return value


def in_utc(time: datetime) -> datetime:
    """The same moment without a zone: that of UTC, if it had one."""
    return time if time.tzinfo is None else time.astimezone(timezone.utc).replace(tzinfo=None)


@silence()
def name_of(person: Any) -> bytes | None:
    """Bytes that are the same for all ways to write a person's name, or None for nobody.

    They are those of `identity`. Two names that are taken for one person share the rows of one,
    and a person with two names has twice as many, so that the doubt is for the person. A tuple or
    list is the name of its parts, and is no text. Nobody are missing cells, words for them such as
    "NA" (`MISSING_WORDS`), and what cannot be read. So are floats so large that whole numbers
    between them were rounded to them: whose name that was is not known.
    """
    return _name(person)


def _name(person: Any) -> bytes | None:
    with suppress(Exception):
        if isinstance(person, dict):  # a struct of a table
            person = list(person.values())
        if isinstance(person, tuple | list) or isinstance(person, np.ndarray) and person.ndim:
            parts: Any = [_name(part) for part in person]
            if None in parts:
                return None  # one of them is nobody's
            # No text has the byte 255, and the lengths say where the parts end.
            return b"\xff" + b"".join(b"%d:%b" % (len(part), part) for part in parts)
        if isinstance(person, float | np.floating) and _rounded(person, type(person)):
            return None
        text = identity(person)
        if text is None and isinstance(person, bytes):
            return person or None  # a digest, which is no text
        if text is not None and text.casefold() not in MISSING_WORDS:
            return text.encode(errors="surrogatepass")
    return None


def _rounded(numbers: Any, kind: Any) -> Any:
    """Whether floats may stand for several whole numbers, or for none."""
    return ~(np.abs(numbers) < 2.0 ** (min(np.finfo(kind).nmant, 52) + 1))


@silence()
def codes(people: Any) -> np.ndarray:
    """Number people from 0 on by their names (see `name_of`); nobody is one person together.

    Each name is read by itself, so that one changes nothing that is read of the others, except in
    an array or column of a plain NumPy type, which is public.
    """
    found = _labels(people)
    places = None
    if isinstance(found, np.ndarray):
        if found.dtype.kind == "f":
            found = np.where(_rounded(found, found.dtype), np.nan, found)  # nobody
        found, places = np.unique(found, return_inverse=True)
        places = places.reshape(-1)
        if found.dtype.kind in "biuf":  # they are as different as their names
            return places
    numbered: dict[bytes | None, int] = {}  # by name
    read: dict[Any, int] = {}  # by what was read, of plain types alone: equal ones have equal names
    numbers = np.empty(len(found), np.intp)
    for at, label in enumerate(found):
        plain = type(label) is str or type(label) is int  # a type may refuse to be compared
        number = read.get(label) if plain else None
        if number is None:
            number = numbered.setdefault(_name(label), len(numbered))
            if plain:
                read[label] = number
        numbers[at] = number
    return numbers if places is None else numbers[places]


def _labels(labels: Any) -> Any:
    """An array of a plain type, or a list of objects that were never brought to one type."""
    series = nw.from_native(labels, series_only=True, pass_through=True)
    with suppress(Exception):  # narwhals asks objects, to guess their dtype
        if isinstance(series, nw.Series) and series.dtype == nw.Float32:
            labels = series.fill_null(np.nan).to_numpy()  # in a list they would be of 64 bits
    if isinstance(labels, np.ma.MaskedArray):
        labels = np.ma.filled(labels.astype(object), None)
    labels = nw.to_native(labels, pass_through=True)
    if isinstance(labels, list | tuple):
        return list(labels)
    if not isinstance(dtype_of(labels), np.dtype):
        # As an array, a column of integers with one missing label would have the type float64.
        if is_column(labels):
            return cells(labels)
        with suppress(Exception):  # its text would quote a label
            return np.asarray(labels, object).tolist()
    array = _array(labels)
    return array if array.dtype.kind in "biufcmMSU" else array.tolist()
