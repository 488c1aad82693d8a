"""Parameters that many classes share are described in the same words."""

import inspect
import re
from importlib import import_module

import pytest

PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.S | re.M)
ENTRY = re.compile(r"^(\w+) : ([^\n]*)\n((?:    .*\n?|\n)*)", re.M)
# How a description starts; what is special to a class comes after it.
WORDS = {
    "epsilon": r"Privacy parameter; ``inf`` is the same as (``privacy=\"none\"``|no privacy)\.",
    "delta": r"Privacy parameter: choose it well below one over the number of (record|user|round)s",
    "privacy": r"Who adds the noise: (a trusted curator|nobody)",
    "random_state": (
        r"(None draws secure noise for a real release, anything else reproducible noise for study\."
        r"|Of the actions)"
    ),
    "bounds_y": r"Public range \(low, high\) to which (y|y and predictions|rewards) (is|are) ",
    "bounds_X": r"Public range of every feature",
    "data_norm": r"Public: (every row of X is|features of the chosen arms are) clipped to this l2",
}


def described():
    """(class, parameter, description) of the estimators and policies."""
    for module in ("linear_model", "bandits"):
        door = import_module(f"skpriv.{module}")
        for name in door.__all__:
            found = getattr(door, name)
            if not (inspect.isclass(found) and hasattr(found, "get_params")):
                continue
            section = PARAMETERS.search(inspect.getdoc(found) or "")
            for parameter, _, text in ENTRY.findall(section.group(1) if section else ""):
                if parameter in WORDS:
                    yield name, parameter, " ".join(text.split())


@pytest.mark.parametrize("name, parameter, text", described(), ids=lambda value: value[:24])
def test_the_same_words(name, parameter, text):
    assert re.match(WORDS[parameter], text), text


def test_every_common_parameter_is_looked_at():
    seen = {parameter for _, parameter, _ in described()}
    assert seen == set(WORDS)
    assert len(list(described())) > 40
