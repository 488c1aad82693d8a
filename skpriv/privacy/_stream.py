"""Running sums that are read many times: what per-round policies ask about their records.

A trusted curator factorises a matrix. Without a curator every user adds noise, to reports that are
shuffled or not, or to hidden sums. One stream has no noise.
"""

from abc import ABC, abstractmethod
from copy import deepcopy
from math import prod, sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._contracts import passed_on
from .._linalg import CompensatedSum, check_memory
from .._stored import stored_in_policies
from ..exceptions import PrivacyError
from ..records import as_rows
from ._accounting._cost import Cost
from ._accounting._guarantee import capabilities
from ._accounting._lattice import Lattice
from ._ledger._numbering import Hashed, Numbering, TurnLock
from ._noise._codebook_noise import CodebookNoise
from ._noise._laws import GaussianNoise, Noise, door
from ._query import Answer

if TYPE_CHECKING:
    from .._contracts import Array
    from ._accounting._cost import Budget
    from ._accounting._guarantee import Capabilities, Guarantee
    from ._accounting._report import PrivacyReport
    from ._noise._codebook_law import LiftedReports
    from ._noise._laws import NoiseSource
    from ._query import Query


@stored_in_policies
class Raw(list[Any]):
    """List of records, before any noise."""


class Stream(ABC):
    """A running sum of a bounded query over records that keep arriving, read at public times.

    A session opens it, by :meth:`skpriv.privacy.Session.stream`, and its whole cost is charged
    then, before any record is seen. Any number of records may be pushed between two reads; how
    many, and when a read happens, must be public.

    A stream that was copied or unpickled repeats the reads that were made elsewhere, and refuses to
    read where it cannot know of them (see `Numbering`): one charge buys one answer.

    Parameters
    ----------
    query : Query
        A query with an "l2" sensitivity.
    n_reads : int
        How often the sum may be read at most.
    batch : int, default=None
        Public number of records between two reads, 0 if none is given; only models in which users
        hide each other need it.
    span : int, default=None
        How many reads a curator's noise is the least for; None is all.

    Attributes
    ----------
    n : int
        Records in the last read.
    reads : int
        Reads so far.
    sensitivity : float
        Sensitivity of all that gets noise, together.
    noise : Noise
        Law of one draw of noise (a read adds several up).
    cost : Cost
        What one record has paid.
    report : PrivacyReport
    guarantee : Guarantee
        The promise to a record for what was charged.
    """

    noise: Noise
    cost: Cost

    def __init__(
        self, query: "Query", n_reads: int, batch: int | None = None, span: int | None = None
    ) -> None:
        if n_reads < 1:
            raise ValueError(f"n_reads={n_reads} must be at least 1.")
        # FactorStream has 3 numbers for each of the sum in 9 states, if it is read 200 times
        check_memory(27 * prod(query.shape))
        self.query = query
        self.n_reads = n_reads
        self.batch = int(batch or 0)
        self.name = query.name
        self.norm = query.norm
        self.sensitivity = query.sensitivity
        self.n = self.reads = self._pending = 0
        self._increment = CompensatedSum(query.shape)
        self._released: list[
            tuple[int, Noise]
        ] = []  # (number of records, noise) of each read, both public

    pending: np.ndarray = passed_on(
        "_increment.value", "Exact sum of the records since the last read."
    )

    def __copy__(self) -> Self:
        # A shallow copy would share the sum and draw noise of its own.
        return deepcopy(self)

    def check(self, budget: "Budget") -> None:
        """Refuse what cannot be had for this budget: public, and before anything is charged.

        Parameters
        ----------
        budget : Budget
            What one record may lose in the whole stream.
        """

    def spread(self, places: int) -> None:
        """Protect units that have so many records, at most one of them between two reads.

        Parameters
        ----------
        places : int
            Largest number of records of a unit.
        """
        raise PrivacyError(
            f"{type(self).__name__} protects single records: divide the budget by their number."
        )

    def begin(
        self, noise: Noise, cost: Cost, report: "PrivacyReport", source: "NoiseSource"
    ) -> Self:
        """Take what the session has calibrated, charged and reported.

        Parameters
        ----------
        noise : Noise
            Law of one draw of the stream's noise.
        cost : Cost
            What the whole stream costs a record.
        report : PrivacyReport
            Report in which the stream has its row.
        source : NoiseSource
            Where noise is drawn.

        Returns
        -------
        Stream
            The stream itself.
        """
        self.noise = noise
        self.cost = cost
        self.report = report
        self._source = source
        self._numbering = Numbering()
        self._prepare()
        return self

    model: str = passed_on(
        "report.privacy", "Name of the privacy model whose session opened the stream."
    )

    @property
    def can(self) -> "Capabilities":
        """What that model can."""
        return capabilities(self.model)

    def number(self, numbering: Numbering) -> Self:
        """Take the numbers of its reads from an object that has several streams.

        Parameters
        ----------
        numbering : Numbering
            Numbers that all streams of an object share.

        Returns
        -------
        self
            The stream itself.
        """
        self._numbering = numbering
        return self

    guarantee: "Guarantee" = passed_on(
        "report.guarantee", "The promise to a record for what was charged."
    )

    def push(self, X: Any, y: Any, count: int | None = None) -> Self:
        """Add records to the sum; they are seen in the next read.

        Parameters
        ----------
        X : ndarray of shape (n_records, n_features)
            Features in their own units.
        y : ndarray of shape (n_records,)
            Targets in their own units.
        count : int, default=None
            Public number that they count for; None: as many as they are. If records come out of
            order, their number is private.

        Returns
        -------
        self
        """
        rows = as_rows(X, y)
        self._add(rows)
        self._pending += rows.n if count is None else count
        return self

    def _add(self, rows: Any) -> None:
        """Add records to the increment."""
        self._increment.add(rows.sum(self.query))

    @door
    def read(self) -> Answer:
        """Noisy sum of all records so far, with the exact law of its noise.

        Returns
        -------
        Answer
            The running sum with noise, and its law.
        """
        # Without a lock two threads would draw noise twice for one read.
        with self.__dict__.setdefault("_lock", TurnLock()):
            return self._read()

    def _read(self) -> Answer:
        if self.reads >= self.n_reads:
            raise PrivacyError(
                f"the stream was opened for {self.n_reads} reads, which have all been made: "
                "open another one for the records to come."
            )
        self._numbering.check()
        self.reads += 1
        self.n += self._pending
        increment = self._increment.value
        count = self._pending
        self._increment = CompensatedSum(self.query.shape)
        self._pending = 0
        value, noise = self._release(increment, count)
        self._released.append((self.n, noise))
        return Answer(value, self.n, noise)

    def between(self, first: int, last: int) -> Noise:
        """Law of the noise of the sum of the records between two reads.

        Parameters
        ----------
        first, last : int
            Numbers of reads, ``0 <= first < last <= reads``; 0 is before the first one.

        Returns
        -------
        Noise
            Noise of the read ``last`` minus the read ``first``. Here each read adds noise of its
            own to that of the one before; a mechanism whose reads share noise in another way
            overrides it.
        """
        _, noise = self._released[last - 1]
        if first == 0:
            return noise
        return noise.minus(self._released[first - 1][1])

    def _add_noise(self, exact: np.ndarray, noise: Noise) -> "Array":
        """Add noise: once for each read, whatever copies of the stream make it too.

        Repeated noise was drawn all the same, so that reproducible noise stays in step.
        """
        return self._settled(self._source.add(exact, noise))

    def _settled(self, drawn: np.ndarray) -> "Array":
        """The draw of this read, or the first one of a copy."""
        return self._numbering.settle(self.reads, drawn[None])[0]

    def _prepare(self) -> None:
        """Make the state of no records; ``noise`` is known."""
        self._total = np.zeros(self.query.shape)

    @abstractmethod
    def _release(self, increment: np.ndarray, count: int) -> tuple[np.ndarray, Noise]:
        """Return the noisy running sum and its noise law; the increment holds ``count`` records."""


