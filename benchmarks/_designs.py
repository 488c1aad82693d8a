"""Designs of the benchmarks: rows in the unit ball, and parameters at the norm bound."""

import numpy as np

DESIGNS = ("isotropic", "ill-conditioned", "rare direction", "small direction")


def make_rows(design, n, d, rng):
    """Rows of a design, shape (n, d), in the unit ball."""
    if design == "ill-conditioned":
        scales = np.geomspace(1.0, 0.01, d)
        return rng.uniform(-1.0, 1.0, (n, d)) * scales / np.linalg.norm(scales)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    if design == "rare direction":
        rare = rng.uniform(size=n) < 0.01
        X[:, 0] = 0.0
        X[rare] = np.eye(d)[0]
    elif design == "small direction":
        X[:, 0] *= 0.05
    return X


def make_theta(design, d, rng):
    """Parameter of norm 1, with weight on the rare or small direction."""
    theta = rng.standard_normal(d)
    if design in ("rare direction", "small direction"):
        theta[0] = np.linalg.norm(theta[1:]) * rng.choice([-1.0, 1.0])
    return theta / np.linalg.norm(theta)


def make_signs(mean, rng):
    """Targets of +-1 with this mean: the largest variance that the bounds allow."""
    return np.where(rng.uniform(size=len(mean)) < (1.0 + mean) / 2.0, 1.0, -1.0)
