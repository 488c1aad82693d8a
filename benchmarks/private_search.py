"""R2 after a private search over 30 candidates, beside the best candidate that one knew before.

Run: python benchmarks/private_search.py [--tables wages cps1988] [--seeds 4] [--name NAME]

The search has a total of epsilon 2 for everything, its refit included. The reference is the best of
the same 30 candidates, each fitted to all rows at epsilon 1, by its mean R2 on held-out rows over
the seeds: nobody without the held-out targets could know which that is. Rows, public bounds and
random splits (80% to fit) are the same.
"""

import argparse
import time

import numpy as np
from _record import record
from _tables import TABLES
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant
from skpriv.linear_model import AdditiveRegressor, LinearRegression, SSPRegressor
from skpriv.model_selection import PrivateSearchCV
from skpriv.preprocessing import BoundsScaler

TOTAL, SINGLE, DELTA = 2.0, 1.0, 1e-6


def narrower(bounds, part):
    """A range of the same centre and a part of the width."""
    centre, half = sum(bounds) / 2.0, (bounds[1] - bounds[0]) / 2.0
    return (centre - part * half, centre + part * half)


def searches(table):
    """Estimators with 30 candidates each, by name."""
    public = {"bounds_X": list(table.bounds.values()), "bounds_y": table.bounds_y}
    widths = [narrower(table.bounds_y, part) for part in (1.0, 0.7, 0.5, 0.3, 0.1)]
    scaled = make_pipeline(
        BoundsScaler(list(table.bounds.values())),
        SSPRegressor(data_norm=1.0, bounds_y=table.bounds_y),
    )
    return {
        "ssp": (
            scaled,
            {
                "sspregressor__data_norm": [0.1, 0.3, 0.5, 0.7, 1.0],
                "sspregressor__alpha": ["auto", 0.0, 10.0, 100.0, 1e3, 1e4],
            },
        ),
        "linear": (
            LinearRegression(**public),
            {
                "bounds_y": widths,
                "clip": ["auto", "wide"],
                "bounds_X": [
                    [narrower(pair, part) for pair in table.bounds.values()]
                    for part in (1.0, 0.7, 0.4)
                ],
            },
        ),
        "additive": (
            AdditiveRegressor(**public),
            {"knots": [2, 3, 4, 5, 7, 9], "bounds_y": widths},
        ),
    }


def r2(model, rows):
    """R2 on held-out rows."""
    return r2_score(rows[1], model.predict(rows[0]))


def measure(table, name, seeds, n_jobs):
    """R2 of searches, and of all candidates, over seeds."""
    estimator, grid = searches(table)[name]
    candidates = list(ParameterGrid(grid))
    X, y = table.data.to_numpy(dtype=float), np.asarray(table.target, dtype=float)
    prefix = "sspregressor__" if name == "ssp" else ""
    found, alone, spent = [], np.zeros((len(candidates), seeds)), []
    start = time.perf_counter()
    for seed in range(seeds):
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=seed)
        search = PrivateSearchCV(
            estimator, grid, epsilon=TOTAL, delta=DELTA, bounds_y=table.bounds_y,
            n_jobs=n_jobs, random_state=seed,
        )  # fmt: skip
        with BudgetAccountant(TOTAL, DELTA) as accountant:
            search.fit(A, a)
        spent.append([accountant.spent.epsilon, accountant.spent.delta])
        found.append(r2(search, (B, b)))
    seconds = (time.perf_counter() - start) / seeds
    for seed in range(seeds):
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=seed)
        for i, candidate in enumerate(candidates):
            fixed = {"epsilon": SINGLE, "delta": DELTA, "random_state": seed}
            model = clone(estimator).set_params(**candidate)
            model.set_params(**{prefix + key: value for key, value in fixed.items()})
            alone[i, seed] = r2(model.fit(A, a), (B, b))
    means = alone.mean(axis=1)
    best = int(np.argmax(means))
    print(
        f"{name}, n={len(A)}, {len(candidates)} candidates: search {np.mean(found):.4f} "
        f"(smallest {min(found):.4f}), best alone {means[best]:.4f}, "
        f"median alone {np.median(means):.4f}, {seconds:.0f} s a search, spent {spent[0]}; "
        f"the best is {candidates[best]}",
        flush=True,
    )
    return {
        "n": len(A), "search": found, "candidates": [str(one) for one in candidates],
        "alone": alone, "seconds": seconds, "spent": spent,
    }  # fmt: skip


def main():
    """Print one line a table and estimator, and record all numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=["wages", "cps1988"])
    parser.add_argument("--estimators", nargs="*", default=["ssp", "linear", "additive"])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--name", default="private_search")
    options = parser.parse_args()
    numbers = {}
    for key in options.tables:
        print(key, end=": ")
        for name in options.estimators:
            found = measure(TABLES[key](), name, options.seeds, options.jobs)
            numbers[f"{key}, {name}"] = found
    record(options.name, numbers)


if __name__ == "__main__":
    main()
