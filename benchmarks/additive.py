"""R2 of additive models on held-out rows of real tables, beside DP-EBM and linear fits.

Run: python benchmarks/additive.py [--tables cps1988 ...] [--seeds 2] [--name additive]

Every model sees the same columns, the same public bounds and the same random splits (80% to fit).
DP-EBM is interpret-core's, with its defaults, types and bounds of columns given, and its own
guarantee at the same epsilon and delta. Columns with two values are named to all models that ask.
The reference without privacy is the same additive model.
"""

import argparse
import time
import warnings

import numpy as np
from _peers import dp_ebm
from _record import record
from _tables import TABLES, Table, _read
from sklearn.linear_model import LinearRegression as LeastSquares
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from skpriv.linear_model import AdditiveRegressor, LinearRegression

EPSILONS = (0.5, 1.0, 4.0)
DELTA = 1e-6


def _dummies(data, bounds, column, values):
    for value in values:
        name = f"{column.name}_{value}"
        data[name], bounds[name] = (column == value).astype(float), (0.0, 1.0)


def diamonds():
    """Logarithm of the price of 53,940 diamonds."""
    raw = _read("ggplot2", "diamonds")
    bounds = {
        "carat": (0.0, 5.0), "depth": (40.0, 80.0), "table": (40.0, 100.0), "x": (0.0, 12.0),
        "y": (0.0, 12.0), "z": (0.0, 8.0),
    }  # fmt: skip
    data = raw[list(bounds)].astype(float)
    orders = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("JIHGFED"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    for name, order in orders.items():
        data[name] = raw[name].map({value: i for i, value in enumerate(order)}).astype(float)
        bounds[name] = (0.0, len(order) - 1.0)
    return Table(data, np.log(raw["price"].to_numpy(float)), bounds, (np.log(100), np.log(2e4)), [])


def food():
    """Share of food in the spending of 23,971 households in Spain."""
    raw = _read("Ecdat", "BudgetFood").dropna()
    bounds = {
        "log_spending": (np.log(1e4), np.log(2e7)), "age": (15.0, 100.0), "size": (1.0, 20.0),
        "town": (1.0, 5.0), "man": (0.0, 1.0),
    }  # fmt: skip
    data = raw[["age", "size", "town"]].astype(float)
    data["log_spending"] = np.log(raw["totexp"].astype(float))
    data["man"] = (raw["sex"] == "man").astype(float)
    return Table(data[list(bounds)], raw["wfood"].to_numpy(float), bounds, (0.0, 1.0), [])


def young_women():
    """Logarithm of the hourly wage of young women, 28,534 interviews."""
    columns = {
        "year": (68.0, 88.0), "age": (14.0, 46.0), "grade": (0.0, 18.0), "ttl_exp": (0.0, 30.0),
        "tenure": (0.0, 30.0), "hours": (0.0, 100.0), "not_smsa": (0.0, 1.0), "south": (0.0, 1.0),
        "msp": (0.0, 1.0), "collgrad": (0.0, 1.0),
    }  # fmt: skip
    raw = _read("sampleSelection", "nlswork").dropna(subset=[*columns, "ln_wage"])
    data = raw[list(columns)].astype(float)
    return Table(data, raw["ln_wage"].to_numpy(float), columns, (0.0, 5.0), [])


def incomes():
    """Logarithm of the real income of 36,000 persons of a social survey."""
    raw = _read("stevedata", "gss_wages")
    raw = raw.dropna(subset=["realrinc", "age", "prestg10", "childs", "educcat"])
    bounds = {
        "year": (1974.0, 2018.0), "age": (18.0, 90.0), "prestg10": (10.0, 90.0),
        "childs": (0.0, 8.0), "male": (0.0, 1.0), "education": (0.0, 4.0),
    }  # fmt: skip
    data = raw[["year", "age", "prestg10", "childs"]].astype(float)
    data["male"] = (raw["gender"] == "Male").astype(float)
    order = ["Less Than High School", "High School", "Junior College", "Bachelor", "Graduate"]
    data["education"] = raw["educcat"].map({v: i for i, v in enumerate(order)}).astype(float)
    return Table(data, np.log(raw["realrinc"].to_numpy(float)), bounds, (5.0, 13.5), [])


def _without(name, square):
    table = TABLES[name]()
    bounds = {key: value for key, value in table.bounds.items() if key != square}
    return table._replace(data=table.data[list(bounds)], bounds=bounds)


ADDITIVE_TABLES = {
    "cps1988": lambda: _without("cps1988", "experience_from_25_squared"),
    "wages": lambda: _without("wages", "age_from_45_squared"),
    "mortgages": TABLES["mortgages"],
    "diamonds": diamonds,
    "food": food,
    "young women": young_women,
    "incomes": incomes,
}


def measure(table, seeds, with_peer):
    """R2 by model and epsilon, a list over seeds; and seconds of a fit."""
    columns = list(table.bounds)
    two_valued = [name for name in columns if table.bounds[name] == (0.0, 1.0)]
    public = {"bounds_X": list(table.bounds.values()), "bounds_y": table.bounds_y}
    curves = {"linear_features": [columns.index(name) for name in two_valued], **public}
    found, seconds = {}, {}

    def score(name, model, fit, held_out):
        start = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):
            model.fit(*fit)
            value = r2_score(held_out[1], model.predict(held_out[0]))
        seconds.setdefault(name.split()[0], []).append(time.perf_counter() - start)
        found.setdefault(name, []).append(value)

    X, y = table.data.to_numpy(dtype=float), table.target
    for seed in range(seeds):
        A, B, a, b = train_test_split(X, y, test_size=0.2, random_state=seed)
        score("least-squares", LeastSquares(), (A, a), (B, b))
        score("additive none", AdditiveRegressor(privacy="none", **curves), (A, a), (B, b))
        for epsilon in EPSILONS:
            options = {"epsilon": epsilon, "delta": DELTA, "random_state": seed}
            score(f"additive {epsilon}", AdditiveRegressor(**curves, **options), (A, a), (B, b))
            score(f"linear {epsilon}", LinearRegression(**public, **options), (A, a), (B, b))
            if with_peer:
                peer = dp_ebm(table.bounds, table.bounds_y, epsilon, DELTA, seed, two_valued)
                score(f"dp-ebm {epsilon}", peer, (A, a), (B, b))
    return {"n": len(X), "d": X.shape[1], "r2": found, "seconds": seconds}


def main():
    """Print one line a table and epsilon, and record all numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=list(ADDITIVE_TABLES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--name", default="additive")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    numbers = {}
    for name in options.tables:
        numbers[name] = found = measure(ADDITIVE_TABLES[name](), options.seeds, not options.no_peer)
        mean = {key: float(np.mean(value)) for key, value in found["r2"].items()}
        print(f"{name} n={found['n']} d={found['d']}", end=": ")
        print(f"least squares {mean['least-squares']:.4f}, additive {mean['additive none']:.4f}")
        for epsilon in EPSILONS:
            parts = [
                f"{model} {mean[f'{model} {epsilon}']:.4f}"
                for model in ("additive", "dp-ebm", "linear")
                if f"{model} {epsilon}" in mean
            ]
            print(f"    epsilon {epsilon}: {', '.join(parts)}", flush=True)
        print({key: round(float(np.mean(value)), 1) for key, value in found["seconds"].items()})
    record(options.name, numbers)


if __name__ == "__main__":
    main()
