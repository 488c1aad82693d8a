"""Certified intervals of a Newton step: each bound that they rest on, and what they reach."""

import numpy as np
import pytest
from scipy import stats

from skpriv._equations import _certified_newton as certified
from skpriv.linear_model import LinearRegression
from skpriv.linear_model._linear_regression._queries import Whitened

THETA = np.array([0.2, -0.1, 0.15, 0.1])


@pytest.mark.parametrize("failure", [0.05, 0.01])
def test_the_region_of_the_main_part_has_its_probability(failure):
    """An exponential and a normal variable leave it with this probability, in 400,000 draws."""
    t, q = certified._region(failure)
    rng = np.random.RandomState(0)
    a, b = rng.exponential(size=400_000), rng.normal(size=400_000)
    outside = (b > q) | (a > t * (1.0 - (np.maximum(b, 0.0) / q) ** 2))
    assert outside.mean() == pytest.approx(failure, abs=5.0 * np.sqrt(failure / 400_000))
    # In it sqrt(2 V a) + G b is at most what intervals take, whatever V and G are
    for size in (0.0, 0.1, 1.0, 10.0, 1e3):
        most = (np.sqrt(2.0 * a) + size * b)[~outside].max()
        assert most <= np.sqrt(2.0 * t + (size * q) ** 2)
        assert most >= 0.9 * np.sqrt(2.0 * t + (size * q) ** 2)


def test_the_norms_of_the_noise_are_above_it():
    """With probabilities of .05, in 4,000 draws of GOE(1): at most .05 + 5 standard errors."""
    rng, p = np.random.RandomState(0), 6
    noise = rng.normal(size=(4000, p, p))
    noise = (noise + noise.transpose(0, 2, 1)) / 2.0
    unit = np.ones(p) / np.sqrt(p)
    above = np.linalg.norm(noise @ unit, axis=1) > certified._goe_norm(p, 0.05)
    beyond = np.linalg.eigvalsh(noise)[:, -1] > certified._operator_norm(p, 0.05)
    assert max(above.mean(), beyond.mean()) <= 0.05 + 5.0 * np.sqrt(0.05 / 4000)


def _fitted(seed, skewed, n=30_000):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 4))
    noise = rng.uniform(-0.25, 0.25, size=n)
    if skewed:
        noise = 0.15 * (rng.exponential(size=n).clip(0.0, 7.0) - 1.0 + np.exp(-7.0))
    y = X @ THETA + noise
    model = LinearRegression(bounds_X=(-1.0, 1.0), bounds_y=(-1.6, 1.6), random_state=seed)
    return X, y, model.fit(X, y)


def test_what_is_cut_is_released_with_the_noise_that_is_declared():
    """Standard normal over 60 fits: a scale of half or twice the true one fails surely."""
    scores, ratios = [], []
    for seed in range(60):
        X, y, model = _fitted(seed, True, 12_000)
        fit, target = model._released, model._target
        step = fit.newton[-1]
        e, weights = Whitened(model._map, fit.W)(X)
        c = np.abs(weights * (target.scaled(y) - fit.location) - e @ step.point)
        cut = np.maximum(c - step.limit, 0.0)
        assert cut.max() <= step.most_excess
        (excess, scale), (bound, bound_scale) = step.excesses
        scores.append((excess - cut.mean()) / scale)
        ratios.append((bound - step.most_excess * (c >= 0.75 * step.limit).mean()) / bound_scale)
    for values in (scores, ratios):
        assert stats.kstest(values, "norm").pvalue > 1e-4
        assert 0.7 < np.std(values) < 1.4


@pytest.mark.parametrize("skewed", [False, True])
def test_they_cover_and_adapt_to_the_noise_of_the_target(skewed):
    """Eight times the asymptotic ones at most: from first moments skewed ones were 11 times."""
    for seed in range(3):
        X, _, model = _fitted(seed, skewed, 100_000)
        X = X[:200]
        truth = X @ THETA
        low, high = model.confidence_interval(X, method="certified")
        assert ((low <= truth) & (truth <= high)).all()
        assert ((low <= model.predict(X)) & (model.predict(X) <= high)).all()
        narrow = model.confidence_interval(X)
        assert np.median(high - low) < 8.0 * np.median(narrow.high - narrow.low)


def test_rows_inside_of_their_ranges_reach_the_span_of_a_line():
    from skpriv._equations._public_maps import RowMap

    rng = np.random.RandomState(0)
    for rows in (
        RowMap(np.array([-1.0, 0.0]), np.array([2.0, 5.0]), None, True, 2),
        RowMap(np.array([-1.0, 0.0]), np.array([2.0, 5.0]), None, False, 2),
        RowMap(None, None, 3.0, True, 2),
    ):
        theta = rng.normal(size=rows.size)
        values = rows.rows(rng.uniform(-6.0, 6.0, size=(20_000, 2))) @ theta
        low, high = rows.span(theta)
        assert low <= values.min() and values.max() <= high
        if rows.fit_intercept:
            assert values.max() >= 0.9 * high
