"""What logistic and Poisson regression share: rows, the session, the fit, intervals."""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._choices import Estimand
from ..._estimation._coefficients import CoefficientLaw, bounds_words, loop_law
from ..._estimation._intervals import ConfidenceInterval
from ..._estimation._loop._steps import SHARE, at_solution, fit_rows, public_rules
from ..._estimation._public_maps import TargetMap, WeightedMap
from ..._linalg import row_products
from ..._parameters import ArrayLike, Level, Positive, RowsOfPerson, parameters
from ...exceptions import PrivacyError
from ...privacy import models_that
from ...records import WeightedRows
from .._base import AsymptoticIntervals, FitsPersons
from .._start import Starts
from .._opening import open_fit, public_row_map, weighted_rows
from .._prediction_intervals import hold_out
from .._exact import MaximumLikelihood

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
class GeneralizedLinear(AsymptoticIntervals, FitsPersons, Starts):
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
    _likelihood: ClassVar[Any] = MaximumLikelihood

    def _fit_rows(self: Any, records, target, link, groups, weights):
        """Fit records with public maps; the whole budget is charged before values are read.

        Parameters
        ----------
        records : Rows
        target : object with ``scaled(y)``
        link : MeanLink
        groups : Groups or None
        weights : dict
            The weights as they were passed to ``fit``.
        """
        rows = self._row_map(records.n_features)
        records = weighted_rows(self, records, weights, target.scaled)
        asked = rows
        if isinstance(records, WeightedRows):  # what they hand out is scaled
            asked, target = WeightedMap(rows), Handed()
        self._target = target
        self._begun = self._start(rows, target, link, plain=asked is rows)
        session = open_fit(self, records, groups=groups)
        del records  # only the session has the data now
        session, held_out = hold_out(self, session)
        self._map, self._link, self._n_fitted = rows, link, session.n
        self._ask(session, asked, target, link)
        self._coef, self._intercept = self._coefficients()
        names = getattr(self, "feature_names_in_", None)
        session.report.add_note(bounds_words(self._released, rows, names))
        self._calibration = self._calibrated(held_out)

    def _ask(self: Any, session, rows, target, link):
        """Ask the session for all that is released."""
        self._reach, ranged = np.inf, self.bounds_X is not None
        if session.trust.exact:
            likely = session.release(self._likelihood(rows, target, link), SHARE).value
            self._released = at_solution(session, rows, target, link, likely)
            return
        rules = public_rules(session, rows, "auto", ranged, link)
        self._reach = rules.reach
        self._released = fit_rows(session, rows, target, rules, link, start=self._begun)

    def _coefficients(self: Any):
        """Coefficients and intercept, in the units of X."""
        found = self._map.coefficient_map() @ self._released.theta
        return found[:-1], float(found[-1]) + self._released.location

    def _row_map(self: Any, n_features):
        """The public map of the rows; nothing is charged yet."""
        self._check_model()
        return public_row_map(self, n_features)

    def _check_model(self: Any):
        """Refuse a privacy model whose users answer alone."""
        if self._trust.can.alone:
            name, models = type(self).__name__, models_that("same_rows")
            words = {"privacy": self.privacy, "name": name, "models": models}
            raise PrivacyError(NEEDS_A_SUM.format(**words, what=self._means))

    def _linear(self, X):
        """eta of checked rows, which are clipped as in the fit."""
        return row_products(self._map.clipped(X), self._coef) + self._intercept

    def _linear_interval(self: Any, X, confidence_level, method, most=np.inf):
        """Interval for eta at checked rows; all numbers where a direction is not resolved.

        Where it is above ``most`` it ends there, with the width that it has.
        """
        eta = self._linear(X)
        fit = self._released
        value, half = fit.interval(self._map.rows(X), confidence_level, method)
        low, high = np.minimum(value, most) - half, value + half
        return ConfidenceInterval(np.minimum(low, eta), np.maximum(high, eta))

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
        sizes = self._n_fitted, fitted, self._reach
        return loop_law(self._released, self._map, UNIT, *sizes, epsilon=self.epsilon, **words)


class Handed:
    """Targets that were scaled when the rows were handed out."""

    def scaled(self, y):
        """The target as it comes."""
        return y
