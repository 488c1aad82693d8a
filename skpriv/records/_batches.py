"""Rows that come in batches, read again for each answer: files, lazy tables, memory maps.

Batches are blocks of rows as a file or a library hands them out; functions of blocks come first.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from scipy.sparse import issparse

from .._contracts import is_whole
from .._stored import frozen_object, set_state
from .._printing import first_names
from ..exceptions import InvalidValues
from ._base import CHUNK_ROWS, ChunkRows, Rows, canonical
from ._identity import present_names
from ._values import OTHER_ROWS, RENAME, finite, floats, foreign, quietly, silence

if TYPE_CHECKING:
    from .._contracts import Array
    from ._base import ArrayRows
    from ._subset import Subset

AHEAD = 2  # blocks that are read while another one is used
OTHER_LENGTH = (
    "a pass over the rows did not find n={n} of them: state the right public number, return all "
    "rows in each pass, and let nobody write to them during a fit."
)


def frame(block: Any) -> Any:
    """The block as a data frame of narwhals, or None if it is none; Arrow batches are tables."""
    if type(block).__name__ == "RecordBatch":
        import pyarrow as pa

        block = pa.Table.from_batches([block])
    found = nw.from_native(block, eager_only=True, allow_series=True, pass_through=True)
    return found if isinstance(found, nw.DataFrame | nw.Series) else None


def check_length(n: Any, name: str = "n") -> int:
    """A public number of rows or columns as an int, since NumPy's own small ones overflow."""
    if not is_whole(n, 1, inf):
        raise ValueError(f"{name} must be a positive integer: a public number, not the rows.")
    return int(n)


def stated(n: int | None, kind: str) -> int:
    """The public number of rows; a table is refused whose length would have to be computed."""
    if n is None:
        raise ValueError(
            f"the number of rows of this {kind} is found by a query, such as a filter, or by "
            "reading text, such as a CSV file, and may depend on private values. State the public "
            "number of rows in from_table(table, n=...), or pass y as an array, or a table that "
            "is stored, such as Parquet files, without a filter."
        )
    return n


def is_table(block: Any) -> bool:
    """Whether the columns of a block have names."""
    return isinstance(frame(block), nw.DataFrame)


def cut(block: Any, start: int, stop: int) -> Any:
    """Rows from start up to stop, without a copy where the library has such."""
    return pick(block, slice(start, stop))


def pick(block: Any, chosen: np.ndarray | range | slice) -> Any:
    """Rows at ascending positions: an array of them, a range or a slice."""
    if isinstance(chosen, range):
        plain = chosen.step == 1
        chosen = slice(chosen.start, chosen.stop) if plain else np.asarray(chosen, np.intp)
    found = frame(block)
    return block[chosen] if found is None else found[chosen].to_native()


