"""PrivUnit: its price, its law, and the Hadamard rows that spread blocks over users."""

from math import exp

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.linalg import hadamard

from skpriv.exceptions import PrivacyError
from skpriv.privacy import NoiseSource, PrivUnitNoise, hadamard_entries
from skpriv.privacy._noise._privunit import UnitCap, best_cap, walsh_hadamard

LAWS = [(3, 0.1), (3, 1.0), (8, 4.0), (21, 1.0), (21, 8.0), (200, 2.0), (5151, 0.5)]
SIGNIFICANCE = 1e-5


@pytest.mark.parametrize("size, epsilon", LAWS)
def test_densities_of_a_report_differ_by_epsilon_and_no_more(size, epsilon):
    cap = best_cap(size, epsilon)
    part = stats.beta((size - 1) / 2, (size - 1) / 2).sf((1.0 + cap.height) / 2.0)
    assert cap.part == pytest.approx(part, rel=1e-9)
    inside, outside = cap.probability / part, (1.0 - cap.probability) / (1.0 - part)
    assert inside / outside == pytest.approx(exp(epsilon), rel=1e-9)
    assert PrivUnitNoise(epsilon, size, 1.0, 1).cost(1.0).epsilon() == epsilon


@pytest.mark.parametrize("size, epsilon", LAWS)
def test_the_cap_has_the_largest_mean_and_isotropic_errors(size, epsilon):
    cap = best_cap(size, epsilon)
    others = [UnitCap.at(size, epsilon, height).mean for height in np.linspace(0.0, 1.0, 800)[:-1]]
    assert cap.mean >= max(others)
    assert cap.along - cap.mean**2 == pytest.approx(cap.across, rel=1e-5)


@pytest.mark.parametrize("epsilon, length", [(1.0, 11.4), (4.0, 3.1), (8.0, 1.8)])
def test_lengths_of_reports_are_the_known_ones(epsilon, length):
    assert 1.0 / best_cap(21, epsilon).mean == pytest.approx(length, abs=0.05)


@pytest.mark.parametrize("size, epsilon", LAWS)
def test_reports_have_the_stated_law(size, epsilon, global_random_seed):
    n, cap = 20_000 if size < 1000 else 4_000, best_cap(size, epsilon)
    v = np.random.RandomState(global_random_seed).normal(size=size)
    v /= np.linalg.norm(v)
    reports = cap.reports(np.tile(v, (n, 1)), NoiseSource(global_random_seed).rng)
    assert_allclose(np.linalg.norm(reports, axis=1), 1.0, atol=1e-12)
    along = reports @ v
    inside = along >= cap.height
    assert stats.binomtest(int(inside.sum()), n, cap.probability).pvalue > SIGNIFICANCE
    # conditionally, the height is that of a uniform point of the sphere
    law, edge = stats.beta((size - 1) / 2, (size - 1) / 2), (1.0 + cap.height) / 2.0
    tail = law.sf((1.0 + along) / 2.0)
    for values in (tail[inside] / law.sf(edge), (tail[~inside] - law.sf(edge)) / law.cdf(edge)):
        assert stats.kstest(values, "uniform").pvalue > SIGNIFICANCE
    # unbiased, with the stated moments
    quantile = stats.norm.isf(SIGNIFICANCE / size)
    deviation = abs(reports.mean(axis=0) - cap.mean * v)
    assert (deviation <= quantile * np.sqrt(max(cap.along, cap.across) / n)).all()
    assert np.square(along).mean() == pytest.approx(cap.along, rel=0.1)


@pytest.mark.parametrize("size", [3, 21, 231, 20_301])
def test_large_budgets_do_not_overflow(size):
    for epsilon in (30.0, 700.0, 1e6):
        cap = best_cap(size, epsilon)
        assert 0.0 < cap.mean <= 1.0 and 0.0 <= cap.along <= 1.0


def test_there_is_no_secure_sampler():
    with pytest.raises(PrivacyError, match="random_state"):
        best_cap(3, 1.0).reports(np.eye(3), NoiseSource(None).rng)


def test_the_transform_is_sylvesters_matrix():
    index = np.arange(16)
    assert_array_equal(walsh_hadamard(np.eye(16)), hadamard(16))
    assert_array_equal(hadamard_entries(index[:, None], index), hadamard(16))
    assert_array_equal(walsh_hadamard(np.ones((1, 3))), np.ones((1, 3)))


@pytest.mark.parametrize("blocks, rows", [(1, 1), (2, 2), (3, 4), (8, 8), (9, 16)])
def test_there_is_a_column_for_every_block(blocks, rows):
    assert PrivUnitNoise(1.0, 4, 1.0, blocks).rows == rows
