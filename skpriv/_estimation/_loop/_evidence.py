"""What other answers than the steps tell of a fit: of its mean, and of the length of a line."""

from math import expm1, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack

from ..._linalg import unwarned
from ..._stored import frozen_object, stored
from ...privacy import ROUNDING, Answer, Query
from .._links import IDENTITY, StepLink
from .._targets import Location, scaled_targets
from ._rules import NORMAL, Rules, mean_clip, skewness_bias
from ._score import COUNT_WEIGHT, CUBE, CUT, ScoreEquation

if TYPE_CHECKING:
    from .._public_maps import RecordMap, RowMap
    from ...privacy import Session, SessionPart
    from ..._contracts import Array
    from ._rows import Whitened
    from ._whitening import Pool

STRETCH_WEIGHT = 1.5  # c of `StretchQuery`: free up to 1.66
SPREAD_WEIGHT = sqrt(0.8)  # c of `SpreadOfCountsQuery`


@frozen_object
class ResidualMeanQuery(Query):
    """Sum of v clip(r - mu(m + phi'theta), -R, R) / R in [-1, 1]: a record moves it by at most 2.

    It is one number: residuals are not multiplied by rows, and far rows do not count for less. So
    the mean of the fit is known with the noise of one number.
    """

    row_map: "RowMap"
    target_map: Any
    location: float
    theta: np.ndarray
    limit: float
    link: StepLink = IDENTITY
    name = "mean of the residuals"
    shape = (1,)
    sensitivity = 2.0 * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> "Array":
        """Exact sums over a chunk of rows."""
        r, roots = scaled_targets(self.row_map, self.target_map, X, y, self.link.low)
        fit = self.row_map.along(X, self.theta)
        with unwarned():
            residual = (r - self.link.mean(self.location + fit)) / self.limit
            terms = roots**2 * self.terms(residual.clip(-1.0, 1.0), fit)
        return np.nansum(terms, axis=1)

    def terms(self, residual: np.ndarray, fit: np.ndarray) -> np.ndarray:
        """What is summed of each row, shape (n_sums, n_rows)."""
        return residual[None]


@frozen_object
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
    name = "length of the line"
    shape = (2,)

    def terms(self, residual: np.ndarray, fit: np.ndarray) -> "Array":
        """Terms s g and c g^2 of each row."""
        away = ((fit - self.middle) / self.unit).clip(-1.0, 1.0)
        return away * [residual, STRETCH_WEIGHT * away]

    def read(self, answer: "Answer") -> tuple[float, float, float]:
        """Means of s g and of g^2, and the deviation of the noise of the first."""
        product, square = answer.mean
        return float(product), float(square) / STRETCH_WEIGHT, answer.mean_scale


@frozen_object
class SpreadOfCountsQuery(StretchQuery):
    """Sums of v s, c v s^2, k v J and c v (1 - s^2) g^2, for residuals s and means mu of the fit.

    Here s = clip((r - mu) / R), g = clip((mu - t) / u), J = 1{|s| >= .75}, and v is a weight, with
    c^2 = .8 and k = .79. The sensitivity is 2, that of the first sum alone. As for `StretchQuery`,
    v and v' are 0 or 1, and for v' = 0 the square is at most 1 + c^2 + k^2. For v = v' = 1,
    a = |s| and b = |s'| <= a, the last sums differ by at most c (1 - b^2), so that without J the
    square increases in a, and at a = 1 it is at most (1 + b)^2 (1 + 2 c^2 (1 - b)^2): that of a
    `StretchQuery` with a weight of 2 c^2 = 1.6, which is at most 4. It increases in b, too, since
    4 c^2 b (1 - b) < 1. So it is at most 3.369 + k^2 = 3.993 where J is 1 for one of them alone,
    whose |s'| is below 3/4.
    """

    name = "mean of the residuals"
    shape = (4,)

    def terms(self, residual: np.ndarray, fit: np.ndarray) -> np.ndarray:
        """Terms s, c s^2, k J and c (1 - s^2) g^2 of each row."""
        away = (self.link.mean(self.location + fit) - self.middle) / self.unit
        squares = SPREAD_WEIGHT * residual**2
        near = COUNT_WEIGHT * (np.abs(residual) >= CUT)
        around = (SPREAD_WEIGHT - squares) * away.clip(-1.0, 1.0) ** 2
        return np.array([residual, squares, near, around])


