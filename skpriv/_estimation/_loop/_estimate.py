"""What an estimate of a fit is made of, and what is known of its mean beside its steps."""

from dataclasses import dataclass

import numpy as np

from .._intervals import USUAL_QUANTILE

UNEQUAL = 0.5  # deviation of the robust variance over the homoskedastic one, on real tables
STUDENT = (USUAL_QUANTILE**2 + 1.0) / 4.0
# Of the homoskedastic variance, one deviation below it: the released residual Gram has noise
LEAST_ROBUST = 1.0 - UNEQUAL
WEIGHTING = 0.6  # part of the spread of a fit by which weights may move its mean
MOSTLY = 0.5  # part of a squared length in directions not told from noise that hides a point


@dataclass(frozen=True, eq=False)
class KnownMean:
    """The released mean of the target, which tells that of a fit without the clip of its steps.

    It says by how much the mean of the fit at a point b is above that of the target.

    Attributes
    ----------
    point : ndarray of shape (p,)
        b.
    constant : ndarray of shape (p,)
        The vector v with psi'v = 1 for every record.
    gram : ndarray of shape (p, p)
        Slope of the scores over ``slope``: mean of ee', positive semi-definite.
    value, variance : float
        The excess, and the variance of its error.
    skew : float
        How far the clip of the steps moves the mean of their solution.
    slope : float
        Slope of the mean of the target where it is, times the part of the records that have one.
    """

    point: np.ndarray
    constant: np.ndarray
    gram: np.ndarray
    value: float
    variance: float
    skew: float
    slope: float = 1.0

    def excess(self, b, noise, shared):
        """By how much the mean of an estimate b is above that of the target.

        A least-squares problem with two unknowns, the excess and s, by which the clip moves it in
        units of `skew`: that b has no excess, up to its privacy noise and the clip; what is known
        beside it; and s ~ N(0, 1), whose deviation bounds the bias for every s in [-1, 1].

        Parameters
        ----------
        b : ndarray of shape (p,)
        noise : float
            Variance of the noise of each coordinate of the moment that b solves.
        shared : ndarray of shape (p, n_shared)
            Its noise in directions that all coordinates share.

        Returns
        -------
        (excess, dual, deviation)
            The excess; the dual by which the noise of the moment enters what is known beside b; the
            deviation of what else does.
        """
        level = max(float(self.constant @ self.gram @ self.constant), 0.1)  # mean of w^2
        dual, away = self.constant / level, b - self.point
        moved = weights_move_mean(level, float(away @ self.gram @ away))
        reply = dual / self.slope
        own = noise * float(reply @ reply) + float(np.square(reply @ shared).sum()) + self.skew**2
        other = self.variance + moved
        weight = own / (own + other)  # of what is known beside b
        found = weight * (self.value + float(dual @ self.gram @ away))
        rest = weight**2 * other + (1.0 - weight) ** 2 * self.skew**2
        return found, weight * reply, float(np.sqrt(rest))


def noise_floor(values, scale, quantile=USUAL_QUANTILE):
    """Largest eigenvalue that noise alone may explain.

    Where the k smallest directions are nothing, their block of the matrix is GOE noise of size k,
    whose largest eigenvalue is about scale sqrt(2 k), and for k = 1 a normal variable. So the floor
    is that of the largest k that its k-th eigenvalue does not exceed.

    Parameters
    ----------
    values : ndarray of shape (p,)
        Eigenvalues of a matrix plus GOE(scale), increasing.
    scale : float
    quantile : float, default=that of intervals at .95
        That of a normal variable, for k = 1.
    """
    floors = scale * (np.sqrt(2.0 * np.arange(1, len(values) + 1)) - np.sqrt(2.0) + quantile)
    return float(floors[max(np.flatnonzero(values <= floors), default=0)])


