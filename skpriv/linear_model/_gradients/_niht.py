"""Noisy iterative hard thresholding: features that are selected privately, and a fit on them.

The questions about the records come first, of rows that are clipped entry by entry, dense or
sparse. The fit is that of the loop, on the selected columns alone. There are two intervals: a
certificate for all x at once, and one given the support.
"""

from dataclasses import replace
from math import inf, log, sqrt
from numbers import Integral, Real
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from scipy import sparse, special

from ..._compat import Interval
from ..._contracts import passed_on
from ..._estimation._intervals import event, split_failure
from ..._estimation._levels import one_sided_quantile
from ..._estimation._links import IDENTITY
from ..._estimation._loop._rows import Whitened
from ..._estimation._loop._rules import QUESTION
from ..._estimation._loop._score import ScoreEquation, ScoreQuery
from ..._estimation._loop._steps import at_solution, fit_rows, public_rules
from ..._estimation._public_maps import RecordMap, RowMap, clipped_entries
from ..._estimation._targets import LocationQuery
from ..._linalg import RELATIVE_ZERO, norm_of, row_norms, unwarned
from ..._parameters import ArrayLike, Count, DataNorm, Level, Positive, parameters
from ..._stored import frozen_object, stored
from ...exceptions import PrivacyError
from ...privacy import ROUNDING, InnerSum, Procedure, Query, models_that
from ...records import canonical
from ..._estimation._loop._start import LARGEST_OF_START
from .._estimator import Spec
from .._opening import hold_out, open_fit, scaled_rows
from .._prediction_intervals import PredictionIntervals
from .._predictions import CertifiedIntervals

if TYPE_CHECKING:
    from ...records import Rows
    from ...privacy import Answer, Session, SessionPart
    from ..._contracts import Array, Scalar
    from ..._estimation._loop._fit import LoopFit


def picked(X: Any, columns: np.ndarray) -> "Array":
    """Some columns of rows, dense."""
    if sparse.issparse(X):
        return canonical(X)[:, columns].toarray()
    return np.take(X, columns, axis=1)


@frozen_object
class Iterate:
    """A released sparse linear function z'theta + level of z = x / data_max in [-1, 1]^d.

    Parameters
    ----------
    maps : RecordMap
        Its bound of rows is data_max, the bound of single entries; it maps targets to [-1, 1].
    support : ndarray of shape (s,)
    weights : ndarray of shape (s,)
        theta on the support.
    level : float
        The intercept, in scaled units of the target.
    """

    maps: RecordMap
    support: np.ndarray
    weights: np.ndarray
    level: float = 0.0

    def residual(self, X: Any, y: np.ndarray) -> "Array":
        """r - z'theta - level of a chunk of rows."""
        r = self.maps.target(y) - self.level
        data_max = self.maps.row_bound
        if len(self.support):
            r -= clipped_entries(picked(X, self.support), data_max) @ (self.weights / data_max)
        return r


def iterate(maps: RecordMap, coef: np.ndarray, intercept: float | None = None) -> Iterate:
    """The `Iterate` of coefficients and an intercept in the units of X and y."""
    support = np.flatnonzero(coef)
    level = 0.0 if intercept is None else (intercept - maps.centre) / maps.radius
    return Iterate(maps, support, coef[support] * maps.row_bound / maps.radius, level)


