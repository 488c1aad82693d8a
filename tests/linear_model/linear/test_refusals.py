"""Wrong inputs are refused with the remedy, and what too few records allow is said."""

import numpy as np
import pandas as pd
import pytest
from registry.refusals import uncharged

from skpriv.inspection import CoefficientDisplay, inference
from skpriv.linear_model import (
    AdditiveRegressor,
    IHTRegressor,
    LinearRegression,
    LogisticRegression,
    SSPRegressor,
)
from skpriv.preprocessing import BoundsScaler
from skpriv.records import from_table

PUBLIC = {"bounds_X": (-1.0, 1.0), "bounds_y": (-3.0, 3.0), "random_state": 0}


def rows(n=200):
    X = pd.DataFrame(np.random.RandomState(0).uniform(-1.0, 1.0, size=(n, 2)), columns=["a", "b"])
    return X, X["a"] - X["b"]


@pytest.mark.parametrize("Estimator", [LinearRegression, AdditiveRegressor])
@pytest.mark.parametrize(("wrong", "remedy"), [
    ({"bounds_y": 5}, r"bounds_y=5 must be two finite numbers \(low, high\)"),
    ({"bounds_y": "wide"}, r"bounds_y='wide' must be two finite numbers \(low, high\)"),
    ({"bounds_y": "auto"}, r"release one first"),
    ({"bounds_X": 5}, r"pass one public range \(low, high\)"),
    ({"bounds_X": "wide"}, r"public ranges that follow from what the features mean"),
    ({"bounds_X": {"a": (-1, 1)}}, r"no range for \['b'\]: add"),
    ({"bounds_X": [(-1, 1), (1, -1)]}, r"of 'b' are \(1, -1\).*low < high"),
])  # fmt: skip
def test_public_ranges_are_asked_for_before_the_charge(Estimator, wrong, remedy):
    with uncharged(remedy):
        Estimator(**{**PUBLIC, **wrong}).fit(*rows())


@pytest.mark.parametrize("model", [
    SSPRegressor(data_norm=1.0, bounds_y="auto"), SSPRegressor(data_norm="auto", bounds_y=(0, 1)),
    IHTRegressor(data_max="auto", bounds_y=(0, 1)),
    LinearRegression(bounds_X=(0, 1), bounds_y="auto"),
    LinearRegression(data_norm="auto", bounds_y=(0, 1)),
])  # fmt: skip
def test_a_bound_that_is_no_number_is_refused_with_the_remedy(model):
    with uncharged("private_quantiles"):
        model.fit(*rows())


def test_two_lists_of_two_columns_are_read_in_two_ways():
    """As other libraries write (lowest values, highest values), and as two ranges."""
    ends = [0, 100], [1, 200]
    for bounds in (ends, tuple(map(np.array, ends)), tuple(map(pd.Series, ends))):
        both = r"\[\(0, 100\), \(1, 200\)\] or \[\(0, 1\), \(100, 200\)\]"
        with uncharged(both):
            LinearRegression(**{**PUBLIC, "bounds_X": bounds}).fit(*rows())
        with pytest.raises(ValueError, match=both):
            BoundsScaler(bounds).fit(rows()[0])
    for bounds in ([[0, 100], [1, 200]], [(0, 100), (1, 200)], ((0, 100), (1, 200))):
        assert BoundsScaler(bounds).fit(rows()[0]).low_.tolist() == [0.0, 1.0]
    BoundsScaler(([0, 1],)).fit(rows()[0][["a"]])


@pytest.mark.parametrize("bounds", [
    pd.DataFrame({"low": [-2.0, -1.0], "high": [4.0, 1.0]}, index=["b", "a"]),
    pd.Series({"b": (-2.0, 4.0), "a": (-1.0, 1.0)}),
    np.array([(-1.0, 1.0), (-2.0, 4.0)]),
])  # fmt: skip
def test_ranges_that_are_labelled_go_by_the_label(bounds):
    """They were taken in their own order before."""
    X, y = rows()
    named = {"a": (-1.0, 1.0), "b": (-2.0, 4.0)}
    found, expected = (
        LinearRegression(**{**PUBLIC, "bounds_X": given, "epsilon": 50.0}).fit(X, y)
        for given in (bounds, named)
    )
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert expected.coef_[0] > 0.5 > -0.5 > expected.coef_[1]


def test_rows_are_bounded_in_one_way():
    with uncharged("bounds_X.*data_norm"):
        LinearRegression(**PUBLIC, data_norm=1.0).fit(*rows())


def test_scores_need_targets_and_say_so():
    X, y = rows()
    model = LinearRegression(**PUBLIC, privacy="none").fit(X, y)
    for given in (X, from_table(X.assign(y=y), target="y"), from_table(X)):
        with pytest.raises(ValueError, match="score needs the targets.*private_score"):
            model.score(given)
    assert model.score(X, y) == pytest.approx(1.0)
    assert model.score(from_table(X), y) == pytest.approx(1.0)


def test_the_report_says_where_the_mean_alone_was_asked_and_how_noisy_it_is():
    few, fewer = (LinearRegression(**PUBLIC).fit(*rows(n)) for n in (100, 5))
    for model in (few, fewer):
        asked = [row.query for row in model.privacy_report_.rows]
        assert asked == ["mean of the target"]
        assert "too few for coefficients" in inference(model).reason
        assert not model.coef_.any()
        assert model._released.variance == pytest.approx(1.0 - model._released.location**2)
        low, high = model.confidence_interval(rows()[0])
        assert (low == -3.0).all() and (high == 3.0).all()
    assert "Noise of the mean: 4" in str(few.privacy_report_)
    assert LinearRegression(**PUBLIC).fit(*rows(5000)).privacy_report_.note is None
    flat = LogisticRegression(
        classes=(0, 1), bounds_X=(-1.0, 1.0), fit_intercept=False, epsilon=0.01
    )
    X, y = rows()
    flat.fit(X, (y > 0.0).astype(int))
    assert "no intercept: the fit is 0" in str(flat.privacy_report_)


@pytest.mark.parametrize("level", ["95%", 95, 0.0, None])
def test_levels_are_numbers(level):
    model = LinearRegression(**PUBLIC, calibration_size=0.5).fit(*rows())
    for method in (model.confidence_interval, model.prediction_interval):
        with pytest.raises(ValueError, match="confidence_level=.* as a number"):
            method(rows()[0], confidence_level=level)


def test_contrasts_and_pictures_say_what_they_need():
    model = LinearRegression(**PUBLIC, privacy="none").fit(*rows())
    found = inference(model)
    for weights in ({}, {"a": 0.0}, [[1, 0, 0], [0, 0, 0]]):
        with pytest.raises(ValueError, match=r"not all of them 0.*\(a, b, intercept\)"):
            found.contrast(weights)
    with pytest.raises(ValueError, match=r"3 coefficients \(a, b, intercept\)"):
        found.contrast([1.0, -1.0])
    with pytest.raises(TypeError, match="is a LinearRegression.*from_estimator"):
        CoefficientDisplay.from_inference(model)


def test_names_of_columns_that_are_numbers_are_no_names():
    X, y = rows()
    with pytest.raises(ValueError, match="feature names.*strings"):
        LinearRegression(**{**PUBLIC, "bounds_X": {0: (-1, 1), 1: (-1, 1)}}).fit(
            X.set_axis([0, 1], axis=1), y
        )
    for wrong in (5, "auto"):
        with pytest.raises(ValueError, match="public range"):
            BoundsScaler(wrong).fit(X)
