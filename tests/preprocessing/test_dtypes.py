"""What a dtype cannot be is refused before the charge; what has one meaning is read."""

import datetime as dt
import enum
import uuid

import numpy as np
import pandas as pd
import pytest
from registry.refusals import uncharged

from skpriv import describe
from skpriv.linear_model import LinearRegression, LogisticRegression
from skpriv.privacy import BudgetAccountant
from skpriv.preprocessing import (
    Boolean,
    BoundsScaler,
    Categorical,
    Date,
    Numeric,
    Ordinal,
    Schema,
    TableEncoder,
    check_table,
)  # fmt: skip
from skpriv.records import floats, from_table

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

STAYS = [dt.timedelta(days=1.5), dt.timedelta(hours=-3), None, dt.timedelta(microseconds=7)]
DAYS = [1.5, -0.125, None, 7e-6 / 86400]
MAKERS = {
    "pandas": lambda cells: pd.DataFrame({"x": pd.to_timedelta(cells)}),
    "nanoseconds": lambda cells: pd.DataFrame({"x": pd.to_timedelta(cells).as_unit("ns")}),
    "objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "numpy": lambda cells: pd.DataFrame(
        {"x": pd.Series([np.timedelta64(cell or "NaT", "us") for cell in cells], dtype=object)}
    ),
    "polars": lambda cells: pl.DataFrame({"x": cells}),
    "polars, lazy": lambda cells: from_table(pl.LazyFrame({"x": cells}), n=len(cells)),
    "arrow": lambda cells: pa.table({"x": pa.array(cells, pa.duration("us"))}),
    "arrow in pandas": lambda cells: pd.DataFrame(
        {"x": pd.array(cells, dtype=pd.ArrowDtype(pa.duration("ns")))}
    ),
}


def encoded(column, table):
    return np.asarray(TableEncoder({"x": column}).fit(table).transform(table))


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("unit, length", [("day", 1.0), ("hours", 24.0), ("week", 1 / 7)])
def test_durations_are_numbers_of_their_unit(kind, unit, length):
    """To the last bit, whatever their library: one odd cell makes a column of objects."""
    column = Numeric(-length, 2 * length, unit=unit, missing="indicator")
    wanted = encoded(column, pd.DataFrame({"x": [day and day * length for day in DAYS]}))
    found = encoded(column, MAKERS[kind](STAYS))
    np.testing.assert_allclose(found, wanted, atol=1e-15)
    np.testing.assert_array_equal(found, encoded(column, MAKERS["objects"](STAYS)))


def test_durations_that_no_number_holds_are_missing():
    column = Numeric(0, 1, unit="second", missing="indicator")
    for unit in ("ms", "s", "D"):
        # So many are a little more microseconds than an integer holds
        over = int(1.2 * 2**63 / (np.timedelta64(1, unit) / np.timedelta64(1, "us")))
        cells = np.array([1, 2**61, -(2**61), over, -over]).astype(f"m8[{unit}]")
        assert encoded(column, pa.table({"x": pa.array(cells)}) if unit != "D" else pd.DataFrame(
            {"x": pd.Series(list(cells), dtype=object)}
        ))[1:, 1].all()  # fmt: skip


FRAMES = {
    "durations": lambda: MAKERS["pandas"](STAYS),
    "dates": lambda: pd.DataFrame({"x": pd.to_datetime(["2020-01-01"] * 4)}),
    "periods": lambda: pd.DataFrame({"x": pd.period_range("2020-01", periods=4, freq="M")}),
    "intervals": lambda: pd.DataFrame({"x": pd.interval_range(0, 4)}),
    "cut": lambda: pd.DataFrame({"x": pd.cut([1, 2, 3, 4], [0, 2, 4])}),
    "times of day": lambda: pl.DataFrame({"x": [dt.time(8)] * 4}),
    "lists": lambda: pl.DataFrame({"x": [[1], [2], [3], [4]]}),
    "records": lambda: pa.table({"x": [{"a": 1}] * 4}),
    "truth values": lambda: pd.DataFrame({"x": [True, False] * 2}),
}
RANGE = ("2020-01-01", "2021-01-01")
REFUSED = [
    ("durations", Numeric(0, 1), "unit='day'"),
    ("durations", Numeric(0, 1, unit="month"), "unit='day'"),
    ("durations", Date(*RANGE), "unit='day'"),
    ("durations", Categorical(["a", "b"]), "unit='day'"),
    ("dates", Numeric(0, 1), r"Date\(low, high\)"),
    ("periods", Numeric(0, 1), "where a period begins"),
    ("intervals", Numeric(0, 1), "Ordinal or Categorical"),
    ("cut", Boolean(), "Ordinal or Categorical"),
    ("times of day", Numeric(0, 1), "hours since midnight"),
    ("lists", Categorical(["a", "b"]), "a column of each of its parts"),
    ("records", Ordinal(["a", "b"]), "a column of each of its parts"),
    ("truth values", Date(*RANGE), r"Boolean\(\)"),
]


