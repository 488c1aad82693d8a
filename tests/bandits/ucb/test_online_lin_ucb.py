import pickle
from math import sqrt

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skpriv import BudgetAccountant
from skpriv.bandits import OnlineLinUCB
from skpriv.bandits._ucb._region import within
from skpriv.bandits._ucb._online_reports import PairQuery, PairReports, difference
from skpriv._estimation._public_maps import Scaling
from skpriv.privacy import Budget, Numbering

SCALING = Scaling(1.0, (-1.0, 1.0), False, 3)
THETA = np.array([0.6, -0.5, 0.3])


def play(policy, n, seed=0, block=None):
    rng, regret = np.random.RandomState(seed), 0.0
    while n > 0:
        size = min(n, block or policy.rounds_until_update_)
        contexts = rng.normal(size=(size, 5, 3)) / 3.0
        means = np.clip(contexts @ THETA, -1.0, 1.0)
        actions = policy.act(contexts)
        mean = means[np.arange(size), actions]
        rewards = np.where(rng.uniform(-1.0, 1.0, size=size) < mean, 1.0, -1.0)
        policy.update(contexts, actions, rewards)
        regret += (means.max(axis=1) - mean).sum()
        n -= size
    return regret


@pytest.mark.parametrize("learner", ["maler", "ogd"])
@pytest.mark.parametrize("mode", ["sums", "faithful"])
@pytest.mark.parametrize("width", ["certified", "asymptotic"])
def test_learns_when_there_is_no_noise(learner, mode, width):
    policy = OnlineLinUCB(
        epsilon=np.inf, learner=learner, mode=mode, width=width, horizon=4000, random_state=0
    )
    early, late = play(policy, 2000), play(policy, 2000, seed=1)
    assert late < (0.3 if width == "asymptotic" else 1.0) * 2000 * 0.2
    assert early >= 0.0 and not policy.guarantee.private


@pytest.mark.parametrize("mode", ["sums", "faithful"])
@pytest.mark.parametrize("anytime", [False, True])
def test_pickled_in_mid_phase_and_charged_once(mode, anytime):
    policy = OnlineLinUCB(
        epsilon=3.0, mode=mode, anytime=anytime, update_every=20, horizon=200, random_state=0
    )
    with BudgetAccountant(3.0, 1e-6) as accountant:
        play(policy, 730, block=10)
        assert accountant.spent.epsilon == pytest.approx(3.0, rel=1e-6)
        other = pickle.loads(pickle.dumps(policy))
        assert play(policy, 300, seed=2) == play(other, 300, seed=2)
        assert accountant.spent.epsilon == pytest.approx(3.0, rel=1e-6)
    if anytime:
        assert policy._phase == 2  # 8 + 16 of the 51 reads, then 32


