"""Time and memory of fit, in units of one bare X'X of the same data.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py [--n 1000000] [--d 50] [--jobs 1]
     OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py --beside PATH
     OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py --secure
     OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py --cells
     OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py --two
     OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py --peers PYTHON

Ratios of the smallest of five alternating runs in one process, of processor time (all threads
together), which says most on a machine that is busy with other work; the peak is the resident set's
growth above the data. With `--beside`: this code and that of another checkout by turns, each in a
process of its own, at three sizes, small fits with secure noise as well. With `--secure`: fits with
secure noise beside seeded ones, the noise alone, and the first fits of a process. With `--cells`:
every model of trust, persons, classes, curves, sparse rows, a hundred columns, sources of tables,
and calls of policies, in units of as many solutions of 20 equations. With `--two`: time by the
clock, which says nothing beside other work, of a search and a curve by one process and by two, once
these have started. With `--peers`: the same rows
beside scikit-learn, statsmodels, diffprivlib and interpret (DP-EBM), each fit in a process of its
own; the last two are those of another interpreter, since diffprivlib needs an older scikit-learn.
"""

import argparse
import json
import operator
import resource
import subprocess
import sys
from functools import partial
from itertools import chain
from os import environ
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
from _record import record
from scipy.sparse import csr_matrix

from skpriv import linear_model, records
from skpriv.bandits import LinSquareCB, LinUCB
from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor
from skpriv.model_selection import PrivateSearchCV, privacy_utility_curve
from skpriv.privacy import GaussianNoise, NoiseSource

TURNS = 3
BESIDE = {(1_000, 5): 100, (300_000, 50): 3, (1_000_000, 50): 2}  # and fits of a process
FITS = """
import sys, json
from time import process_time
import numpy as np
from skpriv.linear_model import LinearRegression
n, d, repeats, secure = map(int, sys.argv[1:])
rng, bound = np.random.default_rng(0), 1.0 / np.sqrt(d)
X = rng.uniform(-bound, bound, (n, d))
y = np.clip(X.sum(axis=1) / 4.0, -1.0, 1.0)
model = LinearRegression(bounds_X=(-bound, bound), bounds_y=(-1, 1), n_jobs=1,
                         random_state=None if secure else 0).fit(X, y)
found = {"product": [], "fit": []}
for _ in range(repeats):
    for name, task in (("product", lambda: X.T @ X), ("fit", lambda: model.fit(X, y))):
        start = process_time()
        task()
        found[name].append(process_time() - start)
print(json.dumps({name: min(times) for name, times in found.items()}))
"""
SIZES = {(1_000, 5): 5, (20_000, 50): 5, (10_000, 300): 1}  # and how often
FIRST = """
from time import process_time
start = process_time()
import numpy as np
from skpriv.linear_model import {name}
X = np.random.RandomState(0).uniform(-0.2, 0.2, (5_000, 5))
model = {name}({bounds}, bounds_y=(-1, 1), {rest})
loaded = process_time()
model.fit(X, X.sum(axis=1))
print(loaded - start, process_time() - loaded)
"""
FIRSTS = {
    "LinearRegression": ("LinearRegression", "bounds_X=(-1, 1)", ""),
    "  prediction intervals": ("LinearRegression", "bounds_X=(-1, 1)", "calibration_size=0.3"),
    "  local": ("LinearRegression", "bounds_X=(-1, 1)", "privacy='local'"),
    "  shuffle": ("LinearRegression", "bounds_X=(-1, 1)", "privacy='shuffle'"),
    "AdditiveRegressor": ("AdditiveRegressor", "bounds_X=(-1, 1)", ""),
    "  shuffle, Gaussian": (
        "AdditiveRegressor", "bounds_X=(-1, 1)", "privacy='shuffle', channel='gaussian'",
    ),
    "IHTRegressor": ("IHTRegressor", "data_max=1.0", ""),
}  # fmt: skip


