"""What iterative hard thresholding asks of the records: clipped rows, dense or sparse."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ..._estimation._moments import SQUARE_WEIGHT, NormalEquations
from ..._estimation._public_maps import FEATURE_LENGTH, RecordMap
from ..._linalg import row_norms, vech, vech_size
from ...privacy import ROUNDING, InnerSum, Procedure, Query
from ...records import canonical

# Root mean square of a uniform entry: rows on the support are much longer than this part of the
# longest possible norm, sqrt(s), only in designs such as signs: there they get weights below 1.
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
    missing = np.isnan(Z)
    if missing.any():
        Z[missing] = 0.0
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
    data_max : float
    scaling : RecordMap
        Maps targets to r in [-1, 1].
    support : ndarray of shape (s,)
    weights : ndarray of shape (s,)
        theta on the support.
    level : float
        The intercept, in the units of r.
    """

    data_max: float
    scaling: RecordMap
    support: np.ndarray
    weights: np.ndarray
    level: float = 0.0

    def residual(self, X, y):
        """r - z'theta - level of a chunk of rows."""
        r = self.scaling.target(y) - self.level
        if len(self.support):
            r -= columns(X, self.support, self.data_max) @ (self.weights / self.data_max)
        return r

    def dense(self, n_features):
        """theta as a vector of all features."""
        theta = np.zeros(n_features)
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
    """

    data_max: float
    support: np.ndarray
    scaling: RecordMap

    @classmethod
    def of(cls, entries, support, exact):
        """Rows on a support; without noise every weight is 1, so that the fit is least squares."""
        s = len(support)
        norm = sqrt(s) if exact else max(1.0, NORM_FACTOR * sqrt(s))
        public = entries.bounds_y, entries.fit_intercept, s, FEATURE_LENGTH
        scaling = RecordMap.of_norm(norm * entries.row_bound, *public)
        return cls(entries.row_bound, support, scaling)

    def iterate(self, entries, theta):
        """The same function as an iterate."""
        coef, intercept = self.scaling.coefficients(theta)
        level = (intercept - entries.centre) / entries.radius
        weights = coef * entries.row_bound / entries.radius
        return Iterate(entries.row_bound, entries, self.support, weights, level)

    def weighted(self, X, y):
        """(w phi, w r) of a chunk of rows."""
        phi = self.scaling.features(columns(X, self.support, self.data_max))
        r = self.scaling.target(y)
        weights = 1.0 / np.maximum(row_norms(phi), 1.0)
        return phi * weights[:, None], r * weights


@dataclass(frozen=True, eq=False)
class SupportResidual:
    """Weighted residuals w (r - phi'theta) on a support, at a released theta."""

    rows: SupportRows
    theta: np.ndarray

    @property
    def support(self):
        """The support."""
        return self.rows.support

    def residual(self, X, y):
        """Weighted residuals of a chunk of rows."""
        phi, r = self.rows.weighted(X, y)
        return r - phi @ self.theta


CLIP_WEIGHT = 1.5  # of the squared residual beside the gradient: free, see SupportGradientQuery


@dataclass(frozen=True, eq=False)
class ResidualSizeQuery(Query):
    """Sum of min(|residual|, 1) in [0, 1]. Sensitivity 1, attained at residuals 0 and 1.

    Parameters
    ----------
    model : Iterate or SupportResidual
        Anything released with a ``residual(X, y)``.
    """

    model: Any
    name: str = "residual size"
    takes_sparse: ClassVar[bool] = True
    shape: tuple = (1,)
    sensitivity: float = ROUNDING

    @property
    def width(self):
        """Size of the model's support."""
        return max(1, len(self.model.support))

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
        scores = _scores(X, residual, self.entry_limit * self.model.data_max)
        scores /= self.model.data_max
        scores[self.model.support] = 0.0  # features of the start are not to be named
        return scores


@dataclass(frozen=True, eq=False)
class SupportMomentsQuery(Query):
    """Joint sum of (r phi, vech phi phi', sqrt(1.5) r^2) of weighted records on a support.

    Sensitivity 3 / sqrt(2) by the argument of MomentsQuery, which needs only ||w phi|| <= 1 and
    |w r| <= 1.
    """

    rows: SupportRows
    name: str = "moments on the support"
    takes_sparse: ClassVar[bool] = True
    sensitivity: float = 3.0 / sqrt(2.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        p = self.rows.scaling.size
        return (p + vech_size(p) + 1,)

    @property
    def width(self):
        """Size of the support."""
        return len(self.rows.support)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi, r = self.rows.weighted(X, y)
        return np.concatenate([phi.T @ r, vech(phi.T @ phi), [SQUARE_WEIGHT * (r @ r)]])

    def equations(self, answer):
        """Normal equations of an answer."""
        return NormalEquations.of_moments(answer, self.rows.scaling.size, SQUARE_WEIGHT)


@dataclass(frozen=True, eq=False)
class SupportGradientQuery(Query):
    """Joint sum of (phi c, 1.5 c^2 / R) with c = clip(weighted residual, -R, R).

    With a = |c| / R and b = |c'| / R in [0, 1], replacing a record moves the squared norm by at
    most R^2 ((a + b)^2 + 2.25 (a^2 - b^2)^2) = R^2 S^2 (1 + 2.25 D^2), S = a + b and D = |a - b|.
    For S >= 1, D <= 2 - S, and that is at most 4 R^2 because 2.25 S^2 (2 - S) <= 2 + S; for S <= 1,
    D <= S gives at most 3.25 R^2. Sensitivity 2 R, attained at phi = phi', c = -c' = R.

    Parameters
    ----------
    model : SupportResidual
    residual_limit : float
    """

    model: SupportResidual
    residual_limit: float
    name: str = "gradient on the support"
    takes_sparse: ClassVar[bool] = True

    @property
    def sensitivity(self):
        """Largest change of the sum, rounded up."""
        return 2.0 * self.residual_limit * ROUNDING

    @property
    def shape(self):
        """Number of coefficients, and one."""
        return (self.model.rows.scaling.size + 1,)

    @property
    def width(self):
        """Size of the support."""
        return len(self.model.support)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi, r = self.model.rows.weighted(X, y)
        limit = self.residual_limit
        c = np.clip(r - phi @ self.model.theta, -limit, limit)
        return np.append(phi.T @ c, CLIP_WEIGHT * (c @ c) / limit)

    def square(self, answer):
        """Noisy sum of c^2, at least the standard deviation of its noise."""
        unit = self.residual_limit / CLIP_WEIGHT
        return unit * max(float(answer.value[-1]), answer.noise.scale)


@dataclass(frozen=True, eq=False)
class GradientNorm(Procedure):
    """Largest coordinate of the sum of (z, 1) residual over all features and the intercept.

    |residual| <= R = 1 + |level| + ||theta||_1 because |r| <= 1 and the entries of z lie in
    [-1, 1]. A replaced record moves every coordinate by at most 2 R, attained at z = z' of ones and
    residuals R and -R, and their maximum by no more.
    """

    model: Iterate
    fit_intercept: bool
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
        """Sum of (z, 1) residual."""
        residual = self.model.residual(X, y)
        scores = _scores(X, residual, self.model.data_max) / self.model.data_max
        return np.append(scores, residual.sum() * self.fit_intercept)


def _scores(X, residual, limit):
    """clip(X)'residual; the pass that looks for NaN is made only if there are some."""
    if not sparse.issparse(X):
        scores = np.clip(X, -limit, limit).T @ residual
        if np.isfinite(scores).all():
            return scores
    return clipped(X, limit).T @ residual
