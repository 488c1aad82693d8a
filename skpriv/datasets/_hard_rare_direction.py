"""A direction that occurs so rarely that local privacy cannot see it."""

from math import sqrt

import numpy as np

from ._hard_base import finished, generator, probability


def make_rare_direction(
    n_samples=10_000,
    *,
    rare_probability=None,
    n_features=2,
    noise="none",
    return_coef=False,
    random_state=None,
):
    """Rows that are the first unit vector but for rare ones, which carry the signal.

    The instance of Li, Simchi-Levi and Wang's Theorem 1 (Eq. 3, EC.1.1), and case I of their Eq.
    (4): a row is e_2 with probability c / sqrt(n), else e_1. No local method learns the second
    coefficient, so that mean squared errors fall no faster than n^{-1/2}; nor need it be learnt
    for mean absolute errors of that order, since the direction is as rare in the error. The true
    parameter is (0, 1), their H_1.

    Parameters
    ----------
    n_samples : int, default=10000
    rare_probability : float in (0, 1], default=None
        Of all rare rows together; None: 1 / sqrt(n_samples).
    n_features : int >= 2, default=2
        With more than 2, each of the others is rare alike, with a coefficient of the same size.
    noise : {"none", "uniform", "sign"}, default="none"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows are unit vectors of the axes.
    y : ndarray of shape (n_samples,)
        In [-1, 1], with mean X coef.
    coef : ndarray of shape (n_features,)
        Only if ``return_coef`` is True.

    References
    ----------
    J. Li, D. Simchi-Levi and Y. Wang (2024). On the optimal regret of locally private linear
    contextual bandit: Theorem 1.

    Examples
    --------
    >>> from skpriv.datasets import make_rare_direction
    >>> X, y, coef = make_rare_direction(10_000, return_coef=True, random_state=0)
    >>> coef.tolist(), bool(50 < X[:, 1].sum() < 150)
    ([0.0, 1.0], True)
    """
    rng = generator(random_state, noise, n_samples=n_samples, n_features=n_features - 1)
    rare = 1.0 / sqrt(n_samples) if rare_probability is None else rare_probability
    rare = probability("rare_probability", rare)
    axes = np.where(
        rng.uniform(size=n_samples) < rare, rng.randint(1, n_features, size=n_samples), 0
    )
    coef = np.full(n_features, 1.0 / sqrt(n_features - 1))
    coef[0] = 0.0
    return finished(np.eye(n_features)[axes], coef, noise, rng, return_coef)
