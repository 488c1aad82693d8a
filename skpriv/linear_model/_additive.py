"""Private additive regression: a sum of curves of one feature each, with bands."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import ceil, inf, nan, sqrt
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from scipy import linalg, stats
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, StrOptions, names_in
from .._estimation._loop._start import Start
from .._estimation._intervals import inside_bounds
from .._estimation._levels import check_level, two_sided_quantile
from .._estimation._loop._steps import effective_records_of
from .._estimation._public_maps import PublicRows, RecordMap, TargetMap
from .._estimation._reports import effective_reports
from .._linalg import RELATIVE_ZERO, lengths_of, row_products
from .._parameters import ArrayLike, Channel, of_numbers, parameters
from .._stored import frozen_object, stored
from ..records import floats
from ._by_steps import FitsBySteps
from ._opening import best_reports, column_of, public_bounds, public_ranges, public_rows
from ._prediction_intervals import PredictionIntervals
import itertools

if TYPE_CHECKING:
    from ..records import Rows
    from .._estimation._intervals import ConfidenceInterval
    from .._contracts import Array, Scalar
    from .._estimation._links import StepLink
    from .._estimation._loop._fit import LoopFit
    from .._estimation._released import Released
    from ..privacy import Session, SessionPart

# Least resolution N / p^1.5 (see `Rules`) that the number of knots leaves to p coordinates. With 5
# lines are worse at epsilon .5 than at .3, and with 20 curves stay lines for long.
MIN_RESOLUTION_FOR_KNOTS = 10.0


def automatic_knots(n: int, effective_records: float, n_curved: int, n_other: int) -> int:
    """Public number of knots of each feature with a curve.

    The squared bias falls with the fourth power of the number of cells, and the sampling error
    grows with it: the best number grows as n^(1/5). Privacy noise allows as many as leave the Gram
    matrix resolved.

    Parameters
    ----------
    n : int
        Number of records.
    effective_records : float
        Number of records over the noise of a sum of sensitivity 1, infinite without privacy.
    n_curved : int
        Features with curves.
    n_other : int
        Further coordinates: of lines, and of features whose knots are given.
    """
    largest = 1 + ceil(n**0.2)
    for k in range(largest, 2, -1):
        size = 1 + n_curved * (k - 1) + n_other
        if effective_records >= MIN_RESOLUTION_FOR_KNOTS * size**1.5:
            return k
    return 2


def check_knots(
    given: Any,
    columns: Callable[..., Any],
    low: np.ndarray,
    high: np.ndarray,
) -> dict[int, np.ndarray]:
    """Return the knots that the user gave: a mapping from column to an array or a number.

    Parameters
    ----------
    given : "auto", int or mapping
    columns : callable
        A function from a name or a number to the number of a column.
    low, high : ndarray of shape (n_features,)
        Public ranges.

    Returns
    -------
    dict of int to ndarray
    """
    if isinstance(given, str):
        return {}
    if isinstance(given, Integral):
        given = dict.fromkeys(range(len(low)), given)
    found = {}
    for key, value in given.items():
        column = columns(key)
        if isinstance(value, Integral):
            if value < 2:
                raise ValueError(f"knots of {key!r} are {value}: at least 2 are needed.")
            found[column] = np.linspace(low[column], high[column], int(value))
            continue
        knots = np.unique(np.asarray(value, float))
        if not np.isfinite(knots).all() or len(knots) < 2:
            raise ValueError(f"knots of {key!r} must be at least two different finite numbers.")
        inner = knots[(knots > low[column]) & (knots < high[column])]
        found[column] = np.concatenate([[low[column]], inner, [high[column]]])
    return found


def make_map(
    low: np.ndarray,
    high: np.ndarray,
    given: dict[int, np.ndarray],
    lines: set[int],
    n: int,
    effective_records: float,
) -> "AdditiveMap":
    """The `AdditiveMap` of a model.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
    given : dict of int to ndarray
        Knots that the user gave.
    lines : set of int
        Features without a curve.
    n, effective_records
        See :func:`automatic_knots`.
    """
    free = [column not in given and column not in lines for column in range(len(low))]
    fixed = sum(len(knots) - 1 for knots in given.values())
    fixed += sum(column not in given for column in lines)
    size = automatic_knots(n, effective_records, sum(free), fixed) if any(free) else 2
    knots = [
        given.get(column, np.linspace(low[column], high[column], size if free[column] else 2))
        for column in range(len(low))
    ]
    return AdditiveMap(tuple(knots), tuple(free))


# Standard deviations of the bends of lines and of smooth curves, which are thought equally likely;
# that of a slope is 1. More scales gain nothing (docs/evidence/additive.md).
ROUGHNESS = 0.0, 0.25


@stored
@frozen_object
class AdditiveMap(PublicRows):
    """Row map of an additive model, with ||phi|| <= 1.

    The hats of each of d features are nonnegative and add up to one, so their norm is at most 1,
    and that of all of them over sqrt(d) too. All lie in one subspace, since the features share the
    constant: phi are the coordinates in an orthonormal basis of it, which leaves norms as they are.
    It stands in place of a `RowMap`.

    Parameters
    ----------
    knots : tuple of ndarray
        Increasing public knots of each column of X; the first and the last are its range. Two
        knots make a line.
    automatic : tuple of bool
        Whether the number of knots of a column followed from n and the budget, and not from what
        is known of its curve.
    """

    knots: tuple[Any, ...]
    automatic: tuple[Any, ...]
    bounded = True

    @cached_property
    def blocks(self) -> list[slice]:
        """Slice of the hats of each column."""
        stops = np.cumsum([0] + [len(knots) for knots in self.knots]).tolist()
        return list(itertools.starmap(slice, itertools.pairwise(stops)))

    @property
    def n_inputs(self) -> int:
        """Columns of X."""
        return len(self.knots)

    @cached_property
    def basis(self) -> "Array":
        """Orthonormal basis of the span of all rows, shape (n_hats, p)."""
        n_hats = self.blocks[-1].stop
        rows = np.zeros((1 + n_hats, n_hats))  # hats at the first knots, and each column elsewhere
        rows[:, [block.start for block in self.blocks]] = 1.0
        for block in self.blocks:
            rows[1:][block, block] = np.eye(block.stop - block.start)
        _, singular, right = linalg.svd(rows, full_matrices=False)
        return right[singular > RELATIVE_ZERO * singular[0]].T

    @property
    def size(self) -> Any:
        """Length p of phi."""
        return self.basis.shape[1]

    n_features = size  # of what `clipped` returns

    @property
    def low(self) -> "Array":
        """Lower ends of the ranges, shape (n_inputs,)."""
        return self._ends[0]

    def outside(self, X: Any) -> "Array":
        """Whether each value is outside of its range, shape (n_rows, n_inputs). NaN is not."""
        return (X < self.low) | (X > self._ends[1])

    def missed(
        self, columns: list[int] | range, points: np.ndarray, heights: np.ndarray
    ) -> "Array":
        """The error of lines between knots at points, for a sum of curves that bend as the fitted
        ones.

        A line between knots that are h apart misses a curve f by at most h^2 |f''| / 8, and a
        second difference of heights is h^2 f''. The larger of those at both ends of a cell counts.
        Errors of several curves seldom have one sign, so that their squares add up.

        The error is infinite where the public rule left too few knots to show it. Two knots have no
        second difference, and three do not see a curve that bends one way on the left and the other
        way on the right. Users who give knots say that lines between them will do.

        Parameters
        ----------
        columns : sequence of int
        points : ndarray of shape (n_points, n_columns)
            Values of these columns.
        heights : ndarray of shape (n_hats,)

        Returns
        -------
        ndarray of shape (n_points,)
        """
        errors = np.full(points.T.shape, inf)
        for error, column, x in zip(errors, columns, points.T, strict=True):
            knots = self.knots[column]
            if len(knots) > 3 or not self.automatic[column]:
                widths = np.diff(knots) / (knots[-1] - knots[0])
                slopes = np.diff(heights[self.blocks[column]]) / widths
                # Slopes of neighbouring cells differ by f'' times the mean of both widths
                bend = 2.0 * np.abs(np.diff(slopes)) / (widths[1:] + widths[:-1])
                bend = np.pad(bend, 1)  # at the ends nothing is known
                cell = np.searchsorted(knots[1:-1], x, side="right")
                error[:] = np.maximum(bend[cell], bend[cell + 1]) * widths[cell] ** 2 / 8.0
        return lengths_of(errors.T)

    @property
    def constant(self) -> np.ndarray:
        """The vector c with phi'c = 1 for every row."""
        return self.theta_of(np.full(len(self.basis), 1.0 / self.n_inputs))

    @cached_property
    def _ends(self) -> np.ndarray:
        """First and last knots, and the numbers of the last."""
        return np.array([(knots[0], knots[-1], len(knots) - 1) for knots in self.knots]).T

    @cached_property
    def _even(self) -> bool:
        return all(np.ptp(np.diff(knots)) <= 1e-12 * (knots[1] - knots[0]) for knots in self.knots)

    def values(self, X: np.ndarray) -> Any:
        """Values of all hats, a CSR matrix of shape (n_rows, n_hats); total.

        The hat of a knot is 1 there, 0 at all others of its column, and a line between two of them.
        Values outside of the knots are clipped; NaN becomes the middle.
        """
        low, high, last = self._ends
        x = X.clip(low, high)
        x = np.where(np.isnan(x), low / 2.0 + high / 2.0, x)
        if self._even:
            place = (x - low) / (high - low) * last  # 1.5 is halfway from the second to the third
        else:
            numbers = map(np.arange, last + 1.0)
            place = np.stack([*map(np.interp, x.T, self.knots, numbers)], axis=1)
        place = place.clip(0.0, last)  # no matter how near to each other knots are
        cell = np.minimum(np.floor(place), last - 1.0)
        part = place - cell
        first = (cell + [block.start for block in self.blocks]).astype(np.int32)
        columns = np.stack([first, first + 1], axis=2).ravel()
        values = np.stack([1.0 - part, part], axis=2).ravel()
        ends = np.arange(0, len(values) + 1, 2 * self.n_inputs, dtype=np.int32)
        return csr_matrix((values, columns, ends), shape=(len(X), len(self.basis)))

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Return phi of a chunk of rows, of norm at most 1 up to rounding; total."""
        return self.coordinates(self.values(X))

    def turn(self, W: np.ndarray) -> "Array":
        """Return what `turned` takes: two products of a row would take longer than one."""
        return self.basis @ W.T / sqrt(self.n_inputs)

    def turned(self, X: np.ndarray, turn: np.ndarray) -> "Array":
        """Return W phi of a chunk of rows, of the `turn` of W."""
        return self.values(X) @ turn

    def along(self, X: np.ndarray, theta: np.ndarray) -> "Array":
        """Return phi'theta of a chunk of rows."""
        return self.values(X) @ self.heights(theta)

    features = rows  # curves are constant outside of their ranges
    clipped = rows

    def coordinates(self, values: Any) -> "Array":
        """Return phi of values of hats."""
        return values @ self.basis / sqrt(self.n_inputs)

    def theta_of(self, heights: np.ndarray) -> "Array":
        """Return the parameter of phi of the function with these coefficients of the hats."""
        return self.basis.T @ heights * sqrt(self.n_inputs)

    def heights(self, theta: np.ndarray) -> "Array":
        """Coefficients of the hats for a parameter of phi: one choice of many, see `basis`."""
        return self.basis @ theta / sqrt(self.n_inputs)

    def theta(self, coef: np.ndarray, intercept: float) -> np.ndarray:
        """Return the parameter of phi for phi'coef + intercept."""
        return np.asarray(coef) + intercept * self.constant

    def line(self, coef: Any, intercept: Any) -> Any:
        """Return the parameter of phi for the function x'coef + intercept of the columns of X."""
        heights = [slope * knots for slope, knots in zip(coef, self.knots, strict=True)]
        return self.theta_of(np.concatenate(heights) + intercept / self.n_inputs)

    def priors(self) -> Sequence[np.ndarray]:
        """Shapes L of priors theta = tau L c: lines, and smooth curves.

        The level is no wider than a slope. A wide one would be most of the variance of a prior,
        which has no more than the target, and slopes and bends would be shrunk to nothing.
        """
        level = np.full((len(self.basis), 1), 1.0 / self.n_inputs)
        curves = [[smooth(knots, size) for knots in self.knots] for size in ROUGHNESS]
        return [self.theta_of(np.hstack([level, linalg.block_diag(*blocks)])) for blocks in curves]