def inversion_excess(slopes, moments, variances, scale, quantile):
    """Deviations by which inversion is wider than the delta method, of directions told from noise.

    With m = d g + error, of variance v, and a slope d whose noise has the scale s, the g that the
    answers allow are those with (m - d g)^2 <= q^2 (v + s^2 g^2): an interval where |d| > q s. A
    slope that noise made larger than it is makes g smaller, and what its noise does to g as well,
    which is why the variance at m / d is too small where d is not far above its noise.

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
    free = slopes**2 - (quantile * scale) ** 2
    reach = quantile * np.sqrt(variances * free + (size * scale) ** 2)
    reach = (size * slopes + reach) / free - size / slopes
    counted = variances / slopes**2 + (scale * size / slopes**2) ** 2
    return np.sqrt(np.maximum((reach / quantile) ** 2 - counted, 0.0))


def weights_move_mean(level, square):
    """Variance of the mean of a fit over its mean weighted by w^2, whose mean is the level.

    Parameters
    ----------
    level : float
    square : float
        Mean square of the fit.
    """
    return WEIGHTING**2 * max(square, 0.0) * (max(level * (1.0 - level), 0.0) + 0.02)


@dataclass(frozen=True, eq=False)
class LoopEstimate:
    """Estimates at points, and the parts of their covariance.

    Attributes
    ----------
    value : ndarray of shape (n_points,)
    dual : ndarray of shape (n_points, p)
        v of each point.
    residual_gram : ndarray of shape (p, p)
        Noisy mean of ee' xi^2 over the squared part that is not cut.
    residual_scale : float
    typical_gram : ndarray of shape (p, p)
        What it would be if the noise of the target had the same variance everywhere.
    records : float
        Number of records in the mean.
    noise : float
        Variance of the privacy noise of each coordinate.
    shared : ndarray of shape (n_points, n_shared)
        Deviations of independent errors that points share: of the noise of the slopes, and of the
        part of a point in each direction that is hardly seen, or not at all.
    resolved : ndarray of bool of shape (n_points,)
        Whether at least half of the point lies in directions that are told from noise.
    noise_dual : ndarray of shape (n_points, p), default=None
        v of the privacy noise, where it is not that of the records: see :class:`KnownMean`.
    least : float
        Part of the homoskedastic variance that the robust one is not below: there is noise in it.
    missing : ndarray of shape (n_points,), default=None
        How many times as many records each point that is not resolved needs.
    quantile : float
        Half-width of an interval of the level, in deviations.
    """

    value: np.ndarray
    dual: np.ndarray
    residual_gram: np.ndarray
    residual_scale: float
    typical_gram: np.ndarray
    records: float
    noise: float
    shared: np.ndarray
    resolved: np.ndarray
    noise_dual: np.ndarray | None = None
    least: float = LEAST_ROBUST
    missing: np.ndarray | None = None
    quantile: float = USUAL_QUANTILE

    def variances(self):
        """Variances of the points by sampling and by privacy, each of shape (n_points,).

        The residual Gram is robust, but noisy: where its noise is larger than what unequal
        variances may do, the value that equal variances would give is leant on (where that is
        nothing at all, the variance is NaN: it is not known). What remains
        uncertain of the variance V, with standard deviation s, widens intervals as with Student's t
        of 2 (V / s)^2 degrees of freedom: its squared quantile is 1 + (z^2 + 1) (s / V)^2 / 4 times
        that of a normal variable, to first order.
        """
        robust = np.einsum("ij,ij->i", self.dual @ self.residual_gram, self.dual)
        typical, ratio = self._typical()
        weight = 1.0 / (1.0 + ratio)
        sampling = np.maximum(weight * robust + (1.0 - weight) * typical, self.least * typical)
        noisy, shared = self._noise_dual, self.shared
        noise = self.noise * np.einsum("ij,ij->i", noisy, noisy)
        hidden = np.einsum("ij,ij->i", shared, shared)
        sampling, privacy = sampling / self.records, noise + hidden
        with np.errstate(invalid="ignore"):
            uncertain = (UNEQUAL * typical / self.records) ** 2 * ratio * weight
        return sampling + STUDENT * uncertain / (sampling + privacy), privacy

    def interval(self):
        """Centre and half-width at the level of the estimate; infinite if not resolved."""
        half = self.quantile * np.sqrt(sum(self.variances()))
        known = self.resolved & np.isfinite(half)
        return np.where(known, self.value, 0.0), np.where(known, half, np.inf)

    def covariances(self):
        """Covariance matrices by sampling and by privacy, each of shape (n_points, n_points).

        The one of sampling has the weights of :meth:`variances`, whose values are its diagonal.
        """
        sampling, _ = self.variances()
        robust = self.dual @ self.residual_gram @ self.dual.T / self.records
        robust = (robust + robust.T) / 2.0
        values, vectors = np.linalg.eigh(robust)
        robust = (vectors * np.maximum(values, 0.0)) @ vectors.T
        _, ratio = self._typical()
        equal = self.dual @ self.typical_gram @ self.dual.T / self.records
        known, rest = np.sqrt(1.0 / (1.0 + ratio)), np.sqrt(ratio / (1.0 + ratio))
        robust = np.outer(known, known) * robust + np.outer(rest, rest) * equal
        diagonal = np.diagonal(robust)
        scale = np.sqrt(sampling / np.where(diagonal > 0.0, diagonal, 1.0))
        robust = robust * np.outer(scale, scale)
        np.fill_diagonal(robust, sampling)
        shared = self.shared @ self.shared.T
        return robust, self.noise * self._noise_dual @ self._noise_dual.T + shared

    def _typical(self):
        """Variances times records if those of the target were equal, and the square of how many
        times as large as what unequal variances may do the noise of robust ones is.
        """
        typical = np.einsum("ij,ij->i", self.dual @ self.typical_gram, self.dual)
        typical = np.maximum(typical, 1e-300)
        squares = np.einsum("ij,ij->i", self.dual, self.dual)
        with np.errstate(over="ignore"):
            ratio = (self.residual_scale * squares / typical / UNEQUAL) ** 2
        return typical, np.minimum(ratio, 1e300)

    @property
    def _noise_dual(self):
        return self.dual if self.noise_dual is None else self.noise_dual
