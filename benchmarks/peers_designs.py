"""Mean absolute error of skpriv's regressors beside their peers, same budget and data, many seeds.

Run: python benchmarks/peers.py [--privacy central] [--n 100000] [--d 10] [--seeds 20]

Dense designs of `_designs.py` with two kinds of targets, and a sparse one with --sparse-d features.
Central peers: recalibrated AdaSSP, noisy gradient descent (steps tuned on fresh draws of the same
design, which costs it nothing), N-IHT with its noise corrected (sparse design). Local peer: noisy
rows and targets. The last column of the verdict is the ratio of the medians of the best default
of skpriv and the best peer, with a 90% interval over seeds; "WORSE" if all of it is above 1.
"""

import argparse

import numpy as np
from _designs import DESIGNS, make_rows, make_signs, make_theta
from _peers import AdaSSP, InputPerturbation, NoisyGradientDescent, NoisyIHT
from _rates import NOISE
from _record import record
from joblib import Parallel, delayed

from skpriv.datasets import make_sparse_autoregressive
from skpriv.linear_model import (
    IHTRegressor,
    ImproperSGDRegressor,
    LayeredRegressor,
    ReweightedRegressor,
    SSPRegressor,
)

TUNING_SEEDS = (1000, 1001)
GRID = [(n_iter, step) for n_iter in (5, 15, 50, 150) for step in (0.3, 1.0, 3.0, 10.0)]
NONZERO = 5
DATA_MAX = 3.0


def make(design, n, d, seed):
    """Rows, targets and means; the design's name ends with the kind of its targets."""
    if design == "sparse":
        options = {"n_nonzero": NONZERO, "data_max": DATA_MAX, "random_state": NOISE + seed}
        X, y, coef = make_sparse_autoregressive(n, d, return_coef=True, **options)
        return X, y, X @ coef
    name, targets = design.split(", ")
    rng = np.random.default_rng(seed)
    X = make_rows(name, n, d, rng)
    mean = X @ make_theta(name, d, rng)
    if targets == "signs":
        return X, make_signs(mean, rng), mean
    return X, np.clip(mean + rng.uniform(-0.1, 0.1, n), -1.0, 1.0), mean


def ours(design, d, privacy, options):
    """Estimators of skpriv by name, with default parameters but for public bounds."""
    dense = {**options, "fit_intercept": False, "privacy": privacy}
    dense |= {"data_norm": 1.0, "bounds_y": (-1.0, 1.0)}
    if design == "sparse":
        # rows have a norm of about sqrt(d), which is public: features have variance 1
        dense["data_norm"] = 1.1 * np.sqrt(d)
    makers = {
        "SSP": SSPRegressor,
        "Reweighted": ReweightedRegressor,
        "ImproperSGD": ImproperSGDRegressor,
    }
    if design != "sparse":
        makers["Layered"] = LayeredRegressor
    estimators = {name: maker(**dense) for name, maker in makers.items()}
    if design == "sparse" and privacy == "central":
        sparse = {**options, "fit_intercept": False, "data_max": DATA_MAX}
        sparse["bounds_y"] = (-1.0, 1.0)
        estimators["IHT"] = IHTRegressor(n_nonzero_coefs=NONZERO, **sparse)
    return estimators


def peers(design, d, privacy, options, steps):
    """Peers by name."""
    if privacy == "local":
        return {} if design == "sparse" else {"noisy input": InputPerturbation(**options)}
    dense = {**options, "fit_intercept": False}
    estimators = {}
    if design == "sparse":
        dense["data_norm"] = 1.1 * np.sqrt(d)
        sparse = {**options, "data_max": DATA_MAX, "n_nonzero_coefs": NONZERO}
        estimators["N-IHT"] = NoisyIHT(coef_l1=1.0 / DATA_MAX, **sparse)
    estimators["AdaSSP"] = AdaSSP(**dense)
    estimators["noisy GD"] = NoisyGradientDescent(n_iter=steps[0], step_size=steps[1], **dense)
    return estimators


def tuned(design, n, d, epsilon):
    """Steps of noisy gradient descent that are best on fresh draws."""
    errors = np.zeros(len(GRID))
    for seed in TUNING_SEEDS:
        X, y, mean = make(design, n, d, seed)
        for k, steps in enumerate(GRID):
            options = {"epsilon": epsilon, "random_state": seed}
            est = peers(design, d, "central", options, steps)["noisy GD"]
            errors[k] += np.abs(est.fit(X, y).predict(X) - mean).mean()
    return GRID[int(np.argmin(errors))]


def errors_of(design, n, d, privacy, epsilon, seed, steps):
    """Mean absolute errors of the regression function: (of ours, of peers)."""
    X, y, mean = make(design, n, d, seed)
    options = {"epsilon": epsilon, "random_state": seed}
    groups = ours(design, d, privacy, options), peers(design, d, privacy, options, steps)
    return [
        {name: np.abs(est.fit(X, y).predict(X) - mean).mean() for name, est in group.items()}
        for group in groups
    ]


def compared(best, other):
    """Ratio of medians with a 90% interval over seeds."""
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(best), (1000, len(best)))
    ratios = np.median(best[draws], axis=1) / np.median(other[draws], axis=1)
    return (np.median(best) / np.median(other), *np.quantile(ratios, [0.05, 0.95]))


def show(design, n, d, results):
    """Rows of one design, and its verdict."""
    print(f"\n{design}, n={n}, d={d}")
    best = []
    for group, label in zip(zip(*results), ("", "peer: ")):
        if not group[0]:
            continue
        values = {name: np.array([errors[name] for errors in group]) for name in group[0]}
        for name, errors in values.items():
            low, mid, high = np.quantile(errors, [0.1, 0.5, 0.9])
            print(f"    {label + name:18} {mid:.5f} [{low:.5f}, {high:.5f}]")
        best.append(min(values.items(), key=lambda item: np.median(item[1])))
    if len(best) == 2:
        ratio, low, high = compared(best[0][1], best[1][1])
        word = "WORSE" if low > 1.0 else "better" if high < 1.0 else "alike"
        print(f"    {best[0][0]} / {best[1][0]}: {ratio:.2f} [{low:.2f}, {high:.2f}] {word}")
    print(end="", flush=True)


def main():
    """Print one table a design."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--privacy", choices=("central", "local"), default="central")
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--d", type=int, default=10)
    parser.add_argument("--sparse-n", type=int, default=20_000)
    parser.add_argument("--sparse-d", type=int, default=400, help="0 leaves the design out")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(f"{options.privacy}, epsilon={options.epsilon:g}, delta=1e-6, {options.seeds} seeds")
    dense = [f"{name}, {targets}" for name in DESIGNS for targets in ("uniform +-0.1", "signs")]
    runs = [(design, options.n, options.d) for design in dense]
    if options.sparse_d and options.privacy == "central":
        runs.append(("sparse", options.sparse_n, options.sparse_d))
    numbers = dict(vars(options))
    for design, n, d in runs:
        steps = tuned(design, n, d, options.epsilon) if options.privacy == "central" else None
        jobs = (
            delayed(errors_of)(design, n, d, options.privacy, options.epsilon, seed, steps)
            for seed in range(options.seeds)
        )
        numbers[f"{design}, n={n}, d={d}"] = results = Parallel(options.jobs)(jobs)
        show(design, n, d, results)
    record("peers", numbers)


if __name__ == "__main__":
    main()
