"""A score that may be published: R2 on held-out rows, from noisy sums of squared errors.

Estimators whose steps learn unpaid, or whose predictions mix rows, are refused. Rows are numbers 0,
..., n-1 of a table that the query holds, so that a prediction is made when its chunk is asked for:
after the charge.
"""

import sys
from contextlib import suppress
from dataclasses import field
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from .._compat import HasMethods, StrOptions, pipeline_steps, reaching_last, safe_indexing
from .._contracts import Shaped, Typed
from .._estimation._levels import two_sided_quantile
from .._estimation._public_maps import TargetMap, column_bounds
from .._estimation._targets import LocationQuery, SpreadQuery
from .._linalg import row_products
from .._parameters import ArrayLike, Delta, Epsilon, Level, PrivacyModel, RandomState, validated
from .._stored import frozen
from ..exceptions import InvalidValues, PrivacyError
from ..privacy import (
    MODELS,
    MOST_NOISE,
    ROUNDING,
    SIDE_SHARE,
    TOLD_ABOVE,
    Accounted,
    Budget,
    PrivacyReport,
    Query,
    capabilities,
    learns_nothing,
    models_that,
    open_session,
)
from ..records import (
    INVALID_VALUES,
    as_rows,
    dtypes_of,
    is_lazy,
    public_shape,
    public_zeros,
    silence,
)

if TYPE_CHECKING:
    from ..privacy import Answer
    from .._contracts import Array

# Predictors of scikit-learn whose fitted objects map each row by itself, and hold numbers alone
LINEAR = (ElasticNet, Lasso, LinearRegression, Ridge)
PREDICTORS = (DummyRegressor, *LINEAR)


def check_covered(estimator: Any, X: Any) -> None:
    """Refuse an estimator of which a part learns from the rows, and is neither public nor charged.

    Nothing of X but its kind is looked at.

    Raises
    ------
    PrivacyError
        It names the step and the remedy.
    """
    kinds = map(str, dtypes_of(X).values())
    sparse = issparse(X) or any(kind.startswith("Sparse") for kind in kinds)
    while type(estimator) is Pipeline:
        for name, step in estimator.steps[:-1]:
            if not learns_nothing(step, sparse, charged=True):
                raise PrivacyError(
                    f"the step {name!r}, a {type(step).__name__}, may learn from the rows, and "
                    "that is not charged: use BoundsScaler or TableEncoder, which take "
                    "public ranges and lists, or make the step before, from public data. A "
                    "ColumnTransformer of sparse rows needs sparse_threshold=0."
                )
        estimator = estimator.steps[-1][1]
    if not isinstance(estimator, Accounted):
        raise PrivacyError(
            f"a {type(estimator).__name__} is neither a private regressor of skpriv nor a Pipeline "
            "that ends in one: what it reads of the rows would not be charged. Search for the "
            "parameters of the private regressor itself."
        )


def is_rowwise(estimator: Any) -> bool:
    """Whether each prediction of a fitted estimator is known to depend on its own row alone.

    Notes
    -----
    That is known of the estimators of skpriv, of `PREDICTORS`, and of a Pipeline that ends in one
    of them, if its other steps learn nothing. A subclass is another class, and so is an object that
    hides a method of its class. Being of scikit-learn is not enough: ``NMF`` begins each
    transformation at the mean of the batch.

    The premise is that the analyst is honest, but does not know how predictors compute. An author
    of a predictor that copies rows elsewhere needs no score for it, and batches of one row do not
    stop them either.
    """
    kind = type(estimator)
    if kind is Pipeline:
        *before, last = (step for _, step in estimator.steps)
        return all(learns_nothing(step, charged=True) for step in before) and is_rowwise(last)
    ours = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    ours = ours and kind.__module__.startswith("skpriv.")
    if not (ours or kind in PREDICTORS):
        return False
    own = vars(estimator).items()
    return not any(callable(value) or callable(getattr(kind, name, None)) for name, value in own)


def predicted(estimator: Any, rows: Any) -> Any:
    """Predictions for rows: of one row at a time, where a prediction may depend on other rows.

    Otherwise one record could move the errors of all, and a sum of them by far more than the one
    error that is counted. No batch of more rows is safe for a predictor that is not known: its
    predictions for public batches would prove nothing about private ones.

    Raises
    ------
    ValueError
        If there is not one prediction for each row. One record would count twice.
    """
    with silence():
        count = public_shape(rows)[0]
        # In a list of lists one cell decides how all others are read: it goes row by row.
        if isinstance(rows, Shaped) and is_rowwise(estimator):
            return _one_each(_at_once(estimator, rows), count)
        found = np.empty(count)
        for i in range(count):
            row = rows[i : i + 1] if isinstance(rows, np.ndarray) else safe_indexing(rows, [i])
            found[i : i + 1] = _one_each(estimator.predict(row), 1)
        return found


