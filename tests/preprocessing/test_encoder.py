"""Rows of the unit ball from any table: norms, totality, every kind of frame, the way back."""

import datetime as dt
import pickle
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import SkipTestWarning
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from skpriv.linear_model import SSPRegressor
from skpriv.preprocessing import (
    Boolean, BoundsScaler, Categorical, Date, Numeric, Ordinal, Schema, TableEncoder,
)  # fmt: skip
from skpriv.preprocessing._columns._lists import simplex

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

COLUMNS = {
    "age": Numeric(20, 60, missing="indicator", unit="year"),
    "score": Numeric(-3, 5),
    "sex": Categorical(["F", "M"], missing="indicator"),
    "ward": Categorical([1, 2, "NA"], other=False),
    "stage": Ordinal(["mild", "moderate", "severe"]),
    "smoker": Boolean(missing="indicator"),
    "admitted": Date("2015-01-01", "2024-12-31"),
}
TABLE = {
    "age": [20.0, None, 60.0, 1e300],
    "score": [5.0, -3.0, None, 1.0],
    "sex": ["F", "M", None, "?"],
    "ward": ["1", "NA", "2", None],
    "stage": ["mild", "severe", "moderate", None],
    "smoker": [True, False, None, True],
    "admitted": [dt.date(2015, 1, 1), dt.date(2024, 12, 31), dt.date(1900, 1, 1), None],
}
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas with Arrow types": lambda table: pl.DataFrame(table).to_pandas(
        use_pyarrow_extension_array=True
    ),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "Arrow": pa.table,
}
ODD = [
    None, np.nan, np.inf, -np.inf, 1e308, -1e308, 10**400, "", "x", "1e999", True, 1, 1.0, "1",
    "1.0", b"\xff", [1], {"a": 1}, {1, 2}, object(), np.array([1.0, 2.0]), np.float32(3), 1j,
    Decimal("NaN"), Decimal("2.5"), pd.NaT, pd.NA, pd.Timestamp("2020-01-01", tz="Asia/Tokyo"),
    np.datetime64("NaT", "ns"), dt.date.min, dt.datetime.max, dt.timedelta(1), "2020-13-45", "mild",
    dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))), "NA", "F", float, "\x00",
]  # fmt: skip


class Hostile:
    """A value that answers every question with an error."""

    def _fail(self, *args):
        raise RuntimeError("a cell must not be heard")

    __float__ = __eq__ = __hash__ = __str__ = __repr__ = __len__ = __bool__ = _fail


def fitted(columns=None):
    columns = COLUMNS if columns is None else columns
    return TableEncoder(Schema(columns)).fit(pd.DataFrame({name: [None] for name in columns}))


ENCODER = fitted()


def test_scikit_learn_checks():
    # Those of an estimator that takes no arrays; they say so by a warning.
    with pytest.warns(SkipTestWarning):
        check_estimator(TableEncoder(Schema(COLUMNS)))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_kind_of_frame_gives_the_same_rows(make):
    expected = fitted().transform(pd.DataFrame(TABLE, dtype=object))
    frame = make(TABLE)
    np.testing.assert_array_equal(TableEncoder(COLUMNS).fit(frame).transform(frame), expected)


def test_blocks():
    Z = fitted().transform(pd.DataFrame(TABLE)) * np.sqrt(len(COLUMNS))
    names = list(fitted().get_feature_names_out())
    assert names == [
        "age", "age=missing", "score", "sex=M", "sex=other", "sex=missing", "ward=2", "ward=NA",
        "stage", "smoker=True", "smoker=missing", "admitted",
    ]  # fmt: skip
    table = dict(zip(names, Z.T, strict=True))
    expected = {
        "age": [-1, 0, 1, 1],
        "age=missing": [0, 1, 0, 0],
        "score": [1, -1, 0, 0],
        "stage": [-1, 1, 0, 0],
        "smoker=True": [1, -1, 0, 1],
        "smoker=missing": [0, 0, 1, 0],
        "admitted": [-1, 1, -1, 0],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(table[name], values, atol=1e-14)
    sex = Z[:, 3:6]
    np.testing.assert_allclose(sex @ sex.T, np.full((4, 4), -1 / 3) + np.eye(4) * 4 / 3, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(Z[:, 6:8], axis=1), [1, 1, 1, 0], atol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 10, 1000])
