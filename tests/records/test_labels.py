"""Labels of persons are read one by one, and no value of theirs makes a warning."""

import warnings
from collections import deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from registry.poison import Cell
from registry.totals import Total

from skpriv.audit._runs import replaced_persons
from skpriv.bandits._policy._actions import checked_available
from skpriv.linear_model._generalized._labels import class_codes
from skpriv.preprocessing import Date, Numeric, check_table
from skpriv.privacy import Budget, open_session
from skpriv.records import ArrayRows, PersonRows, codes, floats

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

LARGE = 2**60  # beyond 2^53 neighbouring integers are one float64
N = 40
MISSING = [
    None, float("nan"), complex("nan"), np.float32("nan"), np.array(np.nan), pd.NA, pd.NaT,
    np.timedelta64("NaT", "ns"), Decimal("nan"), Decimal("sNaN"), np.datetime64("NaT", "ns"),
]  # fmt: skip
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "object array": lambda labels: np.array(labels, dtype=object),
    "object column": lambda labels: pd.Series(labels, dtype=object),
    "nullable": lambda labels: pd.Series(labels, dtype="Int64"),
    "nullable array": lambda labels: pd.array(labels, dtype="Int64"),
    "pandas arrow": lambda labels: pd.Series(pd.array(labels, dtype="int64[pyarrow]")),
    "categories": lambda labels: pd.Series(pd.Categorical(pd.array(labels, dtype="Int64"))),
    "polars": lambda labels: pl.Series(labels, dtype=pl.Int64),
    "arrow": lambda labels: pa.chunked_array([pa.array(labels, pa.int64())]),
}


def partition(labels):
    """Codes in order of appearance."""
    known: dict = {}
    return [known.setdefault(code, len(known)) for code in codes(labels).tolist()]


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_missing_label_leaves_large_integers_as_they_are(kind):
    labels = [LARGE + i // 2 for i in range(2 * N)]
    expected = [i // 2 for i in range(2 * N)]
    assert partition(COLUMNS[kind](labels)) == expected
    assert partition(COLUMNS[kind]([None, None, *labels[2:]])) == expected


@pytest.mark.parametrize("other", ["x", b"x", 0.5, 10**30, True, (1, 2), [3], *MISSING], ids=repr)
@pytest.mark.parametrize("kind", ["list", "object array", "object column"])
def test_no_label_changes_how_others_are_read(kind, other):
    """The others are numbers, in several types, beyond 2^53 and as text, and one is nobody."""
    others = [2, 2.0, np.int64(2), np.float32(2), Fraction(2), Decimal(2), np.array(2), "2"]
    others += [np.str_("2"), LARGE, LARGE + 1, np.int64(LARGE + 1), float(LARGE), 1.5, "nan"]
    expected = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 3, 4, 3]
    labels = np.empty(1 + len(others), dtype=object)
    for at, label in enumerate([other, *others]):
        labels[at] = label
    found = codes(COLUMNS[kind](labels))[1:].tolist()
    known: dict = {}
    assert [known.setdefault(code, len(known)) for code in found] == expected


@pytest.mark.parametrize("last", [1.0, 2.0])
def test_a_missing_cell_of_a_dictionary_is_not_its_last_value(last):
    """As NumPy reads those of Arrow: another record decides which value that is."""
    table = pa.table({"a": pa.array([1.0, None, last]).dictionary_encode()})
    for data in (table, table.to_batches()[0], table["a"], table["a"].chunk(0)):
        np.testing.assert_array_equal(floats(data).ravel(), [1.0, np.nan, last])
    assert class_codes(table["a"], np.array([1.0, 2.0]), 3).tolist() == [0.0, 2.0, last - 1.0]


@pytest.mark.parametrize("index", [range(4), [3, 2, 1, 0], ["w", "x", "y", "z"]])
def test_a_label_that_is_no_text_leaves_others_in_their_places(index):
    """Cells of a pandas column were looked up by their index, where one could not be read."""
    data = pa.array([b"a", b"b", b"a", b"\xff"], type=pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(data), data.buffers())
    column = pd.Series(pd.arrays.ArrowExtensionArray(texts), index=index)
    assert codes(column).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    "kind, out",
    [(pl.Date, 2**31 - 1), (pl.Datetime("ms", "Europe/Berlin"), 2**60), (pl.Duration("ms"), 2**62)],
)
def test_times_out_of_the_calendar_are_missing(kind, out, capfd):
    """polars panics at one, with an error that is no `Exception` and with lines on stderr."""
    numbers = pl.Series([1, 2, 1, out]).cast(pl.Int32 if kind == pl.Date else pl.Int64)
    assert partition(numbers.cast(kind)) == [0, 1, 0, 2]
    assert len(codes(numbers.reshape((4, 1)).cast(pl.Array(kind, 1)))) == 4
    frame = pl.DataFrame({"day": numbers.cast(kind)})
    lasts = kind == pl.Duration("ms")
    day = Numeric(0, 1, unit="day") if lasts else Date("1970-01-01", "1971-01-01")
    assert check_table(frame, {"day": day}).counts[0, 0] == 3
    assert capfd.readouterr() == ("", "")


