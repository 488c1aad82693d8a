"""Small linear-algebra pieces that several rooms share."""

import os
from contextlib import nullcontext
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from scipy.linalg import blas
from threadpoolctl import ThreadpoolController

SQRT2 = np.sqrt(2.0)
_HAS_VECDOT = hasattr(np, "vecdot")  # from NumPy 2.0 on, and faster
# Lengths and eigenvalues below it count as zero: squares of them underflow, or are close to it.
TINY = 1e-140
# Of the largest eigenvalue or number beside it: what is smaller is rounding, of sums of 1e6 terms.
RELATIVE_ZERO = 1e-13
HALF_DIGITS = np.finfo(float).eps ** -0.5  # factor that leaves half of the digits right
ROUNDED = 1e-9  # relative: two shares, levels or counts that differ by less are the same
BLOCK_ENTRIES = 2**17  # of a block of rows; a copy of it, or two, are in the cache with it


def vech(matrix):
    """Orthonormal coordinates of a symmetric matrix: diagonal, then sqrt(2) times the upper part.

    The Euclidean norm of the coordinates is the Frobenius norm of the matrix, so that independent
    N(0, s^2) noise on them is the symmetric Gaussian ensemble GOE(s). What is below the diagonal is
    not read.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import vech
    >>> vech(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 3.0, 2.828]
    """
    above, units, _ = _coordinates(len(matrix))
    return matrix.take(above) * units


def unvech(coordinates, d):
    """Symmetric (d, d) matrix of its orthonormal coordinates; the inverse of :func:`vech`."""
    _, units, places = _coordinates(d)
    return (coordinates / units).take(places)


@lru_cache(maxsize=8)
def _coordinates(d):
    """Entries of a matrix that are coordinates, their units, and the coordinate of each entry."""
    rows, columns = np.triu_indices(d, 1)
    rows, columns = np.append(np.arange(d), rows), np.append(np.arange(d), columns)
    places = np.empty((d, d), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return rows * d + columns, np.where(rows == columns, 1.0, SQRT2), places


def vech_size(d):
    """Return the number of coordinates of a symmetric (d, d) matrix."""
    return d * (d + 1) // 2


def psd_part(matrix, floor=0.0):
    """Nearest symmetric matrix (Frobenius) whose eigenvalues are at least ``floor``."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, floor)) @ vectors.T


def psd_power(matrix, power):
    """Return the power of a symmetric positive definite matrix, by its eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**power) @ vectors.T