def test_corners_are_as_far_apart_as_the_ball_allows(size):
    corners = simplex(size)
    assert corners.shape == (size, size - 1)
    for norms in (np.linalg.norm(corners, axis=1), np.sqrt(np.square(corners).sum(axis=1))):
        assert norms.max() <= 1.0
    if size > 1:
        expected = (np.eye(size) * size - 1.0) / (size - 1)
        np.testing.assert_allclose(corners @ corners.T, expected, atol=1e-12)


def test_no_row_leaves_the_unit_ball_and_the_room_is_used():
    wide = {f"x{i}": Numeric(-(10.0**-i), 3.0 * i + 1) for i in range(50)}
    wide |= {f"c{i}": Categorical([str(j) for j in range(i + 2)]) for i in range(50)}
    frame = pd.DataFrame({name: [1e308, "?"] for name in wide})
    Z = fitted(wide).transform(frame)
    for norms in (np.linalg.norm(Z, axis=1), np.sqrt(np.einsum("ij,ij->i", Z, Z))):
        assert norms.max() <= 1.0
        assert norms[0] > 1.0 - 1e-12


# All that UTF-8 can write, without a look at each code point, which takes seconds.
texts = st.text(st.characters(exclude_categories=["Cs"]))
cells = st.one_of(
    st.sampled_from(ODD), st.floats(), st.integers(), texts, st.dates(), st.datetimes()
)


@given(st.lists(st.tuples(*[cells] * len(COLUMNS)), min_size=1, max_size=4))
def test_any_cell_whatever(rows):
    frame = pd.DataFrame(
        {name: pd.Series([row[i] for row in rows], dtype=object) for i, name in enumerate(COLUMNS)}
    )
    Z = ENCODER.transform(frame)  # warnings are errors here
    assert np.isfinite(Z).all()
    assert np.linalg.norm(Z, axis=1).max() <= 1.0
    # A row alone is what it is whatever stands beside it.
    np.testing.assert_array_equal(ENCODER.transform(frame[:1]), Z[:1])


def test_a_hostile_cell_is_missing():
    frame = pd.DataFrame({name: pd.Series([Hostile(), None], dtype=object) for name in COLUMNS})
    columns = {name: column for name, column in COLUMNS.items() if name != "sex"}
    Z = fitted(columns).transform(frame)
    np.testing.assert_array_equal(Z[0], Z[1])


# One record decides the type of a column in most readers; it must not move the other rows.
@pytest.mark.parametrize("value", [0, 1, 3, 20200131])
def test_the_type_of_a_column_says_nothing(value):
    columns = {
        "n": Numeric(0, 4),
        "c": Categorical([0, 1, 3]),
        "o": Ordinal(["0", "1", "2", "3"]),
        "b": Boolean(),
        "d": Date("2015-01-01", "2024-12-31"),
    }
    encoder = fitted(columns)
    forms = [[value], [float(value)], [str(value)], [f" {value}.0"]]
    forms += [[value, other] for other in ("x", None, 2.5, True, "true", dt.date(2020, 1, 1))]
    rows = [encoder.transform(pd.DataFrame({name: form for name in columns}))[0] for form in forms]
    np.testing.assert_array_equal(rows, rows[:1] * len(rows))


def test_fit_learns_nothing_from_the_rows():
    first = pickle.dumps(TableEncoder(COLUMNS).fit(pd.DataFrame(TABLE)))
    other = pd.DataFrame({name: ["private"] * 3 for name in COLUMNS})
    assert pickle.dumps(TableEncoder(COLUMNS).fit(other)) == first
    assert b"private" not in first


def test_the_missing_rules():
    columns = {
        "middle": Numeric(0, 10),
        "low": Numeric(0, 10, missing=0),
        "no": Boolean(missing=False),
        "worst": Ordinal(["a", "b", "c"], missing="c"),
        "start": Date("2020-01-01", "2021-01-01", missing="2020-01-01"),
        "third": Categorical(["a", "b"], missing="b", other=False),
        "other": Categorical(["a", "b"]),
    }
    table = fitted(columns).inverse_transform(
        fitted(columns).transform(pd.DataFrame({name: [None] for name in columns}))
    )
    assert {name: values[0] for name, values in table.items()} == {
        "middle": 5.0, "low": 0.0, "no": False, "worst": "c", "start": dt.date(2020, 1, 1),
        "third": "b", "other": "other",
    }  # fmt: skip


