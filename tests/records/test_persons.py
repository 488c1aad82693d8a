"""Which rows of a person are used: a secret random choice, whatever the order of the rows is."""

import numpy as np
import pytest
from registry.totals import Total
from scipy import stats

from skpriv.privacy import NoiseSource
from skpriv.records import ArrayRows, PersonRows, Subset, from_batches
from skpriv.records._dask import _together
from skpriv.records._persons import PersonChunks, _keys

LEVEL = 1e-6  # at which a test of a law may fail


def test_keys_are_those_of_the_reference():
    """The published vector of the message 0, 1, ..., 15 under the key 0, 1, ..., 15."""
    words = np.frombuffer(bytes(range(16)), dtype="<u8")
    found = _keys(words, words[:1], words[1:])
    assert found.tobytes() == bytes.fromhex("db9bc2577fcc2a3f")


@pytest.mark.parametrize("order", [np.arange(30), np.arange(30)[::-1], np.arange(30) * 7 % 30])
def test_each_row_of_a_person_is_as_likely(order):
    """Persons of 1, 4, 10 and 15 rows, of which at most 4 are used; in any order of the table."""
    codes, values = np.repeat([0, 1, 2, 3], [1, 4, 10, 15]), np.arange(30.0)
    counts = np.zeros(30)
    for seed in range(250):
        rows = ArrayRows(np.zeros((30, 1)), values[order])
        persons = PersonRows(rows, codes[order], 4, NoiseSource(seed).permutation)
        for _, y in (piece() for piece in persons.pieces(100)):
            counts[y.astype(int)] += 1
    assert (counts[:5] == 250).all()
    for person in (slice(5, 15), slice(15, 30)):
        assert counts[person].sum() == 4 * 250
        assert stats.chisquare(counts[person]).pvalue > LEVEL


@pytest.mark.parametrize("codes", [np.zeros(1000, dtype=int), np.arange(1000)])
def test_no_seed_of_numpy_tells_the_choice(codes):
    """Neither that of rows of a person, nor that of the first persons."""
    found, subset = [], Subset(np.arange(min(codes.max() + 1, 10)))
    for _ in range(2):
        np.random.seed(0)
        rows = ArrayRows(np.zeros((1000, 1)), np.arange(1000.0))
        persons = PersonRows(rows, codes, 10, NoiseSource(None).permutation)
        found.append([y.tolist() for _, y in (piece() for piece in persons.pieces(100, subset))])
    assert found[0] != found[1] and np.size(found[0]) == 10


def test_no_line_of_progress_tells_how_many_rows_persons_have(monkeypatch):
    shown = []

    def progress(results, count, *arguments, **options):
        return shown.append(count) or results

    monkeypatch.setattr("skpriv.records._base.progress", progress)
    X, y, codes = np.zeros((9, 1)), np.ones(9), np.array([0, 0, 0, 0, 0, 1, 1, 2, 2])
    rows = from_batches(lambda: [(X, y)], n=9)
    assert rows.sum(Total()) == 9.0 and shown == [9]
    assert PersonRows(rows, codes, 5, np.random.RandomState(0).permutation).sum(Total()) == 1.8
    assert shown == [9]


def test_an_error_while_rows_are_brought_together_mixes_no_persons(monkeypatch):
    rows, codes = ArrayRows(np.zeros((4, 1)), np.arange(4) / 4), np.array([0, 1, 0, 1])
    persons = PersonRows(rows, codes, 2, NoiseSource(0).permutation)
    with monkeypatch.context() as patch, pytest.raises(TypeError):
        patch.setattr("skpriv.records._persons._finite_rows", None)
        persons.sum(Total())
    assert sorted(persons.sum(Total(), [place])[0] for place in (0, 1)) == [0.25, 0.5]


