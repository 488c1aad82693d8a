"""Improper gradient descent: regression whose error does not depend on the dimension."""

import warnings
from math import floor, sqrt
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from .._choices import IntervalMethod
from .._compat import Interval, StrOptions, fit_context
from .._estimation._certified._events import event
from .._estimation._intervals import ConfidenceInterval, split_failure
from .._linalg import ROUNDED
from .._parameters import Channel, Count, DataNorm, Positive, parameters
from ..exceptions import PrivacyError
from ..privacy import best_codebook, models_that, split
from ._base import PrivateRegressor
from ._opening import channel_of, open_fit, scaled_rows
from ._points import rowwise
from ._improper_steps import (
    GRADIENT_CHANGE,
    MANY_PASSES,
    ClippedGradientQuery,
    Descent,
    ErrorTerms,
    ReportedGradientQuery,
    root_mean_square_bound,
    schedule,
)

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025, Section 6):
#   n_iter -> K,  step_size -> eta,  radius -> R,  time -> eta K, of descent without momentum

# Weights of the failure probability: of the root mean square error, and of one error beyond it.
ERROR_WEIGHTS = (0.1, 0.9)


@parameters
class ImproperSGDRegressor(PrivateRegressor):
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
    perturbation : {"gradient", "output"}, default="gradient"
        "gradient" releases noisy gradients at clipped predictions, without projection (Algorithm
        6); "output" releases the last iterate of exact projected descent only (Algorithm 5), which
        needs a curator.
    n_iter : int >= 1 or "auto", default="auto"
        Number of steps: 32, in the local model 8, and more where budget and number of records
        allow a longer descent. Every step reads all rows, unless users answer for themselves: 39
        times at 1e5 records, 70 at 1e6, 220 at 1e8. Beyond 50 a warning says so.
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
    local in the local model. Released: one Gaussian answer a step (or one for the last iterate) and
    one for the held-out error; adaptive composition of Gaussians is exact (Dong, Roth and Su 2022).
    With the codebook channel each user sends one index, whose price rests on one exact integer draw
    (delta = 0, docs/codebook.md). Public: the number of records and all parameters. Number and size
    of the steps are computed from these alone.

    The paper perturbs the output in the central model. Noisy gradients with clipped predictions are
    the default because later steps contract the noise of earlier ones where the data have a signal.
    Measured at n=20,000, epsilon=1: a root mean square error of 0.017-0.033 of the half-range with
    10 features, where "output" has 0.030-0.049; with 1,000 features the two are alike (0.037 and
    0.036 on the sphere, 0.051 and 0.055 with decaying scales). Moments beat both with 10 features.

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

    perturbation: Literal["gradient", "output"] = "gradient"
    n_iter: Count | Literal["auto"] = "auto"
    step_size: Annotated[Any, Interval(Real, 0, 2, closed="right"), StrOptions({"auto"})] = "auto"
    calibration: Annotated[float, Interval(Real, 0, 0.5, closed="both")] = 0.2
    data_norm: DataNorm = None
    coef_norm: Positive = 1.0
    channel: Channel = "auto"
    fit_intercept: bool = True

    estimand: ClassVar[str | None] = "least-squares line of the clipped rows and targets"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified",)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model; the whole budget is charged before the rows are used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            None if X is rows that have their targets in them: see `skpriv.records.from_table`.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceeded
            If an active :class:`skpriv.BudgetAccountant` cannot pay.
        """
        rows, scaling = scaled_rows(self, X, y)
        same_rows = self._trust.can.same_rows
        self._check_perturbation(rows)
        channel = channel_of(self, scaling, rows, "vector")
        steps, step, momentum = self._schedule(rows.n, same_rows, scaling, channel)
        currency, smallest = "pure" if channel == "codebook" else "gdp", 1.0 / steps
        session = open_fit(
            self, rows, currency=currency, smallest_share=1.0 if same_rows else smallest
        )
        del X, y, rows  # only the session has the data now

        # The two parts are disjoint: each record pays for the answers about its own part alone.
        kept, rest, size = session, None, floor(self.calibration * session.n + ROUNDED)
        if self._trust.can.perturbs and size:
            kept, rest = split(session, session.n - size, size)
        if self.perturbation == "output":
            theta = self._perturbed_output(kept, scaling, steps, step)
        else:
            kind = ReportedGradientQuery if channel == "codebook" else ClippedGradientQuery
            theta = self._noisy_descent(kept, scaling, kind, steps, step, momentum)
        self._error = None
        if rest is not None:
            answer = rest.release(ErrorTerms(scaling, size, theta), 1.0)
            self._error = (answer.value, answer.noise.scale, size)

        self.coef_, self.intercept_ = scaling.coefficients(theta)
        self.n_iter_, self.step_size_, self.momentum_ = steps, step, momentum
        self._scaling, self.privacy_report_ = scaling, session.report
        return self

    @rowwise
    def predict(self, X: Any) -> np.ndarray:
        """Predict the regression function, clipped to ``bounds_y``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.clip(self._points(X) @ self.coef_ + self.intercept_, *self._scaling.bounds_y)

    @rowwise
    def confidence_interval(
        self, X: Any, confidence_level: float = 0.95, method: IntervalMethod = "certified"
    ) -> ConfidenceInterval:
        """Confidence interval for the regression function, of the same half-width at every row.

        It covers *on average*: for a new row from the population of the records, with probability
        at least ``confidence_level`` over the fit and the row. Without a dependence on the
        dimension nothing holds at a fixed row or for all (Chen et al. 2025, Proposition 6.1). It
        assumes independent records of one population, E[y | x] linear in the clipped rows, and
        ``coef_norm``. It is wide: only for very many records is it narrower than ``bounds_y``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        confidence_level : float in (0, 1), default=0.95
        method : {"certified"}, default="certified"

        Returns
        -------
        ConfidenceInterval
            Named tuple (low, high) of ndarrays of shape (n_samples,), inside ``bounds_y``.

        Raises
        ------
        NotImplementedError
            In the local and shuffle models, and with ``calibration=0``.
        """
        X = self._interval_points(X, confidence_level, method, ("certified",))
        if self._error is None:
            raise NotImplementedError(
                "no interval: it needs the norm of a gradient on held-out records, which only a "
                "curator can release without noise that grows with the number of features. Use "
                f"{models_that('perturbs')} with calibration > 0, or a moment-based regressor."
            )
        centre = self.predict(X)
        of_norm, of_error = split_failure(1.0 - confidence_level, *ERROR_WEIGHTS)
        of_error = event("error at the point", of_error)
        bound = self._scaling.theta_bound(self.coef_norm)
        rms = root_mean_square_bound(*self._error, bound, of_norm)
        half = self._scaling.radius * rms / sqrt(of_error)  # Chebyshev's inequality
        return ConfidenceInterval(*np.clip([centre - half, centre + half], *self._scaling.bounds_y))

    def _check_perturbation(self, rows):
        """Refuse exact descent where nobody, or no memory, can run it."""
        if not self._trust.can.perturbs and self.perturbation == "output":
            raise PrivacyError(
                f"perturbation='output' needs a curator ({models_that('perturbs')}), and "
                f"privacy={self.privacy!r} has none: "
                "use perturbation='gradient'."
            )
        if rows.passes is not None and self.perturbation == "output":
            raise PrivacyError(
                "perturbation='output' reads all rows in every step, for one answer at the end, "
                "which rows that are not in memory are too slow for: use perturbation='gradient'."
            )

    def _schedule(self, n, same_rows, scaling, channel):
        """Public number and size of the steps, and the momentum."""
        bound, mu = scaling.theta_bound(self.coef_norm), self._trust.budget.mu
        if channel == "codebook":  # Gaussian noise of this mu would be as large
            code = best_codebook(scaling.size + 1, self._trust.budget.epsilon, "vector")
            mu = GRADIENT_CHANGE["gradient"] / (2.0 * sqrt(code.noise("vector")))
        plan = schedule(n, mu, bound, same_rows, self.perturbation, self.n_iter)
        if same_rows and self.perturbation == "gradient" and plan[0] > MANY_PASSES:
            warnings.warn(
                f"each of {plan[0]} steps reads all {n} rows: pass n_iter={MANY_PASSES} for fewer, "
                "at a larger error, or take SSPRegressor or LinearRegression if features are few.",
                stacklevel=6,
            )
        return plan if self.step_size == "auto" else (plan[0], float(self.step_size), 0.0)

    def _perturbed_output(self, session, scaling, steps, step):
        """Algorithm 5, with all training records in every step."""
        radius = scaling.theta_bound(self.coef_norm)
        return session.release(Descent(scaling, session.n, steps, step, radius), 1.0).value

    def _noisy_descent(self, session, scaling, kind, steps, step, momentum):
        """Algorithm 6: no projection, since noise alone would leave any ball."""
        theta, velocity = np.zeros(scaling.size), np.zeros(scaling.size)
        for _ in range(steps):
            query = kind(scaling, theta=theta)
            answer = session.sum(query, 1.0 / steps)
            velocity = momentum * velocity + query.limit * answer.value / answer.n
            theta = theta - step * velocity
        return theta
