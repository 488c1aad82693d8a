"""A person is one person in every spelling, for every reader of tables and every dtype."""

import io
import unicodedata
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from registry.spellings import NOBODY, SAME

from skpriv.privacy import Groups
from skpriv.records import codes, identity, name_of

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def test_a_person_has_one_name_however_it_is_written():
    names = [{name_of(spelling) for spelling in person} for person in SAME]
    assert [person for person, found in zip(SAME, names, strict=True) if len(found) > 1] == []
    assert len(set.union(*names)) == len(SAME) and None not in set.union(*names)
    assert [value for value in NOBODY if name_of(value) is not None] == []


def test_people_are_numbered_by_their_names_and_nobody_is_one_of_them():
    everybody = [spelling for person in (*SAME, NOBODY) for spelling in person]
    expected = np.repeat(np.arange(len(SAME) + 1), [*map(len, SAME), len(NOBODY)])
    assert codes(everybody).tolist() == expected.tolist()
    column = np.empty(len(everybody), dtype=object)
    for at, spelling in enumerate(everybody):
        column[at] = spelling
    for labels in (column, pd.Series(column), pd.Series(column, index=range(len(column), 0, -1))):
        assert Groups(labels, 1).codes.tolist() == expected.tolist()


@given(st.lists(st.floats(), min_size=1), st.sampled_from(["f2", "f4", "f8"]))
def test_an_array_of_floats_is_as_its_cells(values, kind):
    with np.errstate(over="ignore"):
        array = np.array(values * 2, dtype=kind)
    of_array, of_cells = codes(array), codes(list(array))
    assert len(set(zip(of_array.tolist(), of_cells.tolist()))) == len(set(of_cells.tolist()))
    assert set(of_array.tolist()) == set(range(len(set(of_cells.tolist()))))


@given(st.text(), st.text())
def test_what_a_text_names_names_itself(first, second):
    said = identity(first)
    assert said is None or identity(said) == said == said.strip()
    composed = unicodedata.normalize("NFD", first)
    assert identity(f"\ufeff {composed}\u00a0") == said
    if first and second and identity(first + second) is not None:
        assert identity(f"{first} {second}") == identity(f"{first}\u2009\t {second}")


@given(st.integers(-(2**70), 2**70), st.integers(0, 3))
def test_integers_are_exact_in_every_text(number, zeros):
    texts = [f"{number}.{'0' * zeros}", f"{number:+040d}", str(number), number]
    assert {identity(text) for text in texts} == {str(number)}
    assert name_of(number) != name_of(number + 1)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_of_32_bits_are_those_that_are_printed(value):
    if not float(value).is_integer():
        printed = str(np.float32(value))
        assert identity(np.float32(value)) == identity(printed) == repr(float(printed))


# Five people in nine rows, one of whom has no name, as a register exports them.
EXPORT = "id,x\n17,0\n18,1\n17,2\n,3\n018,4\n19,5\n17.0,6\nNA,7\n20,8\n"
PEOPLE = [0, 1, 0, 2, 1, 3, 0, 2, 4]


def duckdb_of(dtype, method):
    duckdb = pytest.importorskip("duckdb")

    def read(path):
        texts = duckdb.from_arrow(pa.table({"text": pd.read_csv(path, dtype=str)["id"]}))
        return getattr(texts.project(f"TRY_CAST(text AS {dtype}) AS id"), method)()["id"]

    return read


def dask_of(path):
    dask = pytest.importorskip("dask.dataframe")
    return dask.read_csv(path, dtype=str)["id"].compute()


