"""Intervals of layered regression cover for all x at once, at any n, on the hard designs."""

import numpy as np
import pytest
from scipy import stats

from skpriv.linear_model import LayeredRegressor

LEVEL = 0.9


def _isotropic(rng, n, d):
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _small_direction(rng, n, d):
    X = rng.choice([-1.0, 1.0], size=(n, d)) * n ** (-1.0 / 3.0)
    X[:, 0] = 0.5
    return X


def _rare_direction(rng, n, d):
    coordinate = np.where(rng.uniform(size=n) < n**-0.5, d - 1, rng.randint(d - 1, size=n))
    return np.eye(d)[coordinate]


def _many_scales(rng, n, d):
    return _isotropic(rng, n, d) * 10.0 ** -rng.uniform(0.0, 1.5, size=(n, 1))


DESIGNS = [_isotropic, _small_direction, _rare_direction, _many_scales]


def _failures(make, repetitions, n, d, **params):
    """Number of repetitions in which some x of many is not covered."""
    failures = 0
    for repetition in range(repetitions):
        rng = np.random.RandomState(1000 + repetition)
        theta = rng.normal(size=d)
        theta /= np.linalg.norm(theta)  # as long as coef_norm allows
        X = make(rng, n, d)
        y = np.where(rng.uniform(size=n) < (1.0 + X @ theta) / 2.0, 1.0, -1.0)  # the noisiest
        est = LayeredRegressor(
            data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False, random_state=repetition, **params
        ).fit(X, y)
        points = np.vstack([X[:200], _isotropic(rng, 200, d), np.eye(d), theta[None]])
        points = np.vstack([points, 0.1 * points])
        low, high = est.confidence_interval(points, LEVEL)
        truth = points @ theta
        failures += not ((low <= truth + 1e-9) & (truth <= high + 1e-9)).all()
    return failures


VARIED = [
    *(
        (10, 20_000, 2, {"epsilon": 8.0, "delta": delta, "privacy": privacy, "variant": variant})
        for privacy, delta in (("local", 1e-6), ("local", 1e-5), ("central", 1e-6))
        for variant in ("one-batch", "paper")
    ),
    (10, 20_000, 2, {"epsilon": 8.0, "privacy": "local", "channel": "codebook"}),
    *(
        (40, 100_000, d, {"epsilon": epsilon, "privacy": privacy, "variant": variant})
        for privacy in ("local", "central", "none")
        for d in (2, 5)
        for epsilon in (1.0, 4.0)
        for variant in ("one-batch", "paper")
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("make", DESIGNS, ids=lambda make: make.__name__.strip("_"))
@pytest.mark.parametrize("repetitions, n, d, params", VARIED)
def test_uniform_coverage(make, repetitions, n, d, params):
    failures = _failures(make, repetitions, n, d, **params, n_levels=2)
    assert failures <= stats.binom.isf(1e-4, repetitions, 1.0 - LEVEL)


@pytest.mark.parametrize("privacy", ["central", "none"])
def test_reused_records_are_counted(privacy):
    """Levels that share their records repeat the targets' errors: sums are not independent."""
    failures = _failures(_isotropic, 20, 500, 2, epsilon=50.0, privacy=privacy, n_levels=6)
    assert failures <= stats.binom.isf(1e-4, 20, 1.0 - LEVEL)
