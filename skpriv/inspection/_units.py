"""From a fitted pipeline to its regressor, and from its coefficients to the units of the table."""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from .._compat import pipeline_steps
from .._estimation._coefficients import NoLaw
from .._estimation._cells import KnowsCells, behind, placed
from .._estimation._public_maps import column_bounds
from ..preprocessing import BoundsScaler, TableEncoder

INTERCEPT = "intercept"
OTHERS = {
    "least_squares": "linear regressors, which have a least-squares line",
    "likelihood": "logistic regression of two classes and for Poisson regression",
}


def law_in_units(model, estimand=None, law=None):
    """Names and law of the coefficients of a model, in the units of what is passed to it.

    Parameters
    ----------
    model : fitted regressor, or Pipeline with one at its end
    estimand : {"fitted", "least_squares", "likelihood"}, default=None
        What is estimated; None is what the model declares.
    law : CoefficientLaw, default=None
        A law in place of that of the model.

    Returns
    -------
    (names, CoefficientLaw)
        The intercept is last, if the regressor has one.
    """
    check_is_fitted(model)
    *before, last = steps = pipeline_steps(model)
    names, step_map, _ = _passed(steps)
    if law is None:
        law = _law_of(knowing_cells(model), estimand)
    # A step before the regressor may move the origin: then there is an intercept in any case.
    moved = step_map is not None
    own = getattr(last, "fit_intercept", True) and not getattr(last, "effects", None)
    matrix: np.ndarray = np.eye(len(names) + 1) if step_map is None else step_map
    # Columns outside of the equation, such as instruments, have no coefficient, and neither have
    # columns that a step does not select.
    matrix[:, list(getattr(last, "outside_columns", []))] = 0.0
    has_coefficient = np.append(np.abs(matrix[:-1]).any(axis=1), moved or own)
    named = [name for name, keep in zip([*names, INTERCEPT], has_coefficient, strict=True) if keep]
    classes = getattr(last, "coefficient_blocks", [])
    if not classes:
        return named, law.mapped(matrix[has_coefficient])
    every = np.kron(np.eye(len(classes)), matrix[has_coefficient])
    return [f"{one}: {name}" for one in classes for name in named], law.mapped(every)


def knowing_cells(model):
    """The last step of a fitted model, which knows the cells of the steps before it.

    Cells are public: levels of lists, missing values, and combinations of these.
    """
    *before, last = steps = pipeline_steps(model)
    if not before or not isinstance(last, KnowsCells):
        return last
    try:
        cells = _passed(steps)[2]
    except NoLaw:  # what a step makes of cells is not known
        return last
    return last.with_cells(cells) if len(cells) else last


def _passed(steps):
    """Names of the table's effects, the map to them from coefficients of the last step, and the
    cells that it knows.
    """
    names, step_map = _input_names(steps), None
    cells = np.empty((0, len(names) + 1))
    for step in steps[:-1]:
        names, step_map, cells = _after(step, names, step_map, cells)
    return names, step_map, cells


def _law_of(last, estimand):
    """Law of the coefficients of a regressor, in the units of its features."""
    if not hasattr(last, "coefficient_law"):
        raise NoLaw(
            f"{type(last).__name__} of {type(last).__module__} has no coefficient_law: "
            "inference needs a linear regressor whose released equations have known noise, such as "
            "skpriv.linear_model.LinearRegression; of a search pass best_estimator_."
        )
    estimand, possible = estimand or last.estimand, last.law_estimands
    if estimand not in possible:
        raise ValueError(
            f"estimand={estimand!r} is for {OTHERS[estimand]}, and this {type(last).__name__} has "
            f"none: pass estimand={' or '.join(map(repr, possible))}."
        )
    return last.coefficient_law(estimand)


def _input_names(steps):
    first = steps[0]
    found = getattr(first, "feature_names_in_", None)
    if found is None:
        found = [f"x{i}" for i in range(getattr(first, "n_features_in_", steps[-1].n_features_in_))]
    return [str(name) for name in found]


def _after(step, names, before, cells):
    """The knowledge behind a step: names of effects, the map to them, and cells.

    ``before`` is the map from the coefficients in front of the step, None for the identity, and
    ``cells`` are functions of the rows in front of it.
    """
    if _does_nothing(step):
        return names, before, cells
    if _encodes(step):
        if before is not None and not np.isin(before, (0.0, 1.0)).all():
            raise NoLaw(f"{type(step).__name__} must stand before what scales columns.")
        effects = step.coefficient_map()
        return list(effects.names), effects.matrix, _cells_known(effects)
    size = len(names) if before is None else before.shape[1] - 1
    if before is None and isinstance(step, ColumnTransformer):
        effects, matrix, cells = _columns(step, size)
        return [*names, *effects], matrix, cells
    matrix = _map(step, size)
    own = _cells_known(step.coefficient_map()) if isinstance(step, BoundsScaler) else ()
    cells = behind(cells, matrix) if not len(own) else own
    return names, matrix if before is None else before @ matrix, cells


