"""The public dtype of a column, and what it says of its cells: some can be no number.

A column whose cells nobody can read would be missing as a whole, after the charge. What a dtype
cannot be is refused before it, with the remedy.
"""

from functools import lru_cache
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ._values import arrow_classes, cells, dtype_of, is_column, is_dask, is_dask_frame

NUMBERS = "numbers"
TRUTHS = "truth values"
TEXTS = "texts"
DATES = "dates"
PERIODS = "periods"
CLOCKS = "times of day"
DURATIONS = "durations"
INTERVALS = "intervals"
PARTS = "lists or records"
# How the names of dtypes begin, in all libraries, and what their cells are; the longest one counts.
_BEGINNINGS = {
    DURATIONS: "timedelta duration", DATES: "timestamp date", PERIODS: "period",
    INTERVALS: "interval", CLOCKS: "time", TRUTHS: "bool",
    PARTS: "month_day list large_list fixed_size_list array struct map void",
    TEXTS: "str large_string categorical enum binary bytes",
    NUMBERS: "int uint float double halffloat decimal",
}  # fmt: skip
REMEDIES = {
    NUMBERS: (
        "its format has marks, which no number has. Some readers take 31.12.2020 for a number: "
        "read the file with all cells as texts, in pandas with dtype=str."
    ),
    TRUTHS: "describe it as Boolean() in a schema.",
    TEXTS: (
        "describe it in a schema, which says how numbers are written: TableEncoder(schema) reads "
        "features, and schema.read_target(table) a target. Or pass numbers."
    ),
    DATES: (
        "describe it as Date(low, high) in a schema, which TableEncoder reads, or pass numbers, "
        "such as days since a public date."
    ),
    PERIODS: (
        "describe it as Date(low, high) in a schema, which reads where a period begins, or pass "
        "numbers, such as days since a public date."
    ),
    CLOCKS: (
        "pass numbers, such as hours since midnight, or describe it as Categorical in a schema."
    ),
    DURATIONS: (
        "describe it as Numeric(low, high, unit='day') in a schema, or with unit='week', 'hour', "
        "'minute' or 'second', or pass its number of such units."
    ),
    INTERVALS: (
        "describe it as Ordinal or Categorical in a schema, with the intervals as texts, or pass "
        "numbers, such as their middles."
    ),
    PARTS: "make a column of each of its parts.",
}


def dtypes_of(data: Any) -> dict[str, Any]:
    """Dtype of each column by its name, which is "" where it has none; no value is looked at.

    Parameters
    ----------
    data : object
        A table, a column, an array or rows; anything else has no dtypes.
    """
    if isinstance(data, np.ndarray):
        return {"": data.dtype}
    if isinstance(data, list | tuple):
        return {}
    if is_dask(data):
        is_frame = is_dask_frame(data) and data.ndim == 2
        return dict(data.dtypes.items()) if is_frame else {"": data.dtype}
    found = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(found, nw.DataFrame):
        native = found.to_native()
        dtypes = native.schema.types if found.implementation.is_pyarrow() else native.dtypes
        return dict(zip(found.columns, map(inner, dtypes), strict=True))
    if isinstance(found, nw.LazyFrame):
        return dict(found.collect_schema())
    dtype = inner(dtype_of(data))
    return {} if dtype is None else {"": dtype}


def inner(dtype: Any) -> Any:
    """The dtype of the categories of a dtype of pandas or Arrow that has such."""
    if type(dtype).__name__ == "CategoricalDtype":
        return dtype.categories.dtype
    return dtype.value_type if "DictionaryType" in arrow_classes(dtype) else dtype


def kind_of(dtype: Any) -> str | None:
    """The kind of the cells of a dtype; None of objects, which can be any, and of unknown ones."""
    return _kind_of_name((dtype.name if isinstance(dtype, np.dtype) else str(dtype)).lower())


@lru_cache  # each round of a policy asks twice
def _kind_of_name(said: str) -> str | None:
    found = (
        (len(word), kind)
        for kind, beginnings in _BEGINNINGS.items()
        for word in beginnings.split()
        if said.startswith(word)
    )
    return max(found, default=(0, None))[1]


AS_NUMBERS = frozenset({NUMBERS, TRUTHS, None})
READ_AS_NUMBERS = AS_NUMBERS | {TEXTS}  # by a schema, which says how a number is written


def refuse_dtypes(
    dtypes: dict[str, Any], where: str, why: str = "are no numbers", readable: Any = AS_NUMBERS
) -> None:
    """Refuse columns whose cells cannot be read, by their dtypes alone.

    Parameters
    ----------
    dtypes : dict
        What `dtypes_of` returns.
    where, why : str
        The argument, and why its cells cannot be read, for the error.
    readable : set of (str or None), default=AS_NUMBERS
    """
    for name, dtype in dtypes.items():
        if (kind := kind_of(dtype)) not in readable:
            who = f"The column {name!r} of {where}" if name else where
            raise ValueError(
                f"{who} holds {kind} (its dtype is {dtype}), which {why}: {REMEDIES[str(kind)]}"
            )


def refuse_no_numbers(data: Any, where: str, readable: Any = AS_NUMBERS) -> None:
    """Refuse an argument that must be numbers, by its dtypes, and objects most of which are texts.

    What most of them are counts as public: one record decides it only at a tie. Otherwise all rows
    of persons would be left out in silence, as those are that hold no number.
    """
    dtypes = dtypes_of(data) or {"": object}
    table = nw.from_native(data, pass_through=True, eager_only=True)
    for name, dtype in dtypes.items():
        column = table[name] if isinstance(table, nw.DataFrame) else data
        if kind_of(dtype) is None and _mostly_texts(column):
            dtypes[name] = "str objects"
    refuse_dtypes(dtypes, where, readable=readable)


def _mostly_texts(column):
    """Whether most cells in memory are texts; no cell is asked for anything but its type."""
    if not isinstance(column, np.ndarray | list | tuple):
        column = cells(column) if is_column(column) else []
    return 2 * sum(issubclass(type(cell), str) for cell in column) > len(column)
