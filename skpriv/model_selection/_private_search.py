"""A search over parameters whose result, the fitted winner included, costs one (epsilon, delta)."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import chain
from math import pi, sqrt
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._linalg import unwarned
from .._compat import HasMethods, fit_context, pipeline_steps, safe_indexing
from .._parameters import ArrayLike, Count, Epsilon, Level, RandomState, parameters
from .._progress import progress
from ..exceptions import BudgetExceeded, InvalidValues, SkprivError
from ..linear_model import IHTRegressor
from ..privacy import (
    SIDE_SHARE, Accounted, Budget, Cost, NoiseSource, PrivacyReport, ReportRow, charge,
    open_session, prepaid,
)  # fmt: skip
from ..records import INVALID_VALUES, finite_numbers, public_shape, public_zeros
from ._private_score import (
    Gains,
    SquaredErrors,
    check_covered,
    learn_scale,
    numbered_rows,
    row_numbers,
    target_bounds,
)
from ._curve import private_prefix

if TYPE_CHECKING:
    from .._contracts import Scalar

REFIT = 0.5  # part of mu^2 that pays for the last fit, of the winner
SCORED = 0.2  # part of the rows that score the candidates; the others fit them
JUDGED = 0.1  # part of what these rows pay that is for the released score of the winner
# Errors are clipped at so many mean absolute deviations of the target: 2.4 standard deviations of a
# normal one. Candidates are only compared, and noise falls with the square of the limit.
SEARCH_CLIP = 3.0
MAX_SEED = np.iinfo(np.int32).max


@parameters
class PrivateSearchCV(Accounted, MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Search for the parameters of a private estimator; one budget pays for all of it.

    Every candidate is fitted with a part of the budget, on 80% of the rows. The other rows choose
    the winner by a noisy maximum of their clipped scores, whose price does not depend on the
    number of candidates. The winner is fitted again, to all rows, with what was kept for it.

    Parameters
    ----------
    estimator : estimator
        A private regressor, or a Pipeline that ends in one. The other steps must learn nothing
        from rows: `BoundsScaler`, `TableEncoder`, or a map of each row alone such as
        `Normalizer`. Its epsilon
        and delta are set by the search.
    param_distributions : dict or list of dicts
        Lists of values, or distributions with ``rvs``, by name of the parameter, as in
        :class:`sklearn.model_selection.RandomizedSearchCV`. Not epsilon, delta or privacy.
    epsilon : float > 0, or infinity
        Privacy parameter; ``inf`` is the same as no privacy. It bounds what one record may lose in
        the whole search, the last fit and ``best_estimator_`` included.
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records.
    n_iter : int, default=None
        How many candidates are drawn. None: all that are listed, or 30 where a distribution is
        among the parameters. Each candidate has the K-th part of what all fits may spend, so that
        few good ones find more than many.
    bounds_y : (low, high), default=None
        Public range (low, high) to which y and predictions are clipped in the scores; None takes
        that of the estimator.
    n_jobs : int, default=None
        Candidates that are fitted at the same time, by joblib. The first of its calls in a program
        starts processes, which takes about two seconds.
    verbose : int, default=0
        Above 0, a line on stderr tells how many candidates are done.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted to all rows with the best parameters.
    best_params_ : dict
    best_score_ : float
        Released score of the winner among the candidates: minus the mean of its clipped squared
        errors on held-out rows, in units of the clipping limit. It is the score of a fit with much
        less budget than ``best_estimator_``, and of the best of several, hence no estimate of R2:
        see :func:`private_score`.
    candidates_ : list of dict
        Parameters of all candidates (public).
    epsilon_per_run_ : float
        Epsilon of each candidate's fit (public).
    privacy_report_ : PrivacyReport
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-DP of ``best_estimator_``, ``best_params_`` and
    ``best_score_`` together, when one record is replaced; what other candidates found is not shown.
    Let mu be that of (epsilon, delta). The scale of the scores pays 3% of mu^2, and the last fit
    50%. The rest is paid by the rows that fit the K candidates, a K-th for each. The rows that
    score them are others, and pay the same. There a noisy maximum (Gumbel noise on sums of
    sensitivity 1 in the maximum norm) of rho-zCDP costs mu^2 = pi rho at most, by its bounded range
    (see :meth:`skpriv.privacy.Cost.amount`), and the winner's score the rest. The costs of all
    steps add up as Gaussian DP. For `IHTRegressor`, whose cost is known in zCDP only, all is added
    up in zCDP.

    One charge is made before any row is read. Each step is held to its own cost by an allowance,
    so that an estimator that would spend more is refused.

    The candidates share the budget. Another way is to take the best of a random number of runs
    (Papernot and Steinke 2022, Liu and Talwar 2019). For 30 candidates these runs would have as
    much noise, and one search in twenty would miss the best candidate. docs/private_search.md has
    the numbers.

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

    estimator: Annotated[Any, HasMethods(["fit", "predict", "get_params"])] = field(kw_only=False)
    param_distributions: dict[str, Any] | list[Any] = field(kw_only=False)
    epsilon: Epsilon
    delta: Level = 1e-6
    n_iter: Count | None = None
    bounds_y: ArrayLike | None = None
    n_jobs: int | None = None
    verbose: Annotated[int, "verbose"] = 0
    random_state: RandomState = None

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Search, and fit the winner.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows from which candidates are fitted and compared.
        y : array-like of shape (n_samples,)
            Their targets.

        Returns
        -------
        self

        Raises
        ------
        BudgetExceeded
            If an active accountant cannot pay; nothing has been read then.
        PrivacyError
            If a step of the estimator may learn from the rows and is not charged.
        """
        prefix = self._check_parameters()
        rows = numbered_rows(X, y)
        n = rows.n
        rng = check_random_state(self.random_state)
        if n < 10:
            raise ValueError(f"n_samples={n} is too few for a search: it needs 10 rows at least.")
        if len(public_shape(X)) != 2:
            raise ValueError("X must be two-dimensional: a row of features for each target.")
        self.candidates_ = self._candidates(rng)
        plan = _Plan(clone(self.estimator), prefix, self._stated_budget)
        for params in self.candidates_:  # A parameter may be a step.
            check_covered(clone(self.estimator).set_params(**params), X)
            plan.check(params, X, n)
        bounds = target_bounds(self.estimator, self.bounds_y)
        with self._accounting():  # in the process where it was pickled, too
            charge(plan.cost(1.0), type(self).__name__)
        target = finite_numbers(y, "y").reshape(-1)

        def seed() -> int | None:
            return None if self.random_state is None else rng.randint(MAX_SEED)

        limit = plan.scale(target, bounds, seed())
        # The order of the rows is secret, and drawn by the operating system unless there is a seed.
        source = NoiseSource(None if self.random_state is None else rng)
        order = source.order(rows).dealt(0, n)
        scored, fitted = np.split(order, [max(1, round(SCORED * n))])
        part = (1.0 - SIDE_SHARE - REFIT) / len(self.candidates_)
        X_learned = safe_indexing(X, fitted)
        y_learned = target[fitted]
        tasks = (
            delayed(plan.fit)(params, X_learned, y_learned, part, seed())
            for params in self.candidates_
        )
        results = Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)
        models = list(
            progress(
                results,
                len(self.candidates_),
                type(self).__name__,
                unit="candidates",
                enabled=self.verbose > 0,
            )
        )
        held_out = safe_indexing(X, scored), target[scored]
        best = plan.best(models, *held_out, bounds, limit, seed())
        self.best_params_ = self.candidates_[best]
        self.best_score_ = plan.score(models[best], *held_out, bounds, limit, seed())
        self.epsilon_per_run_ = plan.epsilon(part)
        self.best_estimator_ = plan.fit(self.best_params_, X, target, REFIT, seed())
        self.privacy_report_ = self._report(plan, n, source.secure)
        pipeline_steps(self.best_estimator_)[-1].privacy_report_.add_note(
            "A private search chose this estimator, and its guarantee is that of both together: "
            f"{self.privacy_report_.guarantee}."
        )
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of columns of X in `fit`."""
        return int(self.best_estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Their names, if X had such."""
        return np.asarray(self.best_estimator_.feature_names_in_)

    def predict(self, X: Any) -> Any:
        """Predict by the winner; see its method.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows at which to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions of ``best_estimator_``.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> "Scalar":
        """R2 of the winner, which is exact and therefore not private; see its method.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows at which to predict.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; None weighs all alike.

        Returns
        -------
        float
            R2 of ``best_estimator_``, at most 1.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y, sample_weight)

    # scikit-learn's decorator has no types.
    @available_if(lambda self: self.estimator.confidence_interval)  # type: ignore
    def confidence_interval(self, X: np.ndarray, **options: Any) -> Any:
        """Interval of the winner; see its method."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.confidence_interval(X, **options)

    def _check_parameters(self) -> Any:
        grids = self.param_distributions
        for name in chain(*([grids] if isinstance(grids, dict) else grids)):
            if name.split("__")[-1] in ("epsilon", "delta", "privacy", "random_state"):
                raise ValueError(f"param_distributions has {name!r}, which the search sets.")
        return private_prefix(self.estimator)

    def _candidates(self, rng: np.random.RandomState) -> list[dict[str, Any]]:
        """Public draws of parameters, each at most once where all are listed."""
        grids = self.param_distributions
        try:
            listed = list(ParameterGrid(grids))
        except TypeError:  # A distribution has no list: 30 candidates are drawn.
            return list(ParameterSampler(grids, self.n_iter or 30, random_state=rng))
        if self.n_iter is None or self.n_iter >= len(listed):
            return listed
        return [listed[i] for i in np.sort(rng.permutation(len(listed))[: self.n_iter])]

    def _report(self, plan: "_Plan", n: int, secure: bool) -> PrivacyReport:
        report = PrivacyReport(type(self).__name__, "central", plan.budget, secure)
        winner = f"best of {len(self.candidates_)} candidates, refit"
        report.rows.append(ReportRow(winner, "-", None, 1.0, n, "several", None, plan.cost(1.0)))
        return report


class _Plan:
    """The steps of a search: each takes a part of the whole, and is held to it."""

    def __init__(self, estimator: Any, prefix: str, budget: Budget) -> None:
        self.estimator = estimator
        self.prefix = prefix
        self.budget = budget
        # The selections of iterative hard thresholding are priced in zCDP.
        selects = isinstance(pipeline_steps(estimator)[-1], IHTRegressor)
        self.currency = "zcdp" if selects else "gdp"
        self.mu = sqrt(2.0 * budget.rho) if selects else budget.mu

    def cost(self, part: float) -> Cost:
        """Cost of a part of the whole."""
        mu = self.mu * sqrt(part)
        return Cost.from_rho(mu**2 / 2.0) if self.currency == "zcdp" else Cost.from_mu(mu)

    def gaussian(self, part: float) -> Budget:
        """Budget of Gaussian noise for a part."""
        return Budget.from_mu(self.mu * sqrt(part), self.budget.delta)

    def epsilon(self, part: float) -> float:
        """Epsilon of a fit for a part."""
        if self.currency == "zcdp":
            return Budget.from_rho(self.cost(part).concentrated, self.budget.delta).epsilon
        return self.gaussian(part).epsilon

    def fit(
        self, params: dict[str, float], X: Any, y: np.ndarray, part: float, seed: int | None
    ) -> Any:
        """Fitted estimator, under an allowance of a part of the whole and no more."""
        estimator = self._candidate(params, part, seed)
        # A warning of a step of scikit-learn, such as of an overflow, would tell of a value
        with prepaid(self.cost(part), self.currency), unwarned():
            try:
                return estimator.fit(X, y)
            except SkprivError:
                raise
            except Exception:  # of a step of scikit-learn, whose text may hold a value
                pass
        raise InvalidValues(INVALID_VALUES)

    def check(self, params: dict[str, float], X: Any, n: int) -> None:
        """Raise what is wrong in public: by a fit to zeros, which ends at its charge."""
        with prepaid(Cost()), unwarned(), suppress(BudgetExceeded):
            self._candidate(params, REFIT, None).fit(public_zeros(X), np.zeros(n))

    def _candidate(self, params: dict[str, float], part: float, seed: int | None) -> Any:
        own = {"epsilon": self.epsilon(part), "delta": self.budget.delta, "random_state": seed}
        return clone(self.estimator).set_params(
            **params, **{f"{self.prefix}{name}": value for name, value in own.items()}
        )

    def scale(self, y: np.ndarray, bounds: tuple[float, float], seed: int | None) -> float:
        """Limit of the errors in the scores, from the targets of all rows."""
        with self._session(SIDE_SHARE, y, seed, "scale") as session:
            return learn_scale(session, bounds, 0.5, 0.5, SEARCH_CLIP)[1]

    def best(
        self,
        models: list[Any],
        X: Any,
        y: np.ndarray,
        bounds: tuple[float, float],
        limit: float,
        seed: int | None,
    ) -> int:
        """Number of the candidate with the largest score and Gumbel noise."""
        mu2 = self.mu**2 * (1.0 - SIDE_SHARE - REFIT) * (1.0 - JUDGED)
        rho = mu2 / (2.0 if self.currency == "zcdp" else pi)
        part = Budget.from_rho(rho, self.budget.delta)
        with prepaid(Cost.from_rho(rho)):
            session = open_session(
                "central", row_numbers(len(y)), y, part, seed, "choice", currency="zcdp"
            )
            return int(session.top(Gains(tuple(models), X, bounds, limit), 1, 1.0)[0])

    def score(
        self,
        model: Any,
        X: Any,
        y: np.ndarray,
        bounds: tuple[float, float],
        limit: float,
        seed: int | None,
    ) -> "Scalar":
        """Released score of one candidate: minus its mean clipped squared error."""
        part = (1.0 - SIDE_SHARE - REFIT) * JUDGED
        with self._session(part, y, seed, "score") as session:
            answer = session.sum(SquaredErrors(model, X, bounds, limit), 1.0)
        return -float(answer.value[0]) / answer.n

    @contextmanager
    def _session(self, part: float, y: np.ndarray, seed: int | None, name: str) -> Iterator[Any]:
        """Session about all rows, which has a part of the whole."""
        with prepaid(self.cost(part), self.currency):
            yield open_session("central", row_numbers(len(y)), y, self.gaussian(part), seed, name)