def test_inverse_transform():
    frame = pd.DataFrame(TABLE)
    table = fitted().inverse_transform(fitted().transform(frame))
    assert table["age"][1] is None
    np.testing.assert_allclose(np.delete(table["age"], 1).astype(float), [20.0, 60.0, 60.0])
    assert table["sex"] == ["F", "M", None, "other"]
    assert table["ward"] == ["1", "NA", "2", None]
    assert table["stage"] == ["mild", "severe", "moderate", "moderate"]
    assert table["smoker"] == [True, False, None, True]
    low, high = dt.date(2015, 1, 1), dt.date(2024, 12, 31)
    assert table["admitted"][:3] == [low, high, low]


def test_ranges_of_the_output():
    encoder = fitted()
    Z, (low, high) = encoder.transform(pd.DataFrame(TABLE)), encoder.bounds_out_.T
    assert ((Z >= low) & (Z <= high)).all()
    reached = (Z.min(axis=0) == low) & (Z.max(axis=0) == high)
    assert reached.mean() > 0.5


def test_names_that_are_no_texts():
    frame = pd.DataFrame({"age": [30.0], 0: [1.0]})
    encoder = TableEncoder({"age": Numeric(0, 120)}).fit(frame)
    assert encoder.columns_ == ["age"] and encoder.transform(frame).shape == (1, 1)
    with pytest.raises(ValueError, match="'age'.*columns of X: 0"):
        TableEncoder({"0": Numeric(0, 1), "age": Categorical(["a"])}).fit(pd.DataFrame({0: [1]}))
    assert TableEncoder({"0": Numeric(0, 1)}).fit_transform(frame)[0, 0] > 0.999


def test_coefficients_in_the_units_of_the_table(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    columns = {**COLUMNS, "ward": Categorical([1, 2, "NA"])}
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, 40), "score": rng.uniform(-3, 5, 40),
            "sex": rng.choice(["F", "M", "x", None], 40), "ward": rng.choice([1, 2], 40),
            "stage": rng.choice(["mild", "moderate", "severe"], 40),
            "smoker": rng.choice([True, False, None], 40),
            "admitted": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.randint(0, 3000, 40), "D"),
        }
    )  # fmt: skip
    frame.loc[:5, "age"] = np.nan
    encoder = fitted(columns)
    coef, intercept = rng.normal(size=len(encoder.get_feature_names_out())), rng.normal()
    effects, constant = encoder.coefficient_map().apply(coef, intercept)
    names = encoder.coefficient_map().names
    beta = dict(zip(names, effects, strict=True))
    assert {"age per year", "sex=M", "admitted per year", "stage per level"} <= set(names)
    by_hand = (
        constant
        + beta["age per year"] * frame["age"].fillna(40.0)
        + beta["age=missing against 40"] * frame["age"].isna()
        + beta["score"] * frame["score"]
        + frame["sex"].map({"F": 0.0, "M": beta["sex=M"], "x": beta["sex=other"]}).fillna(
            beta["sex=missing"]
        )
        + frame["ward"].map({1: 0.0, 2: beta["ward=2"]})
        + beta["stage per level"] * frame["stage"].map({"mild": 0, "moderate": 1, "severe": 2})
        + beta["smoker=True"] * frame["smoker"].map({True: 1.0, False: 0.0}).fillna(0.0)
        + beta["smoker=missing against False"] * frame["smoker"].isna()
        + beta["admitted per year"]
        * ((frame["admitted"] - pd.Timestamp("2015-01-01")).dt.days / 365.2425)
    )  # fmt: skip
    np.testing.assert_allclose(encoder.transform(frame) @ coef + intercept, by_hand, atol=1e-10)


@pytest.mark.parametrize("high", [100.0, 600.0])
def test_effects_of_missing_cells_do_not_depend_on_the_public_range(high, global_random_seed):
    """Against a stated value the effect is that of the rows, whatever the range is."""
    rng = np.random.RandomState(global_random_seed)
    x, absent = rng.uniform(10, 30, 400), rng.rand(400) < 0.3
    frame = pd.DataFrame({"x": np.where(absent, np.nan, x)})
    column = Numeric(0, high, missing="indicator", typical=20)
    encoder = TableEncoder({"x": column}).fit(frame)
    line = np.linalg.lstsq(
        np.column_stack([encoder.transform(frame), np.ones(400)]),
        3.0 * x + 50.0 * absent,
        rcond=None,
    )[0]
    known = encoder.coefficient_map()
    effects, _ = known.apply(line[:-1], line[-1])
    assert known.names == ["x", "x=missing against 20"]
    wanted = (3.0 * x + 50.0)[absent].mean() - 60.0
    np.testing.assert_allclose(effects, [3.0, wanted], atol=1e-9)


