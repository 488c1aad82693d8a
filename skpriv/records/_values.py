"""Public properties of rows, and the one sentence about values that cannot be used.

Shapes, dtypes and column names are public: what is wrong with them is said at once, in
scikit-learn's words, and costs nothing. Values are private: they are looked at after the charge,
and what is wrong with them is said without a value, a position or a count, always the same.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from math import nan
from threading import current_thread, local, main_thread
from typing import Any

import narwhals.exceptions as nw_errors
import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse

from .._contracts import Shaped, Typed
from .._linalg import after_fork, unwarned
from .._stored import frozen
from ..exceptions import InvalidValues

OTHER_ROWS = "X and y have different numbers of rows."
RENAME = (
    "Columns are found by name: each needs a name of its own, which is a text. Rename columns "
    "such as these, by table.columns = ['x0', 'x1', ...]:"
)
INVALID_VALUES = (
    "the rows or targets contain NaN, infinity, or a value that is not a number (of a policy: or "
    "an action out of range). Values of an argument must be neither missing nor strings, but "
    "finite numbers. Which one is wrong stays private, and the charge stays. Fill in such cells by "
    "a public rule before the fit, as TableEncoder does."
)


class _Thread(local):
    """Whether this thread is silent."""

    silent = False


_here = _Thread()
_everywhere: set[object] = set()  # who has silenced all threads
after_fork(_everywhere.clear)  # a forked child has no other thread that would take it back


def is_silent() -> bool:
    """Whether nobody may hear this thread now."""
    return _here.silent or bool(_everywhere) and current_thread() is not main_thread()


class _OfSilentThreads(type):
    """Type of a category that all warnings belong to in a silent thread, and none in another."""

    def __subclasscheck__(cls, category: type) -> bool:
        return is_silent()


class _Unheard(Warning, metaclass=_OfSilentThreads):
    """Category of what must not be heard."""


@frozen
class _Uncaught:
    """Hook for errors that nobody can catch, as of a destructor: silent threads drop them.

    Attributes
    ----------
    before : callable
        The hook that stood before, for all other threads; None is Python's own.
    """

    before: Any

    def __call__(self, found: Any) -> None:
        if not is_silent():
            (self.before or sys.__unraisablehook__)(found)


# Before any thread copies the filters, to restore them while others are silent
warnings.simplefilter("ignore", _Unheard)


@contextmanager
def silence(now: bool = True) -> Iterator[None]:
    """Let nobody hear a warning, or an error that cannot be caught, while private values are read.

    It decorates functions, too. Filters of warnings belong to the process. If each of two
    overlapping threads restored those that it found, the second one would leave all warnings
    ignored for good. So one filter stays, which ignores what silent threads warn of.
    """
    before = _here.silent
    try:
        _here.silent = now
        if not warnings.filters or warnings.filters[0][2] is not _Unheard:
            warnings.simplefilter("ignore", _Unheard)  # before all filters that were set since
        if not isinstance(sys.unraisablehook, _Uncaught):
            sys.unraisablehook = _Uncaught(sys.unraisablehook)
        with unwarned():
            yield
    finally:
        _here.silent = before


@contextmanager
def silence_everywhere() -> Iterator[None]:
    """Silence of all threads but the main one, while those of other libraries read values.

    Its caller is silent, and waits until they have ended. It may end in another thread.
    """
    token = object()
    try:
        _everywhere.add(token)
        yield
    finally:
        _everywhere.discard(token)


def refusal(error: BaseException) -> Exception:
    """The error in place of one of a library, whose words may be those of a cell.

    A failure of memory, of a file or of a connection stays one, without the name of a file.
    """
    if isinstance(error, OSError):
        return OSError(
            "a file or a connection from which the rows come has failed. Which one, and why, is "
            "not said, since that may stand in a cell: read the rows without a fit to see it."
        )
    return MemoryError() if isinstance(error, MemoryError) else InvalidValues(INVALID_VALUES)


def foreign(read: Any, *arguments: Any) -> Iterator[Any]:
    """Iterate over ``read(*arguments)``, by which code of others reads cells.

    Nobody hears a warning, and of the text of an error nothing is repeated, such as that of a text
    which a query casts to a number.
    """
    try:
        with silence_everywhere():
            yield from read(*arguments)
        return
    except BaseException as error:
        if ends(error):
            raise
        refused = refusal(error)
    raise refused


@frozen
class Unread:
    """The result of a task that could not read its cells.

    Attributes
    ----------
    refused : Exception
        The error for whoever asks for the result.
    """

    refused: Exception


def unless_unread(function: Any, *arguments: Any) -> Any:
    """Result of a task of others, which hands on what was not read, and raises no error.

    The library that runs the task would log the text of an error, wherever that is, and would go on
    with others, in which a warning could be heard once nobody waits for them.
    """
    for one in arguments:
        if isinstance(one, Unread):
            return one
    try:
        with silence():
            return function(*arguments)
    except BaseException as error:
        if ends(error):
            raise
        return Unread(refusal(error))


def aloud() -> Any:
    """Let warnings be heard in a silent thread: of what is public, while no cell is looked at."""
    return silence(False)


OF_DASK = "Reschedule", "KilledWorker", "CancelledError"


@contextmanager
def unsaid() -> Iterator[None]:
    """Silence in which an error ends what is done, and is not raised: it would tell of a value."""
    try:
        with silence():
            yield
    except BaseException as error:
        if ends(error):
            raise


def ends(error: BaseException) -> bool:
    """Whether an exception is the end of a process, or of a task that Dask begins again.

    Polars panics by what is no Exception.
    """
    name = type(error).__name__
    if name in OF_DASK:  # and not the class of a user, whose text may be that of a cell
        return type(error).__module__.split(".")[0] in ("asyncio", "concurrent", "distributed")
    return not isinstance(error, Exception) and name != "PanicException"


PLAIN = (int, float, complex, str, bytes, np.generic, type(None))
PLAIN_NUMBERS = "?efd" + np.typecodes["AllInteger"]  # truth values, floats of at most 64 bits


def public_shape(data: Any, depth: int = 4) -> tuple[int, ...]:
    """Shape of an array, frame, sparse matrix or nested list, from sizes alone.

    Nothing is computed, and an object without a shape of integers is refused by its type. Ragged
    lists have the length that most of their rows have, which counts as public: one record decides
    it only at a tie. A list that is nested in `depth` others is a cell, whatever it holds.
    """
    kind = type(data)
    if issubclass(kind, np.ndarray):
        return tuple(data.shape)
    if _is_list(data):
        shapes = Counter(_shape_of_item(item, depth - 1) for item in data).most_common(1)
        return (len(data), *(shapes[0][0] if shapes else ()))
    if issubclass(kind, PLAIN):
        return ()
    if is_dask(data) or not isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame):
        shape = data.shape if isinstance(data, Shaped) else None
        if isinstance(shape, tuple) and all(isinstance(size, int | np.integer) for size in shape):
            return tuple(map(int, shape))
    if issubclass(kind, range) or kind.__module__.startswith("pyarrow."):
        return (len(data),)
    raise TypeError(
        f"the shape of a {kind.__name__} would have to be computed, which could tell of a value: "
        "pass an array, a nested list, a column, a data frame or a sparse matrix, such as what its "
        "compute() or collect() returns, or numpy.asarray of it; or a lazy table with its target "
        "and its public number of rows, skpriv.records.from_table(table, target=..., n=...). "
        "Arguments in a dict, such as those of schema.weights(table), are passed by **."
    )


def known_table(data: Any) -> Any:
    """The table of narwhals, or else the data; two columns of one name are refused."""
    try:
        return nw.from_native(data, pass_through=True)
    except nw_errors.DuplicateError:
        names = Counter(map(str, data.columns))
        twice = ", ".join(name for name, count in names.items() if count > 1)
    raise ValueError(f"{RENAME} {twice}.")


def arrow_classes(data: Any) -> set[str]:
    """Names of the classes of Arrow that an object is of; none where it is of another library."""
    return {kind.__name__ for kind in type(data).__mro__ if kind.__module__.startswith("pyarrow")}


def is_column(data: Any) -> bool:
    """Whether an object is a column of a library of tables, of which `cells` are a list."""
    series = nw.from_native(data, series_only=True, pass_through=True)
    return isinstance(series, nw.Series) or "Array" in arrow_classes(data)


def dtype_of(data: Any) -> Any:
    """The dtype of an array or a column, as its library says it; None of anything else."""
    native = nw.to_native(data, pass_through=True)
    if arrow_classes(native) & {"Array", "ChunkedArray"}:
        return native.type
    return native.dtype if isinstance(native, Typed) else None


IN_MEMORY = {"builtins", "numpy", "pandas", "polars", "pyarrow", "narwhals"}


def in_memory(data: Any) -> bool:
    """Whether an array or a column is in memory, so that nothing is computed where it is read."""
    kind = type(data)
    plain = issubclass(kind, np.ndarray | list | tuple)
    return plain or kind.__module__.partition(".")[0] in IN_MEMORY


def _shape_of_item(item: object, depth: int = 3) -> tuple[int, ...]:
    """Shape of an item of a list; a cell is not asked for anything, whatever it is."""
    with suppress(Exception):  # a list of its own kind may refuse to tell its length
        if issubclass(type(item), np.ndarray) or depth and _is_list(item):
            return public_shape(item, depth)
    return ()


def is_dask(data: Any) -> bool:
    """Whether data is an array or a frame of Dask."""
    # The graph of the object itself may read values when it is made.
    return type(data).__module__.startswith(("dask.array.", "dask.dataframe."))


def is_dask_frame(data: Any) -> bool:
    """Whether data is a frame or a column of Dask."""
    return type(data).__module__.startswith("dask.dataframe.")


def _is_list(data: object) -> bool:
    return issubclass(type(data), list | tuple)


def _array(data: Any) -> np.ndarray:
    """The array that an object makes of itself; the text of an error of its own is not repeated."""
    with unsaid():
        return np.asarray(decoded(data))
    raise TypeError(
        f"rows must be an array, a nested list, a data frame or a sparse matrix; this "
        f"{type(data).__name__} cannot be read as one."
    )


def decoded(data: Any) -> Any:
    """Arrow's data without dictionaries, of which NumPy reads a missing cell as the last value."""
    native = nw.to_native(data, pass_through=True)
    kinds = arrow_classes(native)
    if kinds & {"RecordBatch", "Table"}:
        return type(native).from_arrays(
            list(map(decoded, native.itercolumns())), native.schema.names
        )
    coded = kinds & {"Array", "ChunkedArray"} and "DictionaryType" in arrow_classes(native.type)
    return native.cast(native.type.value_type) if coded else data


