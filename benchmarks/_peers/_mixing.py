"""Iterative Hessian Mixing: Newton steps whose Hessian is that of a noisy Gaussian sketch."""

from math import log, sqrt

import numpy as np
from scipy import optimize, stats
from sklearn.utils import check_random_state

from skpriv import Budget

from ._scaled import ScaledRegressor

ROUNDS, ROWS, FAILURE = 3, 6.0, 0.1  # as published; of delta, for the sketch to be a good one
ORDERS = 1.0 + np.geomspace(0.01, 1e4, 400)  # of Renyi divergences


def sketch_divergence(order, size):
    """Renyi divergence of one row of a sketch, where records have squared lengths of ``size``.

    A row is N(0, S + uu') or N(0, S + vv') for the record that is replaced; |u|^2 and |v|^2 are
    at most ``size`` in units of S. With the order a, s = |u|^2, t = |v|^2 and c = (u'v)^2 / (s t)
    it is

        (-log((1 + a t)(1 - (a - 1) s) + a (a - 1) s t c) - (a - 1) log(1 + s) + a log(1 + t))
        / (2 (a - 1)),

    which falls with c and increases in s and in t where c = 0: u and v across, and of full length.
    """
    inside = (order - 1.0) * size < 1.0
    s = np.where(inside, size, 0.0)
    found = np.log1p(s) - np.log1p(-(order - 1.0) * s) - np.log1p(order * s)
    return np.where(inside, found / (2.0 * (order - 1.0)), np.inf)


def noise_level(epsilon, delta, mu, rows, rounds):
    """The least gamma with which all releases together are (epsilon, delta): see the class."""

    def spent(log_gamma):
        gamma = 1.0 + np.exp(log_gamma)
        gaussian = 0.5 * ORDERS * (mu**2 + rows / gamma**2)
        sketches = rounds * rows * sketch_divergence(ORDERS, 1.0 / (gamma - 1.0))
        rest = log(1.0 / delta) + (ORDERS - 1.0) * np.log1p(-1.0 / ORDERS) - np.log(ORDERS)
        found = np.min(gaussian + sketches + rest / (ORDERS - 1.0))
        return min(found, 1e6) - epsilon

    return 1.0 + float(np.exp(optimize.brentq(spent, -5.0, 25.0)))


class IterativeHessianMixing(ScaledRegressor):
    """Iterative Hessian Mixing (Lev, Shenfeld, Srinivasan, Ligett and Wilson 2026).

    Each of three rounds has a sketch S X + eta N of k rows, with fresh Gaussian S and N, whose Gram
    matrix over k is the Hessian of a Newton step along X'clip(y - X theta) plus noise. eta^2 is
    gamma less a lower bound of the smallest eigenvalue of X'X, which is released with noise
    gamma / sqrt(k).

    All is recalibrated to the replacement of a record: gradients have sensitivity 2, half of the
    squared mu of (epsilon, 2 delta / 3) and Gaussian noise. The sketches have the divergence of
    :func:`sketch_divergence` at 1 / (gamma - 1), since the rows that both data sets have leave an
    eigenvalue of at least gamma - 1. Their sum is converted at once, which needs less noise than
    to halve epsilon. The bound of the eigenvalue fails with probability delta / 3.
    """

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=True,
        random_state=0,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.random_state = random_state

    def fit(self, X, y):
        """Fit on rows whose norm is at most ``data_norm``."""
        rng = check_random_state(self.random_state)
        Z, r = self._clipped_rows(X), self._targets(y)
        p, spent = Z.shape[1], 2.0 * self.delta / 3.0
        rows = int(ROWS * max(p, log(4.0 * ROUNDS / (FAILURE * self.delta))))
        mu = Budget(self.epsilon, spent).mu / sqrt(2.0)
        gamma = noise_level(self.epsilon, spent, mu, rows, ROUNDS)
        values, vectors = np.linalg.eigh(Z.T @ Z)
        scale = gamma / sqrt(rows)
        least = values[0] + scale * (rng.normal() - stats.norm.isf(self.delta / 3.0))
        extra = max(gamma - max(least, 0.0), 0.0)
        # Rows of a sketch are N(0, X'X + eta^2 I): drawn from that law, without S
        root = vectors * np.sqrt(np.maximum(values, 0.0) + extra)
        self.theta_ = np.zeros(p)
        for _ in range(ROUNDS):
            sketch = rng.normal(size=(rows, p)) @ root.T
            gradient = Z.T @ np.clip(r - Z @ self.theta_, -1.0, 1.0)
            gradient += rng.normal(scale=2.0 * sqrt(ROUNDS) / mu, size=p)
            self.theta_ += np.linalg.solve(sketch.T @ sketch / rows, gradient)
        return self
