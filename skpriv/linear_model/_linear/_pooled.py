"""Lines from the released equations of several fits: post-processing, without a price.

A fit of the loop has equations D_k (b* - b_k) = z_k + error for b = W^-T theta, with a whitening W
of its own. Each is as much as a normal likelihood of theta, and likelihoods of disjoint records
multiply: their precisions add up, in the coordinates of theta, which all fits share.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metaestimators import available_if

from ..._estimation._intervals import ConfidenceInterval, two_sided_quantile
from ..._estimation._loop._estimate import noise_floor
from ..._estimation._loop._fit import FITTED, LoopFit
from ..._estimation._moments import normal_posterior
from ..._linalg import RELATIVE_ZERO, psd_part


@dataclass(frozen=True, eq=False)
class Information:
    """Likelihood exp(moment'theta - theta' precision theta / 2) of the line phi'theta.

    Attributes
    ----------
    precision : ndarray of shape (p, p)
    moment : ndarray of shape (p,)
    rows : ndarray of shape (p, p)
        Sum of phi phi' over the records, two deviations of its noise above what was released.
    n : int
        Number of records.
    """

    precision: np.ndarray
    moment: np.ndarray
    rows: np.ndarray
    n: int

    @classmethod
    def of(cls, fit: LoopFit, constant: np.ndarray | None) -> "Information":
        """Likelihood of a fit, in the directions in which its slope is above its noise.

        The errors are those of the moments, of the slopes at their distance from the solution, and
        of sampling, with the residual variance everywhere the same.

        Parameters
        ----------
        fit : LoopFit
        constant : ndarray of shape (p,) or None
            The vector c with phi'c = 1 for every row; None without an intercept.
        """
        p, n = len(fit.W), fit.n
        if not fit.equations:  # the mean alone says nothing of a line
            return cls(np.zeros((p, p)), np.zeros(p), np.eye(p) * n / p, n)
        slope, scale, used, shares = fit.pooled(FITTED)
        right = shares @ [eq.moment + eq.slope @ eq.point for eq in used]
        away = np.array([fit.b - eq.point for eq in used])
        noise = float(shares**2 @ [eq.moment_scale**2 for eq in used])
        # M u has a variance of s^2 |u|^2 (1 + 1/p) / 2 in the mean over coordinates, GOE noise M
        slopes = np.array([eq.slope_scale for eq in used])
        noise += 0.5 * (1.0 + 1.0 / p) * float((shares * slopes) ** 2 @ (away**2).sum(axis=1))
        values, vectors = np.linalg.eigh(slope)
        seen = values > noise_floor(values, scale)
        variance = max(fit.last.square, 2.0 * fit.last.square_scale) / fit.last.n
        weights = np.where(seen, values, 0.0) / (noise + variance * np.maximum(values, 0.0))
        to_b = vectors.T @ np.linalg.inv(fit.W).T  # b = W^-T theta in these directions
        told = vectors.T @ right
        if constant is not None:  # of phi'theta, in which the location is a part of the constant
            told = told + np.where(seen, values, 0.0) * (to_b @ constant) * fit.location
        rows = np.linalg.inv(fit.W) @ (psd_part(slope) + 2.0 * scale / sqrt(p) * np.eye(p))
        return cls(
            (to_b.T * (weights * np.where(seen, values, 0.0))) @ to_b,
            to_b.T @ (weights * told),
            n * rows @ np.linalg.inv(fit.W).T,
            n,
        )

    def plus(self, other: "Information") -> "Information":
        """Likelihood of the records of both."""
        return Information(
            self.precision + other.precision,
            self.moment + other.moment,
            self.rows + other.rows,
            self.n + other.n,
        )

    def posterior(self, least_variance: float) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of theta, under the prior N(0, tau^2 I) of the most evidence."""
        values, vectors = np.linalg.eigh(self.precision)
        roots, told = np.sqrt(np.maximum(values, 0.0)), vectors.T @ self.moment
        seen = values > RELATIVE_ZERO * max(float(values[-1]), 0.0)
        response = np.divide(told, roots, out=np.zeros(len(told)), where=seen)
        design = roots[:, None] * vectors.T
        _, mean, factor = normal_posterior(design, response, least_variance)
        return mean, factor @ factor.T

    def error(self, covariance: np.ndarray) -> float:
        """Root mean square over the rows of the error of phi'theta; no row is longer than 1."""
        square = float((self.rows * covariance).sum()) / self.n
        return sqrt(min(max(square, 0.0), float(np.linalg.eigvalsh(covariance)[-1])))


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
    _information: Information | None = None

    def _likelihood(self):
        if self._information is None:
            self._information = Information.of(self._released, self._map.constant)
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
        return PooledLine(self._likelihood().plus(other._likelihood()), self._map, self._target)

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
        mean, covariance = self._likelihood().posterior(1.0 / self._map.size)
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
        _, covariance = self._likelihood().posterior(1.0 / self._map.size)
        return self._target.radius * self._likelihood().error(covariance)


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
