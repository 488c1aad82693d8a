"""`python -m skpriv tradeoff`: what privacy costs in accuracy, on real data."""

from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from ... import linear_model
from ...model_selection import PrivacyUtilityDisplay, privacy_utility_curve
from ...preprocessing import BoundsScaler
from .._arguments import (
    PRIVATE,
    CommandError,
    Joined,
    add_options,
    at_least,
    check_plot,
    panels,
    positive,
    positives,
    probability,
    some_of,
    write,
)
from ._bounds import FORMAT
from ._data import LOADERS, load
from ._text import head, notes, table

ESTIMATORS = {  # of rows that BoundsScaler puts into the unit ball
    "linear": linear_model.LinearRegression(data_norm=1.0),
    "ssp": linear_model.SSPRegressor(data_norm=1.0),
    "reweighted": linear_model.ReweightedRegressor(data_norm=1.0),
    "sgd": linear_model.ImproperSGDRegressor(data_norm=1.0),
    "layered": linear_model.LayeredRegressor(data_norm=1.0),
    "iht": linear_model.IHTRegressor(data_max=1.0),
}
DEFAULT = ["linear", "ssp", "reweighted"]  # the others take minutes, or are for many features


def add_tradeoff(parser):
    """Add the arguments of the command."""
    parser.description = "Cross-validates private regressors at every epsilon, and prints a table."
    add = parser.add_argument
    add("--data", default="wages", metavar="NAME", help=f"{', '.join(LOADERS)} or a CSV file")
    add("--target", metavar="NAME", help="column of the CSV file that is predicted")
    add("--bounds", metavar="FILE", help=f"public bounds of the CSV file: {FORMAT}")
    add("--estimators", type=some_of(ESTIMATORS), nargs="+", action=Joined,
        default=DEFAULT, metavar="NAME",
        help=f"some of {','.join(ESTIMATORS)}; default {','.join(DEFAULT)}")  # fmt: skip
    add("--epsilons", type=positives, nargs="+", action=Joined,
        default=[0.1, 0.3, 1.0, 3.0, 10.0], metavar="E", help="default 0.1,0.3,1,3,10")  # fmt: skip
    add("--privacy", choices=PRIVATE, default="central", help="who adds the noise; default central")
    add("--coef-norm", type=positive, default=4.0, metavar="B",
        help="assumed bound on the coefficients in scaled units, for the intervals; "
        "default 4")  # fmt: skip
    add("--calibration-size", type=probability, default=0.1, metavar="P",
        help="part of the rows held out for intervals of a new y; default 0.1")  # fmt: skip
    add("--intervals", choices=("certified", "asymptotic"), default="certified")
    add("--repeats", type=at_least(1), default=3, help="draws of the noise; default 3")
    add("--cv", type=at_least(2), default=5, help="number of folds; default 5")
    add_options(parser, "--delta", "--confidence-level", "--jobs", "--seed", "--plot")
    parser.set_defaults(run=run)


def run(args):
    """Measure, print the table, draw the picture; return the exit code."""
    check_plot(args.plot)
    data = load(args.data, args.target, args.bounds)
    n = len(data.data)
    if n < 2 * args.cv:
        raise CommandError(f"--cv {args.cv} needs at least {2 * args.cv} rows, not {n}.")
    curves = _curves(args, data)
    print(head(args, data), table(curves), notes(args, data), sep="\n\n")
    if args.plot:
        _draw(args, curves)
    return 0


def _curves(args, data):
    """One curve for each estimator, on the same folds."""
    # The seed of the folds is public, and has nothing to do with that of the noise.
    folds = KFold(args.cv, shuffle=True, random_state=0).split(data.data)
    return privacy_utility_curve(
        [_model(data, args, ESTIMATORS[name]) for name in args.estimators],
        data.data,
        data.target,
        epsilons=args.epsilons,
        cv=list(folds),
        n_repeats=args.repeats,
        # Least squares on the clipped target; SSPRegressor without privacy is just that, and its
        # intervals show what the sampling error alone costs.
        reference=_pipeline(data, args, linear_model.SSPRegressor(privacy="none", data_norm=1.0)),
        scoring="r2",
        confidence_level=args.confidence_level,
        interval_method=args.intervals,
        n_jobs=args.jobs,
        random_state=args.seed,
        verbose=1,
    )


def _model(data, args, estimator):
    """An estimator of the command behind the public scaling; not all of them find prediction
    intervals.
    """
    options = {"delta": args.delta, "privacy": args.privacy}
    if "calibration_size" in estimator.get_params():
        options["calibration_size"] = args.calibration_size
        options["prediction_levels"] = (args.confidence_level,)
    return _pipeline(data, args, clone(estimator).set_params(**options))


def _pipeline(data, args, estimator):
    estimator.set_params(bounds_y=data.bounds_y, coef_norm=args.coef_norm)
    return make_pipeline(BoundsScaler(data.bounds, exclusive=data.exclusive), estimator)


def _draw(args, curves):
    """Score and interval width over epsilon, side by side."""
    figure, axes = panels(2)
    for ax, quantity in zip(axes, ("score", "width"), strict=True):
        for i, curve in enumerate(curves):
            display = PrivacyUtilityDisplay.from_curve(curve)
            display.plot(ax, quantity=quantity, show_reference=i == len(curves) - 1)
    figure.suptitle(f"{args.data}, {args.privacy} privacy, delta {args.delta:g}")
    write(figure, args.plot)
