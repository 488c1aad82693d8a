"""A direction in which every row is short: input perturbation cannot see it."""

import numpy as np

from ._hard_base import finished, generator, probability


def make_small_direction(
    n_samples=10_000,
    *,
    length=None,
    first=0.5,
    noise="none",
    return_coef=False,
    random_state=None,
):
    """Rows (first, length) and (first, -length) with probability one half each.

    With the defaults the instance of Li, Simchi-Levi and Wang's Theorem 2 (EC.1.2, their constant
    0.07): the length is 0.07 n^{-1/3}, and the mean absolute error of every
    method that adds noise to rows and targets is of order n^{-1/3} at best. Case II of Eq. (4) is
    ``first=1, length=n**-0.25``, with all rows divided by their norm. The parameter is (1/2, 1/2).

    Parameters
    ----------
    n_samples : int, default=10000
    length : float in (0, 1], default=None
        None: 0.07 n_samples^{-1/3}.
    first : float in (0, 1], default=0.5
        Rows are divided by their norm if it is above 1.
    noise : {"none", "uniform", "sign"}, default="none"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows in the unit ball.
    y : ndarray of shape (n_samples,)
        In [-1, 1], with mean X coef.
    coef : ndarray of shape (2,)
        Only if ``return_coef`` is True.

    References
    ----------
    J. Li, D. Simchi-Levi and Y. Wang (2024). On the optimal regret of locally private linear
    contextual bandit: Theorem 2.

    Examples
    --------
    >>> from skpriv.datasets import make_small_direction
    >>> X, y, coef = make_small_direction(1000, return_coef=True, random_state=0)
    >>> abs(X[0]).round(4).tolist(), coef.tolist()
    ([0.5, 0.007], [0.5, 0.5])
    """
    rng = generator(random_state, noise, n_samples=n_samples)
    length = 0.07 * n_samples ** (-1.0 / 3.0) if length is None else length
    row = np.array([probability("first", first), probability("length", length)])
    row = row / max(1.0, float(np.linalg.norm(row)))
    X = np.column_stack([np.full(n_samples, row[0]), rng.choice([-row[1], row[1]], size=n_samples)])
    return finished(X, np.array([0.5, 0.5]), noise, rng, return_coef)
