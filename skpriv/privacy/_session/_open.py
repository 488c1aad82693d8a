"""From the name of a privacy model to its session or stream."""

from typing import Any
from ...exceptions import PrivacyError
from ...records import Rows, as_rows
from .._stream import stream_of
from .._stream._base import Stream
from ._aggregate import AggregateSession
from ._base import Session
from ._central import CentralSession, ExactSession
from ._local import LocalSession, ShuffleSession
from ._trust import Trust

MODELS: dict[str, type[Session]] = {
    "aggregate": AggregateSession,
    "central": CentralSession,
    "local": LocalSession,
    "none": ExactSession,
    "shuffle": ShuffleSession,
}


def open_session(
    privacy: str,
    X: Any,
    y: Any,
    budget: Any,
    random_state: Any = None,
    name: str = "session",
    *,
    currency: str = "gdp",
    smallest_share: float = 1.0,
    groups: Any = None,
) -> Session:
    """Open a session on private rows; the whole budget is charged here, before any row is read.

    Parameters
    ----------
    privacy : str
        The name of the privacy model, one of `MODELS`. An infinite epsilon is the same as "none".
    X : ndarray or sparse matrix of shape (n_records, n_features), or skpriv.records.Rows
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

    Raises
    ------
    BudgetExceeded
        If an active accountant cannot pay; nothing has been read then.
    PrivacyError
        If the guarantee cannot be had, for example ``delta=0`` with Gaussian noise.
    """
    trust = Trust.of(privacy, budget)
    return _session_class(trust)(
        as_rows(X, y),
        trust.budget,
        random_state,
        name,
        currency=currency,
        smallest_share=smallest_share,
        groups=groups,
    )


def _session_class(trust):
    """Session of a model; without one nothing is answered."""
    if trust.model not in MODELS:
        raise PrivacyError(f"privacy={trust.model!r} has no session: it must be in {list(MODELS)}.")
    return MODELS[trust.model]


class ToCome(Rows):
    """Records that will be pushed: a session about them answers by streams alone."""

    n = n_features = 0

    def pieces(self, most, subset=None, sparse=True):
        """Nothing is here yet."""
        raise PrivacyError("the records of a stream are yet to come: push them.")


def open_stream(
    privacy: str,
    query: Any,
    budget: Any,
    n_reads: int,
    random_state: Any = None,
    name: str = "stream",
    *,
    mechanism: str | None = None,
    batch: int | None = None,
    places: int = 1,
) -> Stream:
    """Open a running sum; its whole cost is charged here, before any record is seen.

    Parameters
    ----------
    privacy : str
        The name of the privacy model, one of `MODELS`. An infinite epsilon is the same as "none".
    query : Query
    budget : Budget
        What one record may lose in the whole stream.
    n_reads : int
        How often the sum may be read at most.
    random_state : None, int or RandomState, default=None
        None draws secure noise, exactly; anything else draws reproducible noise by NumPy.
    name : str
        Who asks, for accountants.
    mechanism : str or None, default=None
        One of the model's kinds, the first of which is the default: "factor" or "tree" in the
        central model.
    batch : int, default=None
        Public number of records between two reads; the shuffle and aggregate models need it.
    places : int, default=1
        Records that one unit may have, at most one of them between two reads: then the budget is
        that of the unit. Of a curator's streams alone.

    Returns
    -------
    Stream

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
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> stream = open_stream("central", ClippedTotal(), Budget(1.0, 1e-6), 100, random_state=0)
    >>> _ = stream.push(np.zeros((1000, 1)), np.ones(1000))
    >>> bool(abs(stream.read().value[0] - 1000.0) < 50.0)
    True
    """
    trust = Trust.of(privacy, budget)
    stream = stream_of(_session_class(trust), query, trust.budget, n_reads, mechanism, batch)
    if places > 1:
        stream.spread(places)
    return begin_stream(privacy, stream, budget, random_state, name)


def begin_stream(
    privacy: str, stream: Any, budget: Any, random_state: Any = None, name: str = "stream"
) -> Any:
    """Charge, calibrate and report a stream of one's own, about records that will come.

    Parameters
    ----------
    privacy, budget, random_state, name
        The same as for `open_stream`.
    stream : object
        An object with the ``query`` whose noise it draws, its ``name``, ``norm`` and
        ``sensitivity``, ``n_reads`` and ``batch``, and ``begin(noise, cost, report, source)``,
        which takes what the session has decided and returns the stream. Every draw of it has to be
        one of ``source``.

    Returns
    -------
    stream
    """
    trust, currency = Trust.of(privacy, budget), "gdp"
    if trust.can.alone and stream.query.local_noise(budget).cost(stream.sensitivity).pure:
        currency = "pure"
    session = open_session(
        privacy, ToCome(), None, budget, random_state, name, currency=currency, smallest_share=0.0
    )
    return session.begin(stream)
