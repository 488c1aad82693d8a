"""Every public object states its parameters, with their meaning, and what it returns."""

import inspect
from functools import cached_property
from importlib import import_module

import pytest
from numpydoc.validate import validate

import skpriv

DOORS = [
    "", "audit", "bandits", "datasets", "inspection", "linear_model", "metrics", "model_selection",
    "preprocessing", "privacy", "protocol", "records",
]  # fmt: skip
CODES = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "PR10", "RT01", "RT03", "YD01"}
DESCRIPTORS = (property, cached_property, classmethod, staticmethod)


def public_names(door):
    """Dotted names of a door's functions, classes, and their own methods and properties."""
    module = import_module(f"skpriv.{door}".rstrip("."))
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        if inspect.isclass(value):
            ours = [
                kind for kind in reversed(value.__mro__) if kind.__module__.startswith("skpriv")
            ]
            members = {key: member for kind in ours for key, member in vars(kind).items()}
            for key, member in members.items():
                if not key.startswith("_") and isinstance(member, DESCRIPTORS):
                    yield f"{module.__name__}.{name}.{key}", member
                elif not key.startswith("_") and inspect.isfunction(member):
                    yield f"{module.__name__}.{name}.{key}", member


def faults(name):
    """What the docstring of a public object lacks; `self` needs no description."""
    found = validate(name)
    lines = [line.strip() for line in found["docstring"].splitlines()]
    returns_self = any(lines[at : at + 2] == ["-------", "self"] for at in range(len(lines)))
    allowed = {"RT03"} if returns_self else set()
    return [f"{name}: {text}" for code, text in found["errors"] if code in CODES - allowed]


@pytest.mark.parametrize("door", DOORS)
def test_docstrings_state_parameters_and_what_is_returned(door):
    seen, missing = set(), []
    for name, value in public_names(door):
        if id(value) not in seen:  # inherited methods are stated once
            seen.add(id(value))
            missing += faults(name)
    assert len(seen) > 0 and not missing, "\n".join(missing)


def test_a_docstring_that_lacks_something_is_found(monkeypatch):
    name = "skpriv.metrics.interval_mean_width"
    assert not faults(name)
    monkeypatch.setattr(skpriv.metrics.interval_mean_width, "__doc__", "Width of intervals.")
    assert faults(name)
