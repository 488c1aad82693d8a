"""Running sums that are read many times: what per-round policies ask about their records."""

from typing import Any, Self
from abc import ABC, abstractmethod
from copy import deepcopy
from math import sqrt
from threading import RLock

from ..._linalg import CompensatedSum
from ...exceptions import PrivacyError
from ...records import as_rows
from .._ledger._numbering import Numbering
from .._accounting._capabilities import Capabilities, capabilities
from .._accounting._cost import Cost
from .._accounting._guarantee import Guarantee
from .._noise._laws import GaussianNoise
from .._query import Answer
from .._tape import door

_READING = RLock()  # two threads would draw two noises for one read; a stream's own is not pickled


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
    batch : int or None
        Public number of records between two reads; only the shuffle model needs it.

    Attributes
    ----------
    n : int
        Records in the last read.
    reads : int
        Reads so far.
    sensitivity : float
        Sensitivity of all that gets noise, together.
    noise : GaussianNoise
        Law of one draw of noise (a read adds several up).
    cost : Cost
        What one record has paid.
    report : PrivacyReport
    guarantee : Guarantee
        What a record was promised for what was charged.
    """

    noise: GaussianNoise
    cost: Cost

    def __init__(self, query: Any, n_reads: int, batch: int | None = None) -> None:
        if n_reads < 1:
            raise ValueError(f"n_reads={n_reads} must be at least 1.")
        self.query, self.n_reads, self.batch = query, n_reads, batch
        self.name, self.norm, self.sensitivity = query.name, query.norm, query.sensitivity
        self.n = self.reads = self._pending = 0
        self._increment = CompensatedSum(query.shape)
        self._released: list = []  # records and noise of each read, which are public

    def __copy__(self) -> Self:
        # A shallow copy would share what is added up, and draw answers of its own
        return deepcopy(self)

    def check(self, budget: Any) -> None:
        """Refuse what cannot be had for this budget: public, and before anything is charged."""

    def spread(self, places: int) -> None:
        """Protect units that have so many records, at most one of them between two reads."""
        raise PrivacyError(
            f"{type(self).__name__} protects single records: divide the budget by their number."
        )

    def begin(self, noise: Any, cost: Cost, report: Any, source: Any) -> Any:
        """Take what the session has calibrated, charged and reported."""
        self.noise, self.cost, self.report, self._source = noise, cost, report, source
        self._numbering = Numbering()
        self._prepare()
        return self

    @property
    def model(self) -> str:
        """Name of the privacy model whose session opened the stream."""
        return self.report.privacy

    @property
    def can(self) -> Capabilities:
        """What that model can."""
        return capabilities(self.model)

    def number(self, numbering: Any) -> Self:
        """Take the numbers of its reads from an object that has several streams."""
        self._numbering = numbering
        return self

    @property
    def guarantee(self) -> Guarantee:
        """What a record was promised for what was charged."""
        return self.report.guarantee

    def push(self, X: Any, y: Any, count: int | None = None) -> Self:
        """Add records to the sum; they are seen in the next read.

        Parameters
        ----------
        X : ndarray of shape (n_records, n_features)
        y : ndarray of shape (n_records,)
        count : int, default=None
            Public number that they count for; None: as many as they are. Where records come out of
            order, how many they are is private.

        Returns
        -------
        self
        """
        rows = as_rows(X, y)
        self._increment.add(rows.sum(self.query))
        self._pending += rows.n if count is None else count
        return self

    @door
    def read(self) -> Answer:
        """Noisy sum of all records so far, with the exact law of its noise.

        Returns
        -------
        Answer
        """
        with _READING:
            return self._read()

    def _read(self):
        if self.reads >= self.n_reads:
            raise PrivacyError(
                f"the stream was opened for {self.n_reads} reads, which have all been made: "
                "open another one for the records to come."
            )
        self._numbering.check()
        self.reads += 1
        self.n += self._pending
        increment, count = self._increment.value, self._pending
        self._increment, self._pending = CompensatedSum(self.query.shape), 0
        value, noise = self._release(increment, count)
        self._released.append((self.n, noise))
        return Answer(value, self.n, noise)

    def between(self, first: int, last: int) -> Any:
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
        count, noise = self._released[last - 1]
        if first == 0:
            return noise
        earlier, law = self._released[first - 1]
        if isinstance(noise, GaussianNoise):
            return GaussianNoise(sqrt(max(noise.scale**2 - law.scale**2, 0.0)))
        return self.noise.summed(count - earlier)

    def _add_noise(self, exact, noise):
        """Add noise: once for each read, whatever copies of the stream make it too.

        What is repeated was drawn all the same, so that reproducible noise stays in step.
        """
        return self._settled(self._source.add(exact, noise))

    def _settled(self, drawn):
        """The draw of this read, or the first one of a copy."""
        return self._numbering.settle(self.reads, drawn[None])[0]

    @abstractmethod
    def _prepare(self):
        """Make the state of no records; ``noise`` is known."""

    @abstractmethod
    def _release(self, increment, count):
        """Return the noisy running sum and its noise law; the increment holds ``count`` records."""
