"""
A folder of Parquet files
=========================

Rows that do not fit into memory are read in batches, once for each answer. The fit, the encoding
before it and the predictions after it are the same as for rows in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skpriv.linear_model import LinearRegression
from skpriv.records import from_parquet

# %%
# The folder is made here. Each file has a part of the rows, and no two are in memory together.

rng = np.random.default_rng(0)
weights = {"age": 0.8, "stays": 3.0, "distance": -0.1}
bounds = {"age": (18, 90), "stays": (0, 12), "distance": (0, 200)}
folder = tempfile.TemporaryDirectory()
for part in range(8):
    columns = {name: rng.uniform(*bounds[name], size=50_000).astype(np.float32) for name in weights}
    cost = sum(weights[name] * columns[name] for name in weights)
    cost = cost + rng.normal(scale=5.0, size=50_000)
    pq.write_table(pa.table({**columns, "cost": cost}), Path(folder.name) / f"{part}.parquet")

# %%
# Nothing is read yet but the number of rows and the names of the columns, which are public.

rows = from_parquet(folder.name, target="cost")
print(rows.shape, rows.names)

# %%
# The whole budget is charged before a value is read. The report says how often rows were read.

model = LinearRegression(
    epsilon=1.0, delta=1e-6, bounds_X=bounds, bounds_y=(-20, 130), random_state=0
)
model.fit(rows)
print(model.privacy_report_)
for name, coef in zip(model.feature_names_in_, model.coef_, strict=True):
    print(f"{name:10} {coef:7.3f}, made with {weights[name]:7.3f}")

# %%
# Predictions are computed when they are read, here chunk by chunk.

predicted = model.predict(rows)
counts, edges = np.zeros(40), np.linspace(-20, 130, 41)
for chunk in predicted:
    counts += np.histogram(chunk, edges)[0]

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.stairs(counts, edges, fill=True)
ax.set(xlabel="predicted cost", ylabel="rows")
folder.cleanup()
