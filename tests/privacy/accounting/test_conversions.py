"""The conversions against published numbers, an independent library, and their own definitions."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from skpriv.privacy._accounting._cost import (
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_rho,
)

GaussianPrivacyLoss = pytest.importorskip(
    "dp_accounting.pld.privacy_loss_mechanism"
).GaussianPrivacyLoss
compute_epsilon = pytest.importorskip("dp_accounting.rdp").compute_epsilon

epsilons = st.floats(1e-3, 1e3)
deltas = st.floats(1e-14, 0.5)


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 8.0, 60.0])
def test_gaussian_delta_agrees_with_an_independent_accountant(epsilon, mu):
    expected = GaussianPrivacyLoss(1 / mu).get_delta_for_epsilon(epsilon)
    assert gdp_delta(epsilon, mu) == pytest.approx(expected, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_concentrated_epsilon_agrees_with_renyi_orders(rho, delta):
    orders = [1 + math.exp(0.02 * k) for k in range(-400, 600)]
    expected, _ = compute_epsilon(orders, [rho * order for order in orders], delta)
    assert zcdp_epsilon(rho, delta) == pytest.approx(expected, rel=1e-3)
    assert zcdp_epsilon(rho, delta) <= expected * (1 + 1e-9)


@pytest.mark.parametrize("mu", [1e-5, 1e-7, 1e-9, 1e-12, 1e-16, 1e-30])
@pytest.mark.parametrize("t", [1e-20, 1e-3, 3.0])
def test_gaussian_delta_keeps_its_digits_where_other_forms_cancel(t, mu):
    # delta = phi(t - h) (R(t - h) - R(t + h)) is exp(t h) (phi(t) - t Phi(-t)) 2 h (1 + O(h^2)).
    phi = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    tail = 0.5 * math.erfc(t / math.sqrt(2))
    expected = math.exp(t * mu / 2) * (phi - t * tail) * mu
    assert gdp_delta(t * mu, mu) == pytest.approx(expected, rel=mu**2 + 1e-12, abs=0.0)


@settings(deadline=None)
@given(epsilons, deltas)
def test_largest_parameters_hold_and_are_the_largest(epsilon, delta):
    mu, rho = gdp_mu(epsilon, delta), zcdp_rho(epsilon, delta)
    assert gdp_delta(epsilon, mu) <= delta < gdp_delta(epsilon, mu * (1 + 1e-9))
    assert zcdp_delta(epsilon, rho) <= delta < zcdp_delta(epsilon, rho * (1 + 1e-7))
    assert rho <= mu * mu / 2  # the Gaussian bound is exact for what it covers


@settings(deadline=None)
@given(st.floats(1e-3, 30.0), deltas)
def test_smallest_epsilons_hold_and_are_the_smallest(mu, delta):
    for forward, back in ((gdp_epsilon, gdp_delta), (zcdp_epsilon, zcdp_delta)):
        epsilon = forward(mu, delta)
        assert back(epsilon, mu) <= delta
        assert epsilon == 0.0 or back(epsilon * (1 - 1e-7), mu) > delta


@pytest.mark.parametrize("epsilon_of", [gdp_epsilon, zcdp_epsilon])
@pytest.mark.parametrize("largest", [gdp_mu, zcdp_rho])
def test_limits(epsilon_of, largest):
    assert largest(1.0, 0.0) == 0.0
    assert largest(math.inf, 0.0) == largest(math.inf, 1e-6) == math.inf
    assert largest(0.0, 1e-6) > 0.0
    assert epsilon_of(0.0, 0.0) == 0.0
    assert epsilon_of(1.0, 0.0) == epsilon_of(math.inf, 1e-6) == math.inf
    for extreme in (1e-300, 1e10, 1e150):
        assert epsilon_of(extreme, 1e-6) >= 0.0
        assert largest(extreme, 1e-6) > 0.0
    assert gdp_delta(1.0, math.inf) == zcdp_delta(1.0, math.inf) == 1.0


def test_the_tiniest_parameters_end():
    assert zcdp_delta(1.0, 5e-324) == zcdp_epsilon(5e-324, 1e-6) == 0.0
    assert gdp_delta(1.0, 5e-324) == gdp_epsilon(5e-324, 1e-6) == 0.0


EXTREME = 0.0, 5e-324, 1e-300, 1e-12, 0.01, 0.5, 30.0, 1e3, 1e300


@pytest.mark.parametrize(
    "convert", [gdp_delta, gdp_epsilon, gdp_mu, zcdp_delta, zcdp_epsilon, zcdp_rho]
)
def test_no_setting_of_numpy_decides_whether_a_price_is_known(convert):
    """A fit was charged, and its report could not be printed, where a product of NumPy's numbers
    underflows."""
    convert = getattr(convert, "__wrapped__", convert)  # nothing that was found before
    for first, second in product(EXTREME, repeat=2):
        if "delta" not in convert.__name__ and second >= 1.0:
            continue  # no delta
        expected = convert(first, second)
        with np.errstate(all="raise"):
            assert convert(first, second) == expected
