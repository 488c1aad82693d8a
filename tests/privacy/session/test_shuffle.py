"""The shuffle model: blocks are amplified by their own size, and charged as a central guarantee."""

import numpy as np
import pytest
from registry.refusals import uncharged
from registry.totals import Total

from skpriv import Budget
from skpriv._estimation._public_maps import RecordMap
from skpriv._estimation._moments import MomentsQuery
from skpriv._estimation._reports import LiftedMomentsQuery
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Cost, open_session
from skpriv.privacy._amplification import amplified, amplified_epsilon
from skpriv.records import from_batches

BUDGET = Budget(1.0, 1e-6)


def _session(n, **settings):
    return open_session("shuffle", np.zeros((n, 1)), np.zeros(n), BUDGET, 0, **settings)


def test_noise_is_amplified_by_the_size_of_the_block():
    session = _session(10_000)
    for share in (0.1, 0.9):
        announced, records = session.noise(Total(), share), session.records(share)
        answer = session.sum(Total(), share)
        assert answer.noise == announced and answer.n == records == round(share * 10_000)
        mu = amplified(BUDGET, answer.n, dimension=1).mu
        assert mu > 3 * BUDGET.mu
        assert answer.noise.scale == pytest.approx(np.sqrt(answer.n) / mu, rel=1e-6)
    assert session.report.total == Cost.from_budget(BUDGET)
    assert "total epsilon = 1;" in str(session.report) and "shuffler" in str(session.report)


def test_reports_of_more_numbers_are_amplified_as_such():
    """Their inputs lie farther from one centre: the bound of one number would be too large."""
    query = MomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 1))
    (size,) = query.shape
    mus = [amplified(BUDGET, 10_000, dimension=k).mu for k in (1, size)]
    assert size > 1 and mus[1] < 0.999 * mus[0]
    scale = _session(10_000).noise(query, 1.0).scale
    assert scale == pytest.approx(query.sensitivity * np.sqrt(10_000) / mus[1], rel=1e-6)


def test_a_single_user_is_not_amplified():
    session = _session(1)
    assert session.sum(Total(), 1.0).noise.scale == pytest.approx(1.0 / BUDGET.mu)


def test_epsilon_outside_of_the_range():
    with uncharged(r"outside of \(0, inf\)", PrivacyError):
        open_session("shuffle", np.zeros((10, 1)), np.zeros(10), Budget(0.0, 1e-6))


def test_the_order_of_reports_tells_of_no_user():
    """Those of rows that are read in batches came in the order of the file."""
    y = np.repeat([1.0, -1.0], 100)
    rows = from_batches(lambda: [(np.zeros((200, 1)), y)], n=200)
    query = LiftedMomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), True, 1))
    session = open_session("shuffle", rows, None, Budget(25.0, 1e-6), 0, currency="pure")
    answer = session.sum(query, 1.0)
    directions = answer.reports.directions
    assert (np.lexsort(directions.T) == np.arange(200)).all()
    np.testing.assert_allclose(answer.value, answer.reports.moments(), rtol=1e-12)


def test_reports_of_which_no_law_is_known_have_the_local_guarantee():
    class Pure(Total):
        norm = "l1"

        def local_noise(self, budget):
            asked.append(budget)

    asked: list = []
    X, y = np.zeros((10_000, 1)), np.zeros(10_000)
    session = open_session("shuffle", X, y, Budget(1.0, 1e-6), 0, currency="pure")
    session._law(Pure(), session._next_slot(0.5))
    assert asked == [Budget(1.0)]
    # Of two probabilities it is known, and only those who answer the same query hide each other.
    Pure.likely = staticmethod(lambda epsilon: 1.0 / (1.0 + np.exp(-epsilon)))
    session._law(Pure(), session._next_slot(0.5))
    assert asked[-1] == Budget(amplified_epsilon(Budget(1.0, 1e-6), 5_000, Pure.likely))


def test_the_noise_of_a_report_is_that_of_the_block_that_it_hides_in():
    """A query that draws less, as if all users hid each of its reports, is refused."""

    class Quiet(Total):
        def local_noise(self, budget):
            return super().local_noise(amplified(BUDGET, 10_000, dimension=1))

    session = _session(10_000)
    with pytest.raises(PrivacyError, match="more than its share"):
        session.sum(Quiet(), 0.1)
    assert session.sum(Quiet(), 1.0).n == 10_000
