"""The questions of the loop beside its steps, with the sensitivity of each release, and the links.

All statements are for replacing one record by another, marked with a prime. A row of the map is phi
with ||phi|| <= 1, psi = W phi for a released W, w = min(1, 1 / ||psi||) and e = w psi, so that
||e|| <= 1 whatever W is. r is the target, and m a released location. For a row with weight v, w and
e are multiplied by its root. A link says which function of the linear part the mean of r is.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special
from scipy.sparse import csr_matrix

from ..._linalg import SQRT2, add_gram, blocks_of, lean_product, row_norms, unvech, vech, vech_size
from ..._stored import stored, stored_in_policies
from ...privacy import ROUNDING, Query
from .._intervals import USUAL_QUANTILE
from .._public_maps import RowMap

SQUARES = 1.5  # c of `MarginsQuery`: as large as costs nothing
STRETCH_WEIGHT = 1.5  # c of `StretchQuery`: free up to 1.66
# A class, and the records that have a target, are taken to be no fewer records than these.
LEAST_RATE = 3.0
# With few records residuals of two classes are cut at this many times the largest one at the rate.
CUT_BEYOND = 1.1
MATRICES = "slope", "residual", "cut_rows"  # what is asked of scores as a vech
# Classes of lengths of a person's score, as parts of the largest that it may have.
SCORE_LENGTHS = 2.0 ** (-np.arange(13)[::-1] / 2.0)
MOST_CUT = 0.001  # part of the persons whose scores may be cut, as far as noise tells


@stored
@dataclass(frozen=True)
class MeanLink:
    """A mean mu(eta) of targets r, with what the loop needs to know of it; this is a line's.

    The second derivative of mu is nowhere larger than the first: so an equation that was asked at a
    distance is wrong by at most half of the square of that distance, in the norm of its slope.

    Attributes
    ----------
    low, high : float
        Targets r are in [low, high].
    farthest : float
        Largest residual of a fit inside of the range of the target.
    counts : bool
        Whether residuals near the limit are counted.
    steepest : float
        Largest slope of the mean, thinned, times ``far``.
    limit : float or None
        Limit R at which residuals are clipped; None leaves it to the rules.
    slope_weight, squared_sensitivity : float
        Weight of the slope matrix in `ScoreQuery`, and the squared sensitivity of that query.
    signal : float or None
        Deviation of the linear part that is thought possible, and the most by which one step moves
        it; None is that of the target.
    far : float
        A whitened row psi counts in full up to length 1, like 1 / |psi| up to this length, and like
        1 / |psi|^2 beyond: its score is e v (r - mu) with e = psi / max(1, |psi|) and
        v = min(1, far / |psi|). So |psi| v <= far: no Newton step rests on a slope that was cut.
    least_effective_records : float
        N below which rows are not whitened and, where the link bends, only the mean is released.
        Counts lose by less than 150 (at N of 105 and 130, p of 20 and 40).
    mean_effective_records : float
        N below which only the mean is released, where there are too few records to whiten them: of
        a line with an intercept slopes lose .18 of R2 at 25, and gain .06 at 32 and 45; of two
        classes they gain nothing at 48 (docs/evidence/few_records.md).
    prior_variance : float
        Prior variance of the mean of the target, in squared half-ranges: 1/3 is that of a uniform
        prior on the range. Means of counts lie near the lower end of their range, so that they are
        not shrunk to its middle: their prior variance is infinite.
    degrees : float or None
        Factor of the sampling covariance of n records; None is n / (n - p).
    parts : int
        Number k of linear parts. A link with several has a ``location_query``,
        ``score_query``, ``each`` and ``interval`` of its own.
    origin : float or ndarray of shape (k + 1,)
        Location of a model without an intercept.
    """

    linear: ClassVar[bool] = True
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    farthest: ClassVar[float] = 2.0
    counts: ClassVar[bool] = True
    slope_weight: ClassVar[Any] = 0.5
    squared_sensitivity: ClassVar[Any] = 4.25
    signal: ClassVar[float | None] = None
    far: ClassVar[float] = 1.0
    least_effective_records: ClassVar[float] = 100.0
    mean_effective_records: ClassVar[float] = 30.0
    prior_variance: ClassVar[float] = 1.0 / 3.0
    degrees: ClassVar[float | None] = None
    parts: ClassVar[Any] = 1
    origin: ClassVar[Any] = 0.0
    free: ClassVar[Any]  # of links that bend: the mean and its slope
    steepest: float = 1.0
    limit: float | None = None

    def mean(self, eta):
        """Mean mu(eta) of the target."""
        return eta

    def thin(self, mean):
        """Weight of a row by its mean, in [0, 1]."""
        return 1.0

    def slope(self, eta, mean):
        """Slope of the mean, thinned, over its largest: in [0, 1]."""
        return 1.0

    def linear_part(self, mean):
        """eta of a mean: where the loop starts."""
        return mean

    def near(self, mean, room):
        """The link for targets of this mean, where means up to `room` times it count in full."""
        return self

    def location_query(self, maps):
        """The query of the mean of the targets, where the loop starts."""
        return LocationQuery(maps.target_map, self.low, maps.row_map, self.prior_variance)

    def of_few(self, mean):
        """The link for few records of this mean."""
        return self

    def repeated(self, matrix):
        """A block-diagonal matrix that has this one for each linear part."""
        return matrix if self.parts == 1 else np.kron(np.eye(self.parts), matrix)

    def each(self, matrix):
        """A matrix from theta to coefficients, for all linear parts."""
        return matrix

    def enough(self, p):
        """N from which rows of length p are whitened: two records for each coefficient."""
        return max(self.least_effective_records, 2.0 * p)


class BentLink(MeanLink):
    """A link that bends, as that of logistic regression does.

    Its rows are weighted by the curvature of the likelihood, and may be longer than a line's.
    """

    linear = False
    low = 0.0
    farthest = 1.0
    signal = 3.0
    far = 2.0
    degrees = 1.0
    mean_effective_records = inf

    def newton(self: Any, phi, r, weights, theta):
        """Gradient of the log-likelihood, and minus its second derivative."""
        mean, slope = self.free(phi @ theta)
        return phi.T @ (weights * (r - mean)), (phi * (weights * slope)[:, None]).T @ phi


@stored
@dataclass(frozen=True)
class Logit(BentLink):
    """Binary targets in [0, 1]: the mean is 1 / (1 + exp(-eta)), and no residual exceeds 1."""

    counts = False
    mean_effective_records = 40.0
    steepest: float = 0.25 * BentLink.far
    limit: float | None = 1.0

    @property
    def slope_weight(self):
        """1 where no residual is cut, and else that of any clipped score: see `ScoreQuery`."""
        return 1.0 if self.limit == 1.0 else MeanLink.slope_weight

    @property
    def squared_sensitivity(self):
        """That of these weights."""
        return 4.0 if self.limit == 1.0 else MeanLink.squared_sensitivity

    def of_few(self, mean):
        """The link for few records: residuals are cut a little beyond those at this rate."""
        return replace(self, limit=min(1.0, CUT_BEYOND * max(mean, 1.0 - mean)))

    def mean(self, eta):
        """1 / (1 + exp(-eta)), in long vector operations, which `special.expit` is not."""
        return 1.0 / (1.0 + np.exp(np.minimum(-eta, 700.0)))

    def slope(self, eta, mean):
        """4 mean (1 - mean)."""
        return 4.0 * mean * (1.0 - mean)

    def linear_part(self, mean):
        """log(mean / (1 - mean))."""
        return float(special.logit(mean))

    def free(self, eta):
        """The mean and its slope."""
        mean = self.mean(eta)
        return mean, mean * special.expit(-eta)

    def deviance(self, phi, r, weights, theta):
        """2 sum(log(1 + exp(eta)) - r eta)."""
        eta = phi @ theta
        return 2.0 * float(weights @ (np.logaddexp(0.0, eta) - r * eta))


@stored
@dataclass(frozen=True)
class Log(BentLink):
    """Counts as parts of the largest one: the mean is exp(eta - offset).

    Rows with a mean above a level weigh level / mean, so that one large mean does not need as much
    room as a hundred usual ones. This keeps the equation unbiased, as any weight does that is a
    function of the row alone.

    Parameters
    ----------
    offset : float
        Logarithm of the largest count, so that eta is that of the mean count.
    """

    least_effective_records = 150.0
    prior_variance = inf
    steepest: float = BentLink.far
    offset: float = 0.0

    def mean(self, eta):
        """exp(eta - offset), also where that is above the largest count."""
        return np.exp(np.minimum(eta - self.offset, 700.0))

    def thin(self, mean):
        """min(1, level / mean)."""
        return self._level / np.maximum(mean, self._level)

    def slope(self, eta, mean):
        """min(mean, level) / level."""
        return np.minimum(mean / self._level, 1.0)

    def linear_part(self, mean):
        """log(mean) + offset."""
        return float(np.log(mean)) + self.offset

    def near(self, mean, room):
        """With room for usual means."""
        return replace(self, steepest=self.far * min(1.0, room * mean))

    @property
    def _level(self):
        return self.steepest / self.far

    def free(self, eta):
        """The mean, which is also its own slope."""
        mean = self.mean(eta)
        return mean, mean

    def deviance(self, phi, r, weights, theta):
        """2 sum(exp(eta - offset) - r (eta - offset))."""
        eta = phi @ theta
        return 2.0 * float(weights @ (self.mean(eta) - r * (eta - self.offset)))


IDENTITY = MeanLink()


def scaled_targets(row_map, target_map, X, y, low, high=1.0):
    """Targets r in [low, high] of a chunk, NaN for none, and roots of weights in [0, 1].

    Without a map of targets they are r already. Rows with weights have their root as last column,
    and targets come multiplied by it.
    """
    r = y if target_map is None else target_map.scaled(y)
    if row_map is None or not row_map.weighted:
        return r, np.ones(len(r))
    roots = row_map.roots(X)
    with np.errstate(all="ignore"):
        return np.clip(r / roots, low, high), roots


def best_linear(value, noise, mean, variance):
    """Best linear estimate of what has this prior mean and variance from its value with noise."""
    return mean + (value - mean) / (1.0 + noise**2 / variance)


class OfTargets:
    """Mixin of questions about targets, which read no column of X but that of weights.

    Attributes
    ----------
    weighted : bool
        Whether the last column of X is the root of a weight.
    width : int or None
        Number of columns of X that are read: none, or all of them where there are weights.
    """

    weighted = False
    width: Any = 0
    row_map: Any

    def __post_init__(self):
        if self.row_map is not None and self.row_map.weighted:
            vars(self).update(weighted=True, width=None)


@stored_in_policies
@dataclass(frozen=True, eq=False)
class LocationQuery(OfTargets, Query):
    """Sums of v r and of v for weights v in [0, 1] and r in [low, 1] brought to [-1, 1].

    Without weights v is 1, or 0 for a record without a target. Only the sum of v r is asked where
    all records have a target, as those of a line have. The distance of two records is convex in v
    and in v', so that it is largest where both are 0 or 1: |r - r'| <= 2 for v = v' = 1, and
    |(r, 1)| <= sqrt(2) for v = 1 and v' = 0. Sensitivity 2, that of the mean alone.
    """

    target_map: Any
    low: float = -1.0
    row_map: Any = None  # with weights, or None
    prior_variance: float = IDENTITY.prior_variance
    name: str = "mean of the target"
    sensitivity: float = 2.0 * ROUNDING

    @property
    def shape(self):
        """Two numbers, or one for a line without weights, which is told by ``low`` of -1."""
        return (1 if self.low and not self.weighted else 2,)

    def sum(self, X, y):
        """Exact sums over a chunk of rows."""
        r, roots = scaled_targets(self.row_map, self.target_map, X, y, self.low)
        has_target = np.isfinite(r)
        r, v = (2.0 * r[has_target] - (1.0 + self.low)) / (1.0 - self.low), roots[has_target] ** 2
        return np.array([v @ r, v.sum()])[: self.shape[0]]

    def read(self, answer):
        """The `Location`, whose mean is the best linear estimate under a prior about the middle."""
        noise, (moment, *counted) = answer.noise.scale / answer.n, answer.value / answer.n
        least_part = LEAST_RATE / answer.n
        part = min(max(float(counted[0]), 2.0 * noise, least_part), 1.0) if counted else 1.0
        half_range = (1.0 - self.low) / 2.0
        # A rate is not taken to be below that of a few records, nor the mean of counts below noise
        least = least_part if isfinite(self.prior_variance) else max(least_part, half_range * noise)
        margin = 0.0 if self.low else min(least / part, 0.25)
        moment = best_linear(float(moment) / part, noise / part, 0.0, self.prior_variance)
        mean = 1.0 - half_range + half_range * moment
        mean = float(np.clip(mean, self.low + margin, 1.0 - margin))
        return Location(mean, half_range * noise / part, part)


@stored
class Location(NamedTuple):
    """Released mean of the target, its noise, and the part of the records that have a target."""

    mean: float
    scale: float
    part: float


@dataclass(frozen=True, eq=False)
class SpreadQuery(OfTargets, Query):
    """Sum of v min(|r - m|, 1) in [0, 1]: replacing a record moves it by at most 1."""

    target_map: Any
    location: float
    low: float = -1.0
    row_map: Any = None
    name: str = "mean deviation of the target"
    shape: tuple = (1,)
    sensitivity: float = 1.0 * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        r, roots = scaled_targets(self.row_map, self.target_map, X, y, self.low)
        return np.array([np.nansum(roots**2 * np.minimum(np.abs(r - self.location), 1.0))])


@dataclass(frozen=True, eq=False)
class ResidualMeanQuery(Query):
    """Sum of v clip(r - mu(m + phi'theta), -R, R) / R in [-1, 1]: a record moves it by at most 2.

    It is one number: residuals are not multiplied by rows, and far rows do not count for less. So
    the mean of the fit is known with the noise of one number.
    """

    row_map: RowMap
    target_map: Any
    location: float
    theta: np.ndarray
    limit: float
    link: MeanLink = IDENTITY
    name: str = "mean of the residuals"
    shape: tuple = (1,)
    sensitivity: float = 2.0 * ROUNDING

    def sum(self, X, y):
        """Exact sums over a chunk of rows."""
        r, roots = scaled_targets(self.row_map, self.target_map, X, y, self.link.low)
        fit = self.row_map.plain_rows(X) @ self.theta
        with np.errstate(all="ignore"):
            residual = (r - self.link.mean(self.location + fit)) / self.limit
            terms = roots**2 * self.terms(np.clip(residual, -1.0, 1.0), fit)
        return np.nansum(terms, axis=1)

    def terms(self, residual, fit):
        """What is summed of each row, shape (n_sums, n_rows)."""
        return residual[None]


@dataclass(frozen=True, eq=False)
class StretchQuery(ResidualMeanQuery):
    """Sums of v s g and c v g^2, for a residual s over R and a distance g from the mean over u.

    With s = clip((r - m - phi'theta) / R) and g = clip((phi'theta - t) / u), both in [-1, 1], v is
    a weight in [0, 1], and c = 3/2. The ratio of the sums tells by how much a line is too short.
    The sensitivity is 2, that of the first sum alone: the distance of two records is convex in v
    and in v', so that it is largest where both are 0 or 1. For v = 1 and v' = 0 its square is at
    most 1 + c^2 = 3.25. For v = v' = 1 it is at most (a + b)^2 + c^2 (a^2 - b^2)^2 with a = |g| and
    b = |g'|, which increases in the larger one: at a = 1 it is at most 4, as c^2 <= (3 + b) / ((1 -
    b) (1 + b)^2), which is at least 2.77.

    Parameters
    ----------
    middle, unit : float
        t, the mean of phi'theta, and u.
    """

    middle: float = 0.0
    unit: float = 1.0
    name: str = "length of the line"
    shape: tuple = (2,)

    def terms(self, residual, fit):
        """Terms s g and c g^2 of each row."""
        away = np.clip((fit - self.middle) / self.unit, -1.0, 1.0)
        return away * [residual, STRETCH_WEIGHT * away]

    def read(self, answer):
        """Means of s g and of g^2, and the deviation of the noise of the first."""
        product, square = answer.value / answer.n
        return float(product), float(square) / STRETCH_WEIGHT, answer.noise.scale / answer.n


@dataclass(frozen=True, eq=False)
class Whitened:
    """Rows e = w W phi and weights w of a chunk.

    Parameters
    ----------
    row_map : RowMap, or what stands in its place, or None
        None where the rows of a chunk are the result of `records`: (e, w, |e|), without weights.
    W : ndarray of shape (p, p)
        W phi and Q W phi of a rotation Q are alike to all queries, whose noise is the same in every
        direction.
    target_map : TargetMap, or what stands in its place, default=None
        That of all queries about these rows: r is then kept in memory with the rows, and not y.
    """

    row_map: Any
    W: np.ndarray
    target_map: Any = None

    def blocks(self, X):
        """Yield (slice, e, w, |e|, f) of one block of rows after the other.

        f is the factor that shortens a row to norm 1, and w is f times the root of the weight of
        the row. A block stays in the cache, and the next one overwrites it.
        """
        if self.row_map is None:
            for block in blocks_of(*X.shape):
                prepared = self._by_columns(X[block])
                yield block, prepared[:, :-2], prepared[:, -2], prepared[:, -1], prepared[:, -2]
            return
        room, row_map = np.empty(0), self.row_map
        ours = isinstance(row_map, RowMap)  # other maps may keep what they return
        for block in blocks_of(len(X), self.width):
            rows = X[block]
            if ours and len(room) < len(rows):
                room = np.empty((len(rows), len(self.W)))
            phi = row_map.rows(rows, room[: len(rows)]) if ours else row_map.rows(rows)
            e = lean_product(phi, self.W)
            norms = row_norms(e)
            if ours and not np.isfinite(norms.sum()):  # only in new arrays is NaN replaced
                e = lean_product(row_map.rows(rows), self.W)
                norms = row_norms(e)
            roots = row_map.roots(rows)
            factors = 1.0 / np.maximum(norms, 1.0)
            if norms.max(initial=0.0) > 1.0:
                e *= factors[:, None]
                roots, norms = roots * factors, np.minimum(norms, 1.0)
            yield block, e, roots, norms, factors

    def prepared_for(self, query):
        """The values that a session needs to answer a query from rows (e, w, |e|) that it keeps in
        memory.

        They are this map, which makes these rows, and the same query of them. None where rows have
        weights of their own, or the query has another map of targets than is kept.
        """
        targets = self.target_map
        other = targets is not None and getattr(query, "target_map", targets) is not targets
        if other or self.row_map.weighted:
            return None
        twin = copy(query)  # `replace` would derive its numbers again
        vars(twin).update(whitened=Whitened(None, self.W), shape=query.shape)
        if targets is not None:
            vars(twin).update(target_map=None)
        return self, twin

    @property
    def width(self):
        """Number of columns of rows (e, w, |e|)."""
        return len(self.W) + 2

    def records(self, X, y):
        """Rows (e, w, |e|) of a chunk, and their targets.

        Blocks follow one another in memory, and within each block its columns do. The number of
        columns decides how long blocks are, so that `blocks` finds the same ones again.
        """
        found = np.empty((len(X), self.width))
        for block, e, weights, lengths, _ in self.blocks(X):
            prepared = self._by_columns(found[block])
            prepared[:, :-2], prepared[:, -2], prepared[:, -1] = e, weights, lengths
        return found, y if self.target_map is None else self.target_map.scaled(y)

    @staticmethod
    def _by_columns(block):
        """A block in whose memory columns are contiguous: to multiply each row by a number is then
        faster, and ``np.dot`` takes the rows without the last columns as they are.
        """
        return block.reshape(block.shape[::-1]).T


@dataclass(frozen=True, eq=False)
class WhiteningQuery(Query):
    """Sum of vech ee'.

    |ee' - e'e''|^2 = |e|^4 + |e'|^4 - 2 <e, e'>^2 <= 2 in the Frobenius norm: sensitivity sqrt(2),
    attained at orthogonal unit e and e'.
    """

    whitened: Whitened
    asked_again: bool = False  # the same rows are asked next
    name: str = "whitening"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (vech_size(len(self.whitened.W)),)

    @property
    def prepared(self):
        """The maker of rows (e, w, |e|) and this query of them, where they are to be kept."""
        return self.whitened.prepared_for(self) if self.asked_again else None

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        gram = np.zeros(self.whitened.W.shape)
        for _, e, *_ in self.whitened.blocks(X):
            add_gram(gram, e)
        return vech(gram)

    def gram(self, answer):
        """Noisy mean of ee', and the standard deviation of its noise (GOE)."""
        return unvech(answer.value, len(self.whitened.W)) / answer.n, answer.noise.scale / answer.n


