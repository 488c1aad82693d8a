import numpy as np
import pytest
from registry.estimators import ssp

from skpriv.bandits import EpochGreedy, LinUCB, MABWiserAdapter, RandomPolicy

ARMS = ["low", "medium", "high"]


def rounds(seed, n=600):
    rng = np.random.RandomState(seed)
    contexts = rng.uniform(-0.5, 0.5, size=(n, 2))
    actions = rng.randint(3, size=n)
    rewards = np.clip((actions - 1) * contexts[:, 0] + 0.1 * rng.randn(n), -1, 1)
    return contexts, actions, rewards


def greedy():
    oracle = ssp(epsilon=2.0, fit_intercept=False, random_state=0)
    return EpochGreedy(oracle, schedule=200, shared=False, n_actions=3, random_state=0)


def test_same_as_the_policy_itself(global_random_seed):
    contexts, actions, rewards = rounds(global_random_seed)
    policy = greedy()
    policy.act(contexts[:0])
    policy.update(contexts, actions, rewards)
    decisions = np.array(ARMS)[actions]
    adapter = MABWiserAdapter(greedy(), ARMS)
    adapter.fit(decisions[:250], rewards[:250], contexts[:250])
    adapter.partial_fit(decisions[250:].tolist(), rewards[250:], contexts[250:])
    chosen = adapter.predict(contexts)
    assert chosen == [ARMS[a] for a in policy.act(contexts)]
    np.testing.assert_array_equal(adapter.policy_.propensities_, policy.propensities_)
    assert len(adapter.policy_.privacy_report_.epochs) == 3


def test_fit_starts_anew(global_random_seed):
    contexts, actions, rewards = rounds(global_random_seed)
    policy = LinUCB(privacy="none", bonus_scale=0.0, shared=False, n_actions=3, random_state=0)
    adapter = MABWiserAdapter(policy, [1, 2, 3])
    adapter.partial_fit(actions + 1, -rewards, contexts)
    adapter.fit(actions + 1, rewards, contexts)
    assert adapter.policy_.n_rounds_ == 600
    assert adapter.predict([[0.5, 0.0]]) == 3
    assert adapter.predict([[-0.5, 0.0]]) == 1


def test_beside_mabwiser(global_random_seed):
    mabwiser = pytest.importorskip("mabwiser.mab")
    contexts, actions, rewards = rounds(global_random_seed)
    decisions = np.array(ARMS)[actions]
    theirs = mabwiser.MAB(ARMS, mabwiser.LearningPolicy.LinUCB(alpha=0.0, l2_lambda=1.0))
    textbook = {"width": "certified", "update_every": 1, "reward_offset": 0.0, "random_state": 0}
    greedy = LinUCB(privacy="none", shared=False, n_actions=3, bonus_scale=0.0, **textbook)
    ours = MABWiserAdapter(greedy, ARMS)
    theirs.fit(decisions, rewards, contexts)
    ours.fit(decisions, rewards, contexts)
    # Without bonus both play the best of three ridge regressions.
    assert ours.predict(contexts) == list(theirs.predict(contexts))


def test_errors_change_nothing():
    contexts, actions, rewards = rounds(0, 50)
    decisions = [ARMS[a] for a in actions]
    adapter = MABWiserAdapter(greedy(), ARMS)
    with pytest.raises(ValueError, match="fit"):
        adapter.predict(contexts)
    with pytest.raises(ValueError, match="have shape.*must have"):
        adapter.fit(decisions, rewards, contexts[:, :, None])
    assert adapter.policy_ is None
    adapter.fit(decisions, rewards, contexts)
    with pytest.raises(ValueError, match="must have shape"):
        adapter.fit(decisions, rewards[:3], contexts)
    assert adapter.policy_.n_rounds_ == 50


@pytest.mark.parametrize(
    "policy, arms, message",
    [
        (RandomPolicy(), ARMS, "shared=False"),
        (greedy(), ARMS[:2], "n_actions=3"),
        (greedy(), ["a", "a", "b"], "different labels"),
        (greedy().set_params(max_visits=2), ARMS, "without max_visits"),
    ],
)
def test_arms_must_fit_the_policy(policy, arms, message):
    contexts, _, rewards = rounds(0, 5)
    with pytest.raises(ValueError, match=message):
        MABWiserAdapter(policy, arms).fit(["a"] * 5, rewards, contexts)
