"""Private quantiles: exact without noise, in order, covered, and refused after the charge."""

import numpy as np
import pytest
from scipy import stats

from skpriv import private_quantiles

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def test_without_noise_a_cell_holds_each_quantile():
    y = np.random.RandomState(0).normal(size=5000)
    exact = np.quantile(y, LEVELS, method="inverted_cdf")
    found = private_quantiles(y, LEVELS, bounds=(-5, 5), epsilon=np.inf, delta=1e-6)
    np.testing.assert_allclose(found, exact, atol=10 / 2**14)


def test_levels_may_come_in_any_order_and_do_not_cross():
    y = np.random.RandomState(0).normal(size=300)
    options = {"bounds": (-5, 5), "epsilon": 0.5, "delta": 1e-6, "random_state": 1}
    found = private_quantiles(y, LEVELS, **options)
    assert (np.diff(found) >= 0.0).all()
    np.testing.assert_array_equal(private_quantiles(y, LEVELS[::-1], **options), found[::-1])


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "lognormal", "counts"])
def test_intervals_cover(shape):
    # 100 draws of 5 quantiles: .95 gives fewer than 88 of 100 once in 500; .8 passes once in 60.
    rng = np.random.RandomState(0)
    y = {
        "normal": rng.normal(50, 10, 20_000),
        "lognormal": np.exp(rng.normal(3, 1, 20_000)),
        "counts": rng.poisson(4, 20_000).astype(float),
    }[shape]
    exact = np.quantile(np.clip(y, 0, 500), LEVELS, method="inverted_cdf")
    covered = []
    for seed in range(100):
        _, low, high = private_quantiles(
            y,
            LEVELS,
            bounds=(0, 500),
            epsilon=1.0,
            delta=1e-6,
            confidence_level=0.95,
            random_state=seed,
        )
        covered.append((low <= exact + 1e-9) & (exact <= high + 1e-9))
    assert np.sum(covered, axis=0).min() >= 100 - stats.binom.isf(0.002, 100, 0.05)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"levels": [0.0]}, "levels"),
        ({"levels": []}, "levels"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": "all"}, "bounds"),
        ({"confidence_level": 2.0}, "confidence_level"),
        ({"epsilon": 0.0}, "allows no answer"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, said):
    options = {"levels": [0.5], "bounds": (0, 1), "epsilon": 1.0, "delta": 1e-6, **options}
    with pytest.raises(ValueError, match=said):
        private_quantiles([0.5, 0.6], **options)


@pytest.mark.parametrize("y", [np.zeros((5, 2)), [[0.1, 0.2], [0.3, 0.4]], []])
def test_a_record_is_one_number(y):
    with pytest.raises(ValueError, match="one number for each record"):
        private_quantiles(y, [0.5], bounds=(0, 1), epsilon=1.0, delta=1e-6)
