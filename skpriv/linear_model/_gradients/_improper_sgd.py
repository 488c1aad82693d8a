"""Improper gradient descent: regression whose error does not depend on the dimension.

The steps, their number and their size follow from public numbers. The questions about the records
are clipped gradients, or whole descents, and their error.
"""

from dataclasses import field
from math import ceil, e, floor, log, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from scipy import optimize

from ..._compat import Interval, StrOptions
from ..._estimation._intervals import event, split_failure
from ..._estimation._levels import one_sided_quantile
from ..._estimation._reports import LiftedMomentsQuery
from ..._linalg import ROUNDED, norm_of
from ..._parameters import Channel, Count, DataNorm, Positive, parameters
from ..._stored import frozen_object, stored
from ...privacy import ROUNDING, InnerSum, Procedure, Query, best_codebook, models_that, split
from .._estimator import PrivateRegressor
from .._opening import channel_of, open_fit, scaled_rows
from .._predictions import CertifiedIntervals

if TYPE_CHECKING:
    from ...privacy import LiftedReports
    from ..._estimation._public_maps import RecordMap
    from ..._contracts import Array, Scalar

# time = TIME_FACTOR (bound mu n / (4 sqrt(2 e)))^(2/3) balances bias and noise of the worst
# spectrum. The bias is bound / sqrt(2 e time), and the noise 4 time / (mu n), since a gradient
# changes by at most 4; in the local model sqrt(n) stands for n. The factor was chosen by
# measurement, as was the cap sqrt(n) / CAP beyond which descent fits the targets' noise.
TIME_FACTOR = 0.7
CAP = 2.5
# Least number of steps, and the largest time that one step stands for, with and without a curator.
N_ITER = {True: 32, False: 8}
REACH = {True: 2.5, False: 1.0}
# Under a curator every gradient is a pass over all rows, so that longer descents take fewer
# steps with more momentum: sqrt(SETTLED * time), which leave exp(-5.6) of the error in directions
# of large curvature. At n = 1e6 with 15 features, epsilon 1, errors of 70 steps are .0008 (sphere)
# and .0015 (decaying scales), of 160 steps .0007 and .0028, of 50 .0059 and .0053.
SETTLED = 12.0
CONTRACTION = 3.5  # momentum is at most what leaves exp(-CONTRACTION) where curvature is large


def schedule(
    n: int, mu: float, theta_bound: float, same_rows: bool, n_iter: Any
) -> tuple[int, float, float]:
    """Number of steps, their size, and their momentum.

    The time n_iter * step_size of plain descent is all that matters in directions of small
    curvature; more steps than needed cost only passes over the records, because the noise of a step
    shrinks with its size. Momentum goes further in the same number of steps.
    """
    precision = theta_bound * mu * (n if same_rows else sqrt(n))
    time = min(TIME_FACTOR * (precision / (4.0 * sqrt(2.0 * e))) ** (2 / 3), sqrt(n) / CAP)
    if n_iter == "auto":
        n_iter = ceil(time / REACH[same_rows])
        if same_rows:
            n_iter = min(n_iter, ceil(sqrt(SETTLED * time)))
        n_iter = max(N_ITER[same_rows], n_iter)
    return n_iter, min(1.0, time / n_iter), 0.0 if time <= n_iter else momentum_for(n_iter, time)


def momentum_for(n_iter: int, time: float) -> float:
    """Momentum with which unit steps go as far as plain descent in this time, where both are slow.

    In a direction of small curvature gradient j moves the last iterate by sum_{i < n_iter - j}
    momentum^i, and these add up to sum_k (1 - momentum^k) / (1 - momentum), k = 1..n_iter. With
    large curvature the iterates contract by sqrt(momentum) a step, which bounds the momentum.
    """

    def excess(momentum: float) -> "Scalar":
        powers = momentum ** np.arange(1, n_iter + 1)
        return ((1.0 - powers) / (1.0 - momentum)).sum() - time

    largest = max(0.0, 1.0 - CONTRACTION / n_iter) ** 2
    if excess(largest) <= 0.0:
        return largest
    return float(optimize.brentq(excess, 0.0, largest))


