"""Without privacy: maximum likelihood by Newton steps."""

from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any

import numpy as np

from ..._estimation._loop._queries import handed
from ..._linalg import RELATIVE_ZERO
from ...privacy import Procedure


@dataclass(frozen=True, eq=False)
class MaximumLikelihood(Procedure):
    """theta of the largest likelihood on clipped rows, of least norm if it is not unique.

    Newton steps, halved until the likelihood rises, up to one that hardly changes it: the error of
    that step is the square of what was left. Where the classes can be separated there is no
    maximum, and the steps end where next to nothing is left to gain.
    """

    rows: Any
    target: Any
    link: Any
    name: str = "maximum likelihood"
    sensitivity: float = float("inf")

    @property
    def size(self):
        """Number of coordinates."""
        return self.rows.size

    def run(self, rows):
        """Return theta."""
        theta = np.zeros(self.size)
        value = self._deviance(rows, theta)
        least = RELATIVE_ZERO * abs(value)  # of what a step may promise
        while True:
            zero = (np.zeros(len(theta)), np.zeros((len(theta),) * 2))
            gradient, hessian = rows.reduce(partial(self._slopes, theta), _sums, zero)
            step = np.linalg.lstsq(hessian, gradient, rcond=RELATIVE_ZERO)[0]
            moved = self._deviance(rows, theta + step)
            while moved > value + least:
                step /= 2.0
                moved = self._deviance(rows, theta + step)
            theta = theta + step
            if moved >= value - least:
                return theta
            value = moved

    def _chunk(self, X, y):
        """phi, r and weights of the records that count."""
        r, roots = handed(self.rows, self.target, X, y, self.link.low)
        plain = self.rows.plain.rows(X[:, :-1]) if hasattr(self.rows, "plain") else None
        phi = self.rows.rows(X) if plain is None else plain
        return phi, np.nan_to_num(r), np.where(np.isfinite(r), roots**2, 0.0)

    def _deviance(self, rows, theta):
        return rows.reduce(partial(self._deviances, theta), add, 0.0)

    def _deviances(self, theta, X, y):
        phi, r, weights = self._chunk(X, y)
        return self.link.deviance(r, phi @ theta, weights)

    def _slopes(self, theta, X, y):
        phi, r, weights = self._chunk(X, y)
        mean, slope = self.link.free(phi @ theta)
        return phi.T @ (weights * (r - mean)), (phi * (weights * slope)[:, None]).T @ phi


def _sums(total, more):
    return total[0] + more[0], total[1] + more[1]
