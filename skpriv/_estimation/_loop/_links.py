"""Links: the mean of the target as a public function of the linear part of a model."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import special


@dataclass(frozen=True)
class MeanLink:
    """A mean mu(eta) of targets r, with what the loop needs to know of it; this is a line's.

    The second derivative of mu is nowhere larger than the first: so an equation that was asked at a
    distance is wrong by at most half of the square of that distance, in the norm of its slope.

    Attributes
    ----------
    low, high : float
        Targets r are in [low, high].
    limit : float or None
        Limit R at which residuals are clipped; None leaves it to the rules.
    counts : bool
        Whether residuals near the limit are counted.
    steepest : float
        Largest slope of the mean, thinned, times ``far``.
    slope_weight, squared_sensitivity : float
        Weight of the slope matrix in `ScoreQuery`, and the squared sensitivity of that query.
    signal : float or None
        Deviation of the linear part that is thought possible, and the most by which one step moves
        it; None is that of the target.
    far : float
        A whitened row psi counts in full up to length 1, like 1 / |psi| up to this length, and like
        1 / |psi|^2 beyond: its score is e v (r - mu) with e = psi / max(1, |psi|) and
        v = min(1, far / |psi|). So |psi| v <= far: no Newton step rests on a slope that was cut.
    least_effective_records : float
        N below which rows are not whitened and, where the link bends, only the mean is released.
        Counts lose by less than 150 (at N of 105 and 130, p of 20 and 40).
    mean_effective_records : float
        N below which only the mean of a line with an intercept is released: at 25 slopes lose .18
        of R2, at 32 and 45 they gain .06 (docs/evidence/few_records.md).
    degrees : float or None
        Factor of the sampling covariance of n records; None is n / (n - p).
    parts : int
        Number k of linear parts. A link with several has ``rates_query`` in place of the question
        of the mean, ``score_query``, ``each`` and ``interval``.
    origin : float or ndarray of shape (k + 1,)
        Location of a model without an intercept.
    """

    linear: ClassVar[bool] = True
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    limit: ClassVar[float | None] = None
    counts: ClassVar[bool] = True
    slope_weight: ClassVar[float] = 0.5
    squared_sensitivity: ClassVar[float] = 4.25
    signal: ClassVar[float | None] = None
    far: ClassVar[float] = 1.0
    least_effective_records: ClassVar[float] = 100.0
    mean_effective_records: ClassVar[float] = 30.0
    degrees: ClassVar[float | None] = None
    parts: ClassVar[Any] = 1
    origin: ClassVar[Any] = 0.0
    steepest: float = 1.0

    def mean(self, eta):
        """Mean mu(eta) of the target."""
        return eta

    def thin(self, mean):
        """Weight of a row by its mean, in [0, 1]."""
        return 1.0

    def slope(self, eta, mean):
        """Slope of the mean, thinned, over its largest: in [0, 1]."""
        return 1.0

    def free(self, eta):
        """The mean and its slope, held nowhere."""
        return eta, np.ones_like(eta)

    def linear_part(self, mean):
        """eta of a mean: where the loop starts."""
        return mean

    def near(self, mean, room):
        """The link for targets of this mean, where means up to `room` times it count in full."""
        return self

    def each(self, matrix):
        """A matrix from theta to coefficients, for all linear parts."""
        return matrix

    def enough(self, p):
        """N from which rows of length p are whitened: two records for each coefficient."""
        return max(self.least_effective_records, 2.0 * p)

    @property
    def farthest(self):
        """Largest residual of a fit inside of the range of the target."""
        return 1.0 - self.low


class BentLink(MeanLink):
    """A link that bends: its rows are weighed by their curvature, and may be longer."""

    linear = False
    low = 0.0
    signal = 3.0
    far = 2.0
    degrees = 1.0

    def newton(self: Any, phi, r, weights, theta):
        """Gradient of half of the likelihood, and its curvature."""
        mean, slope = self.free(phi @ theta)
        return phi.T @ (weights * (r - mean)), (phi * (weights * slope)[:, None]).T @ phi


@dataclass(frozen=True)
class Logit(BentLink):
    """Binary targets in [0, 1]: the mean is 1 / (1 + exp(-eta)), and no residual exceeds 1."""

    limit = 1.0
    counts = False
    slope_weight = 1.0
    squared_sensitivity = 4.0
    steepest: float = 0.25 * BentLink.far

    def mean(self, eta):
        """1 / (1 + exp(-eta)), in long vector operations, which `special.expit` is not."""
        return 1.0 / (1.0 + np.exp(np.minimum(-eta, 700.0)))

    def slope(self, eta, mean):
        """4 mean (1 - mean)."""
        return 4.0 * mean * (1.0 - mean)

    def linear_part(self, mean):
        """log(mean / (1 - mean))."""
        return float(special.logit(mean))

    def free(self, eta):
        """The mean and its slope."""
        mean = self.mean(eta)
        return mean, mean * special.expit(-eta)

    def deviance(self, phi, r, weights, theta):
        """2 sum(log(1 + exp(eta)) - r eta)."""
        eta = phi @ theta
        return 2.0 * float(weights @ (np.logaddexp(0.0, eta) - r * eta))


@dataclass(frozen=True)
class Log(BentLink):
    """Counts as parts of the largest one: the mean is exp(eta - offset), held at 1.

    Rows with a mean above a level weigh level / mean, so that one large mean does not need
    as much room as a hundred usual ones. That keeps the equation unbiased, as any weight does that
    is a function of the row alone.

    Parameters
    ----------
    offset : float
        Logarithm of the largest count, so that eta is that of the mean count.
    """

    least_effective_records = 150.0
    steepest: float = BentLink.far
    offset: float = 0.0

    def mean(self, eta):
        """exp(eta - offset), at most 1."""
        return np.exp(np.minimum(eta - self.offset, 0.0))

    def thin(self, mean):
        """min(1, level / mean)."""
        return self._level / np.maximum(mean, self._level)

    def slope(self, eta, mean):
        """min(mean, level) / level, and 0 where the mean is held."""
        return np.where(eta < self.offset, np.minimum(mean / self._level, 1.0), 0.0)

    def linear_part(self, mean):
        """log(mean) + offset."""
        return float(np.log(mean)) + self.offset

    def near(self, mean, room):
        """With room for usual means."""
        return replace(self, steepest=self.far * min(1.0, room * mean))

    @property
    def _level(self):
        return self.steepest / self.far

    def free(self, eta):
        """exp(eta - offset), twice: it is held nowhere."""
        mean = np.exp(np.minimum(eta - self.offset, 700.0))
        return mean, mean

    def deviance(self, phi, r, weights, theta):
        """2 sum(exp(eta - offset) - r (eta - offset))."""
        eta = phi @ theta
        mean, _ = self.free(eta)
        return 2.0 * float(weights @ (mean - r * (eta - self.offset)))


IDENTITY = MeanLink()
