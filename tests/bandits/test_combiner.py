import pickle
from concurrent.futures import ThreadPoolExecutor
from math import inf, sqrt
from time import sleep

import numpy as np
import pytest
from registry.refusals import uncharged
from registry.worlds import Noting, play_signs
from sklearn.base import clone

from skpriv import Budget, BudgetAccountant
from skpriv.bandits import (
    FLIPHAT, BanditCombiner, LinearEnvironment, LinUCB, OnlineLinUCB, RandomPolicy, simulate,
)  # fmt: skip
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import SSPRegressor

THETA = np.array([0.9, 0.0, 0.0])


def play(policy, n, seed=0, block=None):
    contexts = np.random.RandomState(seed).normal(size=(n, 5, 3))
    contexts /= np.linalg.norm(contexts, axis=-1, keepdims=True)
    return play_signs(policy, contexts, contexts @ THETA, seed + 1000, block)


@pytest.mark.parametrize("epsilon", [inf, 8.0])
def test_the_better_policy_is_found(epsilon):
    """It is played in 1,500 to 1,900 of 2,000 rounds with sixteen seeds; a third is chance.

    With these contexts its regret after n rounds is at most 3.8 sqrt(n), so that its claim holds.
    """
    first, last = (RandomPolicy(random_state=seed) for seed in (0, 1))
    policies = [first, LinUCB(privacy="none", random_state=0), last]
    bounds = [(1.0, 0.5), (4.0, 0.5), (1.0, 0.5)]
    run = {"horizon": 2000, "update_every": 50, "random_state": 0}
    combiner = BanditCombiner(policies, epsilon=epsilon, regret_bounds=bounds, **run)
    play(combiner, 2000)
    assert combiner._counts[1] > 1200 and combiner.active_.all()
    assert combiner._counts.sum() == combiner.n_rounds_ == 2000
    assert combiner.policies_[1].n_rounds_ == combiner._counts[1]


def test_deviations_fail_with_the_probability_that_is_stated():
    """Two sides, all policies and all times: 2 K sum exp(-u) = failure, u of the tail of a sum."""
    combiner = BanditCombiner(policies=[RandomPolicy(), RandomPolicy()], confidence_level=0.9)
    combiner.act(np.ones((1, 2, 2)))
    combiner._bounds[:, 0] = 0.0
    n, variance = np.arange(1, 4001), 1.0 + combiner._streams[0].noise.scale ** 2
    claims = []
    for combiner._counts[0] in n:
        claims.append(combiner._claims()[0])
    fails = 2.0 * 2.0 * np.exp(-(np.array(claims) ** 2) / (2.0 * variance * n)).sum()
    assert fails == pytest.approx(0.1, rel=1e-3)


def test_guarantee_composes_the_two_reports():
    policies = [OnlineLinUCB(epsilon=epsilon, random_state=0) for epsilon in (1.0, 2.0)]
    combiner = BanditCombiner(policies=policies, epsilon=0.5, horizon=1000, random_state=0)
    mu = sqrt(Budget(2.0, 1e-6).mu ** 2 + Budget(0.5, 1e-6).mu ** 2)
    whole = Budget.from_mu(mu, 1e-6)
    with BudgetAccountant(whole.epsilon, 1e-6) as accountant:
        play(combiner, 200)
        assert {name for name, *_ in accountant.charges} == {"BanditCombiner", "OnlineLinUCB"}
        assert accountant.spent.epsilon == pytest.approx(whole.epsilon, rel=1e-6)
    assert combiner.guarantee.epsilon == pytest.approx(whole.epsilon)
    assert combiner.guarantee.delta == 1e-6 and combiner.guarantee.model == "local"
    assert not BanditCombiner(policies=[LinUCB(privacy="none")]).guarantee.private


@pytest.mark.parametrize(
    "policy, kind",
    [(LinUCB(privacy="shuffle", epsilon=2.0), "shuffle"), (FLIPHAT(epsilon=2.0), "central")],
)
def test_what_is_not_gaussian_is_added_up_and_not_called_local(policy, kind):
    """Neither amplification by shuffling nor noisy selection is Gaussian DP."""
    combiner = BanditCombiner(policies=[policy, RandomPolicy()], epsilon=0.5, random_state=0)
    promised = f"Guarantee(epsilon=2.5, delta=2e-06, model='{kind}'"
    assert repr(combiner.guarantee).startswith(promised)


