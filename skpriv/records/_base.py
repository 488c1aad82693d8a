"""The protocol of private rows, the only place where rows are cut and added up; rows in memory.

Threads are kept from one sum to the next, with results in order; tasks of Dask are taken too.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, islice
from math import prod
from operator import itemgetter
from threading import current_thread
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_matrix, issparse

from .._linalg import BLOCK_ENTRIES, CompensatedSum, after_fork, one_blas_thread, unwarned
from .._progress import progress
from ._dtypes import refuse_no_numbers
from ._subset import BATCH_ROWS, SeededOrder, Subset
from ._values import (
    OTHER_ROWS, Unread, ends, finite, numeric, public_shape, quietly, silence,
    silence_everywhere, unless_unread,
)  # fmt: skip

# Seconds that the caller works alone before other threads help: waking them can take as long.
ALONE = 0.005
NAME = "skpriv-sums"
ATTEMPTS = 20  # attempts at a task whose workers die: each computes the same sum, without noise
_POOLS: dict[int, ThreadPoolExecutor] = {}
# A forked process would wait for the threads of its parent, which it does not have.
after_fork(_POOLS.clear)


def in_threads(
    function: Callable[..., Any],
    arguments: Iterable[Any],
    n_jobs: int | None,
    at_once: bool = False,
) -> Iterator[Any]:
    """Yield results in order; many arguments are spread over threads, each with one BLAS thread.

    The order of the results, and with it the rounding of their sum, does not depend on the number
    of threads. Work of less than 5 ms is done by the caller alone.

    Parameters
    ----------
    function : callable
    arguments : iterable
        It is read by the caller, by at most two arguments a thread ahead.
    n_jobs : int or None
        The number of threads, as in joblib.
    at_once : bool, default=False
        Whether threads begin at once, because it is known that all takes longer than 5 ms.

    Returns
    -------
    iterator
    """
    first = list(islice(arguments := iter(arguments), 3 - at_once))
    if len(first) < 3 - at_once:
        yield from map(function, first)
        return
    arguments = chain(first, arguments)
    with one_blas_thread:
        start = perf_counter()
        for argument in () if at_once else arguments:
            yield function(argument)
            if perf_counter() - start > ALONE:
                break
        n_jobs = effective_n_jobs(n_jobs)
        if n_jobs == 1 or current_thread().name.startswith(NAME):  # a pool never waits for itself
            yield from map(function, arguments)
        else:
            yield from _in_pool(function, arguments, n_jobs)


def _in_pool(function: Callable[..., Any], arguments: Iterator[Any], n_jobs: int) -> Iterator[Any]:
    """Results in order, of at most two calls a thread at a time."""
    pool = _POOLS.get(n_jobs)
    if pool is None:
        pool = _POOLS.setdefault(n_jobs, ThreadPoolExecutor(n_jobs, NAME))
    quiet = silence()(function)  # a thread does not know that its caller is silent
    waiting = deque(pool.submit(quiet, one) for one in islice(arguments, 2 * n_jobs))
    try:
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(quiet, one) for one in islice(arguments, 1))
            yield result
    finally:
        for call in waiting:
            call.cancel()


def computed(compute: Callable[[], Any]) -> Any:
    """The result of Dask; tasks that died with their workers are computed again.

    An error of making the parts, such as a text that is cast to a number, may quote a value, and is
    not repeated. Threads of ours have ended by then; those of a cluster, or of a pool that the user
    chose, may go on.
    """
    import dask

    theirs = dask.base.get_scheduler() or dask.config.get("pool", None)
    mine = nullcontext() if theirs else dask.config.set(scheduler=_in_own_threads)
    with silence_everywhere(), mine:  # tasks warn in threads of Dask
        result = unless_unread(_tried_again, compute)
    if isinstance(result, Unread):
        raise result.refused
    return result


def _tried_again(compute: Callable[[], Any]) -> Any:
    """The result of tasks, also where their workers die."""
    for others in reversed(range(ATTEMPTS)):
        try:
            return compute()
        except Exception as error:
            if not (others and ends(error)):
                raise


def _in_own_threads(graph: Any, keys: Any, **options: Any) -> Any:
    """Scheduler of Dask whose threads have ended when it returns: Dask leaves them at an error."""
    from dask import config, system, threaded

    with ThreadPoolExecutor(config.get("num_workers", None) or system.CPU_COUNT) as pool:
        return threaded.get(graph, keys, pool=pool, **options)


# Most rows of a chunk, 2^14: the bound on rounding in every sensitivity needs it
CHUNK_ROWS = BATCH_ROWS // 4
# Bytes of a chunk of 64 columns; wider chunks have fewer rows. Queries go through a chunk in blocks
# that stay in the cache.
CHUNK_BYTES = 8 * 64 * CHUNK_ROWS
KEPT_BYTES = 32 * CHUNK_BYTES  # of rows brought or kept in memory: 500,000 rows of 60 columns


class Summed:
    """A sum over rows: it has a ``shape``, and ``sum(X, y)`` of a chunk.

    Attributes
    ----------
    width : int or None
        Number of columns of X that ``sum`` reads, if it is not all of them (public).
    takes_sparse : bool
        Whether ``sum`` takes sparse chunks as they are.
    quiet : bool
        Whether a pass that takes long says nothing of how far it is.
    one_row_each : bool
        Whether one row of a person is asked about, of several.
    sum_persons : callable or None
        ``sum_persons(X, y, starts, largest)``, the sum over persons whose rows stand together; None
        averages ``sum`` over the rows of a person.
    """

    shape: Any
    sum: Any
    width: Any = None
    takes_sparse = False
    quiet = False
    one_row_each = False
    sum_persons: Any = None


def _even(count: int, longest: int) -> int:
    """Length of chunks of about equal length, which is at most ``longest``. They are one, two or a
    multiple of four, so that two or four threads end together.
    """
    chunks = max(1, -(-count // longest))
    return max(1, -(-count // (chunks if chunks <= 2 else 4 * -(-chunks // 4))))


def added(shape: tuple[int, ...], terms: Iterable[np.ndarray]) -> CompensatedSum:
    """Sum of arrays with its correction, in silence: a warning would tell of a value.

    One number is not added to all of several coordinates: the sensitivity would not be that. The
    error does not repeat the shape of a term, which may be how many values there are.
    """
    total = CompensatedSum(shape)
    with unwarned():
        for term in terms:
            if np.shape(term) != tuple(shape):
                raise ValueError(f"a sum of shape {shape} has terms of another shape.")
            total.add(term)
    return total


class Rows(ABC):
    """Private rows, of which nothing but their public size and exact sums can be had.

    Sessions, streams and procedures know nothing else of rows. A new place where rows live is a
    subclass that says how many there are and hands out chunks; adding them up, with compensation
    and in threads, is done here, once. Rows that are elsewhere (a cluster) override ``sum``.

    Attributes
    ----------
    n : int
        Public number of records.
    n_features : int
        Public number of columns of X.
    n_jobs : int
        Threads that sum chunks at the same time, as in joblib; the sum does not depend on it.
    names : list of str or None
        Public names of the columns of X, where they are known here.
    dtypes : dict
        Public dtypes of the columns that are read, y among them, by their names in the table.
    passes : int or None
        How often the rows were read; None if they are in memory.
    has_target : bool
        Whether y is known.
    at_hand : bool
        Whether chunks can be had here, and not only sums of them.
    on_devices : bool
        Whether each user's device has the row, and answers once, by an index of a codebook.
    indexed : bool
        Whether chunks of any rows can be had, in any order.
    ordered : bool
        Whether rows come in the same order each time, so that a part of them can be chosen.
    stored_sparse : bool
        Whether chunks can be sparse.
    shown : bool
        Whether a pass that takes long says how far it is.
    """

    n: int
    n_features: int
    n_jobs: int | None = -1
    names: list[str] | None = None
    dtypes: Any = {}  # of no column
    passes: int | None = None  # a number where rows are not in memory
    shown = False
    has_target = True
    at_hand = True
    on_devices = False
    indexed = False
    ordered = True
    stored_sparse = False
    rows_each = 1  # most rows of a record, which is public
    by_person: Any = None  # of rows that are elsewhere: brings those of each person together
    shared_sum: Any = None  # of rows on devices: a sum to which all of them add their noise
    devices: Any = None  # how many devices keep the rows of sums, and who adds noise
    lineage: Any = None  # where rows are kept in a file that is paid for once

    @property
    def paid_for(self) -> bool:
        """Whether all there is are reports whose release was charged before; not to be set."""
        return False

    @abstractmethod
    def pieces(
        self, max_rows: int, subset: Any = None, sparse: bool = True
    ) -> Iterable[Callable[[], tuple[Any, Any]]]:
        """Functions without arguments, each of which loads a chunk (X, y) of up to ``max_rows``.

        Parameters
        ----------
        max_rows : int
        subset : Subset or None
            None is all records.
        sparse : bool
            Whether X may be a canonical CSR matrix; else it must be dense. Numbers are float64.
        """

    def targets(self, max_rows: Any, subset: Any, sparse: bool) -> Any:
        """Like ``pieces``, for queries that read no column of X: it may be left out."""
        return self.pieces(max_rows, subset, sparse)

    @property
    def shape(self) -> tuple[int, int]:
        """Public number of records and of columns."""
        return self.n, self.n_features

    def __len__(self) -> int:
        return self.n

    def sum(self, query: Summed, subset: Any = None) -> np.ndarray:
        """Exact sum of a query over all records or a subset of them."""
        return self.total(query, subset).value

    def total(self, query: Summed, subset: Any = None) -> CompensatedSum:
        """Sum with its correction, to be added to those of other parts of the rows."""
        subset = self.chosen(subset)
        sparse = query.takes_sparse
        chunk_length = self._chunk_length(query.width, sparse, subset)
        size = prod(query.shape)
        count = self.n if subset is None else len(subset)
        load = self.targets if query.width == 0 else self.pieces
        pieces = load(_even(count, chunk_length), subset, sparse)

        def chunk_sum(piece: Callable[[], Any]) -> tuple[int, np.ndarray]:
            X, y = piece()
            return X.shape[0], query.sum(X, y)

        # One thread adds up so many numbers in 5 ms
        results = in_threads(chunk_sum, pieces, self.n_jobs, size * count >= 64 * BLOCK_ENTRIES)
        if self.shown and not query.quiet:
            # Progress of a pass over rows that are not in memory is shown after three seconds.
            label = "rows" if self.passes is None else f"pass {self.passes + 1}"
            results = progress(results, count, label, unit="rows", after=3.0, size=itemgetter(0))
        return added(query.shape, (term for _, term in results))

    def each(self, function: Any, subset: Any = None, entries: int | None = None) -> Any:
        """Yield ``function(X, y)`` of one chunk after the other, in order.

        For functions that draw: a report of each user, say. Sums are for ``sum``. If the function
        makes many numbers of each row, ``entries`` is how many: chunks are then so short that all
        of them stay in the cache.
        """
        subset = self.chosen(subset)
        chunk_length = self._chunk_length(None, False, subset)
        if entries is not None:
            chunk_length = min(chunk_length, max(64, BLOCK_ENTRIES // entries))
        for piece in self.pieces(chunk_length, subset, False):
            X, y = piece()
            with unwarned():
                result = function(X, y)
            yield result

    def reduce(self, function: Any, merge: Any, start: Any) -> Any:
        """``merge`` of ``function(X, y)`` of all chunks, beginning with ``start``.

        For what is no sum, such as a triangular factor. ``merge`` must be associative, since parts
        of the rows may be merged where they are; what it returns must not grow with the rows.
        """
        with unwarned():
            return reduce(merge, self.each(function), start)

    def check(self, refuse: bool = True) -> None:
        """Refuse, with one fixed sentence, rows with anything that is not a finite number.

        To be called after the charge: that rows are refused is an answer about them. If not to
        ``refuse``, a number that is not finite is left to the queries.
        """

    def one_each(self, subset: Any = None) -> "Rows":
        """The same records, or a subset of them, with one row of each."""
        return self.select(subset)

    def order(self, seed: bytes) -> SeededOrder:
        """Random order of the records, by a seed."""
        return SeededOrder(seed, self.n)

    def needs_order(self) -> None:
        """Refuse rows of which no part can be chosen."""
        if not self.ordered:
            raise ValueError(
                "rows of a query have no fixed order, so that a part of them is not the same part "
                "when they are read again: the local and the shuffle model, groups, folds and "
                "other subsets need rows that are stored, for example in Parquet files."
            )

    def chosen(self, subset: Any) -> Subset | None:
        """Return the choice that a slice, a mask or positions stand for; None is all records."""
        if subset is None:
            return None
        self.needs_order()
        return Subset.of(subset, self.n)

    def with_target(self, y: Any) -> Any:
        """The same rows with targets that are elsewhere."""
        raise ValueError("these rows have their targets in them: pass them alone, without y.")

    def loaded(self, subset: Subset | None, most_bytes: int) -> "Rows | None":
        """The rows of a subset in memory, if it spares passes and they are no more than that."""
        return None

    def loaded_with_targets(
        self, subset: Subset | None, most_bytes: int
    ) -> "tuple[Rows | None, Rows | None]":
        """The rows of a subset and, without columns of X, all rows, from one pass; None is none."""
        return None, None

    def made(self, function: Callable[..., Any], width: int, count: int) -> "Rows | None":
        """The first ``count`` rows, of the width that ``function(X, y)`` makes of each chunk.

        None if none are kept.
        """
        return None

    def select(self, subset: Any) -> "Rows":
        """The same rows, of which only a subset is there."""
        chosen = self.chosen(subset)
        return self if chosen is None else Selection(self, chosen)

    def _chunk_length(self, width: int | None, sparse: bool, subset: Subset | None) -> int:
        """Rows of a chunk."""
        if self.stored_sparse and sparse:
            return CHUNK_ROWS
        width = max(1, width or self.n_features)
        return max(64, min(CHUNK_ROWS, CHUNK_BYTES // (8 * width)))


class Selection(Rows):
    """A subset of rows, as rows.

    Parameters
    ----------
    rows : Rows
    subset : Subset
    """

    def __init__(self, rows: Rows, subset: Subset) -> None:
        self._rows = rows
        self._subset = subset
        self.n = len(subset)
        self.n_features = rows.n_features
        self.n_jobs = rows.n_jobs

    def pieces(
        self, max_rows: int, subset: Any = None, sparse: bool = True
    ) -> Iterable[Callable[[], tuple[Any, Any]]]:
        """Chunks of the subset, or of a subset of it."""
        return self._rows.pieces(max_rows, self._within(subset), sparse)

    def total(self, query: Summed, subset: Any = None) -> CompensatedSum:
        """Exact sum over the subset, or a subset of it, with its correction."""
        return self._rows.total(query, self._within(subset))

    def one_each(self, subset: Any = None) -> Rows:
        """The subset, or a subset of it, with one row of each record."""
        return self._rows.one_each(self._within(subset))

    def _within(self, subset: Any) -> Subset:
        """Choice among all rows that a choice among these stands for."""
        if subset is None:
            return self._subset
        chosen = Subset.of(subset, self.n)
        positions = np.asarray(self._subset.positions)[np.asarray(chosen.positions)]
        return Subset.of(positions, self._rows.n)


def canonical(X: Any) -> Any:
    """CSR matrix of float64 with sorted indices, no duplicates and no stored zeros.

    Clipping stored entries means clipping entries only in this form: two duplicates of 500 are one
    entry of 1000. The statement of a matrix about its own form is not believed. A matrix that is in
    the form already shares its memory.
    """
    if X.format in ("csr", "csc", "bsr"):  # refuses an index that points outside of the matrix
        X.check_format(full_check=True)
    found = csr_matrix(X)
    data = found.data.astype(float, copy=False)
    fresh = csr_matrix((data, found.indices, found.indptr), shape=found.shape)
    if not fresh.has_canonical_format or (fresh.data == 0.0).any():
        fresh = fresh.copy()
        with unwarned():
            fresh.sum_duplicates()
        fresh.eliminate_zeros()
    return fresh


class ArrayRows(Rows):
    """Rows of arrays in memory, or mapped into it; they are not copied, but in chunks.

    Until ``check`` or the first sum nothing but the shape is looked at.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_records, n_features)
        Numbers of any kind; a chunk is float64 when it is used.
    y : array-like of shape (n_records,)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.records import ArrayRows, Summed
    >>> class Total(Summed):
    ...     shape = (1,)
    ...     def sum(self, X, y):
    ...         return np.array([y.sum()])
    >>> rows = ArrayRows(np.zeros((5, 2), dtype=np.float32), [1, 2, 3, 4, 5])
    >>> rows.n, rows.n_features, rows.sum(Total()).tolist(), rows.sum(Total(), [0, 4]).tolist()
    (5, 2, [15.0], [6.0])
    """

    indexed = True

    def __init__(self, X: Any, y: Any, n_jobs: int | None = -1) -> None:
        self._X = X
        self._y = y
        self.n_jobs = n_jobs
        self.n, self.n_features = public_shape(X)
        refuse_no_numbers(X, "X")
        refuse_no_numbers(y, "y")
        # One target must not stand for several rows.
        if y is not None and public_shape(y) not in ((self.n,), (self.n, 1)):
            raise ValueError(OTHER_ROWS)
        self.shown = isinstance(X, np.memmap)
        self._ready = False
        self.stored_sparse = issparse(X)

    def check(self, refuse: bool = True) -> None:
        """Turn values into numbers, and refuse what is none, with one fixed sentence."""
        self._prepare()
        if refuse and self.stored_sparse:
            finite(self._X, self._y)
        elif refuse:
            size = max(CHUNK_ROWS, -(-self.n // 8))
            parts = (self._X[start : start + size] for start in range(0, self.n, size))
            deque(in_threads(finite, chain([self._y], parts), self.n_jobs), maxlen=0)

    def _prepare(self) -> None:
        """Make the rows safe to cut into chunks."""
        if self._ready:
            return
        self._y = numeric(self._y).reshape(-1)
        self._X = quietly(canonical, self._X) if issparse(self._X) else numeric(self._X)
        self._ready = True

    def _chunk_length(self, width: int | None, sparse: bool, subset: Subset | None) -> int:
        """Rows of a chunk; where a chunk is a copy, all columns are copied."""
        plain = isinstance(self._X, np.ndarray) and self._X.dtype == np.float64
        as_view = subset is None or isinstance(subset.positions, range)
        return super()._chunk_length(width if plain and as_view else None, sparse, subset)

    def pieces(self, max_rows: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Yield functions that load one chunk each."""
        self._prepare()
        chosen = range(self.n) if subset is None else subset.positions
        for start in range(0, len(chosen), max_rows):
            yield partial(self._chunk, chosen[start : start + max_rows], sparse)

    def targets(self, max_rows: Any, subset: Any, sparse: bool) -> Any:
        """Yield functions that load one chunk of targets each, without a copy of X."""
        self._prepare()
        return ArrayRows(np.empty((self.n, 0)), self._y).pieces(max_rows, subset, sparse)

    def loaded(self, subset: Subset | None, most_bytes: int) -> "ArrayRows | None":
        """The rows of a subset, side by side: questions about rows that are apart take longer."""
        self._prepare()
        if (
            subset is None
            or self.stored_sparse
            or isinstance(subset.positions, range)
            or 8 * len(subset) * (self.n_features + 1) > most_bytes
        ):
            return None
        X, y = self._chunk(subset.positions, False)
        return ArrayRows(X, y, self.n_jobs)

    def made(self, function: Any, width: int, count: int) -> "ChunkRows":
        """The first rows, of this width, by ``function(X, y)`` of each chunk in several threads."""
        length = _even(count, self._chunk_length(None, False, None))
        pieces = self.pieces(length, Subset(range(count)), False)
        made = in_threads(lambda piece: function(*piece()), pieces, self.n_jobs, True)
        return ChunkRows(list(made), count, width, self.n_jobs)

    def _chunk(self, chosen: Any, keep_sparse: bool) -> tuple[Any, np.ndarray]:
        if isinstance(chosen, range):
            chosen = slice(chosen.start, chosen.stop, chosen.step)
        apart = isinstance(self._X, np.ndarray) and isinstance(chosen, np.ndarray)
        X = self._X.take(chosen, axis=0) if apart else self._X[chosen]  # `take` copies whole rows
        y = np.asarray(self._y[chosen], float)
        if self.stored_sparse:
            if keep_sparse:
                return X, y
            X = X.toarray()
        return np.asarray(X, float, order="C"), y