def _cells_known(effects):
    """Cells that the map of a transformer knows."""
    return np.empty((0, effects.matrix.shape[1])) if effects.cells is None else effects.cells


def _encodes(step):
    """Whether a step names the effects of a table, as encoders do, and does not only scale."""
    return hasattr(step, "coefficient_map") and not isinstance(step, BoundsScaler)


def _does_nothing(step):
    """Whether a step of a pipeline, or of the columns, is None, "passthrough" or the identity."""
    nothing = step is None or isinstance(step, str)
    return nothing or isinstance(step, FunctionTransformer) and step.func is None


def _map(step, n_features):
    """Map from (coefficients, intercept) behind a step to those in front of it."""
    if isinstance(step, BoundsScaler):
        return step.coefficient_map().matrix
    if _does_nothing(step):
        return np.eye(n_features + 1)
    if hasattr(step, "get_support"):
        return np.eye(n_features + 1)[:, np.append(step.get_support(indices=True), n_features)]
    if isinstance(step, ColumnTransformer):
        effects, matrix, _ = _columns(step, n_features)
        if not effects:
            return matrix
    raise NoLaw(
        f"the units of the coefficients before a {type(step).__name__} are not known. Before the "
        "regressor may stand BoundsScaler, TableEncoder, a ColumnTransformer of these as the first "
        "step, a selection of columns ('passthrough', feature selection) or nothing."
    )


def _columns(step, n_features):
    """Names of the effects of encoders, the map, and the cells of a ColumnTransformer.

    The map is to the effects of the columns that are selected and scaled, then to those of the
    encoders, from the coefficients in the order of its output.
    """
    found = getattr(step, "feature_names_in_", np.arange(n_features))
    place = {name: i for i, name in enumerate(found)}
    effects: list = []
    blocks = []
    for _, transformer, columns in step.transformers_:
        if isinstance(transformer, str) and transformer == "drop":
            continue
        if _encodes(transformer):
            own = transformer.coefficient_map()
            rows = n_features + len(effects) + np.arange(len(own.names))
            effects += own.names
            blocks.append((rows, own.matrix, _cells_known(own)))
            continue
        mask = isinstance(columns, slice) or np.asarray(columns).dtype == bool
        inner = np.arange(n_features)[columns] if mask else np.array(
            [place[c] if isinstance(c, str) else c for c in np.atleast_1d(columns)], dtype=int
        )  # fmt: skip
        matrix = _map(transformer, len(inner))
        own_cells = (
            _cells_known(transformer.coefficient_map())
            if isinstance(transformer, BoundsScaler)
            else ()
        )
        blocks.append((inner, matrix, np.reshape(own_cells, (-1, matrix.shape[1]))))
    widths = [matrix.shape[1] - 1 for _, matrix, _ in blocks]
    joined = np.zeros((n_features + len(effects) + 1, sum(widths) + 1))
    joined[-1, -1] = 1.0
    cells = []
    for start, width, block in zip(np.cumsum([0, *widths]), widths, blocks, strict=False):
        rows, matrix, own_cells = block
        joined[np.append(rows, -1), start : start + width] = matrix[:, :-1]
        cells.append(placed(own_cells, slice(start, start + width), sum(widths)))
    return effects, joined, np.vstack(cells)


def public_widths(model):
    """Width of the public range of each feature, by the name of its effect.

    Parameters
    ----------
    model : fitted regressor, or Pipeline with one at its end

    Returns
    -------
    dict of str to float
        Categories, truth values and indicators are not in it: their effects are of a whole step.
    """
    steps = pipeline_steps(model)
    for step in steps:
        if isinstance(step, TableEncoder):
            effects = step.coefficient_map()
            return dict(zip(effects.names, _table_widths(step, effects), strict=True))
        bounds = getattr(step, "bounds", getattr(step, "bounds_X", None))
        if bounds is not None:
            names = _input_names(steps)
            low, high = column_bounds(bounds, names, len(names), "bounds_X")
            return dict(zip(names, high - low, strict=True))
    raise ValueError(
        "scale='range' needs the public range of each feature: a regressor with bounds_X, or a "
        "BoundsScaler or TableEncoder before it."
    )


def _table_widths(encoder, effect_map):
    """Width of the range of each effect: that of the encoded column, in the units of the table."""
    widths = encoder.bounds_out_[:, 1] - encoder.bounds_out_[:, 0]
    effects = np.diagonal(effect_map.matrix)[: len(widths)]
    lines = np.ones(len(widths), dtype=bool)
    lines[encoder.linear_features_out_] = False
    return np.where(lines, widths / np.where(lines, effects, 1.0), 1.0)
