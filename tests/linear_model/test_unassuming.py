"""Intervals that assume no norm of the coefficients cover, and say when they cannot tell."""

import numpy as np
import pytest

from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor

SLOPES = np.array([1.2, -0.9])  # with rows in the unit ball: of norm 1.5, above any default of 1


def _data(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.6, 0.6, size=(n, 2))
    mean = X @ SLOPES * 0.6
    skewed = np.minimum(rng.exponential(size=n), 3.0) - (1.0 - np.exp(-3.0))
    return X, mean, np.clip(mean + 0.05 * skewed, -1.0, 1.0)


@pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])
@pytest.mark.parametrize("method", ["certified", "asymptotic"])
def test_intervals_cover_coefficients_of_any_norm(Estimator, method):
    missed = []
    for seed in range(12):
        X, mean, y = _data(20_000, seed)
        est = Estimator(
            data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False, random_state=seed
        ).fit(X, y)
        assert est.coef_norm is None
        low, high = est.confidence_interval(X[:50], method=method)
        missed.append(1.0 - ((low <= mean[:50]) & (mean[:50] <= high)).mean())
        assert (high - low).mean() < 0.5
    assert np.mean(missed) < (0.01 if method == "certified" else 0.15)


@pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])
def test_what_is_not_resolved_gets_the_bounds(Estimator):
    X, _, y = _data(60, 0)
    low, high = (
        Estimator(data_norm=1.0, bounds_y=(-1, 1), random_state=0, epsilon=0.1)
        .fit(X, y)
        .confidence_interval(X)
    )
    assert (low == -1.0).all() and (high == 1.0).all()


def test_certified_intervals_of_the_flagship_cover():
    misses = []
    for seed in range(15):
        X, mean, y = _data(30_000, seed)
        est = LinearRegression(bounds_X=(-0.6, 0.6), bounds_y=(-1, 1), random_state=seed)
        low, high = est.fit(X, y).confidence_interval(X[:50], 0.8, method="certified")
        misses.append(1.0 - ((low <= mean[:50]) & (mean[:50] <= high)).mean())
        assert (high - low).max() < 0.2
    assert np.mean(misses) <= 0.2
