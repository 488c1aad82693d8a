"""
Does an interval hold?
======================

A certified interval must contain the regression function with at least its level, whatever the
design; an asymptotic one is narrower and approaches the level. Here the truth is known, so
that both
can be counted, on a design with one rare direction.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpriv.linear_model import ReweightedRegressor
from skpriv.metrics import interval_coverage_score, interval_mean_width

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]
theta = np.array([0.5, -0.5, 0.5])


def sample(n, rng):
    X = rng.uniform(-1, 1, size=(n, 3)) / np.sqrt(3.0)
    X[:, 2] *= rng.uniform(size=n) < 0.05  # rarely anything but zero
    return X


# %%
# Ten data sets, with noise of their own; coverage is counted over rows.

coverage = {"certified": np.zeros((10, len(LEVELS))), "asymptotic": np.zeros((10, len(LEVELS)))}
width = {method: np.zeros((10, len(LEVELS))) for method in coverage}
for seed in range(10):
    rng = np.random.default_rng(seed)
    X = sample(50_000, rng)
    y = X @ theta + rng.uniform(-0.3, 0.3, size=len(X))
    model = ReweightedRegressor(
        epsilon=1.0, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False,
        random_state=100 + seed,
    ).fit(X, y)  # fmt: skip
    grid = sample(1_000, rng)
    for method in coverage:
        for j, level in enumerate(LEVELS):
            low, high = model.confidence_interval(grid, confidence_level=level, method=method)
            coverage[method][seed, j] = interval_coverage_score(grid @ theta, low, high)
            width[method][seed, j] = interval_mean_width(low, high)

# %%
# Above the diagonal an interval is wider than it needs to be; below it, it does not hold.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot([0.5, 1], [0.5, 1], "k:", label="nominal")
for method in coverage:
    left.plot(LEVELS, coverage[method].mean(axis=0), marker="o", label=method)
    right.plot(LEVELS, width[method].mean(axis=0), marker="o", label=method)
left.set(xlabel="confidence level", ylabel="coverage")
right.set(xlabel="confidence level", ylabel="mean width", ylim=(0, None))
left.legend()
plt.show()
