"""A random order of the records that is expanded from a seed, and the records that it deals out."""

from hashlib import sha256, shake_128
from math import log1p
from typing import Any

import numpy as np

from ._subset import Subset

SEED_BYTES = sha256().digest_size  # as many as nobody can try
BLOCK_WORDS = 2**10  # numbers of 64 bits that one call of the hash function expands


class SeededOrder:
    """Uniform random order of the records, expanded from a seed by a cryptographic generator.

    The first half of the order are the distinct values of a stream of independent uniform
    positions, as they appear; the other positions follow in the order of independent random keys.
    Given a uniform stream both are uniform, and so is the whole order. The stream is SHAKE-128 of
    the seed and a counter. Memory and time grow with how far the order is read, up to one half, and
    a worker finds the same records from the seed alone.

    Whether the order is secret is up to who draws the seed: see `skpriv.privacy.Session.part`.

    Parameters
    ----------
    seed : bytes
    n : int
        Public number of records.

    Examples
    --------
    >>> from skpriv.records import SeededOrder
    >>> order = SeededOrder(b"seed", 10)
    >>> few, rest = order.users(0, 3), order.users(3, 10)
    >>> len(few), len(rest), sorted([*few.positions, *rest.positions]) == list(range(10))
    (3, 7, True)
    """

    def __init__(self, seed: bytes, n: int) -> None:
        self._seed, self.n = bytes(seed), int(n)
        self._found, self._read = np.empty(0, dtype=np.intp), 0
        self._rest: np.ndarray | None = None

    def users(self, start: int, stop: int) -> "SeededSubset":
        """Records from one place of the order up to another."""
        return SeededSubset(self, start, stop)

    def dealt(self, start: int, stop: int) -> np.ndarray:
        """Positions of the records from one place of the order up to another, as they come."""
        half = self.n // 2
        first = self._distinct(min(stop, half))[start:stop]
        if stop <= half:
            return first
        if self._rest is None:
            left = np.ones(self.n, dtype=bool)
            left[self._distinct(half)] = False
            self._rest = np.flatnonzero(left)[self._shuffled(self.n - half)]
        return np.concatenate([first, self._rest[max(start - half, 0) : stop - half]])

    def _distinct(self, count):
        """First distinct values of the stream of uniform positions."""
        limit = 2**64 // self.n * self.n if self.n else 0  # from here on, values would be uneven
        while len(self._found) < count:
            # As many values have about so many distinct ones among them: sorting twice is expensive
            wanted = int(-self.n * log1p(-count / self.n)) // BLOCK_WORDS
            blocks = max(0, wanted - self._read) + 1 + wanted // 100
            words = _words(self._seed, b"position", self._read, blocks)
            self._read += blocks
            drawn = (words[words <= np.uint64(limit - 1)] % np.uint64(self.n)).astype(np.intp)
            self._found = self._first(np.concatenate([self._found, drawn]))
        return self._found[:count]

    def _first(self, found):
        """Distinct values in the order in which they appear."""
        if self.n > len(found) * len(found).bit_length():  # more places than sorting takes steps
            return found[np.sort(np.unique(found, return_index=True)[1])]
        places, seen = np.arange(len(found)), np.empty(self.n, dtype=np.uint32)
        seen[found[::-1]] = places[::-1]  # of equal ones the first is written last
        return found[seen[found] == places]

    def _shuffled(self, count):
        """Uniform order of so many numbers, by keys; if two are equal, all are drawn again."""
        blocks, start = -(-count // BLOCK_WORDS), 0
        while True:
            keys = _words(self._seed, b"key", start, blocks)[:count]
            order = np.argsort(keys, kind="stable")
            if not (np.diff(keys[order]) == 0).any():
                return order
            start += blocks

    def __reduce__(self):
        return SeededOrder, (self._seed, self.n)

    def __repr__(self):
        return f"SeededOrder of {self.n} records"


class SeededSubset(Subset):
    """Records from one place of a seeded order up to another; it travels as the seed.

    Positions are found when they are first needed, and kept. Of nearly all records only those that
    are left out are kept, as long as rows are asked for block by block.
    """

    _order: Any
    _start: int
    _stop: int
    _kept: dict

    def __init__(self, order, start, stop):
        # The parent is frozen, and keeps positions, which are not known yet.
        vars(self).update(_order=order, _start=start, _stop=stop, _kept={})

    def __len__(self):
        return self._stop - self._start

    @property
    def _inverted(self):
        """Whether these are all records from a place of the first half on."""
        return self._stop == self._order.n and 2 * self._start <= self._order.n

    @property
    def _marked(self):
        """Ascending positions of the records; of the others, if it is inverted."""
        if "marked" not in self._kept:
            edges = (0, self._start) if self._inverted else (self._start, self._stop)
            self._kept["marked"] = np.sort(self._order.dealt(*edges))
        return self._kept["marked"]

    @property
    def positions(self):
        """All positions, ascending."""
        if not self._inverted:
            return self._marked
        if "positions" not in self._kept:
            self._kept["positions"] = self.between(0, self._order.n)
        return self._kept["positions"]

    def between(self, start, stop):
        """Positions from start up to stop, counted from start."""
        stop = min(stop, self._order.n)
        first, last = np.searchsorted(self._marked, [start, stop])
        found = self._marked[first:last] - start
        if not self._inverted:
            return found
        left = np.ones(max(stop - start, 0), dtype=bool)
        left[found] = False
        return np.flatnonzero(left)

    def beyond(self, start):
        """Whether no position is from start on."""
        marked = len(self._marked) - int(np.searchsorted(self._marked, start))
        return marked == (max(self._order.n - start, 0) if self._inverted else 0)

    def same(self, other):
        """Whether both choose the same records."""
        if isinstance(other, SeededSubset) and other._order is self._order:
            return (self._start, self._stop) == (other._start, other._stop)
        return super().same(other)

    def overlaps(self, other):
        """Whether some record is in both."""
        if isinstance(other, SeededSubset) and other._order is self._order:
            return max(self._start, other._start) < min(self._stop, other._stop)
        return super().overlaps(other)

    def __reduce__(self):
        return SeededSubset, (self._order, self._start, self._stop)

    def __repr__(self):
        return f"SeededSubset of {len(self)} records"


def _words(seed, purpose, start, blocks):
    """Blocks of a stream of random numbers of 64 bits."""
    size = 8 * BLOCK_WORDS
    found = (
        shake_128(seed + purpose + index.to_bytes(8, "little")).digest(size)
        for index in range(start, start + blocks)
    )
    return np.frombuffer(b"".join(found), dtype="<u8")
