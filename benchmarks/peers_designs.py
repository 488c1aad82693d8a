"""Error of skpriv's regressors on its own designs, beside their peers: same budget, data and seeds.

    python benchmarks/peers_designs.py [--privacy central] [--n 10000 100000] [--d 10] [--seeds 20]

Mean absolute error of the regression function, of dense designs (`_designs`) with two kinds of
targets, and of a sparse one with --sparse-d features. No intercept. Central peers: recalibrated
AdaSSP, noisy gradient descent (for each data set the best of 60 settings by an oracle that knows
the regression function), N-IHT with its noise corrected (sparse design). Local peer: noisy rows and
targets. For each design a median over seeds with 10% and 90% quantiles, and ratios of medians with
a 90% interval over seeds: of `LinearRegression` over the best of the older estimators (aims: 1/3
for targets mean +-.1 at n=1e4, 1.1 for targets +-1), and over the best peer.
"""

import argparse
import json

import numpy as np
from _designs import DESIGNS, make_rows, make_signs, make_theta
from _peers import AdaSSP, InputPerturbation, NoisyIHT, OracleDescent
from _rates import NOISE
from _record import HERE, record
from joblib import Parallel, delayed

from skpriv.datasets import make_sparse_autoregressive
from skpriv.linear_model import (
    IHTRegressor,
    ImproperSGDRegressor,
    LayeredRegressor,
    LinearRegression,
    ReweightedRegressor,
    SSPRegressor,
)

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
        "LinearRegression": LinearRegression,
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


def peers(design, d, privacy, options):
    """Peers by name, without descent."""
    if privacy == "local":
        return {} if design == "sparse" else {"noisy input": InputPerturbation(**options)}
    dense = {**options, "fit_intercept": False}
    estimators = {}
    if design == "sparse":
        dense["data_norm"] = 1.1 * np.sqrt(d)
        sparse = {**options, "data_max": DATA_MAX, "n_nonzero_coefs": NONZERO}
        estimators["N-IHT"] = NoisyIHT(coef_l1=1.0 / DATA_MAX, **sparse)
    estimators["AdaSSP"] = AdaSSP(**dense)
    return estimators


def descent(design, d, options, X, y, mean):
    """Error of the best of 60 settings."""
    norm = 1.1 * np.sqrt(d) if design == "sparse" else 1.0
    model = OracleDescent(data_norm=norm, fit_intercept=False, **options)
    return np.abs(model.predictions(X, y, X) - mean[:, None]).mean(axis=0).min()


def errors_of(design, n, d, privacy, epsilon, seed, oracle, known=({}, {})):
    """Mean absolute errors of the regression function, but for known ones: (of ours, of peers)."""
    X, y, mean = make(design, n, d, seed)
    options = {"epsilon": epsilon, "random_state": seed}
    groups = ours(design, d, privacy, options), peers(design, d, privacy, options)
    errors = [dict(found) for found in known]
    for found, group in zip(errors, groups):
        for name in [name for name in group if name not in found]:
            found[name] = np.abs(group[name].fit(X, y).predict(X) - mean).mean()
    if oracle and privacy == "central" and "descent, oracle" not in errors[1]:
        errors[1]["descent, oracle"] = descent(design, d, options, X, y, mean)
    return errors


def compared(first, second):
    """Ratio of medians of two lists of errors on the same data, with a 90% interval over seeds."""
    first = first[: len(second)]
    rng = np.random.default_rng(0)
    draws = rng.integers(0, len(first), (1000, len(first)))
    ratios = np.median(first[draws], axis=1) / np.median(second[draws], axis=1)
    return (np.median(first) / np.median(second), *np.quantile(ratios, [0.05, 0.95]))


def best(values, without=()):
    """Name of the least median."""
    medians = {name: np.median(errors) for name, errors in values.items() if name not in without}
    return min(medians, key=medians.get)


def show(design, n, d, results):
    """Rows of one design, and its ratios."""
    print(f"\n{design}, n={n}, d={d}")
    values = [
        {name: np.array([errors[name] for errors in group if name in errors]) for name in group[0]}
        for group in zip(*results)
    ]
    for group, label in zip(values, ("", "peer: ")):
        for name, errors in group.items():
            low, mid, high = np.quantile(errors, [0.1, 0.5, 0.9])
            print(f"    {label + name:22} {mid:.5f} [{low:.5f}, {high:.5f}]")
    new = "LinearRegression"
    pairs = [(values[0][new], new, best(values[0], [new]), values[0])]
    if values[1]:
        leader = best(values[0])
        pairs.append((values[0][new], new, best(values[1]), values[1]))
        pairs.append((values[0][leader], f"best of ours ({leader})", best(values[1]), values[1]))
    for errors, name, other, group in pairs:
        ratio, low, high = compared(errors, group[other])
        print(f"    {name} / {other}: {ratio:.2f} [{low:.2f}, {high:.2f}]")
    print(end="", flush=True)


def recorded(name):
    """Errors of the last record, by design and seed."""
    path = HERE / "results" / f"{name}.json"
    numbers = json.loads(path.read_text(encoding="utf-8"))["numbers"] if path.exists() else {}
    return {key: runs for key, runs in numbers.items() if ", n=" in key}


def without(pair, methods):
    """Errors of one seed (of ours, of peers), but not of these methods."""
    return [{name: error for name, error in found.items() if name not in methods} for found in pair]


def main():
    """Print one table a design."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--privacy", choices=("central", "local"), default="central")
    parser.add_argument("--n", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--d", type=int, default=10)
    parser.add_argument("--sparse-n", type=int, default=20_000)
    parser.add_argument("--sparse-d", type=int, default=400, help="0 leaves the design out")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--oracle-seeds", type=int, default=5, help="of descent, which is slow")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--name", default="peers_designs", help="of the record")
    parser.add_argument("--again", nargs="*", help="keep recorded errors, but not of these methods")
    options = parser.parse_args()
    print(f"{options.privacy}, epsilon={options.epsilon:g}, delta=1e-6, {options.seeds} seeds")
    dense = [f"{name}, {targets}" for name in DESIGNS for targets in ("uniform +-0.1", "signs")]
    runs = [(design, n, options.d) for n in options.n for design in dense]
    if options.sparse_d and options.privacy == "central":
        runs.append(("sparse", options.sparse_n, options.sparse_d))
    known = {} if options.again is None else recorded(options.name)
    numbers = {**vars(options), **known}
    for design, n, d in runs:
        key = f"{design}, n={n}, d={d}"
        have = [without(pair, options.again) for pair in known.get(key, [])]
        jobs = (
            delayed(errors_of)(
                design, n, d, options.privacy, options.epsilon, seed, seed < options.oracle_seeds,
                *have[seed : seed + 1],
            )
            for seed in range(options.seeds)
        )  # fmt: skip
        numbers[key] = results = Parallel(options.jobs)(jobs)
        show(design, n, d, results)
    record(options.name, numbers)


if __name__ == "__main__":
    main()
