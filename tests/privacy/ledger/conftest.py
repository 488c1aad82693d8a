"""An accountant that tests of ledgers charge."""

import pytest

from skpriv.privacy import BudgetAccountant


@pytest.fixture
def accountant():
    with BudgetAccountant(50.0, 1e-3) as accountant:
        yield accountant
