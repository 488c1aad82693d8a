"""`python -m skpriv tradeoff`: what privacy costs in accuracy, on real data."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import Bunch

from .. import linear_model
from .._printing import numbered, picture_text
from ..datasets import load_mortgages, load_wages, load_warfarin
from ..model_selection import PrivacyUtilityDisplay, privacy_utility_curve
from ..preprocessing import BoundsScaler, TableEncoder
from ..privacy import capabilities
from ..records import same_names
from ._arguments import (
    PICTURES,
    PRIVATE,
    Joined,
    add_options,
    at_least,
    by_epsilon,
    check_files,
    explained,
    panels,
    positive,
    probability,
    refuse,
    some_of,
    tell,
    with_settings,
    write,
)
from ._fit import chosen_schema, left_out
from ._frames import read_with_schema

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from sklearn.pipeline import Pipeline
    from .._printing import Table

WHY = (
    "A table needs --schema FILE, the public range or list of each column. They cannot be read off "
    "the data: noise is scaled to the largest change that one record can make, and a minimum or "
    "maximum is itself the value of one person's record. `skpriv schema` writes a template."
)


LOADERS = {"wages": load_wages, "mortgages": load_mortgages, "warfarin": load_warfarin}


def load(args: "Namespace") -> Bunch:
    """Data, target and public bounds, as the loaders of `skpriv.datasets` return them.

    Parameters
    ----------
    args : Namespace
        Its ``data`` is a key of `LOADERS`, or the path of a table.
    """
    if args.data in LOADERS:
        refuse(
            args.target is not None or args.schema is not None,
            f"--data {args.data} has its own target and public bounds: --target and --schema are "
            "for tables in files.",
        )
        data = LOADERS[args.data]()
        return Bunch(**data, encoder=BoundsScaler(data.bounds, exclusive=data.get("exclusive")))
    refuse(
        not Path(args.data).is_file(),
        f"--data {args.data} is neither a file nor one of {', '.join(LOADERS)}.",
    )
    refuse(args.schema is None, WHY)
    frame, schema = read_with_schema(args, args.data)
    table = nw.from_native(frame)
    schema = chosen_schema(args, schema, table.columns)
    with explained(f"--schema {args.schema}:", ValueError):
        encoder = TableEncoder(schema).fit(frame)
    tell(*left_out(args, schema, encoder))
    return Bunch(
        data=table.select(same_names(encoder.columns_, table.columns)).to_pandas(),
        target=schema.read_target(frame),
        bounds_y=schema.bounds_y,
        encoder=encoder,
    )


def head(args: "Namespace", data: Bunch) -> str:
    """Describe what was run."""
    rows, columns = data.data.shape
    low, high = data.bounds_y
    return (
        f"{args.data}: {rows:,} rows, {columns} features, "
        f"target clipped to [{low:,.12g}, {high:,.12g}]\n"
        f"{capabilities(args.privacy).sentence}, delta {args.delta:g}; {args.cv} folds, "
        f"{args.repeats} draws of the noise\n"
        "R2: median, +- half of the 10% to 90% range over folds and draws; "
        f"{args.intervals} intervals at {args.confidence_level:g}"
    )


def notes(args: "Namespace", data: Bunch) -> Iterator[str]:
    """Yield what the intervals assume, and what may be published."""
    low, high = data.bounds_y
    yield (
        '"held-out y inside" is the share of held-out targets inside their prediction intervals, '
        f"at a level of {args.confidence_level:g}; {args.calibration_size:.0%} of the training "
        "rows are kept for them. It is a true number for any y."
    )
    yield (
        f"{args.intervals.capitalize()} intervals are for the mean of y at x. They assume that it "
        "is linear in x, that the coefficients in scaled units have norm at most "
        f"{args.coef_norm:g} (--coef-norm), and that y is in [{low:,.12g}, {high:,.12g}], to which "
        "it is clipped. Where the mean is not linear, none covers it as stated."
    )
    yield (
        "The classical width is that of robust (sandwich) intervals of least squares, which are "
        "normal. A certified interval holds without that, and is wider at the same noise."
    )
    yield (
        'R2, "held-out y inside" and the reference, which is least squares on the clipped target, '
        "are computed without privacy: this table is for public data, or for those who may see the "
        "data anyway."
    )
    if args.seed is not None:
        yield "With --seed the noise is reproducible, and so not for a release."


def table(curves: list[Bunch], method: str = "certified") -> "Table":
    """Rows: estimators and the reference; columns: epsilon; cells: median and spread.

    Parameters
    ----------
    curves : list of Bunch
        Curves of `privacy_utility_curve`, with the same epsilons and the same reference.
    method : {"certified", "asymptotic"}, default="certified"
        The method of their intervals. Those of the reference are classical.

    Returns
    -------
    Table
    """
    rows = []
    for curve in curves:
        measured = {
            "  R2": (_score, curve.test_scores),
            "  held-out y inside": (lambda x: f"{np.mean(x):.1%}", curve.prediction_coverages),
            "  width, a new y": (_width, curve.prediction_widths),
            f"  {method} width, mean of y": (_width, curve.interval_widths),
        }
        rows.append([curve.estimator_name])
        for label, (cell, values) in measured.items():
            if values is not None:
                rows.append([label, *map(cell, values)])
    rows += [
        ["Least squares, not private"],
        ["  R2", _score(curves[0].reference_scores)],
        ["  classical width, mean of y", _width(curves[0].reference_widths)],
    ]
    return by_epsilon(curves[0].epsilons, rows)


def _score(values: np.ndarray) -> str:
    """Median, and half of the range from the 10% to the 90% quantile."""
    # Each quantile is one of the values, so that three equal draws spread as much as one.
    low, high = np.quantile(values, [0.1, 0.9], method="inverted_cdf")
    return f"{np.median(values):.3f} +-{(high - low) / 2:.3f}"


def _width(values: np.ndarray) -> str:
    return f"{np.median(values):.4g}"


ESTIMATORS = {  # Their rows come from BoundsScaler, in the unit ball.
    "linear": linear_model.LinearRegression(data_norm=1.0),
    "ssp": linear_model.SSPRegressor(data_norm=1.0),
    "reweighted": linear_model.ReweightedRegressor(data_norm=1.0),
    "sgd": linear_model.ImproperSGDRegressor(data_norm=1.0),
    "layered": linear_model.LayeredRegressor(data_norm=1.0),
    "iht": linear_model.IHTRegressor(data_max=1.0),
}
DEFAULT = ["linear", "ssp", "reweighted"]  # Others take minutes, or need many features.


def add_tradeoff(parser: "ArgumentParser") -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    add("--data", default="wages", metavar="NAME",
        help=f"{', '.join(LOADERS)}, or a CSV or Parquet file")  # fmt: skip
    add("--target", metavar="NAME", help="column of the file that is predicted")
    add("--schema", metavar="FILE", help="TOML file that describes each column of the file")
    add_options(parser, "--sep", "--encoding", "--decimal")
    parser.set_defaults(table="--data", formula=None, features=None, model="linear", group=None)
    add("--estimators", type=some_of(ESTIMATORS), nargs="+", action=Joined,
        default=DEFAULT, metavar="NAME",
        help=f"some of {','.join(ESTIMATORS)}; default {','.join(DEFAULT)}")  # fmt: skip
    values = {"default": [0.1, 0.3, 1.0, 3.0, 10.0], "help": "default 0.1,0.3,1,3,10"}
    add("--privacy", choices=PRIVATE, default="central", help="who adds the noise; default central")
    add("--coef-norm", type=positive, default=4.0, metavar="B",
        help="assumed bound on the coefficients in scaled units, for the intervals; "
        "default 4")  # fmt: skip
    add("--calibration-size", type=probability, default=0.1, metavar="P",
        help="part of the rows held out for intervals of a new y; default 0.1")  # fmt: skip
    methods = ("certified", "asymptotic")
    add("--intervals", choices=methods, default=methods[0], help="method; default certified")
    add("--repeats", type=at_least(1), default=3, help="draws of the noise; default 3")
    add("--cv", type=at_least(2), default=5, help="number of folds; default 5")
    add_options(
        parser,
        "--epsilons",
        "--delta",
        "--confidence-level",
        "--jobs",
        "--seed",
        "--plot",
        epsilons=values,
    )


def run_tradeoff(args: "Namespace") -> int:
    """Cross-validate private regressors at every epsilon, and print a table."""
    check_files(args, plot=PICTURES)
    data = load(args)
    n = len(data.data)
    refuse(n < 2 * args.cv, f"--cv {args.cv} needs at least {2 * args.cv} rows, not {n}.")
    curves = _curves(args, data)
    print(head(args, data), table(curves, args.intervals), numbered(notes(args, data)), sep="\n\n")
    if args.plot:  # One panel has the scores over epsilon, the other the widths of intervals.
        figure, axes = panels(2)
        for ax, quantity in zip(axes, ("score", "width"), strict=True):
            for i, curve in enumerate(curves):
                PrivacyUtilityDisplay.from_curve(
                    curve, ax=ax, quantity=quantity, show_reference=i == len(curves) - 1
                )
        about = f"{args.privacy} privacy, delta {args.delta:g}"
        figure.suptitle(f"{picture_text(args.data, 50)}, {about}")
        write(figure, args.plot)
    return 0


def _curves(args: "Namespace", data: Bunch) -> Any:
    """One curve for each estimator, on the same folds."""
    # The seed of the folds is public, and has nothing to do with that of the noise.
    folds = KFold(args.cv, shuffle=True, random_state=0).split(data.data)
    private = {
        "delta": args.delta, "privacy": args.privacy, "calibration_size": args.calibration_size,
        "prediction_levels": (args.confidence_level,),
    }  # fmt: skip
    return privacy_utility_curve(
        [_pipeline(data, args, name, **private) for name in args.estimators],
        data.data,
        data.target,
        epsilons=args.epsilons,
        cv=list(folds),
        n_repeats=args.repeats,
        # Least squares on the clipped target, with the intervals that a textbook has for it
        reference=_pipeline(data, args, "linear", privacy="none"),
        reference_method="asymptotic",
        scoring="r2",
        confidence_level=args.confidence_level,
        interval_method=args.intervals,
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose=1,
    )


def _pipeline(data: Bunch, args: "Namespace", name: str, **settings: Any) -> "Pipeline":
    """An estimator of the command, with the settings that it has, behind the public encoder."""
    model = with_settings(
        ESTIMATORS[name], bounds_y=data.bounds_y, coef_norm=args.coef_norm, **settings
    )
    return make_pipeline(clone(data.encoder), model)
