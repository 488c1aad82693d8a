"""Intervals of `LinearRegression` for a mean that is linear, on the rows of real tables.

Run: python benchmarks/linear_intervals.py [--repeats 40] [--epsilons 1] [--methods asymptotic]
     [--estimators LinearRegression] [--tables cps1988 uniform_4_0.1]

--tables may name the synthetic designs of ``_synthetic_tables.py``, too, and "hostile" is all of
those that intervals find hard. Coverage and width of each fit are recorded, so that a record is
compared with the next one with its error, and fewer fits do not take its place.

The mean is the least-squares line of the table, kept inside of the bounds of y by shrinking it
towards their middle where it leaves them; its noise, uniform or exponential, has the deviation of
the table's residuals and is kept inside of the bounds in the same way. Columns: coverage at .95 on
300 rows of the table (mean, and least over fits), mean half-width over the 95% quantile of the
error of ``predict``, part of the rows that is resolved, and that quantile over the deviation of the
noise; then coverage of the 5% of the rows of largest leverage. In the same run, on the same data:
`SSPRegressor` and `ReweightedRegressor`. Of `LinearRegression` also: coverage of coefficients, and
the median of their std errors over their root mean squared errors, of all and of the told ones.
"""

import argparse
import warnings

import numpy as np
from _fresh_tables import CHECK_TABLES, CHOICE_TABLES
from _more_tables import MORE_TABLES, wages_by_region
from _record import record
from _synthetic_tables import HOSTILE, SYNTHETIC
from _tables import TABLES
from _unseen_tables import UNSEEN_TABLES
from sklearn.pipeline import make_pipeline

from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression, ReweightedRegressor, SSPRegressor
from skpriv.preprocessing import BoundsScaler

LEVEL, POINTS = 0.95, 300
ESTIMATORS = ("LinearRegression", "SSPRegressor", "ReweightedRegressor")
NOISES = {
    "uniform": lambda rng, n: np.sqrt(3.0) * rng.uniform(-1.0, 1.0, size=n),
    "exponential": lambda rng, n: np.minimum(rng.exponential(size=n), 8.0) - 1.0 + np.exp(-8.0),
}
REACH = {"uniform": (-1.8, 1.8), "exponential": (-1.0, 7.01)}


def truth_of(table, noise):
    """Rows inside of their bounds, a linear mean, and the size of its noise."""
    low, high = np.array([table.bounds[column] for column in table.data.columns]).T
    X = np.clip(table.data.to_numpy(dtype=float), low, high)
    Z = np.c_[(X - low) / (high - low), np.ones(len(X))]
    mean = Z @ np.linalg.lstsq(Z, np.clip(table.target, *table.bounds_y), rcond=None)[0]
    deviation = (table.target - mean).std()
    below, above = table.bounds_y
    centre = (below + above) / 2.0
    for part in (1.0, 0.5, 0.25, 0.125):  # as for a count: the noise shrinks, too
        size = part * deviation
        least, most = (side * size for side in REACH[noise])
        room = min(
            (above - most - centre) / max((mean - centre).max(), 1e-300),
            (centre - below + least) / max((centre - mean).max(), 1e-300),
            1.0,
        )
        if room >= 0.3:
            break
    return X, centre + room * (mean - centre), size


def far_rows(X):
    """The 5% of the rows of largest leverage."""
    Z = np.c_[X - X.mean(axis=0), np.ones(len(X))]
    left, singular, _ = np.linalg.svd(Z / np.maximum(np.abs(Z).max(axis=0), 1e-300), False)
    leverage = (left[:, singular > 1e-9 * singular[0]] ** 2).sum(axis=1)
    return np.flatnonzero(leverage >= np.quantile(leverage, 0.95))


def of_coefficients(tables, X, mean):
    """Coverage of coefficients, and std errors over actual errors: of all, and of told ones."""
    Z = np.c_[X, np.ones(len(X))]
    truth = np.linalg.lstsq(Z, mean, rcond=None)[0][:-1]
    estimate, errors, low, high = (
        np.array([getattr(table, name)[:-1] for table in tables])
        for name in ("estimate", "std_error", "low", "high")
    )
    told = np.array([~table.law.hidden[:-1] for table in tables])
    ratio = errors / np.sqrt(np.nanmean((estimate - truth) ** 2, axis=0))
    missed = (truth < low) | (high < truth)
    known = np.isfinite(ratio)
    return [1.0 - missed.mean(), np.median(ratio[known]), np.median(ratio[known & told])]