@dataclass(eq=False, repr=False)
class ChunkRows(Rows):
    """Rows in memory, in chunks of fixed lengths whose arrays keep their order in memory.

    Parameters
    ----------
    chunks : list of tuple
    n, n_features : int
    n_jobs : int or None
    rows_each : int, default=1
        Most rows of a record, which is public.
    """

    _chunks: list[Any]
    n: int
    n_features: int
    n_jobs: int | None
    rows_each: int = 1

    def pieces(self, max_rows: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Functions that return one chunk each, however long; no caller may ask for a subset."""
        return (partial(tuple, chunk) for chunk in self._chunks)

    def joined(self) -> ArrayRows:
        """The same as one array, of which any rows can be had; the chunks are given up."""
        X = np.empty(self.shape)
        y = np.empty(self.n)
        stop = 0
        while self._chunks:
            part, targets = self._chunks.pop(0)
            start = stop
            stop += len(part)
            X[start:stop] = part
            y[start:stop] = targets
        return ArrayRows(X, y, self.n_jobs)


class WeightedRows(Rows):
    """Rows (x, s) with targets s r, where s^2 = clip(weight / largest, 0, 1) and r = scaled(y).

    So weights travel with their rows, chunk by chunk. A weight that is no number counts as 0, and
    so does a negative one: like any value of a row it is private, and nothing is said about it but
    that not all values are finite numbers.

    Parameters
    ----------
    rows : ArrayRows
    weights : array-like of shape (n_records,)
    largest : float
        Public bound on the weights.
    scaled : callable
        Public map from targets to [-1, 1].
    """

    def __init__(
        self, rows: Rows, weights: Any, largest: float, scaled: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self._rows = rows
        nothing = np.broadcast_to(np.zeros(()), (rows.n, 1))
        self._weights = ArrayRows(nothing, weights)  # weights are read like targets
        self.largest = largest
        self._scaled = scaled
        self.n = rows.n
        self.n_features = rows.n_features + 1
        self.n_jobs = rows.n_jobs
        self.indexed = rows.indexed

    def check(self, refuse: bool = True) -> None:
        """Refuse, with one fixed sentence, what is not a finite number."""
        self._rows.check(refuse)
        self._weights.check(refuse)

    def pieces(self, max_rows: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Chunks of (x, s) and s r; both parts are cut at the same places."""
        rows = self._rows.pieces(max_rows, subset, False)
        weights = self._weights.pieces(max_rows, subset, False)
        for one, other in zip(rows, weights, strict=True):
            yield partial(self._joined, one, other)

    def _joined(
        self, rows: Callable[[], Any], weights: Callable[[], Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        X, y = rows()
        _, weight = weights()
        with unwarned():
            part = np.nan_to_num((weight / self.largest).clip(0.0, 1.0), nan=0.0)
            root = np.sqrt(part)
            return np.column_stack([X, root]), root * self._scaled(y)
