"""Private linear regression by the loop of whitened, clipped steps, and pooled fits.

A fit of the loop has equations D_k (b* - b_k) = z_k + error for b = W^-T theta, with a whitening W
of its own. Each is as much as a normal likelihood of theta, and likelihoods of disjoint records
multiply: their precisions add up, in the coordinates of theta, which all fits share.
"""

from copy import copy
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._estimation._cells import noise_floor
from .._estimation._coefficients import NOISE, CoefficientLaw, NoLaw, equations_law, loop_law
from .._estimation._fit_statistics import linear_statistics
from .._estimation._intervals import two_sided_quantile
from .._estimation._loop._fit import FITTED, LoopFit
from .._estimation._moments import normal_posterior
from .._estimation._reports import ReportedFit
from .._linalg import RELATIVE_ZERO, psd_part
from .._parameters import Channel, DataNorm, Estimand, LineEstimand, Positive, parameters
from .._stored import stored
from ..privacy import capabilities
from ._base import FitsLines
from ._opening import CONSTANT, WITHIN, best_reports, public_maps, public_rows, within_maps
from ._prediction_intervals import PredictionIntervals

STRAIGHT = (
    "In least squares all residuals and rows count in full: that line is fitted where "
    "'least_squares' is declared to be the estimand"
)


@stored
@dataclass(frozen=True, eq=False)
class Information:
    """Likelihood exp(moment'theta - theta' precision theta / 2) of the line phi'theta.

    Attributes
    ----------
    precision : ndarray of shape (p, p)
    moment : ndarray of shape (p,)
    rows : ndarray of shape (p, p)
        Sum of phi phi' over the records: what was released, and twice the standard deviation that
        its noise gives to the mean eigenvalue of whitened rows.
    n : int
        Number of records.
    """

    precision: np.ndarray
    moment: np.ndarray
    rows: np.ndarray
    n: int
    location: ClassVar[float] = 0.0  # the coefficient of the constant has the location already

    @classmethod
    def of(cls, fit: LoopFit, constant: np.ndarray | None) -> "Information":
        """Likelihood of a fit, in the directions in which its slope is above its noise.

        The errors are those of the moments, of the slopes at their distance from the solution, and
        of sampling, with the residual variance everywhere the same.

        Parameters
        ----------
        fit : LoopFit
        constant : ndarray of shape (p,) or None
            The vector c with phi'c = 1 for every row; None without an intercept.
        """
        p, n = len(fit.W), fit.n
        if not fit.equations:  # the mean alone says nothing of a line
            return cls(np.zeros((p, p)), np.zeros(p), np.eye(p) * n / p, n)
        pooled = fit.pooled(FITTED)
        slope, scale, away = pooled.slope, pooled.slope_scale, fit.b - pooled.point
        right = pooled.moment + slope @ pooled.point
        # A symmetric matrix M of noise (GOE) with scale s adds M u to the moment at a distance u:
        # on average over coordinates its variance is s^2 |u|^2 (1 + 1/p) / 2.
        noise = pooled.moment_scale**2 + 0.5 * (1.0 + 1.0 / p) * scale**2 * float(away @ away)
        values, vectors = np.linalg.eigh(slope)
        seen = values > noise_floor(values, scale)
        variance = max(fit.last.square, 2.0 * fit.last.square_scale) / fit.last.n
        weights = np.where(seen, values, 0.0) / (noise + variance * np.maximum(values, 0.0))
        to_b = vectors.T @ np.linalg.inv(fit.W).T  # b = W^-T theta in these directions
        moment = vectors.T @ right
        if constant is not None:  # of phi'theta, in which the location is a part of the constant
            moment = moment + np.where(seen, values, 0.0) * (to_b @ constant) * fit.location
        rows = np.linalg.inv(fit.W) @ (psd_part(slope) + 2.0 * scale / sqrt(p) * np.eye(p))
        return cls(
            (to_b.T * (weights * np.where(seen, values, 0.0))) @ to_b,
            to_b.T @ (weights * moment),
            n * rows @ np.linalg.inv(fit.W).T,
            n,
        )

    def knowing(self, cells: Any) -> "Information":
        """The same: a posterior needs to know no cell."""
        return self

    def plus(self, other: "Information") -> "Information":
        """Likelihood of the records of both."""
        return Information(
            self.precision + other.precision,
            self.moment + other.moment,
            self.rows + other.rows,
            self.n + other.n,
        )

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of theta under the prior N(0, tau^2 I), by empirical Bayes.

        tau^2 maximizes the evidence among values of at least 1 / p, with which the expected square
        of the norm of theta is at least 1.
        """
        values, vectors = np.linalg.eigh(self.precision)
        roots, moment = np.sqrt(np.maximum(values, 0.0)), vectors.T @ self.moment
        seen = values > RELATIVE_ZERO * max(float(values[-1]), 0.0)
        response = np.divide(moment, roots, out=np.zeros(len(moment)), where=seen)
        design = roots[:, None] * vectors.T
        _, mean, factor = normal_posterior(design, response, 1.0 / len(self.moment))
        return mean, factor @ factor.T

    @property
    def theta(self) -> np.ndarray:
        """The posterior mean."""
        return self.posterior()[0]

    def interval(self, points: Any, confidence_level: float, method: str) -> tuple:
        """Centre and half-width of normal intervals at rows of features, by the posterior."""
        if method != "asymptotic":
            raise ValueError("a pooled line has no certified interval: pass method='asymptotic'.")
        mean, covariance = self.posterior()
        variance = np.einsum("ij,jk,ik->i", points, covariance, points)
        return points @ mean, two_sided_quantile(confidence_level) * np.sqrt(variance)

    def error(self) -> float:
        """Root mean square over the rows of the error of phi'theta; no row is longer than 1."""
        _, covariance = self.posterior()
        square = float((self.rows * covariance).sum()) / self.n
        return sqrt(min(max(square, 0.0), float(np.linalg.eigvalsh(covariance)[-1])))


