"""The moments of a level by one codebook report a user, on a random row of a Hadamard matrix."""

from dataclasses import dataclass

import numpy as np

from ..._linalg import SQRT2
from ...privacy import CodebookBlocksNoise, NoiseSource, hadamard_entries
from ._queries import LevelQuery


@dataclass(frozen=True, eq=False)
class CodebookLevelQuery(LevelQuery):
    """The moments z z', z a' and r z of :class:`LevelQuery`, as a unit vector for a codebook.

    In vech coordinates of u u' their squared norm is ||z||^4 + ||z||^2 (||a||^2 + r^2), at most 3
    (2 where a is empty): the vector is divided by the root of that. The coordinate of r r, which
    nobody needs, completes it to length 1, and is all that users outside of the bins report.
    """

    @property
    def radius(self):
        """Bound on the norm of a record's moments."""
        return float(np.sqrt(3.0 if self.crossed else 2.0))

    def local_noise(self, budget):
        """Law of the sum of one report; only epsilon counts."""
        blocks = max(len(self.bins), 1)
        return CodebookBlocksNoise(budget.epsilon, self.shape[1], self.radius, blocks)

    def units(self, X, y):
        """Slot of each row's bin, and its unit vector."""
        phi, target = self.scaling.rows(X), self.scaling.target(y)
        slots, vectors = np.zeros(len(phi), dtype=np.intp), np.zeros((len(phi), self.shape[1]))
        above = np.triu_indices(self.width, 1)
        for node, rows in self.tree.locate(phi):
            slot = self.slots.get(id(node))
            if slot is None:
                continue
            d = node.size
            u = np.column_stack([phi[rows] @ self._columns[slot], target[rows] / SQRT2])
            moments = SQRT2 * u[:, above[0]] * u[:, above[1]]
            moments[:, above[0] >= d] = 0.0
            slots[rows] = slot
            vectors[rows, :d] = u[:, :d] ** 2
            vectors[np.ix_(rows, np.arange(self.width, self.shape[1]))] = moments
        vectors /= self.radius
        squares = np.einsum("ij,ij->i", vectors, vectors)
        vectors[:, self.width - 1] = np.sqrt(np.maximum(1.0 - squares, 0.0))
        return slots, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def reports(self, X, y, noise, source):
        """What each user sends: a public random row, and an index for the vector times its sign."""
        slots, vectors = self.units(X, y)
        rows = source.rows(len(X), noise.rows)
        signs = hadamard_entries(rows, slots)
        return rows, noise.directions(signs[:, None] * vectors, source)

    def randomize(self, x, y, budget, rng=None):
        """Report of one user: the code that a user's own device runs.

        Returns
        -------
        (row, report) : int, ndarray of unit length
        """
        X, target = np.asarray(x, dtype=float).reshape(1, -1), np.asarray([y], dtype=float)
        rows, reports = self.reports(X, target, self.local_noise(budget), NoiseSource(rng))
        return int(rows[0]), reports[0]
