"""Coefficients in original units: equal to the textbook, to any scaling, and to the release."""

import re
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from registry.estimators import iht, reweighted
from scipy import stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

from skpriv._estimation._coefficients import CoefficientLaw, LawSource, LawSums
from skpriv.inspection import CoefficientDisplay, Inference, inference
from skpriv.linear_model import (
    IVRegressor, LinearRegression, LogisticRegression, PoissonRegressor, ReweightedRegressor,
    SSPRegressor,
)  # fmt: skip
from skpriv.preprocessing import BoundsScaler, Categorical, Numeric, TableEncoder

BOUNDS = {"age": (20.0, 60.0), "dose": (0.0, 5.0), "other": (-1.0, 1.0)}


def _frame(n=20_000, seed=0):
    rng = np.random.RandomState(seed)
    X = pd.DataFrame({name: rng.uniform(*pair, size=n) for name, pair in BOUNDS.items()})
    noise = rng.uniform(-1.0, 1.0, size=n) * (1.0 + X["dose"].to_numpy())
    return X, 10.0 + 0.2 * X["age"].to_numpy() - 1.5 * X["dose"].to_numpy() + noise


def _robust(X, y):
    """Least squares with HC1 standard errors, the constant last."""
    Z = np.c_[X, np.ones(len(X))]
    inverse = np.linalg.inv(Z.T @ Z)
    theta = inverse @ Z.T @ y
    scores = Z * (y - Z @ theta)[:, None]
    n, p = Z.shape
    return theta, inverse @ scores.T @ scores @ inverse * n / (n - p)


def _model(Estimator=SSPRegressor, **params):
    params = {"data_norm": 1.0, "bounds_y": (0.0, 35.0), "random_state": 0, **params}
    return make_pipeline(BoundsScaler(BOUNDS), Estimator(**params))


@pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])
def test_without_privacy_it_is_least_squares_with_robust_errors(Estimator):
    X, y = _frame(500)
    found = inference(_model(Estimator, privacy="none").fit(X, y))
    theta, covariance = _robust(X.to_numpy(), y)
    assert found.names == ["age", "dose", "other", "intercept"]
    assert found.estimate == pytest.approx(theta, rel=1e-9)
    assert found.covariance == pytest.approx(covariance, rel=1e-7)
    assert (found.privacy_share == 0.0).all()
    plain = LeastSquares().fit(X, y)
    assert found.estimate[:3] == pytest.approx(plain.coef_)
    error = np.sqrt(np.diagonal(covariance))
    assert found.low == pytest.approx(theta - 1.959964 * error, rel=1e-6)
    assert found.statistic == pytest.approx(theta / error)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(np.abs(theta / error)), abs=1e-12)
    shape = np.eye(4)[:2]
    chi = theta[:2] @ np.linalg.solve(shape @ covariance @ shape.T, theta[:2])
    test = found.wald_test(["age", "dose"])
    assert test.statistic == pytest.approx(chi) and test.degrees_of_freedom == 2
    weights = {"age": 10.0, "dose": 2.0}
    contrast = found.contrast(weights)
    assert contrast.estimate == pytest.approx([10 * theta[0] + 2 * theta[1]])
    row = np.array([10.0, 2.0, 0.0, 0.0])
    assert contrast.std_error == pytest.approx([np.sqrt(row @ covariance @ row)])
    assert contrast.names == ["+10*age +2*dose"]


def test_columns_may_be_selected_and_steps_may_do_nothing():
    X, y = _frame()
    chosen = ColumnTransformer(
        [("drop", "drop", ["other"]), ("keep", "passthrough", ["dose", "age"])]
    )
    pair = [BOUNDS["dose"], BOUNDS["age"]]
    ssp = SSPRegressor(data_norm=1.0, bounds_y=(0.0, 35.0), random_state=0)
    selected = inference(
        make_pipeline(FunctionTransformer(), chosen, BoundsScaler(pair), ssp).fit(X, y)
    )
    assert selected.names == ["age", "dose", "intercept"]
    assert selected.estimate[:2] == pytest.approx([0.2, -1.5], abs=0.3)
    inside = ColumnTransformer([("scaled", BoundsScaler(pair), ["dose", "age"])])
    again = inference(make_pipeline(inside, ssp).fit(X, y))
    assert again.names == selected.names
    assert again.estimate == pytest.approx(selected.estimate)
    table = "table", TableEncoder({"other": Numeric(*BOUNDS["other"])}), ["other"]
    encoded = ColumnTransformer([*inside.transformers, table])
    exact = SSPRegressor(data_norm=2.0, bounds_y=(0.0, 35.0), privacy="none")
    third = inference(make_pipeline(encoded, exact).fit(X, y))
    assert third.names == ["age", "dose", "other", "intercept"]
    assert third.estimate[:3] == pytest.approx(LeastSquares().fit(X, y).coef_)
    kept = make_pipeline(VarianceThreshold(1.0), "passthrough", BoundsScaler(pair[::-1]), ssp)
    assert inference(kept.fit(X, y)).names == ["age", "dose", "intercept"]
    unnamed = make_pipeline(BoundsScaler(list(BOUNDS.values())), ssp).fit(X.to_numpy(), y)
    assert inference(unnamed).names == ["x0", "x1", "x2", "intercept"]


