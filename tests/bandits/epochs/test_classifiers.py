"""Classifiers as oracles: rewards that are one of two numbers."""

import numpy as np
import pytest
from sklearn import linear_model

from skpriv.bandits import (
    ActionElimination,
    EpochGreedy,
    GeneralizedLinearEnvironment,
    RandomPolicy,
    SquareCB,
    simulate,
)
from skpriv.linear_model import LogisticRegression

ORACLE = LogisticRegression(
    epsilon=4.0, delta=1e-6, data_norm=1.0, fit_intercept=False, random_state=0
)


@pytest.mark.parametrize("link, classes", [("logit", (0, 1)), ("tanh", (-1, 1))])
def test_logistic_oracles_learn_binary_rewards(link, classes):
    oracle = ORACLE.__class__(**{**ORACLE.get_params(), "classes": classes})
    policies = [SquareCB(oracle), EpochGreedy(oracle), RandomPolicy()]
    result = simulate(
        policies, GeneralizedLinearEnvironment(link=link), horizon=6000, random_state=0
    )
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
    actions, propensities = policy.act(contexts, return_propensities=True)
    gaps = means.max(axis=1) - means[np.arange(3000), actions]
    behind = gaps > 0.0
    weight = np.sqrt(3.0 * 3000.0) / 0.5  # half of the range of the rewards
    np.testing.assert_allclose(propensities[behind], 1.0 / (3.0 + weight * gaps[behind]))
    assert behind.any()


def test_intervals_of_probabilities_eliminate():
    policy = ActionElimination(ORACLE, schedule=3000, interval="asymptotic", random_state=0)
    contexts, actions, y = played(policy)
    policy.update(contexts, actions, y)
    actions = policy.act(contexts)
    assert contexts[np.arange(3000), actions, 0].mean() > 0.1
    assert policy.propensities_.max() == 1.0


def test_rounds_that_are_not_learned_from_count_for_nothing(monkeypatch):
    """Rows of zeros with a reward that is no class: the fit is given no false answers."""
    given = []

    class Recorded(linear_model.LogisticRegression):
        def __init__(self, classes=(0, 1)):
            super().__init__()
            self.classes = classes

        def fit(self, X, y):
            given.append((X, y))
            known = np.isin(y, self.classes)
            return super().fit(X[known], y[known])

    policy = SquareCB(Recorded(), schedule=3000, max_visits=1, random_state=0)
    contexts, actions, y = played(policy)
    policy.update(contexts, actions, y, users=["regular"] * 1000 + list(range(2000)))
    ((rows, rewards),) = given
    blank = ~rows.any(axis=1)
    assert blank.sum() == 999 and (rewards[blank] == 2.0).all()


def test_classes_of_text_are_no_rewards():
    policy = SquareCB(LogisticRegression(classes=("no", "yes"), data_norm=1.0))
    with pytest.raises(ValueError, match="numbers"):
        policy.act(np.zeros((1, 2, 2)))
    assert not hasattr(policy, "n_rounds_")
