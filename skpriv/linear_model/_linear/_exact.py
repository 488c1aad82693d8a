"""Without privacy: ordinary least squares, and its own equation for intervals."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import linalg

from ..._estimation._loop._links import IDENTITY
from ..._estimation._loop._steps import SHARE, at_solution
from ..._estimation._public_maps import RowMap, TargetMap
from ...privacy import Procedure


@dataclass(frozen=True, eq=False)
class LeastSquares(Procedure):
    """Coefficients and intercept of least squares on clipped rows, of least norm if not unique.

    By a QR factorisation that is updated with one chunk of rows at a time: as exact as one of all
    the rows, without a copy of them.
    """

    rows: RowMap
    target: TargetMap
    penalty: np.ndarray | None = None  # public: the squares of penalty @ coef are added
    name: str = "least squares"
    sensitivity: float = float("inf")

    def run(self, rows):
        """Return (coef, intercept) as one vector, in the units of X and y."""
        d = self.rows.n_features
        centre, factor = np.zeros(d + 1), np.empty((0, d + 1))
        if self.target.fit_intercept:
            total = rows.reduce(self._total, np.add, np.zeros(d + 2))
            centre = total[:-1] / max(total[-1], 1.0)
        factor = rows.reduce(partial(self._centred, centre), _triangular, factor)
        if self.penalty is not None:
            rough = np.column_stack([self.penalty, np.zeros(len(self.penalty))])
            factor = _triangular(factor, rough)
        cut = max(rows.n, d) * np.finfo(np.float64).eps
        coef = linalg.lstsq(factor[:, :d], factor[:, d], cond=cut)[0] if d else np.zeros(0)
        return np.append(coef, centre[d] - centre[:d] @ coef)

    def _total(self, X, y):
        return np.append(self._chunk(X, y).sum(axis=0), len(y))

    def _centred(self, centre, X, y):
        return self._chunk(X, y) - centre

    def _chunk(self, X, y):
        return np.column_stack([self.rows.clipped(X), np.clip(y, *self.target.bounds_y)])


def _triangular(factor, rows):
    """Triangular factor of a triangular one and more rows."""
    return linalg.qr(np.vstack([factor, rows]), mode="r")[0][: rows.shape[1]]


def fit_exactly(session, rows, target, penalty=None):
    """Least squares, and the equation at it.

    Returns
    -------
    (coef, intercept, LoopFit)
    """
    solution = session.release(LeastSquares(rows, target, penalty), SHARE).value
    coef, intercept = solution[:-1], float(solution[-1])
    theta = rows.theta(coef / target.radius, (intercept - target.centre) / target.radius)
    return coef, intercept, at_solution(session, rows, target, IDENTITY, theta)