@stored_in_policies
class FactorStream(Stream):
    """Running sums by a trusted curator, with a factor of the summation matrix.

    The lower-triangular matrix of ones is B C, both Toeplitz. Noise is added to C x, x the
    increments, and B is applied to what is released: half the standard deviation of a binary tree's
    or less (Chan, Shi and Song 2011). The square root of the matrix, with the entries r_k =
    binom(2k, k) / 4^k, is nearly the best factor. C has the entries c_k = sum_b w_b (1 - 2^-b)^k,
    with weights w_b >= 0 for which they are close to r_k: the noise is within 0.01% of that of the
    root. Such sums are made by one state for each b, so that memory does not grow with the reads.

    With a span the entries are those for so many reads, and fall geometrically after them, so that
    ||c|| is bounded however many reads there are. The noise is less in the first reads, and grows
    as the root of their number later.

    Notes
    -----
    **Privacy guarantee**: a record is in one increment, hence moves C x by at most D ||c||, D the
    query's sensitivity and ||c||^2 = c_0^2 + ... + c_{n_reads - 1}^2. Noise of scale D ||c|| / mu
    is mu-Gaussian-DP, exactly, and so are the reads, which are post-processing; records may be
    chosen in view of earlier reads (Denisov et al. 2022, Theorem 2.1). Public: times and number of
    reads, and of the records before each.

    References
    ----------
    S. Denisov, B. McMahan, K. Rush, A. Smith and A. Thakurta (2022). Improved differential privacy
    for SGD via optimal private linear operators on adaptive streams. NeurIPS.
    K. Dvijotham, B. McMahan, K. Pillutla, T. Steinke and A. Thakurta (2024). Efficient and
    near-optimal noise generation for streaming differential privacy. FOCS.
    H. Fichtenberger, M. Henzinger and J. Upadhyay (2023). Constant matters: fine-grained error
    bound on differentially private continual observation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.nan_to_num(np.clip(y, 0.0, 1.0)).sum()])
    >>> stream = open_stream("central", ClippedTotal(), Budget(1.0, 1e-6), 200, random_state=0)
    >>> scales = [stream.push(np.ones((5, 1)), np.ones(5)).read().noise.scale for _ in range(8)]
    >>> np.round(scales, 1)
    array([7. , 7.9, 8.3, 8.5, 8.8, 8.9, 9.1, 9.2])
    """

    def __init__(
        self, query: "Query", n_reads: int, batch: int | None = None, span: int | None = None
    ) -> None:
        super().__init__(query, n_reads, batch)
        self._rates, self._weights = _geometric_root(span or n_reads)
        powers = (1.0 - self._rates) ** np.arange(n_reads)[:, None]
        self.column = powers @ self._weights  # c_k
        self.sensitivity = sqrt(self.column @ self.column) * query.sensitivity

    def spread(self, places: int) -> None:
        """Calibrate to units with so many records, at most one of them between two reads.

        Replacing them moves C x by at most D ||sum of the columns j in S of C||, since columns have
        no negative product. The first a columns are the worst of all sets S of a places: the
        product of columns i < j is the sum of c_k c_{k + j - i} over k < n_reads - j, which falls
        with j and with j - i, as c_k falls with k, and the b-th smallest of S is at least b. With
        f(a) the norm of that sum, the scale is D f, f^2 = m max over a <= m of f(a)^2 / a. A unit
        that has a_p places in stream p of several, m in all, then pays sum f_p(a_p)^2 / f_p^2 <=
        sum a_p / m = 1 of mu^2. The bound holds for every sequence of records, hence for adaptive
        ones too.
        """
        sums = np.cumsum(self.column)
        squares = []
        for a in range(1, min(places, self.n_reads) + 1):
            column = sums.copy()  # row k: c_k + ... + c_{k - a + 1}
            column[a:] -= sums[:-a]
            squares.append(column @ column / a)
        self.sensitivity = sqrt(places * max(squares)) * self.query.sensitivity

    def _prepare(self) -> None:
        self._states = [CompensatedSum(self.query.shape) for _ in self._rates]
        size = prod(self.query.shape) + 1  # and a sequence 1, 0, 0, ..., of which B makes its row
        self._noisy_states = np.zeros((len(self._rates), size))
        self._total = np.zeros(size)
        self._row: list[float] = []  # b_j

    def _release(self, increment: np.ndarray, count: int) -> tuple[np.ndarray, Noise]:
        exact = np.zeros(self.query.shape)
        for state, rate, weight in zip(self._states, self._rates, self._weights, strict=True):
            state.decay(rate)
            state.add(increment)
            exact += weight * state.value
        released = np.append(self._add_noise(exact, self.noise), float(self.reads == 1))
        # The same states of what C makes into what was released; B's product is its running sum.
        decayed = (1.0 - self._rates)[:, None] * self._noisy_states
        fresh = (released - self._weights @ decayed) / self._weights.sum()
        total = self._total + fresh
        self._noisy_states = decayed + fresh
        self._total = total
        self._row.append(self._total[-1])
        return self._total[:-1].reshape(self.query.shape), self.between(0, self.reads)

    def between(self, first: int, last: int) -> GaussianNoise:
        """Law of the noise of the read ``last`` minus the read ``first``.

        Read j adds b_{j-i} times the i-th draw, so that the difference of two reads has the
        coefficients b_{last-i} - b_{first-i}, with b of a negative number 0.
        """
        row = np.array(self._row[:last][::-1])
        row[:first] -= self._row[:first][::-1]
        return GaussianNoise(self.noise.scale * sqrt(row @ row))


