"""
A cluster
=========

Rows in a Dask array or frame stay on their workers: queries travel there, sums come back by a tree.
The charge is made once, and noise is drawn once, where the fit was called.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster

from skpriv import BudgetAccountant
from skpriv.linear_model import SSPRegressor

# %%
# Two workers here, in threads of this process so that the page builds anywhere; a real one has the
# address of its scheduler in ``Client``.

cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
client = Client(cluster)

# %%
# The rows are made on the workers, and are kept there: otherwise every answer would make them anew.

random = da.random.default_rng(0)
X = (random.random((400_000, 5), chunks=(50_000, 5)) - 0.5).persist()
weights = np.array([0.5, -0.5, 0.2, 0.0, 0.1])
y = (X @ weights + 0.2 * (random.random(400_000, chunks=50_000) - 0.5)).persist()

# %%
# The fit is the one for arrays.

with BudgetAccountant(epsilon=1.0, delta=1e-6) as accountant:
    model = SSPRegressor(
        bounds_y=(-1, 1), epsilon=1.0, delta=1e-6, data_norm=1.2, random_state=0
    ).fit(X, y)
print(accountant.charges)
print(model.privacy_report_)

# %%
# Predictions are a Dask array. Only what is computed comes here.

predicted = model.predict(X)
print(predicted)
error = float(abs(predicted - y).mean().compute())

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(weights, model.coef_, "o")
ax.axline((0, 0), slope=1, color="k", linestyle=":")
ax.set(xlabel="coefficient", ylabel="private estimate", title=f"mean absolute error {error:.3f}")
client.close()
cluster.close()
