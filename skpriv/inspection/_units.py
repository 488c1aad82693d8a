"""From a fitted pipeline to its regressor, and from its coefficients to the units of the table."""

import re
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from .._compat import BaseSearchCV, columns_of, names_in, pipeline_steps
from .._estimation._coefficients import NoLaw
from .._estimation._cells import KnowsCells, behind, placed
from .._estimation._public_maps import column_bounds
from ..preprocessing import BoundsScaler, PublicTransformer, TableEncoder

if TYPE_CHECKING:
    from ..preprocessing import CoefficientMap
    from .._estimation._coefficients import CoefficientLaw
    from .._contracts import Array

INTERCEPT = "intercept"
SEARCH = (
    "{} is a search: pass its best_estimator_. The result counts the budget of that last fit "
    "alone, and not those of the fits that were compared."
)
OTHERS = {
    "least_squares": "linear regressors, which have a least-squares line",
    "likelihood": "logistic regression of two classes and for Poisson regression",
}


def model_steps(model: Any) -> list[Any]:
    """The steps of a Pipeline, the estimator last, or a model alone; a search is refused."""
    steps = pipeline_steps(model)
    if isinstance(steps[-1], BaseSearchCV):
        raise TypeError(SEARCH.format(type(steps[-1]).__name__))
    return steps


def last_step(model: Any) -> Any:
    """The estimator of a model: the last one of its `model_steps`."""
    return model_steps(model)[-1]


def named_note(model: Any) -> Any:
    """The note of a report, with the names that columns have before the regressor in a Pipeline.

    Parameters
    ----------
    model : fitted regressor, or Pipeline with one at its end

    Returns
    -------
    str or None
    """
    last = last_step(model)
    note = last.privacy_report_.note
    if names_in(last) is None:
        with suppress(TypeError, AttributeError, ValueError):  # no note, step or names before it
            names = model[:-1].get_feature_names_out()
            return re.sub(r"\bx(\d+)\b", lambda place: names[int(place[1])], note)
    return note


def law_in_units(model: Any, estimand: str | None) -> "tuple[list[str], CoefficientLaw, Any]":
    """Names, law and lists of coefficients of a model, in the units of what is passed to it.

    Parameters
    ----------
    model : fitted regressor, or Pipeline with one at its end
    estimand : {"fitted", "least_squares", "likelihood"}, default=None
        What is estimated; None is what the model declares.

    Returns
    -------
    (names, CoefficientLaw, lists)
        See :func:`table_units`.
    """
    check_is_fitted(model)
    law = _law_of(knowing_cells(model), estimand)
    names, matrix, lists = table_units(model)
    return names, law.mapped(matrix), lists


def table_units(model: Any) -> tuple[list[str], np.ndarray, Any]:
    """Names of the coefficients in the units of what is passed to a model, and the map to them.

    Parameters
    ----------
    model : fitted regressor, or Pipeline with one at its end

    Returns
    -------
    (names, ndarray, lists)
        The intercept is last, if the regressor has one. Lists say of each column with levels what
        the reference level is, and which names belong to the others.
    """
    last = last_step(model)
    names, step_map, _, lists = _passed(model_steps(model))
    # A step before the regressor may move the origin: then a line without an intercept has one.
    # Effects of persons leave the level open.
    leveled = not last.effects and (last.fit_intercept or step_map is not None)
    matrix = np.eye(len(names) + 1) if step_map is None else step_map
    # Columns outside of the equation, such as instruments, have no coefficient, and neither have
    # columns that a step does not select.
    matrix[:, list(last.outside_columns)] = 0.0
    has_coefficient = np.append(matrix[:-1].any(axis=1), leveled)
    named = [name for name, keep in zip([*names, INTERCEPT], has_coefficient, strict=True) if keep]
    classes = last.coefficient_blocks
    if not classes:
        return named, matrix[has_coefficient], lists
    of_classes = {
        name: (reference, [f"{one}: {effect}" for one in classes for effect in effects])
        for name, (reference, effects) in lists.items()
    }
    names = [f"{one}: {name}" for one in classes for name in named]
    return names, np.kron(np.eye(len(classes)), matrix[has_coefficient]), of_classes


