"""A search over parameters whose result, the fitted winner included, costs one (epsilon, delta)."""

from math import sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._compat import HasMethods, Interval, fit_context, safe_indexing
from ..privacy import (
    Budget,
    Cost,
    PrivacyReport,
    ReportRow,
    charge,
    geometric,
    open_session,
    prepaid,
    repeated_mu,
)
from ._curve import _private_prefix as private_prefix
from ._private_score import learn_scale, numeric_target, target_bounds
from ._score_queries import SquaredErrors, row_numbers

SCALE = 0.03  # of the refit rows' mu^2, for the scale of the squared errors
SCORED = 0.3  # of the selection rows; the other ones fit the candidates
MAX_SEED = np.iinfo(np.int32).max


def _winner_has(name):
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)


class PrivateSearchCV(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Search for the parameters of a private estimator; one budget pays for all of it.

    Candidates are drawn at random and judged by a private score on rows of their own; how many are
    tried is random too, which is what makes the best of many cost little more than one. The winner
    is then fitted to rows that no candidate has seen, with the whole budget.

    Parameters
    ----------
    estimator : estimator
        A private regressor, or a Pipeline that ends in one. Its epsilon is set by the search; its
        delta says whether its noise is Gaussian (above 0) or pure (0).
    param_distributions : dict or list of dicts
        Lists of values, or distributions with ``rvs``, by name of the parameter, as in
        :class:`sklearn.model_selection.RandomizedSearchCV`. Not epsilon, delta or privacy.
    epsilon : float > 0, or infinity
    delta : float in (0, 1)
        What one record may lose in the whole search, refit and ``best_estimator_`` included.
    n_iter : float, default=None
        Expected number of candidates tried (public), at least 1. The cost grows with its logarithm
        only; of K listed candidates, each is missed with probability K / (n_iter + K). None: 20 K,
        or 200 where a distribution is among the parameters.
    selection_size : float in (0, 1), default=0.4
        Part of the rows on which candidates are fitted and judged.
    bounds_y : (low, high), default=None
        Public range of y; None takes that of the estimator.
    n_jobs : int, default=None
        Candidates that are fitted at the same time, by joblib.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted with the best parameters and the whole budget.
    best_params_ : dict
    best_score_ : float
        Released score of the winner among the candidates: minus the mean of its clipped squared
        errors, in units of the clipping limit. The best of many noisy scores, hence too good.
    epsilon_per_run_ : float
        Epsilon of each candidate's fit (public).
    privacy_report_ : PrivacyReport
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-DP of ``best_estimator_``, ``best_params_`` and
    ``best_score_`` together, when one record is replaced. Rows are split publicly at random. Those
    of the selection enter the best of J runs, J geometric with mean `n_iter`: that costs (epsilon,
    delta) if every run is (mu^2/2)-zCDP for the mu of :func:`repeated_mu`, whose notes have the
    proof (Papernot and Steinke 2022, Theorem 2; Liu and Talwar 2019). For 30 candidates and epsilon
    2 a run has mu .158 (600 runs), where splitting the budget over 30 runs leaves .082. A run uses
    disjoint rows to fit and to score. The other rows pay for the scale of the scores and for the
    refit. No record is in both parts. J, what other runs found, and the time that the search takes
    are not covered; neither is shown.

    One charge of (epsilon, delta) is made before any row is read. Each run is held to its own cost
    by an accountant of its own, so that an estimator that would spend more is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.model_selection import PrivateSearchCV
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    >>> y = X @ [1.0, -0.5, 0.0] + rng.uniform(-0.2, 0.2, size=20_000)
    >>> search = PrivateSearchCV(
    ...     SSPRegressor(bounds_y=(-1, 1)), {"data_norm": [0.1, 1.0, 10.0]},
    ...     epsilon=2.0, delta=1e-6, random_state=0,
    ... )
    >>> search.fit(X, y).best_params_
    {'data_norm': 1.0}
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "predict", "get_params"])],
        "param_distributions": [dict, list],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "n_iter": [Interval(Real, 1, None, closed="left"), None],
        "selection_size": [Interval(Real, 0, 1, closed="neither")],
        "bounds_y": ["array-like", None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        epsilon: float,
        delta: float,
        n_iter: Any = None,
        selection_size: float = 0.4,
        bounds_y: Any = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.epsilon = epsilon
        self.delta = delta
        self.n_iter = n_iter
        self.selection_size = selection_size
        self.bounds_y = bounds_y
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Search, and fit the winner.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        check_consistent_length(X, y)
        budget, rows = Budget(self.epsilon, self.delta), len(y)
        prefix = self._check_parameters()
        bounds, target = target_bounds(self.estimator, self.bounds_y), numeric_target(y)
        runs = self._mean_runs()
        mu = repeated_mu(budget, runs)
        charge(Cost.from_budget(budget), type(self).__name__)
        rng = check_random_state(self.random_state)
        fitted, scored, kept = self._split(rows, rng)
        plan = _Plan(clone(self.estimator), prefix, mu, self.delta, bounds)
        refit_rows = safe_indexing(X, kept), target[kept]
        limit = _scale(refit_rows[1], bounds, budget, self._seed(rng))
        candidates = self._candidates(geometric(1.0 / runs, self._noise_state(rng)), rng)
        parts = (safe_indexing(X, fitted), target[fitted], safe_indexing(X, scored), target[scored])
        results = Parallel(n_jobs=self.n_jobs)(
            delayed(_run)(plan, params, parts, limit, self._seed(rng), self._seed(rng))
            for params in candidates
        )
        best = int(np.argmax(results))
        self.best_score_, self.best_params_ = float(results[best]), candidates[best]
        self.epsilon_per_run_ = plan.epsilon(mu)
        spend = budget.mu * sqrt(1.0 - SCALE)
        self.best_estimator_ = plan.fit(self.best_params_, refit_rows, spend, self._seed(rng))
        self.privacy_report_ = self._report(budget, rows)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def predict(self, X: Any) -> Any:
        """Prediction of the winner; see its method."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(_winner_has("confidence_interval"))
    def confidence_interval(self, X, **options):
        """Interval of the winner; see its method."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.confidence_interval(X, **options)

    def _check_parameters(self):
        prefix = private_prefix(self.estimator)
        grids = self.param_distributions
        for grid in [grids] if isinstance(grids, dict) else grids:
            for name in grid:
                if name.split("__")[-1] in ("epsilon", "delta", "privacy", "random_state"):
                    raise ValueError(
                        f"param_distributions has {name!r}, which the search sets: remove it."
                    )
        return prefix

    def _mean_runs(self):
        if self.n_iter is not None:
            return float(self.n_iter)
        try:
            return 20.0 * len(ParameterGrid(self.param_distributions))
        except TypeError:  # a distribution is among them
            return 200.0

    def _candidates(self, count, rng):
        """Independent public draws of parameters, with replacement, as the analysis asks."""
        grids = self.param_distributions
        try:
            listed = list(ParameterGrid(grids))
            return [listed[index] for index in rng.randint(len(listed), size=count)]
        except TypeError:
            return list(ParameterSampler(grids, count, random_state=rng))

    def _split(self, n, rng):
        order = rng.permutation(n)
        selection = max(2, int(round(self.selection_size * n)))
        scored = max(1, int(round(SCORED * selection)))
        if selection >= n:
            raise ValueError(f"n_samples={n} is too few for selection_size={self.selection_size}.")
        return order[scored:selection], order[:scored], order[selection:]

    def _noise_state(self, rng):
        return None if self.random_state is None else rng

    def _seed(self, rng):
        return None if self.random_state is None else int(rng.randint(MAX_SEED))

    def _report(self, budget, n):
        secure = self.random_state is None
        report = PrivacyReport(type(self).__name__, "central", budget, secure)
        cost = Cost.from_budget(budget)
        report.add(ReportRow("best of random runs, refit", "-", 0.0, 1.0, n, "several", 0.0, cost))
        return report


class _Plan:
    """How one candidate is fitted: with which epsilon, and held to which cost."""

    def __init__(self, estimator, prefix, mu, delta, bounds):
        self.estimator, self.prefix, self.mu = estimator, prefix, mu
        self.delta, self.bounds = delta, bounds
        self.pure = estimator.get_params()[f"{prefix}delta"] == 0.0

    def epsilon(self, mu):
        """Epsilon of a fit that is (mu^2/2)-zCDP, Gaussian or pure."""
        return mu if self.pure else Budget.from_mu(mu, self.delta).epsilon

    def fit(self, params, rows, mu, seed):
        """Fitted estimator, under an accountant that admits (mu^2/2)-zCDP and no more."""
        settings = {
            f"{self.prefix}epsilon": self.epsilon(mu),
            f"{self.prefix}delta": 0.0 if self.pure else self.delta,
            f"{self.prefix}random_state": seed,
        }
        estimator = clone(self.estimator).set_params(**params).set_params(**settings)
        with prepaid(Cost.from_rho(mu**2 / 2.0)):
            return estimator.fit(*rows)


def _scale(y, bounds, budget, seed):
    """Limit of the errors in the scores, from the refit rows' targets alone."""
    half = 0.5
    part = Budget.from_mu(budget.mu * sqrt(SCALE), budget.delta)
    with prepaid(Cost.from_rho(SCALE * budget.mu**2 / 2.0)):
        session = open_session("central", row_numbers(len(y)), y, part, seed, "scale of the scores")
        return learn_scale(session, bounds, half, half)[1]


def _run(plan, params, parts, limit, fit_seed, score_seed):
    """Released score of one candidate: minus its mean clipped squared error."""
    X, y, X_scored, y_scored = parts
    estimator = plan.fit(params, (X, y), plan.mu, fit_seed)
    query = SquaredErrors(estimator, X_scored, plan.bounds, limit)
    part = Budget.from_mu(plan.mu, plan.delta)
    with prepaid(Cost.from_rho(plan.mu**2 / 2.0)):
        rows = row_numbers(len(y_scored))
        session = open_session("central", rows, y_scored, part, score_seed, "score of a candidate")
        answer = session.sum(query, 1.0)
    return -answer.value[0] / answer.n
