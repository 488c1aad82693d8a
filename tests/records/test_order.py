"""The random order of records: uniform in one group or in several, the same wherever it is read."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from registry.totals import Total
from scipy import stats

from skpriv.records import ArrayRows, SeededOrder, Subset, _dask, _subset, from_batches

LEVEL = 1e-6  # at which a test of a law may fail


def _seeded(seed, n):
    return SeededOrder(int(seed).to_bytes(32, "little"), n)


@pytest.fixture
def block_rows(request, monkeypatch):
    """Rows of a block: groups are as many as blocks, and a power of two."""
    monkeypatch.setattr(_subset, "BATCH_ROWS", request.param)


one_or_many = pytest.mark.parametrize("block_rows", [2, 64, 2**16], indirect=True)


@pytest.mark.parametrize("n", [1, 3, 4])
@pytest.mark.parametrize("block_rows", [2, 2**16], indirect=True)
def test_the_order_is_uniform(n, block_rows):
    listed = {order: 0 for order in permutations(range(n))}
    for seed in range(30 * len(listed)):
        listed[tuple(_seeded(seed, n).dealt(0, n).tolist())] += 1
    assert len(listed) == 1 or stats.chisquare(list(listed.values())).pvalue > LEVEL


@pytest.mark.parametrize("places", [(0, 20), (90, 110), (130, 199)])
@pytest.mark.parametrize("block_rows", [64, 2**16], indirect=True)
def test_each_record_is_as_likely_in_each_place(places, block_rows):
    counts = np.zeros(200)
    for seed in range(150):
        counts[_seeded(seed, 200).users(*places).positions] += 1
    assert counts.sum() == 150 * (places[1] - places[0])
    assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("n", [0, 1, 7, 130])
@one_or_many
def test_pieces_of_one_order(n, block_rows):
    """Each piece is the same whatever was read before, and pieces make the order."""
    order = _seeded(3, n)
    whole = pickle.loads(pickle.dumps(order)).dealt(0, n)
    assert sorted(whole) == list(range(n))
    edges = sorted({0, n, n // 9, n // 2, n // 2 + 1 if n else 0, 2 * n // 3})
    for start in edges:
        for stop in (edge for edge in edges if edge >= start):
            piece = order.users(start, stop)
            expected = np.sort(whole[start:stop])
            np.testing.assert_array_equal(piece.positions, expected)
            np.testing.assert_array_equal(order.dealt(start, stop), whole[start:stop])
            assert len(piece) == stop - start and piece.positions.dtype == np.intp
            for first, last in ((0, n), (n // 3, n // 2), (n // 2, n + 5)):
                inside = expected[(expected >= first) & (expected < last)] - first
                np.testing.assert_array_equal(piece.between(first, last), inside)


@pytest.mark.parametrize("block_rows", [64], indirect=True)
def test_what_does_not_fit_into_memory_is_expanded_again(block_rows, monkeypatch):
    kept, expanded = _seeded(5, 1_000), _seeded(5, 1_000)
    places = [(0, 40), (0, 300), (200, 900), (0, 40)]
    expected = [kept.users(*place).positions for place in places]
    monkeypatch.setattr(_subset, "KEPT_ORDER_BYTES", 100)
    for place, positions in zip(places, expected, strict=True):
        np.testing.assert_array_equal(expanded.users(*place).positions, positions)
    held = [*expanded._kept_groups.values(), *expanded._kept_orders.values()]
    assert sum(array.nbytes for array in held) <= 2 * 100


def test_equal_keys_are_drawn_again(monkeypatch):
    words, calls = _subset._words, []

    def few_values(seed, start, blocks):
        calls.append(start)
        found = words(seed, start, blocks)
        return found % 2 if len(calls) < 3 else found

    monkeypatch.setattr(_subset, "_words", few_values)
    assert sorted(_seeded(0, 9).dealt(0, 9)) == list(range(9))
    assert calls == [0, 1, 2]


def test_nothing_shows_the_seed():
    order = SeededOrder(b"very secret", 10)
    for shown in (order, order.users(0, 3)):
        assert "secret" not in repr(shown) and "[" not in repr(shown)


@one_or_many
def test_rows_in_batches_have_the_same_pieces(block_rows):
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    batches = from_batches(lambda: [(X[a : a + 300], y[a : a + 300]) for a in range(0, 1000, 300)])
    for places in ((0, 40), (40, 1000), (300, 800)):
        piece = _seeded(0, 1000).users(*places)
        np.testing.assert_allclose(
            batches.sum(Total(), piece), ArrayRows(X, y).sum(Total(), piece), rtol=1e-12
        )


def test_large_pieces_are_read_and_sent_without_their_positions():
    """Nine tenths of a million records are 7 MB of positions; workers get a bit for a row."""
    subset = _seeded(5, 1_000_000).users(100_000, 1_000_000)
    found = [len(subset.between(start, start + 50_000)) for start in range(0, 1_000_000, 50_000)]
    assert sum(found) == len(subset) == 900_000 and "positions" not in vars(subset)
    assert sum(map(np.size, subset._chosen[1].values())) <= 2 * 65_536
    local = _dask._local(subset, 400_000, 50_000)
    assert "positions" not in vars(subset)
    np.testing.assert_array_equal(local.positions, subset.between(400_000, 450_000))


@pytest.mark.parametrize("chosen", [slice(3, 90, 7), slice(0, 0), [5, 17, 18, 99], slice(None)])
def test_positions_between(chosen):
    subset = Subset.of(chosen, 100)
    mask = np.isin(np.arange(100), subset.positions)
    for start, stop in [(0, 100), (0, 5), (17, 18), (40, 41), (90, 100)]:
        found = np.asarray(subset.between(start, stop), dtype=int)
        np.testing.assert_array_equal(found, np.flatnonzero(mask[start:stop]))
