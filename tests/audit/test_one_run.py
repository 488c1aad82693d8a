"""Audits of one run: the bound holds for randomised response, and finds too little noise."""

import numpy as np
import pytest
from scipy import stats

from skpriv.audit import audit_one_run, one_run_bound
from skpriv.audit._one_run import _best
from skpriv.bandits import EpochGreedy, LinUCB
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import Budget

M = 60
ROUNDS = np.repeat(np.eye(M)[:, None, :], 2, axis=1), np.ones((M, 2))


def _policies(epsilon, delta=1e-6):
    oracle = SSPRegressor(
        data_norm=1.0,
        bounds_y=(-1, 1),
        epsilon=epsilon,
        delta=delta,
        fit_intercept=False,
        random_state=0,
    )
    sums = {"epsilon": epsilon, "delta": delta, "update_every": 10, "random_state": 0}
    return {
        "central": lambda: LinUCB(privacy="central", horizon=M, **sums),
        "local": lambda: LinUCB(privacy="local", **sums),
        "epochs": lambda: EpochGreedy(oracle=oracle, schedule=(20, 20, 20), random_state=0),
    }


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_is_seldom_above_randomised_response(epsilon):
    """Guesses that are right with the chance of randomised response: exact, by their law."""
    counts = np.arange(101)
    law = stats.binom(100, 1.0 / (1.0 + np.exp(-epsilon)))
    bounds = np.array([one_run_bound(100, 100, int(v), 0.0).epsilon for v in counts])
    assert law.pmf(counts)[bounds > epsilon].sum() <= 0.05
    assert law.pmf(counts) @ bounds >= {0.5: 0.25, 2.0: 0.6}[epsilon] * epsilon


def test_delta_and_canaries_that_are_not_guessed_weaken_the_bound():
    plain = one_run_bound(100, 100, 95, 0.0).epsilon
    assert one_run_bound(100, 100, 95, 1e-4).epsilon < plain
    assert one_run_bound(10_000, 100, 95, 1e-5).epsilon < plain
    assert one_run_bound(100, 10, 5, 0.0).epsilon == 0.0
    with pytest.raises(ValueError, match="must not decrease"):
        one_run_bound(10, 20, 5, 0.0)


@pytest.mark.parametrize("name", _policies(1.0))
def test_honest_policies_stay_within_their_claim(name):
    for epsilon in (1.0, 8.0, 30.0):
        found = audit_one_run(_policies(epsilon)[name], *ROUNDS, np.arange(M), delta=1e-6)
        assert found.epsilon <= epsilon


def test_little_noise_is_seen_in_one_run():
    found = audit_one_run(_policies(30.0)["epochs"], *ROUNDS, np.arange(M), delta=1e-6)
    assert found.epsilon > 1.0 and "guesses right" in str(found)
    mu = 2.0 * Budget(1.0, 1e-6).mu
    assert Budget.from_mu(mu, 1e-6).epsilon < found.epsilon  # an epsilon of 1 would be refuted


def test_only_some_users_are_canaries():
    found = audit_one_run(
        _policies(30.0)["epochs"], *ROUNDS, np.arange(0, M, 2), delta=1e-6, random_state=3
    )
    assert found.canaries == M // 2 and found.epsilon > 0.3


def test_of_several_numbers_of_guesses_the_best_keeps_the_level():
    """Guesses that are coins: some bound is above 0 in a twentieth of the runs at most.

    Without the union over the numbers of guesses it is so in a tenth.
    """
    rng, runs = np.random.RandomState(0), 500
    guesses = rng.uniform(size=(runs, 200)) < 0.5
    found = sum(_best(right, 0.0, 0.95).epsilon > 0.0 for right in guesses)
    assert found <= stats.binom.isf(1e-3, runs, 0.05)
    assert found > 0.01 * runs
