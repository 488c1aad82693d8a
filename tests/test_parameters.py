"""Constructors that are made from fields: what users may pass, what is checked, what is said."""

import inspect
from collections import defaultdict
from dataclasses import field, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import InvalidParameterError

from skpriv._parameters import ENTRY, SECTION, Count, Positive, parameters

STORED = Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8").splitlines()
ROOMS = ("bandits", "linear_model", "model_selection", "preprocessing")


def constructors():
    """Name and class of all public estimators, policies and transformers."""
    for room in ROOMS:
        door = import_module(f"skpriv.{room}")
        for name in door.__all__:
            found = getattr(door, name)
            if inspect.isclass(found) and hasattr(found, "get_params"):
                yield name, found


def signature(name, found):
    """The call as text: positional parameters in their order, then keywords by name."""
    given = inspect.signature(found).parameters.values()
    texts = [f"{p.name}={p.default!r}" if p.default is not p.empty else p.name for p in given]
    pairs = list(zip(given, texts, strict=True))
    first = [text for p, text in pairs if p.kind is not p.KEYWORD_ONLY]
    rest = sorted(text for p, text in pairs if p.kind is p.KEYWORD_ONLY)
    return f"{name}({', '.join([*first, *(['*', *rest] if rest else [])])})"


def test_signatures_are_those_that_were_promised():
    assert sorted(signature(*pair) for pair in constructors()) == STORED


@pytest.mark.parametrize("name, found", constructors(), ids=lambda value: str(value)[:24])
def test_what_is_checked_is_what_may_be_passed(name, found):
    assert set(found._parameter_constraints) == set(inspect.signature(found).parameters)


def entries(found):
    """Name and description of each parameter in the docstring of a class."""
    section = SECTION.search(f"{inspect.getdoc(found)}\n")
    for names, text in ENTRY.findall(section[2] if section else ""):
        _, _, description = text.partition("\n")
        yield from ((name, " ".join(description.split())) for name in names.split(", "))


def test_every_parameter_is_described_and_shared_ones_in_the_same_words():
    """Of six classes or more a parameter has in common, two descriptions begin differently."""
    begun = defaultdict(list)
    for _, kind in constructors():
        described = list(entries(kind))
        assert [name for name, _ in described] == list(inspect.signature(kind).parameters)
        for name, words in described:
            begun[name].append(" ".join(words.split()[:3]))
    shared = {name: set(words) for name, words in begun.items() if len(words) >= 6}
    assert len(shared) > 15
    assert not {name: words for name, words in shared.items() if len(words) > 2}


@parameters
class Base(BaseEstimator):
    """A base.

    Parameters
    ----------
    size : float
        How large.
    """

    size: Positive = 1.0
    result_: Any = field(init=False)

    def fit(self):
        self._validate_params()
        return self


@parameters
class Kind(Base):
    """A kind of it.

    Parameters
    ----------
    mode : {"a", "b"} or None
        Which way.
    rows : array-like
        Where it starts.

    Notes
    -----
    It says more.
    """

    rows: Any = field(kw_only=False)
    mode: Literal["a", "b"] | None = None
    steps: Annotated[Any, "no_validation"] | Count = 3
    exact: bool = False


def test_fields_are_parameters():
    assert str(inspect.signature(Kind)).startswith("(rows: Any, *, size: float = 1.0, mode: ")
    made = clone(Kind([1], size=2.0)).set_params(mode="b")
    assert made.get_params() == {"rows": [1], "size": 2.0, "mode": "b", "steps": 3, "exact": False}
    assert vars(made).keys() == made.get_params().keys() and not hasattr(made, "result_")
    assert made == made and made != clone(made)  # no equality by value
    assert repr(made) == "Kind(mode='b', rows=[1], size=2.0)"


@pytest.mark.parametrize("wrong", [{"size": 0.0}, {"mode": "c"}, {"exact": "yes"}])
def test_annotations_are_checked(wrong):
    Kind(1, steps="any").fit()
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        Kind(1, **wrong).fit()


def test_words_come_from_where_a_parameter_is_described():
    text = inspect.getdoc(Kind)
    order = ["A kind of it.", "rows : array", "size : float\n    How large.", "mode : {", "Notes"]
    places = [text.index(words) for words in order]
    assert places == sorted(places) and text.count("Parameters\n---") == 1
    assert [item.name for item in fields(Base) if item.init] == ["size"]
