"""What each class claims of its intervals, and a world in which the premises of the claim hold."""

import numpy as np
from scipy.special import expit

from skpriv.linear_model import IHTRegressor, IVRegressor, LogisticRegression, PoissonRegressor

from .estimators import SETTINGS

COEF = np.array([0.6, -0.3])
POINTS = np.array([[0.3, -0.2], [-0.4, 0.1]])


def linear_world(n, rng):
    """Rows, targets with skewed noise, and the regression function at the points.

    Noise is skewed, so that a line through medians is not the regression function.
    """
    X = rng.uniform(-0.5, 0.5, size=(n, 2))
    noise = np.minimum(rng.exponential(0.1, size=n), 0.4)
    mean = 0.1 * (1.0 - np.exp(-4.0))  # of an exponential variable that is cut at four scales
    return X, X @ COEF + noise - mean, POINTS @ COEF


def symmetric_world(n, rng):
    """The same line with uniform noise."""
    X = rng.uniform(-0.5, 0.5, size=(n, 2))
    return X, X @ COEF + rng.uniform(-0.2, 0.2, size=n), POINTS @ COEF


def classes_world(n, rng):
    """Two classes, whose log-odds are three times the line."""
    X = rng.uniform(-0.5, 0.5, size=(n, 2))
    labels = (rng.uniform(size=n) < expit(3.0 * X @ COEF)).astype(int)
    return X, labels, expit(3.0 * POINTS @ COEF)


def counts_world(n, rng):
    """Counts whose variance is one and a half of their mean: intervals are robust to that."""
    X = rng.uniform(-0.5, 0.5, size=(n, 2))
    mean = np.exp(X @ COEF)
    return X, rng.negative_binomial(2.0 * mean, 2.0 / 3.0), np.exp(POINTS @ COEF)


def instrument_world(n, rng):
    """The second feature follows the first, its instrument, and what else moves the target."""
    hidden, X = rng.uniform(-0.5, 0.5, size=n), rng.uniform(-0.5, 0.5, size=(n, 2))
    X[:, 1] = 0.7 * X[:, 0] + 0.3 * hidden
    return X, COEF[1] * X[:, 1] + 0.5 * hidden, POINTS[:, 1] * COEF[1]


# A class whose claim has other premises has a world of its own here, and settings.
WORLDS = {
    IHTRegressor: symmetric_world,  # its asymptotic interval takes noise for symmetric
    LogisticRegression: classes_world,
    PoissonRegressor: counts_world,
    IVRegressor: instrument_world,
}
CHOSEN = {
    IHTRegressor: {"n_nonzero_coefs": 2},  # the true features are selected
    LogisticRegression: {"bounds_X": (-0.5, 0.5), "classes": (0, 1)},
    PoissonRegressor: {"bounds_X": (-0.5, 0.5), "bounds_y": (0.0, 12.0)},
    IVRegressor: {"bounds_X": (-0.5, 0.5), "bounds_y": (-1.0, 1.0)},
}


def world(Estimator):
    """The world in which the claim of a class is tested."""
    return WORLDS.get(Estimator, linear_world)


def unfitted(Estimator, **settings):
    """An estimator of which the claim is tested."""
    return Estimator(**{**SETTINGS[Estimator], **CHOSEN.get(Estimator, {}), **settings})
