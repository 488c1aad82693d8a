"""Sparse rows of linear models that take them."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone

from skpriv.linear_model import ReweightedRegressor, SSPRegressor


@pytest.mark.parametrize(
    "settings",
    [{}, {"calibration_size": 0.3}, {"privacy": "local"}, {"fit_intercept": False, "alpha": 1.0}],
    ids=str,
)
def test_one_hot_rows_may_be_sparse(settings):
    """The fit and its intervals are those of dense rows."""
    rng = np.random.RandomState(0)
    levels = rng.randint(6, size=600)
    X = csr_matrix((np.ones(600), (np.arange(600), levels)), shape=(600, 6))
    y = rng.normal(size=6)[levels] + 0.1 * rng.normal(size=600)
    model = SSPRegressor(data_norm=0.7, bounds_y=(-2, 2), random_state=0, **settings)
    sparse_fit, dense_fit = clone(model).fit(X, y), model.fit(X.toarray(), y)
    np.testing.assert_allclose(sparse_fit.coef_, dense_fit.coef_, atol=1e-12)
    expected = dense_fit.confidence_interval(X.toarray()[:9])
    np.testing.assert_allclose(sparse_fit.confidence_interval(X[:9]), expected, atol=1e-12)
    np.testing.assert_allclose(sparse_fit.predict(X[:9]), dense_fit.predict(X.toarray()[:9]))


@pytest.mark.parametrize("Estimator", [SSPRegressor, ReweightedRegressor])
def test_clipped_rows_are_counted_and_named(Estimator):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(20_000, 2)) * 0.1
    X[:5000] += 2.0
    y = np.where(np.arange(20_000) % 10 < 1, 5.0, 0.0)
    options = {"data_norm": 1.0, "bounds_y": (-1, 1), "random_state": 0}
    report = Estimator(**options).fit(X, y).privacy_report_
    shares = [float(share) for share in re.findall(r"([\d.]+)%", report.note)]
    assert np.abs(np.array(shares) - [32.5, 25.0, 10.0]).max() < 4.0  # 4 deviations of its noise
    assert "data_norm (" in report.note and "the target (" in report.note
    assert Estimator(**options).fit(X[5000:], np.zeros(15_000)).privacy_report_.note is None
    dense, sparse = (SSPRegressor(**options).fit(rows, y) for rows in (X, csr_array(X)))
    assert dense.privacy_report_.note == sparse.privacy_report_.note
