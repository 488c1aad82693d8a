"""Time and memory of fit, in units of one bare X'X of the same data.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py [--n 1000000] [--d 50] [--jobs 1]
     OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py --secure

Ratios of the smallest of five alternating runs in one process, of processor time (all threads
together), which says most on a machine that is busy with other work; the peak is the resident set's
growth above the data. With `--secure`: fits with secure noise beside seeded ones, the noise alone,
and the first fits of a process.
"""

import argparse
import resource
import subprocess
import sys
from functools import partial
from time import process_time

import numpy as np
from _record import record

from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor
from skpriv.privacy import GaussianNoise, NoiseSource

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


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--d", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--secure", action="store_true")
    arguments = parser.parse_args()
    if arguments.secure:
        secure()
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
    record("speed", {**vars(arguments), "seconds": times, "peak_mb": grown})


if __name__ == "__main__":
    main()
