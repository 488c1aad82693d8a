"""From the name of a privacy model to its stream."""

from ...exceptions import PrivacyError
from ...records import Rows
from .._session._open import open_session
from .._session._trust import Trust
from ._kinds import STREAMS, stream_of

__all__ = ["STREAMS", "open_stream"]


class ToCome(Rows):
    """Records that will be pushed: a session about them answers by streams alone."""

    n = n_features = 0

    def pieces(self, most, subset=None, sparse=True):
        """Nothing is here yet."""
        raise PrivacyError("the records of a stream are yet to come: push them.")


def open_stream(
    privacy,
    query,
    budget,
    n_reads,
    random_state=None,
    name="stream",
    *,
    mechanism=None,
    batch=None,
):
    """Open a running sum; its whole cost is charged here, before any record is seen.

    Parameters
    ----------
    privacy : {"central", "local", "shuffle", "none"}
        The privacy model. An infinite epsilon is the same as "none".
    query : Query
    budget : Budget
        What one record may lose in the whole stream.
    n_reads : int
        How often the sum may be read at most.
    random_state : None, int or RandomState, default=None
        None draws secure noise by OpenDP; anything else draws reproducible noise by NumPy.
    name : str
        Who asks, for accountants.
    mechanism : str or None, default=None
        "factor" (default) or "tree" in the central model, "amplified" (default) or "vector-sum" in
        the shuffle model.
    batch : int, default=None
        Public number of records between two reads; only the shuffle model needs it.

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
    stream = stream_of(trust.model, query, trust.budget, n_reads, mechanism, batch)
    currency = "gdp"
    if trust.model == "local" and query.local_noise(budget).cost(query.sensitivity).pure:
        currency = "pure"
    session = open_session(
        privacy, ToCome(), None, budget, random_state, name, currency=currency, smallest_share=0.0
    )
    return session.begin(stream)