def test_actions_do_not_depend_on_how_updates_are_cut_and_survive_pickling():
    learner = OnlineLinUCB(epsilon=5.0, horizon=2000, random_state=0)
    policies = [learner, RandomPolicy(random_state=0)]
    first = BanditCombiner(policies=policies, epsilon=5.0, horizon=2000, random_state=0)
    second = clone(first)
    play(first, 200, block=10)
    play(second, 200, block=5)
    assert first.choice_ == second.choice_
    np.testing.assert_array_equal(first._counts, second._counts)
    other = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(play(first, 100, seed=10), play(other, 100, seed=10))


@pytest.mark.parametrize("wrong", [SSPRegressor(), LinUCB, "LinUCB", None])
def test_what_is_no_policy_is_named(wrong):
    with pytest.raises(TypeError, match="policies must hold policies"):
        BanditCombiner([RandomPolicy(), wrong]).act(np.ones((1, 2, 2)))


def test_targets_are_taken_off_the_upper_bounds():
    """A policy that may cost much regret comes after one of the same rewards that may not."""
    for targets, choice in (([500.0, 0.0], 1), ([0.0, 500.0], 0)):
        policies = [RandomPolicy(), RandomPolicy()]
        combiner = BanditCombiner(policies=policies, targets=targets, horizon=1000, random_state=0)
        combiner.act(np.ones((1, 2, 2)))
        combiner._counts[:], combiner._totals[:] = 100.0, 10.0
        combiner._choose_policy()
        assert combiner.choice_ == choice


def test_a_budget_without_room_for_gaussian_noise_is_not_called_perfect():
    """Before the first round no less is said, either."""
    with pytest.raises(PrivacyError, match="no room for Gaussian noise"):
        _ = BanditCombiner([RandomPolicy()], epsilon=1.0, delta=0.0).guarantee


@pytest.mark.parametrize("n", [1, 5, 30])
def test_no_policy_is_given_up_for_bad_luck_that_its_claim_allows(n):
    """One with a mean of .6 and the least noisy rewards of the claim, beside one known as .5."""
    policies = [RandomPolicy(), RandomPolicy()]
    combiner = BanditCombiner(policies, epsilon=1.0, targets=[0.0, 0.0], random_state=0)
    combiner.act(np.ones((1, 2, 2)))
    combiner._counts[:] = n, 1e9
    combiner._totals[:] = 0.6 * n - combiner._claims()[0], 0.5e9
    assert combiner._totals[0] < -0.5 * n
    combiner._choose_policy()
    assert combiner.choice_ == 0


@pytest.mark.parametrize("told", [True, False])
def test_a_late_reward_belongs_to_the_policy_that_acted(told):
    policies = [Noting(random_state=0), Noting(random_state=1)]
    run = {"epsilon": 8.0, "horizon": 400, "update_every": 5, "random_state": 0}
    combiner = BanditCombiner(policies, **run)
    waiting, by = [], {}
    for k in range(200):
        contexts = np.full((1, 2, 2), float(k))
        action = combiner.act(contexts)
        by[float(k)] = int(combiner.players_[0])
        waiting.append((contexts, action, combiner.players_))
        if k >= 12:  # every reward is twelve rounds late
            old, chosen, players = waiting.pop(0)
            combiner.update(old, chosen, [0.1], players=players if told else None)
    assert set(by.values()) == {0, 1}
    for index, policy in enumerate(combiner.policies_):
        assert policy.seen and {by[k] for k, _ in policy.seen} == {index}
        assert len(policy.seen) >= combiner._counts[index]
    with pytest.raises(ValueError, match="players"):
        combiner.update(*waiting[0][:2], [0.1], players=[2])


def test_an_update_has_its_own_players_while_another_thread_waits(monkeypatch):
    combiner = BanditCombiner([RandomPolicy(), RandomPolicy()], random_state=0)
    pay, given = combiner._pay, (np.ones((3, 2, 2)), [0, 0, 0], np.zeros(3))
    monkeypatch.setattr(combiner, "_pay", lambda n: (sleep(0.2), pay(n)))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda player: combiner.update(*given, players=[player] * 3), (0, 1)))
    assert list(combiner._block) == [3, 3]


def test_a_seed_of_a_simulation_is_one_of_the_policies_too():
    policies, env = [BanditCombiner([RandomPolicy(), OnlineLinUCB()])], LinearEnvironment()
    runs = [simulate(policies, env, horizon=50, random_state=0).rewards for _ in range(2)]
    np.testing.assert_array_equal(*runs)


def test_policies_that_cannot_begin_are_refused_before_the_charge():
    with uncharged("must have shape"):
        BanditCombiner([RandomPolicy(), LinUCB(start=np.zeros(2))]).act(np.zeros((2, 4, 3)))
