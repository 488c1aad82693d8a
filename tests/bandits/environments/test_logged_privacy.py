"""Replaying a log costs a user of the log no more than the policy promises."""

from math import sqrt

import numpy as np
import pytest

from skpriv.bandits import EpochGreedy, LinUCB, LoggedEnvironment
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import NoiseSource

N, K = 3000, 2
SSP = SSPRegressor(
    epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False, random_state=0,
    channel="gaussian",
)  # fmt: skip
POLICIES = {
    "sums": lambda: LinUCB(epsilon=1.0, delta=1e-6, random_state=0),
    "epochs": lambda: EpochGreedy(SSP, schedule=500, random_state=0),
}


def log():
    """Both actions look alike; neighbours in time are as different as rows can be."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], N)
    row = np.where(signs[:, None] > 0, [1.0, 0.0], [0.0, 1.0])
    return np.repeat(row[:, None], K, axis=1), rng.integers(0, K, N), signs


def run(make, data, monkeypatch, propensities, tape=None):
    """Exact values that were given noise, their scales, and the answers; of a tape, the same."""
    exact, answers, add = [], [], NoiseSource.add

    def recorded(self, value, noise):
        answer = add(self, value, noise) if tape is None else tape[len(answers)]
        exact.append((np.array(value, dtype=float).ravel(), noise.scale))
        answers.append(answer)
        return answer

    monkeypatch.setattr(NoiseSource, "add", recorded)
    policy = make()
    found = LoggedEnvironment(*data, propensities).replay(policy, random_state=1)
    monkeypatch.undo()
    return exact, answers, policy, found.rounds


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("change", ["action", "propensity"])
def test_a_changed_round_costs_no_more_than_is_said(name, change, monkeypatch):
    contexts, actions, rewards = log()
    chances = np.full(N, 0.5)
    first, tape, policy, rounds = run(
        POLICIES[name], (contexts, actions, rewards), monkeypatch, chances
    )
    promised = sqrt(2.0 * policy.privacy_report_.total.amount("zcdp"))
    changed = 0
    for user in rounds[2:6]:
        others, likely = actions.copy(), chances.copy()
        if change == "action":
            others[user] = 1 - others[user]
        else:
            likely[user] = 1e-3
        second, *_ = run(
            POLICIES[name], (contexts, others, rewards), monkeypatch, likely, tape
        )  # fmt: skip
        assert len(first) == len(second)
        paid = sum(
            float(((a - b) ** 2).sum()) / scale**2
            for (a, scale), (b, _) in zip(first, second, strict=True)
        )
        assert sqrt(paid) <= promised
        changed += paid > 0.0
    assert (changed > 0) == (change == "action")
    assert policy.n_rounds_ == N


def test_unlikely_actions_count_more_in_the_value():
    """Rounds below the public bound are all accepted, and weighed by what they stand for."""
    rng, n, values = np.random.default_rng(0), 2000, []
    chances = np.where(rng.random(n) < 0.5, 0.1, 0.9)  # that the logger takes action 1
    for seed in range(1, 5):  # 0 has drawn the chances
        draw = np.random.default_rng(seed)
        actions = (draw.random(n) < chances).astype(int)
        rewards = np.where(chances < 0.5, 1.0, 0.0)  # what is rare is good
        data = LoggedEnvironment(
            np.zeros((n, 2, 1)), actions, rewards, np.where(actions == 1, chances, 1 - chances)
        )
        values.append(data.replay(LinUCB(privacy="none"), random_state=seed).value)
    # Three deviations; without weights the value is .32 too large.
    assert np.mean(values) == pytest.approx(rewards.mean(), abs=0.04)
