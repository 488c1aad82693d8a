"""What improper gradient descent asks: clipped gradients, whole descents, and their error."""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from scipy import stats

from ...privacy import ROUNDING, Procedure, Query
from ..._equations._scaling import Scaling

CHUNK_ENTRIES = 2**19  # of a chunk of rows: it stays in the cache
# Rounding of a whole descent: n terms of size 4 sum to within n^2 2^-53 of one term in the worst
# order of additions, 1e-4 at n = 1e6 (and far less in blocked sums).
DESCENT_ROUNDING = 1.0 + 1e-4


def gradient_sensitivity(norm, clipped=False):
    """Largest change of phi (<phi, theta> - r) for ||theta|| <= norm, when one record is replaced.

    The largest vectors at an angle a to theta have length norm cos(a) + 1, at r = -1 (or, the same
    vector, for -phi and r = 1). Two of them on both sides of theta differ by
    2 (norm cos a + 1) sin a, largest at cos a = (sqrt(1 + 8 norm^2) - 1) / (4 norm): 2 at norm 0,
    2.598 at 1, 3.520 at 2. (Chen et al. 2025 allow for 2 (norm + 1).) With <phi, theta> clipped to
    [-1, 1] the angle at which clipping begins, cos a = 1 / norm, is better beyond norm sqrt(3), and
    the change is 4 sqrt(1 - 1 / norm^2) there.

    Examples
    --------
    >>> from skpriv.linear_model._improper_sgd._steps import gradient_sensitivity
    >>> [round(gradient_sensitivity(norm), 3) for norm in (0.0, 1.0, 2.0)]
    [2.0, 2.598, 3.52]
    >>> round(gradient_sensitivity(2.0, clipped=True), 3)
    3.464
    """
    if norm == 0.0:
        return 2.0
    if clipped and norm > sqrt(3.0):
        return 4.0 * sqrt(1.0 - 1.0 / norm**2)
    # The same as above, without cancellation for a small norm.
    cosine = 2.0 * norm / (sqrt(1.0 + 8.0 * norm**2) + 1.0)
    return 2.0 * (norm * cosine + 1.0) * sqrt(1.0 - cosine**2)


@dataclass(frozen=True, eq=False)
class ClippedGradientQuery(Query):
    """Sum of phi (clip(<phi, theta>, -1, 1) - r) (Algorithm 6), at a public theta of any norm.

    Sensitivity: see :func:`gradient_sensitivity`; it depends on ||theta||, which is public.
    """

    scaling: Scaling
    theta: np.ndarray
    name: str = "clipped gradient"

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.scaling.size,)

    @property
    def sensitivity(self):
        """Largest change at this theta, rounded up."""
        return gradient_sensitivity(float(np.linalg.norm(self.theta)), clipped=True) * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.scaling.rows(X)
        return (np.clip(phi @ self.theta, -1.0, 1.0) - self.scaling.target(y)) @ phi


