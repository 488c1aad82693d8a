"""Queries about predictions: location and spread of a target, and squared errors.

Rows are numbers 0, ..., n-1 of a table that the query holds, so that a prediction is made when its
chunk is asked for: after the charge.
"""

import warnings
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from .._compat import safe_indexing
from ..exceptions import InvalidValues, PrivacyError
from ..privacy import ROUNDING, Query
from ..records import INVALID_VALUES, stand_in
from ._covered import predicted


def row_numbers(n):
    """Rows of a session whose queries look up the row of a table by its number."""
    return np.arange(n, dtype=float).reshape(-1, 1)


def unit_target(y, bounds):
    """Targets mapped from the bounds to [-1, 1], clipped; what is not a number becomes 0."""
    low, high = bounds
    centre, radius = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    with np.errstate(invalid="ignore", over="ignore"):
        unit = np.clip((np.clip(np.asarray(y, dtype=float), low, high) - centre) / radius, -1, 1)
    return np.nan_to_num(unit, nan=0.0)


@dataclass(frozen=True)
class TargetCentreQuery(Query):
    """Sum of the target, mapped to [-1, 1]. Replacing a record moves it by at most 2."""

    bounds: tuple
    name: str = "mean of the target"
    shape: tuple = (1,)
    sensitivity: float = 2.0 * ROUNDING

    def sum(self, X, y):
        """Sum over a chunk."""
        return np.array([unit_target(y, self.bounds).sum()])


@dataclass(frozen=True)
class TargetSpreadQuery(Query):
    """Sum of min(|r - m|, 1 + |m|) for a released m in [-1, 1], over 1 + |m|.

    Each term lies in [0, 1], so that replacing a record moves the sum by at most 1.
    """

    bounds: tuple
    centre: float
    name: str = "spread of the target"
    shape: tuple = (1,)
    sensitivity: float = 1.0 * ROUNDING

    def sum(self, X, y):
        """Sum over a chunk."""
        deviations = np.abs(unit_target(y, self.bounds) - self.centre)
        return np.array([np.minimum(deviations / (1.0 + abs(self.centre)), 1.0).sum()])


@dataclass(frozen=True)
class SquaredErrors(Query):
    """Sum of u = min(e^2, c^2) / c^2, e the error of a prediction clipped to the target's bounds.

    u lies in [0, 1], so that replacing a record moves the sum by at most 1.
    """

    estimator: Any = field(repr=False)
    table: Any = field(repr=False)
    bounds: tuple
    limit: float
    name: str = "squared errors"
    shape: tuple = (1,)
    sensitivity: float = 1.0 * ROUNDING

    def sum(self, X, y):
        """Sum over a chunk of row numbers."""
        return np.array([self._errors(X, unit_target(y, self.bounds)).sum()])

    def _errors(self, X, target):
        return _clipped_errors(self.estimator, self.table, X, target, self.bounds, self.limit)


@dataclass(frozen=True)
class ErrorMoments(SquaredErrors):
    """Sums of u, v, (u^2, v^2, u v) / 2, with v = min((r - m)^2, c^2) / c^2 and a released m.

    u and v lie in [0, 1], and so do their squares and their product: replacing a record moves the
    five sums by at most sqrt(1 + 1 + 3 / 4) = sqrt(2.75) in l2. The squares are there for the
    sampling error of u and v.
    """

    centre: float = 0.0
    name: str = "squared errors and deviations"
    shape: tuple = (5,)
    sensitivity: float = sqrt(2.75) * ROUNDING

    def sum(self, X, y):
        """Sums over a chunk of row numbers."""
        target = unit_target(y, self.bounds)
        u = self._errors(X, target)
        v = np.minimum((target - self.centre) ** 2 / self.limit**2, 1.0)
        return np.array([u.sum(), v.sum(), (u @ u) / 2.0, (v @ v) / 2.0, (u @ v) / 2.0])


@dataclass(frozen=True)
class Gains(Query):
    """Sums of 1 - u for each of K predictions, u in [0, 1] the squared error of `SquaredErrors`.

    Each coordinate of a record lies in [0, 1], so that replacing it moves each sum by at most 1. In
    the maximum norm, for a noisy maximum: how many predictions there are costs nothing.
    """

    estimators: tuple = field(repr=False)
    table: Any = field(repr=False)
    bounds: tuple
    limit: float
    name: str = "gains of the candidates"
    norm: str = "linf"
    sensitivity: float = 1.0 * ROUNDING

    @property
    def shape(self):
        """Number of predictions."""
        return (len(self.estimators),)

    def sum(self, X, y):
        """Sums over a chunk of row numbers."""
        target = unit_target(y, self.bounds)
        errors = (
            _clipped_errors(estimator, self.table, X, target, self.bounds, self.limit).sum()
            for estimator in self.estimators
        )
        return len(target) - np.array(list(errors))


def _clipped_errors(estimator, table, numbers, target, bounds, limit):
    """min(e^2, c^2) / c^2 for the errors e of clipped predictions of the rows with these numbers.

    Each estimator has a copy of the rows, since steps such as ``Normalizer(copy=False)`` write to
    it.
    """
    rows = safe_indexing(table, numbers[:, 0].astype(np.intp))
    errors = target - unit_target(_predictions(estimator, rows), bounds)
    return np.minimum(errors**2 / limit**2, 1.0)


def _predictions(estimator, rows):
    try:
        return predicted(estimator, rows)
    except Exception:  # its text may hold a value of a row
        pass
    if _predicts(estimator, stand_in(rows)):  # so it was values: as where rows are fitted
        raise InvalidValues(INVALID_VALUES)
    raise PrivacyError(
        "the estimator could not predict the rows of X: pass rows of the kind on which it was "
        "fitted, of finite numbers. What was charged stays charged."
    )


def _predicts(estimator, rows):
    """Whether public rows of the same kind can be predicted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names, which they do not have
            predicted(estimator, rows)
    except Exception:
        return False
    return True
