"""Costs: what adds up, what fits, and that every route is a valid bound."""

import math

import pytest
from hypothesis import given, settings, strategies as st

from skpriv.privacy import Budget, Cost
from skpriv.privacy._accounting._cost import gdp_epsilon, zcdp_epsilon

pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

amounts = st.one_of(st.just(0.0), st.floats(1e-4, 3.0))
costs = st.builds(
    lambda mu, rho, epsilon, approximate, delta: (
        Cost.from_mu(mu)
        + Cost.from_rho(rho)
        + Cost.from_epsilon(epsilon)
        + Cost.from_budget(Budget(approximate, delta))
    ),
    amounts,
    amounts,
    amounts,
    amounts,
    st.sampled_from([0.0, 1e-9, 1e-7]),
)


@pytest.mark.parametrize("parts", [3, 4, 7, 10, 1000])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(0.01, 1e-9), Budget(12.0, 1e-5)])
def test_a_budget_in_equal_shares_is_spent_exactly(parts, budget):
    for whole, share in (
        (Cost.from_mu(budget.mu), Cost.from_mu(budget.mu * math.sqrt(1 / parts))),
        (Cost.from_rho(budget.rho), Cost.from_rho(budget.rho / parts)),
        (
            Cost.from_budget(budget),
            Cost.from_budget(Budget(budget.epsilon / parts, budget.delta / parts)),
        ),
    ):
        total = sum([share] * parts, Cost())
        assert whole.fits(budget)
        assert total.fits(budget)
        assert not (total + share).fits(budget)


def test_pure_shares_fit_a_pure_budget():
    total = sum([Cost.from_epsilon(0.1)] * 10, Cost())
    assert total.fits(Budget(1.0))
    assert not (total + Cost.from_epsilon(1e-6)).fits(Budget(1.0))
    assert not Cost.from_mu(1e-3).fits(Budget(1.0))
    assert total.epsilon() == pytest.approx(1.0)


def test_each_route_is_the_best_somewhere():
    assert Cost.from_mu(1.0).epsilon(1e-6) == gdp_epsilon(1.0, 1e-6)
    assert Cost.from_rho(0.5).epsilon(1e-6) == zcdp_epsilon(0.5, 1e-6)
    many = sum([Cost.from_epsilon(0.01)] * 10_000, Cost())  # epsilon 100 if simply added
    assert many.epsilon(1e-6) == pytest.approx(zcdp_epsilon(0.5, 1e-6))
    assert (Cost.from_rho(0.01) + Cost.from_epsilon(0.001)).epsilon(1e-6) <= (
        zcdp_epsilon(0.01, 1e-6) + 0.001
    )


def test_mixed_costs_are_no_less_than_the_exact_composition():
    gaussian = pld.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    laplace = pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-3)
    exact = gaussian.compose(gaussian).compose(laplace).get_epsilon_for_delta(1e-6)
    cost = Cost.from_mu(0.5) + Cost.from_mu(0.5) + Cost.from_epsilon(0.5)
    assert exact - 1e-2 <= cost.epsilon(1e-6) <= 1.3 * exact


@settings(deadline=None)
@given(costs, costs)
def test_addition_and_maximum_are_monotone(one, other):
    both, largest = one + other, Cost.maximum([one, other])
    for delta in (0.0, 1e-8, 1e-6, 1e-3):
        apart = max(one.epsilon(delta), other.epsilon(delta))
        assert apart <= largest.epsilon(delta) <= both.epsilon(delta)
    assert Cost.maximum([one, one]) == one == one + Cost()


@settings(deadline=None)
@given(costs, st.floats(0.01, 5.0))
def test_what_fits_has_the_guarantee(cost, epsilon):
    budget = Budget(epsilon, 1e-6)
    assert cost.fits(budget) == (cost.epsilon(1e-6) <= epsilon * (1 + 1e-9))


def test_delta_is_never_overspent():
    assert Cost.from_budget(Budget(0.5, 2e-6)).epsilon(1e-6) == math.inf
    full = Cost.from_budget(Budget(0.5, 1e-6))
    assert full.epsilon(1e-6) == 0.5
    assert (full + Cost.from_mu(1e-6)).epsilon(1e-6) == math.inf
    assert not (full + Cost.from_mu(1e-6)).fits(Budget(1.0, 1e-6))


@pytest.mark.parametrize(
    "cost",
    [
        Cost.from_mu(math.inf),
        Cost.from_rho(math.inf),
        Cost.from_epsilon(math.inf),
        Cost.from_budget(Budget(math.inf)),
        Cost.from_budget(Budget(math.inf, 1e-6)),
    ],
)
def test_what_is_not_private_fits_no_finite_budget(cost):
    assert not cost.fits(Budget(1e6, 0.5))
    assert cost.fits(Budget(math.inf))
    assert (cost + cost + Cost.from_mu(1.0)).epsilon(0.5) == math.inf


def test_rejects_what_is_not_a_cost():
    for make in (Cost.from_mu, Cost.from_rho, Cost.from_epsilon):
        for value in (-1.0, math.nan):
            with pytest.raises(ValueError, match="at least 0"):
                make(value)
    with pytest.raises(ValueError, match="delta must be at least 0"):
        Cost(delta=math.nan)
    with pytest.raises(TypeError):
        Cost() + 1