@dataclass(frozen=True)
class Part:
    """Public choice of records by their position, evenly spaced.

    Parameters
    ----------
    held_out : float
        Fraction of the records that are held out for calibration.
    calibration : bool
        Whether this part is the held-out one.
    """

    held_out: float
    calibration: bool = False

    def positions(self, n):
        """Positions of the part among n records."""
        crossed = np.diff(np.floor(np.arange(n + 1) * self.held_out + 1e-9)) > 0.0
        return np.flatnonzero(crossed == self.calibration)

    def chunks(self, X, y):
        """Rows and targets of the part, a chunk at a time."""
        positions = self.positions(len(X))
        rows = max(64, min(2**14, CHUNK_ENTRIES // max(1, X.shape[1])))
        for start in range(0, len(positions), rows):
            chosen = positions[start : start + rows]
            yield X[chosen], y[chosen]


@dataclass(frozen=True, eq=False)
class PartSum(Procedure):
    """Sum of a query over a part of the records: at most the query's own sensitivity."""

    query: Query
    part: Part

    @property
    def name(self):
        """What the privacy report calls it."""
        return self.query.name

    @property
    def sensitivity(self):
        """Largest change when one record is replaced, rounded up."""
        return self.query.sensitivity

    def run(self, X, y):
        """Exact sum over the part."""
        total = np.zeros(self.query.shape)
        for rows, targets in self.part.chunks(X, y):
            total += self.query.sum(rows, targets)
        return total


@dataclass(frozen=True, eq=False)
class Descent(Procedure):
    """Last iterate of projected gradient descent on the mean square loss (Algorithm 5), from 0.

    Every step is theta <- Proj_R(theta - step (S theta - b)) with S the mean of phi phi' <= I,
    which does not expand distances for step <= 2. Replacing one of the m records moves step k by
    another (step / m) D(r_k) at most, where r_k = min(R, k step) bounds ||theta_k|| and D is
    :func:`gradient_sensitivity`. Sensitivity: the sum over the steps. (Chen et al. 2025 split the
    records among the steps, which has the same sensitivity and more sampling error.)

    Parameters
    ----------
    scaling : Scaling
    part : Part
    n_records : int
        Public number of records in the part.
    n_steps : int
    step : float in (0, 2]
    radius : float
        R, the radius of the ball.
    """

    scaling: Scaling
    part: Part
    n_records: int
    n_steps: int
    step: float
    radius: float
    name: str = "descent"

    @property
    def sensitivity(self):
        """Largest change of the last iterate when one record is replaced, rounded up."""
        norms = np.minimum(self.radius, self.step * np.arange(self.n_steps))
        changes = sum(gradient_sensitivity(norm) for norm in norms)
        return self.step * changes / self.n_records * DESCENT_ROUNDING

    def run(self, X, y):
        """Last iterate; with few columns every step uses the Gram matrix instead of the rows."""
        gradient = self._gradient_by_rows(X, y)
        if self.scaling.size <= 2 * self.n_steps:
            gradient = self._gradient_by_moments(X, y)
        theta = np.zeros(self.scaling.size)
        for _ in range(self.n_steps):
            theta -= self.step * gradient(theta)
            theta *= min(1.0, self.radius / max(float(np.linalg.norm(theta)), 1e-300))
        return theta

    def _chunks(self, X, y):
        for rows, targets in self.part.chunks(X, y):
            yield self.scaling.rows(rows), self.scaling.target(targets)

    def _gradient_by_rows(self, X, y):
        def gradient(theta):
            total = np.zeros_like(theta)
            for phi, r in self._chunks(X, y):
                total += (phi @ theta - r) @ phi
            return total / self.n_records

        return gradient

    def _gradient_by_moments(self, X, y):
        p = self.scaling.size
        gram, moment = np.zeros((p, p)), np.zeros(p)
        for phi, r in self._chunks(X, y):
            gram += phi.T @ phi
            moment += phi.T @ r
        return lambda theta: (gram @ theta - moment) / self.n_records


@dataclass(frozen=True, eq=False)
class ErrorTerms(Procedure):
    """Two means over held-out records at a public theta: (c - r) c, and the norm of phi (c - r).

    With c = clip(<phi, theta>, -1, 1): (c - r) c lies in [-1/4, 2], and the vector mean moves by at
    most 4 / m, so that the pair moves by at most sqrt(4^2 + 2.25^2) / m. The norm has no dimension
    in its sensitivity, nor in its own deviation.

    Parameters
    ----------
    scaling : Scaling
    part : Part
    n_records : int
        Public number m of records in the part.
    theta : ndarray
    """

    scaling: Scaling
    part: Part
    n_records: int
    theta: np.ndarray
    name: str = "held-out error"

    @property
    def sensitivity(self):
        """Largest change of the pair when one record is replaced, rounded up."""
        return sqrt(4.0**2 + 2.25**2) / self.n_records * ROUNDING

    def run(self, X, y):
        """Return the pair."""
        product, gradient = 0.0, np.zeros(self.scaling.size)
        for rows, targets in self.part.chunks(X, y):
            phi = self.scaling.rows(rows)
            clipped = np.clip(phi @ self.theta, -1.0, 1.0)
            residual = clipped - self.scaling.target(targets)
            product += residual @ clipped
            gradient += residual @ phi
        return np.array([product, np.linalg.norm(gradient)]) / self.n_records


def root_mean_square_bound(terms, scale, m, theta_bound, failure):
    """Upper bound on the root of V = E (c - f*)^2 for c = clip(<phi, theta>), on an independent x.

    V = E Y for Y = (c - r)(c - f*), whose mean over the m held-out records is at most
    a + theta_bound h in the two released terms; E Y^2 <= 4 V since |c - r| <= 2, and E Y - Y <= 5.
    So V <= a + theta_bound h + sqrt(8 l V / m) + 5 l / (3 m) by Bernstein's inequality.
    """
    slack = scale * sqrt(1.0 + theta_bound**2) * stats.norm.isf(failure / 2.0)
    length = log(2.0 / failure)
    middle = max(terms[0] + theta_bound * terms[1] + slack, 0.0) + 5.0 * length / (3.0 * m)
    linear = sqrt(8.0 * length / m)
    return min(2.0, (linear + sqrt(linear**2 + 4.0 * middle)) / 2.0)