def weights_at(model: Any, row: np.ndarray) -> "Array":
    """Weights of the coefficients, in the units of the table, in the linear part at a row.

    Parameters
    ----------
    model : fitted regressor, or Pipeline with one at its end
    row : ndarray of shape (1, n_features)
        A public row, as it comes to the last step.

    Returns
    -------
    ndarray of shape (n_coefficients,)
    """
    return np.linalg.lstsq(table_units(model)[1].T, np.append(row, 1.0), rcond=None)[0]


def knowing_cells(model: Any) -> Any:
    """The last step of a fitted model, which knows the cells of the steps before it.

    Cells are public: levels of lists, missing values, and combinations of these.
    """
    *before, last = steps = model_steps(model)
    if not before or not isinstance(last, KnowsCells):
        return last
    try:
        cells = _passed(steps)[2]
    except NoLaw:  # what a step makes of cells is not known
        return last
    return last.with_cells(cells) if len(cells) else last


def _passed(steps: list[Any]) -> tuple[list[str], np.ndarray | None, np.ndarray, Any]:
    """Names of the table's effects, the map to them from coefficients of the last step, the cells
    that it knows, and the lists.
    """
    names = _input_names(steps)
    found = _through(steps[:-1], names)
    return found.effects or names, found.matrix, found.cells, found.lists


def _law_of(last: Any, estimand: str | None) -> Any:
    """Law of the coefficients of a regressor, in the units of its features."""
    lawful = isinstance(last, KnowsCells) and last.coefficient_law is not None
    if not lawful:
        raise NoLaw(
            f"{type(last).__name__} of {type(last).__module__} has no coefficient_law: "
            "inference needs a linear regressor whose released equations have known noise, such as "
            "skpriv.linear_model.LinearRegression. Of a search pass best_estimator_, of another "
            "wrapper the fitted estimator inside, such as regressor_; curves and coefficient_table "
            "show an additive model."
        )
    estimand = estimand or last.estimand
    possible = last.law_estimands
    if estimand not in possible:
        raise ValueError(
            f"estimand={estimand!r} is for {OTHERS[estimand]}, and this {type(last).__name__} has "
            f"none: pass estimand={' or '.join(map(repr, possible))}."
        )
    return last.coefficient_law(estimand)


def _input_names(steps: list[Any]) -> list[str]:
    first = steps[0]
    found = names_in(first)
    if found is None:
        found = [f"x{i}" for i in range(getattr(first, "n_features_in_", steps[-1].n_features_in_))]
    return [str(name) for name in found]


class StepMap(NamedTuple):
    """What a step, or several, makes of columns.

    Attributes
    ----------
    effects : list of str or None
        Names of effects, of steps that encode columns; None where they are those of the columns.
    matrix : ndarray of shape (n_effects + 1, n_out + 1) or None
        The map from coefficients and an intercept behind the step to effects and an intercept; None
        is the identity.
    cells : ndarray of shape (n_cells, n_out + 1)
        Public cells, as functions of the rows behind it.
    lists : dict of str to (str, list of str), default={}
        The reference level of each column with a list, and the effects of the others.
    """

    effects: Any
    matrix: Any
    cells: np.ndarray
    lists: Any = MappingProxyType({})

    @classmethod
    def identity(cls, size: int) -> "StepMap":
        """A step that does nothing."""
        return cls(None, None, np.empty((0, size + 1)))


