"""Noisy iterative hard thresholding: features that are selected privately, and a fit on them.

What is asked of the records comes first, of rows that are clipped entry by entry, dense or sparse.
There are two intervals: a certificate for all x at once, and one given the support.
"""

from dataclasses import dataclass, replace
from math import inf, log, sqrt
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy import sparse, special, stats

from .._compat import Interval
from .._estimation._intervals import (
    _best_on_path as best_on_path,
    asymptotic_interval,
    event,
    inside_bounds,
    split_failure,
)
from .._estimation._loop._queries import SQUARES, LocationQuery
from .._estimation._moments import SQUARE_WEIGHT, NormalEquations, ridge_prior
from .._estimation._public_maps import FEATURE_LENGTH, RecordMap
from .._linalg import psd_part, row_norms, vech, vech_size
from .._parameters import ArrayLike, Count, DataNorm, Level, Positive, parameters
from ..exceptions import PrivacyError
from ..privacy import ROUNDING, SIDE_SHARE, InnerSum, Procedure, Query, models_that
from ..records import canonical
from ._base import CertifiedIntervals
from ._opening import hold_out, open_fit, scaled_rows
from ._prediction_intervals import PredictionIntervals, calibration

# Norm to which rows on a support of s features are scaled, over their largest norm sqrt(s): the
# root mean square of uniform entries. Rows of longer entries, such as signs, have weights below 1.
# Measured: 0.5 to 0.8 are equally good.
NORM_FACTOR = sqrt(1.0 / 3.0)


def clipped(X, limit):
    """X with every entry clipped to [-limit, limit] and NaN replaced by 0; sparse stays sparse.

    Stored entries are entries of the matrix in canonical form only: duplicates are added up first.
    """
    if sparse.issparse(X):
        X = canonical(X)
        data = clipped(X.data, limit)
        return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
    Z = np.clip(X, -limit, limit)
    if np.isnan(Z.sum()):
        np.nan_to_num(Z, copy=False, nan=0.0)
    return Z


def columns(X, support, limit):
    """Dense clipped columns of the support, of shape (n_rows, len(support))."""
    if sparse.issparse(X):
        return clipped(canonical(X)[:, support].toarray(), limit)
    return clipped(np.take(X, support, axis=1), limit)


@dataclass(frozen=True, eq=False)
class Iterate:
    """A released sparse linear function z'theta + level of z = x / data_max in [-1, 1]^d.

    Parameters
    ----------
    scaling : RecordMap
        Its bound of rows is data_max, the bound of single entries; it maps targets to [-1, 1].
    support : ndarray of shape (s,)
    weights : ndarray of shape (s,)
        theta on the support.
    level : float
        The intercept, in scaled units of the target.
    """

    scaling: RecordMap
    support: np.ndarray
    weights: np.ndarray
    level: float = 0.0

    def residual(self, X, y):
        """r - z'theta - level of a chunk of rows."""
        r, data_max = self.scaling.target(y) - self.level, self.scaling.row_bound
        if len(self.support):
            r -= columns(X, self.support, data_max) @ (self.weights / data_max)
        return r

    def dense(self):
        """theta as a vector of all features."""
        theta = np.zeros(self.scaling.n_features)
        theta[self.support] = self.weights
        return theta


