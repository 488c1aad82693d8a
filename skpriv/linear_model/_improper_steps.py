"""Improper gradient descent: number and size of its steps, and what they ask.

It asks for clipped gradients or whole descents, and for their error.
"""

from dataclasses import dataclass, field
from math import ceil, e, log, sqrt
from typing import ClassVar

import numpy as np
from scipy import optimize, stats

from .._estimation._certified._events import event
from .._estimation._intervals import split_failure
from .._estimation._reports import LiftedMomentsQuery
from .._estimation._scaling import Scaling
from ..privacy import ROUNDING, Procedure, Query

# time = factor (bound mu n / (D sqrt(2 e)))^(2/3) balances the bias bound / sqrt(2 e time) with the
# noise time D / (mu n) of the worst spectrum (sqrt(n) for n in the local model). The factors were
# chosen by measurement, as was the cap sqrt(n) / CAP beyond which descent fits the targets' noise.
TIME_FACTOR = {"gradient": 0.7, "output": 0.4}
GRADIENT_CHANGE = {"gradient": 4.0, "output": 2.6}
CAP = 2.5
# Fewest noisy gradients, and the largest time for each of them, with and without a curator.
N_ITER, REACH = {True: 32, False: 8}, {True: 2.5, False: 1.0}
# Under a curator every gradient is a pass over all rows. Longer descents have fewer of them, with
# more momentum, down to as many as leave exp(-5.6) in directions of large curvature: then their
# number squared is so many times the time. At n = 1e6 with 15 features, epsilon 1, errors of 70
# steps are .0008 (sphere) and .0015 (decaying scales), of 160 steps .0007 and .0028, of 50 .0059
# and .0053.
SETTLED = 12.0
MANY_PASSES = 50  # beyond which a fit says how many it takes
MAX_DESCENT = 400  # steps between which nothing is released
CONTRACTION = 3.5  # momentum must leave time for exp(-CONTRACTION) in directions of large curvature
# Rounding of a whole descent: n terms of size 4 sum to within n^2 2^-53 of one term in the worst
# order of additions, 1e-4 at n = 1e6 (and far less in compensated sums of chunks).
DESCENT_ROUNDING = 1.0 + 1e-4


def schedule(n, mu, theta_bound, same_rows, perturbation, n_iter):
    """Number of steps, their size, and their momentum.

    The time n_iter * step_size of plain descent is all that matters in directions of small
    curvature; more steps than needed cost only passes over the records, because the noise of a step
    shrinks with its size. Momentum goes further in the same number of steps.
    """
    precision = theta_bound * mu * (n if same_rows else sqrt(n))
    reach = precision / (GRADIENT_CHANGE[perturbation] * sqrt(2.0 * e))
    time = min(TIME_FACTOR[perturbation] * reach ** (2 / 3), sqrt(n) / CAP)
    if n_iter == "auto":
        n_iter = ceil(time / REACH[same_rows])
        if same_rows:
            n_iter = min(n_iter, ceil(sqrt(SETTLED * time)))
        n_iter = max(N_ITER[same_rows], n_iter)
        if perturbation == "output":
            n_iter = max(1, ceil(min(time, MAX_DESCENT)))
    plain = perturbation == "output" or time <= n_iter
    return n_iter, min(1.0, time / n_iter), 0.0 if plain else momentum_for(n_iter, time)


def momentum_for(n_iter, time):
    """Momentum with which unit steps go as far as plain descent in this time, where both are slow.

    In a direction of small curvature gradient j moves the last iterate by sum_{i < n_iter - j}
    momentum^i, and these add up to sum_k (1 - momentum^k) / (1 - momentum), k = 1..n_iter. With
    large curvature the iterates contract by sqrt(momentum) a step, which bounds the momentum.
    """

    def excess(momentum):
        powers = momentum ** np.arange(1, n_iter + 1)
        return ((1.0 - powers) / (1.0 - momentum)).sum() - time

    largest = max(0.0, 1.0 - CONTRACTION / n_iter) ** 2
    if excess(largest) <= 0.0:
        return largest
    return float(optimize.brentq(excess, 0.0, largest))


