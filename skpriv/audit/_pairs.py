"""Proposals of neighbours that a mechanism tells apart best."""

from typing import Any
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from sklearn.base import clone

from ..privacy import Budget
from ..records import finite_numbers
from ._replay import replay

ANGLES = (60.0, 90.0, 180.0)  # at which corrected sensitivities are attained


@dataclass(frozen=True)
class Pair:
    """Two neighbours.

    Attributes
    ----------
    D, D_prime : tuple of arrays
        (X, y) of the same background; the first record differs.
    score : float
        Cost of the change by :func:`replay`; where nothing can be listened to, how many standard
        deviations apart the predictions of a few fits are.
    """

    D: tuple
    D_prime: tuple
    score: float


def worst_pairs(
    make: Any,
    X: Any,
    y: Any,
    *,
    data_norm: float | str = 1.0,
    row_norm: str = "l2",
    bounds_y: Any = (-1.0, 1.0),
    n_pairs: int = 3,
) -> list:
    """Propose neighbours that are far apart: extreme records before a public background.

    Candidates are records on the edge of the public ball (or cube) with extreme targets, at the
    angles at which known sensitivities are attained, tiny ones and the zero record.

    Parameters
    ----------
    make : callable
        ``make()`` (or ``make(seed)``) returns an unfitted estimator.
    X : ndarray of shape (n, n_features)
        Background: its first record is replaced. Few records, or zeros, hide the least.
    y : ndarray of shape (n,)
    data_norm : float, default=1.0
        Public bound on rows.
    row_norm : {"l2", "linf"}, default="l2"
    bounds_y : (float, float), default=(-1, 1)
    n_pairs : int, default=3

    Returns
    -------
    list of Pair
        The best first.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.audit import worst_pairs
    >>> from skpriv.linear_model import SSPRegressor
    >>> best = worst_pairs(lambda: SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), random_state=0
    ... ), np.zeros((9, 2)), np.zeros(9))[0]
    >>> bool(0.9 < best.score <= 1.0)
    True
    """
    X = finite_numbers(X, "X", (None, None))
    y = finite_numbers(y, "y", X.shape[:1])
    rows = _rows(X.shape[1], data_norm, row_norm)
    low, high = bounds_y
    wanted = [(rows[0], low, rows[0], high)]  # the same row with another target
    for first, second in combinations(rows, 2):
        wanted += [(first, a, second, b) for a, b in ((low, high), (high, high), (high, low))]
    found = []
    for first, a, second, b in wanted:
        D, D_prime = _with_first(X, y, first, a), _with_first(X, y, second, b)
        found.append(Pair(D, D_prime, _score(make, D, D_prime)))
    return sorted(found, key=lambda pair: -pair.score)[:n_pairs]


def _with_first(X, y, row, target):
    """The same background with another first record."""
    X, y = X.copy(), y.copy()
    X[0], y[0] = row, target
    return X, y


def _rows(d, data_norm, row_norm):
    """Records on the edge, at several angles in the first plane; a tiny one, and zero."""
    if row_norm == "linf":
        rows = [np.ones(d), -np.ones(d), np.eye(d)[0], np.zeros(d)]
        return [data_norm * row for row in rows]
    rows = [np.eye(d)[0]]
    if d > 1:
        turned = np.radians([angle for angle in ANGLES if angle < 180.0])
        rows += [np.cos(a) * np.eye(d)[0] + np.sin(a) * np.eye(d)[1] for a in turned]
        rows.append(np.ones(d) / sqrt(d))
    return [data_norm * row for row in (*rows, -rows[0], -1e-9 * rows[0], np.zeros(d))]


def _score(make, D, D_prime):
    """Replayed cost, or a rough distance of predictions."""
    try:
        estimator = make()
    except TypeError:
        return _distance(make, D, D_prime)
    found = replay(lambda: clone(estimator), D, D_prime, claim=_budget(estimator))
    return found.epsilon if found.answers else _distance(lambda seed: make(), D, D_prime)


def _budget(estimator):
    parameters = estimator.get_params()
    delta = float(parameters.get("delta", 1e-6))
    return Budget(float(parameters.get("epsilon", 1.0)), delta)


def _distance(make, D, D_prime):
    """Distance of the mean predictions of a few fits, in standard deviations."""
    at = np.vstack([D[0][:1], D_prime[0][:1]])
    # 12 fits of each neighbour, where answers cannot be listened to
    samples = [
        np.array([make(seed).fit(*data).predict(at) for seed in range(12)]) for data in (D, D_prime)
    ]
    spread = np.sqrt(sum(sample.var(axis=0) for sample in samples)) + 1e-12
    return float(np.max(np.abs(samples[0].mean(axis=0) - samples[1].mean(axis=0)) / spread))
