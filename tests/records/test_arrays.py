"""Rows in memory: chunks, subsets, kinds of numbers, and sparse matrices in any form."""

import warnings
from functools import reduce

import numpy as np
import pytest
from scipy import sparse

from skpriv import Budget
from skpriv._estimation._public_maps import RecordMap
from skpriv.exceptions import InvalidValues
from skpriv.linear_model._gradients._niht import Iterate, ScoresQuery
from skpriv.privacy import Piece, Query, open_session, open_stream
from skpriv.records import (
    INVALID_VALUES, ArrayRows, _base as _records, canonical, floats, public_shape,
)  # fmt: skip

ENTRIES = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3)
SCORES = ScoresQuery(Iterate(ENTRIES, np.arange(0), np.zeros(0)), 3, 1.0, 1.0)


class Moments(Query):
    """Sum of y x' x."""

    name, shape, sensitivity = "moments", (3, 3), 1.0

    def sum(self, X, y):
        assert X.dtype == y.dtype == np.float64
        return (X * y[:, None]).T @ X


def _rows(n=300, seed=0):
    rng = np.random.RandomState(seed)
    return rng.uniform(-1, 1, size=(n, 3)), rng.uniform(-1, 1, size=n)


def _twice(value, times):
    """One row with an entry that is stored in many parts."""
    row = sparse.csr_matrix((np.full(times, value), np.zeros(times, int), [0, times]), (1, 3))
    assert row.nnz == times
    return row


def test_an_entry_in_many_parts_is_one_entry():
    """A thousand stored ones were clipped one by one: 999 for a declared 2."""
    y = np.ones(1)
    expected = SCORES.sum(np.array([[1000.0, 0.0, 0.0]]), y)
    np.testing.assert_array_equal(SCORES.sum(_twice(1.0, 1000), y), expected)
    row = _twice(1.0, 1000)
    for believed in (False, True):  # what a matrix says of its own form
        row.has_canonical_format = row.has_sorted_indices = believed
        np.testing.assert_array_equal(ArrayRows(row, y).sum(SCORES), expected)
    change = expected - SCORES.sum(np.array([[-1.0, 0.0, 0.0]]), -y)
    assert np.abs(change).max() <= SCORES.sensitivity


FORMS = {
    "coo": sparse.coo_matrix,
    "csc": sparse.csc_matrix,
    "bsr": lambda X: sparse.bsr_matrix(X, blocksize=(2, 1)),
    "lil": sparse.lil_matrix,
    "dok": sparse.dok_matrix,
    "dia": sparse.dia_matrix,
    "array": sparse.csr_array,
    "float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "duplicates": lambda X: _shuffled(X, parts=3),
    "unsorted": lambda X: _shuffled(X, parts=1),
}


def _shuffled(X, parts):
    """CSR with unsorted indices, explicit zeros, and every entry in some parts."""
    rng = np.random.RandomState(0)
    order = [rng.permutation(np.repeat(np.arange(X.shape[1]), parts)) for _ in X]
    data = np.concatenate([row[index] / parts for row, index in zip(X, order, strict=True)])
    indptr = np.arange(len(X) + 1) * X.shape[1] * parts
    return sparse.csr_matrix((data, np.concatenate(order), indptr), X.shape)


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_a_sparse_matrix_changes_nothing(form):
    X, y = _rows(64)
    X = np.rint(8 * X) / 4  # exact in float32 and in parts of a third, nearly
    stored = FORMS[form](X)
    before = stored.copy()
    for query in (Moments(), SCORES):
        found = ArrayRows(stored, y).sum(query)
        np.testing.assert_allclose(found, ArrayRows(X, y).sum(query), rtol=1e-12, atol=1e-12)
    assert (before != stored).nnz == 0
    clean = canonical(stored)
    assert clean.has_canonical_format and clean.has_sorted_indices and (clean.data != 0).all()


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool", "float16", "float32", "object"])
def test_kinds_of_numbers(dtype):
    X, y = _rows()
    X, y = np.rint(3 * X).astype(dtype), np.rint(3 * y).astype(dtype)
    expected = Moments().sum(X.astype(float), y.astype(float))
    np.testing.assert_array_equal(ArrayRows(X, y).sum(Moments()), expected)


def test_float32_is_copied_by_chunks_only():
    X = np.zeros((1000, 3), dtype=np.float32)
    rows = ArrayRows(X, np.zeros(1000))
    rows.check()
    assert rows._X is X


