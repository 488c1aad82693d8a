"""Policies and oracles that the tests of bandits share."""

from functools import partial

import numpy as np
import pytest
from registry.estimators import ssp
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import Ridge

from skpriv.bandits import (
    FLIPHAT, ActionElimination, EpochGreedy, EpsilonGreedy, LassoBandit, LinSquareCB, LinUCB,
    RandomPolicy, SquareCB,
)  # fmt: skip

SCHEDULE = (20, 30, 50)


oracle = partial(ssp, delta=1e-3, random_state=0)


def epochs(kind, **parameters):
    return lambda: kind(schedule=SCHEDULE, random_state=0, **parameters)


PRIVATE = {
    "elimination": epochs(ActionElimination, oracle=oracle()),
    "spanner": epochs(ActionElimination, oracle=oracle(), exploration="spanner"),
    "square_cb": epochs(SquareCB, oracle=oracle()),
    "greedy": epochs(EpochGreedy, oracle=oracle()),
    "fliphat": epochs(FLIPHAT, delta=1e-3, n_nonzero_coefs=2),
}
POLICIES = {
    **PRIVATE,
    "lin_ucb": lambda: LinUCB(epsilon=5.0, random_state=0),
    "lin_square_cb": lambda: LinSquareCB(epsilon=5.0, random_state=0),
    "square_cb_forgetful": epochs(SquareCB, oracle=oracle(), forget=True),
    "elimination_certified": epochs(ActionElimination, oracle=oracle(), interval="certified"),
    "local": epochs(EpochGreedy, oracle=oracle(privacy="local")),
    "epsilon_greedy": epochs(EpsilonGreedy, regressor=Ridge(), exploration=0.2),
    "lasso": epochs(LassoBandit, alpha=0.01),
    "random": lambda: RandomPolicy(random_state=0),
}


class Rounds:
    """Contexts and all rewards of some rounds, with more actions than features."""

    def __init__(self, n_rounds=200, n_actions=5, n_features=3, seed=0):
        rng = np.random.RandomState(seed)
        self.contexts = rng.uniform(-0.5, 0.5, size=(n_rounds, n_actions, n_features))
        self.noise = rng.uniform(-0.2, 0.2, size=n_rounds)
        self.coef = np.linspace(1.0, -1.0, n_features)

    def rewards(self, actions, part=slice(None)):
        contexts = self.contexts[part]
        return contexts[np.arange(len(actions)), actions] @ self.coef + self.noise[part]

    def play(self, policy, start=0, stop=None, size=None):
        """Act and update; in chunks of this size, or while the policy does not change."""
        actions, propensities = [], []
        stop = len(self.contexts) if stop is None else stop
        while start < stop:
            chunk = min(size or stop, policy.rounds_until_update_)
            part = slice(start, min(stop, start + chunk))
            actions.append(policy.act(self.contexts[part]))
            propensities.append(policy.propensities_)
            users = range(part.start, part.stop) if policy._max_visits else None
            rewards = self.rewards(actions[-1], part)
            policy.update(self.contexts[part], actions[-1], rewards, users=users)
            start = part.stop
        return np.concatenate(actions), np.concatenate(propensities)


class Recorder(RegressorMixin, BaseEstimator):
    """Oracle that keeps what it is given, and answers with coefficients that ignore it."""

    def __init__(self, *, log=None, random_state=None):
        self.log = log
        self.random_state = random_state

    def fit(self, X, y):
        if self.log is not None:
            self.log.append((X.copy(), y.copy()))
        self.coef_ = np.random.RandomState(self.random_state).uniform(-1.0, 1.0, X.shape[1])
        return self

    def predict(self, X):
        return X @ self.coef_

    def confidence_interval(self, X, confidence_level=0.95, method="certified"):
        centre = self.predict(X)
        return centre - 0.2, centre + 0.2


class SharedLog(list):
    """List that clones share."""

    def __deepcopy__(self, memo):
        return self


@pytest.fixture(params=sorted(POLICIES))
def policy(request):
    return clone(POLICIES[request.param]())  # with an oracle of its own


@pytest.fixture(params=sorted(PRIVATE))
def private_policy(request):
    return clone(PRIVATE[request.param]())


@pytest.fixture
def make_rounds():
    return Rounds


@pytest.fixture
def recorder():
    """An oracle that ignores its data, and the list of what it is given."""
    log = SharedLog()
    return Recorder(log=log, random_state=0), log


@pytest.fixture
def interrupt(monkeypatch):
    """Let the next call of a method be interrupted, after it was made or before."""

    def interrupted(owner, name, after):
        method = getattr(owner, name)

        def once(self, *args, **kwargs):
            monkeypatch.setattr(owner, name, method)
            if after:
                method(self, *args, **kwargs)
            raise KeyboardInterrupt

        monkeypatch.setattr(owner, name, once)

    return interrupted
