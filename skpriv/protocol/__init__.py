"""Tasks and reports of real devices.

``report`` is what a device runs, and ``act`` if it serves a bandit. Importing this room loads NumPy
and the standard library alone; the server's side is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._device import act, report

if TYPE_CHECKING:  # loaded by `__getattr__`
    from ._collector import Collector
    from ._ledger import DeviceLedger
    from ._sums import ShareServer

__all__ = ["Collector", "DeviceLedger", "ShareServer", "act", "report"]


_HOMES = {"Collector": "_collector", "DeviceLedger": "_ledger", "ShareServer": "_sums"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # `help` shows what is loaded late, too