def test_persons_of_a_cluster_have_their_rows_in_the_secret_order():
    """Whatever order workers send them in: the first rows of a person are those that are used."""
    pd = pytest.importorskip("pandas")
    place = np.array([3.0, 0.0, 2.0, 1.0])
    rows = pd.DataFrame(np.column_stack([10.0 * place, 100.0 * place, place, place // 2]))
    X, y, persons = _together(rows, lambda *parts: parts)
    assert X.tolist() == [[0.0], [10.0], [20.0], [30.0]] and y.tolist() == [0, 100, 200, 300]
    assert persons.tolist() == [0, 0, 1, 1]


def test_a_sum_over_persons_is_that_of_their_rows_over_the_most_rows():
    """In chunks that a fit keeps as well."""
    X, y, codes = np.zeros((9, 1)), np.ones(9), np.array([0, 0, 0, 0, 0, 1, 1, 2, 2])
    rows = PersonRows(ArrayRows(X, y), codes, 5, np.random.RandomState(0).permutation)
    kept = PersonChunks([(X, y, np.array([0, 5, 7, 9]))], 3, 1, 1, rows_each=5)
    assert rows.sum(Total()) == kept.sum(Total()) == pytest.approx(9.0 / 5.0)
    assert kept.rows_each == rows.rows_each == 5


@pytest.mark.parametrize("room", [0.9, 1.1])
def test_how_often_rows_are_read_follows_from_the_places_of_persons(room, monkeypatch):
    """The report tells the number of passes: how many rows persons have must not decide it."""
    persons, places = 10, 3
    size = 8 * 2 * persons * places  # of a column and a target, if every place has a row
    monkeypatch.setattr("skpriv.records._persons.KEPT_BYTES", int(room * size))
    passes = []
    for each in (1, 2, places, 2 * places):
        X = np.zeros((each * persons, 1))
        rows = from_batches(lambda X=X: [(X, X[:, 0])], n=len(X))
        codes = np.repeat(np.arange(persons), each)
        found = PersonRows(rows, codes, places, np.random.RandomState(0).permutation)
        for _ in range(3):
            found.sum(Total())
        passes.append(found.passes)
    assert set(passes) == {3 if room < 1.0 else 1}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("of_target", [False, True])
def test_a_row_that_is_no_numbers_leaves_its_place_empty(lazy, cell, of_target):
    """Whether the cell is a feature or the target."""
    X, y = np.zeros((5, 1)), np.ones(5)
    (y if of_target else X[:, 0])[[1, 4]] = cell
    codes = np.array([0, 0, 1, 1, 2])
    rows = from_batches(lambda: [(X, y)], n=5) if lazy else ArrayRows(X, y)
    persons = PersonRows(rows, codes, 3, np.random.RandomState(0).permutation)
    pieces = [piece() for piece in persons.person_pieces(100)]
    assert sum(len(found) for found, _, _ in pieces) == 3  # and nobody is left of the third person
    assert sorted(np.concatenate([np.diff(starts) for *_, starts in pieces])) == [1, 2]


def test_persons_with_one_row_each_are_rows_as_they_are():
    """Not copied, and summed as all others are, over a part of them as well, and in what is made.

    In another table one of the same persons has a second row like the first, and all are copied.
    """
    values, codes = np.arange(40.0) ** 2 / 2**12, np.arange(40)[::-1]
    X = np.column_stack([values, np.ones(40)])
    rows, longer = ArrayRows(X, values), ArrayRows(np.append(X, X[:1], 0), np.append(values, 0.0))
    persons = PersonRows(rows, codes, 1, NoiseSource(0).permutation)
    several = PersonRows(longer, np.append(codes, 39), 1, NoiseSource(0).permutation)
    few = Subset(np.array([3, 4, 11, 30]))
    for part in (None, few):
        sums = [one.total(Total(), part).value[0] for one in (persons, several)]
        assert sums[0] == sums[1]
    made = [one.made(lambda X, y: (2.0 * X, 2.0 * y), 2, 40) for one in (persons, several)]
    assert made[0].total(Total()).value == made[1].total(Total()).value
    kept = persons.loaded(few, 10**6)
    assert kept.total(Total()).value == sums[0] and several.loaded(few, 10**6) is None
    assert persons._rows is rows and several._rows is not longer
    assert persons.total(Total()).value == values.sum()
    X[5] = np.nan  # a row that is no numbers is left out as anywhere else
    missing = PersonRows(rows, codes, 1, NoiseSource(0).permutation)
    assert missing.total(Total()).value == values.sum() - values[5]
