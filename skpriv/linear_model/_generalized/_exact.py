"""Without privacy: maximum likelihood by Newton steps, and the score equation at it."""

from dataclasses import dataclass
from functools import partial
from operator import add
from typing import Any

import numpy as np

from ..._equations._public_maps import RowMap
from ..._linalg import RELATIVE_ZERO
from ...privacy import Procedure
from ..._equations._loop._queries import Whitened
from ._fit import ScoreFit
from ._links import Link
from ._score import ScoreEquation, ScoreQuery

MOST_STEPS = 100
CONVERGED = 1e-20  # of the deviance of the start: a Newton step that promises less is the last
SMALLEST_STEP = 2.0**-20
SHARES = (0.5, 0.5)  # of nothing: exact answers are free


@dataclass(frozen=True, eq=False)
class MaximumLikelihood(Procedure):
    """theta of the largest likelihood on clipped rows, of least norm if it is not unique.

    Newton steps, halved until the likelihood rises. Where the classes can be separated there is no
    maximum: the last of `MOST_STEPS` steps is returned.
    """

    rows: RowMap
    target: Any
    link: Link
    weighted: bool = False
    name: str = "maximum likelihood"
    sensitivity: float = float("inf")

    def run(self, rows):
        """Return theta."""
        p = self.rows.size
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
        if self.weighted:
            root = np.nan_to_num(np.clip(X[:, -1], 0.0, 1.0), nan=0.0)
            with np.errstate(all="ignore"):
                X, y = X[:, :-1], self.target.scaled(y) / root
            return self.rows.rows(X), np.nan_to_num(y), np.where(np.isfinite(y), root**2, 0.0)
        r = self.target.scaled(y)
        return self.rows.rows(X), np.nan_to_num(r), np.isfinite(r).astype(float)

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


def fit_exactly(session, rows, target, link, weighted=False):
    """Maximum likelihood, and the score equation at it.

    Returns
    -------
    ScoreFit
    """
    theta = session.release(MaximumLikelihood(rows, target, link, weighted), SHARES[0]).value
    # Rows of length at most 1: none counts for less
    query = ScoreQuery(Whitened(rows, np.eye(rows.size)), target, link, theta, weighted)
    equation = ScoreEquation.of(query, session.sum(query, SHARES[1]))
    return ScoreFit(link, np.eye(rows.size), theta, (equation,), True)
