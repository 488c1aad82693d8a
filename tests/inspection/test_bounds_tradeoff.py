"""The public trade-off of bounds: clipping as simulated, noise as calibrated, nothing read."""

import numpy as np
import pytest
from scipy import stats

from skpriv.inspection import bounds_tradeoff

PUBLIC = {"n_samples": 10_000, "n_features": 4}


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (-2.0, 0.5), (-9.0, 9.0), (0.5, 3.0)])
def test_clipping_takes_its_part_of_a_coefficient(bounds):
    """Bussgang's rule, against a simulation; the integral for general laws agrees with it."""
    found = bounds_tradeoff([bounds], (0.3, 1.2), **PUBLIC)
    rng = np.random.RandomState(0)
    x = rng.normal(size=400_000)
    y = 0.3 + 0.7 * x + np.sqrt(1.2**2 - 0.7**2) * rng.normal(size=len(x))
    slope = np.polyfit(x, np.clip(y, *bounds), 1)[0]
    assert found.kept[0] == pytest.approx(slope / 0.7, abs=0.01)
    law = bounds_tradeoff([bounds], stats.norm(0.3, 1.2), **PUBLIC)
    assert law.kept == pytest.approx(found.kept, abs=1e-3)
    assert found.below[0] == pytest.approx(np.mean(y < bounds[0]), abs=0.005)


def test_noise_is_in_proportion_to_the_range_and_falls_with_n():
    wide = bounds_tradeoff([(0, 10), (0, 20)], (5.0, 1.0), **PUBLIC)
    assert wide.noise[1] == pytest.approx(2 * wide.noise[0])
    more = bounds_tradeoff([(0, 10)], (5.0, 1.0), n_samples=40_000, n_features=4)
    assert more.noise[0] == pytest.approx(wide.noise[0] / 2)  # in standard errors
    local = bounds_tradeoff([(0, 10)], (5.0, 1.0), **PUBLIC, privacy="local")
    assert local.noise[0] == pytest.approx(100 * wide.noise[0])
    skewed = bounds_tradeoff([(0, 3), (0, 8), (0, 500)], stats.expon(), **PUBLIC)
    assert skewed.best == (0.0, 8.0)
    assert "low  high" in str(skewed) and "<table>" in skewed._repr_html_()


@pytest.mark.parametrize("wrong", [
    {"bounds_y": [(1, 0)]}, {"bounds_y": [(0, 1, 2)]}, {"bounds_y": [0, 1, 2, 3]},
    {"bounds_y": [(0, np.inf)]}, {"target": (0.0, 0.0)},
    {"target": np.arange(9.0)}, {"target": "y"}, {"target": stats.cauchy()}, {"epsilon": 0.0},
    {"r2": 1.0}, {"privacy": "none"},
])  # fmt: skip
def test_wrong_numbers_are_refused(wrong):
    params = {"bounds_y": [(0, 1)], "target": (0.0, 1.0), **PUBLIC, **wrong}
    with pytest.raises(ValueError):
        bounds_tradeoff(params.pop("bounds_y"), params.pop("target"), **params)
