"""Intervals that assume no norm of the coefficients cover, and say when they cannot tell."""

import numpy as np
import pytest
from scipy import stats

from skpriv._equations._certified_newton import _goe_norm, _quantile
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
        est = Estimator(fit_intercept=False, random_state=seed).fit(X, y)
        assert est.coef_norm is None
        low, high = est.confidence_interval(X[:50], method=method)
        missed.append(1.0 - ((low <= mean[:50]) & (mean[:50] <= high)).mean())
        assert (high - low).mean() < 0.5
    assert np.mean(missed) < (0.01 if method == "certified" else 0.15)


@pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])
def test_what_is_not_resolved_gets_the_bounds(Estimator):
    X, _, y = _data(60, 0)
    low, high = Estimator(random_state=0, epsilon=0.1).fit(X, y).confidence_interval(X)
    assert (low == -1.0).all() and (high == 1.0).all()


def test_the_bound_on_the_coefficients_holds(global_random_seed):
    for seed in range(20):
        X, _, y = _data(20_000, 100 * global_random_seed + seed)
        est = SSPRegressor(fit_intercept=False, random_state=seed).fit(X, y)
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


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", [0.01, 0.3])
def test_the_quantile_is_one_of_the_worst_sum(share, scale, global_random_seed):
    """Centred Bernoulli terms of this size and variance, with a normal variable: never exceeded."""
    rng = np.random.RandomState(global_random_seed)
    failure, draws = 0.05, 200_000
    normal = np.sqrt(1.0 - share) * rng.normal(size=draws)
    rate = max(share, 1e-12) / scale**2  # Poisson of this rate and size: the worst for Bernstein
    total = normal + scale * (rng.poisson(rate, size=draws) - rate)
    args = np.array([share]), np.array([1.0 - share]), np.array([scale])
    h = float(_quantile(*args, failure)[0])
    assert (np.abs(total) > h).mean() <= failure
    assert (np.abs(total) > h / 2.0).mean() > failure


@pytest.mark.parametrize("p", [2, 10])
def test_the_norm_of_a_noisy_design_is_bounded(p, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    square = rng.chisquare(1, size=50_000) + rng.chisquare(p - 1, size=50_000) / 2.0
    assert (np.sqrt(square) > _goe_norm(p, 0.01)).mean() <= 0.01
    assert (np.sqrt(square) > _goe_norm(p, 0.01) / 2.0).mean() > 0.01
    assert stats.norm.isf(0.01) < _goe_norm(p, 0.01)
