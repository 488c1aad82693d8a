"""What private bounds gain over public outer ones that are ten times too wide.

For each design: the root mean square error of the fitted function over its standard deviation,
with the outer bounds, "auto" ones, and an oracle's (the same quantiles of a large sample).
``--quantiles`` prints the error, over the best in each setting, for other quantiles instead: the
mean over designs, epsilons and sizes from which the defaults were chosen. ``--entries`` prints the
error of sparse regression for quantiles of the rows' largest entries.

    python benchmarks/auto_bounds.py [--seeds 5] [--quantiles | --entries]
"""

import argparse
from functools import cache
from itertools import product

import numpy as np
from _record import record
from sklearn.utils import check_random_state

from skpriv.linear_model import IHTRegressor, SSPRegressor, _base

WIDER = 10.0  # outer bounds over the largest norm and target of the population's bulk (99.9 %)


def draw(design, n, rng):
    """Rows, targets and the values of the true function."""
    coef = np.array([1.0, -1.0, 0.5, 0.0, 0.5])
    if design == "bounded":
        X, noise = rng.uniform(-1, 1, size=(n, 5)), rng.uniform(-1, 1, size=n)
    elif design == "normal":
        X, noise = rng.normal(size=(n, 5)), rng.normal(size=n)
    elif design == "skewed":
        X, noise = rng.lognormal(sigma=0.7, size=(n, 5)), rng.lognormal(size=n) - np.exp(0.5)
    else:  # heavy: Student t with 3 degrees of freedom
        X, noise = rng.standard_t(3, size=(n, 5)), rng.standard_t(3, size=n)
    f = X @ coef
    return X, f + noise, f


@cache
def population(design):
    """Large sample for the bounds, and for the error of the fits."""
    return draw(design, 100_000, check_random_state(0))


def relative_error(design, n, epsilon, privacy, seed, mode):
    """Error of one fit on new rows, over the standard deviation of the function."""
    X, y, f = population(design)
    norms = np.linalg.norm(X, axis=1)
    outer, outer_y = WIDER * np.quantile(norms, 0.999), WIDER * np.quantile(abs(y), 0.999)
    settings = {"data_norm": outer, "bounds_y": (-outer_y, outer_y)}
    if mode == "auto":
        settings = {
            "data_norm": "auto", "bounds_y": "auto",
            "outer_norm": outer, "outer_bounds_y": (-outer_y, outer_y),
        }  # fmt: skip
    elif mode == "oracle":
        part = (1.0 - _base.TARGET_QUANTILE) / 2.0
        settings = {
            "data_norm": np.quantile(norms, _base.NORM_QUANTILE),
            "bounds_y": tuple(np.quantile(y, [part, 1.0 - part])),
        }
    rng = check_random_state(seed + 1)
    rows, targets, _ = draw(design, n, rng)
    est = SSPRegressor(epsilon=epsilon, privacy=privacy, random_state=rng, **settings)
    predicted = est.fit(rows, targets).predict(X[:10_000])
    return np.sqrt(np.mean((predicted - f[:10_000]) ** 2)) / f.std()


DESIGNS = ("bounded", "normal", "skewed", "heavy")
SETTINGS = [
    ("central", 2_000, 1.0), ("central", 20_000, 0.5), ("central", 20_000, 1.0),
    ("central", 20_000, 4.0), ("central", 200_000, 1.0),
]  # fmt: skip
LOCAL = [("local", 200_000, 4.0), ("shuffle", 200_000, 4.0)]


def gains(seeds):
    """Table of the errors with outer, automatic and oracle bounds."""
    numbers = {}
    print(f"{'design':10}{'privacy':9}{'n':>8}{'eps':>5}{'outer':>9}{'auto':>9}{'oracle':>9}")
    for design, (privacy, n, epsilon) in product(DESIGNS, SETTINGS + LOCAL):
        errors = [
            np.median([relative_error(design, n, epsilon, privacy, s, mode) for s in range(seeds)])
            for mode in ("outer", "auto", "oracle")
        ]
        numbers[f"{design}, {privacy}, n={n}, epsilon={epsilon}"] = errors
        cells = "".join(f"{error:9.3f}" for error in errors)
        print(f"{design:10}{privacy:9}{n:8d}{epsilon:5.1f}{cells}")
    return numbers


