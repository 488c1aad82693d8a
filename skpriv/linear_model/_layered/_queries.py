"""What layered regression asks: the moments of every bin of a level at once."""

from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from ..._estimation._scaling import Scaling
from ..._linalg import unvech, vech, vech_size
from ...privacy import ROUNDING, Query
from ._laws import CROSS_WEIGHT, law_of
from ._tree import PartitionTree


@dataclass(frozen=True, eq=False)
class LevelQuery(Query):
    """Sum of u u' in the last bin of each record's path, u = (z, a / sqrt 2, r / sqrt 2).

    z = gamma^k basis'phi has norm at most 1 by the choice of the bin, a = resolved'phi and r too;
    bins are blocks of one vector, zero but for the record's own. All depends on released answers
    only.

    Gaussian noise: of u u' only z z', z a' and r z are asked, in vech coordinates, which weigh them
    by 1, 1, 1. Replacing a record within a bin has squared norm at most 2 W (1 + p) + 2 (1 - p^2),
    p = <z, z'>, with W = 2 (W = 1 where a is empty): largest at p = W / 2, where it is
    W^2 / 2 + 2 W + 2 = 8 (4.5). Moving it to another bin: 2 (W + 1) = 6 (4), less. Attained at
    <z, z'> = W / 2, r = -r', a = -a' of norm 1, which bins of large k approach.

    Parameters
    ----------
    scaling : Scaling
    tree : PartitionTree
        Made of released answers.
    bins : tuple of Bin
        Those that are asked about; noise is drawn for them only.
    crossed : bool
        Whether any of the bins may have ancestors.
    level : int
    """

    scaling: Scaling
    tree: PartitionTree
    bins: tuple
    crossed: bool
    level: int = 1
    slots: dict = field(init=False, repr=False)

    def __post_init__(self):
        slots = {id(node): slot for slot, node in enumerate(self.bins)}
        object.__setattr__(self, "slots", slots)

    def __setstate__(self, state):
        """Nodes of a copy, for a worker, are others: they are found by who they are."""
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def name(self):
        """What the privacy report calls it."""
        return f"level {self.level}, {len(self.bins)} bins"

    @property
    def width(self):
        """Length of u."""
        return self.scaling.size + 1

    @property
    def shape(self):
        """A row of vech coordinates for each bin."""
        return (len(self.bins), vech_size(self.width))

    @property
    def sensitivity(self):
        """Of the whole vector over all bins, see above."""
        extra = 2.0 if self.crossed else 1.0
        return sqrt(extra**2 / 2.0 + 2.0 * extra + 2.0) * ROUNDING

    @cached_property
    def _columns(self):
        """Maps from phi to the part of u without r, one a bin."""
        root = sqrt(CROSS_WEIGHT)
        return [np.hstack([b.factor * b.basis, root * b.resolved]) for b in self.bins]

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.scaling.rows(X)
        target = sqrt(CROSS_WEIGHT) * self.scaling.target(y)
        total = np.zeros(self.shape)
        for node, rows in self.tree.locate(phi):
            slot = self.slots.get(id(node))
            if slot is None:
                continue
            u = np.column_stack([phi[rows] @ self._columns[slot], target[rows]])
            moments = u.T @ u
            moments[node.size :, node.size :] = 0.0
            total[slot] += vech(moments)
        return total

    def deliver(self, answer, overlap):
        """Hand the answer to the bins; overlap says if levels share their records."""
        law, root = law_of(answer.noise), sqrt(CROSS_WEIGHT)
        for node, value in zip(self.bins, answer.value, strict=True):
            moments, d = unvech(value, self.width), node.size
            beside = moments[:d, d:] / root
            node.receive(moments[:d, :d], beside[:, :-1], beside[:, -1], law, answer.n, overlap)