@pytest.mark.parametrize("kind, column, remedy", REFUSED)
def test_a_dtype_that_a_type_cannot_read_is_refused_with_the_remedy(kind, column, remedy):
    table, schema = FRAMES[kind](), {"x": column}
    with uncharged(remedy):
        TableEncoder(schema).fit(table)
    with uncharged(remedy):
        check_table(table, schema, epsilon=1.0, delta=1e-6)
    with uncharged(remedy):
        describe(table, schema, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match=remedy):
        TableEncoder(schema).fit(pd.DataFrame({"x": [1.0]})).transform(table)
    if isinstance(column, Numeric | Boolean):
        with uncharged(remedy):
            Schema(schema, target="x").read_target(table)


def test_so_is_that_of_rows_which_are_read_in_batches():
    frame = pl.DataFrame({"x": STAYS, "y": [0.0] * 4})
    for table in (frame.lazy(), frame.to_arrow()):
        with uncharged("unit='day'"):
            TableEncoder({"x": Numeric(0, 1)}).fit(from_table(table, n=4))
        with uncharged("unit='day'"):
            LinearRegression(data_norm=1.0, bounds_y=(-1, 1)).fit(
                from_table(table, target="y", n=4)
            )


def test_a_period_is_read_by_its_start():
    column = Date("2020-01-01", "2020-04-01")
    starts = pd.DataFrame({"x": ["2020-01-01", "2020-02-01", "2020-03-01", "2020-04-01"]})
    np.testing.assert_array_equal(encoded(column, FRAMES["periods"]()), encoded(column, starts))


COLORS = enum.Enum("COLORS", {"RED": "red", "BLUE": "blue"})
PEOPLE = [uuid.UUID(int=number) for number in range(2)]
LEVELS = {
    "bytes": (pd.DataFrame({"x": [b"a", b"b", b"\xff"]}), ["a", "b"]),
    "bytes of Arrow": (pa.table({"x": [b"a", b"b", b"\xff"]}), ["a", "b"]),
    "bytes of polars": (pl.DataFrame({"x": [b"a", b"b", b"\xff"]}), ["a", "b"]),
    "coded bytes": (pa.table({"x": pa.array([b"a", b"b", None]).dictionary_encode()}), ["a", "b"]),
    "intervals": (pd.DataFrame({"x": pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 5), None])}),
                  ["(0.0, 1.0]", "(1.0, 5.0]"]),
    "cut": (pd.DataFrame({"x": pd.cut([1, 3, 9], [0, 2, 5])}), ["(0, 2]", "(2, 5]"]),
    "enum": (pd.DataFrame({"x": [COLORS.RED, COLORS.BLUE, None]}), ["red", "blue"]),
    "enum of polars": (
        pl.DataFrame({"x": pl.Series(["a", "b", None], dtype=pl.Enum(["a", "b"]))}), ["a", "b"]
    ),
    "uuid": (pd.DataFrame({"x": [*PEOPLE, None]}), PEOPLE),
    "times of day": (pl.DataFrame({"x": [dt.time(8), dt.time(9, 30), None]}),
                     ["08:00:00", "09:30:00"]),
}  # fmt: skip
if hasattr(pa, "uuid"):  # from pyarrow 18 on
    people = pa.array([*(p.bytes for p in PEOPLE), None], pa.uuid())
    LEVELS["uuid of Arrow"] = pa.table({"x": people}), PEOPLE


@pytest.mark.parametrize("kind", LEVELS)
def test_what_has_one_text_is_read_by_it(kind):
    table, levels = LEVELS[kind]
    column = Ordinal([str(level) for level in levels], missing="indicator")
    wanted = pd.DataFrame({"x": [*map(str, levels), None]})
    np.testing.assert_array_equal(encoded(column, table), encoded(column, wanted))


def test_bytes_are_numbers_and_dates_where_they_write_such():
    table = pd.DataFrame({"x": [b"1,5", b"\xff", b"2"]})
    wanted = pd.DataFrame({"x": [1.5, None, 2.0]})
    column = Numeric(0, 2, decimal=",", missing="indicator")
    np.testing.assert_array_equal(encoded(column, table), encoded(column, wanted))
    table = pd.DataFrame({"x": [b"31/12/2020", b"\xff"]})
    wanted = pd.DataFrame({"x": ["31/12/2020", None]})
    column = Date("2020-01-01", "2021-01-01", format="%d/%m/%Y", missing="indicator")
    np.testing.assert_array_equal(encoded(column, table), encoded(column, wanted))