@dataclass(frozen=True, eq=False)
class MarginsQuery(Query):
    """Sums of z and c z^2 of each feature z, in half-ranges from the middle of its range.

    With a, a' in [-1, 1], t = |a + a'| and |a - a'| <= 2 - t, the square of the change of one
    feature is (a - a')^2 (1 + c^2 t^2), which is at most 4 where t + c^2 t (2 - t)^2 <= 4. The
    second term is at most 32 c^2 / 27, and 4 c^2 / 9 from t = 4 / 3 on, so that c = 3/2 will do: a
    feature changes by at most 2, and all d of them by 2 sqrt(d), attained at opposite corners.
    """

    row_map: RowMap
    name: str = "means and squares of features"

    shape: tuple = field(init=False, default=())
    sensitivity: float = field(init=False, default=inf)

    def __post_init__(self):
        d = self.row_map.n_features
        vars(self).update(shape=(2 * d,), sensitivity=2.0 * d**0.5 * ROUNDING)

    def sum(self, X, y):
        """Exact sums over a chunk of rows."""
        d = self.row_map.n_features
        z = np.clip(self.row_map.rows(X)[:, :d] * (d**0.5 / self.row_map.parts[0]), -1.0, 1.0)
        return np.concatenate([z.sum(axis=0), SQUARES * np.einsum("ij,ij->j", z, z)])