LEAST_STRETCH = -0.9  # part of a fit by which it is made longer at least


WEIGHTING = 0.6  # part of the spread of a fit by which weights may move its mean


@stored
@frozen_object
class KnownMean:
    """The evidence of released means about a fit, without the clip of its steps.

    It says by how much the mean of the fit at a point b is above that of the target.

    Attributes
    ----------
    point : ndarray of shape (p,)
        b.
    constant : ndarray of shape (p,)
        The vector v with psi'v = 1 for every record.
    gram : ndarray of shape (p, p)
        Slope of the scores over ``slope``: mean of ee', positive semi-definite.
    value, variance : float
        The excess, and the variance of its error.
    skew : float
        How far the clip of the steps moves the mean of their solution.
    slope : float
        Slope of the mean of the target where it is, times the part of the records that have one.
    counts : tuple of float
        Limit R and unit u of a `SpreadOfCountsQuery`, its last three means, without weights, and
        the deviation of the noise of the first and the last of them; empty where it is not asked.
    """

    point: np.ndarray
    constant: np.ndarray
    gram: np.ndarray
    value: float
    variance: float
    skew: float
    slope: float = 1.0
    counts: tuple[float, ...] = ()

    def excess(
        self, b: np.ndarray, noise: float, shared: np.ndarray
    ) -> tuple[float, np.ndarray, float]:
        """By how much the mean of an estimate b is above that of the target.

        This is a least-squares problem with two unknowns: the excess, and the number s by which the
        clip moves it in units of `skew`. It has three equations. The estimate b has no excess, up
        to its privacy noise and the clip. The released mean says what the excess is. And s is as if
        N(0, 1), whose deviation bounds the bias for every s in [-1, 1].

        Parameters
        ----------
        b : ndarray of shape (p,)
        noise : float
            Variance of the noise of each coordinate of the moment that b solves.
        shared : ndarray of shape (p, n_shared)
            Its noise in directions that all coordinates share.

        Returns
        -------
        (excess, dual, deviation)
            The excess, the dual by which the noise of the moment enters it, and the deviation of
            all other errors in it.
        """
        level = max(self.constant @ self.gram @ self.constant, 0.1)  # mean of w^2
        dual = self.constant / level
        away = b - self.point
        moved = weights_move_mean(level, float(away @ self.gram @ away))
        reply = dual / self.slope
        own = noise * (reply @ reply) + np.square(reply @ shared).sum() + self.skew**2
        other = self.variance + moved
        weight = own / (own + other)  # of the released mean
        excess = weight * (self.value + (dual @ self.gram @ away))
        rest = weight**2 * other + (1.0 - weight) ** 2 * self.skew**2
        return excess, weight * reply, float(np.sqrt(rest))


@stored
@frozen_object
class KnownLength:
    """By how much a line at a point b is too short, as another answer than its steps says.

    Clips take more away from large targets where noise is skewed and grows with the mean: the line
    is then too short. It is too long where rows that are far away, which steps weigh less, are on a
    bent relation. Its direction is right in both cases.

    Attributes
    ----------
    point : ndarray of shape (p,)
        b.
    direction : ndarray of shape (p,)
        f, which is b less its mean.
    dual : ndarray of shape (p,)
        D f / f'Df for the Gram matrix D of the rows: its product with a change of b is the part of
        f that is in it.
    value, variance : float
        d, such that b + d f has the right length, and the variance v of its error.
    prior : float
        Variance t^2 of d a priori.
    expected : float, default=0
        Its mean a priori.
    """

    point: np.ndarray
    direction: np.ndarray
    dual: np.ndarray
    value: float
    variance: float
    prior: float
    expected: float = 0.0

    def of(self, b: np.ndarray) -> tuple[float, float]:
        """Parts of f to be added to an estimate b, and the deviation of their error.

        With the variance v the weight w of d is t^2 / (t^2 + v), and what is expected has the rest:
        w^2 v of its noise and (1 - w)^2 t^2 of the length are left over, which is w v.
        """
        weight = self.prior / max(self.prior + self.variance, 1e-300)
        missing = weight * (self.value - (self.dual @ (b - self.point)))
        missing += (1.0 - weight) * self.expected
        return max(missing, LEAST_STRETCH), sqrt(weight * self.variance)


