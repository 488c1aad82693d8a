"""A score that may be published: R2 on held-out rows, from noisy sums of squared errors."""

from dataclasses import dataclass
from math import sqrt
from numbers import Real
from statistics import NormalDist
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from .._choices import PrivacyModel
from .._compat import HasMethods, Interval, StrOptions, validate_params
from ..exceptions import PrivacyError
from ..privacy import (
    MODELS,
    MOST_NOISE,
    SIDE_SHARE,
    Budget,
    PrivacyReport,
    capabilities,
    models_that,
    open_session,
)
from ..records import as_rows, public_shape
from ._score_queries import ErrorMoments, TargetCentreQuery, TargetSpreadQuery, row_numbers

SCORE_CLIP = 5.0  # squares are clipped at so many mean absolute deviations of the target


@dataclass(frozen=True)
class PrivateScore:
    """A released score, with intervals that count sampling and privacy noise.

    Attributes
    ----------
    r2 : float
        One minus the ratio of the two released means of clipped squares, at most 1.
    low, high : float
        Ends of the interval for the R2 of the population, at ``confidence_level``.
    mean_squared_error : float
        The mean squared error in squared units of y.
    confidence_level : float
    resolved : bool
        Whether the variance of the target is clear of its noise; if not, r2 is NaN and the
        interval is (-inf, 1).
    privacy_report_ : PrivacyReport
    """

    r2: float
    low: float
    high: float
    mean_squared_error: float
    confidence_level: float
    resolved: bool
    privacy_report_: PrivacyReport

    def __str__(self):
        level = f"{100 * self.confidence_level:g}%"
        return f"R2 {self.r2:.3f} ({level} interval {self.low:.3f} to {self.high:.3f})"


@validate_params(
    {
        "estimator": [HasMethods(["predict"])],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="left")],
        "bounds_y": ["array-like", None],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "privacy": [StrOptions(MODELS.keys())],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def private_score(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float,
    bounds_y: Any = None,
    confidence_level: float = 0.95,
    privacy: PrivacyModel = "central",
    random_state: int | np.random.RandomState | None = None,
) -> "PrivateScore":
    """R2 of a fitted estimator on held-out rows, as a private release with an interval.

    Parameters
    ----------
    estimator : estimator
        Fitted, with ``predict``; a Pipeline too. It must not have seen these rows, or the score is
        not one of held-out rows (the guarantee holds all the same).
    X : array-like or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    epsilon : float > 0, or infinity
    delta : float in [0, 1)
        Cost of the release for a record of X and y.
    bounds_y : (low, high), default=None
        Public range of y; None takes that of the estimator, or of the last step of a Pipeline.
    confidence_level : float in (0, 1), default=0.95
    privacy : {"central", "none"}, default="central"
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    score : PrivateScore

    Raises
    ------
    BudgetExceeded
        If an active accountant cannot pay; nothing has been read then.

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
    rows = numbered(X, y)
    bounds = target_bounds(estimator, bounds_y)
    session = open_session(
        privacy, rows, None, Budget(epsilon, delta), random_state, "private_score"
    )
    rows.check()
    centre, limit = learn_scale(session, bounds, SIDE_SHARE, SIDE_SHARE)
    query = ErrorMoments(estimator, X, bounds, limit, centre=centre)
    answer = session.sum(query, 1.0 - 2.0 * SIDE_SHARE)
    return _score(answer, limit, bounds, confidence_level, session.report)


def learn_scale(session, bounds, location, spread, deviations=SCORE_CLIP):
    """Released mean of the target in [-1, 1], and the limit of deviations and errors from it.

    Where the noise of the spread, a public number, is too large, the limit is the whole range.
    """
    mean = session.sum(TargetCentreQuery(bounds), location)
    centre = float(np.clip(mean.value[0] / mean.n, -1.0, 1.0))
    deviation = session.sum(TargetSpreadQuery(bounds, centre), spread)
    largest = 1.0 + abs(centre)
    noise = deviation.noise.scale / deviation.n
    if noise > MOST_NOISE:
        return centre, largest
    released = float(deviation.value[0] / deviation.n) + 2.0 * noise
    return centre, largest * min(1.0, max(deviations * released, 10.0 * noise, 1e-6))


def _score(answer, limit, bounds, confidence_level, report):
    """R2 and its interval by the delta method, sampling and privacy noise together."""
    n, noise = answer.n, answer.noise.scale / answer.n
    u, v, uu, vv, uv = answer.value / n * np.array([1.0, 1.0, 2.0, 2.0, 2.0])
    radius = bounds[1] / 2.0 - bounds[0] / 2.0
    error = float(max(u, 0.0) * (limit * radius) ** 2)
    quantile = NormalDist().inv_cdf(0.5 + confidence_level / 2.0)
    if not v > 3.0 * noise:
        return PrivateScore(np.nan, -np.inf, 1.0, error, confidence_level, False, report)
    slope = np.array([-1.0 / v, u / v**2])
    sampling = np.array([[uu - u * u, uv - u * v], [uv - u * v, vv - v * v]])
    variance = max(slope @ sampling @ slope, 0.0) / n + slope @ slope * noise**2
    r2, half = float(1.0 - u / v), quantile * sqrt(variance)
    low, high = (min(1.0, float(end)) for end in (r2 - half, r2 + half))
    # Noise may put the sum of squared errors below zero, but no R2 is above one.
    return PrivateScore(min(1.0, r2), low, high, error, confidence_level, True, report)


def target_bounds(estimator, bounds_y):
    """Public range of the target: as given, or that of the estimator."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    found = bounds_y if bounds_y is not None else getattr(last, "bounds_y_", None)
    found = found if found is not None else getattr(last, "bounds_y", None)
    if found is None or isinstance(found, str):
        raise PrivacyError(
            "bounds_y is unknown: pass bounds_y=(low, high), the public range of the target."
        )
    low, high = (float(bound) for bound in found)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError("bounds_y=(low, high) must be two finite numbers, the smaller first.")
    return low, high


def numbered(X, y):
    """Rows of a session whose queries look up the row of a table by its number.

    Nothing but lengths is looked at: ``check`` refuses targets that are no numbers, after the
    charge.
    """
    n, *other = public_shape(y)
    if other not in ([], [1]):
        raise ValueError(f"y of shape {(n, *other)} must be one-dimensional: a target of each row.")
    if public_shape(X)[:1] != (n,):
        raise ValueError(f"X and y have different numbers of rows: {public_shape(X)[0]} and {n}.")
    return as_rows(row_numbers(n), y)