def smooth(knots: np.ndarray, roughness: float) -> np.ndarray:
    """Prior heights at knots: a line, and sums of a random walk, which bend it by so much."""
    t = (knots - knots[0]) / (knots[-1] - knots[0]) * 2.0 - 1.0  # the middle favours no end
    steps = np.diff(t)
    bends = np.maximum(t[:, None] - t[None, 1:-1], 0.0) * np.sqrt((steps[1:] + steps[:-1]) / 2.0)
    # The part that a line explains is in the line already
    plane = np.column_stack([np.ones(len(t)), t])
    bends -= plane @ np.linalg.lstsq(plane, bends, rcond=None)[0]
    bends /= sqrt(max((bends**2).sum() / len(t), 1e-300))
    return np.hstack([t[:, None], roughness * bends])


class Curve(NamedTuple):
    """The effect of one feature, with bands, in the units of y.

    Attributes
    ----------
    grid : ndarray of shape (n_points,) or (n_points, n_features)
        Values of the feature, or of each of several.
    effect : ndarray of shape (n_points,)
        What the feature adds to the prediction, zero on average over the released distribution of
        the feature.
    low, high : ndarray of shape (n_points,)
        Interval at each point.
    band_low, band_high : ndarray of shape (n_points,)
        Simultaneous band: it covers the whole curve at the level.
    knots : ndarray
        Public knots; empty for several features.
    name : str
        Name of the feature.
    """

    grid: np.ndarray
    effect: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band_low: np.ndarray
    band_high: np.ndarray
    knots: np.ndarray
    name: str


