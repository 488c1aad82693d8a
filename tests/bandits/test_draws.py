"""Drawing of actions: what is drawn has the chance that is told, here and on devices."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpriv.bandits._policy._draws import by_chance, inverse_gap, optimistic, shares
from skpriv.bandits._ucb._sums import Region
from skpriv.protocol import _device


def test_what_has_no_chance_is_not_drawn_by_a_draw_of_0():
    rng = SimpleNamespace(random_sample=np.zeros)
    actions, chances = by_chance(np.array([[0.0, 0.5, 0.5]]), 4, rng)
    assert actions.tolist() == [1] * 4 and chances.tolist() == [0.5] * 4


def test_devices_play_by_the_chances_of_inverse_gaps(monkeypatch):
    """Their draw is enumerated on a grid of all random bits."""
    means, weight, draws = np.array([0.1, 0.4, 0.25, -0.3]), 7.0, 4000
    played = []
    for k in range(draws):
        at = int((k + 0.5) / draws * 2**53)
        monkeypatch.setattr(_device.secrets, "randbits", lambda bits, at=at: at)
        played.append(_device._by_inverse_gaps(means, weight))
    chances = inverse_gap(means[None], weight)[0]
    np.testing.assert_allclose(np.bincount(played, minlength=4) / draws, chances, atol=1.0 / draws)


@pytest.mark.parametrize("available", [None, [True, True, True, False]])
def test_actions_that_are_equal_share_the_plays(available):
    """Two rows that differ by rounding: by each rule, and on devices."""
    mask = None if available is None else np.array([available] * 2)
    rows = np.array([[0.3, 0.1], [0.1 + 0.2, 0.1], [-0.2, 0.0], [-0.9, 0.0]])
    contexts = np.array([rows, rows[[2, 0, 1, 3]]])
    region, means = Region(np.array([1.0, 0.0]), 1e-4 * np.eye(2)), contexts[..., 0]
    halves = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]
    np.testing.assert_array_equal(shares(means, mask), halves)
    np.testing.assert_array_equal(optimistic(region, contexts, mask, [0.0, 1.0]), halves)
    chances = inverse_gap(means, 10.0, mask)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert chances[0, 0] == chances[0, 1] == chances[1, 1] > 0.3 > chances[0, 2] > 0.1
    assert {_device._by_inverse_gaps(means[0], 1e300) for _ in range(100)} == {0, 1}


def test_an_action_that_may_not_be_played_decides_nothing():
    """It has the largest index, or none: the others are told apart as without it."""
    for index in (1e30, -1e30, np.nan):
        chances = shares(np.array([[index, 0.1, 0.2]]), np.array([[False, True, True]]))
        np.testing.assert_array_equal(chances, [[0.0, 0.0, 1.0]])
    same = np.broadcast_to(np.zeros((1, 3, 2)), (5, 3, 2))  # rounds that are one array
    region = Region(np.zeros(2), np.eye(2))
    mask = np.array([[True, False, True]] * 5)
    np.testing.assert_array_equal(optimistic(region, same, mask, [1.0]), mask / 2.0)
