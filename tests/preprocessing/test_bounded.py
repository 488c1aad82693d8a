"""Values of a part of a term never leave their public ends, whatever rounding did."""

import numpy as np
import pytest

from skpriv.preprocessing._formula import _Bounded


@pytest.mark.parametrize("function, low, high", [
    (np.subtract, 0.0, 1.0), (np.multiply, 0.0, 1.0), (np.add, 1.0, 2.0),
])  # fmt: skip
def test_a_value_beyond_its_ends_does_not_get_into_the_next_function(function, low, high):
    """A root of it would be no number, which a fit refuses in one of two neighbours."""
    one = _Bounded(1.0, 1.0, np.ones(3))
    part = _Bounded(0.0, 1.0, np.array([-1e-9, 0.5, 1.0 + 1e-9]))
    found = function(one, part)
    assert (found.low, found.high) == (low, high)
    assert found.values.min() >= low and found.values.max() <= high
    assert np.isfinite(np.sqrt(found).values).all()