def average_hats(fit: Any, rows: AdditiveMap) -> np.ndarray:
    """Released averages of the hats, nonnegative and adding up to one for each feature.

    The constant v of the whitened rows has e'v = w, so that the released mean of ee' times v is the
    mean of w e, that is the mean row where weights are one.
    """
    mean = np.full(len(rows.basis), nan)
    if fit.equations:
        constant = np.linalg.solve(fit.W.T, rows.constant)
        mean = rows.heights(np.linalg.solve(fit.W, fit.gram @ constant)) * rows.n_inputs
    for block in rows.blocks:
        part = np.maximum(np.nan_to_num(mean[block]), 0.0)
        if not part.sum() > 0.0:
            part = np.ones(len(part))
        mean[block] = part / part.sum()
    return mean


def effect_values(
    columns: list[int], points: np.ndarray, rows: AdditiveMap, average: np.ndarray
) -> np.ndarray:
    """Values of the hats of some features at points, less their average, (n_points, n_hats)."""
    found = np.zeros((len(points), len(rows.basis)))
    for column, x in zip(columns, points.T, strict=True):
        block = rows.blocks[column]
        alone = AdditiveMap((rows.knots[column],), (False,))
        found[:, block] += alone.values(x[:, None]).toarray() - average[block]
    return found


