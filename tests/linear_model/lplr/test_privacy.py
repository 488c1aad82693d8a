"""The laws of the noise of layered regression, and its bins; sensitivities: the registry."""

from math import sqrt

import numpy as np
import pytest
from registry.trees import SCALING, grown_tree
from scipy import stats

from skpriv._linalg import unvech, vech_size
from skpriv.linear_model._lplr._tree import Bin, GaussianLaw, LevelQuery
from skpriv.privacy import Answer, Budget, NoiseSource

D = 3


def test_the_device_and_the_simulation_have_the_same_law(global_random_seed):
    tree, _ = grown_tree(0)
    query = LevelQuery(SCALING, tree, tuple(tree.bins[:2]), False)
    budget = Budget(2.0, 1e-6)
    x, y = np.array([0.6, 0.3, -0.2]), 0.7
    rng = np.random.RandomState(global_random_seed)
    reports = np.array([query.randomize(x, y, budget, rng) for _ in range(1500)])
    exact = query.sum(x[None], np.array([y]))
    noise = query.local_noise(budget)
    simulated = np.array(
        [NoiseSource(rng).add(np.zeros(query.shape), noise) + exact for _ in range(1500)]
    )
    for slot in range(2):
        for column in (0, 3, 5):
            pair = reports[:, slot, column], simulated[:, slot, column]
            assert stats.ks_2samp(*pair).pvalue > 1e-4


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_noise_quantiles_cover(d, global_random_seed):
    """Every bound is exceeded with at most its failure probability, and is not absurdly wide."""
    failure, copies = 0.05, 4000
    law = GaussianLaw(1.3)
    draws = 1.3 * np.random.RandomState(global_random_seed).normal(size=(copies, vech_size(d)))
    matrices = np.array([unvech(row, d) for row in draws])
    limit = stats.binom.isf(1e-4, copies, failure) / copies
    largest = np.linalg.eigvalsh(-matrices)[:, -1]
    norms = np.linalg.norm(matrices[:, :, 0], axis=1)
    if d == 12:  # in fewer dimensions the proof of the operator's is wider than twice
        assert (largest > law.operator(d, failure) / 2.0).mean() > failure
        assert (norms > law.vector(d, failure) / 2.0).mean() > failure
    for values, bound in ((largest, law.operator(d, failure)), (norms, law.vector(d, failure))):
        assert (values > bound).mean() <= limit
        assert bound <= 3.0 * np.quantile(values, 1.0 - failure)


def test_bins_scale_to_the_unit_ball():
    rng = np.random.RandomState(0)
    tree, _ = grown_tree(1)
    phi = rng.normal(size=(5000, D))
    phi *= (2.0 ** -rng.uniform(0, 10, size=5000) / np.linalg.norm(phi, axis=1))[:, None]
    seen = np.zeros(5000, dtype=int)
    for node, rows in tree.locate(phi):
        assert isinstance(node, Bin)
        seen[rows] += 1
        norms = np.linalg.norm(node.factor * phi[rows] @ node.basis, axis=1)
        assert norms.max() <= 1.0 + 1e-12
        if not node.children:
            assert node.path[-1] == 7 or norms.min() > 0.5 - 1e-12
    assert seen.max() == 1
    assert (np.linalg.norm(phi[seen == 0], axis=1) <= 2.0**-8).all()


def test_bins_state_the_noise_that_they_receive(global_random_seed):
    """Noise of gram, cross moments and targets, in the bins' units, is what the law says."""
    rng, budget = np.random.RandomState(global_random_seed), Budget(1.0, 1e-6)
    received = []
    for _ in range(400):
        tree, _ = grown_tree(1, n_scales=2)
        below = tuple(tree.frontier())
        query = LevelQuery(SCALING, tree, below, True)
        noise = query.local_noise(budget).summed(50)
        value = NoiseSource(rng).add(np.zeros(query.shape), noise)
        query.deliver(Answer(value, 50, noise), overlap=False)
        received += [(b.gram[0, 0], b.gram[0, 1], *b.cross[:, 0], *b.target) for b in below]
    law, spread = below[0].law, np.std(received, axis=0)
    np.testing.assert_allclose(spread[:2], [law.rms, law.rms / sqrt(2.0)], rtol=0.06)
    np.testing.assert_allclose(spread[2:], law.rms, rtol=0.06)
