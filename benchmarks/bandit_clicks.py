"""Clicks at rates of .5, .1 and .01, beside Vowpal Wabbit and MABWiser.

Run: python benchmarks/bandit_clicks.py [--horizon 100000] [--runs 2] [--rates .5 .1 .01]
     [--epsilons 1 3 inf] [--only WORDS]

Five actions are shown to visitors of whom three numbers are known, and the log odds of a click are
linear in them, with weights for each action. A number is the regret over that of playing at random,
in percent. Policies of this package have their standard settings, rewards in [0, 1] and rows (the
numbers, 1) of length at most 1 in the block of an action. The other libraries are not private. They
get the same rows, Vowpal Wabbit with a namespace of the visitor and one of the action, whose
products it learns, and MABWiser in batches of 100 rounds.
"""

import argparse
import time
from itertools import product

import numpy as np
from _record import record
from scipy.special import expit, logit

from skpriv.bandits import LinSquareCB, LinUCB, RandomPolicy, SquareCB
from skpriv.linear_model import LogisticRegression, SSPRegressor

ACTIONS, KNOWN = 5, 3
VOWPAL = {
    "Vowpal Wabbit, squarecb": "--squarecb",
    "Vowpal Wabbit, epsilon": "--epsilon 0.05",
}


class Visitors:
    """Rows of visitors, and the chances that each of them clicks on each action."""

    def __init__(self, rate, horizon, seed):
        rng = np.random.default_rng(seed)
        visitors = rng.choice([-1.0, 1.0], size=(horizon, KNOWN))
        self.rows = np.column_stack([visitors, np.ones(horizon)]) / np.sqrt(KNOWN + 1.0)
        effects = rng.normal(size=(KNOWN, ACTIONS))
        effects *= 0.9 / np.abs(effects).sum(axis=0)
        levels = logit(rate) + rng.uniform(-0.1, 0.1, ACTIONS)
        self.chances = expit(levels + visitors @ effects)
        self.clicks = rng.random((horizon, ACTIONS)) < self.chances

    def lost(self, rounds, actions):
        """Regret of some rounds."""
        chances = self.chances[rounds]
        return (chances.max(axis=1) - chances[np.arange(len(chances)), actions]).sum()


class OfSkpriv:
    """A policy of this package with weights for each action, by its rows."""

    def __init__(self, policy):
        self.policy = policy

    def __call__(self, visitors, rounds):
        """Play rounds and learn from them; the actions."""
        rows = visitors.rows[rounds]
        actions = self.policy.act(rows)
        self.policy.update(rows, actions, 1.0 * visitors.clicks[rounds][range(len(rows)), actions])
        return actions

    @property
    def until(self):
        """Rounds that may be played at once."""
        return self.policy.rounds_until_update_


class InBlocks(OfSkpriv):
    """A policy of this package with rows in the block of an action."""

    def __call__(self, visitors, rounds):
        """Play rounds and learn from them; the actions."""
        rows = visitors.rows[rounds]
        index = np.arange(len(rows))
        contexts = np.zeros((len(rows), ACTIONS, ACTIONS, KNOWN + 1))
        for action in range(ACTIONS):
            contexts[:, action, action] = rows
        contexts = contexts.reshape(len(rows), ACTIONS, -1)
        actions = self.policy.act(contexts)
        self.policy.update(contexts, actions, 1.0 * visitors.clicks[rounds][index, actions])
        return actions


class OfVowpal:
    """Vowpal Wabbit, which learns at each round."""

    until = 1000

    def __init__(self, words, seed):
        import vowpalwabbit

        words = f"--cb_explore_adf {words} --quiet -q SA --ignore_linear S --random_seed {seed + 1}"
        self.learner = vowpalwabbit.Workspace(words)
        self.rng = np.random.default_rng(seed)

    def __call__(self, visitors, rounds):
        """Play rounds and learn from them; the actions."""
        played = []
        for row, clicks in zip(visitors.rows[rounds], visitors.clicks[rounds], strict=True):
            head = "shared |S " + " ".join(f"{j}:{value:.4f}" for j, value in enumerate(row))
            lines = [head, *(f"|A a{action}" for action in range(ACTIONS))]
            chances = np.array(self.learner.predict(lines))
            chances /= chances.sum()
            action = int(self.rng.choice(ACTIONS, p=chances))
            cost = f"0:{-float(clicks[action])}:{chances[action]} "
            lines[action + 1] = cost + lines[action + 1]
            self.learner.learn(lines)
            played.append(action)
        return np.array(played)


