"""Public ranges at the ends of what numbers can hold: right numbers, or a clear refusal."""

from itertools import product

import numpy as np
import pytest
from registry.refusals import uncharged

from skpriv.linear_model import AdditiveRegressor, LinearRegression, SSPRegressor

UNIT = (-1.0, 1.0)
TINY, NARROW, HUGE = (-1e-310, 1e-310), (1.0, 1.0 + 1e-15), (-1e305, 1e305)


def _fit(Estimator, spans, bounds_y, **params):
    """Fit to a line in any units; targets and features span their ranges."""
    z = np.random.RandomState(0).uniform(-1.0, 1.0, size=(3000, 2))
    at = lambda t, b: b[0] / 2 + b[1] / 2 + t * (b[1] / 2 - b[0] / 2)  # noqa: E731
    X, y = at(z, spans), at(0.7 * z[:, 0], bounds_y)
    est = Estimator(**params, bounds_y=bounds_y, random_state=0).fit(X, y)
    found = np.concatenate([np.ravel(getattr(est, "coef_", 0.0)), est.predict(X)])
    assert np.isfinite(found).all()
    predicted = (est.predict(X) - at(0.0, bounds_y)) / (bounds_y[1] / 2 - bounds_y[0] / 2)
    assert np.corrcoef(predicted, z[:, 0])[0, 1] > 0.99


RANGES_Y = [UNIT, (-1e-290, 1e-290), (-1e280, 1e280), (1e6, 1e6 + 1.0)]
RANGES_X = [UNIT, (1e9, 1e9 + 1.0), (0.0, 50.0), (-1e-5, 1e-5)]


@pytest.mark.parametrize(("Estimator", "bounds_X", "bounds_y"), [
    *((LinearRegression, *bounds) for bounds in product(RANGES_X, RANGES_Y)),
    *((AdditiveRegressor, *bounds) for bounds in zip(RANGES_X, RANGES_Y)),
])  # fmt: skip
def test_numbers_are_right(Estimator, bounds_X, bounds_y):
    _fit(Estimator, bounds_X, bounds_y, bounds_X=bounds_X)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_large_and_small_units_of_both(scale):
    bounds = (-scale, scale)
    _fit(LinearRegression, bounds, bounds, bounds_X=bounds)
    _fit(SSPRegressor, bounds, bounds, data_norm=2.0 * scale)


@pytest.mark.parametrize(
    ("Estimator", "bounds", "said"),
    [
        (LinearRegression, (TINY, UNIT), "bounds_X of column 0.*apart"),
        (AdditiveRegressor, (TINY, UNIT), "bounds_X of column 0.*apart"),
        (LinearRegression, (NARROW, UNIT), "bounds_X of column 0.*apart"),
        (LinearRegression, ((-1e-200, 1e-200), (-1e200, 1e200)), "other units"),
        (LinearRegression, (HUGE, TINY), "other units"),
    ],
)
def test_what_numbers_cannot_hold_is_refused_before_the_charge(Estimator, bounds, said):
    with uncharged(said):
        _fit(Estimator, *bounds, bounds_X=bounds[0])


def test_a_norm_is_held_against_the_targets():
    with pytest.raises(ValueError, match="other units"):
        _fit(SSPRegressor, (-1e-200, 1e-200), (-1e200, 1e200), data_norm=1e-200)
