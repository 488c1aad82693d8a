import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from registry.worlds import linear_rounds, play_signs

from skpriv import BudgetAccountant
from skpriv.bandits import OnlineLinUCB
from skpriv.bandits._ucb._online_lin_ucb import LEARNERS


def play(policy, n, seed=0, block=None):
    """Regret of a run."""
    contexts, means = linear_rounds(n, seed, n_actions=5)
    actions = play_signs(policy, contexts, means, seed + 1000, block)
    return (means.max(axis=1) - means[np.arange(n), actions]).sum()


@pytest.mark.parametrize("learner, width", [("maler", "asymptotic"), ("ogd", "certified")])
def test_learns_when_there_is_no_noise(learner, width):
    policy = OnlineLinUCB(
        epsilon=np.inf, learner=learner, width=width, horizon=2000, random_state=0
    )
    play(policy, 1000)
    late = play(policy, 1000, seed=1)
    assert late < 0.1 * 1000 * 0.2  # with four seeds at most .04
    assert not policy.guarantee.private


@pytest.mark.parametrize("anytime", [False, True])
def test_pickled_in_mid_phase_and_charged_once(anytime):
    policy = OnlineLinUCB(
        epsilon=3.0, anytime=anytime, update_every=20, horizon=200, random_state=0
    )
    with BudgetAccountant(3.0, 1e-6) as accountant:
        play(policy, 730, block=10)
        assert accountant.spent.epsilon == pytest.approx(3.0, rel=1e-6)
        other = pickle.loads(pickle.dumps(policy))
        assert play(policy, 300, seed=2) == play(other, 300, seed=2)
        assert accountant.spent.epsilon == pytest.approx(3.0, rel=1e-6)
    if anytime:
        assert policy._steps == 32  # after 8 + 16 of the 51 reads


def test_gradients_are_taken_at_the_public_prediction():
    """The same reports give the same learner, whatever contexts the users see afterwards."""
    policies = [OnlineLinUCB(epsilon=2.0, horizon=200, random_state=0) for _ in "ab"]
    contexts = np.random.RandomState(0).normal(size=(40, 5, 3)) / 3.0
    for policy, others in zip(policies, (contexts, -contexts)):
        policy.act(contexts)
        actions = np.zeros(40, dtype=int)
        seen = others.copy()
        seen[:, 0] = contexts[:, 0]
        policy.update(seen, actions, np.ones(40))
    np.testing.assert_array_equal(policies[0]._learner.point, policies[1]._learner.point)


def test_gradient_bounds_fail_in_no_more_steps_than_is_stated():
    """P(chi_p > sqrt(p) + sqrt(2 t)) < exp(-t), for two noises in each step."""
    policy = OnlineLinUCB(epsilon=2.0, horizon=400, confidence_level=0.9, random_state=0)
    policy.act(np.zeros((1, 5, 3)))
    block = SimpleNamespace(target_scale=3.0, design_scale=4.0, n=50)
    chi = (policy._gradient_bound(block) / 2.0 - 2.0) * 50 / 5.0  # a noise of 5, coef_norm of 1
    t = (chi - np.sqrt(policy._scaling.size)) ** 2 / 2.0
    assert 2.0 * policy._steps * np.exp(-t) == pytest.approx(0.1, rel=1e-9)


def test_a_descent_takes_shorter_and_shorter_steps_inside_of_the_ball():
    """Of radius 1/2, with gradients of length 4: the second one is cut, and the third step is."""
    learner = LEARNERS["ogd"](1, 0.5, 4.0, None)
    points = [learner.step(np.array([slope])).point[0] for slope in (1.0, -100.0, -4.0)]
    assert points == pytest.approx([-0.25, -0.25 + np.sqrt(0.5), 0.5])
