"""Numbers on a grid: released noise, rounding, and shares that hide all but their sum."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from skpriv.privacy._accounting._lattice import WIDTH
from skpriv.privacy._noise import _lattice
from skpriv.privacy._noise._lattice import (
    additive_shares,
    gaussian_on_grid,
    grid,
    rounded,
    summed_shares,
)

SCALES = [5e-324, 1e-300, 1e-12, 0.37, 1.0, np.nextafter(1.0, 0.0), 1e12, 1e300]


@pytest.fixture
def entropy(global_random_seed):
    return np.random.RandomState(global_random_seed).bytes


@pytest.mark.parametrize("scale", SCALES)
def test_released_noise_is_no_less_than_its_scale(scale):
    """What is rounded to the grid at random is Gaussian noise of at least this scale, exactly."""
    step, variance = grid(scale)
    squared = (Fraction(scale) / Fraction(step)) ** 2
    assert 0 <= variance - int(WIDTH) ** 2 - squared < 1
    assert variance <= 2**90
    if scale > 1e-300:
        assert 2**44 <= Fraction(scale) / Fraction(step) < 2**45
        assert variance / float(squared) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("scale", SCALES)
def test_released_numbers_are_exact_sums_on_the_grid(monkeypatch, scale, global_random_seed):
    """Each is the double next to point plus noise, and the law is about the exact value."""
    rng, given = np.random.RandomState(global_random_seed), {}

    def drawn(variance, centers, entropy):
        given["centers"], given["z"] = centers, rng.randint(-(2**52), 2**52, len(centers))
        given["z"][:9] = 0
        return given["z"]

    monkeypatch.setattr(_lattice, "discrete_gaussian", drawn)
    step, _ = grid(scale)
    values = rng.normal(size=600) * np.repeat(step * 2.0 ** np.array([-30, 0, 3, 40, 51, 60]), 100)
    values[:5] = 0.0, -0.0, 5e-324, -step / 2.0, step * 2.0**52
    released = gaussian_on_grid(values.reshape(30, 20), scale).ravel()
    for value, center, z, seen in zip(values, given["centers"], given["z"], released, strict=True):
        whole = Fraction(value) / Fraction(step) - Fraction(center)
        if not (abs(value) < 1e-300 and step > 1.0):  # what underflows is closer than 2^-1000 steps
            assert whole.denominator == 1 and abs(center) <= 0.5
        exact = (round(whole) + int(z)) * Fraction(step)
        assert seen == float(exact)  # correctly rounded
        assert seen != 0.0 or not np.signbit(seen)  # no sign of a zero tells more than the sum


def test_what_is_no_number_is_released_as_zero():
    released = gaussian_on_grid(np.array([np.nan, 0.0]), 1.0)
    assert np.isfinite(released).all() and np.abs(released).max() < 20.0
    assert not np.isnan(gaussian_on_grid(np.array([np.inf, -np.inf, 1e308]), 1e-3)).any()


def test_numbers_are_rounded_to_the_grid():
    values = np.array([0.0, 0.24, 0.26, -0.26, np.nan, np.inf, -np.inf, 1e300])
    assert rounded(values, 0.5).tolist() == [0, 0, 1, -1, 0, 0, 0, 0]


@pytest.mark.parametrize("shares", [2, 3, 10])
def test_shares_add_up(shares):
    values = np.array([0, 1, -1, 2**62, -(2**62)])
    parts = additive_shares(values, shares)
    assert parts.shape == (shares, 5) and parts.dtype == np.uint64
    np.testing.assert_array_equal(summed_shares(parts), values)


def enumerated(value, shares, modulus):
    """Every outcome of the shares of a value modulo a small number, all as likely."""
    for words in itertools.product(range(modulus), repeat=shares - 1):
        given = np.array(words, dtype="<u8").tobytes()
        parts = additive_shares(np.array([value]), shares, lambda n, given=given: given)
        yield tuple(int(part) % modulus for part in parts.ravel())


@pytest.mark.parametrize("modulus", [4, 8])
def test_one_server_learns_nothing_but_the_sum(modulus):
    """Its messages and the sum have the same law for all records of the same sum: exactly.

    Of two servers the first one sees its shares of all users, and the total of the second.
    """
    laws = []
    for values in ((0, 3, 1), (2, 2, 0), (1, 0, 3)):
        law = Counter()
        for outcome in itertools.product(*(enumerated(v, 2, modulus) for v in values)):
            mine = tuple(first for first, _ in outcome)
            law[mine, sum(second for _, second in outcome) % modulus] += 1
        laws.append(law)
    assert laws[0] == laws[1] == laws[2]
    assert set(laws[0].values()) == {1}  # uniform, for each of the messages that it may get
    assert len(laws[0]) == modulus**3
    only = Counter(second for first, second in enumerated(3, 2, modulus))
    assert set(only.values()) == {1} and len(only) == modulus