def gradient_diameter(norm, clipped=False):
    """Largest change of phi (<phi, theta> - r) for ||theta|| <= norm, when one record is replaced.

    The largest vectors at an angle a to theta have length norm cos(a) + 1, at r = -1 (or, the same
    vector, for -phi and r = 1). Two of them on both sides of theta differ by
    2 (norm cos a + 1) sin a, largest at cos a = (sqrt(1 + 8 norm^2) - 1) / (4 norm): 2 at norm 0,
    2.598 at 1, 3.520 at 2. (Chen et al. 2025 allow for 2 (norm + 1).) With <phi, theta> clipped to
    [-1, 1] the angle at which clipping begins, cos a = 1 / norm, is better beyond norm sqrt(3), and
    the change is 4 sqrt(1 - 1 / norm^2) there.

    Examples
    --------
    >>> from skpriv.linear_model._improper_steps import gradient_diameter
    >>> [round(gradient_diameter(norm), 3) for norm in (0.0, 1.0, 2.0)]
    [2.0, 2.598, 3.52]
    >>> round(gradient_diameter(2.0, clipped=True), 3)
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

    Sensitivity: see :func:`gradient_diameter`; it depends on ||theta||, which is public.
    """

    scaling: Scaling
    theta: np.ndarray
    name: str = "clipped gradient"
    limit: ClassVar[float] = 1.0  # what the sum was divided by

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.scaling.size,)

    @property
    def sensitivity(self):
        """Largest change at this theta, rounded up."""
        return gradient_diameter(float(np.linalg.norm(self.theta)), clipped=True) * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.scaling.rows(X)
        return (np.clip(phi @ self.theta, -1.0, 1.0) - self.scaling.target(y)) @ phi


@dataclass(frozen=True, eq=False)
class ReportedGradientQuery(LiftedMomentsQuery):
    """The same sum from lifted reports about phi, whose sign has the residual's mean.

    The residual clip(<phi, theta>, -1, 1) - r is at most b = 1 + min(1, ||theta||) in size, so that
    its part of b is the mean of a sign. A report costs epsilon, whatever the record and theta are;
    as a sum of vectors the sensitivity is that of LiftedMomentsQuery.
    """

    theta: np.ndarray = field(default_factory=lambda: np.zeros(0))
    name: str = "clipped gradient"
    use: ClassVar[str] = "vector"

    @property
    def limit(self):
        """Bound b on the residuals."""
        return 1.0 + min(1.0, float(np.linalg.norm(self.theta)))

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.scaling.size,)

    def records(self, X, y):
        """Rows phi, and residuals over their bound."""
        phi = self.scaling.rows(X)
        residual = np.clip(phi @ self.theta, -1.0, 1.0) - self.scaling.target(y)
        return phi, np.clip(residual / self.limit, -1.0, 1.0)

    def sum(self, X, y):
        """Exact sum over a chunk of rows, over the bound b."""
        phi, part = self.records(X, y)
        return part @ phi

    def summed(self, reports):
        """Estimate of the sum over the bound b from users' reports."""
        return reports.target

    def wire(self):
        """The query as a public task has it."""
        weights = {"kind": "residual", "theta": self.theta.tolist(), "limit": self.limit}
        return {**super().wire(), "weights": weights}


@dataclass(frozen=True, eq=False)
class GradientQuery(Query):
    """Sum of phi (<phi, theta> - r) without a clip: asked inside of a descent only.

    Sensitivity: see :func:`gradient_diameter`, by ||theta||.
    """

    scaling: Scaling
    theta: np.ndarray
    name: str = "gradient"

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.scaling.size,)

    @property
    def sensitivity(self):
        """Largest change at this theta, rounded up."""
        return gradient_diameter(float(np.linalg.norm(self.theta))) * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.scaling.rows(X)
        return (phi @ self.theta - self.scaling.target(y)) @ phi


@dataclass(frozen=True, eq=False)
class GramQuery(Query):
    """Sum of phi (phi, r)' as a matrix: asked inside of a descent only, which reuses it.

    Replacing a record moves phi phi' by sqrt(2) at most, and r phi by 2: sqrt(6) together.
    """

    scaling: Scaling
    name: str = "moments"
    sensitivity: float = sqrt(6.0) * ROUNDING

    @property
    def shape(self):
        """Rows of the Gram matrix, and the moment with the target beside it."""
        return (self.scaling.size, self.scaling.size + 1)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.scaling.rows(X)
        return np.column_stack([phi.T @ phi, phi.T @ self.scaling.target(y)])


