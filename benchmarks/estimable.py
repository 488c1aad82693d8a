"""What an empty or rare level of a list, or an empty cell, costs all other coefficients.

Run: python benchmarks/estimable.py [--seeds 12] [--rows 20000] [--epsilons 0.5 1 3 inf]
     [--designs empty rare] [--models line] [--code after]

The truth is linear. A design has a schema and the rows of one level; "none" has no such level in
the schema. Columns: the share of the other coefficients that are estimable, their median standard
error, the root mean square error, the coverage of 95% intervals and that of the worst coefficient,
and the share of fits in which the level itself is estimable. ``--code`` names the code that is
imported: with PYTHONPATH an earlier one can be measured.
"""

import argparse
import warnings
from functools import partial

import numpy as np
import pandas as pd
from _record import record
from sklearn.pipeline import make_pipeline

from skpriv.inspection import inference
from skpriv.linear_model import (
    LinearRegression, LogisticRegression, PoissonRegressor, ReweightedRegressor, SSPRegressor,
)  # fmt: skip
from skpriv.preprocessing import Boolean, Categorical, FormulaEncoder, Numeric, TableEncoder

LINE = {"data_norm": 1.0, "bounds_y": (-4.0, 9.0)}
MODELS = {
    "line": partial(LinearRegression, **LINE),
    "ssp": partial(SSPRegressor, **LINE),
    "reweighted": partial(ReweightedRegressor, **LINE),
    "logistic": partial(LogisticRegression, data_norm=1.0, classes=(0, 1)),
    "counts": partial(PoissonRegressor, data_norm=1.0, bounds_y=(0.0, 60.0)),
}
EFFECTS = {
    "w": {"a": 0.0, "b": 0.5, "c": -0.5, "rare": 1.0},
    "v": {"p": 0.0, "q": 0.3, "r": -0.3, "s": 0.6},
}
NUMBERS = {"x": 1.5, "z": 0.2}
# Share of the rows that have the level, whether they are all in one corner, and its effect
SHARES = {
    "none": None, "empty": 0.0, "0.1%": 0.001, "0.3%": 0.003, "1%": 0.01, "3%": 0.03, "10%": 0.1,
    "0.4%, one corner": 0.004, "0.3%, effect of 8 deviations": 0.003,
}  # fmt: skip
OTHERS = ("interaction", "no interaction", "lists", "short lists", "indicators", "no indicators")


def simple(n, design, rng):
    """One rare level of one of two lists, and two numbers: (frame, truth of the line, encoder)."""
    share = SHARES[design]
    w = rng.choice(["a", "b", "c"], n).astype(object)
    v, x = rng.choice(list("pqrs"), n).astype(object), rng.uniform(size=n)
    z = np.clip(rng.normal(size=n), -4.0, 4.0)
    rare = rng.permutation(n)[: int(round((share or 0.0) * n))]
    w[rare] = "rare"
    if "corner" in design:
        v[rare], x[rare], z[rare] = "s", 1.0, 2.0
    effects = {"w": dict(EFFECTS["w"], rare=4.0 if "effect" in design else 1.0), "v": EFFECTS["v"]}
    levels = ["a", "b", "c", *["rare"] * (share is not None)]
    schema = {
        "w": Categorical(levels, other=False), "v": Categorical(list("pqrs"), other=False),
        "x": Numeric(0, 1), "z": Numeric(-4, 4),
    }  # fmt: skip
    frame = pd.DataFrame({"w": w, "v": v, "x": x, "z": z})
    truth = {f"{name}={level}": e for name, of in effects.items() for level, e in of.items()}
    return frame, truth | NUMBERS, TableEncoder(schema), ("w=rare",)


