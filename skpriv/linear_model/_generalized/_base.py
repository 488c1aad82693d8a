"""What logistic and Poisson regression share, and Poisson regression, which adds its link alone."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._choices import ConformityScore, Estimand
from ..._estimation._coefficients import CoefficientLaw, loop_law
from ..._estimation._intervals import ConfidenceInterval
from ..._estimation._loop._queries import Log
from ..._estimation._loop._steps import at_solution
from ..._estimation._public_maps import RecordMap, TargetMap
from ..._linalg import row_products
from ..._parameters import ArrayLike, Level, Positive, RowsOfPerson, parameters
from ...exceptions import PrivacyError
from ...privacy import SIDE_SHARE, models_that
from .._exact import MaximumLikelihood
from .._opening import public_bounds, public_row_map, public_rows
from .._prediction_intervals import PredictionIntervals
from .._start import FitsBySteps

WEIGHTED, LIKELIHOOD = "curve of the weighted scores", "curve of maximum likelihood"
UNIT = TargetMap((-1.0, 1.0), True)  # of linear parts, which have no other unit
NEEDS_A_SUM = (
    "privacy={privacy!r}: {name} needs somebody who adds up. Where every user answers once, with "
    "noise of their own, the dozen score steps of a curve that bends would each be asked of a "
    "twelfth of the users, and no fit is left: use {models} or 'shuffle', or "
    "LinearRegression(privacy='local') for the line of the same target, whose slopes are "
    "differences of {what}."
)


@parameters
class GeneralizedLinear(FitsBySteps):
    """Mixin of the generalised linear models; not for direct use.

    Parameters
    ----------
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records.
    privacy : {"central", "aggregate", "shuffle", "none"}, default="central"
        Who adds the noise: a trusted curator, all users together by secure aggregation (as much
        noise as a curator), every user with a trusted shuffler that makes the reports anonymous, or
        nobody. With "local" an error says what to do in its place.
    bounds_X : mapping, array-like of shape (n_features, 2) or (low, high), default=None
        Public range of every feature, in its own units: a mapping from feature name, for a data
        frame; a pair for each column; or one pair for all. Values outside are clipped, in
        predictions too. This or `data_norm` is required.
    data_norm : float, default=None
        Public: every row of X is clipped to this l2 norm. In place of `bounds_X`, for rows that
        were scaled before.
    calibration_size : float in (0, 1), default=None
        Part of the rows that is held out of the fit, at random, for :meth:`prediction_set`; both
        parts have the whole budget. None holds out nothing.
    prediction_levels : array-like of float, default=(0.9, 0.95)
        Confidence levels whose quantiles ``fit`` releases for :meth:`prediction_set`. They share
        the budget of the calibration rows.
    """

    bounds_X: Any = None
    data_norm: Positive | None = None
    fit_intercept: bool = True
    calibration_size: Level | None = None
    prediction_levels: ArrayLike = (0.9, 0.95)
    max_rows_per_group: RowsOfPerson = None
    n_jobs: int | None = -1

    _dtypes = (np.float64, np.float32)

    def _fit_link(self: Any, records, target, link, groups, weights):
        """Fit records with public maps of their rows, which are checked first."""
        self._check_model()
        rows = public_row_map(self, records.n_features)
        self._fit_steps(records, RecordMap(rows, target), groups, weights, link)

    def _exact(self, session, maps, link):
        """The fit without privacy."""
        rows, target = maps.row_map, maps.target_map
        likely = session.release(
            MaximumLikelihood(rows, target, link), 1.0 - 2.0 * SIDE_SHARE
        ).value
        return at_solution(session, rows, target, link, likely)

    def _read(self: Any):
        """Coefficients and intercepts, in the units of X: a row for each class of several."""
        fit = self._released
        found = fit.link.each(self._record_map.row_map.coefficient_map()) @ fit.theta
        found = found.reshape(np.size(fit.location), -1)
        self._coef, self._intercept = found[:, :-1], found[:, -1] + fit.location
        if fit.link.parts == 1:
            self._coef, self._intercept = self._coef[0], float(self._intercept[0])

    def _deviation(self):
        """Nothing is known of the deviation of counts, which is not the same everywhere."""
        return None

    def _check_model(self: Any):
        """Refuse a privacy model whose users answer alone."""
        if self._trust.can.alone:
            name, models = type(self).__name__, models_that("same_rows")
            words = {"privacy": self.privacy, "name": name, "models": models}
            raise PrivacyError(NEEDS_A_SUM.format(**words, what=self._means))

    def _linear(self, X):
        """eta of checked rows, which are clipped as in the fit."""
        return row_products(self._record_map.row_map.clipped(X), self._coef) + self._intercept

    def _interval(self: Any, X, confidence_level, method):
        """The interval of the mean at checked rows: all of its range where eta is not resolved.

        Where eta is above its largest value it ends there, with the width that it has.
        """
        fit, eta = self._released, self._eta(X)
        value, half = fit.interval(self._record_map.rows(X), confidence_level, method)
        largest = getattr(fit.link, "offset", np.inf)  # of counts
        low, high = np.minimum(value, largest) - half, value + half
        low, high = self._mean(np.minimum(low, eta)), self._mean(np.maximum(high, eta))
        return ConfidenceInterval(low, high)

    def _eta(self, X):
        """The linear part whose interval is that of the mean."""
        return self._linear(X)

    def coefficient_law(self: Any, estimand: Estimand = "fitted") -> CoefficientLaw:
        """Distribution of the coefficients, for :func:`skpriv.inspection.inference`.

        Parameters
        ----------
        estimand : {"fitted", "likelihood"}, default="fitted"
            The curve of the weighted scores, or that of maximum likelihood with wider intervals.

        Returns
        -------
        CoefficientLaw
            Estimates, covariance from sampling and from privacy noise, and what is estimable, of
            coefficients and then the intercept, for features in the units of X. Estimates are not
            shrunk, and so differ from ``coef_``.
        """
        check_is_fitted(self)
        self._check_claim("asymptotic")
        return self._law(estimand)

    def _law(self: Any, estimand):
        fitted = estimand == "fitted"
        curve = WEIGHTED if fitted and not self._trust.can.exact else LIKELIHOOD
        words = {"estimand": f"{estimand}: {self._of} {curve}", "ratio": self._ratio}
        maps = replace(self._record_map, target_map=UNIT)
        return loop_law(self._released, maps, fitted, epsilon=self.epsilon, **words)


@dataclass(frozen=True)
class CountTarget:
    """Counts as parts of the largest: r = clip(y, low, high) / high.

    Parameters
    ----------
    bounds : (float, float)
    """

    bounds: tuple

    def scaled(self, y):
        """r of a chunk of targets, in [0, 1]; NaN stays NaN, a row of zeros."""
        return np.clip(y, *self.bounds) / self.bounds[1]

    def outside(self, y):
        """Whether each count is outside of its bounds, shape (n_rows,); NaN is not."""
        return (y < self.bounds[0]) | (y > self.bounds[1])


@parameters
class PoissonRegressor(GeneralizedLinear, PredictionIntervals):
    """Private Poisson regression of counts, with a logarithmic link.

    A rate, a whitening of the rows, and then a dozen small Newton steps on the score, whose answers
    are pooled. Residuals are clipped at a few of their mean sizes, which fades as records or
    epsilon grow, and rows whose mean is many times that of all count for less. The variance need
    not be the mean: intervals are robust to that.

    Parameters
    ----------
    bounds_y : (float, float), default=None
        Public range (low, high) to which y is clipped, and predictions too. Required; low must not
        be negative.
    calibration_size : float in (0, 1), default=None
        Part of the rows that is held out of the fit, at random, for :meth:`prediction_interval`;
        both parts have the whole budget. None holds out nothing.
    conformity_score : {"absolute", "signed"}, default="signed"
        Prediction intervals go equally far to both sides, or, for skewed targets, as far to each as
        targets do.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Change of the logarithm of the mean by one unit of each feature.
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record.
    Released are Gaussian answers: the mean of the target and the mean size of its residuals, three
    for the whitening, one for each score step and one for the mean of the fit. Costs compose
    exactly as Gaussian DP (Dong, Roth and Su 2022). Public: the number of records and all
    parameters. The sensitivity of a score step is proved in the docstring of ``ScoreQuery``
    (``skpriv/_estimation/_loop/_score.py``).

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import PoissonRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = rng.poisson(np.exp(1.0 + X[:, 0]))
    >>> model = PoissonRegressor(
    ...     epsilon=1.0, bounds_X=(-1, 1), bounds_y=(0, 30), random_state=0
    ... ).fit(X, y)
    >>> bool(abs(model.coef_ - [1.0, 0.0]).max() < 0.1)
    True
    >>> low, high = model.confidence_interval([[0.5, 0.0]])  # for the mean
    >>> bool(low[0] < np.exp(1.5) < high[0])
    True
    """

    conformity_score: ConformityScore = "signed"

    estimand: ClassVar[str | None] = (
        "the mean of the target by the log-linear curve that fits its clipped residuals best"
    )
    interval_claims: ClassVar[tuple[str, ...]] = ("asymptotic",)

    law_estimands: ClassVar[tuple[str, ...]] = ("fitted", "likelihood")
    _of = "logarithm of the mean, by the log-linear"
    _ratio = "a rate ratio (of the intercept: a mean)"
    _means = "counts"

    def _fit(self, X, y, groups, weights):
        records = public_rows(self, X, y)
        bounds = public_bounds(self)
        if bounds[0] < 0.0:
            raise ValueError(
                f"bounds_y={self.bounds_y!r} must not be negative: counts are not, and no mean of "
                "a logarithmic link is."
            )
        self.bounds_y_ = bounds
        link = Log(offset=float(np.log(bounds[1])))
        self._fit_link(records, CountTarget(bounds), link, groups, weights)
        self.coef_, self.intercept_ = self._coef, self._intercept

    def _function(self, X):
        """Predictions for checked rows."""
        return self._mean(self._linear(X))

    def _mean(self, eta):
        """Mean of the target at values of the linear part."""
        low, high = self.bounds_y_
        return np.clip(np.exp(np.minimum(eta, np.log(high))), low, high)
