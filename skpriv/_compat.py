"""The one place where scikit-learn's underscored names are imported."""

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils._param_validation import validate_params as _validate_params

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "F",
    "HasMethods",
    "Interval",
    "StrOptions",
    "fit_context",
    "safe_indexing",
    "validate_params",
]


# To type checkers, what these two decorate stays what it is.
def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Decorate a `fit`, whose parameters are checked first."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


def validate_params(
    constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
) -> Callable[[F], F]:
    """Decorate a function, whose parameters are checked first."""
    return _validate_params(
        constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
    )