@dataclass(frozen=True, eq=False)
class SupportRows:
    """Weighted records (w phi, w r) on a public support, with ||w phi|| <= 1 and |w r| <= 1.

    phi is the scaled row of the columns of the support, clipped entry by entry, and the weight
    w = min(1, 1 / ||phi||) multiplies row and target alike: shortening the row alone would bias the
    coefficients, a weight does not.

    Parameters
    ----------
    data_max : float
    support : ndarray of shape (s,)
    scaling : RecordMap
        Scaling of rows of length s.
    theta : ndarray of shape (p,) or None
        A released parameter, at which residuals are taken.
    """

    data_max: float
    support: np.ndarray
    scaling: RecordMap
    theta: np.ndarray | None = None

    @classmethod
    def of(cls, entries, support, exact):
        """Rows on a support; without noise every weight is 1, so that the fit is least squares."""
        s = len(support)
        norm = sqrt(s) if exact else max(1.0, NORM_FACTOR * sqrt(s))
        public = entries.bounds_y, entries.fit_intercept, s, FEATURE_LENGTH
        scaling = RecordMap.of_norm(norm * entries.row_bound, *public)
        return cls(entries.row_bound, support, scaling)

    def iterate(self, entries, theta):
        """The function of a parameter as an `Iterate` of all features."""
        coef, intercept = self.scaling.coefficients(theta)
        level = (intercept - entries.centre) / entries.radius
        return Iterate(entries, self.support, coef * entries.row_bound / entries.radius, level)

    def weighted(self, X, y):
        """(w phi, w r) of a chunk of rows."""
        phi = self.scaling.features(columns(X, self.support, self.data_max))
        r = self.scaling.target(y)
        weights = 1.0 / np.maximum(row_norms(phi), 1.0)
        return phi * weights[:, None], r * weights

    def residual(self, X, y):
        """Weighted residuals w (r - phi'theta) of a chunk of rows."""
        phi, r = self.weighted(X, y)
        return r - phi @ self.theta


class ReadsSupport:
    """Mixin of sums that read the columns of the support of their ``model`` alone."""

    model: Any
    takes_sparse: ClassVar[bool] = True

    @property
    def width(self):
        """Size of the support."""
        return max(1, len(self.model.support))


@dataclass(frozen=True, eq=False)
class ResidualSizeQuery(ReadsSupport, Query):
    """Sum of min(|residual|, 1) in [0, 1]. Sensitivity 1, attained at residuals 0 and 1.

    Parameters
    ----------
    model : Iterate or SupportRows
        What was released, whose ``residual(X, y)`` is asked about.
    """

    model: Any
    name: str = "residual size"
    shape: tuple = (1,)
    sensitivity: float = ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return np.array([np.minimum(np.abs(self.model.residual(X, y)), 1.0).sum()])


