"""LinUCB beside the best fixed action that is found privately, in the first rounds of tables.

Run: python benchmarks/bandit_few_rounds.py [--runs 8] [--epsilons .3 1] [--only TABLE ...]

Classes are the actions, and the right one earns 1. "fixed" is the same policy with the same budget
which is told nothing of a round, so that it finds the best fixed action. Cells are the mean regret
of LinUCB over that of "fixed", up to rounds 300, 1,000 and 3,000.
"""

import argparse
from functools import partial

import numpy as np
from _bandit_environments import environments
from _record import record
from bandit_weights import environments as further
from bandit_weights import table
from sklearn.datasets import make_classification

from skpriv.bandits import LinUCB

ROUNDS = np.array([300, 1000, 3000])
TABLES = ("breast cancer", "wine", "iris", "synthetic")
FURTHER = ("diabetes", "warfarin", "five classes")


def unequal(classes, features):
    """Classes of which one has 80% of the rows."""
    rest = [0.2 / (classes - 1)] * (classes - 1)
    return make_classification(
        6000, n_features=features, n_informative=4, n_classes=classes, n_clusters_per_class=1,
        weights=[0.8, *rest], flip_y=0.05, random_state=5,
    )  # fmt: skip


def tables():
    """Functions that make the tables, by name."""
    made = {name: lambda name=name: environments(ROUNDS[-1])[name][0] for name in TABLES}
    made |= {name: lambda name=name: further()[name] for name in FURTHER}
    for classes, features in ((2, 8), (4, 8), (2, 40)):
        name = f"{classes} unequal classes, {features} features"
        made[name] = partial(lambda *sizes: table(*unequal(*sizes)), classes, features)
    return made


def regret(world, epsilon, fixed, seed):
    """Regret up to each of the rounds."""
    start, drawn, played = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
    world = world.start(start)
    contexts, means = world.sample(ROUNDS[-1], drawn)
    own = {"shared": False, "n_actions": means.shape[1]} if fixed else {}
    policy = LinUCB(epsilon=epsilon, bounds_y=(0, 1), random_state=seed, **own)
    contexts = np.ones((len(means), 1)) if fixed else contexts
    lost = np.empty(len(means))
    done = 0
    while done < len(means):
        part = slice(done, done + policy.rounds_until_update_)
        actions = policy.act(contexts[part])
        policy.update(contexts[part], actions, world.rewards(means[part], actions, played))
        lost[part] = means[part].max(axis=1) - means[part][np.arange(len(actions)), actions]
        done = part.stop
    return np.cumsum(lost)[ROUNDS - 1]


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--epsilons", type=float, nargs="+", default=(0.3, 1.0))
    parser.add_argument("--only", nargs="+", default=None)
    args = parser.parse_args()
    numbers = {"runs": args.runs, "rounds": ROUNDS}
    for name, make in tables().items():
        if args.only is not None and name not in args.only:
            continue
        world = make()
        for epsilon in args.epsilons:
            seeds = range(args.runs)
            learned, fixed = (
                np.array([regret(world, epsilon, fixed, seed) for seed in seeds])
                for fixed in (False, True)
            )
            ratios = learned.mean(axis=0) / fixed.mean(axis=0)
            error = (learned - fixed).std(axis=0) / np.sqrt(args.runs) / fixed.mean(axis=0)
            cells = "".join(f"{r:8.2f} +- {e:.2f}" for r, e in zip(ratios, error, strict=True))
            print(f"{name:32}{epsilon:5g}{cells}", flush=True)
            numbers[f"{name}, epsilon {epsilon:g}"] = {"LinUCB": learned, "fixed": fixed}
    record("bandit_few_rounds", numbers)


if __name__ == "__main__":
    main()