def stand_in(data: Any) -> Any:
    """An array or sparse matrix with the public shape and kind of the data, and zeros in it.

    Errors that scikit-learn finds concern public properties.
    """
    if sparse.issparse(data):
        return type(data)(data.shape, dtype=data.dtype)
    dtype = dtype_of(data)
    is_complex = isinstance(dtype, np.dtype) and dtype.kind == "c"
    zero = np.zeros((), complex if is_complex else float)
    return np.broadcast_to(zero, public_shape(data))


def named(names: Any) -> Any:
    """A frame of one row of zeros with these columns, for checks of names alone; None if none."""
    library: Any = next(filter(find_spec, ("pandas", "pyarrow", "polars")), None)
    if names is None or library is None:
        return None
    return nw.from_dict({name: [0.0] for name in names}, backend=library).to_native()


def quietly(function: Any, *data: Any) -> Any:
    """Result of a function of private values; any error becomes the fixed sentence."""
    with unsaid():
        return function(*data)
    raise InvalidValues(INVALID_VALUES)


def numeric(data: Any) -> np.ndarray:
    """An array of numbers of a plain type as it is, and `floats` of anything else."""
    if isinstance(data, np.ndarray) and not isinstance(data, np.ma.MaskedArray):
        if data.dtype.char in PLAIN_NUMBERS:
            return np.asarray(data)  # no subclass, such as a matrix, whose product is another one
    return floats(data)