@dataclass(frozen=True, eq=False)
class HeldOutErrorQuery(Query):
    """Sum of ((c - r) c, phi (c - r)) with c = clip(<phi, theta>, -1, 1), at a public theta.

    (c - r) c lies in [-1/4, 2] and ||phi (c - r)|| <= 2: sensitivity sqrt(2.25^2 + 4^2).
    """

    scaling: Scaling
    theta: np.ndarray
    name: str = "held-out error"
    sensitivity: float = sqrt(4.0**2 + 2.25**2) * ROUNDING

    @property
    def shape(self):
        """One, and the number of coordinates."""
        return (1 + self.scaling.size,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.scaling.rows(X)
        clipped = np.clip(phi @ self.theta, -1.0, 1.0)
        residual = clipped - self.scaling.target(y)
        return np.append(residual @ clipped, residual @ phi)


@dataclass(frozen=True, eq=False)
class Descent(Procedure):
    """Last iterate of projected gradient descent on the mean square loss (Algorithm 5), from 0.

    Every step is theta <- Proj_R(theta - step (S theta - b)) with S the mean of phi phi' <= I,
    which does not expand distances for step <= 2. Replacing one of the m records moves step k by
    another (step / m) D(r_k) at most, where r_k = min(R, k step) bounds ||theta_k|| and D is
    :func:`gradient_diameter`. Sensitivity: the sum over the steps. (Chen et al. 2025 split the
    records among the steps, which has the same sensitivity and more sampling error.)

    Parameters
    ----------
    scaling : Scaling
    n_records : int
        Public number of records that it is run on.
    n_steps : int
    step : float in (0, 2]
    radius : float
        R, the radius of the ball.
    """

    scaling: Scaling
    n_records: int
    n_steps: int
    step: float
    radius: float
    name: str = "descent"

    @property
    def sensitivity(self):
        """Largest change of the last iterate when one record is replaced, rounded up."""
        norms = np.minimum(self.radius, self.step * np.arange(self.n_steps))
        changes = sum(gradient_diameter(norm) for norm in norms)
        return self.step * changes / self.n_records * DESCENT_ROUNDING

    def run(self, rows):
        """Last iterate; with few columns every step uses the Gram matrix instead of the rows."""
        gradient = self._gradient_by_rows(rows)
        if self.scaling.size <= 2 * self.n_steps:
            gradient = self._gradient_by_moments(rows)
        theta = np.zeros(self.scaling.size)
        for _ in range(self.n_steps):
            theta -= self.step * gradient(theta)
            theta *= min(1.0, self.radius / max(float(np.linalg.norm(theta)), 1e-300))
        return theta

    def _gradient_by_rows(self, rows):
        return lambda theta: rows.sum(GradientQuery(self.scaling, theta)) / self.n_records

    def _gradient_by_moments(self, rows):
        moments = rows.sum(GramQuery(self.scaling)) / self.n_records
        return lambda theta: moments[:, :-1] @ theta - moments[:, -1]


@dataclass(frozen=True, eq=False)
class ErrorTerms(Procedure):
    """Two means over held-out records at a public theta: (c - r) c, and the norm of phi (c - r).

    With c = clip(<phi, theta>, -1, 1): (c - r) c lies in [-1/4, 2], and the vector mean moves by at
    most 4 / m, so that the pair moves by at most sqrt(4^2 + 2.25^2) / m. The norm has no dimension
    in its sensitivity, nor in its own deviation.

    Parameters
    ----------
    scaling : Scaling
    n_records : int
        Public number m of records that are held out.
    theta : ndarray
    """

    scaling: Scaling
    n_records: int
    theta: np.ndarray
    name: str = "held-out error"

    @property
    def sensitivity(self):
        """Largest change of the pair when one record is replaced, rounded up."""
        return sqrt(4.0**2 + 2.25**2) / self.n_records * ROUNDING

    def run(self, rows):
        """Return the pair."""
        total = rows.sum(HeldOutErrorQuery(self.scaling, self.theta))
        return np.array([total[0], np.linalg.norm(total[1:])]) / self.n_records


def root_mean_square_bound(terms, scale, m, theta_bound, failure):
    """Upper bound on the root of V = E (c - f*)^2 for c = clip(<phi, theta>), on an independent x.

    V = E Y for Y = (c - r)(c - f*), whose mean over the m held-out records is at most
    a + theta_bound h in the two released terms; E Y^2 <= 4 V since |c - r| <= 2, and E Y - Y <= 5.
    So V <= a + theta_bound h + sqrt(8 l V / m) + 5 l / (3 m) by Bernstein's inequality.
    """
    of_noise, of_mean = split_failure(failure, 1.0, 1.0)
    of_noise, of_mean = event("noise of the terms", of_noise), event("their mean", of_mean)
    slack = scale * sqrt(1.0 + theta_bound**2) * stats.norm.isf(of_noise)
    length = log(1.0 / of_mean)
    middle = max(terms[0] + theta_bound * terms[1] + slack, 0.0) + 5.0 * length / (3.0 * m)
    linear = sqrt(8.0 * length / m)
    return min(2.0, (linear + sqrt(linear**2 + 4.0 * middle)) / 2.0)
