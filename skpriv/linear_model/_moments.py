"""Sufficient-statistics perturbation, and what all who solve noisy normal equations share.

The equations may be for w in theta = basis w; without a basis they are for theta itself.
"""

from copy import copy
from dataclasses import field, replace
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, StrOptions
from .._estimation._cells import Cells
from .._estimation._coefficients import equations_law, solved_equations
from .._estimation._fit_statistics import moment_statistics, weighted_statistics
from .._estimation._intervals import asymptotic_interval, certified_by_equations
from .._estimation._loop._bounds_words import narrow_bounds
from .._estimation._loop._rows import ClippedRowsQuery
from .._estimation._loop._rules import CLIPPED_SHARE
from .._estimation._moments import (
    RESIDUAL_CLIP,
    Instrument,
    PersonGramQuery,
    ResidualGramQuery,
    cluster_degrees,
    ridge_prior,
)
from .._estimation._released import Released
from .._estimation._reports import moments_query
from .._estimation._oracle import PoolsFits
from .._linalg import lengths_of, norm_of, one_blas_thread, psd_part, trace_of
from .._parameters import Channel, DataNorm, Estimand, Positive, attribute, parameters
from .._stored import frozen_object, stored
from ._estimator import FitsPersons
from ._opening import channel_of, hold_out, open_fit, scaled_rows, weighted_rows
from ._prediction_intervals import PredictionIntervals, calibration
from ._predictions import CertifiedIntervals

if TYPE_CHECKING:
    from .._estimation._public_maps import RecordMap
    from .._estimation._moments import NormalEquations
    from .._estimation._coefficients import CoefficientLaw
    from .._contracts import Scalar
    from ..privacy import Session, SessionPart, Trust
    from ..records import Rows

# Fraction of the budget for the residual Gram and what its clip cuts: 1.6% more noise elsewhere
# than the .05 that would do for the first alone.
RESIDUAL_SHARE = 0.08


def weighted_records(
    model: "MomentRegressor", rows: "Rows", maps: "RecordMap", weights: dict[Any, Any]
) -> "tuple[Rows, RecordMap]":
    """Rows of the session, and the map of its queries: weights are a part of both."""
    weighted = weighted_rows(model, rows, weights, maps.target)
    return weighted, maps if weighted is rows else maps.weighted()


def residual_share(trust: "Trust") -> float:
    """Users are too expensive in the local model: there the bound |r| <= 1 serves instead."""
    return RESIDUAL_SHARE if trust.can.same_rows else 0.0


def residual_gram(
    session: "Session | SessionPart",
    equations: "NormalEquations",
    theta: np.ndarray,
    query_map: "RecordMap",
    instrument: Instrument,
) -> dict[str, Any]:
    """The part of the residuals that `NormalEquations` keep, for the asymptotic interval.

    Parameters
    ----------
    session : Session
    equations : NormalEquations
        Those that theta solves.
    theta : ndarray of shape (p,)
    query_map : RecordMap
        Map of the records of the session.
    instrument : Instrument
    """
    share = residual_share(session.trust)
    if not share:
        return {}
    limit = 2.0
    if not equations.exact:
        limit = min(limit, RESIDUAL_CLIP * equations.residual_deviation(theta)[1])
    kind = ResidualGramQuery if session.persons is None else PersonGramQuery
    query = kind(query_map, tuple(theta), instrument, limit)
    answer = session.sum(query, share)
    found = query.read(answer)
    if session.persons is not None and session.trust.exact:
        found["debias"] = cluster_degrees(
            session.n, round(answer.n * session.persons), query_map.size
        )
    return found


@frozen_object
class SumsFit(Released):
    """The sums that a fit released, as equations of w in theta = basis w.

    Attributes
    ----------
    equations : NormalEquations
    basis : ndarray of shape (p, p)
    theta : ndarray of shape (p,)
    theta_bound : float or None
        Assumed bound on the norm of the true theta.
    shapes : tuple of ndarray of shape (p, p)
        Shapes of priors beside that of a ridge: the matrix of a normalisation.
    """

    equations: "NormalEquations"
    basis: np.ndarray
    theta: np.ndarray
    theta_bound: float | None
    shapes: tuple[Any, ...]

    def knowing(self, cells: Cells) -> Released:
        """The same where public cells of the table are known, as directions of theta."""
        turned = cells.turned(lambda lines: np.linalg.solve(self.basis, lines.T).T)
        equations = replace(self.equations, cells=turned)
        if self.shapes and not equations.symmetric:  # rows e are U phi over their lengths
            U = self.shapes[0]
            # The mean of 1 / |U phi|, where |phi| is about 1, is n over this length
            length = equations.n / abs(trace_of(np.linalg.solve(U, equations.design)))
            turned = cells.turned(lambda lines: length * np.linalg.solve(U, lines.T).T)
            equations = replace(equations, row_cells=turned)
        return replace(self, equations=equations)

    def interval(self, phi: np.ndarray, confidence_level: float, method: str) -> Any:
        """Centre and half-width at rows of features, in scaled units."""
        points = phi @ self.basis
        theta = np.linalg.solve(self.basis, self.theta)
        bound = self.theta_bound and self.theta_bound * norm_of(np.linalg.inv(self.basis), 2)
        if method == "certified":
            return certified_by_equations(self.equations, points, bound, confidence_level)
        return asymptotic_interval(self.equations, points, theta, bound, confidence_level)