def test_a_missing_cell_is_told_against_the_middle_of_usual_values():
    usual = Numeric(0, 600, missing="indicator", usual=(10, 30))
    stated = Numeric(0, 600, missing="indicator", typical=20)
    assert usual.reference_position == pytest.approx(stated.reference_position)
    assert replace(usual, typical=300.0).reference_position == 0.0


def test_a_typical_value_is_one_of_the_range_and_for_indicators():
    with pytest.raises(ValueError, match="typical=700"):
        Numeric(0, 600, missing="indicator", typical=700)
    with pytest.raises(ValueError, match="indicator"):
        Numeric(0, 600, typical=20)
    assert "typical=20" in repr(Numeric(0, 600, missing="indicator", typical=20))


def test_coefficients_of_a_bounds_scaler(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    X = np.column_stack([rng.uniform(20, 60, 30), np.eye(2)[rng.randint(2, size=30)]])
    scaler = BoundsScaler([(20, 60), (0, 1), (0, 1)], exclusive=[[1, 2]]).fit(X)
    coef, intercept = rng.normal(size=3), rng.normal()
    slopes, constant = scaler.coefficient_map().apply(coef, intercept)
    np.testing.assert_allclose(X @ slopes + constant, scaler.transform(X) @ coef + intercept)
    with pytest.raises(ValueError, match="3 transformed features"):
        scaler.coefficient_map().apply([1.0])


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_set_output(output):
    encoder = TableEncoder(COLUMNS).set_output(transform=output)
    Z = encoder.fit_transform(pd.DataFrame(TABLE, index=[5, 6, 7, 8]))
    np.testing.assert_array_equal(np.asarray(Z), fitted().transform(pd.DataFrame(TABLE)))
    if output != "default":
        assert list(Z.columns) == list(encoder.get_feature_names_out())
    if output == "pandas":
        assert list(Z.index) == [5, 6, 7, 8]


def test_pipelines_column_transformers_clones_and_pickles():
    frame = pd.DataFrame(TABLE)
    encoder = pickle.loads(pickle.dumps(clone(TableEncoder(Schema(COLUMNS))).fit(frame)))
    expected = fitted().transform(frame)
    np.testing.assert_array_equal(encoder.transform(frame), expected)
    model = make_pipeline(
        TableEncoder(COLUMNS), SSPRegressor(data_norm=1.0, bounds_y=(0, 1), random_state=0)
    )
    frame["y"] = [0.0, 1.0, 0.5, 0.5]
    shuffled = frame[list(frame.columns[::-1])]
    model.fit(frame, frame["y"])
    np.testing.assert_array_equal(model.predict(frame), model.predict(shuffled))
    columns = ColumnTransformer([("table", TableEncoder({"age": Numeric(0, 120)}), ["age"])])
    assert columns.fit_transform(frame).shape == (4, 1)
    assert list(columns.get_feature_names_out()) == ["table__age"]


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"agee": Numeric(0, 120), "sex": Categorical(["F"])}, "'agee'"),
        ({"a": Numeric(0, 1), "b": Numeric(0, 1), "sex": Categorical(["F"])}, "'a', 'b'"),
        ({"city": Categorical(["a"]), "age": Numeric(0, 1)}, "'city'"),
        ({"age": Numeric()}, "Column 'age' of the schema is still open: give low and high"),
        ({"age": Ordinal()}, "give categories"),
        ({"dose": Numeric(0, 1)}, "'dose', not among the columns of X: age, sex"),
        (Schema({"dose": Numeric(0, 1)}, target="dose"), "no column but the target"),
    ],
)
def test_errors_name_column_and_remedy(columns, message):
    frame = pd.DataFrame({"age": [98765.0], "sex": ["hidden"]})
    with pytest.raises(ValueError, match=message) as error:
        TableEncoder(columns).fit(frame)
    assert "98765" not in str(error.value) and "hidden" not in str(error.value)
    with pytest.raises(ValueError, match="'age'"):
        fitted().transform(pd.DataFrame(TABLE).drop(columns="age"))
    with pytest.raises(ValueError, match="'name'"):
        fitted().inverse_column("name", [0.0])
    with pytest.raises(TypeError, match="BoundsScaler"):
        TableEncoder(COLUMNS).fit(np.zeros((3, 7)))
