"""Streams of a trusted curator: matrix factorisation and binary tree; and the one without noise."""

from typing import Any
from math import sqrt

import numpy as np

from .._noise._laws import GaussianNoise
from ._base import Stream


class FactorStream(Stream):
    """Running sums by a trusted curator, with the square root of the summation matrix.

    The lower-triangular matrix of ones is R R, R Toeplitz with entries r_k = binom(2k, k) / 4^k.
    Noise is added to R x, x the increments, and R is applied again: half the standard deviation of
    the binary tree's or less, for a memory that grows with the number of reads.

    Notes
    -----
    **Privacy guarantee**: a record is in one increment, hence moves R x by at most D ||r||, D the
    query's sensitivity and ||r||^2 = r_0^2 + ... + r_{n_reads - 1}^2. Noise of scale D ||r|| / mu
    is mu-Gaussian-DP, exactly, and so are the reads, which are post-processing; records may be
    chosen in view of earlier reads (Denisov et al. 2022, Theorem 2.1). Public: times and number of
    reads, and of the records before each.

    References
    ----------
    S. Denisov, B. McMahan, K. Rush, A. Smith and A. Thakurta (2022). Improved differential privacy
    for SGD via optimal private linear operators on adaptive streams. NeurIPS.
    H. Fichtenberger, M. Henzinger and J. Upadhyay (2023). Constant matters: fine-grained error
    bound on differentially private continual observation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> stream = open_stream("central", ClippedTotal(), Budget(1.0, 1e-6), 200, random_state=0)
    >>> scales = [stream.push(np.ones((5, 1)), np.ones(5)).read().noise.scale for _ in range(8)]
    >>> np.round(scales, 1)
    array([7. , 7.8, 8.3, 8.6, 8.8, 8.9, 9.1, 9.2])
    """

    def __init__(self, query: Any, n_reads: int, batch: int | None = None) -> None:
        super().__init__(query, n_reads, batch)
        odd = 2.0 * np.arange(1, n_reads) - 1.0
        self._root = np.concatenate([[1.0], np.cumprod(odd / (odd + 1.0))])  # r_k
        self.sensitivity = sqrt(self._root @ self._root) * query.sensitivity

    def spread(self, places: int) -> None:
        """Calibrate to units with so many records, at most one of them between two reads.

        Replacing them moves R x by at most D ||sum of the columns j in S of R||, since columns have
        no negative product. Of all sets S of a places the first a columns are the worst: the
        product of columns i < j is the sum of r_k r_{k + j - i} over k < n_reads - j, which falls
        with j and with j - i, and the b-th smallest of S is at least b. With f(a) the norm of that
        sum, the scale is D c, c^2 = m max over a <= m of f(a)^2 / a. A unit that has a_p places in
        stream p of several, m in all, then pays sum f_p(a_p)^2 / c_p^2 <= sum a_p / m = 1 of mu^2.
        The bound holds for every sequence of records, hence for adaptive ones too.
        """
        sums, squares = np.cumsum(self._root), []
        for a in range(1, min(places, self.n_reads) + 1):
            column = sums.copy()  # row k: r_k + ... + r_{k - a + 1}
            column[a:] -= sums[:-a]
            squares.append(column @ column / a)
        self.sensitivity = sqrt(places * max(squares)) * self.query.sensitivity

    def _prepare(self):
        size = int(np.prod(self.query.shape))
        self._exact, self._noisy = (_Product(self._root, size) for _ in range(2))

    def _release(self, increment, count):
        noisy = self._add_noise(self._exact.take(increment.ravel()), self.noise)
        value = self._noisy.take(noisy).reshape(self.query.shape)
        row = self._root[: self.reads]
        return value, GaussianNoise(self.noise.scale * sqrt(row @ row))

    def between(self, first: int, last: int) -> GaussianNoise:
        """Law of the noise of the read ``last`` minus the read ``first``.

        Read j adds r_{j-i} times the i-th draw, so that the difference of two reads has the
        coefficients r_{last-i} - r_{first-i}, with r of a negative number 0.
        """
        row = self._root[:last][::-1].copy()
        row[:first] -= self._root[:first][::-1]
        return GaussianNoise(self.noise.scale * sqrt(row @ row))


class _Product:
    """Rows of R x, each as soon as its row of x is there.

    Row j is the sum of r_{j-i} x_i over i <= j. All pairs i < j are in squares of indices [m, k)
    times [k, 2k - m): each is added, ahead of time, when k rows are there. That takes k log(k)^2
    time and linear memory for k rows in all.
    """

    def __init__(self, coefficients, size):
        self._r, self._k = coefficients, 0
        self._x = np.zeros((min(64, len(coefficients)), size))
        self._ahead = np.zeros_like(self._x)

    def take(self, row):
        """Add a row of x, and return that of R x."""
        self._x[self._k] = row
        product = self._ahead[self._k] + self._r[0] * row
        self._k = k = self._k + 1
        side = k & -k  # of the square: k is an odd multiple of it
        width = min(side, len(self._r) - k)
        if k == len(self._x) and width:
            more = np.zeros((min(len(self._r), 2 * k) - k, len(row)))
            self._x = np.concatenate([self._x, more])
            self._ahead = np.concatenate([self._ahead, more])
        if width:
            known, r = self._x[k - side : k], self._r[1 : side + width]
            self._ahead[k : k + width] += _square(known, r, width)
        return product


