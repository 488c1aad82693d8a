"""Draws all figures of the documentation again, from the records in ``results``.

Run: python benchmarks/figures.py [--only rate_iht bandit_linucb ...] [--out DIR] [--measure]

A run of fewer seeds than the record is not recorded, so that the figure stays as it was, unless its
script is called with ``--replace``.

Nothing is measured here, but that ``--measure`` records the fit of the landing page, with a fixed
seed, which has no script of its own. A figure without a record stays as it is, and is named.
"""

import argparse
import json
from importlib import import_module
from pathlib import Path

import matplotlib
import numpy as np
from _record import HERE, record, save_figure

FIGURES = HERE.parent / "docs" / "figures"
RATES = ("_rates", "draw")
# Name of the figure: its record, and the function of a script that draws the record's numbers.
MAKERS = {
    "rate_layered": ("rate_layered", *RATES),
    "rate_reweighted": ("rate_reweighted", *RATES),
    "rate_improper_sgd": ("rate_improper_sgd", *RATES),
    "rate_improper_sgd_features": ("rate_improper_sgd_features", *RATES),
    "rate_iht": ("rate_iht", *RATES),
    "bandit_fliphat": ("bandit_fliphat", "bandit_fliphat", "draw_rounds"),
    "bandit_fliphat_sizes": ("bandit_fliphat", "bandit_fliphat", "draw_sizes"),
    "bandit_fliphat_clipping": ("bandit_fliphat", "bandit_fliphat", "draw_clipping"),
    "bandit_fliphat_guess": ("bandit_fliphat_guess", "bandit_fliphat_guess", "draw"),
    "bandit_linucb": ("linucb_comparison", "linucb_comparison", "draw"),
    "bandit_elimination": ("bandit_elimination", "bandit_elimination", "draw"),
    "bandit_square_cb": ("bandit_square_cb", "bandit_square_cb", "draw"),
    "first_table": ("first_table", "figures", "draw_first_table"),
    "first_interval": ("first_interval", "figures", "draw_first_interval"),
    "peers": ("peers", "figures", "draw_peers"),
}


def measure_first_table():
    """Record the pictures of the first fit: coefficients of whole ranges, and a prediction."""
    from skpriv.datasets import load_wages
    from skpriv.inspection import CoefficientDisplay, IntervalDisplay
    from skpriv.linear_model import LinearRegression

    wages = load_wages()
    public = {"bounds_X": wages.bounds, "bounds_y": wages.bounds_y}
    model = LinearRegression(epsilon=1.0, delta=1e-6, **public, random_state=0)
    shown = CoefficientDisplay.from_estimator(model.fit(wages.data, wages.target), scale="range")
    record("first_table", _shown(shown))
    person = dict(zip(wages.data.columns, [40, 25, 12, 1, 0, 0, 0], strict=True))  # made up
    row = type(wages.data)([person])
    shown = IntervalDisplay.from_estimator(model, row, "education", grid=np.arange(6, 21))
    record("first_interval", _shown(shown))


def _shown(display):
    """The numbers of a display, without its axes."""
    return {k: v for k, v in vars(display).items() if not k.endswith("_")}


def draw_first_table(numbers):
    """Coefficients with intervals, of a record."""
    from skpriv.inspection import CoefficientDisplay

    return CoefficientDisplay(**_arrays(numbers)).plot().figure_


def draw_first_interval(numbers):
    """Predictions along one feature with intervals, of a record."""
    from skpriv.inspection import IntervalDisplay

    return IntervalDisplay(**_arrays(numbers)).plot().figure_


def _arrays(numbers):
    return {k: np.array(v) if isinstance(v, list) else v for k, v in numbers.items()}


PEERS = {  # name in the record: name in the picture, and how far it stands below its line
    "LinearRegression": ("skpriv, LinearRegression", 3),
    "Hessian mixing": ("Hessian mixing", 0),
    "AdaSSP": ("AdaSSP", 8),
    "TukeyEM": ("TukeyEM", 1),
    "binned": ("binned aggregation", 5),
    "descent": ("gradient descent", 3),
}
BUDGETS = ("0.3", "1.0", "3.0")


def draw_peers(numbers):
    """Mean R2 over the tables that all of these methods have, a negative one counted as 0."""
    from matplotlib import pyplot

    tables = [table["r2"] for table in numbers.values() if PEERS.keys() <= table["r2"].keys()]

    def mean_r2(method, budget):
        runs = [np.mean(list(table[method][budget].values())) for table in tables]
        return float(np.mean(np.maximum(runs, 0.0)))

    figure, ax = pyplot.subplots(figsize=(7.0, 3.6), layout="constrained")
    epsilons = [float(budget) for budget in BUDGETS]
    least_squares = mean_r2("least squares", BUDGETS[0])
    ax.plot(epsilons, 3 * [least_squares], color="0.4", linestyle="--", linewidth=1.2)
    ax.annotate("least squares, without privacy", (0.3, least_squares), (0, 4),
                textcoords="offset points", fontsize=9, color="0.3")  # fmt: skip
    for method, (label, below) in PEERS.items():
        own = method == "LinearRegression"
        values = [mean_r2(method, budget) for budget in BUDGETS]
        line = ax.plot(epsilons, values, marker="o", linewidth=2.6 if own else 1.4)[0]
        ax.annotate(label, (epsilons[-1], values[-1]), (8, -below), textcoords="offset points",
                    fontsize=9, color=line.get_color(), weight="bold" if own else None)  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(epsilons, [f"{value:g}" for value in epsilons], minor=False)
    ax.set_xticks([], minor=True)
    ax.set_xlim(0.28, 7.5)
    ax.set_ylim(0.0, 1.15 * least_squares)
    ax.set_xlabel("epsilon (delta = 1e-6)")
    ax.set_ylabel(f"mean R2 over {len(tables)} real tables")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    """Draw the figures whose records are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", nargs="+", choices=MAKERS, default=list(MAKERS), help="figures; all by default"
    )
    parser.add_argument("--measure", action="store_true", help="record the first fit before")
    folder = "where figures are replaced; by default those of the documentation"
    parser.add_argument("--out", type=Path, default=FIGURES, help=folder)
    options = parser.parse_args()
    matplotlib.use("Agg")
    if options.measure:
        measure_first_table()
    options.out.mkdir(parents=True, exist_ok=True)
    for figure in options.only:
        name, module, function = MAKERS[figure]
        path = HERE / "results" / f"{name}.json"
        try:
            numbers = json.loads(path.read_text(encoding="utf-8"))["numbers"]
            drawn = getattr(import_module(module), function)(numbers)
        except (FileNotFoundError, KeyError) as error:
            print(f"{figure}: not drawn, since {path.name} lacks {error}")
            continue
        written = options.out / f"{figure}.png"
        save_figure(drawn, written)
        print(f"{figure}: drawn from {path.name}; wrote {written}")


if __name__ == "__main__":
    main()
