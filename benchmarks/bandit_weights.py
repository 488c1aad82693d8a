"""Weights of gaps on environments that took no part when they were chosen.

Run: python benchmarks/bandit_weights.py [--horizon 10000] [--runs 4] [--epsilon 1]

Mean regret of SquareCB with SSPRegressor, and of LinSquareCB, for several constants in place of
their own (15 and 45). Two environments are real tables, two are linear, and the rewards of one are
of classes that no line separates.
"""

import argparse

import numpy as np
from _record import record
from sklearn.datasets import load_diabetes, make_classification

from skpriv.bandits import LinearEnvironment, LinSquareCB, SquareCB, SupervisedEnvironment, simulate
from skpriv.bandits._epochs import _rules
from skpriv.datasets import load_warfarin
from skpriv.linear_model import SSPRegressor
from skpriv.preprocessing import BoundsScaler

SQUARE = 4.0, 8.0, 15.0, 30.0, 60.0
RUNNING = 8.0, 15.0, 30.0, 45.0, 60.0, 120.0


def table(X, y):
    """Classes as actions; rows scaled by public bounds, a constant, and within the unit ball."""
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.maximum(high - low, 1e-12) - 0.5
    rows = np.column_stack([X, np.full(len(X), 0.5 * np.sqrt(X.shape[1]))])
    return SupervisedEnvironment(rows / np.linalg.norm(rows, axis=1).max(), y)


def doses():
    """Doses of warfarin: below 21 mg a week, up to 49, and above (the usual public cut-offs)."""
    data = load_warfarin()
    rows = BoundsScaler(data.bounds, exclusive=data.exclusive).fit_transform(data.data)
    rows = np.column_stack([rows, np.ones(len(rows))]) / np.sqrt(2.0)
    dose = np.asarray(data.target)
    return SupervisedEnvironment(rows, (dose >= 21.0) + 1 * (dose > 49.0))


def environments():
    """Environments by name."""
    X, y = load_diabetes(return_X_y=True)
    apart = make_classification(
        3000, n_features=6, n_informative=4, n_classes=5, n_clusters_per_class=2, random_state=7
    )
    return {
        "8 arms, 20 features": LinearEnvironment(n_actions=8, n_features=20),
        "3 fixed arms, normal noise": LinearEnvironment(
            n_actions=3, n_features=4, contexts="fixed", noise=0.3
        ),
        "diabetes": table(X, np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)),
        "warfarin": doses(),
        "five classes": table(*apart),
    }


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--epsilon", type=float, default=1.0)
    args = parser.parse_args()
    numbers = dict(vars(args))
    for name, world in environments().items():
        options = {"epsilon": args.epsilon, "delta": 1e-6, "bounds_y": world.bounds_rewards}
        oracle = SSPRegressor(data_norm=1.0, fit_intercept=False, **options)
        if isinstance(world, SupervisedEnvironment):
            options["reward_offset"] = 0.5
        for label, constants in (("SquareCB", SQUARE), ("LinSquareCB", RUNNING)):
            found = []
            for constant in constants:
                if label == "SquareCB":
                    _rules.ERROR_WEIGHT = constant
                    policy = SquareCB(oracle)
                else:
                    policy = LinSquareCB(gap_weight=constant, **options)
                result = simulate(
                    [policy], world, horizon=args.horizon, n_runs=args.runs, random_state=2
                )
                found.append(result.regret_[0, :, -1])
            cells = "".join(f"{part.mean():>10,.0f}" for part in found)
            print(f"{name + ', ' + label:<40}{cells}", flush=True)
            numbers[f"{name}, {label}"] = dict(zip(map(str, constants), found, strict=True))
            record("bandit_weights", numbers)


if __name__ == "__main__":
    main()