LONGEST = 600  # seconds of the fits of one peer; what takes longer has no number
PEER_SIZES = {(1_000, 5): 20, (60_000, 8): 3, (1_000_000, 20): 1}  # and how often
PEER_FITS = """
import json, sys, warnings
from time import process_time
import numpy as np
warnings.simplefilter("ignore")
n, d, repeats = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (n, d))
y = np.clip(X.sum(axis=1) / d**0.5 / 2.0 + 0.2 * rng.normal(size=n), -1.0, 1.0)
labels = (y > 0.2 * rng.normal(size=n)).astype(int)
ends = {{"bounds_X": (-1, 1), "bounds_y": (-1, 1), "random_state": 0, "n_jobs": 1}}
{code}
times = []
for _ in range(repeats):
    start = process_time()
    fit()
    times.append(process_time() - start)
print(json.dumps(times))
"""
OURS = "from skpriv.linear_model import {0} as Model\nfit = lambda: Model({1}).fit(X, {2})"
DIFFPRIVLIB = "from diffprivlib.models import {0} as Model\nfit = lambda: Model({1}).fit(X, {2})"
STATSMODELS = "import statsmodels.api as sm\nX = sm.add_constant(X)\nfit = lambda: sm.{}.bse"
BOTH_CLASSES = "bounds_X=(-1, 1), classes=[0, 1], random_state=0, n_jobs=1"
BALL = "data_norm=d**0.5, bounds_y=(-1, 1), random_state=0, n_jobs=1"
PEERS = {  # code of a fit
    "skpriv, SSPRegressor": OURS.format("SSPRegressor", BALL, "y"),
    "skpriv, LinearRegression": OURS.format("LinearRegression", "**ends", "y"),
    "skpriv, LogisticRegression": OURS.format("LogisticRegression", BOTH_CLASSES, "labels"),
    "skpriv, AdditiveRegressor": OURS.format("AdditiveRegressor", "**ends", "y"),
    "scikit-learn, Ridge": (
        "from sklearn.linear_model import Ridge as Model\nfit = lambda: Model().fit(X, y)"
    ),
    "scikit-learn, LogisticRegression": (
        "from sklearn.linear_model import LogisticRegression as Model\n"
        "fit = lambda: Model().fit(X, labels)"
    ),
    "statsmodels, OLS, HC1": STATSMODELS.format("OLS(y, X).fit(cov_type='HC1')"),
    "statsmodels, Logit": STATSMODELS.format("Logit(labels, X).fit(disp=False)"),
}
PRIVATE_PEERS = {  # of another interpreter
    "diffprivlib, LinearRegression": DIFFPRIVLIB.format(
        "LinearRegression", "epsilon=1.0, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0)", "y"
    ),
    "diffprivlib, LogisticRegression": DIFFPRIVLIB.format(
        "LogisticRegression", "epsilon=1.0, data_norm=d**0.5", "labels"
    ),
    "interpret, DP-EBM": (
        "from interpret.privacy import DPExplainableBoostingRegressor as Model\n"
        "bounds = np.tile([-1.0, 1.0], (d, 1))\n"
        "fit = lambda: Model(epsilon=1.0, delta=1e-6, random_state=0, n_jobs=1, "
        "privacy_bounds=bounds, privacy_target_min=-1, privacy_target_max=1).fit(X, y)"
    ),
}


def seconds(function):
    """Processor time of one call."""
    start = process_time()
    function()
    return process_time() - start


