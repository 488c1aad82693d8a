"""
Calibration and residuals
=========================

Are predicted probabilities right, and are residuals symmetric? Both need counts of rows by what was
predicted for them, which no fit releases. They are a release of their own: noisy counts of a
table with two columns, with a budget of their own.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skpriv import BudgetAccountant, describe
from skpriv.datasets import load_wages
from skpriv.linear_model import LinearRegression, LogisticRegression
from skpriv.preprocessing import Boolean, Categorical, Numeric

# %%
# Two halves of the rows: one for the fits, and one to check them, because rows of a fit flatter it.
# Chance divides them, without a seed that somebody could know. Halves are disjoint, so that
# together they cost as much as the more expensive one.

wages = load_wages()
X, dollars = wages.data, wages.target
earns = dollars > 20.0
fitted = np.random.default_rng().permutation(len(X)) < len(X) // 2
options = {"epsilon": 0.5, "delta": 1e-7, "bounds_X": wages.bounds, "random_state": 0}
with BudgetAccountant(epsilon=2.0, delta=1e-6) as accountant:
    with accountant.part("fit", partition="halves"):
        classes = LogisticRegression(classes=(False, True), **options)
        classes.fit(X[fitted], earns[fitted])
        line = LinearRegression(bounds_y=wages.bounds_y, **options).fit(X[fitted], dollars[fitted])

# %%
# A prediction of a released model is a public function of its row. So a row of this table depends
# on one record alone. Its columns have public lists and ranges, as every table has.

EDGES = np.linspace(0.0, 1.0, 11)
BINS = [f"{low:.1f} to {high:.1f}" for low, high in zip(EDGES[:-1], EDGES[1:], strict=True)]
chances = classes.predict_proba(X[~fitted])[:, 1]
checked = pd.DataFrame(
    {
        "predicted": np.array(BINS)[np.clip(np.searchsorted(EDGES, chances) - 1, 0, 9)],
        "observed": earns[~fitted],
        "residual": dollars[~fitted] - line.predict(X[~fitted]),
    }
)
schema = {
    "predicted": Categorical(BINS, other=False),
    "observed": Boolean(),
    "residual": Numeric(-40.0, 40.0),
}

# %%
# One release: two-way counts of predicted and observed, and quantiles of the residuals.

with accountant, accountant.part("check", partition="halves"):
    found = describe(
        checked, schema, pairs=[("predicted", "observed")], epsilon=0.5, delta=1e-7, random_state=0
    )
print("halves together:", accountant.spent)
for level, quantile in found["residual"].quantiles.items():
    print(f"{level:.0%} of the residuals are below {quantile.estimate:.2f} dollars")

# %%
# The share of a bin has two errors: the noise of its two counts, and sampling. A bin of few rows
# says nothing, and is left out by its noisy count.

counts = found["predicted", "observed"].counts
yes, no = ([counts[name, word] for name in BINS] for word in ("true", "false"))
share, error = np.full(10, np.nan), np.full(10, np.nan)
for k, (one, other) in enumerate(zip(yes, no, strict=True)):
    size = one.estimate + other.estimate
    if size > 10.0 * one.std_error:
        share[k] = part = one.estimate / size
        noise = np.hypot((1.0 - part) * one.std_error, part * other.std_error) / size
        error[k] = 1.96 * np.hypot(noise, np.sqrt(max(part * (1.0 - part), 0.0) / size))

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
left.plot([0, 1], [0, 1], color="0.7")
left.errorbar(EDGES[:-1] + 0.05, share, error, fmt="o", capsize=3)
left.set(xlabel="predicted probability", ylabel="observed share, with 95% interval")
residuals = found["residual"]
right.stairs(np.maximum(residuals.counts, 0.0), residuals.edges, fill=True, alpha=0.5)
right.axvline(0.0, color="0.4", linewidth=0.8)
right.set(xlabel="residual in dollars an hour", ylabel="rows")

# %%
# The probabilities are nearly right, but too high at the upper end. Large residuals are positive,
# because hourly earnings are skewed. A logarithm of the target is the usual remedy.
plt.show()
