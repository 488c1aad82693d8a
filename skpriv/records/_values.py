"""What is public of rows, and the one sentence about values that cannot be used.

Shapes, dtypes and column names are public: what is wrong with them is said at once, in
scikit-learn's words, and costs nothing. Values are private: they are looked at after the charge,
and what is wrong with them is said without a value, a position or a count, always the same.
"""

from typing import Any
import warnings
from collections import Counter
from importlib.util import find_spec

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from ..exceptions import InvalidValues

INVALID_VALUES = (
    "the rows or targets contain NaN, infinity, or something that is no number: every argument "
    "must be free of text, string or object values, and each number finite. Which value it is "
    "stays private, and the charge stands: clean or fill in by a public rule "
    "before, as TableEncoder does."
)
CHUNK_ENTRIES = 2**19
SMALL = 4096  # numbers, of which looking at each takes no longer than the sum


def public_shape(data: Any) -> tuple:
    """Shape of an array, frame, sparse matrix or nested list, from sizes alone.

    Ragged lists have the length that most of their rows have: one record does not decide it.
    """
    shape = getattr(data, "shape", None)
    if isinstance(shape, tuple) and all(isinstance(size, int | np.integer) for size in shape):
        return tuple(map(int, shape))
    if not isinstance(data, list | tuple):
        return np.asarray(data).shape  # an object of its own kind: it says what it is
    if not data:
        return (0,)
    sizes = Counter(map(_size, data)).most_common(1)[0][0]
    return (len(data), *sizes)


def _size(row):
    if isinstance(row, np.ndarray):
        return row.shape
    return (len(row),) if isinstance(row, list | tuple) else ()


def stand_in(data: Any) -> Any:
    """An array or sparse matrix with the public shape and kind of the data, and zeros in it.

    What scikit-learn finds wrong with it is wrong with public properties.
    """
    if sparse.issparse(data):
        return type(data)(data.shape, dtype=data.dtype)
    kind = getattr(getattr(data, "dtype", None), "kind", "f")
    zero = np.zeros((), dtype=complex if kind == "c" else float)
    return np.broadcast_to(zero, public_shape(data))


def named(names: Any) -> Any:
    """A frame of one row of zeros with these columns, for checks of names alone; None if none."""
    if names is None:
        return None
    for library in ("pandas", "pyarrow", "polars"):
        if find_spec(library) is not None:
            data = {name: [0.0] for name in names}
            return nw.from_dict(data, backend=library).to_native()
    return None


def numbers(convert: Any, data: Any) -> Any:
    """``convert(data)``, or the fixed sentence about values; warnings about values are dropped."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return convert(data)
        except Exception:
            pass
    raise InvalidValues(INVALID_VALUES) from None


def floats(data: Any) -> np.ndarray:
    """Float64 array of an array-like, NaN where there is no finite number; nothing is raised.

    For values that may not be looked at before a charge: `finite` tells it afterwards. Of ragged
    lists the shape is that of most of their entries, and of text all is NaN. An array that is as
    it should be is returned as it is: do not write into it.
    """
    if type(data) is np.ndarray and data.dtype == np.float64 and _all_finite(data):
        return data
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            array = np.asarray(data)
            plain = array.dtype.kind not in "cSU"
            array = array.astype(np.float64) if plain else np.full(array.shape, np.nan)
    except Exception:
        array = np.full(_nested_shape(data), np.nan)
    return array if _all_finite(array) else np.where(np.isfinite(array), array, np.nan)


def _nested_shape(data):
    """Shape of nested lists, by the shape that most entries have."""
    if not isinstance(data, list | tuple):
        return tuple(getattr(data, "shape", ()))
    shapes = Counter(map(_nested_shape, data)).most_common(1)
    return (len(data), *(shapes[0][0] if shapes else ()))


def finite(*arrays: Any) -> Any:
    """Raise the fixed sentence unless all numbers are finite."""
    for array in arrays:
        values = array.data if sparse.issparse(array) else array
        if values.size <= SMALL:
            if not _all_finite(values):
                raise InvalidValues(INVALID_VALUES)
            continue
        rows = max(1, CHUNK_ENTRIES // max(1, int(np.prod(values.shape[1:]))))
        for start in range(0, len(values), rows):
            if not _all_finite(values[start : start + rows]):
                raise InvalidValues(INVALID_VALUES)


def _all_finite(chunk):
    """Whether all are finite; of many, nearly always the sum tells it, which needs no memory."""
    if chunk.size <= SMALL:
        return bool(np.isfinite(chunk).all())
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(chunk.sum())) or bool(np.isfinite(chunk).all())
