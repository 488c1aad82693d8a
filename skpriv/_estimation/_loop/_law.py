"""The law of estimates of a fit of the loop, at points and of its coefficients."""

from dataclasses import field
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from ..._linalg import psd_part, quadratic_forms, unwarned
from ..._stored import frozen_object
from .._cells import MOSTLY, across_all, estimable_weights
from .._coefficients import LawSource, LawSums
from .._intervals import noise_share, shrunk_covariance
from .._levels import USUAL_QUANTILE

if TYPE_CHECKING:
    from ..._contracts import Array

FUNCTION = "function"
FITTED = "fitted"
LEAST_SQUARES = "least_squares"


UNEQUAL = 0.5  # deviation of the robust variance over the homoskedastic one, on real tables


STUDENT = (USUAL_QUANTILE**2 + 1.0) / 4.0


# Least robust variance over the homoskedastic one: one deviation below it, because the released
# residual Gram has noise.
LEAST_ROBUST = 1.0 - UNEQUAL


def inversion_excess(
    slopes: np.ndarray, moments: np.ndarray, variances: np.ndarray, scale: float, quantile: float
) -> "Array":
    """Deviations by which inversion is wider than the delta method, above the noise of slopes.

    Let m = d g + error with variance v, and let the noise of the slope d have the scale s. The
    answers allow each g with (m - d g)^2 <= q^2 (v + s^2 g^2), which is an interval where |d| > q
    s. If noise makes a slope larger, it makes m / d smaller, and its variance as well. So the
    variance of the delta method is too small where d is not far above its noise.

    Parameters
    ----------
    slopes : ndarray of shape (k,)
        d, each larger than q s.
    moments, variances : ndarray of shape (k,)
    scale, quantile : float

    Returns
    -------
    ndarray of shape (k,)
        Roots of what is missing in the variance at m / d for q deviations to reach the farther end.
    """
    size = np.abs(moments)
    beyond_noise = slopes**2 - (quantile * scale) ** 2
    root = quantile * np.sqrt(variances * beyond_noise + (size * scale) ** 2)
    half = (size * slopes + root) / beyond_noise - size / slopes  # from m / d to the farther end
    counted = variances / slopes**2 + (scale * size / slopes**2) ** 2
    return np.sqrt(np.maximum((half / quantile) ** 2 - counted, 0.0))


