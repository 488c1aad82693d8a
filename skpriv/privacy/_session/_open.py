"""From the name of a privacy model to its session or stream.

Some models have a curator who sees all records. In the others every user adds noise before
anything leaves the device: to reports, or to sums that are hidden. One model has no privacy.
"""

from dataclasses import replace
from math import ceil, exp, floor, inf, prod, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from ..._stored import frozen
from ...exceptions import PrivacyError
from ...records import Rows, as_rows
from .._accounting._cost import SHARE_SLACK, Budget, Cost
from .._accounting._guarantee import Trust, capabilities
from .._accounting._lattice import Devices, Lattice, sharing_security
from .._amplification import amplified, amplified_epsilon
from .._noise._codebook_law import LiftedReports
from .._noise._laws import GaussianNoise, GumbelNoise
from .._query import Answer, Query
from .._stream import (
    ExactStream, FactorStream, LocalStream, SharedSumStream, ShuffleStream, Stream,
)  # fmt: skip
from ._base import Session, one_at_a_time, stream_of
from ._pieces import Piece

if TYPE_CHECKING:
    from ...records import Subset
    from .._noise._laws import Noise, NoiseSource
    from ._base import Question, Slot
    from ._groups import Groups


class CentralSession(Session):
    """A trusted curator: every query sees all records and pays its share of the budget.

    The noise of a query is Gaussian with mu_q = mu sqrt(share). The squares add up to at most mu^2
    for every record, and adaptive composition of Gaussian mechanisms is exact (Dong, Roth and Su
    2022, Cor. 3.3).
    """

    model = "central"
    capabilities = capabilities("central")
    running_sums: ClassVar[type[Stream] | None] = FactorStream

    def _answer(self, query: Query, slot: "Slot", law: "Noise") -> Answer:
        return self._noisy(self._pieces.sum(query, slot.piece), slot, law)

    def _law(self, question: "Question", slot: "Slot") -> "Noise":
        if self._currency == "pure" and isinstance(question, Query):  # its share is one of epsilon
            return question.local_noise(Budget(slot.share * self._budget.epsilon / self._reordered))
        # Gaussian noise of this mu spends the whole budget (rho = mu^2 / 2)
        gaussian = self._currency == "gdp"
        mu = self._budget.mu if gaussian else sqrt(2.0 * self._budget.rho)
        return GaussianNoise.calibrated(self._change(question), mu * sqrt(slot.share))

    def _stream_law(self, stream: Stream, slot: "Slot") -> "Noise":
        return self._law(stream, slot)

    def _selection_law(self, query: Query, k: int, slot: "Slot") -> GumbelNoise:
        return GumbelNoise.calibrated(self._change(query), k, slot.share * self._budget.rho)


class ExactSession(CentralSession):
    """Exact answers over all records. Its cost is infinite: no finite accountant admits it."""

    model = "none"
    capabilities = capabilities("none")
    running_sums = ExactStream

    def _law(self, question: "Question", slot: "Slot") -> GaussianNoise:
        return GaussianNoise(0.0)

    def _selection_law(self, query: Query, k: int, slot: "Slot") -> GumbelNoise:
        return GumbelNoise(0.0)


@frozen
class SummedNoise(GaussianNoise):
    """Sum of the discrete Gaussian noise of all users, on a grid.

    Parameters
    ----------
    lattice : Lattice
        The grid, and the noise of one user.
    size : int
        Number of coordinates.
    """

    lattice: Lattice
    size: int

    def cost(self, sensitivity: float) -> Cost:
        """Price of a sum of this l2 sensitivity: the rounding to the grid is part of it."""
        return Cost.from_mu(self.lattice.mu(sensitivity, self.size))

    def collected(self, query: Any, rows: Rows, users: "Subset", source: "NoiseSource") -> NoReturn:
        """Refuse: no report hides behind one user's part of the noise, which is next to nothing."""
        raise PrivacyError(
            f"{query.name!r} has noise that all users add together: a single report with a user's "
            "part of it would show the record. Devices send shares: skpriv.protocol.report."
        )