@pytest.mark.parametrize(
    "subset", [slice(7, 200), slice(None, None, 3), slice(250, 10, -2), [5, 3, 299], "mask", []]
)
def test_subsets(monkeypatch, subset):
    monkeypatch.setattr(_records, "CHUNK_BYTES", 1)
    X, y = _rows()
    subset = y > 0 if isinstance(subset, str) else subset
    chosen = np.arange(300)[np.arange(0) if isinstance(subset, list) and not subset else subset]
    rows, expected = ArrayRows(X, y), Moments().sum(X[chosen], y[chosen])
    np.testing.assert_allclose(rows.sum(Moments(), subset), expected, rtol=1e-12, atol=1e-12)
    selected = rows.select(subset)
    assert selected.n == len(chosen)
    np.testing.assert_array_equal(selected.sum(Moments()), rows.sum(Moments(), subset))
    if len(chosen):  # a choice among the rows of a selection, which are in the order of the table
        inner = selected.sum(Moments(), slice(1, None, 4))
        np.testing.assert_array_equal(inner, rows.sum(Moments(), np.sort(chosen)[1::4]))


@pytest.mark.parametrize("subset", [[1, 1], [-1], [300], [0.5], [[1]], np.ones(5, bool)])
def test_what_is_no_subset(subset):
    with pytest.raises(ValueError, match="subset"):
        ArrayRows(*_rows()).sum(Moments(), subset)


# What `BAD_VALUES` of tests/test_common.py has not
BAD = {
    "object": (lambda X, y: (_put(X.astype(object), {"a": 1}), y)),
    "None": (lambda X, y: (X, [*y[:-1].tolist(), None])),
    "sparse": (lambda X, y: (sparse.csr_matrix(_put(X, np.nan)), y)),
    "long": (lambda X, y: (_put(X.astype(np.longdouble), np.longdouble("1e4000")), y)),
}


def _put(array, value):
    array = array.copy()
    array.flat[7] = value
    return array


@pytest.mark.parametrize("kind", BAD)
def test_values_are_refused_in_one_sentence(kind):
    rows = ArrayRows(*BAD[kind](*_rows()))
    assert rows.shape == (300, 3)
    with warnings.catch_warnings(action="error"), pytest.raises(InvalidValues) as caught:
        rows.check()
    assert str(caught.value) == INVALID_VALUES
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("cell", [np.ma.masked, np.ma.array(1.5, mask=True)])
def test_no_other_cell_unmasks_one(cell):
    """NumPy reads a list at once if it can, and else it is read cell by cell."""
    for other in (1.0, "x", None, 1j, [1.0]):
        assert np.isnan(floats([cell, other, 2.0])[0])
        assert np.isnan(floats([[cell], [other], [2.0]])[0, 0])


@pytest.mark.parametrize("other", [1.0, "x"])
@pytest.mark.parametrize("row", [np.ma.array([1.5, 2.0], mask=[True, False]), range(1, 3)])
def test_no_other_row_unmasks_one(row, other):
    """Nor makes a row of what is no row where NumPy cannot read all of a list at once."""
    assert np.isnan(floats([[0.5, other], row, [1.0, 1.0]])[1, 0])
    assert np.isnan(floats([[[0.5, other], row], [[1.0, 1.0], [1.0, 1.0]]])[0, 1, 0])


def test_a_cell_is_a_cell_however_deep_it_is():
    """A list in so many others had ended in a RecursionError, before there was a charge."""
    deep = reduce(lambda cell, _: [cell], range(5000), 1.0)
    for X in ([[0.5, deep], [0.5, 1.0]], [[0.5, 1.0], deep], [deep, [0.5, 1.0], [0.5, 1.0]]):
        assert public_shape(X) == (len(X), 2)
        assert np.isnan(floats(X)).any()


@pytest.mark.parametrize("dtype", [float, int, object])
def test_masked_cells_are_no_numbers_whatever_is_behind_the_mask(dtype):
    """Their hidden values were used: NumPy's checks and sums leave them out."""
    X, y = np.ones((5, 2), dtype=dtype), np.ones(5, dtype=dtype)
    mask = np.arange(5) == 3
    np.testing.assert_array_equal(np.isnan(floats(np.ma.array(y, mask=mask))), mask)
    both = np.column_stack([mask, mask])
    for rows in (ArrayRows(X, np.ma.array(y, mask=mask)), ArrayRows(np.ma.array(X, mask=both), y)):
        with pytest.raises(InvalidValues):
            rows.check()


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_matrix_of_targets_is_a_column_of_them():
    X, y = _rows()
    rows = [ArrayRows(np.asmatrix(X), np.asmatrix(y).T), ArrayRows(X, y)]
    np.testing.assert_array_equal(*(one.sum(Moments()) for one in rows))