def weights_move_mean(level: float, square: float) -> float:
    """Variance of the difference between the mean of a fit and its mean weighted by w^2.

    Parameters
    ----------
    level : float
        Mean of w^2.
    square : float
        Mean square of the fit.
    """
    return WEIGHTING**2 * max(square, 0.0) * (max(level * (1.0 - level), 0.0) + 0.02)


# Largest deviation of the logarithm of a mean of counts by what clips take away from it.
MOST_SKEW = 0.5


# Deviations of a line from its mean at which the question of its length clips it. Measured.
FAR_FIT = 4.0


def known_mean(
    session: "Session | SessionPart",
    whitened: "Whitened",
    maps: "RecordMap",
    released: "Location",
    deviation: float,
    pool: "Pool",
    equation: "ScoreEquation",
    rules: "Rules",
    link: StepLink,
) -> KnownMean:
    """The evidence of other answers than the steps about the mean of a fit, and by how much steps
    miss it.

    One answer is the mean of the target, in which nothing is clipped. If clips are tight, another
    one is the mean of the residuals at a wider clip, and the bias of that clip counts as one more
    error. Both are weighted by their precisions.

    The clip of the last step may have moved the mean of the fit. The bound on this bias is what
    `skewness_bias` says, or the bias of a tail like the inverse cube if that is larger. It is no
    more than the bias of residuals near the limit that are all on one side of it, and as far beyond
    it as targets can be.

    All of these are differences of linear parts. If the link bends, the mean of the linear part
    does not tell the mean of the target, and only residuals do.

    Parameters
    ----------
    released : Location
        Mean of the target.
    deviation : float
        Deviation of the target.
    equation : ScoreEquation
        The last one.

    Returns
    -------
    KnownMean
    """
    constant = lapack.dtrtrs(whitened.W, maps.row_map.constant, trans=1)[0]  # W is upper
    start = link.linear_part(released.mean)
    b = pool.b
    slope = released.part * link.steepest / link.far_length * link.slope(start, released.mean)
    gram = pool.slope / slope
    level = max(constant @ gram @ constant, 0.1)  # mean of w^2
    moved = weights_move_mean(level, float(b @ gram @ b))
    value = (constant @ gram @ b) / level
    precision = 0.0
    # The deviation of residuals which no clip made small. Clipped at 1.25 of their own deviations,
    # the residuals of a rare target have a third of their deviation. Two deviations of the noise
    # of the spread are no part of it: of a target that varies little they would be all of it.
    noise = NORMAL / (rules.effective_records * sqrt(rules.spread)) if rules.spread else 0.0
    explained = 0.0
    if link.linear:
        precision = 1.0 / (released.scale**2 + pool.variance / equation.n + moved)
        explained = float(b @ pool.slope @ b)
    deviation = sqrt(max(pool.variance, deviation**2 - 4.0 * noise**2 - explained))
    unit = 1.0 if link.linear else slope / released.part
    counts: tuple[float, ...] = ()
    if rules.mean:
        clip = mean_clip(2.0 / (rules.effective_records * sqrt(rules.mean)))
        limit = min(link.farthest, clip * deviation)
        fields = maps.row_map, maps.target_map, start, whitened.W.T @ b, limit, link
        if link.linear:
            query = ResidualMeanQuery(*fields)
        else:
            # The fit has the mean exp(start + value - square / 2), since the gram weighs rows by
            # their means.
            away = b - value * constant
            square = max(away @ gram @ away, 0.0) / level
            fitted: Any = link.mean(start + value - square / 2.0)
            far: Any = min(
                2.0 * clip * fitted * sqrt(expm1(min(max(square, 0.05), 4.0))), link.farthest
            )
            query = SpreadOfCountsQuery(*fields, middle=fitted, unit=far)
        answer = session.sum(query, rules.mean)
        residual = limit * answer.value[0] / answer.n / released.part
        noise = limit * answer.noise.scale / answer.n / released.part
        excess = -residual
        if not link.linear:
            parts = answer.mean[1:] / [SPREAD_WEIGHT, COUNT_WEIGHT, SPREAD_WEIGHT] / released.part
            counts = limit, far, *parts, noise / limit / SPREAD_WEIGHT
            fitted = max(fitted, noise)  # neither mean is taken to be below this noise
            mean = max(fitted + residual, noise)
            excess = link.linear_part(fitted) - link.linear_part(mean)
            unit = link.steepest / link.far_length * link.slope(link.linear_part(mean), mean)
        error = noise**2 + (deviation * skewness_bias(clip)) ** 2
        if session.trust.can.reports:  # these are residuals of other users
            error += deviation**2 / answer.n
        error /= unit**2
        value = (value * precision + excess / error) / (precision + 1.0 / error)
        precision += 1.0 / error
    clip = equation.limit / deviation
    counted = max(equation.nearly_cut, 0.0)
    counted += 2.0 * equation.cut_scale
    skew = deviation * max(skewness_bias(clip), CUBE * clip * counted)
    skew = min(skew, max(link.farthest - equation.limit, 0.0) * counted)
    skew *= (1.0 + equation.fall) / unit
    if not link.linear:
        skew = min(skew, MOST_SKEW)
    return KnownMean(b, constant, gram, value, 1.0 / precision, skew, slope, counts)


