"""The laws of the environments."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from skpriv.bandits import LinearEnvironment, SparseLinearEnvironment, SupervisedEnvironment

ENVIRONMENTS = [
    LinearEnvironment(n_actions=4, n_features=3),
    LinearEnvironment(n_actions=4, n_features=3, contexts="sphere", noise=0.3),
    LinearEnvironment(n_actions=4, n_features=3, contexts="fixed"),
    SparseLinearEnvironment(n_actions=4, n_features=30),
]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_rewards_have_the_stated_means(env, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    env, n = env.start(rng), 40_000
    contexts, means = env.sample(5, rng)
    assert contexts.shape == (5, env.n_actions, env.n_features)
    assert means.shape == (5, env.n_actions)
    low, high = env.bounds_rewards
    for action in range(env.n_actions):
        rewards = env.rewards(np.repeat(means[:1], n, axis=0), np.full(n, action), rng)
        error = 4.5 * rewards.std() / np.sqrt(n)
        assert rewards.mean() == pytest.approx(means[0, action], abs=error)
        assert np.mean((low <= rewards) & (rewards <= high)) > 0.99
    assert ((low <= means) & (means <= high)).all()


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_one_number_a_round(env):
    """Rewards in two chunks are those in one: so all policies see the same noise."""
    env = env.start(np.random.default_rng(0))
    means = env.sample(50, np.random.default_rng(1))[1]
    actions = np.arange(50) % env.n_actions
    one, two = np.random.default_rng(2), np.random.default_rng(2)
    whole = env.rewards(means, actions, one)
    halves = [env.rewards(means[p], actions[p], two) for p in (slice(0, 7), slice(7, 50))]
    np.testing.assert_array_equal(whole, np.concatenate(halves))


def test_start_draws_new_coefficients():
    env = LinearEnvironment()
    rng = np.random.default_rng(0)
    one, two = env.start(rng), env.start(rng)
    assert not np.array_equal(one.coef_, two.coef_)
    assert np.linalg.norm(one.coef_) == pytest.approx(1.0)
    np.testing.assert_array_equal(env.coef_, LinearEnvironment().coef_)
    given = LinearEnvironment(n_features=2, coef=[0.6, 0.8]).start(rng)
    np.testing.assert_array_equal(given.coef_, [0.6, 0.8])


def test_linear_means():
    rng = np.random.default_rng(0)
    for kind in ("gaussian", "sphere", "fixed"):
        env = LinearEnvironment(contexts=kind).start(rng)
        contexts, means = env.sample(100, rng)
        np.testing.assert_allclose(means, contexts @ env.coef_, atol=1e-12)
        assert np.linalg.norm(contexts, axis=2).max() <= 1 + 1e-12
    assert contexts.strides[0] == 0  # fixed arms take no memory
    with pytest.raises(ValueError, match="contexts"):
        LinearEnvironment(contexts="cube").sample(1, rng)
    with pytest.raises(ValueError, match="shape"):
        LinearEnvironment(contexts=np.zeros((2, 2))).sample(1, rng)


@pytest.mark.parametrize("correlation", [0.0, 0.1, -0.8])
def test_autoregressive_covariance(correlation, global_random_seed):
    env = SparseLinearEnvironment(n_features=8, n_actions=2, correlation=correlation)
    contexts, means = env.sample(60_000, np.random.default_rng(global_random_seed))
    rows = contexts.reshape(-1, 8)
    index = np.arange(8)
    expected = float(correlation) ** abs(index[:, None] - index)
    np.testing.assert_allclose(rows.T @ rows / len(rows), expected, atol=0.03)
    assert abs(np.corrcoef(contexts[:, 0].ravel(), contexts[:, 1].ravel())[0, 1]) < 0.02
    np.testing.assert_allclose(means, contexts @ env.coef_)
    assert (env.coef_ != 0).sum() == 5


@pytest.mark.parametrize("blocks", [True, False])
def test_supervised(blocks):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    env = SupervisedEnvironment(X, 10.0 * y, blocks=blocks).start(rng)
    chunks = [env.sample(n, rng) for n in (100, 50, 1000)]
    contexts, means = chunks[-1]
    assert contexts.shape == ((1000, 3, 12) if blocks else (1000, 4))
    assert env.n_features == contexts.shape[-1]
    np.testing.assert_array_equal(means.sum(axis=1), np.ones(1000))
    # The first pass sees every row once.
    labels = np.concatenate([np.argmax(m, axis=1) for _, m in chunks[:2]])
    np.testing.assert_array_equal(np.bincount(labels), [50, 50, 50])
    np.testing.assert_array_equal(env.rewards(means, np.argmax(means, 1), rng), np.ones(1000))
    if blocks:
        rows = contexts[:, 1, 4:8]
        np.testing.assert_array_equal(contexts[:, 2, 8:], rows)
        assert not contexts[:, 1, :4].any()
