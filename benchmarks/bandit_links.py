"""Policies of the papers that only this script measures: a link, and the combination of policies.

Run: python benchmarks/bandit_links.py [--horizon 20000] [--runs 2] [--epsilon 4]

"logistic" has rewards of 0 or 1, whose log odds are linear: SquareCB and elimination with
re-weighted regression under the logistic link and without it. "linear" has LinUCB on an online
learner, a policy that plays at random, and the combination of the two, under local privacy.
"""

import argparse

from _bandit_environments import LogisticEnvironment
from _record import record

from skpriv.bandits import (
    ActionElimination,
    BanditCombiner,
    LinearEnvironment,
    LinUCB,
    OnlineLinUCB,
    RandomPolicy,
    SquareCB,
    simulate,
)
from skpriv.linear_model import ReweightedRegressor


def of_link(epsilon):
    """Policies with the logistic link and without it."""
    policies = {"LinUCB": LinUCB(epsilon=epsilon, bounds_y=(0, 1)), "random": RandomPolicy()}
    for link in ("logit", "identity"):
        oracle = ReweightedRegressor(
            epsilon=epsilon, delta=1e-6, data_norm=1.0, bounds_y=(0, 1), coef_norm=2.0, link=link,
            fit_intercept=False,
        )  # fmt: skip
        policies[f"SquareCB, {link}"] = SquareCB(oracle)
        policies[f"elimination, {link}"] = ActionElimination(oracle)
    return policies


def combined(epsilon, horizon):
    """Policies, and the combination of two of them."""
    options = {"epsilon": epsilon, "delta": 1e-6, "horizon": horizon}
    online = OnlineLinUCB(**options)
    return {
        "OnlineLinUCB": online,
        "random": RandomPolicy(),
        "combination": BanditCombiner([online, RandomPolicy()], **options),
    }


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=4.0)
    args = parser.parse_args()
    numbers = dict(vars(args))
    for name, world, policies in (
        ("linear", LinearEnvironment(), combined(args.epsilon, args.horizon)),
        ("logistic", LogisticEnvironment(), of_link(args.epsilon)),
    ):
        result = simulate(policies, world, args.horizon, args.runs, random_state=3)
        for label, regret in zip(policies, result.regret_[:, :, -1], strict=True):
            print(f"{name:10}{label:24}{regret.mean():10,.0f}", flush=True)
            numbers[f"{name}, {label}"] = regret
    record("bandit_links", numbers)


if __name__ == "__main__":
    main()
