"""Parameters of estimators as fields: each is declared once, with its type, limits and words.

A field's annotation says what a parameter may be, for type checkers and for scikit-learn. Its words
are an entry of the docstring of the class that declares it, or of a subclass that says more.
"""

import re
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import cleandoc, signature
from itertools import chain
from numbers import Integral, Real
from types import UnionType
from typing import (
    TYPE_CHECKING, Annotated, Any, Literal, Union, cast, dataclass_transform, get_args,
    get_origin, get_type_hints,
)  # fmt: skip

import numpy as np

from ._compat import Interval, StrOptions, forgets_rows, validate_params

# Texts that parameters take: an editor offers them, and a misspelt one is an error of types.
Channel = Literal["auto", "gaussian", "codebook"]
ConformityScore = Literal["absolute", "signed"]
CurveEstimand = Literal["fitted", "likelihood"]
Estimand = Literal["fitted", "least_squares", "likelihood"]
IntervalMethod = Literal["certified", "asymptotic"]
LineEstimand = Literal["fitted", "least_squares"]
PrivacyModel = Literal[
    "aggregate",
    "central",
    "local",
    "none",
    "shuffle",
]
Scale = Literal["range", "odds", "rates"]

ArrayLike = Annotated[Any, "array-like"]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Delta = Annotated[float, Interval(Real, 0, 1, closed="left")]
DataNorm = Annotated[
    float | str | None, Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None
]
Epsilon = Annotated[float, Interval(Real, 0, None, closed="right")]
Finite = Annotated[float, Interval(Real, None, None, closed="neither")]
Level = Annotated[float, Interval(Real, 0, 1, closed="neither")]
NotNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
# Products and quotients of a few of them are numbers, too.
Positive = Annotated[float, Interval(Real, 1e-300, 1e300, closed="both")]
Probability = Annotated[float, Interval(Real, 0, 1, closed="right")]
RandomState = Annotated[int | np.random.RandomState | None, "random_state"]
RowsOfPerson = Annotated[int | None, "no_validation"]  # `Groups` says what is wanted

if TYPE_CHECKING:
    from ._contracts import F, K

SECTION = re.compile(r"^(Other )?Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.S | re.M)
ENTRY = re.compile(r"^(\w+(?:, \w+)*)( : .*\n(?:    .*\n|\n(?=    ))*)", re.M)
HEADING = re.compile(r"^\w[\w ]*\n-+\n", re.M)


def as_python(value: Any) -> Any:
    """The number of Python that a number of NumPy is; any other value as it is.

    Numbers of few digits lose what is added to them, those of few bits overflow, and a division by
    0 warns where one of Python raises. So public numbers are converted once, where they come in.
    """
    if isinstance(value, np.floating):
        return float(value)  # `item` of a long one is another one of NumPy each time
    is_number = isinstance(value, np.generic) and value.dtype.kind not in "mM"  # no time
    return value.item() if is_number else value


def of_numbers(function: "F") -> "F":
    """Decorate a function at whose door numbers of NumPy become those of Python.

    The frames of an error that leaves it hold no rows.
    """

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        return function(
            *map(as_python, arguments), **dict(zip(named, map(as_python, named.values())))
        )

    return forgets_rows(cast("F", called))


def attribute(default: Any = None, *, init: Literal[False] = False) -> Any:
    """An annotated attribute that is no parameter, with what it is before `fit`."""
    return field(init=init, default=default)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field, attribute))
def parameters(kind: "K") -> "K":
    """Make the annotated attributes of a class the parameters of its constructor.

    The constructor only assigns; numbers of NumPy become those of Python then, and whenever a
    parameter is set. Those of the bases come first, keyword-only ones last; a parameter
    that may be positional is ``field(kw_only=False)``. An `attribute` is none, nor is a
    ``field(init=False)``, which has no default. The checks of scikit-learn follow from the
    annotations, and the section "Parameters" of the docstring is put together from those of the
    class and its bases.

    Parameters
    ----------
    kind : type

    Returns
    -------
    type
        The same class.
    """
    made: Any = dataclass(eq=False, repr=False, match_args=False, kw_only=True)(kind)
    types = {item.name: item.type for item in fields(made) if item.init}

    def assign(self: Any, name: str, value: Any) -> None:
        object.__setattr__(self, name, as_python(value) if name in types else value)

    made._parameter_constraints = {
        name: _limits(annotation) or "no_validation" for name, annotation in types.items()
    }
    made.__setattr__ = assign
    made.__init__.__annotations__ = get_type_hints(made.__init__)  # types without their limits
    # It is inspected once: scikit-learn asks for it whenever it looks at the parameters.
    made.__init__.__signature__ = signature(made.__init__)
    made.__doc__ = _documented(made, list(signature(made).parameters))
    return kind


def validated(function: "F") -> "F":
    """Decorate a function whose arguments are checked by the limits in their annotations.

    Before they are checked, numbers of NumPy become those of Python.

    Parameters
    ----------
    function : callable

    Returns
    -------
    callable
        The same, with types without their limits.
    """
    hints = get_type_hints(function, include_extras=True)
    limits = {name: _limits(hint) or "no_validation" for name, hint in hints.items()}
    function.__annotations__ = get_type_hints(function)
    return of_numbers(validate_params(function, limits))


def _limits(annotation: Any) -> list[Any]:
    """The checks of scikit-learn of a value with this annotation; empty if that is nothing."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [_limits(part) for part in get_args(annotation)]
        return list(chain(*parts)) if all(parts) else []
    if get_origin(annotation) is Annotated:
        limits = list(annotation.__metadata__)
        return [] if "no_validation" in limits else limits
    if get_origin(annotation) is Literal:
        return [StrOptions(set(get_args(annotation)))]
    simple = {bool: "boolean", type(None): None, float: Real, int: Integral, Any: ()}
    limit = simple.get(annotation, get_origin(annotation) or annotation)
    return [] if limit == () else [limit]


def _documented(kind: type, names: list[str]) -> str:
    """Docstring of a class, in which every parameter has an entry."""
    text = cleandoc(kind.__doc__ or "") + "\n"
    entries: dict[str, str] = {}
    for base in [*reversed(kind.__mro__[1:-1]), kind]:
        for section in SECTION.finditer(cleandoc(vars(base).get("__doc__") or "") + "\n"):
            for found, words in ENTRY.findall(section[2]):
                entries.update((name, words) for name in found.split(", "))
    written = "".join(f"{name}{entries[name]}" for name in names if name in entries)
    if not written:
        return text
    start = HEADING.search(text)
    place = start.start() if start else len(text)
    before = text[:place].rstrip()
    after = SECTION.sub(lambda section: section[0] if section[1] else "", text[place:])
    return f"{before}\n\nParameters\n----------\n{written.rstrip()}\n\n{after}".rstrip()
