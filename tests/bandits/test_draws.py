"""Drawing of actions: what is drawn has the chance that is told, here and on devices."""

from types import SimpleNamespace

import numpy as np

from skpriv.bandits._draws import by_chance, inverse_gap
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
