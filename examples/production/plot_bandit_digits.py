"""
Reading digits with a private bandit
====================================

The policy is only told whether its guess was right.
Images have 4 x 4 pixels: less to hide. The 1,797 images are shown several times, and every visit
counts as another user.
"""

import numpy as np
from sklearn.datasets import load_digits

from skpriv.bandits import (
    EpochGreedy,
    RandomPolicy,
    RegretDisplay,
    SquareCB,
    SupervisedEnvironment,
    simulate,
)
from skpriv.linear_model import SSPRegressor

images, labels = load_digits(return_X_y=True)
rows = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
# Pixels lie in [0, 16], so that the norm of 16 of them is at most 64; then a constant beside them.
rows = np.column_stack([rows / 64.0, np.ones(len(rows))]) / np.sqrt(2.0)
env = SupervisedEnvironment(rows, labels, blocks=False)

digits = {"shared": False, "n_actions": 10}
policies = {"random": RandomPolicy(**digits)}
for epsilon in (1.0, 10.0, float("inf")):
    oracle = SSPRegressor(
        data_norm=1.0, epsilon=epsilon, delta=1e-6, bounds_y=(0, 1), fit_intercept=False
    )
    policies[f"SquareCB, epsilon {epsilon:g}"] = SquareCB(oracle=oracle, **digits)
    policies[f"EpochGreedy, epsilon {epsilon:g}"] = EpochGreedy(oracle=oracle, **digits)
result = simulate(policies, env, 10_000, n_runs=1, random_state=0, verbose=1, n_records=500)

display = RegretDisplay.from_result(result)
for name, regret in zip(result.names, result.regret_[:, :, -1].mean(axis=1), strict=True):
    print(f"{name:<24}{regret:8.0f}")