def _geometric_root(n_reads: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates 2^-b and weights w_b >= 0 of sum_b w_b (1 - 2^-b)^k close to binom(2k, k) / 4^k.

    The weights are those of the least squared error relative to the root's. The rates are powers of
    two, so that exact sums are multiplied by them without rounding.
    """
    from scipy.optimize import nnls

    odd = 2.0 * np.arange(1, n_reads) - 1.0
    root = np.concatenate([[1.0], np.cumprod(odd / (odd + 1.0))])
    rates = 0.5 ** np.arange(1 + (n_reads - 1).bit_length())
    powers = (1.0 - rates) ** np.arange(n_reads)[:, None]
    weights, _ = nnls(powers / np.sqrt(root)[:, None], np.sqrt(root))
    return rates[weights > 0.0], weights[weights > 0.0]


# Holders of records, of exact sums, or of who has come, wherever they are in an object. A file that
# may be shown has none of it.
BEFORE_NOISE = (Raw, Hashed, CompensatedSum)
stored_in_policies(CompensatedSum)


@stored_in_policies
class ExactStream(Stream):
    """Running sums without privacy; see :class:`skpriv.privacy.Stream` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.nan_to_num(np.clip(y, 0.0, 1.0)).sum()])
    >>> stream = open_stream("none", ClippedTotal(), Budget(float("inf")), n_reads=2)
    >>> stream.push(np.zeros((2, 1)), np.array([0.25, 7.0])).read().value
    array([1.25])
    """

    def spread(self, places: int) -> None:
        """Nothing is protected."""

    def _release(self, increment: np.ndarray, count: int) -> tuple[np.ndarray, Noise]:
        self._total = self._total + increment
        return self._total, self.noise


@stored_in_policies
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
    ...         return np.array([np.nan_to_num(np.clip(y, 0.0, 1.0)).sum()])
    >>> stream = open_stream("local", ClippedTotal(), Budget(1.0, 1e-6), n_reads=9, random_state=0)
    >>> answer = stream.push(np.zeros((100, 1)), np.ones(100)).read()
    >>> print(answer.n, round(answer.noise.scale, 1))
    100 42.2
    """

    query: Any  # one of a codebook has `records`

    def _add(self, rows: Any) -> None:
        """Add records to the increment.

        If users send an index of a codebook, no one draw can stand for them: their clipped records
        wait for the read, when each of them reports.
        """
        if isinstance(self.noise, CodebookNoise):
            self._waiting.extend(rows.each(self.query.records))
        else:
            super()._add(rows)

    def take(self, reports: "LiftedReports") -> Self:
        """Add reports that users have made.

        Parameters
        ----------
        reports : LiftedReports

        Returns
        -------
        self
        """
        self._increment.add(self._moments(reports))
        self._pending += len(reports.directions)
        return self

    def _moments(self, reports: "LiftedReports") -> np.ndarray:
        """Sums of reports, which do not tell in which order a shuffler got them."""
        return (reports.unordered() if self.can.amplifies else reports).moments()

    def _prepare(self) -> None:
        super()._prepare()
        self._waiting = Raw()

    def _release(self, increment: np.ndarray, count: int) -> tuple[np.ndarray, Noise]:
        if count and isinstance(self.noise, CodebookNoise):  # the increment is a sum of reports
            if self._waiting:
                phi, r = map(np.concatenate, zip(*self._waiting))
                self._waiting = Raw()
                increment = increment + self._moments(self.noise.reported(phi, r, self._source))
            self._total = self._total + self._settled(increment)
        elif count:
            self._total = self._total + self._add_noise(increment, self.noise.summed(count))
        return self._total, self.noise.summed(self.n)


