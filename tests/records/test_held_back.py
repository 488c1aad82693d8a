"""What is raised while private cells are read before a charge is not heard."""

import numpy as np
import pytest

from skpriv.records import held_back
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
