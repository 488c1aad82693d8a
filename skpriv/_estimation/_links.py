"""Links: which function of the linear part of a model the mean of its target is."""

from abc import ABC, abstractmethod
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import special

from .._stored import frozen, renamed, stored
from ._targets import UNIFORM_VARIANCE, LocationQuery

if TYPE_CHECKING:
    from .._contracts import Scalar
    from ._public_maps import RecordMap


class Link(ABC):
    """An increasing link of a generalised linear model, in scaled units (targets in [-1, 1]).

    The mean of the target is ``mean(<phi, theta>)``. The privacy guarantee does not rely on what a
    link promises; accuracy and intervals do.

    Attributes
    ----------
    linear : bool
        Whether the mean is the linear function itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import Link
    >>> class Arctan(Link):
    ...     '''The mean is (2 / pi) arctan(t).'''
    ...     def mean(self, linear):
    ...         return 2.0 / np.pi * np.arctan(linear)
    ...     def slope_bounds(self, bound):
    ...         return 2.0 / np.pi / (1.0 + bound**2), 2.0 / np.pi
    >>> float(Arctan().mean(1.0))
    0.5
    """

    linear = False

    @abstractmethod
    def mean(self, linear: Any) -> np.ndarray:
        """Mean of the target, in [-1, 1], at values of the linear function.

        Parameters
        ----------
        linear : ndarray
            Values of the linear function.

        Returns
        -------
        ndarray of the same shape
            Means of the target.
        """

    @abstractmethod
    def slope_bounds(self, bound: Any) -> tuple[float, float]:
        """Smallest and largest derivative of ``mean`` on [-bound, bound], both positive.

        Parameters
        ----------
        bound : float
            Bound on the size of the linear function, above 0.

        Returns
        -------
        (low, high) : floats
            Smallest and largest derivative.
        """


@frozen
class StepLink(ABC):
    """A mean mu(eta) of targets r, with what fits by steps need to know of it.

    All values here are those of a line.

    The second derivative of mu is nowhere larger than the first: so an equation that was asked at a
    distance is wrong by at most half of the square of that distance, in the norm of its slope.

    Attributes
    ----------
    low, high : float
        Targets r are in [low, high].
    farthest : float
        Largest residual of a fit inside of the range of the target.
    counts : bool
        Whether residuals near the limit are counted.
    steepest : float
        Largest slope of the mean, thinned, times ``far_length``.
    limit : float or None
        Limit R at which residuals are clipped; None leaves it to the rules.
    signal : float or None
        Deviation of the linear part that is thought possible, and the most by which one step moves
        it; None is that of the target.
    far_length : float
        A whitened row psi counts in full up to length 1, like 1 / |psi| up to this length, and like
        1 / |psi|^2 beyond: its score is e v (r - mu) with e = psi / max(1, |psi|) and
        v = min(1, far_length / |psi|). So |psi| v <= far_length, and no Newton step
        rests on a slope that was cut.
    least_effective_records : float
        N below which rows are not whitened: at this N both ways are alike in the mean of many
        tables (docs/evidence/few_records.md).
    mean_effective_records : float
        N below which only the mean is released: of a line with an intercept slopes lose .18 of R2
        at 25, and gain .06 at 32 and 45; of classes and of counts they gain from here on.
    told_effective_records : float
        N below which predictions have no intervals and coefficients no standard errors: those of
        strong effects of two classes, of which noise hides the most, would not hold, see
        `least_told`.
    prior_variance : float
        Prior variance of the mean of the target, in squared half-ranges: 1/3 is that of a uniform
        prior on the range. Means of counts lie near the lower end of their range, so that they are
        not shrunk to its middle: their prior variance is infinite.
    degrees : float or None
        Factor of the sampling covariance of n records; None is n / (n - p).
    run_off : float
        If the link bends, 1 / (M q^2): a tenth of the rare levels that the noise of moments moves
        by about M lose their slope, and q is NINE_OF_TEN. M is measured with `slope_left`.
    slope_left : float
        If the link bends, the part of a usual slope that a row of a rare level with an effect has.
        Long rows count twice. An effect of 1 leaves at least 1 / e.
    parts : int
        Number k of linear parts. A link with several has a ``location_query``,
        ``score_query``, ``each`` and ``interval`` of its own.
    origin : float or ndarray of shape (k + 1,)
        Location of a model without an intercept.
    largest : float
        Linear part of the largest target; infinite where there is none.
    shrunk_by : float
        Over N, the part by which an error by the bend of the link, and the size of what is hidden,
        are larger than the released fit says, since noise shrinks a strong effect. Measured
        (docs/evidence/few_records.md).
    """

    linear = False
    low = -1.0
    high = 1.0
    farthest = 2.0
    counts = True
    signal: ClassVar[float | None] = None
    far_length = 1.0
    least_effective_records = 45.0
    mean_effective_records = 30.0
    told_effective_records = 30.0
    prior_variance = UNIFORM_VARIANCE
    degrees: ClassVar[float | None] = None
    parts: ClassVar[Any] = 1
    shrunk_by: ClassVar[float] = 0.0
    mean: ClassVar[Any]  # of each link
    score_query: ClassVar[Any]  # of links with several parts
    origin: ClassVar[Any] = 0.0
    largest: ClassVar[Any] = inf
    run_off: ClassVar[float]
    slope_left: ClassVar[float]
    free: ClassVar[Any]  # of links that bend: the mean and its slope
    steepest: float = 1.0
    limit: float | None = None

    def thin(self, mean: Any) -> Any:
        """Weight of a row by its mean, in [0, 1]."""
        return 1.0

    def slope(self, eta: Any, mean: Any) -> Any:
        """Slope of the mean, thinned, over its largest: in [0, 1]."""
        return 1.0

    def linear_part(self, mean: Any) -> Any:
        """eta of a mean: where the loop starts."""
        return mean

    def near(self, mean: Any, room: float) -> "StepLink":
        """The link for targets of this mean, where means up to `room` times it count in full."""
        return self

    def location_query(self, maps: "RecordMap") -> Any:
        """The query of the mean of the targets, where the loop starts."""
        return LocationQuery(maps.target_map, self.low, maps.row_map, self.prior_variance)

    def proved(self, limit: float) -> tuple[float, float]:
        """Weight of the slope matrix in a `ScoreQuery` with this limit, and the square of its
        sensitivity."""
        return 0.5, 4.25

    def repeated(self, matrix: np.ndarray) -> np.ndarray:
        """A block-diagonal matrix that has this one for each linear part."""
        return np.kron(np.eye(self.parts), matrix)

    def each(self, matrix: np.ndarray) -> np.ndarray:
        """A matrix from theta to coefficients, for all linear parts."""
        return matrix

    def least_told(self, p: int) -> float:
        """N from which rows of length p have standard errors."""
        return self.told_effective_records

    def enough(self, p: int) -> float:
        """N from which rows of length p are whitened: lines of few coefficients need fewer."""
        return min(self.least_effective_records, 15.0 * p if self.linear else inf)


