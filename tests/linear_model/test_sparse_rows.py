"""Sparse rows of linear models that take them."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

from skpriv.linear_model import SSPRegressor


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
