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
    """Significant share, that of least squares, and the median ratio of standard errors."""
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
    share, ratio = np.mean(found, axis=0)
    return share, float(np.mean(np.abs(estimate) > LEVEL * error)), ratio


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--tables", nargs="+", default=list(EVERY), choices=list(EVERY))
    options = parser.parse_args()
    numbers = {}
    for epsilon in options.epsilons:
        for name in options.tables:
            row = numbers[f"{name} {epsilon:g}"] = measured(name, epsilon, options.seeds)
            print(f"{name:16} {epsilon:4g}" + "".join(f"{value:9.3f}" for value in row), flush=True)
        rows = np.array([numbers[f"{name} {epsilon:g}"] for name in options.tables])
        words = "significant {:.3f} of {:.3f}".format(*rows[:, :2].mean(axis=0))
        print(f"all: {words}, standard errors {np.median(rows[:, 2]):.2f} in the median")
    record("significance", numbers)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
