"""Replace one user: all other users see the same, given the answers; and the answers cost enough.

The answers of a first run are recorded where noise is added, and put in the place of those of a
second run, in which one user has another context and another reward. What the exact values differ
by, over the scale of their noise, is what that user pays. Reports are those with Gaussian noise.
"""

from math import sqrt

import numpy as np
import pytest

from skpriv.bandits import (
    FLIPHAT, ActionElimination, EpochGreedy, LinSquareCB, LinUCB, OnlineLinUCB, SquareCB,
)  # fmt: skip
from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor
from skpriv.privacy import Budget, Cost, NoiseSource, capabilities

N, USER, BUDGET = 210, 67, Budget(1.0, 1e-6)
COMMON = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
BOUNDS = {"data_norm": 1.0, "bounds_y": (-1, 1)}
MODELS = ("central", "aggregate", "local", "shuffle")
SCHEDULE = (70, 70, 70)
BLOCKS = {"shared": False, "n_actions": 3}


def sums(kind, **parameters):
    return lambda privacy: kind(privacy=privacy, **COMMON, **parameters)


def epochs(kind, oracle=SSPRegressor, channel="gaussian", **parameters):
    sent = {"channel": channel} if oracle is SSPRegressor else {}
    return lambda privacy: kind(
        oracle(privacy=privacy, fit_intercept=False, **sent, **BOUNDS, **COMMON),
        schedule=SCHEDULE, random_state=0, **parameters,
    )  # fmt: skip


MAKERS = {
    "LinUCB": sums(LinUCB, channel="gaussian"),
    "LinUCB certified": sums(
        LinUCB, channel="gaussian", width="certified", update_every=50, horizon=200
    ),
    "LinSquareCB": sums(LinSquareCB),
    "EpochGreedy": epochs(EpochGreedy),
    "EpochGreedy forgetful": epochs(EpochGreedy, forget=True, exploration=0.0),
    "EpochGreedy reweighted": epochs(EpochGreedy, oracle=ReweightedRegressor),
    "EpochGreedy line": epochs(EpochGreedy, oracle=LinearRegression),  # each from the last one
    "SquareCB": epochs(SquareCB),
    "elimination": epochs(ActionElimination),
    "elimination certified": epochs(ActionElimination, interval="certified"),
    "spanner": epochs(ActionElimination, exploration="spanner"),
    "LinUCB blocks": sums(LinUCB, channel="gaussian", **BLOCKS),
    "LinSquareCB blocks": sums(LinSquareCB, channel="gaussian", **BLOCKS),
    "EpochGreedy blocks": epochs(EpochGreedy, **BLOCKS),
    "elimination blocks": epochs(ActionElimination, **BLOCKS),
    "EpochGreedy codebook": epochs(EpochGreedy, channel="codebook"),
    "FLIPHAT": lambda privacy: FLIPHAT(n_nonzero_coefs=2, schedule=SCHEDULE, **COMMON),
    "OnlineLinUCB": lambda privacy: OnlineLinUCB(horizon=N, learner="ogd", **COMMON),
}
# The last four choose in other ways by answers that policies above are given in all models.
ONE_MODEL = {
    "FLIPHAT": "central", "OnlineLinUCB": "local", "EpochGreedy codebook": "local",
    "EpochGreedy line": "central", "EpochGreedy forgetful": "central", "spanner": "central",
    "elimination certified": "local", "elimination blocks": "local",
}  # fmt: skip
CASES = [
    (name, privacy)
    for name in MAKERS
    for privacy in MODELS
    if ONE_MODEL.get(name, privacy) == privacy
    # A batch is not complete when the new action comes.
    and not (capabilities(privacy).batches and name in ("LinUCB blocks", "LinSquareCB blocks"))
]


def rounds():
    rng = np.random.RandomState(0)
    contexts = rng.normal(size=(N, 4, 3)) / 2.0
    draws = rng.uniform(-1.0, 1.0, size=N)
    return contexts, draws


