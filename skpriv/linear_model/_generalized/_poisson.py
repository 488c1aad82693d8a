"""Private Poisson regression of counts."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ..._estimation._fit_statistics import count_statistics
from ..._estimation._links import Log
from ..._estimation._public_maps import PublicTargets
from ..._parameters import ConformityScore, parameters
from ..._stored import frozen, stored
from .._opening import public_bounds, public_rows
from .._prediction_intervals import PredictionIntervals
from ._glm import GeneralizedLinear

if TYPE_CHECKING:
    from ..._contracts import Array


@stored
@frozen
class CountTarget(PublicTargets):
    """Counts as parts of the largest: r = clip(y, low, high) / high.

    Parameters
    ----------
    bounds : (float, float)
    """

    bounds: tuple[Any, ...]
    bounded = True

    def scaled(self, y: np.ndarray) -> "Array":
        """r of a chunk of targets, in [0, 1]; NaN stays NaN, a row of zeros."""
        return np.clip(y, *self.bounds) / self.bounds[1]

    def outside(self, y: np.ndarray) -> "Array":
        """Whether each count is outside of its bounds, shape (n_rows,); NaN is not."""
        return (y < self.bounds[0]) | (y > self.bounds[1])


@stored
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
        Change of the logarithm of the mean by one unit of each feature, shrunk to predict better.
        Publish the estimates of :func:`skpriv.inspection.inference`.
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
    for the whitening, one for each score step and one for the mean and the size of the residuals.
    Costs compose exactly as Gaussian DP (Dong, Roth and Su 2022). Public: the number of records and
    all parameters. The sensitivity of a score step is proved in the docstring of ``ScoreQuery``
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

    interval_estimand = (
        "the mean of the target by the log-linear curve that fits its clipped residuals best"
    )
    interval_claims = ("asymptotic",)

    law_estimands = ("fitted", "likelihood")

    @property
    def _law_words(self) -> dict[str, str]:
        """Their values by the law of the coefficients."""
        return {
            "estimand": "logarithm of the mean",
            "detail": "log-linear",
            "ratio": "the factor of the mean for one unit (of the intercept: the mean at 0)",
            "ratio_name": "rate ratio",
        }

    def fit_statistics(self) -> tuple[Any, ...]:
        """R-squared and the residual deviation of counts, by what was released.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. It is empty where the answers do
            not tell them: without an intercept, of persons with several rows, and of few records.
        """
        fit = self._released
        has_mean = fit.equations and fit.rows_per_record == 1 and fit.mean
        return count_statistics(fit, self.bounds_y_[1]) if has_mean and fit.mean.counts else ()

    _means = "counts"

    @property
    def mean_name(self) -> str:
        """What the mean of the target is, in words."""
        return "mean"

    def mean_of_linear_part(self, eta: float) -> tuple[float, float, float]:
        """The mean count where the linear part is `eta`, and its first two derivatives.

        Parameters
        ----------
        eta : float
            Value of the linear part of the model.

        Returns
        -------
        tuple of three floats
            The mean, its slope and its second derivative.
        """
        return (float(np.exp(eta)),) * 3

    def _fit(self, X: Any, y: Any, groups: Any, weights: dict[str, float | np.ndarray]) -> None:
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
        self.coef_ = self.coef_[0]
        self.intercept_ = float(self.intercept_[0])

    def _function(self, X: np.ndarray) -> np.ndarray:
        """Predictions for checked rows."""
        return self._mean(self._linear(X))

    def _imagined_target(
        self, quantiles: np.ndarray, mean: float | None, deviation: float | None
    ) -> "Array":
        """Made-up counts: Poisson's law, or the negative binomial one with more deviation."""
        mean = public_bounds(self)[1] / 8.0 if mean is None else mean
        if deviation is None or deviation**2 <= mean:
            return stats.poisson.ppf(quantiles, mean)
        size = mean**2 / (deviation**2 - mean)
        return stats.nbinom.ppf(quantiles, size, size / (size + mean))

    def _mean(self, eta: np.ndarray) -> "Array":
        """Mean of the target at values of the linear part."""
        low, high = self.bounds_y_
        return np.exp(np.minimum(eta, np.log(high))).clip(low, high)
