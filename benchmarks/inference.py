"""Coverage of coefficient intervals over resamples of rows and noise, on real tables.

Run: python benchmarks/inference.py [--repeats 100] [--epsilons 1 3 10]
     [--estimators LinearRegression] [--tables cps1988 wages]

Each table is taken for the population: rows are drawn from it with replacement, as many as it has,
fitted privately, and the intervals of ``skpriv.inspection.inference`` in original units compared
with the coefficients of the table itself: of `LinearRegression` with its defaults, the solution of
the clipped scores at what the fit released, and ("least_squares") the least-squares line; else that
line of clipped rows and targets, with the weights of the fit for re-weighted regression. Columns:
the part of the coefficients that have an interval, the coverage at 0.95 among them (mean over
coefficients, and the least of a coefficient), the median standard error over that of least squares
(HC0), the root mean square error in the same unit, and the part of the coefficients that
released answers tell: the other intervals are wide by public bounds. The column before the last is
empty: older records have a bound there that the library does not give any more. Coverage and told
part of each fit are recorded, so that fewer fits do not take the place of a record.
"""

import argparse
import warnings

import numpy as np
from _more_tables import MORE_TABLES
from _record import record
from _tables import TABLES
from sklearn.pipeline import make_pipeline

from skpriv import linear_model
from skpriv._estimation._loop._score import ScoreEquation, ScoreQuery
from skpriv._estimation._loop._rows import Whitened
from skpriv.inspection import inference
from skpriv.linear_model._reweighted import _regressor as _reweighted
from skpriv.preprocessing import BoundsScaler
from skpriv.privacy import Answer, GaussianNoise

ESTIMATORS = ("LinearRegression", "least_squares", "SSPRegressor", "ReweightedRegressor")
LINES = {"LinearRegression": "fitted", "least_squares": "least_squares"}
NEWTON = 30  # steps at most to the solution of clipped scores


def line(X, y, weights):
    """Weighted least squares with a constant, balanced for rounding: slopes, then intercept."""
    Z = np.c_[X, np.ones(len(X))]
    scale = np.abs(Z).max(axis=0)
    Z = Z / scale
    root = np.sqrt(weights)[:, None]
    theta = np.linalg.lstsq(Z * root, y * root[:, 0], rcond=None)[0]
    inverse = np.linalg.pinv((Z * root).T @ (Z * root))
    scores = Z * (weights * (y - Z @ theta))[:, None]
    covariance = inverse @ (scores.T @ scores) @ inverse
    return theta / scale, np.sqrt(np.diagonal(covariance)) / scale


def fitted_line(model, X, y):
    """Solution of the clipped scores of the rows at the whitening, mean and limit of a fit."""
    fit, b = model._released, model._released.b
    whitened = Whitened(model._record_map.row_map, fit.W)
    for _ in range(NEWTON):
        query = ScoreQuery(
            whitened, model._record_map.target_map, fit.location, b, fit.last.limit,
            most_excess=fit.last.most_excess,
        )  # fmt: skip
        answer = Answer(query.sum(X, y), len(y), GaussianNoise(0.0))
        equation = ScoreEquation.of(query, answer)
        step = np.linalg.lstsq(equation.slope, equation.moment, rcond=1e-9)[0]
        b = b + step
        if np.linalg.norm(step) <= 1e-8 * np.linalg.norm(b):
            break
    found = (
        model._record_map.target_map.radius
        * model._record_map.row_map.coefficient_map()
        @ (fit.W.T @ b)
    )
    found[-1] += (
        model._record_map.target_map.centre + model._record_map.target_map.radius * fit.location
    )
    return found


LEARNED: list = []  # normalisations of the fits of re-weighted regression


def learn_and_keep(*args, learn=_reweighted.learn_normalisation):
    """The normalisation of a fit, which does not keep it itself."""
    LEARNED.append(learn(*args))
    return LEARNED[-1]


_reweighted.learn_normalisation = learn_and_keep


def weights_of(model, X):
    """Public weights of the last fit, of re-weighted regression, at the rows of the table."""
    last, instrument = model[-1], LEARNED[-1]
    rows = last._scaling.rows(np.asarray(model[:-1].transform(X))) @ instrument.matrix
    return 1.0 / np.maximum(np.linalg.norm(rows, axis=1), instrument.floor)


def measure(name, table, epsilon, seed):
    """Resolved, covered, standard error and error in units of least squares."""
    rng = np.random.RandomState(seed)
    n = len(table.target)
    low, high = np.array([table.bounds[column] for column in table.data.columns]).T
    table = table._replace(data=table.data.astype(float).clip(low, high, axis=1))
    drawn = rng.randint(n, size=n)
    kind = getattr(linear_model, "LinearRegression" if name in LINES else name)
    if name in LINES:  # it takes ranges by itself
        pairs = np.array([table.bounds[column] for column in table.data.columns])
        model = kind(epsilon=epsilon, bounds_X=pairs, bounds_y=table.bounds_y, random_state=rng)
    else:
        model = make_pipeline(
            BoundsScaler(table.bounds, exclusive=table.exclusive),
            kind(epsilon=epsilon, data_norm=1.0, bounds_y=table.bounds_y, random_state=rng),
        )
    model.fit(table.data.iloc[drawn], table.target[drawn])
    found = inference(model, estimand=LINES.get(name, "fitted"))
    weights = weights_of(model, table.data) if name == "ReweightedRegressor" else np.ones(n)
    truth, error = line(
        table.data.to_numpy(dtype=float), np.clip(table.target, *table.bounds_y), weights
    )
    if name == "LinearRegression" and model._released.equations:
        rows, target = table.data.to_numpy(dtype=float), np.clip(table.target, *table.bounds_y)
        truth = fitted_line(model, rows, target)
    inside = (found.low <= truth) & (truth <= found.high)
    resolved = np.isfinite(found.std_error)
    errors = found.std_error / error, (found.estimate - truth) / error
    return resolved, inside, *errors, ~found.law.hidden


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    parser.add_argument("--estimators", nargs="+", default=ESTIMATORS)
    every = {**TABLES, **MORE_TABLES}
    parser.add_argument("--tables", nargs="+", default=list(every))
    options = parser.parse_args()
    print(
        f"{'table':10} {'estimator':20} {'eps':>4} resolved  cover  least  width  error  away  told"
    )
    numbers = {}
    for key in options.tables:
        table = every[key]()
        for name in options.estimators:
            for epsilon in options.epsilons:
                fits = [measure(name, table, epsilon, seed) for seed in range(options.repeats)]
                columns = (np.array(column) for column in zip(*fits))
                resolved, inside, width, error, told = columns
                known = resolved.any(axis=0)
                cover = np.array([
                    inside[resolved[:, j], j].mean() for j in np.flatnonzero(known)
                ])  # fmt: skip
                row = [resolved.mean(), *[np.nan] * 5, told.mean()]
                if len(cover):
                    row[1:-1] = [
                        cover.mean(), cover.min(), np.nanmedian(width),
                        np.sqrt(np.nanmedian(np.nanmean(error**2, axis=0))), np.nan,
                    ]  # fmt: skip
                numbers[f"{key} {name} {epsilon:g}"] = {
                    "means": row,
                    "covered": (inside & resolved).sum(axis=1)
                    / np.maximum(resolved.sum(axis=1), 1),
                    "told": told.mean(axis=1),
                }
                cells = "".join(f"{value:7.3f}" for value in row[1:])
                print(f"{key:10} {name:20} {epsilon:4g} {row[0]:8.2f}{cells}", flush=True)
    record("inference", numbers)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
