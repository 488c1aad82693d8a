"""R2 on real tables: the regressors of skpriv beside their peers, one run, same data and budget.

    python benchmarks/peers.py [--tables ...] [--methods ...] [--seeds 3] [--jobs 1] [--reuse]

Five folds a seed, delta 1e-6, replacement of one record, public bounds of `_tables` and
`_more_tables`, predictions and targets inside of the bounds of y. R2 is against the mean of the
training rows, which no private fit knows. Peers are those of `_peers`, whose docstrings say how
their noise is calibrated; "descent" is full-batch noisy gradient descent with the best of 60
settings, picked by an oracle that sees the test rows: for each fold anew, or, "per cell", once for
all folds and seeds of a table and epsilon.

For each table and epsilon: the median over seeds of the mean over folds with its range, the
standard deviation over all fits, and the share of fits worse than the mean. Then a verdict on
`LinearRegression` beside descent. ``--reuse`` takes fits that the last record has (peers do not
change when skpriv does) and adds to it.
"""

import argparse
import json
import sys
import time
import warnings
from functools import lru_cache

import numpy as np
from _more_tables import MORE_TABLES, wages_by_region
from _peers import (
    SETTINGS,
    AdaSSP,
    BinnedAggregation,
    IterativeHessianMixing,
    OracleDescent,
    TukeyEM,
    dp_ebm,
)
from _record import HERE, record
from _tables import TABLES
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.model_selection import KFold