@frozen_object
class LoopLaw:
    """The estimates that a fit gives at points, and the parts of their covariance.

    Nearly all of it is linear in the points: matrices hold it, whatever the points are.

    Attributes
    ----------
    solution : ndarray of shape (p,)
        The estimates are ``points @ solution``.
    dual : ndarray of shape (p, p)
        The points times it are the vectors v, in any orthonormal coordinates. Those of the slope's
        eigenvectors keep what rounding does in a hidden direction out of the others.
    residual_gram : ndarray of shape (p, p)
        Noisy mean of ee' xi^2 over the squared part that is not cut.
    residual_scale : float
    typical_gram : ndarray of shape (p, p)
        What it would be if the noise of the target had the same variance everywhere.
    records : float
        Number of records in the mean.
    noise : float
        Variance of the privacy noise of each coordinate.
    noise_dual : ndarray of shape (p, p)
        The dual of the privacy noise, which may not be that of the records: see :class:`KnownMean`.
    shared : ndarray of shape (p, n_shared)
        The points times it are deviations of independent errors that points share.
    inverted : ndarray of shape (p, n_inverted)
        The same of what the inversion of slopes adds.
    hidden : ndarray of shape (p, n_hidden)
        The directions that noise hides, as orthonormal columns.
    size : float
        Deviation of the coefficient in each of them.
    lost : float, default=MOSTLY
        Largest part of the squared length of an estimable point that lies in these directions. It
        is that of rounding where all is exact.
    held : ndarray of shape (p, n_held)
        Directions of cells that may be empty, as orthonormal columns. An estimable point has no
        part in them.
    empty : list of int
        These cells, of those that the fit knows.
    least : float
        Part of the homoskedastic variance that the robust one is not below: there is noise in it.
    quantile : float
        Half-width of an interval of the level, in deviations.
    """

    solution: np.ndarray
    dual: np.ndarray
    residual_gram: np.ndarray
    residual_scale: float
    typical_gram: np.ndarray
    records: float
    noise: float
    noise_dual: np.ndarray
    shared: np.ndarray
    inverted: np.ndarray
    hidden: np.ndarray
    held: np.ndarray
    size: float = 0.0
    lost: float = MOSTLY
    empty: list[int] = field(default_factory=list)
    least: float = LEAST_ROBUST
    quantile: float = USUAL_QUANTILE

    def value(self, points: np.ndarray) -> "Array":
        """The estimates, shape (n_points,)."""
        return points @ self.solution

    def variances(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Variances of the points by sampling and by privacy, each of shape (n_points,).

        The residual Gram is robust, but noisy: the value that equal variances would give has the
        weight `noise_share`. If neither is above 0, the variance is NaN: it is not known. The
        uncertainty of the variance V, with standard deviation s, widens intervals as Student's t
        with 2 (V / s)^2 degrees of freedom does: its squared quantile is 1 + (z^2 + 1) (s / V)^2 /
        4 times that of a normal variable, to first order.
        """
        dual, noisy = np.split(self._roots @ points.T, [self.dual.shape[1]])
        robust, typical = np.vsplit(np.vstack([self.residual_gram, self.typical_gram]) @ dual, 2)
        robust, typical, squares, privacy = (
            np.einsum("ij,ij->j", one, other)
            for one, other in ((robust, dual), (typical, dual), (dual, dual), (noisy, noisy))
        )
        noise = self.residual_scale * squares
        typical = np.maximum(typical, 1e-300)
        share = noise_share(robust, typical, noise, UNEQUAL)
        sampling = np.maximum((1.0 - share) * robust + share * typical, self.least * typical)
        sampling /= self.records
        with unwarned():
            uncertain = (noise / self.records) ** 2 * (1.0 - share)
        return sampling + STUDENT * uncertain / (sampling + privacy), privacy

    def interval(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half-width at the level of the law; infinite if not resolved."""
        half = self.quantile * np.sqrt(sum(self.variances(points)))
        resolved = self.resolved(points) & np.isfinite(half)
        return np.where(resolved, self.value(points), 0.0), np.where(resolved, half, np.inf)

    def resolved(self, points: np.ndarray) -> "Array":
        """Whether each point is estimable.

        At least half of it lies in directions that are told from noise, and no part in a direction
        of a cell that may be empty. If all is exact, none lies in any hidden direction.
        """
        return across_all(points, self.hidden, self.lost) & self.across_cells(points)

    def across_cells(self, points: np.ndarray) -> np.ndarray:
        """Whether each point has no part in a direction of a cell that may be empty."""
        return across_all(points, self.held)

    def estimable_weights(self, points: np.ndarray) -> np.ndarray:
        """Weights of independent sums of points that are estimable, with all of their sums.

        The variance of each sum is shrunk by itself, so that a joint test would depend on which
        sums span all. They are the orthonormal points whose vectors v are orthogonal, too.
        """
        weights = estimable_weights(points, self.held, self.hidden, self.lost)
        turns = np.linalg.svd(weights @ points @ self.dual)[0]
        return turns.T @ weights

    def covariances(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Covariance matrices by sampling and by privacy, each of shape (n_points, n_points).

        The one of sampling has the weights of :meth:`variances`, whose values are its diagonal: the
        number of records cancels.
        """
        sampling, _ = self.variances(points)
        dual = points @ self.dual
        noise_dual = points @ self.noise_dual
        robust = dual @ self.residual_gram @ dual.T
        robust = psd_part((robust + robust.T) / 2.0)
        equal = dual @ self.typical_gram @ dual.T
        noise = self.residual_scale * quadratic_forms(dual)
        robust = shrunk_covariance(robust, equal, noise, UNEQUAL)
        diagonal = np.diagonal(robust)
        scale = np.sqrt(sampling / np.where(diagonal > 0.0, diagonal, 1.0))
        robust = robust * np.outer(scale, scale)
        np.fill_diagonal(robust, sampling)
        deviations = points @ self._deviations
        return robust, self.noise * noise_dual @ noise_dual.T + deviations @ deviations.T

    @property
    def _deviations(self) -> "Array":
        """The points times these are deviations of independent errors by privacy, beside noise."""
        return np.column_stack([self.shared, self.inverted, self.size * self.hidden])

    @cached_property
    def _roots(self) -> np.ndarray:
        """The factors of the points for v and for their deviation by privacy, in this order."""
        # A sum of squares of many linear functions is one of as many as there are coordinates
        roots = [sqrt(self.noise) * self.noise_dual, self._deviations]
        return np.vstack([self.dual.T, np.linalg.qr(np.column_stack(roots).T, mode="r")])


BOUNDED = (
    "their intervals are so wide that the stated ranges allow no more, for a line that stays "
    "inside of them"
)


NO_LINE = (
    "its equation would be all noise at this budget, or was not asked since nothing is clipped in "
    "it: the estimand that is called 'fitted' is the line or curve that was fitted"
)


TOO_FEW_RECORDS = (
    "the records are too few for coefficients with standard errors at this budget: fewer features "
    "help"
)


@frozen_object
class LoopSource(LawSource):
    """Coefficients by the law of a fit of the loop.

    Attributes
    ----------
    law : LoopLaw
    W : ndarray of shape (p, p)
        Takes weights of theta to points of the law.
    base, origin : ndarray of shape (n_coefficients, p) and (n_coefficients,)
        The coefficients are ``base @ theta + origin``, of which theta is in units of the radius.
    radius : float
    corners : tuple of ndarray, of shapes (n_features, p) and (p,), or None
        Where a line stays in the bounds of the target for rows inside of theirs: half of the range
        of each feature, and the constant.
    level : float
        The most that such a line may be, in units of the radius.
    hiding, too_few : str
        What is said of coefficients that answers do not tell, and of those of rare cells.
    """

    law: LoopLaw
    W: np.ndarray
    base: np.ndarray
    origin: np.ndarray
    radius: float
    corners: "tuple[np.ndarray, Array] | None"
    level: float
    hiding: str
    too_few: str

    def estimable_weights(self, matrix: np.ndarray) -> np.ndarray:
        """Weights of independent sums of these rows that are estimable."""
        return self.law.estimable_weights(matrix @ self.base @ self.W.T)

    def at(self, matrix: np.ndarray, shift: np.ndarray) -> LawSums:
        """The law of ``matrix @ coefficients + shift``."""
        theta = matrix @ self.base
        points = theta @ self.W.T
        sampling, privacy = (self.radius**2 * part for part in self.law.covariances(points))
        resolved = self.law.resolved(points)
        # For features z in half-ranges from their middles a line m + b0 + b'z that stays in the
        # bounds of the target has |b0| + |b|_1 at most 1 + |m|, so that a weighted sum of these is
        # that times the largest weight. It is added as a standard deviation, since least-squares
        # lines may leave the bounds in corners without rows.
        largest = np.full(len(points), np.inf)
        if self.corners is not None:
            weights = np.column_stack([theta @ corner.T for corner in self.corners])
            largest = self.radius * (self.level * abs(weights).max(axis=1))
        bounded = ~resolved & np.isfinite(largest)
        privacy[bounded, bounded] += largest[bounded] ** 2
        in_cells = ~self.law.across_cells(points)
        reasons: dict[str, np.ndarray] = {}
        for words, places in ((self.too_few, in_cells), (self.hiding, ~resolved & ~in_cells)):
            reasons |= {words: places & ~bounded, f"{words}; {BOUNDED}": places & bounded}
        reasons = {words: places for words, places in reasons.items() if places.any()}
        estimate = self.radius * self.law.value(points) + matrix @ self.origin + shift
        return LawSums(
            estimate, sampling, privacy, resolved | bounded, reasons, bounded
        ).where_resolved()
