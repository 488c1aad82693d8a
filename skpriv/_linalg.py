"""Small linear-algebra pieces that several rooms share."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import optimize
from scipy.sparse import issparse
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from ._contracts import Array


SQRT2 = np.sqrt(2.0)


def after_fork(reset: Callable[[], object]) -> None:
    """Call a function in each child that this process forks, where the system can fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)


_HAS_VECDOT = hasattr(np, "vecdot")  # from NumPy 2.0 on, and faster
# Lengths and eigenvalues below this count as zero, because their squares may underflow.
TINY = 1e-140
# An eigenvalue below this fraction of the largest one is rounding error of a sum of 1e6 terms.
RELATIVE_ZERO = 1e-13
FLOAT_STEP = float(np.finfo(float).eps)  # more than rounding takes from a number near one
HALF_DIGITS = FLOAT_STEP**-0.5  # a factor by which half of the digits stay right
ROUNDED = 1e-9  # two shares, levels or counts whose relative difference is smaller are equal
# Whatever reads a cell is silent: numbers may overflow, or be none, without a warning.
unwarned = partial(np.errstate, all="ignore")
BLOCK_ENTRIES = 2**17  # numbers in a block of rows; the cache holds it and two copies of it


def vech(matrix: np.ndarray) -> Any:
    """Orthonormal coordinates of a symmetric matrix: diagonal, then sqrt(2) times the upper part.

    The Euclidean norm of the coordinates is the Frobenius norm of the matrix, so that independent
    N(0, s^2) noise on them is the symmetric Gaussian ensemble GOE(s). Entries below the diagonal
    are not read.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import vech
    >>> vech(np.array([[1.0, 2.0], [2.0, 3.0]])).round(3).tolist()
    [1.0, 3.0, 2.828]
    """
    above, units, _ = _coordinates(len(matrix))
    return matrix.take(above) * units


def unvech(coordinates: np.ndarray, d: int) -> "Array":
    """Symmetric (d, d) matrix of its orthonormal coordinates; the inverse of :func:`vech`."""
    _, units, places = _coordinates(d)
    return (coordinates / units).take(places)


