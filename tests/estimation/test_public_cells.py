"""Public cells: what their rows may do to equations across them, by hand."""

import numpy as np
import pytest

from skpriv._estimation._cells import Cells, moved


def cells_of(*directions, constants=()):
    size = len(directions[0])
    return Cells(np.array(directions, dtype=float), np.reshape(constants, (-1, size)))


@pytest.mark.parametrize("moment, squared", [([0.0, 7.0], 0.04), ([0.5, 7.0], 0.25)])
def test_rows_of_a_cell_move_moments_across_by_what_is_along_it_or_its_noise(moment, squared):
    """A direction of length 2 has rows that are half as long along it: the ratio is 3 / .5."""
    cells = cells_of([2.0, 0.0])
    found = moved(cells, [0], np.array(moment), 0.04, 3.0)
    assert found == pytest.approx(6.0**2 * squared)


def test_no_constant_is_among_the_directions_that_are_held():
    """All levels of a list together are the constant: the least sure one stays."""
    levels = cells_of([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], constants=[[1.0, 1.0, 0.0]])
    assert levels.holdable([1, 0]) == [1] and levels.holdable([0]) == [0]
    free = cells_of([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], constants=[[1.0, 1.0, 1.0]])
    assert free.holdable([1, 0]) == [1, 0]
