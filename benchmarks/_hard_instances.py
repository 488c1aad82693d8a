"""Hard instances of the papers: made so that what the theory promises, or rules out, is seen.

Each returns X, y in [-1, 1] with the mean X coef, and coef.
"""

import numpy as np
from scipy.signal import lfilter


def finished(X, coef, noise, rng):
    """(X, y, coef): "uniform" noise is as wide as [-1, 1] allows, "sign" makes y -1 or 1."""
    mean = X @ coef
    y = mean
    if noise == "uniform":
        y = mean + (1.0 - np.abs(mean)) * rng.uniform(-1.0, 1.0, size=len(X))
    elif noise == "sign":
        y = np.where(rng.uniform(-1.0, 1.0, size=len(X)) < mean, 1.0, -1.0)
    return X, y, coef


def unit_rows(n, d, rng):
    """Rows uniform on the unit sphere."""
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def make_small_direction(n, *, length=None, first=0.5, noise="none", random_state=None):
    """Rows (first, length) and (first, -length) with probability one half each.

    With the defaults the instance of Li, Simchi-Levi and Wang's Theorem 2 (EC.1.2, their constant
    0.07): the length is 0.07 n^{-1/3}, and the mean absolute error of every
    method that adds noise to rows and targets is of order n^{-1/3} at best. Case II of Eq. (4) is
    ``first=1, length=n**-0.25``, with all rows divided by their norm. The parameter is (1/2, 1/2).
    """
    rng = np.random.RandomState(random_state)
    row = np.array([first, 0.07 * n ** (-1.0 / 3.0) if length is None else length])
    row /= max(1.0, np.linalg.norm(row))
    X = np.column_stack([np.full(n, row[0]), rng.choice([-row[1], row[1]], size=n)])
    return finished(X, np.array([0.5, 0.5]), noise, rng)


def make_ill_conditioned(n, d, *, condition=1e4, noise="uniform", random_state=None):
    """Rows in an ellipsoid: uniform on the sphere, then scaled axis by axis.

    The scales fall geometrically from 1 to condition^{-1/2}, so that the matrix of second moments
    has this condition number. The parameter has norm 1 and equal entries, so that every direction
    matters in proportion to its scale. Errors that are uniform over the condition number are what
    re-weighting is for (Chen, Li, Rakhlin and Simchi-Levi 2025, Proposition 3.1 and Section 4).
    """
    rng = np.random.RandomState(random_state)
    X = unit_rows(n, d, rng) * np.geomspace(1.0, condition**-0.5, d)
    return finished(X, np.full(d, d**-0.5), noise, rng)


def make_rank_one(n, d, *, random_state=None):
    """Every row is the same unit vector, which is also the parameter, and every target has mean 1.

    The instance of Proposition 6.1 of Chen, Li, Rakhlin and Simchi-Levi (2025): the second moments
    have rank one, and yet no private estimator of moderate norm has a non-trivial error unless
    the number of records grows with the dimension. Estimators whose error does not depend on the
    dimension are therefore improper: long vectors that are right on average only.
    """
    rng = np.random.RandomState(random_state)
    coef = unit_rows(1, d, rng)[0]
    coef = coef / max(1.0, coef @ coef)  # Rounding must not make it longer than 1.
    return finished(np.tile(coef, (n, 1)), coef, "none", rng)


def make_sparse_autoregressive(
    n, d, *, n_nonzero=5, correlation=0.1, data_max=3.0, random_state=None
):
    """Gaussian features with covariance correlation^|i - j| and a sparse parameter.

    The design of the experiments of FLIPHAT (Section 6): 400 features, 5 of them with a
    coefficient, correlation 0.1. Departures: entries are clipped to ``data_max``, a bound that the
    privacy of iterative hard thresholding needs and that Gaussians do not have. The coefficients
    are such that means lie in [-1, 1]: equal up to a random sign, at random places, with l1 norm 1
    / data_max. Rows are in the l_inf ball of radius ``data_max``, not in the unit ball.
    """
    rng = np.random.RandomState(random_state)
    shocks = rng.normal(size=(n, d))
    shocks[:, 1:] *= np.sqrt(1.0 - correlation**2)
    X = np.clip(lfilter([1.0], [1.0, -correlation], shocks, axis=1), -data_max, data_max)
    coef = np.zeros(d)
    support = rng.choice(d, size=n_nonzero, replace=False)
    coef[support] = rng.choice([-1.0, 1.0], size=n_nonzero) / (n_nonzero * data_max)
    return finished(X, coef, "uniform", rng)