def _through(steps: list[Any], names: list[str]) -> StepMap:
    """The `StepMap` of one step after the other."""
    found = StepMap.identity(len(names))
    for step in steps:
        if _does_nothing(step):
            continue
        first = found.matrix is None
        selects = first or np.isin(found.matrix, (0.0, 1.0)).all()
        columns = names
        if not first:  # names of the columns behind a selection, which are all that matter
            columns = [names[i] for i in found.matrix[: len(names), :-1].argmax(axis=0)]
        after = _step_map(step, columns)
        if after.effects is not None:
            if not selects or isinstance(step, ColumnTransformer) and not first:
                raise NoLaw(f"{type(step).__name__} must stand before what scales columns.")
            found = after
            continue
        matrix = after.matrix if first else found.matrix @ after.matrix
        cells = np.vstack([behind(found.cells, after.matrix), after.cells])
        found = StepMap(found.effects, matrix, cells, found.lists)
    return found


def _step_map(step: Any, names: list[str]) -> StepMap:
    """The `StepMap` of one step of a pipeline, or of the columns of a ColumnTransformer."""
    size = len(names)
    identity = np.eye(size + 1)
    if isinstance(step, PublicTransformer):
        own = step.coefficient_map()
        cells = np.empty((0, own.matrix.shape[1])) if own.cells is None else own.cells
        named = None if isinstance(step, BoundsScaler) else own.names
        return StepMap(named, own.matrix, cells, own.lists)
    same = StepMap(None, identity, identity[:0])
    if _does_nothing(step):
        return same
    if isinstance(step, Pipeline):
        found = _through(pipeline_steps(step), names)
        return found._replace(matrix=identity if found.matrix is None else found.matrix)
    if isinstance(step, ColumnTransformer):
        return _columns(step, names)
    if isinstance(step, OneHotEncoder):
        return _one_hot(step, names)
    if isinstance(step, OrdinalEncoder):
        _check_public(step)
        return same
    if isinstance(step, SimpleImputer) and step.strategy == "constant" and not step.add_indicator:
        return same
    if hasattr(step, "get_support"):
        matrix = identity[:, np.append(step.get_support(indices=True), size)]
        return StepMap(None, matrix, matrix[:0])
    raise NoLaw(
        f"the units of the coefficients before a {type(step).__name__} are not known. Before the "
        "regressor may stand BoundsScaler, TableEncoder, OneHotEncoder(categories=[...]) with "
        "public lists, SimpleImputer(strategy='constant'), a ColumnTransformer of these as the "
        "first step, a selection of columns ('passthrough', feature selection) or nothing. What is "
        "learned from the rows, such as means or categories, is not private: BoundsScaler and "
        "TableEncoder take public ranges and lists. Powers and products of columns are terms of "
        "FormulaEncoder."
    )


def _does_nothing(step: Any) -> bool:
    """Whether a step of a pipeline, or of the columns, is None, "passthrough" or the identity."""
    nothing = step is None or isinstance(step, str)
    return nothing or isinstance(step, FunctionTransformer) and step.func is None


def _check_public(step: Any) -> None:
    """Refuse lists that were read off the rows."""
    if isinstance(step.categories, str) or {step.min_frequency, step.max_categories} != {None}:
        name = type(step).__name__
        raise NoLaw(
            f"{name}(categories='auto'), with min_frequency or max_categories, learns its list "
            f"from the private rows: pass the public one, {name}(categories=[[...], ...]), or use "
            "skpriv.preprocessing.TableEncoder with a schema."
        )


def _one_hot(step: Any, names: list[str]) -> StepMap:
    """Effects of levels against the one that is dropped, or the first one, and of other values."""
    _check_public(step)
    dropped = [None] * len(names) if step.drop_idx_ is None else step.drop_idx_
    ignores = [step.handle_unknown != "error"] * len(names)
    found = map(_hot, names, step.categories_, dropped, ignores)
    return _joined(names, enumerate(found))


