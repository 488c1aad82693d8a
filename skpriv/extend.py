"""The door for those who extend skpriv from outside: all that an estimator, a policy, a query or a
privacy model of a third party needs.

Names that stand here are kept as stable as those of users. :func:`worst_pair` attacks a query, and
:func:`check_estimator` an estimator, as the tests of this library attack its own.
"""

from math import inf, nan
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator as _check_conventions

from ._linalg import unwarned
from ._compat import Interval, StrOptions, fit_context
from ._parameters import Count, DataNorm, Level, Positive, parameters
from ._stored import stored as register
from .audit import replay
from .audit._replay import size
from .bandits._policy._base import BasePolicy
from .bandits._epochs._policy import EpochPolicy, OraclePolicy
from .bandits._ucb._running import RunningSumsPolicy
from .linear_model._estimator import PrivateRegressor, persons_of
from .linear_model._moments import MomentRegressor
from .linear_model._opening import open_fit, scaled_rows
from .privacy import (
    MODELS,
    ROUNDING,
    Answer,
    Capabilities,
    GaussianNoise,
    Procedure,
    Query,
    Session,
)

__all__ = [
    "MODELS",
    "ROUNDING",
    "Answer",
    "BasePolicy",
    "Capabilities",
    "Count",
    "DataNorm",
    "EpochPolicy",
    "GaussianNoise",
    "Interval",
    "Level",
    "MomentRegressor",
    "OraclePolicy",
    "Positive",
    "PrivateRegressor",
    "Procedure",
    "Query",
    "RunningSumsPolicy",
    "Session",
    "StrOptions",
    "check_estimator",
    "fit_context",
    "open_fit",
    "parameters",
    "persons_of",
    "register",
    "scaled_rows",
    "worst_pair",
]

# Cells of the records on which queries are tried: usual, huge and tiny numbers, and no numbers.
CELLS = (0.0, 1.0, -1.0, 0.5, 1e9, -1e9, 1e300, 1e-300, inf, nan)


def worst_pair(
    query: Query, n_features: int, *, n_tries: int = 2_000, random_state: Any = 0
) -> tuple[float, tuple[Any, ...], tuple[Any, ...]]:
    """Search for two records between which a query moves furthest.

    Parameters
    ----------
    query : Query
    n_features : int
        Number of columns of X.
    n_tries : int, default=2000
        Number of pairs; half of them change one cell of the best pair so far.
    random_state : None, int or RandomState, default=0

    Returns
    -------
    (ratio, first, second) : (float, (X, y), (X, y))
        The change over the declared sensitivity, infinite where an answer is not finite, and the
        two records. A ratio above 1 breaks the guarantee. One that is far below 1 says that the
        search found no bad pair, or that the declared sensitivity is too large.

    Examples
    --------
    >>> from skpriv.extend import worst_pair
    >>> from skpriv.privacy import ROUNDING, Query
    >>> class Total(Query):
    ...     name = "total"
    ...     shape = (1,)
    ...     sensitivity = 2.0 * ROUNDING
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(np.nan_to_num(y), -1.0, 1.0).sum()])
    >>> ratio, _, _ = worst_pair(Total(), n_features=1, n_tries=100)
    >>> round(ratio, 3)
    1.0
    """
    rng = np.random.default_rng(random_state)
    best: tuple[Any, ...] = (-1.0, np.zeros(n_features + 1), np.zeros(n_features + 1))
    for attempt in range(n_tries):
        pair = [row.copy() for row in best[1:]]
        if attempt % 2:
            pair[rng.integers(2)][rng.integers(n_features + 1)] = _cell(rng)
        else:
            pair = [np.array([_cell(rng) for _ in row]) for row in pair]
        with unwarned():
            answers = [np.asarray(query.sum(row[None, :-1], row[-1:])) for row in pair]
            moved = size(answers[0] - answers[1], query.norm)
        ratio = moved / query.sensitivity if np.isfinite(moved) else inf
        if ratio > best[0]:
            best = (ratio, *pair)
    ratio, *records = best
    first, second = ((row[None, :-1], row[-1:]) for row in records)
    return ratio, first, second


def _cell(rng: Any) -> float:
    return float(rng.choice(CELLS)) if rng.random() < 0.3 else float(rng.uniform(-1.5, 1.5))


# Checks of scikit-learn with data whose shape is known only once they are an array. To compute it
# could tell of a value before a charge, so that such data are refused by their type.
COMPUTED_SHAPES = {
    f"check_{kind}_not_an_array": "data without a shape are refused"
    for kind in ("classifier_data", "regressor_data", "sample_weights", "transformer_data")
}


def check_estimator(estimator: Any, *, n: int = 300, n_features: int = 2) -> None:
    """Check an estimator of a third party as the tests of skpriv check its own.

    Besides scikit-learn's conventions: answers that are forced onto a neighbour change nothing else
    and cost what is claimed, the order of the rows plays no part, a fitted estimator keeps nothing
    that is as long as the rows, and without a seed the noise is secure.

    Parameters
    ----------
    estimator : regressor
        Unfitted, with its public bounds.
    n : int, default=300
        Number of records of the small fits.
    n_features : int, default=2

    Raises
    ------
    AssertionError
        It says what does not hold.
    RuntimeError
        If Python runs with ``-O``.
    """
    if not __debug__:
        raise RuntimeError("python -O takes all assertions out, and so the checks: leave it out.")
    _check_conventions(clone(estimator), on_skip=None, expected_failed_checks=COMPUTED_SHAPES)
    check_privacy(estimator, n, n_features)


def check_privacy(estimator: Any, n: int = 300, n_features: int = 2) -> None:
    """The part of :func:`check_estimator` that is about privacy."""
    rng = np.random.default_rng(0)
    low, high = estimator.bounds_y
    X = rng.uniform(-1.0, 1.0, (n, n_features)) / np.sqrt(n_features)
    y = rng.uniform(low, high, n)
    for row, target in ((X[0], high), (-100.0 * X[0], low), (np.zeros(n_features), high)):
        other = X.copy()
        targets = y.copy()
        other[0] = row
        targets[0] = target
        found = replay(lambda: clone(estimator), (X, y), (other, targets))
        assert found.holds, f"a replaced record shows: {found}"
    fitted = clone(estimator).set_params(random_state=None).fit(X, y)
    assert fitted.privacy_report_.secure, "without a seed the noise must be secure"
    for name, value in vars(fitted).items():
        assert n not in np.shape(value), f"{name} is as long as the rows, and may hold them"
