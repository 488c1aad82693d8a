"""Coverage and width of prediction intervals on real tables, at new rows and their targets.

Run: python benchmarks/prediction_intervals.py [--splits 10] [--epsilons 0.3 1 3] [--size 0.1]
[--privacy local --delta 0]

A fifth of each table is new; of the rest, a part is held out for calibration. Beside the coverage
of the new targets stands the width over that of textbook split conformal, around the same fit and
with the same held-out rows, which is not private.
"""

import argparse
import warnings

import numpy as np
from _record import record
from _tables import TABLES
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from skpriv import linear_model
from skpriv.metrics import interval_coverage_score, interval_mean_width
from skpriv.preprocessing import BoundsScaler

ESTIMATORS = ("LinearRegression", "SSPRegressor", "ReweightedRegressor", "IHTRegressor")


def textbook(est, X, y, new, size, level, score, seed):
    """Split conformal around a fit, with the rows that it held out: order statistics."""
    n = len(y)
    held_out = check_random_state(seed).permutation(n)[n - int(size * n * (1.0 + 1e-12)) :]
    bounds = est.bounds_y
    residual = np.clip(y[held_out], *bounds) - np.clip(est.predict(X[held_out]), *bounds)
    centre, m = np.clip(est.predict(new), *bounds), len(held_out)
    alpha = (1.0 - level) / (1 if score == "absolute" else 2)
    rank = int(np.ceil((1.0 - alpha) * (m + 1) - 1e-9))
    sides = [np.abs(residual)] * 2 if score == "absolute" else [-residual, residual]
    below, above = (np.sort(s)[rank - 1] if rank <= m else np.inf for s in sides)
    return np.clip(centre - below, *bounds), np.clip(centre + above, *bounds)


def measure(name, table, epsilon, options, seed):
    """Coverage, relative width and number of calibration rows of one fit."""
    X, new, y, target = train_test_split(table.data, table.target, test_size=0.2, random_state=seed)
    scaler = BoundsScaler(table.bounds, exclusive=table.exclusive).fit(X)
    X, new = np.asarray(scaler.transform(X)), np.asarray(scaler.transform(new))
    est = getattr(linear_model, name)(
        epsilon=epsilon, delta=options.delta, privacy=options.privacy, bounds_y=table.bounds_y,
        calibration_size=options.size, conformity_score=options.score, random_state=seed,
    )  # fmt: skip
    if name == "LinearRegression":
        est.set_params(data_norm=1.0)
    elif name == "IHTRegressor":
        est.set_params(n_nonzero_coefs=X.shape[1], data_max=1.0 / np.sqrt(scaler.norm_))
    else:
        est.set_params(data_norm=1.0)
    est.fit(X, y)
    ends = est.prediction_interval(new, options.level)
    plain = textbook(est, X, y, new, options.size, options.level, options.score, seed)
    return (
        interval_coverage_score(target, *ends),
        interval_mean_width(*ends) / interval_mean_width(*plain),
        int(options.size * len(y)),
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--size", type=float, default=0.1)
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--privacy", choices=("central", "local", "shuffle"), default="central")
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--score", choices=("absolute", "signed"), default="absolute")
    parser.add_argument("--estimators", nargs="+", default=ESTIMATORS)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    options = parser.parse_args()
    print(f"coverage at {options.level} and width over textbook's, {options.score} scores")
    print(f"{'table':11} {'estimator':20} {'held out':>8} " + "".join(
        f"{f'eps {epsilon:g}':>16}" for epsilon in options.epsilons
    ))  # fmt: skip
    numbers: dict = {}
    for key in options.tables:
        table = TABLES[key]()
        for name in options.estimators:
            if not hasattr(linear_model, name):
                continue
            cells, rows = [], 0
            for epsilon in options.epsilons:
                fits = [measure(name, table, epsilon, options, s) for s in range(options.splits)]
                cover, width, (rows, *_) = zip(*fits)
                numbers[f"{key} {name} {epsilon:g}"] = {"coverage": cover, "width": width}
                cells.append(f"{np.mean(cover):8.3f} x{np.mean(width):5.3f} ")
            print(f"{key:11} {name:20} {rows:8} " + "".join(f"{c:>16}" for c in cells), flush=True)
    suffix = "" if options.privacy == "central" else f"_{options.privacy}"
    record(f"prediction_intervals{suffix}", numbers)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
