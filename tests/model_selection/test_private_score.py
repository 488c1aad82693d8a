"""Private scores: what they estimate, what they cost, and that they answer anything."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from registry.refusals import charged, uncharged
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from skpriv import BudgetAccountant
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.linear_model import LogisticRegression, SSPRegressor
from skpriv.model_selection import PrivateSearchCV, private_score
from skpriv.records import from_batches


def first_column():
    """An estimator that predicts the first of two columns, and is known to do so row by row."""
    model = LinearRegression()
    model.coef_, model.intercept_, model.bounds_y_ = np.array([1.0, 0.0]), 0.0, (-1.0, 1.0)
    return model


def data(n, rng):
    X = rng.uniform(-0.5, 0.5, size=(n, 2))
    return X, X[:, 0] + rng.uniform(-0.2, 0.2, size=n)


def test_without_privacy_it_is_r2(global_random_seed):
    X, y = data(500, np.random.default_rng(global_random_seed))
    score = private_score(first_column(), X, y, epsilon=np.inf, delta=0.0)
    assert score.r2 == pytest.approx(r2_score(y, X[:, 0]), abs=1e-10)
    assert score.mean_squared_error == pytest.approx(np.mean((y - X[:, 0]) ** 2), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_interval_covers_the_population(epsilon):
    """400 draws at a nominal .95: fails for one coverage below .91 or above .985 (level 1e-3)."""
    rng = np.random.default_rng(7)
    truth = 1.0 - (0.4**2 / 12) / (1 / 12 + 0.4**2 / 12)
    hits = 0
    for seed in range(400):
        X, y = data(3_000, rng)
        score = private_score(first_column(), X, y, epsilon=epsilon, delta=1e-6, random_state=seed)
        hits += score.low <= truth <= score.high
    assert 0.91 <= hits / 400 <= 0.985


def test_it_is_charged_once_and_refused_before_rows_are_read():
    X, y = data(100, np.random.default_rng(0))
    with BudgetAccountant(1.0, 1e-6) as accountant:
        private_score(first_column(), X, y, epsilon=1.0, delta=1e-6, random_state=0)
        assert accountant.spent.epsilon == pytest.approx(1.0)
        with pytest.raises(BudgetExceeded):
            private_score(first_column(), X, y, epsilon=0.1, delta=1e-6)


def test_the_score_lies_in_its_interval_and_is_at_most_one():
    """Of an exact prediction the noise alone is released, which is negative half of the time."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(3_000, 2))
    ones = 0
    for seed in range(30):
        score = private_score(
            first_column(), X, X[:, 0], epsilon=1.0, delta=1e-6, random_state=seed
        )
        assert score.low <= score.r2 <= score.high <= 1.0
        assert all(type(number) is float for number in (score.r2, score.low, score.high))
        ones += score.r2 == 1.0
    assert 3 <= ones <= 27  # each side fails with probability 4e-6


def test_values_that_cannot_be_predicted_give_the_sentence_of_a_fit():
    X, y = data(50, np.random.default_rng(0))
    model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, y)
    bad = X.copy()
    bad[3, 1] = np.nan
    score = lambda rows: private_score(model, rows, y, epsilon=1.0, delta=1e-6)  # noqa: E731
    with charged():
        score(bad)
    with uncharged("X has 1 features"):
        score(X[:, :1])


def test_what_has_no_rows_in_memory_or_predicts_classes_is_refused():
    X, y = data(50, np.random.default_rng(0))
    lazy = pytest.importorskip("polars").DataFrame(X).lazy()
    search = PrivateSearchCV(SSPRegressor(bounds_y=(-1, 1)), {}, epsilon=1.0, delta=1e-6)
    score = partial(private_score, first_column(), epsilon=1.0, delta=1e-6)
    for rows in ((lazy, y), (X, lazy), (from_batches(lambda: [(X, y)]), None), (None, y)):
        for ask in (search.fit, score):
            with uncharged("must be in memory"):
                ask(*rows)
    for column in (X[:, 0], X[:, :, None]):
        with uncharged("two-dimensional"):
            search.fit(column, y)
    classes = LogisticRegression(data_norm=1.0, classes=(0, 1)).fit(X, y > 0)
    with uncharged("for regressions", PrivacyError):
        private_score(classes, X, y > 0, epsilon=1.0, delta=1e-6, bounds_y=(0, 1))


def test_a_text_is_no_prediction_whatever_it_says():
    """Whether all rows are predicted as "1", and none as "x", would be told by an error."""
    names = SimpleNamespace(predict=lambda rows: np.full(len(rows), "1"))
    with pytest.raises(PrivacyError, match="could not predict"):
        private_score(names, [[0.0]] * 9, [0.0] * 9, epsilon=1.0, delta=1e-6, bounds_y=(-1, 1))


def test_too_few_rows_are_not_resolved():
    X, y = data(10, np.random.default_rng(0))
    score = private_score(first_column(), X, y, epsilon=0.1, delta=1e-6, random_state=0)
    assert not score.resolved and np.isnan(score.r2)
    assert (score.low, score.high) == (-np.inf, 1.0)
