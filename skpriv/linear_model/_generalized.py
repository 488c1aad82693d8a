"""Generalised linear models: Poisson and logistic regression, of two classes or more.

Both are fitted by the same score steps, and differ in their links and targets.
"""

from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from math import sqrt
from typing import Any, ClassVar, cast

import numpy as np
from scipy import special, stats
from sklearn.base import ClassifierMixin

from .._estimation._coefficients import NOISE, CoefficientLaw, loop_law
from .._estimation._fit_statistics import Statistic, logistic_statistics
from .._estimation._intervals import ConfidenceInterval, two_sided_quantile
from .._estimation._links import Log, Logit
from .._estimation._loop._rows import Whitened
from .._estimation._loop._steps import at_solution
from .._estimation._persons import JointScores, PersonScores
from .._estimation._public_maps import PublicTargets, RecordMap, RowMap, TargetMap
from .._estimation._targets import (
    LEAST_RATE,
    Location,
    LocationQuery,
    OfTargets,
    best_linear,
    scaled_targets,
)
from .._linalg import (
    ROUNDED,
    SQRT2,
    blocks_of,
    kronecker_sums,
    pair_products,
    row_products,
    vech,
    vech_size,
)
from .._parameters import (
    ArrayLike,
    ConformityScore,
    CurveEstimand,
    Estimand,
    Level,
    Positive,
    parameters,
)
from .._stored import stored
from ..exceptions import PrivacyError
from ..privacy import ROUNDING, SIDE_SHARE, Query, models_that
from ..records import (
    NUMBERS,
    TEXTS,
    TRUTHS,
    ArrayRows,
    cells,
    decoded,
    dtypes_of,
    identity,
    kind_of,
    public_shape,
    refuse_dtypes,
    silence,
)
from ._base import FitsLines, PredictsAtPoints, PrivateEstimator, rowwise
from ._exact import MaximumLikelihood
from ._opening import public_bounds, public_row_map, public_rows
from ._prediction_intervals import PredictionIntervals, calibration, released_quantiles

