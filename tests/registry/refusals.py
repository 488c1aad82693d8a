"""Refusals that come before anything is charged."""

from contextlib import contextmanager

import pytest

from skpriv import BudgetAccountant


@contextmanager
def uncharged(match=None, error=ValueError, epsilon=10.0):
    """An error of which an accountant with so much to spend sees no charge."""
    with BudgetAccountant(epsilon, 1e-3) as accountant, pytest.raises(error, match=match) as caught:
        yield caught
    assert accountant.charges == []
