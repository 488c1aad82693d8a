"""The noise of an equation by instruments, in one coordinate, by the inverted test."""

from types import SimpleNamespace

import numpy as np
import pytest

from skpriv.linear_model._instruments import _inverted


@pytest.mark.parametrize("slope", [4.0, 8.0, 50.0])
def test_errors_of_instruments_reach_the_farther_end_of_the_inverted_test(slope):
    """Of the b with (m - d b)^2 <= z^2 (sm^2 + sd^2 b^2), which Fieller solved."""
    z, slope_scale, moment_scale, moment = 1.959964, 0.01, 0.01, 0.08
    d = slope * slope_scale
    sums = SimpleNamespace(
        moment=np.array([moment]), slope=np.array([[d]]), moment_scale=moment_scale,
        slope_scale=slope_scale, meat=np.array([[1e-12]]),
    )  # fmt: skip
    step, _, noise, strength = _inverted(sums)
    a = d**2 - (z * slope_scale) ** 2
    root = np.sqrt((moment * d) ** 2 - a * (moment**2 - (z * moment_scale) ** 2))
    assert strength > 1.0
    assert step[0] + z * np.sqrt(noise[0, 0]) >= 0.999 * (moment * d + root) / a
