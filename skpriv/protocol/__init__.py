"""Tasks and reports of real devices.

``report`` is what a device runs, and ``act`` if it serves a bandit. Importing this room loads NumPy
and the standard library alone; the server's side is loaded when it is first asked for.
"""

from importlib import import_module

from ._device import act, report

__all__ = ["Collector", "act", "report"]


def __getattr__(name):
    if name == "Collector":
        return import_module("._collector", __name__).Collector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
