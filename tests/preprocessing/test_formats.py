"""How numbers, dates and accents are written is public: the schema says it, and no cell is lost."""

import unicodedata
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from skpriv.preprocessing import Categorical, Date, Numeric, Schema, TableEncoder


def decoded(column, cells):
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
    encoder = TableEncoder(Schema({"a": column})).fit(frame)
    return encoder.inverse_transform(encoder.transform(frame))["a"]


@pytest.mark.parametrize(
    "marks, cells, values",
    [
        ({}, ["12.5", 12.5, "$12.5", "12.5 €", "£ 12.5", " 12.5\u00a0"], [12.5] * 6),
        ({"decimal": ","}, ["12,5", "12,5 €", "-0,5", 12.5], [12.5, 12.5, -0.5, 12.5]),
        (
            {"thousands": ","},
            ["1,234.5", "1234.5", "1,5", "0,01,234"],
            [1234.5, 1234.5, None, 1234],
        ),
        ({"decimal": ",", "thousands": "."}, ["1.234,5", "1234,5", "1.5"], [1234.5, 1234.5, None]),
        (
            {"decimal": ",", "thousands": " "},
            ["1 234,5", "1\u00a0234,5", "1\u202f234,5", "1\u2009234,5 kr"[:-3]],
            [1234.5] * 4,
        ),
        ({"thousands": "'"}, ["1'234.5"], [1234.5]),
        ({}, ["-$5", "$-5", "\u22125"], [-5.0] * 3),
    ],
)
def test_numbers_are_read_as_they_are_written(marks, cells, values):
    column = Numeric(-2000, 2000, missing="indicator", **marks)
    found, values = (np.array(each, dtype=float) for each in (decoded(column, cells), values))
    np.testing.assert_allclose(found, values, atol=1e-9)


@pytest.mark.parametrize(
    "marks, cell",
    [
        ({"decimal": ","}, "12.5"),
        ({}, "12,5"),
        ({}, "1 234"),
        ({"decimal": ","}, "1,2,3"),
        ({}, "$"),
    ],
)
def test_what_is_written_otherwise_is_missing(marks, cell):
    assert decoded(Numeric(0, 2000, missing="indicator", **marks), [cell]) == [None]


def test_dates_have_a_format():
    column = Date("2015-01-01", "2024-12-31", format="%d/%m/%Y", missing="indicator")
    said = decoded(column, ["31/12/2020", " 01/06/2018", "2020-12-31", pd.Timestamp("2020-12-31")])
    assert [None if day is None else str(day) for day in said] == [
        "2020-12-31",
        "2018-06-01",
        None,
        "2020-12-31",
    ]


def test_accents_are_one_category_however_they_are_composed():
    composed, apart = (unicodedata.normalize(form, "Orléans") for form in ("NFC", "NFD"))
    for listed in (composed, apart):
        column = Categorical([listed, "Rennes"], other=False)
        assert decoded(column, [composed, apart]) == [listed, listed]


def test_the_formats_survive_the_files(tmp_path):
    schema = Schema(
        {
            "day": Date("2015-01-01", "2024-12-31", format="%d.%m.%Y"),
            "pay": Numeric(0, 1e5, decimal=",", thousands="."),
        }
    )
    schema.write(tmp_path / "schema.toml")
    assert Schema.read(tmp_path / "schema.toml") == schema
    assert eval(repr(schema["pay"])) == schema["pay"]
    assert eval(repr(schema["day"])) == schema["day"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Numeric(0, 1, decimal="point"),
        lambda: Numeric(0, 1, decimal="1"),
        lambda: Numeric(0, 1, thousands="."),
        lambda: Numeric(0, 1, decimal=",", thousands=","),
        lambda: Date("2015-01-01", "2024-12-31", format="day"),
    ],
)
def test_a_format_that_cannot_be_meant_is_refused(make):
    with pytest.raises(ValueError, match="decimal|thousands|format"):
        make()


@pytest.mark.parametrize(
    "moment", [np.datetime64("2020-01-01"), pd.Timestamp("2024-12-31 00:00:00.000000999"), pd.NaT]
)
def test_one_odd_cell_changes_how_no_other_is_read(moment):
    # A text among times makes the column one of objects, which keep times of NumPy.
    column = Date("2015-01-01", "2024-12-31", missing="indicator")
    encoder = TableEncoder(Schema({"a": column}))
    plain = pd.DataFrame({"a": [moment] * 5})
    odd = pd.DataFrame({"a": [moment] * 4 + ["x"]})
    first, second = (encoder.fit(frame).transform(frame) for frame in (plain, odd))
    np.testing.assert_array_equal(first[:4], second[:4])


def test_a_cell_that_equals_an_earlier_one_is_read_by_itself():
    """Or one record, which comes first, would decide how all others are read.

    A moment is the same level in every zone, whichever comes first.
    """
    noon = datetime(2020, 1, 1, 12, tzinfo=timezone.utc)
    same = noon.astimezone(timezone(timedelta(hours=1)))
    for cells in ([noon, same], [same, noon]):
        assert decoded(Categorical([same.isoformat()]), cells) == 2 * [same.isoformat()]


@pytest.mark.parametrize("text", ["1,2345", "1,23", "1,2", "12,34,5", "1,,234", ",123"])
def test_a_mark_that_parts_no_thousands_makes_no_number(text):
    column = Numeric(0, 100_000, thousands=",", missing="indicator")
    frame = pd.DataFrame({"x": [text, "1,234"]})
    missing = TableEncoder({"x": column}).fit_transform(frame)[:, 1] > 0.5
    assert missing.tolist() == [True, False]


def test_a_column_with_its_own_thousands_has_the_decimal_mark_of_the_file():
    schema = Schema.from_toml(
        'decimal = ","\n[pay]\ntype = "numeric"\nlow = 0\nhigh = 2000\nthousands = "."\n'
    )
    assert schema["pay"] == Numeric(0, 2000, decimal=",", thousands=".")
    assert Schema.from_toml(schema.to_toml()) == schema
