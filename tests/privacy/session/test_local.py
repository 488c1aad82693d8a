"""The local model: one query a user, and the aggregate's law is that of the users' reports."""

import numpy as np
import pytest
from scipy import stats

from skpriv import Budget, BudgetAccountant
from skpriv._estimation._moments import MomentsQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Query, open_session

BUDGET = Budget(2.0, 1e-6)
LEVEL = 1e-4  # family-wise, over the parameters of a test


class Spy(Query):
    """Sum of y, which remembers the rows that it saw by their number x."""

    name, shape, sensitivity = "spy", (1,), 2.0

    def __init__(self):
        self.seen = []

    def sum(self, X, y):
        self.seen.extend(X[:, 0].astype(int).tolist())
        return np.array([y.sum()])


def _numbered(n):
    return np.arange(float(n))[:, None], np.zeros(n)


@pytest.mark.parametrize("n", [12, 1000, 40_003])
@pytest.mark.parametrize(
    "shares", [(1.0,), (0.1, 0.2, 0.7), (1 / 12,) * 12, (0.25 / 3,) * 3 + (0.75,)], ids=len
)
@pytest.mark.parametrize("random_state", [None, 0])
def test_each_user_answers_one_query(n, shares, random_state):
    session = open_session("local", *_numbered(n), BUDGET, random_state, smallest_share=min(shares))
    spies = [Spy() for _ in shares]
    answers = [session.sum(spy, share) for spy, share in zip(spies, shares, strict=True)]
    blocks = [spy.seen for spy in spies]
    together = [user for block in blocks for user in block]
    assert len(set(together)) == len(together) == n  # shares add up to one: all users, once
    for answer, block, share in zip(answers, blocks, shares, strict=True):
        assert answer.n == len(block)
        assert abs(len(block) - share * n) <= 1.0
        assert answer.noise.scale == pytest.approx(2.0 / BUDGET.mu * np.sqrt(len(block)), rel=1e-14)
    assert together != sorted(together)  # in a random order


def test_the_order_of_users_is_uniform():
    """Who is first is uniform, and does not depend on the records."""
    n, runs = 10, 500
    first = np.zeros(n)
    for seed in range(runs):
        spy = Spy()
        session = open_session("local", *_numbered(n), BUDGET, seed, smallest_share=0.1)
        session.sum(spy, 0.1)
        first[spy.seen] += 1
    assert stats.chisquare(first).pvalue > LEVEL


def test_each_user_pays_for_one_report():
    session = open_session("local", *_numbered(100), BUDGET, 0, smallest_share=0.2)
    for share in (0.3, 0.5, 0.2):
        session.sum(Spy(), share)
    for row in session.report.rows:
        assert row.cost.gaussian == pytest.approx(BUDGET.mu**2, rel=1e-9)
    assert session.report.total.gaussian == pytest.approx(BUDGET.mu**2, rel=1e-9)


def test_the_answer_has_the_law_of_the_sum_of_reports():
    """`randomize` is what devices run; the session simulates its sum by one draw."""
    rng, noise = np.random.RandomState(1), np.random.RandomState(0)
    query = MomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2))
    users, runs = 5, 400
    X, y = rng.uniform(-1, 1, size=(users, 2)), rng.uniform(-1, 1, size=users)
    exact = query.sum(X, y)
    reports = np.array(
        [
            sum(query.randomize(X[i], y[i], BUDGET, noise) for i in range(users)) - exact
            for _ in range(runs)
        ]
    )
    answers = np.array(
        [open_session("local", X, y, BUDGET, noise).sum(query, 1.0).value for _ in range(runs)]
    )
    answers -= exact
    scale = query.sensitivity / BUDGET.mu * np.sqrt(users)
    level = LEVEL / 2 / (3 + query.shape[0])
    assert stats.ks_2samp(reports.ravel(), answers.ravel()).pvalue > level
    for drawn in (reports, answers):
        assert stats.kstest(drawn.ravel() / scale, "norm").pvalue > level
    for coordinate in range(query.shape[0]):
        pair = reports[:, coordinate], answers[:, coordinate]
        assert stats.ks_2samp(*pair).pvalue > level


@pytest.mark.parametrize(("n", "share", "enough"), [(3, 0.25, 4), (11, 1 / 12, 12), (0, 1.0, 1)])
def test_too_few_users(n, share, enough):
    with BudgetAccountant(5.0, 1e-6) as accountant:
        with pytest.raises(PrivacyError, match=f"n_samples={n} .* at least {enough} rows"):
            open_session("local", *_numbered(n), BUDGET, 0, smallest_share=share)
        assert accountant.charges == []
        session = open_session("local", *_numbered(enough), BUDGET, 0, smallest_share=share)
        assert session.sum(Spy(), share).n == 1
    assert len(accountant.charges) == 1
