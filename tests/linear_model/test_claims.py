"""An interval is promised by the class that states it, and by no class that inherits it."""

import numpy as np
import pytest
from registry.claims import POINTS, claims, unfitted, world
from registry.estimators import ESTIMATORS, SETTINGS, targets
from scipy.stats import binom

from skpriv.inspection import inference
from skpriv.linear_model import SSPRegressor

METHODS = ("certified", "asymptotic")


def _data(Estimator, n=2000):
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(n, 2))
    return X, targets(Estimator, X @ [0.5, -0.3] + rng.uniform(-0.1, 0.1, size=n))


@pytest.mark.parametrize("Estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_estimator_states_its_estimand_and_its_claims(Estimator):
    assert vars(Estimator)["estimand"]
    claims = vars(Estimator)["interval_claims"]
    assert claims and set(claims) <= set(METHODS)
    X, y = _data(Estimator)
    fitted = Estimator(**SETTINGS[Estimator], random_state=0).fit(X, y)
    for method in METHODS:
        if method in claims:
            fitted.confidence_interval(X[:2], method=method)
        else:
            with pytest.raises((NotImplementedError, ValueError)):
                fitted.confidence_interval(X[:2], method=method)


@pytest.mark.parametrize("Estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("stated", [{}, {"estimand": "another line"}, {"interval_claims": METHODS}])
def test_a_subclass_inherits_no_claim(Estimator, stated):
    """Neither an estimand nor a claim alone is enough."""
    Other = type("Other", (Estimator,), {"__init__": Estimator.__init__, **stated})
    X, y = _data(Estimator)
    fitted = Other(**SETTINGS[Estimator], random_state=0).fit(X, y)
    fitted.predict(X[:2])
    for method in vars(Estimator)["interval_claims"]:
        with pytest.raises(NotImplementedError, match="in the body of Other itself `estimand"):
            fitted.confidence_interval(X[:2], method=method)
    if hasattr(fitted, "coefficient_law"):
        with pytest.raises(NotImplementedError, match="Other claims no intervals"):
            inference(fitted)


def test_a_subclass_has_what_it_claims():
    class Other(SSPRegressor):
        estimand = "the same line"
        interval_claims = ("asymptotic",)

    X, y = _data(SSPRegressor)
    fitted = Other(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, y)
    fitted.confidence_interval(X[:2], method="asymptotic")
    assert inference(fitted).law.estimand == "the same line"
    with pytest.raises(NotImplementedError, match="Other claims asymptotic intervals"):
        fitted.confidence_interval(X[:2], method="certified")


def _misses(Estimator, method, n, n_fits):
    """In how many fits the interval at each point misses the estimand, at the level .95."""
    found = np.zeros(len(POINTS), dtype=int)
    for seed in range(n_fits):
        X, y, truth = world(Estimator)(n, np.random.RandomState(seed))
        fitted = unfitted(Estimator, epsilon=3.0, random_state=seed).fit(X, y)
        low, high = fitted.confidence_interval(POINTS, confidence_level=0.95, method=method)
        found += (truth < low) | (truth > high)
    return found


# A miss of each is expected in one fit of 20; one such test in 10,000 fails by chance.
@pytest.mark.parametrize("Estimator, method", claims())
def test_a_claimed_interval_is_not_far_from_its_level(Estimator, method):
    assert _misses(Estimator, method, 3000, 8).max() <= binom.isf(1e-4, 8, 0.05)


@pytest.mark.slow  # 200 fits of each claim, at two sizes: a bias shows where noise has become small
@pytest.mark.parametrize("n", [20_000, 200_000])
@pytest.mark.parametrize("Estimator, method", claims())
def test_a_claimed_interval_has_its_level(Estimator, method, n):
    assert _misses(Estimator, method, n, 200).max() <= binom.isf(1e-4, 200, 0.05)
