"""What the records of a session have used of it: shares, stacked over subsets."""

import os
from dataclasses import dataclass
from functools import wraps
from typing import cast

from ...exceptions import PrivacyError
from ...records import Subset
from .._accounting._cost import Cost
from .._tape import F


@dataclass(frozen=True)
class Slot:
    """What a query may use: a share of the resource of each record, from some height on.

    Attributes
    ----------
    share : float
        Share of the whole session.
    start : float
        What the records that are asked may have used before.
    subset : Subset or None
        The records that are asked; None is all of them.
    """

    share: float
    start: float = 0.0
    subset: Subset | None = None

    @property
    def stop(self):
        """What the records that are asked may have used afterwards."""
        return self.start + self.share


class Shares:
    """What the records of a session have used, when queries are about subsets of them.

    Queries are stacked: one starts above the highest of the earlier ones that has a record in
    common with it. By induction no record has used more than the top of the last query that it was
    in, so that tops of at most 1 keep every record within its budget (parallel composition: the
    answers about other records are not changed by it). A partition into disjoint subsets may hence
    use the whole budget on each part. The costs that were paid are stacked in the same way.
    """

    def __init__(self):
        self._process = os.getpid()
        self._stack = []  # (subset, top, cost of a record in it), one entry a subset

    def top(self, subset=None):
        """Largest share that a record of the subset may have used."""
        return max([top for _, top, _ in self._met(subset)], default=0.0)

    def add(self, slot, cost, once):
        """Book a query; return what a record in it has paid by then (``once``: for it alone)."""
        if os.getpid() != self._process:
            raise PrivacyError(
                "this session was copied by a fork of its process: only the original answers."
            )
        before = [] if once else [paid for _, _, paid in self._met(slot.subset)]
        if len(before) > 1:
            before = [Cost.maximum(before)]
        paid = before[0] + cost if before else cost
        entry = (slot.subset, slot.stop, paid)
        if slot.subset is None:
            self._stack = [entry]  # above all others
        else:
            self._stack = [e for e in self._stack if e[0] is None or not e[0].same(slot.subset)]
            self._stack.append(entry)
        return paid

    def _met(self, subset):
        if subset is None:
            return self._stack
        return [e for e in self._stack if e[0] is None or e[0].overlaps(subset)]


def one_at_a_time(method: F) -> F:
    """Decorate a method that asks: two threads would find the same share free, and both take it."""

    @wraps(method)
    def locked(self, *arguments, **named):
        with self._lock:
            return method(self, *arguments, **named)

    return cast(F, locked)
