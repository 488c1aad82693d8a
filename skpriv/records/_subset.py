"""Choices of records by their position, and random orders of which they are pieces.

An order is expanded from a seed and never written down.
"""

from functools import cached_property
from hashlib import sha256, shake_128
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._stored import frozen_object, set_state

if TYPE_CHECKING:
    from .._contracts import Array

BATCH_ROWS = 2**16  # rows of a file, or records of an order, that are read or drawn at once
SEED_BYTES = sha256().digest_size  # length of a seed, which nobody can guess
BLOCK_WORDS = 2**10  # 64-bit numbers that one call of the hash function makes
# Bytes of an order that are kept once they are expanded, of groups and of orders in a group each: a
# fit asks about 20 pieces of one order. It is as much as one chunk of rows takes.
KEPT_ORDER_BYTES = 2**24


@frozen_object
class Subset:
    """Records that are chosen by position, each at most once.

    Attributes
    ----------
    positions : range or ndarray of intp
        Ascending if it is an array, but where rows in memory are picked one person after the other.

    Examples
    --------
    >>> from skpriv.records import Subset
    >>> half, rest = Subset.of(slice(0, 5), 10), Subset.of([5, 7, 9], 10)
    >>> len(half), len(rest), list(half.positions)
    (5, 3, [0, 1, 2, 3, 4])
    """

    positions: Any

    @classmethod
    def of(cls, chosen: Any, n: int) -> Self:
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
        positions = np.sort(positions.astype(np.intp))  # a copy, which nobody else can change
        if not (np.diff(positions) > 0).all():
            raise ValueError("a subset has each record at most once.")
        if len(positions) and not 0 <= positions[0] <= positions[-1] < n:
            raise ValueError(f"the positions of a subset must lie in 0, ..., {n - 1}.")
        return cls(positions)

    def __len__(self) -> int:
        return len(self.positions)

    def between(self, start: int, stop: int) -> "Array | range":
        """Positions from start up to stop, counted from start, as a range or ascending."""
        mine = self.positions
        if isinstance(mine, range):
            first, last = (-(-(edge - mine.start) // mine.step) for edge in (start, stop))
            found = mine[max(first, 0) : max(last, 0)]
            return range(found.start - start, found.stop - start, found.step)
        first, last = np.searchsorted(mine, [start, stop])
        return mine[first:last] - start


class SeededOrder:
    """Uniform random order of the records, expanded from a seed by a cryptographic generator.

    Each record falls into one of up to 256 groups, by an independent uniform byte; the groups
    follow one another, and in each of them records come in a uniform order of its own. Given the
    groups all orders are equally likely, and each partition is as likely as any other of the same
    sizes: so is the whole order. A byte of each record is expanded when it is needed, and orders
    within a group only of groups that are cut in two. As much as fits into `KEPT_ORDER_BYTES` is
    kept for the next piece; the rest is expanded again, so that more records take no more memory
    than a bit for 32 rows. Up to 65,536 records are one group.

    The order of a group is that of independent random keys. Every stream is SHAKE-128 of the seed
    and a counter.

    Whether the order is secret is up to who draws the seed: see `skpriv.privacy.Session.part`. The
    order of users who answer for themselves, each one question, is public.

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
        self._seed = bytes(seed)
        self.n = int(n)
        self.n_blocks = -(-self.n // BATCH_ROWS)
        self._n_groups = min(256, 2 ** max(0, self.n_blocks - 1).bit_length())
        self._kept_groups: dict[int, np.ndarray] = {}
        self._kept_orders: dict[int, np.ndarray] = {}

    def users(self, start: int, stop: int) -> Subset:
        """Records from one place of the order up to another."""
        return SeededSubset(self, start, stop)

    def dealt(self, start: int, stop: int) -> np.ndarray:
        """Positions of the records from one place of the order up to another, as they come."""
        blocks = [self.groups(block) for block in range(self.n_blocks)]
        by_group = np.argsort(np.concatenate([np.empty(0, np.uint8), *blocks]), kind="stable")
        found = [by_group[:0]]
        for group, size, low, high in self.cuts(start, stop):
            members = by_group[:size]
            by_group = by_group[size:]
            found.append(members[self.dealt_in(group, high)[low:]])
        return np.concatenate(found)

    def groups(self, block: int) -> np.ndarray:
        """Group of each record of a block of rows."""
        if block not in self._kept_groups:
            groups = self._expanded_groups(block)
            if (block + 1) * BATCH_ROWS > KEPT_ORDER_BYTES:
                return groups
            self._kept_groups[block] = groups
        return self._kept_groups[block]

    def _expanded_groups(self, block: int) -> np.ndarray:
        size = min(BATCH_ROWS, self.n - block * BATCH_ROWS)
        if self._n_groups == 1:
            return np.zeros(size, np.uint8)
        drawn = shake_128(self._seed + b"group" + block.to_bytes(8, "little")).digest(size)
        return np.frombuffer(drawn, np.uint8) & np.uint8(self._n_groups - 1)

    @cached_property
    def before(self) -> np.ndarray:
        """Number of records of each group that stand before each block of rows."""
        counts = np.zeros((self.n_blocks + 1, self._n_groups), np.intp)
        for block in range(self.n_blocks):
            counts[block + 1] = np.bincount(self.groups(block), minlength=self._n_groups)
        return counts.cumsum(axis=0)

    def cuts(self, start: int, stop: int) -> Any:
        """Yield each group, its size, and where in its order two places of the whole one lie."""
        first = 0
        for group, size in enumerate(self.before[-1].tolist()):
            yield group, size, *(min(max(place - first, 0), size) for place in (start, stop))
            first += size

    def dealt_in(self, group: int, count: int) -> np.ndarray:
        """The first records of the order of a group, by their number among those of the group."""
        if group not in self._kept_orders:
            seed = self._seed + bytes([group] if group else [])
            order = _shuffled(seed, int(self.before[-1, group]))
            if len(self._kept_orders) * order.nbytes > KEPT_ORDER_BYTES:  # about equal ones
                self._kept_orders = {}
            if order.nbytes > KEPT_ORDER_BYTES:
                return order[:count]
            self._kept_orders[group] = order
        return self._kept_orders[group][:count]


class SeededSubset(Subset):
    """Records from one place of a seeded order up to another.

    They are found block by block; all positions are written down only where they are asked for.
    """

    _order: Any
    _start: int
    _stop: int
    _last: Any

    def __init__(self, order: Any, start: int, stop: int) -> None:
        # The parent is frozen and has a field for positions, which are only computed when needed.
        set_state(self, _order=order, _start=start, _stop=stop, _last=(None, None))

    def __len__(self) -> int:
        return self._stop - self._start

    @cached_property
    def positions(self) -> np.ndarray:
        """All positions, ascending."""
        return self.between(0, self._order.n)

    @cached_property
    def _chosen(self) -> Any:
        """Whether all records of each group are chosen, and which ones of a group that is cut."""
        complete = []
        partly = {}
        for group, size, low, high in self._order.cuts(self._start, self._stop):
            complete.append(high - low == size)
            if 0 < high - low < size:
                partly[group] = np.zeros(size, bool)
                partly[group][self._order.dealt_in(group, high)[low:]] = True
        return np.array(complete), partly

    def between(self, start: int, stop: int) -> np.ndarray:
        """Positions from start up to stop, counted from start."""
        stop = min(stop, self._order.n)
        first = start // BATCH_ROWS
        blocks = map(self._in_block, range(first, -(-stop // BATCH_ROWS)))
        chosen = np.concatenate([np.empty(0, bool), *blocks])
        return np.flatnonzero(chosen[start - first * BATCH_ROWS : stop - first * BATCH_ROWS])

    def _in_block(self, block: int) -> Any:
        """Whether each record of a block of rows is chosen; the last answer is kept."""
        if self._last[0] != block:
            complete, partly = self._chosen
            groups = self._order.groups(block)
            chosen = complete.take(groups) if complete.any() else np.zeros(len(groups), bool)
            for group, members in partly.items():
                here = np.flatnonzero(groups == group)
                first = self._order.before[block, group]
                chosen[here] = members[first : first + len(here)]
            object.__setattr__(self, "_last", (block, chosen))
        return self._last[1]

    def __repr__(self) -> str:
        return f"SeededSubset of {len(self)} records"


def _shuffled(seed: bytes, count: int) -> np.ndarray:
    """Uniform order of so many numbers, by keys; if two are equal, all are drawn again."""
    blocks = -(-count // BLOCK_WORDS)
    start = 0
    while True:
        keys = _words(seed, start, blocks)[:count]
        order = np.argsort(keys)
        if not (np.diff(keys[order]) == 0).any():
            return order
        start += blocks


def _words(seed: bytes, start: int, blocks: int) -> np.ndarray:
    """Blocks of a stream of random numbers of 64 bits."""
    size = 8 * BLOCK_WORDS
    found = (
        shake_128(seed + b"key" + index.to_bytes(8, "little")).digest(size)
        for index in range(start, start + blocks)
    )
    return np.frombuffer(b"".join(found), "<u8")
