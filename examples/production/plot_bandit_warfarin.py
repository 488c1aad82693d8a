"""
Dosing warfarin with a private bandit
=====================================

Patients come one by one, and get a low, medium or high dose; the reward is 1 if a physician found
that dose in the end, by the public cut-offs of 21 and 49 mg a week.
"""

import numpy as np

from skpriv.bandits import (
    LinUCB,
    RandomPolicy,
    RegretDisplay,
    SquareCB,
    SupervisedEnvironment,
    simulate,
)
from skpriv.datasets import load_warfarin
from skpriv.linear_model import SSPRegressor
from skpriv.preprocessing import BoundsScaler

warfarin = load_warfarin()
rows = BoundsScaler(warfarin.bounds, exclusive=warfarin.exclusive).fit_transform(warfarin.data)
# A constant beside the rows of the unit ball, and both in the unit ball again.
rows = np.column_stack([rows, np.ones(len(rows))]) / np.sqrt(2.0)
dose = np.asarray(warfarin.target)
env = SupervisedEnvironment(rows, (dose >= 21.0) + 1 * (dose > 49.0), blocks=False)

doses = {"shared": False, "n_actions": 3}
policies = {"random": RandomPolicy(**doses)}
for epsilon in (1.0, 10.0):
    # With a constant among the features, the middle of the rewards is the best offset.
    policies[f"LinUCB, epsilon {epsilon:g}"] = LinUCB(
        epsilon=epsilon, delta=1e-6, bounds_y=(0, 1), reward_offset=0.5, **doses
    )
    oracle = SSPRegressor(
        data_norm=1.0, epsilon=epsilon, delta=1e-6, bounds_y=(0, 1), fit_intercept=False
    )
    policies[f"SquareCB, epsilon {epsilon:g}"] = SquareCB(oracle=oracle, **doses)
policies["LinUCB, not private"] = LinUCB(privacy="none", bounds_y=(0, 1), update_every=50, **doses)
result = simulate(policies, env, len(rows), n_runs=2, random_state=0, verbose=1)

display = RegretDisplay.from_result(result)
# Most patients need the medium dose: to play it always is not easy to beat.
medium = np.mean((dose < 21.0) | (dose > 49.0)) * result.rounds
display.ax_.plot(result.rounds, medium, "k--", label="always medium")
display.ax_.legend()
for name, regret in zip(result.names, result.regret_[:, :, -1].mean(axis=1), strict=True):
    print(f"{name:<22}{regret:8.0f}")
print(f"{'always medium':<22}{medium[-1]:8.0f}")
