"""Full-batch gradient descent on clipped gradients, and an oracle that picks its settings."""

from itertools import product
from math import sqrt

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from skpriv import Budget

from ._scaled import ScaledRegressor

# Of the oracle: clips and steps in units of half the range of the target and of unit rows.
CLIPS = (0.007, 0.02, 0.06, 0.2, 0.6)
STEPS = (1.5, 5.0, 15.0, 50.0)
ITERATIONS = (80, 320, 960)  # with exact composition, more of them are better on most tables
SETTINGS = [
    {"clip": clip, "step_size": step, "n_iter": rounds}
    for rounds, clip, step in product(ITERATIONS, CLIPS, STEPS)
]


def clipped_gradient(Z, norms, residuals, clips):
    """Sum over records of z residual, each shortened to length ``clip``; a column a setting.

    Each summand lies in a ball of radius ``clip``, so that replacing a record moves the sum by at
    most 2 clip, attained by opposite residuals.
    """
    with np.errstate(divide="ignore"):
        reach = (np.asarray(clips)[None, :] / norms[:, None]).astype(Z.dtype)
    return Z.T @ np.clip(residuals, -reach, reach)


def descend(Z, r, clips, steps, n_iter, mu, rng):
    """Iterates of several settings at once, from zero, as columns.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
    r : ndarray of shape (n,)
    clips, steps : ndarrays of shape (n_settings,)
        Each setting is a mechanism of its own with the whole budget: an oracle looks at all.
    n_iter : int
    mu : float
        Gradients of sensitivity 2 clip, n_iter of them: noise of 2 clip sqrt(n_iter) / mu each.
    rng : RandomState

    Returns
    -------
    ndarray of shape (p, n_settings)
        Means of the last halves of the paths.
    """
    n, p = Z.shape
    scales = 2.0 * clips * sqrt(n_iter) / mu
    norms = np.linalg.norm(Z, axis=1)
    theta = np.zeros((p, len(clips)), dtype=Z.dtype)
    total = np.zeros_like(theta)
    for iteration in range(n_iter):
        summed = clipped_gradient(Z, norms, r[:, None] - Z @ theta, clips)
        noise = rng.normal(size=theta.shape) * scales
        theta = (theta + steps / n * (summed + noise)).astype(Z.dtype)
        if iteration >= n_iter // 2:
            total += theta
    return total / (n_iter - n_iter // 2)


class NoisyGradientDescent(ScaledRegressor):
    """Gradient descent on all records, every record's gradient clipped, every sum noisy.

    Sums of clipped gradients have sensitivity 2 ``clip`` for replacement; ``n_iter`` Gaussian
    answers at mu / sqrt(n_iter) each compose to mu exactly. Returned is the mean of the last half
    of the path.

    Parameters
    ----------
    clip : float
        Longest gradient of a record, for rows in the unit ball and targets in [-1, 1].
    step_size : float
    n_iter : int
    """

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=True,
        clip=0.2, step_size=1.0, n_iter=40, random_state=0,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.clip = clip
        self.step_size = step_size
        self.n_iter = n_iter
        self.random_state = random_state

    def fit(self, X, y):
        """Fit on rows whose norm is at most ``data_norm``."""
        rng = check_random_state(self.random_state)
        Z, r = self._clipped_rows(X), self._targets(y)
        mu = Budget(self.epsilon, self.delta).mu
        clips, steps = np.array([self.clip]), np.array([self.step_size])
        self.theta_ = descend(Z, r, clips, steps, self.n_iter, mu, rng)[:, 0]
        return self


class OracleDescent(BaseEstimator):
    """The settings of `NoisyGradientDescent` that do best on rows that nobody may look at.

    Not private and not a method: a bar. Each of the 60 settings is a private fit with the whole
    budget, and whoever has the test rows picks the best of them, for free.
    """

    def __init__(
        self, *, epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=True,
        settings=None, random_state=0,
    ):  # fmt: skip
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.fit_intercept = fit_intercept
        self.settings = settings
        self.random_state = random_state

    def predictions(self, X, y, X_test):
        """Predictions of every setting for the test rows, as columns."""
        settings = SETTINGS if self.settings is None else self.settings
        units = {name: getattr(self, name) for name in ("data_norm", "bounds_y", "fit_intercept")}
        model = NoisyGradientDescent(**units)
        rng = check_random_state(self.random_state)
        Z = model._clipped_rows(X).astype(np.float32)
        r = model._targets(y).astype(np.float32)
        mu = Budget(self.epsilon, self.delta).mu
        theta = np.zeros((Z.shape[1], len(settings)))
        for rounds in sorted({setting["n_iter"] for setting in settings}):
            chosen = [k for k, setting in enumerate(settings) if setting["n_iter"] == rounds]
            clips = np.array([settings[k]["clip"] for k in chosen])
            steps = np.array([settings[k]["step_size"] for k in chosen])
            theta[:, chosen] = descend(Z, r, clips, steps, rounds, mu, rng)
        return model._units(model._rows(X_test) @ theta)
