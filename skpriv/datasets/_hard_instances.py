"""Hard instances of the papers: made so that what the theory promises, or rules out, is seen."""

from numbers import Real
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from scipy.signal import lfilter
from sklearn.utils import check_random_state

from .._linalg import norm_of
from .._compat import Interval
from .._parameters import Count, Positive, Probability, RandomState, validated

if TYPE_CHECKING:
    from .._contracts import Array

TargetNoise = Literal["none", "uniform", "sign"]


def finished(
    X: np.ndarray, coef: np.ndarray, noise: str, rng: np.random.RandomState, return_coef: bool
) -> tuple[np.ndarray, ...]:
    """(X, y) or (X, y, coef), y in [-1, 1] with the mean X coef, |X coef| <= 1.

    "uniform" noise is as wide as [-1, 1] allows at each row, and "sign" makes every target -1 or 1.
    """
    mean = X @ coef
    draws = rng.uniform(-1.0, 1.0, size=len(X))
    y = mean
    if noise == "uniform":
        y = mean + (1.0 - np.abs(mean)) * draws
    elif noise == "sign":
        y = np.where(draws < mean, 1.0, -1.0)
    return (X, y, coef) if return_coef else (X, y)


def unit_rows(n_samples: int, n_features: int, rng: np.random.RandomState) -> "Array":
    """Rows uniform on the unit sphere."""
    X = rng.normal(size=(n_samples, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@validated
def make_small_direction(
    n_samples: Count = 10_000,
    *,
    length: Probability | None = None,
    first: Probability = 0.5,
    noise: TargetNoise = "none",
    return_coef: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    """Rows (first, length) and (first, -length) with probability one half each.

    With the defaults the instance of Li, Simchi-Levi and Wang's Theorem 2 (EC.1.2, their constant
    0.07): the length is 0.07 n^{-1/3}, and the mean absolute error of every
    method that adds noise to rows and targets is of order n^{-1/3} at best. Case II of Eq. (4) is
    ``first=1, length=n**-0.25``, with all rows divided by their norm. The parameter is (1/2, 1/2).

    Parameters
    ----------
    n_samples : int, default=10000
        Number of rows.
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
        Seed of the draws; None draws anew each time.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Rows in the unit ball.
    y : ndarray of shape (n_samples,)
        Targets in [-1, 1], with mean X coef.
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
    rng = check_random_state(random_state)
    length = 0.07 * n_samples ** (-1.0 / 3.0) if length is None else length
    row = np.array([first, length])
    row /= max(1.0, norm_of(row))
    X = np.column_stack([np.full(n_samples, row[0]), rng.choice([-row[1], row[1]], size=n_samples)])
    return finished(X, np.array([0.5, 0.5]), noise, rng, return_coef)


@validated
def make_ill_conditioned(
    n_samples: Count = 10_000,
    n_features: Count = 5,
    *,
    condition: Annotated[float, Interval(Real, 1, None, closed="left")] = 1e4,
    noise: TargetNoise = "uniform",
    return_coef: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    """Rows in an ellipsoid: uniform on the sphere, then scaled axis by axis.

    The scales fall geometrically from 1 to condition^{-1/2}, so that the matrix of second moments
    has this condition number. The parameter has norm 1 and equal entries, so that every direction
    matters in proportion to its scale. Errors that are uniform over the condition number are what
    re-weighting is for (Chen, Li, Rakhlin and Simchi-Levi 2025, Proposition 3.1 and Section 4).

    Parameters
    ----------
    n_samples : int, default=10000
        Number of rows.
    n_features : int, default=5
        Number of columns.
    condition : float >= 1, default=1e4
        Condition number of the matrix of second moments; with one feature it is 1.
    noise : {"none", "uniform", "sign"}, default="uniform"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None
        Seed of the draws; None draws anew each time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows in the unit ball.
    y : ndarray of shape (n_samples,)
        Targets in [-1, 1], with mean X coef.
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
    rng = check_random_state(random_state)
    X = unit_rows(n_samples, n_features, rng) * np.geomspace(1.0, condition**-0.5, n_features)
    return finished(X, np.full(n_features, n_features**-0.5), noise, rng, return_coef)


@validated
def make_rank_one(
    n_samples: Count = 10_000,
    n_features: Count = 1000,
    *,
    noise: TargetNoise = "none",
    return_coef: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    """Every row is the same unit vector, which is also the parameter, and every target has mean 1.

    The instance of Proposition 6.1 of Chen, Li, Rakhlin and Simchi-Levi (2025): the second moments
    have rank one, and yet no private estimator of moderate norm has a non-trivial error unless
    the number of records grows with the dimension. Estimators whose error does not depend on the
    dimension are therefore improper: long vectors that are right on average only.

    Parameters
    ----------
    n_samples : int, default=10000
        Number of rows.
    n_features : int, default=1000
        Number of columns.
    noise : {"none", "uniform", "sign"}, default="none"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None
        Seed of the draws; None draws anew each time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The same unit vector in every row.
    y : ndarray of shape (n_samples,)
        Targets in [-1, 1], with mean X coef.
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
    rng = check_random_state(random_state)
    coef = unit_rows(1, n_features, rng)[0]
    coef = coef / max(1.0, float(coef @ coef))  # Rounding must not make it longer than 1.
    return finished(np.tile(coef, (n_samples, 1)), coef, noise, rng, return_coef)


@validated
def make_sparse_autoregressive(
    n_samples: Count = 10_000,
    n_features: Count = 400,
    *,
    n_nonzero: Count = 5,
    correlation: Annotated[float, Interval(Real, -1, 1, closed="neither")] = 0.1,
    data_max: Positive = 3.0,
    noise: TargetNoise = "uniform",
    return_coef: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, ...]:
    """Gaussian features with covariance correlation^|i - j| and a sparse parameter.

    The design of the experiments of FLIPHAT (Section 6): 400 features, 5 of them with a
    coefficient, correlation 0.1. Departures: entries are clipped to ``data_max``, a bound that the
    privacy of iterative hard thresholding needs and that Gaussians do not have. The coefficients
    are such that means lie in [-1, 1]: equal up to a random sign, at random places, with l1 norm 1
    / data_max. Rows are in the l_inf ball of radius ``data_max``, not in the unit ball.

    Parameters
    ----------
    n_samples : int, default=10000
        Number of rows.
    n_features : int, default=400
        Number of columns.
    n_nonzero : int, default=5
        Number of coefficients that are not zero, at most ``n_features``.
    correlation : float in (-1, 1), default=0.1
        Correlation of neighbouring features.
    data_max : float > 0, default=3.0
        Bound on the size of each entry; larger ones are clipped to it.
    noise : {"none", "uniform", "sign"}, default="uniform"
        "none": y is its mean. "uniform": as wide as [-1, 1] allows at each row. "sign": y is -1
        or 1.
    return_coef : bool, default=False
        Whether to return the true parameter, too.
    random_state : None, int or RandomState, default=None
        Seed of the draws; None draws anew each time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Entries in [-data_max, data_max].
    y : ndarray of shape (n_samples,)
        Targets in [-1, 1], with mean X coef.
    coef : ndarray of shape (n_features,)
        Only if ``return_coef`` is True.

    Examples
    --------
    >>> from skpriv.datasets import make_sparse_autoregressive
    >>> X, y, coef = make_sparse_autoregressive(100, 50, return_coef=True, random_state=0)
    >>> X.shape, int((coef != 0).sum()), round(float(abs(coef).sum()), 3)
    ((100, 50), 5, 0.333)
    """
    rng = check_random_state(random_state)
    if n_nonzero > n_features:
        raise ValueError(f"n_nonzero={n_nonzero} must be at most n_features={n_features}.")
    shocks = rng.normal(size=(n_samples, n_features))
    shocks[:, 1:] *= np.sqrt(1.0 - correlation**2)
    X = lfilter([1.0], [1.0, -correlation], shocks, axis=1).clip(-data_max, data_max)
    coef = np.zeros(n_features)
    support = rng.choice(n_features, size=n_nonzero, replace=False)
    coef[support] = rng.choice([-1.0, 1.0], size=n_nonzero) / (n_nonzero * data_max)
    return finished(X, coef, noise, rng, return_coef)
