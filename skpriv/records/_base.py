"""The protocol of private rows, and the only place where rows are cut into chunks and added up.

Threads are kept from one sum to the next, with results in order; tasks of Dask are taken too.
"""

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from operator import itemgetter
from threading import current_thread
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from .._linalg import BLOCK_ENTRIES, CompensatedSum, one_blas_thread
from .._progress import progress
from ..exceptions import InvalidValues
from ._subset import PublicOrder, Subset
from ._values import INVALID_VALUES

ALONE = 0.02  # seconds of work before other threads help: to wake them costs up to one of these
NAME = "skpriv-sums"
ATTEMPTS = 20  # at a task whose workers die: it is the same sum each time, without any noise
_POOLS: dict[int, ThreadPoolExecutor] = {}
# A child has none of its parent's threads, and would wait for them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOLS.clear)


def in_threads(function: Callable, arguments: Iterable, n_jobs: int | None = -1) -> Iterator[Any]:
    """Yield results in order; many arguments are spread over threads, each with one BLAS thread.

    The order of the results, and with it the rounding of their sum, does not depend on the number
    of threads. What is done within 20 ms is done by the caller alone.

    Parameters
    ----------
    function : callable
    arguments : iterable
        It is read by the caller, by at most two arguments a thread ahead.
    n_jobs : int or None, default=-1
        The number of threads, as in joblib.

    Returns
    -------
    iterator
    """
    first = list(islice(arguments := iter(arguments), 3))
    if len(first) <= 2:
        yield from map(function, first)
        return
    arguments = chain(first, arguments)
    with one_blas_thread():
        start = perf_counter()
        for argument in arguments:
            yield function(argument)
            if perf_counter() - start > ALONE:
                break
        n_jobs = effective_n_jobs(n_jobs)
        if n_jobs == 1 or current_thread().name.startswith(NAME):  # a thread waits for no other
            yield from map(function, arguments)
        else:
            yield from _in_pool(function, arguments, n_jobs)


def _in_pool(function, arguments, n_jobs):
    """Results in order, of at most two calls a thread at a time."""
    pool = _POOLS.get(n_jobs)
    if pool is None:
        pool = _POOLS.setdefault(n_jobs, ThreadPoolExecutor(n_jobs, NAME))
    waiting = deque(pool.submit(_quiet, function, one) for one in islice(arguments, 2 * n_jobs))
    try:
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(_quiet, function, one) for one in islice(arguments, 1))
            yield result
    finally:
        for call in waiting:
            call.cancel()


def _quiet(function, argument):
    """A call without warnings, which would tell of a value: a thread does not have what its caller
    said of them.
    """
    with np.errstate(all="ignore"):
        return function(argument)


def computed(task: Any) -> Any:
    """Value of a task of Dask; one that died with its workers is computed again.

    What goes wrong where the parts are made, such as a text that is cast to a number, may quote a
    value, and is not repeated.
    """
    for attempt in range(ATTEMPTS):
        try:
            return task.compute()
        except (OSError, MemoryError):
            raise
        except Exception as error:
            if type(error).__name__ not in ("KilledWorker", "CancelledError"):
                break
            if attempt == ATTEMPTS - 1:
                raise
    raise InvalidValues(INVALID_VALUES)