def test_joint_noise_of_the_faithful_reports():
    """Both the features and the reward can change at once: the published noise forgets it."""
    rng = np.random.RandomState(0)
    x = rng.normal(size=(2000, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    pairs = np.c_[x, np.sign(rng.normal(size=2000))]
    moved = np.linalg.norm(pairs[:1000] - pairs[1000:], axis=1).max()
    sensitivity = PairQuery(SCALING).sensitivity
    assert 0.9 * sensitivity < moved <= sensitivity
    reports = PairReports(
        SCALING, 10, Budget(1.0, 1e-6), "pairs", np.random.RandomState(0), Numbering()
    )
    assert reports.noise.scale == pytest.approx(2.0 * sqrt(2.0) / Budget(1.0, 1e-6).mu, rel=1e-5)


def test_faithful_sums_are_unbiased_with_the_stated_scales(global_random_seed):
    x = np.tile([[0.6, 0.8, 0.0]], (500, 1))
    rng = np.random.RandomState(global_random_seed)
    errors, designs = [], []
    for _ in range(400):
        reports = PairReports(SCALING, 500, Budget(4.0, 1e-3), "pairs", rng, Numbering())
        (equations,) = reports.take(x, np.ones(500))
        errors.append(equations.target - 500.0 * x[0])
        designs.append(equations.design - 500.0 * np.outer(x[0], x[0]))
    errors, designs = np.array(errors), np.array(designs)
    standard = errors.mean(axis=0) / (errors.std(axis=0) / 20.0)
    assert (np.abs(standard) < stats.norm.isf(1e-5)).all()
    trace = np.einsum("nij,nij->n", designs, designs).mean()
    assert equations.target_scale == pytest.approx(sqrt((errors**2).mean()), rel=0.1)
    assert equations.design_scale == pytest.approx(sqrt(trace / 6.0), rel=0.15)


def test_certified_bound_of_the_faithful_residual(global_random_seed):
    rng, misses, small = np.random.RandomState(global_random_seed), 0, 0
    theta = THETA / np.linalg.norm(THETA)
    for _ in range(30):
        x = rng.normal(size=(2000, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        r = np.where(rng.uniform(-1.0, 1.0, size=2000) < x @ theta, 1.0, -1.0)
        reports = PairReports(SCALING, 2000, Budget(4.0, 1e-6), "pairs", rng, Numbering())
        (equations,) = reports.take(x, r)
        residual = np.linalg.norm(equations.target - equations.design @ theta)
        bound = reports.residual_bound(2000, 1.0, 0.05)
        misses += residual > bound
        small += residual > bound / 20.0
        assert bound < 8.0 * residual + 40.0 * sqrt(2000) * reports.noise.scale**2
        region = within(equations, bound, 1.0)
        arms = np.vstack([np.eye(3), -np.eye(3)])
        assert residual > bound or (arms @ theta <= region.upper(arms, 1.0) + 1e-9).all()
    # Of a certificate for all theta and times: residuals are an eighth of it, and .05 in one of 25.
    assert misses == 0 and small >= 20


def test_difference_of_equations():
    rng = np.random.RandomState(0)
    reports = PairReports(SCALING, 10, Budget(4.0, 1e-6), "pairs", rng, Numbering())
    first, second = reports.take(np.ones((20, 3)) / 2.0, np.ones(20))
    block = difference(second, first)
    np.testing.assert_allclose(block.design + first.design, second.design)
    assert block.n == 10
    assert block.design_scale == pytest.approx(first.design_scale)


def test_gradients_are_taken_at_the_public_prediction():
    """The same reports give the same learner, whatever contexts the users see afterwards."""
    policies = [OnlineLinUCB(epsilon=2.0, horizon=200, random_state=0) for _ in "ab"]
    rng = np.random.RandomState(0)
    contexts = rng.normal(size=(40, 5, 3)) / 3.0
    for policy, others in zip(policies, (contexts, -contexts)):
        policy.act(contexts)
        actions = np.zeros(40, dtype=int)
        seen = others.copy()
        seen[:, 0] = contexts[:, 0]
        policy.update(seen, actions, np.ones(40))
    np.testing.assert_array_equal(policies[0]._learner.point, policies[1]._learner.point)


def test_clone_and_parameters():
    policy = clone(OnlineLinUCB(learner="ogd", mode="faithful"))
    assert policy.learner == "ogd" and "privacy" not in policy.get_params()
    with pytest.raises(ValueError, match="learner"):
        OnlineLinUCB(learner="newton").act(np.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="delta"):
        OnlineLinUCB(delta=0.0).act(np.ones((1, 2, 3)))


def test_copies_repeat_the_reports_that_users_sent():
    """However the rounds are cut: a user's report is drawn once."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(30, 3)) / 3.0, np.zeros(30)
    reports = PairReports(SCALING, 10, Budget(1.0, 1e-6), "pairs", None, Numbering())
    copies = [pickle.loads(pickle.dumps(reports)) for _ in range(3)]
    for size, each in zip((30, 7, 10), copies, strict=True):
        for start in range(0, 30, size):
            list(each.take(X[start : start + size], y[start : start + size]))
    for each in copies[1:]:
        np.testing.assert_allclose(each._design, copies[0]._design, atol=1e-8)
        np.testing.assert_allclose(each._target, copies[0]._target, atol=1e-8)
