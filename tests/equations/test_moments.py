"""Residual Gram matrices: what they sum."""

import numpy as np
import pytest

from skpriv._equations._moments import Instrument, MomentsQuery, ResidualGramQuery
from skpriv._equations._scaling import Scaling
from skpriv._linalg import unvech


@pytest.mark.parametrize("norm", [0.5, 10.0])
@pytest.mark.parametrize("limit", [0.1, 2.0])
def test_residuals_are_clipped_at_the_limit_with_and_without_an_instrument(norm, limit):
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(3000, 3)), rng.normal(size=3000)
    scaling, theta = Scaling(norm, (-2.0, 2.0), True, 3), np.array([0.2, -0.1, 0.3, 0.1])
    phi = scaling.rows(X)
    residual = scaling.target(y) - np.clip(phi @ theta, -1.0, 1.0)
    rows = phi * np.clip(residual, -limit, limit)[:, None]
    query = ResidualGramQuery(scaling, tuple(theta), Instrument(), limit)
    found = limit**2 * unvech(query.sum(X, y), 4)
    np.testing.assert_allclose(found, rows.T @ rows, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("data_norm", [1e-300, 1.0, 1e300])
def test_no_row_makes_a_sum_that_is_no_number(data_norm):
    """phi'theta is asked of clipped rows: that of others may be infinity minus infinity."""
    X = np.array([[1e308, -1e308], [1e308, 1e308], [np.nan, 0.0], [np.inf, 1.0]])
    scaling = Scaling(data_norm, (-1.0, 1.0), True, 2)
    y = np.array([1e308, np.nan, 1.0, -np.inf])
    with np.errstate(all="ignore"):
        for instrument in (Instrument(), Instrument(np.diag([1.0, 0.5, 1.0]))):
            query = ResidualGramQuery(scaling, (5.0, 5.0, 1.0), instrument)
            assert np.isfinite(query.sum(X, y)).all()
        assert np.isfinite(MomentsQuery(scaling).sum(X, y)).all()