def measure(key, table, noise, epsilon, repeats, methods, estimators=ESTIMATORS):
    """One line for each estimator and method."""
    X, mean, size = truth_of(table, noise)
    pairs = np.array([table.bounds[column] for column in table.data.columns])
    found, tables, far = {}, [], far_rows(X)
    for seed in range(repeats):
        rng = np.random.RandomState(1000 + seed)
        y = mean + size * NOISES[noise](rng, len(X))
        public = {"epsilon": epsilon, "bounds_y": table.bounds_y, "random_state": rng}
        models = {
            "LinearRegression": LinearRegression(bounds_X=pairs, **public),
            **{
                Estimator.__name__: make_pipeline(
                    BoundsScaler(table.bounds), Estimator(data_norm=1.0, **public)
                )
                for Estimator in (SSPRegressor, ReweightedRegressor)
            },
        }
        models = {name: models[name] for name in estimators}
        points = rng.choice(len(X), size=POINTS, replace=False)
        points = np.append(points, rng.choice(far, size=POINTS))
        for name, model in models.items():
            rows = X
            if name != "LinearRegression":
                rows = table.data.iloc[:0].reindex(range(len(X)))
                rows = rows.assign(**{c: X[:, j] for j, c in enumerate(rows.columns)})
            model.fit(rows, y)
            if name == "LinearRegression":
                tables.append(inference(model))
            chosen = rows[points] if isinstance(rows, np.ndarray) else rows.iloc[points]
            error = np.abs(model.predict(chosen) - mean[points])
            for method in methods:
                last = model if name == "LinearRegression" else model[-1]
                inner = chosen if name == "LinearRegression" else model[:-1].transform(chosen)
                low, high = last.confidence_interval(inner, LEVEL, method=method)
                inside = (low <= mean[points]) & (mean[points] <= high)
                full = high - low >= 0.999 * (table.bounds_y[1] - table.bounds_y[0])
                found.setdefault((name, method), []).append(
                    [inside, (high - low) / 2.0, error, ~full]
                )
    for (name, method), rows in found.items():
        top = np.array([row[0][POINTS:] for row in rows]).mean()
        inside, half, error, told = (np.array(column)[:, :POINTS] for column in zip(*rows))
        quantile = np.quantile(error, LEVEL)
        row = [
            inside.mean(), inside.mean(axis=1).min(), half.mean() / quantile, told.mean(),
            quantile / size, top,
        ]  # fmt: skip
        if name == "LinearRegression" and method == "asymptotic":
            row += of_coefficients(tables, X, mean)
        cells = " ".join(f"{value:7.3f}" for value in row)
        print(f"{key:12} {noise:12} {epsilon:4g} {name:19} {method:10} {cells}", flush=True)
        found_of_fits = {"covered": inside.mean(axis=1), "width": half.mean(axis=1) / quantile}
        yield f"{key} {noise} {epsilon:g} {name} {method}", {"means": row, **found_of_fits}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--methods", nargs="+", default=["asymptotic", "certified"])
    parser.add_argument("--estimators", nargs="+", default=list(ESTIMATORS))
    parser.add_argument("--noises", nargs="+", default=list(NOISES))
    real = {**TABLES, **MORE_TABLES, **UNSEEN_TABLES, **CHOICE_TABLES, **CHECK_TABLES}
    every = {**real, **SYNTHETIC, **HOSTILE, "cps1988_square": wages_by_region}
    parser.add_argument("--tables", nargs="+", default=[*TABLES, *MORE_TABLES])
    options = parser.parse_args()
    columns = "cover least ratio told error top coef se told"
    print(f"{'table':12} {'noise':12}  eps {'estimator':19} method  {columns}")
    numbers = {}
    if options.tables == ["hostile"]:
        options.tables = [*HOSTILE, "cps1988_square"]
    for key in options.tables:
        table = every[key]()
        for noise in options.noises:
            for epsilon in options.epsilons:
                cell = (key, table, noise, epsilon, options.repeats)
                numbers.update(measure(*cell, options.methods, options.estimators))
    record("linear_intervals", numbers)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
