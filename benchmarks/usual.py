"""What a public guess of usual ranges gains, right and wrong by a factor, with few records.

Run: python benchmarks/usual.py [--runs 3]

A guess is a range of 3.3 deviations about the mean of a column that has more than two values. Wrong
by a factor f, its width is multiplied by a number from 1 / f to f, whose logarithm is uniform, and
its middle moves by up to (f - 1) / 8 of the width. Rows are drawn by chance, and scores are of
others. Lines: R2 on 54 tables. Two classes: log loss of the rate less that of the fit. Counts: part
of the deviance of the mean.
"""

import argparse
import warnings

import numpy as np
from _class_tables import BINARY, COUNTS
from _fresh_tables import CHECK_TABLES, CHOICE_TABLES
from _more_tables import MORE_TABLES
from _record import record
from _tables import TABLES
from _unseen_tables import UNSEEN_TABLES

from skpriv.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

FACTORS = None, 1.0, 2.0, 4.0
LINES = TABLES | MORE_TABLES | CHOICE_TABLES | CHECK_TABLES | UNSEEN_TABLES
CELLS = (
    ("lines", 0.3, 1000), ("lines", 0.3, 1500), ("lines", 0.3, 4000), ("lines", 1.0, 500),
    ("lines", 1.0, 4000), ("classes", 0.3, 1600), ("counts", 0.3, 4000),
)  # fmt: skip


def guess(X, bounds, factor, rng):
    """Usual ranges that are wrong by this factor; NaN of columns with two values."""
    low, high = bounds.T
    middle, width = X.mean(axis=0), np.maximum(3.3 * X.std(axis=0), 1e-3 * (high - low))
    middle = middle + (factor - 1.0) / 8.0 * width * rng.uniform(-1.0, 1.0, len(width))
    width = width * factor ** rng.uniform(-1.0, 1.0, len(width))
    ends = np.clip([middle - width / 2.0, middle + width / 2.0], low, high)
    unknown = [len(np.unique(column)) <= 2 for column in X.T]
    return np.where(unknown | (ends[1] - ends[0] < 1e-3 * (high - low)), np.nan, ends).T


def score(kind, table, bounds, epsilon, n, usual, seed):
    """Score of one fit on other rows."""
    X, y = np.asarray(table.data, dtype=float), np.asarray(table.target)
    order = np.random.RandomState(seed).permutation(len(X))
    n = min(n, 4 * len(X) // 5)
    train, test = order[:n], order[n : n + 5000]
    settings = {"epsilon": epsilon, "bounds_X": bounds, "usual_X": usual, "random_state": seed}
    z = y[test]
    if kind == "classes":
        model = LogisticRegression(classes=(0, 1), **settings).fit(X[train], y[train])
        likely = model.predict_log_proba(X[test])[np.arange(len(z)), z.astype(int)]
        rate = np.clip(y[train].mean(), 1e-3, 1.0 - 1e-3)
        return float(likely.mean() - np.where(z == 1, np.log(rate), np.log(1.0 - rate)).mean())
    Model = PoissonRegressor if kind == "counts" else LinearRegression
    model = Model(bounds_y=table.bounds_y, **settings).fit(X[train], y[train])
    found = model.predict(X[test])
    if kind == "lines":
        return 1.0 - float(np.mean((z - found) ** 2) / np.var(z))
    losses = [
        np.mean(np.where(z > 0, z * np.log(np.maximum(z, 1) / mean), 0.0) - z + mean)
        for mean in (np.maximum(found, 1e-6), y[train].mean())
    ]
    return 1.0 - float(losses[0] / losses[1])


def main():
    """Print and record the scores of all cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    sources = {"lines": LINES, "classes": BINARY, "counts": COUNTS}
    found = {}
    for kind, epsilon, n in CELLS:
        cell = found.setdefault(f"{kind}, epsilon {epsilon:g}, n {n}", {})
        for name, make in sources[kind].items():
            table = make()
            bounds, X = (
                np.array([*table.bounds.values()], dtype=float),
                np.asarray(table.data, float),
            )
            cell[name] = {}
            for factor in FACTORS:
                guesses = [
                    factor and guess(X, bounds, factor, np.random.RandomState(100 + seed))
                    for seed in range(runs)
                ]
                scores = [
                    score(kind, table, bounds, epsilon, n, one, seed)
                    for seed, one in enumerate(guesses)
                ]
                cell[name][f"wrong by {factor:g}" if factor else "none"] = float(np.mean(scores))
        values = {key: np.array([row[key] for row in cell.values()]) for key in cell[name]}
        print(f"{kind}, epsilon {epsilon:g}, n {n}: {len(cell)} tables")
        for key, column in values.items():
            change = column - values["none"]
            ends = f"worst {change.min():+.3f} best {change.max():+.3f}"
            print(f"  {key:12s} {column.mean():.4f}  {ends}")
    record("usual", {"runs": runs, "scores": found})


if __name__ == "__main__":
    main()
