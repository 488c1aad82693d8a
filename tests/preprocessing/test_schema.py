"""Schemas: formats, templates without values, errors that name column and remedy."""

import datetime as dt
import pickle
from copy import deepcopy
from dataclasses import replace

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from skpriv.preprocessing import (
    Boolean, Categorical, Date, FormulaEncoder, Numeric, Ordinal, Schema, TableEncoder,
    guessed_type,
)  # fmt: skip

pl = pytest.importorskip("polars")

COLUMNS = {
    "age": Numeric(0, 120, missing="indicator", unit="year"),
    "body mass, kg/m²": Numeric(-1e300, 0.1, missing=0.05),
    "sex": Categorical(["F", "M"], missing="M", other=False),
    "ward": Categorical([1, 2.5, False, 'a "quoted" \\ \x7f\n name']),
    "stage": Ordinal(["mild", "severe"], missing="mild"),
    "smoker": Boolean(missing=True),
    "drinks": Boolean(true=["ja", 1], false=["nein", 2]),
    "height": Numeric(0, 3, decimal=".", thousands="'"),
    "admitted": Date(dt.date(2015, 1, 1), "2024-12-31", missing="indicator"),
    "target": Numeric(0, 100),
    "income": Numeric(0, 1e6, usual=(20_000, 80_000)),
}


FORMAT = {
    "encoding": "cp1252", "sep": "\t", "decimal": ",", "thousands": ".", "person": "patient",
    "limit": 9,
}  # fmt: skip


@pytest.mark.parametrize("table_format", [{}, FORMAT, {"decimal": ","}], ids=len)
@pytest.mark.parametrize("target", [None, "target"])
def test_written_and_read_again(target, table_format, tmp_path):
    schema = Schema(COLUMNS, target=target, outcomes=["sex", "income"], **table_format)
    assert eval(repr(schema)) == schema
    schema.write(tmp_path / "schema.toml")
    assert Schema.read(tmp_path / "schema.toml") == schema
    assert deepcopy(schema) == pickle.loads(pickle.dumps(schema)) == schema


# All that UTF-8 can write, without a look at each code point, which takes seconds.
characters = st.characters(exclude_categories=["Cs"])


@given(st.text(characters), st.lists(st.text(characters, min_size=1), min_size=1))
def test_any_text_can_be_a_name_or_a_category(name, categories):
    try:
        schema = Schema({name: Categorical(categories)})
    except ValueError as error:
        assert "twice" in str(error) or "empty" in str(error)
        return
    assert Schema.from_toml(schema.to_toml()) == schema


