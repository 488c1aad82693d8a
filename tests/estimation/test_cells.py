"""Directions of cells that may be empty: what is held, what it may move, what is estimable."""

from dataclasses import replace

import numpy as np
import pytest
from registry.noise import goe

from skpriv._estimation._cells import (
    Across, Cells, across_all, behind, estimable_weights, moved, placed, split,
)  # fmt: skip

P = 6
ONE = np.eye(P)


def _cells(directions, constants=()):
    return Cells(np.reshape(directions, (-1, P)), np.reshape(constants, (-1, P)))


@pytest.mark.parametrize("slope", ["line", "logit"])
def test_an_effect_moves_other_moments_by_no_more_than_its_own(slope):
    """The effect t of a cell moves all scores of its rows in one direction, however they are cut.

    So what it adds to the moments across is at most the largest ratio of lengths times what it adds
    to the moment along. The bound is attained by rows that are all alike.
    """
    rng = np.random.RandomState(0)
    scores = {
        "line": lambda eta: np.clip(eta, -0.3, 0.3),
        "logit": lambda eta: 1.0 / (1.0 + np.exp(-eta)),
    }[slope]
    for alike in (False, True):
        for _ in range(50):
            rows, along = rng.normal(size=(40, P)), rng.uniform(0.2, 1.0, size=40)
            if alike:
                rows[:], along[:] = rows[0], along[0]
            start, t = rng.normal(size=40), rng.normal() * 10.0
            change = scores(start - along * t) - scores(start)
            ratio = (np.linalg.norm(rows, axis=1) / along).max()
            across, own = np.linalg.norm(rows.T @ change), abs(along @ change)
            assert across <= ratio * own * (1.0 + 1e-12)
            assert not alike or across == pytest.approx(ratio * own)


def test_what_may_be_moved_is_a_ratio_of_lengths_times_the_moment_along():
    cells = _cells([0.1 * ONE[0], 2.0 * ONE[1]])  # 10 and 1/2 long in the rows of the cells
    moment = np.array([0.3, 0.05, 9.0, 0.0, 0.0, 0.0])
    assert moved(cells, [0], moment, 0.01, 1.0) == pytest.approx((1.0 / 10.0 * 0.3) ** 2)
    assert moved(cells, [1], moment, 0.01, 1.0) == pytest.approx((1.0 / 0.5 * 0.1) ** 2)  # noise
    both = moved(cells, [0, 1], moment, 0.01, 2.0)
    assert both == pytest.approx((2.0 / 10.0 * 0.3) ** 2 + (2.0 / 0.5 * 0.1) ** 2)
    assert moved(cells, [], moment, 0.01, 1.0) == 0.0


def test_a_cell_is_held_if_noise_explains_its_slope():
    slope = np.diag([1.9, 2.0, 5.0, 5.0, 5.0, 5.0])
    cells = _cells([ONE[0], 3.0 * ONE[1]])
    found = Across.of(slope, 1.0, cells, 1.96)
    assert found.empty == [0] and found.held == pytest.approx(ONE[:, :1])
    assert found.values == pytest.approx([2.0, 5.0, 5.0, 5.0, 5.0])
    assert not (found.vectors.T @ found.held).any()
    assert Across.of(slope, 0.0, cells, 1.96).empty == []  # without noise both have rows
    exact = Across.of(np.diag([0.0, 2.0, 5.0, 5.0, 5.0, 5.0]), 0.0, cells, 1.96)
    assert exact.empty == [0]


def test_a_cell_is_held_that_other_equations_do_not_tell_however_large_its_slope_is():
    cells = replace(_cells([ONE[0], 3.0 * ONE[1]]), empty=[1])
    for told in (cells, cells.turned(lambda rows: 2.0 * rows), cells.at(np.arange(P))):
        found = Across.of(np.diag([4.0, 9.0, 5.0, 5.0, 5.0, 5.0]), 1.0, told, 1.96)
        assert found.empty == [1] and abs(found.held) == pytest.approx(ONE[:, 1:2])


