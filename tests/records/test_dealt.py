"""Orders that are expanded from a seed: uniform, nested, and the same wherever they are read."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from skpriv.records import ArrayRows, SeededOrder, _dask, _order as _dealt, from_batches

LEVEL = 1e-6  # at which a test of a law may fail


def _order(seed, n):
    return SeededOrder(int(seed).to_bytes(32, "little"), n)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_order_is_uniform(n):
    listed = {order: 0 for order in permutations(range(n))}
    for seed in range(max(1000, 50 * len(listed))):
        listed[tuple(_order(seed, n).dealt(0, n).tolist())] += 1
    assert len(listed) == 1 or stats.chisquare(list(listed.values())).pvalue > LEVEL


@pytest.mark.parametrize("places", [(0, 0), (0, 1), (0, 20), (90, 110), (130, 199), (0, 200)])
def test_each_record_is_as_likely_in_each_place(places):
    counts = np.zeros(200)
    for seed in range(2000):
        counts[_order(seed, 200).dealt(*places)] += 1
    size = places[1] - places[0]
    assert counts.sum() == 2000 * size
    if 0 < size < 200:
        assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100, 3001])
def test_pieces_of_one_order(n):
    """Each piece is the same whatever was read before, and pieces make the order."""
    whole = _order(3, n).dealt(0, n)
    assert sorted(whole) == list(range(n))
    edges = sorted({0, n, n // 9, n // 2, n // 2 + 1 if n else 0, 2 * n // 3})
    for start in edges:
        for stop in (edge for edge in edges if edge >= start):
            piece = pickle.loads(pickle.dumps(_order(3, n).users(start, stop)))
            expected = np.sort(whole[start:stop])
            np.testing.assert_array_equal(piece.positions, expected)
            assert len(piece) == stop - start
            for first, last in ((0, n), (n // 3, n // 2), (n // 2, n + 5)):
                inside = expected[(expected >= first) & (expected < last)] - first
                np.testing.assert_array_equal(piece.between(first, last), inside)
                assert piece.beyond(last) == (not (expected >= last).any())


def test_overlaps_follow_from_the_places():
    order, other = _order(0, 100), _order(1, 100)
    assert order.users(0, 50).same(order.users(0, 50))
    assert not order.users(0, 50).overlaps(order.users(50, 100))
    assert order.users(0, 51).overlaps(order.users(50, 100))
    assert order.users(0, 100).same(other.users(0, 100))
    assert order.users(0, 60).overlaps(other.users(0, 60))


def test_memory_grows_with_the_part_and_not_with_the_rows():
    few = _order(0, 10**12).users(0, 1000)
    assert len(set(few.positions.tolist())) == 1000 and few.positions.dtype == np.intp
    rest = _order(0, 10**12).users(1000, 10**12)
    assert len(rest) == 10**12 - 1000 and len(rest._marked) == 1000
    assert len(rest.between(0, 1000)) in range(990, 1001)
    assert len(pickle.dumps(rest)) < 500


def test_equal_keys_are_drawn_again(monkeypatch):
    words, calls = _dealt._words, []

    def few_values(seed, purpose, start, blocks):
        found = words(seed, purpose, start, blocks)
        calls.append(purpose)
        return found % 2 if purpose == b"key" and calls.count(b"key") < 3 else found

    monkeypatch.setattr(_dealt, "_words", few_values)
    assert sorted(_order(0, 9).dealt(0, 9)) == list(range(9))
    assert calls.count(b"key") == 3


def test_values_beyond_the_last_multiple_are_left_out(monkeypatch):
    monkeypatch.setattr(
        _dealt, "_words", lambda *_: np.array([2**64 - 1, 5, 2**64 - 2, 1, 3], dtype=np.uint64)
    )
    assert SeededOrder(b"", 6).dealt(0, 3).tolist() == [5, 1, 3]  # 2^64 = 4 modulo 6


def test_nothing_shows_the_seed():
    order = SeededOrder(b"very secret", 10)
    for shown in (order, order.users(0, 3)):
        assert "secret" not in repr(shown) and "[" not in repr(shown)


def test_rows_in_batches_have_the_same_pieces():
    class Total:
        shape, width = (1,), None

        def sum(self, X, y):
            return np.array([y.sum()])

    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    batches = from_batches(lambda: [(X[a : a + 300], y[a : a + 300]) for a in range(0, 1000, 300)])
    for places in ((0, 40), (40, 1000), (300, 800)):
        piece = _order(0, 1000).users(*places)
        np.testing.assert_allclose(
            batches.sum(Total(), piece), ArrayRows(X, y).sum(Total(), piece), rtol=1e-12
        )


def test_workers_are_told_a_seed_and_no_positions():
    """A tenth of a million records is 800 kB of positions; which they are stays with the seed."""
    subset = _order(5, 1_000_000).users(0, 100_000)
    assert len(subset.positions) == 100_000
    told = _dask._local(subset, 400_000, 100_000)
    assert len(pickle.dumps(told)) < 500
    users, start, size = pickle.loads(pickle.dumps(told))
    np.testing.assert_array_equal(
        users.between(start, start + size), subset.between(start, start + size)
    )
