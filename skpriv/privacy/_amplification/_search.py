"""The free numbers of the sorter's theorem: a table, a short search from it, and a long one.

Whatever they find, what is returned was proved at the numbers that were found (`_sorter.py`).
"""

import json
import math
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from .._accounting._conversions import gdp_mu
from ._sorter import COARSE, FINE, Point, log_sorter_delta

STEPS = (0.15, 0.5, 0.15, 1.0, 0.2)  # of the search, about what the best points differ by


def sorter_mu(budget, n, reach):
    """Largest Gaussian mu of a report that was found and proved, or 0; ``reach`` is A / mu.

    The free numbers are those of the table, and are searched where it has none: where it ends, and
    where it proves nothing.
    """
    if n < 3:
        return 0.0
    known = _tabled(math.log(budget.epsilon), math.log(n), math.log(budget.delta))
    if known is not None:
        log_mu, *numbers = known
        start, mu = Point(*numbers), math.exp(log_mu)
        mu = _largest_mu(budget, n, reach, start, mu, COARSE) or mu
        point = _search(budget, mu, n, reach, start, 60)[1]  # a third of a whole search
        proved = _largest_mu(budget, n, reach, point, mu, FINE)
        if proved > 0.0:
            return proved
    return searched(budget, n, reach)[0]


@lru_cache(maxsize=1)
def _table():
    """Axes and values of the table of free numbers, which `benchmarks/shuffle_points.py` makes."""
    read = json.loads(Path(__file__).with_name("points.json").read_text(encoding="utf-8"))
    points = [[[p or [math.nan] * 6 for p in row] for row in plane] for plane in read["points"]]
    axes = [np.array(axis) for axis in read["axes"]]
    axes[2] = -axes[2]  # increasing
    return axes, np.array(points)


def _tabled(log_epsilon, log_n, log_delta):
    """Numbers between the points of the table, by lines along each axis; None where it has none."""
    axes, values = _table()
    for axis, x in zip(axes, (log_epsilon, log_n, -log_delta), strict=True):
        if not axis[0] <= x <= axis[-1]:
            return None
        i = min(int(np.searchsorted(axis, x, side="right")) - 1, len(axis) - 2)
        part = (x - axis[i]) / (axis[i + 1] - axis[i])
        values = (1.0 - part) * values[i] + part * values[i + 1]
    return None if np.isnan(values).any() else values.tolist()


def searched(budget, n, reach):
    """Largest Gaussian mu of a report that was found and proved, or 0, and its point.

    In turn: the best point at a mu, and the largest mu that this point proves.
    """
    mu = _first_guess(budget, n)
    starts, best = _starts(budget, n, mu), 0.0
    # Six searches, each at the mu that the last one proved
    for _ in range(6):
        found = [_search(budget, mu, n, reach, start) for start in starts]
        point = min(found, key=lambda pair: pair[0])[1]
        proved = _largest_mu(budget, n, reach, point, mu, COARSE)
        if proved == 0.0:
            mu *= 0.7
            if best > 0.0 or mu < budget.mu:
                break
            starts = _starts(budget, n, mu)
            continue
        done, best, mu, starts = proved < best * 1.0005, proved, proved, [point]
        if done:
            break
    proved = _largest_mu(budget, n, reach, starts[0], best, FINE) if best > 0.0 else 0.0
    return proved, starts[0]


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


def _search(budget, mu, n, reach, start, evaluations=200):
    """Value and place of a local minimum of the bound over the free numbers."""
    found = minimize(
        lambda x: log_sorter_delta(budget.epsilon, mu, n, reach, Point(*x), COARSE),
        start.array(),
        method="Nelder-Mead",
        options={
            "initial_simplex": start.array() + np.vstack([np.zeros(5), np.diag(STEPS)]),
            "maxfev": evaluations,
            "xatol": 1e-2,
            "fatol": 2e-3,
        },
    )
    return found.fun, Point(*map(float, found.x))


def _largest_mu(budget, n, reach, point, mu, cells):
    """Largest mu near the given one at which this point proves the budget, or 0."""
    target, low, high, factor = math.log(budget.delta), 0.0, mu, 1.03

    def proves(value):
        return log_sorter_delta(budget.epsilon, value, n, reach, point, cells) <= target

    while low == 0.0 and high > 0.5 * mu:
        low, high = (high, high * factor) if proves(high) else (0.0, high / factor)
    while low > 0.0 and high < 4.0 * mu and proves(high):
        low, high = high, high * factor
    while low > 0.0 and high - low > 1e-5 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if proves(middle) else (low, middle)
    return low
