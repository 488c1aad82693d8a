"""Budgets: validation, and conversions both ways."""

import math
import pickle
from dataclasses import fields
from decimal import Decimal

import pytest

from skpriv.exceptions import PrivacyError
from skpriv.privacy import Budget, Cost


@pytest.mark.parametrize("epsilon", [-1.0, math.nan])
def test_rejects_an_epsilon_that_is_no_guarantee(epsilon):
    with pytest.raises(ValueError, match="epsilon must be at least 0"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, math.inf])
def test_rejects_a_delta_that_is_no_guarantee(delta):
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\)"):
        Budget(1.0, delta)


# Whatever takes a budget or a cost as numbers, by the name of the number
NUMBERS = [
    *((field.name, lambda value, name=field.name: Budget(**{"epsilon": 1.0, name: value}))
      for field in fields(Budget)),
    *((field.name, lambda value, name=field.name: Cost(**{name: value})) for field in fields(Cost)),
    ("mu", Cost.from_mu), ("rho", Cost.from_rho), ("epsilon", Cost.from_epsilon),
    ("eta", Cost.from_range),
    ("mu", lambda value: Budget.from_mu(value, 1e-6)),
    ("rho", lambda value: Budget.from_rho(value, 1e-6)),
]  # fmt: skip


@pytest.mark.parametrize("value", ["1", None, True, 1j, Decimal(1)])
@pytest.mark.parametrize("name, make", NUMBERS)
def test_rejects_what_is_not_a_number(name, make, value):
    with pytest.raises(TypeError, match=f"{name} must be a real number"):
        make(value)


@pytest.mark.parametrize("name, make", NUMBERS)
def test_rejects_a_number_that_no_float_holds(name, make):
    with pytest.raises(ValueError, match=f"{name}.*float"):
        make(10**400)


def test_is_a_value_that_does_not_change():
    budget = Budget(1, 1e-6)
    assert budget == Budget(1.0, 1e-6) == pickle.loads(pickle.dumps(budget))
    with pytest.raises(AttributeError):
        budget.epsilon = 2.0


def test_pure_and_infinite_budgets():
    assert Budget(1.0).mu == Budget(1.0).rho == 0.0
    assert Budget(math.inf).mu == Budget(math.inf).rho == math.inf
    assert Budget.from_mu(0.0, 0.0) == Budget(0.0)
    assert Budget.from_rho(math.inf, 0.0) == Budget(math.inf)
    for make in (Budget.from_mu, Budget.from_rho):
        with pytest.raises(PrivacyError, match="give a delta above 0"):
            make(1.0, 0.0)
        with pytest.raises(ValueError, match="at least 0"):
            make(math.nan, 1e-6)
