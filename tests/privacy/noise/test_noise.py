"""Noise: one law whatever the source, at the price that is charged."""

import os
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from skpriv.privacy import Budget, GaussianNoise, GumbelNoise, NoiseSource
from skpriv.privacy._noise import _laws
from skpriv.privacy._noise._laws import opendp_top
from skpriv.records import as_rows

SCALES = [1e-300, 1e-12, 0.37, 1.0, 1e12, 1e300]
SOURCES = [None, 0]
# Of each test over its parameters (Bonferroni): secure draws have no seed, and must not fail by
# chance.
LEVEL = 5e-7
sources = pytest.mark.parametrize("random_state", SOURCES, ids=["secure", "NumPy"])


@sources
@pytest.mark.parametrize("scale", SCALES)
def test_gaussian_noise_has_its_law(random_state, scale):
    value = scale * np.linspace(-1e3, 1e3, 4000).reshape(50, 80)
    before = value.copy()
    drawn = NoiseSource(random_state).add(value, GaussianNoise(scale))
    assert drawn.shape == value.shape and np.array_equal(value, before)
    draws = (drawn - value).ravel() / scale
    level = LEVEL / (len(SCALES) * len(SOURCES) * 2)
    assert stats.kstest(draws, "norm").pvalue > level
    # coordinates are independent: neighbours are not correlated
    assert stats.kstest((draws[::2] + draws[1::2]) / sqrt(2.0), "norm").pvalue > level


@sources
def test_no_noise_leaves_the_value_alone(random_state):
    value = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(NoiseSource(random_state).add(value, GaussianNoise(0.0)), value)


def test_calibration_price_and_sums():
    mu = Budget(1.0, 1e-6).mu
    noise = GaussianNoise.calibrated(2.5, mu)
    assert noise.scale == pytest.approx(2.5 * 4.2247, rel=1e-3)  # Balle and Wang 2018
    assert noise.cost(2.5).gaussian == pytest.approx(mu**2, rel=1e-12)
    assert noise.summed(9).scale == pytest.approx(3.0 * noise.scale, rel=1e-15)
    assert GaussianNoise(0.0).cost(1.0).gaussian == np.inf


def test_secure_draws_do_not_follow_a_seed():
    assert NoiseSource(None).secure
    assert not NoiseSource(0).secure and not NoiseSource(np.random.RandomState(0)).secure
    for draw in (
        lambda source: source.add(np.zeros(50), GaussianNoise(1.0)),
        lambda source: source.permutation(50), lambda source: source.rows(50, 2**40),
    ):  # fmt: skip
        state = np.random.get_state()
        first = draw(NoiseSource(None))
        np.random.set_state(state)
        assert (draw(NoiseSource(None)) != first).any()


@pytest.mark.parametrize("random_state", SOURCES)
def test_permutations_are_permutations(random_state):
    assert sorted(NoiseSource(random_state).permutation(100)) == list(range(100))


@sources
def test_top_selects_with_the_exponential_mechanism(random_state):
    scores, scale, n = np.array([1.0, 0.0, 2.5, -1.0]), 1.3, 3000
    source, noise = NoiseSource(random_state), GumbelNoise(scale)
    found = np.array([source.top(scores, 2, noise) for _ in range(n)])
    weights = np.exp(scores / scale)
    first = np.bincount(found[:, 0], minlength=4)
    assert stats.chisquare(first, n * weights / weights.sum()).pvalue > LEVEL / 4
    # without replacement: the second, given that the first is 2
    second = np.bincount(found[found[:, 0] == 2, 1], minlength=4)[[0, 1, 3]]
    rest = weights[[0, 1, 3]]
    assert stats.chisquare(second, second.sum() * rest / rest.sum()).pvalue > LEVEL / 4


@pytest.mark.parametrize(("k", "rho"), [(1, 0.5), (7, 0.01), (3, 4.0)])
def test_top_costs_what_opendp_says(k, rho):
    noise = GumbelNoise.calibrated(0.8, k, rho)
    assert noise.cost(0.8, k).selected == pytest.approx(rho, rel=1e-12)
    assert opendp_top(noise.scale, k).map(0.8) == pytest.approx(rho, rel=1e-12)


def test_top_without_noise_is_exact():
    scores = np.array([0.0, 5.0, 3.0, 4.0])
    assert NoiseSource(0).top(scores, 3, GumbelNoise(0.0)).tolist() == [1, 3, 2]


def test_many_numbers_have_independent_noise_in_their_place():
    size = 100_003
    value = 1e3 * np.arange(size).reshape(1, size)
    draws = NoiseSource(None).add(value, GaussianNoise(2.0)) - value
    assert draws.shape == value.shape and np.abs(draws).max() < 20.0
    assert stats.kstest(draws.ravel() / 2.0, "norm").pvalue > LEVEL
    parts = [part[: size // 4] for part in np.array_split(draws.ravel(), 4)]
    assert np.abs(np.corrcoef(parts)[np.triu_indices(4, 1)]).max() < 6.0 / np.sqrt(size // 4)


def test_a_secret_order_has_a_seed_of_256_bits(monkeypatch):
    """Whoever guesses it knows which records a question was about."""
    sizes = []
    monkeypatch.setattr(
        _laws.secrets, "token_bytes", lambda size: sizes.append(size) or os.urandom(size)
    )
    source = NoiseSource()
    source.permutation(5)
    source.order(as_rows(np.zeros((5, 1)), np.zeros(5)))
    assert sizes == [32, 32]
