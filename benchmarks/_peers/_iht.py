"""N-IHT of the literature, with the sensitivity that its step has."""

from math import log, sqrt

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state


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
