"""Parameters that many classes share are described in the same words."""

import inspect
import re
from importlib import import_module

PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.S | re.M)
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : ([^\n]*)\n((?:    .*\n?|\n)*)", re.M)
# How a description starts; what is special to a class comes after it.
WORDS = {
    "epsilon": r"Privacy parameter; ``inf`` is the same as (``privacy=\"none\"``|no privacy)\.",
    "delta": r"Privacy parameter: choose it well below one over the number of (record|user|round)s",
    "privacy": r"Who adds the noise: (a trusted curator|nobody)",
    "random_state": (
        r"(None draws secure noise for a real release, anything else reproducible noise for study\."
        r"|Seed of the actions)"
    ),
    "bounds_y": r"Public range \(low, high\) to which (y|y and predictions|rewards) (is|are) ",
    "bounds_X": r"Public range of every feature",
    "data_norm": r"Public: (every row of X is|features of the chosen arms are) clipped to this l2",
    "coef_norm": r"Assumed bound on the l2 norm of ",
    "fit_intercept": r"Whether to fit an intercept",
    "calibration_size": (
        r"Part of the rows that is held out of the fit, at random, "
        r"for :meth:`prediction_(interval|set)`"
    ),
    "conformity_score": r"Prediction intervals go equally far to both sides",
    "prediction_levels": (
        r"Confidence levels whose quantiles ``fit`` releases for :meth:`prediction_(interval|set)`"
    ),
    "channel": r"(What users send in the local |\"codebook\" is one report a user by the index)",
    "shared": r"False if contexts are features of the round alone",
    "n_actions": r"Number of actions; needed with ``shared=False``",
    "schedule": r"(Public lengths of the epochs|Numbers of rounds between fits)",
    "oracle": r"A clone of it is fitted to each epoch",
    "reward_offset": r"Public expected reward of a zero feature",
}


def classes():
    """Name and class of the estimators and policies, environments included."""
    for module in ("linear_model", "bandits"):
        door = import_module(f"skpriv.{module}")
        for name in door.__all__:
            found = getattr(door, name)
            if inspect.isclass(found) and hasattr(found, "get_params"):
                yield name, found


def entries(found):
    """Description of each parameter of a class."""
    section = PARAMETERS.search(inspect.getdoc(found) or "")
    for names, _, text in ENTRY.findall(section.group(1) if section else ""):
        for name in names.split(", "):
            yield name, " ".join(text.split())


def described():
    """(class, parameter, description) of the common parameters."""
    for name, found in classes():
        for parameter, text in entries(found):
            if parameter in WORDS:
                yield name, parameter, text


def test_every_parameter_is_described():
    for name, found in classes():
        parameters = list(inspect.signature(found).parameters)
        assert parameters == [parameter for parameter, _ in entries(found)], name


def test_shared_parameters_are_described_in_the_same_words():
    found = list(described())
    assert not [one for one in found if not re.match(WORDS[one[1]], one[2])]
    assert {parameter for _, parameter, _ in found} == set(WORDS) and len(found) > 100
