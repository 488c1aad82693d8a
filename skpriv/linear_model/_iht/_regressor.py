"""Private iterative hard thresholding."""

from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ..._compat import Interval, fit_context
from ..._parameters import ArrayLike, Count, DataNorm, Level, Positive, parameters
from ...exceptions import PrivacyError
from ...privacy import models_that
from .._opening import open_fit, scaled_rows
from .._prediction_intervals import calibration, hold_out
from ._queries import GradientNorm
from ._rows import Iterate, SupportRows
from ._sparse_regressor import SparseRegressor
from ._steps import StepsPlan, choose, refit

# code -> paper (Chakraborty, Roy and Basu 2024, Algorithm 1, N-IHT):
#   n_nonzero_coefs -> s,  max_iter -> M,  step_size -> eta,  data_max -> x_max,
#   residual limits -> R (a clip of residuals, not of y),  session.top and sum -> Peeling

MAX_DEFAULT_NONZERO = 10  # the noise grows with the number of features that are chosen


@parameters
class IHTRegressor(SparseRegressor):
    """N-IHT, noisy iterative hard thresholding: sparse linear regression in high dimension.

    The error grows with the logarithm of the number of features. Features are selected by a private
    hard threshold (the largest coordinates of a noisy gradient are named in one shot), and their
    coefficients are then fitted privately on the selected columns alone. SciPy sparse matrices are
    accepted and never densified.

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
        ``n_nonzero_coefs`` of them are added to those where it is not zero, and the refit starts
        there: where it is good, residuals are small, and so is the noise. None is zero everywhere.
    max_iter : int, default=1
        Number of selections. The first one screens all features by their clipped covariance with
        the target; more of them cost more noise than they gain, in the designs measured.
    step_size : float, default=1.0
        Step of the gradient in scaled units; it has no effect when ``max_iter=1`` and ``refit``.
    residual_clip : float or None, default=2.0
        Residuals are clipped to this number of their standard deviations, which are released from
        round to round at a small share of the budget. The clips widen and disappear as n grows.
        None clips only to the largest possible residual.
    selection_share : float in (0, 1), default=0.4
        Part of the budget for selections.
    refit : bool, default=True
        Whether to fit the coefficients on the selected support by noisy moments and Newton steps
        (least squares without privacy), instead of returning the last iterate.
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
    n_iter_ : int
        Number of selections (public).
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
    zero-concentrated privacy (Bun and Steinke 2016): selections are one-shot Gumbel top-s, equal to
    s exponential mechanisms in a row (Cesar and Rogers 2021), everything else is Gaussian. Public:
    the number of records and all parameters. The sensitivity of a step as published lacks a factor
    of at least 2 data_max, and the published experiments draw unbounded features. Here rows are
    always clipped, and so are residuals, so that the sensitivity is 2 step_size data_max R / n for
    every iterate.

    Without privacy and refit, the iterates are those of iterative hard thresholding (Blumensath and
    Davies 2009).

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
    max_iter: Count = 1
    step_size: Positive = 1.0
    residual_clip: Positive | None = 2.0
    selection_share: Level = 0.4
    refit: bool = True
    certificate_share: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.01
    sparsity: Annotated[int | None, Interval(Integral, 0, None, closed="left"), None] = None
    sparse_eigenvalue: Positive = 0.1

    estimand: ClassVar[str | None] = "sparse least-squares line of the clipped rows and targets"
    interval_claims: ClassVar[tuple[str, ...]] = ("certified", "asymptotic")
    _row_bound: ClassVar[tuple] = ("data_max", "linf")

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model; the whole budget is charged before the rows are used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            None if X is rows that have their targets in them: see `skpriv.records.from_table`.

        Returns
        -------
        self

        Raises
        ------
        PrivacyError
            If ``privacy`` is a model without a curator; nothing is charged then.
        BudgetExceeded
            If an active :class:`skpriv.BudgetAccountant` cannot pay.
        """
        self._refuse_local()
        rows, scaling = scaled_rows(self, X, y, accept_sparse=True)
        plan = self._plan(rows.n_features)
        session = open_fit(self, rows, currency="zcdp")
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        start = self._start(scaling, plan.n_features)
        model, self.support_ = choose(session, scaling, plan, start)
        self._refit = self._gradient = None
        if plan.refit:
            rows = SupportRows.of(scaling, self.support_, session.trust.exact)
            known = start.dense(plan.n_features) if len(start.support) else None
            self._refit = refit(session, rows, self.residual_clip, plan.shares[-1], known)
            model = rows.iterate(scaling, self._refit.theta)
        if plan.certificate_share:
            norm = GradientNorm(model, plan.fit_intercept)
            self._gradient = session.release(norm, plan.certificate_share)

        self.coef_ = scaling.radius / scaling.row_bound * model.dense(plan.n_features)
        self.intercept_ = scaling.centre + scaling.radius * model.level
        self.n_iter_ = plan.n_iter
        self._scaling = scaling
        self._calibration = calibration(self, held_out, self._deviation())
        self.privacy_report_ = session.report
        return self

    def _refuse_local(self):
        if not self._trust.can.selects:
            raise PrivacyError(
                f"privacy={self.privacy!r}: naming the largest of all coordinates needs a curator "
                "who sees their sums, and without one the error grows with the number of features: "
                f"use {models_that('selects')}, or SSPRegressor on a few chosen columns."
            )

    def _start(self, scaling, n_features):
        """The public iterate from which features are selected."""
        coef = self._coef_init(n_features)
        support = np.flatnonzero(coef)
        weights = coef[support] * scaling.row_bound / scaling.radius
        return Iterate(scaling.row_bound, scaling, support, weights)

    def _coef_init(self, n_features):
        if self.coef_init is None:
            return np.zeros(n_features)
        coef = np.asarray(self.coef_init, dtype=float)
        if coef.shape != (n_features,) or not np.isfinite(coef).all():
            raise ValueError(f"coef_init must have {n_features} finite numbers, one a feature.")
        return coef

    def _plan(self, n_features):
        nonzero = self.n_nonzero_coefs
        if nonzero is None:
            nonzero = max(1, min(n_features // 10, MAX_DEFAULT_NONZERO))
        nonzero += int(np.count_nonzero(self._coef_init(n_features)))
        if nonzero > n_features:
            raise ValueError(
                f"n_nonzero_coefs={nonzero} cannot be more than n_features={n_features}: at most "
                "all features can be selected."
            )
        return StepsPlan(
            n_nonzero=int(nonzero),
            n_features=n_features,
            n_iter=self.max_iter,
            step_size=float(self.step_size),
            residual_clip=self.residual_clip,
            fit_intercept=bool(self.fit_intercept),
            refit=bool(self.refit),
            selection_share=float(self.selection_share),
            certificate_share=float(self.certificate_share),
        )
