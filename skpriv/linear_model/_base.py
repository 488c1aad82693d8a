"""What all private regressors share: parameters, checks, the session, the report."""

from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import validate_data

from .._compat import Interval, StrOptions
from ..privacy import Accounted, Budget, open_session
from ._scaling import Scaling


class PrivateRegressor(Accounted, RegressorMixin, BaseEstimator):
    """Base class of the private regressors; not for direct use."""

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "privacy": [StrOptions({"central", "local", "none"})],
        "data_norm": [Interval(Real, 0, None, closed="neither")],
        "bounds_y": ["array-like"],
        "coef_norm": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "random_state": ["random_state"],
    }

    def _validated(self, X, y):
        """Return the checked rows and targets, and the public scaling; nothing is charged yet."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        bounds = self._public_bounds()
        if not 1e-300 <= self.data_norm <= 1e300:
            raise ValueError(
                f"data_norm={self.data_norm!r} must lie in [1e-300, 1e300]: the public bound on "
                "the l2 norm of a row."
            )
        scaling = Scaling(float(self.data_norm), bounds, bool(self.fit_intercept), X.shape[1])
        return X, np.asarray(y, dtype=np.float64), scaling

    def _public_bounds(self):
        """The checked bounds_y."""
        bounds = np.asarray(self.bounds_y, dtype=float)
        if bounds.shape != (2,) or not np.isfinite(bounds).all() or bounds[0] >= bounds[1]:
            raise ValueError(
                f"bounds_y={self.bounds_y!r} must be two finite numbers (low, high) with "
                "low < high: the public range of the target, not one read off the data."
            )
        return tuple(bounds.tolist())

    def _session(self, X, y, *, currency="gdp", smallest_share=1.0):
        """Open the session; the whole budget is charged here."""
        with self._accounting():
            return open_session(
                self.privacy,
                X,
                y,
                Budget(self.epsilon, self.delta),
                self.random_state,
                type(self).__name__,
                currency=currency,
                smallest_share=smallest_share,
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        private = self.privacy != "none" and self.epsilon != float("inf")
        tags.regressor_tags.poor_score = True  # clipped to bounds_y, whatever the scale of y
        tags.non_deterministic = private and self.random_state is None
        return tags
