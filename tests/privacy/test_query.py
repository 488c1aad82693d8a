"""Queries: what a single user reports."""

import numpy as np
import pytest

from skpriv import Budget
from skpriv.privacy import Query


class Clipped(Query):
    """Sum of x clipped to [0, 1] in each of two coordinates."""

    name, shape, sensitivity = "clipped", (2,), np.sqrt(2.0)

    def sum(self, X, y):
        return np.clip(X, 0.0, 1.0).sum(axis=0)


def test_a_query_declares_what_it_is():
    with pytest.raises(TypeError, match="abstract"):
        Query()
    assert Clipped().norm == "l2"


@pytest.mark.parametrize("random_state", [None, 0])
def test_a_report_is_the_clipped_record_and_noise(random_state):
    budget = Budget(1e9, 1e-6)  # hardly any noise
    report = Clipped().randomize([5.0, -5.0], 0.0, budget, random_state)
    assert report.shape == (2,)
    np.testing.assert_allclose(report, [1.0, 0.0], atol=1e-3)


def test_local_noise_is_the_whole_budget_of_a_user():
    budget = Budget(1.0, 1e-6)
    noise = Clipped().local_noise(budget)
    assert noise.cost(Clipped().sensitivity).gaussian == pytest.approx(budget.mu**2, rel=1e-12)


def test_a_report_is_reproducible_with_a_seed_only():
    def report(random_state):
        return Clipped().randomize([0.5, 0.5], 0.0, Budget(1.0, 1e-6), random_state)

    assert np.array_equal(report(3), report(3))
    assert not np.array_equal(report(None), report(None))