def centring_variance(
    fit: "LoopFit", rows: AdditiveMap, block: slice, average: np.ndarray, heights: np.ndarray
) -> "Scalar":
    """Variance of the average of a curve, by the noise of the released averages and by sampling.

    The averages are of ee'v for the constant v: with GOE noise of scale s an error u'Nv has
    variance s^2 (|u|^2 |v|^2 + (u'v)^2) / 2.
    """
    u = np.linalg.solve(fit.W.T, rows.basis[block].T @ heights[block] * np.sqrt(rows.n_inputs))
    v = np.linalg.solve(fit.W.T, rows.constant)
    noise = fit.last.slope_scale**2 * (u @ u * (v @ v) + (u @ v) ** 2) / 2.0
    return noise + (average[block] @ heights[block] ** 2) / fit.last.n


def simultaneous_factor(covariance: np.ndarray, confidence_level: float) -> float:
    """Quantile of the largest absolute value of normal variables over their deviations.

    By quasi-random normal vectors, which are the same at every call; never above what a chi-square
    gives for any number of points.

    Parameters
    ----------
    covariance : ndarray of shape (n_points, n_points)
    confidence_level : float in (0, 1)
    """
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    varying = deviation > 1e-9 * max(deviation.max(initial=0.0), 1e-300)
    if not varying.any():
        return 0.0
    covariance = covariance[np.ix_(varying, varying)]
    deviation = deviation[varying]
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    large = values > 1e-9 * values[-1]
    root = vectors[:, large] * np.sqrt(values[large])
    points = stats.qmc.Sobol(int(large.sum()), scramble=False, bits=30)
    points.fast_forward(1)  # the first is the origin
    # 2^12 quasi-random normal vectors
    normal = stats.norm.ppf(points.random(2**12 - 1))
    largest = np.abs(normal @ root.T).max(axis=1)
    limit = np.sqrt(stats.chi2.ppf(confidence_level, int(large.sum())))
    return float(min(np.quantile(largest, confidence_level), limit))


