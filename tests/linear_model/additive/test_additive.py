"""Additive regression: accuracy, laws, curves and their bands."""

import numpy as np
import pytest
from registry.refusals import uncharged

from skpriv.linear_model import AdditiveRegressor, LinearRegression
from skpriv.linear_model._additive import AdditiveMap, average_hats, centring_variance

PUBLIC = {"bounds_X": (-1.0, 1.0), "bounds_y": (-2.0, 3.0)}


def curves(X):
    return X[:, 0] ** 2 + 0.5 * X[:, 1] + 0.3 * np.sin(3.0 * X[:, 2])


def draw(n=20_000, seed=0, scale=0.4):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    return X, curves(X) + rng.normal(scale=scale, size=n)


def error(model, X):
    return np.sqrt(np.mean((model.predict(X) - curves(X)) ** 2))


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_curves_are_found(epsilon, global_random_seed):
    """98% of the variance of the function, of which a line has less than two thirds."""
    X, y = draw(seed=global_random_seed)
    options = {**PUBLIC, "epsilon": epsilon, "random_state": global_random_seed}
    variance = np.var(curves(X))
    assert error(AdditiveRegressor(**options).fit(X, y), X) ** 2 < 0.02 * variance
    assert error(LinearRegression(**options).fit(X, y), X) ** 2 > variance / 3.0


@pytest.mark.parametrize("privacy, epsilon", [("local", 20.0), ("shuffle", 4.0)])
def test_curves_are_found_without_a_curator(privacy, epsilon):
    X, y = draw(30_000)
    model = AdditiveRegressor(
        **PUBLIC, privacy=privacy, epsilon=epsilon, knots=4, random_state=0
    ).fit(X, y)
    assert error(model, X) < 0.15


@pytest.mark.parametrize(
    ("privacy", "n", "epsilon"),
    [
        pytest.param("shuffle", 100_000, 4.0, marks=pytest.mark.slow),
        pytest.param("shuffle", 20_000, 1.0, marks=pytest.mark.slow),
        pytest.param("local", 60_000, 4.0, marks=pytest.mark.slow),
        pytest.param("central", 12_000, 0.5, marks=pytest.mark.slow),
        pytest.param("central", 12_000, 4.0, marks=pytest.mark.slow),
        ("central", 1_500, 8.0),
        ("central", 1_500, 1.0),
    ],
)
def test_bands_cover_in_every_model_or_are_open(privacy, n, epsilon):
    """With two or three knots nothing is said of the shape: intervals of rows are bounds of y."""
    functions = (np.square, lambda t: 0.5 * t, lambda t: 0.3 * np.sin(3.0 * t))
    missed, pointwise, rowwise = 0, [], []
    for seed in range(6):
        X, y = draw(n, seed)
        model = AdditiveRegressor(**PUBLIC, privacy=privacy, epsilon=epsilon, random_state=seed)
        (low, high), mean = model.fit(X, y).confidence_interval(X[:500]), curves(X[:500])
        rowwise.append(((low <= mean) & (mean <= high)).mean())
        assert len(model.knots_[0]) > 3 or (high - low == 5.0).all()
        for feature, function in enumerate(functions):
            curve = model.curve(feature, np.linspace(-1.0, 1.0, 41))
            truth = function(curve.grid) - function(X[:, feature]).mean()
            missed += not ((curve.band_low <= truth) & (truth <= curve.band_high)).all()
            pointwise.append(((curve.low <= truth) & (truth <= curve.high)).mean())
            assert np.isinf(curve.band_low).all() == (len(curve.knots) < 4)
    # Nothing is missed; of half of a band at n=1,500, epsilon 8 five curves are, and of half of its
    # lower part three, where pointwise intervals cover .947 and .976. Of 100,000 rows they cover
    # .973 with one kernel of BLAS. Intervals of rows cover .976 without what knots miss.
    assert missed <= 2 and np.mean(rowwise) > 0.98
    assert np.mean(pointwise) > (0.95 if n == 100_000 else 0.98)


def test_a_line_across_a_wide_cell_misses_more_beside_a_narrow_one():
    knots = np.array([-1.0, -0.9, 0.0, 1.0])
    middle = (knots[1:] + knots[:-1])[:, None] / 2.0
    found = AdditiveMap((knots,), (False,)).missed([0], middle, knots**2)
    np.testing.assert_allclose(found, np.interp(middle, knots, knots**2)[:, 0] - middle[:, 0] ** 2)


@pytest.mark.parametrize("lines", [{"knots": 3}, {"linear_features": [1]}])
def test_who_gives_few_knots_says_that_they_will_do(lines):
    X, y = draw(1_500)
    model = AdditiveRegressor(**PUBLIC, **lines, epsilon=8.0, random_state=0).fit(X, y)
    assert np.isfinite(model.curve(1).band_high).all()


def test_the_average_of_a_curve_errs_as_much_as_its_bands_count():
    """Of a line whose average is 0. The noise that counts is that of the last of ten equal steps,
    which is larger than that of all. With half or twice the variance the mean would be outside.
    """
    ratios = []
    for seed in range(24):
        X, y = draw(1_500, seed)
        options = {**PUBLIC, "epsilon": 0.5, "linear_features": [0, 1, 2], "random_state": seed}
        model = AdditiveRegressor(**options).fit(X, y)
        fit, rows = model._released, model._record_map.row_map
        average, heights = average_hats(fit, rows), np.zeros(len(rows.basis))
        heights[rows.blocks[1]] = -0.5, 0.5
        variance = centring_variance(fit, rows, rows.blocks[1], average, heights)
        ratios.append((average @ heights) ** 2 / variance)
    assert 0.35 < np.mean(ratios) < 0.7


