"""Peers as in the literature, recalibrated to one guarantee (replace one record, exact GDP)."""

from math import log, sqrt

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from skpriv import Budget


class AdaSSP(RegressorMixin, BaseEstimator):
    """AdaSSP (Wang 2018, Algorithm 2), its three releases at mu / sqrt(3) each.

    The smallest eigenvalue moves by at most 1 when a record in the unit ball is replaced, X'X by
    sqrt(2) in Frobenius norm, X'y by 2. With an intercept the rows are (x, 1) / sqrt(2).
    """

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=True,
        failure=0.05, random_state=0,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.failure = failure
        self.random_state = random_state

    def _rows(self, X):
        Z = np.asarray(X, dtype=float) / self.data_norm
        return np.column_stack([Z, np.ones(len(Z))]) / sqrt(2.0) if self.fit_intercept else Z

    def fit(self, X, y):
        """Fit on rows whose norm is at most ``data_norm``."""
        rng = check_random_state(self.random_state)
        Z = self._rows(X)
        Z = Z / np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]
        low, high = self.bounds_y
        r = (np.clip(y, low, high) - (low + high) / 2) / ((high - low) / 2)
        d, mu = Z.shape[1], Budget(self.epsilon, self.delta).mu / sqrt(3.0)
        gram = Z.T @ Z
        quantile = sqrt(2.0 * log(6.0 / self.failure))
        smallest = np.linalg.eigvalsh(gram)[0] + rng.normal() / mu - quantile / mu
        scale = sqrt(2.0) / mu
        ridge = max(0.0, scale * sqrt(d * log(2 * d**2 / self.failure)) - max(smallest, 0.0))
        noise = np.triu(rng.normal(scale=scale, size=(d, d)))
        noisy = gram + noise + np.triu(noise, 1).T
        moment = Z.T @ r + rng.normal(scale=2.0 / mu, size=d)
        self.theta_ = np.linalg.solve(noisy + ridge * np.eye(d), moment)
        return self

    def predict(self, X):
        """Predict in the units of y."""
        low, high = self.bounds_y
        return (low + high) / 2 + (high - low) / 2 * (self._rows(X) @ self.theta_)
