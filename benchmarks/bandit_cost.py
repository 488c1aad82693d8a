"""What a service of LinUCB with weights of each action costs, in the number of weights.

Run: python benchmarks/bandit_cost.py [--events 100]

Size of the file of `Loop` in megabytes, and processor time of the longest and of the median event
(a rank and a reward) in milliseconds. A Gram matrix of d features is one of each action, so that
K actions have K d (d + 3) / 2 + 1 sums.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from _record import record

from skpriv.bandits import LinUCB, Loop

SIZES = ((3, 5), (10, 10), (10, 20), (30, 20))


def cost(n_actions, n_features, events):
    """Size and times of a service."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "service"
        policy = LinUCB(epsilon=1.0, bounds_y=(0, 1), shared=False, n_actions=n_actions)
        service = Loop(policy, path)
        times = []
        for event in range(events):
            context = rng.standard_normal(n_features) / np.sqrt(n_features)
            start = time.process_time()
            service.rank(event, context)
            service.reward(event, 1.0)
            times.append(1e3 * (time.process_time() - start))
        megabytes = path.stat().st_size / 2**20
        service._store.close()
    return {
        "weights": n_actions * n_features,
        "file_mb": round(megabytes, 3),
        "longest_ms": round(max(times), 1),
        "median_ms": round(float(np.median(times)), 2),
    }


def main():
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=100)
    options = parser.parse_args()
    numbers = {}
    for n_actions, n_features in SIZES:
        key = f"{n_actions} actions, {n_features} features"
        numbers[key] = cost(n_actions, n_features, options.events)
        print(key, numbers[key], flush=True)
    record("bandit_cost", numbers)


if __name__ == "__main__":
    main()
