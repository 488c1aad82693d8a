"""What generalised linear models share: they are fitted by score steps, with a link and targets."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimation._intervals import ConfidenceInterval
from ..._estimation._loop._exact import MaximumLikelihood
from ..._estimation._loop._steps import at_solution
from ..._estimation._public_maps import RecordMap, TargetMap
from ..._linalg import row_products
from ..._parameters import ArrayLike, CurveEstimand, Estimand, Level, Positive, parameters
from ...exceptions import PrivacyError
from ...privacy import SIDE_SHARE
from .._by_steps import FitsLines
from .._estimator import Spec
from .._opening import public_row_map
from .._plan import IN_COMMON

if TYPE_CHECKING:
    from ..._estimation._public_maps import PublicTargets
    from ..._estimation._coefficients import CoefficientLaw
    from ..._contracts import Array
    from ..._estimation._links import BentLink, StepLink
    from ..._estimation._loop._fit import LoopFit
    from ...records import Rows

WEIGHTED = "curve of the weighted scores"
LIKELIHOOD = "curve of maximum likelihood"


UNIT = TargetMap((-1.0, 1.0), True)  # of linear parts, which have no other unit

COMPARED = (
    "The curve of maximum likelihood, in which far rows count in full, is fitted with "
    "likelihood as the estimand"
)


@parameters
class GeneralizedLinear(FitsLines):
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
    estimand : {"fitted", "likelihood"}, default="fitted"
        The curve whose coefficients the table of :func:`skpriv.inspection.inference` shows.
        "fitted" is the curve of the steps, in which far rows count for less. "likelihood" is the
        curve of maximum likelihood of the clipped rows: most of the budget goes to its equation,
        which makes its standard errors smaller and those of the fitted curve larger. The choice is
        public and has to be made before the fit. More than two classes have "fitted" alone.
    calibration_size : float in (0, 1), default=None
        Part of the rows that is held out of the fit, at random, for :meth:`prediction_set`; both
        parts have the whole budget. None holds out nothing.
    prediction_levels : array-like of float, default=(0.9, 0.95)
        Confidence levels whose quantiles ``fit`` releases for :meth:`prediction_set`. They share
        the budget of the calibration rows.
    """

    data_norm: Positive | None = None
    fit_intercept: bool = True
    estimand: CurveEstimand = "fitted"
    calibration_size: Level | None = None
    prediction_levels: ArrayLike = (0.9, 0.95)

    _in_common = IN_COMMON
    _spec = Spec(
        {"bounds_X": (-10.0, 10.0), "bounds_y": (0.0, 4.0)},
        ("central", "aggregate", "shuffle", "none"),
    )

    def _check_model(self) -> None:
        """Refuse a privacy model whose users answer alone; policies ask before the first epoch."""
        if self._trust.can.alone:
            raise PrivacyError(
                f"privacy={self.privacy!r} is not for {type(self).__name__}: each user would "
                "answer one of a dozen questions, with noise of their own, and no fit is left. "
                "Pass 'central', 'aggregate' or 'shuffle', or use a LinearRegression for the "
                f"line of the same target: its slopes are differences of {self._means}."
            )

    def _fit_link(
        self,
        records: "Rows",
        target: "PublicTargets",
        link: "BentLink",
        groups: Any,
        weights: dict[str, float | np.ndarray],
    ) -> None:
        """Fit records with public maps of their rows, which are checked first."""
        self._check_model()
        rows = public_row_map(self, records.n_features)
        self._fit_steps(records, RecordMap(rows, target), groups, weights, link)

    def _exact(self, session: Any, maps: RecordMap, link: "StepLink") -> "LoopFit":
        """The fit without privacy."""
        likely = session.release(MaximumLikelihood(maps, link), 1.0 - 2.0 * SIDE_SHARE)
        return at_solution(session, maps, link, likely.value)

    def _read(self) -> None:
        """Coefficients and intercepts, in the units of X: a row for each linear part, or class."""
        fit = self._released
        found = fit.link.each(self._record_map.row_map.coefficient_map()) @ fit.theta
        found = found.reshape(np.size(fit.location), -1)
        self.coef_ = found[:, :-1]
        self.intercept_ = found[:, -1] + fit.location

    def _deviation(self) -> Any:
        """Nothing is known of the deviation of counts, which is not the same everywhere."""

    def _linear(self, X: np.ndarray) -> "Array":
        """eta of checked rows, which are clipped as in the fit: a column for each of more parts."""
        clipped = self._record_map.row_map.clipped(X)
        eta = row_products(clipped, np.atleast_2d(self.coef_)) + self.intercept_
        return eta if eta.shape[1] > 1 else eta[:, 0]

    def _interval(self, X: np.ndarray, confidence_level: float, method: str) -> ConfidenceInterval:
        """The interval of the mean at checked rows: all of its range where eta is not resolved.

        If eta is above its largest value, it ends there, with the width that it has.
        """
        eta = self._eta(X)
        value, half = self._released.interval(self._record_map.rows(X), confidence_level, method)
        low = np.minimum(value, self._released.link.largest) - half
        high = value + half
        low = self._mean(np.minimum(low, eta))
        high = self._mean(np.maximum(high, eta))
        return ConfidenceInterval(low, high)

    def _eta(self, X: np.ndarray) -> np.ndarray:
        """The linear part whose interval is that of the mean."""
        return self._linear(X)

    def coefficient_law(self, estimand: Estimand | None = None) -> "CoefficientLaw":
        """Distribution of the coefficients, for :func:`skpriv.inspection.inference`.

        Parameters
        ----------
        estimand : {"fitted", "likelihood"}, default=None
            The curve of the weighted scores, or that of maximum likelihood; None is the declared
            one.

        Returns
        -------
        CoefficientLaw
            Estimates, covariance from sampling and from privacy noise, and what is estimable, of
            coefficients and then the intercept, for features in the units of X. Estimates are not
            shrunk, and so differ from ``coef_``.
        """
        self._check_claim("asymptotic")
        law: "CoefficientLaw" = self._law(estimand or self.estimand)
        return law

    def _law(self, estimand: str) -> Any:
        fitted = estimand == "fitted"
        curve = WEIGHTED if fitted and not self._trust.can.exact else LIKELIHOOD
        maps = replace(self._record_map, target_map=UNIT)
        words = self._law_words
        words |= {"estimand": f"{estimand}: {words['estimand']}", "trust": self._trust}
        words["detail"] = f"by the {words['detail']} {curve}"
        words["compared"] = COMPARED if curve == WEIGHTED else ""
        return self._released.coefficient_law(maps, fitted, **words)
