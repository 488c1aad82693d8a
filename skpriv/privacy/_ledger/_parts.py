"""Which part of the data the running code is about.

A part belongs to the code that is called from where it was entered: to the frames below that one
on the stack of calls. A suspended generator or coroutine is on nobody's stack, other threads have
stacks of their own, and whoever leaves out of order takes away the own part alone. Where no part
is found, a charge counts as about all records: one too many, never one too few.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from .._accounting._budget import Budget
from ._ledger import Part

__all__ = ["Key", "current_parts", "entering", "inside", "running"]

# The ledger's path, and what it is held against: the budget, the currency, the part set aside.
Key = tuple[str, Budget, str, Budget]


class _Entry:
    """Parts that a frame has entered; a value of its own, however often it is entered."""

    def __init__(self, frame: FrameType | None, steps: Mapping[Key, Part]) -> None:
        self.frame = frame
        self.steps = dict(steps)


_lock = threading.RLock()
_entries: list[_Entry] = []


def after_fork() -> None:
    """Leave all parts: the parent will go on to others, and its worker's jobs with it."""
    global _lock
    _lock = threading.RLock()
    _entries.clear()


@contextmanager
def inside(steps: Mapping[Key, Part]) -> Iterator[None]:
    """Go some steps further into parts of the data; until the ``with`` statement ends."""
    entry = _Entry(entering(sys._getframe(1)), steps)
    with _lock:
        _entries.append(entry)
    try:
        yield
    finally:
        with _lock:
            _entries[:] = [other for other in _entries if other is not entry]
        entry.frame = None


def current_parts() -> dict[Key, Part]:
    """Return the part of the data that the calling code is about, for each accountant."""
    with _lock:
        entries = list(_entries)
    if not entries:
        return {}
    stack = running()
    parts: dict[Key, Part] = {}
    for entry in entries:
        if id(entry.frame) in stack:
            for key, steps in entry.steps.items():
                parts[key] = (*parts.get(key, ()), *steps)
    return {key: part for key, part in parts.items() if _consistent(part)}


def running() -> set[int]:
    """Return the ids of the frames on this thread's stack of calls."""
    stack: set[int] = set()
    here: FrameType | None = sys._getframe(1)
    while here is not None:
        stack.add(id(here))
        here = here.f_back
    return stack


def _consistent(part: Part) -> bool:
    """Whether no two parts of one partition are claimed at once, as if they were not disjoint."""
    return len({partition for partition, _ in part}) == len(set(part))


def entering(frame: FrameType | None) -> FrameType | None:
    """Frame of the ``with`` statement that enters a part, at once or through context managers.

    A function made a context manager by contextlib is suspended while the body runs: what it
    enters belongs to the statement that entered it.
    """
    while frame is not None:
        caller = frame.f_back
        if _of_contextlib(frame):
            frame = caller
        elif caller is not None and _of_contextlib(caller) and caller.f_code.co_name in _ENTERS:
            frame = caller
        else:
            return frame
    return None


_ENTERS = ("__enter__", "__aenter__")


def _of_contextlib(frame: FrameType) -> bool:
    return frame.f_code.co_filename == contextlib.__file__