def gradient_diameter(norm: float) -> float:
    """Largest change of phi (clip(<phi, theta>, -1, 1) - r) for ||theta|| = norm, by one record.

    The largest vectors at an angle a to theta have length norm cos(a) + 1, at r = -1 (or, the same
    vector, for -phi and r = 1). Two of them on both sides of theta differ by
    2 (norm cos a + 1) sin a, largest at cos a = (sqrt(1 + 8 norm^2) - 1) / (4 norm): 2 at norm 0,
    2.598 at 1. (Chen et al. 2025 allow for 2 (norm + 1).) The angle at which clipping begins,
    cos a = 1 / norm, is better beyond norm sqrt(3): the change is 4 sqrt(1 - 1 / norm^2) there.

    Examples
    --------
    >>> from skpriv.linear_model._gradients._improper_sgd import gradient_diameter
    >>> [round(gradient_diameter(norm), 3) for norm in (0.0, 1.0, 2.0)]
    [2.0, 2.598, 3.464]
    """
    if norm > sqrt(3.0):
        return 4.0 * sqrt(1.0 - 1.0 / norm**2)
    # The same as above, without cancellation for a small norm.
    cosine = 2.0 * norm / (sqrt(1.0 + 8.0 * norm**2) + 1.0)
    return 2.0 * (norm * cosine + 1.0) * sqrt(1.0 - cosine**2)


