"""Differentially private regression with confidence intervals, and private contextual bandits."""

from ._codec import from_dict, load, save, to_dict
from .exceptions import BudgetExceeded, PrivacyError
from .privacy import Budget, BudgetAccountant

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "BudgetAccountant",
    "BudgetExceeded",
    "PrivacyError",
    "__version__",
    "from_dict",
    "load",
    "save",
    "to_dict",
]
