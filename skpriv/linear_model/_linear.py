"""Private linear regression by the loop of whitened, clipped steps, and pooled fits."""

from copy import copy
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._estimation._coefficients import NOISE, CoefficientLaw
from .._estimation._fit_statistics import linear_statistics
from .._estimation._oracle import PoolsFits
from .._parameters import Channel, DataNorm, Estimand, LineEstimand, Positive, parameters
from .._printing import short_number
from .._stored import stored
from ..privacy import capabilities
from ._by_steps import FitsLines
from ._opening import CONSTANT, WITHIN, best_reports, public_maps, public_rows, within_maps
from ._prediction_intervals import PredictionIntervals

if TYPE_CHECKING:
    from ..privacy import Groups
    from .._estimation._loop._fit import LoopFit
    from .._contracts import Scalar

STRAIGHT = (
    "The least-squares line, in which all residuals and rows count in full, is fitted with "
    "least_squares as the estimand"
)


# code -> docs/mathematics/linear_regression.md:
#   effective_records -> N,  rules.clip -> k,  location -> m,  whitened rows e -> w W phi,
#   ScoreEquation -> the sums of a step at b


@stored
@parameters
class LinearRegression(PoolsFits, FitsLines, PredictionIntervals):
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
    estimand : {"fitted", "least_squares"}, default="fitted"
        The line whose coefficients the table of :func:`skpriv.inspection.inference` shows. "fitted"
        is the line of the steps, in which large residuals and far rows count for less.
        "least_squares" is the least-squares line of the clipped rows and targets: half of the
        budget goes to its equation, which makes its standard errors smaller and those of the fitted
        line larger. The choice is public and has to be made before the fit.
    coef_norm : float or None, default=None
        Assumed bound on the l2 norm of the coefficients in scaled units, that is on
        ``coef_ * half-width of bounds_X / half-width of bounds_y`` and the intercept. None assumes
        nothing. Only intervals use it.
    clip : {"auto", "wide"}, default="auto"
        "wide" clips residuals at 6 of their deviations at least, or below 3,600 effective records
        at a tenth of the root of their number: for skewed targets where bias must stay below noise.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: vectors with Gaussian noise for the steps
        above, or one index of a public codebook each, for one set of normal equations. It is pure
        (``delta=0``), and has so much less noise that no users are spent on other steps. "auto"
        takes it, but in the local model under an accountant that adds up Gaussian noise, and in the
        shuffle model with ``bounds_X`` and neither very few nor very many users, where steps are
        worth more than less noise (docs/evidence/codebook.md).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients in the units of X and y, shrunk to predict better. Publish the estimates of
        :func:`skpriv.inspection.inference`, which have standard errors.
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
    With many records the equation of the least-squares line, the lengths of its scores and the
    length of the line are released, too, and where clips are tight the mean of the residuals. Costs
    compose exactly as Gaussian DP (Dong, Roth and Su 2022). With the codebook channel: one index of
    each user, by one exact integer draw, and nothing else (delta = 0, docs/trust.md). Public: the
    number of records and all parameters. With so few records that no coefficient can be found, the
    mean alone is released, and the report says so.

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

    data_norm: DataNorm = None
    fit_intercept: bool = True
    estimand: LineEstimand = "fitted"
    coef_norm: Positive | None = None
    clip: Literal["auto", "wide"] = "auto"
    channel: Channel = "auto"
    effects: Literal["person"] | None = None

    _spec = FitsLines._spec._replace(variants=({}, {"clip": "wide"}))
    interval_estimand = "bounded-influence line of the clipped rows"
    interval_claims = ("certified", "asymptotic")
    law_estimands = ("fitted", "least_squares")

    def _fit(self, X: Any, y: Any, groups: "Groups | None", weights: dict[str, Any]) -> None:
        records = public_rows(self, X, y)
        maps = public_maps(self, records.n_features)
        if self.effects is not None:
            maps = within_maps(self, groups, maps, weights)
        self.bounds_y_ = maps.bounds_y
        self._fit_steps(
            records, maps, groups, weights, channel=best_reports(self, maps.size, records)
        )

    def coefficient_law(self, estimand: Estimand | None = None) -> CoefficientLaw:
        """Distribution of the coefficients, for :func:`skpriv.inspection.inference`.

        Parameters
        ----------
        estimand : {"fitted", "least_squares"}, default=None
            The line that was fitted, or the least-squares line; None is the declared one.

        Returns
        -------
        CoefficientLaw
            Estimate, covariance from sampling and from privacy noise, and what is estimable, of the
            coefficients and then the intercept, in the units of X and y.
        """
        self._check_claim("asymptotic")
        estimand = estimand or self.estimand
        fit: LoopFit = self._released
        line, detail = self._line(estimand == "fitted")
        hiding = NOISE
        words = {"estimand": f"{estimand}: {line}", "detail": detail}
        if self.effects is not None:
            hiding = CONSTANT
            words = WITHIN
        return fit.coefficient_law(
            self._record_map,
            estimand == "fitted",
            hiding=hiding,
            trust=self._trust,
            compared=STRAIGHT if detail else "",
            leverage=fit.leverage(self._record_map.row_map),
            **words,
        )

    def fit_statistics(self) -> tuple[Any, ...]:
        """R-squared and the residual deviation, by what was released.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. It is empty where the answers do
            not tell them: without an intercept, of persons with several rows, and of few records.
        """
        fit = self._released
        maps = self._record_map
        if (
            not fit.solved
            or fit.rows_per_record > 1
            or self.effects is not None
            or maps.row_map.constant is None
        ):
            return ()
        return linear_statistics(fit, maps.row_map.constant, maps.radius)

    def _line(self, fitted: bool) -> tuple[str, str]:
        """The line that is estimated in a few words, and the rest of that sentence."""
        fit = self._released
        if not fitted or not fit.solved or self._trust.can.exact:
            return CoefficientLaw.estimand, ""
        limit = self._record_map.radius * fit.last.limit
        return f"{self.interval_estimand} and targets", (
            f"in which residuals beyond {short_number(limit, 3)} (in units of the target, "
            f"{fit.last.limit / sqrt(fit.variance):.2g} deviations) and rows that are far from the "
            "others count for less"
        )

    @property
    def _information(self) -> Any:
        """Likelihood of the line, by all that was released."""
        return self._released.information(self._record_map.row_map.constant)

    @property
    def _has_sums(self) -> bool:
        """Whether it was fitted by noisy equations of a line, which can be pooled."""
        if not self._released.poolable or self.effects is not None:
            return False
        # The report tells how it was fitted: parameters may have been set since.
        return not capabilities(self.privacy_report_.privacy).exact

    def _pooled(self, other: "LinearRegression") -> "LinearRegression":
        alike = all(isinstance(fit, LinearRegression) and fit._has_sums for fit in (self, other))
        if not alike or not self._record_map.same_as(other._record_map):
            raise ValueError("only fits of released equations with the same bounds can be pooled.")
        line = copy(self)
        line._released = self._information.plus(other._information)
        line._calibration = None
        line._read()
        return line

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        mean, covariance = self._information.posterior()
        matrix, shift = self._record_map.units
        return matrix @ mean + shift, matrix @ covariance @ matrix.T

    def _error(self) -> "Scalar":
        return self._record_map.radius * self._information.error()
