"""Rows in memory: NumPy arrays, memory maps and SciPy sparse matrices."""

from typing import Any
from functools import partial
from itertools import chain

import numpy as np
from scipy.sparse import csr_matrix, issparse

from ._base import CHUNK_ROWS, Rows, in_threads
from ._values import finite, numeric, public_shape, quietly


def canonical(X: Any) -> Any:
    """CSR matrix of float64 with sorted indices, no duplicates and no stored zeros.

    Clipping stored entries means clipping entries only in this form: two duplicates of 500 are one
    entry of 1000. What a matrix says about its own form is not believed. A matrix that is in the
    form already shares its memory.
    """
    if hasattr(X, "check_format"):  # no index points outside of it
        X.check_format(full_check=True)
    found = csr_matrix(X)
    data = found.data.astype(np.float64, copy=False)
    fresh = csr_matrix((data, found.indices, found.indptr), shape=found.shape)
    if not fresh.has_canonical_format or (fresh.data == 0.0).any():
        fresh = fresh.copy()
        with np.errstate(over="ignore", invalid="ignore"):
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
    >>> from skpriv.records import ArrayRows
    >>> class Total:
    ...     shape, width = (1,), None
    ...     def sum(self, X, y):
    ...         return np.array([y.sum()])
    >>> rows = ArrayRows(np.zeros((5, 2), dtype=np.float32), [1, 2, 3, 4, 5])
    >>> rows.n, rows.n_features, rows.sum(Total()).tolist(), rows.sum(Total(), [0, 4]).tolist()
    (5, 2, [15.0], [6.0])
    """

    indexed = True

    def __init__(self, X: Any, y: Any) -> None:
        self._X, self._y = X, y
        self.n, self.n_features = public_shape(X)
        self.shown = isinstance(X, np.memmap)
        self._ready, self._sparse = False, issparse(X)

    @property
    def stored_sparse(self) -> Any:
        """Whether X is a sparse matrix."""
        return self._sparse

    def check(self, refuse: bool = True) -> None:
        """Turn values into numbers, and refuse what is none, with one fixed sentence."""
        self._prepare()
        if not refuse:
            return
        if self.stored_sparse:
            finite(self._X, self._y)
            return
        size = max(CHUNK_ROWS, -(-self.n // 8))
        parts = (self._X[start : start + size] for start in range(0, self.n, size))
        for _ in in_threads(finite, chain([self._y], parts), self.n_jobs):
            pass

    def _prepare(self):
        """Make the rows safe to cut into chunks."""
        if self._ready:
            return
        self._y = numeric(self._y).reshape(-1)
        self._X = quietly(canonical, self._X) if issparse(self._X) else numeric(self._X)
        self._ready = True

    def _loaded(self, width, subset):
        """Columns that are copied along with those that are read, for the size of a chunk."""
        whole = isinstance(self._X, np.ndarray) and self._X.dtype == np.float64
        view = subset is None or isinstance(subset.positions, range)
        return width if whole and view else self.n_features

    def pieces(self, most: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Yield functions that load one chunk each."""
        self._prepare()
        count = self.n if subset is None else len(subset)
        for start in range(0, count, most):
            if subset is None:
                chosen = slice(start, min(start + most, count))
            else:
                chosen = subset.positions[start : start + most]
            yield partial(self._chunk, chosen, sparse)

    def targets(self, most: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Yield functions that load one chunk of targets each, without a copy of X."""
        self._prepare()
        return ArrayRows(np.empty((self.n, 0)), self._y).pieces(most, subset, sparse)

    def kept(self, subset: Any, most_bytes: int) -> Any:
        """The rows of a subset, side by side: questions about rows that are apart take longer."""
        self._prepare()
        if subset is None or self.stored_sparse or isinstance(subset.positions, range):
            return None
        if 8 * len(subset) * (self.n_features + 1) > most_bytes:
            return None
        rows = ArrayRows(*self._chunk(subset.positions, False))
        rows.n_jobs = self.n_jobs
        return rows

    def _chunk(self, chosen, keep_sparse):
        if isinstance(chosen, range):
            chosen = slice(chosen.start, chosen.stop, chosen.step)
        X, y = _picked(self._X, chosen), np.asarray(_picked(self._y, chosen), dtype=np.float64)
        if self.stored_sparse:
            if keep_sparse:
                return X, y
            X = X.toarray()
        return np.ascontiguousarray(X, dtype=np.float64), y


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

    def __init__(self, rows: Any, weights: Any, largest: float, scaled: Any) -> None:
        self._rows = rows
        nothing = np.broadcast_to(np.zeros(()), (rows.n, 1))
        self._weights = ArrayRows(nothing, weights)  # as targets, which may be of any kind
        self.largest, self._scaled = largest, scaled
        self.n, self.n_features, self.n_jobs = rows.n, rows.n_features + 1, rows.n_jobs
        self.names = None

    @property
    def indexed(self) -> bool:  # type: ignore[override]
        """Whether chunks of any rows can be had."""
        return self._rows.indexed

    def check(self, refuse: bool = True) -> None:
        """Refuse, with one fixed sentence, what is not a finite number."""
        self._rows.check(refuse)
        self._weights.check(refuse)

    def pieces(self, most: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Chunks of (x, s) and s r; both parts are cut at the same places."""
        rows = self._rows.pieces(most, subset, False)
        weights = self._weights.pieces(most, subset, False)
        for one, other in zip(rows, weights, strict=True):
            yield partial(self._joined, one, other)

    def _joined(self, rows, weights):
        (X, y), (_, weight) = rows(), weights()
        with np.errstate(all="ignore"):
            part = np.nan_to_num(np.clip(weight / self.largest, 0.0, 1.0), nan=0.0)
            root = np.sqrt(part)
            return np.column_stack([X, root]), root * self._scaled(y)


def _picked(data, chosen):
    """Rows of a slice, or at positions: `take` copies whole rows."""
    by_row = isinstance(data, np.ndarray) and isinstance(chosen, np.ndarray)
    return data.take(chosen, axis=0) if by_row else data[chosen]
