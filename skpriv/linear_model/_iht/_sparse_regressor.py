"""What regressors on a privately selected support share: prediction and intervals."""

from math import sqrt
from typing import Any

import numpy as np
from scipy import sparse

from ..._choices import IntervalMethod
from ..._estimation._intervals import ConfidenceInterval, inside_bounds
from ..._linalg import row_products
from .._points import rowwise
from .._prediction_intervals import PredictionIntervals
from ._intervals import certificate, given_support, log_supports, sparse_norms


class SparseRegressor(PredictionIntervals):
    """Base class of regressors with a selected support; not for direct use."""

    _sparse = "csr"

    @rowwise
    def predict(self, X: Any) -> np.ndarray:
        """Predict the regression function, inside ``bounds_y``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._predicted(self._points(X))

    def _predicted(self, X):
        """Predictions for checked rows, inside of the bounds of y."""
        return np.clip(self._function(X), *self._scaling.bounds_y)

    def _function(self, X):
        """Predictions for checked rows."""
        return row_products(X, self.coef_) + self.intercept_

    def _deviation(self):
        """Limits on the deviation of the residuals from the last released one; None without it."""
        if self._refit is None or self._refit.equations.exact:
            return None
        size = self._scaling.radius * sqrt(self._refit.equations.square / self._refit.equations.n)
        return 0.5 * size, size

    @rowwise
    def confidence_interval(
        self, X: Any, confidence_level: float = 0.95, method: IntervalMethod = "certified"
    ) -> ConfidenceInterval:
        """Confidence interval for the regression function at each row, not for a new y.

        Both methods assume that the clipped target has a linear mean in the clipped rows, and that
        the targets are independent given the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        confidence_level : float in (0, 1), default=0.95
        method : {"certified", "asymptotic"}, default="certified"
            "certified" holds for all x at once and any n, if at most ``sparsity`` true coefficients
            are not zero and the Gram matrix has the ``sparse_eigenvalue``, which cannot be checked
            on private data. "asymptotic" is narrower and pointwise. It covers only if the support
            contains the true one, and allows for all such supports that could have been chosen. It
            assumes that the noise of the targets is symmetric (or inside of the residual clips) and
            has one variance. ``sparsity``, taken as exact, makes fewer of them: it is narrowest if
            all ``n_nonzero_coefs = sparsity`` selected features are known to be the true ones.
            Where the noise leaves the fit further from the truth than residuals are wide, clips
            bias the last step, and that is not counted. With all features of real rows and a linear
            truth, the coverage was .95 to .99 on three tables, and .73 and .75 on two.

        Returns
        -------
        ConfidenceInterval
            Named tuple (low, high) of ndarrays of shape (n_samples,), in the units of y and inside
            ``bounds_y``. It contains the prediction, and none has width zero.
        """
        X = self._interval_points(X, confidence_level, method)
        if method == "certified":
            centre, half = self._certified(X, confidence_level)
        else:
            centre, half = self._given_support(X, confidence_level)
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
        radius = certificate(
            self._gradient,
            scaling.size,
            chosen + scaling.fit_intercept,
            sparsity,
            self.sparse_eigenvalue,
            confidence_level,
        )
        norms = sparse_norms(X, self.support_, sparsity) / scaling.row_bound
        half = radius * np.sqrt(norms**2 + scaling.fit_intercept)
        centre = (X @ self.coef_ + self.intercept_ - scaling.centre) / scaling.radius
        return centre, half

    def _given_support(self, X, confidence_level):
        """Interval of the refit, conditional on the support."""
        if self._refit is None:
            raise ValueError("method='asymptotic' needs refit=True: it is the refit's interval.")
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
