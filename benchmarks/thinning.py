"""Gaussian thinning of the design beside the asymptotic intervals of `SSPRegressor` and others.

Run: python benchmarks/thinning.py [--repeats 12] [--epsilons 0.3 1 3] [--tables ...]

With a fresh copy W of the noise of the design A, A1 = A + gW and A2 = A - W/g have independent
noises. v = A1^-1 x, the interval is evaluated with A2, and its centre is v'b + (x - A2'v)'theta,
theta = A^-1 b; the normal quantile of the second part is added to that of the first. Rows of real
tables, a linear truth and uniform noise as in linear_intervals.py. Columns: coverage at .95 and the
mean half-width over that without thinning, of fits whose design stands 3.5 deviations of its noise
above 0.
"""

import argparse
import warnings

import numpy as np
from _more_tables import MORE_TABLES
from _record import record
from _tables import TABLES
from linear_intervals import LEVEL, NOISES, POINTS, truth_of
from scipy import stats

from skpriv._estimation._intervals import (
    RESOLUTION_ABOVE_QUANTILE,
    _variance,
    asymptotic_interval,
)
from skpriv._estimation._levels import USUAL_QUANTILE
from skpriv.linear_model import ReweightedRegressor, SSPRegressor

QUANTILE = stats.norm.isf((1.0 - LEVEL) / 2.0)


def deviation(equations, V, theta, factor=1.0):
    """Of v'(target - design theta*), if the noise of the design is ``factor`` times as large."""
    squares = np.einsum("ij,ij->i", V, V)
    extra = equations.design_scale**2 * (factor**2 - 1.0) * (theta @ theta) * squares
    variance = _variance(equations, V, squares, theta)
    return np.sqrt(variance + extra / (2.0 if equations.symmetric else 1.0))


def thinned(equations, points, g, rng):
    """Centre and half-width."""
    W = equations.design_scale * rng.normal(size=equations.design.shape)
    W = (W + W.T) / 2.0 if equations.symmetric else W
    inverse = np.linalg.inv(equations.design)
    theta = inverse @ equations.target
    V = points @ np.linalg.inv(equations.design + g * W)
    rest = points - V @ (equations.design - W / g)
    half = QUANTILE * deviation(equations, V, theta, np.sqrt(1.0 + g**-2.0))
    centre = V @ equations.target
    return centre + rest @ theta, half + QUANTILE * deviation(equations, rest @ inverse, theta)


def intervals(equations, points, rng):
    """Centres and half-widths of all kinds, by name."""
    found = {"none": asymptotic_interval(equations, points, None, None, LEVEL)}
    for g in (1.0, 2.0):
        found[f"g={g:g}"] = thinned(equations, points, g, rng)
    return found


def measure(table, Estimator, epsilon, repeats):
    """Coverage and relative half-width of each kind, and the number of resolved fits."""
    X, mean, size = truth_of(table, "uniform")
    low, high = np.array([table.bounds[column] for column in table.data.columns]).T
    Z = (2.0 * X - low - high) / (high - low) / np.sqrt(X.shape[1])
    inside, halves = {}, {}
    for seed in range(repeats):
        rng = np.random.RandomState(1000 + seed)
        y = mean + size * NOISES["uniform"](rng, len(X))
        est = Estimator(
            data_norm=1.0, bounds_y=table.bounds_y, epsilon=epsilon, random_state=rng
        ).fit(Z, y)
        equations, maps = est._equations, est._scaling
        singular = np.linalg.svd(equations.design, compute_uv=False)
        least = RESOLUTION_ABOVE_QUANTILE + USUAL_QUANTILE
        if singular[-1] <= least * equations.design_scale:
            continue
        chosen = rng.choice(len(X), size=POINTS, replace=False)
        truth = (mean[chosen] - maps.centre) / maps.radius
        for name, (centre, half) in intervals(equations, maps.features(Z[chosen]), rng).items():
            inside.setdefault(name, []).append(np.abs(centre - truth) <= half)
            halves.setdefault(name, []).append(half)
    return {
        name: (np.mean(inside[name]), np.mean(halves[name]) / np.mean(halves["none"]))
        for name in inside
    }, len(inside.get("none", []))


def main():
    """Print the table."""
    every = {**TABLES, **MORE_TABLES}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--tables", nargs="+", default=list(every))
    options = parser.parse_args()
    numbers = {}
    for key in options.tables:
        for epsilon in options.epsilons:
            for Estimator in (SSPRegressor, ReweightedRegressor):
                found, resolved = measure(every[key](), Estimator, epsilon, options.repeats)
                numbers[f"{key} {epsilon:g} {Estimator.__name__}"] = [resolved, found]
                cells = " | ".join(f"{n} {c:.3f} {w:5.2f}" for n, (c, w) in found.items())
                print(
                    f"{key:12} {epsilon:4g} {Estimator.__name__:20} {resolved:3} {cells}",
                    flush=True,
                )
    record("thinning", numbers)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
