"""Hats, the map to the unit ball, and how many knots there are."""

import numpy as np
import pytest

from skpriv.linear_model._additive import (
    AdditiveMap,
    automatic_knots,
    check_knots,
    make_map,
)

LOW, HIGH = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 10.0, 3.0])


def example():
    return make_map(LOW, HIGH, {0: np.array([-1.0, 0.0, 0.2, 1.0])}, {2}, 1000, np.inf)


def draw(n=500, seed=0):
    return np.random.RandomState(seed).uniform(LOW - 0.2, HIGH + 0.2, size=(n, 3))


def test_hats_are_a_partition_of_one():
    x = np.array([-5.0, 0.0, 0.5, 1.0, 2.5, 4.0, np.inf, np.nan, 1e308])
    for knots in ([0.0, 1.0, 4.0], [0.0, 2.0, 4.0], [0.0, 4.0]):  # even ones as well
        values = AdditiveMap((np.array(knots),), (False,)).values(x[:, None]).toarray()
        assert (values >= 0.0).all() and ((values > 0.0).sum(axis=1) <= 2).all()
        np.testing.assert_allclose(values.sum(axis=1), 1.0)
        np.testing.assert_allclose(values @ knots, [0.0, 0.0, 0.5, 1.0, 2.5, 4.0, 4.0, 2.0, 4.0])
    # lines are kept; what is outside is clipped, and NaN is the middle
    near = AdditiveMap((np.array([0.0, 1e-310, 1.0]),), (False,))  # no slope there is finite
    with np.errstate(all="ignore"):
        values = near.values(x[:, None])
    assert values.has_canonical_format and set(values.indices) <= {0, 1, 2}
    assert (values.data >= 0.0).all() and (values.sum(axis=1) == 1.0).all()


def test_rows_are_in_the_unit_ball_and_lose_nothing():
    rows, X = example(), draw()
    values, phi = rows.values(X).toarray(), rows.rows(X)
    assert phi.shape == (500, rows.size)
    assert np.linalg.norm(phi, axis=1).max() <= 1.0 + 1e-12
    np.testing.assert_allclose(phi @ phi.T, values @ values.T / 3, atol=1e-12)
    np.testing.assert_allclose(phi @ rows.constant, 1.0)
    assert np.linalg.matrix_rank(phi) == rows.size  # no coordinate that no row can reach
    theta = np.random.RandomState(1).normal(size=rows.size)
    np.testing.assert_allclose(values @ rows.heights(theta), phi @ theta, atol=1e-12)
    np.testing.assert_allclose(rows.theta_of(rows.heights(theta)), theta, atol=1e-12)
    np.testing.assert_allclose(rows.along(X, theta), phi @ theta, atol=1e-12)
    W = np.random.RandomState(2).normal(size=(rows.size, rows.size))
    np.testing.assert_allclose(rows.turned(X, rows.turn(W)), phi @ W.T, atol=1e-12)


def test_rows_are_total():
    bad = np.array([[np.nan, np.inf, -np.inf], [1e308, -1e308, 5e-324]])
    phi = example().rows(bad)
    assert np.isfinite(phi).all()
    assert (np.linalg.norm(phi, axis=1) <= 1.0 + 1e-12).all()


def test_lines_between_knots_miss_what_is_counted():
    """All of it in the middle of a cell for parabolas, and beside one knot for a kink at it."""
    knots, few = np.linspace(-1.0, 1.0, 5), np.linspace(-1.0, 1.0, 3)
    middles = knots[:-1, None] + 0.25
    rows = AdditiveMap((knots, knots), (True, True))
    found = rows.missed([0, 1], np.hstack([middles, middles]), np.tile(knots**2, 2))
    np.testing.assert_allclose(found, 0.25**2 * np.sqrt(2.0))
    found = rows.missed([1], middles, np.tile(np.abs(knots), 2))
    np.testing.assert_allclose(8.0 * found, [0.0, 1.0, 1.0, 0.0])
    for automatic, missed in ((True, np.inf), (False, 0.5**2)):
        rows = AdditiveMap((few,), (automatic,))
        np.testing.assert_allclose(rows.missed([0], middles, few**2), missed)


def test_the_prior_spans_all_functions():
    rows = example()
    lines, *curves = map(np.linalg.matrix_rank, rows.priors())
    assert lines == 1 + rows.n_inputs and set(curves) == {rows.size}


def test_more_knots_for_more_records_and_less_noise():
    assert automatic_knots(10_000, np.inf, 3, 0) == 8
    assert automatic_knots(10**6, np.inf, 3, 0) == 17
    sizes = [automatic_knots(10_000, reach, 3, 0) for reach in (10.0, 400.0, 2000.0, 1e5)]
    assert sizes == sorted(sizes) and sizes[0] == 2 and sizes[-1] == 8
    assert automatic_knots(10_000, 2000.0, 6, 0) < automatic_knots(10_000, 2000.0, 3, 0)


def test_knots_of_the_user():
    def column(key):
        return key

    assert check_knots("auto", column, LOW, HIGH) == {}
    assert [len(knots) for knots in check_knots(4, column, LOW, HIGH).values()] == [4, 4, 4]
    found = check_knots({1: [5.0, 2.0, 99.0]}, column, LOW, HIGH)
    np.testing.assert_array_equal(found[1], [0.0, 2.0, 5.0, 10.0])
    for bad in ({1: 1}, {1: [np.nan, 2.0]}, {1: [2.0]}):
        with pytest.raises(ValueError, match="knots"):
            check_knots(bad, column, LOW, HIGH)
