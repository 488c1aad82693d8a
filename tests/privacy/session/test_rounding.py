"""Rounding of sums whose terms come in another order: the factor, and up to how many records."""

import math

import numpy as np
import pytest
from registry import REGISTRY
from registry.refusals import uncharged
from registry.totals import Total

from skpriv import Budget
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Groups, open_session, reordered
from skpriv.records import CHUNK_ROWS, ArrayRows, Rows

BUDGET = Budget(1.0, 1e-6)
LIMIT = 2**32
QUERIES = [
    asked
    for asked, case in REGISTRY.items()
    if case.n == 1 and case.measure is None and not hasattr(asked, "run")
]


class Many(Rows):
    """So many records that nobody has them."""

    n_features = 1

    def __init__(self, n):
        self.n = n

    def pieces(self, most, subset=None, sparse=True):
        raise AssertionError("nothing is read")


def test_a_chunk_can_be_as_wrong_as_is_allowed_for():
    """Terms of at most 1 whose sequential sum is always rounded down, by nearly half a unit."""
    terms, total = np.empty(CHUNK_ROWS), 0.0
    for k in range(CHUNK_ROWS):
        below = 1.0 - (0.5 + 2.0**-10) * np.spacing(total + 1.0) if total else 1.0
        terms[k] = below if total + below < total + 1.0 - 1e-20 else 1.0 - np.spacing(total) * 0.49
        total += terms[k]
    assert np.cumsum(terms)[-1] == total and terms.max() <= 1.0
    wrong = abs(total - math.fsum(terms))
    bound = CHUNK_ROWS**2 * 2.0**-54
    assert 0.25 * bound < wrong <= bound


@pytest.mark.parametrize("asked_class", QUERIES, ids=lambda c: c.__name__)
def test_no_order_moves_a_sum_beyond_the_factor(asked_class, global_random_seed):
    case, rng = REGISTRY[asked_class], np.random.RandomState(global_random_seed)
    for _ in range(3):
        asked = case.make(rng)
        unit, n = case.unit(asked), 500
        X, y = unit * rng.normal(size=(n, case.width)), unit * rng.normal(size=n)
        first = case.ask(asked, X, y)
        for _ in range(3):
            order = rng.permutation(n)
            moved = np.abs(first - case.ask(asked, X[order], y[order])).max()
            assert moved <= n * 2.0**-37 * case.declared(asked)


@pytest.mark.parametrize("n", [2**16, 2**16 + 1, LIMIT])
def test_noise_allows_for_the_order(n):
    """And the shares of a fit still add up to the budget."""
    session = open_session("central", Many(n), None, BUDGET, 0)
    factor = 1.0 + n * 2.0**-37 if n > 2**16 else 1.0  # ROUNDING covers 2^-21
    assert reordered(n) == factor
    scale = factor / (BUDGET.mu * math.sqrt(0.5))
    law = session.noise(Total(), 0.5)
    assert law.scale == pytest.approx(scale, rel=1e-14)
    cost = law.cost(session._change(Total()))
    assert cost.gaussian == pytest.approx(0.5 * BUDGET.mu**2, rel=1e-12)
    told = type("Told", (Total,), {"local_noise": lambda self, budget: budget})()
    pure = open_session("central", Many(n), None, BUDGET, 0, currency="pure").noise(told, 0.5)
    assert pure.epsilon == pytest.approx(0.5 * BUDGET.epsilon / factor, rel=1e-14)
    alone = open_session("local", Many(n), None, BUDGET, 0).noise(Total(), 1.0)
    assert alone.scale == pytest.approx(math.sqrt(n) / BUDGET.mu, rel=1e-12)


def test_noise_does_not_tell_how_many_rows_persons_have():
    """The order of the rows that are used at most is allowed for, and their number is public."""
    scales, persons = [], 40_000
    for more in (0, 1, 1000):
        labels = np.append(np.repeat(np.arange(persons), 2), np.zeros(more, dtype=int))
        rows = ArrayRows(np.zeros((len(labels), 1)), np.zeros(len(labels)))
        session = open_session("central", rows, None, BUDGET, 0, groups=Groups(labels, 3))
        scales.append(session.noise(Total(), 0.5).scale)
    assert scales[0] == scales[1] == scales[2]
    assert session._change(Total()) == Total().sensitivity * reordered(3 * persons)


def test_more_records_are_refused_before_the_charge():
    with uncharged("several fits", PrivacyError):
        open_session("central", Many(LIMIT + 1), None, BUDGET, 0)
