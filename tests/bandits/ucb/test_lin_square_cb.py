"""Inverse-gap weighting on running sums."""

import numpy as np
import pytest

from skpriv._estimation._moments import MomentsQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv.bandits import LinSquareCB
from skpriv.bandits._ucb._sums import asymptotic
from skpriv.privacy import Budget, open_stream


@pytest.mark.parametrize("epsilon, weight", [(3.0, 45.0), (np.inf, 30.0)])
def test_chances_are_inverse_gap_weights(epsilon, weight):
    """1 / (K + weight sqrt(K) gap / s), of the fit that was released."""
    contexts = np.random.RandomState(0).uniform(-0.5, 0.5, size=(400, 4, 3))
    policy = LinSquareCB(epsilon=epsilon, random_state=0, update_every=400)
    actions = policy.act(contexts)
    policy.update(contexts, actions, np.sign(contexts[np.arange(400), actions, 0]))
    actions = policy.act(np.broadcast_to(contexts[0], (100, 4, 3)))
    means = contexts[0] @ policy.coef_
    gaps = means.max() - means
    expected = 1.0 / (4.0 + weight * 2.0 / policy._error * gaps)
    expected[np.argmax(means)] += 1.0 - expected.sum()
    np.testing.assert_allclose(policy.propensities_, expected[actions], rtol=1e-9)


def test_asymptotic_is_calibrated(global_random_seed):
    """Errors of the posterior mean are as large as it says, where noise is large and small."""
    rng = np.random.RandomState(global_random_seed)
    d, n = 4, 3000
    for epsilon in (0.3, 3.0):
        ratios = []
        for seed in range(60):
            theta = rng.normal(scale=0.3, size=d)
            x = rng.normal(size=(n, d)) * [1.0, 1.0, 0.3, 0.1]
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            mean = np.clip(x @ theta, -1.0, 1.0)
            r = np.where(rng.uniform(-1.0, 1.0, size=n) < mean, 1.0, -1.0)
            query = MomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, d))
            stream = open_stream("central", query, Budget(epsilon, 1e-6), 4, 100 + seed)
            fit = asymptotic(query.equations(stream.push(x, r).read()))
            error = fit.centre - theta
            ratios.append(error @ np.linalg.solve(fit.form, error) / d)
        assert 0.5 < np.median(ratios) < 1.5


def test_weights_that_noise_hides_are_not_taken_for_zero():
    """Where the sums tell nothing of them, weights of norm 1 stay as likely as they were."""
    policy = LinSquareCB(epsilon=0.01, random_state=0)
    contexts = np.random.RandomState(0).normal(size=(40, 3, 2)) / 3.0
    policy.update(contexts, policy.act(contexts), np.zeros(40))
    long, _ = policy._scaling.row_map.parts
    spread = np.diagonal(policy._region.form)[:2] * long**2
    assert (spread > 0.35).all()  # of 0.5; a prior by the evidence alone would be 1e-7