@dataclass(frozen=True, eq=False)
class ClippedRowsQuery(Query):
    """Number of records outside of any bound, and outside of those of each value, over sqrt(d).

    The d values are the features, and the target where its map has bounds. A record moves the first
    count by at most 1, and each of the d others by at most 1 / sqrt(d): sensitivity sqrt(2),
    attained by a record that leaves all bounds and one that leaves none.
    """

    row_map: RowMap
    target_map: Any = None
    name: str = "rows outside of their bounds"
    sensitivity: float = SQRT2 * ROUNDING
    shape: tuple = field(init=False, default=())

    def __post_init__(self):
        vars(self).update(shape=(1 + self.row_map.n_inputs + self._bounds_target,))

    @property
    def _bounds_target(self):
        return self.target_map is not None and self.target_map.bounded

    def sum(self, X, y):
        """Exact counts over a chunk of rows."""
        counts = np.zeros(self.shape)
        for block in blocks_of(len(X), X.shape[1]):
            outside = self.row_map.outside(X[block])
            if self._bounds_target:
                outside = np.column_stack([outside, self.target_map.outside(y[block])])
            if outside.any():
                counts[0] += np.count_nonzero(outside.any(axis=1))
                counts[1:] += np.count_nonzero(outside, axis=0)
        counts[1:] /= np.sqrt(max(1, len(counts) - 1))
        return counts

    def read(self, answer):
        """Noisy parts of the rows outside of any bound, and outside of those of each value.

        The third number is the standard deviation of the noise of the first.
        """
        root, parts = np.sqrt(max(1, self.shape[0] - 1)), answer.value / answer.n
        return float(parts[0]), root * parts[1:], answer.noise.scale / answer.n