def floats(data: Any, infinite: bool = False) -> np.ndarray:
    """Float64 array of an array-like, NaN where there is no finite number; nothing is raised.

    This is the one conversion of values that may not be looked at before a charge: `finite` tells
    afterwards whether all are numbers. Each cell is read by itself, so that one record changes
    nothing that is read of the others: a text is the number that it writes, a complex number its
    real part if there is no other, and anything else is NaN. The shape is that of `public_shape`;
    an item of a ragged list that has another shape is NaN. An array that is as it should be is
    returned as it is: do not write into it. Only if ``infinite`` do infinities stay.
    """
    if type(data) is np.ndarray:
        if data.dtype.kind in "biu":
            return data.astype(float)
        if data.dtype == np.float64 and _all_finite(data):
            return data
    with silence():
        array = _cell_by_cell(data) if _is_list(data) else _numbers_in(_unmasked(data))
    return array if infinite or _all_finite(array) else np.where(np.isfinite(array), array, nan)


def _unmasked(data: Any) -> np.ndarray:
    """The array that an object makes of itself, or numbers of its cells where it makes none.

    Cells that are masked or cannot be read are missing.
    """
    if type(data) is np.ndarray:
        return data
    if isinstance(data, np.ma.MaskedArray):  # no number behind a mask is used
        return np.ma.filled(data.astype(object), nan)
    try:
        return _array(data)
    except TypeError:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return np.column_stack([_of_cells(column) for column in frame.iter_columns()])
        if not is_column(data):
            raise
        return _of_cells(data)


