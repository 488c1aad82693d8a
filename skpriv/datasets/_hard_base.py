"""What the generators of hard instances share: bounded targets and the returned tuple."""

import numpy as np
from sklearn.utils import check_random_state

NOISES = ("none", "uniform", "sign")


def generator(random_state, noise, **positive):
    """Checked random state; sizes must be positive and the noise a known one."""
    for name, value in positive.items():
        if not value > 0:
            raise ValueError(f"{name}={value!r} must be positive.")
    if noise not in NOISES:
        raise ValueError(f"noise={noise!r} must be one of {', '.join(map(repr, NOISES))}.")
    return check_random_state(random_state)


def probability(name, value):
    """Check a probability."""
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{name}={value!r} must lie in (0, 1].")
    return value


def finished(X, coef, noise, rng, return_coef):
    """(X, y) or (X, y, coef), y in [-1, 1] with the mean X coef, |X coef| <= 1.

    "uniform" noise is as wide as [-1, 1] allows at each row, and "sign" makes every target -1 or 1.
    """
    mean = X @ coef
    y = mean
    if noise == "uniform":
        y = mean + (1.0 - np.abs(mean)) * rng.uniform(-1.0, 1.0, size=len(X))
    elif noise == "sign":
        y = np.where(rng.uniform(-1.0, 1.0, size=len(X)) < mean, 1.0, -1.0)
    return (X, y, coef) if return_coef else (X, y)


def unit_rows(n_samples, n_features, rng):
    """Rows uniform on the unit sphere."""
    X = rng.normal(size=(n_samples, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True)
