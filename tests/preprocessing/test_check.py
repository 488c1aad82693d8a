"""What becomes of the cells of a table: exact for the curator, noisy for a release."""

from dataclasses import replace

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest

from skpriv import BudgetAccountant
from skpriv.preprocessing import (
    Boolean, Categorical, Date, Numeric, Ordinal, Schema, TableEncoder, check_table,
)  # fmt: skip

TABLE = pd.DataFrame(
    {
        "age": ["31", "130", "?", "", None, "-1"],
        "day": ["2020-01-31", "31/12/2020", "2031-01-01", "", "n/a", "2020-02-30"],
        "sex": ["F", "M", "x", None, "F", "f"],
        "town": ["a", "b", "x", None, "a", ""],
        "pain": ["mild", "strong", "Mild", "", "mild", "1"],
        "smokes": ["yes", "no", "1", "maybe", None, "0"],
    }
)
SCHEMA = Schema(
    {
        "age": Numeric(0, 120),
        "day": Date("2015-01-01", "2024-12-31"),
        "sex": Categorical(["F", "M"]),
        "town": Categorical(["a", "b"], other=False),
        "pain": Ordinal(["mild", "strong"]),
        "smokes": Boolean(),
    }
)
COUNTS = [
    [1, 2, 0, 1, 2],
    [1, 1, 0, 2, 2],
    [3, 0, 2, 0, 1],
    [3, 0, 0, 1, 2],
    [3, 0, 0, 2, 1],
    [4, 0, 0, 1, 1],
]


def test_each_cell_has_one_state():
    found = check_table(TABLE, SCHEMA)
    assert found.columns == list(SCHEMA)
    np.testing.assert_array_equal(found.counts, COUNTS)
    assert "do not release" in str(found).splitlines()[0]
    np.testing.assert_array_equal(found.to_frame().to_numpy(), COUNTS)


def test_without_an_epsilon_nothing_is_charged_and_with_one_it_is():
    many = pd.concat([TABLE] * 1000)
    with BudgetAccountant(1.0, 1e-6) as accountant:
        check_table(TABLE, SCHEMA)
        assert not accountant.charges
        found = check_table(many, SCHEMA, epsilon=1.0, delta=1e-6, random_state=0)
        assert len(accountant.charges) == 1
    assert abs(found.counts - 1000 * np.array(COUNTS)).max() < 5 * found.std_error
    assert "do not release" not in str(found) and "replacing one record" in str(found)


def test_a_column_of_a_type_that_a_reader_gave_is_read_alike():
    frame = pd.DataFrame({"age": [31.0, np.nan, 500.0], "smokes": [True, False, True]})
    found = check_table(frame, Schema({name: SCHEMA[name] for name in ("age", "smokes")}))
    np.testing.assert_array_equal(found.counts, [[1, 1, 0, 0, 1], [3, 0, 0, 0, 0]])


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ValueError, match="delta"):
        check_table(TABLE, SCHEMA, epsilon=1.0)
    with pytest.raises(ValueError, match="delta and groups need epsilon"):
        check_table(TABLE, SCHEMA, delta=1e-6)
    with pytest.raises(ValueError, match="schema names 'height', not among"):
        check_table(TABLE[["age"]], Schema({"age": Numeric(0, 99), "height": Numeric(0, 3)}))


def test_markers_of_missing_values_of_pandas_are_counted():
    frame = pd.DataFrame({"age": pd.array([1, 200, None], dtype="Int64")})
    found = check_table(frame, Schema({"age": SCHEMA["age"]}))
    np.testing.assert_array_equal(found.counts, [[1, 1, 0, 0, 1]])


def test_other_spellings_are_listed_and_read():
    table = pd.DataFrame({"ward": ["Médecine", "médecine", "MED", "Urgences"] * 3})
    ward = Categorical(["Médecine", "Urgences"], other=False)
    said = str(check_table(table, {"ward": ward}))
    assert "In ward are not listed or cannot be read: 'médecine' (3), 'MED' (3)" in said
    spelt = replace(ward, spellings={"médecine": "Médecine", "MED": "Médecine"})
    assert "cannot be read" not in str(check_table(table, Schema({"ward": spelt})))
    assert spelt.encode(nw.from_native(table)["ward"]).ravel().tolist()[:4] == [-1, -1, -1, 1]
    schema = Schema.from_toml(Schema({"ward": spelt}, target="ward").to_toml())
    assert schema.read_labels(table).tolist()[:3] == ["Médecine"] * 3
    with pytest.raises(ValueError, match="'x' stands for 'Soins'.*categories"):
        replace(ward, spellings={"x": "Soins"})


def test_cells_that_count_as_something_else_in_silence_are_named():
    """The middle of a range, or the mean of all levels: unless the schema says what they are."""
    frame = pd.DataFrame(
        {"age": [30.0, None, None], "sex": ["F", "?", "M"], "ill": [True, None, True]}
    )
    schema = {
        "age": Numeric(0, 120),
        "sex": Categorical(["F", "M"], other=False),
        "ill": Boolean(missing=False),
    }
    text = str(check_table(frame, Schema(schema)))
    assert "age: cells without a value (about 2) count as the middle of the range" in text
    assert "sex: cells without a value (about 1) count as the mean of all levels" in text
    assert "ill: cells" not in text
    said = {"age": Numeric(0, 120, missing="indicator"), "sex": Categorical(["F", "M"])}
    assert "count as" not in str(check_table(frame[["age", "sex"]], Schema(said)))
    many = pd.DataFrame({"age": [30.0] * 900 + [None] * 100})
    noisy = str(check_table(many, Schema({"age": Numeric(0, 120)}), epsilon=3.0, delta=1e-6,
                            random_state=0))  # fmt: skip
    assert "count as the middle" in noisy
    full = pd.DataFrame({"age": [30.0] * 1000})
    noisy = check_table(
        full, Schema({"age": Numeric(0, 120)}), epsilon=3.0, delta=1e-6, random_state=1
    )
    assert "count as the middle" not in str(noisy)


@pytest.mark.parametrize("missing", [None, "indicator", "F"])
def test_words_for_a_missing_cell_are_missing(missing):
    """A list has words of its own for nothing, which were "other" ones."""
    words = {"brak": "missing", "K": "F"}
    table = pd.DataFrame(
        {"sex": ["F", "K", "brak", "Brak ", None], "pain": ["b", "brak"] + 3 * [""]}
    )
    columns = {
        "sex": Categorical(["F", "M"], spellings=words | {"Brak": "missing"}, missing=missing),
        "pain": Ordinal(["a", "b"], spellings={"brak": "missing"}),
    }
    found = check_table(table, columns)
    assert found.to_frame().loc["sex"].tolist() == [2, 0, 0, 0, 3]
    assert found.to_frame().loc["pain"].tolist() == [1, 0, 0, 0, 4]
    encoded = TableEncoder(columns).fit_transform(table)
    assert (encoded[2:] == encoded[4]).all()
    named = Categorical(["missing", "F"], spellings={"brak": "missing"})  # it is a category here
    encoded = TableEncoder({"sex": named}).fit_transform(table.assign(sex="brak"))
    listed = TableEncoder({"sex": named}).fit_transform(table.assign(sex="missing"))
    assert (encoded == listed).all()
    with pytest.raises(ValueError, match="in categories.*'missing'"):
        Categorical(["F"], spellings={"x": "y"})
