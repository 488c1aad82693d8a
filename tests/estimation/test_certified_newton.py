"""Certified intervals of a Newton step: each bound that they rest on, and what they reach."""

from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
from registry.noise import goe
from scipy import stats

from skpriv._estimation._intervals import expected_sum, main_region, norm_quantile, shared
from skpriv._estimation._loop import _certified as certified
from skpriv._estimation._loop._rows import Whitened
from skpriv._estimation._public_maps import RowMap
from skpriv.linear_model import LinearRegression

THETA = np.array([0.2, -0.1, 0.15, 0.1])
EACH = SimpleNamespace(**dict.fromkeys(certified.STEP_EVENTS, 0.1))
MANY = 10.0**13  # records, so many that sampling is nothing beside noise


def _about(rate, failure, draws):
    """Whether an event of this probability was seen about as often."""
    return abs(rate - failure) <= 5.0 * np.sqrt(failure / draws)


def _step(**changed):
    """A step without noise, and with the noise that is asked for."""
    scales = dict.fromkeys(("moment_scale", "gram_scale", "residual_scale", "excess_scale"), 0.0)
    quiet = {**scales, "limit": 1.0, "most_excess": 0.5, "excess": 0.0, "fall": 0.5, "n": MANY}
    return SimpleNamespace(**{**quiet, **changed})


@pytest.mark.parametrize("value", [0.0, 0.3, 2.0, 50.0])
def test_realised_sums_bound_their_means(value):
    """Poisson sums: as sharp as exp(-l) where nothing is seen, and valid beyond."""
    unit = 3.0
    mean = float(expected_sum(np.array([value]), unit)[0])
    assert mean - value - (value * np.log(mean / value) if value else 0.0) >= unit * (1.0 - 1e-6)
    missed = stats.poisson.cdf(np.floor(value), mean)
    assert missed <= np.exp(-unit) * (1.0 + 1e-6)
    if not value:
        assert missed >= 0.999 * np.exp(-unit)


