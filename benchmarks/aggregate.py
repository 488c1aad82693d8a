"""What secure aggregation costs: accuracy, noise, and the time of 10,000 devices.

Run: python benchmarks/aggregate.py [--seeds 20] [--devices 10000]

First, R2 of `LinearRegression` on held-out wages at epsilon .3 under `privacy="central"` and
`"aggregate"`, with noise of its own for each fit, and under the other models. Second, the noise of
a released number over that of a curator, for k numbers. Third, `SSPRegressor` from devices that are
simulated in this process, with two servers on disk: 5% of the devices drop out, and each server and
the analyst are started again in the middle of a round.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from _record import record
from _tables import wage_equation

from skpriv import Budget, BudgetAccountant
from skpriv.linear_model import LinearRegression, SSPRegressor
from skpriv.privacy import Lattice
from skpriv.protocol import Collector, ShareServer, report

MODELS = ("none", "central", "aggregate", "shuffle", "local")
EPSILON, DELTA = 0.3, 1e-6


def accuracy(seeds):
    """R2 of each model on a held-out fifth of the wages, by seed."""
    table = wage_equation()
    bounds, rows = list(table.bounds.values()), table.data.to_numpy()
    scores = {name: [] for name in MODELS}
    for seed in range(seeds):
        order = np.random.RandomState(seed).permutation(len(rows))
        train, test = order[len(rows) // 5 :], order[: len(rows) // 5]
        for place, name in enumerate(MODELS):
            model = LinearRegression(
                bounds_X=bounds, bounds_y=table.bounds_y, epsilon=EPSILON, delta=DELTA,
                privacy=name, random_state=1000 * seed + place,
            )  # fmt: skip
            with warnings.catch_warnings(action="ignore"):
                model.fit(rows[train], table.target[train])
            scores[name].append(model.score(rows[test], table.target[test]))
    return scores


def noise():
    """Largest ratio of the deviation of the noise and a curator's, over n and epsilon, by k."""
    return {
        k: max(
            Lattice.calibrated(2.0, Budget(epsilon, DELTA).mu, k, n, n).scale
            * Budget(epsilon, DELTA).mu / 2.0
            for n in (100, 10_000, 1_000_000)
            for epsilon in (0.3, 1.0, 3.0)
        )
        for k in (20, 130, 1300)
    }  # fmt: skip


def devices(n):
    """Seconds, charges, users in the sums, and the largest error of a sum in its deviations."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.7, 0.7, size=(n, 3)) / np.sqrt(1.5)
    y = np.clip(X @ [0.6, -0.4, 0.2] + rng.uniform(-0.2, 0.2, size=n), -1.0, 1.0)
    gone = rng.uniform(size=n) < 0.05
    model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), privacy="aggregate", fit_intercept=False)
    start, counts, restarts = time.perf_counter(), [], 0
    with tempfile.TemporaryDirectory() as folder, BudgetAccountant(1.0, 1e-6) as accountant:
        paths = [str(Path(folder) / name) for name in ("analyst", "first", "second")]
        collector = Collector(model, n, n_features=3, n_min=int(0.94 * n), path=paths[0])
        servers = [ShareServer(which, paths[1 + which]) for which in (0, 1)]
        while collector.task is not None:
            for server in servers:
                server.open(collector.task)
            for user in np.flatnonzero(~gone):
                messages = report(collector.task, X[user], y[user], user=int(user))
                for which, message in enumerate(messages):
                    servers[which].add(int(user), message)
                if user in (n // 3, n // 2) and restarts < 2:
                    servers[restarts].close()
                    servers[restarts] = ShareServer(restarts, paths[1 + restarts])
                    restarts += 1
            if restarts < 3:
                collector.close()
                collector, restarts = Collector.load(paths[0]), 3
            both = sorted(set(servers[0].users) & set(servers[1].users))
            counts.append(len(both))
            collector.close_round(*(server.total(both) for server in servers))
    fitted = collector.result()
    equations, there = fitted._equations, ~gone
    exact = X[there].T @ X[there]
    error = np.abs(equations.design - exact).max() / equations.design_scale
    return {
        "devices": n, "seconds": time.perf_counter() - start, "charges": len(accountant.charges),
        "restarts": restarts, "users": counts, "error in deviations": error,
    }  # fmt: skip


def main():
    """Measure, print and record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--devices", type=int, default=10_000)
    args = parser.parse_args()
    ratios, collected = noise(), devices(args.devices)
    print("noise over a curator's:", {k: f"{ratio:.6f}" for k, ratio in ratios.items()})
    print(collected)
    scores = accuracy(args.seeds)
    for name, found in scores.items():
        error = np.std(found) / np.sqrt(len(found))
        print(f"{name:10} R2 {np.mean(found):.4f} +- {error:.4f}")
    paired = np.subtract(scores["central"], scores["aggregate"])
    print(f"central less aggregate: {paired.mean():.5f}, at most {abs(paired).max():.5f}")
    record("aggregate", {"noise": ratios, "devices": collected, "r2": scores})


if __name__ == "__main__":
    main()
