"""Classifiers as oracles: rewards that are one of two numbers."""

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.base import clone

from skpriv.bandits import (
    ActionElimination,
    EpochGreedy,
    LinearEnvironment,
    RandomPolicy,
    SquareCB,
    simulate,
)
from skpriv.linear_model import LogisticRegression

ORACLE = LogisticRegression(
    classes=(0, 1), epsilon=4.0, delta=1e-6, data_norm=1.0, fit_intercept=False, random_state=0
)


def test_logistic_oracles_learn_binary_rewards():
    oracle = clone(ORACLE).set_params(classes=(-1, 1))
    policies = [SquareCB(oracle), EpochGreedy(oracle), RandomPolicy()]
    result = simulate(policies, LinearEnvironment(), horizon=6000, random_state=0)
    ours, greedy, random = result.regret_[:, 0, -1]
    assert ours < 0.6 * random and greedy < 0.4 * random
    assert result.privacy_reports[0][0].guarantee.epsilon == pytest.approx(4.0)


def played(policy, rewards=(0.0, 1.0)):
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-0.5, 0.5, (3000, 3, 2))
    actions = policy.act(contexts)
    chosen = contexts[np.arange(3000), actions, 0]
    y = np.where(rng.random(3000) < 1.0 / (1.0 + np.exp(-8.0 * chosen)), *rewards[::-1])
    return contexts, actions, y


def test_gaps_are_those_of_expected_rewards():
    policy = SquareCB(ORACLE, schedule=3000, random_state=0)
    contexts, actions, y = played(policy)
    policy.update(contexts, actions, y)
    means = policy.oracle_.predict_proba(contexts.reshape(-1, 2))[:, 1].reshape(3000, 3)
    actions = policy.act(contexts)
    propensities = policy.propensities_
    gaps = means.max(axis=1) - means[np.arange(3000), actions]
    behind = gaps > 0.0
    weight = np.sqrt(3.0 * 3000.0) / 0.5  # half of the range of the rewards
    np.testing.assert_allclose(propensities[behind], 1.0 / (3.0 + weight * gaps[behind]))
    assert behind.any()


@pytest.mark.parametrize("changes", [{}, {"forget": True}, {"privacy": "shuffle"}])
def test_a_fit_begins_where_the_last_one_ended(changes, make_rounds):
    """But not where each epoch starts afresh, nor where users may send an index of a codebook."""
    policy = {"forget": changes.pop("forget", False), "schedule": (20, 400, 400)}
    rounds = make_rounds(820)
    rounds.coef *= 0.0  # rewards are near 0, the first class
    learner = EpochGreedy(clone(ORACLE).set_params(**changes), random_state=0, **policy)
    rounds.play(learner, stop=420)
    first = learner.oracle_
    assert first.start is None  # the first 20 rounds told nothing but a mean
    rounds.play(learner, start=420)
    begins = not (changes or policy["forget"])
    assert (learner.oracle_.start is not None) == begins
    if begins:
        np.testing.assert_array_equal(learner.oracle_.start.theta, first.as_start().theta)


def test_intervals_of_probabilities_eliminate():
    policy = ActionElimination(ORACLE, schedule=3000, interval="asymptotic", random_state=0)
    contexts, actions, y = played(policy)
    policy.update(contexts, actions, y)
    actions = policy.act(contexts)
    assert contexts[np.arange(3000), actions, 0].mean() > 0.1
    assert policy.propensities_.max() == 1.0


class Given(linear_model.LogisticRegression):
    """Keeps what it is given, and learns from known classes."""

    log: list = []

    def __init__(self, classes=(0, 1)):
        super().__init__()
        self.classes = classes

    def fit(self, X, y):
        Given.log.append((X, np.array(y)))
        known = np.isin(y, self.classes)
        return super().fit(X[known], y[known])


def test_rounds_that_are_not_learned_from_count_for_nothing():
    """Rows of zeros with a reward that is no class: the fit is given no false answers."""
    Given.log.clear()
    policy = SquareCB(Given(), schedule=3000, max_visits=1, random_state=0)
    contexts, actions, y = played(policy)
    policy.update(contexts, actions, y, users=["regular"] * 1000 + list(range(2000)))
    ((rows, rewards),) = Given.log
    blank = ~rows.any(axis=1)
    assert blank.sum() == 999 and (rewards[blank] == 2.0).all()


@pytest.mark.parametrize("classes", [(0, 1), (1, -1), (0, 3, 1)])
def test_rewards_between_classes_keep_their_mean(classes):
    """They had counted for nothing, without a word."""
    Given.log.clear()
    policy = SquareCB(Given(classes), schedule=6000, random_state=0)
    contexts = np.random.default_rng(0).uniform(-0.5, 0.5, (6000, 3, 2))
    low, high = min(classes), max(classes)
    rewards = np.repeat([low, high, low + 0.3, high - 0.1, low - 5.0, high + 1.0], 1000)
    policy.update(contexts, policy.act(contexts), rewards)
    ((_, given),) = Given.log
    assert set(given) <= set(map(float, classes))
    means = given.reshape(6, 1000).mean(axis=1)
    wanted = np.clip(rewards[::1000], low, high)
    assert np.array_equal(means[[0, 1, 4, 5]], wanted[[0, 1, 4, 5]])
    np.testing.assert_allclose(means, wanted, atol=0.12)


def test_what_is_no_number_is_no_class():
    policy = SquareCB(ORACLE, random_state=0)
    policy.act(np.zeros((1, 2, 2)))
    np.testing.assert_array_equal(policy._bounded(np.array([np.nan, 1.0, -9.0])), [np.nan, 1, 0])
