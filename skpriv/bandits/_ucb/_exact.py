"""The sums and the inverse of the textbook LinUCB, updated by rank one."""

from math import log, sqrt

import numpy as np

REFRESH = 1024  # rounds between two inversions from scratch, which stop the drift of rounding


class RidgeState:
    """Inverse of V = alpha I + sum phi phi', its log determinant, and theta = V^-1 sum phi r."""

    def __init__(self, size, alpha):
        self.alpha, self.gram = alpha, alpha * np.eye(size)
        self.target = np.zeros(size)
        self._refresh()

    def add(self, phi, r):
        """Add rows phi with targets r."""
        if len(phi) == 1 and self._age < REFRESH:
            self._add_one(phi[0], r[0])
            return
        self.gram += phi.T @ phi
        self.target += r @ phi
        self._refresh()

    def _add_one(self, phi, r):
        """Sherman and Morrison's update."""
        self.gram += phi[:, None] * phi
        self.target += r * phi
        direction = self.inverse @ phi
        growth = 1.0 + float(phi @ direction)
        self.inverse -= direction[:, None] * (direction / growth)
        self.log_det += log(growth)
        self.theta = self.inverse @ self.target
        self._age += 1

    def _refresh(self):
        self.inverse = np.linalg.inv(self.gram)
        self.log_det = np.linalg.slogdet(self.gram)[1] - len(self.gram) * log(self.alpha)
        self.theta = self.inverse @ self.target
        self._age = 0

    def radius(self, bound, failure):
        """Radius of the confidence ellipsoid (Abbasi-Yadkori et al. 2011, Theorem 2)."""
        return sqrt(2.0 * log(1.0 / failure) + self.log_det) + sqrt(self.alpha) * bound

    def upper(self, phi, width):
        """Index phi'theta + width ||phi||_{V^-1} of every row of phi, of shape (..., p)."""
        squares = np.einsum("...j,...j->...", phi @ self.inverse, phi)
        return phi @ self.theta + width * np.sqrt(squares)