def test_a_weak_cell_is_held_if_it_is_what_hides_a_direction():
    """Along the cell is more than the noise, but not along the eigenvector next to it."""
    slope = np.diag([2.4, 9.0, 9.0, 9.0, 9.0, 9.0])
    slope[0, 1] = slope[1, 0] = 2.5
    assert np.linalg.eigvalsh(slope)[0] < 1.96
    found = Across.of(slope, 1.0, _cells([ONE[0]]), 1.96)
    assert found.empty == [0] and found.values.min() > found.floor
    strong = np.diag([1.0, 9.0, 9.0, 9.0, 9.0, 9.0])  # hidden, and no cell has a part in it
    found = Across.of(strong, 1.0, _cells([ONE[1]]), 1.96)
    assert found.empty == [] and (found.values <= found.floor).sum() == 1


def test_no_constant_is_held_however_weak_all_cells_of_a_list_are():
    levels = [ONE[0], ONE[1], ONE[2]]
    cells = _cells(levels, [ONE[:3].sum(axis=0)])
    slope = np.diag([0.1, 0.3, 0.2, 5.0, 5.0, 5.0])
    found = Across.of(slope, 1.0, cells, 1.96)
    assert found.empty == [0, 2]  # the largest is left


def test_empty_cells_are_held_as_often_as_the_quantile_says():
    """2.5% of 4,000 empty cells are told from none: with half of the quantile 16% would be."""
    rng, told = np.random.RandomState(0), 0
    cells = _cells([ONE[0], np.array([0, 0, 0, 0, 3.0, 4.0])])
    for _ in range(2_000):
        slope = np.diag([0.0, 90.0, 90.0, 90.0, 50.0, 50.0])
        slope[4:, 4:] -= 50.0 * np.outer([0.6, 0.8], [0.6, 0.8])
        told += 2 - len(Across.of(slope + goe(rng, P), 1.0, cells, 1.96).empty)
    assert 0.015 < told / 4_000 < 0.035


def test_estimable_sums_have_no_part_in_what_is_held_and_little_in_what_is_hidden():
    points = np.array([[1.0, 0, 0, 0, 0, 0], [1.0, 1.0, 0, 0, 0, 0], [0, 1e6, 0, 0, 0, 0]])
    weights = estimable_weights(points, ONE[:, :1], ONE[:, 5:], 0.5)
    sums = weights @ points
    assert len(weights) == 1 and across_all(sums, ONE[:, :1]).all()
    assert abs(sums[0, 1]) > 1e-6  # the difference of the first two, or the third: they are one
    assert len(estimable_weights(points, ONE[:, :0], ONE[:, :0], 0.5)) == 2  # independent ones
    hidden = estimable_weights(np.array([[1.0, 1.1, 0, 0, 0, 0], [1.0, 0.9, 0, 0, 0, 0]]),
                               ONE[:, :0], ONE[:, :1], 0.5)  # fmt: skip
    assert len(hidden) == 1 and abs(hidden @ [1.0, 1.0])[0] < 1e-9
    assert len(estimable_weights(points[:0], ONE[:, :1], ONE[:, :0], 0.5)) == 0


def test_functions_go_through_selections_and_scalings():
    functions = np.array([[2.0, 0.0, 1.0], [0.0, 4.0, 0.0]])
    wide = placed(functions, [1, 3], 4)
    assert wide.tolist() == [[0, 2.0, 0, 0, 1.0], [0, 0, 0, 4.0, 0]]
    scaled = behind(wide, np.diag([1.0, 0.5, 1.0, 2.0, 1.0]))
    assert scaled == pytest.approx(np.array([[0, 4.0, 0, 0, 1.0], [0, 0, 0, 2.0, 0]]))
    chosen = behind(wide, np.eye(5)[:, [0, 1, 4]])  # the last column is not selected
    assert chosen == pytest.approx(np.array([[0, 2.0, 1.0]]))


def test_a_split_is_orthonormal_at_any_rank():
    rows = np.array([ONE[0], 1e-3 * ONE[0], ONE[0] + ONE[1]])
    held, across = split(rows, P)
    assert held.shape == (P, 2) and across.shape == (P, 4)
    both = np.column_stack([held, across])
    assert both.T @ both == pytest.approx(np.eye(P)) and abs(rows @ across).max() < 1e-12
    assert split(rows[:0], P)[1].tolist() == np.eye(P).tolist()
