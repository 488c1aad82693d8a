"""Predictions and marginal effects at public rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.pipeline import make_pipeline

from skpriv.inspection import (
    CoefficientDisplay,
    confidence_interval, inference, marginal_effects, typical_predictions,
)  # fmt: skip
from skpriv.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from skpriv.preprocessing import Categorical, Numeric, TableEncoder

N = 40_000
rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"age": rng.uniform(20, 80, N), "site": rng.choice(["A", "B"], N)})
ETA = -1.0 + 0.03 * (TABLE.age - 50.0) + 0.5 * (TABLE.site == "B")
SCHEMA = {"age": Numeric(20, 80), "site": Categorical(["A", "B"], other=False)}
ROW = pd.DataFrame({"age": [50.0], "site": ["A"]})


def fitted(kind, y, **options):
    model = kind(data_norm=1.0, random_state=0, **options)
    return make_pipeline(TableEncoder(SCHEMA), model).fit(TABLE, y)


CLASSES = fitted(LogisticRegression, rng.random(N) < expit(ETA), classes=(False, True))
COUNTS = fitted(PoissonRegressor, rng.poisson(np.exp(ETA)), bounds_y=(0, 12))
LINE = fitted(LinearRegression, ETA + rng.normal(size=N), bounds_y=(-6, 6))


LEVELS = expit(-0.5) - expit(-1), np.exp(-0.5) - np.exp(-1)  # of site B against A, at age 50


@pytest.mark.parametrize(
    "model, slope, level",
    [(CLASSES, expit(-1) * expit(1), LEVELS[0]), (COUNTS, np.exp(-1), LEVELS[1])],
)
def test_effects_of_numbers_are_derivatives_and_those_of_levels_differences(model, slope, level):
    found = marginal_effects(model, ROW)
    assert found.names == ["age", "site=B"]
    truth = np.array([0.03 * slope, level])
    assert np.all(np.abs(found.estimate - truth) < 3.5 * found.std_error)
    assert np.all(found.std_error < 0.2 * truth)
    for place, moved in enumerate(({"age": 51.0}, {"site": "B"})):
        rows = (ROW, ROW.assign(**moved))
        low, high = (typical_predictions(model, row).estimate[0] for row in rows)
        assert high - low == pytest.approx(found.estimate[place], rel=(0.1, 0.03)[place])
    # at another level of the same list all is the same but the derivative
    other = marginal_effects(model, ROW.assign(site="B"))
    assert other.estimate[1] == pytest.approx(found.estimate[1])
    assert other.std_error[1] == pytest.approx(found.std_error[1])
    assert other.estimate[0] > 1.1 * found.estimate[0]


def test_the_delta_method_of_a_level_is_that_of_the_two_means():
    found, table = marginal_effects(COUNTS, ROW), inference(COUNTS)
    at_age, at_level = np.array([50.0, 0.0, 1.0]), np.array([50.0, 1.0, 1.0])
    low, high = np.exp([at_age @ table.estimate, at_level @ table.estimate])
    delta = table.contrast(high * at_level - low * at_age)
    assert found.estimate[1] == pytest.approx(high - low)
    assert found.std_error[1] == pytest.approx(delta.std_error[0])


def test_an_empty_level_hides_no_other_effect():
    schema = SCHEMA | {"site": Categorical(["A", "B", "C"], other=False)}
    model = make_pipeline(
        TableEncoder(schema), PoissonRegressor(data_norm=1.0, bounds_y=(0, 12), random_state=0)
    )
    found = marginal_effects(model.fit(TABLE, rng.poisson(np.exp(ETA))), ROW)
    np.testing.assert_array_equal(np.isnan(found.estimate), [False, False, True])
    assert np.isfinite(found.std_error[:2]).all() and found.hidden == ("site=C",)


def test_effects_of_a_line_are_its_coefficients():
    found, own = marginal_effects(LINE, ROW), inference(LINE)
    np.testing.assert_allclose(found.estimate, own.estimate[:2])
    np.testing.assert_allclose(found.std_error, own.std_error[:2])
    assert found.confidence_level == 0.95 and "intercept" not in found.names
    assert "of each term alone" in found.estimand


def test_typical_predictions_are_those_of_the_model():
    rows = pd.DataFrame({"age": [30.0, 70.0], "site": ["A", "B"]})
    table = typical_predictions(CLASSES, rows, confidence_level=0.9)
    low, high = confidence_interval(CLASSES, rows, confidence_level=0.9, method="asymptotic")
    np.testing.assert_array_equal(table.estimate, CLASSES.predict_proba(rows)[:, 1])
    np.testing.assert_array_equal([table.low, table.high], [low, high])
    assert table.rows == ["age=30, site=A", "age=70, site=B"]
    assert "90% low" in str(table) and "probability of True" in str(table)
    assert r"\toprule" in table.to_latex() and table.to_markdown().count("|\n") == 4
    assert table.to_frame().shape == (2, 3)


def test_several_rows_or_classes_are_refused():
    with pytest.raises(ValueError, match="one row, and not 2"):
        marginal_effects(LINE, pd.concat([ROW, ROW]))
    y = rng.choice(list("abc"), N)
    model = fitted(LogisticRegression, y, classes=("a", "b", "c"))
    for function in (marginal_effects, typical_predictions):
        with pytest.raises(ValueError, match="classes"):
            function(model, ROW)


@pytest.mark.parametrize(
    "row, words",
    [
        (ROW[["age"]], "site|columns"),
        (ROW.rename(columns={"age": "years"}), "age|columns"),
        (pd.DataFrame({"x": [1.0]}), "columns|names"),
    ],
)
def test_a_row_of_other_columns_is_refused_as_by_predict(row, words):
    """It was an error of dimensions, from inside of linear algebra."""
    for call in (marginal_effects, typical_predictions):
        with pytest.raises(ValueError, match=words):
            call(COUNTS, row)


def test_a_row_with_a_number_that_is_none_is_refused():
    X = np.linspace(0.0, 1.0, 5000)[:, None]
    line = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="finite number"):
        marginal_effects(line, [[np.nan]])
    with pytest.raises(ValueError, match="features"):
        marginal_effects(line, [[0.5, 0.5]])


def test_a_hidden_level_leaves_the_tests_and_contrasts_of_others_alone():
    """In the table of lists stood "nan" for the whole list, with the degrees of all levels."""
    rng = np.random.default_rng(0)
    n = 5000
    rows = pd.DataFrame({"w": rng.choice(["a", "b", "c", "rare"], n, p=[0.5, 0.3, 0.198, 0.002])})
    encoder = TableEncoder({"w": Categorical(["a", "b", "c", "rare"], other=False)})
    last = LogisticRegression(classes=(0, 1), epsilon=2.0, data_norm=1.0, random_state=0)
    model = make_pipeline(encoder, last).fit(rows, (rng.random(n) < 0.2).astype(int))
    effects = marginal_effects(model, rows[:1].assign(w="a"))
    assert effects.hidden == ("w=rare",)
    test = effects.wald_test()
    assert test.left_out == ("w=rare",) and test.degrees_of_freedom == 2
    assert test.statistic == pytest.approx(effects.wald_test(["w=b", "w=c"]).statistic)
    assert not effects.wald_test(["w=rare"]).degrees_of_freedom
    assert np.isfinite(effects.contrast({"w=b": 1.0, "w=c": -1.0}).estimate).all()
    assert np.isnan(effects.contrast({"w=b": 1.0, "w=rare": -1.0}).estimate).all()
    assert "nan" not in str(effects) and "nan" not in effects.to_latex()


def test_a_picture_of_counts_has_rates():
    assert CoefficientDisplay.from_estimator(COUNTS, scale="rates").ratio == "rate ratio"
