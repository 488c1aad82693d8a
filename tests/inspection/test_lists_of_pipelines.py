"""Pipelines of scikit-learn's encoders: the table in their terms; learned lists are refused."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import skpriv
from skpriv.inspection import confidence_interval, inference, model_card, release_page
from skpriv.linear_model import LinearRegression
from skpriv.preprocessing import BoundsScaler, Categorical, Numeric, TableEncoder

LISTS = [["a", "b", "c", "never"], ["p", "q"]]
EFFECTS = {"w=b": 0.5, "w=c": -0.5, "v=q": 0.3, "x": 1.5, "intercept": 1.0}


def _table(n=20_000, seed=0):
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(
        {
            "w": rng.choice(["a", "b", "c"], n),
            "v": rng.choice(["p", "q"], n),
            "x": rng.uniform(size=n),
        }
    )
    effects = sum(
        value * (frame[name[0]] == name[2]) for name, value in EFFECTS.items() if "=" in name
    )
    return frame, 1.0 + effects + 1.5 * frame["x"] + 0.5 * rng.normal(size=n)


def _model(lists, privacy="central", **fields):
    columns = ColumnTransformer([("lists", lists, ["w", "v"]), ("numbers", "passthrough", ["x"])])
    bounds = {"bounds_X": (0.0, 1.0), "bounds_y": (-3.0, 8.0), "random_state": 0}
    return make_pipeline(columns, LinearRegression(**bounds, privacy=privacy, **fields))


@pytest.mark.parametrize("privacy", ["central", "none"])
@pytest.mark.parametrize(
    "fields, more",
    [
        ({}, ["w=never"]),
        ({"handle_unknown": "ignore"}, ["w=never", "w=other", "v=other"]),
        ({"drop": "first"}, ["w=never"]),
    ],
)
def test_one_hot_columns_of_public_lists_have_the_table_of_their_levels(fields, more, privacy):
    """All columns of a list beside an intercept: differences of levels are estimable."""
    encoder = OneHotEncoder(categories=LISTS, sparse_output=False, **fields)
    found = inference(_model(encoder, privacy).fit(*_table()))
    assert sorted(found.names) == sorted([*EFFECTS, *more])
    frame = found.to_frame().loc[list(EFFECTS)]
    z = (frame["estimate"] - pd.Series(EFFECTS)) / frame["std_error"]
    assert (abs(z) < 4.0).all() and (frame["std_error"] < 0.03).all()
    assert set(found.hidden) == set(more)
    assert np.isnan(found.estimate[found.names.index("w=never")]) == (privacy == "none")
    levels = [name for name in found.names if name.startswith("w=")]
    of_list, of_levels = found.wald_test("w"), found.wald_test(levels)
    assert of_list.statistic == pytest.approx(of_levels.statistic)
    assert of_list.degrees_of_freedom == of_levels.degrees_of_freedom
    both = found.wald_test(["w", "x"])
    assert both.statistic == pytest.approx(found.wald_test([*levels, "x"]).statistic)


def test_reference_of_a_list_is_the_level_that_is_dropped():
    encoder = OneHotEncoder(categories=LISTS, drop=["b", "q"], sparse_output=False)
    frame = inference(_model(encoder, "none").fit(*_table())).to_frame()
    expected = {"w=a": -0.5, "w=c": -1.0, "v=p": -0.3, "x": 1.5, "intercept": 1.8}
    found = frame["estimate"].drop("w=never")
    assert found.to_dict() == pytest.approx(expected, abs=0.04)


def test_steps_that_learn_nothing_may_stand_inside():
    X, y = _table()
    X["o"] = X["v"]
    lists = [["p", "q"]]
    columns = ColumnTransformer(
        [
            ("x", BoundsScaler([(0, 1)]), ["x"]),
            ("v", make_pipeline(
                SimpleImputer(strategy="constant", fill_value="p"),
                OneHotEncoder(categories=lists, sparse_output=False, drop="first"),
            ), ["v"]),
            ("w", TableEncoder({"w": Categorical(["a", "b", "c"], other=False)}), ["w"]),
            ("o", OrdinalEncoder(categories=lists), ["o"]),
        ]
    )  # fmt: skip
    bounds = {"bounds_X": (-1.0, 1.0), "bounds_y": (-3.0, 8.0), "privacy": "none"}
    found = inference(make_pipeline(columns, LinearRegression(**bounds)).fit(X, y))
    assert found.names == ["x", "o", "v=q", "w=b", "w=c", "intercept"]
    told = found.contrast({"v=q": 1.0, "o": 1.0})  # the same column twice
    assert told.estimate[0] == pytest.approx(0.3, abs=0.04)
    assert (
        np.isnan(found.estimate[[1, 2]]).all() and np.isfinite(found.estimate[[0, 3, 4, 5]]).all()
    )


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(sparse_output=False),
        OneHotEncoder(categories=LISTS, max_categories=2, handle_unknown="infrequent_if_exist",
                      sparse_output=False),
        OrdinalEncoder(),
    ],
)  # fmt: skip
def test_a_list_that_was_learned_from_rows_is_refused_with_the_remedy(encoder):
    model = _model(encoder).fit(*_table(2_000))
    with pytest.raises(TypeError, match=r"private rows: pass the public one, \w+\(categories=\[\["):
        inference(model)


def test_other_steps_are_refused_with_the_remedy_and_sparse_rows_too():
    X, y = _table(2_000)
    scaled = make_pipeline(StandardScaler(), LinearRegression(bounds_X=(-5, 5), bounds_y=(-3, 8)))
    with pytest.raises(
        TypeError, match=r"StandardScaler are not known.*OneHotEncoder\(categories="
    ):
        inference(scaled.fit(X[["x"]], y))
    rare = make_pipeline(OneHotEncoder(categories=LISTS), scaled[-1])
    with pytest.raises(TypeError, match=r"pass OneHotEncoder\(sparse_output=False\)"):
        rare.fit(X[["w", "v"]], y)


def test_intervals_of_rows_of_a_pipeline_know_the_levels():
    """An empty level makes intervals of other rows no wider: by 45% without it in 8 seeds."""
    X, y = _table()
    widths = []
    for levels in (LISTS[0][:-1], LISTS[0]):
        schema = {"w": Categorical(levels, other=False), "x": Numeric(0, 1)}
        last = LinearRegression(data_norm=1.0, bounds_y=(-3, 8), random_state=0)
        model = make_pipeline(TableEncoder(schema), last).fit(X, y)
        low, high = confidence_interval(model, X.iloc[:200])
        widths.append(np.median(high - low))
        direct = last.confidence_interval(model[:-1].transform(X.iloc[:200]))
    assert widths[1] < 1.7 * widths[0]
    assert np.median(direct.high - direct.low) > 1.1 * widths[1]  # which knows no level
    empty = pd.DataFrame({"w": ["never"], "x": [0.5]})
    low, high = confidence_interval(model, empty)
    assert (low, high) == (-3.0, 8.0)  # nothing is known of its effect


def test_a_norm_that_one_hot_rows_exceed_is_told_in_the_table():
    """The rows of BoundsScaler have norm 1 at most, and those with a list beside them have not."""
    X, y = _table()
    lists = OneHotEncoder(categories=LISTS, handle_unknown="ignore", sparse_output=False)
    ranges = BoundsScaler([(0, 1)])
    columns = ColumnTransformer([("lists", lists, ["w", "v"]), ("x", ranges, ["x"])])
    last = LinearRegression(data_norm=1.0, bounds_y=(-3.0, 8.0), random_state=0)
    model = make_pipeline(columns, last).fit(X, y)
    share, *parts = re.findall(r"([\d.]+)%", last.privacy_report_.note.partition(" and ")[0])
    text = " ".join(str(inference(model)).split())
    assert f"1. {last.privacy_report_.note}" in text and "data_norm" in text
    assert last.privacy_report_.note in release_page(model).partition("<h2>")[0]
    assert 80.0 < float(share)
    with pytest.raises(TypeError, match="use skpriv.preprocessing.TableEncoder"):
        skpriv.save(model, "never.json")


def test_notes_name_columns_as_they_come_out_of_the_step_before():
    X, y = _table()
    model = _model(OneHotEncoder(categories=LISTS, sparse_output=False))
    model[-1].set_params(bounds_X=[(0, 1)] * 6 + [(0, 0.5)])
    model.fit(X, y)
    assert "in x6 (" in model[-1].privacy_report_.note
    for text in (str(inference(model)), model_card(model), release_page(model)):
        assert "in numbers__x (" in " ".join(text.replace("\\", "").split())
        assert "in x6 (" not in text
