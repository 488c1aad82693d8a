"""Private linear regression: the regressor to take."""

from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._choices import Estimand
from ..._estimation._coefficients import CoefficientLaw, equations_law, loop_law
from ..._estimation._public_maps import MappedRecords
from ..._estimation._reports import ReportedFit, balanced
from ..._parameters import Channel, DataNorm, Positive, RowsOfPerson, parameters
from .._opening import (
    best_reports,
    named_constants,
    public_maps,
    public_rows,
    within_maps,
)
from .._prediction_intervals import PredictionIntervals
from .._start import FitsBySteps
from ._plan import Plans
from ._pooled import Likely

# code -> docs/mathematics/linear_regression.md:
#   effective_records -> N,  rules.clip -> k,  location -> m,  whitened rows e -> w W phi,
#   NewtonEquation -> the sums of a step at b


@parameters
class LinearRegression(FitsBySteps, Likely, Plans, PredictionIntervals):
    """Private linear regression: a line that follows most records, and least squares in the limit.

    Learns location and spread of the target and a whitening of the rows, then takes 4 to 64 small
    steps on residuals that are clipped at a few of their own deviations, and pools them. Clips,
    weights and shares follow from the public numbers of records and features and the budget: where
    privacy noise rules they are tight, and they fade as n or epsilon grow, so that the fit
    converges to least squares. Nothing is needed before it: it takes the public range of each
    feature.

    Parameters
    ----------
    bounds_X : mapping, array-like of shape (n_features, 2) or (low, high), default=None
        Public range of every feature, in its own units: a mapping from feature name, for a data
        frame; a pair for each column; or one pair for all. Values outside are clipped. Ranges come
        from what the features mean, never from the rows. This or `data_norm` is required.
    data_norm : float, default=None
        Public: every row of X is clipped to this l2 norm. In place of `bounds_X`, for rows that
        were scaled before.
    coef_norm : float or None, default=None
        Assumed bound on the l2 norm of the coefficients in scaled units, that is on
        ``coef_ * half-width of bounds_X / half-width of bounds_y`` and the intercept. None assumes
        nothing. Only intervals use it.
    clip : {"auto", "wide"}, default="auto"
        "wide" clips residuals at 6 of their deviations at least, at any number of records: for
        skewed targets where bias must stay below noise.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: vectors with Gaussian noise for the steps
        above, or one index of a public codebook each, for one set of normal equations. That is
        pure (``delta=0``), and has so much less noise that no users are spent on other steps.
        "auto" takes it, but in the local model under an accountant that adds up Gaussian noise, and
        in the shuffle model with ``bounds_X`` and neither very few nor very many users, where
        steps are worth more than less noise (docs/evidence/codebook.md).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients in the units of X and y.
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released are Gaussian answers: the mean and the spread of the target,
    four for the whitening, one for each step, and one count of the rows outside of their bounds.
    With many records the lengths of whitened rows and the equation of the least-squares line are
    released, too, and where clips are tight the mean of the residuals. Costs compose exactly as
    Gaussian DP (Dong, Roth and Su 2022). With the codebook channel: one index of each user, by one
    exact integer draw, and nothing else (delta = 0, docs/trust.md). Public: the number of
    records and all parameters. With so few records that no coefficient can be found, the mean alone
    is released, and the report says so.

    The derivation, the rules and what they were measured on are in ``docs/linear_regression.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import LinearRegression
    >>> rng = np.random.RandomState(0)
    >>> X = np.column_stack([rng.uniform(20, 60, 20_000), rng.uniform(0, 1, 20_000)])
    >>> y = 5.0 + 0.1 * X[:, 0] + 2.0 * X[:, 1] + rng.normal(size=20_000)
    >>> est = LinearRegression(
    ...     epsilon=1.0, bounds_X=[(20, 60), (0, 1)], bounds_y=(0, 20), random_state=0
    ... ).fit(X, y)
    >>> est.coef_.round(1)
    array([0.1, 2. ])
    >>> bool(abs(est.predict(X) - 5.0 - X @ [0.1, 2.0]).max() < 0.2)
    True
    """

    bounds_X: Any = None
    data_norm: DataNorm = None
    fit_intercept: bool = True
    coef_norm: Positive | None = None
    clip: Literal["auto", "wide"] = "auto"
    channel: Channel = "auto"
    max_rows_per_group: RowsOfPerson = None
    effects: Literal["person"] | None = None
    n_jobs: int | None = -1

    _dtypes = (np.float64, np.float32)

    estimand: ClassVar[str | None] = "bounded-influence line of the clipped rows"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified", "asymptotic")

    def _fit(self, X, y, groups, weights):
        records = public_rows(self, X, y)
        rows, target = public_maps(self, records.n_features)
        if self.effects is not None:
            rows, target = within_maps(self, groups, rows, target, weights)
        self.bounds_y_, self._information = target.bounds_y, None
        self._fit_steps(records, rows, target, groups, weights)

    def _sent(self, records, rows, target):
        """What users send: "gaussian" or "codebook", by public numbers."""
        return best_reports(self, MappedRecords(rows, target), records)

    def _rows_of(self, session, rows, channel, start):
        """The public map of the rows, of users' reports with features as long as they can tell."""
        return balanced(session, rows) if channel == "codebook" else rows

    law_estimands: ClassVar[tuple[str, ...]] = ("fitted", "least_squares")

    def coefficient_law(self, estimand: Estimand = "fitted") -> CoefficientLaw:
        """Distribution of the coefficients, for :func:`skpriv.inspection.inference`.

        Parameters
        ----------
        estimand : {"fitted", "least_squares"}, default="fitted"
            The line that was fitted, or the least-squares line with wider intervals.

        Returns
        -------
        CoefficientLaw
            Estimate, covariance from sampling and from privacy noise, and what is estimable, of the
            coefficients and then the intercept, in the units of X and y.
        """
        check_is_fitted(self)
        self._check_claim("asymptotic")
        if isinstance(self._released, ReportedFit):
            target, shift = self._target, np.zeros(len(self.coef_) + 1)
            shift[-1] = target.centre
            matrix = target.radius * self._map.coefficient_map()
            return equations_law(self._released.equations, matrix, shift, {})
        fitted, fit = estimand == "fitted", self._released
        words = {"estimand": f"{estimand}: {self._line(fitted)}", "epsilon": self.epsilon}
        words["leverage"] = fit.leverage(self._map)
        law = loop_law(fit, self._map, self._target, fitted, **words)
        return law if self.effects is None else named_constants(law)

    def _line(self, fitted):
        """The line that is estimated, in words."""
        fit = self._released
        if not fitted or not fit.equations or self._trust.can.exact:
            return "least-squares line of the clipped rows and targets"
        limit = self._target.radius * fit.last.limit
        return (
            f"{self.estimand} and targets, in which residuals beyond {limit:.3g} (in units of y, "
            f"{fit.last.limit / sqrt(fit.variance):.2g} deviations) and rows that are far from the "
            "others count for less"
        )