def test_all_missing_labels_are_one_person():
    for labels in (MISSING, np.array([*MISSING[:-1], MISSING[0]], dtype=object)):
        assert set(codes(labels)) == {0}
    assert set(codes([float("nan") for _ in range(N)])) == {0}
    for dtype in (np.float64, "M8[ns]", "m8[s]"):
        assert set(codes(np.full(N, "NaT" if dtype != np.float64 else np.nan, dtype))) == {0}
    assert partition(["nan", None, "None", "", float("nan"), "Nan"]) == [0] * 6


@pytest.mark.parametrize("labels", [[LARGE, 1, LARGE], [0.5, np.nan, 0.5], ["b", "a", "b"]])
def test_arrays_of_a_plain_type_are_as_their_cells(labels):
    array = np.array(labels)
    assert array.dtype != object
    assert partition(array) == partition(labels) == [0, 1, 0]


class Warns(Total):
    """A query whose sum warns of a value, as no query of ours does."""

    def sum(self, X, y):
        warnings.warn("a value", stacklevel=1)
        return super().sum(X, y)


def test_a_cell_that_warns_is_read_in_silence():
    """Labels of persons, a mask of actions, and whatever a session is asked."""
    session = open_session("central", np.ones((9, 1)), np.ones(9), Budget(1.0, 1e-6))
    with warnings.catch_warnings(record=True, action="always") as told:
        assert codes([type("Label", (), {"__eq__": lambda *_: warnings.warn("a value")})()]) == [0]
        with pytest.raises(ValueError, match="must be a mask"):
            checked_available(Cell(int), 1, 1)
        session.sum(Warns(), 1.0)
    assert not told


def test_an_audit_counts_persons_by_the_same_labels():
    """One person loses the label: that is one person who differs, and not all."""
    X, y, labels = np.zeros((N, 1)), np.zeros(N), [LARGE + i for i in range(N)]
    assert replaced_persons((X, y, labels), (X, y, [None, *labels[1:]])) == 1
    assert replaced_persons((X, y, labels), (X, y, [np.nan, *labels[1:]])) == 1


class Persons(Total):
    """Number of persons who have a row."""

    def sum_persons(self, X, y, starts, largest):
        return np.array([len(starts) - 1.0])


@pytest.mark.parametrize("query", [Total(), Persons()], ids=["rows", "persons"])
@pytest.mark.parametrize("value", [1e308, -1e308, np.inf, (np.inf, -np.inf, 0.0)], ids=str)
def test_no_value_of_a_person_makes_a_warning(query, value):
    """Sums of three such cells overflow, or are no number."""
    X = np.zeros((12, 3))
    X[3:6] = value
    permutation = np.random.RandomState(0).permutation
    persons = PersonRows(ArrayRows(X, np.ones(12)), np.repeat(np.arange(4), 3), 3, permutation)
    with warnings.catch_warnings(action="error"):
        found = persons.sum(query)
    assert found == pytest.approx(4 if np.isfinite(value).all() else 3)
