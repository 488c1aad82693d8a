"""Coverage and width of the confidence intervals, beside a ridge interval of worst-case constants.

Run: python benchmarks/coverage.py [--n 100000] [--repeats 200] [--jobs 2]

Columns: coverage and mean half-width of the certified and the asymptotic interval at level 0.95,
the 95% quantile of the true error of ``predict``, their ratios, and the half-width of a plain ridge
interval (same released sums, fixed ridge at the noise's operator norm, union bounds, no noise law).
"""

import argparse
from math import log, sqrt

import numpy as np
from _designs import DESIGNS, make_rows, make_signs, make_theta
from _record import record
from joblib import Parallel, delayed

from skpriv import Budget
from skpriv.linear_model import ReweightedRegressor, SSPRegressor

LEVEL = 0.95
POINTS = 500


def ridge_half_width(X, points, budget, local):
    """|x|_{V^-1} (sqrt(lam) + noise + self-normalised term), Chowdhury and Zhou (2022)-like.

    V is the exact Gram matrix plus lam I: kinder to the peer than a noisy one.
    """
    n, d = X.shape
    failure = 1.0 - LEVEL
    scale = 3.0 / sqrt(2.0) / budget.mu * (sqrt(n) if local else 1.0)
    lam = scale * (4.0 * sqrt(d) + 2.0 * sqrt(log(6.0 / failure)))
    shift = scale * (sqrt(d) + sqrt(2.0 * log(6.0 / failure)))
    ridge = X.T @ X + 2.0 * lam * np.eye(d)
    radius = (
        sqrt(2.0 * log(3.0 / failure) + d * log(3.0 + n / (lam * d)))
        + sqrt(3.0 * lam)
        + shift / sqrt(lam)
    )
    leverage = np.einsum("ij,ij->i", points @ np.linalg.inv(ridge), points)
    return radius * np.sqrt(leverage)


def one_repeat(design, n, d, privacy, epsilon, seed):
    """Figures of both estimators on one data set."""
    rng = np.random.default_rng(seed)
    X, theta = make_rows(design, n, d, rng), make_theta(design, d, rng)
    y, points = make_signs(X @ theta, rng), make_rows(design, POINTS, d, rng)
    truth = points @ theta
    peer = ridge_half_width(X, points, Budget(epsilon, 1e-6), privacy == "local").mean()
    figures = {}
    for estimator in (SSPRegressor, ReweightedRegressor):
        public = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0), "coef_norm": 1.0}
        est = estimator(
            epsilon=epsilon, privacy=privacy, fit_intercept=False, random_state=seed, **public
        ).fit(X, y)
        errors = np.abs(est.predict(points) - truth)
        row = [peer, errors]
        for method in ("certified", "asymptotic"):
            low, high = est.confidence_interval(points, LEVEL, method=method)
            row += [np.mean((low <= truth) & (truth <= high)), np.mean(high - low) / 2]
        figures[estimator.__name__] = row
    return figures


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--d", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    print(f"n={arguments.n}, epsilon={arguments.epsilon}, delta=1e-6, {arguments.repeats} repeats")
    print(
        f"{'design':16} {'d':>3} {'model':8} {'estimator':20} {'err95':>7} "
        f"{'cert.cov':>8} {'half':>7} {'ratio':>6} {'asym.cov':>8} {'half':>7} {'ratio':>6} "
        f"{'ridge':>7}"
    )
    numbers = {**vars(arguments), "rows": []}
    for design in DESIGNS:
        for d in arguments.d:
            for privacy in ("central", "local"):
                repeats = Parallel(arguments.jobs)(
                    delayed(one_repeat)(design, arguments.n, d, privacy, arguments.epsilon, seed)
                    for seed in range(arguments.repeats)
                )
                for name in repeats[0]:
                    rows = [figures[name] for figures in repeats]
                    error = np.quantile(np.concatenate([row[1] for row in rows]), LEVEL)
                    peer = np.mean([row[0] for row in rows])
                    cover, half, asym, narrow = np.mean([row[2:] for row in rows], axis=0)
                    kept = [[row[0], np.quantile(row[1], LEVEL), *row[2:]] for row in rows]
                    numbers["rows"].append([design, d, privacy, name, kept])
                    print(
                        f"{design:16} {d:3} {privacy:8} {name:20} {error:7.4f} {cover:8.4f} "
                        f"{half:7.4f} {half / error:6.2f} {asym:8.4f} {narrow:7.4f} "
                        f"{narrow / error:6.2f} {peer:7.4f}",
                        flush=True,
                    )
    record("coverage", numbers)


if __name__ == "__main__":
    main()
