"""No privacy: exact answers, an infinite price."""

import numpy as np
import pytest

from skpriv import Budget, BudgetAccountant
from skpriv.privacy import Query, open_session


class Total(Query):
    """Sum of y."""

    name, shape, sensitivity = "total", (1,), 1.0

    def sum(self, X, y):
        return np.array([y.sum()])


@pytest.mark.parametrize(
    ("privacy", "budget"), [("none", Budget(1.0, 1e-6)), ("central", Budget(float("inf")))], ids=str
)
@pytest.mark.parametrize("random_state", [None, 0])
def test_answers_are_exact_for_any_share(privacy, budget, random_state):
    session = open_session(privacy, np.zeros((4, 1)), np.arange(4.0), budget, random_state)
    for share in (0.01, 0.99):
        answer = session.sum(Total(), share)
        assert answer.value == 6.0
        assert answer.noise.scale == 0.0
        assert answer.n == 4
    assert session.report.total.gaussian == float("inf")
    assert str(session.report.guarantee).startswith("no privacy")


def test_only_an_infinite_budget_pays():
    with BudgetAccountant(float("inf")) as accountant:
        open_session("none", np.zeros((4, 1)), np.zeros(4), Budget(1.0))
    assert accountant.charges[0].cost.gaussian == float("inf")