def test_a_template_has_the_types_of_dtypes():
    table = pd.concat([FRAMES[kind]().set_axis([kind], axis=1) for kind in (
        "durations", "dates", "periods", "intervals", "cut", "truth values"
    )], axis=1)  # fmt: skip
    found = Schema.template(table)
    assert [column.kind for column in found.values()] == [
        "numeric", "date", "date", "ordinal", "ordinal", "boolean"
    ]  # fmt: skip
    assert found["durations"] == Numeric(unit="day") and 'unit = "day"' in found.to_toml()
    assert Schema.from_toml(found.to_toml())["durations"].unit == "day"


COLUMNS = {
    "numpy": lambda: np.array(STAYS, "m8[us]"),
    "dates": lambda: np.array(["2020-01-01"] * 4, "M8[D]"),
    "pandas": lambda: MAKERS["pandas"](STAYS)["x"],
    "polars": lambda: MAKERS["polars"](STAYS)["x"],
    "arrow": lambda: MAKERS["arrow"](STAYS)["x"],
    "intervals": lambda: FRAMES["cut"]()["x"],
    "periods": lambda: FRAMES["periods"]()["x"],
    "frame": lambda: MAKERS["polars"](STAYS),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_targets_and_rows_of_such_dtypes_are_refused_free_of_charge(kind):
    from skpriv import private_quantiles
    from skpriv.bandits import private_off_policy_value

    X, ones, column = np.zeros((4, 1)), np.ones(4), COLUMNS[kind]()
    model = LinearRegression(data_norm=1.0, bounds_y=(-1, 1))
    with uncharged("describe it as"):
        model.fit(X, column)
    with uncharged("describe it as"):
        LogisticRegression(data_norm=1.0, classes=("a", "b")).fit(X, column)
    if kind != "frame":
        with uncharged("describe it as"):
            model.fit(X, ones, sample_weight=column, max_weight=1.0)
        with uncharged("describe it as"):
            private_quantiles(column, (0.5,), bounds=(-1, 1), epsilon=1.0, delta=1e-6)
        with uncharged("describe it as"):
            private_off_policy_value(ones, ones, column, ones / 2, epsilon=1.0)
    table = pd.DataFrame({"a": ones, "b": pd.to_timedelta(STAYS)})
    for rows in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
        with uncharged("The column 'b' of"):
            model.fit(rows, ones)
    with pytest.raises(ValueError, match="The column 'b' of X holds durations"):
        model.fit(table.assign(b=0.0), ones).predict(table)


def test_labels_of_polars_are_labels():
    """Of their dtype alone: numbers are no texts, and texts no numbers."""
    rng = np.random.RandomState(0)
    X, y = rng.uniform(-0.5, 0.5, (50, 1)), rng.randint(2, size=50)
    words = np.array(["no", "yes"])[y]

    def fit(classes, labels):
        model = LogisticRegression(data_norm=1.0, classes=classes, privacy="none")
        return model.fit(X, labels).coef_

    expected = fit((0, 1), y)
    for labels in (pl.Series(y), pl.Series(y == 1), pl.Series(y).cast(pl.Float32), pa.array(y)):
        np.testing.assert_array_equal(fit((0, 1), labels), expected)
        with uncharged("label.*classes"):
            fit(("no", "yes"), labels)
    texts = pl.Series(words)
    for labels in (texts, texts.cast(pl.Categorical), texts.cast(pl.Enum(["no", "yes"]))):
        np.testing.assert_array_equal(fit(("no", "yes"), labels), expected)
        with uncharged("label.*classes"):
            fit((0, 1), labels)


# Types of which NumPy makes no array, or an array that it cannot convert
ODD_NUMBERS = {
    "views": lambda: pd.DataFrame(
        {"x": pd.array([".5", "-1", "0"] * 50, dtype=pd.ArrowDtype(pa.string_view()))}
    ),
    "128 bits": lambda: pl.DataFrame({"x": pl.Series([1, -1, 0] * 50, dtype=pl.Int128)}),
    "texts of NumPy": lambda: np.array([[".5"], ["-1"], ["0"]] * 50, dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("kind", ODD_NUMBERS)
def test_numbers_of_an_odd_type_are_read_as_numbers(kind):
    """Two of them were refused after the charge, whatever was in them, and one was all missing.

    Texts are numbers to those who know how they are written, and not to a regressor.
    """
    try:
        table = ODD_NUMBERS[kind]()
    except AttributeError:
        pytest.skip("the installed version of its library does not have it")
    plain = np.array([[1.0 if kind == "128 bits" else 0.5], [-1.0], [0.0]] * 50)
    np.testing.assert_array_equal(floats(table), plain)
    scaler = BoundsScaler((-1, 1))
    if kind == "128 bits":
        np.testing.assert_array_equal(scaler.fit_transform(table), scaler.fit_transform(plain))
    else:
        with uncharged("holds texts.*TableEncoder"):
            scaler.fit(table)


COMMAS = [f"{number},5" for number in range(40)]
TEXTS = {
    "texts": np.array, "pandas": lambda cells: pd.Series(cells, dtype="string"),
    "categories": lambda cells: pd.Series(cells, dtype="string").astype("category"),
    "polars": pl.Series, "Arrow": pa.array,
}  # fmt: skip
OBJECTS = {
    "list": list, "array": lambda cells: np.array(cells, dtype=object),
    "pandas": lambda cells: pd.Series(cells, dtype=object),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("groups", [None, [*range(20)] * 2])
def test_texts_are_refused_as_numbers_free_of_charge(kind, groups):
    """Rows of persons without a number are left out, and all of them were, in silence."""
    X, ones, texts = np.zeros((40, 1)), np.ones(40), TEXTS[kind](COMMAS)
    named = {} if groups is None else {"groups": groups, "max_rows_per_group": 2}
    model = LinearRegression(data_norm=1.0, bounds_y=(0, 50))
    with uncharged(r"y holds texts.*in a schema.*schema.read_target\(table\)"):
        model.fit(X, texts, **named)
    named_texts = texts if kind == "categories" else pd.Series(COMMAS, dtype="string")
    table = pd.DataFrame({"a": ones, "b": named_texts})  # pandas 2 would make objects of others
    with uncharged(r"'b' of X holds texts .*TableEncoder\(schema\)"):
        model.fit(table, ones, **named)


@pytest.mark.parametrize("kind", OBJECTS)
def test_no_record_decides_whether_objects_are_refused(kind):
    """With one text more than a half they were, before the charge, and else they were not."""
    ones, named = np.ones(40), {"groups": [*range(20)] * 2, "max_rows_per_group": 2}
    spent = []
    for n_texts in (0, 20, 21, 40):
        cells = [*COMMAS[:n_texts], *ones[n_texts:]]
        table = pd.DataFrame({"a": ones, "b": pd.Series(cells, dtype=object)})
        with BudgetAccountant(9.0, 1e-5, unit=("person", 2)) as accountant:
            model = LinearRegression(data_norm=9.0, bounds_y=(0, 50), random_state=0)
            model.fit(np.zeros((40, 1)), OBJECTS[kind](cells), **named)
            model.fit(table, ones, **named)
        spent.append(accountant.spent)
    assert spent == spent[:1] * 4


@pytest.mark.parametrize("cell", ["none", np.nan])
def test_one_text_among_numbers_is_refused_by_no_door(cell):
    """A single text is one person's value: nothing is said of it, and its row is left out."""
    model = LinearRegression(epsilon=1.0, data_norm=1.0, bounds_y=(0, 50), random_state=0)
    cells = [*np.arange(39.0), cell]
    named = {"groups": [*range(20)] * 2, "max_rows_per_group": 2}
    fits = [
        model.fit(np.zeros((40, 1)), target, **named).intercept_
        for target in (cells, np.array(cells, dtype=object), pd.Series(cells, dtype=object))
    ]
    assert fits == fits[:1] * 3


def test_no_record_decides_whether_a_dtype_is_refused():
    """Floats were read as dates where most cells were missing, and refused with one date more."""
    when = Date("2015-01-01", "2024-12-31", format="%d.%m.%Y", missing="indicator")
    for cells in ([np.nan] * 3, [np.nan, np.nan, 31122020.0], [np.nan, 31122020.0, 1022020.0]):
        with uncharged("'when'.*holds numbers.*dtype=str"):  # points were no marks
            TableEncoder({"when": when}).fit(pd.DataFrame({"when": cells}))
    found = TableEncoder({"when": when}).fit_transform(pd.DataFrame({"when": [None] * 3}))
    np.testing.assert_array_equal(found > 0.0, [[False, True]] * 3)
    counted = pd.DataFrame({"when": cells})
    with pytest.raises(ValueError, match="'when'.*holds numbers"):
        TableEncoder({"when": when}).fit(from_table(pl.from_pandas(counted).lazy(), n=3))
