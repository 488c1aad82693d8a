"""The square-root factorisation mechanism for running sums."""

from math import sqrt

import numpy as np

from .._noise._laws import GaussianNoise
from ._base import Stream


class FactorStream(Stream):
    """Running sums by a trusted curator, with the square root of the summation matrix.

    The lower-triangular matrix of ones is R R, R Toeplitz with entries r_k = binom(2k, k) / 4^k.
    Noise is added to R x, x the increments, and R is applied again: half the standard deviation of
    the binary tree's or less, for a memory and a time a read that grow with the number of reads.

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

    model = "central"

    def __init__(self, query, n_reads, batch=None):
        super().__init__(query, n_reads, batch)
        odd = 2.0 * np.arange(1, n_reads) - 1.0
        self._root = np.concatenate([[1.0], np.cumprod(odd / (odd + 1.0))])  # r_k
        self.sensitivity = sqrt(self._root @ self._root) * query.sensitivity

    def _prepare(self):
        size = int(np.prod(self.query.shape))
        self._increments = np.zeros((self.n_reads, size))
        self._noisy = np.zeros((self.n_reads, size))

    def _release(self, increment, count):
        k = self.reads
        row = self._root[k - 1 :: -1]  # r_{k-1}, ..., r_0
        self._increments[k - 1] = increment.ravel()
        self._noisy[k - 1] = self._add_noise(row @ self._increments[:k], self.noise)
        value = (row @ self._noisy[:k]).reshape(self.query.shape)
        return value, GaussianNoise(self.noise.scale * sqrt(row @ row))
