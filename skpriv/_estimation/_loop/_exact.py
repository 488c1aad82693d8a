"""Without privacy: ordinary least squares with its intervals, and maximum likelihood."""

from collections.abc import Sequence
from functools import partial
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

from ..._linalg import FLOAT_STEP, RELATIVE_ZERO
from ..._stored import frozen_object
from ...privacy import SIDE_SHARE, Procedure
from .._links import IDENTITY
from .._targets import scaled_targets
from ._steps import at_solution

if TYPE_CHECKING:
    from .._public_maps import RecordMap
    from ...privacy import Session, SessionPart
    from ..._contracts import Array, Scalar
    from ...records import Rows
    from ._fit import LoopFit


@frozen_object
class LeastSquares(Procedure):
    """Coefficients and intercept of least squares on clipped rows, of least norm if not unique.

    By a QR factorisation that is updated with one chunk of rows at a time: as exact as one of all
    the rows, without a copy of them.
    """

    maps: "RecordMap"
    name = "least squares"
    sensitivity = float("inf")

    def run(self, rows: "Rows") -> np.ndarray:
        """Return (coef, intercept) as one vector, in the units of X and y."""
        d = self.maps.n_features
        centre = np.zeros(d + 1)
        factor = np.empty((0, d + 1))
        if self.maps.fit_intercept:
            total = rows.reduce(self._total, np.add, np.zeros(d + 2))
            centre = total[:-1] / max(total[-1], 1.0)
        factor = rows.reduce(lambda X, y: self._chunk(X, y) - centre, _triangular, factor)
        cut = max(rows.n, d) * FLOAT_STEP
        coef = linalg.lstsq(factor[:, :d], factor[:, d], cond=cut)[0] if d else np.zeros(0)
        return np.append(coef, centre[d] - centre[:d] @ coef)

    def _total(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.append(self._chunk(X, y).sum(axis=0), len(y))

    def _chunk(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.column_stack([self.maps.row_map.clipped(X), np.clip(y, *self.maps.bounds_y)])


def _triangular(factor: np.ndarray, rows: np.ndarray) -> "Array":
    """Triangular factor of a triangular one and more rows."""
    return linalg.qr(np.vstack([factor, rows]), mode="r")[0][: rows.shape[1]]


def fit_exactly(
    session: "Session | SessionPart", maps: "RecordMap", priors: Sequence[np.ndarray]
) -> "LoopFit":
    """The `LoopFit` at the solution of least squares, or shrunk by priors if there are any."""
    solution = session.release(LeastSquares(maps), 1.0 - 2.0 * SIDE_SHARE).value
    theta = maps.theta(solution[:-1], float(solution[-1]))
    return at_solution(session, maps, IDENTITY, theta, priors)


@frozen_object
class MaximumLikelihood(Procedure):
    """theta of the largest likelihood on clipped rows, of least norm if it is not unique.

    Newton steps, halved until the likelihood rises, up to one that hardly changes it: the error of
    that step is the square of what was left. If the classes can be separated, there is no maximum,
    and the steps end where next to nothing is left to gain.
    """

    maps: "RecordMap"
    link: Any
    name = "maximum likelihood"
    sensitivity = float("inf")

    @property
    def size(self) -> Any:
        """Number of coordinates."""
        return self.maps.size * self.link.parts

    def run(self, rows: "Rows") -> "Array":
        """Return theta."""
        theta = np.zeros(self.size)
        value = self._deviance(rows, theta)
        least = RELATIVE_ZERO * abs(value)  # of what a step may promise
        while True:
            zero = np.zeros((self.size, self.size + 1))
            slopes = rows.reduce(partial(self._slopes, theta), np.add, zero)
            step = np.linalg.lstsq(slopes[:, :-1], slopes[:, -1], rcond=RELATIVE_ZERO)[0]
            while (moved := self._deviance(rows, theta + step)) > value + least:
                step /= 2.0
            theta = theta + step
            if moved >= value - least:
                return theta
            value = moved

    def _chunk(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """phi, r and weights of the records that count."""
        row_map = self.maps.row_map
        link = self.link
        r, roots = scaled_targets(row_map, self.maps.target_map, X, y, link.low, link.high)
        counts = np.isfinite(r)
        return row_map.plain_rows(X), np.where(counts, r, 0.0), np.where(counts, roots**2, 0.0)

    def _deviance(self, rows: "Rows", theta: np.ndarray) -> "Scalar":
        return rows.reduce(lambda X, y: self.link.deviance(*self._chunk(X, y), theta), add, 0.0)

    def _slopes(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        gradient, curvature = self.link.newton(*self._chunk(X, y), theta)
        return np.column_stack([curvature, gradient])
