"""Error of private iterative hard thresholding against the logarithm of the number of features.

Run: python benchmarks/rate_iht.py [--features ...] [--records 4000] [--epsilon 2]

Claim (Chakraborty, Roy and Basu 2024, Theorem 4.1 with its noise): the l2 error of the
coefficients is at most linear in log d. Rows are random signs, targets are signs; "equal": 5 equal
coefficients, "graded": 10 coefficients in proportion to 1/j, of which the small ones drown one by
one as d grows. "zero" is the error of no coefficient at all, N-IHT the paper's algorithm with its
noise corrected, and "known support" least squares on the true support, without privacy.
"""

import numpy as np
from _designs import make_signs
from _peers import NoisyIHT
from _rates import arguments, show, sweep, written

from skpriv.linear_model import IHTRegressor

METHODS = ("zero", "N-IHT", "IHT", "known support")
COUNTS = {"equal": 5, "graded": 10}


def make(design, n, d, seed):
    """Rows, targets and coefficients of l1 norm 1."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, d))
    for start in range(0, n, 500):
        rows = X[start : start + 500]
        rows[:] = 2.0 * rng.integers(0, 2, rows.shape, dtype=np.int8) - 1.0
    sizes = np.ones(5) if design == "equal" else 1.0 / np.arange(1, 11)
    coef = np.zeros(d)
    coef[rng.choice(d, len(sizes), replace=False)] = sizes / sizes.sum()
    return X, make_signs(X @ coef, rng), coef


def measurement(design, n):
    """Function of (d, epsilon, seed): l2 errors of METHODS."""

    def measure(d, epsilon, seed):
        X, y, coef = make(design, n, d, seed)
        options = {"epsilon": epsilon, "n_nonzero_coefs": COUNTS[design], "random_state": seed}
        found = [np.zeros(d), NoisyIHT(**options).fit(X, y).coef_]
        found.append(
            IHTRegressor(data_max=1.0, bounds_y=(-1, 1), fit_intercept=False, **options)
            .fit(X, y)
            .coef_
        )
        support = np.flatnonzero(coef)
        best = np.zeros(d)
        best[support] = np.linalg.lstsq(X[:, support], y, rcond=None)[0]
        return [np.linalg.norm(estimate - coef) for estimate in (*found, best)]

    return measure


def line(features, errors):
    """Error at ten times the features minus error, and R2 of the straight line in log d."""
    logs, mid = np.log10(features), np.median(errors, axis=1)
    fitted = np.polyval(np.polyfit(logs, mid, 1), logs)
    spread = ((mid - mid.mean()) ** 2).sum()
    return np.polyfit(logs, mid, 1)[0], 1.0 - ((mid - fitted) ** 2).sum() / max(spread, 1e-300)


def main():
    """Print the tables, and record them."""
    features = [400, 1200, 4000, 12_000, 40_000]
    options = arguments(__doc__, epsilon=2.0, features=features, records=[2000, 4000])
    panels = []
    for design in COUNTS:
        for n in options.records:
            errors = sweep(measurement(design, n), options.features, options)
            title = f"{design}, n={n}"
            show(f"{title}, epsilon {options.epsilon:g}", "d", options.features, METHODS, errors)
            for j, name in enumerate(METHODS[1:3], 1):
                rise, fit = line(options.features, errors[:, :, j])
                print(f"{name}: {rise:+.4f} a decade of d, R2 of the line in log d {fit:.3f}")
            panels.append((title, options.features, METHODS, errors, {}))
    written("rate_iht", "d", "l2 error of coefficients", panels)


if __name__ == "__main__":
    main()
