"""Synthetic rows as tables: kind ones, and designs that intervals find hard."""

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


HOSTILE_RECORDS = 20_000


def hostile(kind, seed=11):
    """A table of one hostile design: a linear mean with effects of all columns.

    Squares and products of two and three features; features with tails of t(2.5) and lognormal,
    whose honest bounds are far out; 30 indicators from common to rare; and rows of [-1, 1] whose
    bounds are 3 or 10 times too wide, on both sides or on one.
    """
    rng = np.random.RandomState(seed)
    n, bounds = HOSTILE_RECORDS, (-1.0, 1.0)
    if kind.startswith("squares"):
        base = rng.uniform(0.0, 1.0, size=(n, int(kind[-1])))
        pairs = [(i, j) for i in range(base.shape[1]) for j in range(i + 1)]
        X = np.column_stack([base, *(base[:, i] * base[:, j] for i, j in pairs)])
        bounds = (0.0, 1.0)
    elif kind == "student tails":
        X, bounds = np.clip(rng.standard_t(2.5, size=(n, 4)), -60.0, 60.0), (-60.0, 60.0)
    elif kind == "lognormal tails":
        X, bounds = np.minimum(rng.lognormal(sigma=1.0, size=(n, 4)), 80.0), (0.0, 80.0)
    elif kind == "30 dummies":
        X = (rng.uniform(size=(n, 30)) < np.geomspace(0.5, 0.005, 30)).astype(float)
        bounds = (0.0, 1.0)
    else:  # "3 wide", "10 wide", "10 wide above"
        X, factor = rng.uniform(-1.0, 1.0, size=(n, 6)), float(kind.split()[0])
        bounds = (-1.0 if kind.endswith("above") else -factor, factor)
    effects = rng.choice([-1.0, 1.0], size=X.shape[1]) * rng.uniform(0.5, 1.5, size=X.shape[1])
    mean = (X - X.mean(axis=0)) / X.std(axis=0) @ effects
    mean *= 0.15 / mean.std()
    mean = np.clip(mean, -0.7, 0.7) if "tails" in kind else mean
    names = [f"x{j}" for j in range(X.shape[1])]
    target = mean + 0.1 * rng.normal(size=n)
    frame = pd.DataFrame(X, columns=names)
    return Table(frame, np.clip(target, -1.0, 1.0), dict.fromkeys(names, bounds), (-1.0, 1.0), [])


HOSTILE = {
    kind.replace(" ", "_"): lambda kind=kind: hostile(kind)
    for kind in (
        "squares 2", "squares 3", "student tails", "lognormal tails", "30 dummies", "3 wide",
        "10 wide", "10 wide above",
    )
}  # fmt: skip
