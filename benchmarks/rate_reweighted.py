"""Re-weighted regression, AdaSSP and ridge with sufficient statistics, by condition number.

Run: python benchmarks/rate_reweighted.py [--sizes ...] [--conditions ...]

Claim (Chen, Li, Rakhlin and Simchi-Levi 2025, Theorem 4.1 and Section 4): the mean absolute error
of re-weighted regression falls like n^{-1/2} whatever the condition number, while methods that add
noise to the Gram matrix pay for it. Central model, d=5, rows in an ellipsoid, equal coefficients.
"""

import numpy as np
from _peers import AdaSSP
from _rates import NOISE, arguments, show, slope, sweep, written

from skpriv import Budget
from skpriv.datasets import make_ill_conditioned
from skpriv.linear_model import ReweightedRegressor, SSPRegressor

METHODS = ("ridge", "AdaSSP", "SSP", "reweighted")
FEATURES = 5


def measurement(condition):
    """Function of (n, epsilon, seed): mean absolute errors of METHODS."""

    def measure(n, epsilon, seed):
        X, y, coef = make_ill_conditioned(
            n, FEATURES, condition=condition, return_coef=True, random_state=seed
        )
        options = {"epsilon": epsilon, "random_state": NOISE + seed, "fit_intercept": False}
        options |= {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
        penalty = 3.0 * np.sqrt(FEATURES) / Budget(epsilon, 1e-6).mu  # the Gram noise's norm
        estimators = (
            SSPRegressor(alpha=penalty, **options),
            AdaSSP(**options),
            SSPRegressor(**options),
            ReweightedRegressor(**options),
        )
        return [np.abs(est.fit(X, y).predict(X) - X @ coef).mean() for est in estimators]

    return measure


def main():
    """Print a table a condition number and the worst of them, and record them."""
    sizes = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    conditions = [1.0, 1e2, 1e3, 1e4]
    options = arguments(__doc__, sizes=sizes, conditions=conditions)
    panels, everything = [], []
    for condition in options.conditions:
        errors = sweep(measurement(condition), options.sizes, options)
        title = f"condition number {condition:g}"
        show(f"{title}, epsilon {options.epsilon:g}", "n", options.sizes, METHODS, errors)
        everything.append(np.median(errors, axis=1))
        panels.append((title, options.sizes, METHODS, errors, {"n^(-1/2)": -0.5}))
    worst = np.max(everything, axis=0)[:, None]
    print("\nlargest median error over condition numbers")
    for size, values in zip(options.sizes, worst[:, 0]):
        print(f"{size:9g}  " + "  ".join(f"{m} {v:.5f}" for m, v in zip(METHODS, values)))
    slopes = (slope(options.sizes, worst[:, :, j])[0] for j in range(len(METHODS)))
    print("slopes     " + "  ".join(f"{m} {s:.3f}" for m, s in zip(METHODS, slopes)))
    written("rate_reweighted", "n", "mean absolute error", panels)


if __name__ == "__main__":
    main()
