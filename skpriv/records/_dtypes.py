"""The public dtype of a column, and what it says of its cells: some can be no number.

A column whose cells nobody can read would be missing as a whole, after the charge. What a dtype
cannot be is refused before it, with the remedy.
"""

from functools import lru_cache
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ._values import arrow_classes, dtype_of, is_dask_frame, stand_in

# How the names of dtypes begin, in all libraries, and what their cells are; the first one counts.
_BEGINNINGS = {
    "durations": "timedelta duration", "dates": "timestamp date", "periods": "period",
    "intervals": "interval", "times of day": "time", "truth values": "bool",
    "lists or records": "month_day list large_list fixed_size_list array struct map void",
    "texts": "str large_string categorical enum binary bytes",
    "numbers": "int uint float double halffloat decimal",
}  # fmt: skip
REMEDIES = {
    "numbers": (
        "its format has marks, which no number has. Some readers take 31.12.2020 for a number: "
        "read the file with all cells as texts, in pandas with dtype=str."
    ),
    "truth values": "describe it as Boolean() in a schema.",
    "texts": (
        "describe it in a schema, which says how numbers are written: TableEncoder(schema) reads "
        "features, and schema.read_target(table) a target. Or pass numbers."
    ),
    "dates": (
        "describe it as Date(low, high) in a schema, which TableEncoder reads, or pass numbers, "
        "such as days since a public date."
    ),
    "periods": (
        "describe it as Date(low, high) in a schema, which reads where a period begins, or pass "
        "numbers, such as days since a public date."
    ),
    "times of day": (
        "pass numbers, such as hours since midnight, or describe it as Categorical in a schema."
    ),
    "durations": (
        "describe it as Numeric(low, high, unit='day') in a schema, or with unit='week', 'hour', "
        "'minute' or 'second', or pass its number of such units."
    ),
    "intervals": (
        "describe it as Ordinal or Categorical in a schema, with the intervals as texts, or pass "
        "numbers, such as their middles."
    ),
    "lists or records": "make a column of each of its parts.",
}


def dtypes_of(data: Any) -> dict[str, Any]:
    """Dtype of each column by its name, which is "" where it has none; no value is looked at.

    Parameters
    ----------
    data : object
        A table, a column, an array or rows; anything else has no dtypes.
    """
    if is_dask_frame(data) and data.ndim == 2:
        return dict(data.dtypes.items())
    found = nw.from_native(data, pass_through=True)
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
    found = (kind for kind, heads in _BEGINNINGS.items() if said.startswith(tuple(heads.split())))
    return next(found, None)


AS_NUMBERS = frozenset({"numbers", "truth values", None})
READ_AS_NUMBERS = AS_NUMBERS | {"texts"}  # by a schema, which says how a number is written


def public_zeros(data: Any) -> Any:
    """A `stand_in`, and of a data frame in memory a frame with the same columns.

    It has zeros, and missing cells where columns hold no numbers. Columns of objects stay such: if
    narwhals named their kind, which it takes from their cells, one record could decide whether a
    candidate is refused.
    """
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return stand_in(data)
    columns = (
        (
            nw.lit(None if dtype == object else 0.0)
            if kind_of(dtype) in AS_NUMBERS
            else nw.lit(None).cast(frame[name].dtype)
        ).alias(name)
        for name, dtype in dtypes_of(data).items()
    )
    return frame.with_columns(*columns).to_native()


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


def refuse_no_numbers(data: Any, where: str) -> None:
    """Refuse an argument that must be numbers, by its dtypes alone.

    No cell of a column of objects is looked at: if most of them were texts, one record could decide
    whether it is refused.
    """
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "biuf":  # each round asks
        refuse_dtypes(dtypes_of(data), where)
