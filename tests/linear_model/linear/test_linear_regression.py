"""`LinearRegression`: exactness, limits, equivariance, rules, fallback, errors."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression as LeastSquares

from skpriv._estimation._loop._rules import Rules
from skpriv.linear_model import LinearRegression


def _data(n=4000, d=3, seed=0, noise=0.3):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d)) * np.linspace(1.0, 40.0, d) + 5.0
    slopes = 1.0 / np.linspace(1.0, 40.0, d)
    return X, 2.0 + X @ slopes + noise * rng.normal(size=n)


BOUNDS_X, BOUNDS_Y = (-40.0, 50.0), (-10.0, 20.0)


def _fitted(X, y, **settings):
    defaults = {"bounds_X": BOUNDS_X, "bounds_y": BOUNDS_Y, "random_state": 0}
    return LinearRegression(**{**defaults, **settings}).fit(X, y)


DESIGNS = {
    "plain": lambda rng: rng.uniform(-1, 1, size=(300, 4)),
    "more features than records": lambda rng: rng.uniform(-1, 1, size=(8, 20)),
    "constant": lambda rng: np.column_stack([rng.uniform(-1, 1, size=(50, 2)), np.full(50, 0.3)]),
    "collinear": lambda rng: np.repeat(rng.uniform(-1, 1, size=(50, 2)), 2, axis=1),
    "one feature": lambda rng: rng.uniform(-1, 1, size=(30, 1)),
    "many": lambda rng: rng.uniform(-1, 1, size=(2000, 150)),
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("design", DESIGNS)
def test_without_privacy_it_is_least_squares(design, fit_intercept, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    X, new = DESIGNS[design](rng), DESIGNS[design](rng)
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X)) + 3.0
    reference = LeastSquares(fit_intercept=fit_intercept).fit(X, y)
    bounds = {"bounds_X": (-1.5, 1.5), "bounds_y": (-1e3, 1e3)}
    est = _fitted(X, y, **bounds, fit_intercept=fit_intercept, privacy="none")
    np.testing.assert_allclose(est.predict(X), reference.predict(X), atol=1e-10)
    np.testing.assert_allclose(est.predict(new), reference.predict(new), atol=1e-9)
    low, high = est.confidence_interval(X)
    assert ((low <= est.predict(X)) & (est.predict(X) <= high)).all()


def test_rows_are_clipped_without_privacy_too():
    X, y = _data(200)
    inside = np.clip(X, 0.0, 10.0)
    reference = LeastSquares().fit(inside, np.clip(y, 3.0, 9.0))
    est = _fitted(X, y, privacy="none", bounds_X=(0.0, 10.0), bounds_y=(3.0, 9.0))
    np.testing.assert_allclose(est.coef_, reference.coef_, rtol=1e-9)


def test_the_estimand_is_the_least_squares_line_as_n_grows(global_random_seed):
    """Where the mean is not linear, too: the error falls with n at a fixed epsilon."""
    errors = []
    for n in (4000, 128_000):
        rng = np.random.RandomState(global_random_seed)
        X = rng.uniform(0.0, 1.0, size=(n, 2))
        y = np.clip(X[:, 0] ** 3 + 0.2 * X[:, 1] + 0.1 * rng.exponential(size=n), 0.0, 2.0)
        exact = LeastSquares().fit(X, y)
        found = [
            _fitted(X, y, bounds_X=(0, 1), bounds_y=(0, 2), random_state=seed).coef_
            for seed in range(3)
        ]
        errors.append(np.sqrt(np.square(found - exact.coef_).mean()))
    assert errors[1] < min(errors[0] / 6.0, 0.003)


@pytest.mark.parametrize("clip", ["auto", "wide"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_rules_are_whole_and_fade(clip, fit_intercept):
    for n in (50, 1000, 10**5, 10**7):
        for p in (2, 10, 100):
            for mu in (0.01, 0.2, 2.0, 1400.0):
                rules = Rules.of(n, p, n * mu, clip, fit_intercept)
                first = rules.location + rules.spread + rules.whitening
                rest = sum(rules.steps) + rules.mean + rules.stretch + rules.line + rules.clipped
                assert first + rest == pytest.approx(1.0, rel=1e-12)
                assert min(rules.spread, *rules.steps) > 0.0
                assert (rules.whitening > 0.0) == (not rules.few_records)
                assert 1.0 <= rules.clip and 0.0 < rules.length <= 1.0
    few, many = (Rules.of(n, 5, 0.2 * n, clip).clip for n in (10**5, 10**9))
    assert many > 2.0 * few  # clips fade as n grows
    precision = 0.2 * 10**9 / np.sqrt(5 * 10**9)
    assert many**2 / precision < 0.5  # and the noise beside sampling, too


def test_rows_of_bounded_norm_are_whitened_by_more_records():
    """Of n=5e5 rows, d=30, scales 1 to .01, a fifth had three times the error of all."""
    n, p = 500_000, 31
    assert Rules.of(n, p, 0.236 * n).subset < 0.5
    assert Rules.of(n, p, 0.236 * n, ranged=False).subset == 1.0
    assert Rules.of(100 * n, p, 23.6 * n, ranged=False).subset < 1.0  # it fades


def test_few_records_of_a_rare_target_keep_their_mean():
    """Clipped at their own deviations, residuals of a rare target would lose the mean."""
    shifts = []
    for seed in range(16):
        rng = np.random.RandomState(seed)
        X = rng.uniform(-1.0, 1.0, size=(1200, 4))
        y = (rng.uniform(size=1200) < 0.1 * (1.0 + 0.5 * X[:, 0])).astype(float)
        model = LinearRegression(bounds_X=(-1, 1), bounds_y=(0, 1), random_state=seed).fit(X, y)
        shifts.append((model.predict(X).mean() - y.mean()) / y.std())
    assert abs(np.mean(shifts)) < 0.12  # .16 if limits are in units of clipped deviations


def test_a_fit_that_is_interrupted_leaves_the_one_before(monkeypatch):
    """Its intervals were in the units of the bounds that were new."""
    X, y = _data()
    est = _fitted(X, y)
    before = est.confidence_interval(X[:3])
    many = est.confidence_interval(np.tile(X[:3], (6_000, 1)))  # in blocks of rows
    np.testing.assert_allclose(many, np.tile(before, 6_000), rtol=1e-12)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    est.set_params(bounds_X=(-4e3, 5e3), bounds_y=(-1e3, 2e3))
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("skpriv.privacy._session._pieces.Pieces.sum", interrupted)
        est.fit(X[:, :2], y)
    assert est.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(est.confidence_interval(X[:3]), before)


def test_a_declared_line_knows_the_noise_of_its_gram_matrix():
    """It is asked by itself, after all that finds the coordinates."""
    X = np.random.RandomState(0).uniform(-1.0, 1.0, (20_000, 2))
    model = LinearRegression(
        bounds_X=(-1, 1), bounds_y=(-1, 1), estimand="least_squares", random_state=0
    ).fit(X, X[:, 0] / 2.0)
    last = [row for row in model.privacy_report_.rows if row.query == "whitening"][-1]
    equation = model._released.equations[0]
    assert equation.slope_scale == pytest.approx(last.scale / last.records)
    assert equation.slope_scale < min(one.slope_scale for one in model._released.equations[1:])