def test_without_an_intercept_there_is_none():
    X, y = _frame()
    est = SSPRegressor(data_norm=70.0, bounds_y=(0.0, 35.0), fit_intercept=False, privacy="none")
    found = inference(est.fit(X, y))
    assert found.names == ["age", "dose", "other"]
    Z = X.to_numpy()
    assert found.estimate == pytest.approx(np.linalg.lstsq(Z, y, rcond=None)[0])


@pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])
def test_what_is_not_resolved_is_nan_with_a_reason(Estimator):
    X, y = _frame(300)
    found = inference(_model(Estimator, epsilon=0.1).fit(X, y))
    assert np.isnan(found.estimate).all() and np.isnan(found.low).all()
    assert np.isnan(found.p_value).all() and np.isnan(found.privacy_share).all()
    assert np.isnan(found.wald_test().statistic) and np.isnan(found.contrast(np.ones(4)).low[0])
    assert "Not estimable (-)" in str(found) and "more rows" in found.reason
    assert "Not estimable (-)" in found._repr_html_()


def test_a_constant_column_without_privacy_leaves_the_others():
    X, y = _frame(300)
    X["other"] = 0.5
    found = inference(_model(privacy="none").fit(X, y))
    assert np.isnan(found.estimate).tolist() == [False, False, True, True]
    theta, covariance = _robust(X[["age", "dose"]].to_numpy(), y)
    assert found.estimate[:2] == pytest.approx(theta[:2])
    assert found.std_error[:2] == pytest.approx(np.sqrt(np.diagonal(covariance)[:2]), rel=0.01)
    assert "determine each other" in found.reason


def test_it_prints_and_makes_frames():
    X, y = _frame()
    found = inference(_model().fit(X, y), confidence_level=0.9)
    frame = found.to_frame()
    assert frame.index.tolist() == found.names
    assert frame["low"].to_numpy() == pytest.approx(found.low)
    assert list(frame.columns)[:2] == ["estimate", "std_error"]
    text = str(found)
    assert "90%, normal" in text and "epsilon=1" in text and "dose" in text
    assert "<table>" in found._repr_html_() and repr(found) == text


def test_errors_say_what_to_do():
    X, y = _frame(2000)
    with pytest.raises(TypeError, match="no coefficient_law"):
        inference(iht(random_state=0).fit(X / 60.0, y / 60.0))
    model = make_pipeline(
        PolynomialFeatures(), SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), privacy="none")
    ).fit(X, y)
    with pytest.raises(TypeError, match="units of the coefficients"):
        inference(model)
    sgd = reweighted(solver="sgd", random_state=0).fit(X / 60.0, y / 60.0)
    with pytest.raises(ValueError, match="solver='sgd'"):
        inference(sgd)
    found = inference(_model().fit(X, y))
    for ask, wrong in ((found.contrast, {"size": 1.0}), (found.contrast, [1.0]),
                       (found.wald_test, ["size"]), (found.wald_test, [np.eye(3)]),
                       (found.wald_test, [])):  # fmt: skip
        with pytest.raises(ValueError, match="coefficient|one name"):
            ask(wrong)
    with pytest.raises(ValueError, match="confidence_level"):
        inference(_model(), confidence_level=1.0)