def secure():
    """Print times with secure noise beside seeded ones."""
    rng, facts = np.random.default_rng(0), {}
    for (n, d), repeats in SIZES.items():
        X = rng.uniform(-1.0, 1.0, (n, d))
        y = np.clip(X.sum(axis=1) / d, -1.0, 1.0)
        fits = {
            seed: LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=seed)
            for seed in (0, None)
        }
        times = {seed: [] for seed in fits}
        for _ in range(repeats):
            for seed, model in fits.items():
                times[seed].append(1e3 * seconds(partial(model.fit, X, y)))
        seeded, safe = min(times[0]), min(times[None])
        facts[f"n={n}, p={d}"] = {"seeded": times[0], "secure": times[None]}
        print(
            f"n={n:6} p={d:3}  seeded {seeded:8.1f} ms  secure {safe:8.1f} ms  {safe / seeded:.2f}"
        )
    for size in (20, 2_000, 100_000):
        for name, seed in (("seeded", 0), ("secure", None)):
            draw = partial(NoiseSource(seed).add, np.zeros(size), GaussianNoise(1.7))
            each = 1e6 * min(seconds(draw) for _ in range(20)) / size
            facts[f"{name} noise of {size}"] = each
            print(f"{name} noise of {size:6} numbers: {each:.3f} us each")
    for label, (name, bounds, rest) in FIRSTS.items():
        code = FIRST.format(name=name, bounds=bounds, rest=rest)
        command = [sys.executable, "-c", code]
        found = [subprocess.check_output(command, text=True).split() for _ in range(3)]
        load, fit = (min(float(one[i]) for one in found) for i in (0, 1))
        facts[f"first {label.strip()}"] = (load, fit)
        print(f"first fit of a process: {label:24} imports {load:.2f} s, fit {fit:.3f} s")
    record("speed_secure", facts)


def beside(path):
    """Print times of `LinearRegression` of another checkout and of this one, by turns."""
    facts, codes = {}, {"before": path, "after": Path(__file__).parents[1]}
    for (n, d), repeats in BESIDE.items():
        for secure in (0, 1) if n <= 1_000 else (0,):
            found = {name: [] for name in codes}
            for _ in range(TURNS):
                for name, code in codes.items():
                    command = [sys.executable, "-c", FITS, *map(str, (n, d, repeats, secure))]
                    options = {
                        "text": True,
                        "cwd": code,
                        "env": {**environ, "PYTHONPATH": str(code)},
                    }
                    found[name].append(json.loads(subprocess.check_output(command, **options)))
            label = f"n={n}, p={d}" + ", secure noise" * secure
            unit = min(one["product"] for times in found.values() for one in times)
            for name, times in found.items():
                best = min(one["fit"] for one in times)
                print(f"{label:26} {name:6} {1e3 * best:8.1f} ms  {best / unit:6.1f} x X'X")
            facts[label] = found
    record("speed_beside", facts)


def peers(python):
    """Print times of fits of other packages and of ours, of the same rows."""
    facts = {}
    product = {"bare X'X": "fit = lambda: X.T @ X"}
    for (n, d), repeats in PEER_SIZES.items():
        found = facts[f"n={n}, p={d}"] = {}
        for interpreter, codes in ((sys.executable, product | PEERS), (python, PRIVATE_PEERS)):
            for name, code in codes.items():
                program = PEER_FITS.format(code=code)
                command = [interpreter, "-c", program, *map(str, (n, d, repeats))]
                label = f"n={n:7} p={d:2}  {name:34}"
                try:
                    out = subprocess.check_output(command, text=True, timeout=LONGEST)
                except subprocess.TimeoutExpired:
                    print(label, f"not within {LONGEST} s", flush=True)
                    found[name] = []
                    continue
                found[name] = json.loads(out)
                print(label, f"{1e3 * min(found[name]):10.2f} ms", flush=True)
    record("speed_peers", facts)