def play(policy, contexts, draws):
    """Actions of all rounds; rewards depend on the chosen features and on a draw.

    With blocks, the features of the first action are those of the round.
    """
    actions, blocks = np.empty(N, dtype=int), not policy.shared
    contexts = contexts[:, 0] if blocks else contexts
    start = 0
    while start < N:
        stop = min(N, start + policy.rounds_until_update_)
        now = slice(start, stop)
        actions[now] = policy.act(contexts[now])
        chosen = (
            contexts[now] if blocks else contexts[now][np.arange(len(draws[now])), actions[now]]
        )
        rewards = np.where(draws[now] < np.clip(chosen[:, 0], -1.0, 1.0), 1.0, -1.0)
        policy.update(contexts[now], actions[now], rewards)
        start = stop
    return actions


def replayed(make, users, monkeypatch):
    """Squares of Gaussian losses, and sum of pure ones, of a user who is in these rounds."""
    tape, paid, pure, place = [], [0.0], [0.0], None

    def listen(method, cost):
        """Record what is released; in the second run replay it, and add up what it costs."""
        original = getattr(NoiseSource, method)

        def heard(self, value, *law):
            nonlocal place
            released = original(self, value, *law)
            if place is None:
                tape.append((np.array(value), released, law))
                return released
            before, answer, known = tape[place]
            place += 1
            assert known == law and before.shape == np.shape(value)  # both are public
            cost(before, np.asarray(value), *law)
            return answer

        monkeypatch.setattr(NoiseSource, method, heard)

    def of_sums(before, value, noise):
        if noise.scale:
            paid.append(float(((value - before) ** 2).sum()) / noise.scale**2)

    def of_choices(before, scores, k, noise):
        # k exponential mechanisms of range 2 D / scale, each of which costs mu^2 = range^2 / 4 in
        # zCDP's terms: rho = range^2 / 8.
        paid.append(k * (np.abs(scores - before).max() / noise.scale) ** 2)

    def of_reports(before, records, code):
        pure.append(float((before != records).any(axis=1).sum()) * code.log_ratio)

    listen("add", of_sums)
    listen("top", of_choices)
    listen("lifted_reports", of_reports)
    contexts, draws = rounds()
    first = play(make(), contexts, draws)
    place = 0
    changed, other = contexts.copy(), draws.copy()
    changed[users], other[users] = 3.0 * contexts[np.add(users, 1)], -draws[users]
    second = play(make(), changed, other)
    others = np.setdiff1d(np.arange(N), users)
    np.testing.assert_array_equal(first[others], second[others])
    assert place == len(tape) and 0.0 < sum(paid) + sum(pure)
    return sum(paid), sum(pure)


@pytest.mark.parametrize("name, privacy", CASES)
def test_one_user_replaced(name, privacy, monkeypatch):
    paid, pure = replayed(lambda: MAKERS[name](privacy), [USER], monkeypatch)
    if privacy != "shuffle":  # whose noise counts together with that of the others
        mu = sqrt(2.0 * BUDGET.rho) if name == "FLIPHAT" else BUDGET.mu  # it composes in zCDP
        assert sqrt(paid) <= mu * (1.0 + 1e-9) and pure <= BUDGET.epsilon
        assert not (paid and pure)  # one report a user


@pytest.mark.parametrize("users", [[61, 64, 69], [67, 68, 170]])
@pytest.mark.parametrize("privacy", ["central", "local"])
@pytest.mark.parametrize("name", ["LinUCB", "LinSquareCB", "EpochGreedy", "EpochGreedy codebook"])
def test_a_user_who_comes_again(name, privacy, users, monkeypatch):
    """In one epoch or in several: within what `user_guarantee` says for three visits."""
    if ONE_MODEL.get(name, privacy) != privacy:
        return
    paid, pure = replayed(lambda: MAKERS[name](privacy), users, monkeypatch)
    promised = MAKERS[name](privacy).user_guarantee(3)
    factor = 3.0 if privacy == "central" else sqrt(3.0)
    assert sqrt(paid) <= factor * BUDGET.mu * (1.0 + 1e-9) and pure <= 3.0 * BUDGET.epsilon
    assert Cost.from_mu(sqrt(paid)).epsilon(promised.delta) <= promised.epsilon * (1.0 + 1e-9)
