"""
A table with text and holes, and its curve with intervals
=========================================================

A schema says what each column can hold. Everything else - holes, unknown categories, wrong types -
has a public rule, so that a raw table goes in, and predictions with intervals come out.
"""

# %%
# The table is made here: ages with holes, a ward that nobody listed.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from skpriv.inspection import IntervalDisplay, coefficient_table
from skpriv.linear_model import LinearRegression
from skpriv.preprocessing import Categorical, Numeric, Schema, TableEncoder

rng = np.random.default_rng(0)
n = 50_000
table = pd.DataFrame(
    {
        "age": rng.uniform(18, 95, n),
        "ward": rng.choice(["medicine", "surgery", "attic"], n, p=[0.5, 0.49, 0.01]),
    }
)
days = 2 + 0.1 * table["age"] + 3 * (table["ward"] == "surgery") + rng.gamma(2, 2, n)
table.loc[rng.random(n) < 0.05, "age"] = np.nan

# %%
# Ranges and lists come from what the columns mean, and never from the rows.

schema = Schema(
    {
        "age": Numeric(18, 95, unit="year", missing="indicator"),
        "ward": Categorical(["medicine", "surgery"]),
    }
)
model = make_pipeline(
    TableEncoder(schema),
    LinearRegression(epsilon=1.0, data_norm=1.0, bounds_y=(0, 30), random_state=0),
)
model.fit(table, days)
print(coefficient_table(model))

# %%
# Predictions with their intervals, at one public patient and a public grid of ages.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
patient = pd.DataFrame({"age": [50.0], "ward": ["medicine"]})
options = {"target_name": "days"}
grid = np.linspace(18, 95, 78)
IntervalDisplay.from_estimator(model, patient, "age", grid=grid, ax=axes[0], **options)
wards = ["medicine", "surgery", "any other"]
IntervalDisplay.from_estimator(model, patient, "ward", grid=wards, ax=axes[1], **options)
plt.show()
