"""Streams to which every user adds noise: of reports, shuffled or not, and of hidden sums."""

from math import prod
from typing import Any, Self

import numpy as np

from ...exceptions import PrivacyError
from ...records import as_rows
from .._amplification import amplified
from .._accounting._budget import Budget
from .._accounting._lattice import Lattice
from .._noise._codebook_noise import CodebookNoise
from .._noise._laws import GaussianNoise
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

    def push(self, X: Any, y: Any, count: int | None = None) -> Self:
        """Add records to the sum; they are seen in the next read.

        Where users send an index of a codebook, no one draw can stand for them: their clipped
        records wait for the read, when each of them reports.
        """
        if not isinstance(self.noise, CodebookNoise):
            return super().push(X, y, count)
        rows = as_rows(X, y)
        self._waiting.extend(rows.each(self.query.records))
        self._pending += rows.n if count is None else count
        return self

    def take(self, reports: Any) -> Self:
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


class ShuffleStream(Stream):
    """Running sums of noisy reports, which a shuffler sends on in batches without names.

    As :class:`LocalStream`, but users of a batch hide each other, so that each report needs less
    noise: as much as makes the shuffled batch meet the budget. All rounds of a batch must be those
    of one policy, and every batch must be full. See :class:`skpriv.privacy.Stream` for the
    parameters.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-DP of what the shuffler sends on, in which a user is in
    one batch; proved in docs/mathematics/shuffle.md. Whom users trust: the shuffler, and the
    others of the batch to report as told. Public: times and sizes of batches.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> opened = [
    ...     open_stream(privacy, ClippedTotal(), Budget(1.0, 1e-6), 20, batch=1000, random_state=0)
    ...     for privacy in ("local", "shuffle")
    ... ]
    >>> print([round(stream.noise.scale, 1) for stream in opened])
    [4.2, 0.7]
    """

    def check(self, budget: Any) -> None:
        """Refuse what has no public batch."""
        check_batch(self.batch)

    def batch_noise(self, budget: Any) -> Any:
        """Law of the noise of one report in a shuffled batch."""
        size = int(np.prod(self.query.shape))
        return self.query.local_noise(amplified(budget, self.batch, dimension=size))

    def _prepare(self):
        self._total = np.zeros(self.query.shape)

    def _release(self, increment, count):
        check_full(count, self.batch)
        self._total = self._total + self._add_noise(increment, self.noise.summed(count))
        return self._total, self.noise.summed(self.n)


class SharedSumStream(Stream):
    """Running sums to which users add the noise in small parts, batch by batch.

    A user rounds the own vector to a fine grid, adds a small part of the noise, and splits the
    result into shares that add up to it modulo 2^64. Two servers that do not collude add up one
    share of each user, or a shuffler mixes more of them: what can be learnt is the noisy sum of the
    batch. It hence costs as much noise as a trusted curator would add to it, and batches add up.
    See :class:`skpriv.privacy.Stream` for the parameters.

    Notes
    -----
    **Privacy guarantee**: mu-Gaussian-DP of what is seen, for a user is in one batch; proved in
    docs/mathematics/aggregate.md. All users of a batch must add their noise, and those who add up
    must not collude. Times and sizes of batches are public. The noisy sum is simulated, by one
    Gaussian draw for each batch.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> stream = open_stream(
    ...     "aggregate", ClippedTotal(), Budget(1.0, 1e-6), 20, batch=1000, random_state=0
    ... )
    >>> round(stream.push(np.ones((1000, 1)), np.ones(1000)).read().noise.scale, 1)
    4.2
    """

    def check(self, budget: Budget) -> None:
        """Refuse a batch that is not public, or whose sum does not fit."""
        check_batch(self.batch)
        if budget.mu > 0.0:
            self.batch_noise(budget)

    def batch_noise(self, budget: Budget) -> Any:
        """Law of the noise of a batch."""
        size, batch = prod(self.query.shape), int(self.batch or 0)
        lattice = Lattice.calibrated(self.query.sensitivity, budget.mu, size, batch, batch)
        return GaussianNoise(lattice.scale)

    def _prepare(self):
        self._total = np.zeros(self.query.shape)

    def _release(self, increment, count):
        check_full(count, self.batch)
        self._total = self._total + self._add_noise(increment, self.noise)
        return self._total, self.noise.summed(self.reads)


def check_batch(batch):
    """Refuse a stream of which nobody knows who hides whom."""
    if batch is None or batch < 1:
        raise ValueError(f"batch={batch} must be the public number of users shuffled together.")


def check_full(count, batch):
    """Refuse to release a batch with fewer users than the noise was calibrated for."""
    if count < batch:
        raise PrivacyError(
            f"{count} users do not fill a batch of {batch}: too few to hide each other."
        )
