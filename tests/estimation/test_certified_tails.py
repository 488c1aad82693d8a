"""Quantiles by Monte Carlo: norms of noise, and sums with a normal part of any scale."""

import numpy as np
import pytest
from registry.noise import goe
from scipy import stats

from skpriv._estimation._intervals import main_region, norm_quantile, operator_quantile

LEVEL = 1e-4  # family-wise, of each Monte Carlo test over its parameters
DRAWS = 20_000


FAILURES = (0.3, 0.05, 0.005)


@pytest.mark.parametrize("p", [1, 2, 5, 12])
@pytest.mark.parametrize("target_scale", [0.0, 0.7])
def test_the_quantile_of_symmetric_noise(p, target_scale):
    """||N_b - N_A theta|| for a GOE N_A, ||theta|| = 1.5: exceeded as often as it should."""
    rng = np.random.RandomState(p)
    theta = rng.normal(size=p)
    theta *= 1.5 / np.linalg.norm(theta)
    noise = target_scale * rng.normal(size=(DRAWS, p)) - goe(rng, p, DRAWS) @ theta
    b, a = target_scale**2, 1.5**2
    for failure in FAILURES:
        quantile = norm_quantile(b + a, b + a / 2.0, p, failure)
        exceeded = int((np.linalg.norm(noise, axis=1) > quantile).sum())
        assert stats.binomtest(exceeded, DRAWS, failure).pvalue > LEVEL / 24


@pytest.mark.parametrize("p", [1, 2, 40, 400])
@pytest.mark.parametrize("failure", [0.5, 0.1, 1e-3, 1e-8])
@pytest.mark.parametrize("rest", [0.5, 0.9, 1.0])  # what noisy equations have
def test_norm_quantiles_have_the_right_order(p, failure, rest):
    quantile = norm_quantile(1.0, rest, p, failure)
    assert norm_quantile(1.0, rest, p, failure / 2) > quantile
    assert norm_quantile(4.0, 4.0 * rest, p, failure) == pytest.approx(2.0 * quantile, rel=1e-12)
    # between that of one variable and that of all of them with the larger variance
    assert stats.chi.isf(failure, 1) * (1 - 1e-9) <= quantile
    assert quantile <= stats.chi.isf(failure, p) * (1 + 2e-4)
    if rest == 1.0:  # noise that is independent in all coordinates
        assert quantile == pytest.approx(stats.chi.isf(failure, p), rel=1e-12)
    assert norm_quantile(0.0, 0.0, p, failure) == 0.0


@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_the_operator_quantile_is_an_upper_bound(p):
    draws = 4000
    values = np.linalg.eigvalsh(0.6 * goe(np.random.RandomState(p), p, draws))
    for failure in FAILURES:
        exceeded = int((values[:, -1] > operator_quantile(0.6, p, failure)).sum())
        assert stats.binomtest(exceeded, draws, failure, alternative="greater").pvalue > LEVEL / 12


@pytest.mark.parametrize("failure", [0.05, 0.01])
def test_the_region_of_the_main_part_has_its_probability(failure):
    """An exponential and a normal variable leave it with this probability, in 400,000 draws."""
    t, q = main_region(failure)
    rng = np.random.RandomState(0)
    a, b = rng.exponential(size=400_000), rng.normal(size=400_000)
    outside = (b > q) | (a > t * (1.0 - (np.maximum(b, 0.0) / q) ** 2))
    assert outside.mean() == pytest.approx(failure, abs=5.0 * np.sqrt(failure / 400_000))
    # In it sqrt(2 V a) + G b is at most what intervals take, whatever V and G are
    for size in (0.0, 0.1, 1.0, 10.0, 1e3):
        most = (np.sqrt(2.0 * a) + size * b)[~outside].max()
        assert most <= np.sqrt(2.0 * t + (size * q) ** 2)
        assert most >= 0.9 * np.sqrt(2.0 * t + (size * q) ** 2)


@pytest.mark.parametrize("size", [0.01, 0.3])
def test_the_quantile_is_one_of_the_worst_sum(size, global_random_seed):
    """Poisson terms of this size and variance 1, with a normal variable of an adverse scale.

    The scale is chosen after the sum is seen, as the scale of the noise may depend on the records:
    for a positive normal variable the largest miss over scales, for a negative one scale 0.
    """
    rng = np.random.RandomState(global_random_seed)
    failure, draws = 0.05, 200_000
    t, q = main_region(failure)
    total = size * (rng.poisson(size**-2.0, size=draws) - size**-2.0)
    normal, missed, halved = rng.normal(size=draws), np.zeros(draws, bool), np.zeros(draws, bool)
    for scale in (0.0, *np.geomspace(0.05, 50.0, 40)):
        h = np.sqrt(2.0 * t + (scale * q) ** 2) + size * t / 3.0
        missed |= total + scale * normal > h
        halved |= total + scale * normal > h / 2.0
    assert missed.mean() <= failure < halved.mean()