def _of_cells(column: Any) -> np.ndarray:
    return np.array([_number(cell) for cell in cells(column)])


def _numbers_in(array: np.ndarray) -> np.ndarray:
    """Float64 of an array, with NaN for each cell that is no number."""
    if array.dtype.kind == "c":
        return np.where(array.imag == 0.0, array.real, nan).astype(float)
    if array.dtype.kind not in "biufOSUT":
        return np.full(array.shape, nan)
    with suppress(Exception):
        if array.dtype.kind != "O" or not any(map(_may_be_complex, set(map(type, array.flat)))):
            return array.astype(float)
    return np.array([_number(cell) for cell in array.ravel()]).reshape(array.shape)


def _cell_by_cell(data: Any) -> np.ndarray:
    """Float64 of a nested list, cell by cell: NumPy would bring all cells to one type first."""
    with suppress(Exception):
        if _is_plain(data):
            array = np.array(data, float)
            if array.ndim == len(public_shape(data[:1])):
                return array
    array = np.full(public_shape(data), nan)
    for at, item in enumerate(data):
        nested = array.ndim > 1 and issubclass(type(item), list | tuple | np.ndarray)
        if _shape_of_item(item) == array.shape[1:]:
            array[at] = floats(item) if nested else _number(item)
    return array


def _is_plain(data: Any) -> bool:
    """Whether NumPy reads a nested list cell by cell.

    It would read other items with a length as sequences: of a masked array also what is masked. It
    would drop the imaginary part of complex numbers of its own.
    """
    kinds = set(map(type, data))
    if kinds <= {list, tuple}:
        return all(map(_is_plain, data))
    if kinds == {np.ndarray}:
        return all(item.dtype.kind in "biufSU" for item in data)
    return all(k in (str, bytes) or not (issubclass(k, Sized) or _may_be_complex(k)) for k in kinds)


def _may_be_complex(kind: type) -> bool:
    """Whether NumPy may drop the imaginary part of objects of this type."""
    return issubclass(kind, np.complexfloating | np.ndarray)


def _number(cell: Any) -> float:
    """Number of one cell, by the conversion that NumPy makes of an array of objects."""
    with suppress(Exception):  # a cell may be any object, and raise any error
        if np.ma.is_masked(cell):  # a masked value is missing, whatever is behind the mask
            return nan
        if issubclass(type(cell), np.ndarray) and cell.dtype.kind in "biufcOSU":
            cell = cell.item()
        if issubclass(type(cell), complex | np.complexfloating):
            return float(cell.real) if cell.imag == 0.0 else nan
        box = np.empty(1, object)
        box[0] = cell
        return float(box.astype(float)[0])
    return nan


def cells(column: Any) -> list[Any]:
    """List of the cells of a narwhals column or an Arrow array; an unreadable cell is None.

    A library fails at a whole column if it cannot make an object of one cell, such as bytes that
    are no text, and its error quotes them. Here that cell alone is missing. Times of polars become
    objects by Arrow, since polars itself panics at one that is out of the calendar.
    """
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        of_polars = series.implementation.is_polars()
        if of_polars and (series.dtype.is_temporal() or series.dtype.is_nested()):
            with suppress(Exception):  # such as that Arrow is not installed
                return cells(series.to_arrow())
        with suppress(Exception):
            return series.to_list()
        return [_cell(series.__getitem__, at) for at in range(len(series))]
    with suppress(Exception):
        return list(column.to_pylist())
    return [_cell(lambda place: column[place].as_py(), at) for at in range(len(column))]


def _cell(read: Callable[[int], Any], at: int) -> Any:
    with suppress(Exception):
        return read(at)
    return None


def finite(*arrays: Any) -> Any:
    """Raise the fixed sentence unless all numbers are finite."""
    for array in arrays:
        if not _all_finite(array.data if sparse.issparse(array) else array):
            raise InvalidValues(INVALID_VALUES)


def _all_finite(chunk: np.ndarray) -> bool:
    """Whether all numbers are finite; of many their sum nearly always tells it, without memory."""
    if chunk.size < 1_000:
        # A policy asks about a few numbers in each call, and `all` takes nearly twice as long
        return not np.count_nonzero(~np.isfinite(chunk))
    with unwarned():
        return bool(np.isfinite(chunk.sum()) or np.isfinite(chunk).all())