class OfMabwiser:
    """LinUCB of MABWiser."""

    until = 100

    def __init__(self, seed):
        from mabwiser.mab import MAB, LearningPolicy

        self.mab = MAB(list(range(ACTIONS)), LearningPolicy.LinUCB(alpha=1.0), seed=seed)
        self.rng = np.random.default_rng(seed)
        self.fitted = False

    def __call__(self, visitors, rounds):
        """Play rounds and learn from them; the actions."""
        rows = visitors.rows[rounds]
        actions = self.rng.integers(ACTIONS, size=len(rows))
        if self.fitted:
            actions = np.array(self.mab.predict(rows))
        clicks = 1.0 * visitors.clicks[rounds][np.arange(len(rows)), actions]
        learn = self.mab.partial_fit if self.fitted else self.mab.fit
        learn(decisions=list(actions), rewards=list(clicks), contexts=rows)
        self.fitted = True
        return actions


def players(epsilon, seed):
    """Policies of this package, by name."""
    common = {"epsilon": epsilon, "random_state": seed}
    line = SSPRegressor(data_norm=1.0, bounds_y=(0, 1), **common)
    odds = LogisticRegression(data_norm=1.0, classes=(0, 1), **common)
    own = {"shared": False, "n_actions": ACTIONS}
    sums = {"bounds_y": (0, 1), **common}
    return {
        "LinUCB": InBlocks(LinUCB(**sums)),
        "LinUCB, shared=False": OfSkpriv(LinUCB(**sums, **own)),
        "LinSquareCB": InBlocks(LinSquareCB(**sums)),
        "SquareCB, SSPRegressor": InBlocks(SquareCB(line, random_state=seed)),
        "SquareCB, LogisticRegression": InBlocks(SquareCB(odds, random_state=seed)),
        "random": InBlocks(RandomPolicy(random_state=seed)),
    }


def others(seed):
    """Policies of other libraries, by name, which are made when they are needed."""
    vowpal = {name: lambda words=words: OfVowpal(words, seed) for name, words in VOWPAL.items()}
    return {**vowpal, "MABWiser, LinUCB": lambda: OfMabwiser(seed)}


def played(player, visitors):
    """Regret of a player."""
    done, lost = 0, 0.0
    while done < len(visitors.rows):
        rounds = slice(done, min(len(visitors.rows), done + player.until))
        lost += visitors.lost(rounds, player(visitors, rounds))
        done = rounds.stop
    return float(lost)


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--rates", type=float, nargs="+", default=(0.5, 0.1, 0.01))
    parser.add_argument("--epsilons", type=float, nargs="+", default=(1.0, 3.0, np.inf))
    parser.add_argument("--only", nargs="+", default=[""])
    args = parser.parse_args()
    numbers = {"horizon": args.horizon, "runs": args.runs}
    cells = {}
    for rate, epsilon in product(args.rates, [*args.epsilons, "not private"]):
        outside = epsilon == "not private"
        made = others(0) if outside else players(epsilon, 0)
        for name in made:
            if not any(word in name for word in args.only):
                continue
            found = []
            before = time.process_time()
            for seed in range(args.runs):
                visitors = Visitors(rate, args.horizon, seed)
                player = others(seed)[name]() if outside else players(epsilon, seed)[name]
                by_chance = visitors.chances.max(axis=1) - visitors.chances.mean(axis=1)
                found.append(100.0 * played(player, visitors) / by_chance.sum())
            cells[f"{name}, rate {rate:g}, epsilon {epsilon}"] = found
            seconds = time.process_time() - before
            print(f"{rate:5g} {epsilon!s:>12} {name:30}{np.mean(found):7.1f}%"
                  f"  worst {max(found):6.1f}% {seconds:7.1f} s", flush=True)  # fmt: skip
    record("bandit_clicks", {**numbers, "percent of the regret at random": cells})


if __name__ == "__main__":
    main()
