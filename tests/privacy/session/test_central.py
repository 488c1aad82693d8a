"""The central model: all records in every query, exact composition of the shares."""

from math import sqrt

import numpy as np
import pytest
from scipy import stats

from skpriv import Budget
from skpriv.privacy import Cost, Query, open_session
from skpriv.privacy._noise._laws import Noise

BUDGET = Budget(0.7, 1e-5)
LEVEL = 1e-7  # of a test of a law: secure draws have no seed, and must not fail by chance


class Total(Query):
    """Sum of x over many coordinates."""

    name, shape, sensitivity = "total", (2000,), 1.7

    def sum(self, X, y):
        return np.full(2000, X.sum())


@pytest.mark.parametrize("share", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("random_state", [None, 0], ids=["secure", "NumPy"])
def test_noise_is_sensitivity_over_mu_and_the_root_of_the_share(share, random_state):
    X, y = np.full((500, 1), 0.25), np.zeros(500)
    answer = open_session("central", X, y, BUDGET, random_state).sum(Total(), share)
    assert answer.noise.scale == pytest.approx(1.7 / (BUDGET.mu * sqrt(share)), rel=1e-14)
    assert answer.n == 500
    law = stats.norm(125.0, answer.noise.scale)
    assert stats.kstest(answer.value, law.cdf).pvalue > LEVEL


class LaplaceNoise(Noise):
    """Pure noise of one coordinate."""

    def __init__(self, scale):
        self.scale = scale

    def cost(self, sensitivity):
        return Cost.from_epsilon(sensitivity / self.scale)

    def added(self, value, rng):
        return value + rng.laplace(scale=self.scale, size=np.shape(value))


class PureTotal(Total):
    """One coordinate with pure noise."""

    name, shape = "pure total", (1,)

    def sum(self, X, y):
        return np.array([X.sum()])

    def local_noise(self, budget):
        return LaplaceNoise(self.sensitivity / budget.epsilon)


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.5), (0.1,) * 10, (0.9, 1e-9), (0.2, 0.3)])
@pytest.mark.parametrize(
    ("currency", "query", "budget", "whole"),
    [("gdp", Total(), BUDGET, BUDGET.mu**2), ("pure", PureTotal(), Budget(2.0), 2.0)],
)
def test_prices_are_parts_of_the_budget(shares, currency, query, budget, whole):
    """Of mu^2, or of the epsilon of pure noise."""
    session = open_session("central", np.zeros((9, 1)), np.zeros(9), budget, 0, currency=currency)
    for share in shares:
        session.sum(query, share)
    costs = [row.cost.amount(currency) for row in session.report.rows]
    np.testing.assert_allclose(costs, whole * np.array(shares), rtol=1e-9)
    assert session.report.total.amount(currency) == pytest.approx(whole * sum(shares), rel=1e-9)


def test_two_answers_have_independent_noise():
    session = open_session("central", np.zeros((9, 1)), np.zeros(9), BUDGET, 0)
    first, second = (session.sum(Total(), 0.5).value for _ in range(2))
    assert stats.pearsonr(first, second).pvalue > LEVEL
