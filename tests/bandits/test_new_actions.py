"""Actions that come in mid-run, with weights of their own."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from skpriv.bandits import (
    FLIPHAT,
    ActionElimination,
    EpochGreedy,
    EpsilonGreedy,
    LassoBandit,
    LinSquareCB,
    LinUCB,
    OnlineLinUCB,
    RandomPolicy,
    SquareCB,
)
from skpriv.linear_model import IHTRegressor, SSPRegressor
from skpriv.privacy import BudgetAccountant

BLOCKS = {"shared": False, "n_actions": 2, "random_state": 0}
SUMS = {**BLOCKS, "epsilon": 8.0, "data_norm": 1.5}


def oracle():
    return SSPRegressor(
        bounds_y=(-1, 1), epsilon=8.0, data_norm=1.5, fit_intercept=False, random_state=0
    )


MAKERS = {
    "LinUCB": lambda: LinUCB(**SUMS),
    "certified": lambda: LinUCB(**SUMS, width="certified"),
    "local": lambda: LinUCB(**SUMS, privacy="local", channel="gaussian"),
    "codebook": lambda: LinUCB(**SUMS, privacy="local", channel="codebook"),
    "shuffle": lambda: LinUCB(**{**SUMS, "epsilon": 1.0}, privacy="shuffle"),
    "exact": lambda: LinUCB(**SUMS, privacy="none"),
    "exact in periods": lambda: LinUCB(**SUMS, privacy="none", update_every=40),
    "LinSquareCB": lambda: LinSquareCB(**SUMS),
    "EpochGreedy": lambda: EpochGreedy(oracle(), **BLOCKS),
    "SquareCB": lambda: SquareCB(oracle(), **BLOCKS),
    "elimination": lambda: ActionElimination(oracle(), **BLOCKS),
    "EpsilonGreedy": lambda: EpsilonGreedy(Ridge(), **BLOCKS),
    "LassoBandit": lambda: LassoBandit(alpha=0.1, **BLOCKS),
    "random": lambda: RandomPolicy(**BLOCKS),
}
# Too slow to tell .4 from .2 here, or to try what it thinks to be worth 0.
SLOW = {"random", "certified", "local", "codebook", "shuffle", "LassoBandit", "LinSquareCB"}


def play(policy, n, rng):
    """Rewards .2, .4 and .9 of three actions; the last of them is played by those who have it."""
    means, played = np.array([0.2, 0.4, 0.9]), []
    while n > 0:
        size = min(n, policy.rounds_until_update_)
        contexts = np.column_stack([np.ones(size), rng.uniform(-0.2, 0.2, size)])
        actions = policy.act(contexts)
        policy.update(contexts, actions, means[actions] + rng.uniform(-0.1, 0.1, size))
        played.append(actions)
        n -= size
    return np.concatenate(played)


@pytest.mark.parametrize("name", MAKERS)
def test_a_new_action_is_found_and_the_others_are_remembered(name, global_random_seed):
    rng, policy = np.random.RandomState(global_random_seed), MAKERS[name]()
    n = 400 if name in SLOW else 600 if name == "exact" else 2_000
    before = play(policy, n, rng)
    assert before.max() == 1
    if name == "shuffle":
        play(policy, policy.rounds_until_update_, rng)
    rounds = policy.n_rounds_
    assert policy.add_actions() is policy and policy.n_actions_ == 3
    assert policy.act(np.ones((50, 2))).shape == (50,)
    after = play(policy, 2 * n, rng)
    assert policy.n_rounds_ == rounds + 2 * n
    if name not in SLOW:
        assert (before[-300:] == 1).mean() > 0.6  # it looked better than 0
        assert (after[-300:] == 2).mean() > 0.8


@pytest.mark.parametrize("name", ["LinUCB", "EpochGreedy", "shuffle", "local"])
def test_new_actions_cost_nothing(name):
    """The users before and after are in streams or epochs of their own."""
    rng, policy = np.random.RandomState(0), MAKERS[name]()
    epsilon = 1.0 if name == "shuffle" else 8.0
    aside = (epsilon, 1e-6) if name == "shuffle" else None
    with BudgetAccountant(epsilon, 1e-6, currency="gdp", set_aside=aside) as accountant:
        play(policy, 200, rng)
        spent = accountant.spent.epsilon
        policy.add_actions()
        play(policy, 300, rng)
        assert accountant.spent.epsilon == pytest.approx(spent)
    assert policy.n_actions_ == 3


def test_sums_are_those_of_all_rounds(global_random_seed):
    """Without noise to speak of, the equations are those of all rows, padded with zeros."""
    rng = np.random.RandomState(global_random_seed)
    policy = LinUCB(**{**SUMS, "epsilon": 1e5}, update_every=10, reward_offset=0.0)
    rows, rewards = [], []
    for actions in (2, 3):
        for _ in range(3):
            contexts = rng.uniform(-0.5, 0.5, (25, 2))
            chosen = policy.act(contexts) % actions
            drawn = rng.uniform(-1.0, 1.0, 25)
            policy.update(contexts, chosen, drawn)
            blocks = np.zeros((25, 3, 2))
            blocks[np.arange(25), chosen] = contexts / 1.5
            rows.append(blocks.reshape(25, 6))
            rewards.append(drawn)
        if actions == 2:
            policy.add_actions()
    X, y = np.concatenate(rows)[:145], np.concatenate(rewards)[:145]
    equations = policy._sums.query.equations(policy._sums._total(policy._sums._last))
    assert equations.n == 145
    np.testing.assert_allclose(equations.design, X.T @ X, atol=0.05)
    np.testing.assert_allclose(equations.target, X.T @ y, atol=0.05)


def test_what_cannot_take_new_actions_says_so():
    rng = np.random.RandomState(0)
    with pytest.raises(ValueError, match="have acted"):
        LinUCB(**SUMS).add_actions()
    shared = LinUCB(random_state=0)
    shared.act(np.ones((1, 2, 2)))
    with pytest.raises(ValueError, match="shared"):
        shared.add_actions()
    for policy, match in (
        (OnlineLinUCB(**SUMS, learner="ogd"), "online learner"),
        (FLIPHAT(schedule=20, **BLOCKS), "widened|new features"),
        (
            EpochGreedy(
                IHTRegressor(data_max=1.0, bounds_y=(-1, 1), fit_intercept=False),
                schedule=20,
                **BLOCKS,
            ),
            "new features",
        ),
        (ActionElimination(oracle(), interval="certified", schedule=20, **BLOCKS), "posterior"),
        (MAKERS["shuffle"](), "batch"),
    ):
        play(policy, 45, rng)
        before = policy.n_actions_, policy.n_rounds_
        with pytest.raises(ValueError, match=match):
            policy.add_actions()
        assert (policy.n_actions_, policy.n_rounds_) == before
        play(policy, 45, rng)
