"""What released equations of known noise say of one line, added up over fits to other records.

A fit of the loop has equations D_k (b* - b_k) = z_k + error for b = W^-T theta, with a whitening W
of its own. Each is as much as a normal likelihood of theta, and likelihoods of disjoint records
multiply: their precisions add up, in the coordinates of theta, which all fits share.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..._estimation._loop._estimate import noise_floor
from ..._estimation._loop._fit import FITTED, LoopFit
from ..._estimation._normal_equations import normal_posterior
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
    def of(cls, fit: LoopFit, constant: np.ndarray | None, n: int) -> "Information":
        """Likelihood of a fit, in the directions in which its slope is above its noise.

        The errors are those of the moments, of the slopes at their distance from the solution, and
        of sampling, with the residual variance everywhere the same.

        Parameters
        ----------
        fit : LoopFit
        constant : ndarray of shape (p,) or None
            The vector c with phi'c = 1 for every row; None without an intercept.
        n : int
            Number of records of the fit.
        """
        p = len(fit.W)
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
