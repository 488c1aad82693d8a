"""One cell of every model of trust, kind of target, source of rows and policy: seconds a cell.

Run: python benchmarks/every_model.py [--only "shuffle" "LinUCB*"] [--seeds 8] [--replace]

The worlds are small and made, so that all of it takes a few minutes: these cells are there to be
compared with those of the last record by `_gate.py`, and not to say how good the methods are. A
cell of a fit has for each seed

* ``r2``: of the means of fresh rows, whose noise is left out;
* ``covered``: the part of the coefficients in their 95% intervals, where an unknown one counts;
* ``told``: how many coefficients are found to be different from zero, with the right sign;
* ``cost``: processor time of the fit in units of X'X of the same rows;

a cell of prediction intervals has their coverage of 90% and their width; one of a policy has its
``regret`` for each run, or what a call ``cost`` in units of a product of two matrices of 100 x 100.
A cell is one line of `FITS` or of `POLICIES`, whose runs are twice as many: regret varies.
"""

import argparse
import tempfile
import warnings
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from _bandit_environments import LogisticEnvironment, RareArms
from _record import record
from scipy.special import expit

from skpriv.bandits import (
    ActionElimination,
    EpochGreedy,
    LinearEnvironment,
    LinSquareCB,
    LinUCB,
    OnlineLinUCB,
    SquareCB,
    simulate,
)
from skpriv.inspection import inference
from skpriv.linear_model import (
    AdditiveRegressor,
    IHTRegressor,
    ImproperSGDRegressor,
    IVRegressor,
    LayeredRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.records import from_batches, from_parquet, from_table

NO_INTERVALS = (AdditiveRegressor, IHTRegressor, LayeredRegressor, ImproperSGDRegressor)
LEVEL = 0.9  # of prediction intervals
COEF = np.array([0.5, -0.3, 0.2, 0.1, 0.05, 0.02, 0.0, 0.0])
BOX = {"bounds_X": (-1.0, 1.0), "bounds_y": (-2.0, 2.0)}
BALL = {"data_norm": 1.0, "bounds_y": (-2.0, 2.0)}


class World:
    """Made rows: most of them near the middle of their ranges, means that are public to us alone.

    Parameters
    ----------
    seed : int
    n, d : int
    kind : {"line", "labels", "counts", "classes", "persons", "instruments"}
    """

    def __init__(self, seed, n=20_000, d=8, kind="line"):
        rng = np.random.default_rng(seed)
        self.X, self.fresh = (rng.uniform(-1.0, 1.0, (rows, d)) ** 3 for rows in (n, 5_000))
        self.coef = np.resize(COEF, d) / max(1.0, np.sqrt(d / len(COEF)))
        self.groups, size = None, n
        if kind in ("labels", "classes", "counts"):
            self.coef = 2.0 * self.coef
        line = 0.1 + self.X @ self.coef
        self.mean = 0.1 + self.fresh @ self.coef
        if kind == "labels":
            self.mean = expit(self.mean)
            self.y = (rng.random(size) < expit(line)).astype(int)
        elif kind == "classes":
            turned = np.column_stack([np.roll(self.coef, k) for k in range(5)])
            scores = self.X @ turned + rng.gumbel(size=(n, 5))
            self.y, self.coef, self.mean = scores.argmax(axis=1), None, None
        elif kind == "counts":
            self.mean, self.y = np.exp(self.mean), np.minimum(rng.poisson(np.exp(line)), 20)
        else:
            self.y = line + 0.2 * rng.standard_normal(size)
        if kind == "persons":
            self.groups = np.repeat(np.arange(n // 4), 4)
            self.y = self.y + 0.2 * rng.standard_normal(n // 4)[self.groups]
        if kind == "instruments":  # the last column moves the first, whose noise is the target's
            shared = 0.1 * rng.standard_normal(n)
            self.X[:, 0] = np.clip(0.8 * self.X[:, -1] + shared, -1.0, 1.0)
            self.coef = np.array([*self.coef[:-1], 0.0])[: d - 1]
            self.y = 0.1 + self.X[:, :-1] @ self.coef + shared + 0.1 * rng.standard_normal(n)
            self.mean = None

    def fit(self, model):
        """Fit a model to the rows."""
        if self.groups is None:
            return model.fit(self.X, self.y)
        return model.fit(self.X, self.y, groups=self.groups, max_rows_per_group=4)

    def unit(self):
        """Seconds of X'X, the least of three."""
        return min(spent(lambda: self.X.T @ self.X) for _ in range(3))


def spent(function):
    """Processor time of one call."""
    start = process_time()
    function()
    return process_time() - start


def measured(world, model, fit):
    """Measures of one fit; of coefficients where they are known."""
    found = {"cost": spent(fit) / world.unit()}
    if world.mean is not None:
        labels = isinstance(model, LogisticRegression)
        means = model.predict_proba(world.fresh)[:, 1] if labels else model.predict(world.fresh)
        found["r2"] = 1.0 - np.square(means - world.mean).mean() / world.mean.var()
    if isinstance(model, NO_INTERVALS):
        return found
    table = inference(model)
    low, high, truth = table.low, table.high, world.coef
    if truth is None:
        return {**found, "told": int(((low > 0.0) | (high < 0.0)).sum())}
    low, high = low[: len(truth)], high[: len(truth)]
    found["told"] = int((((low > 0.0) & (truth > 0.0)) | ((high < 0.0) & (truth < 0.0))).sum())
    found["covered"] = np.mean(~((low > truth) | (high < truth)))
    return found


def fitted(Estimator, seed, *, world=(), **settings):
    """Measures of an estimator with these settings in a world."""
    made = World(seed, **dict(world))
    model = Estimator(random_state=seed, n_jobs=1, **settings)
    return measured(made, model, lambda: made.fit(model))


def _of_ball(Estimator, seed, *, world=(), **settings):
    """The same of an estimator that takes rows of the unit ball, and has no workers."""
    made = World(seed, **dict(world))
    made.X, made.fresh = made.X / np.sqrt(8.0), made.fresh / np.sqrt(8.0)
    made.coef = made.coef * np.sqrt(8.0)
    model = Estimator(random_state=seed, **{**BALL, **settings})
    return measured(made, model, lambda: made.fit(model))


def selected(seed):
    """The same of hard thresholding."""
    made = World(seed, d=40)
    model = IHTRegressor(
        n_nonzero_coefs=5, data_max=1.0, bounds_y=(-2.0, 2.0), random_state=seed
    )  # fmt: skip
    return measured(made, model, lambda: made.fit(model))


def weighed(seed):
    """The same with weights of rows."""
    made = World(seed)
    weights = np.random.default_rng(seed).uniform(0.25, 1.0, len(made.y))
    model = LinearRegression(**BOX, random_state=seed, n_jobs=1)
    return measured(
        made, model, lambda: model.fit(made.X, made.y, sample_weight=weights, max_weight=1.0)
    )


def read(source, seed, Estimator=LinearRegression, bounds=BOX):
    """The same of rows that come from elsewhere, and are written there before."""
    made = World(seed)
    names = [f"x{j}" for j in range(8)]
    model = Estimator(random_state=seed, n_jobs=1, **bounds)
    with tempfile.TemporaryDirectory() as folder:
        rows = SOURCES[source](made, names, Path(folder))
        return measured(made, model, lambda: model.fit(*rows))


def _polars(made, names, folder):
    import polars

    return polars.DataFrame(made.X, schema=names).lazy(), made.y


def _parquet(made, names, folder):
    import pandas as pd

    pd.DataFrame(made.X, columns=names).assign(y=made.y).to_parquet(folder / "rows.parquet")
    return (from_parquet(folder / "rows.parquet", target="y"),)


def _duckdb(made, names, folder):
    import duckdb

    _parquet(made, names, folder)
    relation = duckdb.read_parquet(str(folder / "rows.parquet"))
    return (from_table(relation, target="y", n=len(made.y)),)


def _dask(made, names, folder):
    import dask.array

    return dask.array.from_array(made.X, (5_000, 8)), dask.array.from_array(made.y, 5_000)


def _batches(made, names, folder):
    def batches():
        for start in range(0, len(made.y), 5_000):
            part = slice(start, start + 5_000)
            yield made.X[part], made.y[part]

    return (from_batches(batches, n=len(made.y)),)


SOURCES = {
    "polars": _polars,
    "Parquet": _parquet,
    "DuckDB": _duckdb,
    "Dask": _dask,
    "batches": _batches,
}


def predicted(Estimator, seed, kind="line", **settings):
    """Coverage of fresh targets by prediction intervals, and their mean width."""
    made, other = World(seed, kind=kind), World(seed + 1_000, kind=kind)
    model = Estimator(random_state=seed, calibration_size=0.3, n_jobs=1, **settings)
    found = {"cost": spent(lambda: made.fit(model)) / made.unit()}
    rows, y = other.X[:5_000], other.y[:5_000]
    low, high = model.prediction_interval(rows, LEVEL)
    found |= {"covered": np.mean((low <= y) & (y <= high)), "width": np.mean(high - low)}
    return found


class OftenEnvironment(LogisticEnvironment):
    """Rewards of 0 or 1 that are mostly 1: a constant tells more than all features."""

    def _mean(self, values):
        return expit(2.0 + 2.0 * values)


WORLDS = {
    "centred": LinearEnvironment,
    "fixed arms": partial(LinearEnvironment, contexts="fixed"),
    "rare arms": RareArms,
    "rate .9": OftenEnvironment,
}
HORIZON = 4_000


def played(make, seed, *, world):
    """Regret of a policy in a run of its own."""
    env = WORLDS[world]()
    policies = {"one": make(bounds_y=env.bounds_rewards)}
    result = simulate(policies, env, HORIZON, 1, 1, random_state=seed, n_records=2)
    return {"regret": float(result.regret_[0, 0, -1])}


def called(make, seed, shape=(1, 5, 10)):
    """What the round of a policy costs, one round a call, in products of matrices."""
    policy = make(bounds_y=(-1.0, 1.0)).set_params(random_state=seed)
    contexts = np.random.default_rng(seed).uniform(-0.3, 0.3, (400, *shape))
    product = np.eye(100)
    unit = min(spent(lambda: [product @ product for _ in range(100)]) for _ in range(5)) / 100.0

    def rounds():
        for context in contexts:
            policy.update(context, policy.act(context), np.array([0.5]))

    return {"cost": spent(rounds) / len(contexts) / unit}


def _epochs(Policy, intercept, bounds_y):
    oracle = SSPRegressor(data_norm=1.0, bounds_y=bounds_y, fit_intercept=intercept)
    return Policy(oracle)


def _policies():
    """Every policy with an intercept and without one, and running sums in every model of trust."""
    for intercept in (True, False):
        words = "with an intercept" if intercept else "without an intercept"
        for privacy in ("central", "aggregate", "shuffle", "local", "none"):
            made = partial(LinUCB, privacy=privacy, fit_intercept=intercept)
            yield f"LinUCB, {privacy}, {words}", made, WORLDS if privacy == "central" else _TWO
        yield f"LinSquareCB, {words}", partial(LinSquareCB, fit_intercept=intercept), WORLDS
        for Policy in (SquareCB, EpochGreedy, ActionElimination):
            yield f"{Policy.__name__}, {words}", partial(_epochs, Policy, intercept), _TWO
    yield "OnlineLinUCB", OnlineLinUCB, _TWO


_TWO = ("centred", "rate .9")
LABELS = {"bounds_X": (-1.0, 1.0), "classes": (0, 1)}
CLASSES = {"bounds_X": (-1.0, 1.0), "classes": (0, 1, 2, 3, 4)}
COUNTS = {"bounds_X": (-1.0, 1.0), "bounds_y": (0.0, 20.0)}
TRUST = {
    **{privacy: {"privacy": privacy} for privacy in ("central", "aggregate", "shuffle", "none")},
    "local": {"privacy": "local", "epsilon": 8.0, "world": {"n": 60_000, "d": 4}},
}
FITS = {
    **{f"LinearRegression, {one}": partial(fitted, LinearRegression, **BOX, **trust)
       for one, trust in TRUST.items()},
    **{f"AdditiveRegressor, {one}": partial(fitted, AdditiveRegressor, **BOX, **trust)
       for one, trust in TRUST.items()},
    **{f"{Estimator.__name__}, {one}": partial(_of_ball, Estimator, **trust)
       for Estimator in (SSPRegressor, ReweightedRegressor, LayeredRegressor, ImproperSGDRegressor)
       for one, trust in TRUST.items()},
    "IHTRegressor, central": selected,
    **{f"LogisticRegression, two classes, {one}": partial(
        fitted, LogisticRegression, **LABELS, privacy=one, world={"kind": "labels"})
       for one in ("central", "aggregate", "shuffle", "none")},
    **{f"LogisticRegression, five classes, {one}": partial(
        fitted, LogisticRegression, **CLASSES, privacy=one, world={"kind": "classes"})
       for one in ("central", "shuffle")},
    **{f"PoissonRegressor, {one}": partial(
        fitted, PoissonRegressor, **COUNTS, privacy=one, world={"kind": "counts"})
       for one in ("central", "shuffle")},
    **{f"LinearRegression, epsilon {epsilon:g}": partial(
        fitted, LinearRegression, **BOX, epsilon=epsilon) for epsilon in (0.2, 5.0)},
    "LinearRegression, n=1,000 and p=5": partial(
        fitted, LinearRegression, **BOX, world={"n": 1_000, "d": 5}),
    "LinearRegression, p=100": partial(
        fitted, LinearRegression, **BOX, world={"n": 60_000, "d": 100}
    ),
    "LinearRegression, parts of 300,000 rows": partial(
        fitted, LinearRegression, **BOX, world={"n": 300_000, "d": 20}),
    "LinearRegression, shuffled parts": partial(
        fitted, LinearRegression, **BOX, privacy="shuffle", world={"n": 60_000}),
    "LinearRegression, persons": partial(
        fitted, LinearRegression, **BOX, world={"n": 60_000, "kind": "persons"}),
    "LinearRegression, effects of persons": partial(
        fitted, LinearRegression, **BOX, effects="person", world={"n": 60_000, "kind": "persons"}),
    "LinearRegression, weights": weighed,
    "IVRegressor, central": partial(
        fitted, IVRegressor, **BOX, endogenous=[0], instruments=[7],
        world={"kind": "instruments"}),
    **{f"LinearRegression, {source}": partial(read, source) for source in SOURCES},
    "SSPRegressor, lazy polars": partial(
        read, "polars", Estimator=SSPRegressor, bounds={**BALL, "data_norm": np.sqrt(8.0)}
    ),
    "prediction intervals, lines": partial(predicted, LinearRegression, **BOX),
    "prediction intervals, curves": partial(predicted, AdditiveRegressor, **BOX),
    "prediction intervals, counts": partial(predicted, PoissonRegressor, **COUNTS, kind="counts"),
    "a call of LinUCB": partial(called, LinUCB),
    "a call of LinUCB with weights of each action": partial(
        called, partial(LinUCB, shared=False, n_actions=5), shape=(1, 10)),
    "a call of SquareCB": partial(called, partial(_epochs, SquareCB, True)),
}  # fmt: skip
POLICIES = {
    f"{name}, {world}": partial(played, make, world=world)
    for name, make, worlds in _policies()
    for world in worlds
}


def main():
    """Print a line for each cell, and record all seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of names, such as *p=5")
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = {}
    for name, cell in {**FITS, **POLICIES}.items():
        if any(fnmatch(name, f"*{pattern}*") for pattern in options.only):
            start = process_time()
            seeds = range(options.seeds * (1 + (name in POLICIES)))
            runs = [cell(seed) for seed in seeds]
            numbers[name] = {key: [one[key] for one in runs] for key in runs[0]}
            shown = ", ".join(f"{key} {np.mean(v):.3f}" for key, v in numbers[name].items())
            print(f"{name:60} {shown} ({process_time() - start:.1f} s)", flush=True)
    record("every_model", numbers)


if __name__ == "__main__":
    main()
