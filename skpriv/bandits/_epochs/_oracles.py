"""Oracles of policies that learn by epochs: what they cost, how they are fitted, and from where."""

from dataclasses import replace
from math import inf

import numpy as np
from sklearn.base import clone

from ... import linear_model
from ..._estimation._public_maps import column_bounds
from ...exceptions import InvalidValues
from ...privacy import MODELS, Budget, Cost, PrivacyReport, Trust, charge, noticed_charges
from ...records import INVALID_VALUES
from .._base import divided_budget
from .._ucb._sums import Region

# Share of a sparse oracle's budget that is spent on selecting features, which counts most at first.
SELECTION_SHARE = 0.55

NEEDED = {
    ("bounds_y",): "a public bound of rewards",
    ("bounds_X", "data_norm"): "a public bound of features",
    ("classes",): "the list of all possible rewards",
}


def charged_report(oracle):
    """Report of a fit that was charged, and refused its rows; None if it is not private."""
    trust = trust_of(oracle)
    if trust.exact:
        return None
    stated = type(oracle).__name__, trust.model, trust.budget
    secure = getattr(oracle, "random_state", 0) is None
    return PrivacyReport(*stated, secure, charged=Cost.from_budget(trust.budget))


def trust_of(oracle):
    """Who is trusted by an oracle.

    An oracle is private only if it says so itself: what is wrapped in a pipeline is not looked at.
    """
    epsilon = getattr(oracle, "epsilon", inf)
    delta = getattr(oracle, "delta", 0.0)
    model = getattr(oracle, "privacy", "none")
    return Trust.of(model if model in MODELS else "none", Budget(epsilon, delta))


def paid_in(oracle):
    """Currency in which each fit of an oracle is paid; None if it is not known before the fit."""
    can = trust_of(oracle).can
    reports = can.alone or can.amplifies  # users send reports, which may be indices of a codebook
    if reports and (can.amplifies or getattr(oracle, "channel", None) != "gaussian"):
        return None
    # A subclass is paid as its parent; another oracle may cost anything.
    if not isinstance(oracle, tuple(getattr(linear_model, name) for name in linear_model.__all__)):
        return None
    return "zcdp" if isinstance(oracle, linear_model.IHTRegressor) else "gdp"


def split_oracle(oracle, releases):
    """Oracle with its part of the budget: the costs of all fits that a person is in add up."""
    trust = trust_of(oracle)
    if releases == 1 or trust.exact:
        return oracle
    budget = divided_budget(trust.budget, releases, paid_in(oracle))
    return clone(oracle).set_params(epsilon=budget.epsilon, delta=budget.delta)


def check_oracle(oracle, n_features):
    """Refuse now an oracle that cannot be fitted to so many features.

    Not when the first epoch closes.
    """
    oracle = clone(oracle)  # which says so if it is a class
    if hasattr(oracle, "_parameter_constraints"):  # as models of this package and scikit-learn do
        oracle._validate_params()
    getattr(oracle, "_check_model", dict)()
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
        bounds = params.get(name, "auto")
        if not (bounds is None or isinstance(bounds, str)):
            column_bounds(bounds, [], n_columns, name)


def added(n_nonzero, n_features):
    """Features that a sparse oracle selects in an epoch, and those that it keeps from the last.

    Noise grows with the square root of the number that are selected at once: a third of them is,
    and the others next time, by what is left of the rewards when the first ones are known.
    """
    n_nonzero = min(n_nonzero or max(1, min(n_features // 10, 10)), n_features)
    new = max(1, n_nonzero // 3)
    return new, n_nonzero - new


def neutral_reward(oracle):
    """Reward of a row of zeros from which an oracle learns nothing; see `_neutral_reward`.

    If the oracle has an intercept it is the middle of the range of rewards. A classifier learns
    nothing from what is none of its classes.
    """
    params = oracle.get_params(deep=False)
    if params.get("classes") is not None:
        return float(max(params["classes"])) + 1.0
    bounds = params.get("bounds_y")
    if bounds is None or isinstance(bounds, str):
        return 0.0
    low, high = map(float, bounds)
    if params.get("fit_intercept", False):
        return low / 2.0 + high / 2.0
    return min(max(0.0, low), high)


def go_on(oracle, coef, n_features):
    """Let a sparse oracle keep the largest released coefficients, and select more by residuals."""
    new, old = added(oracle.n_nonzero_coefs, n_features)
    if coef is not None:
        coef = coef.copy()
        coef[np.argsort(-np.abs(coef), kind="stable")[old:]] = 0.0
    oracle.set_params(n_nonzero_coefs=new, selection_share=SELECTION_SHARE, coef_init=coef)


def as_start(oracle):
    """Released answers from which the next fit may start; None if users send reports."""
    try:
        return None if trust_of(oracle).can.reports else replace(oracle.as_start(), alike=True)
    except (AttributeError, TypeError, ValueError):  # it has no start, or released a mean alone
        return None


def failure_of_fit(oracle, X, y, releases):
    """Fit; return what failed once something was charged, such as rows that are no numbers.

    A person who may be in so many epochs pays for as many fits, of which this is one.
    """
    with noticed_charges() as charges:
        try:
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


def coef_posterior(oracle):
    """Posterior of an oracle's coefficients; an intercept is the same for all actions."""
    mean, covariance = oracle.posterior()
    d = len(oracle.coef_)
    return Region(mean[:d], covariance[:d, :d])