def held_back(evaluate: Any, data: Any, nothing: Any) -> Any:
    """Result of a function of private cells before a charge, in silence; nothing is raised.

    Each half of the rows is read by itself if it fails, so that no row loses another one.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(data)`` is an array with a row for each row of the data.
    data : object
        A table or an array of a public shape.
    nothing : object
        What a row becomes where that fails, such as NaN: a fit refuses it after its charge, in the
        fixed sentence, or takes the cells as missing.
    """
    with suppress(InvalidValues):
        return quietly(evaluate, data)
    n = length(data)
    if n < 2:
        return np.repeat(np.asarray(nothing)[None], n, axis=0)
    halves = cut(data, 0, n // 2), cut(data, n // 2, n)
    return np.concatenate([held_back(evaluate, half, nothing) for half in halves])


def length(block: Any) -> int:
    """Return the number of rows of a block."""
    return block.shape[0] if issparse(block) else len(block)


def split(block: Any, features: Any, target: Any) -> tuple[Any, Any]:
    """Columns of the features and of the target of a table; the target may be None."""
    found = frame(block)
    y = None if target is None else found[target].to_native()
    return found.select(list(features)).to_native(), y


def chosen_columns(target: Any, features: Any, names: Any, texts: bool = True) -> Any:
    """The target and the features as the table writes them; features are all others by default.

    A reader that finds columns by `texts` takes a number for a place.
    """
    if target is not None:
        (target,) = present_names([target], names, "target", "the table")
    if features is None:
        features = [name for name in names if target is None or name != target]
        _refuse_names(features, texts)
    features = present_names(features, names, "features", "the table")
    if target is not None and target in features:
        raise ValueError(f"target={target!r} is among the features: leave it out of them.")
    _refuse_names(features if target is None else [*features, target], texts)
    return target, features


def _refuse_names(columns: Sequence[Any], texts: bool) -> None:
    """Refuse columns that are not found by their names."""
    if len(set(columns)) < len(columns) or texts and not all(isinstance(c, str) for c in columns):
        raise ValueError(f"{RENAME} {first_names(columns)}.")


def dense(block: Any) -> "Array":
    """Float64 array of a block of columns, or of one column; what is no number is NaN."""
    block = block.toarray() if issparse(block) else block
    found = frame(block)
    if isinstance(found, nw.DataFrame):
        return quietly(_filled, found)
    return quietly(floats, block if found is None else found)


def _filled(table: Any) -> np.ndarray:
    """Float64 array of a narwhals data frame, filled one column after the other."""
    found = np.empty(table.shape)
    for at, column in enumerate(table.iter_columns()):
        found[:, at] = floats(column)
    return found


def ahead(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield from an iterable that another thread reads: reading overlaps with what is done here."""
    blocks = iter(blocks)
    done = object()
    with ThreadPoolExecutor(1, "skpriv-reader") as reader:
        read = partial(reader.submit, silence()(next), blocks, done)
        waiting = deque(read() for _ in range(AHEAD))
        while (block := waiting.popleft().result()) is not done:
            waiting.append(read())
            yield block
            del block


def aligned(left: Iterable[Any], right: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of blocks with as many rows each, from two streams cut in different places."""
    right = iter(right)
    other: Any = ()
    for one in left:
        while length(one):
            while not length(other):
                if (other := next(right, None)) is None:
                    raise ValueError(OTHER_ROWS)
            size = min(length(one), length(other))
            yield cut(one, 0, size), cut(other, 0, size)
            one = cut(one, size, length(one))
            other = cut(other, size, length(other))
    if length(other) or any(map(length, right)):
        raise ValueError(OTHER_ROWS)


class FetchedRows(Rows):
    """Rows that are not in memory, and are fetched again for each answer.

    A transformer before a regressor, such as `BoundsScaler`, is a step that acts on X of each
    chunk.

    Parameters
    ----------
    n_features, names, steps, has_target
        The same as for `BatchRows`.
    """

    passes: int

    def __init__(self, n_features: int, names: Any, steps: Any, has_target: bool) -> None:
        self.n_features = int(n_features)
        self.names = names
        self._steps = tuple(steps)
        self.passes = 0
        self.has_target = has_target
        self._refuses = False

    def check(self, refuse: bool = True) -> None:
        """From now on, refuse values that are not finite, when they are read."""
        self._refuses = refuse

    def mapped(
        self, function: Any, n_features: int, names: Any = None, *, numeric: bool = True
    ) -> Self:
        """The same rows, with a function of chunks of X before all that is asked of them.

        It is given float64 arrays, or if not ``numeric`` the tables as they are.
        """
        steps = (*self._steps, partial(step, function, numeric))
        return self._changed(_steps=steps, n_features=int(n_features), names=names, dtypes={})

    def _changed(self, **attributes: Any) -> Self:
        """The same rows with other attributes, of which no pass was made and nothing is refused."""
        other = copy(self)
        set_state(other, **{"passes": 0, "_refuses": False, **attributes})
        return other


class BatchRows(FetchedRows):
    """Rows that are read in batches, once for each answer; only a few batches are in memory.

    A thread reads batches ahead, others make float64 chunks of them and multiply.

    Parameters
    ----------
    blocks : callable
        Without arguments; iterates over pairs (X, y) of blocks, the same in each pass. y may be
        None.
    n : int or None
        Public number of records; a pass with more or fewer is refused. None is that of y.
    n_features : int
    names : list of str, default=None
        Public names of the columns.
    steps : tuple of callables, default=()
        Applied to X of each chunk, one after the other.
    stable : bool, default=True
        Whether each pass has the rows in the same order.
    has_target : bool, default=True
        Whether blocks have a y.
    targets : callable, default=None
        Iterates over blocks of y alone, where that is cheaper.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.records import BatchRows, Summed
    >>> class Total(Summed):
    ...     shape = (1,)
    ...     def sum(self, X, y):
    ...         return np.array([y.sum()])
    >>> block = (np.zeros((3, 2), dtype=np.float32), np.arange(3))
    >>> rows = BatchRows(lambda: [block, block], n=6, n_features=2)
    >>> rows.sum(Total()).tolist(), rows.sum(Total(), slice(1, 4)).tolist(), rows.passes
    ([6.0], [3.0], 2)
    """

    shown = True

    def __init__(
        self,
        blocks: Any,
        n: int | None,
        n_features: int,
        names: Any = None,
        *,
        steps: Any = (),
        stable: bool = True,
        has_target: bool = True,
        targets: Any = None,
    ) -> None:
        super().__init__(n_features, names, steps, has_target)
        self._blocks = partial(foreign, blocks)
        self._targets = targets
        self._n = n
        self.ordered = stable

    @property
    def n(self) -> int:  # type: ignore[override]
        """Public number of records."""
        return stated(self._n, "table")

    def with_target(self, blocks: Any, n: int | None = None) -> "BatchRows":
        """The same rows, with the targets that ``blocks()`` iterates over, of public number n."""

        def pairs() -> Iterator[tuple[Any, Any]]:
            return aligned((X for X, _ in self._blocks()), blocks())

        n = n if self._n is None else self._n
        return self._changed(_blocks=pairs, _n=n, has_target=True, _targets=blocks)

    def evaluated(self, function: Any, kind: Any = None) -> Any:
        """Values of a function of X that are computed when they are read.

        ``kind`` makes one result of several, each of which is read on its own.
        """
        if kind is None:
            return LazyValues(self, function)
        parts = range(len(kind._fields))
        return kind(*(LazyValues(self, lambda X, at=at: function(X)[at]) for at in parts))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """X in memory, for functions that take arrays only."""
        found = [np.empty((0, self.n_features)), *self.each(lambda X, y: X)]
        return np.concatenate(found).astype(dtype or np.float64, copy=False)

    def loaded(self, subset: "Subset | None", most_bytes: int) -> "ArrayRows | None":
        """The rows of a subset in memory, if they are no more than that; read in one pass."""
        n = self.n if subset is None else len(subset)
        if not self.has_target or _size(n, self.n_features) > most_bytes:
            return None
        pieces = self.pieces(self._chunk_length(None, False, subset), subset, False)
        return self._joined([_copied(*piece()) for piece in pieces], n)

    def _joined(self, chunks: list[Any], n: int) -> "ArrayRows":
        return ChunkRows(chunks, n, self.n_features, self.n_jobs).joined()

    def loaded_with_targets(
        self, subset: "Subset | None", most_bytes: int
    ) -> "tuple[ArrayRows | None, ArrayRows | None]":
        """The rows of a subset and, without columns of X, all rows, from one pass.

        Either is None if it does not fit. The subset comes first: it answers more questions.
        """
        if not self.has_target:
            return None, None
        alone = self._without_columns()
        if subset is None or not 0 < (size := _size(len(subset), self.n_features)) <= most_bytes:
            found = alone.loaded(None, most_bytes)
            self.passes += found is not None
            return None, found
        keeps_targets = _size(self.n, 0) <= most_bytes - size
        part = []
        targets = []
        self.passes += 1
        for start, X, y in self._cuts(CHUNK_ROWS):
            if keeps_targets:
                targets.append(_copied(*alone._chunk(np.empty((length(X), 0)), y, None, False)))
            chosen = subset.between(start, start + length(X))
            if len(chosen):
                part.append(_copied(*self._chunk(X, y, chosen, False)))
        all_targets = alone._joined(targets, self.n) if keeps_targets else None
        return self._joined(part, len(subset)), all_targets

    def pieces(self, max_rows: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Functions that make one chunk each, of at most ``max_rows`` rows, of batches read ahead.

        Parts without a row of the subset are left out.
        """
        self.passes += 1
        for start, X, y in self._cuts(max_rows, sparse):
            chosen = None if subset is None else subset.between(start, start + length(X))
            if chosen is None or len(chosen):
                yield partial(self._chunk, X, y, chosen, sparse)

    def targets(self, max_rows: Any, subset: Any, sparse: bool) -> Any:
        """Chunks of targets alone, if no column of X need be read for them."""
        if not self.has_target:
            return self.pieces(max_rows, subset, sparse)
        self.passes += 1
        return self._without_columns().pieces(max_rows, subset, sparse)

    def _without_columns(self) -> "BatchRows":
        """The same records with their targets alone."""
        targets = self._targets or (lambda: (y for _, y in self._blocks()))
        blocks = lambda: ((np.empty((length(y), 0)), y) for y in targets())  # noqa: E731
        return self._changed(
            n_features=0,
            names=None,
            has_target=True,
            _blocks=blocks,
            _refuses=self._refuses,
            _steps=(),
            _targets=None,
        )

    def _cuts(self, max_rows: int, keep_sparse: bool = False) -> Iterator[tuple[int, Any, Any]]:
        """Yield the number of the first row, X and y of each part of a block, of its own type."""
        start = 0
        for X, y in ahead(self._blocks()):
            size = length(X)
            if y is not None and length(y) != size:  # one target could stand for several rows
                raise ValueError(OTHER_ROWS)
            longest = CHUNK_ROWS if issparse(X) and keep_sparse else max_rows
            for first in range(0, size, longest):
                last = min(first + longest, size)
                yield start + first, cut(X, first, last), None if y is None else cut(y, first, last)
            start += size
        # Rows that are only mapped may have an unknown number; a session refuses those.
        if self._n is not None and start != self._n:
            raise ValueError(OTHER_LENGTH.format(n=self._n))

    def _chunk(
        self, X: Any, y: Any, chosen: np.ndarray | range | None, keep_sparse: bool
    ) -> tuple[Any, Any]:
        """X and y of the chosen rows of a part, as arrays of numbers, after all steps."""
        if chosen is not None:
            X = pick(X, chosen)
            y = None if y is None else pick(y, chosen)
        for step in self._steps:
            X = step(X)
        X = quietly(canonical, X) if issparse(X) and keep_sparse else dense(X)
        y = None if y is None else dense(y).reshape(-1)
        if y is not None and len(y) != X.shape[0]:
            raise ValueError(OTHER_ROWS)
        if self._refuses:
            finite(X, *([] if y is None else [y]))
        return X, y


def _copied(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of their own: a view would keep all of its batch in memory."""
    return X.copy(), y.copy()


def _size(n: int, n_features: int) -> int:
    """Bytes of rows in memory."""
    return 8 * n * (n_features + 1)


def step(function: Callable[..., Any], numeric: bool, X: Any) -> Any:
    """Result of a function of a chunk, as an array of numbers or as the table that it is."""
    X = dense(X) if numeric else frame(X).to_native()
    return quietly(function, X)


@frozen_object
class LazyValues:
    """One value for each row, computed chunk by chunk whenever they are read.

    NumPy makes an array of them (`numpy.asarray`), and a loop goes over arrays of one chunk each,
    so that predictions can be written to a file without all of them being in memory.

    Parameters
    ----------
    rows : BatchRows
        The rows of which there is one value each.
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

    rows: "BatchRows"
    function: Callable[..., np.ndarray]
    ndim = 1
    dtype = np.dtype(float)
    shape: tuple[int] = field(init=False)

    def __post_init__(self) -> None:
        # An unknown number of rows is refused here
        object.__setattr__(self, "shape", (self.rows.n,))

    def __len__(self) -> int:
        return self.rows.n

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.rows.each(lambda X, y: self.function(X)))

    def compute(self) -> np.ndarray:
        """Return all values as an array.

        Returns
        -------
        ndarray of shape (n_rows,)
            The values, all in memory.
        """
        return np.concatenate([np.empty(0), *self])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if copy is False:
            raise ValueError("lazy values are computed: they have no array to share.")
        return self.compute().astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        return f"LazyValues of {len(self)} rows"
