"""Choices of records by their position, and the public order of users."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Subset:
    """Records that are chosen by position, each at most once.

    Attributes
    ----------
    positions : range or ndarray of intp
        Ascending if it is an array.

    Examples
    --------
    >>> from skpriv.records import Subset
    >>> half, rest = Subset.of(slice(0, 5), 10), Subset.of([5, 7, 9], 10)
    >>> len(half), len(rest), half.overlaps(rest), half.overlaps(half)
    (5, 3, False, True)
    """

    positions: Any

    @classmethod
    def of(cls, chosen: Any, n: int) -> Any:
        """Choice among n records from a slice, a mask or positions; a choice is returned as it is.

        Raises
        ------
        ValueError
            If a record is chosen twice, which would double what it can change, or is none of the n.
        """
        if isinstance(chosen, cls):
            return chosen
        if isinstance(chosen, slice):
            slots = range(*chosen.indices(n))
            return cls(slots if slots.step > 0 else slots[::-1])
        positions = np.asarray(chosen)
        if positions.dtype == bool and positions.shape == (n,):
            return cls(np.flatnonzero(positions))
        if positions.ndim != 1 or (positions.dtype.kind not in "iu" and len(positions)):
            raise ValueError("a subset is a slice, a mask of all records, or their positions.")
        positions = positions.astype(np.intp)  # a copy, which nobody else can change
        if len(positions) > 1 and not (np.diff(positions) > 0).all():
            positions = np.sort(positions)
            if not (np.diff(positions) > 0).all():
                raise ValueError("a subset has each record at most once.")
        if len(positions) and not 0 <= positions[0] <= positions[-1] < n:
            raise ValueError(f"the positions of a subset must lie in 0, ..., {n - 1}.")
        return cls(positions)

    def __len__(self):
        return len(self.positions)

    def same(self, other: Any) -> bool:
        """Whether both choose the same records."""
        if self is other:  # then the positions need not be made
            return True
        if len(self) != len(other):
            return False
        mine, others = self.positions, other.positions
        if isinstance(mine, range) and isinstance(others, range):
            return mine == others
        return bool(np.array_equal(mine, others))

    def overlaps(self, other: Any) -> bool:
        """Whether some record is in both."""
        mine, others = self.positions, other.positions
        if not len(mine) or not len(others) or mine[-1] < others[0] or others[-1] < mine[0]:
            return False
        if mine is others:
            return True
        if all(isinstance(p, range) and p.step == 1 for p in (mine, others)):
            return True  # both are intervals, and neither ends before the other begins
        both = np.concatenate([mine, others])
        both.sort(kind="stable")  # merges the two sorted halves
        return bool((both[1:] == both[:-1]).any())

    def among(self, other: Any) -> Any:
        """Where these records are among those of another choice; None if some are not there."""
        if self.same(other):
            return Subset(range(len(self)))
        mine, others = np.asarray(self.positions), np.asarray(other.positions)
        places = np.searchsorted(others, mine)
        if not len(others) or (others[np.minimum(places, len(others) - 1)] != mine).any():
            return None
        return Subset(places)

    def between(self, start: int, stop: int) -> Any:
        """Positions from start up to stop, counted from start, as a range or ascending."""
        mine = self.positions
        if isinstance(mine, range):
            first, last = (-(-(edge - mine.start) // mine.step) for edge in (start, stop))
            found = mine[max(first, 0) : max(last, 0)]
            return range(found.start - start, found.stop - start, found.step)
        first, last = np.searchsorted(mine, [start, stop])
        return mine[first:last] - start

    def beyond(self, start: int) -> Any:
        """Whether no position is from start on."""
        return not len(self) or self.positions[-1] < start

    def mask(self, n: int) -> np.ndarray:
        """Whether each of n records is chosen."""
        chosen = np.zeros(n, dtype=bool)
        chosen[np.asarray(self.positions, dtype=np.intp)] = True
        return chosen


class Users(Subset):
    """Users whom a public order has dealt out, in that order."""


class PublicOrder:
    """Public random order of the users, drawn without looking at them.

    Rows that do not fit into memory may deal out users in another way of the same law: what
    ``users`` gives is only handed back to the rows.

    Parameters
    ----------
    permutation : ndarray of shape (n,)
    """

    def __init__(self, permutation: Any) -> None:
        self._permutation = permutation

    def users(self, start: int, stop: int, subset: Any = None) -> Any:
        """Users from position start up to stop of the order, of the subset only."""
        found = self._permutation[start:stop]
        if subset is not None:
            found = found[subset.mask(len(self._permutation))[found]]
        return Users(found)
