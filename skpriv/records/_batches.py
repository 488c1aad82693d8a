"""Rows that come in batches, read again for each answer: files, lazy tables, memory maps."""

from copy import copy
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ._base import CHUNK_ROWS, ArrayRows, Rows
from ._blocks import (
    OTHER_LENGTH, LazyValues, ahead, aligned, cut, dense, frame, length, pick, sparse, stated,
)  # fmt: skip
from ._order import SeededOrder
from ._values import OTHER_ROWS, finite, quietly


class FetchedRows(Rows):
    """Rows that are not in memory, and are fetched again for each answer.

    What comes before a regressor, such as `BoundsScaler`, is a step that acts on X of each chunk.

    Parameters
    ----------
    n_features, names, steps, has_target
        The same as for `BatchRows`.
    """

    passes: int

    def __init__(self, n_features: int, names: Any, steps: Any, has_target: bool) -> None:
        self.n_features, self.names, self._steps = int(n_features), names, tuple(steps)
        self.passes, self.has_target, self._refuses = 0, has_target, False

    def check(self, refuse: bool = True) -> None:
        """From now on, refuse values that are not finite, when they are read."""
        self._refuses = refuse

    def order(self, permutation: Any) -> Any:
        """Public random order of the users, of which a block at a time is in memory."""
        self.needs_order()
        return SeededOrder.drawn(permutation, self.n)

    def mapped(
        self, function: Any, n_features: int, names: Any = None, *, numeric: bool = True
    ) -> Any:
        """The same rows, with a function of chunks of X before all that is asked of them.

        It is given float64 arrays, or if not ``numeric`` the tables as they are.
        """
        steps = (*self._steps, partial(step, function, numeric))
        return self._changed(_steps=steps, n_features=int(n_features), names=names)

    def _changed(self, **attributes):
        """The same rows with other attributes, of which no pass was made and nothing is refused."""
        other = copy(self)
        other.__dict__.update({"passes": 0, "_refuses": False, **attributes})
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
    >>> from skpriv.records import BatchRows
    >>> class Total:
    ...     shape, width = (1,), None
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
        self._blocks, self._targets, self._n, self.ordered = blocks, targets, n, stable

    @property
    def n(self) -> int:  # type: ignore[override]
        """Public number of records."""
        return stated(self._n, "table")

    def with_target(self, blocks: Any, n: int | None = None) -> Any:
        """The same rows, with the targets that ``blocks()`` iterates over, of public number n."""

        def pairs():
            for X, y in aligned((X for X, _ in self._blocks()), blocks()):
                yield X, y

        n = n if self._n is None else self._n
        return self._changed(_blocks=pairs, _n=n, has_target=True, _targets=blocks)

    def evaluated(self, function: Any, kind: Any = None) -> Any:
        """Values of a function of X that are computed when they are read.

        ``kind`` makes one result of several, each of which is read on its own.
        """
        if kind is None:
            return LazyValues(self, function)
        parts = range(len(kind._fields))
        return kind(*(LazyValues(self, partial(_part, function, at)) for at in parts))

    def __array__(self, dtype=None, copy=None):
        """X in memory, for functions that take arrays only."""
        found = [np.empty((0, self.n_features)), *self.each(lambda X, y: X)]
        return np.concatenate(found).astype(dtype or np.float64, copy=False)

    def kept(self, subset: Any, most_bytes: int) -> Any:
        """The rows of a subset in memory, if they are no more than that; read in one pass."""
        n = self.n if subset is None else len(subset)
        if not self.has_target or _size(n, self.n_features) > most_bytes:
            return None
        memory = _Memory(n, self.n_features)
        for X, y in self.each(lambda *chunk: chunk, subset):
            memory.add(X, y)
        return memory.rows(self.n_jobs)

    def kept_targets(self, subset: Any, most_bytes: int) -> Any:
        """The rows of a subset and, without columns of X, all rows, from one pass.

        Either is None if it does not fit. The subset comes first: it answers more questions.
        """
        if not self.has_target:
            return None, None
        n = 0 if subset is None else len(subset)
        part = _Memory(n, self.n_features) if _size(n, self.n_features) <= most_bytes else None
        left = most_bytes - (_size(n, self.n_features) if part else 0)
        targets = _Memory(self.n, 0) if _size(self.n, 0) <= left else None
        if not n or part is None:
            if targets is not None:
                for piece in self.targets(CHUNK_ROWS, None, False):
                    y = piece()[1]
                    targets.add(np.empty((len(y), 0)), y)
            return None, targets and targets.rows(self.n_jobs)
        self.passes += 1
        alone = self._without_columns()
        for start, X, y in self._cuts(CHUNK_ROWS):
            if targets is not None:
                targets.add(*alone._chunk(np.empty((length(X), 0)), y, None, False))
            chosen = subset.between(start, start + length(X))
            if len(chosen):
                part.add(*self._chunk(X, y, chosen, False))
        return part.rows(self.n_jobs), targets and targets.rows(self.n_jobs)

    def pieces(self, most: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Functions that make one chunk each, of batches that a thread reads ahead.

        An error of reading is raised by a piece, where it can be passed on.
        """
        self.passes += 1
        try:
            yield from self._pieces(most, subset, sparse)
        except Exception as error:
            yield partial(_raise, error)

    def targets(self, most: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Chunks of targets alone, if no column of X need be read for them."""
        if self._targets is None:
            return self.pieces(most, subset, sparse)
        self.passes += 1
        return self._without_columns().pieces(most, subset, sparse)

    def _without_columns(self):
        """The same records with their targets alone."""
        targets = self._targets or (lambda: (y for _, y in self._blocks()))
        blocks = lambda: ((np.empty((length(y), 0)), y) for y in targets())  # noqa: E731
        alone = {"n_features": 0, "names": None, "_steps": (), "_targets": None}
        return self._changed(_blocks=blocks, _refuses=self._refuses, has_target=True, **alone)

    def _pieces(self, most, subset, keep_sparse):
        for start, X, y in self._cuts(most, keep_sparse):
            chosen = None
            if subset is not None:
                if subset.beyond(start):
                    return
                chosen = subset.between(start, start + length(X))
                if not len(chosen):
                    continue
            yield partial(self._chunk, X, y, chosen, keep_sparse)

    def _cuts(self, most, keep_sparse=False):
        """Yield the number of the first row, X and y of each part of a block, as they come."""
        start = 0
        for X, y in ahead(self._blocks()):
            size = length(X)
            if y is not None and length(y) != size:  # one target could stand for several rows
                raise ValueError(OTHER_ROWS)
            step = CHUNK_ROWS if issparse(X) and keep_sparse else most
            for first in range(0, size, step):
                last = min(first + step, size)
                yield start + first, cut(X, first, last), None if y is None else cut(y, first, last)
            start += size
        # The number may be unknown of rows that are mapped and not fitted: sessions ask for it.
        if self._n is not None and start != self._n:
            raise ValueError(OTHER_LENGTH.format(n=self._n))

    def _chunk(self, X, y, chosen, keep_sparse):
        if chosen is not None:
            X, y = pick(X, chosen), None if y is None else pick(y, chosen)
        for step in self._steps:
            X = step(X)
        X = sparse(X) if issparse(X) and keep_sparse else dense(X)
        y = None if y is None else dense(y).reshape(-1)
        if y is not None and len(y) != X.shape[0]:
            raise ValueError(OTHER_ROWS)
        if self._refuses:
            finite(X, *([] if y is None else [y]))
        return X, y


class _Memory:
    """Room for rows that come in chunks; those that are too many are not kept.

    Parameters
    ----------
    n, n_features : int
    """

    def __init__(self, n, n_features):
        self._X, self._y, self._filled = np.empty((n, n_features)), np.empty(n), 0

    def add(self, X, y):
        """Copy the next chunk."""
        stop = min(self._filled + len(y), len(self._y))
        place, count = slice(self._filled, stop), stop - self._filled
        self._X[place], self._y[place], self._filled = X[:count], y[:count], stop

    def rows(self, n_jobs):
        """All that was added, as rows."""
        rows = ArrayRows(self._X, self._y)
        rows.n_jobs = n_jobs
        return rows


def _size(n, n_features):
    """Bytes of rows in memory."""
    return 8 * n * (n_features + 1)


def step(function, numeric, X):
    """Result of a function of a chunk, as an array of numbers or as the table that it is."""
    X = dense(X) if numeric else frame(X).to_native()
    return quietly(function, X)


def _part(function, at, X):
    return function(X)[at]


def _raise(error):
    raise error