class OfPersons:
    """Mixin of questions about persons; of rows alone, each is a person."""

    def sum(self: Any, X, y):
        """Exact sum over a chunk of rows, each of which is a person."""
        return self.sum_persons(X, y, np.arange(len(X) + 1), 1)


def joint_sums(query, X, y, starts, largest=1):
    """Exact sums over a chunk of persons of u, uu' / sqrt(2) and what is asked beside them.

    u is the sum of the scores of a person over m L, shortened to norm 1, and what is beside it is a
    mean over the m places of the person. Matrices stand for their vech. With t = -<u, u'> the first
    two move by at most |u|^2 + |u'|^2 + 2 t + (|u|^4 + |u'|^4 - 2 t^2) / 2 squared, which increases
    in both norms, and then in t up to 1, where it is 4.

    Parameters
    ----------
    query : Query
        It has ``length``, L, ``joined(sums)`` and ``scored(X, y)``, the scores of rows and by name
        the sums over rows of what is beside them.
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    starts : ndarray of shape (n_persons + 1,)
    largest : int
        m.
    """
    scores, beside = query.scored(X, y)
    u = person_sums(scores, starts) / (largest * query.length)
    u = u / np.maximum(row_norms(u), 1.0)[:, None]
    means = {name: value / largest for name, value in beside.items()}
    return query.joined(means | {"moment": u.sum(axis=0), "residual": vech(np.dot(u.T, u))})


