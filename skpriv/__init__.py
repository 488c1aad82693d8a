"""Differentially private regression with confidence intervals, and private contextual bandits."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import VERSION as __version__
from .exceptions import BudgetExceeded, PrivacyError

if TYPE_CHECKING:  # loaded by `__getattr__`
    from ._codec import from_dict, load, save, to_dict
    from .inspection import describe, private_quantiles
    from .privacy import Budget, BudgetAccountant


__all__ = [
    "Budget",
    "BudgetAccountant",
    "BudgetExceeded",
    "PrivacyError",
    "__version__",
    "describe",
    "from_dict",
    "load",
    "private_quantiles",
    "save",
    "to_dict",
]


_ROOMS = (
    "audit",
    "bandits",
    "datasets",
    "exceptions",
    "extend",
    "inspection",
    "linear_model",
    "metrics",
    "model_selection",
    "preprocessing",
    "privacy",
    "protocol",
    "records",
)


def __getattr__(name: str) -> Any:
    # loaded when they are asked for, so that `import skpriv.protocol` is light on a device
    if name in ("Budget", "BudgetAccountant"):
        from . import privacy

        return getattr(privacy, name)
    if name in ("from_dict", "load", "save", "to_dict"):
        from . import _codec

        return getattr(_codec, name)
    if name in ("describe", "private_quantiles"):
        from . import inspection

        return getattr(inspection, name)
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