READERS = {
    "pandas": lambda path: pd.read_csv(path)["id"],
    "pandas text": lambda path: pd.read_csv(path, dtype=str)["id"],
    "pandas cells": lambda path: pd.read_csv(path, dtype=str, keep_default_na=False)["id"],
    "pandas objects": lambda path: pd.read_csv(path, dtype=object)["id"],
    "pandas nullable": lambda path: pd.read_csv(path)["id"].astype("Int64"),
    "pandas Float32": lambda path: pd.read_csv(path)["id"].astype("Float32"),
    "pandas arrow": lambda path: pd.read_csv(path, dtype_backend="pyarrow")["id"],
    "pandas categories": lambda path: pd.read_csv(path, dtype="category")["id"],
    "pandas index": lambda path: pd.Index(pd.read_csv(path)["id"]),
    "numpy": lambda path: pd.read_csv(path)["id"].to_numpy(),
    "numpy float32": lambda path: pd.read_csv(path)["id"].to_numpy(np.float32),
    "numpy masked": lambda path: np.ma.masked_invalid(
        pd.to_numeric(pd.read_csv(path)["id"]).to_numpy()
    ),
    "numpy text": lambda path: np.array(pd.read_csv(path, dtype=str)["id"].fillna("").tolist()),
    "numpy bytes": lambda path: np.array(
        pd.read_csv(path, dtype=str)["id"].fillna("").tolist(), dtype=bytes
    ),
    "polars": lambda path: pl.read_csv(path, infer_schema=False)["id"],
    "polars Float32": lambda path: pl.read_csv(path, infer_schema=False)["id"].cast(
        pl.Float32, strict=False
    ),
    "polars numbers": lambda path: pl.read_csv(path, infer_schema=False)["id"].cast(
        pl.Float64, strict=False
    ).cast(pl.Int64),
    "polars decimal": lambda path: pl.read_csv(path, infer_schema=False)["id"].cast(
        pl.Float64, strict=False
    ).cast(pl.Decimal(10, 2)),
    "polars categories": lambda path: pl.read_csv(path, infer_schema=False)["id"].cast(
        pl.Categorical
    ),
    "polars enum": lambda path: pl.read_csv(path, infer_schema=False)["id"].cast(
        pl.Enum(["17", "18", "018", "19", "17.0", "NA", "20"])
    ),
    "polars binary": lambda path: pl.read_csv(path, infer_schema=False)["id"].cast(pl.Binary),
    "polars lazy": lambda path: pl.scan_csv(path, infer_schema=False).collect()["id"],
    "polars struct": lambda path: pl.read_csv(path, infer_schema=False).select(
        pl.struct("id").alias("id")
    )["id"],
    "arrow": lambda path: pa.csv.read_csv(path)["id"],
    "arrow dictionary": lambda path: pa.csv.read_csv(path)["id"].cast(
        pa.string()
    ).dictionary_encode(),
    "arrow binary": lambda path: pa.csv.read_csv(
        path, convert_options=pa.csv.ConvertOptions(column_types={"id": pa.binary()})
    )["id"],
    "arrow float32": lambda path: pa.csv.read_csv(
        path, convert_options=pa.csv.ConvertOptions(column_types={"id": pa.float32()})
    )["id"],
    "duckdb text": duckdb_of("VARCHAR", "df"),
    "duckdb double": duckdb_of("DOUBLE", "df"),
    "duckdb decimal": duckdb_of("DECIMAL(10, 1)", "df"),
    "duckdb to arrow": duckdb_of("DECIMAL(10, 1)", "to_arrow_table"),
    "duckdb to polars": duckdb_of("BIGINT", "pl"),
    "dask": dask_of,
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_finds_the_same_people(reader, tmp_path):
    import pyarrow.csv  # noqa: F401

    (tmp_path / "table.csv").write_text(EXPORT)
    found = Groups(READERS[reader](str(tmp_path / "table.csv")), 1)
    known: dict = {}
    assert [known.setdefault(code, len(known)) for code in found.codes.tolist()] == PEOPLE
    assert found.n == 5


def test_one_odd_identifier_changes_nobody_else():
    """pandas reads a long file in pieces, of which one has texts where others have numbers."""
    rest = "," * 63  # of a wide table the pieces have fewer rows
    text = "".join(f"{one}{rest}\n" for one in np.repeat(np.arange(20_000), 2))
    names = ",".join(["id", *(f"x{j}" for j in range(63))])
    with pytest.warns(pd.errors.DtypeWarning):
        mixed = pd.read_csv(io.StringIO(f"{names}\n{text}A17{rest}\n"))["id"]
    assert {type(label) for label in mixed} == {int, str}
    assert Groups(mixed, 1).n == 20_001


@pytest.mark.parametrize(
    "spelling",
    [
        "2020-01-01T10:00:00", "2020-01-01 10:00", "2020-01-01 10:00:00.000", "2020-01-01T10:00Z",
        "2020-01-01T12:00:00+02:00", "2020-01-01 05:30:00-0430", "2020-01-01t10:00:00z",
        datetime(2020, 1, 1, 10), np.datetime64("2020-01-01T10"), pd.Timestamp("2020-01-01T10:00Z"),
        pd.Timestamp("2020-01-01T11:00", tz="Europe/Vienna"),
    ],
    ids=repr,
)  # fmt: skip
def test_a_moment_has_one_name_however_it_is_written(spelling):
    assert identity(spelling) == "2020-01-01T10:00:00"


def test_what_is_no_time_keeps_its_name():
    for text in ("2020-13-01T10:00:00", "2020-01-01 25:00", "0001-01-01T00:30+01:00"):
        assert identity(text) == text
    assert identity("2020-01-01T00:00:00") == identity("2020-01-01") == "2020-01-01"
    assert identity("2020-01-01T10:00:00.5") != identity("2020-01-01T10:00:00")


def test_a_number_of_a_billion_digits_takes_no_time():
    """One cell must not hold up a fit, and equal numbers are one person however long they are."""
    assert identity(Decimal("1e999999999")) == identity(Decimal("10e999999998"))
    assert identity(Decimal("1e999999999")) != identity(Decimal("2e999999999"))
    assert identity(Decimal("-1e999999999")) != identity(Decimal("1e999999999"))
    assert identity(Decimal("-Infinity")) is None
    assert identity(Decimal("-0e999999")) == identity(Decimal("0e-999999")) == "0"
    for size in (300, 1000, 4298):  # up to the longest integers that Python writes
        number = 10**size + 1
        assert identity(number) == identity(Decimal(number)) == identity(f"1{'0' * (size - 1)}1")
        assert identity(number) != identity(number + 1)
    assert identity(Decimal(10**5000 + 1)) != identity(Decimal(10**5000 + 2))
