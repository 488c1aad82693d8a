"""Intervals that assume no norm of the coefficients cover, and say when they cannot tell."""

import numpy as np
import pytest

from skpriv._estimation._intervals import released_bound
from skpriv._estimation._normal_equations import NormalEquations
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


@pytest.mark.parametrize("n", [0, 400])
@pytest.mark.parametrize("p", [1, 6])
def test_the_errors_of_the_targets_are_within_the_bound_on_the_coefficients(p, n):
    """All of sampling or of privacy: with a design of 1 and no target the bound is that of errors.

    Halved it would fail: more often than it may where privacy noise is all.
    """
    rng, failure, draws = np.random.RandomState(0), 0.1, 20_000
    rows = rng.normal(size=(n, p))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    equations = NormalEquations(
        design=np.eye(p), target=np.zeros(p), gram=rows.T @ rows, square=float(n), n=n or 400,
        symmetric=True, design_scale=0.0, target_scale=0.0 if n else 1.0, gram_scale=0.0,
    )  # fmt: skip
    bound = released_bound(equations, failure)
    signs = np.where(rng.uniform(size=(draws, n)) < 0.5, 1.0, -1.0)
    errors = signs @ rows + equations.target_scale * rng.normal(size=(draws, p))
    sizes = np.linalg.norm(errors, axis=1)
    assert (sizes > bound).mean() <= failure
    assert (sizes > bound / 2.0).mean() > (0.5 * failure if n else failure)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("p", [1, 6])
def test_the_noise_of_the_design_is_within_the_bound_on_the_coefficients(p, symmetric):
    """With a target of length 1 and no other error the bound is 1 / (1 - the norm of N u)."""
    rng, failure, draws, scale = np.random.RandomState(0), 0.1, 20_000, 0.05
    equations = NormalEquations(
        design=np.eye(p), target=np.eye(p)[0], gram=np.zeros((p, p)), square=0.0, n=400,
        symmetric=symmetric, design_scale=scale, target_scale=0.0, gram_scale=0.0,
    )  # fmt: skip
    most = 1.0 - 1.0 / released_bound(equations, failure)
    rest = rng.chisquare(p - 1, size=draws) if p > 1 else 0.0
    sizes = scale * np.sqrt(rng.chisquare(1, size=draws) + (0.5 if symmetric else 1.0) * rest)
    assert (sizes > most).mean() <= failure < (sizes > most / 2.0).mean()


def test_certified_intervals_of_the_flagship_cover():
    misses = []
    for seed in range(15):
        X, mean, y = _data(30_000, seed)
        est = LinearRegression(bounds_X=(-0.6, 0.6), bounds_y=(-1, 1), random_state=seed)
        low, high = est.fit(X, y).confidence_interval(X[:50], 0.8, method="certified")
        misses.append(1.0 - ((low <= mean[:50]) & (mean[:50] <= high)).mean())
        assert (high - low).max() < 0.2
    assert np.mean(misses) <= 0.2
