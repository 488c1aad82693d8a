"""Shares of the vector sum: what they hide, by exact laws; and what they cost in delta."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import special

from skpriv import Budget
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Query, open_stream
from skpriv.privacy._stream import _vector_sum
from skpriv.privacy._stream._vector_sum import shares_needed


class Total(Query):
    """Sum of rows clipped to [0, 1]."""

    name, shape, sensitivity = "total", (4,), 2.0

    def sum(self, X, y):
        return np.clip(X, 0.0, 1.0).sum(axis=0)


def opened(budget, batch=100):
    return open_stream("shuffle", Total(), budget, 3, 0, mechanism="vector-sum", batch=batch)


def exact_excess(users, mixed, bits):
    """E q^C / q - 1 by colourings: the law of which users two random orders connect."""
    q = 2**bits
    law = np.zeros(users + 1)
    law[0] = 1.0
    each = special.factorial(mixed * np.arange(users + 1)) / special.factorial(np.arange(users + 1))
    for _ in range(q):
        law = np.convolve(law, each)[: users + 1]
    total = law[users] * special.factorial(users) / special.factorial(users * mixed)
    return total / q - 1.0


@pytest.mark.parametrize("users, mixed, bits", [(2, 2, 1), (3, 2, 2), (4, 3, 3), (6, 4, 5)])
def test_components_against_all_colourings(users, mixed, bits, monkeypatch):
    monkeypatch.setattr(_vector_sum, "MODULUS", bits)
    exact = exact_excess(users, mixed, bits)
    bound = math.exp(_vector_sum._log_excess(users, mixed))
    assert exact * (1.0 - 1e-9) <= bound <= 2.0 * exact


@pytest.mark.parametrize("users, mixed, bits", [(9, 4, 3), (12, 5, 5)])
def test_more_users_than_are_computed(users, mixed, bits, monkeypatch):
    monkeypatch.setattr(_vector_sum, "MODULUS", bits)
    exact = exact_excess(users, mixed, bits)
    monkeypatch.setattr(_vector_sum, "USERS", 6)
    assert exact <= math.exp(_vector_sum._log_excess(users, mixed))


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
    monkeypatch.setattr(_vector_sum, "MODULUS", math.log2(3.0))
    tau = math.sqrt(math.exp(_vector_sum._log_excess(2, shares - 1))) / 2.0
    assert distance <= 2.0 * tau
    assert shares > 2 or distance > 0.1  # too few shares do show


def test_the_number_of_shares_is_the_smallest_that_is_proved():
    for users, size in ((2, 1), (100, 7), (10**5, 50)):
        shares = shares_needed(users, size)
        taus = [
            size * math.sqrt(math.exp(_vector_sum._log_excess(users, mixed))) / 2.0
            for mixed in (shares - 1, shares - 2)
        ]
        assert taus[0] <= 2.0**-40 < taus[1]
    # Half of them would not do, by far.
    half = shares_needed(1000, 20) // 2
    assert _vector_sum._log_excess(1000, half) > 2.0 * math.log(2.0**-40)
    assert shares_needed(1, 20) == 1
    assert shares_needed(1000, 20) > shares_needed(1000, 20, 2.0**-20)


@pytest.mark.parametrize(
    "epsilon, delta", [(0.5, 1e-6), (10.0, 1e-7), (10.0, 1e-8), (1.0, 1e-10), (3.0, 1e-11)]
)
def test_the_sharing_is_taken_off_delta(epsilon, delta):
    budget = Budget(epsilon, delta)
    tau = _vector_sum.sharing_security(budget)
    owed = (1.0 + math.exp(epsilon)) * tau
    assert tau <= 2.0**-40 and owed <= delta / 4.0 * (1.0 + 1e-12)
    assert tau == 2.0**-40 or owed == pytest.approx(delta / 4.0)
    # The noise is that of what is left, to the rounding of the grid.
    stream = opened(budget)
    scale = 2.0 * (1.0 + 2.0**-20) / math.sqrt(2.0 * Budget(epsilon, delta - owed).rho)
    assert stream.noise.scale == pytest.approx(scale, rel=1e-12)
    assert stream.noise.scale * (1.0 + 1e-12) >= scale
    assert stream.shares == shares_needed(100, 4, tau)


def test_sums_of_discrete_gaussians():
    # The law of a sum, on the integers, against one discrete Gaussian.
    grid = np.arange(-60, 61)
    for width, users in ((0.8, 3), (1.0, 4)):
        one = np.exp(-(grid**2) / (2.0 * width**2))
        law, long = one / one.sum(), grid
        total = law
        for _ in range(users - 1):
            total = np.convolve(total, law)
        long = np.arange(len(total)) - len(total) // 2
        whole = np.exp(-(long**2) / (2.0 * users * width**2))
        whole /= whole.sum()
        inside = abs(long) < 5 * width
        ratio = abs(np.log(total[inside] / whole[inside])).max()
        assert 0.0 < ratio <= 10.0 * users * math.exp(-(math.pi**2) * width**2)
    # A batch that leaves each user half a grid step of noise is refused.
    budget = Budget(1.0, 1e-6)
    users = int(4 / (2.0 * budget.rho) * 2.0**40)
    assert _vector_sum.summed_gaussians_ratio(budget, users // 400, 4) < 1e-12
    with pytest.raises(PrivacyError, match="smaller batches"):
        _vector_sum.summed_gaussians_ratio(budget, 4 * users, 4)