@frozen_object
class ResidualSizeQuery(Query):
    """Sum of min(|residual|, 1) in [0, 1] of a public start: sensitivity 1."""

    model: Iterate
    name = "residual size"
    shape = (1,)
    sensitivity = ROUNDING
    takes_sparse = True

    @property
    def width(self) -> int:
        """Size of the support of the start."""
        return max(1, len(self.model.support))

    def sum(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        return np.array([np.minimum(np.abs(self.model.residual(X, y)), 1.0).sum()])


@frozen_object
class ScoresQuery(Query):
    """Sum of clip(z) clip(residual) of all features: those whose sums are largest are selected.

    With z clipped to [-t, t] (t <= 1) and the residual to [-R, R], a record moves each coordinate
    by at most t R around 0. Sensitivity 2 t R in the largest coordinate, attained at z = z' = t,
    residuals R and -R. (The paper's sensitivity lacks the factor 2.)

    Parameters
    ----------
    model : Iterate
        The public start, and the released mean of the target.
    n_features : int
    entry_limit : float
        t, in units of data_max.
    residual_limit : float
        R; infinite only without privacy.
    """

    model: Iterate
    n_features: int
    entry_limit: float
    residual_limit: float
    name = "selection"
    takes_sparse = True
    norm = "linf"

    @property
    def sensitivity(self) -> float:
        """Largest change of a coordinate, rounded up."""
        return 2.0 * self.entry_limit * self.residual_limit * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of features."""
        return (self.n_features,)

    def sum(self, X: Any, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows."""
        limit = self.residual_limit
        residual = self.model.residual(X, y).clip(-limit, limit)
        data_max = self.model.maps.row_bound
        scores = clipped_entries(X, self.entry_limit * data_max).T @ residual / data_max
        scores[self.model.support] = 0.0  # features of the start are not to be named
        return scores


@frozen_object
class OfColumns(Query):
    """Sum of another query of some columns alone, dense or sparse, as if there were no others.

    Replacing a record replaces what it has in these columns: the sensitivity is that of the query.

    Parameters
    ----------
    query : Query
    columns : ndarray of shape (s,)
    """

    query: Any
    columns: np.ndarray
    takes_sparse = True
    name, shape, sensitivity, norm = (
        passed_on(f"query.{what}") for what in ("name", "shape", "sensitivity", "norm")
    )

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def sum(self, X: Any, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows."""
        return self.query.sum(picked(X, self.columns), y)


@frozen_object
class ColumnSession:
    """A session about some columns of the rows of another one, with a part of its budget.

    Parameters
    ----------
    session : Session
    columns : ndarray of shape (s,)
    budget : float
        Share of the whole session that is a share of 1 here.
    """

    session: Any
    columns: np.ndarray
    budget: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)  # numbers of records, trust and report are the same

    def sum(self, query: Query, share: float, subset: Any = None) -> Any:
        """Noisy sum of a query of these columns; see Session."""
        query = OfColumns(query, self.columns) if query.width != 0 else query
        return self.session.sum(query, share * self.budget, subset)

    def noise(self, query: Query, share: float) -> Any:
        """Law of the noise that the answer to a query would have; see Session."""
        return self.session.noise(query, share * self.budget)

    def records(self, share: float) -> Any:
        """Number of records that an answer would sum over; see Session."""
        return self.session.records(share * self.budget)


@frozen_object
class GradientNorm(Procedure):
    """Largest coordinate of the sum of (z, 1) residual over all features and the intercept.

    |residual| <= R = 1 + |level| + ||theta||_1 because |r| <= 1 and the entries of z lie in
    [-1, 1]. A replaced record moves every coordinate by at most 2 R, attained at z = z' of ones and
    residuals R and -R, and their maximum by no more.
    """

    model: Iterate
    name = "gradient norm"

    @property
    def sensitivity(self) -> float:
        """Largest change of the maximum, rounded up."""
        largest = 1.0 + abs(self.model.level) + np.abs(self.model.weights).sum()
        return 2.0 * float(largest) * ROUNDING

    def run(self, rows: "Rows") -> np.ndarray:
        """Exact maximum over all records."""
        total = rows.sum(InnerSum(self._gradient, (rows.n_features + 1,), takes_sparse=True))
        return np.array([np.abs(total).max()])

    def _gradient(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Sum of (z, 1) residual; without an intercept the last coordinate is 0."""
        residual = self.model.residual(X, y)
        entries = self.model.maps
        scores = clipped_entries(X, entries.row_bound).T @ residual / entries.row_bound
        return np.append(scores, residual.sum() * entries.fit_intercept)


SIZE_SHARE = 0.02  # of the budget, for the size of residuals and for the mean target each
# In a selection only the order of the scores counts: narrow clips, of entries in units of data_max
# and of residuals in units of their size, make it robust and precise.
SCREENING_LIMIT = 0.5
# Wider clips than asked for cost nothing while the privacy noise stays below this part of the
# sampling noise, so that the clips disappear as n grows.
NOISE_TO_SAMPLING = 0.5


def choose(
    session: "Session | SessionPart",
    maps: RecordMap,
    start: Iterate,
    n_nonzero: int,
    share: float,
    size_share: float,
) -> np.ndarray:
    """Select features by their clipped covariances with the residuals of a public start.

    Parameters
    ----------
    session : Session
    maps : RecordMap
        Scaling of single entries: its bound is data_max.
    start : Iterate
        Public: its features stay in the support.
    n_nonzero : int
        Number of features in the support.
    share, size_share : float
        Shares of the selection, and of the mean target and the size of the residuals each.

    Returns
    -------
    ndarray of shape (n_nonzero,)
        The sorted support.
    """
    mean = LocationQuery(maps.target_map)
    limits = (1.0, inf)
    if maps.fit_intercept:
        start = replace(start, level=float(session.sum(mean, size_share).value[0] / session.n))
    if not session.trust.exact:
        answer = session.sum(ResidualSizeQuery(start), size_share)
        # The released mean of |residual|, at least what its noise can resolve
        size = float(max(answer.value[0], 2.0 * answer.noise.scale) / answer.n)
        # Two deviations of normal residuals of this mean; at most 2, the range of residuals
        limits = (1.0, min(2.0, 2.0 * 1.25 * size))
        # If privacy noise is so small that clips would be all that matters, they stay wide.
        noise = session.noise(mean, share / n_nonzero).scale
        if NOISE_TO_SAMPLING * size * sqrt(session.n) / noise < 2.0:
            limits = (SCREENING_LIMIT, min(1.0, SCREENING_LIMIT * size))
    scores = ScoresQuery(start, maps.n_features, *limits)
    # They are sorted, since the order in which features were named carries nothing.
    return np.union1d(start.support, session.top(scores, n_nonzero - len(start.support), share))


def exact_least_squares(session: Any, maps: RecordMap) -> "LoopFit":
    """The `LoopFit` without privacy: normal equations, solved again at what they leave."""
    whitened = Whitened(maps.row_map, np.eye(maps.size))
    theta = np.zeros(maps.size)
    for _ in range(2):
        limit = 2.0 + norm_of(theta)  # no residual is larger
        query = ScoreQuery(whitened, maps.target_map, 0.0, theta, limit, most_excess=0.0)
        left = ScoreEquation.of(query, session.sum(query, QUESTION))
        theta = theta + np.linalg.lstsq(left.slope, left.moment, rcond=RELATIVE_ZERO)[0]
    return at_solution(session, maps, IDENTITY, theta)


# Weights of the failure probability: of the released gradient norm's noise and of the targets in a
# certificate; of the targets under all supports and of the privacy noise in the other interval.
FAILURE_WEIGHTS = (0.1, 0.9)


def support_certificate(
    gradient: "Answer",
    n_coordinates: int,
    n_nonzero: int,
    sparsity: int,
    eigenvalue: float,
    confidence_level: float,
) -> "Scalar":
    """Bound on ||theta^ - theta*||_2, from the released largest coordinate of the gradient.

    With u = theta^ - theta*, M = (1/n) sum z z' and noises zeta of the targets, in an interval of
    length 2 and hence 1-sub-Gaussian, M u = gradient(theta^) + (1/n) sum z zeta. u has at most
    k = s + s* entries, so that ||u||_1 <= sqrt(k) ||u||_2 and

        eigenvalue ||u||_2^2 <= u'Mu <= sqrt(k) ||u||_2 (G + max_j |(1/n) sum z_j zeta|).

    Parameters
    ----------
    gradient : Answer
        Noisy largest coordinate of |sum z residual|.
    n_coordinates, n_nonzero, sparsity : int
        All coordinates, and those of theta^ and of theta*, the constant included.
    eigenvalue : float
        Assumed bound from below on the eigenvalues of M on any k coordinates.
    confidence_level : float

    Returns
    -------
    float
    """
    scale = gradient.noise.scale
    (of_noise, of_targets) = FAILURE_WEIGHTS
    noise, rest = split_failure(1.0 - confidence_level, of_noise if scale else 0.0, of_targets)
    noise = event("noise of the gradient", noise)
    rest = event("errors of the targets", rest)
    released = gradient.value[0] + (scale * one_sided_quantile(noise) if scale else 0.0)
    targets = sqrt(2.0 * log(2.0 * n_coordinates / rest) / gradient.n)
    support = min(n_coordinates, n_nonzero + sparsity)
    return sqrt(support) * (max(0.0, released) / gradient.n + targets) / eigenvalue


def sparse_norms(Z: Any, support: np.ndarray, others: int) -> "Array":
    """Bound on the norm of each row over the support and any ``others`` further coordinates."""
    squares = Z.power(2) if sparse.issparse(Z) else np.square(Z)
    inside, total = (np.ravel(rows.sum(axis=1)) for rows in (squares[:, support], squares))
    largest = np.ravel(squares.max(axis=1).toarray() if sparse.issparse(Z) else squares.max(axis=1))
    return np.sqrt(np.minimum(total, inside + others * largest))


def log_supports(n_features: int, n_nonzero: int, sparsity: int) -> "Scalar":
    """Logarithm of the number of supports that contain the true one.

    Examples
    --------
    >>> from skpriv.linear_model._gradients._niht import log_supports
    >>> round(float(log_supports(10, 3, 1)), 3)  # log(9 * 8 / 2)
    3.584
    """
    n = n_features - sparsity
    k = n_nonzero - sparsity
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def given_support(
    fit: "LoopFit", rows: np.ndarray, supports: float, confidence_level: float
) -> Any:
    """Normal intervals of the fit, for all supports that could have been chosen.

    For each support that contains the true one, the error by sampling is normal with the variance
    of that support; the support is chosen by the same targets, so that the quantile is for all of
    them at once. The privacy noise is fresh, and needs no such care.

    Parameters
    ----------
    fit : LoopFit
    rows : ndarray of shape (n_points, p)
        Rows phi of the map of the fit.
    supports : float
        Logarithm of the number of supports; 0 if only the true one can have been chosen.
    confidence_level : float

    Returns
    -------
    (centre, half) : ndarrays of shape (n_points,)
        Scaled units; infinite where noise hides the direction of a row.
    """
    if not supports or not fit.equations:
        return fit.interval(rows, confidence_level, "asymptotic")
    of_choice, of_noise = FAILURE_WEIGHTS
    of_noise = of_noise if fit.last.moment_scale else 0.0
    chosen, noisy = split_failure(1.0 - confidence_level, of_choice, of_noise)
    targets = sqrt(2.0 * (supports + log(1.0 / chosen)))  # P(|Z| > t) <= exp(-t^2 / 2)
    law = fit.law(confidence_level=confidence_level)
    points = fit.points(rows)
    sampling, privacy = np.sqrt(law.variances(points))
    half = targets * sampling + (one_sided_quantile(noisy / 2.0) if of_noise else 0.0) * privacy
    return fit.location + law.value(points), np.where(law.resolved(points), half, inf)


# code -> paper (Chakraborty, Roy and Basu 2024, Algorithm 1, N-IHT, with M = 1):
#   n_nonzero_coefs -> s,  data_max -> x_max,  session.top -> Peeling,
#   residual limits -> R (a clip of residuals, not of y)


@stored
@parameters
class IHTRegressor(CertifiedIntervals, PredictionIntervals):
    """N-IHT, noisy iterative hard thresholding: sparse linear regression in high dimension.

    The error grows with the logarithm of the number of features. Features are selected by a private
    hard threshold (the largest coordinates of a noisy gradient are named in one shot). The selected
    columns alone are then fitted as :class:`LinearRegression` fits, in place of the further
    gradient steps of the published algorithm. SciPy sparse matrices are accepted and never
    densified.

    Parameters
    ----------
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records.
    privacy : {"central", "none"}, default="central"
        Who adds the noise: a trusted curator, or nobody. Naming the largest coordinates needs a
        curator, so that the other models raise a :class:`~skpriv.exceptions.PrivacyError`.
    data_max : float, required
        Public: every entry of X is clipped to [-data_max, data_max].
    n_nonzero_coefs : int, default=None
        Number s of features to select. None takes 10% of them, at least 1 and at most 10.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, features divided
        by data_max and target in [-1, 1]. Only ``method="asymptotic"`` intervals use it.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which does not count as a selected feature.
    coef_init : array-like of shape (n_features,), default=None
        Public coefficients, or what an earlier fit released. Features go by the residuals of it,
        and ``n_nonzero_coefs`` of them are added to those where it is not zero. None is zero
        everywhere.
    selection_share : float in (0, 1), default=0.4
        Part of the budget for the selection; the fit on the selected columns has the rest.
    certificate_share : float in [0, 1), default=0.01
        Part of the budget for the gradient norm on which ``method="certified"`` intervals rest.
    sparsity : int, default=None
        Assumed number of non-zero true coefficients, for intervals only: at most so many in
        certified ones, where None takes ``n_nonzero_coefs``; exactly so many in asymptotic ones,
        where None assumes nothing.
    sparse_eigenvalue : float, default=0.1
        Assumed bound from below on the eigenvalues of the Gram matrix (divided by n, features
        divided by data_max, the constant included) on any ``n_nonzero_coefs + sparsity``
        features, for certified intervals only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    support_ : ndarray of shape (n_selected,)
        Sorted indices of the selected features, and of those of ``coef_init``.
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    SSPRegressor : For dense coefficients in few dimensions.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record, by
    zero-concentrated privacy (Bun and Steinke 2016): the selection is one-shot Gumbel top-s, equal
    to s exponential mechanisms in a row (Cesar and Rogers 2021), everything else is Gaussian.
    Public: the number of records and all parameters. The sensitivity of a step as published lacks
    a factor of at least 2 data_max, and the published experiments draw unbounded features. Here
    rows are always clipped, and so are residuals, so that the mean of a score has the sensitivity
    2 data_max R / n.

    The published algorithm repeats noisy steps and thresholds, and returns the last one. With its
    noise corrected it is 2 to 20 times as far from the truth (docs/rates.md). Without privacy the
    fit is least squares on the selected columns.

    **Intervals** assume that the clipped target has a linear mean in the clipped rows, and that the
    targets are independent given the rows. "certified" holds for all x at once and any n, if at
    most ``sparsity`` true coefficients are not zero and the Gram matrix has the
    ``sparse_eigenvalue``, which cannot be checked on private data. "asymptotic" is narrower and
    pointwise, that of :class:`LinearRegression` on the selected columns. It covers only if the
    support contains the true one, and allows for all such supports that could have been chosen.
    ``sparsity``, taken as exact, makes fewer of them: it is narrowest if all ``n_nonzero_coefs =
    sparsity`` selected features are known to be the true ones.

    References
    ----------
    S. Chakraborty, S. Roy and D. Basu (2024). FLIPHAT: Joint differential privacy for high
    dimensional sparse linear bandits.

    T. T. Cai, Y. Wang and L. Zhang (2021). The cost of privacy. Annals of Statistics 49.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import IHTRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-1, 1, size=(10_000, 500))
    >>> y = 0.6 * X[:, 3] - 0.3 * X[:, 77] + rng.uniform(-0.1, 0.1, size=10_000)
    >>> est = IHTRegressor(
    ...     data_max=1.0, bounds_y=(-1, 1), n_nonzero_coefs=2, random_state=0
    ... ).fit(X, y)
    >>> est.support_
    array([ 3, 77])
    >>> est.coef_[est.support_].round(1)
    array([ 0.6, -0.3])
    """

    data_max: DataNorm = None
    n_nonzero_coefs: Count | None = None
    coef_norm: Positive = 1.0
    fit_intercept: bool = True
    coef_init: ArrayLike | None = None
    selection_share: Level = 0.4
    certificate_share: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.01
    sparsity: Annotated[int | None, Interval(Integral, 0, None, closed="left"), None] = None
    sparse_eigenvalue: Positive = 0.1

    _spec = Spec(
        {"data_max": 1.0, "bounds_y": (-1.0, 1.0)},
        ("central", "none"),
        ({"n_nonzero_coefs": 2}, {"n_nonzero_coefs": 4}),
    )
    fit_currency = "zcdp"
    interval_estimand = "sparse least-squares line of the clipped rows and targets"
    interval_claims = ("certified", "asymptotic")
    _row_bound = ("data_max", "absolute values of the entries of X")
    _sparse = "csr"

    def _fit(self, X: Any, y: Any) -> None:
        if not self._trust.can.selects:
            raise PrivacyError(
                f"privacy={self.privacy!r}: naming the largest of all coordinates needs a curator "
                "who sees their sums, and without one the error grows with the number of features: "
                f"use {models_that('selects')}, or SSPRegressor on a few chosen columns."
            )
        rows, maps = scaled_rows(self, X, y, accept_sparse=True)
        start = self._start(maps)
        n_nonzero = self._n_nonzero(start)
        session = open_fit(self, rows, currency="zcdp", parts=0)
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        left = 1.0 - self.certificate_share
        self.support_ = np.arange(maps.n_features)
        if n_nonzero < maps.n_features:
            size_share = left * SIZE_SHARE
            left -= (1 + self.fit_intercept) * size_share
            share = left * self.selection_share
            self.support_ = choose(session, maps, start, n_nonzero, share, size_share)
            left -= share
        self._record_map, self._released = self._fit_on_support(session, maps, left)
        coef, self.intercept_ = self._record_map.coefficients(self._released.theta)
        self.intercept_ += maps.radius * self._released.location
        self.coef_ = np.zeros(maps.n_features)
        self.coef_[self.support_] = coef
        self._scaling = maps
        self._gradient = None
        if self.certificate_share:
            model = iterate(maps, self.coef_, self.intercept_)
            self._gradient = session.release(GradientNorm(model), self.certificate_share)
        self._calibration = self._calibrated(held_out)

    def _fit_on_support(
        self, session: Any, maps: RecordMap, share: float
    ) -> "tuple[RecordMap, LoopFit]":
        """The map of records of the selected columns, and the `LoopFit` of them."""
        session = ColumnSession(session, self.support_, share)
        size = len(self.support_)
        end = np.full(size, maps.row_bound)
        on_support = RecordMap(RowMap(-end, end, None, maps.fit_intercept, size), maps.target_map)
        if session.trust.exact:
            return on_support, exact_least_squares(session, on_support)
        return on_support, fit_rows(session, on_support, public_rules(session, on_support.row_map))

    def _start(self, maps: RecordMap) -> Iterate:
        """The public iterate from which features are selected."""
        n_features = maps.n_features
        coef = np.zeros(n_features) if self.coef_init is None else np.asarray(self.coef_init, float)
        if coef.shape != (n_features,) or not np.isfinite(coef).all():
            raise ValueError(f"coef_init must have {n_features} finite numbers, one a feature.")
        start = iterate(maps, coef)
        with unwarned():
            finite = np.isfinite(start.weights / maps.row_bound).all()
        if not finite or np.abs(start.weights).max(initial=0.0) > LARGEST_OF_START:
            raise ValueError(
                "coef_init has numbers whose products with rows inside of data_max are not finite, "
                f"or above {LARGEST_OF_START:g} half-ranges of bounds_y: start at smaller ones."
            )
        return start

    def _n_nonzero(self, start: Iterate) -> int:
        """Number of features in the support, those of the start included."""
        nonzero = self.n_nonzero_coefs
        n_features = start.maps.n_features
        if nonzero is None:  # noise grows with the number of features that are chosen
            nonzero = max(1, min(n_features // 10, 10))
        nonzero = int(nonzero) + len(start.support)
        if nonzero > n_features:
            raise ValueError(
                f"n_nonzero_coefs={nonzero} cannot be more than n_features={n_features}: at most "
                "all features can be selected."
            )
        return nonzero

    def _centred(self, X: Any, confidence_level: float, method: str) -> Any:
        interval = self._certified if method == "certified" else self._given_support
        return interval(X, confidence_level)

    def _certified(self, X: Any, confidence_level: float) -> tuple[np.ndarray, np.ndarray]:
        """Certificate that is uniform over x."""
        if self._gradient is None:
            raise ValueError(
                "method='certified' rests on a released gradient norm: fit with certificate_share "
                "above 0, for example 0.01, or use method='asymptotic'."
            )
        chosen = len(self.support_)
        maps = self._scaling
        sparsity = chosen if self.sparsity is None else self.sparsity
        radius = support_certificate(
            self._gradient,
            maps.size,
            chosen + maps.fit_intercept,
            sparsity,
            self.sparse_eigenvalue,
            confidence_level,
        )
        norms = sparse_norms(X, self.support_, sparsity) / maps.row_bound
        half = radius * np.sqrt(norms**2 + maps.fit_intercept)
        return (X @ self.coef_ + self.intercept_ - maps.centre) / maps.radius, half

    def _given_support(self, X: Any, confidence_level: float) -> tuple[np.ndarray, np.ndarray]:
        """Interval of the fit, conditional on the support."""
        sizes = len(self.coef_), len(self.support_)
        supports = log_supports(*sizes, min(self.sparsity or 0, sizes[1]))
        chosen = picked(X, self.support_)
        rows = self._record_map.features(chosen)
        centre, half = given_support(self._released, rows, supports, confidence_level)
        # No coefficients of the assumed norm are further away
        norms = np.hypot(row_norms(chosen / self._scaling.row_bound), self._scaling.fit_intercept)
        return centre, np.minimum(half, np.abs(centre) + self.coef_norm * norms)
