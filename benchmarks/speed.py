"""Time and memory of fit, in units of one bare X'X of the same data.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py [--n 1000000] [--d 50] [--jobs 1]

Ratios of the smallest of five alternating runs in one process, of processor time (all threads
together), which says most on a machine that is busy with other work; the peak is the resident set's
growth above the data.
"""

import argparse
import resource
from functools import partial
from time import process_time

import numpy as np
from _record import record

from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor


def seconds(function):
    """Processor time of one call."""
    start = process_time()
    function()
    return process_time() - start


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--d", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
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
