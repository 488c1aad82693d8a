"""One record is replaced, and everything that a fit releases is forced to be the same."""

import numpy as np
import pytest

from skpriv.audit import replay
from skpriv.linear_model import LogisticRegression, PoissonRegressor


def _rows():
    rng = np.random.RandomState(0)
    return rng.uniform(-1.0, 1.0, size=(300, 2)), rng.randint(2, size=300).astype(float)


@pytest.mark.parametrize("label", [0.0, 1.0, 7.0, -1e300])
@pytest.mark.parametrize("row", [(1.0, 1.0), (1e300, -1e300)])
def test_no_replaced_record_costs_more_than_is_claimed(row, label):
    X, y = _rows()
    other, labels = X.copy(), y.copy()
    other[3], labels[3] = row, label
    for make in (
        lambda: LogisticRegression(classes=(0, 1), bounds_X=(-1.0, 1.0), random_state=0),
        lambda: PoissonRegressor(bounds_X=(-1.0, 1.0), bounds_y=(0.0, 5.0), random_state=0),
    ):
        found = replay(make, (X, y), (other, labels))
        assert found.epsilon <= 1.0
        assert not found.differences
