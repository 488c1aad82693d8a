"""Generalised models: maximum likelihood without privacy, what they refuse, and replays."""

import numpy as np
import pytest
from registry.refusals import uncharged
from scipy import special
from sklearn.linear_model import LogisticRegression as Logistic, PoissonRegressor as Poisson

from skpriv import PrivacyError
from skpriv.audit import replay
from skpriv.inspection import inference
from skpriv.linear_model import LogisticRegression, PoissonRegressor

COEF, INTERCEPT = np.array([[1.0, 0.5], [-1.0, 1.0], [0.0, -1.5]]), np.array([0.3, 0.0, -0.3])
PUBLIC = {"bounds_X": (-1.0, 1.0), "random_state": 0}
KINDS = {
    "two classes": (LogisticRegression, {"classes": (0, 1)}),
    "three classes": (LogisticRegression, {"classes": (0, 1, 2)}),
    "counts": (PoissonRegressor, {"bounds_y": (0.0, 60.0)}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind, **settings):
    Estimator, public = KINDS[kind]
    return Estimator(**{**PUBLIC, **public, **settings})


def draw(kind, n=4000, seed=0):
    """Rows of two features, and a label or a count of each; of two classes the first two."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 2))
    eta = X @ COEF.T + INTERCEPT
    if kind == "counts":
        return X, rng.poisson(np.exp(eta[:, 0]))
    eta = eta[:, : len(KINDS[kind][1]["classes"])]
    likely = special.softmax(eta, axis=1).cumsum(axis=1)
    return X, (likely < rng.uniform(size=n)[:, None]).sum(axis=1)


def peer(kind, X, y, weights=None, fit_intercept=True):
    """scikit-learn's fit without a penalty; coefficients of three classes add up to 0."""
    unpenalised = Poisson(alpha=0.0) if kind == "counts" else Logistic(C=np.inf)
    unpenalised.set_params(solver="newton-cholesky", tol=1e-12, fit_intercept=fit_intercept)
    unpenalised.fit(X, y, weights)
    if kind == "three classes":
        unpenalised.coef_ -= unpenalised.coef_.mean(axis=0)
    return unpenalised


@every_kind
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_privacy_it_is_unpenalised_maximum_likelihood(kind, fit_intercept):
    X, y = draw(kind)
    model = make(kind, privacy="none", fit_intercept=fit_intercept).fit(X, y)
    other = peer(kind, X, y, fit_intercept=fit_intercept)
    assert model.coef_.shape == other.coef_.shape
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8)
    if kind == "counts":
        np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-8)
        return
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(model.predict_log_proba(X), other.predict_log_proba(X), atol=1e-7)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    if kind == "three classes":
        np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), other.predict(X))
    assert model.score(X, y) == other.score(X, y)


@every_kind
def test_weights_are_those_of_maximum_likelihood(kind):
    X, y = draw(kind)
    weights = np.random.RandomState(1).uniform(0.0, 2.0, size=len(y))
    model = make(kind, privacy="none").fit(X, y, sample_weight=weights, max_weight=2.0)
    other = peer(kind, X, y, weights)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    heavy = make(kind, epsilon=50.0, delta=1e-3)
    heavy.fit(X, y, sample_weight=weights, max_weight=2.0)
    np.testing.assert_allclose(heavy.coef_, other.coef_, atol=0.15)
    np.testing.assert_allclose(heavy.intercept_, model.intercept_, atol=0.15)


@pytest.mark.parametrize("kind", ["two classes", "counts"])
def test_without_privacy_both_estimands_are_maximum_likelihood(kind):
    model = make(kind, privacy="none").fit(*draw(kind))
    fitted, likely = (inference(model, estimand=name) for name in ("fitted", "likelihood"))
    np.testing.assert_allclose(fitted.estimate, likely.estimate, rtol=1e-9)
    np.testing.assert_allclose(fitted.std_error, likely.std_error, rtol=1e-9)
    with pytest.raises(ValueError, match="estimand='least_squares'.*'fitted' or 'likelihood'"):
        inference(model, estimand="least_squares")


@pytest.mark.parametrize(("kind", "settings", "match"), [
    ("two classes", {"classes": None}, "classes is required"),
    ("two classes", {"classes": (0, 0)}, "classes=.*different labels.*not private"),
    ("two classes", {"classes": (0,)}, "at least two"),
    ("two classes", {"classes": {0, 1}}, "must be a list"),
    ("two classes", {"classes": "ab"}, "array-like|classes"),
    ("two classes", {"classes": (0, "1")}, "all numbers or all text"),
    ("two classes", {"classes": (0, np.nan)}, "different labels"),
    ("two classes", {"privacy": "local"}, "local.*LinearRegression"),
    ("counts", {"bounds_y": (-1.0, 5.0)}, "must not be negative"),
    ("counts", {"privacy": "local"}, "local.*LinearRegression"),
])  # fmt: skip
def test_bad_settings_are_refused_uncharged(kind, settings, match):
    with uncharged(match, (ValueError, PrivacyError)):
        make(kind, **settings).fit(*draw(kind, 500))


@every_kind
@pytest.mark.parametrize("row", [(1.0, 1.0), (1e300, -1e300)])
def test_no_replaced_record_costs_more_than_is_claimed(kind, row):
    """Everything that a fit releases is forced to be the same, whatever row and label come in."""
    X, y = draw(kind, 300)
    for label in (0.0, 1.0, 7.0, -1e300):
        other, labels = X.copy(), y.astype(float)
        other[3], labels[3] = row, label
        found = replay(lambda: make(kind), (X, y.astype(float)), (other, labels))
        assert found.epsilon <= 1.0 and not found.differences
