"""Oracles of policies that learn by epochs: what they cost, how they are fitted, and from where."""

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier

from ..._estimation._oracle import Oracle, PoolsFits
from ..._estimation._public_maps import column_bounds
from ...exceptions import InvalidValues
from ...privacy import Budget, Cost, PrivacyReport, Trust, charge, noticed_charges
from ...records import INVALID_VALUES
from .._policy._report import divided_budget
from .._policy._draws import Region

if TYPE_CHECKING:
    from ...linear_model import IHTRegressor, SSPRegressor

# Share of a sparse oracle's budget that is spent on selecting features, which counts most at first.
SELECTION_SHARE = 0.55

NEEDED = {
    ("bounds_y",): "a public bound of rewards",
    ("bounds_X", "data_norm"): "a public bound of features",
    ("classes",): "the list of all possible rewards",
}


def charged_report(oracle: Any) -> PrivacyReport | None:
    """Report of a fit that was charged, and refused its rows; None if it is not private."""
    trust = trust_of(oracle)
    if trust.exact:
        return None
    secure = oracle.random_state is None
    return PrivacyReport(
        type(oracle).__name__,
        trust.model,
        trust.budget,
        secure,
        charged=Cost.from_budget(trust.budget),
    )


def report_of(oracle: Any) -> PrivacyReport | None:
    """Report of a fitted oracle; None if it is not private."""
    return oracle.privacy_report_ if isinstance(oracle, Oracle) else None


def trust_of(oracle: Any) -> Trust:
    """Who is trusted by an oracle.

    An oracle is private only if it is an estimator of this package, or a subclass of one: what is
    wrapped in a pipeline is not looked at.
    """
    return oracle._trust if isinstance(oracle, Oracle) else Trust.of("none", Budget(inf, 0.0))


def paid_in(oracle: Any) -> Any:
    """Currency in which each fit of an oracle is paid; None if it is not known before the fit."""
    if not isinstance(oracle, Oracle):
        return None
    can = trust_of(oracle).can
    channel = oracle.get_params(deep=False).get("channel")
    codebook = can.alone and channel != "gaussian"  # users may send an index of a codebook
    return None if can.amplifies or codebook else oracle.fit_currency


def split_oracle(oracle: Any, releases: int) -> Any:
    """Oracle with its part of the budget: the costs of all fits that a person is in add up."""
    trust = trust_of(oracle)
    if releases == 1 or trust.exact:
        return oracle
    budget = divided_budget(trust.budget, releases, paid_in(oracle))
    return clone(oracle).set_params(epsilon=budget.epsilon, delta=budget.delta)


def check_oracle(oracle: Any, n_features: int) -> None:
    """Refuse now an oracle that cannot be fitted to so many features.

    Not when the first epoch closes.
    """
    oracle = clone(oracle)  # which says so if it is a class
    if isinstance(oracle, Oracle):
        oracle._validate_params()
        oracle._check_model()
    params = oracle.get_params(deep=False)
    for names, what in NEEDED.items():
        present = [name for name in names if name in params]
        if present and all(params[name] is None for name in present):
            raise ValueError(
                f"The oracle {type(oracle).__name__} needs {' or '.join(present)}, {what}: without "
                "it each fit fails."
            )
    if any(isinstance(label, str) for label in params.get("classes", ())):
        raise ValueError("the classes of an oracle are the possible rewards: pass numbers.")
    for name, n_columns in (("bounds_X", n_features), ("bounds_y", 1)):
        bounds = params.get(name)
        if bounds is not None:
            column_bounds(bounds, [], n_columns, name)


def added(n_nonzero: int | None, n_features: int) -> tuple[int, int]:
    """Features that a sparse oracle selects in an epoch, and those that it keeps from the last.

    Noise grows with the square root of the number that are selected at once: a third of them is,
    and the others next time, by what is left of the rewards when the first ones are known.
    """
    n_nonzero = min(n_nonzero or max(1, min(n_features // 10, 10)), n_features)
    new = max(1, n_nonzero // 3)
    return new, n_nonzero - new


def neutral_reward(oracle: Any) -> float:
    """Reward of a row of zeros from which an oracle learns nothing; see `_neutral_reward`.

    If the oracle has an intercept it is the middle of the range of rewards. A classifier learns
    nothing from what is none of its classes.
    """
    params = oracle.get_params(deep=False)
    if params.get("classes") is not None:
        return float(max(params["classes"])) + 1.0
    bounds = params.get("bounds_y")
    if bounds is None:
        return 0.0
    low, high = map(float, bounds)
    if params.get("fit_intercept", False):
        return low / 2.0 + high / 2.0
    return min(max(0.0, low), high)


def go_on(oracle: "IHTRegressor", earlier: "IHTRegressor | None", n_features: int) -> None:
    """Let a sparse oracle keep the largest of an earlier fit's coefficients, and select more."""
    new, old = added(oracle.n_nonzero_coefs, n_features)
    coef = None
    if earlier is not None:
        coef = earlier.coef_.copy()
        coef[np.argsort(-np.abs(coef), kind="stable")[old:]] = 0.0
    oracle.set_params(n_nonzero_coefs=new, selection_share=SELECTION_SHARE, coef_init=coef)


def as_start(oracle: Any) -> Any:
    """Released answers from which the next fit may start; None if users send reports."""
    private = isinstance(oracle, Oracle) and not trust_of(oracle).can.reports
    return oracle._next_start() if private else None


def failure_of_fit(oracle: Any, X: np.ndarray, y: np.ndarray, releases: int) -> Any:
    """Fit; return what failed once something was charged, such as rows that are no numbers.

    A person who may be in so many epochs pays for as many fits, of which this is one.
    """
    with noticed_charges() as charges:
        try:
            oracle._is_read = False
            oracle.fit(X, y)
            for cost in charges * (releases - 1):
                charge(cost, type(oracle).__name__)
        except InvalidValues:
            return InvalidValues(INVALID_VALUES)
        except BaseException as error:
            if not charges:
                raise
            return error
    return None


def reward_range(oracle: Any) -> Any:
    """Rewards that a fitted oracle predicts: least and largest, or all classes."""
    if is_classifier(oracle):
        return oracle.classes_
    return oracle.bounds_y_ if isinstance(oracle, Oracle) else (-1.0, 1.0)


def pools(oracle: Any) -> bool:
    """Whether an oracle has released sums, which have a posterior and can be pooled."""
    return isinstance(oracle, PoolsFits) and oracle._has_sums


def coef_posterior(oracle: "SSPRegressor") -> Region:
    """Posterior of an oracle's coefficients; an intercept is the same for all actions."""
    mean, covariance = oracle.posterior()
    d = len(oracle.coef_)
    return Region(mean[:d], covariance[:d, :d])