def _has_equations(model):
    """Whether a model was fitted by noisy equations of a line, which can be pooled."""
    released = isinstance(getattr(model, "_released", None), LoopFit | Information)
    # The report tells how it was fitted: parameters may have been set since.
    private = released and not capabilities(model.privacy_report_.privacy).exact
    return private and model.effects is None


# code -> docs/mathematics/linear_regression.md:
#   effective_records -> N,  rules.clip -> k,  location -> m,  whitened rows e -> w W phi,
#   NewtonEquation -> the sums of a step at b


@stored
@parameters
class LinearRegression(FitsLines, PredictionIntervals):
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
        "wide" clips residuals at 6 of their deviations at least, at any number of records: for
        skewed targets where bias must stay below noise.
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

    _dtypes = (np.float64, np.float32)

    interval_estimand: ClassVar[str | None] = "bounded-influence line of the clipped rows"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified", "asymptotic")

    def _fit(self, X, y, groups, weights):
        records = public_rows(self, X, y)
        maps = public_maps(self, records.n_features)
        if self.effects is not None:
            maps = within_maps(self, groups, maps, weights)
        self.bounds_y_ = maps.bounds_y
        channel = best_reports(self, maps.size, records)
        self._fit_steps(records, maps, groups, weights, channel=channel)

    law_estimands = ("fitted", "least_squares")

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
        if isinstance(self._released, Information):
            raise NoLaw("a pooled line has a posterior, but no law of its coefficients.")
        if isinstance(self._released, ReportedFit):
            return equations_law(self._released.equations, self._record_map.units)
        estimand, fit = estimand or self.estimand, self._released
        line, detail = self._line(estimand == "fitted")
        stated = {"estimand": f"{estimand}: {line}", "detail": detail, "epsilon": self.epsilon}
        stated["compared"] = STRAIGHT if detail else ""
        stated["leverage"] = fit.leverage(self._record_map.row_map)
        hiding = NOISE if self.effects is None else CONSTANT
        stated |= {} if self.effects is None else WITHIN
        return loop_law(fit, self._record_map, estimand == "fitted", hiding, **stated)

    def fit_statistics(self) -> tuple:
        """R-squared and the residual deviation, by what was released.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. It is empty where the answers do
            not tell them: without an intercept, of persons with several rows, and of few records.
        """
        fit, maps = self._released, self._record_map
        plain = isinstance(fit, LoopFit) and fit.equations and fit.rows_per_record == 1
        if not plain or self.effects is not None or maps.row_map.constant is None:
            return ()
        return linear_statistics(fit, maps.row_map.constant, maps.radius)

    def _line(self, fitted):
        """The line that is estimated in a few words, and the rest of that sentence."""
        fit = self._released
        if not fitted or not fit.equations or self._trust.can.exact:
            return CoefficientLaw.estimand, ""
        limit = self._record_map.radius * fit.last.limit
        return f"{self.interval_estimand} and targets", (
            f"in which residuals beyond {limit:.3g} (in units of the target, "
            f"{fit.last.limit / sqrt(fit.variance):.2g} deviations) and rows that are far from the "
            "others count for less"
        )

    @property
    def _information(self):
        """Likelihood of the line, by all that was released."""
        fit = self._released
        if isinstance(fit, Information):
            return fit
        return Information.of(fit, self._record_map.row_map.constant)

    @available_if(_has_equations)
    def pooled(self, other: Any) -> Any:
        """Line from the released equations of two fits with the same bounds.

        That is post-processing: it costs no privacy. Fits to disjoint records (as those of the
        epochs of a bandit) cost what the more expensive of the two costs.

        Parameters
        ----------
        other : LinearRegression
            A fit with the same bounds; itself a pooled one, perhaps.

        Returns
        -------
        LinearRegression
            The line of the posterior, and normal intervals by it. The report is that of this fit.
        """
        if not _has_equations(other) or not self._record_map.same_as(other._record_map):
            raise ValueError("only fits of released equations with the same bounds can be pooled.")
        line = copy(self)
        line._released, line._calibration = self._information.plus(other._information), None
        line._read()
        dearer = max(self, other, key=lambda fit: fit.privacy_report_.guarantee.epsilon)
        line.privacy_report_ = dearer.privacy_report_
        return line

    @available_if(_has_equations)
    def posterior(self) -> Any:
        """Mean and covariance of (coefficients, intercept), by released equations and their noise.

        The prior is normal, of a size chosen by its evidence, and not smaller than weights of norm
        1 in scaled units have.

        Returns
        -------
        mean : ndarray of shape (n_features + 1,)
            The intercept comes last; 0 if there is none.
        covariance : ndarray of shape (n_features + 1, n_features + 1)
        """
        (mean, covariance), (matrix, shift) = self._information.posterior(), self._record_map.units
        return matrix @ mean + shift, matrix @ covariance @ matrix.T

    @available_if(_has_equations)
    def prediction_error(self) -> float:
        """Root mean square error of the predictions for the rows of the fit, by its posterior.

        Returns
        -------
        float
            The root mean square, in the units of y.
        """
        return self._record_map.radius * self._information.error()
