"""An action that comes later is tried, and played once it is known to be the best."""

import numpy as np
import pytest
from registry.estimators import ssp

from skpriv.bandits import ActionElimination, EpochGreedy, LinSquareCB, LinUCB, SquareCB
from skpriv.linear_model import LinearRegression, LogisticRegression

COMMON = {"data_norm": 1.5, "epsilon": 2.0}
BOUNDED = {**COMMON, "bounds_y": (0.0, 1.0)}
ACTIONS = {"shared": False, "n_actions": 4}


def of_epochs(kind, oracle, **given):
    return lambda seed: kind(
        oracle(random_state=seed, delta=1e-6, **given), random_state=seed, **ACTIONS
    )


POLICIES = {
    "lin_ucb": lambda seed: LinUCB(random_state=seed, **BOUNDED, **ACTIONS),
    "lin_square_cb": lambda seed: LinSquareCB(random_state=seed, **BOUNDED, **ACTIONS),
    "square_cb": of_epochs(SquareCB, ssp, **BOUNDED),
    "square_cb_lines": of_epochs(SquareCB, LinearRegression, **BOUNDED),
    "square_cb_logistic": of_epochs(SquareCB, LogisticRegression, **COMMON, classes=[0, 1]),
    "greedy": of_epochs(EpochGreedy, ssp, **BOUNDED),
    "greedy_lines": of_epochs(EpochGreedy, LinearRegression, **BOUNDED),
    "elimination": of_epochs(ActionElimination, ssp, **BOUNDED),
}
MEANS = np.array([0.5, 0.45, 0.4, 0.8])
START, STOP, LAST = 2_000, 7_000, 800


@pytest.mark.parametrize("name", POLICIES)
def test_a_better_action_that_comes_later_is_played(name):
    """The share of its plays in the last rounds: half of them at least.

    It is the mean of three runs, and of one of the policies of sums, which have .99 in each.

    Actions that nobody tries would have shares of some hundredths, as they had when predictions of
    `SquareCB` had no bonus, or when the least prior was that of rows with the constant.
    """
    shares = []
    for seed in range(1 if name.startswith("lin") else 3):
        policy = POLICIES[name](seed)
        rng = np.random.default_rng(seed)
        plays = []
        while len(plays) < STOP:
            until = START if len(plays) < START else STOP
            n = min(policy.rounds_until_update_, until - len(plays))
            contexts = np.ones((n, 1))
            there = np.array([True, True, True, len(plays) >= START])
            actions = policy.act(contexts, available=there)
            policy.update(contexts, actions, 1.0 * (rng.random(n) < MEANS[actions]))
            plays.extend(actions.tolist())
        shares.append(np.mean(np.array(plays[-LAST:]) == 3))
    assert np.mean(shares) > 0.5, shares
