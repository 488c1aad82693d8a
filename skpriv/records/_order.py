"""A public order of the users that is never written down: for more rows than fit into memory."""

from typing import Any
import numpy as np
from sklearn.utils import check_random_state

from ._base import BATCH_ROWS
from ._subset import Subset


class BlockOrder:
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
