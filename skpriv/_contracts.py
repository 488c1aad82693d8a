"""Questions to objects that may be of any library: each is a protocol, named once.

Needs the standard library only. ``isinstance`` looks for the names of a protocol, and from Python
3.12 on it computes no attribute for that. A method that a class has only under a condition, such as
one that scikit-learn's `available_if` decorates, is no question for a protocol.
"""

from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    # What functions of NumPy return that have no types of their own, as its ufuncs: an array or a
    # number. Type checkers treat it as the first of the two.
    Array: TypeAlias = np.ndarray | Any
    Scalar: TypeAlias = float | Any
    # A function or a class that a decorator gives back with its type.
    F = TypeVar("F", bound=Callable[..., Any])
    K = TypeVar("K", bound=type)


def passed_on(path: str, words: str | None = None) -> Any:
    """A property that is an attribute of an attribute, such as "maps.size", with a docstring."""
    return property(attrgetter(path), doc=words)


def is_whole(value: Any, low: float, high: float) -> TypeGuard[int]:
    """Whether a value is a whole number in this range; truth values are none."""
    kind: Any = type(value)
    return issubclass(kind, Integral) and kind is not bool and bool(low <= value <= high)


@runtime_checkable
class Shaped(Protocol):
    """An array or a table, which says its shape."""

    shape: Any


@runtime_checkable
class Typed(Protocol):
    """An array or a column, which says its dtype."""

    dtype: Any


@runtime_checkable
class Acting(Protocol):
    """A policy of a bandit, which acts and is updated, rather than fitted."""

    act: Any
    update: Any


@runtime_checkable
class Starting(Protocol):
    """A fitted estimator whose released answers another fit can begin with."""

    as_start: Any


@runtime_checkable
class Reporting(Protocol):
    """A fitted estimator that says what it has released."""

    privacy_report_: Any


@runtime_checkable
class Guaranteeing(Protocol):
    """A policy that says its guarantee."""

    guarantee: Any
