"""Layered regression and input perturbation where one direction shrinks with n, local model.

Run: python benchmarks/rate_layered.py [--sizes ...] [--epsilon 4] [--seeds 10]

Claim (Li, Simchi-Levi and Wang 2024, Theorem 2): rows (1/2, +-c n^{-1/3}); the mean absolute error
of methods that add noise to rows falls like n^{-1/3} at best, that of layered regression like
n^{-1/2}. Panels: their constant c = 0.07, and larger ones at which the direction matters at sizes
that fit in memory ("ignore it" is the error of a zero coefficient in it).
"""

import numpy as np
from _peers import InputPerturbation
from _rates import NOISE, arguments, show, sweep, written

from skpriv.datasets import make_small_direction
from skpriv.linear_model import LayeredRegressor, ReweightedRegressor, SSPRegressor

METHODS = ("ignore it", "input", "SSP", "layered", "layered, 2 levels", "reweighted")


def measurement(constant, power):
    """Function of (n, epsilon, seed): mean absolute errors of METHODS at this length."""

    def measure(n, epsilon, seed):
        length = min(1.0, constant * n**power)
        X, y, coef = make_small_direction(
            n, length=length, noise="uniform", return_coef=True, random_state=seed
        )
        mean = X @ coef
        options = {"epsilon": epsilon, "random_state": NOISE + seed}
        local = {**options, "fit_intercept": False, "privacy": "local"}
        local |= {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
        estimators = (
            InputPerturbation(**options),
            SSPRegressor(**local),
            LayeredRegressor(**local),
            LayeredRegressor(n_levels=2, **local),
            ReweightedRegressor(**local),
        )
        errors = (np.abs(est.fit(X, y).predict(X) - mean).mean() for est in estimators)
        return [np.abs(X[:, 1] * coef[1]).mean(), *errors]

    return measure


def main():
    """Print the tables, and record them."""
    sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000]
    options = arguments(__doc__, epsilon=4.0, sizes=sizes, constants=[0.07, 3.0, 6.0])
    panels = []
    for constant in options.constants:
        errors = sweep(measurement(constant, -1.0 / 3.0), options.sizes, options)
        title = f"length {constant:g} n^(-1/3)"
        show(f"{title}, epsilon {options.epsilon:g}", "n", options.sizes, METHODS, errors)
        guides = {"n^(-1/2)": -0.5, "n^(-1/3)": -1 / 3}
        panels.append((title, options.sizes, METHODS, errors, guides))
    written("rate_layered", "n", "mean absolute error", panels)


if __name__ == "__main__":
    main()