def known_length(
    session: "Session | SessionPart",
    maps: "RecordMap",
    whitened: "Whitened",
    location: float,
    b: np.ndarray,
    deviation: float,
    pool: "Pool",
    equation: "ScoreEquation",
    rules: "Rules",
    constant: np.ndarray,
    moved: float,
) -> KnownLength:
    """By how much a line is too short, by the residuals at a wide clip and without weights.

    Let f be the fit less its mean and g = clip(f / u), for a u of `FAR_FIT` deviations of f over
    rows of one weight. Then
    d = mean(c g) / (u mean(g^2)), with residuals c, is what f is to be multiplied by for the
    residuals not to go along with g. This is what least squares says of the length where g is
    seldom clipped. The variance v of d is that of privacy noise in both means, and of sampling.

    A priori d is N(-h min(2 h, 1 / 2), t^2), and t^2 is a fourth of h^2 + (square by which clips
    moved the mean) / P, for the mean square P = f'Df of the fit over rows as they are weighed.
    Where clips moved the mean of the fit, they may have moved rows at a deviation from the mean by
    half as much more or less. And h = 1 - P / (W u^2 mean(g^2)), less one deviation of noise, for
    the mean weight W of all rows, is the part of the mean square of f that weights hide beyond
    those of usual rows: if rows far away do not go along with f at all, d is -h, and 0 if they go
    along. The more is hidden, the likelier they do not. If there is neither, the length is left
    alone.

    Parameters
    ----------
    b : ndarray of shape (p,)
        The fit; it may differ from that of the pool, which knows the answers of steps alone.
    deviation : float
        Deviation of the target.
    equation : ScoreEquation
        The last one.
    constant : ndarray of shape (p,)
        The vector v with psi'v = 1 for every record.
    moved : float
        Square by which clips moved the mean of the fit, less its noise.

    Returns
    -------
    KnownLength
    """
    gram = pool.slope / equation.uncut
    level = max(constant @ gram @ constant, 0.1)  # mean of w^2
    middle = (constant @ gram @ b) / level
    f = b - middle * constant
    square = max(f @ gram @ f, 1e-300)
    clip = mean_clip(2.0 / (rules.effective_records * sqrt(rules.stretch)))
    beyond = deviation**2 - (b @ pool.slope @ b)
    limit = min(IDENTITY.farthest, clip * sqrt(max(pool.variance, beyond)))
    unit = FAR_FIT * sqrt(square / level)
    query = StretchQuery(
        maps.row_map,
        maps.target_map,
        location,
        whitened.W.T @ b,
        limit,
        middle=middle,
        unit=unit,
    )
    answer = session.sum(query, rules.stretch)
    product, spread, noise = query.read(answer)
    spread_noise = noise / STRETCH_WEIGHT
    spread = max(spread, spread_noise, 1e-12)
    value = limit * product / (unit * spread)
    variance = (limit * noise / unit) ** 2 + pool.variance / answer.n * spread / unit**2
    variance = (variance + (value * spread_noise) ** 2) / spread**2
    hidden = max(1.0 - (FAR_FIT**-2.0 + spread_noise) / spread, 0.0)
    prior = (hidden**2 + moved / square) / 4.0
    expected = -min(2.0 * hidden, 0.5) * hidden
    return KnownLength(b, f, gram @ f / square, value, variance, prior, expected)
