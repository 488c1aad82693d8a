"""A policy whose users act and report on their devices is the policy that simulates them."""

import json
import random

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from skpriv import _wire as _codebook
from skpriv.bandits import LinSquareCB, LinUCB
from skpriv.bandits._ucb import _running
from skpriv.exceptions import PrivacyError
from skpriv.protocol import _device, act, report

THETA = np.array([0.5, -0.5, 0.0])


def policy(**params):
    options = {"epsilon": 2.0, "delta": 0.0, "privacy": "local", "horizon": 2_000}
    fixed = {"width": "asymptotic", "update_every": 50, "bonus_scale": 1.0}
    return LinUCB(**{**options, **fixed, **params})


class Seeded(random.Random):
    """The operating system's randomness, of a device that always draws the same."""

    def randbelow(self, bound):
        return self.randrange(bound)

    def token_hex(self, size):
        return self.randbytes(size).hex()

    randbits = random.Random.getrandbits


@pytest.fixture
def seeded_devices(monkeypatch):
    """Devices that draw the same in every run: a comparison then fails always or never."""
    for module in (_device, _codebook, _running):
        monkeypatch.setattr(module, "secrets", Seeded(0))


def play(learner, rounds):
    """Rounds on devices; a report a round, handed in fifty at a time."""
    rng, waiting = np.random.RandomState(0), []
    state = learner.public_state(n_actions=4, n_features=3)
    for user in range(rounds):
        contexts = rng.normal(size=(4, 3)) / 3.0
        action = act(state, contexts)
        y = contexts[action] @ THETA + rng.uniform(-0.5, 0.5)
        waiting.append((user, report(state, contexts, y, user=user, action=action)))
        if len(waiting) == 50:
            learner.update_from_reports(waiting)
            state, waiting = learner.public_state(), []


def test_devices_act_as_the_policy_would():
    learner = policy()
    play(learner, 100)
    state, contexts = learner.public_state(), np.random.RandomState(5).normal(size=(200, 4, 3))
    assert_array_equal([act(state, c) for c in contexts], learner.act(contexts))


@pytest.mark.slow
def test_devices_draw_actions_by_inverse_gaps(seeded_devices):
    learner = LinSquareCB(epsilon=4.0, delta=0.0, privacy="local", update_every=50)
    play(learner, 400)
    state, contexts = learner.public_state(), np.random.RandomState(5).normal(size=(4, 3)) / 3.0
    n = 20_000
    drawn = np.bincount([act(state, contexts) for _ in range(n)], minlength=4)
    means = learner._scaling.features(contexts) @ json.loads(state)["region"]["centre"]
    gaps = means.max() - means
    chances = 1.0 / (4.0 + 45.0 * 2.0 / learner._error * gaps)
    chances[means.argmax()] += 1.0 - chances.sum()
    assert stats.chisquare(drawn, n * chances).pvalue > 1e-4


def test_reports_have_the_law_of_simulated_updates(seeded_devices):
    rng = np.random.RandomState(1)
    n = 10  # users of each of sixty policies
    contexts = rng.normal(size=(n, 4, 3)) / 3.0
    actions = rng.randint(4, size=n)
    rewards = contexts[np.arange(n), actions] @ THETA
    centres = np.empty((2, 60, 4))
    for k in range(60):
        simulated, devices = policy(random_state=k, update_every=n), policy(update_every=n)
        simulated.act(contexts[:1])
        simulated.update(contexts, actions, rewards)
        state = devices.public_state(n_actions=4, n_features=3)
        devices.update_from_reports(
            (user, report(state, contexts[user], rewards[user], user=user, action=actions[user]))
            for user in range(n)
        )
        centres[:, k] = simulated._region.centre, devices._region.centre
    for axis in np.eye(4):
        assert stats.ks_2samp(centres[0] @ axis, centres[1] @ axis).pvalue > 1e-4 / 4


def test_blocks_of_actions():
    learner = policy(shared=False, n_actions=2)
    state = learner.public_state(n_features=3)
    x = np.array([0.3, 0.1, 0.2])
    assert act(state, x) in (0, 1)
    learner.update_from_reports([(0, report(state, x, 0.5, user=0, action=1))])
    assert learner.n_rounds_ == 1 and json.loads(state)["task"]["channel"]["size"] == 7


def test_what_is_refused_changes_nothing():
    learner = policy()
    state = learner.public_state(n_actions=4, n_features=3)
    contexts = np.zeros((4, 3))
    good = report(state, contexts, 0.5, user=1, action=0)
    learner.update_from_reports([(1, good)])
    other = policy().public_state(n_actions=4, n_features=3)
    for reports, message in [
        ([(1, good)], "has reported"), ([(2, good), (2, good)], "has reported"),
        ([(2, good), (-1, good)], "user="), ([(2, good), (3, good[:-1])], "cut off"),
        ([(2, report(other, contexts, 0.5, user=2, action=0))], "another task"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            learner.update_from_reports(reports)
        assert learner.n_rounds_ == 1
    # late reports are welcome: the task does not change with the policy
    learner.update_from_reports([(9, report(state, contexts, 0.5, user=9, action=0))])


@pytest.mark.parametrize("kind", [LinUCB, LinSquareCB])
@pytest.mark.parametrize("privacy", ["central", "aggregate"])
def test_codebooks_are_for_users_who_report(kind, privacy):
    learner = kind(privacy=privacy, channel="codebook")
    with pytest.raises(PrivacyError, match="channel='codebook'"):
        learner.act(np.zeros((1, 2, 2)))


def test_only_codebooks_leave_devices():
    models = (
        {"channel": "gaussian"},
        {"privacy": "central", "channel": "auto"},
        {"privacy": "shuffle", "update_every": 2_000},
    )
    for params in ({**model, "delta": 1e-6} for model in models):
        with pytest.raises(PrivacyError, match="codebook"):
            policy(**params).public_state(n_actions=4, n_features=3)
    with pytest.raises(ValueError, match="n_features"):
        policy().public_state()