def residuals(
    maps: "RecordMap", theta: np.ndarray, X: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows phi, their clipped predictions at theta, and what the targets are beside those."""
    phi = maps.rows(X)
    clipped = (phi @ theta).clip(-1.0, 1.0)
    return phi, clipped, clipped - maps.target(y)


@frozen_object
class ClippedGradientQuery(Query):
    """Sum of phi (clip(<phi, theta>, -1, 1) - r) (Algorithm 6), at a public theta of any norm.

    Sensitivity: see :func:`gradient_diameter`; it depends on ||theta||, which is public.
    """

    maps: "RecordMap"
    theta: np.ndarray
    name = "clipped gradient"
    limit = 1.0  # the unit of the sum

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (self.maps.size,)

    @property
    def sensitivity(self) -> float:
        """Largest change at this theta, rounded up."""
        return gradient_diameter(norm_of(self.theta)) * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows."""
        phi, _, residual = residuals(self.maps, self.theta, X, y)
        return residual @ phi


@frozen_object
class ReportedGradientQuery(LiftedMomentsQuery):
    """The same sum from lifted reports about phi, whose sign has the residual's mean.

    The residual clip(<phi, theta>, -1, 1) - r is at most b = 1 + min(1, ||theta||) in size, so that
    its part of b is the mean of a sign. A report costs epsilon, whatever the record and theta are;
    as a sum of vectors the sensitivity is that of LiftedMomentsQuery.
    """

    theta: np.ndarray = field(kw_only=True)
    name = "clipped gradient"
    use = "vector"

    @property
    def limit(self) -> float:
        """Bound b on the residuals."""
        return 1.0 + min(1.0, norm_of(self.theta))

    shape = ClippedGradientQuery.shape

    def records(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows phi, and residuals over their bound."""
        phi, _, residual = residuals(self.maps, self.theta, X, y)
        return phi, (residual / self.limit).clip(-1.0, 1.0)

    def sum(self, X: np.ndarray, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows, over the bound b."""
        phi, part = self.records(X, y)
        return part @ phi

    def summed(self, reports: "LiftedReports") -> "Array":
        """Estimate of the sum over the bound b from users' reports."""
        return reports.target

    def wire(self) -> dict[str, float | list[float] | str]:
        """The query as a public task has it."""
        weights = {"kind": "residual", "theta": self.theta.tolist(), "limit": self.limit}
        return {**super().wire(), "weights": weights}


@frozen_object
class ErrorTerms(Procedure):
    """Two means over held-out records at a public theta: (c - r) c, and the norm of phi (c - r).

    With c = clip(<phi, theta>, -1, 1): (c - r) c lies in [-1/4, 2], and the vector mean moves by at
    most 4 / m, so that the pair moves by at most sqrt(4^2 + 2.25^2) / m. The norm has no dimension
    in its sensitivity, nor in its own deviation.

    Parameters
    ----------
    maps : RecordMap
    n_records : int
        Public number m of records that are held out.
    theta : ndarray
    """

    maps: "RecordMap"
    n_records: int
    theta: np.ndarray
    name = "held-out error"

    @property
    def sensitivity(self) -> float:
        """Largest change of the pair when one record is replaced, rounded up."""
        return sqrt(4.0**2 + 2.25**2) / self.n_records * ROUNDING

    def run(self, rows: Any) -> np.ndarray:
        """Return the pair."""
        total = rows.sum(InnerSum(self._terms, (1 + self.maps.size,)))
        return np.array([total[0], norm_of(total[1:])]) / self.n_records

    def _terms(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sum of ((c - r) c, phi (c - r))."""
        phi, clipped, residual = residuals(self.maps, self.theta, X, y)
        return np.append(residual @ clipped, residual @ phi)


def root_mean_square_bound(
    terms: Any, scale: float, m: int, theta_bound: float, failure: float
) -> float:
    """Upper bound on the root of V = E (c - f*)^2 for c = clip(<phi, theta>), on an independent x.

    V = E Y for Y = (c - r)(c - f*), whose mean over the m held-out records is at most
    a + theta_bound h in the two released terms; E Y^2 <= 4 V since |c - r| <= 2, and E Y - Y <= 5.
    So V <= a + theta_bound h + sqrt(8 l V / m) + 5 l / (3 m) by Bernstein's inequality.
    """
    of_noise, of_mean = split_failure(failure, 1.0, 1.0)
    of_noise = event("noise of the terms", of_noise)
    of_mean = event("their mean", of_mean)
    slack = scale * sqrt(1.0 + theta_bound**2) * one_sided_quantile(of_noise)
    length = log(1.0 / of_mean)
    middle = max(terms[0] + theta_bound * terms[1] + slack, 0.0) + 5.0 * length / (3.0 * m)
    linear = sqrt(8.0 * length / m)
    return min(2.0, (linear + sqrt(linear**2 + 4.0 * middle)) / 2.0)


# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025, Section 6):
#   n_iter -> K,  step_size -> eta,  radius -> R,  time -> eta K, of descent without momentum

# Weights of the failure probability: of the root mean square error, and of one error beyond it.
ERROR_WEIGHTS = (0.1, 0.9)


@stored
@parameters
class ImproperSGDRegressor(CertifiedIntervals, PrivateRegressor):
    """Improper batched SGD: the prediction error does not depend on the number of features.

    Early-stopped gradient descent whose noise is small in the prediction norm although it is large
    in the parameter: a noise vector of d coordinates barely touches the prediction of one row. Use
    it when features are many; the error falls slowly with the number of records (at worst like
    n^(-1/4) in the central and n^(-1/6) in the local model), so that the moment-based regressors
    are better when features are few.

    Parameters
    ----------
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records. 0 needs the
        codebook channel.
    privacy : {"central", "aggregate", "local", "shuffle", "none"}, default="central"
        Who adds the noise: a trusted curator, all users together by secure aggregation, every user,
        every user with a trusted shuffler that makes the reports anonymous, or nobody.
    n_iter : int >= 1 or "auto", default="auto"
        Number of steps: 32, in the local model 8, and more where budget and number of records
        allow a longer descent: 39 at 1e5 records, 70 at 1e6, 220 at 1e8. Every step reads all
        rows, unless users answer for themselves.
    step_size : float in (0, 2] or "auto", default="auto"
        Step of plain descent on rows in the unit ball; "auto" adds momentum where 1 is too small.
    calibration : float in [0, 0.5], default=0.2
        Fraction of the records, a secret random part of them, that is held out for the interval; 0
        for no interval. The local and shuffle models have none, and use all records.
    data_norm : float, required
        Public: every row of X is clipped to this l2 norm.
    coef_norm : float, default=1.0
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, rows in the unit
        ball and target in [-1, 1]: the radius of the projection, and what the interval uses.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: a gradient with Gaussian noise, or one
        index of a public codebook, which is pure (``delta=0``) and safe to release. "auto" takes
        the one of less noise, from public numbers; unless delta is 0 it is
        "gaussian" in the local model under an accountant that adds up Gaussian noise.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_iter_ : int
        Number of steps.
    step_size_ : float
    momentum_ : float
        Part of the last step that the next one repeats.
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    SSPRegressor : Better when the features are few.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: one Gaussian answer a step (Algorithm 6, at clipped
    predictions and without projection) and one for the held-out error; adaptive composition of
    Gaussians is exact (Dong, Roth and Su 2022). With the codebook channel each user sends one
    index, whose price rests on one exact integer draw (delta = 0, docs/trust.md). Public: the
    number of records and all parameters. Number and size of the steps are computed from these
    alone.

    The paper perturbs the output in the central model (Algorithm 5). Noisy gradients take its place
    there, too: later steps contract the noise of earlier ones where the data have a signal.
    Measured at n=20,000, epsilon=1: a root mean square error of 0.017-0.033 of the half-range with
    10 features, where noisy output had 0.030-0.049; with 1,000 features the two were alike (0.037
    and 0.036 on the sphere, 0.051 and 0.055 with decaying scales). Moments beat both with 10
    features.

    **Intervals** have the same half-width at every row, and cover *on average*: for a new row from
    the population of the records, with probability at least ``confidence_level`` over the fit and
    the row. Without a dependence on the dimension nothing holds at a fixed row or for all (Chen et
    al. 2025, Proposition 6.1). They assume independent records of one population, E[y | x] linear
    in the clipped rows, and ``coef_norm``. They are wide: only for very many records are they
    narrower than ``bounds_y``. The local and shuffle models have none, and neither has
    ``calibration=0``.

    References
    ----------
    F. Chen, J. Li, A. Rakhlin and D. Simchi-Levi (2025). Near-optimal private learning in linear
    contextual bandits: Algorithms 5 and 6, Theorems 6.2 and 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import ImproperSGDRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.standard_normal((5_000, 300)) / np.arange(1, 301)
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> y = 0.9 * X[:, 0] + rng.uniform(-0.1, 0.1, size=5_000)
    >>> est = ImproperSGDRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=2.0, fit_intercept=False, random_state=0
    ... ).fit(X, y)
    >>> bool(np.sqrt(np.mean((est.predict(X) - 0.9 * X[:, 0]) ** 2)) < 0.15)
    True
    """

    n_iter: Count | Literal["auto"] = "auto"
    step_size: Annotated[Any, Interval(Real, 0, 2, closed="right"), StrOptions({"auto"})] = "auto"
    calibration: Annotated[float, Interval(Real, 0, 0.5, closed="both")] = 0.2
    data_norm: DataNorm = None
    coef_norm: Positive = 1.0
    channel: Channel = "auto"
    fit_intercept: bool = True

    fit_currency = "gdp"
    interval_estimand = "least-squares line of the clipped rows and targets"
    interval_claims = ("certified",)
    _interval_methods = ("certified",)

    def _fit(self, X: Any, y: Any) -> None:
        rows, maps = scaled_rows(self, X, y)
        can = self._trust.can
        bound = maps.theta_bound(self.coef_norm)
        channel = channel_of(self, maps.size, rows, "vector")
        mu = self._trust.budget.mu
        if channel == "codebook":  # Gaussian noise of this mu would be as large
            code = best_codebook(maps.size + 1, self._trust.budget.epsilon, "vector")
            mu = 4.0 / (2.0 * sqrt(code.noise("vector")))
        steps, step, momentum = schedule(rows.n, mu, bound, can.same_rows, self.n_iter)
        if self.step_size != "auto":
            step = float(self.step_size)
            momentum = 0.0
        smallest = 1.0 if can.same_rows else 1.0 / steps
        size = floor(self.calibration * rows.n + ROUNDED) if can.perturbs else 0
        if size:
            rows.needs_order()
        session = open_fit(self, rows, channel, smallest_share=smallest, parts=0)
        del X, y, rows  # only the session has the data now

        # The two parts are disjoint: each record pays for the answers about its own part alone.
        fitted: Any = session
        held_out = None
        if size:
            fitted, held_out = split(session, session.n - size, size)
        kind = ReportedGradientQuery if channel == "codebook" else ClippedGradientQuery
        # Algorithm 6, without projection: noise alone would leave any ball
        theta = np.zeros(maps.size)
        velocity = np.zeros(maps.size)
        for _ in range(steps):
            query = kind(maps, theta=theta)
            answer = fitted.sum(query, 1.0 / steps)
            velocity = momentum * velocity + query.limit * answer.value / answer.n
            theta = theta - step * velocity
        self._error = None
        if held_out is not None:
            answer = held_out.release(ErrorTerms(maps, size, theta), 1.0)
            self._error = (answer.value, answer.noise.scale, size)

        self.coef_, self.intercept_ = maps.coefficients(theta)
        self.n_iter_ = steps
        self.step_size_ = step
        self.momentum_ = momentum
        self._scaling = maps

    def _centred(
        self, X: np.ndarray, confidence_level: float, method: str
    ) -> tuple[np.ndarray, float]:
        """The interval, which has the same half-width at all rows."""
        if self._error is None:
            raise NotImplementedError(
                "no interval: it needs the norm of a gradient on held-out records, which only a "
                "curator can release without noise that grows with the number of features. Use "
                f"{models_that('perturbs')} with calibration > 0, or a moment-based regressor."
            )
        of_norm, of_error = split_failure(1.0 - confidence_level, *ERROR_WEIGHTS)
        of_error = event("error at the point", of_error)
        bound = self._scaling.theta_bound(self.coef_norm)
        rms = root_mean_square_bound(*self._error, bound, of_norm)
        # Chebyshev's inequality
        half = rms / sqrt(of_error)
        centre = (self._predicted(X) - self._scaling.centre) / self._scaling.radius
        return centre, half
