"""The one place where scikit-learn's underscored names are imported."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
    validate_params,
)

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "fit_context",
    "safe_indexing",
    "validate_params",
]