def _square(rows, r, width):
    """Sums of r_{j-i} x_i: j of the next ``width`` rows, i of these rows; r begins with r_1."""
    side = len(rows)
    # Up to 64 rows a product with a matrix is faster than a convolution
    if side <= 64:
        return r[side - 1 + np.arange(width)[:, None] - np.arange(side)] @ rows
    from scipy.signal import oaconvolve  # a tenth of a second, which few need

    return oaconvolve(rows, r[:, None], axes=0)[side - 1 : side - 1 + width]


class TreeStream(Stream):
    """Running sums by a trusted curator, with a binary tree over the reads.

    A node of level l is the noisy sum of 2^l consecutive increments, and a read adds the nodes of
    the binary digits of its number: log2(n_reads) nodes are kept, whatever the number of reads.

    Notes
    -----
    **Privacy guarantee**: an increment is in at most one node of each of the
    L = floor(log2(n_reads)) + 1 levels. Replacing a record moves the vector of all nodes by at most
    sqrt(L) times the query's sensitivity D, so that noise of scale D sqrt(L) / mu on every node is
    mu-Gaussian-DP, exactly, records chosen in view of earlier reads included. Public: times and
    number of reads, and of the records before each.

    References
    ----------
    T.-H. H. Chan, E. Shi and D. Song (2011). Private and continual release of statistics. ACM
    TISSEC 14(3).

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> options = {"mechanism": "tree", "random_state": 0}
    >>> stream = open_stream("central", ClippedTotal(), Budget(1.0, 1e-6), 200, **options)
    >>> scales = [stream.push(np.ones((5, 1)), np.ones(5)).read().noise.scale for _ in range(8)]
    >>> np.round(scales, 1)  # sqrt(number of binary digits that are 1)
    array([11.9, 11.9, 16.9, 11.9, 16.9, 16.9, 20.7, 11.9])
    """

    def __init__(self, query: Any, n_reads: int, batch: int | None = None) -> None:
        super().__init__(query, n_reads, batch)
        self.levels = int(n_reads).bit_length()
        self.sensitivity = sqrt(self.levels) * query.sensitivity

    def spread(self, places: int) -> None:
        """Calibrate to units with so many records, at most one of them between two reads.

        A node that holds k of them moves by at most k D. The sum of the squares of k over the nodes
        of one level, each with at most 2^l reads, is largest where as many nodes as possible are
        full, and the first a reads attain that in all levels at once: f(a)^2. The scale is D c as
        for `FactorStream`.
        """
        squares = []
        for a in range(1, min(places, self.n_reads) + 1):
            nodes = (divmod(a, 2**level) + (2**level,) for level in range(self.levels))
            squares.append(sum(full * size**2 + rest**2 for full, rest, size in nodes) / a)
        self.sensitivity = sqrt(places * max(squares)) * self.query.sensitivity

    def _prepare(self):
        self._sums = np.zeros((self.levels, *self.query.shape))  # exact open nodes
        self._nodes = np.zeros((self.levels, *self.query.shape))  # noisy ones

    def _release(self, increment, count):
        level = (self.reads & -self.reads).bit_length() - 1  # the node that this read completes
        total = self._sums[:level].sum(axis=0) + increment
        self._sums[:level], self._nodes[:level] = 0.0, 0.0
        self._sums[level] = total
        self._nodes[level] = self._add_noise(total, self.noise)
        return self._nodes.sum(axis=0), self.noise.summed(self.reads.bit_count())

    def between(self, first: int, last: int) -> GaussianNoise:
        """Law of the noise of the read ``last`` minus the read ``first``.

        Both reads have the nodes of the binary digits above the highest one in which their numbers
        differ; these cancel, and the other nodes of both do not.
        """
        below = (1 << (first ^ last).bit_length()) - 1
        return self.noise.summed((first & below).bit_count() + (last & below).bit_count())


class ExactStream(Stream):
    """Running sums without privacy; see :class:`skpriv.privacy.Stream` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> stream = open_stream("none", ClippedTotal(), Budget(float("inf")), n_reads=2)
    >>> stream.push(np.zeros((2, 1)), np.array([0.25, 7.0])).read().value
    array([1.25])
    """

    def spread(self, places: int) -> None:
        """Nothing is protected."""

    def _prepare(self):
        self._total = np.zeros(self.query.shape)

    def _release(self, increment, count):
        self._total = self._total + increment
        return self._total, self.noise
