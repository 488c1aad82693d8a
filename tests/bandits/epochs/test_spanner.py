"""The defining property of a barycentric spanner."""

import numpy as np
import pytest

from skpriv.bandits import ActionElimination
from skpriv.bandits._epochs._rules import spanner


def check(vectors, mask, chosen, approximation=2.0):
    """Chosen vectors are few, independent, and all others are short combinations of them."""
    assert not (chosen & ~mask).any()
    for points, alive, kept in zip(vectors, mask, chosen, strict=True):
        basis = points[kept].T
        rank = np.linalg.matrix_rank(points[alive]) if alive.any() else 0
        assert rank == kept.sum()
        if kept.any():
            coefficients = np.linalg.lstsq(basis, points[alive].T, rcond=None)[0]
            assert abs(coefficients).max() <= approximation * (1 + 1e-9)
            np.testing.assert_allclose(basis @ coefficients, points[alive].T, atol=1e-9)


@pytest.mark.parametrize("shape", [(50, 30, 4), (50, 4, 4), (50, 3, 5), (50, 100, 2), (50, 8, 1)])
@pytest.mark.parametrize("approximation", [1.01, 2.0])
def test_property(shape, approximation, global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    vectors, mask = rng.normal(size=shape), rng.random_sample(shape[:2]) < 0.6
    check(vectors, mask, spanner(vectors, mask, approximation), approximation)


def test_degenerate_sets(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    flat = rng.normal(size=(20, 10, 2)) @ rng.normal(size=(20, 2, 4))  # of rank 2
    twins = np.repeat(rng.normal(size=(20, 3, 4)), 4, axis=1)
    zeros = np.zeros((20, 10, 4))
    one = zeros + np.where(np.arange(10) == 3, 1.0, 0.0)[:, None]
    scales = rng.normal(size=(20, 10, 4)) * 10.0 ** rng.randint(-3, 4, size=(20, 10, 1))
    for vectors in (flat, twins, zeros, one, scales, 1e-200 * scales, 1e100 * flat):
        mask = np.ones(vectors.shape[:2], dtype=bool)
        vectors = vectors / max(abs(vectors).max(), 1e-300)  # for the checks' own rounding
        check(vectors, mask, spanner(vectors, mask))
    nobody = np.zeros((20, 10), dtype=bool)
    assert not spanner(scales, nobody).any()
    assert spanner(np.zeros((0, 3, 2)), np.zeros((0, 3), dtype=bool)).shape == (0, 3)


def test_elimination_plays_spanners(recorder):
    """With more actions than features, at most n_features of them are played."""
    contexts = np.random.RandomState(0).normal(size=(300, 40, 3))
    policy = ActionElimination(oracle=recorder[0], exploration="spanner", random_state=0)
    actions = policy.act(contexts)
    np.testing.assert_array_equal(policy.propensities_, np.full(300, 1 / 3))
    chosen = spanner(contexts, np.ones((300, 40), dtype=bool))
    assert chosen[np.arange(300), actions].all()


def test_survivors_that_are_all_zero(recorder):
    policy = ActionElimination(oracle=recorder[0], exploration="spanner", random_state=0)
    assert set(policy.act(np.zeros((100, 2, 3)))) == {0, 1}
