"""Blocks of rows as they come from a file or a library: their size, parts, columns and numbers."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from ._base import canonical
from ._values import OTHER_ROWS, floats, public_shape, quietly

AHEAD = 2  # blocks that are read while another one is used
NO_LENGTH = (
    "the number of rows of this {kind} is found by a query, such as a filter, or by reading text, "
    "such as a CSV file, and may depend on private values. State the public number of rows in "
    "from_table(table, n=...), or pass y as an array, or a table that is stored, such as Parquet "
    "files, without a filter."
)
OTHER_LENGTH = (
    "a pass over the rows did not find n={n} of them, which is public and has to stay: state the "
    "right number, and let nobody write to them meanwhile."
)


def frame(block):
    """The block as a data frame of narwhals, or None if it is none; Arrow batches are tables."""
    if type(block).__name__ == "RecordBatch":
        import pyarrow as pa

        block = pa.Table.from_batches([block])
    found = nw.from_native(block, eager_only=True, allow_series=True, pass_through=True)
    return found if isinstance(found, nw.DataFrame | nw.Series) else None


def check_length(n):
    """Check a stated number of rows."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n must be a positive integer, the public number of rows, not {n!r}.")
    return int(n)


def stated(n, kind):
    """The public number of rows; rows of a query that have none are refused."""
    if n is None:
        raise ValueError(NO_LENGTH.format(kind=kind))
    return n


def is_table(block):
    """Whether the columns of a block have names."""
    return hasattr(block, "schema") or hasattr(block, "columns")


def cut(block, start, stop):
    """Rows from start up to stop, without a copy where the library has such."""
    if hasattr(block, "num_rows"):
        return block.slice(start, stop - start)
    if is_table(block) or not hasattr(block, "shape"):
        found = frame(block)
        return block[start:stop] if found is None else found[start:stop].to_native()
    return block[start:stop]


def pick(block, chosen):
    """Rows at ascending positions: an array of them, or a range."""
    if isinstance(chosen, range):
        if chosen.step == 1:
            return cut(block, chosen.start, chosen.stop)
        chosen = np.asarray(chosen, dtype=np.intp)
    found = frame(block)
    return block[chosen] if found is None else found[chosen].to_native()


def length(block):
    """Return the number of rows of a block."""
    return public_shape(block)[0] if hasattr(block, "shape") else len(block)


def split(block, features, target):
    """Columns of the features and of the target of a table; the target may be None."""
    if type(block).__name__ == "RecordBatch":
        y = None if target is None else floats(block.column(target))
        return block.select(list(features)), y
    found = frame(block)
    y = None if target is None else found[target].to_native()
    return found.select(list(features)).to_native(), y


def dense(block):
    """Float64 array of a block of columns, or of one column; what is no number is NaN."""
    if isinstance(block, np.ndarray):
        return quietly(floats, block)
    if issparse(block):
        return quietly(floats, block.toarray())
    found = frame(block)
    if isinstance(found, nw.DataFrame):
        return quietly(_filled, found)
    return quietly(floats, block if found is None else found)


def sparse(block):
    """The canonical float64 form of a sparse block."""
    return quietly(canonical, block)


def _filled(table):
    found = np.empty(table.shape)
    for at, column in enumerate(table.iter_columns()):
        found[:, at] = floats(column)
    return found


def ahead(blocks):
    """Yield from an iterable that another thread reads: reading overlaps with what is done here."""
    blocks, done = iter(blocks), object()
    reader = ThreadPoolExecutor(1, "skpriv-reader")
    try:
        waiting = deque(reader.submit(next, blocks, done) for _ in range(AHEAD))
        while (block := waiting.popleft().result()) is not done:
            waiting.append(reader.submit(next, blocks, done))
            yield block
            del block
    finally:
        reader.shutdown(cancel_futures=True)


def aligned(left, right):
    """Yield pairs of blocks with as many rows each, from two streams cut in different places."""
    left, right = iter(left), iter(right)
    one = other = None
    while True:
        one = next(left, None) if one is None else one
        other = next(right, None) if other is None else other
        if one is None or other is None:
            if one is not other and length(other if one is None else one):
                raise ValueError(OTHER_ROWS)
            return
        size = min(length(one), length(other))
        if size:
            yield cut(one, 0, size), cut(other, 0, size)
        one = cut(one, size, length(one)) if length(one) > size else None
        other = cut(other, size, length(other)) if length(other) > size else None


class LazyValues:
    """One value for each row, computed chunk by chunk whenever they are read.

    NumPy makes an array of them (`numpy.asarray`), and a loop goes over arrays of one chunk each,
    so that predictions can be written to a file without all of them being in memory.

    Parameters
    ----------
    rows : BatchRows
    function : callable
        A function from a chunk of X to its values.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.records import from_batches
    >>> rows = from_batches(lambda: [np.ones((2, 3)), np.zeros((1, 3))], n=3)
    >>> values = rows.evaluated(lambda X: X.sum(axis=1))
    >>> values.shape, [chunk.tolist() for chunk in values], np.asarray(values).tolist()
    ((3,), [[3.0, 3.0], [0.0]], [3.0, 3.0, 0.0])
    """

    ndim = 1
    dtype = np.dtype(np.float64)

    def __init__(self, rows: Any, function: Any) -> None:
        self._rows, self._function = rows, function
        self.shape = (rows.n,)

    def __len__(self):
        return self._rows.n

    def __iter__(self):
        return iter(self._rows.each(lambda X, y: self._function(X)))

    def compute(self) -> np.ndarray:
        """All values, as an array."""
        found = np.empty(self.shape)
        start = 0
        for values in self:
            found[start : start + len(values)] = values
            start += len(values)
        return found

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("lazy values are computed: they have no array to share.")
        return self.compute().astype(dtype or self.dtype, copy=False)

    def __repr__(self):
        return f"LazyValues of {len(self)} rows"
