"""The binary-tree mechanism for running sums."""

from math import sqrt

import numpy as np

from ._base import Stream


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

    model = "central"

    def __init__(self, query, n_reads, batch=None):
        super().__init__(query, n_reads, batch)
        self.levels = int(n_reads).bit_length()
        self.sensitivity = sqrt(self.levels) * query.sensitivity

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
