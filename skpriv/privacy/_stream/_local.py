"""The stream of the local model: every user adds noise to the own report."""

import numpy as np

from ...records import as_rows
from .._noise._codebook_noise import CodebookNoise
from ._base import Stream


class LocalStream(Stream):
    """Running sums of reports to which the users added the noise.

    Each record is one user, whose single report carries Gaussian noise for the whole budget. The
    noise of k reports is one Gaussian of k times the variance: one draw a read, exactly. The sum of
    the reports is what a server adds up, so that it may be read at any time. See
    :class:`skpriv.privacy.Stream` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> stream = open_stream("local", ClippedTotal(), Budget(1.0, 1e-6), n_reads=9, random_state=0)
    >>> answer = stream.push(np.zeros((100, 1)), np.ones(100)).read()
    >>> print(answer.n, round(answer.noise.scale, 1))
    100 42.2
    """

    model = "local"

    def push(self, X, y):
        """Add records to the sum; they are seen in the next read.

        Where users send an index of a codebook, no one draw can stand for them: their clipped
        records wait for the read, when each of them reports.
        """
        if not isinstance(self.noise, CodebookNoise):
            return super().push(X, y)
        rows = as_rows(X, y)
        self._waiting.extend(rows.each(self.query.records))
        self._pending += rows.n
        return self

    def take(self, reports):
        """Add reports that users have made.

        Parameters
        ----------
        reports : LiftedReports

        Returns
        -------
        self
        """
        self._increment.add(reports.moments())
        self._pending += len(reports.directions)
        return self

    def _prepare(self):
        self._total = np.zeros(self.query.shape)
        self._waiting: list[tuple] = []

    def _release(self, increment, count):
        if count and isinstance(self.noise, CodebookNoise):  # the increment holds reports
            if self._waiting:
                phi, r = map(np.concatenate, zip(*self._waiting, strict=True))
                self._waiting = []
                increment = increment + self.noise.reported(phi, r, self._source).moments()
            self._total = self._total + self._settled(increment)
        elif count:
            self._total = self._total + self._add_noise(increment, self.noise.summed(count))
        return self._total, self.noise.summed(self.n)
