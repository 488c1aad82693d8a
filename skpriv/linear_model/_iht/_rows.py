"""Clipped rows of iterative hard thresholding, dense or sparse, and its public iterates."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import sparse

from ..._estimation._public_maps import FEATURE_LENGTH
from ..._linalg import row_norms
from ...records import canonical
from ..._estimation._scaling import Scaling

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
    scaling : Scaling
        Maps targets to r in [-1, 1].
    support : ndarray of shape (s,)
    weights : ndarray of shape (s,)
        theta on the support.
    level : float
        The intercept, in the units of r.
    """

    data_max: float
    scaling: Scaling
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
    scaling : Scaling
        Scaling of rows of length s.
    """

    data_max: float
    support: np.ndarray
    scaling: Scaling

    @classmethod
    def of(cls, entries, support, exact):
        """Rows on a support; without noise every weight is 1, so that the fit is least squares."""
        s = len(support)
        norm = sqrt(s) if exact else max(1.0, NORM_FACTOR * sqrt(s))
        public = entries.bounds_y, entries.fit_intercept, s, FEATURE_LENGTH
        scaling = Scaling(norm * entries.row_bound, *public)
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
