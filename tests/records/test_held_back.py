"""What is raised while private cells are read before a charge is not heard."""

import numpy as np
import pandas as pd
import pytest

from skpriv.preprocessing import Boolean, Categorical, Numeric, Ordinal, Schema, TableEncoder
from skpriv.records import floats, held_back
from skpriv.records._identity import codes


class PanicException(BaseException):
    """What polars raises, which is no Exception."""


def failing(error):
    def evaluate(data):
        raise error

    return evaluate


@pytest.mark.parametrize("error", [ValueError("7"), KeyError(7), PanicException("7")])
def test_an_error_becomes_rows_that_a_fit_refuses(error):
    found = held_back(failing(error), np.zeros((3, 2)), np.full(4, np.nan))
    assert found.shape == (3, 4) and np.isnan(found).all()
    found[0] = 1.0  # of which each row is one of its own
    assert np.isnan(found[1:]).all()


def test_whoever_stops_a_program_is_heard():
    with pytest.raises(KeyboardInterrupt):
        held_back(failing(KeyboardInterrupt()), np.zeros((3, 2)), np.nan)


def test_persons_of_several_parts_are_told_apart_by_where_their_parts_end():
    people = [("a", "bc"), ("ab", "c"), ("a", "b", "c"), ("abc",), "abc", ("a", "bc")]
    assert codes(people).tolist() == [0, 1, 2, 3, 4, 0]


def refuse(*given):
    raise RuntimeError("7")


SPECIAL = ("eq", "hash", "str", "repr", "len", "iter", "bool", "float", "array", "format", "ne")
REFUSING = {f"__{name}__": refuse for name in SPECIAL}
Refusing = type("Refusing", (complex,), REFUSING)
OfRefusingType = type("OfRefusingType", (type,), REFUSING)("OfRefusingType", (), {})


@pytest.mark.parametrize("cell", [Refusing(1j), OfRefusingType()], ids=["cell", "its type"])
@pytest.mark.parametrize("kind", [
    Numeric(0, 60, missing="indicator"), Boolean(missing="indicator"),
    Categorical(["5", "1"]), Ordinal(["5", "1"]),
], ids=lambda kind: kind.kind)  # fmt: skip
def test_a_cell_that_refuses_all_questions_loses_its_own_row_alone(cell, kind):
    """What is asked of it is also asked by narwhals and pandas, such as for the dtype of objects.

    A weight and a label are no more than missing: all of them would go without a word.
    """
    schema = Schema({"a": kind}, target="a")
    encoder = TableEncoder({"a": kind})
    doors = [schema.read_labels, lambda frame: encoder.fit(frame).transform(frame)]
    if isinstance(kind, Numeric | Boolean):
        doors += [schema.read_target, lambda frame: schema.weights(frame)["sample_weight"]]
    cells = np.array([5, "1", None, 1.0, "n/a"] * 3, dtype=object)
    for door in doors:
        told = []
        for put in (None, cell):
            cells[6] = put
            frame = pd.DataFrame({"a": cells}, dtype=object)
            told.append([repr(row) for row in np.delete(np.asarray(door(frame)), 6, axis=0)])
        assert told[0] == told[1]


@pytest.mark.parametrize("base", [complex, list, str, float])
def test_so_do_the_name_of_a_person_and_an_item_of_a_list(base):
    for read, others in ((codes, ["a", "b", "a"]), (floats, [1.0, 2.0, 1.0])):
        cells = np.empty(4, dtype=object)
        cells[:3], cells[3] = others, type("Refusing", (base,), REFUSING)()
        for given in ([*cells], cells, pd.Series(cells, dtype=object)):
            assert np.asarray(read(given))[:3].tolist() == read(others).tolist()


def test_the_type_of_a_name_is_not_compared():
    assert codes(["a", OfRefusingType(), "a"]).tolist() == [0, 1, 0]
