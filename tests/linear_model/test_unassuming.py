"""Intervals that assume no norm of the coefficients cover, and say when they cannot tell."""

import numpy as np
import pytest
from scipy import stats

from skpriv._equations._certified_newton import _goe_norm, _region
from skpriv._equations._intervals import released_bound
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


def test_the_bound_on_the_coefficients_holds(global_random_seed):
    for seed in range(20):
        X, _, y = _data(20_000, 100 * global_random_seed + seed)
        est = SSPRegressor(
            data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False, random_state=seed
        ).fit(X, y)
        assert np.linalg.norm(0.6 * SLOPES) <= released_bound(est._equations, 0.05)


def test_certified_intervals_of_the_flagship_cover():
    misses = []
    for seed in range(15):
        X, mean, y = _data(30_000, seed)
        est = LinearRegression(bounds_X=(-0.6, 0.6), bounds_y=(-1, 1), random_state=seed)
        low, high = est.fit(X, y).confidence_interval(X[:50], 0.8, method="certified")
        misses.append(1.0 - ((low <= mean[:50]) & (mean[:50] <= high)).mean())
        assert (high - low).max() < 0.2
    assert np.mean(misses) <= 0.2


@pytest.mark.parametrize("size", [0.01, 0.3])
def test_the_quantile_is_one_of_the_worst_sum(size, global_random_seed):
    """Poisson terms of this size and variance 1, with a normal variable of an adverse scale.

    The scale is chosen after the sum is seen, as the scale of the noise may depend on the records:
    for a positive normal variable the largest miss over scales, for a negative one scale 0.
    """
    rng = np.random.RandomState(global_random_seed)
    failure, draws = 0.05, 200_000
    t, q = _region(failure)
    total = size * (rng.poisson(size**-2.0, size=draws) - size**-2.0)
    normal, missed, halved = rng.normal(size=draws), np.zeros(draws, bool), np.zeros(draws, bool)
    for scale in (0.0, *np.geomspace(0.05, 50.0, 40)):
        h = np.sqrt(2.0 * t + (scale * q) ** 2) + size * t / 3.0
        missed |= total + scale * normal > h
        halved |= total + scale * normal > h / 2.0
    assert missed.mean() <= failure < halved.mean()


@pytest.mark.parametrize("p", [2, 10])
def test_the_norm_of_a_noisy_design_is_bounded(p, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    square = rng.chisquare(1, size=50_000) + rng.chisquare(p - 1, size=50_000) / 2.0
    assert (np.sqrt(square) > _goe_norm(p, 0.01)).mean() <= 0.01
    assert (np.sqrt(square) > _goe_norm(p, 0.01) / 2.0).mean() > 0.01
    assert stats.norm.isf(0.01) < _goe_norm(p, 0.01)
