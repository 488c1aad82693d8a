"""Residual Gram matrices: what they sum."""

import numpy as np
import pytest

from skpriv._equations._moments import Instrument
from skpriv._equations._moments import ResidualGramQuery
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
