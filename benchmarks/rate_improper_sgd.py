"""Error of improper descent against the number of features, and against that of records.

Run: python benchmarks/rate_improper_sgd.py [--features ...] [--sizes ...]

Claims (Chen, Li, Rakhlin and Simchi-Levi 2025, Theorems 6.2 and 6.3): the root mean square error
does not depend on d, and falls at worst like n^{-1/4} in the central and n^{-1/6} in the local
model. Designs: "decaying", rows on the sphere with scales 1/j (the signal stays as d grows), and
"rank one", their Proposition 6.1 with the mean 1/2 (predictions are clipped, so that 1 would be met
exactly). "zero" is the error of predicting 0. SSP and LinearRegression stop at 1,000 features.
"""

import numpy as np
from _designs import make_signs
from _rates import NOISE, arguments, show, sweep, written

from skpriv.datasets import make_rank_one
from skpriv.linear_model import ImproperSGDRegressor, LinearRegression, SSPRegressor

METHODS = ("zero", "improper", "SSP", "LinearRegression")
MOST_MOMENTS = 1000


def make(design, n, d, seed):
    """Rows, targets and means of a design."""
    rng = np.random.default_rng(seed)
    if design == "rank one":
        X, _, coef = make_rank_one(n, d, return_coef=True, random_state=seed)
        mean = X @ (coef / 2.0)
        return X, make_signs(mean, rng), mean
    X = rng.standard_normal((n, d))
    X /= np.arange(1, d + 1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    theta = np.arange(1.0, d + 1) ** -0.75 * rng.choice([-1.0, 1.0], d)
    mean = X @ (theta / np.linalg.norm(theta))
    return X, make_signs(mean, rng), mean


def errors_of(design, n, d, epsilon, seed, privacy, moments=True):
    """Root mean square errors of METHODS (moments need few features)."""
    X, y, mean = make(design, n, d, seed)
    options = {"epsilon": epsilon, "privacy": privacy, "fit_intercept": False}
    options |= {"random_state": NOISE + seed, "data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
    estimators = [ImproperSGDRegressor(calibration=0.0, **options)]
    if moments:
        estimators += [SSPRegressor(**options), LinearRegression(**options)]
    errors = [np.sqrt(np.mean(mean**2))]
    for est in estimators:
        errors.append(np.sqrt(np.mean((est.fit(X, y).predict(X) - mean) ** 2)))
    return errors


def main():
    """Print the tables, and record them."""
    features = [10, 100, 1000, 5000, 20_000]
    sizes = [1000, 3000, 10_000, 30_000, 100_000]
    options = arguments(__doc__, features=features, sizes=sizes, records=[5000])
    panels, n = [], options.records[0]
    for design in ("decaying", "rank one"):

        def by_features(d, epsilon, seed, design=design):
            return errors_of(design, n, d, epsilon, seed, "central", moments=False)

        errors = sweep(by_features, options.features, options)
        title = f"{design}, central, n={n}"
        show(title, "d", options.features, METHODS[:2], errors)
        panels.append((title, options.features, METHODS[:2], errors, {}))
        few = [d for d in options.features if d <= MOST_MOMENTS]

        def moments(d, epsilon, seed, design=design):
            return errors_of(design, n, d, epsilon, seed, "central")[-2:]

        if len(few) > 1:
            show(f"{title}: moments", "d", few, METHODS[2:], sweep(moments, few, options))
    written("rate_improper_sgd_features", "d", "root mean square error", panels)

    panels = []
    for privacy, power in (("central", -0.25), ("local", -1.0 / 6.0)):
        for design in ("decaying", "rank one"):

            def by_records(n, epsilon, seed, design=design, privacy=privacy):
                return errors_of(design, n, 100, epsilon, seed, privacy)

            errors = sweep(by_records, options.sizes, options)
            title = f"{design}, {privacy}, d=100"
            show(title, "n", options.sizes, METHODS, errors)
            guides = {f"n^({power:.3g})": power, "n^(-1/2)": -0.5}
            panels.append((title, options.sizes, METHODS, errors, guides))
    written("rate_improper_sgd", "n", "root mean square error", panels)


if __name__ == "__main__":
    main()
