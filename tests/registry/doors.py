"""Every public callable that takes rows, found by walking `__all__`, and how it is called.

A door is a pair (callable, argument): "SSPRegressor.fit", "X". An argument whose name is in
`ROWS` needs a maker in `DOORS`; all arguments of functions and methods must be in `ROWS` or in
`PUBLIC`, so that a new argument is classified by whoever adds it.
"""

import importlib
import inspect
import pkgutil
from functools import cache

import skpriv

ROWS = {
    "D", "D_prime", "X", "y", "x", "action", "actions", "available", "context", "contexts",
    "decisions", "f_true", "frame", "groups", "lines", "predictions", "propensities",
    "reward", "rewards", "rows", "sample_weight", "series", "table", "target", "weights",
}  # fmt: skip
# Parameters, names, released numbers, things that have learned: nobody's record.
PUBLIC = {
    "accountant", "adding", "again", "alpha", "answer", "as_frame", "ax", "axes",
    "block", "bound", "bounds", "caption", "cells", "bounds_y", "budget", "claim", "cls",
    "coef", "collection",
    "columns", "condition", "confidence_level", "constant", "correct", "correlation", "cost",
    "covariance", "cube", "currency", "curve", "cv", "data", "data_max", "data_norm", "delta",
    "description", "dtype", "effect", "effects", "explained", "env",
    "epsilon", "epsilons", "estimand", "estimator", "eta", "event_id",
    "event_ids", "extra", "feature", "features", "file", "first", "force", "format", "found",
    "given", "grid", "guesses", "high", "horizon", "input_features", "intercept",
    "interval_method", "k", "kind", "label", "largest", "largest_epsilon", "least_propensity",
    "ledger",
    "legend", "length", "level", "levels", "linear", "low", "make", "max_interval_rows",
    "max_rows_per_group", "max_visits", "max_weight", "means", "message", "method", "model",
    "models", "mu", "n", "n_actions", "n_features", "n_jobs", "n_nonzero", "n_pairs",
    "n_points", "n_records", "n_repeats", "n_rounds", "n_runs", "n_samples", "n_users", "name",
    "names", "noise", "odds", "once", "options", "order", "other", "overwrite", "pairs",
    "parameters", "partition", "path", "players", "policies", "policy", "privacy",
    "power", "probability", "public_rows", "purpose", "quantiles", "quantity", "r2", "random_state",
    "raw_path", "reference", "reference_method", "reports", "result", "return_X_y",
    "return_propensities", "rho", "rng", "rounds", "row", "row_norm", "run", "rare_probability",
    "return_coef",
    "scale", "schema", "scoring", "shares", "show_reference", "smallest", "smallest_level",
    "smallest_share", "state", "statistic", "table_format", "target_deviation", "target_mean",
    "target_name", "task", "text", "title", "totals", "transport", "unit", "user",
    "users", "value", "verbose", "who", "widths", "written",
}  # fmt: skip
# Arguments that have the name of rows, and are none.
NO_ROWS = {
    ("ReweightedRegressor", "weights"): "the name of a rule",
    ("CobaLearner.learn", "action"): "the object that predict returned",
    ("Inference.contrast", "weights"): "weights of coefficients, from whoever asks",
    ("Schema", "target"): "the name of a column",
    ("Schema.template", "target"): "the name of a column",
    ("Schema.with_target", "target"): "the name of a column",
    ("from_batches", "target"): "the name of a column",
    ("from_parquet", "target"): "the name of a column",
    ("from_table", "target"): "the name of a column",
    ("TypicalPredictions", "rows"): "values of public rows, as texts",
    ("typical_predictions", "rows"): "public rows that somebody made up",
    ("Pair", "D"): "a result, made by worst_pairs",
    ("Pair", "D_prime"): "a result, made by worst_pairs",
}
# The builders' rooms: what these take are chunks of numbers that a session has charged for and
# converted, or laws of noise; rows come in by `open_session` and the classes of rows.
BUILDERS = ("privacy", "records", "extend")
TWO_DOORS = ("skpriv.privacy", "skpriv.records")
BUILDERS_DOORS = {"open_session", "Groups", "ArrayRows", "BatchRows", "as_rows", "from_table"}


def rooms():
    """Names of the public rooms."""
    found = [info.name for info in pkgutil.iter_modules(skpriv.__path__)]
    return ["", *(name for name in found if not name.startswith("_") and name != "exceptions")]


def names_of(module):
    """Names of a room: those of its users' door, and of its builders' door where it has one."""
    builders = vars(module) if module.__name__ in TWO_DOORS else ()
    return sorted({*module.__all__, *(name for name in builders if not name.startswith("_"))})


@cache
def public():
    """Every public function, class and method of skpriv: its name, the room and what it is."""
    found = {}
    for room in rooms():
        module = importlib.import_module(f"skpriv.{room}".rstrip("."))
        for name in names_of(module):
            value = getattr(module, name)
            if not callable(value) or (room in BUILDERS and name not in BUILDERS_DOORS):
                continue
            found[name] = value
            if inspect.isclass(value) and room not in BUILDERS:
                found.update(_methods(name, value))
    return found


def _methods(name, value):
    for method in dir(value):
        function = inspect.getattr_static(value, method)
        function = getattr(function, "__func__", function)
        function = getattr(function, "fn", function)  # of scikit-learn's available_if
        if method.startswith("_") or not inspect.isfunction(function):
            continue
        if function.__module__.startswith("skpriv."):
            yield f"{name}.{method}", function


def arguments(function):
    """Names of the arguments of a callable."""
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except (TypeError, ValueError):  # a builtin
        return []


def wanted():
    """Every door that needs a maker, and every argument that nobody has classified."""
    doors, strange = set(), set()
    for name, value in public().items():
        for argument in arguments(value):
            if argument in ROWS:
                doors.add((name, argument))
            elif argument not in PUBLIC and not inspect.isclass(value):
                strange.add((name, argument))
    return doors - set(NO_ROWS), strange


# What releases something about its rows sees a charge before it reads a cell.
RELEASES = (
    "fit", "partial_fit", "update", "private_", "propose_", "describe", "check_table",
    "open_session",
)  # fmt: skip
# These keep rounds, as numbers, until an epoch is charged; or release nothing, being no one's.
LATER = {
    "ActionElimination", "SquareCB", "EpochGreedy", "EpsilonGreedy", "FLIPHAT", "LassoBandit",
    "RandomPolicy", "MABWiserAdapter", "BoundsScaler", "FormulaEncoder", "TableEncoder",
}  # fmt: skip


def releases(name, words=RELEASES):
    """Whether a door releases something about its rows at once."""
    first, _, last = name.rpartition(".")
    return (last or first).startswith(words) and first not in LATER
