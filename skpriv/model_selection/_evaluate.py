"""One fit of a curve, in whatever process it happens, and what is measured on it."""

from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from .._compat import safe_indexing
from ..metrics import interval_coverage_score, interval_mean_width


class Fold(NamedTuple):
    """Rows of one split, and those of the held-out rows at which intervals are measured."""

    train: np.ndarray
    test: np.ndarray
    points: np.ndarray


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


def evaluate(estimator, X, y, fold, scorer, interval, reference):
    """Fit on the training rows, and measure on the held-out ones.

    Parameters
    ----------
    estimator : estimator
        Not fitted, and not needed elsewhere.
    X, y : array-likes
    fold : Fold
    scorer : callable
    interval : dict or None
        Arguments of ``confidence_interval``; None measures no intervals.
    reference : ndarray or None
        Predictions of the reference at ``fold.points``.

    Returns
    -------
    Measured
    """
    estimator.fit(safe_indexing(X, fold.train), safe_indexing(y, fold.train))
    score = scorer(estimator, safe_indexing(X, fold.test), safe_indexing(y, fold.test))
    if interval is None or not has_intervals(estimator):
        return Measured(score)
    last, points = private_step(estimator, safe_indexing(X, fold.points))
    low, high = last.confidence_interval(points, **interval)
    measured = Measured(score, interval_mean_width(low, high))
    if reference is not None:
        # The mean of a clipped target lies in its range, and so do the ends of its intervals.
        reference = np.clip(reference, *getattr(last, "bounds_y_", (-np.inf, np.inf)))
        measured = measured._replace(coverage=interval_coverage_score(reference, low, high))
    if getattr(last, "calibration_size", None) is None:
        return measured
    # A new y is there to be counted, in every held-out row.
    _, rows = private_step(estimator, safe_indexing(X, fold.test))
    low, high = last.prediction_interval(rows, interval["confidence_level"])
    covered = interval_coverage_score(safe_indexing(y, fold.test), low, high)
    return measured._replace(
        prediction_width=interval_mean_width(low, high), prediction_coverage=covered
    )


def evaluate_reference(estimator, X, y, fold, scorer, interval):
    """Measure the reference as any other estimator; its predictions at ``fold.points`` too."""
    measured = evaluate(estimator, X, y, fold, scorer, interval, None)
    return measured, estimator.predict(safe_indexing(X, fold.points))


def has_intervals(estimator):
    """Whether an estimator, or the last step of a pipeline, gives confidence intervals."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return hasattr(last, "confidence_interval")


def private_step(estimator, X):
    """Return the fitted estimator itself, or the last step of a pipeline and what reaches it."""
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X
