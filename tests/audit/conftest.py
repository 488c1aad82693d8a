"""Neighbours, models and policies that the tests of audits share."""

from functools import partial

import numpy as np
import pytest
from registry.estimators import iht, improper, layered, reweighted, ssp

from skpriv.bandits import (
    FLIPHAT, ActionElimination, BanditCombiner, EpochGreedy, LinUCB, OnlineLinUCB, RandomPolicy,
    SquareCB,
)  # fmt: skip
from skpriv.linear_model import LinearRegression

N = 130
SCHEDULE = (60, 70)
MODELS = ("central", "aggregate", "local", "shuffle")


def record_pair(n=400, seed=0):
    """Two tables that differ in their first record, far apart and at the edge of the ball."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.5, 0.5, size=(n, 2))
    y = np.clip(X @ [1.0, -0.5] + rng.uniform(-0.2, 0.2, size=n), -1.0, 1.0)
    other, other_y = X.copy(), y.copy()
    X[0], y[0] = [0.8, -0.6], -1.0
    other[0], other_y[0] = [0.8, 0.6], 1.0
    return (X, y), (other, other_y)


def round_pair(n=N, place=50, n_actions=3, seed=0):
    """Rounds of two sets of users, one of whom differs in context and rewards."""
    rng = np.random.RandomState(seed)
    contexts = rng.uniform(-0.5, 0.5, size=(n, n_actions, 2))
    rewards = np.clip(contexts @ [1.0, -0.5] + rng.uniform(-0.2, 0.2, size=(n, 1)), -1.0, 1.0)
    other, other_rewards = contexts.copy(), rewards.copy()
    contexts[place], rewards[place] = [0.8, -0.6], -1.0
    other[place], other_rewards[place] = [0.8, 0.6], 1.0
    return (contexts, rewards), (other, other_rewards)


ESTIMATORS = {
    **{
        f"{name}, {privacy}": partial(make, privacy=privacy)
        for privacy in MODELS
        for name, make in {
            "ssp": ssp,
            "re-weighted": reweighted,
            "re-weighted descent": partial(reweighted, solver="sgd", link="logit"),
            "layered": layered,
            "improper": improper,
            "linear": partial(LinearRegression, data_norm=1.0, bounds_y=(-1.0, 1.0)),
        }.items()
    },
    "iht": partial(iht, n_nonzero_coefs=1),
    "layered, pure, local": partial(layered, delta=0.0, privacy="local"),
}


def _epochs(Policy, privacy, **further):
    oracle = ssp(privacy=privacy, delta=1e-3, random_state=0)
    return Policy(oracle=oracle, schedule=SCHEDULE, random_state=0, **further)


def _sums(Policy, **further):
    return Policy(**{"delta": 1e-3, "random_state": 0, **further})


def _combined():
    local = _sums(LinUCB, privacy="local", epsilon=2.0, random_state=None)
    return _sums(BanditCombiner, policies=[_sums(OnlineLinUCB, epsilon=2.0), local], horizon=N)


POLICIES = {
    **{
        f"{name}, {privacy}": (lambda make=make, privacy=privacy: make(privacy))
        for privacy in MODELS
        for name, make in {
            "elimination": lambda p: _epochs(ActionElimination, p),
            "spanner": lambda p: _epochs(ActionElimination, p, exploration="spanner"),
            "square_cb": lambda p: _epochs(SquareCB, p),
            "greedy": lambda p: _epochs(EpochGreedy, p),
            "lin_ucb": lambda p: _sums(LinUCB, privacy=p, horizon=N, update_every=20),
        }.items()
    },
    "lin_ucb, several phases": lambda: _sums(LinUCB, privacy="central", horizon=40),
    "lin_ucb, shared sum": lambda: _sums(LinUCB, privacy="aggregate", horizon=N, update_every=20),
    "online, maler": lambda: _sums(OnlineLinUCB),
    "online, ogd": lambda: _sums(OnlineLinUCB, learner="ogd"),
    "combiner": _combined,
    "fliphat": lambda: FLIPHAT(delta=1e-3, n_nonzero_coefs=1, schedule=SCHEDULE, random_state=0),
    "random": lambda: RandomPolicy(random_state=0),
}


@pytest.fixture
def rounds():
    return round_pair


@pytest.fixture
def records():
    return record_pair


@pytest.fixture(params=sorted(ESTIMATORS))
def private_estimator(request):
    """How an estimator under a model is made."""
    return partial(ESTIMATORS[request.param], random_state=0)


@pytest.fixture(params=sorted(POLICIES))
def private_policy(request):
    return POLICIES[request.param]
