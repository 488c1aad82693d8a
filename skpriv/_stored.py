"""Classes of values that do not change, and which classes may stand in a file.

Needs the standard library only. A class that is stored is written by its attributes, and is made
again from them: its constructor is not called, unless it is that of an estimator, which only
assigns. So a class that opens a file or a connection must not be stored.
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, dataclass_transform

if TYPE_CHECKING:
    from ._contracts import K

# The rooms that have such classes. A file names a room, and may name no other module.
ROOMS = ("_estimation", "bandits", "linear_model", "preprocessing", "privacy")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: "K") -> "K":
    """Make a class a dataclass that does not change; equal fields are equal values."""
    dataclass(frozen=True)(kind)
    return kind


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen_object(kind: "K") -> "K":
    """Make a class a dataclass that does not change, and is equal to itself alone."""
    dataclass(frozen=True, eq=False)(kind)
    return kind


_STORED: dict[str, type] = {}  # by the names that files have for them
_NAMES: dict[type, str] = {}
_OF_POLICIES: set[type] = set()


def stored(kind: "K") -> "K":
    """Let models of a class be written and read; a decorator, also for classes of other packages.

    Its attributes are written as they are: the class says by this that all of it is public or a
    released answer. A reader of a file imports the package first.

    Parameters
    ----------
    kind : type
        An estimator or transformer whose constructor only assigns, a dataclass or a NamedTuple of
        public and released values, or a class whose attributes are such values. The constructor
        of a class that is no estimator is not called.

    Returns
    -------
    type
        The class itself.
    """
    package, *rooms = kind.__module__.split(".")
    # For skpriv, the room and the name: old models are read even if a class has moved in its room.
    own = package == __package__
    name = f"{rooms[0]}.{kind.__name__}" if own else f"{kind.__module__}:{kind.__qualname__}"
    _STORED[name] = kind
    _NAMES[kind] = name
    return kind


def renamed(kind: type, *names: str) -> None:
    """Let old files have these names for a class that is stored."""
    _STORED.update(dict.fromkeys(names, kind))


def stored_in_policies(kind: "K") -> "K":
    """Let a class be written and read in the state of a policy alone, and in no model.

    A policy keeps sums of records, keys and numbers of answers in mid-run, which no model has.
    """
    _OF_POLICIES.add(kind)
    return stored(kind)


def set_state(value: Any, /, **attributes: Any) -> None:
    """Set attributes past the class, all at once: of an object that is frozen, or is being made."""
    vars(value).update(attributes)


def stored_name(kind: type, of_policies: bool) -> str:
    """The name of a class in a file; a TypeError where it does not stand in one."""
    if kind not in _NAMES or (kind in _OF_POLICIES and not of_policies):
        raise TypeError(
            f"An object of the class {kind.__qualname__} cannot be written: a file holds numbers, "
            "texts, skpriv's own estimators, transformers and links, and classes that were passed "
            "to skpriv.extend.register. In place of encoders and ColumnTransformers of "
            "scikit-learn use skpriv.preprocessing.TableEncoder."
        )
    return _NAMES[kind]


def stored_kind(name: str, of_policies: bool) -> type:
    """The class that a file names; a ValueError where it is none that is stored."""
    room = name.partition(".")[0]
    if room in ROOMS:  # which may not have been needed so far
        import_module(f"{__package__}.{room}")
    kind = _STORED.get(name)
    if kind is None and ":" in name:
        raise ValueError(
            f"The file needs {name!r}: import the package that has it, which must pass the "
            "class to skpriv.extend.register."
        )
    if kind is None or (kind in _OF_POLICIES and not of_policies):
        raise ValueError(f"The file needs {name!r}, which is no class that this skpriv stores.")
    return kind
