"""Without noise the regressors are the textbook's; with it, they commute with what they should."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from skpriv.linear_model import LayeredRegressor, ReweightedRegressor, SSPRegressor

ESTIMATORS = [SSPRegressor, ReweightedRegressor]
BOUNDS, NORM = (-3.0, 7.5), 2.5
both = pytest.mark.parametrize("Estimator", ESTIMATORS)
intercepts = pytest.mark.parametrize("fit_intercept", [True, False])


def _data(n, d, seed, condition=1.0, rotated=True):
    """Rows inside the ball of radius NORM, targets inside BOUNDS."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1.0, 1.0 / condition, d)
    if rotated:
        X = X @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    X *= NORM / np.linalg.norm(X, axis=1).max()
    y = X @ rng.normal(size=d) + rng.normal(size=n) + 2.0
    return X, BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * (y - y.min()) / np.ptp(y)


def _agree(est, reference, X, y, tolerance=1e-10):
    reference.fit(X, y)
    size = np.abs(reference.coef_).max()
    np.testing.assert_allclose(est.coef_, reference.coef_, rtol=0, atol=tolerance * max(1.0, size))
    np.testing.assert_allclose(est.intercept_, reference.intercept_, rtol=0, atol=tolerance)
    np.testing.assert_allclose(est.predict(X), reference.predict(X), rtol=0, atol=tolerance)


@intercepts
@pytest.mark.parametrize(("Estimator", "shape", "alpha"), [
    *product([SSPRegressor], [(5, 1), (40, 3), (1000, 40)], ["auto", 0.0, 0.7, 50.0]),
    *product([ReweightedRegressor], [(40, 3)], ["auto", 0.7]),
])  # fmt: skip
def test_equals_scikit_learn(Estimator, fit_intercept, shape, alpha, global_random_seed):
    X, y = _data(*shape, global_random_seed)
    public = {"data_norm": NORM, "bounds_y": BOUNDS, "fit_intercept": fit_intercept}
    est = Estimator(**public, alpha=alpha, privacy="none").fit(X, y)
    reference = (
        LinearRegression(fit_intercept=fit_intercept)
        if alpha in ("auto", 0.0)
        else Ridge(alpha, fit_intercept=fit_intercept, solver="svd")
    )
    _agree(est, reference, X, y)


@both
@intercepts
@pytest.mark.parametrize("data_norm", [NORM, 40.0])
@pytest.mark.parametrize("rotated", [True, False])
def test_equals_least_squares_when_ill_conditioned(
    Estimator, fit_intercept, data_norm, rotated, global_random_seed
):
    X, y = _data(500, 6, global_random_seed, 1e3, rotated)
    est = Estimator(
        privacy="none", data_norm=data_norm, bounds_y=BOUNDS, fit_intercept=fit_intercept
    ).fit(X, y)
    reference = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(est.predict(X), reference.predict(X), rtol=0, atol=1e-10)
    # Sums of products determine coefficients up to 1e-16 times the squared condition number, and
    # no better; scales of the features alone do no harm.
    if not rotated:
        _agree(est, reference, X, y)


@both
@intercepts
def test_clips_rows_and_targets_whatever_the_options(Estimator, fit_intercept):
    X, y = _data(200, 4, 0)
    data_norm, bounds = 0.6, (0.0, 3.0)
    est = Estimator(
        privacy="none", data_norm=data_norm, bounds_y=bounds, fit_intercept=fit_intercept
    ).fit(X, y)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    clipped = X * np.minimum(1.0, data_norm / norms)
    assert (norms > data_norm).any() and (y > bounds[1]).any()
    reference = LinearRegression(fit_intercept=fit_intercept).fit(clipped, np.clip(y, *bounds))
    np.testing.assert_allclose(est.coef_, reference.coef_, rtol=1e-10)
    np.testing.assert_allclose(est.intercept_, reference.intercept_, rtol=1e-10)


@pytest.mark.parametrize("Estimator", [*ESTIMATORS, LayeredRegressor])
@pytest.mark.parametrize("privacy", ["central", "none"])
def test_the_order_of_the_rows_does_not_matter(Estimator, privacy, global_random_seed):
    X, y = _data(3000, 4, global_random_seed)
    order = np.random.RandomState(global_random_seed).permutation(len(X))
    settings = {"privacy": privacy, "data_norm": NORM, "bounds_y": BOUNDS, "random_state": 0}
    one, two = (Estimator(**settings).fit(X[i], y[i]) for i in (slice(None), order))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-9, atol=1e-12)
    for method in Estimator.interval_claims:
        np.testing.assert_allclose(
            one.confidence_interval(X[:9], method=method),
            two.confidence_interval(X[:9], method=method),
            rtol=1e-8,
        )


@both
def test_an_alpha_of_zero_or_more_is_a_ridge_under_noise_too(Estimator):
    X, y = _data(3000, 3, 0)
    settings = {"data_norm": NORM, "bounds_y": BOUNDS, "random_state": 0, "epsilon": 1e6}
    for alpha in (0.0, 30.0):
        est = Estimator(alpha=alpha, **settings).fit(X, y)
        if Estimator is SSPRegressor:
            np.testing.assert_allclose(est.coef_, Ridge(alpha).fit(X, y).coef_, atol=0.02)
    huge = Estimator(alpha=1e12, **settings).fit(X, y)
    np.testing.assert_allclose(huge.coef_, 0.0, atol=1e-6)
