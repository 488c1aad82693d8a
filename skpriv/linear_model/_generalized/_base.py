"""What logistic and Poisson regression share: rows, the session, the fit, intervals."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._choices import Estimand
from ..._estimation._coefficients import CoefficientLaw, loop_law
from ..._estimation._intervals import ConfidenceInterval
from ..._estimation._loop._steps import at_solution
from ..._estimation._public_maps import TargetMap
from ..._linalg import row_products
from ..._parameters import ArrayLike, Level, Positive, RowsOfPerson, parameters
from ...exceptions import PrivacyError
from ...privacy import SIDE_SHARE, models_that
from .._exact import MaximumLikelihood
from .._opening import public_row_map
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
        self._fit_steps(records, rows, target, groups, weights, link)

    def _exact(self, session, rows, target, link):
        """The fit without privacy."""
        likely = session.release(
            MaximumLikelihood(rows, target, link), 1.0 - 2.0 * SIDE_SHARE
        ).value
        return at_solution(session, rows, target, link, likely)

    def _read(self: Any):
        """Coefficients and intercepts, in the units of X: a row for each class of several."""
        fit = self._released
        found = fit.link.each(self._map.coefficient_map()) @ fit.theta
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
        return row_products(self._map.clipped(X), self._coef) + self._intercept

    def _interval(self: Any, X, confidence_level, method):
        """The interval of the mean at checked rows: all of its range where eta is not resolved.

        Where eta is above its largest value it ends there, with the width that it has.
        """
        fit, eta = self._released, self._eta(X)
        value, half = fit.interval(self._map.rows(X), confidence_level, method)
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
        return loop_law(self._released, self._map, UNIT, fitted, epsilon=self.epsilon, **words)
