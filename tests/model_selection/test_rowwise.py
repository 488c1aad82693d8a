"""Predictions by chunk are made by estimators alone of which one row moves one prediction."""

import numpy as np
import pytest
from registry.door_makers import REGRESSORS
from registry.door_makers import _fitted as of_public_rows
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    LabelBinarizer,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)

from skpriv.exceptions import PrivacyError
from skpriv.linear_model import SSPRegressor
from skpriv.model_selection import PrivateSearchCV, private_score
from skpriv.model_selection._private_score import (
    PREDICTORS,
    ErrorMoments,
    Gains,
    is_rowwise,
    predicted,
)
from skpriv.preprocessing import BoundsScaler

RNG = np.random.RandomState(0)
X = RNG.uniform(0.0, 1.0, size=(60, 3))
Y = np.round(2.0 * X[:, 0] + X[:, 1])
OTHER = [[1e9, -1e9, 0.0], [0.0, 0.0, 0.0], [0.3, 1e-9, 0.7], [np.nan, 0.5, np.nan]]
OTHER_OURS = [[1e9, -1e9], [0.0, 0.0], [0.3, 1e-9]]


def others_stay(fitted, batch=X[:40], replacements=OTHER, changed=(0, 17)):
    """Whether predictions for other rows are the same to the last bit when a row is replaced.

    At least one replacement must be answered: an estimator that refuses all of them shows nothing.
    """
    before, answered = predicted(fitted, batch.copy()), 0
    for row in replacements:
        for at in changed:
            hostile = batch.copy()
            hostile[at] = row
            try:
                after = predicted(fitted, hostile)
            except ValueError:  # NaN, which is refused for the whole batch
                continue
            answered += 1
            one, two = (np.delete(these, at, 0).tolist() for these in (before, after))
            if repr(one) != repr(two):  # all digits, and NaN is NaN
                return False
    assert answered >= 2 * len(changed)
    return True


@pytest.mark.parametrize("kind", PREDICTORS, ids=lambda kind: kind.__name__)
def test_each_class_of_the_list_maps_rows_by_themselves(kind):
    model = kind().fit(X, Y)
    assert is_rowwise(model) and is_rowwise(make_pipeline(Normalizer(), model))
    assert others_stay(model)


@pytest.mark.parametrize("kind", PREDICTORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n", [7, 1001])
def test_a_row_has_one_prediction_wherever_it_stands(kind, n):
    """BLAS adds the terms of the last rows of a chunk in another order, to other digits."""
    rows = RNG.normal(size=(40, 17))
    model = kind(alpha=1e-3) if hasattr(kind(), "alpha") else kind()
    found = predicted(make_pipeline(model).fit(rows, rows.sum(axis=1)), np.tile(rows[0], (n, 1)))
    assert len(np.unique(found)) == 1


def test_labels_and_lists_are_called_for_one_row_at_a_time():
    """One cell of a list decides how all others of a batch are read."""
    estimator = make_pipeline(FunctionTransformer(np.reciprocal), Ridge())
    estimator.fit([[1.0], [2.0], [4.0]], [1.0, 0.5, 0.25])
    before, after = (predicted(estimator, [[first], [2], [2]]) for first in (2, 2.5))
    np.testing.assert_array_equal(before[1:], after[1:])


def test_nothing_is_said_of_a_value_that_was_never_seen():
    encoder = OneHotEncoder(drop="first", handle_unknown="ignore")
    estimator = make_pipeline(encoder, Ridge()).fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    assert len(predicted(estimator, np.array([[77.0], [2.0]]))) == 2  # a warning is an error


@pytest.mark.parametrize("Estimator", REGRESSORS)
def test_our_own_estimators_map_rows_by_themselves(Estimator):
    fitted = of_public_rows(Estimator)
    assert is_rowwise(fitted)
    assert others_stay(fitted, RNG.uniform(-0.4, 0.4, size=(20, 2)), OTHER_OURS)


class Own(BaseEstimator):
    """Another's class."""

    def predict(self, X):
        return np.zeros(len(X))


def mean_free(X):
    return X - X.mean(0)


def hidden(attribute="predict"):
    model = Ridge().fit(X, Y)
    setattr(model, attribute, lambda X: X[:, 0])
    return model


@pytest.mark.parametrize(
    "estimator",
    [
        # Subclasses, which may have replaced anything: one has the name and the module of another.
        type("Ridge2", (Ridge,), {})().fit(X, Y), Own(),
        type("Ridge", (Ridge,), {"__module__": Ridge.__module__})().fit(X, Y),
        hidden(), hidden("_decision_function"), hidden("_validated"),
        object(), BaggingRegressor(Ridge(), 2), make_pipeline(StandardScaler(), Ridge()),
        GridSearchCV(Ridge(), {"alpha": [1.0]}), LabelBinarizer(),
        make_pipeline(FunctionTransformer(np.exp), Ridge()),
        ColumnTransformer([("a", FunctionTransformer(mean_free), [0])]),
    ],
    ids=lambda estimator: type(estimator).__name__,  # no address, which workers would not share
)  # fmt: skip
def test_what_is_not_known_is_called_for_one_row_at_a_time(estimator):
    assert not is_rowwise(estimator)


def test_what_is_known():
    search = PrivateSearchCV(SSPRegressor(), {"data_norm": [1.0]}, epsilon=1.0, delta=1e-6)
    assert is_rowwise(search) and is_rowwise(make_pipeline(BoundsScaler((-1, 1)), Ridge()))


class Counting(BaseEstimator):
    """Says how many rows it sees at once."""

    def __init__(self):
        self.seen = []

    def predict(self, X):
        self.seen.append(len(X))
        return X.mean(axis=1) + X.mean()


def test_unknown_predictors_see_one_row_and_known_ones_see_all():
    model, frame = Counting(), pytest.importorskip("pandas").DataFrame(X)
    assert np.allclose(predicted(model, X), 2.0 * X.mean(axis=1))
    assert model.seen == [1] * len(X)
    ridge = Ridge().fit(X, Y)
    assert np.allclose(predicted(ridge, X), ridge.predict(X), rtol=1e-13)
    fitted = hidden("seen")  # not known, hence one by one
    fitted.predict = fitted.__class__.predict.__get__(fitted)
    assert np.allclose(predicted(fitted, frame.to_numpy()), ridge.predict(X))


def test_two_predictions_for_a_row_do_not_count_twice():
    """In a chunk of one row they would be added up, and a record would move the sum by 2."""
    double = LinearRegression().fit(X, np.column_stack([Y, -Y]))
    for rows in (X[:1], X):
        with pytest.raises(PrivacyError, match="could not predict"):
            private_score(double, rows, Y[: len(rows)], epsilon=1.0, delta=0.1, bounds_y=(0, 3))
    query = ErrorMoments(double, X, (0.0, 3.0), 0.5)
    with pytest.raises(PrivacyError):
        query.sum(np.array([[0.0]]), Y[:1])


def test_steps_that_write_to_their_rows_leave_them_to_the_next_candidate():
    scaled = make_pipeline(Normalizer(copy=False), Ridge(fit_intercept=False)).fit(X.copy(), Y)
    plain = Ridge(fit_intercept=False).fit(X, Y)
    numbers = np.arange(len(X), dtype=float).reshape(-1, 1)
    for pair in ((scaled, plain), (plain, scaled)):
        both = Gains(pair, X, (0.0, 3.0), 1.0).sum(numbers, Y)
        alone = [Gains((one,), X, (0.0, 3.0), 1.0).sum(numbers, Y)[0] for one in pair]
        assert np.array_equal(both, alone)
