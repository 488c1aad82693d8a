"""People, columns and labels are the same in every spelling, wherever they come in."""

import matplotlib
import numpy as np
import pytest
from registry.doors import arguments, public
from registry.named import CLEAN, CLEAN_PEOPLE, COLUMNS, DOORS, EXEMPT, ODD, ODD_PEOPLE, PEOPLE

matplotlib.use("Agg")


def test_every_argument_that_names_people_or_columns_is_tried():
    """Whoever adds one says how it is called, or why it names neither."""
    found = {
        (name, argument)
        for name, function in public().items()
        for argument in arguments(function)
        if argument in PEOPLE | COLUMNS
    }
    assert found - set(DOORS) - set(EXEMPT) == set()
    assert set(DOORS) | set(EXEMPT) <= found | {("Schema.template", "target")}


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_an_odd_spelling_means_the_same(door):
    clean, odd = (CLEAN_PEOPLE, ODD_PEOPLE) if door[1] in PEOPLE else (CLEAN, ODD)
    assert same(DOORS[door](clean), DOORS[door](odd))


def same(first, second):
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, tuple):
        return all(map(same, first, second))
    if isinstance(first, np.ndarray) and first.dtype.kind == "f":
        return np.array_equal(first, second, equal_nan=True)
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    return repr(first).replace(ODD, CLEAN) == repr(second).replace(ODD, CLEAN)