def further(n, design, rng):
    """Designs that took no part in any choice: an interaction, skewed lists, many indicators."""
    w, v = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]), rng.choice(list("pqrs"), n)
    frame = pd.DataFrame({"w": w, "v": v, "x": rng.uniform(size=n)})
    truth = {"w[T.b]": 0.5, "w[T.c]": -0.5, "v[T.q]": 0.3, "v[T.r]": -0.3, "v[T.s]": 0.6, "x": 1.5}
    schema = {
        "w": Categorical(["a", "b", "c"], other=False), "x": Numeric(0, 1),
        "v": Categorical(list("pqrs"), other=False),
    }  # fmt: skip
    if "interaction" in design:
        if not design.startswith("no"):  # one cell of twelve has no row
            frame.loc[(frame["w"] == "b") & (frame["v"] == "q"), "v"] = "p"
        return frame, truth, FormulaEncoder("w * v + x", schema), ("w[T.b]:v[T.q]",)
    truth = {"x": 1.5}
    schema = {"x": Numeric(0, 1)}
    if "lists" in design:  # three lists of eight levels with shares that halve
        for name in "klm":
            shares = 0.5 ** np.arange(1, 9)
            frame[name] = rng.choice(list("ABCDEFGH"), n, p=shares / shares.sum())
            long = list("ABCDEFGH") + ["I", "J"] * (not design.startswith("short"))
            schema[name] = Categorical(long, other=not design.startswith("short"))
            truth |= {f"{name}={level}": 0.1 * i for i, level in enumerate("ABCDEFGH")}
        hidden = [f"{name}={level}" for name in "klm" for level in ("I", "J", "other")]
        return frame, truth, TableEncoder(schema), tuple(hidden)
    kind = None if design.startswith("no") else "indicator"
    schema = {"x": Numeric(0, 1, missing=kind)}
    for name in "klmn":
        frame[name] = rng.uniform(size=n) < 0.3
        schema[name], truth[f"{name}=True"] = Boolean(missing=kind or False), 0.4
    return frame, truth, TableEncoder(schema), ()


def target(model, frame, truth, rng):
    """A target of this truth, and the truth of the intercept."""
    eta = np.ones(len(frame))
    for name, effect in truth.items():
        column, _, level = name.replace("[T.", "=").replace("]", "").partition("=")
        value = frame[column] if not level else frame[column].astype(str) == level
        eta = eta + effect * np.asarray(value, dtype=float)
    if model == "logistic":
        return (rng.uniform(size=len(eta)) < 1.0 / (1.0 + np.exp(1.8 - eta))).astype(int), -0.8
    if model == "counts":
        return rng.poisson(np.exp(eta - 1.0)), 0.0
    return eta + 0.5 * rng.normal(size=len(eta)), 1.0


def cell(model, design, n, epsilon, seeds):
    """What is said of one design and budget."""
    found, itself = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        make = simple if design in SHARES else further
        frame, truth, encoder, hidden = make(n, design, rng)
        y, intercept = target(model, frame, truth, rng)
        budget = {"privacy": "none"} if np.isinf(epsilon) else {"epsilon": epsilon}
        last = MODELS[model](**budget, random_state=seed)
        table = inference(make_pipeline(encoder, last).fit(frame, y)).to_frame()
        truth = pd.Series(truth | {"intercept": intercept})
        rest = table.index.intersection(truth.index).difference(hidden)
        itself += np.isfinite(table.loc[table.index.intersection(hidden), "std_error"]).tolist()
        errors = table.loc[rest, "estimate"] - truth[rest]
        found.append(pd.DataFrame({"error": errors, "se": table.loc[rest, "std_error"]}))
    found = pd.concat(found)
    told = found[np.isfinite(found["se"])]
    covered = (told["error"].abs() <= 1.96 * told["se"]).groupby(level=0).mean()
    return {
        "estimable": float(np.isfinite(found["se"]).mean()),
        "std_error": float(told["se"].median()),
        "error": float(np.sqrt((told["error"] ** 2).mean())),
        "coverage": float(covered.mean()),
        "least_coverage": float(covered.min()) if len(covered) else float("nan"),
        "level_estimable": float(np.mean(itself)) if itself else float("nan"),
        "seeds": seeds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0, np.inf])
    parser.add_argument("--designs", nargs="+", default=[*SHARES, *OTHERS])
    parser.add_argument("--models", nargs="+", default=["line"])
    parser.add_argument("--code", default="after")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = {}
    for model in args.models:
        for n in args.rows:
            for design in args.designs:
                for epsilon in args.epsilons:
                    one = cell(model, design, n, epsilon, args.seeds)
                    key = f"{args.code}: {model}, {design}, n={n}, epsilon={epsilon:g}"
                    numbers[key] = one
                    said = " ".join(f"{k} {v:.4g}" for k, v in one.items())
                    print(f"{key}: {said}", flush=True)
    record("estimable", numbers)


if __name__ == "__main__":
    main()