def test_bands_are_no_wider_than_they_need_to_be():
    """Of 12 seeds the median width is .168 with deviation .014: the mean of 2 exceeds .2, a fifth
    more, by 3 of its deviations. Without privacy it is .065.
    """
    widths = []
    for seed in range(2):
        X, y = draw(40_000, seed)
        curve = AdditiveRegressor(**PUBLIC, random_state=seed).fit(X, y).curve(2)
        widths.append(np.median(curve.band_high - curve.band_low))
        assert (curve.band_low <= curve.low).all() and (curve.high <= curve.band_high).all()
        assert (curve.low <= curve.effect).all() and (curve.effect <= curve.high).all()
    assert np.mean(widths) < 0.2


def test_curves_add_up_to_the_prediction():
    X, y = draw(5000)
    model = AdditiveRegressor(**PUBLIC, random_state=0).fit(X, y)
    total = model.intercept_ + sum(model.curve(j, X[:50, j]).effect for j in range(3))
    np.testing.assert_allclose(total, model.predict(X[:50]), atol=1e-9)
    assert [len(knots) for knots in model.knots_] == [len(h) for h in model.heights_]


def test_unresolved_curves_are_infinite():
    X, y = draw(60)
    model = AdditiveRegressor(**PUBLIC, epsilon=0.1, random_state=0).fit(X, y)
    curve = model.curve(0, [0.0])
    assert curve.band_low[0] == -np.inf and curve.band_high[0] == np.inf
    assert curve.effect[0] == 0.0


def test_two_valued_features_are_lines():
    rng = np.random.RandomState(0)
    X = np.column_stack([rng.uniform(-1, 1, 5000), rng.binomial(1, 0.3, 5000)])
    y = X[:, 0] ** 2 + X[:, 1] + rng.normal(scale=0.2, size=5000)
    model = AdditiveRegressor(
        bounds_X=[(-1, 1), (0, 1)], bounds_y=(-1, 3), linear_features=[1], random_state=0
    ).fit(X, y)
    assert [len(knots) > 2 for knots in model.knots_] == [True, False]
    low, high = model.curve(1, [0.0, 1.0])[4:6]
    assert low[1] - high[0] < 1.0 < high[1] - low[0]


BAD = [
    ({"knots": 1}, "knots"),
    ({"knots": {"a": 3}}, "not a feature"),
    ({"knots": {0: [np.inf, 1.0]}}, "knots of 0"),
    ({"linear_features": [7]}, "not a feature"),
]


@pytest.mark.parametrize("settings, message", BAD)
def test_bad_settings_are_refused_uncharged(settings, message):
    with uncharged(message):
        AdditiveRegressor(**{**PUBLIC, **settings}).fit(*draw(100))


def test_bad_curves_are_refused():
    model = AdditiveRegressor(**PUBLIC, privacy="none").fit(*draw(500))
    for arguments in (("age",), (3,), (0, [np.nan]), (0, [])):
        with pytest.raises(ValueError, match="feature|grid"):
            model.curve(*arguments)
    with pytest.raises(ValueError, match="confidence_level"):
        model.curve(0, confidence_level=1.0)


@pytest.mark.slow
def test_more_budget_and_more_knots_do_not_bend_lines():
    errors, knots = [], []
    for epsilon in (1.0, 8.0):
        found = []
        for seed in range(10):
            rng = np.random.RandomState(seed)
            X = rng.uniform(-1.0, 1.0, size=(2000, 6))
            line = X @ [0.4, -0.2, 0.4, -0.2, 0.4, -0.2]
            y = line + rng.normal(scale=0.5, size=2000)
            public = {"bounds_X": (-1.0, 1.0), "bounds_y": (-3.0, 3.0), "epsilon": epsilon}
            model = AdditiveRegressor(**public, random_state=seed).fit(X, y)
            found.append(np.mean((model.predict(X) - line) ** 2))
        errors.append(np.mean(found))
        knots.append(len(model.knots_[0]))
    assert knots[0] < knots[1] and errors[0] > errors[1]
    # With 31 coefficients sampling alone has an error of .25 * 31 / 2000 in least squares
    assert errors[1] < 0.5 * 0.25 * 31 / 2000


@pytest.mark.parametrize("value", [0.0, 0.5, 9.0])
def test_a_target_of_one_value_is_fitted_without_privacy(value):
    X, _ = draw(200)
    model = AdditiveRegressor(**PUBLIC, privacy="none").fit(X, np.full(200, value))
    middle = np.clip(value, *PUBLIC["bounds_y"])
    np.testing.assert_allclose(model.predict(X), middle, atol=1e-12)


def test_a_fit_without_privacy_is_no_less_smooth():
    """R-squared of 400 records was .09 below that of epsilon=100, since nothing was shrunk."""
    found = []
    for seed in range(3):
        rng = np.random.RandomState(seed)
        X = np.clip(rng.exponential(0.15, size=(2_400, 6)), 0.0, 1.0)
        mean = np.sin(4.0 * X[:, 0]) + X[:, 1]
        y = mean + rng.normal(size=len(X))
        train, rest = slice(400), slice(400, None)
        for epsilon in (100.0, np.inf):
            model = AdditiveRegressor(
                bounds_X=(0.0, 1.0), bounds_y=(-4.0, 6.0), epsilon=epsilon, random_state=seed
            ).fit(X[train], y[train])
            error = np.mean((model.predict(X[rest]) - mean[rest]) ** 2)
            found.append(1.0 - error / np.var(mean[rest]))
    private, exact = np.reshape(found, (3, 2)).mean(axis=0)
    assert exact > private - 0.01 and exact > 0.6