@parameters
class MomentRegressor(PoolsFits, CertifiedIntervals, FitsPersons, PredictionIntervals):
    """Base class of linear regressors from noisy normal equations; not for direct use.

    `fit` of an estimator asks for the equations, solves them by `solve`, and keeps them. All of
    this is computed from what it kept: predictions, intervals and pooled fits.

    Parameters
    ----------
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records. 0 needs the
        codebook channel.
    data_norm : float, required
        Public: every row of X is clipped to this l2 norm.
    coef_norm : float or None, default=None
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, rows in the unit
        ball and target in [-1, 1]. None assumes nothing. Only intervals use it.
    alpha : float or "auto", default="auto"
        Ridge penalty in the units of :class:`sklearn.linear_model.Ridge`, or a noise-aware
        shrinkage (none under ``privacy="none"``: ordinary least squares).
    """

    data_norm: DataNorm = None
    coef_norm: Positive | None = None
    channel: Channel = "auto"
    alpha: Annotated[Any, Interval(Real, 0, None, closed="left"), StrOptions({"auto"})] = "auto"
    fit_intercept: bool = True

    # `fit` keeps this beside coef_ and intercept_, and all that follows reads it
    _scaling: "RecordMap" = field(init=False)
    _equations: Any = attribute()
    _certificate: Any = attribute()  # of a gradient, in place of sums
    _shapes: tuple[Any, ...] = attribute(())  # of priors beside that of a ridge
    _basis: np.ndarray | None = attribute()  # where it is not theta's

    @property
    def _has_sums(self) -> bool:
        """Whether a fit released sums of records; one that is still to be made may do so."""
        return self._equations is not None or self._certificate is None

    def _solve_sums(
        self,
        session: "Session | SessionPart",
        query: Any,
        share: float,
        instrument: Instrument = Instrument(),
    ) -> tuple[float, ...]:
        """Ask for sums by a query and for the residuals at their solution, and keep both.

        Returns
        -------
        (float, float)
            Limits on the deviation of the residuals.
        """
        maps = query.maps
        of_clips = CLIPPED_SHARE * (
            self._is_read and maps.row_map.bounded and session.trust.can.same_rows
        )
        answer = session.sum(query, share - of_clips)
        equations = query.equations(answer)
        theta = self._keep(equations)
        if of_clips:
            count = ClippedRowsQuery(maps.row_map, maps.target_map)
            clipped = count.read(session.sum(count, of_clips))
            session.report.add_note(narrow_bounds(clipped, maps.row_map, None))
        if answer.reports is not None:
            reported = np.linalg.solve(self._coordinates, theta)
            residual = {"residual_gram": answer.reports.error_gram(reported)}
        else:
            residual = residual_gram(session, equations, theta, maps, instrument)
        self._equations = replace(equations, **residual)
        radius = self._scaling.radius
        return tuple(radius * limit for limit in self._equations.residual_deviation(theta))

    def _keep(self, equations: "NormalEquations") -> np.ndarray:
        """Keep equations and their solution, which is returned as theta."""
        theta = self._solution(equations)
        self._equations = equations
        self.coef_, self.intercept_ = self._scaling.coefficients(theta)
        return theta

    @property
    def _released(self) -> SumsFit:
        maps = self._scaling
        bound = None if self.coef_norm is None else maps.theta_bound(self.coef_norm)
        theta = maps.theta(self.coef_, self.intercept_)
        return SumsFit(self._equations, self._coordinates, theta, bound, self._shapes)

    def _with_cells(self, cells: np.ndarray) -> Self:
        check_is_fitted(self)
        twin = copy(self)
        fit: Any = self._released.knowing(Cells.of_rows(self._scaling.row_map, cells))
        twin._equations = fit.equations
        return twin

    def _solution(self, equations: "NormalEquations") -> np.ndarray:
        """Post-processing of released answers: theta, by a ridge penalty or by its noise."""
        if self.alpha == "auto" and not equations.exact:
            return self._posterior(equations, fading=True)[0]
        penalty = self._scaling.penalty(0.0 if self.alpha == "auto" else self.alpha)
        basis = self._coordinates
        return basis @ equations.solve_ridge(basis.T @ (penalty[:, None] * basis))

    @property
    def _coordinates(self) -> np.ndarray:
        """The matrix B of theta = B w for the w that the equations are for."""
        return np.eye(self._scaling.size) if self._basis is None else self._basis

    def _posterior(
        self, equations: "NormalEquations", least_variance: float = 0.0, fading: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of theta, by priors of the shapes beside that of a ridge."""
        basis = self._coordinates
        prior = ridge_prior(self._scaling.size, self._scaling.fit_intercept)
        shapes = prior, *(prior @ shape for shape in self._shapes)
        priors = [np.linalg.solve(basis, shape) for shape in shapes]
        with one_blas_thread:
            mean, covariance = equations.posterior(priors, least_variance, fading)
        return basis @ mean, basis @ covariance @ basis.T

    def _pooled(self, other: "MomentRegressor") -> "SSPRegressor":
        own = [fit for fit in (self, other) if isinstance(fit, MomentRegressor)]
        plain = [fit for fit in own if fit._equations is not None and fit._basis is None]
        if len(plain) < 2 or not self._scaling.same_as(other._scaling):
            raise ValueError(
                "only fits that release sums of the same records, with the same bounds, can be "
                "pooled: not solver='sgd', nor re-weighted codebook reports."
            )
        fit = copy(self)
        fit._keep(self._equations.pooled(other._equations))
        return fit

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        maps = self._scaling
        theta, covariance = self._posterior(self._equations, self._least_variance)
        matrix, shift = (part[: maps.size] for part in maps.units)
        return matrix @ theta + shift, matrix @ covariance @ matrix.T

    @property
    def _least_variance(self) -> "Scalar":
        """Variance of a weight of phi where all of them have the assumed norm.

        Without one that of the slopes is 1, for features in the unit ball: the constant makes them
        shorter in phi, and is no part of it.
        """
        maps = self._scaling
        if self.coef_norm is None:
            return 1.0 / (maps.row_map.parts[0] ** 2 * maps.n_features)
        return maps.theta_bound(self.coef_norm) ** 2 / maps.size

    def normal_equations(self) -> "NormalEquations | None":
        """Released sums of scaled rows, for those who compare or combine fits.

        Returns
        -------
        equations : NormalEquations or None
            The sums; None where rows were normalised or weighted by residuals, or noises depend on
            each other.
        """
        check_is_fitted(self)
        equations = self._equations
        plain = equations is not None and equations.symmetric and equations.law is None
        return equations if plain else None

    def _error(self) -> "Scalar | None":
        equations = self.normal_equations()
        if equations is None:
            return None
        # If little is known, the evidence may be for tiny weights, of which all would be known.
        _, covariance = self._posterior(equations, self._least_variance)
        # Two deviations more than the noisy Gram matrix says, as noise may hide the rows; at least
        # what rows of the mean length have in the best known direction; at most that of norm 1.
        seen = float((psd_part(equations.gram) * covariance).sum())
        square = seen + 2.0 * equations.gram_scale * norm_of(covariance)
        values = np.linalg.eigvalsh(covariance)
        square = max(square, values[0] * trace_of(equations.gram)) / equations.n
        square = min(max(square, 0.0), values[-1])
        return float(np.sqrt(square)) * self._scaling.radius

    def _predicted(self, X: Any) -> np.ndarray:
        """Predictions for checked rows; without privacy they are the textbook's, as they are."""
        return self._function(X) if self._trust.can.exact else super()._predicted(X)

    def coefficient_law(self, estimand: Estimand = "fitted") -> "CoefficientLaw":
        """Distribution of the coefficients, for :func:`skpriv.inspection.inference`.

        The estimate solves the released equations without shrinkage, and so may differ from
        ``coef_``: shrinkage serves predictions, and its bias would spoil an interval.

        Parameters
        ----------
        estimand : str, default="fitted"
            One of ``law_estimands``, all of which are the same line.

        Returns
        -------
        CoefficientLaw
            Estimate, covariance from sampling and from privacy noise, and what is estimable, of the
            coefficients and then the intercept, in the units of X and y.
        """
        self._check_claim("asymptotic")
        line = str(self.interval_estimand)
        return equations_law(self._equations, self._scaling.units, line, self._basis)

    def fit_statistics(self) -> tuple[Any, ...]:
        """R-squared and the residual deviation, by the released sums; it costs nothing.

        Returns
        -------
        tuple of Statistic
            Each has a ``name``, a ``value`` and a ``std_error``. It is empty where the sums do not
            tell them: without an intercept, of persons, of codebook reports, of pooled fits, and
            where noise hides the line. Sums of weighted rows tell the residual deviation alone.
        """
        moments = self._equations
        maps = self._scaling
        unsuited = moments is None or moments.law is not None or moments.weight
        if unsuited or self.privacy_report_.unit != "record":
            return ()
        if not moments.symmetric:
            return weighted_statistics(moments, maps.theta(self.coef_, self.intercept_), maps)
        solved = solved_equations(moments) if maps.fit_intercept else ""
        return () if isinstance(solved, str) else moment_statistics(moments, solved, maps)

    def _centred(self, X: Any, confidence_level: float, method: str) -> Any:
        X = X.toarray() if issparse(X) else X
        bound = self._released.theta_bound
        limit = np.ones(len(X))  # |phi'theta*| is at most both bounds, whatever the noise
        if bound is not None:
            limit = np.minimum(1.0, bound * lengths_of(self._scaling.features(X)))
        return *super()._centred(X, confidence_level, method), limit


# code -> paper (Wang 2018, "Revisiting differentially private linear regression"):
#   design -> X'X + noise,  target -> X'y + noise


@stored
@parameters
class SSPRegressor(MomentRegressor):
    """Linear regression from privately released sufficient statistics.

    All second moments are released at once, with the tight replace-one sensitivity of the joint
    vector, and the noisy normal equations are solved with a shrinkage chosen from the released
    answers and their known noise law. In the local model every user sends one noisy report. SciPy
    sparse matrices are accepted: a fit of a curator costs what is not zero, and p^2 numbers.

    Parameters
    ----------
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: a vector with Gaussian noise, or an index
        of a public codebook, which is pure (``delta=0``) and safe to release. "auto" takes the one
        of less noise, from public numbers; unless delta is 0 it is
        "gaussian" in the local model under an accountant that adds up Gaussian noise.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    ReweightedRegressor : More accurate when features have very different scales.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: one joint Gaussian answer for the moments and, in the
    central model, one for the residual variance and one that counts clipped rows; their costs
    compose exactly as Gaussian DP (Dong, Roth and Su 2022). With the codebook channel users send
    one index each, whose price rests on one exact integer draw (delta = 0, docs/trust.md), and all
    that follows is post-processing. Public: the number of records and all parameters.

    **Intervals** assume that the clipped target has a linear mean in the clipped rows. With
    ``coef_norm=None`` nothing else is assumed: the coefficients are bounded from the released
    equations, and where these hide a direction in noise the interval is ``bounds_y`` (that of
    "asymptotic" below 3.5 deviations of the design's noise). With a number, (coefficients,
    intercept) in scaled units are taken to have at most this l2 norm. If linearity fails, as on
    most real data, the interval is one for no particular function. "certified" holds at each fixed
    x for any n, and adapts to the released variance of the targets by Bernstein's inequality.
    "asymptotic" uses the normal approximation of the targets' noise and plugs in the estimate: its
    coverage is exact only as n grows, where privacy noise is small beside the rows' Gram matrix.

    References
    ----------
    Y.-X. Wang (2018). Revisiting differentially private linear regression: optimal and adaptive
    prediction and estimation in unbounded domain. UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    >>> y = X @ [1.0, -0.5, 0.0] + rng.uniform(-0.2, 0.2, size=20_000)
    >>> est = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, random_state=0).fit(X, y)
    >>> est.coef_.round(1) + 0.0
    array([ 1. , -0.5,  0. ])
    >>> low, high = est.confidence_interval(X[:2])
    >>> bool((low < high).all())
    True
    """

    fit_currency = "gdp"
    interval_estimand = "least-squares line of the clipped rows and targets"
    law_estimands = ("fitted", "least_squares")
    interval_claims = ("certified", "asymptotic")
    _sparse = "csr"

    def _fit(self, X: Any, y: Any, groups: Any, weights: dict[Any, Any]) -> None:
        rows, maps = scaled_rows(self, X, y, accept_sparse=True)
        rows, query_map = weighted_records(self, rows, maps, weights)
        channel = channel_of(self, maps.size, rows)
        session = open_fit(self, rows, channel, groups=groups)
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        share = 1.0 - residual_share(session.trust)
        self._scaling = maps
        deviation = self._solve_sums(session, moments_query(query_map, channel), share)
        self._calibration = calibration(self, held_out, deviation, channel)