class JointScores:
    """Mixin of questions about scores, each of a row that is a record: see `joint_sums`.

    Attributes
    ----------
    weights : dict of str to float
        Weights of what is asked, in the order of the answer. Scores are divided by ``limit`` and
        ``length``, residuals by ``limit``, the excess by ``most_excess`` and slopes by the steepest
        one of the link.
    """

    length, fall, matrices = 1.0, 0.0, True
    most_excess: Any = None
    weights: Any
    point: Any
    limit: Any
    link: Any
    scored: Any

    @cached_property
    def parts(self):
        """Sizes of what is asked, in the order of the answer."""
        p = len(self.point)
        sizes = {"moment": p, "beyond": p, **dict.fromkeys(MATRICES, vech_size(p))}
        return {name: sizes.get(name, 1) for name in self.weights}

    @cached_property
    def shape(self):
        """Number of coordinates."""
        return (sum(self.parts.values()),)

    def joined(self, sums):
        """Sums by name, of which matrices are their vech, as an answer has them."""
        return np.concatenate(
            [weight * np.asarray(sums[name]).ravel() for name, weight in self.weights.items()]
        )

    def named(self, values, noise):
        """The meaning of the parts of an answer, and the deviations of their noise, by name."""
        limit = self.limit * self.length  # of a score
        units = {"moment": limit, "beyond": limit, "residual": limit**2, "square": self.limit**2}
        units |= {"slope": self.link.steepest, "excess": self.most_excess}
        found, scales, start = {}, {}, 0
        for name, size in self.parts.items():
            unit = units.get(name, 1.0) / self.weights[name]
            found[name] = unit * values[start : start + size]
            scales[name] = unit * noise
            start += size
        return found, scales

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return joint_sums(self, X, y, np.arange(len(X) + 1))


