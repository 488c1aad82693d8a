"""A told number has the error that the noise of its sums gives it."""

import inspect

import numpy as np
import pytest
from registry.doors import public
from registry.numbers import NUMBERS, Z

from skpriv.inspection._distribution import Distribution

SQUARES = {name: number for name, number in NUMBERS.items() if number.squares}


@pytest.mark.parametrize("name", NUMBERS)
def test_an_error_is_that_of_finite_differences(name):
    number = NUMBERS[name]
    step = number.scale

    def at(sums):
        return number.told(sums, number.scale)[0]

    slopes = [
        (at(number.sums + move) - at(number.sums - move)) / (2.0 * step)
        for move in step * np.eye(len(number.sums))
    ]
    error = number.told(number.sums, number.scale)[1]
    assert error == pytest.approx(number.scale * np.linalg.norm(slopes), rel=number.rtol)
    assert error > 0.0


@pytest.mark.parametrize("name", SQUARES)
def test_noise_at_its_quantile_makes_no_interval_narrower(name):
    """Where a square came out small by chance, the interval is that of the square itself."""
    number = SQUARES[name]
    scale, n = number.few
    low, high = number.interval(number.sums, 0.0, n)
    small = number.sums.copy()
    small[list(number.squares)] -= Z * scale
    found = number.interval(small, scale, n)
    assert found[0] <= low + 1e-12 and found[1] >= high - 1e-12


# Public classes with an error or an interval, and the lines of `NUMBERS` that they are made of
CARRIERS = {
    "PrivateValue": "private_off_policy_value",
    "PrivateScore": "private_score",
    "TableCheck": "describe, count",  # its counts have the noise of one count
    "Inference": "coefficient_law",
    "CoefficientDisplay": "coefficient_law",  # draws what `inference` says
    "IntervalDisplay": "confidence_interval",
    "TypicalPredictions": "confidence_interval",
}


def test_whatever_carries_an_error_is_made_of_numbers_that_are_tested():
    """A new public class with an error or an interval is one line above."""
    fields = {"std_error", "low", "high"}
    found = {
        name
        for name, thing in public().items()
        if inspect.isclass(thing)
        and fields & {*getattr(thing, "_fields", ()), *getattr(thing, "__annotations__", {})}
    }
    assert found - {"Numeric", "Date", "ColumnRange"} == set(CARRIERS)
    assert all(any(name.startswith(of) for name in NUMBERS) for of in CARRIERS.values())


@pytest.mark.parametrize("sampling", [0.0, 1.0])
def test_the_ends_of_a_quantile_are_where_its_excess_passes_its_noise(sampling):
    """The excess is 1 a step and 0 in the middle: two deviations are 20 steps, or 40."""
    law = Distribution.__new__(Distribution)
    law._count = 1200.0
    law.excess = lambda q: (np.arange(257.0) - 128.0, np.full(257, 100.0))
    _, low, high = law.quantile(0.5, 2.0, sampling)
    half = 2.0 * np.sqrt(100.0 + sampling * 1200.0 / 4.0)
    assert (low * 256, high * 256) == (127.0 - half, 128.0 + half)


@pytest.mark.parametrize("q", [0.1, 0.5])
def test_the_excess_of_a_count_has_the_noise_of_its_nodes(q):
    """By finite differences in all counts of the tree and in the number of values."""
    depth, count, scale = 4, 900.0, 3.0
    leaves = np.random.RandomState(0).uniform(20.0, 80.0, 2**depth)
    levels = [leaves]
    while len(levels[-1]) > 2:
        levels.append(levels[-1].reshape(-1, 2).sum(axis=1))
    sizes = np.cumsum([len(level) for level in levels])

    def excess(sums):
        return Distribution(np.split(sums[:-1], sizes[:-1]), scale, (sums[-1], scale)).excess(q)

    sums = np.concatenate([*levels, [count]])
    slopes = [(excess(sums + e)[0] - excess(sums - e)[0]) / 2.0 for e in np.eye(len(sums))]
    np.testing.assert_allclose(excess(sums)[1], scale**2 * np.square(slopes).sum(axis=0))
