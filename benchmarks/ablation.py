"""What each part of the loop is worth: R2 of `LinearRegression` with one part changed.

    python benchmarks/ablation.py [--tables ...] [--epsilons .3 1] [--seeds 6] [--parts ...]

Each seed fits four fifths of the rows and scores the rest, with public bounds and delta 1e-6. By
default the tables are those of `_fresh_tables` that took no part in any choice, nor in those which
this record led to. For each part: the mean over tables of the median R2 over seeds and of the worst
one, and their differences to the whole. Each number of `_rules`, `_steps`, `_pool` and `_whitening`
that decides a fit has a row.
"""

import argparse
import warnings
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
from _fresh_tables import CHECK_TABLES, CHOICE_TABLES
from _more_tables import MORE_TABLES
from _record import record
from _tables import TABLES
from _unseen_tables import UNSEEN_TABLES

from skpriv._estimation._loop import _whitening as _pool, _rules, _steps, _whitening
from skpriv.linear_model import LinearRegression


def _james_stein(gram, scale):
    """Eigenvalues and eigenvectors of the James-Stein estimate, and its weight."""
    _, vectors, weight = DENOISED(gram, scale)
    values, level = np.linalg.eigvalsh(gram), max(np.trace(gram), scale * len(gram) ** 0.5)
    level /= len(gram)
    return np.maximum(weight * (values - level) + level, 0.0), vectors, weight


DENOISED = _pool.denoised_gram
EVERY = {**TABLES, **MORE_TABLES, **UNSEEN_TABLES, **CHOICE_TABLES, **CHECK_TABLES}
PARTS = {
    "whole": (),
    "4 steps": ((_rules, "STEPS", (4, 4)),),
    "16 steps at most, or 32 without slopes": ((_rules, "STEPS", (4, 32)),),
    "8 steps at least": ((_rules, "STEPS", (8, 64)),),
    "half as many steps": ((_rules, "STEPS_RESOLUTION", 80.0),),
    "equal steps": ((_rules, "LAST_SHARE", 0.0),),
    "questions at .025": ((_rules, "QUESTION", 0.025),),
    "questions at .1": ((_rules, "QUESTION", 0.1),),
    "no count of clipped rows": ((_rules, "CLIPPED_SHARE", 0.0),),
    "whitening at .1": ((_rules, "LEARNT", 0.1),),
    "whitening at .3": ((_rules, "LEARNT", 0.3),),
    "two rounds of whitening": ((_whitening, "ROUNDS", 2),),
    "no margins of features": ((_rules, "MARGINS_NOISE", 0.0),),
    "margins at twice that noise": ((_rules, "MARGINS_NOISE", 0.25),),
    "resolved from 8 on": ((_rules, "RESOLVED", 8.0),),
    "never resolved: no line": ((_rules, "RESOLVED", np.inf),),
    "rows of length 1.75 / k": ((_rules, "ROWS_AND_CLIPS", ((1.75, 2.0), (2.5, 2.5))),),
    "rows of length 2.5 / k": ((_rules, "ROWS_AND_CLIPS", ((2.5, 2.5), (2.5, 2.5))),),
    "clips by sampling alone": ((_rules, "AFFORDABLE", 0.0),),
    "one shape of the prior": ((_steps, "EFFECTS", (1.0,)),),
    "no ranges in the prior": ((_steps, "EFFECTS", (1e3,)),),
    "James-Stein alone": ((_pool, "denoised_gram", _james_stein),),
}


@contextmanager
def changed(changes):
    """Put other values in place of some of a module's."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for module, name, value in changes:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


@lru_cache(maxsize=None)
def read(name):
    """Rows, targets and public bounds of a table."""
    table = EVERY[name]()
    pairs = np.array(list(table.bounds.values()))
    return np.asarray(table.data, dtype=float), np.clip(table.target, *table.bounds_y), pairs, table


def scores(name, epsilon, seeds):
    """R2 of each seed on rows that were not fitted."""
    X, y, pairs, table = read(name)
    found = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(y))
        fitted, rest = np.split(order, [int(0.8 * len(y))])
        model = LinearRegression(
            epsilon=epsilon, bounds_X=pairs, bounds_y=table.bounds_y, random_state=seed, n_jobs=1
        ).fit(X[fitted], y[fitted])
        error = np.square(y[rest] - model.predict(X[rest])).sum()
        found.append(1.0 - error / np.square(y[rest] - y[fitted].mean()).sum())
    return found


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(CHECK_TABLES), choices=list(EVERY))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--name", default="ablation", help="of the record")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers: dict = {}
    for part in args.parts:
        with changed(PARTS[part]):
            for epsilon in args.epsilons:
                rows = {name: scores(name, epsilon, args.seeds) for name in args.tables}
                numbers[f"{part}, epsilon {epsilon:g}"] = rows
                middle = np.mean([np.median(row) for row in rows.values()])
                worst = np.mean([np.min(row) for row in rows.values()])
                whole = numbers.get(f"whole, epsilon {epsilon:g}", rows)
                gain = middle - np.mean([np.median(row) for row in whole.values()])
                tail = worst - np.mean([np.min(row) for row in whole.values()])
                cells = f"{middle:6.3f} {gain:+.3f}   worst {worst:6.3f} {tail:+.3f}"
                print(f"{part:32} {epsilon:4g} {cells}", flush=True)
    record(args.name, numbers)


if __name__ == "__main__":
    main()