def test_one_target_does_not_stand_for_all_rows():
    X, y = _rows()
    for targets in (y[:1], np.column_stack([y, y])):
        with pytest.raises(ValueError, match="different numbers of rows"):
            open_session("central", X, targets, Budget(1.0, 1e-6))


def test_rows_made_of_chunks_are_joined_in_their_order(monkeypatch):
    """Users who have answered are known by their places: in others they would answer twice."""
    monkeypatch.setattr(_records, "CHUNK_BYTES", 1)  # 64 rows a chunk
    X, y = np.random.RandomState(0).normal(size=(200, 3)), np.arange(200.0)
    made = ArrayRows(X, y).made(lambda X, y: (-X, y), 3, 200).joined()
    found, expected = (rows.sum(Moments(), [5, 70, 199]) for rows in (made, ArrayRows(-X, y)))
    np.testing.assert_array_equal(found, expected)
    assert next(iter(made.pieces(200)))()[1].tolist() == y.tolist()


def test_no_warning_tells_of_a_value():
    X, y = _rows()
    X[3], y[5] = 1e308, -1e308
    with warnings.catch_warnings(action="error"):
        ArrayRows(X, y).check()
        open_session("central", X, y, Budget(1.0, 1e-6), 0, currency="zcdp").top(SCORES, 1, 1.0)
        ArrayRows(X, y).sum(Moments())  # of no use, and silent


@pytest.mark.parametrize("privacy", ["central", "local"])
@pytest.mark.parametrize("seed", range(3))
def test_no_record_spends_more_than_the_budget(privacy, seed):
    """Random queries about random subsets, with what each record has really paid."""
    rng, n = np.random.RandomState(seed), 60
    X, y = np.arange(float(n))[:, None] * np.ones(3), np.zeros(n)
    session = open_session(privacy, X, y, Budget(1.0, 1e-6), 0, smallest_share=0.05)
    paid, seen = np.zeros(n), []

    class Spy(Moments):
        def sum(self, X, y):
            seen.append(X[:, 0].astype(int))
            return np.zeros((3, 3))

    for _ in range(60):
        subset = (
            Piece(*np.sort(rng.choice(n + 1, 2, replace=False))) if rng.uniform() < 0.8 else None
        )
        try:
            answer = session.sum(Spy(), rng.uniform(0.05, 0.3), subset)
        except ValueError:
            continue
        users = np.concatenate([*seen, np.arange(0)]).astype(int)
        seen.clear()
        assert answer.n == len(users)
        everyone = range(n) if subset is None else session._pieces.subset_or_all(subset).positions
        assert set(users) <= set(everyone)
        paid[users] += session.report.rows[-1].cost.gaussian
    assert 0.0 < paid.max() <= Budget(1.0, 1e-6).mu ** 2 * (1 + 1e-8)
    assert session.report.total.gaussian >= paid.max() * (1 - 1e-8)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128, np.clongdouble, object])
def test_a_number_with_an_imaginary_part_is_none(kind):
    cells = np.array([1.0 + 0.0j, 1.0 + 1e-30j, 2.0 + np.nan * 1j], dtype=kind)
    np.testing.assert_array_equal(floats(cells), [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(floats(list(cells)), [1.0, np.nan, np.nan])


@pytest.mark.parametrize("found", [1.0, np.ones(2), np.ones((3, 1)), np.ones((1, 3))])
def test_a_sum_has_the_shape_that_its_sensitivity_is_about(found):
    """One number would be added to three coordinates, and move all of them."""

    class Wrong(Query):
        name, shape, sensitivity = "wrong", (3,), 1.0

        def sum(self, X, y):
            return found

    X = np.zeros((5, 2))
    session = open_session("central", X, X[:, 0], Budget(1.0, 1e-6), 0)
    stream = open_stream("central", Wrong(), Budget(1.0, 1e-6), 3, 0)
    for ask in (lambda: session.sum(Wrong(), 0.5), lambda: stream.push(X, X[:, 0])):
        with pytest.raises(ValueError, match=r"shape \(3,\) .*another shape\.$"):
            ask()
