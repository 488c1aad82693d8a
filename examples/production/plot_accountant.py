"""
One budget for many fits
========================

An accountant is charged before data are read, by fits in other processes too, and refuses
what does
not fit any more. Gaussian fits compose exactly: ten fits at epsilon 0.3 cost far less than 3.
"""

import matplotlib.pyplot as plt
import numpy as np

from skpriv import BudgetAccountant
from skpriv.exceptions import BudgetExceeded
from skpriv.linear_model import SSPRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(5_000, 4)) / 2.0
y = np.clip(X @ [0.5, -0.5, 0.2, 0.0] + rng.uniform(-0.3, 0.3, size=5_000), -1, 1)

spent = []
with BudgetAccountant(epsilon=1.0, delta=1e-6) as accountant:
    try:
        while True:
            model = SSPRegressor(
                epsilon=0.3, delta=1e-6, data_norm=1.0, bounds_y=(-1, 1), random_state=len(spent)
            )
            model.fit(X, y)
            spent.append(accountant.spent.epsilon)
    except BudgetExceeded as error:
        print(error)

# %%
# The sum of the epsilons is what basic composition would say.

fits = np.arange(1, len(spent) + 1)
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(fits, spent, marker="o", label="spent, exactly")
ax.plot(fits, 0.3 * fits, linestyle="--", label="sum of the epsilons")
ax.axhline(1.0, color="k", linestyle=":", label="the budget")
ax.set(xlabel="fits", ylabel="epsilon at delta 1e-6", xticks=fits)
ax.legend()
plt.show()