KINDS = {  # rows, columns, estimator, further settings
    "curator": (200_000, 20, "LinearRegression", {}),
    "hundred columns": (20_000, 100, "LinearRegression", {}),
    "shuffle": (60_000, 8, "LinearRegression", {"privacy": "shuffle"}),
    "local": (60_000, 8, "LinearRegression", {"privacy": "local"}),
    "aggregate": (60_000, 8, "LinearRegression", {"privacy": "aggregate"}),
    "no noise": (60_000, 8, "LinearRegression", {"privacy": "none"}),
    "persons": (200_000, 20, "LinearRegression", {"max_rows_per_group": 4}),
    "persons with one row": (200_000, 20, "LinearRegression", {"max_rows_per_group": 1}),
    "persons by text": (200_000, 20, "LinearRegression", {"max_rows_per_group": 4}),
    "prediction intervals": (200_000, 20, "LinearRegression", {"calibration_size": 0.1}),
    "two classes": (100_000, 8, "LogisticRegression", {"classes": [0, 1]}),
    "five classes": (100_000, 8, "LogisticRegression", {"classes": [0, 1, 2, 3, 4]}),
    "counts": (100_000, 8, "PoissonRegressor", {"bounds_y": (0, 10)}),
    "curves": (100_000, 8, "AdditiveRegressor", {}),
    "sparse": (100_000, 200, "SSPRegressor", {"data_norm": 1.0}),
}


SOURCES = {  # how a table of 200,000 rows and 20 columns is read
    "Parquet": lambda table, path: records.from_parquet(path, target="y"),
    "lazy frame": lambda table, path: records.from_table(
        pl.from_pandas(table).lazy(), target="y", n=len(table)
    ),
    "DuckDB": lambda table, path: records.from_table(
        duckdb.from_df(table), target="y", n=len(table)
    ),
    "Dask": lambda table, path: records.from_table(
        dd.from_pandas(table, npartitions=8), target="y", n=len(table)
    ),
}


def times_of(tasks):
    """Processor times of some functions, called by turns."""
    found = {task: [] for task in tasks}
    for _ in range(TURNS):
        for task, run in tasks.items():
            found[task].append(seconds(run))
    return found


def fits_of_arrays():
    """Yield the name of each kind, a bare X'X of its rows, and its fit."""
    for name, (n, d, estimator, settings) in KINDS.items():
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (n, d))
        y = np.clip(X.sum(axis=1) / d**0.5, -1.0, 1.0)
        rest = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)} | settings
        if "classes" in rest:
            y = rng.integers(len(rest["classes"]), size=n)
            del rest["bounds_y"]
        elif estimator == "PoissonRegressor":
            y = rng.poisson(np.exp(y))
        elif estimator == "SSPRegressor":
            X = csr_matrix((np.ones(n), (np.arange(n), rng.integers(d, size=n))), shape=(n, d))
            del rest["bounds_X"]
        model = getattr(linear_model, estimator)(**rest, random_state=0, n_jobs=1)
        people = np.arange(n) // settings.get("max_rows_per_group", 1)
        if name == "persons by text":
            people = people.astype(str).astype(object)  # as a reader of CSV files has them
        more = {"groups": people} if "max_rows_per_group" in settings else {}
        yield name, partial(operator.matmul, X.T, X), partial(model.fit, X, y, **more)


def fits_of_sources(folder):
    """Yield the same of a table that is read in batches."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200_000, 20))
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)])
    table["y"] = np.clip(X.sum(axis=1) / 20**0.5, -1.0, 1.0)
    path = f"{folder}/table.parquet"
    table.to_parquet(path)
    for name, read in SOURCES.items():
        model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0, n_jobs=1)
        yield name, partial(np.dot, X.T, X), lambda read=read: model.fit(read(table, path))


def calls_of_policies(calls=1_000):
    """Yield the same of a policy's calls, beside as many solutions of 20 equations."""
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(calls, 1, 4, 5)) / 5.0
    rewards = rng.uniform(0.0, 1.0, (calls, 1))
    matrix = np.eye(20) + 0.1
    for name, kind in (("call of LinUCB", LinUCB), ("call of LinSquareCB", LinSquareCB)):

        def play(kind=kind):
            policy = kind(epsilon=1.0, delta=1e-6, random_state=0)
            for context, reward in zip(contexts, rewards, strict=True):
                policy.update(context, policy.act(context), reward)

        yield name, lambda: [np.linalg.solve(matrix, matrix[0]) for _ in range(calls)], play


