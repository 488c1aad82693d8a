"""Steps that an enclosing mechanism has paid for."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from skpriv import BudgetAccountant
from skpriv.exceptions import BudgetExceeded
from skpriv.privacy import Budget, Cost, charge, prepaid


def test_a_step_may_not_ask_for_more():
    with BudgetAccountant(1.0) as accountant:
        with prepaid(Cost.from_mu(1.0)):
            charge(Cost.from_mu(0.6), "first")
            charge(Cost.from_mu(0.8), "second")  # .36 + .64 = 1
            with pytest.raises(BudgetExceeded):
                charge(Cost.from_mu(0.01), "third")
        assert accountant.charges == []


def test_only_known_to_zcdp():
    with prepaid(Cost.from_mu(100.0)), pytest.raises(BudgetExceeded):
        charge(Cost.from_budget(Budget(0.1, 1e-9)), "shuffled")


def test_ends_with_its_block_and_stays_in_its_thread():
    with BudgetAccountant(1.0, 1e-6) as accountant:
        with prepaid(Cost.from_mu(1.0)):
            with ThreadPoolExecutor() as pool:
                pool.submit(charge, Cost.from_mu(0.1), "elsewhere")
        charge(Cost.from_mu(0.1), "after")
    assert [name for name, *_ in accountant.charges] == ["elsewhere", "after"]


def test_a_suspended_generator_does_not_pay_for_others():
    def step():
        with prepaid(Cost.from_mu(1.0)):
            yield

    with BudgetAccountant(5.0, 1e-6) as accountant:
        steps = step()
        next(steps)
        charge(Cost.from_mu(0.1), "somebody else's")
        next(steps, None)
    assert len(accountant.charges) == 1


def test_selections_are_taken_off_the_allowance():
    with prepaid(Cost.from_rho(0.01)), pytest.raises(BudgetExceeded):
        charge(Cost.from_range(0.4), "rho = 0.02")