class PersonScores(OfPersons, JointScores):
    """The same where records are persons."""

    def score_rows(self, X, y):
        """Scores of the rows of a chunk."""
        return self.scored(X, y)[0]

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        return joint_sums(self, X, y, starts, largest)


@dataclass(frozen=True, eq=False)
class ScoreLengthsQuery(OfPersons, Query):
    """Number of records in each class of lengths of scores.

    The length of a person is that of the sum of the scores of its rows, over m. A record is in one
    class: replacing it moves two counts by one, sensitivity sqrt(2).

    Parameters
    ----------
    vectors : object
        The question about these scores, with ``score_rows(X, y)``: those of the rows of a chunk.
        With ``lengths(X, y)``, which is cheaper, where a record is a row.
    classes : ndarray of shape (n_classes,)
        Ends of the classes. The last one has all that is longer, too.
    """

    vectors: Any
    classes: Any = field(default_factory=lambda: SCORE_LENGTHS)
    name: str = "lengths of scores"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of classes."""
        return (len(self.classes),)

    @property
    def prepared(self):
        """The maker of rows of the question about these scores, and this one of them."""
        found = self.vectors.prepared
        return found and (found[0], replace(self, vectors=found[1]))

    def sum(self, X, y):
        """Exact counts over a chunk of rows, each of which is a record."""
        if hasattr(self.vectors, "lengths"):
            return self.counts(self.vectors.lengths(X, y))
        return super().sum(X, y)

    def sum_persons(self, X, y, starts, largest):
        """Exact counts over a chunk of persons."""
        u = person_sums(self.vectors.score_rows(X, y), starts) / largest
        return self.counts(row_norms(u))

    def counts(self, lengths):
        """Number of these lengths in each class; infinity, of overflow, is in the last."""
        classes = np.minimum(np.searchsorted(self.classes, lengths), len(self.classes) - 1)
        return np.bincount(classes, minlength=len(self.classes)).astype(float)


def seldom_cut(session, query, share):
    """A length of persons' scores beyond which next to none is, by private counts.

    From the shortest class on, the first one is taken that has, together with all longer ones, no
    more persons than `MOST_CUT` and the noise of the counts explain. The upper end of this class is
    returned: it is longer than the lower end by a factor of sqrt(2), for the persons whom the noise
    may hide. A larger count of a longer class is not believed, since one of so many noisy sums is
    often large. If the noise hides everybody, nothing is cut.
    """
    lengths = query.classes
    answer = session.sum(query, share)
    longer = np.cumsum(answer.value[::-1])[::-1]
    noise = answer.noise.scale * np.sqrt(np.arange(len(longer), 0, -1))
    seldom = np.flatnonzero(longer <= MOST_CUT * session.n + USUAL_QUANTILE * noise)
    place = int(seldom[0]) if len(seldom) else len(lengths) - 1
    return float(lengths[place]) if place else 1.0


def person_sums(values, starts):
    """Sums over the rows of each person, shape (n_persons, ...); none is without rows."""
    rows, shape = len(values), (len(starts) - 1, len(values))
    return csr_matrix((np.ones(rows), np.arange(rows), starts), shape=shape) @ values


def dependence(of_persons, of_rows, places):
    """How large the sum uu' of persons is beside that of their rows, over all directions.

    It is between 1 / m, for rows that do not depend on each other, and 1, for rows that are alike.

    Parameters
    ----------
    of_persons, of_rows : ndarray of shape (p, p)
        Covariances of the scores of persons, with noise, and what it would be at most.
    places : int
        m.
    """
    largest = max(float(np.trace(of_rows)), 1e-300)
    return float(np.clip(np.trace(of_persons) / largest, 1.0 / places, 1.0))