def row_norms(X):
    """Euclidean norms of the rows, right for entries whose squares overflow or underflow.

    Rows with an entry that is not finite get an infinite norm.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.vecdot(X, X) if _HAS_VECDOT else np.einsum("ij,ij->i", X, X))
    if norms.min(initial=1.0) > TINY and norms.max(initial=1.0) < np.inf:
        return norms
    wrong = ~(np.isfinite(norms) & (norms > TINY))
    if wrong.any():
        largest = np.abs(X[wrong]).max(axis=1, initial=0.0)
        unit = np.where(largest > 0.0, largest, 1.0)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            rest = np.sqrt(np.square(X[wrong] / unit[:, None]).sum(axis=1))
            norms[wrong] = np.where(np.isfinite(largest), largest * rest, np.inf)
    return norms


def add_gram(total, rows):
    """Add ``rows.T @ rows`` to the upper triangle of ``total``, in place; below it anything may be.

    Of few columns NumPy is faster, of many what it would copy is as large as the rows.

    Parameters
    ----------
    total : ndarray of shape (p, p)
        An array of float64 in Fortran order.
    rows : ndarray of shape (n_rows, p)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import add_gram
    >>> total = np.zeros((2, 2), order="F")
    >>> add_gram(total, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> np.triu(total).tolist()
    [[10.0, 14.0], [0.0, 20.0]]
    """
    if len(total) < 100:
        total += rows.T @ rows
    elif rows.size:
        blas.dsyrk(1.0, rows.T, beta=1.0, c=total, overwrite_c=True)


def triangle_times(matrix, rows):
    """``rows @ matrix.T`` of an upper triangle, in place and at half the price of a product.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        Below the diagonal it is not read.
    rows : ndarray of shape (n_rows, p)
        An array of float64, contiguous; overwritten.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import triangle_times
    >>> triangle_times(np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[1.0, 1.0]])).tolist()
    [[3.0, 3.0]]
    """
    return blas.dtrmm(1.0, matrix, rows.T, overwrite_b=True).T if rows.size else rows


def row_products(X, vectors):
    """``X @ vectors.T``, where the numbers of a row depend on that row alone.

    BLAS adds in another order at the edge of a block of rows, so that the last digit of a product,
    or whether it overflows, would depend on the rows that stand beside its own.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, d)
    vectors : ndarray of shape (d,) or (k, d)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import row_products
    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.5])).tolist()
    [2.0, 5.0]
    """
    if not isinstance(X, np.ndarray):
        return X @ vectors.T
    if vectors.ndim == 2:
        return np.stack([row_products(X, vector) for vector in vectors], axis=1)
    # Of one type and layout: otherwise sums are cut where a buffer ends.
    return np.einsum("ij,j->i", np.ascontiguousarray(X, dtype=float), vectors)


def blocks_of(n_rows, width):
    """Yield slices of rows so few that numbers of this width for each of them stay in the cache.

    Of long rows a square matrix does not stay there either: as many rows, up to 8 MB, repay the
    time in which it is read.
    """
    width = max(1, width)
    count = -(-n_rows // max(64, BLOCK_ENTRIES // width, min(width, 8 * BLOCK_ENTRIES // width)))
    edges = [n_rows * part // count for part in range(count + 1)] if count else []
    yield from map(slice, edges[:-1], edges[1:])


@lru_cache(maxsize=1)
def _blas_libraries():
    return ThreadpoolController()


class _OneThread:
    """Context in which BLAS has one thread, until all who have entered it have left.

    The number of threads is one of the process. If each of two threads that overlap brought back
    what it found, the one that entered second would leave BLAS with one thread for good.
    """

    def __init__(self):
        self.forget()

    def forget(self):
        """Begin anew: a forked child has none of its parent's threads, which hold the lock."""
        self._lock, self._inside = Lock(), 0
        self._limits: Any = None

    def __enter__(self):
        with self._lock:
            if not self._inside:
                self._limits = _blas_libraries().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error):
        with self._lock:
            self._inside -= 1
            if not self._inside:
                limits, self._limits = self._limits, None
                limits.restore_original_limits()


_ONE_THREAD = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ONE_THREAD.forget)


def one_blas_thread():
    """Context in which BLAS has one thread: for small matrices, and for threads of our own.

    Waking the threads of two BLAS libraries in turn costs a hundred times what a small
    factorisation does, and they wait for more work in a loop, on the cores of our threads.
    """
    return _ONE_THREAD


def blas_for(columns):
    """Context of the algebra of a fit: one thread below 300 columns, where more cost time."""
    return one_blas_thread() if columns < 300 else nullcontext()


class CompensatedSum:
    """Running sum of arrays with the rounding errors of all additions, so that its own never grows.

    The error of one addition is an exact number (Knuth 1997, section 4.2.2, Theorem B).
    """

    def __init__(self, shape):
        self._total = np.zeros(shape)
        self._correction = np.zeros(shape)

    def add(self, term):
        """Add one array."""
        if np.shape(term) != self._total.shape:
            term = np.broadcast_to(term, self._total.shape)
        term = np.ascontiguousarray(term).reshape(-1)
        before, correction = self._total.reshape(-1), self._correction.reshape(-1)
        for start in range(0, len(term), BLOCK_ENTRIES // 8):  # all of a block are in the cache
            part = slice(start, start + BLOCK_ENTRIES // 8)
            a, b = before[part], term[part]
            total = a + b
            of_b = total - a
            correction[part] += (a - (total - of_b)) + (b - of_b)
            before[part] = total

    def merge(self, other):
        """Add another sum with its correction: the sum of all terms of both."""
        self.add(other._total)
        self._correction += other._correction
        return self

    @property
    def value(self):
        """The sum."""
        return self._total + self._correction