FRAME = {
    "age": [71.25, 38.5],
    "sex": ["Female", "Male"],
    "smoker": [True, False],
    "admitted": [dt.datetime(2019, 5, 6), dt.datetime(2021, 7, 8)],
}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_a_template_has_names_and_types_only(make, tmp_path):
    schema = Schema.template(make(FRAME), target="age")
    schema.write(tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert {name: column.kind for name, column in schema.items()} == {
        "age": "numeric", "sex": "categorical", "smoker": "boolean", "admitted": "date",
    }  # fmt: skip
    for value in ("71", "38", "Female", "Male", "2019", "2021", "05-06", "07-08"):
        assert value not in text
    assert "# low =" in text and "# categories = []" in text
    text = (tmp_path / "schema.toml").read_text("utf-8") + "# é"
    (tmp_path / "schema.toml").write_text(text, "utf-8-sig")
    assert Schema.read(tmp_path / "schema.toml") == schema
    (tmp_path / "schema.toml").write_text(text, "cp1252")
    with pytest.raises(ValueError, match="not in UTF-8"):
        Schema.read(tmp_path / "schema.toml")
    other = {name: [values[0]] * 5 for name, values in FRAME.items()}
    assert Schema.template(make(other), target="age") == schema
    with pytest.raises(ValueError, match="Column 'age' .*still open.*low and high"):
        schema.check_filled()


@pytest.mark.parametrize("texts, kind", [
    ("0 1 0 1 NA", Boolean()), ("yes no maybe", Categorical()), ("NA NA", Categorical()),
    (10 * "0 " + "2", Numeric()), ("1,5 2", Numeric(decimal=",")), ("2020-01-31", Date()),
    ("31.01.2020", Date(format="%d.%m.%Y")), ("1/2/2020 31/1/2020", Date(format="%d/%m/%Y")),
    ("1/2/2020 1/31/2020", Date(format="%m/%d/%Y")), ("1,234.5 2", Numeric(thousands=",")),
    ("1.234,5 2", Numeric(decimal=",", thousands=".")),
])  # fmt: skip
def test_a_column_of_texts_is_what_most_of_them_say(texts, kind):
    assert guessed_type(nw.from_native(pd.Series(texts.split()), series_only=True)) == kind


def test_a_guess_is_made_from_some_cells_of_the_whole_column(monkeypatch):
    """Of few cells from all; a long column of texts is not read once more for each type."""

    def guess(cells):
        return guessed_type(nw.from_native(pd.Series(cells), series_only=True))

    numbers = [str(number) for number in range(2, 92)]
    assert guess([*["name"] * 10, *numbers]) == guess([*numbers, *["name"] * 10]) == Numeric()
    assert guess([*["name"] * 11, *numbers]) == guess([*numbers, *["name"] * 11]) == Categorical()
    monkeypatch.setattr("skpriv.preprocessing._schema.MOST_GUESSED", 10)
    assert guess([*["0"] * 50, *numbers]) == guess([*numbers, *["0"] * 50]) == Numeric()
    read = []
    monkeypatch.setattr(
        Date, "_read", lambda self, part: np.full(read.append(part) or len(part), np.nan)
    )
    assert guess([f"name {number}" for number in numbers]) == Categorical()
    assert [len(part) for part in read] == 4 * [9]  # every tenth of 90


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no columns"),
        ("[age", "not TOML"),
        ("age = 3", "'age' of the schema is no column"),
        ("[age]", "Column 'age' has no type: it must be one of numeric, categorical"),
        ("[age]\ntype = 'int'", "Column 'age' has the type 'int'"),
        ("[age]\ntype = 'numeric'\nmin = 0", "'min', but a column of type 'numeric' can have low"),
        ("[age]\ntype = 'numeric'\nlow = 0", "Column 'age': low and high .* both"),
        ("[age]\ntype = 'numeric'\nlow = 5\nhigh = 5", "must be below"),
        ("[age]\ntype = 'numeric'\nlow = 0\nhigh = inf", "finite"),
        ("[age]\ntype = 'numeric'\nlow = 'a'\nhigh = 1", "finite number"),
        ("[age]\ntype = 'numeric'\nlow = 0\nhigh = 1\nmissing = 2", "from low to high"),
        ("[age]\ntype = 'numeric'\nlow = 0\nhigh = 9\nusual = 3", "'age': usual=3 must be two"),
        ("[age]\ntype = 'numeric'\nusual = [1, 2, 3]", "must be two numbers"),
        ("[age]\ntype = 'numeric'\nlow = 0\nhigh = 9\nusual = [1, 10]", "inside the public one"),
        ("[age]\ntype = 'numeric'\nlow = 0\nhigh = 9\nusual = [-1, 1]", "inside the public one"),
        ("[age]\ntype = 'numeric'\nlow = 0\nhigh = 9\nusual = [2, 2]", "inside the public one"),
        ("[age]\ntype = 'numeric'\nlow = 0\nhigh = 9\nusual = ['a', 2]", "finite number"),
        ("[age]\ntype = 'numeric'\nrole = 'weight'", "role='weight' must be 'target' or 'outcome"),
        ("[ill]\ntype = 'boolean'\ntrue = 'ja'", "Column 'ill': true must be a list"),
        ("[ill]\ntype = 'boolean'\ntrue = ['ja']\nfalse = ['JA']", "a word in common"),
        ("[ill]\ntype = 'boolean'\ntrue = []", "must not be empty"),
        ("sep = ';'", "no columns"),
        ("separator = ';'\n[age]\ntype = 'numeric'", "encoding, sep, decimal, thousands, person"),
        ("sep = ';;'\n[age]\ntype = 'numeric'", "sep=';;' must be one character"),
        ("encoding = 'klingon'\n[age]\ntype = 'numeric'", "encoding='klingon'"),
        ("decimal = ','\nthousands = ','\n[age]\ntype = 'numeric'", "must not be the decimal"),
        ("decimal = 'x'\n[age]\ntype = 'numeric'", "one character"),
        ("limit = 3\n[age]\ntype = 'numeric'", "limit needs person"),
        ("person = 'p'\nlimit = 0\n[age]\ntype = 'numeric'", "at least 1"),
        ("person = 'Age '\n[Age]\ntype = 'numeric'", "take it out"),
        ("decimal = ','\n[a]\ntype = 'numeric'\nthousands = ','", "'a': thousands must not be"),
        ("[a]\ntype='numeric'\nrole='target'\n[b]\ntype='numeric'\nrole='target'", "2 targets"),
        ("[sex]\ntype = 'categorical'\ncategories = 'FM'", "Column 'sex': .*must be a list"),
        ("[sex]\ntype = 'categorical'\ncategories = []", "empty"),
        ("[sex]\ntype = 'categorical'\ncategories = [1, '1.0']", "twice"),
        ("[sex]\ntype = 'categorical'\ncategories = ['']", "empty text"),
        ("[sex]\ntype = 'categorical'\ncategories = ['a']\nmissing = 'b'", "in categories"),
        ("[sex]\ntype = 'categorical'\ncategories = [[1]]", "texts or numbers"),
        ("[day]\ntype = 'date'\nlow = 'x'\nhigh = 2020-01-01", "must be a date"),
        ("[stage]\ntype = 'ordinal'\ncategories = ['a']", "at least two"),
        ("[smoker]\ntype = 'boolean'\nmissing = 'x'", "Column 'smoker': missing"),
    ],
)
def test_errors_name_column_and_remedy(text, message):
    with pytest.raises(ValueError, match=message):
        Schema.from_toml(text)