@dataclass(frozen=True, eq=False)
class ScoresQuery(Query):
    """Sum of clip(z) clip(residual) of all features: those whose sums are largest are selected.

    With z clipped to [-t, t] (t <= 1) and the residual to [-R, R], a record moves each coordinate
    by at most t R around 0. Sensitivity 2 t R in the largest coordinate, attained at z = z' = t,
    residuals R and -R. (The paper's sensitivity lacks the factor 2.)

    Parameters
    ----------
    model : Iterate
        The public start, and the released mean of the target.
    n_features : int
    entry_limit : float
        t, in units of data_max.
    residual_limit : float
        R; infinite only without privacy.
    """

    model: Iterate
    n_features: int
    entry_limit: float
    residual_limit: float
    name: str = "selection"
    takes_sparse: ClassVar[bool] = True
    norm: str = "linf"

    @property
    def sensitivity(self):
        """Largest change of a coordinate, rounded up."""
        return 2.0 * self.entry_limit * self.residual_limit * ROUNDING

    @property
    def shape(self):
        """Number of features."""
        return (self.n_features,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        limit = self.residual_limit
        residual = np.clip(self.model.residual(X, y), -limit, limit)
        data_max = self.model.scaling.row_bound
        scores = clipped(X, self.entry_limit * data_max).T @ residual / data_max
        scores[self.model.support] = 0.0  # features of the start are not to be named
        return scores


@dataclass(frozen=True, eq=False)
class SupportMomentsQuery(ReadsSupport, Query):
    """Joint sum of (r phi, vech phi phi', sqrt(1.5) r^2) of weighted records on a support.

    Sensitivity 3 / sqrt(2) by the argument of MomentsQuery, which needs only ||w phi|| <= 1 and
    |w r| <= 1.
    """

    model: SupportRows
    name: str = "moments on the support"
    sensitivity: float = 3.0 / sqrt(2.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        p = self.model.scaling.size
        return (p + vech_size(p) + 1,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi, r = self.model.weighted(X, y)
        return np.concatenate([phi.T @ r, vech(phi.T @ phi), [SQUARE_WEIGHT * (r @ r)]])

    def equations(self, answer):
        """Normal equations of an answer."""
        return NormalEquations.of_moments(answer, self.model.scaling.size, SQUARE_WEIGHT)


@dataclass(frozen=True, eq=False)
class SupportGradientQuery(ReadsSupport, Query):
    """Joint sum of (phi c, 1.5 c^2 / R) with c = clip(weighted residual, -R, R).

    With a = |c| / R and b = |c'| / R in [0, 1], replacing a record moves the squared norm by at
    most R^2 ((a + b)^2 + 2.25 (a^2 - b^2)^2), which is at most 4 R^2 as in `MarginsQuery`, for the
    same factor 1.5. Sensitivity 2 R, attained at phi = phi', c = -c' = R.

    Parameters
    ----------
    model : SupportRows
        Its theta is the point at which residuals are taken.
    residual_limit : float
        R.
    """

    model: SupportRows
    residual_limit: float
    name: str = "gradient on the support"

    @property
    def sensitivity(self):
        """Largest change of the sum, rounded up."""
        return 2.0 * self.residual_limit * ROUNDING

    @property
    def shape(self):
        """Number of coefficients, and one."""
        return (self.model.scaling.size + 1,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi, r = self.model.weighted(X, y)
        limit = self.residual_limit
        c = np.clip(r - phi @ self.model.theta, -limit, limit)
        return np.append(phi.T @ c, SQUARES * (c @ c) / limit)

    def square(self, answer):
        """Noisy sum of c^2, at least the standard deviation of its noise."""
        unit = self.residual_limit / SQUARES
        return unit * max(float(answer.value[-1]), answer.noise.scale)


@dataclass(frozen=True, eq=False)
class GradientNorm(Procedure):
    """Largest coordinate of the sum of (z, 1) residual over all features and the intercept.

    |residual| <= R = 1 + |level| + ||theta||_1 because |r| <= 1 and the entries of z lie in
    [-1, 1]. A replaced record moves every coordinate by at most 2 R, attained at z = z' of ones and
    residuals R and -R, and their maximum by no more.
    """

    model: Iterate
    name: str = "gradient norm"

    @property
    def sensitivity(self):
        """Largest change of the maximum, rounded up."""
        largest = 1.0 + abs(self.model.level) + np.abs(self.model.weights).sum()
        return 2.0 * float(largest) * ROUNDING

    def run(self, rows):
        """Exact maximum over all records."""
        total = rows.sum(InnerSum(self._gradient, (rows.n_features + 1,), takes_sparse=True))
        return np.array([np.abs(total).max()])

    def _gradient(self, X, y):
        """Sum of (z, 1) residual; without an intercept the last coordinate is 0."""
        residual, entries = self.model.residual(X, y), self.model.scaling
        scores = clipped(X, entries.row_bound).T @ residual / entries.row_bound
        return np.append(scores, residual.sum() * entries.fit_intercept)


SIZE_SHARE = 0.02  # of the budget, for the size of residuals and for the mean target each
# In a selection only the order of the scores counts: narrow clips, of entries in units of data_max
# and of residuals in units of their size, make it robust and precise.
SCREENING_LIMIT = 0.5
FIRST_PART, REFIT_STEPS = 0.4, 2  # part of the refit's budget for moments; steps share the rest
# Wider clips than asked for cost nothing while the privacy noise stays below this part of the
# sampling noise, so that the clips disappear as n grows.
NOISE_TO_SAMPLING = 0.5


def residual_size(session, model, share):
    """Released mean of |residual|, at least what its noise can resolve."""
    answer = session.sum(ResidualSizeQuery(model), share)
    return float(max(answer.value[0], 2.0 * answer.noise.scale) / answer.n)


def choose(session, scaling, start, n_nonzero, share, size_share):
    """Select features by their clipped covariances with the residuals of a public start.

    Parameters
    ----------
    session : Session
    scaling : RecordMap
        Scaling of single entries: its bound is data_max.
    start : Iterate
        Public: its features stay in the support.
    n_nonzero : int
        Number of features in the support.
    share, size_share : float
        Shares of the selection, and of the mean target and the size of the residuals each.

    Returns
    -------
    ndarray of shape (n_nonzero,)
        The sorted support.
    """
    mean, limits = LocationQuery(scaling.target_map), (1.0, inf)
    if scaling.fit_intercept:
        start = replace(start, level=float(session.sum(mean, size_share).value[0] / session.n))
    if not session.trust.exact:
        size = residual_size(session, start, size_share)
        limits = (1.0, _limit(size))
        # Where privacy noise is so small that clips would be all that matters, they stay wide.
        if _wide(session, mean, size, share / n_nonzero) < 2.0:
            limits = (SCREENING_LIMIT, min(1.0, SCREENING_LIMIT * size))
    scores = ScoresQuery(start, scaling.n_features, *limits)
    # They are sorted, since the order in which features were named carries nothing.
    named = session.top(scores, n_nonzero - len(start.support), share)
    return np.union1d(start.support, named)


@dataclass(frozen=True, eq=False)
class SupportFit:
    """What the refit released: theta, and the equations of the last correction to it.

    Attributes
    ----------
    scaling : RecordMap
        Scaling of rows on the support.
    theta : ndarray of shape (p,)
        The estimate, in the units of phi.
    origin : ndarray of shape (p,)
        The estimate before the last step.
    equations : NormalEquations
        design' (theta* - origin) = target, up to noise.
    """

    scaling: RecordMap
    theta: np.ndarray
    origin: np.ndarray
    equations: NormalEquations


def refit(session, rows, share, known=None):
    """Moments on the support, then Newton steps on clipped residuals.

    A gradient of residuals that are clipped to R has sensitivity 2 R: as the fit improves, the
    residuals and the noise shrink together, and what the noise of the Gram matrix costs is
    proportional to the error that is left. Where coefficients are known, the steps start there.
    """
    exact, scaling = session.trust.exact, rows.scaling
    moments = SupportMomentsQuery(rows)
    equations = raw = moments.equations(session.sum(moments, share * FIRST_PART))
    prior = [ridge_prior(scaling.size, scaling.fit_intercept)]
    if exact:
        theta = raw.solve_ridge(np.zeros(scaling.size))
    else:
        equations = floored(shrunk(raw, scaling.fit_intercept), raw.design_scale)
        theta = equations.solve_shrunk(prior)
        if known is not None:
            coef = known[rows.support] * scaling.radius / rows.data_max
            theta = scaling.scaled(coef, scaling.centre)
    step = share * (1.0 - FIRST_PART) / REFIT_STEPS
    for _ in range(1 if exact else REFIT_STEPS):
        model, origin = replace(rows, theta=theta), theta
        query = SupportGradientQuery(model, 1.0)
        limit = 2.0 + float(np.abs(theta).sum())  # beyond every residual
        if not exact:
            size = residual_size(session, model, step * SIDE_SHARE)
            limit = min(2.0, max(_limit(size), _wide(session, query, size, step)))
        query = replace(query, residual_limit=limit)
        answer = session.sum(query, step * (1.0 - SIDE_SHARE))
        square = query.square(answer)
        released = {"target": answer.value[:-1], "target_scale": answer.noise.scale}
        if not exact:
            correction = replace(equations, **released, square=square)
            theta = origin + correction.solve_shrunk(prior)
    spread = {"residual_gram": psd_part(raw.gram) * (square / answer.n), "square": square}
    return SupportFit(scaling, theta, origin, replace(raw, **released, **spread))


def _wide(session, query, size, share):
    """Widest clip whose noise is small beside sampling, by the noise of the query with R = 1."""
    noise = session.noise(query, share).scale
    sampling = size * sqrt(session.n / max(1, query.shape[0]))
    return NOISE_TO_SAMPLING * sampling / noise


def _limit(size):
    """R: two deviations of normal residuals of this mean absolute value; at most 2, their range."""
    return min(2.0, 2.0 * 1.25 * size)


def shrunk(equations, has_intercept):
    """Equations with a Gram matrix whose noise is shrunk, off the diagonal and along it.

    The features' entries are estimated by Stein's rule from their known noise: correlations towards
    0 and squares towards their mean, as far as they do not stand out of the noise.
    """
    size = len(equations.target) - has_intercept
    if size < 3:
        return equations
    variance = equations.design_scale**2
    block = equations.design[:size, :size]
    mean = float(np.diagonal(block).mean())
    spread = float(np.diagonal(block).var(ddof=1))
    above = block[np.triu_indices(size, 1)]
    keep = 1.0 - min(1.0, variance / 2.0 / float(np.mean(above**2)))
    along = 1.0 - min(1.0, variance / spread)
    design = equations.design.copy()
    design[:size, :size] = keep * block
    design[np.arange(size), np.arange(size)] = mean + along * (np.diagonal(block) - mean)
    scale = equations.design_scale * sqrt(keep)
    return replace(equations, design=design, gram=design, design_scale=scale, gram_scale=scale)


def floored(equations, noise):
    """Equations whose Gram matrix has no direction below its noise: a ridge where it counts.

    The noise of k coefficients, of deviation s on the diagonal and s / sqrt(2) off it, has
    eigenvalues of root mean square s sqrt((k + 1) / 2). A smaller eigenvalue says nothing, and a
    step along it would be the noise of the target divided by it, of any length: with all features
    of few records fits exploded. Raised to that size, the step is short, and the next equation, of
    smaller residuals, goes on from there. What is above the noise stays, and as n grows all is.

    Parameters
    ----------
    equations : NormalEquations
    noise : float
        Deviation of the noise of the Gram matrix as it was released, before it was shrunk.
    """
    values, vectors = np.linalg.eigh(equations.design)
    floor = noise * sqrt((len(values) + 1) / 2.0)
    design = (vectors * np.maximum(values, floor)) @ vectors.T
    return replace(equations, design=design)


# Weights of the failure probability: of the released gradient norm's noise and of the targets in a
# certificate; of the targets under all supports and of the privacy noise in the other interval.
FAILURE_WEIGHTS = (0.1, 0.9)


def support_certificate(gradient, n_coordinates, n_nonzero, sparsity, eigenvalue, confidence_level):
    """Bound on ||theta^ - theta*||_2, from the released largest coordinate of the gradient.

    With u = theta^ - theta*, M = (1/n) sum z z' and noises zeta of the targets, in an interval of
    length 2 and hence 1-sub-Gaussian, M u = gradient(theta^) + (1/n) sum z zeta. u has at most
    k = s + s* entries, so that ||u||_1 <= sqrt(k) ||u||_2 and

        eigenvalue ||u||_2^2 <= u'Mu <= sqrt(k) ||u||_2 (G + max_j |(1/n) sum z_j zeta|).

    Parameters
    ----------
    gradient : Answer
        Noisy largest coordinate of |sum z residual|.
    n_coordinates, n_nonzero, sparsity : int
        All coordinates, and those of theta^ and of theta*, the constant included.
    eigenvalue : float
        Assumed bound from below on the eigenvalues of M on any k coordinates.
    confidence_level : float

    Returns
    -------
    float
    """
    scale, (of_noise, of_targets) = gradient.noise.scale, FAILURE_WEIGHTS
    noise, rest = split_failure(1.0 - confidence_level, of_noise if scale else 0.0, of_targets)
    noise, rest = event("noise of the gradient", noise), event("errors of the targets", rest)
    released = gradient.value[0] + (scale * stats.norm.isf(noise) if scale else 0.0)
    targets = sqrt(2.0 * log(2.0 * n_coordinates / rest) / gradient.n)
    support = min(n_coordinates, n_nonzero + sparsity)
    return sqrt(support) * (max(0.0, released) / gradient.n + targets) / eigenvalue


def sparse_norms(Z, support, others):
    """Largest norm of each row over the support and ``others`` further coordinates."""
    if sparse.issparse(Z):
        squares = sparse.csr_matrix(Z, copy=True)
        squares.data = np.square(squares.data)
        inside = np.asarray(squares[:, support].sum(axis=1)).ravel()
        outside = np.ones(Z.shape[1])
        outside[support] = 0.0
        rows = np.repeat(np.arange(Z.shape[0]), np.diff(squares.indptr))
        values = squares.data * outside[squares.indices]
        order = np.lexsort((-values, rows))
        rank = np.arange(len(values)) - squares.indptr[rows]
        largest = np.where(rank < others, values[order], 0.0)  # The order keeps rows in place.
        return np.sqrt(inside + np.bincount(rows, weights=largest, minlength=Z.shape[0]))
    squares = np.square(Z)
    inside = squares[:, support].sum(axis=1)
    squares[:, support] = 0.0
    if others < Z.shape[1]:
        squares = -np.partition(-squares, others - 1, axis=1)[:, :others]
    return np.sqrt(inside + squares.sum(axis=1))


def log_supports(n_features, n_nonzero, sparsity):
    """Logarithm of the number of supports that contain the true one.

    Examples
    --------
    >>> from skpriv.linear_model._iht import log_supports
    >>> round(float(log_supports(10, 3, 1)), 3)  # log(9 * 8 / 2)
    3.584
    """
    n, k = n_features - sparsity, n_nonzero - sparsity
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def given_support(fit, points, theta_bound, supports, confidence_level):
    """Normal intervals for the last correction, for all supports that could have been chosen.

    The last step of the refit released target = design' (theta* - origin) up to noise: the interval
    of noisy normal equations for theta* - origin, moved by points @ origin. For each support that
    contains the true one, the noise of the targets is normal with the variance of that support;
    the support is chosen by the same targets, so that the quantile is for all of them at once. The
    privacy noise is fresh, and needs no such care.

    Parameters
    ----------
    fit : SupportFit
    points : ndarray of shape (n_points, p)
    theta_bound : float
    supports : float
        Logarithm of the number of supports; 0 if only the true one can have been chosen.
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
    """
    bound = theta_bound + float(np.linalg.norm(fit.origin))
    shift, equations = fit.theta - fit.origin, fit.equations
    if not supports:
        centre, half = asymptotic_interval(equations, points, shift, bound, confidence_level)
        return points @ fit.origin + centre, half
    of_choice, of_noise = FAILURE_WEIGHTS
    of_noise = 0.0 if equations.exact else of_noise
    chosen, noisy = split_failure(1.0 - confidence_level, of_choice, of_noise)
    targets = sqrt(2.0 * (supports + log(1.0 / chosen)))  # P(|Z| > t) <= exp(-t^2 / 2)
    privacy = 0.0 if equations.exact else stats.norm.isf(noisy / 2.0)
    spread = equations.spread(shift)

    def half_width(V, squares, bias):
        variance = np.einsum("ij,ij->i", V @ equations.residual_gram, V)
        noise = spread * squares + (equations.design_scale * (V @ shift)) ** 2 / 2.0
        width = targets * np.sqrt(np.maximum(variance, 0.0)) + privacy * np.sqrt(noise)
        return width + bound * bias

    centre, half = best_on_path(equations, points, half_width)
    return points @ fit.origin + centre, half


# code -> paper (Chakraborty, Roy and Basu 2024, Algorithm 1, N-IHT, with M = 1):
#   n_nonzero_coefs -> s,  data_max -> x_max,  session.top -> Peeling,
#   residual limits -> R (a clip of residuals, not of y)


@parameters
class IHTRegressor(CertifiedIntervals, PredictionIntervals):
    """N-IHT, noisy iterative hard thresholding: sparse linear regression in high dimension.

    The error grows with the logarithm of the number of features. Features are selected by a private
    hard threshold (the largest coordinates of a noisy gradient are named in one shot), and their
    coefficients are then fitted privately on the selected columns alone, in place of the further
    gradient steps of the published algorithm. SciPy sparse matrices are accepted and never
    densified.

    Parameters
    ----------
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records.
    privacy : {"central", "none"}, default="central"
        Who adds the noise: a trusted curator, or nobody. Naming the largest coordinates needs a
        curator, so that the other models raise a :class:`~skpriv.exceptions.PrivacyError`.
    data_max : float, required
        Public: every entry of X is clipped to [-data_max, data_max].
    n_nonzero_coefs : int, default=None
        Number s of features to select. None takes 10% of them, at least 1 and at most 10.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, features divided
        by data_max and target in [-1, 1]. Only ``method="asymptotic"`` intervals use it.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which does not count as a selected feature.
    coef_init : array-like of shape (n_features,), default=None
        Public coefficients, or what an earlier fit released. Features go by the residuals of it,
        ``n_nonzero_coefs`` of them are added to those where it is not zero, and the refit starts
        there: where it is good, residuals are small, and so is the noise. None is zero everywhere.
    selection_share : float in (0, 1), default=0.4
        Part of the budget for the selection; the refit by noisy moments and Newton steps has the
        rest.
    certificate_share : float in [0, 1), default=0.01
        Part of the budget for the gradient norm on which ``method="certified"`` intervals rest.
    sparsity : int, default=None
        Assumed number of non-zero true coefficients, for intervals only: at most so many in
        certified ones, where None takes ``n_nonzero_coefs``; exactly so many in asymptotic ones,
        where None assumes nothing.
    sparse_eigenvalue : float, default=0.1
        Assumed bound from below on the eigenvalues of the Gram matrix (divided by n, features
        divided by data_max, the constant included) on any ``n_nonzero_coefs + sparsity``
        features, for certified intervals only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    support_ : ndarray of shape (n_selected,)
        Sorted indices of the selected features, and of those of ``coef_init``.
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    SSPRegressor : For dense coefficients in few dimensions.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record, by
    zero-concentrated privacy (Bun and Steinke 2016): the selection is one-shot Gumbel top-s, equal
    to s exponential mechanisms in a row (Cesar and Rogers 2021), everything else is Gaussian.
    Public: the number of records and all parameters. The sensitivity of a step as published lacks
    a factor of at least 2 data_max, and the published experiments draw unbounded features. Here
    rows are always clipped, and so are residuals, so that the mean of a score has the sensitivity
    2 data_max R / n.

    The published algorithm repeats noisy steps and thresholds, and returns the last one. With its
    noise corrected it is 2 to 20 times as far from the truth (docs/rates.md). Without privacy the
    fit is least squares on the selected columns.

    **Intervals** assume that the clipped target has a linear mean in the clipped rows, and that the
    targets are independent given the rows. "certified" holds for all x at once and any n, if at
    most ``sparsity`` true coefficients are not zero and the Gram matrix has the
    ``sparse_eigenvalue``, which cannot be checked on private data. "asymptotic" is narrower and
    pointwise. It covers only if the support contains the true one, and allows for all such supports
    that could have been chosen. It assumes that the noise of the targets is symmetric (or inside of
    the residual clips) and has one variance. ``sparsity``, taken as exact, makes fewer of them: it
    is narrowest if all ``n_nonzero_coefs = sparsity`` selected features are known to be the true
    ones. Where the noise leaves the fit further from the truth than residuals are wide, clips bias
    the last step, and that is not counted. With all features of real rows and a linear truth, the
    coverage was .95 to .99 on three tables, and .73 and .75 on two.

    References
    ----------
    S. Chakraborty, S. Roy and D. Basu (2024). FLIPHAT: Joint differential privacy for high
    dimensional sparse linear bandits.

    T. T. Cai, Y. Wang and L. Zhang (2021). The cost of privacy. Annals of Statistics 49.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import IHTRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-1, 1, size=(10_000, 500))
    >>> y = 0.6 * X[:, 3] - 0.3 * X[:, 77] + rng.uniform(-0.1, 0.1, size=10_000)
    >>> est = IHTRegressor(
    ...     data_max=1.0, bounds_y=(-1, 1), n_nonzero_coefs=2, random_state=0
    ... ).fit(X, y)
    >>> est.support_
    array([ 3, 77])
    >>> est.coef_[est.support_].round(1)
    array([ 0.6, -0.3])
    """

    data_max: DataNorm = None
    n_nonzero_coefs: Count | None = None
    coef_norm: Positive = 1.0
    fit_intercept: bool = True
    coef_init: ArrayLike | None = None
    selection_share: Level = 0.4
    certificate_share: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.01
    sparsity: Annotated[int | None, Interval(Integral, 0, None, closed="left"), None] = None
    sparse_eigenvalue: Positive = 0.1

    estimand: ClassVar[str | None] = "sparse least-squares line of the clipped rows and targets"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified", "asymptotic")
    _row_bound: ClassVar[tuple] = ("data_max", "absolute values of the entries of X")
    _sparse = "csr"

    def _fit(self, X, y):
        if not self._trust.can.selects:
            raise PrivacyError(
                f"privacy={self.privacy!r}: naming the largest of all coordinates needs a curator "
                "who sees their sums, and without one the error grows with the number of features: "
                f"use {models_that('selects')}, or SSPRegressor on a few chosen columns."
            )
        rows, scaling = scaled_rows(self, X, y, accept_sparse=True)
        start = self._start(scaling)
        n_nonzero = self._n_nonzero(start)
        session = open_fit(self, rows, currency="zcdp")
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        left = 1.0 - self.certificate_share
        self.support_ = np.arange(scaling.n_features)
        if n_nonzero < scaling.n_features:
            size_share = left * SIZE_SHARE
            left -= (1 + self.fit_intercept) * size_share
            share = left * self.selection_share
            self.support_ = choose(session, scaling, start, n_nonzero, share, size_share)
            left -= share
        rows = SupportRows.of(scaling, self.support_, session.trust.exact)
        known = start.dense() if len(start.support) else None
        self._refit = refit(session, rows, left, known)
        model = rows.iterate(scaling, self._refit.theta)
        self._gradient = None
        if self.certificate_share:
            self._gradient = session.release(GradientNorm(model), self.certificate_share)

        self.coef_ = scaling.radius / scaling.row_bound * model.dense()
        self.intercept_ = scaling.centre + scaling.radius * model.level
        self._scaling, deviation = scaling, None
        if not session.trust.exact:
            size = scaling.radius * sqrt(self._refit.equations.square / self._refit.equations.n)
            deviation = 0.5 * size, size
        self._calibration = calibration(self, held_out, deviation)

    def _start(self, scaling):
        """The public iterate from which features are selected."""
        n_features = scaling.n_features
        coef = np.zeros(n_features) if self.coef_init is None else np.asarray(self.coef_init, float)
        if coef.shape != (n_features,) or not np.isfinite(coef).all():
            raise ValueError(f"coef_init must have {n_features} finite numbers, one a feature.")
        support = np.flatnonzero(coef)
        return Iterate(scaling, support, coef[support] * scaling.row_bound / scaling.radius)

    def _n_nonzero(self, start):
        """Number of features in the support, those of the start included."""
        nonzero, n_features = self.n_nonzero_coefs, start.scaling.n_features
        if nonzero is None:  # noise grows with the number of features that are chosen
            nonzero = max(1, min(n_features // 10, 10))
        nonzero = int(nonzero) + len(start.support)
        if nonzero > n_features:
            raise ValueError(
                f"n_nonzero_coefs={nonzero} cannot be more than n_features={n_features}: at most "
                "all features can be selected."
            )
        return nonzero

    def _interval(self, X, confidence_level, method):
        """The interval at checked rows."""
        interval = self._certified if method == "certified" else self._given_support
        centre, half = interval(X, confidence_level)
        return inside_bounds(self._scaling, centre, half, self._predicted(X))

    def _certified(self, X, confidence_level):
        """Certificate that is uniform over x."""
        if self._gradient is None:
            raise ValueError(
                "method='certified' rests on a released gradient norm: fit with certificate_share "
                "above 0, for example 0.01, or use method='asymptotic'."
            )
        chosen, scaling = len(self.support_), self._scaling
        sparsity = chosen if self.sparsity is None else self.sparsity
        sizes = scaling.size, chosen + scaling.fit_intercept, sparsity
        radius = support_certificate(
            self._gradient, *sizes, self.sparse_eigenvalue, confidence_level
        )
        norms = sparse_norms(X, self.support_, sparsity) / scaling.row_bound
        half = radius * np.sqrt(norms**2 + scaling.fit_intercept)
        centre = (X @ self.coef_ + self.intercept_ - scaling.centre) / scaling.radius
        return centre, half

    def _given_support(self, X, confidence_level):
        """Interval of the refit, conditional on the support."""
        chosen = X[:, self.support_]
        chosen = chosen.toarray() if sparse.issparse(chosen) else chosen
        scaling = self._refit.scaling
        # from features divided by data_max to the units of phi
        units = max(1.0, scaling.row_bound / self._scaling.row_bound)
        bound = scaling.theta_bound(self.coef_norm) * units
        sizes = len(self.coef_), len(self.support_)
        supports = log_supports(*sizes, min(self.sparsity or 0, sizes[1]))
        points = scaling.features(chosen)
        return given_support(self._refit, points, bound, supports, confidence_level)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