def test_only_a_least_squares_line_can_be_asked_for():
    X, y = _frame(2000)
    bounds = {"bounds_X": BOUNDS, "bounds_y": (0, 35), "privacy": "none"}
    model = IVRegressor(instruments=["other"], endogenous=["dose"], **bounds).fit(X, y)
    with pytest.raises(ValueError, match="estimand='least_squares'.*'fitted'"):
        inference(model, estimand="least_squares")
    line = _model(privacy="none").fit(X, y)
    same = inference(line, estimand="least_squares")
    assert same.estimate == pytest.approx(inference(line).estimate)


@dataclass(frozen=True, eq=False)
class Told(LawSource):
    """A law in which NaN is hidden, of coefficients alone and their multiples."""

    value: list
    variance: list

    def at(self, matrix, shift):
        at = np.abs(matrix).argmax(axis=1)
        factor = np.abs(matrix).max(axis=1)
        value, variance = factor * np.array(self.value)[at], factor**2 * np.array(self.variance)[at]
        told = np.isfinite(value)
        reasons = {f"hidden {place}": at == place for place in at[~told]}
        return LawSums(value + shift, np.diag(variance), 0.0 * np.diag(variance), told, reasons)


def test_a_dash_stands_beside_the_others():
    law = CoefficientLaw.of(Told([1.0, 1.0, np.nan], [1.0, 4.0, np.nan]), 3, 100)
    with warnings.catch_warnings(action="error"):
        found = Inference(["a", "b", "c"], law.mapped(2.0 * np.eye(3)), 0.95, "")
        assert "Not estimable (-): c: hidden 2." in " ".join(str(found).split())
        assert "Not estimable" not in str(found.contrast({"a": 1.0, "b": -1.0}))


