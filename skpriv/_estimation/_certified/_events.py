"""Certificates as data: the events on which an interval rests, each with its chance to fail.

A certified interval holds on the intersection of some events. By the union bound its failure is at
most the sum of theirs. Each place that turns a failure probability into a quantile passes it
through `event`, which notes it while a `certificate` is open and is free otherwise. So what is
added up is what was used, and not what was planned.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Certificate:
    """Events of the intervals that were computed while it was open.

    Attributes
    ----------
    failures : dict of str to float
        Failure probability of each event. One that was used several times is one event.
    """

    def __init__(self, sharper: str | None = None) -> None:
        self.failures: dict[str, float] = {}
        self._sharper = sharper

    def noted(self, name: str, failure: float) -> float:
        """Note an event, and return the failure probability that its quantile is to have."""
        self.failures[name] = max(failure, self.failures.get(name, 0.0))
        return failure**2 if name == self._sharper else failure


_OPEN: ContextVar[Certificate | None] = ContextVar("_OPEN", default=None)


@contextmanager
def certificate(sharper: str | None = None) -> Iterator[Certificate]:
    """Collect the events of all intervals that are computed inside.

    Parameters
    ----------
    sharper : str, default=None
        An event whose failure probability is squared where it is used: an interval that rests on it
        becomes wider.

    Examples
    --------
    >>> from skpriv._estimation._certified._events import certificate, event
    >>> with certificate() as found:
    ...     _ = event("noise of the target", 0.025), event("largest eigenvalue", 0.025)
    >>> found.failures
    {'noise of the target': 0.025, 'largest eigenvalue': 0.025}
    """
    token = _OPEN.set(Certificate(sharper))
    try:
        yield _OPEN.get()  # type: ignore[misc]
    finally:
        _OPEN.reset(token)


def event(name: str, failure: float) -> float:
    """Failure probability of an event, where its quantile is taken."""
    found = _OPEN.get()
    return failure if found is None else found.noted(name, failure)
