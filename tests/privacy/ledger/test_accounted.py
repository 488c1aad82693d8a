"""No fit escapes: clones, searches, pipelines, nesting, threads and worker processes."""

import copy
import gc
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_backend
from registry.processes import by_value
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpriv.exceptions import PrivacyError
from skpriv.privacy import Accounted, Budget, BudgetAccountant, Cost, charge
from skpriv.privacy._ledger._accountant import _HANDLE

cloudpickle = by_value(__name__)

X = np.linspace(-1, 1, 60).reshape(30, 2)
y = X[:, 0]


class Dummy(Accounted, RegressorMixin, BaseEstimator):
    def __init__(self, *, epsilon=0.1, delta=1e-6, alpha=1.0):
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha

    def fit(self, X, y):
        with self._accounting():
            charge(Cost.from_mu(Budget(self.epsilon, self.delta).mu), "Dummy")
        self.mean_ = 0.0
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Outer(Accounted, RegressorMixin, BaseEstimator):
    """A private estimator that fits a clone of another one, in turn in parallel."""

    def __init__(self, estimator, n_jobs=None):
        self.estimator = estimator
        self.n_jobs = n_jobs

    def fit(self, X, y):
        with self._accounting():
            charge(Cost.from_mu(0.01), "Outer")
            self.estimators_ = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit)(clone(self.estimator)) for _ in range(2)
            )
        return self

    def predict(self, X):
        return self.estimators_[0].predict(X)


def _fit(estimator):
    return estimator.fit(X, y)


def search(n_jobs=None, estimator=None):
    grid = {"alpha": [1, 2, 3]} if estimator is None else {"dummy__alpha": [1, 2, 3]}
    return GridSearchCV(
        estimator or Dummy(), grid, cv=2, n_jobs=n_jobs, error_score="raise", scoring="r2"
    )


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize(
    ("run", "fits"),
    [
        (lambda n: _fit(search(n, make_pipeline(StandardScaler(), Dummy()))), 7),
        (lambda n: cross_val_score(search(n), X, y, cv=2, n_jobs=n), 14),
        (lambda n: BaggingRegressor(Dummy(), n_estimators=3, n_jobs=n).fit(X, y), 3),
        (lambda n: MultiOutputRegressor(Dummy(), n_jobs=n).fit(X, X), 2),
        (lambda n: StackingRegressor([("d", Dummy())], Dummy(), cv=2, n_jobs=n).fit(X, y), 4),
        (lambda n: cross_val_score(Outer(Dummy(), n), X, y, cv=2, n_jobs=n), 6),
        (lambda n: cross_val_score(Outer(search(n), n), X, y, cv=2, n_jobs=n), 30),
    ],
)
def test_every_fit_is_recorded(accountant, run, fits, backend):
    with parallel_backend(backend):
        run(2)
    assert len(accountant.charges) == fits


def test_a_search_that_hides_errors_still_spends_no_more():
    with BudgetAccountant(0.25, 1e-6) as accountant, warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        scores = cross_val_score(Dummy(epsilon=0.2), X, y, cv=4)
    assert len(accountant.charges) == 1
    assert np.isnan(scores).sum() == 3


def test_estimators_that_come_back_are_free_of_the_accountant(accountant):
    fitted = cross_validate(Dummy(), X, y, cv=2, n_jobs=2, return_estimator=True)["estimator"]
    assert all(set(vars(f)) == {"epsilon", "delta", "alpha", "mean_"} for f in fitted)
    assert len(accountant.charges) == 2
    fitted[0].fit(X, y)  # the accountant is active here: charged once
    assert len(accountant.charges) == 3


def test_a_copy_made_inside_is_not_charged_outside():
    with BudgetAccountant(50.0, 1e-3) as accountant:
        estimator = copy.deepcopy(Dummy())
        estimator.fit(X, y)
    estimator.fit(X, y)
    assert len(accountant.charges) == 1


def test_processes_in_a_part_are_charged_as_about_all_records(accountant):
    with accountant.part("north", partition="sites"):
        cross_val_score(Dummy(), X, y, cv=2, n_jobs=2)
        Dummy().fit(X, y)
    assert [row.part for row in accountant.charges] == ["", "", "north"]


def _elsewhere(function, *args):
    """Run in another process, and return what it returns."""
    return Parallel(n_jobs=2)([delayed(function)(*args)])[0]


def _fit_unpickled(data):
    """Fit an unpickled estimator and copies: which carry a handle, which errors they raise."""
    estimator = cloudpickle.loads(data)
    assert repr(estimator) == "Dummy()"
    assert set(estimator.get_params()) == {"epsilon", "delta", "alpha"}
    copies = (estimator, clone(estimator), copy.deepcopy(estimator))
    carried = [_HANDLE in vars(each) for each in copies]
    errors = []
    for each in copies:
        before = dict(vars(each))
        try:
            each.fit(X, y)
        except PrivacyError as error:
            errors.append(str(error))
        else:
            assert vars(each) == {**before, "mean_": 0.0}
    return carried, errors


def test_copies_in_another_process_keep_the_accountant(accountant):
    data = cloudpickle.dumps(Dummy())
    carried, errors = _elsewhere(_fit_unpickled, data)
    assert carried == [True, True, True]
    assert not errors
    assert len(accountant.charges) == 3


def test_an_estimator_of_an_accountant_that_is_gone_says_so():
    accountant = BudgetAccountant(50.0, 1e-3)
    with accountant:
        data = cloudpickle.dumps(Dummy())
    del accountant
    gc.collect()
    carried, errors = _elsewhere(_fit_unpickled, data)
    assert carried == [True, True, True]  # a clone is no way out either
    assert len(errors) == 3
    assert all("gone" in error and "make a new one" in error for error in errors)


def test_an_estimator_pickled_outside_carries_nothing():
    assert _HANDLE not in Dummy().__getstate__()
    assert _elsewhere(_fit_unpickled, cloudpickle.dumps(Dummy())) == ([False] * 3, [])
