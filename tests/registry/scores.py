"""Sums about predictions and targets, of private scores."""

from dataclasses import replace

import numpy as np

from skpriv.bandits._off_policy import FilledQuery, ValueQuery
from skpriv.model_selection._private_score import ErrorMoments, Gains, SquaredErrors, row_numbers

from .case import Case
from .linear import one

BOUNDS = (-1.0, 1.0)


class Predictor:
    """Predicts the mean of the first feature, times a factor: of a row alone, that of the row.

    Its class is not known, so that it is to be asked row by row: or one record would move the
    predictions for all.
    """

    def __init__(self, factor=1.0):
        self.factor = factor

    def predict(self, X):
        with np.errstate(all="ignore"):
            return np.full(len(X), self.factor * np.mean(np.asarray(X)[:, 0]))


def _ask(asked, X, y):
    """The query holds the table, and is asked for numbers of rows."""
    return replace(asked, table=X).sum(row_numbers(len(X)), y)


def _bounds(rng):
    return [BOUNDS, (0.0, 1e-300), (-1e300, 1e300), (1e16, 1e16 + 4.0)][rng.randint(4)]


def _errors(rng):
    estimator = Predictor(rng.choice([0.0, 1.0, 1e300]))
    return SquaredErrors(estimator, None, _bounds(rng), rng.choice([2.0, 0.1, 1e-3]))


def _gains(rng):
    estimators = tuple(Predictor(factor) for factor in (0.0, 1.0, 1e300)[: rng.randint(1, 4)])
    return Gains(estimators, None, _bounds(rng), rng.choice([2.0, 0.1, 1e-3]))


def _moments(rng):
    estimator = Predictor(rng.choice([0.0, 1.0, 1e300]))
    return ErrorMoments(estimator, None, _bounds(rng), 0.5, centre=rng.uniform(-1.0, 1.0))


def _value(rng):
    low, high = _bounds(rng)
    return ValueQuery(low, high, rng.choice([1e-3, 1.0, 50.0]))


def _filled(rng):
    low, high = _bounds(rng)
    return FilledQuery(low, high, rng.choice([1e-3, 1.0, 50.0]))


FAR, NEAR = one([1.0], -1.0), one([0.0], 0.0)
CASES = {
    # Rows are weights.
    ValueQuery: Case(
        _value,
        (
            lambda: (ValueQuery(-1.0, 1.0, 9.0), one([9.0], 1.0), one([9.0], -1.0)),
            lambda: (ValueQuery(-1e300, 1e300, 1e10), one([1e10], 1e300), one([1e10], -1e300)),
        ),
    ),
    FilledQuery: Case(
        _filled, (lambda: (FilledQuery(-1.0, 1.0, 9.0), one([9.0], 1.0), one([9.0], -1.0)),)
    ),
    SquaredErrors: Case(
        _errors, (lambda: (SquaredErrors(Predictor(), None, BOUNDS, 2.0), FAR, NEAR),), ask=_ask
    ),
    Gains: Case(
        _gains,
        (lambda: (Gains((Predictor(), Predictor(0.5)), None, BOUNDS, 2.0), FAR, NEAR),),
        ask=_ask,
    ),
    ErrorMoments: Case(
        _moments, (lambda: (ErrorMoments(Predictor(), None, BOUNDS, 0.5), FAR, NEAR),), ask=_ask
    ),
}