WEIGHTED, LIKELIHOOD = "curve of the weighted scores", "curve of maximum likelihood"
UNIT = TargetMap((-1.0, 1.0), True)  # of linear parts, which have no other unit
COMPARED = (
    "Far rows count for less in this curve than in maximum likelihood: that curve is fitted where "
    "'likelihood' is declared to be the estimand"
)
NEEDS_A_SUM = (
    "privacy={privacy!r}: {name} needs somebody who adds up. Where every user answers once, with "
    "noise of their own, the dozen score steps of a curve that bends would each be asked of a "
    "twelfth of the users, and no fit is left: use {models} or 'shuffle', or "
    "LinearRegression(privacy='local') for the line of the same target, whose slopes are "
    "differences of {what}."
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
        curve of maximum likelihood of the clipped rows: half of the budget goes to its equation,
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

    _dtypes = (np.float64, np.float32)

    def _check_model(self: Any):
        """Refuse a privacy model whose users answer alone; policies ask before the first epoch."""
        if self._trust.can.alone:
            name, models = type(self).__name__, models_that("same_rows")
            words = {"privacy": self.privacy, "name": name, "models": models}
            raise PrivacyError(NEEDS_A_SUM.format(**words, what=self._means))

    def _fit_link(self: Any, records, target, link, groups, weights):
        """Fit records with public maps of their rows, which are checked first."""
        self._check_model()
        rows = public_row_map(self, records.n_features)
        self._fit_steps(records, RecordMap(rows, target), groups, weights, link)

    def _exact(self, session, maps, link):
        """The fit without privacy."""
        likely = session.release(MaximumLikelihood(maps, link), 1.0 - 2.0 * SIDE_SHARE)
        return at_solution(session, maps, link, likely.value)

    def _read(self: Any):
        """Coefficients and intercepts, in the units of X: a row for each linear part, or class."""
        fit = self._released
        found = fit.link.each(self._record_map.row_map.coefficient_map()) @ fit.theta
        found = found.reshape(np.size(fit.location), -1)
        self.coef_, self.intercept_ = found[:, :-1], found[:, -1] + fit.location

    def _deviation(self):
        """Nothing is known of the deviation of counts, which is not the same everywhere."""

    def _linear(self, X):
        """eta of checked rows, which are clipped as in the fit: a column for each of more parts."""
        clipped = self._record_map.row_map.clipped(X)
        eta = row_products(clipped, np.atleast_2d(self.coef_)) + self.intercept_
        return eta if eta.shape[1] > 1 else eta[:, 0]

    def _interval(self: Any, X, confidence_level, method):
        """The interval of the mean at checked rows: all of its range where eta is not resolved.

        If eta is above its largest value, it ends there, with the width that it has.
        """
        fit, eta = self._released, self._eta(X)
        value, half = fit.interval(self._record_map.rows(X), confidence_level, method)
        low, high = np.minimum(value, fit.link.largest) - half, value + half
        low, high = self._mean(np.minimum(low, eta)), self._mean(np.maximum(high, eta))
        return ConfidenceInterval(low, high)

    def _eta(self, X):
        """The linear part whose interval is that of the mean."""
        return self._linear(X)

    def coefficient_law(self: Any, estimand: Estimand | None = None) -> CoefficientLaw:
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
        return self._law(estimand or self.estimand)

    def _law(self: Any, estimand):
        fitted = estimand == "fitted"
        curve = WEIGHTED if fitted and not self._trust.can.exact else LIKELIHOOD
        maps, words = replace(self._record_map, target_map=UNIT), self._law_words
        words |= {"estimand": f"{estimand}: {words['estimand']}", "epsilon": self.epsilon}
        words["detail"] = f"by the {words['detail']} {curve}"
        words["compared"] = COMPARED if curve == WEIGHTED else ""
        return loop_law(self._released, maps, fitted, **words)


@stored
@dataclass(frozen=True)
class CountTarget(PublicTargets):
    """Counts as parts of the largest: r = clip(y, low, high) / high.

    Parameters
    ----------
    bounds : (float, float)
    """

    bounds: tuple
    bounded = True

    def scaled(self, y):
        """r of a chunk of targets, in [0, 1]; NaN stays NaN, a row of zeros."""
        return np.clip(y, *self.bounds) / self.bounds[1]

    def outside(self, y):
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

    interval_estimand: ClassVar[str | None] = (
        "the mean of the target by the log-linear curve that fits its clipped residuals best"
    )
    interval_claims: ClassVar[tuple[str, ...]] = ("asymptotic",)

    law_estimands = ("fitted", "likelihood")

    @property
    def _law_words(self):
        """Their values by the law of the coefficients."""
        words = {"estimand": "logarithm of the mean", "detail": "log-linear"}
        return words | {
            "ratio": "a rate ratio (of the intercept: a mean)",
            "ratio_name": "rate ratio",
        }

    _means = "counts"

    @property
    def mean_name(self) -> str:
        """What the mean of the target is, in words."""
        return "mean"

    def mean_of_linear_part(self, eta: float) -> tuple[float, float, float]:
        """The mean, which is exp(eta), and its derivatives.

        Parameters
        ----------
        eta : float
            Value of the linear part of the model.

        Returns
        -------
        tuple of three floats
            The mean and its two derivatives, which are all equal.
        """
        return (float(np.exp(eta)),) * 3

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
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])

    def _function(self, X):
        """Predictions for checked rows."""
        return self._mean(self._linear(X))

    def _imagined_target(self, quantiles, mean, deviation):
        """Made-up counts: Poisson's law, or the negative binomial one with more deviation."""
        low, high = public_bounds(self)
        mean = high / 8.0 if mean is None else mean
        over = 0.0 if deviation is None else deviation**2 - mean
        if over <= 0.0:
            return stats.poisson.ppf(quantiles, mean)
        size = mean**2 / over
        return stats.nbinom.ppf(quantiles, size, size / (size + mean))

    def _mean(self, eta):
        """Mean of the target at values of the linear part."""
        low, high = self.bounds_y_
        return np.clip(np.exp(np.minimum(eta, np.log(high))), low, high)


@cache
def contrasts(n_classes):
    """Orthonormal columns Q, shape (n_classes, n_classes - 1), across the vector of ones."""
    full = np.linalg.qr(np.column_stack([np.ones(n_classes), np.eye(n_classes)[:, :-1]]))[0]
    full.flags.writeable = False
    return full[:, 1:]


