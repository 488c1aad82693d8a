"""What sessions call: never above what is proved, never below the local guarantee."""

import math

import numpy as np
import pytest

from skpriv import Budget
from skpriv.privacy import _amplification as _sorter
from skpriv.privacy._amplification import amplified, amplified_epsilon


def codebook_top(local_epsilon, K=64, m=22):
    return m / (m + (K - m) * math.exp(-local_epsilon))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 100, 10_000, 10**6])
def test_amplified_budgets_hold_and_help(epsilon, n):
    budget = Budget(epsilon, 1e-6)
    local = amplified(budget, n)
    # The sum of the reports is a function of them: nothing can amplify by more than sqrt(n).
    assert budget.mu <= local.mu <= budget.mu * math.sqrt(n) * (1 + 1e-9)
    assert n < 100 or local.mu > budget.mu


@pytest.mark.parametrize("epsilon, n", [(0.1, 30), (0.1, 100), (1.0, 10**4)])
def test_the_bound_less_the_margin(epsilon, n):
    budget = Budget(epsilon, 1e-6)
    proved = _sorter.sorter_mu(budget, n, _sorter.reach_of())
    mu = amplified(budget, n).mu
    assert mu == pytest.approx((1.0 - 1e-4) * max(proved, budget.mu / (1 - 1e-4)), rel=1e-9)


def test_the_shape_of_inputs():
    budget = Budget(1.0, 1e-6)
    mus = [amplified(budget, 1000, dimension=k).mu for k in (1, 2, 10, None)]
    assert (np.diff(mus) < 0.0).all()
    with pytest.raises(ValueError, match="dimension=0"):
        amplified(budget, 1000, dimension=0)


def test_no_amplification_without_delta_or_beyond_the_range():
    for budget in (Budget(1.0, 0.0), Budget(40.0, 1e-6), Budget(1.0, 1e-6), Budget(1e-9, 1e-6)):
        assert amplified(budget, 1) == budget
        assert amplified_epsilon(budget, 1, codebook_top) == pytest.approx(budget.epsilon, rel=1e-3)
    assert amplified(Budget(1.0), 10**6) == Budget(1.0)
    assert amplified_epsilon(Budget(1.0), 10**6, codebook_top) == 1.0
    for budget in (Budget(9e-7, 1e-6), Budget(31.0, 1e-6)):  # just beyond both ends
        assert amplified(budget, 10**5) == budget
        assert amplified_epsilon(budget, 10**5, codebook_top) == budget.epsilon
    with pytest.raises(ValueError, match="n=0"):
        amplified(Budget(1.0, 1e-6), 0)
    with pytest.raises(ValueError, match="n=0"):
        amplified_epsilon(Budget(1.0, 1e-6), 0, codebook_top)


def test_large_blocks_count_as_the_largest():
    budget = Budget(1.0, 1e-6)
    assert amplified(budget, 10**12) == amplified(budget, 10**7)
    largest = amplified_epsilon(budget, 10**7, codebook_top)
    assert amplified_epsilon(budget, 10**12, codebook_top) == largest


@pytest.mark.parametrize("epsilon, n", [(0.5, 10**3), (1.0, 10**5), (4.0, 10**4)])
def test_local_epsilons_are_proved_with_a_margin(epsilon, n):
    local = amplified_epsilon(Budget(epsilon, 1e-6), n, codebook_top)
    assert local > epsilon
    larger = local * (1.0 + 1e-4)
    proved = _sorter.two_level_delta(epsilon, larger, n, codebook_top(larger), 1e-6)
    assert 0.99e-6 <= proved <= 1e-6 * (1.0 + 1e-3)


def test_the_likely_values_are_those_of_the_local_epsilon_that_is_returned():
    # m and K may change with it: what is proved must be proved for what will be sent.
    def jumping(local_epsilon):
        return codebook_top(local_epsilon, m=30 if local_epsilon < 4.9 else 2)

    budget = Budget(1.0, 1e-6)
    local = amplified_epsilon(budget, 10**4, jumping)
    assert _sorter._pure_delta(budget, local, 10**4, jumping) <= budget.delta


def test_known_values():
    # The table of docs/mathematics/shuffle.md.
    for epsilon, row in {
        0.5: (1.167, 1.595, 1.967), 1.0: (1.352, 1.761, 2.125), 4.0: (1.749, 2.200, 2.575)
    }.items():  # fmt: skip
        for n, mu in zip((10**3, 10**4, 10**5), row, strict=True):
            assert amplified(Budget(epsilon, 1e-6), n).mu == pytest.approx(mu, abs=2e-3)
