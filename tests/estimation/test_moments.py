"""Residual Gram matrices: what they sum."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from registry.rows import neighbours, stored
from scipy.sparse import csr_matrix

from skpriv._estimation._moments import Instrument, MomentsQuery, ResidualGramQuery
from skpriv._estimation._public_maps import RecordMap, RowMap, TargetMap
from skpriv.privacy import Answer, GaussianNoise


@pytest.mark.parametrize("norm", [0.5, 10.0])
@pytest.mark.parametrize("limit", [0.1, 2.0])
def test_residuals_are_clipped_at_the_limit_with_and_without_an_instrument(norm, limit):
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    maps, theta = RecordMap.of_norm(norm, (-2.0, 2.0), True, 3), np.array([0.2, -0.1, 0.3, 0.1])
    phi = maps.rows(X)
    residual = maps.target(y) - np.clip(phi @ theta, -1.0, 1.0)
    rows = phi * np.clip(residual, -limit, limit)[:, None]
    exact = residual @ residual - (np.clip(residual, -limit, limit) ** 2).sum()
    for instrument in (Instrument(), Instrument(np.eye(4), floor=1.0)):
        query = ResidualGramQuery(maps, tuple(theta), instrument, limit)
        found = query.read(Answer(query.sum(X, y), len(X), GaussianNoise(3.0)))
        np.testing.assert_allclose(found["residual_gram"], rows.T @ rows, rtol=1e-9, atol=1e-9)
        weight = np.sqrt(1.5) if limit == 2.0 else 1.0
        assert found["residual_scale"] == pytest.approx(3.0 * limit**2 / weight)
        assert found["residual_excess"] == pytest.approx(exact, rel=1e-9, abs=1e-9)
        assert found["excess_scale"] == pytest.approx(3.0 * (4.0 - limit**2))


@pytest.mark.parametrize("limit", [0.3, 1.9, 2.0])
def test_the_sensitivity_of_residuals_is_attained(limit):
    """Rows at a right angle; one residual of 2, which the clip cuts, and one at the clip."""
    maps = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)
    query = ResidualGramQuery(maps, (1e9, -1e9), Instrument(), limit)
    far = query.sum(np.array([[1.0, 0.0]]), np.array([-1.0]))
    near = query.sum(np.array([[0.0, 1.0]]), np.array([limit - 1.0]))
    moved = np.linalg.norm(far - near)
    assert query.sensitivity / 2.0 < moved <= query.sensitivity
    assert moved == pytest.approx(query.sensitivity, rel=1e-5)


@pytest.mark.parametrize("data_norm", [1e-300, 1.0, 1e300])
def test_no_row_makes_a_sum_that_is_no_number(data_norm):
    """phi'theta is asked of clipped rows: that of others may be infinity minus infinity."""
    X = np.array([[1e308, -1e308], [1e308, 1e308], [np.nan, 0.0], [np.inf, 1.0]])
    maps = RecordMap.of_norm(data_norm, (-1.0, 1.0), True, 2)
    y = np.array([1e308, np.nan, 1.0, -np.inf])
    with np.errstate(all="ignore"):
        for instrument in (Instrument(), Instrument(np.diag([1.0, 0.5, 1.0]))):
            query = ResidualGramQuery(maps, (5.0, 5.0, 1.0), instrument)
            assert np.isfinite(query.sum(X, y)).all()
        assert np.isfinite(MomentsQuery(maps).sum(X, y)).all()


@pytest.mark.parametrize("feature_length", [1.0, 3.0])
def test_the_public_corner_is_that_of_the_constant(feature_length):
    """And not that of the features, which are t times as long."""
    rows, target = RowMap(None, None, 1.0, True, 2, feature_length), TargetMap((-1.0, 1.0), True)
    query = MomentsQuery(RecordMap(rows, target))
    X = np.random.RandomState(0).uniform(-0.7, 0.7, (50, 2))
    design = query.equations(Answer(query.sum(X, X[:, 0]), 50, GaussianNoise(0.0))).design
    np.testing.assert_allclose(design, rows.rows(X).T @ rows.rows(X), rtol=1e-9, atol=1e-12)


def test_sparse_rows_have_the_sums_of_dense_ones_and_move_them_by_no_more(global_random_seed):
    """However they are stored, and whatever their values are; of usual ones the sums are equal."""
    rng = np.random.RandomState(global_random_seed)
    for norm, intercept in product((1e-300, 0.5, 1e300), (True, False)):
        maps = RecordMap.of_norm(norm, (-1.0, 1.0), intercept, 4)
        theta = tuple(rng.normal(size=maps.size))
        for query in (MomentsQuery(maps), ResidualGramQuery(maps, theta, Instrument(), 0.5)):
            assert query.takes_sparse
            case = SimpleNamespace(n=9, width=4, unit=lambda asked: norm)  # noqa: B023
            (X, y), (other, other_y) = neighbours(case, query, rng)
            usual = norm * rng.uniform(-1.0, 1.0, size=X.shape) * (rng.uniform(size=X.shape) < 0.5)
            np.testing.assert_allclose(
                query.sum(csr_matrix(usual), y), query.sum(usual, y), rtol=1e-9, atol=1e-12
            )
            pair = stored((X, y), (other, other_y), rng)
            with np.errstate(all="ignore"):
                first, second = (query.sum(*one) for one in pair)
            assert np.linalg.norm(first - second) <= query.sensitivity


@pytest.mark.parametrize("size", [1e90, 1e120, 1e200, 1e300])
@pytest.mark.parametrize("norm", [1e-3, 1.0])
def test_sparse_rows_that_are_far_too_long_are_shortened_and_not_lost(size, norm):
    """As dense ones are: squares that overflow would make a row of a bounded norm the zero row."""
    rows = RowMap(None, None, norm, True, 3)
    X = np.array([[0.0, size, 0.0], [size, 0.0, -size]])
    found = rows.rows(csr_matrix(X)).toarray()
    np.testing.assert_allclose(np.linalg.norm(found[:, :3], axis=1), rows.parts[0])
    np.testing.assert_allclose(found[1, 0], -found[1, 2])
