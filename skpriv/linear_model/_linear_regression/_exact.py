"""Without privacy: ordinary least squares, and its own Newton equation for intervals."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..._equations._newton import FirstEquation, NewtonEquation, NewtonFit
from ..._equations._public_maps import RowMap, TargetMap
from ...privacy import Procedure
from ._queries import NewtonQuery, Whitened, WhiteningQuery

CHUNK_ENTRIES = 2**20
RELATIVE_ZERO = 1e-14  # of the largest eigenvalue of a mean of phi phi'
SHARES = (0.25, 0.25, 0.5)  # of nothing: exact answers are free


@dataclass(frozen=True, eq=False)
class LeastSquares(Procedure):
    """Coefficients and intercept of least squares on clipped rows, of least norm if not unique.

    By a QR factorisation that is updated with one chunk of rows at a time: as exact as one of all
    the rows, without a copy of them.
    """

    rows: RowMap
    target: TargetMap
    name: str = "least squares"
    sensitivity: float = float("inf")

    def run(self, X, y):
        """Return (coef, intercept) as one vector, in the units of X and y."""
        n, d = X.shape
        size = max(d + 1, CHUNK_ENTRIES // (d + 1))
        parts = [slice(start, start + size) for start in range(0, n, size)]
        y = np.clip(y, *self.target.bounds_y)
        centre = np.zeros(d + 1)
        if self.target.fit_intercept:
            centre[:d] = sum(self.rows.clipped(X[part]).sum(axis=0) for part in parts) / n
            centre[d] = y.sum() / n
        factor = np.empty((0, d + 1))
        for part in parts:
            chunk = np.column_stack([self.rows.clipped(X[part]), y[part]]) - centre
            factor = linalg.qr(np.vstack([factor, chunk]), mode="r")[0][: d + 1]
        cut = max(n, d) * np.finfo(np.float64).eps
        coef = linalg.lstsq(factor[:, :d], factor[:, d], cond=cut)[0] if d else np.zeros(0)
        return np.append(coef, centre[d] - centre[:d] @ coef)


def fit_exactly(session, rows, target):
    """Least squares, and the Newton equation at it.

    Returns
    -------
    (coef, intercept, NewtonFit)
    """
    solution = session.release(LeastSquares(rows, target), SHARES[0]).value
    coef, intercept = solution[:-1], float(solution[-1])
    p = rows.size
    query = WhiteningQuery(Whitened(rows, np.eye(p)))
    gram, _ = query.gram(session.sum(query, SHARES[1]))
    values, vectors = np.linalg.eigh(gram)
    # Rows of length at most 1: no weight is below 1
    values = np.maximum(values, RELATIVE_ZERO * values[-1])
    W = (vectors * np.sqrt(values[0] / values)) @ vectors.T
    theta = rows.theta(coef / target.radius, (intercept - target.centre) / target.radius)
    b = np.linalg.solve(W.T, theta)
    step = NewtonQuery(Whitened(rows, W), target, 0.0, b, 2.0 + float(np.linalg.norm(b)))
    equation = NewtonEquation.of(step, session.sum(step, SHARES[2]))
    moment = equation.moment + equation.gram @ b
    first = FirstEquation(moment, equation.gram, equation.n, 0.0, 0.0, whole=True)
    fit = NewtonFit(0.0, 0.0, W, b, equation.square, equation.gram, first, (equation,), True)
    return coef, intercept, fit
