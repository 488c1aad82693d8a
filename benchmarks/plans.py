"""Standard errors that plans tell, beside those of fits, on real tables.

Run: python benchmarks/plans.py [--repeats 4]

A plan knows what somebody would say of a table who has not seen it: usual ranges are the 5% and 95%
quantiles of a column, rounded to two digits, shares of truth values and of levels are rounded
likewise, and the deviation of a target is .87 of that of a normal one with its usual range, of
counts their own. Indicators of which no row has two are the levels of one list. Rows are drawn from
the table with replacement. Columns: the median and the extremes of the ratio of the standard error
of the plan to the median one of the fits, over coefficients that both tell, and the parts of the
coefficients that the plan and the fits tell. The tables that were held out served no choice.
"""

import argparse
import warnings

import numpy as np
from _class_tables import BINARY, COUNTS
from _more_tables import MORE_TABLES
from _outside_tables import OUTSIDE_TABLES
from _record import record
from _tables import TABLES
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skpriv.inspection import inference
from skpriv.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from skpriv.preprocessing import Boolean, Categorical, Numeric, TableEncoder

SIZES = ((10_000, 1.0), (60_000, 1.0), (20_000, 0.3))
LINES = (
    "wages", "cps1988", "computers", "log_incomes", "food_share", "census", "hours", "chemistry",
    "visits",
)  # fmt: skip
BOTH = "fitted", "least_squares"
OTHERS = {
    "classes": ("families", "insurance", "wells", "late_payers"),
    "counts": ("german_visits", "children"),
}


HELD_OUT = (("lines", "maths"), ("classes", "smokers"), ("classes", "outside_work"),
            ("counts", "outpatient_visits"))  # fmt: skip


def rounded(value):
    """A number with two digits."""
    return float(f"{value:.2g}")


def lists_of(data):
    """Names of truth values, in groups: of the levels of one list no row has two."""
    groups = []
    for name in data.columns:
        if set(np.unique(data[name])) <= {0.0, 1.0}:
            of_others = (one for one in groups if (data[[*one, name]].sum(axis=1) < 2.0).all())
            group = next(of_others, None)
            if group is None:
                groups.append(group := [])
            group.append(name)
    return groups


def public(table):
    """The schema of a table, shares of its levels and truth values, and its frame."""
    schema, shares, frame = {}, {}, table.data.copy()
    for group in lists_of(frame):
        first, values = group[0], frame[group].to_numpy() > 0.0
        frame = frame.drop(columns=group)
        if len(group) == 1:
            schema[first], frame[first] = Boolean(), values[:, 0]
            shares[first] = max(rounded(values.mean()), 0.001)
            continue
        levels = [*(["none"] if not values.any(axis=1).all() else []), *group]
        schema[first] = Categorical(levels, other=False)
        frame[first] = np.select(list(values.T), group, "none")
        shares[first] = {
            name: max(rounded(part), 0.001)
            for name, part in zip(group, values.mean(axis=0), strict=True)
            if name != levels[0]
        }
    for name in frame.columns.drop(list(schema)):
        values, (low, high) = frame[name].to_numpy(dtype=float), table.bounds[name]
        usual = [rounded(end) for end in np.quantile(values, [0.05, 0.95])]
        usual = max(usual[0], low), min(usual[1], high)
        schema[name] = Numeric(low, high, usual=usual if usual[0] < usual[1] else None)
    names = [name for name in table.data if name in schema]
    return {name: schema[name] for name in names}, shares, frame[names]


def estimator(kind, table, epsilon, estimand):
    """An estimator, and what its plan knows of the target."""
    y, common = np.clip(table.target, *table.bounds_y), {"epsilon": epsilon, "data_norm": 1.0}
    low, high = np.quantile(y, [0.05, 0.95])
    common["estimand"] = estimand
    if kind == "classes":
        return LogisticRegression(classes=(0, 1), **common), {"target_mean": rounded(y.mean())}
    if kind == "counts":
        moments = {"target_mean": rounded(y.mean()), "target_deviation": rounded(y.std())}
        return PoissonRegressor(bounds_y=table.bounds_y, **common), moments
    moments = {"target_deviation": rounded(0.87 * (high - low) / 3.29)}
    moments["target_mean"] = rounded((low + high) / 2.0)
    return LinearRegression(bounds_y=table.bounds_y, **common), moments


def compared(kind, table, n, epsilon, estimand, repeats):
    """The ratios of one table, and what plan and fits tell."""
    (schema, shares, frame), y = public(table), np.clip(table.target, *table.bounds_y)
    model, moments = estimator(kind, table, epsilon, estimand)
    plan = model.plan(n, schema=schema, shares=shares, **moments)
    errors = []
    for seed in range(repeats):
        rows = np.random.RandomState(seed).randint(len(y), size=n)
        fitted = make_pipeline(TableEncoder(schema), clone(model).set_params(random_state=seed))
        target = y[rows].astype(int) if kind == "classes" else y[rows]
        found = inference(fitted.fit(frame.iloc[rows].reset_index(drop=True), target))
        errors.append(np.where(found.law.hidden, np.nan, found.std_error)[:-1])
    ratio = plan.std_error / np.nanmedian(errors, axis=0)
    ends = np.nanmedian(ratio), np.nanmin(ratio), np.nanmax(ratio)
    return *ends, plan.estimable.mean(), np.isfinite(errors).mean()


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    every = {**OUTSIDE_TABLES, **TABLES, **MORE_TABLES, **BINARY, **COUNTS}
    tables = [("lines", name) for name in LINES]
    tables += [(kind, name) for kind, names in OTHERS.items() for name in names]
    cases = [
        (kind, name, estimand)
        for kind, name in tables + list(HELD_OUT)
        for estimand in (BOTH if kind == "lines" else ("fitted", "likelihood"))
    ]
    numbers = {}
    for n, epsilon in SIZES:
        for kind, name, estimand in cases:
            row = compared(kind, every[name](), n, epsilon, estimand, options.repeats)
            numbers[f"{name} {estimand} {n} {epsilon:g}"] = [float(value) for value in row]
            print(f"{name:14} {estimand:14} {n:7,} {epsilon:4g}", *(f"{x:6.2f}" for x in row))
    held_out = [name for _, name in HELD_OUT]
    for words, wanted in ("held out", True), ("others", False):
        rows = [row for key, row in numbers.items() if (key.split()[0] in held_out) == wanted]
        middles = np.array(rows)[:, 0]
        within = np.mean((middles > 1.0 / 1.3) & (middles < 1.3))
        print(f"{words}: median {np.median(middles):.2f}, within 30% {within:.2f}")
    record("plans", numbers)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
