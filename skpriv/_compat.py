"""The one place where scikit-learn's underscored names are imported, and the context of a fit."""

from collections.abc import Callable
from functools import wraps
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import _fit_context
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils._param_validation import validate_params as _validate_params

from ._linalg import one_blas_thread

if TYPE_CHECKING:
    from ._contracts import F

try:
    from sklearn.utils._repr_html.estimator import _VisualBlock
except ImportError:  # scikit-learn 1.6
    from sklearn.utils._estimator_html_repr import _VisualBlock

__all__ = [
    "BaseSearchCV",
    "Documented",
    "HasMethods",
    "Interval",
    "StrOptions",
    "columns_of",
    "fit_context",
    "forgets_rows",
    "pipeline_steps",
    "reaching_last",
    "safe_indexing",
    "validate_params",
]


class Documented:
    """Mixin of estimators whose HTML diagrams name this package and link to its documentation.

    A diagram of a pipeline then tells the private `LinearRegression` from scikit-learn's.
    """

    _doc_link_module = "skpriv"
    _doc_link_template = (
        "https://skpriv.readthedocs.io/en/latest/generated/{estimator_module}.{estimator_name}.html"
    )

    def _sk_visual_block_(self) -> Any:
        name = f"skpriv.{type(self).__name__}"
        return _VisualBlock("single", self, names=name, name_details=str(self))


def forgets_rows(function: "F") -> "F":
    """Decorate a function of rows: the frames of an error that leaves it hold nothing.

    Error reporters ship the local variables of every frame of a traceback, and those of a fit hold
    raw rows.
    """

    @wraps(function)
    def forgetful(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except BaseException as error:
            del arguments, named
            linked: BaseException | None = error
            while linked is not None:
                clear_frames(linked.__traceback__)
                linked = linked.__cause__ or linked.__context__
            raise

    return cast("F", forgetful)


def pipeline_steps(model: Any) -> list[Any]:
    """The steps of a Pipeline, the estimator last; of any other model itself alone.

    Estimators in a FrozenEstimator are looked at themselves.
    """
    if isinstance(model, FrozenEstimator):
        return pipeline_steps(model.estimator)
    if not isinstance(model, Pipeline):
        return [model]
    return [
        step.estimator if isinstance(step, FrozenEstimator) else step for _, step in model.steps
    ]


def columns_of(transformer: Any) -> Any:
    """Places of the columns that each part of a fitted ColumnTransformer takes, by its name."""
    return transformer._transformer_to_input_indices


def names_in(estimator: Any) -> list[Any] | None:
    """Names of the columns that a fitted estimator has seen; None where they had none."""
    names = getattr(estimator, "feature_names_in_", None)  # scikit-learn sets it or leaves it out
    return None if names is None else list(names)


def reaching_last(model: Any, X: Any) -> Any:
    """Rows as they reach the last step of a fitted Pipeline; of any other model the rows."""
    return model[:-1].transform(X) if len(pipeline_steps(model)) > 1 else X


# To type checkers, what these two decorate stays what it is.
def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[["F"], "F"]:
    """Decorate a `fit`, whose parameters are checked first.

    While it lasts the cores belong to the threads that sum chunks, and BLAS has one thread. No
    underflow raises, since that would tell of values. A fit that fails or is interrupted leaves the
    estimator as it was.
    """
    checked = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)

    def decorate(fit: "F") -> "F":
        fitted = checked(fit)

        @wraps(fitted)
        def alone(self: Any, *arguments: Any, **named: Any) -> Any:
            before = dict(vars(self))
            try:
                with one_blas_thread, np.errstate(under="ignore"):
                    return fitted(self, *arguments, **named)
            except BaseException:  # no part of a fit beside parts of the one before
                vars(self).clear()
                vars(self).update(before)
                raise

        return forgets_rows(cast("F", alone))

    return decorate


def validate_params(function: "F", limits: dict[str, Any]) -> "F":
    """Return a function whose parameters are checked first, as are those of what it calls."""
    checked: "F" = _validate_params(limits, prefer_skip_nested_validation=False)(function)
    return forgets_rows(checked)
