"""Regret of the policies over environments that none of them was made for.

Run: python benchmarks/bandits.py [--horizon 20000] [--runs 5] [--epsilon 1 4] [--jobs 2]
     [--only linear "fixed arms"] [--policies LinUCB SquareCB] [--name bandits] [--million]

Environments: linear rewards of independent contexts, fixed arms, arms that come rarely, logistic
rewards, tables for classification (classes are the actions), and coba's synthetic linear and MLP
environments; five of them were added when all constants had been set. All private policies have
(epsilon, 1e-6); weights for each action and the bounds are public. "today" marks the forms before
running sums were read at growing times and epochs were pooled. Without privacy: LinUCB, Thompson
sampling, and Vowpal Wabbit's SquareCB (cb_explore_adf). --million: fixed arms for 1e6 rounds
instead, without a horizon. Cells are mean / worst regret.
"""

import argparse

import numpy as np
from _bandit_environments import environments
from _record import record

from skpriv.bandits import (
    ActionElimination,
    EpochGreedy,
    LinearEnvironment,
    LinSquareCB,
    LinUCB,
    RandomPolicy,
    SquareCB,
    simulate,
)
from skpriv.bandits._ucb._sums import Region
from skpriv.linear_model import SSPRegressor


class Thompson(LinUCB):
    """Thompson sampling without privacy, on the textbook's posterior."""

    def _make_region(self, equations):
        covariance = np.linalg.inv(equations.design + self.alpha * np.eye(len(equations.target)))
        return Region(covariance @ equations.target, covariance)

    def _choose(self, contexts, available):
        (n_rounds, n_actions, n_features), region = contexts.shape, self._region
        phi = self._features(contexts.reshape(-1, n_features)).reshape(n_rounds, n_actions, -1)
        root = np.linalg.cholesky(region.form)
        draws = region.centre + self._rng.standard_normal((n_rounds, len(root))) @ root.T
        index = np.einsum("nkj,nj->nk", phi, draws)
        return np.eye(n_actions)[index.argmax(axis=1)]


class Vowpal(RandomPolicy):
    """Vowpal Wabbit's SquareCB on the features of the actions, without privacy."""

    def _start(self, n_phi):
        from vowpalwabbit import Workspace

        self._vw = Workspace("--cb_explore_adf --squarecb --quiet --noconstant")
        self._low, self._width = self.bounds[0], self.bounds[1] - self.bounds[0]

    bounds = (-1.0, 1.0)

    @property
    def rounds_until_update_(self):
        """Vowpal learns from every round."""
        return 1

    def _act(self, contexts, available, rng):
        lines = [_line(row) for row in contexts[0]]
        chances = np.array(self._vw.predict(lines))
        action = int(rng.choice(len(chances), p=chances / chances.sum()))
        return np.array([action]), chances[[action]]

    def _update(self, rows, rewards):
        cost = (self._low - rewards[0]) / self._width
        self._vw.learn([f"0:{cost}:1.0 {_line(rows[0])}"])
        self.n_rounds_ += 1


def _line(row):
    return "| " + " ".join(f"{i}:{value:.4g}" for i, value in enumerate(row) if value)


def policies(epsilon, bounds, offset, horizon):
    """Private policies by name."""
    sums = {"epsilon": epsilon, "bounds_y": bounds, "reward_offset": offset}
    shuffled = {**sums, "privacy": "shuffle"}
    # An intercept where others are told the reward of a zero feature.
    oracle = SSPRegressor(
        data_norm=1.0, epsilon=epsilon, bounds_y=bounds, fit_intercept=bool(offset)
    )
    old = {"update_every": horizon // 200, "horizon": horizon, "bonus_scale": 1.0}
    return {
        "LinUCB": LinUCB(**sums),
        "LinUCB, today": LinUCB(**sums, **old),
        "LinUCB, today, half": LinUCB(**sums, **{**old, "bonus_scale": 0.5}),
        "LinSquareCB": LinSquareCB(**sums),
        "LinUCB, shared sum": LinUCB(**{**sums, "privacy": "aggregate"}),
        "LinUCB, amplified": LinUCB(**shuffled),
        "LinUCB, local": LinUCB(**{**sums, "privacy": "local"}),
        "SquareCB": SquareCB(oracle),
        "SquareCB, today": SquareCB(oracle, forget=True),
        "EpochGreedy": EpochGreedy(oracle),
        "EpochGreedy, today": EpochGreedy(oracle, forget=True, exploration=0.0),
        "elimination": ActionElimination(oracle),
        "elimination, today": ActionElimination(oracle, interval="certified"),
    }


def references(bounds, offset):
    """What is not private, by name."""
    exact = {"privacy": "none", "bounds_y": bounds, "reward_offset": offset, "update_every": 20}
    return {
        "random": RandomPolicy(),
        "LinUCB, not private": LinUCB(**exact),
        "Thompson, not private": Thompson(**exact),
    }


def measure(named, env, horizon, options):
    """Mean and worst regret by policy."""
    result = simulate(named, env, horizon, options.runs, options.jobs, random_state=0, n_records=10)
    final = result.regret_[:, :, -1]
    return {
        name: {"mean": runs.mean(), "worst": runs.max(), "runs": runs}
        for name, runs in zip(result.names, final, strict=True)
    }


def main():
    """Print a table for each environment, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--policies", nargs="*", help="of the private ones; all by default")
    parser.add_argument("--name", default="bandits", help="of the file of results")
    parser.add_argument("--million", action="store_true")
    options = parser.parse_args()
    horizon, known = options.horizon, environments(options.horizon)
    if options.million:
        horizon, known = 1_000_000, {"fixed arms": (LinearEnvironment(contexts="fixed"), 0.0)}
    numbers = {}
    for name, (env, offset) in known.items():
        if options.only and name not in options.only:
            continue
        bounds = env.bounds_rewards
        table: dict = {}
        if not options.million and not options.policies:
            table[""] = measure(references(bounds, offset), env, horizon, options)
            vowpal = type("Vowpal", (Vowpal,), {"bounds": bounds})
            table[""] |= measure({"Vowpal Wabbit, not private": vowpal()}, env, horizon, options)
        for epsilon in options.epsilon:
            private = policies(epsilon, bounds, offset, horizon)
            if options.million:
                private = {k: private[k] for k in ("LinUCB", "LinSquareCB", "LinUCB, shared sum")}
            if options.policies:
                private = {k: private[k] for k in options.policies}
            table[f"epsilon {epsilon:g}"] = measure(private, env, horizon, options)
        for group, cells in table.items():
            for policy, cell in cells.items():
                where = f"{name:14} {group:10} {policy:26}"
                print(f"{where} {cell['mean']:8.0f} / {cell['worst']:8.0f}", flush=True)
        numbers[name] = table
    record("bandits_million" if options.million else options.name, numbers)


if __name__ == "__main__":
    main()
