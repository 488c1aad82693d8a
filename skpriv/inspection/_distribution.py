"""Distributions of numbers with a public range, from private counts in a binary tree over it.

Numbers are the target of rows, or a column of encoded ones: a number or a date is a pair (z, 0)
with z in [-1, 1], or (0, 1) where the cell is missing, divided by the public norm. Such a column is
called a range. All statements are for replacing one record by another.
"""

from math import sqrt
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from .._compat import Interval
from .._estimation._levels import two_sided_quantile
from .._estimation._public_maps import TargetMap, column_bounds
from .._linalg import ROUNDED
from .._parameters import Level, PrivacyModel, RandomState, validated
from .._stored import frozen
from ..privacy import ROUNDING, Budget, Groups, Query, open_session, protecting
from ..records import ArrayRows, public_shape


@frozen
class ColumnRange:
    """A column of numbers or dates: where it stands in the encoded row.

    Attributes
    ----------
    name : str
        The name of the column.
    at : int
        The first of its two columns in the encoded row.
    norm : float
        The public divisor of encoded rows.
    """

    name: str
    at: int
    norm: float

    def values(self, X: np.ndarray, y: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Positions in [-1, 1], 0 where missing, and whether each cell is missing."""
        z = self.norm * X[:, self.at]
        missing = ~(np.abs(self.norm * X[:, self.at + 1]) < 0.5) | np.isnan(z)
        return np.where(missing, 0.0, z.clip(-1.0, 1.0)), missing


@frozen
class Ranged:
    """A vector of numbers with a public range, in the place of the target.

    Attributes
    ----------
    low, high : float
        The public range, to which numbers are clipped.
    """

    low: float
    high: float

    def values(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions in [-1, 1], 0 where missing, and whether each number is missing."""
        return TargetMap((self.low, self.high), fit_intercept=True).scaled(y), np.isnan(y)


def equal_parts(z: np.ndarray, count: int) -> np.ndarray:
    """Number of the part of each position, of so many equal parts of [-1, 1]."""
    return np.minimum(((z + 1.0) / 2.0 * count).astype(np.intp), count - 1)


@frozen
class DistributionQuery(Query):
    """Counts of each range in all nodes of a binary tree over it, and at its two ends.

    A value is in one node of each of the levels 1 to `depth`, and perhaps at one end. Replacing it
    moves two counts by 1 at each level, and at most two at the ends: 2 depth + 2 in squares, which
    the two ends of the range attain. A missing cell is in no node. The sums are whole numbers.
    """

    ranges: tuple[ColumnRange | Ranged, ...]
    depth: int
    name = "distributions"

    @property
    def sensitivity(self) -> float:
        """Largest change when a record is replaced, rounded up."""
        return sqrt((2.0 * self.depth + 2.0) * len(self.ranges)) * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of counts: of each range all nodes but the root, and the two ends."""
        return (2 ** (self.depth + 1) * len(self.ranges),)

    def sum(self, X: np.ndarray, y: Any) -> np.ndarray:
        """Exact counts over a chunk of rows, from the leaves up."""
        parts = []
        leaves = 2**self.depth
        for column in self.ranges:
            z, missing = column.values(X, y)
            z = z[~missing]
            counts = np.bincount(equal_parts(z, leaves), minlength=leaves).astype(float)
            while len(counts) > 1:
                parts.append(counts)
                counts = counts.reshape(-1, 2).sum(axis=1)
            parts.append(np.array([np.sum(z <= ROUNDED - 1.0), np.sum(z >= 1.0 - ROUNDED)]))
        return np.concatenate(parts)

    def tables(self, value: np.ndarray) -> list[list[np.ndarray]]:
        """Counts of the nodes of each range's tree, the leaves first; the two ends are last."""
        widths = 2 ** np.arange(self.depth, 0, -1)
        return [np.split(counts, np.cumsum(widths)) for counts in np.split(value, len(self.ranges))]


class Distribution:
    """Ranks, quantiles and bins from noisy counts in the nodes of a binary tree.

    Each node and the nodes below it tell its count independently, so that they are averaged from
    the leaves up by their variances (Hay, Rastogi, Miklau and Suciu 2010, section 4): with noise of
    variance 1 a leaf has variance 1, and a node above children of variance v has 2 v / (2 v + 1).
    The count left of a grid point is a sum of such nodes, which are disjoint and hence independent,
    and so is the count right of it.

    Parameters
    ----------
    levels : list of ndarray
        Noisy counts of the nodes of each level, the leaves first, then 2^(depth - 1) nodes, and so
        on down to the two halves of the range.
    scale : float
        The standard deviation of the noise of each count.
    values : (float, float)
        The estimated number of cells that are not missing, and its standard deviation.
    """

    def __init__(self, levels: list[np.ndarray], scale: float, values: tuple[float, float]) -> None:
        self.depth = len(levels)
        self._count = values[0]
        self._count_variance = values[1] ** 2
        self._nodes = [np.asarray(levels[0])]
        self._variances = [1.0]
        for counts in levels[1:]:
            below = self._nodes[-1].reshape(-1, 2).sum(axis=1)
            v = self._variances[-1]
            self._nodes.append((2.0 * v * counts + below) / (2.0 * v + 1.0))
            self._variances.append(2.0 * v / (2.0 * v + 1.0))
        self._variances = [scale**2 * v for v in self._variances]
        self._left = self._prefixes(self._nodes)
        right, variance = self._prefixes([nodes[::-1] for nodes in self._nodes])
        self._right = right[::-1], variance[::-1]

    def bins(self, level: int) -> tuple[np.ndarray, float]:
        """Counts in 2^level equal parts of the range, and the standard deviation of each."""
        place = self.depth - level
        return self._nodes[place], float(np.sqrt(self._variances[place]))

    def excess(self, q: float) -> tuple[np.ndarray, np.ndarray]:
        """Count left of each grid point minus q times the count of all, and its variance.

        Left and right counts, of variances a and b, and the number of values, of variance v, are
        weighed for the least variance: w on the left one has w^2 a + (1 - w)^2 b + (1 - q - w)^2 v,
        which is least at w = (b + (1 - q) v) / (a + b + v).
        """
        left, a = self._left
        right, b = self._right
        v = self._count_variance
        total = a + b + v
        w = (b + (1.0 - q) * v) / np.where(total > 0.0, total, 1.0)
        w = np.where(total > 0.0, w, 1.0)
        value = w * (left - q * self._count) + (1.0 - w) * ((1.0 - q) * self._count - right)
        # Two counts are known: no cell is left of the first point, and all are left of the last.
        value[[0, -1]] = -q * self._count, (1.0 - q) * self._count
        variance = w**2 * a + (1.0 - w) ** 2 * b + (1.0 - q - w) ** 2 * v
        variance[[0, -1]] = q**2 * v, (1.0 - q) ** 2 * v
        return value, variance

    def quantile(self, q: float, z: float, sampling: float) -> tuple[float, float, float]:
        """Quantile on [0, 1] with the ends of its interval.

        A cell between two grid points stays in the interval unless the count left of its first one
        is too large or that left of its last one too small to be told from noise. The noise at a
        grid point does not depend on which cells are left, so that the cell of the true quantile is
        left out with the probability that z stands for.

        Parameters
        ----------
        q : float in (0, 1)
        z : float
            Normal deviate of the interval.
        sampling : float
            Part of the sampling variance that counts: 1 for a population, 0 for the table itself.
        """
        value, variance = self.excess(q)
        sampled = sampling * max(self._count, 1.0) * q * (1.0 - q)
        half = z * np.sqrt(variance + sampled)
        weights = 1.0 / np.maximum(variance, 1e-12 * max(variance.max(), 1.0))
        found = _crossing(isotonic_regression(value, sample_weight=weights))
        low = _crossing(isotonic_regression(value + half, sample_weight=weights), -1)
        high = _crossing(isotonic_regression(value - half, sample_weight=weights), 1)
        return found, min(low, found), max(high, found)

    def _prefixes(self, nodes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Sum of the nodes that make up what is left of each inner grid point, and its variance."""
        points = np.arange(2**self.depth + 1)
        value = np.zeros(len(points))
        variance = np.zeros(len(points))
        for height in range(self.depth):
            taken = (points >> height) & 1 == 1
            value[taken] += nodes[height][(points[taken] >> height) - 1]
            variance[taken] += self._variances[height]
        return value, variance


def _crossing(rising: np.ndarray, side: int = 0) -> float:
    """The place where increasing values at equal steps on [0, 1] pass 0: inside a cell, or at its
    end."""
    last = len(rising) - 1
    cell = int(np.clip(np.searchsorted(rising, 0.0) - 1, 0, last - 1))
    if side:
        return (cell + (side > 0)) / last
    step = rising[cell + 1] - rising[cell]
    inside = -rising[cell] / step if step > 0.0 else 0.5
    return float((cell + np.clip(inside, 0.0, 1.0)) / last)


# Levels of the tree of `private_quantiles`: a leaf is 1/16384 of the range. One more level would
# add 3% to the noise.
QUANTILE_DEPTH = 14


@validated
def private_quantiles(
    y: Any,
    levels: Any,
    *,
    bounds: Any,
    epsilon: float,
    delta: float = 1e-6,
    privacy: PrivacyModel = "central",
    confidence_level: Level | None = None,
    random_state: RandomState = None,
) -> Any:
    """Private quantiles of a vector of numbers, all of them for one price.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Private numbers. They are clipped to `bounds`.
    levels : array-like of shape (n_levels,)
        Public levels of the quantiles, each in (0, 1), in any order: 0.5 is the median. Their
        number costs nothing.
    bounds : (float, float)
        Public range (low, high) of the numbers, from what they mean and never from `y`.
    epsilon : float in (0, inf]
        Privacy parameter of all quantiles together; ``inf`` adds no noise.
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records.
    privacy : str, default="central"
        The privacy model.
    confidence_level : float in (0, 1), default=None
        If it is given, the ends of an interval for each quantile of `y` are returned too.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    ndarray of shape (n_levels,), or three of them
        The quantiles in the order of `levels`, which do not cross. With a confidence level the
        lower and the upper ends of their intervals follow. An interval contains the quantile of
        `y` itself with this probability, and counts the privacy noise alone.

    Raises
    ------
    ValueError
        If a parameter is out of its range. If `y` holds what is not a finite number it is refused
        after the charge, in one fixed sentence.
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record.
    Released is one Gaussian answer: counts in a binary tree over the public range, whose
    sensitivity its query derives. The number of records is public. All else is computed from
    the answer.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv import private_quantiles
    >>> y = np.random.RandomState(0).normal(50.0, 10.0, size=20_000)
    >>> found = private_quantiles(
    ...     y, [0.1, 0.5, 0.9], bounds=(0, 100), epsilon=1.0, delta=1e-6, random_state=0
    ... )
    >>> bool(abs(found - np.quantile(y, [0.1, 0.5, 0.9])).max() < 0.5)
    True
    """
    levels = np.asarray(levels, float)
    if levels.ndim != 1 or not len(levels) or not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueError("levels must be a list of numbers above 0 and below 1.")
    low, high = np.concatenate(column_bounds(bounds, [], 1, "bounds")).tolist()
    n, *other = public_shape(y)
    if other or not n:
        raise ValueError("y must hold one number for each record: an array of shape (n_samples,).")
    rows = ArrayRows(np.empty((n, 0)), y)
    query = DistributionQuery((Ranged(low, high),), QUANTILE_DEPTH)
    budget = positive_budget(epsilon, delta)
    session = open_session(privacy, rows, None, budget, random_state, "private_quantiles")
    rows.check()  # The session has charged, so that values may be looked at.
    del y
    answer = session.sum(query, 1.0)
    *tree, _ = query.tables(answer.value)[0]
    distribution = Distribution(tree, answer.noise.scale, (float(answer.n), 0.0))
    z = two_sided_quantile(confidence_level or 0.95)
    found = np.array([distribution.quantile(q, z, 0.0) for q in levels])
    order = np.argsort(levels)
    found[order] = np.maximum.accumulate(found[order], axis=0)  # quantiles do not cross
    values = np.clip(low + found * (high - low), low, high)
    return values[:, 0] if confidence_level is None else tuple(values.T)


@validated
def propose_max_rows(
    groups: Any,
    *,
    largest: Annotated[int, Interval(Integral, 1, 2**QUANTILE_DEPTH, closed="both")],
    epsilon: float,
    delta: float = 1e-6,
    level: Level = 0.9,
    privacy: PrivacyModel = "central",
    random_state: RandomState = None,
) -> int:
    """Propose ``max_rows_per_group``: a private quantile of the numbers of rows of persons.

    The largest number of rows that a person has is not private, and must not be passed to a fit. A
    quantile of these numbers is released here instead, with a small budget of its own.

    Parameters
    ----------
    groups : array-like of shape (n_samples,)
        The person of each row, as it is passed to ``fit``.
    largest : int
        The most rows that could be proposed, from 1 to 16,384: a public number, generous if need
        be. It is never the largest number that the rows have.
    epsilon : float in (0, inf]
        Privacy parameter of the proposal; ``inf`` adds no noise. A tenth of that of the fit is
        often enough, since the noise is that of a count of persons.
    delta : float in (0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of persons.
    level : float in (0, 1), default=0.9
        Part of the persons who shall have no more rows. Those beyond it lose some of their rows,
        and a larger level needs more noise in the fit.
    privacy : str, default="central"
        The privacy model.
    random_state : None, int or RandomState, default=None
        None draws secure noise for a real release, anything else reproducible noise for study.

    Returns
    -------
    int
        A number from 1 to `largest`, which may be passed on as a public one.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    BudgetExceeded
        If an active :class:`skpriv.BudgetAccountant` cannot pay.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one person
    with all rows. The answer is one of `skpriv.private_quantiles` about one number a person. The
    number of persons is public.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.inspection import propose_max_rows
    >>> visits = np.random.RandomState(0).poisson(3.0, 5000) + 1
    >>> patients = np.repeat(np.arange(5000), visits)
    >>> propose_max_rows(patients, largest=100, epsilon=0.2, delta=1e-6, random_state=0)
    6
    """
    # Counting the rows of each person reads no value; the session charges before it reads counts.
    counts = np.bincount(Groups(groups, 1).codes)
    with protecting("", 1):  # One number of each person is used.
        found = private_quantiles(
            counts, [level], bounds=(0.5, largest + 0.5), epsilon=epsilon, delta=delta,
            privacy=privacy, random_state=random_state,
        )  # fmt: skip
    return int(np.clip(np.round(found[0]), 1, largest))


def positive_budget(epsilon: float, delta: float) -> Budget:
    """Budget of a release, which epsilon=0 does not allow."""
    budget = Budget(epsilon, delta)
    if not budget.epsilon:
        raise ValueError("epsilon=0 allows no answer: it must be above 0.")
    return budget
