"""Coverage and mean width of intervals, with ends that may be infinite, and with weights."""

import numpy as np
import pytest

from skpriv.metrics import interval_coverage_score, interval_mean_width


def test_ends_belong_to_the_interval_and_infinite_ones_cover():
    score = interval_coverage_score([0, 1, 2, 3], [0, 0, 0, 0], [1, 1, 1, 1])
    assert score == 0.5 and isinstance(score, float)
    assert interval_coverage_score([5, -5], [-np.inf, -np.inf], [np.inf, 0]) == 1.0
    assert interval_mean_width([0, 1], [1, 4]) == 2.0
    assert interval_mean_width([0.0, -np.inf], [1.0, 3.0]) == np.inf


def test_integer_weights_are_repetitions(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    f, low = rng.normal(size=(2, 40))
    high, weight = low + rng.exponential(size=40), rng.randint(1, 4, size=40)
    f_many, *many = (np.repeat(values, weight) for values in (f, low, high))
    coverage = interval_coverage_score(f, low, high, sample_weight=weight)
    assert coverage == pytest.approx(interval_coverage_score(f_many, *many))
    width = interval_mean_width(low, high, sample_weight=weight)
    assert width == pytest.approx(interval_mean_width(*many))
    assert interval_mean_width([0.0, -np.inf], [1.0, 3.0], sample_weight=[1, 0]) == 1.0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([0.0, 1.0], [0.0], [1.0]), "inconsistent"),
        (([0.0], [1.0], [0.0]), "low must not exceed high, but it does in some row"),
        (([np.nan], [0.0], [1.0]), "contain NaN"),
        (([0.0], [np.nan], [1.0]), "contain NaN"),
        (([0.0], [np.inf], [np.inf]), "low must be below"),
        (([[0.0, 1.0]], [0.0], [1.0]), "one-dimensional"),
        (([0], [0], [1], [-1.0]), "sample_weight"),
        (([0], [0], [1], [0.0]), "sample_weight"),
        (([0], [0], [1], [np.inf]), "sample_weight"),
        (([0], [0], [1], [np.nan]), "NaN"),
        (([0], [0], [1], [1.0, 1.0]), "inconsistent"),
    ],
)
def test_invalid_intervals_and_weights_are_rejected(arguments, message):
    f, low, high, *weight = arguments
    with pytest.raises(ValueError, match=message):
        interval_coverage_score(f, low, high, sample_weight=weight[0] if weight else None)
