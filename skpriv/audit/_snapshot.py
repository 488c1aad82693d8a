"""All that an object holds, as a flat mapping that two runs can be compared by."""

from dataclasses import is_dataclass
from threading import Lock, RLock

import numpy as np

from ..privacy import NoiseSource, Numbering, Session, Stream

# The curator's own, which is never handed out: open sums, and the rows of an epoch that is open.
# docs/privacy.md says so of pickles of open policies.
CURATORS = (Stream, Session, NoiseSource)
LOCKS = (type(Lock()), type(RLock()))  # of threads: they hold nothing
OPEN = frozenset({"_rows", "_rewards", "_waiting"})
# Random names by which runs and copies are told apart: public, and never equal.
NAMES = {Numbering: frozenset({"_name"}), object: frozenset({"_partition"})}


def snapshot(value):
    """Return a mapping from the path of each leaf to its value.

    Parameters
    ----------
    value : object
        A fitted estimator, a policy, or anything that holds arrays, numbers and texts.

    Returns
    -------
    dict of str to object
    """
    leaves: dict = {}
    _collect(value, "", leaves, {})
    return leaves


def _collect(value, path, leaves, seen):
    if isinstance(value, (*CURATORS, *LOCKS, type)) or (callable(value) and not _state(value)):
        leaves[path] = type(value).__name__
    elif isinstance(value, np.random.RandomState):
        leaves[path] = repr(value.get_state(legacy=True))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        leaves[path] = value.copy()
    elif isinstance(value, str | bytes | bool | int | float | complex | np.generic | None):
        leaves[path] = value
    elif id(value) in seen:
        leaves[path] = f"see {seen[id(value)]}"
    else:
        seen[id(value)] = path
        for name, item in _items(value):
            _collect(item, f"{path}{name}", leaves, seen)


def _state(value):
    return hasattr(value, "__dict__") and not isinstance(value, type)


def _items(value):
    """Names and values of what a container or object holds."""
    if isinstance(value, dict):
        keys = [key if isinstance(key, str | int | tuple) else i for i, key in enumerate(value)]
        yield from zip((f"[{key!r}]" for key in keys), value.values(), strict=True)
    elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
        yield "[length]", len(value)
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif is_dataclass(value) or hasattr(value, "__dict__"):
        hidden = OPEN.union(*(names for kind, names in NAMES.items() if isinstance(value, kind)))
        for name, item in vars(value).items():
            if name not in hidden:
                yield f".{name}", item
    else:
        yield " as text", repr(value)


def differing(first, second):
    """Paths whose values differ, or which only one of the two snapshots has."""
    return [
        path
        for path in dict.fromkeys([*first, *second])
        if path not in first or path not in second or not _equal(first[path], second[path])
    ]


def _equal(first, second):
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        first, second = np.asarray(first), np.asarray(second)
        return (
            first.shape == second.shape
            and first.dtype == second.dtype
            and first.tobytes() == second.tobytes()
        )
    return type(first) is type(second) and (first == second or first != first and second != second)