def _hot(name: str, levels: np.ndarray, dropped: int | None, ignores: bool) -> StepMap:
    """The `StepMap` of one column with a list.

    Rows of values that are not in it have zeros, where the encoder ignores them: if no level is
    dropped, they have an effect of their own.
    """
    reference = dropped or 0
    points = np.delete(np.eye(len(levels)), [] if dropped is None else dropped, axis=1)
    effects = [f"{name}={level}" for level in np.delete(levels, reference)]
    lists = {name: (str(levels[reference]), effects.copy())}
    rows = np.delete(points - points[reference], reference, axis=0)
    if dropped is None and ignores:
        effects.append(f"{name}=other")
        rows = np.vstack([rows, -points[reference]])
    one = np.eye(points.shape[1] + 1)
    matrix = np.pad(np.vstack([rows, points[reference]]), ((0, 0), (0, 1)))
    return StepMap(effects, matrix, np.vstack([one[:-1], one[-1] - one[:-1].sum(axis=0)]), lists)


def _columns(step: Any, names: list[str]) -> StepMap:
    """The `StepMap` of a ColumnTransformer."""
    found = []
    for label, transformer, _ in step.transformers_:
        if not (isinstance(transformer, str) and transformer == "drop"):
            inner = np.array(columns_of(step)[label], int)
            found.append((inner, _step_map(transformer, [names[i] for i in inner])))
    return _joined(names, found)


def _joined(names: list[str], found: Any) -> StepMap:
    """The `StepMap` of several ones side by side, each with the columns that it takes.

    Its effects are those of the columns that are selected and scaled, then those of the encoders.
    """
    effects: list[Any] = []
    blocks = []
    lists: dict[str, Any] = {}
    for inner, own in found:
        if own.effects is not None:
            inner = len(names) + len(effects) + np.arange(len(own.effects))
            effects += own.effects
        blocks.append((inner, own))
        lists |= own.lists
    widths = [own.matrix.shape[1] - 1 for _, own in blocks]
    joined = np.zeros((len(names) + len(effects) + 1, sum(widths) + 1))
    joined[-1, -1] = 1.0
    cells = [joined[:0]]
    for start, width, (rows, own) in zip(np.cumsum([0, *widths]), widths, blocks, strict=False):
        columns = slice(start, start + width)
        joined[np.append(rows, -1), columns] = own.matrix[:, :-1]
        cells.append(placed(own.cells, columns, sum(widths)))
    return StepMap([*names, *effects] if effects else None, joined, np.vstack(cells), lists)


def public_widths(model: Any) -> dict[str, float]:
    """Width of the public range of each feature, by the name of its effect.

    Parameters
    ----------
    model : fitted regressor, or Pipeline with one at its end

    Returns
    -------
    dict of str to float
        Categories, truth values and indicators are not in it: their effects are of a whole step.
    """
    steps = model_steps(model)
    for step in steps:
        if isinstance(step, TableEncoder):
            effects = step.coefficient_map()
            return dict(zip(effects.names, _table_widths(step, effects), strict=True))
        scales = isinstance(step, BoundsScaler)
        ends = isinstance(step, KnowsCells)
        bounds = step.bounds if scales else step.bounds_X if ends else None
        if bounds is not None:
            names = _input_names(steps)
            low, high = column_bounds(bounds, names, len(names), "bounds_X")
            return dict(zip(names, high - low, strict=True))
    raise ValueError(
        "scale='range' needs the public range of each feature: a regressor with bounds_X, or a "
        "BoundsScaler or TableEncoder before it."
    )


def _table_widths(encoder: TableEncoder, effect_map: "CoefficientMap") -> np.ndarray:
    """Width of the range of each effect: that of the encoded column, in the units of the table."""
    widths = encoder.bounds_out_[:, 1] - encoder.bounds_out_[:, 0]
    effects = np.diagonal(effect_map.matrix)[: len(widths)]
    lines = np.ones(len(widths), bool)
    lines[encoder.linear_features_out_] = False
    return np.where(lines, widths / np.where(lines, effects, 1.0), 1.0)
