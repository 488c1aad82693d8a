"""Private quantiles: tight sensitivity for any record, exact without noise, safe with too much."""

import numpy as np
import pytest
from scipy import sparse

from skpriv import Budget
from skpriv.privacy import BoundsQuery, open_session

WILD = [0.0, 1e-320, 1.0, -1.0, 1e10, 1e200, np.inf, -np.inf, np.nan]
QUERIES = [
    BoundsQuery(100.0, None),
    BoundsQuery(None, (-5.0, 20.0)),
    BoundsQuery(3.0, (-1e3, 1e3)),
    BoundsQuery(3.0, (-1e3, 1e3), row_norm="linf"),
]


@pytest.mark.parametrize("query", QUERIES)
def test_sensitivity_is_attained_and_not_exceeded(query):
    rows = [(np.array([[a, b]]), np.array([y])) for a in WILD for b in WILD[:4] for y in WILD]
    counts = np.array([query.sum(X, y) for X, y in rows])
    assert counts.shape[1:] == query.shape
    gram = counts @ counts.T
    squares = np.diagonal(gram)[:, None] + np.diagonal(gram) - 2 * gram
    assert squares.max() == pytest.approx(query.sensitivity**2, rel=1e-5)
    assert squares.max() <= query.sensitivity**2


def test_exact_without_noise(global_random_seed):
    rng = np.random.RandomState(global_random_seed)
    X, y = rng.normal(size=(5000, 3)), rng.exponential(size=5000)
    session = open_session("none", X, y, Budget(1.0, 1e-6))
    query = BoundsQuery(50.0, (-10.0, 30.0))
    norm, (low, high) = query.bounds(session.sum(query, 0.1), 0.9, 0.9)
    quantile = np.quantile(np.linalg.norm(X, axis=1), 0.9)
    assert quantile <= norm * (1 + 1e-3) and norm <= quantile * np.sqrt(2) * (1 + 1e-3)
    width = 40.0 / 64
    for bound, exact, sign in ((low, np.quantile(y, 0.05), -1), (high, np.quantile(y, 0.95), 1)):
        assert -1e-3 <= sign * (bound - exact) <= width + 1e-3


def test_sparse_rows_have_the_same_counts():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(50, 30)) * (rng.uniform(size=(50, 30)) < 0.1)
    query = BoundsQuery(4.0, None, row_norm="linf")
    assert (query.sum(X, np.zeros(50)) == query.sum(sparse.csr_array(X), np.zeros(50))).all()


def test_too_much_noise_is_known_beforehand():
    X, y = np.zeros((500, 1)), np.zeros(500)
    query = BoundsQuery(1.0, (-1.0, 1.0))
    session = open_session("central", X, y, Budget(1.0, 1e-6), 0)
    assert not query.resolved(session, 0.05) and session.report.rows == []
    session = open_session("central", X, y, Budget(100.0, 1e-6), 0)
    assert query.resolved(session, 0.05)


def test_noise_alone_keeps_the_outer_range(global_random_seed):
    X, y = np.ones((3, 1)), np.zeros(3)
    query = BoundsQuery(2.0, (-4.0, 4.0))
    session = open_session("central", X, y, Budget(0.1, 1e-6), global_random_seed)
    norm, (low, high) = query.bounds(session.sum(query, 1.0), 0.9, 0.9)
    assert 0 < norm <= 2.0 and -4.0 <= low < high <= 4.0
