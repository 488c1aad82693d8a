"""Random orders of the records: one expanded from a seed, and one that is never written down.

The second is for more rows than fit into memory.
"""

from hashlib import sha256, shake_128
from math import log1p
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ._base import BATCH_ROWS
from ._subset import Subset

SEED_BYTES = sha256().digest_size  # as many as nobody can try
BLOCK_WORDS = 2**10  # numbers of 64 bits that one call of the hash function expands


class RandomOrder:
    """A uniform random order of the records, of which parts are told by public places."""


class SeededOrder(RandomOrder):
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


class BlockOrder(RandomOrder):
    """Uniform random order of the users, of which only counts per block of rows are kept.

    How many of the first s users of a uniform order lie in each block is multivariate
    hypergeometric, and between two such counts that are known it is so again, of the users between
    them. Given the counts, the users of a block come in a uniform order of their own, which is
    drawn again from a public seed whenever it is needed. The law of all sets of users that are
    dealt out is hence that of one permutation; within a set users come by position.

    Parameters
    ----------
    n : int
    permutation : callable
        ``permutation(m)`` draws a uniform permutation of m numbers: the public seed.
    block_rows : int

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.records import BlockOrder
    >>> order = BlockOrder(10, np.random.RandomState(0).permutation, block_rows=4)
    >>> first, rest = order.users(0, 6), order.users(6, 10)
    >>> len(first), len(rest), sorted([*first.positions, *rest.positions]) == list(range(10))
    (6, 4, True)
    """

    def __init__(self, n: int, permutation: Any, block_rows: int = BATCH_ROWS) -> None:
        # A permutation of 256 numbers is a seed of 1,683 bits
        self._seed = np.asarray(permutation(256)).tolist()
        self._n, self._block_rows = n, block_rows
        starts = np.arange(0, n, block_rows)
        sizes = np.minimum(starts + block_rows, n) - starts
        self._counts = {0: np.zeros_like(sizes), n: sizes}

    def users(self, start: int, stop: int, subset: Any = None) -> Any:
        """Users from position start up to stop of the order, of the subset only."""
        before, after = self._count(start), self._count(stop)
        return BlockUsers(self._seed, self._n, self._block_rows, before, after, subset)

    def _count(self, position):
        """Return how many of the first users of the order lie in each block."""
        if position not in self._counts:
            lower = max(known for known in self._counts if known < position)
            upper = min(known for known in self._counts if known > position)
            rng = _generator(self._seed, 0, position)
            between = self._counts[upper] - self._counts[lower]
            drawn = _hypergeometric(rng, between, position - lower)
            self._counts[position] = self._counts[lower] + drawn
        return self._counts[position]


class BlockUsers(Subset):
    """Users whom a block order has dealt out; the positions are found block by block."""

    _seed: list
    _n: int
    _block_rows: int
    _before: np.ndarray
    _after: np.ndarray
    _subset: Subset | None
    _last: tuple
    _size: int

    def __init__(self, seed, n, block_rows, before, after, subset=None):
        # The parent is frozen, and keeps positions, which are not kept here.
        vars(self).update(_seed=seed, _n=n, _block_rows=block_rows, _subset=subset)
        vars(self).update(_before=before, _after=after, _last=(None, None))
        whole = int((after - before).sum())
        size = whole if subset is None else sum(map(len, self._by_block()))
        vars(self).update(_size=size)

    def __len__(self):
        return self._size

    @property
    def positions(self):
        """All positions, ascending: for few rows."""
        return np.concatenate([np.arange(0), *self._by_block()]).astype(np.intp)

    def between(self, start, stop):
        """Positions from start up to stop, counted from start."""
        blocks = range(start // self._block_rows, -(-stop // self._block_rows))
        found = [self._in_block(block) for block in blocks]
        users = np.concatenate([np.arange(0), *found])
        first, last = np.searchsorted(users, [start, stop])
        return users[first:last] - start

    def beyond(self, start):
        """Whether no user has a position from start on."""
        block = start // self._block_rows
        left = (self._after - self._before)[block + 1 :].sum()
        return not left and not len(self.between(start, (block + 1) * self._block_rows))

    def _by_block(self):
        return (self._in_block(block) for block in range(len(self._before)))

    def _in_block(self, block):
        """Ascending positions of the users in a block; the last answer is kept."""
        known, users = self._last
        if known == block:
            return users
        users = np.arange(0)
        if block < len(self._before) and self._after[block] > self._before[block]:
            start = block * self._block_rows
            size = min(self._block_rows, self._n - start)
            order = _generator(self._seed, 1, block).permutation(size)
            users = start + np.sort(order[self._before[block] : self._after[block]])
            if self._subset is not None:
                chosen = start + np.asarray(self._subset.between(start, start + size), np.intp)
                users = np.intersect1d(users, chosen, assume_unique=True)
        vars(self)["_last"] = (block, users)
        return users


def _generator(seed, *place):
    """Generator of one place of the order, always the same."""
    rng = check_random_state(0)
    rng.seed([*seed, *(part for number in place for part in divmod(int(number), 2**32))])
    return rng


def _hypergeometric(rng, sizes, drawn):
    """Counts per block of a uniform choice: by halves, all nodes of a level of the tree at once."""
    levels = [np.asarray(sizes)]
    while len(levels[-1]) > 1:
        level = levels[-1]
        level = np.append(level, 0) if len(level) % 2 else level
        levels[-1] = level
        levels.append(level[::2] + level[1::2])
    counts = np.array([drawn])
    for level in levels[-2::-1]:
        left, right = level[::2], level[1::2]
        counts = counts[: len(left)]
        # Nothing is drawn where there is no choice.
        free = (counts > 0) & (left > 0) & (right > 0)
        chosen = np.where(left > 0, np.minimum(counts, left), 0)
        chosen[free] = rng.hypergeometric(left[free], right[free], counts[free])
        counts = np.column_stack([chosen, counts - chosen]).ravel()
    return counts[: len(sizes)]
