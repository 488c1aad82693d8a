"""Which regressor, or classifier, is a good oracle: regret of epoch policies with each of them.

Run: python benchmarks/bandit_oracles.py [--horizon 20000] [--runs 4] [--epsilon 1] [--jobs 1]

Rewards have two values in all environments. Lines have an intercept where rewards are 0 or 1.
Numbers are mean and worst regret; all oracles of a line play the same rounds.
"""

import argparse

from _bandit_environments import environments
from _record import record

from skpriv.bandits import EpochGreedy, SquareCB, simulate
from skpriv.linear_model import LinearRegression, LogisticRegression, SSPRegressor

NAMES = (
    "linear", "fixed arms", "rare arms", "logistic", "10 logistic", "iris", "wine", "breast cancer",
    "synthetic",
)  # fmt: skip


def oracles(world, epsilon):
    """Oracles by name."""
    low, high = world.bounds_rewards
    common = {"epsilon": epsilon, "delta": 1e-6, "data_norm": 1.0}
    line = {**common, "bounds_y": (low, high), "fit_intercept": low == 0.0}
    return {
        "SSPRegressor": SSPRegressor(**line),
        "LinearRegression": LinearRegression(**line),
        "LogisticRegression": LogisticRegression(
            **common, classes=(low, high), fit_intercept=low == 0.0
        ),
    }


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=NAMES)
    args = parser.parse_args()
    numbers = dict(vars(args))
    for Policy in (SquareCB, EpochGreedy):
        for name in args.only:
            world = environments(args.horizon)[name][0]
            policies = {k: Policy(oracle) for k, oracle in oracles(world, args.epsilon).items()}
            result = simulate(
                policies, world, horizon=args.horizon, n_runs=args.runs, random_state=1,
                n_jobs=args.jobs,
            )  # fmt: skip
            final = dict(zip(policies, result.regret_[:, :, -1], strict=True))
            cells = "".join(
                f"{part.mean():>10,.0f} /{part.max():>6,.0f}" for part in final.values()
            )
            print(f"{Policy.__name__}, {name:<16}{cells}", flush=True)
            numbers[f"{Policy.__name__}, {name}"] = final
    record("bandit_oracles", numbers)


if __name__ == "__main__":
    main()
