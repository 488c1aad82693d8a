"""How many coefficients differ significantly from zero, and their standard errors, on all tables.

Run: python benchmarks/significance.py [--seeds 3] [--epsilons 0.3 1 3] [--tables cps1988 wages]

`LinearRegression` with its defaults and delta 1e-6, all rows of a table, the fitted line. For each
table and epsilon: the share of the coefficients whose 95% interval leaves out 0, the same of least
squares without privacy (HC0), and the median standard error over that of least squares.
"""

import argparse
import warnings

import numpy as np
from ablation import EVERY, read
from _record import record
from inference import line

from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression

LEVEL = 1.959964


def measured(name, epsilon, seeds):
    """Significant shares and median ratios of standard errors of all fits, and of least squares."""
    X, y, pairs, table = read(name)
    X = np.clip(X, *pairs.T)
    estimate, error = (values[:-1] for values in line(X, y, np.ones(len(y))))
    found = []
    for seed in range(seeds):
        model = LinearRegression(
            epsilon=epsilon, bounds_X=pairs, bounds_y=table.bounds_y, random_state=seed
        ).fit(X, y)
        rows = inference(model)
        significant = ((rows.low > 0.0) | (rows.high < 0.0))[:-1]
        found.append((significant.mean(), np.nanmedian(rows.std_error[:-1] / error)))
    told, width = np.transpose(found)
    return {
        "told": told, "width": width, "least squares": np.mean(np.abs(estimate) > LEVEL * error)
    }  # fmt: skip


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--tables", nargs="+", default=list(EVERY), choices=list(EVERY))
    options = parser.parse_args()
    numbers = {}
    for epsilon in options.epsilons:
        rows = []
        for name in options.tables:
            found = numbers[f"{name} {epsilon:g}"] = measured(name, epsilon, options.seeds)
            rows.append([np.mean(found[key]) for key in ("told", "least squares", "width")])
            cells = "".join(f"{value:9.3f}" for value in rows[-1])
            print(f"{name:16} {epsilon:4g}{cells}", flush=True)
        words = "significant {:.3f} of {:.3f}".format(*np.mean(rows, axis=0)[:2])
        middle = np.median(rows, axis=0)[2]
        print(f"all: {words}, standard errors {middle:.2f} in the median")
    record("significance", numbers)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