@stored
class IdentityLink(StepLink, Link):
    """The mean is the linear function itself."""

    linear = True

    def mean(self, eta: Any) -> Any:
        """The linear function."""
        return eta

    def slope_bounds(self, bound: float) -> tuple[float, float]:
        """One."""
        return 1.0, 1.0


class BentLink(StepLink):
    """A link that bends, as that of logistic regression does.

    Its rows are weighted by the curvature of the likelihood, and may be longer than a line's.
    """

    low = 0.0
    farthest = 1.0
    signal = 3.0
    far_length = 2.0
    degrees = 1.0
    run_off = 0.071
    slope_left = 0.7
    told_effective_records = 100.0

    def newton(
        self, phi: np.ndarray, r: np.ndarray, weights: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the log-likelihood, and minus its second derivative."""
        mean, slope = self.free(phi @ theta)
        return phi.T @ (weights * (r - mean)), (phi * (weights * slope)[:, None]).T @ phi


# Weight of the slopes of two classes. With it the noise of the slopes is at most what it was when
# all residuals had the limit 1, and all that R gains is of the scores. With 1.4 standard errors are
# those of 1.2, and predictions lose a half of the gain; with 1 more strong effects are hidden
# (docs/evidence/few_records.md).
SLOPE_WEIGHT = 1.2


@stored
@frozen
class Logit(BentLink):
    """Binary targets in [0, 1]: the mean is 1 / (1 + exp(-eta)).

    Residuals are at most the limit R. If R is below 1, rows weigh R / max(mean, 1 - mean), but at
    most 1. The equation stays unbiased, as with any weight that is a function of the row alone.
    """

    counts = False
    shrunk_by = 40.0
    least_effective_records = 55.0
    steepest: float = 0.25 * BentLink.far_length
    limit: float = 1.0

    def proved(self, limit: float) -> tuple[float, float]:
        """The same where residuals are cut; where none is, of weighted rows (see `ScoreQuery`)."""
        if limit < self.limit:
            return super().proved(limit)
        return SLOPE_WEIGHT, 4.52 + 1.2 * (4.0 * limit * (1.0 - limit)) ** 4

    def least_told(self, p: int) -> float:
        """Fewer of one feature and a constant, whose effect no other one hides: 50. Measured
        (docs/evidence/few_records.md).
        """
        return min(self.told_effective_records, 12.5 * p**2)

    def thin(self, mean: Any) -> Any:
        """min(1, R / max(mean, 1 - mean)), so that no residual is beyond the limit R."""
        # A residual at its limit is not cut, however it is rounded
        return np.minimum(1.0, 0.999999999999999 * self.limit / np.maximum(mean, 1.0 - mean))

    def mean(self, eta: Any) -> Any:
        """1 / (1 + exp(-eta)), in long vector operations, which `special.expit` is not."""
        return 1.0 / (1.0 + np.exp(np.minimum(-eta, 700.0)))

    def slope(self, eta: Any, mean: Any) -> Any:
        """4 mean (1 - mean), thinned."""
        return 4.0 * mean * (1.0 - mean) * self.thin(mean)

    def linear_part(self, mean: Any) -> Any:
        """log(mean / (1 - mean))."""
        return float(special.logit(mean))

    def free(self, eta: Any) -> tuple[Any, Any]:
        """The mean and its slope."""
        mean = self.mean(eta)
        return mean, mean * special.expit(-eta)

    def deviance(
        self, phi: np.ndarray, r: np.ndarray, weights: np.ndarray, theta: np.ndarray
    ) -> "Scalar":
        """2 sum(log(1 + exp(eta)) - r eta)."""
        eta = phi @ theta
        return 2.0 * (weights @ (np.logaddexp(0.0, eta) - r * eta))


@stored
@frozen
class Log(BentLink):
    """Counts as parts of the largest one: the mean is exp(eta - offset).

    Rows with a mean above a level weigh level / mean, so that one large mean does not need as much
    room as a hundred usual ones. This keeps the equation unbiased, as any weight does that is a
    function of the row alone.

    Parameters
    ----------
    offset : float
        Logarithm of the largest count, so that eta is that of the mean count.
    """

    least_effective_records = 150.0
    mean_effective_records = 60.0
    prior_variance = inf
    steepest: float = BentLink.far_length
    offset: float = 0.0

    def mean(self, eta: Any) -> Any:
        """exp(eta - offset), also where that is above the largest count."""
        return np.exp(np.minimum(eta - self.offset, 700.0))

    @property
    def largest(self) -> float:
        """That of the largest count."""
        return self.offset

    def thin(self, mean: Any) -> Any:
        """min(1, level / mean)."""
        return self._level / np.maximum(mean, self._level)

    def slope(self, eta: Any, mean: Any) -> Any:
        """min(mean, level) / level."""
        return np.minimum(mean / self._level, 1.0)

    def linear_part(self, mean: Any) -> Any:
        """log(mean) + offset."""
        return np.log(mean) + self.offset

    def near(self, mean: float, room: float) -> StepLink:
        """With room for usual means."""
        return replace(self, steepest=self.far_length * min(1.0, room * mean))

    @property
    def _level(self) -> float:
        return self.steepest / self.far_length

    def free(self, eta: Any) -> tuple[Any, Any]:
        """The mean, which is also its own slope."""
        mean = self.mean(eta)
        return mean, mean

    def deviance(
        self, phi: np.ndarray, r: np.ndarray, weights: np.ndarray, theta: np.ndarray
    ) -> "Scalar":
        """2 sum(exp(eta - offset) - r (eta - offset))."""
        eta = phi @ theta
        return 2.0 * (weights @ (self.mean(eta) - r * (eta - self.offset)))


@stored
class LogitLink(Link):
    """Logistic regression: the mean is 2 / (1 + exp(-t)) - 1 = tanh(t / 2).

    In the units of a target in ``bounds_y=(0, 1)`` that is the logistic function of t.
    """

    def mean(self, linear: Any) -> Any:
        """tanh(linear / 2)."""
        return np.tanh(np.asarray(linear) / 2.0)

    def slope_bounds(self, bound: float) -> tuple[float, float]:
        """1 / (2 cosh(bound / 2)^2) and one half."""
        return 2.0 * (special.expit(bound) * special.expit(-bound)), 0.5


IDENTITY = IdentityLink()
LINKS: dict[str, Link] = {"identity": IDENTITY, "logit": LogitLink()}
renamed(IdentityLink, "_estimation.MeanLink", "linear_model.IdentityLink")
renamed(LogitLink, "linear_model.LogitLink")