from skpriv.linear_model import (
    AdditiveRegressor,
    LinearRegression,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.preprocessing import BoundsScaler

EPSILONS, DELTA, FOLDS = (0.3, 1.0, 3.0), 1e-6, 5
ALL_TABLES = {**TABLES, **MORE_TABLES, "cps1988_regions": wages_by_region}
OURS = ("LinearRegression", "SSP", "re-weighted", "additive")
PEERS = ("AdaSSP", "Hessian mixing", "TukeyEM", "binned", "DP-EBM", "descent")
METHODS = (*OURS, *PEERS, "least squares")
SLOW = {"mortgages": ("additive", "DP-EBM")}  # docs/additive.md has them
ONE_SEED = ("additive", "DP-EBM", "descent")  # they take long and spread little
FEW_FOLDS = {("mortgages", "descent"): 2}  # a minute a fit
ENOUGH, CLOSE = 5000, 0.01  # n epsilon from which descent must not be ahead by more than this
ROUNDS = (80, 960)  # of the oracle's descents: as is usual, and all


@lru_cache(maxsize=1)
def read(name):
    """A table, read once."""
    return ALL_TABLES[name]()


class Fold:
    """Rows of one fold, in their own units and in those of `BoundsScaler`."""

    def __init__(self, table, seed, fold):
        self.bounds, self.bounds_y = table.bounds, table.bounds_y
        scaler = BoundsScaler(table.bounds, exclusive=table.exclusive)
        rows = {"raw": table.data, "scaled": scaler.fit_transform(table.data)}
        self.rows = {key: np.asarray(value, dtype=float) for key, value in rows.items()}
        self.y = np.clip(table.target, *table.bounds_y)
        splits = KFold(FOLDS, shuffle=True, random_state=seed).split(self.y)
        self.train, self.test = list(splits)[fold]

    def r2(self, predicted):
        """Of each column of predictions."""
        y, mean = self.y[self.test], self.y[self.train].mean()
        errors = y.reshape(-1, *[1] * (predicted.ndim - 1)) - np.clip(predicted, *self.bounds_y)
        return 1.0 - np.square(errors).sum(axis=0) / np.square(y - mean).sum()

    def score(self, model, units):
        """R2 of a model that is fitted to rows in these units."""
        rows = self.rows[units]
        return self.r2(model.fit(rows[self.train], self.y[self.train]).predict(rows[self.test]))

    def descents(self, model):
        """R2 of all settings of descent."""
        rows = self.rows["scaled"]
        return self.r2(model.predictions(rows[self.train], self.y[self.train], rows[self.test]))


def measured(fold, method, epsilon, seed):
    """R2 of one method on one fold; of descent, those of all settings."""
    options = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
    public = {"bounds_y": fold.bounds_y, **options}
    two_valued = [k for k, pair in enumerate(fold.bounds.values()) if pair == (0.0, 1.0)]
    columns, pairs = list(fold.bounds), np.array(list(fold.bounds.values()))
    if method == "descent":
        return fold.descents(OracleDescent(**public))
    if method == "DP-EBM":
        named = [columns[k] for k in two_valued]
        return fold.score(dp_ebm(fold.bounds, fold.bounds_y, two_valued=named, delta=DELTA,
                                 epsilon=epsilon, seed=seed), "raw")  # fmt: skip
    raw = {
        "LinearRegression": lambda: LinearRegression(bounds_X=pairs, **public),
        "additive": lambda: AdditiveRegressor(bounds_X=pairs, linear_features=two_valued, **public),
        "least squares": LeastSquares,
    }
    if method in raw:
        return fold.score(raw[method](), "raw")
    scaled = {"SSP": SSPRegressor, "re-weighted": ReweightedRegressor, "AdaSSP": AdaSSP,
              "Hessian mixing": IterativeHessianMixing, "TukeyEM": TukeyEM,
              "binned": BinnedAggregation}  # fmt: skip
    return fold.score(scaled[method](data_norm=1.0, **public), "scaled")


def one_fit(name, method, epsilon, seed, fold):
    """(key of the fit, R2 or a list of them, seconds)."""
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    data = Fold(read(name), seed, fold)
    value = measured(data, method, epsilon, 100 * seed + fold)
    rounded = np.round(value, 5).tolist()
    return f"{seed}.{fold}", rounded, time.perf_counter() - start


def wanted(name, methods, seeds, known):
    """Fits of a table that the record does not have."""
    for method in methods:
        if method in SLOW.get(name, ()):
            continue
        rounds = 1 if method in ONE_SEED else seeds
        for epsilon in EPSILONS if method != "least squares" else EPSILONS[:1]:
            have = known.get(method, {}).get(str(epsilon), {})
            for seed in range(rounds):
                for fold in range(FEW_FOLDS.get((name, method), FOLDS)):
                    if f"{seed}.{fold}" not in have:
                        yield method, epsilon, seed, fold


def over_seeds(fits):
    """Means over the folds of each seed; of descent, by the fold's best setting."""
    seeds = {}
    for key, value in fits.items():
        seeds.setdefault(key.split(".")[0], []).append(np.max(value))
    return np.array([np.mean(values) for values in seeds.values()])


def cell(fits):
    """Text of one method at one epsilon."""
    means, single = over_seeds(fits), np.array([np.max(value) for value in fits.values()])
    text = f"{np.median(means):7.3f} [{means.min():.3f}, {means.max():.3f}]"
    return f"{text} sd {single.std():.3f} worse {np.mean(single < 0.0):.2f}"


def show(name, found):
    """Lines of one table."""
    n, d = found["n"], found["d"]
    print(f"\n{name}: n={n}, d={d}")
    for epsilon in EPSILONS:
        print(f"  epsilon {epsilon:g}")
        for method in METHODS:
            fits = found["r2"].get(method, {}).get(str(epsilon))
            if fits:
                print(f"    {method:17}{cell(fits)}")
            if fits and method == "descent":
                best = np.mean(list(fits.values()), axis=0).max()
                print(f"    {'descent, per cell':17}{best:7.3f}")
    print(end="", flush=True)


def gaps(numbers, rounds):
    """(table, epsilon, gap per fold, gap per cell) where n epsilon is large enough.

    A gap is that of `LinearRegression` to the best descent of at most so many rounds, on the same
    folds.
    """
    allowed = [k for k, setting in enumerate(SETTINGS) if setting["n_iter"] <= rounds]
    for name, found in numbers.items():
        for epsilon in EPSILONS:
            both = ("LinearRegression", "descent")
            ours, theirs = (found["r2"].get(method, {}).get(str(epsilon), {}) for method in both)
            shared = sorted(set(ours) & set(theirs))
            if found["n"] * epsilon <= ENOUGH or not shared:
                continue
            mean = np.mean([ours[key] for key in shared])
            scores = np.array([theirs[key] for key in shared])[:, allowed]
            yield name, epsilon, mean - scores.max(axis=1).mean(), mean - scores.mean(axis=0).max()


def verdict(numbers):
    """`LinearRegression` beside descent."""
    for rounds in ROUNDS:
        found = list(gaps(numbers, rounds))
        ahead = [sum(cell[place] > 0.0 for cell in found) for place in (2, 3)]
        print(
            f"\nn epsilon > {ENOUGH}: {len(found)} cells; ahead of descent of at most {rounds}",
            end="",
        )
        print(f" rounds with settings per fold in {ahead[0]}, per cell in {ahead[1]}.")
        for name, epsilon, by_fold, by_cell in found:
            if by_fold < -CLOSE:
                print(f"  behind on {name}, epsilon {epsilon:g}: {by_fold:+.3f}, {by_cell:+.3f}")


def known_numbers(name="peers"):
    """What the last record of this name has."""
    path = HERE / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["numbers"] if path.exists() else {}


def main():
    """Fit what is wanted, print tables and the verdict, and record all fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(ALL_TABLES), choices=list(ALL_TABLES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--reuse", action="store_true", help="keep and show recorded fits")
    parser.add_argument("--again", nargs="+", default=[], choices=METHODS, help="but not of these")
    parser.add_argument("--name", default="peers", help="of the record")
    args = parser.parse_args()
    numbers = known_numbers(args.name) if args.reuse else {}
    for name in args.tables:
        table = read(name)
        empty = {"n": len(table.target), "d": table.data.shape[1], "r2": {}, "seconds": {}}
        found = numbers.setdefault(name, empty)
        for method in args.again:
            found["r2"].pop(method, None)
        jobs = list(wanted(name, args.methods, args.seeds, found["r2"]))
        fits = Parallel(args.jobs, return_as="generator")(
            delayed(one_fit)(name, *job) for job in jobs
        )
        spent = {}
        for done, ((method, epsilon, *_), (key, value, seconds)) in enumerate(zip(jobs, fits), 1):
            found["r2"].setdefault(method, {}).setdefault(str(epsilon), {})[key] = value
            spent.setdefault(method, []).append(seconds)
            if sys.stderr.isatty():
                print(f"\r{name}: {done} of {len(jobs)} fits", end="", file=sys.stderr, flush=True)
        found["seconds"].update({method: round(np.mean(s), 3) for method, s in spent.items()})
        show(name, found)
    verdict({name: numbers[name] for name in args.tables})
    record(args.name, numbers)


if __name__ == "__main__":
    main()
