"""
Odds ratios: who comes back to the hospital?
============================================

A logistic regression of a yes-or-no outcome gives odds ratios with intervals, which count privacy
noise beside sampling. The same fit without privacy stands beside it.
"""

# %%
# The table is made here, so that its odds ratios are known: 1.5 for ten years of age, 2 for people
# who live alone, .6 for a nurse's call after the stay, and 1 for the day of the week.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skpriv.inspection import inference
from skpriv.linear_model import LogisticRegression

rng = np.random.default_rng(0)
n = 30_000
table = pd.DataFrame(
    {
        "decades": rng.normal(6.5, 1.2, n).clip(2, 10),
        "alone": rng.random(n) < 0.3,
        "called": rng.random(n) < 0.5,
        "weekday": rng.integers(7, size=n),
    }
).astype(float)
truth = pd.Series({"decades": 1.5, "alone": 2.0, "called": 0.6, "weekday": 1.0})
log_odds = (table * np.log(truth)).sum(axis=1) - 4.4
returned = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), "yes", "no")

# %%
# Ranges and classes are public, from what the columns mean. A label that is none of the classes
# would count as a row of zeros, and nothing would tell of it.

settings = {
    "classes": ("no", "yes"),
    "bounds_X": {"decades": (0, 12), "alone": (0, 1), "called": (0, 1), "weekday": (0, 6)},
}
model = LogisticRegression(epsilon=1.0, delta=1e-6, random_state=0, **settings)
private = inference(model.fit(table, returned))
exact = inference(LogisticRegression(privacy="none", **settings).fit(table, returned))
print(private)

# %%
# Intervals of odds ratios: those of a fit without privacy are somewhat narrower. Crosses are the
# truth.

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
places = np.arange(len(truth))
for found, shift, label in ((private, 0.12, "epsilon 1"), (exact, -0.12, "no privacy")):
    low, middle, high = (getattr(found, name)[:-1] for name in ("ratio_low", "ratio", "ratio_high"))
    ax.errorbar(middle, places + shift, xerr=(middle - low, high - middle), fmt="o", label=label)
ax.plot(truth, places, "kx", label="truth")
ax.axvline(1.0, color="0.6", linestyle=":")
ax.set(xscale="log", xlabel="odds ratio", yticks=places, yticklabels=truth.index)
ax.set_xticks([0.5, 1.0, 2.0], ["0.5", "1", "2"])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# How many percentage points is that? An average marginal effect is a mean difference of two
# probabilities over people. The people are made up here, and so public: a mean over the table would
# be another release. To first order it is a contrast of the coefficients.

people = pd.DataFrame({"decades": np.linspace(5, 8, 31), "alone": 0.0, "called": 0.5, "weekday": 3})
effect, slope = 0.0, 0.0
for value, sign in ((1.0, 1), (0.0, -1)):
    design = np.column_stack([people.assign(alone=value), np.ones(len(people))])
    probability = 1 / (1 + np.exp(-design @ private.estimate))
    effect += sign * probability.mean()
    slope += sign * (probability * (1 - probability)) @ design / len(design)
error = private.contrast(slope).std_error[0]
print(f"living alone: {100 * effect:.1f} +- {196 * error:.1f} percentage points")

# %%
# Three classes have one joint fit. Where people went after the stay depends on age and on whether
# they live alone; each class has its own coefficients, and a contrast compares two classes.

utility = np.column_stack(
    [
        np.zeros(n),
        0.6 * table["decades"] - 4.0,
        0.3 * table["decades"] + 1.0 * table["alone"] - 3.0,
    ]
)
likely = np.exp(utility) / np.exp(utility).sum(axis=1, keepdims=True)
where = (likely.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
classes = ("home", "care", "clinic")
model = LogisticRegression(
    classes=classes, bounds_X=settings["bounds_X"], epsilon=1.0, delta=1e-6, random_state=0
).fit(table, np.array(classes)[where])
print(inference(model).contrast({"care: decades": 1.0, "home: decades": -1.0}))  # truth .6
print(inference(model).contrast({"clinic: alone": 1.0, "home: alone": -1.0}))  # truth 1

# %%
# Intervals of the three probabilities by age, for people who live alone, and the true curves.

grid = pd.DataFrame(
    {"decades": np.linspace(2, 10, 60), "alone": 1.0, "called": 0.5, "weekday": 3.0}
)
low, high = model.confidence_interval(grid)
age = grid["decades"]
curves = np.exp(np.column_stack([0.0 * age, 0.6 * age - 4.0, 0.3 * age + 1.0 - 3.0]))
curves /= curves.sum(axis=1, keepdims=True)
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for k, name in enumerate(classes):
    ax.fill_between(10 * grid["decades"], low[:, k], high[:, k], alpha=0.5, label=name)
    ax.plot(10 * grid["decades"], curves[:, k], "k:", linewidth=1)
ax.set(xlabel="age", ylabel="probability", ylim=(0, 1))
ax.legend()
plt.show()
