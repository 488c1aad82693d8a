"""Peers that perturb sums: AdaSSP, and rows that users perturb themselves."""

from math import log, sqrt

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state

from skpriv import Budget

from ._scaled import ScaledRegressor


class AdaSSP(ScaledRegressor):
    """AdaSSP (Wang 2018, Algorithm 2), its three releases at mu / sqrt(3) each.

    The smallest eigenvalue moves by at most 1 when a record in the unit ball is replaced, X'X by
    sqrt(2) in Frobenius norm, X'y by 2.
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

    def fit(self, X, y):
        """Fit on rows whose norm is at most ``data_norm``."""
        rng = check_random_state(self.random_state)
        Z, r = self._clipped_rows(X), self._targets(y)
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


class InputPerturbation(RegressorMixin, BaseEstimator):
    """Every user sends a noisy row and a noisy target; ridge on the sums, noise squared taken off.

    No intercept. A replaced record (x, y) moves by at most 2 sqrt(2). The noise of the Gram matrix
    has eigenvalues of about ``ridge`` below, which is added to it.
    """

    def __init__(self, *, epsilon=1.0, delta=1e-6, random_state=0):
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state

    def fit(self, X, y):
        """Fit on rows in the unit ball and targets in [-1, 1]."""
        rng = check_random_state(self.random_state)
        n, d = X.shape
        scale = 2.0 * sqrt(2.0) / Budget(self.epsilon, self.delta).mu
        gram, moment = np.zeros((d, d)), np.zeros(d)
        for start in range(0, n, 100_000):
            rows = X[start : start + 100_000]
            rows = rows + rng.normal(scale=scale, size=rows.shape)
            targets = y[start : start + 100_000] + rng.normal(scale=scale, size=len(rows))
            gram += rows.T @ rows
            moment += rows.T @ targets
        ridge = 2.0 * scale * sqrt(n * d) * sqrt(scale**2 + 1.0)
        values, vectors = np.linalg.eigh(gram - n * scale**2 * np.eye(d))
        self.coef_ = vectors @ ((vectors.T @ moment) / (np.maximum(values, 0.0) + ridge))
        return self

    def predict(self, X):
        """Predict in the units of y."""
        return X @ self.coef_
