"""Rows with a weight each, as rows of one more column."""

from functools import partial

import numpy as np

from ._arrays import ArrayRows
from ._base import Rows


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

    def __init__(self, rows, weights, largest, scaled):
        self._rows = rows
        nothing = np.broadcast_to(np.zeros(()), (rows.n, 1))
        self._weights = ArrayRows(nothing, weights)  # as targets, which may be of any kind
        self.largest, self._scaled = largest, scaled
        self.n, self.n_features, self.n_jobs = rows.n, rows.n_features + 1, rows.n_jobs
        self.names = None

    def check(self):
        """Refuse, with one fixed sentence, what is not a finite number."""
        self._rows.check()
        self._weights.check()

    def pieces(self, most, subset=None, sparse=True):
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
