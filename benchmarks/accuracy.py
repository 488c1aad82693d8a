"""Accuracy of the moment-based regressors beside AdaSSP and least squares, one run, many seeds.

Run: python benchmarks/accuracy.py [--seeds 10] [--epsilon 1] [--jobs 2]

First table: R2 by 5-fold cross-validation on real data, as a fraction of that of least squares.
Second table: mean absolute error of the regression function on synthetic designs (n=1e5, d=10), as
a fraction of AdaSSP's on the same data. Medians over seeds, with the 10% and 90% quantiles.
"""

import argparse

import numpy as np
from _designs import make_rows, make_signs, make_theta
from _peers import AdaSSP
from _record import record
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skpriv.datasets import load_mortgages, load_wages, load_warfarin
from skpriv.linear_model import ReweightedRegressor, SSPRegressor
from skpriv.preprocessing import BoundsScaler

LOADERS = {"wages": load_wages, "mortgages": load_mortgages, "warfarin": load_warfarin}
PRIVATE = (AdaSSP, SSPRegressor, ReweightedRegressor)


def real_scores(name, epsilon, seed):
    """R2 of least squares and of every private estimator on one shuffle of the folds."""
    data = LOADERS[name]()
    folds = KFold(5, shuffle=True, random_state=seed)
    scaler = BoundsScaler(data.bounds, exclusive=data.exclusive)
    estimators = [LinearRegression()] + [
        make(data_norm=1.0, epsilon=epsilon, bounds_y=data.bounds_y, random_state=seed)
        for make in PRIVATE
    ]
    return [
        cross_val_score(make_pipeline(scaler, est), data.data, data.target, cv=folds).mean()
        for est in estimators
    ]


def synthetic_errors(design, targets, epsilon, seed, n=100_000, d=10):
    """Mean absolute error of least squares and of every private estimator."""
    rng = np.random.default_rng(seed)
    X, theta = make_rows(design, n, d, rng), make_theta(design, d, rng)
    mean = X @ theta
    if targets == "signs":
        y = make_signs(mean, rng)
    else:
        y = np.clip(mean + rng.uniform(-0.1, 0.1, n), -1.0, 1.0)
    errors = []
    for make in (LinearRegression, *PRIVATE):
        options = {"epsilon": epsilon, "random_state": seed, "data_norm": 1.0, "bounds_y": (-1, 1)}
        options = {} if make is LinearRegression else options
        est = make(fit_intercept=False, **options).fit(X, y)
        errors.append(np.abs(est.predict(X) - mean).mean())
    return errors


def show(label, values, reference):
    """One row: median of the reference, then medians and spreads of the ratios to it."""
    values = np.array(values)
    ratios = values / values[:, [reference]]
    low, mid, high = np.quantile(ratios, [0.1, 0.5, 0.9], axis=0)
    cells = "  ".join(f"{m:6.3f} [{a:5.3f}, {b:5.3f}]" for m, a, b in zip(mid, low, high))
    print(f"{label:28} {np.median(values[:, reference]):8.5f}  {cells}", flush=True)
    return values


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    names = ["least squares"] + [make.__name__ for make in PRIVATE]
    header = "  ".join(f"{name:22}" for name in names)
    parallel, numbers = Parallel(arguments.jobs), {"methods": names, **vars(arguments)}
    print(f"epsilon={arguments.epsilon}, delta=1e-6, central, {arguments.seeds} seeds")
    print(f"\n{'R2 / R2 of least squares':28} {'R2':>8}  {header}")
    for name in LOADERS:
        jobs = (delayed(real_scores)(name, arguments.epsilon, s) for s in range(arguments.seeds))
        numbers[name] = show(name, parallel(jobs), reference=0)
    print(f"\n{'error / error of AdaSSP':28} {'MAE':>8}  {header}")
    for design in ("isotropic", "ill-conditioned", "rare direction", "small direction"):
        for targets in ("uniform +-0.1", "signs"):
            jobs = (
                delayed(synthetic_errors)(design, targets, arguments.epsilon, s)
                for s in range(arguments.seeds)
            )
            label = f"{design}, {targets}"
            numbers[label] = show(label, parallel(jobs), reference=1)
    record("accuracy", numbers)


if __name__ == "__main__":
    main()