class BatchedStream(Stream):
    """Running sums of batches whose users hide each other; not for direct use."""

    def check(self, budget: "Budget") -> None:
        """Refuse a stream of which nobody knows who hides whom."""
        if self.batch < 1:
            raise ValueError(f"batch={self.batch} must be the public number of users of a batch.")

    def _read(self) -> Answer:
        if self._pending < self.batch and self.reads < self.n_reads:
            raise PrivacyError(
                f"{self._pending} users do not fill a batch of {self.batch}: too few to hide each "
                "other."
            )
        return super()._read()


@stored_in_policies
class ShuffleStream(BatchedStream, LocalStream):
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
    ...         return np.array([np.nan_to_num(np.clip(y, 0.0, 1.0)).sum()])
    >>> opened = [
    ...     open_stream(privacy, ClippedTotal(), Budget(1.0, 1e-6), 20, batch=1000, random_state=0)
    ...     for privacy in ("local", "shuffle")
    ... ]
    >>> print([round(stream.noise.scale, 1) for stream in opened])
    [4.2, 0.7]
    """


@stored_in_policies
class SharedSumStream(BatchedStream):
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
    ...         return np.array([np.nan_to_num(np.clip(y, 0.0, 1.0)).sum()])
    >>> stream = open_stream(
    ...     "aggregate", ClippedTotal(), Budget(1.0, 1e-6), 20, batch=1000, random_state=0
    ... )
    >>> round(stream.push(np.ones((1000, 1)), np.ones(1000)).read().noise.scale, 1)
    4.2
    """

    def check(self, budget: "Budget") -> None:
        """Refuse a batch that is not public, or whose sum does not fit."""
        super().check(budget)
        self.batch_noise(budget.mu)

    def _release(self, increment: np.ndarray, count: int) -> tuple[np.ndarray, Noise]:
        self._total = self._total + self._add_noise(increment, self.noise)
        return self._total, self.noise.summed(self.reads)

    def batch_noise(self, mu: float) -> GaussianNoise:
        """Law of the noise that makes the sum of a batch mu-Gaussian-DP."""
        size = prod(self.query.shape)
        lattice = Lattice.calibrated(self.query.sensitivity, mu, size, self.batch, self.batch)
        return GaussianNoise(lattice.scale)