PLANNED_POINTS = 21  # of a curve, at which a plan tells its errors
USUAL_LEVEL = 0.95  # of the intervals of a plan
REPORTS_FACTOR = 0.5  # one answer has no steps that mend it: knots need twice the resolution
TYPICAL_KNOTS = 5  # knots of a feature that are assumed where the channel is chosen before them


@stored
@parameters
class AdditiveRegressor(FitsBySteps, PredictionIntervals):
    """Private additive regression: a sum of curves of one feature each, with bands.

    Every feature with a curve has public knots, and its curve is a line between two of them. The
    heights at the knots are fitted by the equations of :class:`LinearRegression`; how smooth curves
    are is decided by the evidence of the released answers, at no cost. There is no `fit_intercept`:
    the heights of a curve can all move up together, so that no additive fit is without a constant.

    Parameters
    ----------
    delta : float in [0, 1), default=1e-6
        Privacy parameter: choose it well below one over the number of records. 0 needs the
        codebook channel.
    bounds_X : mapping, array-like of shape (n_features, 2) or (low, high), default=None
        Public range of every feature, in its own units: a mapping from feature name, for a data
        frame; a pair for each column; or one pair for all. Values outside are clipped. Ranges come
        from what the features mean, never from the rows. Required.
    knots : "auto", int or mapping, default="auto"
        Public knots of every feature with a curve, ends of its range included. "auto" spreads them
        evenly, as many as the numbers of records and features and the budget allow. A number is
        one for all; a mapping from feature to a number or to an array is for some, and what it
        does not name is "auto".
    linear_features : list of str or int, default=None
        Features that stay lines, such as those with two values: a curve would be wasted on them.
    calibration_size : float in (0, 1) or None, default=None
        Part of the rows that is held out of the fit, at random, for :meth:`prediction_interval`;
        both parts have the whole budget. None holds out nothing.
    clip : {"auto", "wide"}, default="auto"
        "wide" clips residuals at 6 of their deviations at least, as in `LinearRegression`: for
        curves that are published of skewed targets.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: vectors with Gaussian noise, or one index
        of a public codebook each, which is pure (``delta=0``) and safe to release. "auto" takes
        the codebook, which has less noise, but in the local model under an accountant that adds up
        Gaussian noise, and in the shuffle model with neither very few nor very many users, where
        Gaussian noise resolves as many knots: then its steps are worth more
        (docs/evidence/codebook.md).

    Attributes
    ----------
    knots_ : list of ndarray
        Public knots of every feature; two of a line.
    heights_ : list of ndarray
        Effect of every feature at its knots, in the units of y.
    intercept_ : float
        Prediction where all effects are zero.
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: the Gaussian answers of :class:`LinearRegression`, for rows
    of hats, whose norm is at most 1; their costs compose exactly as Gaussian DP (Dong, Roth and Su
    2022). With the codebook channel users send one index each, whose price rests on one exact
    integer draw (delta = 0, docs/trust.md). Knots, the number of records and all parameters are
    public. Smoothness and bands are computed from what was released.

    Bands and what they were measured on are in ``docs/additive.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import AdditiveRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X[:, 0] ** 2 + 0.5 * X[:, 1] + rng.normal(scale=0.3, size=20_000)
    >>> est = AdditiveRegressor(bounds_X=(-1, 1), bounds_y=(-2, 3), random_state=0).fit(X, y)
    >>> bool(abs(est.predict(X) - X[:, 0] ** 2 - 0.5 * X[:, 1]).mean() < 0.1)
    True
    >>> curve = est.curve(0, np.linspace(-1, 1, 21))
    >>> bool((curve.band_low <= curve.low).all())
    True
    """

    knots: Annotated[
        Any, StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), Mapping
    ] = "auto"
    linear_features: ArrayLike | None = None
    clip: Literal["auto", "wide"] = "auto"
    channel: Channel = "auto"

    _spec = FitsBySteps._spec._replace(variants=({"knots": 3},))
    interval_estimand = "sum of curves that bend as the fitted ones"
    interval_claims = ("certified", "asymptotic")
    _deviations = (0.3, 3.0)

    def _fit(self, X: Any, y: Any, groups: Any, weights: dict[Any, Any]) -> None:
        records = public_rows(self, X, y)
        self.bounds_y_ = public_bounds(self)
        # Until the session is open, the map is that of one record, with the fewest knots
        maps = RecordMap(self._hats(1, inf), TargetMap(self.bounds_y_, True))
        self._fit_steps(records, maps, groups, weights, channel=self._channel(records))

    def _row_map_of(
        self, session: "Session | SessionPart", row_map: PublicRows, channel: str
    ) -> PublicRows:
        """The hats on the knots that this many records can fill."""
        if session.trust.exact:
            effective: Any = inf
        elif channel == "codebook":
            effective = REPORTS_FACTOR * effective_reports(
                session, TYPICAL_KNOTS * self.n_features_in_
            )
        else:  # records over the noise of a sum of sensitivity 1
            effective = effective_records_of(session)
        return self._hats(session.n, effective)

    def _release(
        self,
        session: "Session | SessionPart",
        maps: RecordMap,
        link: "StepLink",
        channel: str,
        start: Start | None,
        usual: "tuple[Array, Array] | None",
    ) -> "Released":
        """All that is released; a start is turned into one of these knots."""
        row_map = self._record_map.row_map
        if start:  # the heights of its curves at these knots
            begin = start.maps.row_map
            curves = [begin.heights(start.theta)[block] for block in begin.blocks]
            heights = [*map(np.interp, row_map.knots, begin.knots, curves)]
            start = replace(start, theta=row_map.theta_of(np.concatenate(heights)), alike=False)
        return super()._release(session, maps, link, channel, start, usual)

    def _start(
        self, records: "Rows", maps: RecordMap, link: "StepLink", channel: str, plain: bool
    ) -> Start:
        """The start, which may have other knots where they are chosen; nothing is charged yet.

        The number of records plays no part: how many rows persons have is private.
        """
        given = self._given_start()
        rows = maps.row_map
        begin = given.maps.row_map if isinstance(given, Start) else None
        if isinstance(begin, AdditiveMap) and len(begin.knots) == len(rows.knots):
            ends = [[0, -1] if free else slice(None) for free in rows.automatic]
            knots = zip(begin.knots, rows.knots, ends, strict=True)
            rows = begin if all(np.array_equal(a[at], b[at]) for a, b, at in knots) else rows
        return super()._start(records, replace(maps, row_map=rows), link, channel, plain)

    def _hats(self, n: int, effective_records: float) -> AdditiveMap:
        """The `AdditiveMap` of so many records, by public numbers alone."""
        low, high = public_ranges(self, self.n_features_in_)
        given = check_knots(self.knots, partial(column_of, self), low, high)
        listed = () if self.linear_features is None else self.linear_features
        lines = {column_of(self, feature) for feature in listed}
        for column in lines:
            given.pop(column, None)
        return make_map(low, high, given, lines, n, effective_records)

    def _channel(self, records: "Rows") -> str:
        """The reports of users, by public numbers."""

        def size_of(effective: float) -> Any:
            return self._hats(records.n, REPORTS_FACTOR * effective).size

        return best_reports(self, TYPICAL_KNOTS * records.n_features, records, size_of)

    def _read(self) -> None:
        """Heights of all curves, in the units of y: post-processing of what was released."""
        fit = self._released
        rows = self._record_map.row_map
        target = self._record_map.target_map
        heights = rows.heights(fit.theta)
        self._average = average_hats(fit, rows)
        means = [float(self._average[block] @ heights[block]) for block in rows.blocks]
        centred = zip(rows.blocks, means, strict=True)
        self.knots_ = list(rows.knots)
        self.heights_ = [target.radius * (heights[block] - mean) for block, mean in centred]
        self.intercept_ = target.centre + target.radius * sum(means, fit.location)

    def _function(self, X: np.ndarray) -> "Array":
        heights = np.concatenate(self.heights_)
        return row_products(self._record_map.row_map.values(X), heights) + self.intercept_

    def _interval(
        self, X: np.ndarray, confidence_level: float, method: str
    ) -> "ConfidenceInterval":
        """The interval at checked rows, to which what lines between knots miss is added."""
        maps = self._record_map
        heights = np.concatenate(self.heights_) / maps.radius
        centre, half = self._released.interval(maps.rows(X), confidence_level, method)
        half = half + maps.row_map.missed(range(X.shape[1]), X, heights)
        return inside_bounds(maps, centre, half, self._predicted(X))

    def _planned_errors(self, matrix: np.ndarray | None) -> np.ndarray:
        """Standard errors of the effect of each feature, root mean square over its range."""
        found = []
        for column, knots in enumerate(self.knots_):
            points = np.linspace(knots[0], knots[-1], PLANNED_POINTS)[:, None]
            _, half, _ = self._bands([column], points, USUAL_LEVEL)
            found.append(sqrt(np.mean(np.square(half))) / two_sided_quantile(USUAL_LEVEL))
        return np.where(np.isfinite(found), found, nan)

    @of_numbers
    def curve(self, feature: Any, grid: Any = None, *, confidence_level: float = 0.95) -> Curve:
        """The effect of one feature on the prediction, with bands; or of several together.

        Parameters
        ----------
        feature : str, int or list of them
            A list is for features that stand for one thing, such as the columns of a category:
            their effects are added up, and the band is for all points at once.
        grid : array-like of shape (n_points,) or (n_points, n_features), default=None
            Values of the feature; None is 101 of its range. For a list, values of each.
        confidence_level : float in (0, 1), default=0.95
            Confidence level of the interval at each point, and of the simultaneous band of the
            whole curve.

        Returns
        -------
        Curve
            Effects are zero on average over the distribution of the feature that was released.
            Bands are asymptotic, for sampling and privacy together, and add what lines between the
            knots can miss of a curve that bends as the fitted one does. They are infinite where the
            curve cannot be told from noise. They are also infinite where the public rule leaves
            fewer than four knots, which do not show how the curve bends. If you give knots, or name
            a linear feature, you say that lines between them suffice.
        """
        check_is_fitted(self)
        check_level(confidence_level)
        several = isinstance(feature, list | tuple)
        columns = [column_of(self, one) for one in (feature if several else [feature])]
        knots = np.empty(0) if several else self.knots_[columns[0]]
        if grid is None and not several:
            grid = np.linspace(knots[0], knots[-1], 101)
        grid = floats(grid)
        points = grid if several else grid[..., None]
        if points.ndim != 2 or points.shape[1] != len(columns) or not len(points):
            raise ValueError("grid must be a list of values of the feature, or a row for several.")
        if not np.isfinite(points).all():
            raise ValueError("grid must be finite values of the feature.")
        hats = effect_values(columns, points, self._record_map.row_map, self._average)
        effect = hats @ np.concatenate(self.heights_)
        centre, *halves = self._bands(columns, points, confidence_level)
        low, band_low = (np.minimum(centre - half, effect) for half in halves)
        high, band_high = (np.maximum(centre + half, effect) for half in halves)
        names = names_in(self)
        name = " + ".join(f"x{c}" if names is None else str(names[c]) for c in columns)
        return Curve(grid, effect, low, high, band_low, band_high, knots, name)

    def _bands(
        self, columns: list[int], grid: np.ndarray, confidence_level: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Centres and half widths, pointwise and simultaneous, of a sum of effects at points.

        Infinite where the fit does not tell the point from noise, or so few knots the shape. The
        band of one feature is for all of its range, that of several for the points.
        """
        fit = self._released
        rows = self._record_map.row_map
        radius = self._record_map.radius
        average = self._average
        if not fit.equations:
            unresolved = np.full(len(grid), inf)
            return np.zeros(len(grid)), unresolved, unresolved
        points = grid
        if len(columns) == 1:
            # Four points in each cell make a band simultaneous
            knots = itertools.pairwise(rows.knots[columns[0]])
            cells = [np.linspace(a, b, 5) for a, b in knots]
            points = np.concatenate([grid, np.unique(np.concatenate(cells))[:, None]])
        law = fit.law()
        rows_at = fit.points(rows.coordinates(effect_values(columns, points, rows, average)))
        covariance = sum(law.covariances(rows_at))
        heights = np.concatenate(self.heights_) / radius
        missed = rows.missed(columns, grid, heights)
        for column in columns:
            covariance += centring_variance(fit, rows, rows.blocks[column], average, heights)
        resolved = law.resolved(rows_at)
        n = len(grid)
        factor = simultaneous_factor(covariance[np.ix_(resolved, resolved)], confidence_level)
        deviation = np.sqrt(np.maximum(np.diagonal(covariance)[:n], 0.0))
        halves = [
            np.where(resolved[:n], radius * (scale * deviation + missed), inf)
            for scale in (two_sided_quantile(confidence_level), factor)
        ]
        return radius * law.value(rows_at)[:n], *halves