def test_each_reason_has_one_note_with_its_names():
    """Two levels are too rare and two columns are one: two notes, and not one for each row."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.uniform(0.0, 1.0, 20_000), "site": "A", "more": "C"})
    X["born"] = X["age"]
    schema = {name: Numeric(0, 1) for name in ("age", "born")}
    schema |= {name: Categorical(["A", "B", "C"], other=False) for name in ("site", "more")}
    X.loc[: len(X) // 2, "site"], X.loc[: len(X) // 3, "more"] = "C", "A"
    line = LinearRegression(data_norm=1.0, bounds_y=(0, 1), random_state=0)
    found = inference(make_pipeline(TableEncoder(schema), line).fit(X, X["age"]))
    few, alike = (note for note in found._notes() if "Not estimable" in note)
    assert "site=B, more=B: a" in few and "age, born: noise hides" in alike
    assert {"site=B", "more=B", "age", "born"} == set(found.hidden)


def test_what_is_not_told_has_names():
    """Where noise hides every coefficient, and of several classes, of which no answer tells it."""
    X = np.random.RandomState(0).uniform(-1.0, 1.0, size=(3000, 3))
    few = LinearRegression(epsilon=0.02, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0)
    found = inference(few.fit(X, X[:, 0]))
    assert list(found.hidden) == found.names and not found.reason.startswith("x0")
    for labels in (X[:, 0] > 0.0, np.digitize(X[:, 0], [-0.3, 0.3])):
        classes = tuple(range(int(labels.max()) + 1))
        model = LogisticRegression(classes=classes, bounds_X=(-1, 1), n_jobs=1, random_state=0)
        found = inference(model.fit(X, labels.astype(int)))
        told = np.isfinite(found.estimate)
        assert told.any()
        # Of several classes no estimator has an equation of maximum likelihood
        assert ("likelihood as the estimand" in str(found)) == (len(classes) == 2)


def test_the_display_draws_what_is_there():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = _frame()
    display = CoefficientDisplay.from_estimator(_model().fit(X, y))
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["age", "dose", "other"]
    few, targets = _frame(300)
    display = CoefficientDisplay.from_estimator(_model().fit(few, targets), intercept=True)
    assert sum(text.get_text() == "not estimable" for text in display.ax_.texts) == 4
    pyplot.close("all")


def test_linear_regression_in_its_own_units():
    X, y = _frame(20_000)
    params = {"bounds_X": BOUNDS, "bounds_y": (0.0, 35.0), "random_state": 0}
    exact = inference(LinearRegression(**params, privacy="none").fit(X, y))
    assert "noise." not in str(exact) and "privacy noise" not in str(exact)  # but rounding
    theta, covariance = _robust(X.to_numpy(), y)
    assert exact.names == ["age", "dose", "other", "intercept"]
    assert exact.estimate == pytest.approx(theta, rel=1e-6, abs=1e-9)
    assert exact.std_error == pytest.approx(np.sqrt(np.diagonal(covariance)), rel=1e-2)
    found = inference(LinearRegression(**params, clip="wide").fit(X, y))
    assert (np.abs(found.estimate - theta) < 5.0 * found.std_error).all()
    assert ((found.privacy_share > 0.0) & (found.privacy_share < 1.0)).all()
    assert found.estimand.startswith("fitted: bounded-influence") and "deviations" in found.estimand
    line = inference(LinearRegression(**params).fit(X, y), estimand="least_squares")
    assert line.estimand.startswith("least_squares")
    assert (np.abs(line.estimate - theta) < 5.0 * line.std_error).all()
    assert "least_squares as the estimand" in str(found) and "count in full" not in str(line)
    few = inference(LinearRegression(**params, epsilon=0.3).fit(X[:300], y[:300]))
    assert np.isnan(few.estimate).all() and "at an epsilon of about" in few.reason
    persons = LinearRegression(**params, epsilon=0.3, max_rows_per_group=2)
    few = inference(persons.fit(X[:300], y[:300], groups=np.arange(300)))
    assert "persons on, or" in few.reason and "fewer rows of each person" in few.reason


def test_what_noise_hides_is_wide_by_bounds_and_named_alone():
    """Two columns that are nearly one: only their sum is told, and the bounds say the rest.

    Of 24 seeds the standard error of the third column has the median .131, and .171 at most.
    """
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(20_000, 3))
    X[:, 1] = np.clip(X[:, 0] + rng.normal(scale=1e-4, size=20_000), 0.0, 1.0)
    X = pd.DataFrame(X, columns=["age", "birth", "dose"])
    y = X["age"] + X["birth"] - X["dose"] + rng.normal(scale=0.1, size=20_000)
    model = LinearRegression(bounds_X=(0.0, 1.0), bounds_y=(-2.0, 3.0), random_state=0)
    for estimand in ("fitted", "least_squares"):
        found = inference(model.fit(X, y), estimand=estimand)
        assert found.reason.startswith("age, birth: ") and "Wide by public bounds" in str(found)
        assert "epsilon" not in found.reason and "weight of all" in " ".join(str(found).split())
        both = found.contrast({"age": 0.5, "birth": 0.5})  # noise hides their difference alone
        assert not both.reason and abs(both.estimate[0] - 1.0) < 3.0 * both.std_error[0] < 0.6
        assert ((found.low <= [1.0, 1.0, -1.0, 0.0]) & ([1.0, 1.0, -1.0, 0.0] <= found.high)).all()
        assert (found.std_error[:2] >= 5.0).all() and found.std_error[2] < 0.2
        assert not found.contrast({"dose": 1.0}).reason
        alone = found.contrast({"birth": 1.0, "dose": 1.0})
        assert "noise hides" in alone.reason and alone.std_error[0] >= 5.0
    found = inference(clone(model).set_params(bounds_X=None, data_norm=2.0).fit(X, y))
    assert np.isnan(found.estimate[:2]).all() and found.reason.startswith("age, birth: ")


def _skewed(n, seed):
    """Exponential noise that is large where x is: its clipped tail has a part in the slope."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(0.0, 1.0, size=(n, 2))
    noise = rng.lognormal(sigma=1.0, size=n) - np.exp(0.5)
    return X, 2.0 + X[:, 0] + (0.5 + X[:, 0]) * noise


@pytest.mark.slow
def test_long_tails_are_not_cut_from_the_least_squares_line():
    """Six deviations leave a bias of more than a standard error here, and a step sees that.

    100 draws at two slopes, each to cover 87 times: fails with probability .001 at .95, passes with
    .05 at .80 and with .002 at .75.
    """
    bounds = (-10.0, 40.0)
    X, y = _skewed(2_000_000, 10**6)
    truth = LeastSquares().fit(X, np.clip(y, *bounds)).coef_
    covered = []
    for seed in range(1000, 1100):
        X, y = _skewed(30_000, seed)
        model = LinearRegression(bounds_X=(0.0, 1.0), bounds_y=bounds, random_state=seed, epsilon=3)
        found = inference(model.fit(X, y), estimand="least_squares")
        covered.append((found.low[:2] <= truth) & (truth <= found.high[:2]))
        assert not found.reason
    assert np.mean(covered, axis=0).min() >= 0.87


