"""The local model: one query a user, and the aggregate's law is that of the users' reports."""

import numpy as np
import pytest
from registry.refusals import uncharged

from skpriv import Budget
from skpriv._estimation._moments import MomentsQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv.exceptions import PrivacyError
from skpriv.privacy import NoiseSource, Query, open_session

BUDGET = Budget(2.0, 1e-6)


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
    if len(shares) > 1 and n > 12:  # in a random order
        assert set(blocks[0]) != set(range(len(blocks[0])))


def test_the_answer_has_the_noise_of_all_reports(monkeypatch):
    """`randomize` is what devices run; the session simulates the sum of reports by one draw."""
    added, query = [], MomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2))
    spy = lambda source, exact, law: added.append((exact, law.scale)) or exact  # noqa: E731
    monkeypatch.setattr(NoiseSource, "add", spy)
    X, y = np.random.RandomState(1).uniform(-1, 1, size=(5, 2)), np.full(5, 0.5)
    query.randomize(X[0], y[0], BUDGET, 0)
    open_session("local", X, y, BUDGET, 0).sum(query, 1.0)
    (report, scale), (total, scale_of_all) = added
    assert scale == pytest.approx(query.sensitivity / BUDGET.mu, rel=1e-14)
    assert scale_of_all == pytest.approx(scale * np.sqrt(5), rel=1e-14)
    np.testing.assert_allclose(report, query.sum(X[:1], y[:1]))
    np.testing.assert_allclose(total, query.sum(X, y))


@pytest.mark.parametrize(("n", "share", "enough"), [(3, 0.25, 4), (11, 1 / 12, 12), (0, 1.0, 1)])
def test_too_few_users(n, share, enough):
    with uncharged(f"n_samples={n} .* at least {enough} rows", PrivacyError):
        open_session("local", *_numbered(n), BUDGET, 0, smallest_share=share)
    session = open_session("local", *_numbered(enough), BUDGET, 0, smallest_share=share)
    assert session.sum(Spy(), share).n == 1