@stored
@dataclass(frozen=True)
class Softmax(Logit):
    """Several classes, whose probabilities are exponentials of linear parts over their sum.

    Parameters
    ----------
    n_classes : int
    """

    high = np.inf  # r is the code of a class
    mean_effective_records = np.inf
    slope_weight = 2.0 / 3.0  # free up to .68, see `ClassScoreQuery`
    steepest: float = 0.5 * Logit.far
    n_classes: int = 3

    @property
    def parts(self):
        """Contrasts of the classes."""
        return self.n_classes - 1

    @property
    def origin(self):
        """Linear parts of classes that are equally likely."""
        return np.zeros(self.n_classes)

    def linear_part(self, mean):
        """Log-odds of each class against the geometric mean of all, at these rates."""
        return np.log(mean) - np.log(mean).mean()

    def slope(self, eta, mean):
        """Slope at these rates over the largest, in the contrast in which it is smallest."""
        Q = contrasts(self.n_classes)
        spread = float(np.linalg.eigvalsh(Q.T @ (np.diag(mean) - np.outer(mean, mean)) @ Q)[0])
        return 2.0 * spread

    def deviance(self, phi, r, weights, theta):
        """-2 sum(log(pi_y)) of codes r of the classes y."""
        eta, places = self._eta(phi, theta), np.rint(r).astype(int)
        likely = eta[np.arange(len(r)), places] - special.logsumexp(eta, axis=1)
        return -2.0 * float(weights @ likely)

    def newton(self, phi, r, weights, theta):
        """Gradient of half of the likelihood, and its curvature."""
        probabilities = special.softmax(self._eta(phi, theta), axis=1)
        away = -probabilities
        away[np.arange(len(r)), np.rint(r).astype(int)] += 1.0
        gradient = (away @ contrasts(self.n_classes)).T @ (phi * weights[:, None])
        slopes, p = slopes_of_pairs(probabilities.T) * weights, phi.shape[1]
        sums = np.zeros((len(slopes), vech_size(p)))
        for block in blocks_of(*phi.shape):
            sums += np.dot(slopes[:, block], pair_products(phi[block].T).T)
        return gradient.reshape(-1), kronecker_sums(sums, self.n_classes - 1, p)

    def _eta(self, phi, theta):
        """Linear parts of all classes, shape (n_rows, n_classes)."""
        Q = contrasts(self.n_classes)
        return phi @ (Q @ theta.reshape(Q.shape[1], -1)).T

    def each(self, matrix):
        """A matrix from theta to coefficients, for the contrasts of one class after the other."""
        return np.kron(contrasts(self.n_classes), matrix)

    def interval(self, fit, phi, confidence_level):
        """Intervals for the log-odds of each class against all others, to first order.

        Their derivative by the linear parts is (1{k = j} - pi_j) / (1 - pi_k) up to a sum over
        classes that is 0, at the probabilities pi of the estimate.

        Parameters
        ----------
        fit : LoopFit
        phi : ndarray of shape (n_rows, p)
        confidence_level : float

        Returns
        -------
        (centre, half)
            Two arrays of shape (n_rows, n_classes); half-widths are infinite where a direction is
            not resolved.
        """
        Q, quantile = contrasts(self.n_classes), two_sided_quantile(confidence_level)
        law = fit.law()
        eta = np.column_stack([law.value(fit.points(np.kron(row, phi))) for row in Q])
        log_odds = special.log_softmax(eta + fit.location, axis=1)
        probabilities = np.exp(log_odds)
        centre, half = np.zeros(eta.shape), np.full(eta.shape, np.inf)
        for k in range(self.n_classes):
            rest = np.maximum(1.0 - probabilities[:, k], np.finfo(float).tiny)
            slope = (np.eye(self.n_classes)[k] - probabilities) / rest[:, None]
            points = ((slope @ Q)[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
            points = fit.points(points)
            width = quantile * np.sqrt(sum(law.variances(points)))
            resolved = law.resolved(points) & np.isfinite(width)
            centre[resolved, k] = (log_odds[:, k] - np.log(rest))[resolved]
            half[resolved, k] = width[resolved]
        return centre, half

    def location_query(self, maps):
        """The query of the rates of the classes, where the loop starts."""
        return ClassRatesQuery(maps.row_map, maps.target_map, self.n_classes)

    def score_query(self, of_persons, *fields):
        """The query of the scores at whitened rows, a target, a location and a point."""
        kind: Any = PersonClassScoreQuery if of_persons else ClassScoreQuery
        return kind(*fields, self)


def class_targets(row_map, target_map, X, y):
    """Codes of the classes of a chunk, NaN for no class, and roots of weights in [0, 1]."""
    code, roots = scaled_targets(row_map, target_map, X, y, 0.0, np.inf)
    return np.rint(code), roots


@dataclass(frozen=True)
class ClassRatesQuery(OfTargets, Query):
    """Numbers of records of each class: replacing one moves two counts by 1, or with weights in
    [0, 1] by at most that: sensitivity sqrt(2).
    """

    row_map: RowMap
    target_map: Any
    n_classes: int
    name: str = "rates of the classes"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of classes."""
        return (self.n_classes,)

    def sum(self, X, y):
        """Exact counts over a chunk of rows."""
        code, roots = class_targets(self.row_map, self.target_map, X, y)
        has_class = np.isfinite(code)
        code, weights = code[has_class].astype(int), roots[has_class] ** 2
        return np.bincount(code, weights, minlength=self.n_classes)

    def read(self, answer):
        """The `Location`: parts of the classes among the records that have one; they sum to 1.

        Each is the best linear estimate from its own count: a priori all parts that sum to 1 are
        equally likely, so that each has the variance (k - 1) / (k^2 (k + 1)) for k classes.
        """
        k, noise, total = self.n_classes, answer.noise.scale, max(float(answer.value.sum()), 1.0)
        variance = (k - 1.0) / (k**2 * (k + 1.0))
        counts = total * best_linear(answer.value / total, noise / total, 1.0 / k, variance)
        counts = np.maximum(counts, min(LEAST_RATE, answer.n / (4.0 * k)))
        return Location(counts / counts.sum(), noise * k**0.5 / (2.0 * total), total / answer.n)


def slopes_of_pairs(probabilities):
    """Entries of Q'(diag pi - pi pi')Q of each record, shape (number of pairs, n_records).

    Parameters
    ----------
    probabilities : ndarray of shape (n_classes, n_records)
    """
    Q = contrasts(len(probabilities))
    return pair_products(Q.T) @ probabilities - pair_products(Q.T @ probabilities)


@dataclass(frozen=True, eq=False)
class ClassScoreQuery(JointScores, Query):
    """Joint sum of (u, c A, uu' / sqrt(2)) over records; matrices mean their vech.

    With a whitened row psi, w = min(1, 1 / |psi|), e = w psi and log-odds m + Q B psi of K classes,
    whose probabilities are pi, d = y - pi is the residual of the class y (a unit vector). Then
    u = v Q'd (x) e / sqrt(2) and A = 2 h Q'(diag pi - pi pi')Q (x) ee', with v = min(1, far w) and
    h = v / (far w), both in [0, 1]. Q has K - 1 orthonormal columns across the ones, as d is. A
    record that is of no class has u = 0 and A = 0. Sensitivity 2 for c = 2/3.

    Proof. Let a = |pi|^2, and X = |u|^2 <= |d|^2 / 2 = (1 - 2 pi_y + a) / 2 <= (1 + a) / 2. The
    matrix S = diag pi - pi pi' is positive semi-definite, so that |S| <= tr S = 1 - a in the
    Frobenius norm; and |S|^2 = a - 2 sum pi^3 + a^2 <= a - a^2 <= 1/4, since sum pi^3 >= a^2. Hence
    |A|^2 <= k(a) = min(4 (1 - a)^2, 1). For two records, A and A' are positive semi-definite:
    <A, A'> >= 0. With i = <u, u'> the squared change is at most
        X + X' - 2 i + (X^2 + X'^2 - 2 i^2) / 2 + c^2 (k + k'),
    which falls in i >= -1, so that i = -sqrt(X X') >= -(X + X') / 2 is the worst case: at most
    2 (X + X') + (X - X')^2 / 2 + c^2 (k + k'). Before that step it grows in X and X' <= 1: take
    X = (1 + a) / 2 = 1 - P with P in [0, 1/2], and k = min(16 P^2, 1). As (P - P')^2 <= P^2 + P'^2
    it is at most 4 + f(P) + f(P') with f(P) = -2 P + P^2 / 2 + c^2 min(16 P^2, 1). Up to P = 1/4
    f <= 0 as (16 c^2 + 1/2) / 4 <= 2, for c <= .68; beyond, f is convex, and negative at both ends.

    Parameters
    ----------
    whitened : Whitened
    target_map : object with ``scaled(y)``
        Codes of the classes, NaN for no class.
    location : ndarray of shape (K,)
        m.
    point : ndarray of shape ((K - 1) p,)
        B, row by row.
    link : Softmax
    """

    whitened: Whitened
    target_map: Any
    location: np.ndarray
    point: np.ndarray
    link: Any
    name: str = "scores of classes"
    limit = SQRT2
    weights = {"moment": 1.0, "slope": Softmax.slope_weight, "residual": 1.0 / SQRT2}

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return 2.0 * ROUNDING

    @property
    def prepared(self):
        """The maker of rows (e, w, |e|) and this query of them, where they may be kept."""
        return self.whitened.prepared_for(self)

    def sum(self, X, y):
        """Exact sum over a chunk of rows, each of which is a record.

        A and uu' are weights (x) ee' of each pair of contrasts, so that one product of the distinct
        entries of ee' by all weights has both sums.
        """
        k, p = len(self.location) - 1, len(self.whitened.W)
        moment, sums = np.zeros((k, p)), np.zeros((k * (k + 1), vech_size(p)))
        for d, slopes, e in self.scores(X, y):
            moment += np.dot(d, e.T)
            sums += np.dot(np.concatenate([slopes, pair_products(d)]), pair_products(e).T)
        slope, residual = (vech(kronecker_sums(part, k, p)) for part in np.split(sums, 2))
        return self.joined({"moment": moment, "slope": slope, "residual": residual})

    def scored(self, X, y):
        """Rows u of a chunk, and the sum of A."""
        k, p = len(self.location) - 1, len(self.whitened.W)
        sums, scores = np.zeros((k * (k + 1) // 2, vech_size(p))), [np.empty((0, k * p))]
        for d, slopes, e in self.scores(X, y):
            sums += np.dot(slopes, pair_products(e).T)
            scores.append((d.T[:, :, None] * e.T[:, None, :]).reshape(-1, k * p))
        return np.vstack(scores), {"slope": vech(kronecker_sums(sums, k, p))}

    def scores(self, X, y):
        """Yield (v Q'd / sqrt(2), 2 h Q'(diag pi - pi pi')Q, e) of one block of rows after another.

        Records are columns, of arrays of shape (K - 1, n_rows), (pairs of contrasts, n_rows) and
        (p, n_rows).
        """
        code, roots = class_targets(self.whitened.row_map, self.target_map, X, y)
        Q, far = contrasts(len(self.location)), self.link.far
        QB = Q @ self.point.reshape(Q.shape[1], -1)
        for block, rows, w, *_ in self.whitened.blocks(X):
            for part in blocks_of(len(rows), vech_size(len(self.whitened.W))):
                e, factors = np.ascontiguousarray(rows[part].T), w[part]
                label, root = code[block][part], roots[block][part]
                with np.errstate(all="ignore"):
                    eta = self.location[:, None] + np.dot(QB, e) / factors
                    has_class = np.isfinite(label) & np.isfinite(eta.sum(axis=0))
                    eta = np.where(np.isfinite(eta), eta, 0.0)
                    v = np.minimum(root, far * factors)
                    h = np.where(has_class, v / (far * factors), 0.0)
                probabilities = np.exp(eta - eta.max(axis=0))
                probabilities /= probabilities.sum(axis=0)
                d = -probabilities
                d[label[has_class].astype(int), np.flatnonzero(has_class)] += 1.0
                d = np.dot(Q.T / SQRT2, d * np.where(has_class, v, 0.0))
                yield d, 2.0 * h * slopes_of_pairs(probabilities), e


@dataclass(frozen=True, eq=False)
class PersonClassScoreQuery(PersonScores, ClassScoreQuery):
    """Scores of the classes where a record is a person with several rows.

    u is the sum of a person's scores over m L, shortened to norm 1, and A is the mean over the m
    places of the person. The squared sensitivity is 4 + 2 c^2, by the proof of `PersonScoreQuery`:
    |A| <= 1 in the Frobenius norm is not tied to u any more.

    Parameters
    ----------
    length : float
        L: the part of m at which the sum of a person is cut; 1 cuts nothing.
    """

    name: str = "scores of classes of persons"
    length: float = 1.0

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return sqrt(4.0 + 2.0 * self.weights["slope"] ** 2) * ROUNDING


def checked_classes(classes):
    """The public classes, in their order, as an array.

    Raises
    ------
    ValueError
        If they are not at least two different labels of one kind.
    """
    if classes is None:
        raise ValueError(
            "classes is required: the public list of what y can be, such as classes=(0, 1). A "
            "default would turn other labels into rows of zeros, and a list that is read off the "
            "labels is not private."
        )
    unordered = isinstance(classes, str | Set) or not isinstance(classes, Iterable)
    labels = [] if unordered else list(classes)
    kinds = int | float | bool | np.number | np.bool_
    of_one_kind = all(isinstance(c, kinds) and np.isfinite(float(c)) for c in labels)
    of_one_kind = of_one_kind or all(isinstance(c, str) for c in labels)
    if not (of_one_kind and 1 < len(set(map(identity, labels))) == len(labels)):
        raise ValueError(
            f"classes={classes!r} must be a list of at least two different labels, all numbers or "
            "all text: what y can be, in public. A list that is read off the labels is not private."
        )
    return np.array(labels)


def check_kind(y, classes):
    """Refuse labels whose dtype, a public one, is of the other kind than the classes.

    Raises
    ------
    ValueError
        If the labels are text and the classes numbers, or the other way round.
    """
    of_text, dtypes = classes.dtype.kind == "U", dtypes_of(y)
    refuse_dtypes(dtypes, "y")
    for dtype in dtypes.values():
        if kind_of(dtype) in ((NUMBERS, TRUTHS) if of_text else (TEXTS,)):
            raise ValueError(
                f"classes={tuple(classes.tolist())!r} are {'text' if of_text else 'numbers'}, and "
                f"y has the dtype {dtype}: no label would be one of the classes. Pass classes of "
                "the kind of the labels."
            )


@silence()
def class_codes(y, classes, n):
    """Position of each label among the classes, K of K for anything else; nothing is raised.

    Labels are compared by what they name (:func:`skpriv.records.identity`): "yes " is "yes".

    Parameters
    ----------
    y : object
        Labels, of any kind.
    classes : ndarray of shape (n_classes,)
    n : int
        Number of records.

    Returns
    -------
    ndarray of float of shape (n,)
    """
    found, labels = np.full(n, float(len(classes))), None
    with suppress(Exception):
        labels = np.asarray(y, dtype=None if hasattr(y, "dtype") else object).reshape(-1)
        plain = labels.dtype.kind in ("U" if classes.dtype.kind == "U" else "biuf")
        labels = labels if plain and labels.size == n else None
    if labels is not None:
        for block in blocks_of(n, 8):  # to write where they are equal takes 20 times as long
            for code, label in enumerate(classes):
                found[block] += (code - found[block]) * (labels[block] == label)
    places = {identity(label): float(code) for code, label in enumerate(classes.tolist())}
    if labels is None:
        for i, label in zip(range(n), _each(y, n), strict=False):
            found[i] = places.get(identity(label), found[i])
    elif classes.dtype.kind == "U":  # those that are written in another way
        for place in np.flatnonzero(found == len(classes)):
            found[place] = places.get(identity(labels[place]), found[place])
    return found


def _each(y, n):
    """The n labels one by one, or none of them."""
    if isinstance(y, list | tuple):  # one label would decide which array NumPy makes of all others
        nested = len(public_shape(y)) == 2
        unpacked = (row[0] if isinstance(row, list | tuple) and len(row) == 1 else row for row in y)
        return unpacked if nested else y
    try:
        labels = list(np.asarray(decoded(y), dtype=object).reshape(-1))
    except Exception:  # a library fails at a whole column where it cannot read one label
        labels = cells(y) if hasattr(y, "to_list") or hasattr(y, "to_pylist") else []
    return labels if len(labels) == n else []


class LabelledRows(ArrayRows):
    """Rows in memory whose targets are labels, and codes of public classes where they are read.

    Any label becomes a code: that one is not a class is told by nothing.

    Parameters
    ----------
    X : array-like of shape (n_records, n_features)
    y : array-like of shape (n_records,)
    classes : ndarray of shape (n_classes,)
    """

    def __init__(self, X: Any, y: Any, classes: np.ndarray) -> None:
        super().__init__(X, y)
        self._classes = classes

    def _prepare(self):
        """Turn labels into codes and values into numbers."""
        if not self._ready:
            self._y = class_codes(self._y, self._classes, self.n)
        super()._prepare()


@stored
@dataclass(frozen=True)
class ClassTarget(PublicTargets):
    """The target r in [0, 1] of two classes; NaN, a row of zeros, for anything else.

    Parameters
    ----------
    values : tuple of float
        What stands for each class in the rows: its code, or the class itself where it is a number.
    """

    values: tuple

    def scaled(self, y):
        """r of a chunk of targets."""
        found = [y == value for value in self.values]
        r = sum(float(code) * one for code, one in enumerate(found))
        is_class = np.logical_or.reduce(found)
        return r if is_class.all() else np.where(is_class, r, np.nan)


AMONG_CLASSES = {
    "estimand": "log-odds of each class against the geometric mean of all",
    "detail": "by the curve of weighted scores",
    "ratio": "odds of a class over the geometric mean of all; a contrast compares two classes",
}
# A fixed sentence, since whether it is so is private
NO_LABEL = "or no label was one of `classes`"
SURPRISES = (0.3, 0.125)  # the grid of the search is from about a tenth of these up to 1


@dataclass(frozen=True, eq=False)
class LabelScore:
    """How improbable the label of a record is: one minus its probability, infinite for no class.

    Parameters
    ----------
    probabilities : callable
        The released probabilities of the classes at rows, shape (n_rows, n_classes).
    values : tuple of float
        What stands for each class in the targets.
    """

    probabilities: Callable
    values: tuple
    bounds = (0.0, 1.0)
    top = 1.0

    def __call__(self, X, y, side):
        """Scores of a chunk of rows."""
        with np.errstate(all="ignore"):
            score = 1.0 - self.probabilities(X)
        found = np.full(len(y), np.inf)
        for code, value in enumerate(self.values):
            found = np.where(y == value, score[:, code], found)
        return np.where(np.isnan(found), np.inf, found)


@stored
@parameters
class LogisticRegression(GeneralizedLinear, PredictsAtPoints, ClassifierMixin, PrivateEstimator):
    """Private logistic regression of two or more public classes.

    A rate, a whitening of the rows, and then a dozen small Newton steps on the score, which is one
    joint score of all classes. Answers are pooled: privacy noise of all steps together is that of
    one step with the whole budget, and the noise of the slopes vanishes as the steps come near the
    solution. No row counts for more than a public bound, and no residual needs to be clipped, so
    that the fit converges to maximum likelihood as records or epsilon grow.

    Parameters
    ----------
    classes : array-like of n_classes labels, default=None
        The public classes, two or more, all numbers or all text. Required. A label that is none of
        them adds zeros to the sums of scores and slopes, and nothing tells of it. Labels whose
        dtype is of the other kind are refused.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The public classes, in the order in which they were given.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Change of the log-odds of ``classes_[1]`` by one unit of each feature. More than two classes
        have a row each, and these add up to 0 over the classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record.
    Released: Gaussian answers for the rate of ``classes_[1]``, three for the whitening, and one for
    each score step; their costs compose exactly as Gaussian DP (Dong, Roth and Su 2022). Public:
    the number of records, the classes and all parameters. The sensitivity of a score step is proved
    in the docstring of ``ScoreQuery`` (``skpriv/_estimation/_loop/_score.py``), and of more than
    two classes in that of ``ClassScoreQuery``
    (``skpriv/linear_model/_generalized.py``). With few records (about 170 to 420 at epsilon 1) two
    classes have no whitening and shrunk coefficients without standard errors; with fewer the rate
    alone is released.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import LogisticRegression
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = np.where(rng.uniform(size=20_000) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
    >>> model = LogisticRegression(
    ...     classes=("no", "yes"), epsilon=1.0, bounds_X=(-1, 1), random_state=0
    ... ).fit(X, y)
    >>> bool(abs(model.coef_[0] - [2.0, 0.0]).max() < 0.3)
    True
    >>> low, high = model.confidence_interval([[0.5, 0.0]])  # for the probability of "yes"
    >>> bool(low[0] < 1 / (1 + np.exp(-1.0)) < high[0])
    True
    """

    classes: ArrayLike | None = None
    classes_: np.ndarray = field(init=False)

    interval_estimand: ClassVar[str | None] = (
        "the probability of the second class, or of each, by the logistic curve that fits best"
    )
    interval_claims: ClassVar[tuple[str, ...]] = ("asymptotic",)

    @property
    def coefficient_blocks(self) -> list:
        """Labels of the classes whose coefficients stand one after the other; none if of two."""
        return [str(label) for label in self.classes_] if len(self.classes_) > 2 else []

    @property
    def law_estimands(self) -> tuple[str, ...]:
        """What :func:`skpriv.inspection.inference` can be asked for; of several classes one."""
        return ("fitted", "likelihood") if np.size(cast(Any, self.classes)) == 2 else ("fitted",)

    def _for_rehearsal(self, estimand):
        """An unfitted estimator of the codes of the classes."""
        codes = tuple(range(len(checked_classes(self.classes))))
        return super()._for_rehearsal(estimand).set_params(classes=codes)

    def _imagined_target(self, quantiles, mean, deviation):
        """Made-up codes of classes: one rate of the second class, or equal rates of all."""
        count = len(checked_classes(self.classes))
        rate = 1.0 / count if mean is None else mean
        others = (1.0 - rate) / (count - 1)
        rates = np.array([others, rate, *[others] * (count - 2)])
        return np.searchsorted(np.cumsum(rates)[:-1], quantiles, side="right").astype(float)

    def _assumed_target(self, targets):
        """What made-up targets are like, in a sentence."""
        label = checked_classes(self.classes)[1]
        return f"Assumed: {np.mean(targets == 1.0):.3g} of the records are {label} (target_mean=)."

    def _planned_names(self, names):
        """Names of coefficients, those of each of several classes for themselves."""
        classes = checked_classes(self.classes).tolist()
        return (
            names if len(classes) == 2 else [f"{one}: {name}" for one in classes for name in names]
        )

    def _law(self, estimand):
        law = super()._law(estimand)
        if len(self.classes_) > 2:
            law = replace(law, classes=len(self.classes_), compared="", **AMONG_CLASSES)
        return law

    @property
    def _law_words(self):
        first, second = self.classes_[:2]
        words = {"estimand": f"log-odds of {second} against {first}", "detail": "logistic"}
        ratio = f"an odds ratio of the class {second} (of the intercept: its odds)"
        hiding = f"{NOISE}, {NO_LABEL} ({', '.join(map(str, self.classes_))})"
        return words | {"ratio": ratio, "ratio_name": "odds ratio", "hiding": hiding}

    _means = "probabilities"

    @property
    def mean_name(self) -> str:
        """What the mean of the target is, in words."""
        return f"probability of {self.classes_[1]}"

    def mean_of_linear_part(self, eta: float) -> tuple[float, float, float]:
        """The probability of ``classes_[1]``, and its derivatives.

        Parameters
        ----------
        eta : float
            Value of the linear part of the model.

        Returns
        -------
        tuple of three floats
            The probability, its slope and its second derivative.
        """
        p = float(special.expit(eta))
        slope = p * (1.0 - p)
        return p, slope, slope * (1.0 - 2.0 * p)

    def fit_statistics(self) -> tuple:
        """Events of each class, and the explained deviance of two classes, by what was released.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. Events are the records of a class:
            their error is the noise of privacy alone. The explained deviance is that of log-odds
            with a normal distribution.
        """
        fit, report, k = self._released, self.privacy_report_, len(self.classes_)
        query, size = (LocationQuery, 0.5) if k == 2 else (ClassRatesQuery, 1.0)
        # What counted the classes, unless a fit began at another one or nothing is noisy
        scales = [row.scale or 0.0 for row in report.rows if row.query == query.name]
        # Rows of persons, and rows with weights, are no numbers of records.
        if not scales or fit.rows_per_record > 1 or report.max_weight is not None:
            return ()
        rates = (
            special.softmax(fit.location)
            if k > 2
            else [special.expit(-fit.location), special.expit(fit.location)]
        )
        found = [
            Statistic(f"records of {label}", fit.n * float(rate), size * scales[0], largest=fit.n)
            for label, rate in zip(self.classes_, rates, strict=True)
        ][k == 2 :]
        constant = self._record_map.row_map.constant
        if k == 2 and fit.equations and constant is not None:
            found += logistic_statistics(fit, constant, float(rates[1]))
        return tuple(found)

    def _fit(self, X, y, groups, weights):
        classes = checked_classes(self.classes)
        if self.estimand == "likelihood" and len(classes) > 2:
            raise ValueError(
                f"estimand='likelihood' is for two classes, and classes={self.classes!r} has "
                f"{len(classes)}: no equation of maximum likelihood is asked for more than two. "
                "Pass estimand='fitted'."
            )
        check_kind(y, classes)
        records, values = public_rows(self, X, y), tuple(map(float, range(len(classes))))
        if isinstance(records, ArrayRows):
            records = LabelledRows(X, y, classes)
            records.n_jobs = self.n_jobs
        elif classes.dtype.kind == "U":
            raise ValueError(
                f"classes={self.classes!r} are text, and rows that are read in batches have "
                "numbers: encode the target, or pass X and y in memory."
            )
        else:
            values = tuple(map(float, classes))
        self.classes_, self._values = classes, values
        link = Logit() if len(classes) == 2 else Softmax(n_classes=len(classes))
        self._fit_link(records, ClassTarget(values), link, groups, weights)

    @rowwise
    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of ``classes_[1]``, for rows that are clipped to their bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The log-odds of each of more than two classes against the geometric mean of all.
        """
        return self._linear(self._points(X))

    @rowwise
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return self._probabilities(self._points(X))

    @rowwise
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms, at most 0, in the order of ``classes_``.
        """
        return special.log_softmax(self._log_odds(self._points(X)), axis=1)

    @rowwise
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, each one of ``classes_``.
        """
        points = self._points(X)
        return self.classes_[self._log_odds(points).argmax(axis=1)]

    def _log_odds(self, X):
        """Linear parts of all classes at checked rows, shape (n_rows, n_classes)."""
        eta = self._linear(X)
        return np.column_stack([np.zeros(len(eta)), eta]) if eta.ndim == 1 else eta

    def _probabilities(self, X):
        """Probabilities of all classes at checked rows, shape (n_rows, n_classes)."""
        return special.softmax(self._log_odds(X), axis=1)

    _mean = staticmethod(special.expit)

    def _eta(self, X):
        """Log-odds of the second class, or of each of several against all others."""
        return self._linear(X) if len(self.classes_) == 2 else special.logit(self._probabilities(X))

    @silence()
    def prediction_set(self, X: Any, confidence_level: float = 0.95) -> np.ndarray:
        """Sets of classes that hold the label of a new row with this probability.

        Split conformal prediction by noisy counts, as in `LinearRegression.prediction_interval`: of
        new records of the same population as the rows, at least this part has its class in the set.
        This holds over the rows, their random division, the noise and the new record, for any
        number of rows and whether or not the model is right. A label that is none of the classes is
        counted as outside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.
        confidence_level : float in (0, 1), default=0.95
            The smallest of ``prediction_levels`` that is at least this level serves; above all of
            them the set is that of all classes.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes)
            Whether each of ``classes_`` is in the set; all where the calibration rows are too few
            for the budget.

        Raises
        ------
        ValueError
            If the estimator was fitted with ``calibration_size=None``.
        """
        widest = "the set is that of all classes"
        _, largest_score = released_quantiles(self, confidence_level, "prediction_set", widest)
        # A set must not lose a class to rounding
        return 1.0 - self.predict_proba(X) <= largest_score + ROUNDED

    def _scored(self, X, y, sample_weight):
        """Part of the rows whose label is predicted."""
        likely = self._log_odds(self._points(X)).argmax(axis=1)
        right = likely == class_codes(y, self.classes_, len(likely))
        return float(np.average(right, weights=sample_weight))

    conformity_score = "absolute"  # of a label: there is but one

    def _calibrated(self, held_out, channel):
        """Release the quantiles of the scores of the calibration rows."""
        score = LabelScore(self._probabilities, self._values)
        return calibration(self, held_out, SURPRISES, score=score)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.classes is not None and np.size(self.classes) > 2
        tags.classifier_tags.poor_score = True  # of labels that are not among the public classes
        return tags
