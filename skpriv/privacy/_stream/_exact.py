"""The stream without noise."""

import numpy as np

from ._base import Stream


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

    model = "none"

    def _prepare(self):
        self._total = np.zeros(self.query.shape)

    def _release(self, increment, count):
        self._total = self._total + increment
        return self._total, self.noise
