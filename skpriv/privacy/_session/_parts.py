"""Parts of a session: disjoint random sets of records, each with the whole budget."""

from math import floor
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import of_numbers
from ...exceptions import PrivacyError
from .._accounting._cost import SHARE_SLACK
from ._base import check_share
from ._pieces import Piece

if TYPE_CHECKING:
    from .._query import Answer
    from ._base import Session


@of_numbers  # of which sums do not overflow
def split(session: Any, *sizes: Any) -> "list[SessionPart]":
    """Divide a session's records among parts, each of which has the whole budget.

    The parts are pieces of the session's random order, which is drawn without looking at the
    records, and which is secret under a curator. Given the order, neighbours differ in one record
    of one part: the answers about it depend on the others only through what these released, so that
    a record pays for its own part (adaptive parallel composition,
    docs/mathematics/prediction_intervals.md). The whole was charged when the session was opened.

    Parameters
    ----------
    session : Session or SessionPart
        Nothing has been asked of it, or under a curator nothing since it was rebased.
    *sizes : int
        Numbers of records of the parts, public and fixed before any answer.

    Returns
    -------
    list of SessionPart
        The parts, in the order of ``sizes``.

    Raises
    ------
    PrivacyError
        If the parts do not fit, or the session has answered something.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv import Budget
    >>> from skpriv.privacy import open_session, split
    >>> session = open_session("central", np.zeros((10, 1)), np.zeros(10), Budget(1.0, 1e-6))
    >>> [part.n for part in split(session, 7, 3)]
    [7, 3]
    """
    inside = isinstance(session, SessionPart)
    divided, place = (session._session, session._place) if inside else (session, 0)
    # Under a curator, what was used before a rebase is not counted again.
    rebased = 0.0 if inside or divided.capabilities.reports else 1.0 - divided._unit
    if session.used > rebased + SHARE_SLACK:
        raise PrivacyError("a session is divided into parts before it answers anything.")
    if sum(sizes) > session.n or min(sizes, default=0) < 1:
        raise PrivacyError(f"parts of {sizes} records do not fit into {session.n} records.")
    # The largest part comes last in the order: then only the places of the other records need be
    # kept in memory.
    order = np.argsort(sizes, kind="stable")
    ends = np.cumsum([sizes[i] for i in order])
    starts = dict(zip(order.tolist(), (ends - np.sort(sizes)).tolist(), strict=True))
    return [SessionPart(divided, place + starts[i], size) for i, size in enumerate(sizes)]


class SessionPart:
    """A session about some of the records of another one, with shares of its own.

    It asks that session, which books every answer to the records that it is about: a part can never
    use more than the budget of each. If users answer once (local and shuffle), its shares divide
    its own users, in the public order.

    Parameters
    ----------
    session : Session
    place : int
        Where its records begin in the random order of the session.
    size : int
        How many they are.

    Attributes
    ----------
    n : int
        Public number of records.
    used : float
        Share that has been used.
    trust, report, persons : object
        Those of the whole session.
    """

    def __init__(self, session: "Session", place: int, size: int) -> None:
        self._session = session
        self._place = place
        self.n = int(size)
        self.used = 0.0
        self.trust = session.trust
        self.report = session.report
        self.persons = session.persons
        self.n_jobs = session.n_jobs

    def sum(self, query: Any, share: float, subset: Any = None) -> "Answer":
        """Noisy sum of a query over the records, or over a part of them; see Session.

        Shares of parts of a part add up.
        """
        share, records = self._for_session(share, subset, query)
        return self._session.sum(query, share, records)

    def piece(self, fraction: float) -> Piece | None:
        """Random piece of the records, for queries that need not see all of them; see Session."""
        return self._session._pieces.prefix(self._place, self._place + self.n, fraction)

    def top(self, query: Any, k: int, share: float) -> np.ndarray:
        """Indices of the k largest coordinates of a bounded sum; see Session."""
        share, records = self._for_session(share, None, query)
        return self._session.top(query, k, share, records)

    def release(self, procedure: Any, share: float) -> "Answer":
        """Noisy output of a procedure on the records; see Session."""
        share, records = self._for_session(share, None, procedure)
        return self._session.release(procedure, share, records)

    def noise(self, query: Any, share: float, subset: Any = None) -> Any:
        """Law of the noise that the answer to a query would have for this share (public)."""
        share, records = self._for_session(share, subset)
        return self._session.noise(query, share, records)

    def records(self, share: float, subset: Any = None) -> float:
        """Public number of records that the answer to a query for this share would sum over."""
        share, records = self._for_session(share, subset)
        return self._session.records(share, records) if len(records) else 0

    def _for_session(self, share: float, subset: Any, question: Any = None) -> Any:
        """Share and records with which the whole session is asked; a question spends the share."""
        if subset is not None and self._session.capabilities.reports:
            raise PrivacyError("users of a part of a session answer once: ask all of the part.")
        everybody = Piece(self._place, self._place + self.n)
        if subset is not None and not (isinstance(subset, Piece) and everybody.holds(subset)):
            raise PrivacyError("a part of a session is asked about pieces of it: see its piece().")
        start = self.used
        stop = start + share
        if question is not None:
            self.used = stop = check_share(question, share, start)
        if not self._session.capabilities.reports:
            return share, everybody if subset is None else subset
        return 1.0, Piece(*(self._place + self._position(share) for share in (start, stop)))

    def _position(self, share: float) -> int:
        return min(floor((share + SHARE_SLACK) * self.n), self.n)