def cells():
    """Print times of each kind in its unit."""
    facts = {}
    with TemporaryDirectory() as folder:
        for name, product, fit in chain(
            fits_of_arrays(), fits_of_sources(folder), calls_of_policies()
        ):
            found = facts[name] = times_of({"product": product, "fit": fit})
            ratio = min(found["fit"]) / min(found["product"])
            print(f"{name:22} {min(found['fit']):7.3f} s  {ratio:7.1f} x X'X", flush=True)
    record("speed_cells", facts)


def two():
    """Print times by the clock of searches and curves with one job and with two, by turns."""
    facts = {}
    for n in (5_000, 200_000):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (n, 8))
        y = np.clip(X.sum(axis=1) / 8**0.5, -1.0, 1.0)
        model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), n_jobs=1)
        grid = {"coef_norm": list(range(1, 21))}
        budget = {"epsilon": 4.0, "delta": 1e-6, "random_state": 0}

        def search(n_jobs, rows=(X, y), model=model, grid=grid, budget=budget):
            PrivateSearchCV(model, grid, **budget, n_jobs=n_jobs).fit(*rows)

        def curve(n_jobs, rows=(X, y), model=model):
            options = {"n_repeats": 4, "random_state": 0, "n_jobs": n_jobs}
            privacy_utility_curve(model, *rows, epsilons=(1.0,), **options)

        for name, run in (("search", search), ("curve", curve)):
            run(2)
            found = {1: [], 2: []}
            for _ in range(TURNS):
                for n_jobs, times in found.items():
                    start = perf_counter()
                    run(n_jobs)
                    times.append(perf_counter() - start)
            facts[f"{name}, n={n}"] = {str(n_jobs): times for n_jobs, times in found.items()}
            alone, both = map(min, found.values())
            print(f"{name:6} n={n:6}  one {alone:.2f} s  two {both:.2f} s  {alone / both:.2f}")
    record("speed_two", facts)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--d", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--secure", action="store_true")
    parser.add_argument("--cells", action="store_true")
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--beside", type=Path, default=None)
    parser.add_argument("--peers", default=None)
    arguments = parser.parse_args()
    if arguments.peers:
        peers(arguments.peers)
        return
    if arguments.beside:
        beside(arguments.beside)
        return
    for name, run in (("secure", secure), ("cells", cells), ("two", two)):
        if getattr(arguments, name):
            run()
            return
    rng, bound = np.random.default_rng(0), 1.0 / np.sqrt(arguments.d)
    X = rng.uniform(-bound, bound, (arguments.n, arguments.d))
    y = np.clip(X.sum(axis=1) / 4.0, -1.0, 1.0)
    options = {"random_state": 0, "n_jobs": arguments.jobs}
    models = [
        SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), **options),
        LinearRegression(bounds_X=(-bound, bound), bounds_y=(-1, 1), **options),
        ReweightedRegressor(data_norm=1.0, bounds_y=(-1, 1), **options),
    ]
    tasks = {"X'X": lambda: X.T @ X}
    for model in models:
        tasks[type(model).__name__] = partial(model.fit, X, y)
    tasks["X'X"]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = {name: [] for name in tasks}
    for _ in range(5):
        for name, task in tasks.items():
            times[name].append(seconds(task))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    unit = min(times["X'X"])
    for name, values in times.items():
        print(f"{name:22} {min(values):7.3f} s  {min(values) / unit:6.1f} x X'X")
    print(f"peak above the data: {grown:.0f} MB")
    facts = {"n": arguments.n, "d": arguments.d, "jobs": arguments.jobs}
    record("speed", {**facts, "seconds": times, "peak_mb": grown})


if __name__ == "__main__":
    main()
