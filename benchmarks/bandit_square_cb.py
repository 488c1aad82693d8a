"""SquareCB with improper descent at a growing number of features, joint differential privacy.

Run: python benchmarks/bandit_square_cb.py [--features 10 50 200 1000 2000] [--horizon 20000]
     [--runs 3] [--jobs 2] [--seed 1] [--epsilon 1] [--actions 5]

Contexts are independent in all rounds and actions, in the unit ball of d features. What matters is
one direction of length about one half, the same at every d; the rest is spread over all other
features. So the problem is equally hard at every d for a method whose error has no dimension.
Numbers are mean regret as a fraction of RandomPolicy's in the same runs, with the standard error.
"""

import argparse
import time

import numpy as np
from _record import record

from skpriv.bandits import EpochSchedule, RandomPolicy, SquareCB, simulate
from skpriv.linear_model import ImproperSGDRegressor, SSPRegressor

EPOCHS = EpochSchedule(first=500, ratio=2.0)
DENSE_UP_TO = 1000  # features for which sums of d^2 numbers are affordable


class OneDirection:
    """Rewards of -1 or 1; contexts (u, z), u uniform on [-.7, .7] and z of length .7 elsewhere."""

    bounds_rewards = (-1.0, 1.0)

    def __init__(self, n_actions, n_features):
        self.n_actions, self.n_features = n_actions, n_features

    def sample(self, n_rounds, rng):
        """Contexts and mean rewards, the first feature."""
        contexts = rng.standard_normal((n_rounds, self.n_actions, self.n_features))
        lengths = np.linalg.norm(contexts[:, :, 1:], axis=2, keepdims=True)
        contexts *= 0.7 / lengths
        contexts[:, :, 0] = rng.uniform(-0.7, 0.7, size=contexts.shape[:2])
        return contexts, contexts[:, :, 0]

    def rewards(self, means, actions, rng):
        """Draw rewards: one number from `rng` a round, whatever the action."""
        chosen = means[np.arange(len(actions)), actions]
        return np.where(rng.random(len(actions)) < (1.0 + chosen) / 2.0, 1.0, -1.0)


def policies(epsilon, n_features):
    """Policies by name."""
    common = {"epsilon": epsilon, "delta": 1e-6, "fit_intercept": False, "random_state": 0}
    common |= {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
    named = {"random": RandomPolicy()}
    improper = ImproperSGDRegressor(**common)
    named["improper descent"] = SquareCB(oracle=improper, schedule=EPOCHS)
    if n_features <= DENSE_UP_TO:
        named["SSP"] = SquareCB(oracle=SSPRegressor(**common), schedule=EPOCHS)
    exact = ImproperSGDRegressor(**{**common, "privacy": "none"})
    named["improper descent, not private"] = SquareCB(oracle=exact, schedule=EPOCHS)
    return named


def draw(numbers):
    """Fractions of random's regret against the number of features, of a record."""
    from matplotlib import pyplot

    table, sizes = numbers["mean and standard error"], numbers["features"]
    figure, ax = pyplot.subplots(figsize=(4.6, 3.4), layout="constrained")
    for name in sorted({name for row in table for name in row}):
        known = [(d, *row[name]) for d, row in zip(sizes, table) if name in row]
        features, mean, error = np.transpose(known)
        ax.errorbar(features, mean, error, marker="o", ms=3, label=name)
    ax.set(xscale="log", xlabel="features", ylabel="fraction of random's regret", ylim=(0, 1.05))
    ax.legend(fontsize=8)
    return figure


def main():
    """Print the table, and record it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[10, 50, 200, 1000, 2000])
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--actions", type=int, default=5)
    options = parser.parse_args()
    table, start = [], time.perf_counter()
    print(f"fraction of random's regret at T={options.horizon}, epsilon={options.epsilon:g}")
    for n_features in options.features:
        result = simulate(
            policies(options.epsilon, n_features),
            OneDirection(options.actions, n_features),
            options.horizon,
            n_runs=options.runs,
            n_jobs=options.jobs,
            random_state=options.seed,
            n_records=50,
        )
        final = result.regret_[:, :, -1] / result.regret_[0, :, -1].mean()
        many = options.runs > 1  # one run has no standard error
        error = (
            final.std(axis=1, ddof=1) / np.sqrt(options.runs)
            if many
            else np.full(len(final), np.nan)
        )
        row = dict(zip(result.names, zip(final.mean(axis=1), error)))
        table.append({name: value for name, value in row.items() if name != "random"})
        cells = "  ".join(
            f"{name} {m:.3f}{f' +-{e:.3f}' * many} ({s:.1f} s)"
            for (name, (m, e)), s in zip(row.items(), result.seconds.mean(axis=1))
        )
        print(f"d={n_features:5d}  {cells}", flush=True)
    print(f"{time.perf_counter() - start:.0f} seconds in all")
    record("bandit_square_cb", {**vars(options), "mean and standard error": table})


if __name__ == "__main__":
    main()
