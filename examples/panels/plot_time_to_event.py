"""
Time to an event: who is still at home after a year?
====================================================

Time until an event, with people who leave the study before it, needs no model of its own: make a
row of each month in which a person was at risk, and fit a logistic regression of whether the
event came in that month (a discrete hazard). All rows of a person are protected together.
"""

# %%
# The table is made here, so that its hazard is known. Each person is followed for at most twelve
# months, and some leave earlier (they are censored): the months before count, and what came later
# is not known. As in each analysis of this kind, leaving must have nothing to do with the event.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skpriv.inspection import inference
from skpriv.linear_model import LogisticRegression

MONTHS = 12
rng = np.random.default_rng(0)
n = 4_000
alone = rng.random(n) < 0.4
month = np.arange(1, MONTHS + 1)
log_odds = -2.5 - 0.08 * month + 0.8 * alone[:, None]
comes = rng.random((n, MONTHS)) < 1 / (1 + np.exp(-log_odds))
event = np.where(comes.any(axis=1), comes.argmax(axis=1) + 1, MONTHS + 1)
people = pd.DataFrame({"alone": alone.astype(float), "event": event})
people["left"] = rng.integers(3, 25, size=n).clip(max=MONTHS)  # the last month that is known

# %%
# One row for each person and month at risk. How many months a person has tells when the event
# came, so that the months of a person must be protected together: ``groups``, and at most twelve
# rows of each, which is the public length of the study.

last = people[["event", "left"]].min(axis=1)
rows = people.loc[people.index.repeat(last)]
rows = rows.assign(month=rows.groupby(level=0).cumcount() + 1.0)
returned = (rows["month"] == rows["event"]).to_numpy()
features = rows[["alone", "month"]]

settings = {"classes": (False, True), "bounds_X": {"alone": (0, 1), "month": (1, MONTHS)}}
model = LogisticRegression(epsilon=2.0, delta=1e-6, random_state=0, **settings)
model.fit(features, returned, groups=rows.index, max_rows_per_group=MONTHS)
private = inference(model)
print(private)  # the truth: odds ratios of 2.23 and 0.92, log-odds of -2.5

# %%
# 4,000 people are enough for two curves that differ clearly: bands are at most .12 high. A survival
# curve is the product of one minus the hazards. Its band comes from the covariance of the
# coefficients, which counts sampling, privacy noise, and that months of one person belong
# together: to first order, the logarithm of the curve moves as a weighted sum of coefficients.
# Nothing but the model is read. Crosses are the truth.


def survival(found, alone):
    design = np.column_stack([np.full(MONTHS, alone), month, np.ones(MONTHS)])
    hazard = 1 / (1 + np.exp(-design @ found.estimate))
    curve = np.cumsum(np.log1p(-hazard))  # of logarithms
    slope = -np.cumsum(hazard[:, None] * design, axis=0)
    error = found.contrast(slope).std_error
    # On the scale of log(-log), on which a band stays between 0 and 1.
    half = 1.96 * error / np.abs(curve)
    return np.exp(curve), np.exp(curve * np.exp(half)), np.exp(curve * np.exp(-half))


figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for value, label in ((0.0, "with others"), (1.0, "alone")):
    middle, low, high = survival(private, value)
    (line,) = ax.plot([0, *month], [1, *middle], drawstyle="steps-post", label=label)
    ax.fill_between([0, *month], [1, *low], [1, *high], step="post", alpha=0.3)
    true = np.cumprod(1 - 1 / (1 + np.exp(2.5 + 0.08 * month - 0.8 * value)))
    ax.plot(month, true, "kx")
ax.set(xlabel="month", ylabel="part that is still at home", ylim=(0, 1))
ax.legend()
plt.show()