def quantiles(seeds):
    """Error over the best of the grid, for each pair of quantiles: mean and worst."""
    grid = list(product((0.8, 0.9, 0.95, 0.98, 0.995), (0.9, 0.95, 0.98, 0.99, 0.998)))
    settings = list(product(DESIGNS, SETTINGS))
    table = np.empty((len(grid), len(settings)))
    for i, (_base.NORM_QUANTILE, _base.TARGET_QUANTILE) in enumerate(grid):
        for j, (design, (privacy, n, epsilon)) in enumerate(settings):
            table[i, j] = np.median(
                [relative_error(design, n, epsilon, privacy, s, "auto") for s in range(seeds)]
            )
    ratio = table / table.min(axis=0)
    print("error over the best: norm quantile, target quantile, geometric mean, worst; by design")
    for (norm, target), row in zip(grid, ratio):
        by = " ".join(f"{r:.2f}" for r in np.exp(np.log(row).reshape(len(DESIGNS), -1).mean(1)))
        print(f"{norm:6} {target:6} {np.exp(np.log(row).mean()):8.2f} {row.max():8.2f}   {by}")
    return {"grid": grid, "settings": settings, "errors": table}


def draw_sparse(design, n, seed):
    """Rows of 200 features, 5 of which count, targets, and the values of the true function."""
    rng = check_random_state(seed)
    if design == "bounded":
        X = rng.uniform(-1, 1, size=(n, 200))
    elif design == "heavy":
        X = rng.standard_t(3, size=(n, 200))
    else:
        X = rng.normal(size=(n, 200))
        if design == "sparse":
            X *= rng.uniform(size=X.shape) < 0.05
    f = X[:, :5] @ [1.0, -1.0, 1.0, -1.0, 1.0]
    return X, f + rng.normal(scale=0.5, size=n), f


def sparse_error(design, n, epsilon, seed, quantile):
    """Error of one fit, with the outer bounds if there is no quantile."""
    X, y, f = draw_sparse(design, n, seed)
    large, large_y = (WIDER * np.quantile(abs(values), 0.999) for values in (X, y))
    settings = {"data_max": large, "bounds_y": (-large_y, large_y)}
    if quantile:
        _base.ENTRY_QUANTILE = quantile
        settings = {
            "data_max": "auto", "bounds_y": "auto",
            "outer_max": large, "outer_bounds_y": (-large_y, large_y),
        }  # fmt: skip
    est = IHTRegressor(n_nonzero_coefs=5, epsilon=epsilon, random_state=seed, **settings)
    return np.sqrt(np.mean((est.fit(X, y).predict(X) - f) ** 2)) / f.std()


def entries(seeds):
    """Table of the errors of sparse regression."""
    grid = (None, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)
    numbers = {"quantiles": grid}
    print(f"{'design':10}{'n':>8}{'eps':>5}{'outer':>8}" + "".join(f"{q:8}" for q in grid[1:]))
    settings = ((5_000, 1.0), (20_000, 1.0), (20_000, 4.0))
    for design, (n, epsilon) in product(("bounded", "normal", "heavy", "sparse"), settings):
        errors = [
            np.median([sparse_error(design, n, epsilon, s, q) for s in range(seeds)]) for q in grid
        ]
        numbers[f"{design}, n={n}, epsilon={epsilon}"] = errors
        print(f"{design:10}{n:8d}{epsilon:5.1f}" + "".join(f"{e:8.3f}" for e in errors))
    return numbers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quantiles", action="store_true")
    parser.add_argument("--entries", action="store_true")
    options = parser.parse_args()
    table = entries if options.entries else quantiles if options.quantiles else gains
    record(f"auto_bounds_{table.__name__}", table(options.seeds))
