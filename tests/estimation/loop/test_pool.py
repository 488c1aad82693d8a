"""The pool of equations that were asked of all records, or of a part of them."""

from dataclasses import replace

import numpy as np
import pytest

from skpriv._estimation._loop._score import ScoreEquation
from skpriv._estimation._loop._fit import LoopFit
from skpriv._estimation._links import IDENTITY, Logit
from skpriv._estimation._loop import _whitening
from skpriv._estimation._loop._whitening import Pool, posterior_mean, prior_model

EQUATION = ScoreEquation(
    point=np.zeros(2), limit=1.0, moment=np.zeros(2), slope=0.5 * np.eye(2), square=1.0, n=10_000,
    moment_scale=1e-4, slope_scale=1e-4, residual_gram=0.5 * np.eye(2),
)  # fmt: skip


def _pooled(link, *equations):
    pool = Pool(2, 1.0, [np.eye(2)], np.zeros(1), 1e3, link, 1.0, True)
    for equation in equations:
        pool.add(equation)
    return pool.b


@pytest.mark.parametrize(("n", "weight"), [(10_000, 0.5), (100, 0.0)])
def test_equations_of_a_part_of_the_records_have_its_sampling_error(n, weight):
    """Of 100 records it is 70 times the privacy noise of either: only the other one counts."""
    part = replace(EQUATION, moment=np.full(2, 0.1), n=n)
    found = _pooled(IDENTITY, part, EQUATION)
    np.testing.assert_allclose(found, weight * 0.2, atol=2e-3)


def test_intervals_rest_on_equations_of_all_records_that_are_like_the_last_one():
    changes = {"n": 100}, {"limit": 1.3}, {"fall": 0.5}, {"point": np.full(2, 0.1)}, {"slope": None}
    for change, used in (({"limit": 1.2}, 2), *((change, 1) for change in changes)):
        equations = replace(EQUATION, **change), EQUATION
        known = 0.0, np.eye(2), np.zeros(2), 1.0, EQUATION.slope, equations
        assert len(LoopFit(*known, None, True, 1).recent_equations()[0]) == used


def test_an_equation_that_was_asked_far_away_leaves_the_pool_where_the_link_bends():
    """At a distance of 1 the moment may be off by 1/4 by the bend: noise is 1e-4."""
    far = replace(EQUATION, point=np.array([1.0, 0.0]), moment=np.array([-0.4, 0.0]))
    np.testing.assert_allclose(_pooled(Logit(), EQUATION, far, EQUATION), 0.0, atol=2e-3)
    assert _pooled(IDENTITY, EQUATION, far, EQUATION)[0] > 0.05


@pytest.mark.parametrize("size", [0.5, 1.0, 2.0, 4.0])
def test_weak_signals_are_not_shrunk_by_how_far_down_the_candidates_go(size):
    p, noise = 6, 1e-4
    values, vectors = np.full(p, 1.0 / p), np.eye(p)
    moment = np.full(p, size * np.sqrt(noise))
    model = prior_model(1e-8, vectors[None], values, vectors)
    found = []
    for least, count in ((1e-7, 61), (1e-17, 161)):
        known = noise, model, np.geomspace(least, 1e-1, count), np.zeros(1)
        found.append(posterior_mean(moment[None], np.zeros((1, p)), *known)[0])
    rounding = 1.0 + 161 * 2.0**-52  # of a sum over the candidates, all of whose terms are positive
    assert 0.0 < found[1] <= found[0] * rounding and found[0] < p * moment[0]
    assert found[1] == pytest.approx(found[0], rel=0.03)


def test_noise_of_slopes_is_that_half_way_to_the_solution_that_it_makes(monkeypatch):
    """Counted at the solution, it let one go far and shrank the next to nothing."""
    solved, noises = [], []

    def spy(moments, origins, noise, *model):
        noises.append(noise)
        solved.append(posterior_mean(moments, origins, noise, *model))
        return solved[-1]

    monkeypatch.setattr(_whitening, "posterior_mean", spy)
    _pooled(IDENTITY, replace(EQUATION, moment=np.full(2, 0.1), slope_scale=0.1))
    half = solved[0] @ solved[0] / 4.0
    assert noises == pytest.approx([1e-8, 1e-8 + 0.75 * 0.01 * half], rel=1e-9) and half > 1e-3
