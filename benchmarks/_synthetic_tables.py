"""Synthetic rows as tables: kind, heavy-tailed, clustered, nearly collinear and binary designs."""

import numpy as np
import pandas as pd
from _tables import Table

RECORDS = 100_000
DEVIATIONS = (0.1, 0.2)  # of the noise, of the half-range of y


def _rows(kind, n, d, rng):
    if kind == "heavy":
        return rng.standard_t(3, size=(n, d)) / 6.0
    if kind == "clustered":
        centres = rng.uniform(-0.7, 0.7, size=(5, d))
        return centres[rng.randint(5, size=n)] + 0.15 * rng.normal(size=(n, d))
    if kind == "collinear":
        factors = rng.normal(size=(n, max(1, d // 3)))
        rows = factors @ rng.normal(size=(factors.shape[1], d))
        return 0.3 * rows / np.abs(rows).std() + 0.08 * rng.normal(size=(n, d))
    if kind == "binary":
        return np.where(rng.uniform(size=(n, d)) < rng.uniform(0.1, 0.9, size=d), 1.0, -1.0)
    return rng.uniform(-1.0, 1.0, size=(n, d))


def synthetic(kind, d, deviation):
    """A table of one kind: the signal spans half of the range of y."""
    rng = np.random.RandomState(7)
    X = np.clip(_rows(kind, RECORDS, d, rng), -1.0, 1.0)
    mean = X @ rng.normal(size=d)
    mean *= 0.5 / np.abs(mean).max()
    names = [f"x{j}" for j in range(d)]
    target = mean + deviation * rng.uniform(-1.0, 1.0, size=RECORDS) * np.sqrt(3.0)
    bounds = dict.fromkeys(names, (-1.0, 1.0))
    return Table(pd.DataFrame(X, columns=names), target, bounds, (-1.0, 1.0), [])


SYNTHETIC = {
    f"{kind}_{d}_{deviation}": lambda kind=kind, d=d, deviation=deviation: synthetic(
        kind, d, deviation
    )
    for kind in ("uniform", "heavy", "clustered", "collinear", "binary")
    for d in (4, 20)
    for deviation in DEVIATIONS
}
