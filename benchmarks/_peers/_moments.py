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


class NoisyGradientDescent(RegressorMixin, BaseEstimator):
    """Projected gradient descent on all records, every gradient noisy, exactly composed.

    Rows in the unit ball, targets in [-1, 1] and parameters in the ball of radius ``coef_norm``:
    replacing a record moves a summed gradient by at most the maximum over angles of
    2 (R cos a + 1) sin a. ``n_iter`` and ``step_size`` are public numbers; the benchmark tunes
    them on fresh draws of the design, which is kind. Returned is the mean of the last half.
    """

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=True,
        coef_norm=1.0, n_iter=50, step_size=1.0, random_state=0,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.coef_norm = coef_norm
        self.n_iter = n_iter
        self.step_size = step_size
        self.random_state = random_state

    _rows = AdaSSP._rows
    predict = AdaSSP.predict

    def fit(self, X, y):
        """Fit on rows whose norm is at most ``data_norm``."""
        rng = check_random_state(self.random_state)
        Z = self._rows(X)
        Z = Z / np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]
        low, high = self.bounds_y
        r = (np.clip(y, low, high) - (low + high) / 2) / ((high - low) / 2)
        radius = self.coef_norm * (sqrt(2.0) if self.fit_intercept else 1.0)
        cosine = (sqrt(1.0 + 8.0 * radius**2) - 1.0) / (4.0 * radius)
        change = 2.0 * (radius * cosine + 1.0) * sqrt(1.0 - cosine**2)
        scale = change * sqrt(self.n_iter) / Budget(self.epsilon, self.delta).mu / len(Z)
        gram, moment = Z.T @ Z / len(Z), Z.T @ r / len(Z)
        theta, path = np.zeros(Z.shape[1]), []
        for _ in range(self.n_iter):
            noise = rng.normal(scale=scale, size=theta.size)
            theta = theta - self.step_size * (gram @ theta - moment + noise)
            theta = theta / max(1.0, np.linalg.norm(theta) / radius)
            path.append(theta)
        self.theta_ = np.mean(path[self.n_iter // 2 :], axis=0)
        return self


class NoisyIHT(RegressorMixin, BaseEstimator):
    """N-IHT (Chakraborty, Roy and Basu 2024, Algorithm 1) with Laplace peeling, no intercept.

    Their noise 2 D sqrt(3 s log(1 / delta)) / epsilon at (epsilon / M, delta / M) an iteration,
    with the sensitivity of a step for replacement, D = 2 eta x_max (R + x_max C) / n.
    """

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, data_max=1.0, n_nonzero_coefs=5, coef_l1=1.0, limit=1.0,
        max_iter=3, step_size=1.0, random_state=0,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.data_max = data_max
        self.n_nonzero_coefs = n_nonzero_coefs
        self.coef_l1 = coef_l1
        self.limit = limit
        self.max_iter = max_iter
        self.step_size = step_size
        self.random_state = random_state

    def fit(self, X, y):
        """Fit on entries of at most ``data_max``; targets are clipped to +-``limit``."""
        rng = check_random_state(self.random_state)
        X = np.clip(X, -self.data_max, self.data_max)
        y, s, rounds = np.clip(y, -self.limit, self.limit), self.n_nonzero_coefs, self.max_iter
        reach = self.limit + self.data_max * self.coef_l1
        change = 2.0 * self.step_size * self.data_max * reach / len(X)
        scale = change * 2.0 * sqrt(3.0 * s * log(rounds / self.delta)) * rounds / self.epsilon
        theta = np.zeros(X.shape[1])
        for _ in range(rounds):
            raw = theta + self.step_size * (X.T @ (y - X @ theta)) / len(X)
            sizes, chosen = np.abs(raw), []
            for _ in range(s):
                noisy = sizes + rng.laplace(scale=scale, size=sizes.size)
                noisy[chosen] = -np.inf
                chosen.append(int(np.argmax(noisy)))
            theta = np.zeros_like(raw)
            theta[chosen] = _l1_ball(raw[chosen] + rng.laplace(scale=scale, size=s), self.coef_l1)
        self.coef_ = theta
        return self

    def predict(self, X):
        """Predict in the units of y."""
        return X @ self.coef_


def _l1_ball(values, radius):
    """Euclidean projection onto the l1 ball."""
    sizes = np.sort(np.abs(values))[::-1]
    if sizes.sum() <= radius:
        return values
    shifts = (np.cumsum(sizes) - radius) / np.arange(1, len(sizes) + 1)
    shift = shifts[np.flatnonzero(sizes > shifts)[-1]]
    return np.sign(values) * np.maximum(np.abs(values) - shift, 0.0)


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