def _at_once(estimator: Any, rows: Any) -> "Array":
    """Predictions of an estimator that is known for many rows.

    Linear predictors of scikit-learn multiply by BLAS, which may add the terms of the last rows of
    a chunk in another order. If the terms are large beside their sum, a row that only changed its
    place in the table would have another error.
    """
    last = pipeline_steps(estimator)[-1]
    if last is not estimator:
        return _at_once(last, reaching_last(estimator, rows))
    if type(estimator) not in LINEAR:
        return estimator.predict(rows)
    X = validate_data(estimator, rows, accept_sparse="csr", reset=False)
    return row_products(X, estimator.coef_) + estimator.intercept_


def _one_each(values: np.ndarray, count: int) -> np.ndarray:
    values = np.asarray(values).astype(float, casting="same_kind")  # no text, of which some is "1"
    if values.shape not in ((count,), (count, 1)):
        raise ValueError("an estimator must make one prediction for each row.")
    return values.reshape(count)


def row_numbers(n: int) -> np.ndarray:
    """Rows of a session whose queries look up the row of a table by its number."""
    return np.arange(n, dtype=float).reshape(-1, 1)


def unit_target(y: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Targets mapped from the bounds to [-1, 1], clipped; what is not a number becomes 0."""
    return TargetMap(bounds, fit_intercept=True).scaled(y)


@frozen
class ClippedErrors:
    """The common part of queries of errors: the errors of predictions for the rows of a table."""

    fitted: Any = field(repr=False)  # an estimator, or several
    table: Any = field(repr=False)
    bounds: tuple[Any, ...]
    limit: float

    def errors(self, estimator: Any, X: np.ndarray, y: np.ndarray) -> "Array":
        """min(e^2, c^2) / c^2 for the errors e of clipped predictions of the rows of these numbers.

        Each estimator has a copy of the rows, since steps such as ``Normalizer(copy=False)`` write
        to it.
        """
        rows = safe_indexing(self.table, X[:, 0].astype(np.intp))
        values = unit_target(_predictions(estimator, rows), self.bounds)
        return np.minimum((unit_target(y, self.bounds) - values) ** 2 / self.limit**2, 1.0)


@frozen
class SquaredErrors(ClippedErrors, Query):
    """Sum of u = min(e^2, c^2) / c^2, e the error of a prediction clipped to the target's bounds.

    u lies in [0, 1], so that replacing a record moves the sum by at most 1.
    """

    name = "squared errors"
    shape = (1,)
    sensitivity = 1.0 * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sum over a chunk of row numbers."""
        return np.array([self.errors(self.fitted, X, y).sum()])


@frozen
class ErrorMoments(SquaredErrors):
    """Sums of u, v, (u^2, v^2, u v) / 2, with v = min((r - m)^2, c^2) / c^2 and a released m.

    u and v lie in [0, 1], and so do their squares and their product: replacing a record moves the
    five sums by at most sqrt(1 + 1 + 3 / 4) = sqrt(2.75) in l2. The squares are there for the
    sampling error of u and v.
    """

    centre: float = 0.0
    name = "squared errors and deviations"
    shape = (5,)
    sensitivity = sqrt(2.75) * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sums over a chunk of row numbers."""
        u = self.errors(self.fitted, X, y)
        v = np.minimum((unit_target(y, self.bounds) - self.centre) ** 2 / self.limit**2, 1.0)
        return np.array([u.sum(), v.sum(), (u @ u) / 2.0, (v @ v) / 2.0, (u @ v) / 2.0])


@frozen
class Gains(ClippedErrors, Query):
    """Sums of 1 - u for each of K predictions, u in [0, 1] the squared error of `SquaredErrors`.

    Each coordinate of a record lies in [0, 1], so that replacing it moves each sum by at most 1. In
    the maximum norm, for a noisy maximum: how many predictions there are costs nothing.
    """

    name = "gains of the candidates"
    norm = "linf"
    sensitivity = 1.0 * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of predictions."""
        return (len(self.fitted),)

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sums over a chunk of row numbers."""
        return len(y) - np.array([self.errors(one, X, y).sum() for one in self.fitted])


def _predictions(estimator: Any, rows: Any) -> "Array":
    with suppress(Exception):  # Its text may hold a value of a row.
        return predicted(estimator, rows)
    error: Exception = PrivacyError(
        "the estimator could not predict the rows of X: pass rows of the kind on which it was "
        "fitted, of finite numbers. What was charged stays charged."
    )
    with suppress(Exception):  # It can predict public rows of this kind: then a value is wrong.
        predicted(estimator, public_zeros(rows))
        error = InvalidValues(INVALID_VALUES)
    raise error


SCORE_CLIP = 5.0  # Errors are clipped at so many mean absolute deviations of the target.


@frozen
class PrivateScore:
    """A released score, with intervals that count sampling and privacy noise.

    Parameters
    ----------
    r2 : float
        One minus the ratio of the two released means of clipped squares, at most 1.
    low, high : float
        Ends of the interval for the R2 of the population, at ``confidence_level``.
    mean_squared_error : float
        The mean squared error in squared units of y.
    confidence_level : float
        Confidence level of the interval, in (0, 1).
    resolved : bool
        Whether the variance of the target is clear of its noise; if not, r2 is NaN and the
        interval is (-inf, 1).
    privacy_report_ : PrivacyReport
        Queries about the held-out rows, and their price.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.model_selection import private_score
    >>> X = np.linspace(-1.0, 1.0, 20_000)[:, None]
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0).fit(X, X[:, 0])
    >>> found = private_score(model, X, X[:, 0], epsilon=1.0, delta=1e-6, random_state=0)
    >>> found.resolved, found.confidence_level
    (True, 0.95)
    """

    r2: float
    low: float
    high: float
    mean_squared_error: float
    confidence_level: float
    resolved: bool
    privacy_report_: PrivacyReport

    def __str__(self) -> str:
        level = f"{100 * self.confidence_level:g}%"
        return f"R2 {self.r2:.3f} ({level} interval {self.low:.3f} to {self.high:.3f})"


@validated
def private_score(
    estimator: Annotated[Any, HasMethods(["predict"])],
    X: Any,
    y: Any,
    *,
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    bounds_y: ArrayLike | None = None,
    confidence_level: Level = 0.95,
    privacy: Annotated[PrivacyModel, StrOptions(MODELS.keys())] = "central",
    random_state: RandomState = None,
) -> PrivateScore:
    """R2 of a fitted regressor on held-out rows, as a private release with an interval.

    Parameters
    ----------
    estimator : estimator
        A fitted regressor, whose ``predict`` returns numbers and no classes; a Pipeline too. It
        must not have seen these rows, or the score is not one of held-out rows (the guarantee holds
        all the same).
    X : array-like or data frame of shape (n_samples, n_features)
        Held-out rows.
    y : array-like of shape (n_samples,)
        Their targets; they are clipped to ``bounds_y``.
    epsilon : float > 0, or infinity
        Cost of the release for a record of X and y.
    delta : float in [0, 1), default=1e-6
        The same: choose it well below one over the number of records.
    bounds_y : (low, high), default=None
        Public range of y; None takes that of the estimator, or of the last step of a Pipeline.
    confidence_level : float in (0, 1), default=0.95
        Probability with which the interval contains the R2 of the population.
    privacy : {"central", "none"}, default="central"
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    score : PrivateScore
        The released R2 and mean squared error, with an interval and a report.

    Raises
    ------
    BudgetExceeded
        If an active accountant cannot pay; nothing has been read then.
    PrivacyError
        Of a classifier, and of users who answer for themselves.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-DP when one record is replaced. Released: the mean of
    the target (5% of mu^2), its mean absolute deviation (5%), and sums of squares that are
    clipped at five such deviations, of the prediction's errors and of the target about its mean.
    Predictions and targets are clipped to ``bounds_y``. The score of a rare huge error is therefore
    better than its exact R2. The interval is a normal one, by the delta method.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.model_selection import private_score
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    >>> y = X @ [1.0, -0.5, 0.0] + rng.uniform(-0.2, 0.2, size=20_000)
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0)
    >>> _ = model.fit(X[:10_000], y[:10_000])
    >>> score = private_score(
    ...     model, X[10_000:], y[10_000:], epsilon=1.0, delta=1e-6, random_state=1
    ... )
    >>> bool(score.low < 0.88 < score.high)
    True
    """
    if capabilities(privacy).reports:
        raise PrivacyError(
            f"privacy={privacy!r} asks each user one question, and a score asks each of them "
            f"several: use {models_that('same_rows')}."
        )
    if hasattr(pipeline_steps(estimator)[-1], "classes_"):  # which a search has by its estimator
        raise PrivacyError(
            "private_score is for regressions, and this estimator predicts classes: for targets 0 "
            "and 1 pass an object whose predict returns probabilities, and bounds_y=(0, 1)."
        )
    rows = numbered_rows(X, y)
    bounds = target_bounds(estimator, bounds_y)
    if is_rowwise(estimator):  # It refuses what is wrong in public, before the charge.
        estimator.predict(safe_indexing(public_zeros(X), [0]))
    session = open_session(
        privacy, rows, None, Budget(epsilon, delta), random_state, "private_score"
    )
    rows.check()
    centre, limit = learn_scale(session, bounds, SIDE_SHARE, SIDE_SHARE)
    query = ErrorMoments(estimator, X, bounds, limit, centre=centre)
    answer = session.sum(query, 1.0 - 2.0 * SIDE_SHARE)
    return _score(answer, limit, bounds, confidence_level, session.report)


def learn_scale(
    session: Any,
    bounds: tuple[float, float],
    location: float,
    spread: float,
    deviations: float = SCORE_CLIP,
) -> tuple[float, float]:
    """Released mean of the target in [-1, 1], and the limit of deviations and errors from it.

    If the noise of the spread, a public number, is too large, the limit is the whole range.
    """
    target = TargetMap(bounds, fit_intercept=True)
    mean = LocationQuery(target)
    centre = mean.read(session.sum(mean, location)).mean
    deviation = session.sum(SpreadQuery(target, centre), spread)
    largest = 1.0 + abs(centre)
    noise = deviation.mean_scale
    if noise > MOST_NOISE:
        return centre, largest
    released = float(deviation.value[0] / deviation.n) + 2.0 * noise
    return centre, min(largest, max(deviations * released, 10.0 * noise, 1e-6))


def _score(
    answer: "Answer",
    limit: float,
    bounds: tuple[float, float],
    confidence_level: float,
    report: PrivacyReport,
) -> PrivateScore:
    """R2 and its interval by the delta method, sampling and privacy noise together."""
    n = answer.n
    noise = answer.mean_scale
    u, v, uu, vv, uv = answer.value / n * np.array([1.0, 1.0, 2.0, 2.0, 2.0])
    radius = bounds[1] / 2.0 - bounds[0] / 2.0
    error = float(max(u, 0.0) * (limit * radius) ** 2)
    if not v > TOLD_ABOVE * noise:
        return PrivateScore(nan, -inf, 1.0, error, confidence_level, False, report)
    slope = np.array([-1.0 / v, u / v**2])
    sampling = np.array([[uu - u * u, uv - u * v], [uv - u * v, vv - v * v]])
    variance = max(slope @ sampling @ slope, 0.0) / n + slope @ slope * noise**2
    r2 = float(1.0 - u / v)
    half = two_sided_quantile(confidence_level) * sqrt(variance)
    low, high = (min(1.0, float(end)) for end in (r2 - half, r2 + half))
    # Noise may make the sum of squared errors negative, but no R2 is above one.
    return PrivateScore(min(1.0, r2), low, high, error, confidence_level, True, report)


def target_bounds(estimator: Any, bounds_y: tuple[int, int] | None) -> tuple[float, float]:
    """Public range of the target: as given, or that of the estimator."""
    last = pipeline_steps(estimator)[-1]
    candidates = (bounds_y, getattr(last, "bounds_y_", None), getattr(last, "bounds_y", None))
    found = next((bounds for bounds in candidates if bounds is not None), "auto")
    if isinstance(found, str):
        raise PrivacyError(
            "bounds_y is unknown: pass (low, high), the public range of the target. A classifier "
            "has none, and neither a score nor a search takes one: take a regressor of 0 and 1 "
            "with bounds_y=(0, 1)."
        )
    return tuple(np.concatenate(column_bounds(found, [], 1, "bounds_y")).tolist())


def numbered_rows(X: Any, y: Any) -> Any:
    """Rows of a session whose queries look up the row of a table by its number.

    Nothing but lengths is looked at: ``check`` refuses targets that are no numbers, after the
    charge.
    """
    for name, data in (("X", X), ("y", y)):
        if (is_lazy(data) and not isinstance(data, Typed)) or not public_shape(data):
            raise ValueError(
                f"{name} must be in memory, since its rows are picked by their numbers: pass an "
                "array or a data frame, such as a lazy frame after its collect()."
            )
    n, *other = public_shape(y)
    if other not in ([], [1]):
        raise ValueError(f"y of shape {(n, *other)} must be one-dimensional: a target of each row.")
    if public_shape(X)[:1] != (n,):
        raise ValueError(f"X and y have different numbers of rows: {public_shape(X)[0]} and {n}.")
    return as_rows(row_numbers(n), y)
