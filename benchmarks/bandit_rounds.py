"""Rounds until a private policy earns more than the best fixed action, by rate of clicks.

Run: python benchmarks/bandit_rounds.py [--horizon 300000] [--runs 5]
     python benchmarks/bandit_rounds.py --policies [--horizon 30000] [--runs 3]

Five actions are shown to visitors of whom three numbers are known. The best fixed action has 1.1
times the mean rate of clicks, and the best action of each visitor 1.7 times, or 1.2 times where
effects are a third. A cell has the median round from which on the policy earns more, in the mean
of a ninth of all rounds, and in brackets what the best fixed action and the policy earn in the
end, over the mean rate. Settings are the standard ones, with rewards in [0, 1]. With --policies it
compares LinUCB with other policies, with strong effects at the two higher rates.
"""

import argparse
from itertools import product

import numpy as np
from _record import record

from skpriv.bandits import EpochGreedy, LinSquareCB, LinUCB, SquareCB, simulate
from skpriv.linear_model import SSPRegressor

EPSILONS, RATES, EFFECTS = (1.0, 5.0, np.inf), (0.3, 0.1, 0.03, 0.01), (0.9, 0.3)
ACTIONS, KNOWN = 5, 3
SUMS = {"LinUCB": LinUCB, "LinSquareCB": LinSquareCB}
EPOCHS = {"SquareCB": SquareCB, "EpochGreedy": EpochGreedy}


class Clicks:
    """Clicks at about this rate, which depends linearly on the action and on the visitor."""

    n_actions, n_features, bounds_rewards = ACTIONS, ACTIONS * (KNOWN + 1), (0.0, 1.0)

    def __init__(self, rate, effect):
        self.rate, self.effect = rate, effect

    def start(self, rng):
        """Draw the effects of a run."""
        self.effects = rng.normal(size=(ACTIONS, KNOWN))
        self.effects *= self.effect / np.abs(self.effects).sum(axis=1, keepdims=True)
        self.levels = rng.uniform(-0.1, 0.1, ACTIONS)
        return self

    def sample(self, n_rounds, rng):
        """Rows (visitor, 1) in the block of an action, within the unit ball; and mean rewards."""
        visitors = rng.choice([-1.0, 1.0], size=(n_rounds, KNOWN))
        rows = np.column_stack([visitors, np.ones(n_rounds)]) / np.sqrt(KNOWN + 1.0)
        contexts = np.zeros((n_rounds, ACTIONS, ACTIONS, KNOWN + 1))
        for action in range(ACTIONS):
            contexts[:, action, action] = rows
        means = self.rate * (1.0 + self.levels + visitors @ self.effects.T)
        return contexts.reshape(n_rounds, ACTIONS, -1), np.clip(means, 0.0, 1.0)

    def rewards(self, means, actions, rng):
        """Clicks."""
        chosen = means[np.arange(len(actions)), actions]
        return (rng.random(len(actions)) < chosen).astype(float)


class Started(Clicks):
    """The same effects in every policy of a run."""

    def __init__(self, rate, effect, seed):
        super().__init__(rate, effect)
        self.seed = seed

    def start(self, rng):
        """Draw the effects by the seed of the run."""
        return super().start(np.random.default_rng(self.seed))

    def known(self):
        """Mean reward of the best action of each visitor, and of the best fixed one."""
        _, means = self.start(None).sample(20_000, np.random.default_rng(0))
        return means.max(axis=1).mean(), means.mean(axis=0).max()


def made(name, epsilon, horizon, seed):
    """A policy with its standard settings."""
    given = {"epsilon": epsilon, "bounds_y": (0, 1)}
    if name in SUMS:
        return SUMS[name](horizon=horizon, random_state=seed, **given)
    oracle = SSPRegressor(data_norm=1.0, delta=1e-6, random_state=seed, **given)
    return EPOCHS[name](oracle, random_state=seed)


def played(name, rate, effect, epsilon, seed, horizon):
    """Round from which on the policy earns more (inf: never), and what both earn at the end."""
    policy = made(name, epsilon, horizon, seed)
    env = Started(rate, effect, seed)
    result = simulate({name: policy}, env, horizon, n_runs=1, random_state=seed, n_records=100)
    best, chosen = env.known()
    rounds = np.concatenate([[0], np.asarray(result.rounds)])
    regret = np.concatenate([[0.0], result.regret_[0, 0]])
    earned = best - np.diff(regret) / np.diff(rounds)
    smooth = np.convolve(earned, np.ones(11) / 11.0, mode="valid")
    below = np.flatnonzero(smooth <= chosen)
    first = 0 if not len(below) else below[-1] + 1
    when = rounds[first + 5] if first < len(smooth) else np.inf
    return when, chosen / rate, smooth[-1] / rate


def main():
    """Play, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--policies", action="store_true")
    args = parser.parse_args()
    horizon = args.horizon or (30_000 if args.policies else 300_000)
    count = args.runs or (3 if args.policies else 5)
    epsilons = (0.3, 1.0, 5.0) if args.policies else EPSILONS
    names = (*SUMS, *EPOCHS) if args.policies else ("LinUCB",)
    worlds = product(EFFECTS[:1], RATES[:2]) if args.policies else product(EFFECTS, RATES)
    cells = {}
    print("| rate of clicks | effects | " + " | ".join(f"epsilon {e:g}" for e in epsilons) + " |")
    print("|---|---|" + "---|" * len(epsilons))
    for (effect, rate), name in product(worlds, names):
        row = []
        for epsilon in epsilons:
            runs = [played(name, rate, effect, epsilon, s, horizon) for s in range(count)]
            when, *earned = np.median(runs, axis=0)
            key = f"{rate:g}, {effect:g}, {epsilon:g}"
            cells[f"{name}, {key}" if args.policies else key] = [str(when), *map(float, earned)]
            when = f"{when:,.0f}" if np.isfinite(when) else f"> {horizon:,}"
            row.append("{} ({:.2f}, {:.2f})".format(when, *earned))
        print(f"| {rate:g} | {effect:g}, {name} | " + " | ".join(row) + " |", flush=True)
    numbers = {"horizon": horizon, "runs": count, "cells": cells}
    record("bandit_rounds_policies" if args.policies else "bandit_rounds", numbers)


if __name__ == "__main__":
    main()
