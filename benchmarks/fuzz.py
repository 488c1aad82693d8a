"""Fuzzed records: none moves an answer beyond its sensitivity, and none raises an error of ours.

    python benchmarks/fuzz.py [--inputs 100000] [--replays 2000]

The inputs are drawn as those of ``tests/registry``, for every subclass of `Query` and `Procedure`
alike: huge, tiny, NaN, infinite, of any bits, colinear, and sparse rows stored in odd ways; a new
instance for every eight of them. A replay is a fit on two neighbours of which one record is
adversarial, with all answers forced: nothing but the answers may tell them apart.
"""

import argparse
import sys
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _record import record  # noqa: E402
from registry import REGISTRY, classes  # noqa: E402
from registry.rows import neighbours, stored  # noqa: E402

from skpriv._cli._audit import claims  # noqa: E402
from skpriv.audit import replay  # noqa: E402
from skpriv.privacy import Budget  # noqa: E402

EACH = 8  # inputs to an instance
EXTREMES = [0.0, 5e-324, 1e-300, -1e-300, 1.0, -1.0, 1e155, -1e300, 1.7e308]


def fuzz(asked_class, inputs, seed=0):
    """Count inputs, of which so many move too far, and so many crash; and the largest move."""
    case, counts = REGISTRY[asked_class], {"inputs": 0, "beyond": 0, "crashed": 0}
    rng, largest, asked = np.random.RandomState(seed), 0.0, None
    for number in range(inputs):
        if number % EACH == 0:
            asked = case.make(np.random.RandomState(number))
            declared = case.declared(asked)
        if np.isinf(declared):
            continue  # asked without privacy only
        first, second = neighbours(case, asked, rng)
        if case.sparse and rng.randint(2):
            first, second = stored(first, second, rng)
        counts["inputs"] += 1
        try:
            moved = case.moved(asked, first, second)
        except Exception:
            counts["crashed"] += 1
            print(f"{asked_class.__name__}, input {number}:\n{traceback.format_exc()}")
            continue
        counts["beyond"] += not moved <= declared
        if declared > 0.0:
            largest = max(largest, moved / declared)
    return counts, largest


def fuzz_replays(replays, seed=0):
    """Count replays with an adversarial record whose runs differ, or that cost too much."""
    rng, found, budget = np.random.RandomState(seed), [], Budget(1.0, 1e-6)
    models = [
        (f"{name}, {privacy}", model.set_params(epsilon=1.0, delta=1e-6, random_state=0))
        for name, privacy, model, fitted in claims()
        if fitted
    ]
    for i in range(replays):
        key, model = models[i % len(models)]
        X, y = rng.uniform(-0.5, 0.5, size=(30, 2)), rng.uniform(-1, 1, size=30)
        pair = []
        for _ in range(2):
            changed, told = X.copy(), y.copy()
            changed[0], told[0] = rng.choice(EXTREMES, size=2), rng.choice(EXTREMES)
            pair.append((changed, told))
        if np.array_equal(pair[0][0], pair[1][0]) and np.array_equal(pair[0][1], pair[1][1]):
            continue
        with warnings.catch_warnings(action="ignore"):
            result = replay(partial(clone, model), *pair, claim=budget)
        if not result.holds:
            found.append((key, result.differences[:2], result.epsilon))
            print(*found[-1], pair[0][0][0], pair[0][1][0], pair[1][0][0], pair[1][1][0])
    return found


def main():
    """Attack, and print a line a class."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--replays", type=int, default=2_000)
    args = parser.parse_args()
    missing = classes() - set(REGISTRY)
    print(f"{len(REGISTRY)} classes, {len(missing)} of them without a maker")
    numbers = dict(vars(args))
    total = {"inputs": 0, "beyond": 0, "crashed": 0}
    for asked_class in REGISTRY:
        start = time.monotonic()
        counts, largest = numbers[asked_class.__name__] = fuzz(
            asked_class, -(-args.inputs // len(REGISTRY))
        )
        total = {name: total[name] + counts[name] for name in total}
        print(
            f"{asked_class.__name__:<24}{counts}, largest {largest:.4f} of the sensitivity, "
            f"{time.monotonic() - start:.0f} s",
            flush=True,
        )
    print(total)
    numbers["failing replays"] = fuzz_replays(args.replays)
    print(f"{len(numbers['failing replays'])} of {args.replays} replays fail")
    record("fuzz", numbers)


if __name__ == "__main__":
    main()