@pytest.mark.parametrize("p", [1, 30])
@pytest.mark.parametrize("rate", [1.0, 0.01])
def test_norms_of_sums_are_bounded(p, rate):
    """Signs times a direction, rare or not: with half of the deviation they would not be."""
    rng, n, draws, failure = np.random.RandomState(0), 3000, 40_000, 0.001
    seen = rng.binomial(n // p, rate, size=(draws, p))
    norms = 2.0 * np.linalg.norm(2 * rng.binomial(seen, 0.5) - seen, axis=1) / n
    total, weak, length = 4.0 * rate, 4.0 * rate / p, np.log(1.0 / failure)
    bound = certified._sum_norm(total, weak, 1.0, n, length)
    assert (norms > bound).mean() <= failure
    if p == 1 and rate == 1.0:
        assert (norms > (np.sqrt(total / n) + bound) / 2.0).mean() > 2.0 * failure


@pytest.mark.parametrize("p, n", [(1, 300), (1, 10_000), (3, 20)])
@pytest.mark.parametrize("excess", [-0.02, 0.01])
def test_the_distance_of_equal_coefficients_by_hand(p, n, excess):
    """As docs/mathematics/linear_regression.md has it: numbers alone, noises at their quantiles."""
    log, q, one = np.log, stats.norm.isf(0.1), np.eye(p)
    step = _step(
        moment=0.03 * one[0], gram=0.25 * one, residual_gram=0.002 * one,
        moment_scale=0.002, gram_scale=0.03, residual_scale=0.004, excess_scale=0.005,
        excess=excess, n=n,
    )  # fmt: skip
    found = certified._distance(step, np.full(p, 0.25), one, EACH)
    smallest, largest = 0.25 - 0.03 * q, 0.25 + 0.03 * q
    cut, squares = (part * max(excess + 0.005 * q, 0.0) for part in (1.5, 2.5))
    seen, most = 0.002 * p + 0.004 * q * np.sqrt(p) + squares, 0.002 + 0.004 * q + squares
    shifts = certified.SHIFTS[:, 0] * smallest
    pulls = shifts * 0.03**2 / (smallest - shifts)

    def norm(total, weak, length):
        return certified._sum_norm(total, weak, 1.0, n, length)

    def solved():
        known = norm(total, weak, log(20.0)) + cut + 0.002 * q
        return ((known + np.sqrt(known**2 + pulls)) / (2.0 * shifts)).min()

    total, weak = 0.25 * p + 0.03 * q * np.sqrt(p), largest
    moved, unit = solved(), 4.0 * log(20.0) / n
    for _ in range(certified.SHARPENINGS):
        tilt = most + 2.0 * moved * norm(weak, weak, log(10.0))
        total = min(total, expected_sum(seen + 2.0 * moved * norm(total, weak, log(20.0)), unit))
        weak = min(weak, total, expected_sum(tilt, unit))
        moved = min(moved, solved())
    assert found == pytest.approx(moved)


@pytest.mark.parametrize("n", [30, 3000])
def test_the_variance_at_a_point_by_hand(n):
    """What was seen, and twice the cross term of a distance of .3, put into itself."""
    step = _step(moment=np.zeros(2), gram=0.2 * np.eye(2), residual_gram=0.002 * np.eye(2), n=n)
    dual = np.array([[3.0, 4.0]])  # 25 in the square
    variance, unit = 5.0, 4.0 * 25.0 * np.log(10.0) / n
    for _ in range(certified.SHARPENINGS):
        least = 25.0 * variance
        cross = certified._sum_norm(least, least, 25.0, n, np.log(10.0))
        variance = min(variance, expected_sum(0.05 + 2.0 * 0.3 * cross, unit))
    assert certified._variance(step, dual, 0.3, EACH) == pytest.approx(variance)
    assert variance < 5.0 or n == 30


def test_the_distance_holds_in_any_direction_with_all_noises():
    rng, p, missed = np.random.RandomState(0), 6, []
    for _ in range(200):
        d = rng.normal(size=p) * 10.0 ** rng.uniform(-2.0, 0.0)
        gram = np.diag(rng.uniform(0.1, 0.3, size=p))
        noisy = gram + 0.01 * goe(rng, p)
        step = _step(
            moment=gram @ d + 0.02 * rng.normal(size=p) - 1.5 * 0.01 * d / np.linalg.norm(d),
            gram=noisy, residual_gram=0.001 * goe(rng, p), excess=0.01 + 0.005 * rng.normal(),
            moment_scale=0.02, gram_scale=0.01, residual_scale=0.001, excess_scale=0.005,
        )  # fmt: skip
        values, vectors = np.linalg.eigh(noisy)
        missed.append(certified._distance(step, values, vectors, EACH) < np.linalg.norm(d))
    assert np.mean(missed) <= 0.1


@pytest.mark.parametrize("residual_scale, excess_scale", [(0.01, 0.0), (0.0, 0.01), (0.01, 0.01)])
def test_variances_fail_as_often_as_they_may(residual_scale, excess_scale):
    """The noises of the residual Gram and of what is cut, for a truth that both add up to.

    With half of a quantile they would fail in .26 of the draws, eight standard errors more.
    """
    rng, draws, p, missed = np.random.RandomState(0), 250, 3, 0
    residual = np.diag([0.2, 0.1, 0.3])
    dual = rng.normal(size=(1, p))
    truth = float(dual[0] @ residual @ dual[0] + 2.5 * 0.02 * dual[0] @ dual[0])
    for _ in range(draws):
        step = _step(
            residual_gram=residual + residual_scale * goe(rng, p), gram=np.eye(p),
            moment=np.zeros(p), residual_scale=residual_scale, excess_scale=excess_scale,
            excess=0.02 + excess_scale * rng.normal(),
        )  # fmt: skip
        missed += certified._variance(step, dual, 0.0, EACH)[0] < truth
    assert _about(missed / draws, 0.1, draws)


def test_what_is_seen_of_a_variance_is_a_mean_of_terms_of_at_most_four(monkeypatch):
    """Squares of residuals in [-2, 2], along directions no longer than 1."""
    units = []
    spy = lambda value, unit: units.append(unit) or expected_sum(value, unit)  # noqa: E731
    monkeypatch.setattr(certified, "expected_sum", spy)
    step = _step(residual_gram=0.01 * np.eye(2), gram=np.eye(2), moment=np.zeros(2), n=5000)
    directions = np.eye(2)
    found = certified._variance(step, directions, 0.0, EACH)
    unit = 4.0 * np.log(1.0 / EACH.realised) / 5000
    np.testing.assert_allclose(found, expected_sum(0.01, unit), rtol=1e-12)
    one = np.eye(2)
    noisy = _step(residual_gram=one, gram=0.3 * one, gram_scale=0.05, moment=one[0])
    found = certified._variance(noisy, directions, 0.0, EACH)
    assert found == pytest.approx(0.3 + certified.operator_quantile(0.05, 2, 0.1))
    units.clear()
    certified._distance(step, np.ones(2), np.eye(2), EACH)  # bounds two variances at once
    assert units and units == pytest.approx([4.0 * np.log(20.0) / 5000] * len(units), rel=1e-12)


def test_the_main_part_is_no_more_than_sampling_noise_and_what_is_cut():
    """Each alone, from its own formula; together they are at most their sum."""
    t, q = main_region(0.05)
    dual, nothing = np.array([[3.0, 4.0]]), np.zeros(1)
    alone = certified._main(_step(moment_scale=0.1), dual, nothing, EACH)
    assert alone == pytest.approx(5.0 * 0.1 * q)
    alone = certified._main(_step(excess_scale=0.1), dual, nothing, EACH)
    assert alone == pytest.approx(1.5 * 5.0 * 0.1 * q)
    assert certified._main(_step(excess=0.1), dual, nothing, EACH) == pytest.approx(0.75)
    alone = certified._main(_step(n=100), dual, np.ones(1), EACH)
    assert alone == pytest.approx(np.sqrt(2.0 * t / 100) + 2.0 * 5.0 / 100 * t / 3.0)


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
    """Standard normal over 30 fits: a scale of half or twice the true one fails surely.

    Nearly all of them cut something, so that a release of nothing fails as well.
    """
    scores, cutting = [], 0
    for seed in range(30):
        X, y, model = _fitted(seed, True, 20_000)
        fit, target = model._released, model._record_map.target_map
        step = fit.last
        blocks = [*Whitened(model._record_map.row_map, fit.W).blocks(X)]
        e, weights = (np.concatenate([block[k] for block in blocks]) for k in (1, 2))
        c = weights * (target.scaled(y) - fit.location) - e @ step.point
        cut = np.maximum(np.abs(c) - step.limit, 0.0)
        assert cut.max() <= step.most_excess
        cutting += cut.max() > 0.0
        assert step.fall == min(0.5 * step.limit / step.most_excess, 1.0)
        excess = (np.linalg.norm(e, axis=1) * cut).mean()
        scores.append((step.excess - excess) / step.excess_scale)
        kept = np.clip(c, -step.limit, step.limit) - step.fall * np.sign(c) * cut
        scores.extend((step.moment - e.T @ kept / len(e)) / step.moment_scale)
    assert stats.kstest(scores[::6], "norm").pvalue > 1e-4
    assert stats.kstest(scores, "norm").pvalue > 1e-4
    assert 0.7 < np.std(scores[::6]) < 1.4 and 0.8 < np.std(scores) < 1.25
    assert cutting > 25


@pytest.mark.parametrize("skewed", [False, True])
def test_they_cover_and_adapt_to_the_noise_of_the_target(skewed):
    """Five times the asymptotic ones at most: from first moments skewed ones were 11 times."""
    for seed in range(2):
        X, _, model = _fitted(seed, skewed, 100_000)
        X = X[:200]
        truth = X @ THETA
        low, high = model.confidence_interval(X, method="certified")
        assert ((low <= truth) & (truth <= high)).all()
        assert ((low <= model.predict(X)) & (model.predict(X) <= high)).all()
        narrow = model.confidence_interval(X)
        assert np.median(high - low) < 5.0 * np.median(narrow.high - narrow.low)


def test_without_privacy_they_cover_and_are_narrow():
    rng = np.random.RandomState(0)
    X = rng.uniform(-1.0, 1.0, size=(5000, 4))
    truth = X @ THETA
    y = truth + rng.uniform(-0.2, 0.2, size=5000)
    model = LinearRegression(privacy="none", bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0)).fit(X, y)
    low, high = model.confidence_interval(X[:50], method="certified")
    assert ((low <= truth[:50]) & (truth[:50] <= high)).all()
    assert np.median(high - low) < 0.12


def test_rows_inside_of_their_ranges_reach_the_span_of_a_line():
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


def test_the_noise_of_the_design_adds_its_norm_along_the_distance(monkeypatch):
    """|v'N_L d| is at most |v| |N_L d|, whose law is known."""
    fit = _fitted(0, False, 100_000)[2]._released
    points, seen = fit.points(np.eye(len(fit.b))), {}

    def spied(name):
        asked = getattr(certified, name)

        def spy(*arguments):
            found = asked(*arguments)
            seen[name] = arguments, copy(found)  # which is added to later
            return found

        monkeypatch.setattr(certified, name, spy)

    for name in ("_distance", "_main"):
        spied(name)
    _, half = certified.certified_by_step(fit.last, fit.b, points, 0.95)
    failure = shared(0.05, certified.STEP_EVENTS).design
    noise = norm_quantile(1.0, 0.5, len(fit.b), failure) * fit.last.gram_scale
    assert noise > 0.0 and np.isfinite(half).all()
    dual = np.linalg.norm(points @ np.linalg.inv(fit.last.gram), axis=1)
    expected = seen["_main"][1] + dual * noise * seen["_distance"][1]
    assert half == pytest.approx(expected)
