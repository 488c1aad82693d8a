"""Lines from the released equations of several fits: post-processing, without a price."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metaestimators import available_if

from ..._estimation._intervals import ConfidenceInterval, two_sided_quantile
from ..._estimation._loop._fit import LoopFit
from ._information import Information


def _has_equations(fit):
    return isinstance(fit, PooledLine) or (
        isinstance(getattr(fit, "_released", None), LoopFit)
        and not fit._trust.exact
        and fit.effects is None
    )


class Likely:
    """Mixin of fits whose equations have known noise: what oracles of bandits are asked."""

    _map: Any
    _target: Any
    _released: Any
    _n_fitted: int
    _information: Information | None = None

    def _told(self):
        if self._information is None:
            self._information = Information.of(self._released, self._map.constant, self._n_fitted)
        return self._information

    @property
    def _units(self):
        """Matrix from theta to (coefficients, intercept), which the centre is added to."""
        return self._target.radius * self._map.coefficient_map()

    @available_if(_has_equations)
    def pooled(self, other: Any) -> Any:
        """Line from the released equations of two fits with the same bounds.

        That is post-processing: it costs no privacy. Fits to disjoint records (as those of the
        epochs of a bandit) cost what the more expensive of the two costs.

        Parameters
        ----------
        other : LinearRegression or PooledLine
            A fit with the same bounds, or several pooled ones.

        Returns
        -------
        PooledLine
        """
        if not _has_equations(other) or self._bounds() != other._bounds():
            raise ValueError("only fits of released equations with the same bounds can be pooled.")
        return PooledLine(self._told().plus(other._told()), self._map, self._target)

    def _bounds(self):
        parts = self._map.low, self._map.high, self._map.data_norm, self._map.size
        return repr(parts), self._target.bounds_y

    @available_if(_has_equations)
    def posterior(self) -> Any:
        """Mean and covariance of (coefficients, intercept), by released equations and their noise.

        The prior is normal, of a size chosen by its evidence, and not smaller than weights of norm
        1 in scaled units have.

        Returns
        -------
        mean : ndarray of shape (n_features + 1,)
            The intercept comes last; 0 if there is none.
        covariance : ndarray of shape (n_features + 1, n_features + 1)
        """
        mean, covariance = self._told().posterior(1.0 / self._map.size)
        found = self._units @ mean
        found[-1] += self._target.centre
        return found, self._units @ covariance @ self._units.T

    @available_if(_has_equations)
    def prediction_error(self) -> float:
        """Root mean square error of the predictions for the rows of the fit, by its posterior.

        Returns
        -------
        float
            The root mean square, in the units of y.
        """
        _, covariance = self._told().posterior(1.0 / self._map.size)
        return self._target.radius * self._told().error(covariance)


class PooledLine(Likely, RegressorMixin, BaseEstimator):
    """Line from the released equations of several fits of `LinearRegression`; it is not fitted.

    Parameters
    ----------
    information : Information
    row_map : RowMap
    target_map : TargetMap
    """

    def __init__(self, information: Any, row_map: Any, target_map: Any) -> None:
        self.information, self.row_map, self.target_map = information, row_map, target_map
        self._information, self._map, self._target = information, row_map, target_map
        self.bounds_y_ = target_map.bounds_y
        mean, _ = self.posterior()
        self.coef_, self.intercept_ = mean[:-1], float(mean[-1])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the regression function, inside ``bounds_y``."""
        line = self._map.clipped(np.asarray(X, dtype=float)) @ self.coef_ + self.intercept_
        return np.clip(line, *self.bounds_y_)

    def confidence_interval(
        self, X: Any, confidence_level: float = 0.95, method: str = "asymptotic"
    ) -> ConfidenceInterval:
        """Normal interval for the regression function at each row, by the posterior."""
        if method != "asymptotic":
            raise ValueError("a pooled line has no certified interval: pass method='asymptotic'.")
        X = self._map.clipped(np.asarray(X, dtype=float))
        centre, (_, covariance) = X @ self.coef_ + self.intercept_, self.posterior()
        rows = np.column_stack([X, np.ones(len(X))])
        half = two_sided_quantile(confidence_level) * np.sqrt(
            np.einsum("ij,ij->i", rows @ covariance, rows)
        )
        ends = np.clip([centre - half, centre + half], *self.bounds_y_)
        return ConfidenceInterval(*ends)
