"""Curves in the units of a table, as panels and in a model card."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skpriv.inspection import CurveDisplay, coefficient_table, curves, model_card
from skpriv.linear_model import AdditiveRegressor, SSPRegressor
from skpriv.preprocessing import Boolean, Categorical, Date, Numeric, Ordinal, Schema, TableEncoder

matplotlib.use("Agg")
SCHEMA = Schema(
    {
        "age": Numeric(20, 80, missing="indicator"),
        "day": Date("2020-01-01", "2024-12-31"),
        "sex": Categorical(["F", "M"]),
    }
)


def table(n=4000, seed=0):
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(0, 1800, n), "D"),
            "sex": rng.choice(["F", "M"], n),
        }
    )
    y = ((frame["age"] - 50) / 30) ** 2 + 0.5 * (frame["sex"] == "M")
    return frame, y.to_numpy() + rng.normal(scale=0.2, size=n)


@pytest.fixture(scope="module")
def model():
    frame, y = table()
    encoder = TableEncoder(SCHEMA).fit(frame)
    lines = [i for i in range(len(encoder.bounds_out_)) if i not in (0, 2)]
    regressor = AdditiveRegressor(
        bounds_X=encoder.bounds_out_, bounds_y=(-1, 3), linear_features=lines, knots=5,
        epsilon=4.0, random_state=0,
    )  # fmt: skip
    return make_pipeline(encoder, regressor).fit(frame, y)


def test_curves_are_in_the_units_of_the_table(model):
    age, day, sex = curves(model)
    assert (age["name"], day["name"], sex["name"]) == ("age", "day", "sex")
    np.testing.assert_allclose(np.asarray(age["knots"], float), [20, 35, 50, 65, 80], atol=1e-9)
    assert str(day["values"][0])[:10] == "2020-01-01"
    truth = ((np.asarray(age["values"], float) - 50) / 30) ** 2
    truth -= truth.mean()
    assert np.abs(age["curve"].effect - truth).max() < 0.2
    (only,), (same,) = (curves(model, features=day, n_points=3) for day in (["day"], "day"))
    assert only["name"] == same["name"] == "day"
    with pytest.raises(ValueError, match="not among"):
        curves(model, features=["height"])


def test_a_missing_cell_is_a_point_beside_a_curve_that_it_hides_nowhere():
    """All rows in the middle of the range are missing cells, with whose effect it is confused."""
    rng = np.random.RandomState(0)
    age = np.where(rng.rand(8000) < 0.2, np.nan, rng.uniform(20, 35, 8000))
    frame = pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], 8000)})
    y = np.where(np.isnan(age), 1.0, (age - 20) / 15) + rng.normal(scale=0.1, size=8000)
    encoder = TableEncoder({name: SCHEMA[name] for name in frame}).fit(frame)
    regressor = AdditiveRegressor(
        bounds_X=encoder.bounds_out_, bounds_y=(-1, 2), linear_features=[1, 2, 3], knots=5,
        epsilon=4.0, random_state=0,
    )  # fmt: skip
    model = make_pipeline(encoder, regressor).fit(frame, y)
    age, sex = curves(model, features=["age", "sex"])
    known = np.asarray(age["values"], float) <= 35
    assert np.isfinite(age["curve"].high[known]).all() and not sex["missing"].size
    step = age["missing"][0, 0] - age["curve"].effect[0]
    assert step == pytest.approx(1.0, abs=0.2)  # between a missing age and 20 years
    effect, low, high, band_low, band_high = age["missing"][:, 0]
    assert band_low <= low <= effect <= high <= band_high
    (predicted,) = np.diff(model.predict(pd.DataFrame({"age": [20, np.nan], "sex": ["F", "F"]})))
    assert step == pytest.approx(predicted)
    assert "missing" in coefficient_table(model)
    ax, other = CurveDisplay.from_estimator(model).axes_
    assert not ax.get_shared_y_axes().joined(ax, other)


def test_wide_ends_do_not_flatten_a_curve(model):
    ax = CurveDisplay.from_estimator(model, features="age").axes_[0]
    curve = curves(model, features="age")[0]["curve"]
    low, high = ax.get_ylim()
    assert high - low < 4.0 * np.ptp(curve.effect)
    assert low < curve.effect.min() and curve.effect.max() < high


def test_a_panel_for_each_curve(model):
    display = CurveDisplay.from_estimator(model, target_name="cost")
    assert len(display.axes_) == len(display.lines_) == len(display.bands_) == 3
    assert [ax.get_xlabel() for ax in display.axes_] == ["age", "day", "sex"]
    assert [text.get_text() for text in display.axes_[2].get_xticklabels()] == ["F", "M", "other"]
    assert "cost" in display.axes_[0].get_ylabel()
    with pytest.raises(ValueError, match="3 panels, but 1 axes"):
        display.plot(display.axes_[:1])


def test_levels_have_a_point_each(model):
    (sex,) = curves(model, features="sex")
    curve = sex["curve"]
    assert sex["values"].tolist() == ["F", "M", "other"] and len(sex["knots"]) == 0
    assert curve.effect[1] - curve.effect[0] == pytest.approx(0.5, abs=0.15)
    truth = np.array([-0.25, 0.25])  # of F and M, who are half of the rows each
    assert ((curve.band_low[:2] <= truth) & (truth <= curve.band_high[:2])).all()
    assert (curve.band_low <= curve.low).all() and (curve.high <= curve.band_high).all()
    assert (curve.high - curve.low)[2] > (curve.high - curve.low)[0]  # nobody is in "other"
    effects = [model.predict(table(1)[0].assign(sex=level))[0] for level in ("F", "M")]
    assert curve.effect[1] - curve.effect[0] == pytest.approx(effects[1] - effects[0])


def test_every_kind_of_level():
    schema = Schema(
        {
            "pain": Ordinal(["none", "some", "strong"], missing="indicator"),
            "smoker": Boolean(),
            "age": Numeric(20, 80),
        }
    )
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "pain": rng.choice(["none", "some", "strong", None], 4000),
            "smoker": rng.choice([True, False], 4000),
            "age": rng.uniform(20, 80, 4000),
        }
    )
    y = frame["smoker"] * 0.6 + (frame["pain"] == "strong") * 0.4
    encoder = TableEncoder(schema).fit(frame)
    regressor = AdditiveRegressor(
        bounds_X=encoder.bounds_out_, bounds_y=(-1, 2), linear_features=[0, 1, 2], knots={3: 5},
        epsilon=4.0, random_state=0,
    )  # fmt: skip
    pain, smoker, age = curves(make_pipeline(encoder, regressor).fit(frame, y), n_points=11)
    assert pain["values"].tolist() == ["none", "some", "strong", "missing"]
    assert smoker["values"].tolist() == ["false", "true"]
    assert np.diff(smoker["curve"].effect)[0] == pytest.approx(0.6, abs=0.1)
    assert np.isfinite(pain["curve"].band_high).all()
    assert len(age["values"]) == 13  # 11 points, and the two knots that are none of them


def test_the_card_has_the_curves(model):
    card = model_card(model)
    assert "## Curves" in card and "## Coefficients" not in card
    assert "| age | 35 |" in card and "| sex | M |" in card
    assert "band low" in model_card(model, format="html")
    head, table, note = coefficient_table(model).split("\n\n")
    assert "4,000" in head and "each effect is 0 on average" in head
    header, *rows = (line.split() for line in table.splitlines())
    assert "A dash" in note and " ".join(header) == "feature value effect band low band high"
    assert ["sex", "M"] in [row[:2] for row in rows]


def test_lines_have_no_curves():
    X = np.linspace(-1.0, 1.0, 1000)[:, None]
    with pytest.raises(TypeError, match="no curves"):
        curves(SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, X[:, 0]))


def test_lines_are_listed_beside_curves():
    """A feature of two values has a line, and it is an effect like any other."""
    rng = np.random.RandomState(0)
    X = pd.DataFrame({"age": rng.uniform(18, 95, 5000), "smoker": rng.binomial(1, 0.3, 5000)})
    model = AdditiveRegressor(
        bounds_X={"age": (18, 95), "smoker": (0, 1)}, bounds_y=(0, 30), linear_features=["smoker"],
        random_state=0,
    ).fit(X, (X["age"] / 20) ** 2 + 3 * X["smoker"])  # fmt: skip
    assert [curve["name"] for curve in curves(model)] == ["age", "smoker"]
    assert "smoker" in coefficient_table(model)
    assert len(CurveDisplay.from_estimator(model).axes_) == 2
