"""Regret of FLIPHAT against the number of coefficients that it is told to keep.

Run: python benchmarks/bandit_fliphat_guess.py [--runs 4] [--jobs 2] [--seed 5] [--horizon 10000]
     [--guesses 5 10 20 40 60]

The left panel of Figure 3 of Chakraborty, Roy and Basu (2024): d=400, K=3, delta=.01, and ten
coefficients that are not zero, of which the policy is told fewer or more. Numbers are regret as a
fraction of that of RandomPolicy in the same runs. Two policies without privacy follow, which are
told nothing: LassoBandit, and EpsilonGreedy with a lasso.
"""

import argparse
from types import SimpleNamespace

import numpy as np
from _record import record
from bandit_fliphat import cell, run, subplots
from sklearn.linear_model import Lasso

from skpriv.bandits import (
    EpsilonGreedy, LassoBandit, RandomPolicy, SparseLinearEnvironment, simulate,
)  # fmt: skip

EPSILONS = (1.0, 5.0)
RANGE = 2.5 * np.sqrt(2.0)  # of rewards, for twice the coefficients of `bandit_fliphat`


def draw(numbers):
    """Regret against the guess, of a record."""
    figure, (ax,) = subplots(1)
    for epsilon, table in zip(numbers["epsilons"], np.array(numbers["fractions"])):
        error = table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
        label = f"epsilon {epsilon:g}"
        ax.errorbar(numbers["guesses"], table.mean(axis=1), error, marker="o", ms=3, label=label)
    ax.axvline(10, color="k", ls=":", lw=1)
    ax.set(xlabel="coefficients to keep", ylabel="fraction of random's regret", ylim=(0, None))
    ax.legend(fontsize=8)
    return figure


def main():
    """Print a table, and record it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--guesses", type=int, nargs="+", default=[5, 10, 20, 40, 60])
    options = parser.parse_args()
    seeds = SimpleNamespace(jobs=options.jobs, seed=options.seed)
    found = []
    for guess in options.guesses:
        told = {"n_nonzero_coefs": guess, "bounds_y": (-RANGE, RANGE)}
        result = run(EPSILONS, seeds, options.runs, options.horizon, {"n_informative": 10}, **told)
        found.append(result.fractions[:, :, -1])
        cells = "".join(f"{cell(runs):>16}" for runs in found[-1])
        print(f"{guess:6}{cells}", flush=True)
    result = simulate(
        [RandomPolicy(), LassoBandit(alpha=0.1), EpsilonGreedy(Lasso(0.02, fit_intercept=False))],
        SparseLinearEnvironment(n_informative=10), options.horizon, options.runs, options.jobs,
        random_state=options.seed,
    )  # fmt: skip
    exact = dict(zip(result.names, result.regret_[:, :, -1] / result.regret_[0, :, -1].mean()))
    for name in result.names[1:]:
        print(f"{name}: {cell(exact[name])}")
    fractions = np.swapaxes(found, 0, 1)  # epsilons, guesses, runs
    numbers = {**vars(options), "epsilons": EPSILONS, "fractions": fractions}
    record("bandit_fliphat_guess", {**numbers, "without privacy": exact})


if __name__ == "__main__":
    main()
