"""Randomised response: one exact draw, two integers bound the ratio, counts are binomial."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skpriv import _wire as _codebook
from skpriv.privacy import Codebook, NoiseSource, ResponseNoise, index_weights

EPSILONS = [0.1, 0.5, 1.0, 4.0, 20.0]
LEVEL = 1e-7  # secure draws have no seed, and must not fail by chance


def law_of_bit(monkeypatch, bit, weights):
    """Exact probability that a one is sent, by giving every value to the one draw."""
    total, ones = sum(weights), 0
    monkeypatch.setattr(_codebook, "index_weights", lambda epsilon: weights)
    for drawn in range(total):

        def randbelow(bound, drawn=drawn):
            assert bound == total  # the same for both bits
            return drawn

        monkeypatch.setattr(_codebook.secrets, "randbelow", randbelow)
        ones += int(ResponseNoise(1.0).sent(np.array([bit]), NoiseSource())[0])
    return Fraction(ones, total)


@pytest.mark.parametrize("weights", [(5, 2), (7, 3), (11, 1), (4, 4), (2, 1)])
def test_the_ratio_of_a_report_is_that_of_the_weights(monkeypatch, weights):
    one, zero = (law_of_bit(monkeypatch, bit, weights) for bit in (True, False))
    near, far = weights
    assert one == Fraction(near, near + far) and zero == Fraction(far, near + far)
    assert max(one / zero, (1 - zero) / (1 - one)) == Fraction(near, far)  # attained


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_report_costs_at_most_epsilon(epsilon):
    law = ResponseNoise(epsilon)
    near, far = index_weights(epsilon)
    assert Fraction(near, far) <= Fraction(np.exp(epsilon)) * (1 + Fraction(1, 2**50))
    assert epsilon - 1e-9 < law.log_ratio <= epsilon * (1.0 + 1e-7)
    assert law.cost(1.0).pure == epsilon and law.cost(7.0).pure == epsilon
    assert law.truth == pytest.approx(1.0 / (1.0 + np.exp(-epsilon)))
    assert law.gain == pytest.approx(2.0 * law.truth - 1.0, rel=1e-6)
    heights = law.density(np.array([1.0, -1.0]))
    assert heights.sum() == pytest.approx(2.0)
    assert np.log(heights[0] / heights[1]) <= law.log_ratio + 1e-12


@pytest.mark.parametrize("epsilon", [40.0, 50.0, 200.0])
def test_a_probability_that_rounds_to_one_has_a_price(epsilon):
    for law in (ResponseNoise(epsilon), Codebook(4, epsilon, 64, 5)):
        assert law.log_ratio == pytest.approx(min(epsilon, 64.0), rel=1e-12)


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_devices_and_simulations_have_the_same_law(random_state, epsilon):
    n, law = 20_000, ResponseNoise(epsilon)
    bits = np.arange(n) % 4 == 0
    sent = law.sent(bits, NoiseSource(random_state))
    for bit, expected in ((True, law.truth), (False, 1.0 - law.truth)):
        found = int(sent[bits == bit].sum())
        assert stats.binomtest(found, int((bits == bit).sum()), expected).pvalue > LEVEL


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_estimates_are_unbiased_with_the_stated_deviation(epsilon):
    """By the exact law of a count: true ones kept, and others turned."""
    n, true = 40, 13
    law = ResponseNoise(epsilon).summed(n)
    ones = np.arange(n + 1)
    kept, turned = stats.binom(true, law.truth), stats.binom(n - true, 1.0 - law.truth)
    mass = np.convolve(kept.pmf(np.arange(true + 1)), turned.pmf(np.arange(n - true + 1)))
    estimates = law.estimate(ones)
    assert (np.diff(estimates) > 0.0).all()
    assert mass @ estimates == pytest.approx(true)
    assert np.sqrt(mass @ (estimates - true) ** 2) == pytest.approx(law.scale)
    assert ResponseNoise(epsilon, 3).plus(ResponseNoise(epsilon, 4)) == ResponseNoise(epsilon, 7)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 1.0])
def test_counts_of_random_users_are_binomial(part):
    """Over who the users are and what they draw, summed out term by term."""
    n, law = 25, ResponseNoise(1.0)
    whole = np.zeros(n + 1)
    for true, weight in enumerate(stats.binom(n, part).pmf(np.arange(n + 1))):
        kept, turned = stats.binom(true, law.truth), stats.binom(n - true, 1.0 - law.truth)
        whole += weight * np.convolve(
            kept.pmf(np.arange(true + 1)), turned.pmf(np.arange(n - true + 1))
        )
    assert_allclose(whole, stats.binom(n, law.share(part)).pmf(np.arange(n + 1)), atol=1e-13)


def test_equal_weights_say_nothing():
    law = ResponseNoise(0.0)
    assert law.gain == 0.0 and law.scale == np.inf and law.truth == 0.5
