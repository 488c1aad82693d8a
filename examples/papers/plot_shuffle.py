"""
Hidden among the others
=======================

A shuffler that drops names lets each of n users add less noise, since the others hide the report.
The picture shows the Gaussian mu that a report may have when all shuffled reports together are
(epsilon, 1e-6) private: the noise of a report is in proportion to 1 / mu.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpriv import Budget
from skpriv.linear_model import SSPRegressor

rng = np.random.default_rng(0)
users = [1_000, 10_000, 100_000]


def noise_of_report(privacy, epsilon, n):
    """Scale of the noise of one report, read off the report of a fit."""
    X, y = np.zeros((n, 1)), np.zeros(n)
    model = SSPRegressor(
        epsilon=epsilon, delta=1e-6, privacy=privacy, data_norm=1.0, bounds_y=(-1, 1),
        random_state=0,
    ).fit(X, y)  # fmt: skip
    row = model.privacy_report_.rows[0]
    return row.scale / np.sqrt(n)


figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for epsilon in (0.5, 1.0, 4.0):
    local = noise_of_report("local", epsilon, 1_000)
    mus = [Budget(epsilon, 1e-6).mu * local / noise_of_report("shuffle", epsilon, n) for n in users]
    ax.plot([1, *users], [Budget(epsilon, 1e-6).mu, *mus], marker="o", label=f"{epsilon:g}")
ax.set(xscale="symlog", xlabel="users who are shuffled together", ylabel="mu of a report")
ax.legend(title="epsilon")
plt.show()
