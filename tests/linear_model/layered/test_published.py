"""Audits that the published mechanism fails, and that the library's passes.

Every audit has an event and two neighbouring records; a mechanism that claims (epsilon, delta)
fails if one probability exceeds exp(epsilon) times the other plus delta beyond doubt. The published
mechanism is implemented here only.
"""

from math import exp, log, sqrt

import numpy as np
import pytest
from scipy import stats

from skpriv._estimation._public_maps import RecordMap
from skpriv._linalg import unvech
from skpriv.linear_model._layered._paper import PaperLevelQuery
from skpriv.linear_model._layered._tree import PartitionTree
from skpriv.privacy import Budget, GaussianNoise, NoiseSource

DRAWS = 20_000


def _violates(first, second, epsilon, delta=0.0, confidence=1e-6):
    """Whether P(first) > exp(epsilon) P(second) + delta beyond doubt, from independent draws."""
    low = stats.beta.ppf(confidence, first.sum(), len(first) - first.sum() + 1)
    high = stats.beta.ppf(1 - confidence, second.sum() + 1, len(second) - second.sum())
    return bool(np.nan_to_num(low) > exp(epsilon) * high + delta)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_single_wishart_matrix_is_not_private(epsilon, global_random_seed):
    """O - z z' is never indefinite for a user of the bin, and often is for one of another bin."""
    d, z = 3, np.array([1.0, 0.0, 0.0])
    rng = np.random.RandomState(global_random_seed)

    def published(outer):  # 3 W_d(d + 1, 1.5 / epsilon I), centred by a public constant
        roots = rng.normal(size=(DRAWS, d, d + 1)) * np.sqrt(4.5 / epsilon)
        return outer + roots @ roots.transpose(0, 2, 1)

    def ours(outer):
        noise = GaussianNoise.calibrated(sqrt(2.0), Budget(epsilon, 1e-6).mu)
        draws = NoiseSource(rng).add(np.zeros((DRAWS, d * (d + 1) // 2)), noise)
        return outer + np.array([unvech(row, d) for row in draws])

    def event(released):
        return np.linalg.eigvalsh(released - np.outer(z, z))[:, 0] < -1e-12

    inside, outside = np.outer(z, z), np.zeros((d, d))
    # the published matrix violates even the whole budget with a delta of 5%
    assert _violates(event(published(outside)), event(published(inside)), epsilon, delta=0.05)
    assert not _violates(event(ours(outside)), event(ours(inside)), epsilon, delta=1e-6)
    rate = event(published(outside)).mean()
    assert rate == pytest.approx(1.0 - exp(-epsilon / 9.0), abs=0.015)


def _two_bins(noise, rng):
    """Noisy counts of two bins when the user is in the first, and when in the second."""
    return [np.array(count) + noise(rng, (DRAWS, 2)) for count in ([1.0, 0.0], [0.0, 1.0])]


def _moved(counts):
    return (counts[:, 0] >= 1.0) & (counts[:, 1] <= 0.0)


@pytest.mark.parametrize("part, scale", [("count", 3.0), ("error batch", 1.0)])
def test_sensitivity_of_one_bin_is_half_of_what_moves(part, scale, global_random_seed):
    """A replaced record leaves a bin and enters another: noise for one is too small by 2."""
    epsilon = 2.0
    rng = np.random.RandomState(global_random_seed)
    claimed = epsilon / scale  # what the part may cost: a third of the budget, or all of it

    def published(rng, size):
        return rng.laplace(scale=scale / epsilon, size=size)

    def ours(rng, size):
        return rng.laplace(scale=2.0 / claimed, size=size)

    first, second = map(_moved, _two_bins(published, rng))
    assert _violates(first, second, claimed), part
    assert log(first.mean() / second.mean()) == pytest.approx(2.0 * claimed, rel=0.15)
    assert not _violates(*map(_moved, _two_bins(ours, rng)), claimed)


def test_residual_targets_without_clipping_have_no_sensitivity():
    """y_h = y - prediction is as large as a noisy prediction: any sensitivity is exceeded."""
    scaling = RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)
    tree = PartitionTree(2, 2.0, 3, 2)
    for node in tree.frontier():
        node.directions = np.eye(2)
        node.activate(1, 2.0, 3)
        tree.bins.append(node)
    total = np.array([40.0, 0.0])  # a noisy prediction over a small eigenvalue
    for node in tree.frontier():
        node.total = total
    ours = PaperLevelQuery(scaling, tree, tuple(tree.frontier()), False, 2, 1.0)
    records = [(np.array([[0.8, 0.5]]), np.array([1.0])), (np.array([[-0.8, 0.5]]), -np.ones(1))]

    def published(phi, y):  # the sum of y_h z, with z of norm 1 in the bin k = 1
        return (y - phi @ total) * 2.0 * phi[:, 1]

    change = abs(published(*records[0]) - published(*records[1]))[0]
    assert change > 20.0 * ours.sensitivity
    first, second = (ours.sum(*record) for record in records)
    assert np.linalg.norm(first - second) <= ours.sensitivity