@lru_cache(maxsize=8)
def _coordinates(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of the entries that become coordinates, their units, and each entry's coordinate."""
    rows, columns = np.triu_indices(d, 1)
    rows = np.append(np.arange(d), rows)
    columns = np.append(np.arange(d), columns)
    places = np.empty((d, d), np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return rows * d + columns, np.where(rows == columns, 1.0, SQRT2), places


def vech_size(d: int) -> int:
    """Return the number of coordinates of a symmetric (d, d) matrix."""
    return d * (d + 1) // 2


def pair_products(rows: np.ndarray) -> "Array":
    """Products of each two of k rows, in the order of `vech` and without its factors.

    Parameters
    ----------
    rows : ndarray of shape (k, n)

    Returns
    -------
    ndarray of shape (k (k + 1) / 2, n)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import pair_products
    >>> pair_products(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 4.0], [9.0, 16.0], [3.0, 8.0]]
    """
    first, second = np.divmod(_coordinates(len(rows))[0], len(rows))
    return rows[first] * rows[second]


def kronecker_sums(sums: np.ndarray, k: int, p: int) -> "Array":
    """Sum of symmetric (k, k) matrices (x) symmetric (p, p) ones, from sums of their products.

    Parameters
    ----------
    sums : ndarray of shape (k (k + 1) / 2, p (p + 1) / 2)
        Sums of products of the entries of both, in the order of `pair_products`.

    Returns
    -------
    ndarray of shape (k * p, k * p)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import kronecker_sums
    >>> kronecker_sums(np.array([[1.0], [2.0], [3.0]]), 2, 1).tolist()
    [[1.0, 3.0], [3.0, 2.0]]
    """
    outer = _coordinates(k)[2]
    inner = _coordinates(p)[2]
    return sums[outer[:, None, :, None], inner[None, :, None, :]].reshape(k * p, k * p)


def psd_part(matrix: Any, floor: float = 0.0, power: float = 1.0) -> "Array":
    """Power of the nearest symmetric matrix (Frobenius) with eigenvalues of at least ``floor``."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, floor) ** power) @ vectors.T


def nearest_in_ball(point: np.ndarray, metric: np.ndarray, radius: float) -> "Array":
    """Nearest point of the ball of this radius, in the norm of a positive definite metric."""
    if norm_of(point) <= radius:
        return point
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, max(values[-1] * 1e-15, TINY))
    rotated = vectors.T @ point

    def excess(logarithm: float) -> float:
        return norm_of(values / (values + np.exp(logarithm)) * rotated) - radius

    low = np.log(values[0]) - 50.0
    high = np.log(values[-1]) + np.log1p(norm_of(point) / radius)
    if excess(low) <= 0.0:
        return point * (radius / norm_of(point))
    multiplier = np.exp(optimize.brentq(excess, low, high, xtol=1e-14))
    return vectors @ (values / (values + multiplier) * rotated)


def quadratic_forms(rows: np.ndarray, matrix: np.ndarray | None = None) -> "Array":
    """x'Mx of each row x, shape (n_rows,); without M the square of its length."""
    return np.einsum("ij,ij->i", rows if matrix is None else rows @ matrix, rows)


def bisected(
    below: Callable[[float], bool], low: float, high: float, width: float = 0.0, steps: int = 300
) -> tuple[float, float]:
    """Ends of the last half: ``below`` is true up to the low one, and false from the high one on.

    It ends after so many steps, or at this width, or where no number is between the ends.
    """
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if not (high - low > width and low < middle < high):
            break
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high


def norm_of(values: np.ndarray | Sequence[float], order: Any = None) -> float:
    """Norm of a vector or a matrix, by default the root of the sum of squares."""
    return float(np.linalg.norm(values, order))


def lengths_of(rows: np.ndarray) -> "Array":
    """Euclidean norms of the rows, of numbers whose squares neither overflow nor underflow."""
    return np.linalg.norm(rows, axis=1)


def trace_of(matrix: Any) -> float:
    """Trace of a matrix."""
    return float(np.trace(matrix))


def row_norms(X: np.ndarray) -> "Array":
    """Euclidean norms of the rows, also where squares of entries overflow or underflow.

    Rows with an entry that is not finite get an infinite norm.
    """
    with unwarned():
        by_rows = _HAS_VECDOT and X.flags.c_contiguous  # of contiguous columns it is slow
        norms = np.sqrt(np.vecdot(X, X) if by_rows else np.einsum("ij,ij->i", X, X))
    if norms.min(initial=1.0) > TINY and norms.max(initial=1.0) < inf:
        return norms
    wrong = ~(np.isfinite(norms) & (norms > TINY))
    largest = np.abs(X[wrong]).max(axis=1, initial=0.0)
    unit = np.where(largest > 0.0, largest, 1.0)
    with unwarned():
        rest = np.sqrt(np.square(X[wrong] / unit[:, None]).sum(axis=1))
        norms[wrong] = np.where(np.isfinite(largest), largest * rest, inf)
    return norms


def add_gram(total: np.ndarray, rows: Any) -> None:
    """Add ``rows.T @ rows`` to ``total``, in place.

    ``np.dot`` calls BLAS without the lock of the interpreter, so that threads multiply side by
    side. The operator ``@`` holds the lock where the product has at most 500 numbers, and the
    functions in ``scipy.linalg.blas`` always do. Rows should be contiguous in memory, or their
    transpose: of others ``np.dot`` makes a copy first, which takes about as long as the product.

    Parameters
    ----------
    total : ndarray of shape (p, p)
    rows : ndarray or CSR matrix of shape (n_rows, p)

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv._linalg import add_gram
    >>> total = np.zeros((2, 2))
    >>> add_gram(total, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> total.tolist()
    [[10.0, 14.0], [14.0, 20.0]]
    """
    total += (rows.T @ rows).toarray() if issparse(rows) else np.dot(rows.T, rows)


def row_products(X: Any, vectors: np.ndarray) -> "Array":
    """``X @ vectors.T``, where the products of a row depend on that row alone.

    BLAS may add the terms of a row in an order that depends on the number of rows. The last digit
    of a product, or whether it overflows, would then depend on other rows.

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
    # Arrays of another type or layout are summed in buffers, which split the sum of a row.
    return np.einsum("ij,j->i", np.ascontiguousarray(X, dtype=float), vectors)


def blocks_of(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows that are short enough for their numbers to stay in the cache.

    If rows are long, their Gram matrix does not stay in the cache either. A block then has up to
    1,200 rows, or 8 MB, so that each reading of the matrix is used many times: BLAS needs as many
    for all of its speed. No rows are one block.
    """
    width = max(1, width)
    rows_each = max(64, BLOCK_ENTRIES // width, min(1200, 8 * BLOCK_ENTRIES // width))
    count = -(-max(1, n_rows) // rows_each)
    for part in range(count):
        yield slice(n_rows * part // count, n_rows * (part + 1) // count)


@lru_cache(maxsize=1)
def _blas_libraries() -> Any:
    return ThreadpoolController()


class _OneThread:
    """Context in which BLAS uses one thread, until the last thread inside of it leaves.

    The number of BLAS threads belongs to the whole process. If each of two overlapping threads
    restored the number that it found, the second one would leave BLAS with one thread for good.

    Attributes
    ----------
    vector_turn : Lock
        A thread holds it during several operations on vectors of some thousand numbers. NumPy
        releases the lock of the interpreter for the few microseconds of each, and to hand it over
        takes up to 50: without this lock two threads are half as fast as one. No generator may
        yield while it holds the lock.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Make new locks: in a forked child the thread that holds an old one does not exist."""
        self._lock = Lock()
        self.vector_turn = Lock()
        self._inside = 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = _blas_libraries().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


# In fits, and inside of our own threads. NumPy and SciPy bring a BLAS library each. To wake their
# threads by turns takes a hundred times as long as a small factorisation, and idle BLAS threads
# occupy the cores while they wait. At 1,000 columns a fit takes 4% more time and 22% less processor
# time than with two threads.
one_blas_thread = _OneThread()
after_fork(one_blas_thread.forget)


def check_memory(numbers: int) -> None:
    """Refuse work on so many numbers, which are public, where this machine has no memory for them.

    It is asked before a charge, which would buy a failure.

    Raises
    ------
    MemoryError
    """
    try:
        np.empty(numbers)  # it is given back at once, and no page was touched
    except (MemoryError, ValueError):  # the latter beyond all addresses
        raise MemoryError(
            "this needs more memory than this machine has. It was refused before it was charged: "
            "use fewer features, classes or actions."
        ) from None


class CompensatedSum:
    """Sum of arrays that also adds up the rounding error of each addition, and corrects for it.

    The error of one addition is itself a floating-point number (Knuth 1997, section 4.2.2,
    Theorem B).
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self._total = np.zeros(shape)
        self._correction = np.zeros(shape)

    def add(self, term: np.ndarray) -> None:
        """Add one array."""
        before = self._total
        self._total = before + term
        of_term = self._total - before
        self._correction += (before - (self._total - of_term)) + (term - of_term)

    def decay(self, rate: float) -> None:
        """Multiply by 1 - rate, where the rate is a power of two, whose products are exact."""
        self.add(-rate * self._total)
        self._correction *= 1.0 - rate

    def merge(self, other: "CompensatedSum") -> Self:
        """Add another sum with its correction: the sum of all terms of both."""
        self.add(other._total)
        self._correction += other._correction
        return self

    @property
    def value(self) -> "Array":
        """The sum."""
        return self._total + self._correction
