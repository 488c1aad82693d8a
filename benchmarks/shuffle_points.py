"""Free numbers of the sorter's theorem on a grid of budgets and numbers of users.

Run: python benchmarks/shuffle_points.py [--write]

The theorem of docs/mathematics/shuffle.md holds at every choice of five free numbers, and a search
for the best ones takes .2 to 1 s. The package has those of a grid, and begins a short search with
the numbers between its points: what is returned is proved at the numbers that were taken, so that a
bad table costs accuracy and no privacy. `--write` makes the table, in two minutes; otherwise what
the table loses against the long search is printed, at random budgets.
"""

import argparse
import json
import math
from pathlib import Path
from time import process_time

import numpy as np
from _record import record
from scipy.special import ndtri

from skpriv import Budget
from skpriv.privacy import _amplification
from skpriv.privacy._accounting._cost import gdp_mu
from skpriv.privacy._amplification import (
    LARGEST_REACH,
    Point,
    _largest_mu,
    nearby_best,
    sorter_mu,
)

TABLE = Path(_amplification.__file__).with_name("points.json")
EPSILONS = [2.0**k for k in range(-5, 5)]
USERS = [round(10.0 ** (k / 2.0)) for k in range(4, 15)]
DELTAS = [1e-4, 1e-6, 1e-8, 1e-10, 1e-12]


def made():
    """The table: logarithms of epsilon, n and one over delta, and six numbers at each point.

    Where none were found there are those of the next smaller epsilon.
    """
    shape = (len(EPSILONS), len(USERS), len(DELTAS))
    points = np.empty((*shape, 6))
    for i, j, k in np.ndindex(shape):
        found = numbers(Budget(EPSILONS[i], DELTAS[k]), USERS[j])
        points[i, j, k] = points[i - 1, j, k] if found is None else found
    axes = (EPSILONS, USERS, np.reciprocal(DELTAS))
    return {"points": [np.log(axis).round(6).tolist() for axis in axes], "values": points.tolist()}


def numbers(budget, n):
    """The logarithm of mu and the five free numbers."""
    mu, point = searched(budget, n, LARGEST_REACH)
    return [round(float(x), 3) for x in (np.log(mu), *point)] if mu else None


def searched(budget, n, reach):
    """Largest Gaussian mu of a report that was found and proved, or 0, and its point.

    In turn: the best point at a mu, and the largest mu that this point proves.
    """
    mu = _first_guess(budget, n)
    starts, best = _starts(budget, n, mu), 0.0
    # Six searches, each at the mu that the last one proved
    for _ in range(6):
        found = [nearby_best(budget, mu, n, reach, start, 200) for start in starts]
        point = min(found, key=lambda pair: pair[0])[1]
        proved = _largest_mu(budget, n, reach, point, mu)
        if proved == 0.0:
            mu *= 0.7
            if best > 0.0 or mu < budget.mu:
                break
            starts = _starts(budget, n, mu)
            continue
        done, best, mu, starts = proved < best * 1.0005, proved, proved, [point]
        if done:
            break
    return best, starts[0]


def _first_guess(budget, n):
    """What is about in reach: one report outdoes the others, or their sum strays, as a Gaussian."""
    excess, log = math.expm1(budget.epsilon), math.log(1.0 / budget.delta)
    alone = gdp_mu(math.log1p(n * excess), budget.delta)
    together = math.sqrt(math.log1p(n * excess**2 / (4.0 * log)))
    return max(budget.mu, 0.9 * min(alone, together))


def _starts(budget, n, mu):
    log = math.log(1.0 / budget.delta)
    slot = max(1.0, -float(ndtri(min(0.1, 1e-2 * budget.delta * n))))
    return [
        Point(math.log(log), 2.0 * mu, -0.3, log + 4.0, slot),
        Point(math.log(log) - 1.0, 3.5 * mu, -0.3, log + 4.0, slot),
    ]


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
