"""Coverage and error where a record is a person with several rows, and with instruments.

Run: python benchmarks/panels.py [--repeats 100] [--only levels effects instruments]

levels: a feature of persons, one of rows, effects of persons and serially correlated errors; the
coverage of standard errors, of asymptotic and of certified intervals at 0.95. effects: fixed
effects beside features that go along with them; the error over that of the non-private within
estimator. instruments: the error over that of two-stage least squares. The truth is linear.
"""

import argparse
import warnings

import numpy as np
from _record import record

from skpriv.inspection import inference
from skpriv.linear_model import IVRegressor, LinearRegression, SSPRegressor

POINTS = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [0.5, -1.0], [1.0, -1.0]])
TRUTH = np.array([0.3, 0.2, 0.0])
# persons, most rows, whether their number varies, epsilon
LEVELS = (
    (2000, 5, False, 3.0), (4000, 5, False, 1.0), (4000, 10, True, 3.0), (2000, 20, True, 10.0),
    (20_000, 2, False, 1.0), (20_000, 5, True, 10.0),
)  # fmt: skip
EFFECTS = ((4000, 5, 1.0), (4000, 5, 3.0), (20_000, 5, 1.0), (20_000, 5, 10.0))
INSTRUMENTS = ((30_000, 1.0), (30_000, 3.0), (200_000, 1.0))


def serial(rng, persons, rows):
    """Errors with a memory of 0.6 inside of persons, shape (persons, rows)."""
    errors = rng.uniform(-0.3, 0.3, (persons, rows))
    for t in range(1, rows):
        errors[:, t] += 0.6 * errors[:, t - 1]
    return errors


def levels(Estimator, persons, rows, varies, epsilon, seed):
    """Whether intervals cover: of the coefficients, and of the function by either method."""
    rng = np.random.RandomState(seed)
    sizes = rng.randint(1, rows + 1, persons) if varies else np.full(persons, rows)
    kept = np.arange(rows) < sizes[:, None]
    shape = (persons, rows)
    own = np.broadcast_to(rng.uniform(-1, 1, (persons, 1)), shape)[kept]
    X = np.column_stack([own, rng.uniform(-1, 1, shape)[kept]])
    effect = np.broadcast_to(rng.uniform(-0.5, 0.5, (persons, 1)), shape)[kept]
    y = X @ TRUTH[:2] + effect + serial(rng, persons, rows)[kept]
    model = Estimator(
        **_bounds(Estimator),
        bounds_y=(-2.0, 2.0),
        epsilon=epsilon,
        max_rows_per_group=rows,
        random_state=seed,
    ).fit(X, y, groups=np.repeat(np.arange(persons), sizes))
    found, mean = inference(model), POINTS @ TRUTH[:2]
    inside = [(found.low <= TRUTH) & (TRUTH <= found.high)]
    methods = ("asymptotic", "certified") if Estimator is SSPRegressor else ("asymptotic",)
    for method in methods:
        low, high = model.confidence_interval(POINTS, method=method)
        inside.append((low <= mean) & (mean <= high))
    return {
        "resolved": np.isfinite(found.estimate).mean(),
        "inference": np.where(np.isnan(found.estimate), np.nan, inside[0]),
        **{method: hits.mean() for method, hits in zip(methods, inside[1:], strict=True)},
    }


def _bounds(Estimator):
    return {"data_norm": 2.0**0.5} if Estimator is SSPRegressor else {"bounds_X": (-1.0, 1.0)}


def effects(Estimator, persons, rows, epsilon, seed):
    """Errors of private and of plain fixed effects, and whether intervals cover."""
    rng = np.random.RandomState(seed)
    effect, beta = rng.uniform(-1, 1, persons), np.array([0.5, -0.3])
    X = 0.4 * effect[:, None, None] + rng.uniform(-0.6, 0.6, (persons, rows, 2))
    y = X @ beta + effect[:, None] + serial(rng, persons, rows)
    model = Estimator(
        **_bounds(Estimator), bounds_y=(-2.5, 2.5), epsilon=epsilon, max_rows_per_group=rows,
        effects="person", random_state=seed,
    ).fit(X.reshape(-1, 2), y.ravel(), groups=np.repeat(np.arange(persons), rows))  # fmt: skip
    found = inference(model)
    within = (X - X.mean(1, keepdims=True)).reshape(-1, 2)
    plain = np.linalg.lstsq(within, (y - y.mean(1, keepdims=True)).ravel())[0]
    return {
        "resolved": np.isfinite(found.estimate[:2]).mean(),
        "inference": ((found.low[:2] <= beta) & (beta <= found.high[:2])),
        "error": found.estimate[:2] - beta,
        "plain": plain - beta,
    }


def instruments(n, epsilon, seed):
    """Errors of private and of plain two-stage least squares, and whether the interval covers."""
    rng = np.random.RandomState(seed)
    z, w, hidden = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), rng.uniform(-0.5, 0.5, n)
    x = 0.5 * z + 0.9 * hidden + 0.1 * w
    y = 0.4 * x + 0.6 * hidden + 0.2 * w + rng.uniform(-0.2, 0.2, n)
    model = IVRegressor(
        instruments=[0], endogenous=[1], bounds_X=[(-1, 1), (-1.1, 1.1), (-1, 1)],
        bounds_y=(-1.2, 1.2), epsilon=epsilon, random_state=seed,
    ).fit(np.column_stack([z, x, w]), y)  # fmt: skip
    found = inference(model)
    Z, S = np.column_stack([z, w, np.ones(n)]), np.column_stack([x, w, np.ones(n)])
    plain = np.linalg.solve(Z.T @ S, Z.T @ y)[0]
    return {
        "resolved": np.isfinite(found.estimate[:1]).mean(),
        "inference": ((found.low[:1] <= 0.4) & (0.4 <= found.high[:1])),
        "error": found.estimate[:1] - 0.4,
        "plain": np.array([plain - 0.4]),
    }


def summed(fits):
    """Means over fits, and the ratio of root mean square errors."""
    fits = {name: np.array([fit[name] for fit in fits], dtype=float) for name in fits[0]}
    found = {"resolved": fits["resolved"].mean()}
    if "error" in fits:
        errors = [np.sqrt(np.nanmean(np.square(fits[name]))) for name in ("error", "plain")]
        found["error_ratio"] = errors[0] / errors[1]
    for name in ("inference", "asymptotic", "certified"):
        if name in fits:
            found[name] = np.nanmean(fits[name])
    found["worst_coefficient"] = np.nanmean(fits["inference"], axis=0).min()
    return {name: round(float(value), 4) for name, value in found.items()}


def main():
    """Run all cells that were asked for, and record them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=["levels", "effects", "instruments"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = []
    both = SSPRegressor, LinearRegression
    if "levels" in args.only:
        cells += [(levels, kind, *cell) for cell in LEVELS for kind in both]
    if "effects" in args.only:
        cells += [(effects, LinearRegression, *cell) for cell in EFFECTS]
    cells += [(instruments, *cell) for cell in INSTRUMENTS if "instruments" in args.only]
    numbers = []
    for measure, *cell in cells:
        found = summed([measure(*cell, seed) for seed in range(args.repeats)])
        said = [getattr(part, "__name__", part) for part in cell]
        numbers.append({"what": measure.__name__, "cell": said, **found})
        print(measure.__name__, *said, found, flush=True)
    record("panels", {"repeats": args.repeats, "cells": numbers})


if __name__ == "__main__":
    main()
