"""What peers share: rows in the unit ball with a constant, targets in [-1, 1], and back."""

from math import sqrt

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin


class ScaledRegressor(RegressorMixin, BaseEstimator):
    """Base of peers that have ``data_norm``, ``bounds_y`` and ``fit_intercept``.

    With an intercept the rows are (sqrt(d) x, 1) / sqrt(d + 1): the constant is like a feature.
    """

    def _rows(self, X):
        Z = np.asarray(X, dtype=float) / self.data_norm
        if not self.fit_intercept:
            return Z
        d = Z.shape[1]
        return np.column_stack([sqrt(d) * Z, np.ones(len(Z))]) / sqrt(d + 1.0)

    def _clipped_rows(self, X):
        """Rows of norm at most 1, whatever X is."""
        Z = self._rows(X)
        return Z / np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]

    def _targets(self, y):
        low, high = self.bounds_y
        return (np.clip(y, low, high) - (low + high) / 2) / ((high - low) / 2)

    def _units(self, r):
        low, high = self.bounds_y
        return (low + high) / 2 + (high - low) / 2 * r

    def predict(self, X):
        """Predict in the units of y."""
        return self._units(self._rows(X) @ self.theta_)
