"""Values that cannot be used: the same charge and sentence, and no other difference."""

from functools import partial

import numpy as np
import pytest
from registry.estimators import ESTIMATORS, ssp

from skpriv.audit import lower_bound, replay
from skpriv.linear_model import SSPRegressor
from skpriv.model_selection import PrivateSearchCV

WRONG = [np.nan, -np.inf, "text", None, 1j, [1.0]]


def poisoned(clean, place, value):
    """The table with one value that is none, of the type of objects: types are public."""
    X, y = (np.array(part, dtype=object) for part in clean)
    if place == "X":
        X[0, 0] = value
    else:
        y[0] = value
    return X, y


@pytest.mark.parametrize("place", ["X", "y"])
def test_a_refusal_differs_by_itself_alone(private_estimator, place, records):
    clean = tuple(part.astype(object) for part in records(n=40)[1])
    found = replay(private_estimator, poisoned(clean, place, np.nan), clean)
    assert found.differences == [] and found.epsilon == 0.0, str(found)


@pytest.mark.parametrize("value", WRONG[1:], ids=str)
@pytest.mark.parametrize("privacy", ESTIMATORS[SSPRegressor][:-1])
def test_no_wrong_value_differs_from_another(privacy, value, records):
    """Sessions read values: of one estimator in every model is enough."""
    clean, make = records(n=40)[1], partial(ssp, privacy=privacy, random_state=0)
    for place in ("X", "y"):
        found = replay(make, poisoned(clean, place, np.nan), poisoned(clean, place, value))
        assert found.differences == [], str(found)


@pytest.mark.parametrize("place", ["X", "y"])
def test_a_search_that_is_refused_was_charged_as_any_other(place, records):
    """Its steps end earlier, which were paid for with the whole."""

    def make():
        grid = {"alpha": [0.1, 1.0]}
        return PrivateSearchCV(ssp(), grid, epsilon=1.0, delta=1e-6, random_state=0)

    clean = tuple(part.astype(object) for part in records(n=40)[1])
    wrong = poisoned(clean, place, np.nan)
    for pair in ((wrong, clean), (clean, wrong)):
        found = replay(make, *pair)
        assert found.holds and found.differences == [], str(found)


def test_makers_that_make_nothing_are_told_so():
    D, D_prime = (np.zeros((4, 1)), np.zeros(4)), (np.ones((4, 1)), np.zeros(4))
    D_prime[0][1:] = 0.0
    for make, message in (
        (ssp(), "SSPRegressor cannot be called"),
        (lambda seed=0: SSPRegressor, "the class SSPRegressor"),
    ):
        with pytest.raises(TypeError, match=message):
            replay(make, D, D_prime)
        with pytest.raises(TypeError, match=message):
            lower_bound(make, D, D_prime, n_runs=8, delta=0.1)