class AggregateSession(Session):
    """Every user adds a small part of the noise, and a protocol hides all but the noisy sum.

    A user rounds the vector of the own record to a grid, adds discrete Gaussian noise and sends
    shares that add up to the result modulo 2^64. All users are in every answer: shares of a fit
    divide the budget, and the noise of an answer is that of a trusted curator. Everything that can
    be had from sums can be had here; choosing the largest coordinate of a sum that nobody sees
    cannot.

    Here the rows are at hand, and one draw stands for the noise of all users (the laws differ by a
    relative 1e-9). On devices the rows stay where they are: see :mod:`skpriv.protocol`.

    Notes
    -----
    **Privacy guarantee**: mu-Gaussian-DP of the sums, exactly as for a curator, proved in
    docs/mathematics/aggregate.md. Users trust that those who add up do not collude, and that at
    least as many devices add their noise as the report says. If all who add up collude,
    they see each record almost as it is.
    """

    model = "aggregate"
    capabilities = capabilities("aggregate")
    running_sums = SharedSumStream

    def __init__(self, rows: Rows, *arguments: Any, **named: Any) -> None:
        self._simulated = rows.devices is None
        self._mixed = not self._simulated and rows.devices.transport == "shuffled-shares"
        super().__init__(rows, *arguments, **named)
        self.report.simulated = self._simulated
        if self.n:
            self.report.devices = self._devices

    @one_at_a_time
    def begin(self, stream: Any) -> Any:
        """Calibrate and book a stream, of batches whose users all add their noise."""
        self.report.devices = Devices(stream.batch, stream.batch)
        return super().begin(stream)

    def _check(self, budget: Budget, n: int, smallest_share: float) -> None:
        if self._currency != "gdp":
            raise PrivacyError(
                f"privacy={self.model!r} has Gaussian noise alone, which users can add in parts: "
                "pass delta in (0, 1), and use privacy='central' for selections."
            )
        super()._check(budget, n, smallest_share)

    def _answer(self, query: Query, slot: "Slot", law: SummedNoise) -> Answer:
        lattice = law.lattice
        zero = np.zeros((1, self._rows.n_features))
        lattice.check(float(np.abs(query.sum(zero, np.zeros(1))).max()), self._change(query))
        if self._simulated:
            return self._noisy(self._pieces.sum(query, slot.piece), slot, GaussianNoise(law.scale))
        # The shares of this query may be this far from shares that are drawn from their sums.
        security = sharing_security(self._budget) * slot.share if self._mixed else 0.0
        prices = self.report, law.cost(self._change(query))
        users = self._pieces.subset_or_all(slot.piece)
        value, n = self._rows.shared_sum(query, lattice, security, prices, users)
        return Answer(value, n, GaussianNoise(law.scale * sqrt(n / lattice.adding)))

    def _law(self, query: Query, slot: "Slot") -> SummedNoise:
        users = self._count(slot)
        size = prod(query.shape)
        mu = self._left(self._budget).mu * sqrt(slot.share)
        devices = self._devices
        adding = max(1, users * devices.adding // devices.total)
        lattice = Lattice.calibrated(self._change(query), mu, size, users, adding)
        return SummedNoise(lattice.scale, lattice, size)

    def _left(self, budget: Budget) -> Budget:
        """The condition on the noise: where shares are mixed, their security is taken off delta."""
        return Budget(budget.epsilon, budget.delta - self._owed(budget))

    def _owed(self, budget: Budget) -> float:
        """Part of delta that mixed shares cost; other sums are hidden without any."""
        if not self._mixed:
            return 0.0
        return (1.0 + exp(min(budget.epsilon, 700.0))) * sharing_security(budget)

    def _price(self, budget: Budget) -> Cost:
        return Cost.from_mu(self._left(budget).mu) + Cost(delta=self._owed(budget))

    @property
    def _devices(self) -> Devices:
        """How many there are, and how many of them are counted on."""
        return Devices(self.n, self.n) if self._simulated else self._rows.devices

    def _stream_law(self, stream: Any, slot: "Slot") -> Any:
        return stream.batch_noise(self._left(self._budget).mu * sqrt(slot.share))


class LocalSession(Session):
    """Every user answers one query, with the full budget; shares divide the users.

    Which users answer which query is a public random order, drawn without looking at them. Blocks
    of users are disjoint, so that each record pays for one report (parallel composition). A sum of
    m reports with N(0, s^2) noise has N(0, m s^2) noise: m users cost one draw, exactly.

    A query about a piece is answered by its users between two heights of the whole order. Queries
    whose pieces have a user in common are at different heights, hence ask different users.
    """

    model = "local"
    capabilities = capabilities("local")
    running_sums = LocalStream

    def _check(self, budget: Budget, n: int, smallest_share: float) -> None:
        super()._check(budget, n, smallest_share)
        if smallest_share and floor((smallest_share + SHARE_SLACK) * n) < 1:
            raise PrivacyError(
                f"n_samples={n} is too few: in the local model each user answers one query, and "
                f"a query needs a share of {smallest_share:.4g} of the users. "
                f"Give at least {ceil(1.0 / smallest_share)} rows, or use privacy='central'."
            )

    def _answer(self, query: Any, slot: "Slot", law: Any) -> Answer:
        users = self._pieces.subset(self._answering(slot))
        value = law.collected(query, self._rows, users, self._source)
        if isinstance(value, LiftedReports):  # some of the users who were asked may not answer
            reports = value.unordered() if self.capabilities.amplifies else value
            n = len(reports.directions)
            law = replace(law, code=reports.code)
            return Answer(query.summed(reports), n, law.summed(n), reports)
        return Answer(value, len(users), law.summed(len(users)))

    def _answering(self, slot: "Slot") -> Piece:
        """Places of the users who answer in the public order."""
        place = Piece(self._position(slot.start), self._position(slot.stop))
        return place if slot.piece is None else place.common(slot.piece)

    def _law(self, query: Query, slot: "Slot") -> "Noise":
        return query.local_noise(self._report_budget(query, self._count(slot)))

    def _stream_law(self, stream: Stream, slot: "Slot") -> "Noise":
        return stream.query.local_noise(self._report_budget(stream.query, stream.batch))

    def _count(self, slot: "Slot") -> int:
        return len(self._answering(slot))

    def _position(self, share: float) -> int:
        return min(floor(share * (1.0 + SHARE_SLACK) * self.n), self.n)

    def _report_budget(self, query: Query, users: int) -> Budget:
        """Budget of each report of a block of this many users."""
        return self._budget


class ShuffleSession(LocalSession):
    """Every user answers one query; a shuffler sends on the reports of each query without names.

    The budget is a central guarantee for the shuffled reports. Users hide each other, so that a
    report may spend more than the budget: as much as docs/mathematics/shuffle.md proves for the
    number of users who answer the same query (only these are shuffled together).
    With few users there is no amplification, and the model is the local one at the same budget.

    Whom users trust: the shuffler, to drop names, times and order and not to collude with the
    analyst; and the other users, to report as told (if only m of n do, the guarantee is that of m).
    Without them a user still has the local guarantee of the own report, which is weaker. The
    analyst is not trusted at all. The fact that a user answers, and which query, is public.

    Accountants are charged the (epsilon, delta) guarantee: amplification has no tighter currency,
    so that the epsilons and deltas of several fits add up.
    """

    model = "shuffle"
    capabilities = capabilities("shuffle")
    running_sums = ShuffleStream

    def _check(self, budget: Budget, n: int, smallest_share: float) -> None:
        if not 0.0 < budget.epsilon < inf:
            raise PrivacyError(
                f"epsilon={budget.epsilon} is outside of (0, inf), where the shuffle model gives a "
                "guarantee: pass a positive, finite epsilon, or privacy='none'."
            )
        super()._check(budget, n, smallest_share)

    def _report_budget(self, query: Query, users: int) -> Budget:
        if self._currency != "pure":
            return amplified(self._budget, users, dimension=int(prod(query.shape)))
        if query.likely is None:  # reports that take values with more than two probabilities
            return Budget(self._budget.epsilon)
        return Budget(amplified_epsilon(self._budget, users, query.likely))

    def _largest_cost(self, question: Any, slot: "Slot") -> float:
        """Largest cost of one report that hides among those that are shuffled with it."""
        if isinstance(question, Stream):
            budget = self._report_budget(question.query, question.batch)
        else:
            budget = self._report_budget(question, self._count(slot))
        return budget.epsilon if self._currency == "pure" else budget.mu**2


_KINDS = (AggregateSession, CentralSession, LocalSession, ExactSession, ShuffleSession)
MODELS: dict[str, type[Session]] = {kind.model: kind for kind in _KINDS}


def open_session(
    privacy: str,
    X: Any,
    y: Any,
    budget: Budget,
    random_state: Any = None,
    name: str = "session",
    *,
    currency: str = "gdp",
    smallest_share: float = 1.0,
    groups: "Groups | None" = None,
) -> Session:
    """Open a session on private rows; the whole budget is charged here, before any row is read.

    Parameters
    ----------
    privacy : str
        The name of the privacy model, one of `MODELS`. An infinite epsilon is the same as "none".
    X : ndarray or sparse matrix of shape (n_records, n_features), or skpriv.records.Rows
        Private rows; nothing but their shape is read before the charge.
    y : ndarray of shape (n_records,)
        None if X is rows, which have their targets in them.
    budget : Budget
        What one record may lose in the whole session.
    random_state : None, int or RandomState, default=None
        None draws secure noise, exactly; anything else draws reproducible noise by NumPy.
    name : str
        Who asks, for reports and accountants.
    currency : {"gdp", "zcdp", "pure"}, default="gdp"
        What the shares divide; a session that selects coordinates needs "zcdp", and one whose
        queries bring pure noise for ``delta=0`` needs "pure".
    smallest_share : float, default=1.0
        The smallest share that will be asked for; too few records for it are refused uncharged.
        0 where no sum is asked for, but a stream.
    groups : Groups, default=None
        Rows that are protected together, such as those of one person; None: each row alone.

    Returns
    -------
    Session
        A session of the model, whose budget is charged.

    Raises
    ------
    BudgetExceeded
        If an active accountant cannot pay; nothing has been read then.
    PrivacyError
        If the guarantee cannot be had, for example ``delta=0`` with Gaussian noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv import Budget
    >>> from skpriv.privacy import Query, open_session
    >>> class Mean(Query):
    ...     name, shape, sensitivity = "mean", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> X, y = np.zeros((1000, 1)), np.full(1000, 0.25)
    >>> session = open_session("central", X, y, Budget(1.0, 1e-6), random_state=0)
    >>> answer = session.sum(Mean(), 1.0)
    >>> round(float(answer.value[0] / answer.n), 1)
    0.3
    """
    trust = Trust.of(privacy, budget)
    return _session_class(trust)(
        as_rows(X, y), trust.budget, random_state, name, currency=currency,
        smallest_share=smallest_share, groups=groups,
    )  # fmt: skip


def _session_class(trust: Trust) -> type[Session]:
    """Session of a model; without one nothing is answered."""
    if trust.model not in MODELS:
        raise PrivacyError(f"privacy={trust.model!r} has no session: it must be in {list(MODELS)}.")
    return MODELS[trust.model]


class ToCome(Rows):
    """Records that will be pushed: a session about them answers by streams alone."""

    n = n_features = 0

    def pieces(self, max_rows: int, subset: Any = None, sparse: bool = True) -> NoReturn:
        """Nothing is here yet."""
        raise PrivacyError("the records of a stream are yet to come: push them.")


def open_stream(
    privacy: str,
    query: Query,
    budget: Budget,
    n_reads: int,
    random_state: Any = None,
    name: str = "stream",
    *,
    batch: int | None = None,
    places: int = 1,
    span: int | None = None,
) -> Stream:
    """Open a running sum; its whole cost is charged here, before any record is seen.

    Parameters
    ----------
    privacy : str
        The name of the privacy model, one of `MODELS`. An infinite epsilon is the same as "none".
    query : Query
        The sum of which the stream keeps a running value.
    budget : Budget
        What one record may lose in the whole stream.
    n_reads : int
        How often the sum may be read at most.
    random_state : None, int or RandomState, default=None
        None draws secure noise, exactly; anything else draws reproducible noise by NumPy.
    name : str
        Who asks, for accountants.
    batch : int, default=None
        Public number of records between two reads; the shuffle and aggregate models need it.
    places : int, default=1
        Records that one unit may have, at most one of them between two reads: then the budget is
        that of the unit. Streams of a curator alone.
    span : int, default=None
        How many reads the noise of a curator is the least for: with fewer than all, first reads
        have less noise and later ones more. None is all.

    Returns
    -------
    Stream
        A running sum whose whole cost is charged.

    Raises
    ------
    BudgetExceeded
        If an active accountant cannot pay.
    PrivacyError
        If the guarantee cannot be had, for example ``delta=0`` with Gaussian noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.nan_to_num(np.clip(y, 0.0, 1.0)).sum()])
    >>> stream = open_stream("central", ClippedTotal(), Budget(1.0, 1e-6), 100, random_state=0)
    >>> _ = stream.push(np.zeros((1000, 1)), np.ones(1000))
    >>> bool(abs(stream.read().value[0] - 1000.0) < 50.0)
    True
    """
    trust = Trust.of(privacy, budget)
    stream = stream_of(_session_class(trust), query, trust.budget, n_reads, batch, span)
    if places > 1:
        stream.spread(places)
    begun: Stream = begin_stream(privacy, stream, budget, random_state, name)
    return begun


def begin_stream(
    privacy: str, stream: Any, budget: Budget, random_state: Any = None, name: str = "stream"
) -> Any:
    """Charge, calibrate and report a stream of one's own, about records that will come.

    Parameters
    ----------
    privacy, budget, random_state, name
        The same as for `open_stream`.
    stream : object
        An object with the ``query`` whose noise it draws, its ``name``, ``norm`` and
        ``sensitivity``, ``n_reads`` and ``batch`` (0 without batches), and ``begin(noise, cost,
        report, source)``, which takes what the session has decided and returns the stream. Every
        draw of it has to be one of ``source``.

    Returns
    -------
    stream
    """
    trust = Trust.of(privacy, budget)
    currency = "gdp"
    if trust.can.reports and stream.query.local_noise(budget).cost(stream.sensitivity).pure:
        currency = "pure"
    session = open_session(
        privacy, ToCome(), None, budget, random_state, name, currency=currency, smallest_share=0.0
    )
    return session.begin(stream)
