"""Without privacy: maximum likelihood by Newton steps."""

from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any

import numpy as np

from ..._equations._loop._queries import handed
from ..._linalg import RELATIVE_ZERO
from ...privacy import Procedure

MOST_STEPS = 100
CONVERGED = 1e-20  # of the deviance of the start: a Newton step that promises less is the last
SMALLEST_STEP = 2.0**-20


@dataclass(frozen=True, eq=False)
class MaximumLikelihood(Procedure):
    """theta of the largest likelihood on clipped rows, of least norm if it is not unique.

    Newton steps, halved until the likelihood rises. Where the classes can be separated there is no
    maximum: the last of `MOST_STEPS` steps is returned.
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
        p = self.size
        theta = np.zeros(p)
        value = start = self._deviance(rows, theta)
        for _ in range(MOST_STEPS):
            zero = (np.zeros(p), np.zeros((p, p)))
            gradient, hessian = rows.reduce(partial(self._slopes, theta), _sums, zero)
            values, vectors = np.linalg.eigh(hessian)
            seen = values > RELATIVE_ZERO * max(values[-1], 0.0)
            step = vectors[:, seen] @ ((vectors[:, seen].T @ gradient) / values[seen])
            factor = 1.0
            while factor >= SMALLEST_STEP:
                moved = self._deviance(rows, theta + factor * step)
                if moved <= value + RELATIVE_ZERO * start:
                    break
                factor /= 2.0
            else:
                return theta
            theta, value = theta + factor * step, moved
            if factor == 1.0 and gradient @ step <= CONVERGED * max(start, 1e-300):
                break
        return theta

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