CHUNK_ROWS = 2**14  # at most; the rounding slack of every sensitivity rests on it
BATCH_ROWS = 2**16  # of a file, or of the users, that are read or drawn at once
KEPT_BYTES = 2**28  # of rows that are brought or kept in memory: 500,000 rows of 60 columns
CHUNK_BYTES = 2**23  # a chunk of rows; queries go through it in blocks that stay in the cache


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
    shown : bool
        Whether a pass that takes long says how far it is.
    """

    n: int
    n_features: int
    n_jobs = -1
    names: list[str] | None = None
    passes: int | None = None  # counted in rows that are not in memory
    shown = False
    has_target = True
    at_hand = True
    on_devices = False
    indexed = False
    lineage: Any = None  # of rows that are kept in a file and paid for once

    @property
    def paid_for(self) -> bool:
        """Whether all there is are reports whose release was charged before; not to be set."""
        return False

    @abstractmethod
    def pieces(self, most: int, subset: Any = None, sparse: bool = True) -> Iterable[Callable]:
        """Functions without arguments, each of which loads a chunk (X, y) of at most ``most`` rows.

        Parameters
        ----------
        most : int
        subset : Subset or None
            None is all records.
        sparse : bool
            Whether X may be a canonical CSR matrix; else it must be dense. Numbers are float64.
        """

    def targets(self, most: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Like ``pieces``, for queries that read no column of X: it may be left out."""
        return self.pieces(most, subset, sparse)

    @property
    def shape(self) -> tuple[int, int]:
        """Public number of records and of columns."""
        return self.n, self.n_features

    def __len__(self):
        return self.n

    @property
    def stored_sparse(self) -> bool:
        """Whether chunks can be sparse."""
        return False

    def sum(self, query: Any, subset: Any = None) -> np.ndarray:
        """Exact sum of a query over all records or a subset of them."""
        return self.total(query, subset).value

    def total(self, query: Any, subset: Any = None) -> CompensatedSum:
        """Sum with its correction, to be added to those of other parts of the rows."""
        total = CompensatedSum(query.shape)
        subset, sparse = self.chosen(subset), getattr(query, "takes_sparse", False)
        most = self._most(query.width, sparse, subset)
        if not sparse:  # up to four times as many, so that a sum is not long beside its rows
            long = 8 * int(np.prod(query.shape)) // max(1, query.width or self.n_features)
            most = max(most, min(CHUNK_ROWS, 4 * most, long))
        load: Callable = self.targets if query.width == 0 else self.pieces
        pieces = load(most, subset, sparse)

        def chunk_sum(piece):
            X, y = piece()
            return X.shape[0], query.sum(X, y)

        results = in_threads(chunk_sum, pieces, self.n_jobs)
        if self.shown and not getattr(query, "quiet", False):
            count = self.n if subset is None else len(subset)
            # A pass over rows that are not in memory is shown after three seconds
            options = {"unit": "rows", "after": 3.0, "size": itemgetter(0)}
            label = "rows" if self.passes is None else f"pass {self.passes + 1}"
            results = progress(results, count, label, **options)
        with np.errstate(all="ignore"):  # a warning would tell of a value
            for _, term in results:
                total.add(term)
        return total

    def each(self, function: Any, subset: Any = None, entries: int | None = None) -> Any:
        """Yield ``function(X, y)`` of one chunk after the other, in order.

        For functions that draw: a report of each user, say. Sums are for ``sum``. Where the
        function makes many numbers of each row, ``entries`` is how many: chunks are then so short
        that all of them stay in the cache.
        """
        subset = self.chosen(subset)
        most = self._most(None, False, subset)
        if entries is not None:
            most = min(most, max(64, BLOCK_ENTRIES // entries))
        for piece in self.pieces(most, subset, False):
            X, y = piece()
            with np.errstate(all="ignore"):
                result = function(X, y)
            yield result

    def reduce(self, function: Any, merge: Any, start: int) -> Any:
        """``merge`` of ``function(X, y)`` of all chunks, beginning with ``start``.

        For what is no sum, such as a triangular factor. ``merge`` must be associative, since parts
        of the rows may be merged where they are; what it returns must not grow with the rows.
        """
        total = start
        for value in self.each(function):
            with np.errstate(all="ignore"):
                total = merge(total, value)
        return total

    def check(self, refuse: bool = True) -> None:
        """Refuse, with one fixed sentence, rows with anything that is not a finite number.

        To be called after the charge: that rows are refused is an answer about them. Where not to
        ``refuse``, what is a number but not finite is left to the queries.
        """

    def one_each(self, subset: Any = None) -> Any:
        """The same records, or a subset of them, with one row of each."""
        return self.select(subset)

    def order(self, permutation: Any) -> Any:
        """Public random order of the users; ``permutation(n)`` draws one."""
        return PublicOrder(permutation(self.n))

    @property
    def ordered(self) -> bool:
        """Whether rows come in the same order each time, so that a part of them can be chosen."""
        return True

    def needs_order(self) -> Any:
        """Refuse rows that do not come in the same order each time, if there are such."""

    def chosen(self, subset: Any) -> Any:
        """Return the choice that a slice, a mask or positions stand for; None is all records."""
        return None if subset is None else Subset.of(subset, self.n)

    def with_target(self, y: Any) -> Any:
        """The same rows with targets that are elsewhere."""
        raise ValueError("these rows have their targets in them: pass them alone, without y.")

    def kept(self, subset: Any, most_bytes: int) -> Any:
        """The rows of a subset in memory, if it spares passes and they are no more than that."""
        return None

    def kept_targets(self, subset: Any, most_bytes: int) -> Any:
        """The rows of a subset and, without columns of X, all rows, from one pass; None is none."""
        return None, None

    def select(self, subset: Any) -> Any:
        """The same rows, of which only a subset is there."""
        return self if subset is None else Selection(self, self.chosen(subset))

    def _most(self, width, sparse, subset):
        """Rows of a chunk."""
        if self.stored_sparse and sparse:
            return CHUNK_ROWS
        width = self._loaded(width or self.n_features, subset)
        return max(64, min(CHUNK_ROWS, CHUNK_BYTES // (8 * max(1, width))))

    def _loaded(self, width, subset):
        """Columns that are copied along with those that are read, for the size of a chunk."""
        return width


class Selection(Rows):
    """A subset of rows, as rows.

    Parameters
    ----------
    rows : Rows
    subset : Subset
    """

    def __init__(self, rows, subset):
        self._rows, self._subset = rows, subset
        self.n, self.n_features, self.n_jobs = len(subset), rows.n_features, rows.n_jobs

    def pieces(self, most, subset=None, sparse=True):
        """Chunks of the subset, or of a subset of it."""
        return self._rows.pieces(most, self._within(subset), sparse)

    def sum(self, query, subset=None):
        """Exact sum over the subset."""
        return self.total(query, subset).value

    def total(self, query, subset=None):
        """Exact sum over the subset, or a subset of it, with its correction."""
        return self._rows.total(query, self._within(subset))

    def one_each(self, subset=None):
        """The subset, or a subset of it, with one row of each record."""
        return self._rows.one_each(self._within(subset))

    def _within(self, subset):
        """Choice among all rows that a choice among these stands for."""
        if subset is None:
            return self._subset
        positions = np.asarray(self._subset.positions)[np.asarray(self.chosen(subset).positions)]
        return Subset.of(positions, self._rows.n)
