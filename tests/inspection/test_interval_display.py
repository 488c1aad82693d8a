import datetime as dt

import numpy as np
import pandas as pd
import pytest
from registry.estimators import line_data, ssp
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from skpriv.inspection import IntervalDisplay
from skpriv.linear_model import LogisticRegression, SSPRegressor
from skpriv.preprocessing import Categorical, Date, Numeric, TableEncoder

pl = pytest.importorskip("polars")

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def arrays():
    return line_data(2000)


@pytest.fixture(scope="module")
def table():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, 2000),
            "sex": rng.choice(["F", "M"], 2000),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(0, 300, 2000), "D"),
        }
    )
    y = frame["age"] / 100 + 0.2 * (frame["sex"] == "M")
    encoder = TableEncoder(
        {
            "age": Numeric(20, 60),
            "sex": Categorical(["F", "M"], other=False),
            "day": Date("2020-01-01", "2020-12-31"),
        }
    )
    return make_pipeline(encoder, SSPRegressor(data_norm=1.0, bounds_y=(0, 1), random_state=0)).fit(
        frame, y
    )


ROW = {"age": [40.0], "sex": ["F"], "day": [dt.datetime(2020, 5, 1)]}


def test_rows_of_an_array(arrays):
    X, y = arrays
    model = ssp(random_state=0).fit(X, y)
    display = IntervalDisplay.from_estimator(model, X[:40], 0, method="asymptotic")
    np.testing.assert_array_equal(display.prediction, model.predict(X[:40]))
    low, high = model.confidence_interval(X[:40], method="asymptotic")
    np.testing.assert_array_equal(display.low, low)
    np.testing.assert_array_equal(display.high, high)
    np.testing.assert_array_equal(display.line_.get_xdata(), np.sort(X[:40, 0]))
    assert display.line_.get_linestyle() == "None"  # these are different people
    np.testing.assert_array_equal(display.values, X[:40, 0])
    assert display.ax_.get_xlabel() == "feature 0"
    assert display.ax_.get_legend().get_texts()[0].get_text() == "95% confidence interval"
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
@pytest.mark.parametrize(
    "feature, grid",
    [
        ("age", [20.0, 40.0, 60.0]),
        (0, [20, 60]),
        ("sex", ["F", "M", "x"]),
        ("day", [dt.datetime(2020, 1, 1), dt.datetime(2020, 12, 31)]),
    ],
)
def test_a_grid_and_one_row_of_a_table(make, feature, grid, table):
    display = IntervalDisplay.from_estimator(table, make(ROW), feature, grid=grid)
    rows = pd.DataFrame({name: values * len(grid) for name, values in ROW.items()})
    rows[feature if isinstance(feature, str) else "age"] = grid
    np.testing.assert_array_equal(display.prediction, table.predict(rows))
    assert (display.low <= display.high).all()
    assert display.ax_.get_xlabel() == ("age" if feature == 0 else feature)


def test_axes_that_are_given(arrays):
    figure, ax = matplotlib.figure.Figure(), None
    ax = figure.subplots()
    display = IntervalDisplay(values=[1, 0], prediction=[1.0, 0.0], low=[0, np.nan], high=[2, 1])
    assert display.plot(ax) is display
    assert display.ax_ is ax and display.figure_ is figure


def test_improper_arguments(arrays, table):
    X, y = arrays
    model = ssp(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one row"):
        IntervalDisplay.from_estimator(model, X[:2], 0, grid=[0.0])
    with pytest.raises(ValueError, match="'both'"):
        IntervalDisplay.from_estimator(model, X[:2], 0, kind="both")
    with pytest.raises(ValueError, match="LinearRegression has no confidence_interval"):
        IntervalDisplay.from_estimator(LinearRegression().fit(X, y), X[:2], 0)
    with pytest.raises(ValueError, match="feature names 'height'"):
        IntervalDisplay.from_estimator(table, pd.DataFrame(ROW), "height")


def test_of_classes_there_is_one_probability(arrays):
    X, y = arrays
    settings = {"bounds_X": (-0.5, 0.5), "privacy": "none"}
    three = LogisticRegression(classes=(0, 1, 2), **settings).fit(X, np.digitize(y, [-0.1, 0.1]))
    with pytest.raises(ValueError, match="estimator=LogisticRegression.*two classes"):
        IntervalDisplay.from_estimator(three, X[:1], 0, grid=[0.0, 0.1])
    two = LogisticRegression(classes=("no", "yes"), **settings)
    two.fit(X, np.where(y > 0.0, "yes", "no"))
    display = IntervalDisplay.from_estimator(two, X[:1], 0, grid=[0.0, 0.1])
    assert (display.low < display.prediction).all() and (display.prediction < display.high).all()
