"""A wage equation of labour economics, private and not, as a table of its coefficients.

Run: python benchmarks/wage_equation.py [--repeats 25]

Logarithm of the hourly wage of 61,395 people (`load_wages`) on education, experience (age less
education less 6, in decades from 25 years) to the third power, and sex. Each fit is of as many rows
drawn with replacement; least squares of all rows is the truth. Of each method: the part of the fits
in which every slope is significantly different from zero with the right sign, the median standard
error over that of least squares (HC0), and the coverage of its intervals at level .95.
"""

import argparse

import numpy as np
from _record import record
from inference import line
from joblib import Parallel, delayed
from sklearn.pipeline import make_pipeline

from skpriv.datasets import load_wages
from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression, SSPRegressor
from skpriv.preprocessing import BoundsScaler

# Public ranges: years of schooling, and experience from -9 to 61 years
BOUNDS = np.array([(0.0, 20.0), (-2.5, 4.5), (0.0, 20.25), (-16.0, 91.2), (0.0, 1.0)])
BOUNDS_Y = (np.log(1.0), np.log(200.0))
METHODS = {
    "fitted line": lambda **options: LinearRegression(**options),
    "least squares declared": lambda **options: LinearRegression(
        estimand="least_squares", **options
    ),
    "noisy moments (SSP)": lambda bounds_X, **options: make_pipeline(
        BoundsScaler(bounds_X), SSPRegressor(data_norm=1.0, **options)
    ),
}
EPSILONS = (0.5, 1.0)


def wage_equation():
    """Rows, and logarithms of the wages, inside of the public ranges."""
    wages = load_wages()
    age, education, female = (
        wages.data[name].to_numpy(float) for name in ("age", "education", "female")
    )
    experience = (age - education - 6.0 - 15.0) / 10.0
    X = np.column_stack([education, experience, experience**2, experience**3, female])
    y = np.log(np.clip(np.asarray(wages.target, float), 1.0, 200.0))
    return X.clip(*BOUNDS.T), y.clip(*BOUNDS_Y)


def one_fit(name, epsilon, seed):
    """Estimates, standard errors and intervals of the slopes."""
    X, y = wage_equation()
    rng = np.random.RandomState(seed)
    rows = rng.randint(len(X), size=len(X))
    options = {"epsilon": epsilon, "delta": 1e-6, "bounds_X": BOUNDS, "bounds_y": BOUNDS_Y}
    model = METHODS[name](random_state=rng, **options).fit(X[rows], y[rows])
    table = inference(model)
    columns = table.estimate, table.std_error, table.low, table.high
    return [np.asarray(column, float)[:-1] for column in columns]


def main():
    """Print the table, and record it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=25)
    options = parser.parse_args()
    X, y = wage_equation()
    truth, error = (values[:-1] for values in line(X, y, np.ones(len(y))))
    numbers = {}
    for name in METHODS:
        for epsilon in EPSILONS:
            fits = Parallel(n_jobs=-1)(
                delayed(one_fit)(name, epsilon, seed) for seed in range(options.repeats)
            )
            estimate, std_error, low, high = np.array(fits).swapaxes(0, 1)
            told = (low * high > 0.0) & (np.sign(estimate) == np.sign(truth))
            row = [
                told.all(axis=1).mean(), told.mean(), np.median(std_error / error),
                ((low <= truth) & (truth <= high)).mean(),
            ]  # fmt: skip
            numbers[f"{name} {epsilon:g}"] = [float(number) for number in row]
            print(f"{name:24} {epsilon:4g}" + "".join(f"{number:8.2f}" for number in row))
    record("wage_equation", numbers)


if __name__ == "__main__":
    main()
