"""The order that is never written down has the law of a permutation."""

import pickle

import numpy as np
import pytest
from scipy import stats

from skpriv.records import BlockOrder, PublicOrder, Subset

SEED = 20261


def _order(seed, n, block_rows):
    return BlockOrder(n, np.random.RandomState(seed).permutation, block_rows)


@pytest.mark.parametrize("n, block_rows", [(1, 4), (7, 4), (64, 8), (1000, 64), (130, 1)])
def test_cuts_in_any_sequence_are_a_partition(n, block_rows):
    order = _order(0, n, block_rows)
    cuts = sorted({0, n, n // 2, n // 3, n // 7})
    for stop in np.random.RandomState(0).permutation(cuts):
        assert len(order.users(0, int(stop))) == stop
    parts = [order.users(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    found = np.concatenate([part.positions for part in parts])
    assert sorted(found) == list(range(n))
    for part in parts:
        again = pickle.loads(pickle.dumps(part))
        np.testing.assert_array_equal(again.positions, part.positions)
        assert (np.diff(part.positions) > 0).all()
        pieces = [a + part.between(a, min(a + 5, n)) for a in range(0, n, 5)]
        np.testing.assert_array_equal(np.concatenate(pieces), part.positions)


def test_the_law_is_that_of_a_permutation():
    """All 5!/(2! 1! 2!) = 30 ways to deal five users into three sets come equally often.

    The cuts are asked for in an order that needs both a first draw and one between two others.
    """
    rng, draws, counts = np.random.RandomState(SEED), 1500, {}
    for _ in range(draws):
        order = BlockOrder(5, rng.permutation, block_rows=2)
        order.users(0, 3)
        first, second = order.users(0, 2).positions, order.users(2, 3).positions
        dealt = (tuple(first), tuple(second))
        counts[dealt] = counts.get(dealt, 0) + 1
    assert len(counts) == 30
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_counts_of_a_large_block_are_hypergeometric():
    rng = np.random.RandomState(SEED)
    found = [
        len(BlockOrder(3000, rng.permutation, 1000).users(0, 300).between(1000, 2000))
        for _ in range(1000)
    ]
    law = stats.hypergeom(3000, 1000, 300)
    edges = [0, *law.ppf([0.1, 0.3, 0.5, 0.7, 0.9]).astype(int), 301]
    seen = np.histogram(found, edges)[0]
    expected = np.diff(law.cdf(np.array(edges) - 1)) * len(found)
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-4


def test_users_of_a_subset():
    order = _order(1, 100, 16)
    subset = Subset.of(slice(10, 60, 3), 100)
    users, everyone = order.users(20, 70, subset), order.users(20, 70)
    expected = np.intersect1d(everyone.positions, np.asarray(subset.positions))
    np.testing.assert_array_equal(users.positions, expected)
    assert len(users) == len(expected)
    chosen = Subset.of(expected, 100)
    assert users.overlaps(everyone) and chosen.same(users)
    assert isinstance(PublicOrder(np.arange(3)).users(0, 2), Subset)


@pytest.mark.parametrize("chosen", [slice(3, 90, 7), slice(0, 0), [5, 17, 18, 99], slice(None)])
def test_positions_between(chosen):
    subset = Subset.of(chosen, 100)
    mask = subset.mask(100)
    for start, stop in [(0, 100), (0, 5), (17, 18), (40, 41), (90, 100)]:
        found = np.asarray(subset.between(start, stop), dtype=int)
        np.testing.assert_array_equal(found, np.flatnonzero(mask[start:stop]))
        assert subset.beyond(start) == (not mask[start:].any())
