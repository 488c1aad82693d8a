"""Shares and costs in few digits: sums of them must not stand still."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skpriv.exceptions import PrivacyError
from skpriv.privacy import MODELS, Budget, Cost, Query, open_session, split


class Total(Query):
    name = "total"
    shape = (1,)
    sensitivity = 1.0

    def sum(self, X, y):
        return np.array([y.sum()])


# Each is next to nothing beside 1 in its own digits: a sum with it was 1 again
TINY = [
    np.float16(1e-4), np.array(1e-4, dtype=np.float16), np.float32(1e-8), 1e-17,
    np.longdouble(1e-21), Fraction(1, 10**18),
]  # fmt: skip


@pytest.mark.parametrize("share", TINY, ids=lambda share: type(share).__name__)
@pytest.mark.parametrize("privacy", sorted(set(MODELS) - {"none"}))
@pytest.mark.parametrize("parts", [False, True])
def test_no_share_is_asked_for_nothing(privacy, parts, share):
    """Ten thousand questions of a share of 1e-4 cost twice the budget, and none was counted."""
    rows = np.zeros((20_000, 1)), np.ones(20_000)
    asked = open_session(privacy, *rows, Budget(1.0, 1e-6), 0, smallest_share=0.0)
    if parts:
        asked, _ = split(asked, 10_000, 10_000)
    asked.sum(Total(), np.float16(1.0) if isinstance(share, np.float16) else 1.0)
    with pytest.raises(PrivacyError, match="at most what is left"):
        asked.sum(Total(), share)


@pytest.mark.parametrize("parts", [False, True])
def test_shares_in_few_digits_add_up_in_full(parts):
    """Beside .9 a half-precision sum grows by .0005 for .0007: answers would not be paid."""
    asked = open_session("central", np.zeros((20, 1)), np.ones(20), Budget(1.0, 1e-6), 0)
    if parts:
        asked, _ = split(asked, 10, 10)
    share = np.float16(0.0007)
    asked.sum(Total(), np.float16(0.9))
    whole = float(np.float16(0.9))
    for _ in range(int((1.0 - whole) / float(share))):
        asked.sum(Total(), share)
        whole += float(share)
    assert whole <= 1.0
    with pytest.raises(PrivacyError, match="at most what is left"):
        asked.sum(Total(), share)


@pytest.mark.parametrize(
    "number", [np.float16(1e-4), np.float32(1e-3), np.longdouble(0.1), Fraction(1, 3)]
)
@pytest.mark.parametrize("make", [Cost.from_mu, Cost.from_rho, Cost.from_epsilon, Cost.from_range])
def test_a_cost_is_that_of_the_number(make, number):
    assert make(number) == make(float(number)) != Cost()
    with pytest.raises(TypeError, match="must be a real number"):
        make(Decimal(0.5))


def test_a_cost_beyond_all_numbers_is_infinite():
    assert Cost.from_mu(1e200).amount("gdp") == np.inf
    assert Cost.from_epsilon(1e200).amount("zcdp") == np.inf
    assert Cost.from_range(1e200).amount("zcdp") == np.inf
