"""One fit of a curve, in whatever process it happens, and what is measured on it."""

from typing import Any, NamedTuple

import numpy as np
from joblib import hash
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._compat import safe_indexing
from ..metrics import interval_coverage_score, interval_mean_width
from ..privacy import learns_nothing
from ..records import read_in_batches


class Fold(NamedTuple):
    """Rows of one split, and those of the held-out rows at which intervals are measured."""

    train: np.ndarray
    test: np.ndarray
    points: np.ndarray

    def cut(self, X, y):
        """X of the training rows, their y, X and y of the held-out rows, and X of the points."""
        places = (X, self.train), (y, self.train), (X, self.test), (y, self.test), (X, self.points)
        return tuple(safe_indexing(*place) for place in places)


class Measured(NamedTuple):
    """What one fit gives; NaN where there is nothing to measure."""

    score: float
    width: float = np.nan
    coverage: float = np.nan
    prediction_width: float = np.nan
    prediction_coverage: float = np.nan


def make_fold(train, test, max_points):
    """Fold with at most `max_points` evenly spaced held-out rows for the intervals."""
    count = len(test) if max_points is None else min(max_points, len(test))
    return Fold(train, test, test[np.linspace(0, len(test) - 1, count).round().astype(int)])


def evaluate(estimator, rows, scorer, interval, reference):
    """Fit on the training rows, and measure on the held-out ones.

    Parameters
    ----------
    estimator : estimator
        Not fitted, and not needed elsewhere.
    rows : tuple of array-likes
        Those of :meth:`Fold.cut`.
    scorer : callable
    interval : dict or None
        Arguments of ``confidence_interval``; None measures no intervals.
    reference : ndarray or None
        Predictions of the reference at the points.

    Returns
    -------
    Measured
    """
    X, y, X_test, y_test, points = rows
    estimator.fit(X, y)
    score = scorer(estimator, X_test, y_test)
    if interval is None or not has_intervals(estimator):
        return Measured(score)
    last, points = private_step(estimator, points)
    low, high = last.confidence_interval(points, **interval)
    measured = Measured(score, interval_mean_width(low, high))
    if reference is not None:
        # The mean of a clipped target lies in its range, and so do the ends of its intervals.
        reference = np.clip(reference, *getattr(last, "bounds_y_", (-np.inf, np.inf)))
        measured = measured._replace(coverage=interval_coverage_score(reference, low, high))
    if getattr(last, "calibration_size", None) is None:
        return measured
    # A new y is there to be counted, in every held-out row.
    _, X_test = private_step(estimator, X_test)
    low, high = last.prediction_interval(X_test, interval["confidence_level"])
    return measured._replace(
        prediction_width=interval_mean_width(low, high),
        prediction_coverage=interval_coverage_score(y_test, low, high),
    )


def evaluate_reference(estimator, rows, scorer, interval):
    """Measure the reference as any other estimator; its predictions at the points too."""
    measured = evaluate(estimator, rows, scorer, interval, None)
    return measured, estimator.predict(rows[-1])


class Tables:
    """Tables of the folds, as they are after the public first steps of a Pipeline.

    Such steps map each row by itself and learn nothing, so that all folds, epsilons and repeats
    have the same rows: they are made once, and cut once a fold. Rows that are read in batches stay
    as they are.

    Parameters
    ----------
    X, y : array-likes
    """

    def __init__(self, X, y):
        self._X, self._y, self._lazy = X, y, read_in_batches(X, y)
        self._made: dict[str, Any] = {"": X}
        self._fold, self._cuts = None, {}

    def rows(self, estimator, fold):
        """What is left of the estimator after such steps, and the rows of a fold for it."""
        key = ""
        if not self._lazy and _begins_publicly(estimator):
            head, estimator = estimator[:-1], estimator[-1]
            key = hash(head)
            if key not in self._made:
                self._made[key] = clone(head).fit_transform(self._X)
        if self._fold is not fold:
            self._fold, self._cuts = fold, {}
        if key not in self._cuts:
            self._cuts[key] = fold.cut(self._made[key], self._y)
        return estimator, self._cuts[key]


def _begins_publicly(estimator):
    """Whether all steps of a Pipeline but the last learn nothing, so that it need not fit them."""
    if type(estimator) is not Pipeline or estimator.memory is not None or len(estimator) == 1:
        return False
    return all(learns_nothing(step) for _, step in estimator.steps[:-1])


def has_intervals(estimator):
    """Whether an estimator, or the last step of a pipeline, gives confidence intervals."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return hasattr(last, "confidence_interval")


def private_step(estimator, X):
    """Return the fitted estimator itself, or the last step of a pipeline and what reaches it."""
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X
