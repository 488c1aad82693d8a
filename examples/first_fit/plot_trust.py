"""
Who is trusted, and what it costs
=================================

The same regression under all five privacy models. With a curator the privacy error falls like 1/n;
if all users add the noise together, by secure aggregation, it is the same, and nobody is trusted
with rows. If every user hides the own report it falls like the root of 1/n, and a
shuffler is between the two.
"""

# %%
# Rows lie in the unit ball and targets in [-1, 1]: the bounds are public, and the data are
# made here.

import matplotlib.pyplot as plt
import numpy as np

from skpriv.linear_model import SSPRegressor

SIZES = [1_000, 3_000, 10_000, 30_000, 100_000]
MODELS = ["local", "shuffle", "aggregate", "central", "none"]
theta = np.array([0.6, -0.4, 0.2])


def sample(n, rng):
    X = rng.normal(size=(n, 3))
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    mean = X @ theta
    return X, np.where(rng.uniform(size=n) < (1 + mean) / 2, 1.0, -1.0)


def error(privacy, n, seed):
    X, y = sample(n, np.random.default_rng(seed))
    model = SSPRegressor(
        epsilon=1.0,
        delta=1e-6,
        privacy=privacy,
        data_norm=1.0,
        bounds_y=(-1, 1),
        random_state=1_000 + 10 * MODELS.index(privacy) + seed,
    )
    grid = sample(2_000, np.random.default_rng(99))[0]
    return np.abs(model.fit(X, y).predict(grid) - grid @ theta).mean()


# %%
# Means of ten runs, with their standard errors.

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for privacy in MODELS:
    errors = np.array([[error(privacy, n, seed) for seed in range(10)] for n in SIZES])
    spread = errors.std(axis=1, ddof=1) / np.sqrt(errors.shape[1])
    ax.errorbar(SIZES, errors.mean(axis=1), spread, marker="o", label=privacy)
ax.set(xscale="log", yscale="log", xlabel="records", ylabel="mean absolute error")
ax.legend(title="privacy")
plt.show()
