"""Coefficients of transformed rows, told in the units of the table."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class CoefficientMap:
    """The linear map from coefficients of transformed rows to those of the table's units.

    Attributes
    ----------
    names : list of str
        Names of the effects in the units of the table: "age per year", "sex=M".
    matrix : ndarray of shape (n_features + 1, n_features + 1)
        Acts on the coefficients and the intercept, which is last, on both sides.

    Examples
    --------
    >>> from skpriv.preprocessing import BoundsScaler
    >>> mapping = BoundsScaler([(20, 60)]).fit([[30.0]]).coefficient_map()
    >>> coef, intercept = mapping.apply([2.0], 1.0)
    >>> print(coef.round(6), round(intercept, 6))
    [0.1] -3.0
    """

    names: list
    matrix: np.ndarray

    def apply(self, coef, intercept=0.0):
        """Coefficients and intercept in the units of the table.

        Parameters
        ----------
        coef : array-like of shape (n_features,)
        intercept : float, default=0.0

        Returns
        -------
        (coef, intercept) : ndarray of shape (n_features,), float
        """
        coef = np.asarray(coef, dtype=np.float64)
        if coef.shape != (len(self.names),):
            raise ValueError(
                f"coef has shape {coef.shape}, but there are {len(self.names)} transformed "
                "features: pass one coefficient for each."
            )
        effects = self.matrix @ np.append(coef, intercept)
        return effects[:-1], float(effects[-1])

    def covariance(self, covariance):
        """Covariance matrix of effects and intercept, from that of coefficients and intercept.

        Parameters
        ----------
        covariance : ndarray of shape (n_features + 1, n_features + 1)

        Returns
        -------
        ndarray of shape (n_features + 1, n_features + 1)
        """
        return self.matrix @ covariance @ self.matrix.T
