"""Weighted records, which are records of the same unit ball.

Least squares with weights v = weight / max_weight in [0, 1] is least squares of the records
(s phi, s r), s = sqrt(v). They have |s phi| <= 1 and |s r| <= 1, as all records have, whatever the
weight is: every query of them keeps its sensitivity, and a change of the weight is a change of the
record like any other. A released residual Gram of them is that of weighted least squares,
sum v^2 zeta^2 phi phi'. The constant of phi is s times what it was and therefore no longer public.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._linalg import add_gram, blocks_of
from ._public_maps import TargetMap

UNIT_TARGET = TargetMap((-1.0, 1.0), False)  # of s r


@dataclass(frozen=True, eq=False)
class WeightedMap:
    """The map of rows (x, s) to s phi(x), where phi is another public map's.

    It stands in place of a `RowMap` or a `Scaling` without an intercept, whose constant is one of
    the coordinates.

    Parameters
    ----------
    plain : RowMap or Scaling, or what stands in its place
    """

    plain: Any
    fit_intercept = False
    shrink = 1.0
    weighted = True

    @property
    def size(self):
        """Length p of phi."""
        return self.plain.size

    n_features = size  # of what `clipped` returns

    @property
    def constant(self):
        """The vector c with (s phi)'c = s, None without an intercept."""
        return self.plain.constant

    def roots(self, X):
        """Last column s of rows, in [0, 1]; what is not a number counts as 0."""
        return np.nan_to_num(np.clip(X[:, -1], 0.0, 1.0), nan=0.0)

    def rows(self, X):
        """Return s phi of a chunk, of norm at most 1 up to rounding; total."""
        return self.plain.rows(X[:, :-1]) * self.roots(X)[:, None]

    clipped = rows  # what is linear in them is fitted without an intercept of its own

    def blocks(self, X):
        """Yield (slice, s phi) of one block of ``rows`` after the other."""
        for block in blocks_of(len(X), self.size):
            yield block, self.rows(X[block])

    def sums(self, X, left, weigh=None):
        """Sums of w^2 s^2 phi phi' and of left_i w s phi over a chunk; see `Scaling.sums`."""
        gram, sums = np.zeros((self.size, self.size), order="F"), np.zeros((len(left), self.size))
        for block, rows in self.blocks(X):
            if weigh is not None:
                rows = rows * weigh(block, partial(np.matmul, rows))[:, None]
            add_gram(gram, rows)
            sums += left[:, block] @ rows
        return gram, sums

    def target(self, y):
        """Targets s r of a chunk, which are clipped once more; NaN becomes 0."""
        return UNIT_TARGET.scaled(y)

    def weigh(self, instruments, X):
        """Instruments s e."""
        return instruments * self.roots(X)[:, None]

    def theta(self, coef, intercept):
        """Return the parameter of phi: the coefficients themselves."""
        return np.asarray(coef)
