"""Time and memory of fit, in units of one bare X'X of the same data.

Run: python benchmarks/speed.py [--n 1000000] [--d 50]

Ratios of medians of five alternating runs in one process; the peak is the resident set's growth
above the data.
"""

import argparse
import resource
from time import perf_counter

import numpy as np
from _record import record

from skpriv.linear_model import ReweightedRegressor, SSPRegressor


def seconds(function):
    """Duration of one call."""
    start = perf_counter()
    function()
    return perf_counter() - start


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--d", type=int, default=50)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (arguments.n, arguments.d)) / np.sqrt(arguments.d)
    y = np.clip(X.sum(axis=1) / 4.0, -1.0, 1.0)
    tasks = {"X'X": lambda: X.T @ X}
    for make in (SSPRegressor, ReweightedRegressor):
        tasks[make.__name__] = lambda make=make: make(random_state=0).fit(X, y)
    tasks["X'X"]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = {name: [] for name in tasks}
    for _ in range(5):
        for name, task in tasks.items():
            times[name].append(seconds(task))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    unit = np.median(times["X'X"])
    for name, values in times.items():
        print(f"{name:22} {np.median(values):7.3f} s  {np.median(values) / unit:6.1f} x X'X")
    print(f"peak above the data: {grown:.0f} MB")
    record("speed", {**vars(arguments), "seconds": times, "peak_mb": grown})


if __name__ == "__main__":
    main()
