"""Bandits in a world that changes, with windows over released sums and without.

Run: python benchmarks/bandit_drift.py [--horizon 20000] [--runs 6] [--epsilon 1] [--jobs 2]
     [--epochs]

In the first world the weights are drawn anew after half of the rounds, in the second after every
quarter, and in the third they turn slowly from one direction to the next. The others do not change.
Numbers are mean and worst regret; both policies of a line play the same rounds. With --epochs they
are policies of epochs of 500 rounds.
"""

import argparse

import numpy as np
from _bandit_environments import RareArms
from _record import record
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from skpriv.bandits import (
    ActionElimination,
    EpochGreedy,
    LinearEnvironment,
    LinSquareCB,
    LinUCB,
    SquareCB,
    SupervisedEnvironment,
    simulate,
)
from skpriv.linear_model import SSPRegressor

EPOCH = 500  # rounds


class Changing(LinearEnvironment):
    """Weights that are drawn anew every so many rounds, at once or by turning slowly."""

    def __init__(self, every, slowly=False):
        super().__init__()
        self.every, self.slowly = every, slowly

    def start(self, rng):
        """Draw the weights of all parts of a run."""
        started = super().start(rng)
        weights = rng.standard_normal((100, self.n_features))
        started._weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
        started._passed = 0
        return started

    def sample(self, n_rounds, rng):
        """Contexts and mean rewards of the next rounds."""
        contexts, _ = super().sample(n_rounds, rng)
        place = (self._passed + np.arange(n_rounds)) / self.every
        self._passed += n_rounds
        part = place.astype(int)
        coef = self._weights[part]
        if self.slowly:
            share = (place - part)[:, None]
            coef = (1.0 - share) * coef + share * self._weights[part + 1]
            coef /= np.linalg.norm(coef, axis=1, keepdims=True)
        return contexts, np.clip(np.einsum("nkd,nd->nk", contexts, coef), -1.0, 1.0)


def table(load):
    """A table for classification, with a constant and rows of norm at most 1."""
    X, y = load(return_X_y=True)
    X = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    return SupervisedEnvironment(X / np.linalg.norm(X, axis=1).max(), y, blocks=False)


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--epochs", action="store_true")
    args = parser.parse_args()
    policies = (SquareCB, EpochGreedy, ActionElimination) if args.epochs else (LinUCB, LinSquareCB)
    worlds = {
        "new weights after a half": Changing(args.horizon // 2),
        "new weights after each quarter": Changing(args.horizon // 4),
        "weights that turn slowly": Changing(args.horizon // 2, slowly=True),
        "linear": LinearEnvironment(),
        "fixed arms": LinearEnvironment(contexts="fixed"),
        "rare arms": RareArms(),
        "iris": table(load_iris),
        "wine": table(load_wine),
        "breast cancer": table(load_breast_cancer),
    }
    numbers = {}
    print(f"{'':<34}{'all rounds':>18}{'windows':>18}{'ratio':>8}")
    for name, world in worlds.items():
        for Policy in policies:
            options = {"epsilon": args.epsilon, "delta": 1e-6, "bounds_y": world.bounds_rewards}
            if args.epochs:
                oracle = SSPRegressor(data_norm=1.0, fit_intercept=False, **options)
                options = {"oracle": oracle, "schedule": EPOCH}
            if isinstance(world, SupervisedEnvironment):
                options |= {"shared": False, "n_actions": world.n_actions}
            found = []
            for window in (None, "auto"):
                result = simulate(
                    [Policy(window=window, **options)],
                    world,
                    horizon=args.horizon,
                    n_runs=args.runs,
                    random_state=1,
                    n_jobs=args.jobs,
                )
                found.append(result.regret_[0, :, -1])
            label = f"{name}, {Policy.__name__}"
            said = "".join(f"{part.mean():>10,.0f} /{part.max():>6,.0f}" for part in found)
            ratio = found[1].mean() / found[0].mean()
            print(f"{label:<34}{said}{ratio:>8.2f}", flush=True)
            numbers[label] = {"all rounds": found[0], "windows": found[1]}
    record(f"bandit_drift{'_epochs' * args.epochs}{'_exact' * (args.epsilon == np.inf)}", numbers)


if __name__ == "__main__":
    main()
