"""Rows whose second moments have very different sizes."""

import numpy as np

from ._hard_base import finished, generator, unit_rows


def make_ill_conditioned(
    n_samples=10_000,
    n_features=5,
    *,
    condition=1e4,
    noise="uniform",
    return_coef=False,
    random_state=None,
):
    """Rows in an ellipsoid: uniform on the sphere, then scaled axis by axis.

    The scales fall geometrically from 1 to condition^{-1/2}, so that the matrix of second moments
    has this condition number. The parameter has norm 1 and equal entries, so that every direction
    matters in proportion to its scale. Errors that are uniform over the condition number are what
    re-weighting is for (Chen, Li, Rakhlin and Simchi-Levi 2025, Proposition 3.1 and Section 4).

    Parameters
    ----------
    n_samples : int, default=10000
    n_features : int, default=5
    condition : float >= 1, default=1e4
        Of the matrix of second moments; with one feature it is 1.
    noise : {"none", "uniform", "sign"}, default="uniform"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows in the unit ball.
    y : ndarray of shape (n_samples,)
        In [-1, 1], with mean X coef.
    coef : ndarray of shape (n_features,)
        Only if ``return_coef`` is True.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.datasets import make_ill_conditioned
    >>> X, y, coef = make_ill_conditioned(20_000, condition=100, return_coef=True, random_state=0)
    >>> round(float(np.linalg.cond(X.T @ X)), -1)
    100.0
    """
    rng = generator(random_state, noise, n_samples=n_samples, n_features=n_features)
    if not condition >= 1.0:
        raise ValueError(f"condition={condition!r} must be at least 1.")
    X = unit_rows(n_samples, n_features, rng) * np.geomspace(1.0, condition**-0.5, n_features)
    coef = np.full(n_features, n_features**-0.5)
    return finished(X, coef, noise, rng, return_coef)