def test_rows_that_the_line_hangs_on_are_in_the_least_squares_interval():
    """A recording error in 60 of 20,000 rows, which count for less in the fitted line."""
    X, y = _frame(20_000)
    y += 1.5 * X["dose"].to_numpy() - 7.0
    params = {"bounds_X": {**BOUNDS, "dose": (0.0, 50.0)}, "bounds_y": (0.0, 35.0)}
    X.loc[X.index[:60], "dose"] = 40.0
    exact = LinearRegression(**params, privacy="none").fit(X, y)
    for seed in range(4):
        model = LinearRegression(**params, epsilon=10.0, random_state=seed).fit(X, y)
        found = inference(model, estimand="least_squares")
        away = (found.estimate[:-1] - exact.coef_) / found.std_error[:-1]
        assert not found.reason and np.abs(away).max() < 4.0


@pytest.mark.parametrize(
    ("model", "n"),
    [
        (LinearRegression(bounds_X=(-1, 1), bounds_y=(-2, 2), epsilon=5.0), 20),
        (LogisticRegression(classes=(0, 1), bounds_X=(-1, 1)), 150),
        (PoissonRegressor(bounds_X=(-1, 1), bounds_y=(0, 1)), 100),
    ],
)
def test_as_many_records_and_so_large_an_epsilon_as_are_named_are_enough(model, n):
    """Effective records grow with mu, of which epsilon is no multiple."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (10 * n, 2))
    y = (X[:, 0] > 0.0).astype(int)
    reason = inference(model.fit(X[:n], y[:n])).reason
    assert reason.startswith("the records are too few")
    records, epsilon = re.search(r"about (\d+) .* about ([\d.]+)", reason).groups()
    records, epsilon = int(records), float(epsilon)
    more = clone(model).fit(X[:records], y[:records])
    larger = clone(model).set_params(epsilon=epsilon).fit(X[:n], y[:n])
    for enough in (more, larger):
        assert "too few" not in inference(enough).reason
    assert epsilon > 1.03 * model.epsilon * records / n


@pytest.mark.parametrize("weights", ["x0 - x1", [[1.0], [1.0, 0.0]], {}, 1.0, [0.0, 1.0, 2.0, 3.0]])
def test_improper_weights_name_the_remedy(weights):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 2))
    model = LinearRegression(epsilon=9.0, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0)
    table = inference(model.fit(X, X[:, 0]))
    with pytest.raises(ValueError, match=r"x0, x1, intercept.*\{name: 1\.0"):
        table.contrast(weights)


@pytest.mark.slow
def test_the_wald_test_and_contrasts_have_their_level():
    """120 draws of rows, targets and noise: of what is true of the population, more than 15 are
    rejected at .05 with probability .001. Their power: nothing false is kept, in four draws.
    """
    truth, wrong = np.array([0.2, -1.5, 0.0]), []
    for seed in range(120):
        X, y = _frame(8_000, seed)
        model = LinearRegression(
            bounds_X=BOUNDS, bounds_y=(0.0, 35.0), clip="wide", random_state=seed, epsilon=7.5
        )
        if seed < 4:
            assert inference(model.fit(X, y)).wald_test(["age", "dose"]).p_value < 1e-6
        away = y - X.to_numpy() @ truth  # 10 and noise: all three are zero
        found = inference(model.fit(X, away + 5.0))
        if found.reason:
            continue
        none = found.wald_test(["age", "dose", "other"])
        sums = found.contrast({"age": 10.0, "dose": 1.0})
        wrong.append([none.p_value < 0.05, not sums.low[0] <= 0.0 <= sums.high[0]])
    assert len(wrong) > 100
    assert (np.sum(wrong, axis=0) <= 15).all()


def test_the_display_compares_effects_of_whole_ranges():
    pytest.importorskip("matplotlib.pyplot")
    X, y = _frame()
    model = _model().fit(X, y)
    plain = CoefficientDisplay.from_estimator(model)
    whole = CoefficientDisplay.from_estimator(model, scale="range")
    widths = np.ptp(np.array([model[0].bounds[name] for name in plain.names], dtype=float), axis=1)
    np.testing.assert_allclose(whole.estimate, widths * plain.estimate)
    np.testing.assert_allclose(whole.high - whole.low, widths * (plain.high - plain.low))
    assert "whole range" in whole.ax_.get_xlabel()
    with pytest.raises(ValueError, match="scale"):
        CoefficientDisplay.from_estimator(model, scale="sd")
