"""The pool where a link bends: slopes count by how near they were asked, and no step is long."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpriv._estimation._links import IDENTITY, Log, Logit
from skpriv._estimation._loop._whitening import Pool
from skpriv._estimation._loop._rules import BENT_STEPS, Rules

P, LENGTH = 3, 0.5


def _pool(link):
    return Pool(P, 1.0, [np.eye(P)], np.zeros(1), 1e3, link, LENGTH, True)


def _asked(point, slope, moment, noise=1e-3):
    return SimpleNamespace(
        point=np.full(P, float(point)), slope=slope * np.eye(P), moment=np.full(P, float(moment)),
        slope_scale=noise, moment_scale=1e-6, variance=0.1, n=10_000,
    )  # fmt: skip


def _with_flat_end(link):
    """An equation near the solution, and one that was asked where slopes are a hundredth."""
    pool = _pool(link)
    pool.add(_asked(0.0, 0.08, 0.0))
    pool.add(_asked(-6.0, 0.0008, 0.0008 * 6.0))
    return pool


def test_a_flat_slope_that_was_asked_far_away_does_not_count():
    """A mean of both would double each step from then on."""
    assert np.trace(_with_flat_end(Log()).slope) / P == pytest.approx(0.08, rel=0.05)
    assert np.trace(_with_flat_end(IDENTITY).slope) / P == pytest.approx(0.04, rel=0.05)


@pytest.mark.parametrize("link", [Logit(), Log()])
def test_no_step_is_long_and_one_that_turns_back_is_half_as_long(link):
    pool, most, places = _pool(link), link.signal / 2.0 / LENGTH, [0.0]
    for moment in (0.2, 0.2, -0.2, -0.2):
        pool.add(_asked(pool.b[0], 0.001, moment, noise=1e-6))
        places.append(np.linalg.norm(pool.b))
    np.testing.assert_allclose(np.diff(places) / most, [1.0, 1.0, -0.5, -0.5], rtol=1e-6)


def test_a_strong_direction_that_was_not_stretched_is_shrunk_less():
    """A coefficient five noises above 0 along a small eigenvalue, and nothing along the others."""
    slope, noise = np.diag([0.005, 0.02, 0.02]), 1e-3
    asked, moment = _asked(0.0, 0.0, 0.0, noise=1e-6), 5.0 * noise * np.eye(P)[0]
    vars(asked).update(slope=slope, moment=moment, moment_scale=noise, variance=1e-6)
    found = {}
    for link in (Logit(), IDENTITY):
        pool = Pool(P, 10.0, [np.eye(P)], np.zeros(1), 1e3, link, 1.0, True)
        for _ in range(2):
            pool.add(asked)
        found[link.linear] = pool.b[0]
    assert 0.0 < found[True] < found[False] <= 5.0 * noise / slope[0, 0]


@pytest.mark.parametrize("reach", [300.0, 3e4])
def test_shares_of_steps_of_a_link_that_bends_rise_and_then_stay(reach):
    rules = (Rules.of(10_000, 8, reach, link=link) for link in (IDENTITY, Logit()))
    plain, bent = (np.array(each.steps) for each in rules)
    assert len(bent) >= BENT_STEPS and (np.diff(bent[:BENT_STEPS]) > 0.0).all()
    assert np.ptp(bent[BENT_STEPS - 1 :]) == 0.0
    assert (np.diff(plain[:-1]) == 0.0).all()
