"""Linear regression with instruments: two-stage least squares of released answers."""

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._choices import IntervalMethod
from ..._compat import fit_context
from ..._estimation._coefficients import CoefficientLaw
from ..._estimation._intervals import ConfidenceInterval, inside_bounds, two_sided_quantile
from ..._estimation._persons import WithinPersons
from ..._estimation._public_bounds import column_bounds
from ..._estimation._public_maps import RowMap, TargetMap
from ..._parameters import RowsOfPerson, parameters
from ...exceptions import PrivacyError
from ...privacy import models_that
from .._base import PrivateRegressor
from .._opening import open_fit, persons_of, public_bounds, public_rows
from .._points import rowwise
from ._effects import check_effects, refuse_level, within_bounds, within_columns
from ._two_stages import first_stage, solve_two_stages

# code -> textbook (Wooldridge 2010, chapter 5): z instruments and exogenous features, x those of
# the structural equation y = x'beta + u with E[z u] = 0


@parameters
class IVRegressor(PrivateRegressor):
    """Two-stage least squares: a linear equation with instruments, from noisy answers.

    Some features go along with what else moves the target, so that least squares is biased.
    Instruments move these *endogenous* features and nothing else about the target. The slopes
    solve E[z (y - x'beta)] = 0 for the instruments and the other features z.

    Parameters
    ----------
    instruments : list of str or int
        Columns of X that are instruments: they are not in the equation themselves.
    endogenous : list of str or int
        Columns of X that the instruments stand for. All other columns are exogenous features, which
        are in the equation and are their own instruments.
    privacy : {"central", "aggregate", "none"}, default="central"
        Who adds the noise: a trusted curator, every user a part that only the sum hides all of, or
        nobody.
    bounds_X : mapping, array-like of shape (n_features, 2) or (low, high)
        Public range of every feature, in its own units; instruments are features, too. Required.
    bounds_y : (float, float)
        Public range (low, high) to which y and predictions are clipped. Required.
    effects : {"person"} or None, default=None
        "person" fits differences from the means of each person, which `fit` needs ``groups`` for.
        There is no intercept then, and no interval for a level.
    n_jobs : int or None, default=-1
        Threads that read, scale and add up rows; -1 is one for each core.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the structural equation; 0 for instruments.
    intercept_ : float
    first_stage_ : FirstStage
        Regressions of the endogenous features on the instruments, with F statistics; prints as a
        table, and ``to_frame()``.
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record, or
    with ``groups`` of one person. Released: one joint Gaussian answer for all second moments, one
    for the scores at their solution, and with ``groups`` counts of the lengths of persons' scores;
    their costs compose exactly as Gaussian DP (Dong, Roth and Su 2022). Public: the number of
    records and all parameters.

    Residuals are clipped at five released deviations. Intervals invert the noise of the slope of
    the equation on the instruments. Where its smallest singular value is not told from noise, or an
    F statistic of a first stage, noise included, is below 10, the instruments are weak:
    `skpriv.inspection.inference` says so and gives no interval. Of collinear instruments F may not
    be known while their fit is. The steps and their cost are in ``docs/mathematics/persons.md``.

    References
    ----------
    J. M. Wooldridge (2010). Econometric analysis of cross section and panel data. MIT Press.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import IVRegressor
    >>> rng = np.random.RandomState(0)
    >>> z, hidden = rng.uniform(-1, 1, (2, 50_000))
    >>> x = 0.5 * z + 0.4 * hidden
    >>> y = 0.4 * x + 0.5 * hidden + rng.uniform(-0.1, 0.1, 50_000)
    >>> est = IVRegressor(
    ...     instruments=[0], endogenous=[1], bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=0
    ... ).fit(np.column_stack([z, x]), y)
    >>> est.coef_.round(1)  # least squares has 1.0
    array([0. , 0.4])
    >>> est.first_stage_.weak
    False
    """

    instruments: Any = None
    endogenous: Any = None
    bounds_X: Any = None
    fit_intercept: bool = True
    max_rows_per_group: RowsOfPerson = None
    effects: Literal["person"] | None = None
    n_jobs: int | None = -1

    estimand: ClassVar[str | None] = "structural equation that instruments identify"
    interval_claims: ClassVar[tuple[str, ...]] = ("asymptotic",)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, max_rows_per_group: int | None = None
    ) -> Self:
        """Fit the model; the whole budget is charged before the rows are used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Instruments, endogenous and exogenous features.
        y : array-like of shape (n_samples,), default=None
            None if X is rows that have their targets in them: see `skpriv.records.from_table`.
        groups : array-like of shape (n_samples,), default=None
            The person of each row. Then a record is a person: the guarantee is for replacing one
            person with all rows, and the number of persons is public. Intervals hold whatever the
            dependence of a person's rows is.
        max_rows_per_group : int, default=None
            The most rows of a person that are used, with `groups`; they are chosen at random. None
            takes that of the constructor.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceeded
            If an active :class:`skpriv.BudgetAccountant` cannot pay.
        """
        self._refuse_reports()
        groups = persons_of(self, groups, max_rows_per_group)
        records = public_rows(self, X, y)
        rows, target = self._maps(records.n_features, groups)
        instruments, endogenous = self._places(records.n_features)
        session = open_fit(self, records, groups=groups)
        del X, y, records  # only the session has the data now
        exogenous = np.setdiff1d(np.arange(rows.size), endogenous)
        structural = np.setdiff1d(np.arange(rows.size), instruments)
        self._map, self._target = rows, target
        self._fit = solve_two_stages(session, rows, target, exogenous, structural)
        weights = self._units @ self._fit.theta
        self.coef_ = weights[:-1]
        self.intercept_ = target.centre + float(weights[-1])
        unit = session.report.unit
        self.first_stage_ = first_stage(
            self._fit, rows, self._labels(), endogenous, instruments, unit
        )
        session.report.note = self.first_stage_.warning or None
        self.privacy_report_ = session.report
        return self

    def _refuse_reports(self):
        if not self._trust.can.same_rows:
            raise PrivacyError(
                f"privacy={self.privacy!r}: scores are asked at a first solution, for which users "
                "would have answered already, and their noise leaves no first stage: use "
                f"{models_that('same_rows')}."
            )

    def _maps(self, n_features, groups):
        """Public maps of rows and targets; nothing is charged yet."""
        if self.bounds_X is None:
            raise ValueError(
                "bounds_X is required: the public range (low, high) of every column of X. A "
                "default would clip silently, and a range read off the data is not private."
            )
        names = list(getattr(self, "feature_names_in_", []))
        low, high = column_bounds(self.bounds_X, names, n_features, "bounds_X")
        rows = RowMap(low, high, None, bool(self.fit_intercept), n_features)
        bounds = public_bounds(self)
        if self.effects is None:
            return rows, TargetMap(bounds, bool(self.fit_intercept))
        check_effects(self, groups)
        groups.change = WithinPersons(rows.clipped, bounds)
        within = within_columns(rows, groups.largest)
        return within, TargetMap(within_bounds(bounds, groups.largest), False)

    def _places(self, n_features):
        """Columns of the instruments and of the endogenous features."""
        instruments = self._columns("instruments", n_features)
        endogenous = self._columns("endogenous", n_features)
        both = set(instruments) & set(endogenous)
        if both:
            raise ValueError(
                f"instruments and endogenous both have column {min(both)}: an instrument is not in "
                "the equation, and an endogenous feature is."
            )
        if len(instruments) < len(endogenous):
            raise ValueError(
                f"{len(endogenous)} endogenous features need as many instruments or more, and "
                f"there are {len(instruments)}."
            )
        return instruments, endogenous

    def _columns(self, parameter, n_features):
        given, names = getattr(self, parameter), list(getattr(self, "feature_names_in_", []))
        if given is None or isinstance(given, str | Integral) or not len(given):
            raise ValueError(f"{parameter}={given!r} must be a list of columns of X, at least one.")
        found = []
        for column in given:
            if isinstance(column, str) and column in names:
                column = names.index(column)
            if isinstance(column, str) or not 0 <= column < n_features:
                raise ValueError(
                    f"{parameter} has {column!r}, no column of X with n_features={n_features}."
                )
            found.append(int(column))
        if len(set(found)) < len(found):
            raise ValueError(f"{parameter}={given!r} has a column twice.")
        return sorted(found)

    def _labels(self):
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else list(names)

    @property
    def _units(self):
        """Map from theta to coefficients and intercept less the centre, in the units of X and y."""
        return self._target.radius * self._map.coefficient_map()[:, self._fit.structural]

    @property
    def outside_columns(self) -> list:
        """Columns that are not in the equation: the instruments."""
        check_is_fitted(self)
        return self._columns("instruments", self.n_features_in_)

    @rowwise
    def predict(self, X: Any) -> np.ndarray:
        """Value of the structural equation, inside ``bounds_y``.

        That is what the target would be on average if the features were *set* to these values, and
        not the best guess of a target that goes along with them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        fitted = self._points(X) @ self.coef_ + self.intercept_
        return fitted if self.effects is not None else np.clip(fitted, *self._target.bounds_y)

    def coefficient_law(self) -> CoefficientLaw:
        """Distribution of the coefficients, for :func:`skpriv.inspection.inference`.

        Returns
        -------
        CoefficientLaw
            Nothing is estimable where instruments are weak.
        """
        check_is_fitted(self)
        self._check_claim("asymptotic")
        fit, units = self._fit, self._units
        sampling, privacy = (units @ part @ units.T for part in (fit.sampling, fit.privacy))
        value, weak = np.append(self.coef_, self.intercept_), self.first_stage_.weak
        if weak:
            value, sampling, privacy = (np.full_like(x, np.nan) for x in (value, sampling, privacy))
        return CoefficientLaw(
            value,
            sampling,
            privacy,
            np.full(len(value), not weak),
            self.first_stage_.warning,
            fit.moments.n,
            str(self.estimand),
        )

    @rowwise
    def confidence_interval(
        self, X: Any, confidence_level: float = 0.95, method: IntervalMethod = "asymptotic"
    ) -> ConfidenceInterval:
        """Confidence interval for the structural equation at each row, not for a new y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        confidence_level : float in (0, 1), default=0.95
        method : {"asymptotic"}, default="asymptotic"

        Returns
        -------
        ConfidenceInterval
            Named tuple (low, high) of ndarrays of shape (n_samples,), inside ``bounds_y``;
            ``bounds_y`` itself where instruments are weak.
        """
        refuse_level(self)
        X = self._interval_points(X, confidence_level, method)
        predicted = np.clip(X @ self.coef_ + self.intercept_, *self._target.bounds_y)
        points = self._map.features(X)[:, self._fit.structural]
        covariance = self._fit.sampling + self._fit.privacy
        half = np.sqrt(np.einsum("ij,jk,ik->i", points, covariance, points))
        half *= two_sided_quantile(confidence_level)
        half = np.full_like(half, np.inf) if self.first_stage_.weak else half
        return inside_bounds(self._target, points @ self._fit.theta, half, predicted)
