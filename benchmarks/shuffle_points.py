"""Free numbers of the sorter's theorem on a grid of budgets and numbers of users.

Run: python benchmarks/shuffle_points.py [--write]

The theorem of docs/mathematics/shuffle.md holds at every choice of five free numbers, and a search
for the best ones takes .2 s. The package has those of a grid, and takes the numbers between its
points from them: what is returned is proved at the numbers that were taken, so that a bad table
costs accuracy and no privacy. `--write` makes the table, in two minutes; otherwise what the table
loses against the search is printed, at random budgets.
"""

import argparse
import json
from pathlib import Path
from time import process_time

import numpy as np
from _record import record

from skpriv import Budget
from skpriv.privacy import _amplification
from skpriv.privacy._amplification import LARGEST_REACH, searched, sorter_mu

TABLE = Path(_amplification.__file__).with_name("points.json")
EPSILONS = [2.0**k for k in range(-5, 5)]
USERS = [round(10.0 ** (k / 2.0)) for k in range(4, 15)]
DELTAS = [1e-4, 1e-6, 1e-8, 1e-10, 1e-12]


def made():
    """The table: logarithms of the axes, and six numbers at each point, or none."""
    points = [
        [[numbers(Budget(epsilon, delta), n) for delta in DELTAS] for n in USERS]
        for epsilon in EPSILONS
    ]
    axes = [np.log(axis).round(6).tolist() for axis in (EPSILONS, USERS, DELTAS)]
    return {"axes": axes, "points": points}


def numbers(budget, n):
    """The logarithm of mu and the five free numbers."""
    mu, point = searched(budget, n, LARGEST_REACH)
    return [round(float(x), 3) for x in (np.log(mu), *point.array())] if mu else None


def compared(n_budgets, rng):
    """Mu by the table and by the search, and their times."""
    rows = []
    for _ in range(n_budgets):
        budget = Budget(
            float(np.exp(rng.uniform(-3.0, 2.5))), float(10.0 ** rng.uniform(-11, -4.5))
        )
        n, reach = int(10.0 ** rng.uniform(2.0, 7.0)), rng.choice([0.5, LARGEST_REACH])
        start = process_time()
        known = sorter_mu(budget, n, reach)
        middle = process_time()
        found = searched(budget, n, reach)[0]
        end = process_time()
        rows.append((budget.epsilon, budget.delta, n, known, found, middle - start, end - middle))
    return np.array(rows)


def main():
    """Write the table, or print what it loses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--budgets", type=int, default=150)
    arguments = parser.parse_args()
    if arguments.write:
        TABLE.write_text(json.dumps(made(), separators=(",", ":")) + "\n", encoding="utf-8")
        return
    rows = compared(arguments.budgets, np.random.RandomState(0))
    known, found = rows[:, 3:5].T
    both = found > 0.0
    loss = 1.0 - known[both] / found[both]
    print(f"proved by the search: {both.sum()} of {len(rows)}; by the table: {(known > 0).sum()}")
    print(f"loss of mu: median {np.median(loss):.5f}, 95% {np.quantile(loss, 0.95):.5f}")
    print(f"            largest {loss.max():.4f}, smallest {loss.min():.4f}")
    print(f"milliseconds: {1e3 * rows[:, 5].mean():.1f} in place of {1e3 * rows[:, 6].mean():.1f}")
    record("shuffle_points", {"rows": rows.tolist()})


if __name__ == "__main__":
    main()
