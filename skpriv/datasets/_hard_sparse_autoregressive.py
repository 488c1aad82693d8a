"""Correlated features, of which few matter."""

import numpy as np
from scipy.signal import lfilter

from ._hard_base import finished, generator


def make_sparse_autoregressive(
    n_samples=10_000,
    n_features=400,
    *,
    n_nonzero=5,
    correlation=0.1,
    data_max=3.0,
    noise="uniform",
    return_coef=False,
    random_state=None,
):
    """Gaussian features with covariance correlation^|i - j| and a sparse parameter.

    The design of the experiments of FLIPHAT (Section 6): 400 features, 5 of them with a
    coefficient, correlation 0.1. Departures: entries are clipped to ``data_max`` (a bound that the
    privacy of iterative hard thresholding needs, and that unbounded Gaussians do not have), and
    the coefficients are such that means lie in [-1, 1]: equal up to a random sign, at random
    places, with l1 norm 1 / data_max. Rows are in the l_inf ball of radius ``data_max``, not in the
    unit ball.

    Parameters
    ----------
    n_samples : int, default=10000
    n_features : int, default=400
    n_nonzero : int, default=5
    correlation : float in (-1, 1), default=0.1
        Of neighbouring features.
    data_max : float > 0, default=3.0
    noise : {"none", "uniform", "sign"}, default="uniform"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Entries in [-data_max, data_max].
    y : ndarray of shape (n_samples,)
        In [-1, 1], with mean X coef.
    coef : ndarray of shape (n_features,)
        Only if ``return_coef`` is True.

    Examples
    --------
    >>> from skpriv.datasets import make_sparse_autoregressive
    >>> X, y, coef = make_sparse_autoregressive(100, 50, return_coef=True, random_state=0)
    >>> X.shape, int((coef != 0).sum()), round(float(abs(coef).sum()), 3)
    ((100, 50), 5, 0.333)
    """
    rng = generator(
        random_state,
        noise,
        n_samples=n_samples,
        n_features=n_features,
        n_nonzero=n_nonzero,
        data_max=data_max,
    )
    if not -1.0 < correlation < 1.0:
        raise ValueError(f"correlation={correlation!r} must lie in (-1, 1).")
    if n_nonzero > n_features:
        raise ValueError(f"n_nonzero={n_nonzero} must be at most n_features={n_features}.")
    shocks = rng.normal(size=(n_samples, n_features))
    shocks[:, 1:] *= np.sqrt(1.0 - correlation**2)
    X = np.clip(lfilter([1.0], [1.0, -correlation], shocks, axis=1), -data_max, data_max)
    coef = np.zeros(n_features)
    support = rng.choice(n_features, size=n_nonzero, replace=False)
    coef[support] = rng.choice([-1.0, 1.0], size=n_nonzero) / (n_nonzero * data_max)
    return finished(X, coef, noise, rng, return_coef)
