"""One row and one target, in an unknown direction of a large space."""

import numpy as np

from ._hard_base import finished, generator, unit_rows


def make_rank_one(
    n_samples=10_000, n_features=1000, *, noise="none", return_coef=False, random_state=None
):
    """Every row is the same unit vector, which is also the parameter, and every target has mean 1.

    The instance of Proposition 6.1 of Chen, Li, Rakhlin and Simchi-Levi (2025): the second moments
    have rank one, and yet no private estimator of moderate norm has a non-trivial error unless
    the number of records grows with the dimension. Estimators whose error does not depend on the
    dimension are therefore improper: long vectors that are right on average only.

    Parameters
    ----------
    n_samples : int, default=10000
    n_features : int, default=1000
    noise : {"none", "uniform", "sign"}, default="none"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The same unit vector in every row.
    y : ndarray of shape (n_samples,)
        In [-1, 1], with mean X coef.
    coef : ndarray of shape (n_features,)
        Only if ``return_coef`` is True.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.datasets import make_rank_one
    >>> X, y, coef = make_rank_one(100, 20, return_coef=True, random_state=0)
    >>> int(np.linalg.matrix_rank(X)), bool(np.allclose(y, 1.0)), bool(np.allclose(X[0], coef))
    (1, True, True)
    """
    rng = generator(random_state, noise, n_samples=n_samples, n_features=n_features)
    coef = unit_rows(1, n_features, rng)[0]
    coef = coef / max(1.0, float(coef @ coef))  # not above 1 by rounding
    return finished(np.tile(coef, (n_samples, 1)), coef, noise, rng, return_coef)