def test_improper_schemas():
    with pytest.raises(TypeError, match="column 'age' is a tuple"):
        Schema({"age": (0, 120)})
    with pytest.raises(TypeError, match="Schema.read"):
        TableEncoder("schema.toml").fit(pd.DataFrame({"age": [1]}))
    with pytest.raises(ValueError, match="target names 'dose'"):
        Schema({"age": Numeric(0, 120)}, target="dose")
    without = Schema({"age": Numeric(0, 120)})
    frame = pd.DataFrame({"age": [1]})
    for read in (without.read_target, without.read_labels, lambda _: without.classes):
        with pytest.raises(ValueError, match="no target"):
            read(frame)
    assert without.weights(frame) == {}
    assert TableEncoder(without).fit(frame).usual_target == ()
    with pytest.raises(ValueError, match="numeric or boolean"):
        Schema({"sex": Categorical(["F"])}, target="sex").bounds_y
    assert Schema({"ill": Boolean()}, target="ill").bounds_y == (0.0, 1.0)


def test_outcomes_are_no_features_unless_they_are_named():
    columns = {"age": Numeric(0, 120), "died": Boolean(), "stay": Numeric(0, 60)}
    frame = pd.DataFrame({"age": [30], "died": [True], "stay": [3.0]})
    schema = Schema(columns, outcomes=["stay", "died "])
    assert schema.features == ["age"] and schema.outcomes == ("stay", "died")
    for target, others in (("stay", ("died",)), ("died", ("stay",)), ("age", ("stay", "died"))):
        of_target = schema.with_target(target)
        assert of_target.outcomes == others
        if target != "age":
            assert TableEncoder(of_target).fit(frame).columns_ == ["age"]
    assert schema.with_target("stay").with_target("died").outcomes == ("stay",)
    encoder = FormulaEncoder("stay ~ age + died", schema).fit(frame)
    assert encoder.columns_ == ["age", "died"]
    assert schema.select(["died", "age"]).outcomes == ("died",)
    with pytest.raises(ValueError, match="outcomes names 'cost'"):
        Schema(columns, outcomes=["cost"])


def test_words_of_truth_go_before_the_usual_ones():
    cells = ["Ja ", "nein", "JA", "1", 2, 1.0, True, "yes", "no", "0", "x", None, "\u0134a"]
    series = nw.from_native(pd.Series(cells, dtype=object), series_only=True)
    column = Boolean(true=["ja", 2], false=["nein", 1], missing="indicator")
    values = [None if absent else z > 0 for z, absent in column.encode(series)]
    assert values == [
        True, False, True, False, True, False, False, True, False, False, None, None, None,
    ]  # fmt: skip
    assert (column.states(series) == 3).tolist() == [value is None for value in values]
    assert repr(Boolean(missing=False)) == "Boolean(missing=False)"


def test_marks_of_numbers_are_said_once():
    columns = {"a": Numeric(0, 9000), "b": Numeric(0, 9000, decimal="."), "c": Boolean()}
    schema = Schema(columns, decimal=",", thousands=".")
    frame = pd.DataFrame({"a": ["1.234,5"], "b": ["1234.5"], "c": ["no"]})
    encoded = TableEncoder(schema).fit_transform(frame)
    assert encoded[0, 0] == encoded[0, 1] and schema.to_toml().count("decimal") == 2
    assert schema.with_format(decimal=".", thousands=",")["a"].decimal == "."
    assert schema.with_format(sep=";").table_format.thousands == "."


@pytest.mark.parametrize("missing, last", [(None, None), ("indicator", None), (False, False)])
def test_labels_of_truth_values(missing, last):
    schema = Schema({"ill": Boolean(missing=missing)}, target="ill")
    assert schema.classes == (False, True)
    labels = schema.read_labels(pd.DataFrame({"ill": ["yes", "0", None]}))
    assert labels.tolist() == [True, False, last]


def test_a_table_speaks_of_truth_in_its_own_words():
    """Rows were named "raucht=True" of a table that says ja and nein."""
    own = Boolean(true=["ja", "j"], false=["nein"], missing="indicator")
    table = pd.DataFrame({"raucht": ["J", "nein", None], "tot": ["nein", "ja", "x"]})
    schema = Schema({"raucht": own, "tot": replace(own, missing=None)}, target="tot")
    encoder = TableEncoder(schema).fit(table)
    names = ["raucht=ja", "raucht=missing against nein"]
    assert list(encoder.coefficient_map().names) == names
    assert list(encoder.get_feature_names_out()) == ["raucht=ja", "raucht=missing"]
    decoded = encoder.inverse_transform(encoder.transform(table))
    assert decoded == {"raucht": ["ja", "nein", None]}
    assert encoder.level_shares({"raucht": 0.25})["raucht"] == {"ja": 0.25, "nein": 0.75}
    assert schema.classes == ("nein", "ja")
    assert schema.read_labels(table).tolist() == ["nein", "ja", None]
    assert schema.with_target("raucht").bounds_y == (0.0, 1.0)
    half = Schema({"tot": Boolean(true=[1])}, target="tot")
    assert half.classes == ("False", "1")
    assert half.read_labels(pd.DataFrame({"tot": [1.0, 0.0]})).tolist() == ["1", "False"]
