"""Shares of a sum: what they hide, by exact laws; and what they cost in delta."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from skpriv import Budget
from skpriv.privacy import shares_needed
from skpriv.privacy._accounting import _lattice as _sharing


def exact_law(users, mixed, bits):
    """E q^(C - 1) by colourings of the users whom two random orders connect, as a fraction."""
    q = 2**bits
    each = [Fraction(math.factorial(mixed * k), math.factorial(k)) for k in range(users + 1)]
    law = [Fraction(1)] + [Fraction(0)] * users
    for _ in range(q):
        law = [sum(law[i] * each[k - i] for i in range(k + 1)) for k in range(users + 1)]
    total = law[users] * math.factorial(users) / math.factorial(users * mixed)
    return total / q


def exact_recursion(users, mixed, bits, few):
    """The bound of the module in exact fractions, with a single step from ``few`` users on."""
    q = 2**bits

    def step(known, r):
        return sum(
            Fraction(math.comb(r - 1, s - 1), math.comb(r * mixed, s * mixed)) * q * known[r - s]
            for s in range(1, r)
        )

    known = {1: Fraction(1)}
    for r in range(2, min(users, few) + 1):
        known[r] = 1 + step(known, r)
    for r in range(few + 1, users + 1):
        known[r] = known[r - 1] * (1 + Fraction(q, math.comb(r * mixed, mixed)))
    return step(known, users)


@pytest.mark.parametrize("mixed, bits", [(2, 1), (3, 2), (4, 4), (6, 6)])
@pytest.mark.parametrize("users, few", [(5, 5), (8, 3), (12, 4), (12, 12)])
def test_the_recursion_against_exact_integers(users, few, mixed, bits, monkeypatch):
    """Both forms of the bound are what the module computes, and at least the exact law."""
    monkeypatch.setattr(_sharing, "MODULUS", bits)
    monkeypatch.setattr(_sharing, "SUMMED_USERS", few)
    bound = exact_recursion(users, mixed, bits, few)
    assert math.exp(_sharing._log_excess(users, mixed)) == pytest.approx(float(bound), rel=1e-9)
    assert exact_law(users, mixed, bits) - 1 <= bound


@pytest.mark.parametrize("users", [300, 700])
def test_more_users_help(users, monkeypatch):
    """The bound of a single step is hardly above the whole recursion, and falls with the users."""
    short = _sharing._log_excess(users, 12)
    monkeypatch.setattr(_sharing, "SUMMED_USERS", users)
    assert _sharing._log_excess(users, 12) <= short + 1e-9
    assert short <= _sharing._log_excess(users, 12) + 0.1
    assert shares_needed(10**5, 130) == 11 < shares_needed(10**3, 130) == 16


def view(values, shares, q):
    """Law of the multiset of all shares modulo q, in units of equal chances."""
    free = list(itertools.product(range(q), repeat=shares - 1))
    law = Counter()
    for choice in itertools.product(free, repeat=len(values)):
        sent = []
        for value, own in zip(values, choice, strict=True):
            sent += [*own, (value - sum(own)) % q]
        law[tuple(sorted(sent))] += 1
    total = sum(law.values())
    return {key: count / total for key, count in law.items()}


@pytest.mark.parametrize("shares", [2, 3, 4])
def test_shares_hide_all_but_the_sum(shares, monkeypatch):
    # Two users, values modulo 3: the distance of two data sets of the same sum is at most twice
    # that to what is drawn from the sum.
    laws = [view(values, shares, 3) for values in ((0, 0), (1, 2))]
    keys = set(laws[0]) | set(laws[1])
    distance = sum(max(0.0, laws[0].get(k, 0.0) - laws[1].get(k, 0.0)) for k in keys)
    monkeypatch.setattr(_sharing, "MODULUS", math.log2(3.0))
    tau = math.sqrt(math.exp(_sharing._log_excess(2, shares - 1))) / 2.0
    assert distance <= 2.0 * tau
    assert shares > 2 or distance > 0.1  # too few shares do show


def test_the_number_of_shares_is_the_smallest_that_is_proved():
    for users, size in ((2, 1), (100, 7), (10**4, 50)):
        shares = shares_needed(users, size)
        taus = [
            size * math.sqrt(math.exp(_sharing._log_excess(users, mixed))) / 2.0
            for mixed in (shares - 1, shares - 2)
        ]
        assert taus[0] <= 2.0**-40 < taus[1]
    # Half of them would not do, by far.
    half = shares_needed(1000, 20) // 2
    assert _sharing._log_excess(1000, half) > 2.0 * math.log(2.0**-40)
    assert shares_needed(1, 20) == 1
    assert shares_needed(1000, 20) > shares_needed(1000, 20, 2.0**-20)


@pytest.mark.parametrize(
    "epsilon, delta", [(0.5, 1e-6), (10.0, 1e-7), (10.0, 1e-8), (1.0, 1e-10), (3.0, 1e-11)]
)
def test_the_sharing_is_taken_off_delta(epsilon, delta):
    budget = Budget(epsilon, delta)
    tau = _sharing.sharing_security(budget)
    owed = (1.0 + math.exp(epsilon)) * tau
    assert tau <= 2.0**-40 and owed <= delta / 4.0 * (1.0 + 1e-12)
    assert tau == 2.0**-40 or owed == pytest.approx(delta / 4.0)
