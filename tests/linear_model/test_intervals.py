"""Intervals: quantiles by Monte Carlo, shape, order, errors."""

from types import SimpleNamespace

import numpy as np
import pytest
from registry.estimators import bounded

from skpriv._estimation._intervals import _residual_variance, asymptotic_interval, certified_by_norm
from skpriv.linear_model import (
    LinearRegression, LogisticRegression, PoissonRegressor, ReweightedRegressor, SSPRegressor,
)  # fmt: skip

estimators = pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])


def _data(n=4000, d=3, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, size=(n, d)) / np.sqrt(d)
    mean = X @ np.linspace(0.6, -0.4, d)
    return X, np.where(rng.uniform(-1, 1, size=n) < mean, 1.0, -1.0)


@estimators
@pytest.mark.parametrize(
    ("privacy", "fit_intercept"),
    [("central", True), ("central", False), ("local", True), ("shuffle", True), ("none", False)],
)
def test_intervals_lie_inside_the_bounds_and_shrink_with_the_level(
    Estimator, privacy, fit_intercept, global_random_seed
):
    X, y = _data(seed=global_random_seed)
    bounds = (-2.0, 5.0)
    options = {"privacy": privacy, "fit_intercept": fit_intercept, "bounds_y": bounds}
    est = bounded(Estimator, **options, random_state=global_random_seed).fit(X, 2.0 * y + 1.0)
    points = np.vstack([np.zeros((1, 3)), X[:50], 100.0 * X[:5]])
    phi, bound = est._scaling.features(points), est._scaling.theta_bound(1.0)
    theta = est._scaling.theta(est.coef_, est.intercept_)
    before = np.inf, np.inf
    for level in (0.999, 0.95, 0.5, 0.01):
        for method in ("certified", "asymptotic"):
            interval = est.confidence_interval(points, level, method=method)
            low, high = interval
            assert interval.low is low and interval.high is high
            assert low.shape == high.shape == (len(points),)
            assert (bounds[0] <= low).all() and (low <= high).all() and (high <= bounds[1]).all()
        # Before they are clipped to the bounds, they shrink. (A clipped one may not, if another
        # centre is the best at another level.)
        halves = (
            certified_by_norm(est._equations, phi, bound, level)[1],
            asymptotic_interval(est._equations, phi, theta, bound, level)[1],
        )
        for half, wider in zip(halves, before, strict=True):
            assert (half <= wider).all()
        before = halves


@estimators
@pytest.mark.parametrize("size", [1.0, 0.1])
def test_without_noise_the_certified_interval_is_bernsteins(Estimator, size):
    """At v = G^-1 x: half = sqrt(2 log(2 / failure) x'G^-1 x), for targets of any variance.

    Bernstein's is narrower by far where the targets' noise is small, and wider by three tenths
    where it is as large as it can be.
    """
    X, signs = _data(4000 if size == 1.0 else 40_000)
    mean = X @ np.linspace(0.6, -0.4, 3)
    y = mean + size * (signs - mean)
    est = bounded(Estimator, privacy="none", coef_norm=1.0, fit_intercept=False).fit(X, y)
    low, high = est.confidence_interval(X[:30], 0.9)
    leverage = np.einsum("ij,ij->i", X[:30] @ np.linalg.inv(X.T @ X), X[:30])
    half = np.sqrt(2.0 * np.log(2.0 / 0.1) * leverage)
    assert ((high - low) / 2 <= 1.3 * half).all()
    if size < 1.0:
        assert ((high - low) / 2 <= 0.3 * half).all()
        assert ((low <= mean[:30]) & (mean[:30] <= high)).all()


@estimators
def test_bad_methods(Estimator):
    est = bounded(Estimator, random_state=0).fit(*_data(100))
    with pytest.raises(ValueError, match="method='exact' must be"):
        est.confidence_interval(_data(5)[0], method="exact")


def test_the_released_residual_gram_is_the_variance_of_the_sum_of_residuals():
    """Heteroscedastic residuals along fixed rows: v'Gv is the variance, and neither half nor twice
    of it; where it is not released, the Gram matrix of the rows is above it.
    """
    rng, n, p, draws = np.random.RandomState(0), 300, 3, 20_000
    rows = rng.normal(size=(n, p))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    deviations = 0.1 + 0.9 * np.abs(rows[:, 0])
    scaled = rows * deviations[:, None]
    equations = SimpleNamespace(
        gram=rows.T @ rows, sampling_gram=scaled.T @ scaled, residual_scale=0.0,
        residual_level=lambda rows: 0.1,
    )  # fmt: skip
    V = rng.normal(size=(5, p))
    squares = (V**2).sum(axis=1)
    found = _residual_variance(equations, V, squares)
    sums = np.where(rng.uniform(size=(draws, n)) < 0.5, 1.0, -1.0) @ scaled @ V.T
    np.testing.assert_allclose(found, sums.var(axis=0), rtol=0.06)
    equations.sampling_gram = None
    assert (_residual_variance(equations, V, squares) > found).all()


@pytest.mark.parametrize("epsilon", [5.0, 1e4, np.inf])
@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (LinearRegression, {"bounds_y": (-1, 1)}),
        (LogisticRegression, {"classes": (0, 1)}),
        (PoissonRegressor, {"bounds_y": (0, 5)}),
    ],
)
def test_a_feature_that_is_always_0_has_finite_coefficients_and_intervals(cls, settings, epsilon):
    """Alone, and without an intercept: its noisy square is below 0 in half of all fits."""
    X, y = np.zeros((2000, 1)), np.random.RandomState(0).randint(0, 2, size=2000)
    for seed in range(2):
        est = cls(
            epsilon=epsilon, bounds_X=(-1, 1), fit_intercept=False, random_state=seed, **settings
        ).fit(X, y)  # fmt: skip
        low, high = est.confidence_interval(X[:2], method="asymptotic")
        assert np.isfinite(est.coef_).all() and (low <= high).all()
