"""Prediction intervals for a new target, whatever its law: private split conformal prediction.

Some rows, chosen at random and without looking, are held out of the fit. Their scores, the
distances of their targets from the predictions, have a quantile that is found by noisy counts; the
arithmetic and its margins are in ``_estimation/_conformal.py``, the proofs in
``docs/mathematics/prediction_intervals.md``.

Each user who trusts nobody, with delta = 0, sends one bit about one threshold by randomised
response; the search is the same, and every count of it has users of its own.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import lru_cache, partial
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._estimation._conformal import (
    FALLBACK,
    SCORES,
    ResponseTarget,
    ShareTarget,
    best_depth,
    checked_levels,
    count_target,
    exact_rank,
    margin,
    score_grid,
    search_slots,
)
from .._estimation._intervals import ConfidenceInterval
from .._estimation._levels import check_level
from .._linalg import FLOAT_STEP, ROUNDED, unwarned
from .._parameters import ArrayLike, ConformityScore, Level, of_numbers, parameters
from .._stored import frozen, frozen_object, stored
from ..privacy import ROUNDING, Procedure, Query, ResponseNoise, split
from ..records import aloud
from ._estimator import PrivateRegressor
from ._opening import public_bounds
from ._predictions import rowwise

if TYPE_CHECKING:
    from ..privacy import Budget, NoiseSource, SessionPart
    from .._contracts import Array, Scalar


@lru_cache(maxsize=256)
def _target(law: ResponseNoise, depth: int, alpha: float) -> float:
    """The number T that shares of a search are compared with, by public numbers."""
    return ResponseTarget([law] * depth)(alpha)


@lru_cache(maxsize=256)
def _share_targets(blocks: tuple[Any, ...], alphas: tuple[float, ...]) -> tuple[float, ...]:
    """The same of the noisy shares of blocks of users, for each of several levels."""
    return tuple(map(ShareTarget(blocks), alphas))


SIDES = {"absolute": (0,), "signed": (-1, 1)}
OUTWARD = 4.0 * FLOAT_STEP  # relative: ends are moved by it, more than they are rounded


@frozen_object
class Score:
    """How far a target lies from the released function: below (-1), above (1) or both (0).

    Targets and predictions are clipped to the public range first, so that no score exceeds its
    width. A value that is not a number has an infinite score: it is never within a threshold.
    """

    function: Callable[..., Any]
    bounds: tuple[Any, ...]

    @property
    def top(self) -> "Scalar":
        """The largest score that there can be."""
        return self.bounds[1] - self.bounds[0]

    def __call__(self, X: np.ndarray, y: np.ndarray, side: int) -> np.ndarray:
        """Scores of a chunk of rows."""
        with unwarned():
            residual = np.clip(y, *self.bounds) - np.clip(self.function(X), *self.bounds)
        score = np.abs(residual) if side == 0 else side * residual
        return np.where(np.isnan(score), inf, score)


@frozen_object
class ScoresWithin(Query):
    """Numbers of records whose score is at most each of m thresholds.

    A record adds 0 or 1 to each number, so that replacing it moves each by at most 1 and their
    vector by at most sqrt(m) in l2. Attained: a record within all thresholds, and one beyond all.
    One row of a person is counted.

    Parameters
    ----------
    score : Score
    thresholds : tuple of (int, float)
        Side and value of each.
    """

    score: Score
    thresholds: tuple[Any, ...]
    name = "scores within"
    takes_sparse = True  # the function is linear in the rows
    one_row_each = True

    @property
    def shape(self) -> tuple[int]:
        """Number of thresholds."""
        return (len(self.thresholds),)

    @property
    def sensitivity(self) -> float:
        """Largest change, rounded up."""
        return sqrt(len(self.thresholds)) * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact numbers of a chunk of rows."""
        scores = {side: self.score(X, y, side) for side in {side for side, _ in self.thresholds}}
        return np.array([np.sum(scores[side] <= g, dtype=float) for side, g in self.thresholds])


@frozen_object
class ScoreReports(ScoresWithin):
    """The same for one threshold, from one random bit of each user.

    A user pays the price of the bit, epsilon, whatever the record is: see
    :class:`skpriv.privacy.ResponseNoise`.
    """

    # Probability of a true report, by which a shuffler amplifies
    likely = staticmethod(lambda epsilon: ResponseNoise(epsilon).truth)

    def bits(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Whether the score of each row of a chunk is within the threshold; never for NaN."""
        ((side, threshold),) = self.thresholds
        return np.asarray(self.score(X, y, side) <= threshold)

    def local_noise(self, budget: "Budget") -> ResponseNoise:
        """Law of one report; only epsilon counts."""
        return ResponseNoise(budget.epsilon)

    def _report(
        self, X: np.ndarray, y: np.ndarray, noise: ResponseNoise, source: "NoiseSource"
    ) -> np.ndarray:
        """Bit of the user of one row, 0 or 1."""
        return noise.sent(self.bits(X, y), source).astype(float)


@frozen_object
class ScoreQuantiles(Procedure):
    """Order statistics of the scores, for a fit without privacy: textbook split conformal.

    Each lies in [-top, top], where top is the width of the range, and replacing a record moves it
    by no more than 2 top: sensitivity 2 top sqrt(m). With noise it is of no use, and not asked.

    Parameters
    ----------
    score : Score
    ranks : tuple of (int, int)
        Side and rank, from 1 to the number of rows, of each.
    """

    score: Score
    ranks: tuple[Any, ...]
    name = "score quantiles"

    @property
    def sensitivity(self) -> float:
        """Largest change, rounded up."""
        return 2.0 * self.score.top * sqrt(len(self.ranks)) * ROUNDING

    def run(self, rows: Any) -> "Array":
        """The order statistics of all records."""
        rows = rows.one_each()
        found = {}
        for side in {side for side, _ in self.ranks}:
            found[side] = np.sort(np.concatenate([*rows.each(partial(self.score, side=side))]))
        ordered = [found[side][rank - 1] for side, rank in self.ranks]
        return np.clip(ordered, -self.score.top, self.score.top)


@stored
@frozen
class Calibration:
    """Released quantiles of scores: an interval is [f - below, f + above] within the range.

    Attributes
    ----------
    n : int
        Number of calibration rows (public).
    bounds : (float, float)
        The public range, to which targets are clipped.
    levels : tuple of float
        Increasing.
    below, above : tuple of float
        The quantile for each level; infinite where the range itself is the interval.
    """

    n: int
    bounds: tuple[Any, ...]
    levels: tuple[Any, ...]
    below: tuple[Any, ...]
    above: tuple[Any, ...]

    @classmethod
    def unresolved(
        cls, n: int, bounds: tuple[float, float], levels: Sequence[float]
    ) -> "Calibration":
        """Calibration whose intervals are the range."""
        return cls(n, bounds, tuple(levels), (inf,) * len(levels), (inf,) * len(levels))

    def quantiles(self, confidence_level: float, widest: str) -> tuple[float, float]:
        """The released quantiles that serve a level; infinite where none does."""
        for level, below, above in zip(self.levels, self.below, self.above, strict=True):
            if level >= confidence_level - ROUNDED:  # 0.9 and 1 - 0.1 are one level
                return below, above
        with aloud():
            warnings.warn(
                f"confidence_level={confidence_level} is above all prediction_levels, "
                f"{self.levels}, whose quantiles were released: {widest}. Fit with this level "
                "among prediction_levels.",
                stacklevel=5,
            )
        return inf, inf


def calibrate(
    session: "SessionPart",
    score: Any,
    levels: list[float],
    sides: tuple[int, ...],
    deviation: Sequence[float] | None,
    reported: bool,
) -> Calibration:
    """Search the quantiles of the scores of a session's rows.

    Parameters
    ----------
    session : Session
        Session of the calibration rows; its whole budget is spent.
    score : Score
    levels : sequence of float
        Increasing.
    sides : (0,) or (-1, 1)
        Two sides share the failure probability.
    deviation : (float, float) or None
        Released bounds on the deviation of the residuals, in the units of y.
    reported : bool
        Whether users answer by randomised response, one bit each.

    Returns
    -------
    Calibration
    """
    asked_for = tuple(levels)
    while levels:
        alphas = [(1.0 - level) / len(sides) for level in levels]
        if session.trust.exact:
            ranks = [min(exact_rank(session.n, alpha), session.n + 1) for alpha in alphas]
            targets: Any = [rank if rank <= session.n else inf for rank in ranks]
            depth = 0
        else:
            targets, depth = _targets(session, score, alphas, sides, reported)
        if np.isfinite(targets).all():
            break
        levels = levels[:-1]  # public: more rows or a larger budget are needed for it
    if not levels:
        return Calibration.unresolved(session.n, score.bounds, asked_for)
    if session.trust.exact:
        asked_ranks = tuple((side, int(rank)) for side in sides for rank in targets)
        found = session.release(ScoreQuantiles(score, asked_ranks), 1.0).value
    else:
        grid = score_grid(depth, score.top, deviation)
        found = _search(session, score, targets, sides, grid, depth, reported)
    found = np.where(found >= score.top, inf, found).reshape(len(sides), -1)
    unresolved = np.full((len(sides), len(asked_for) - len(levels)), inf)
    found = np.hstack([np.maximum.accumulate(found, axis=1), unresolved])
    below = tuple(found[0].tolist())
    return Calibration(session.n, score.bounds, asked_for, below, tuple(found[-1].tolist()))


def _targets(
    session: "SessionPart", score: Any, alphas: list[float], sides: tuple[int, ...], reported: bool
) -> tuple[Any, int]:
    """The ranks that noisy counts (of a curator) or shares (of users) are compared with, and the
    depth.

    These are public numbers. Targets are infinite if the rows are too few, or say nothing.
    """
    n = session.n
    smallest = min(alphas)
    reach = SCORES[1] / SCORES[0]
    alone = (ScoreReports if reported else ScoresWithin)(score, ((0, 0.0),))
    noise = session.noise(alone, 1.0)
    spread = smallest * (1.0 - smallest)
    same_rows = session.trust.can.same_rows
    if reported:
        reach = 1.0 / FALLBACK
        if not noise.gain:
            return [inf], 0

    def n_counts(depth: int) -> int:
        """Number of counts of all searches."""
        return len(sides) * sum(search_slots(depth, len(alphas)))

    def error(depth: int) -> "Scalar":
        """Error of the share that a search finds: each step, or each count, has its own users."""
        counts = n_counts(depth)
        if same_rows:
            sd = noise.scale * sqrt(counts)
            return margin(depth, smallest * (n + 1) / sd) * sd / (n + 1)
        parts = counts if reported else depth
        variance = spread * parts + noise.scale**2 / n * counts
        return 0.5 * sqrt(variance / n) if parts <= n else inf

    depth = best_depth(smallest, error, reach)
    if not depth:
        return [inf], 0
    counts = n_counts(depth)
    if reported:
        law = session.noise(alone, (n // counts + 0.5) / n)  # of this many users
        return [_target(law, depth, alpha) for alpha in alphas], depth
    if same_rows:
        scale = session.noise(alone, 1.0 / counts).scale
        return [count_target(n, alpha, scale, depth) for alpha in alphas], depth
    blocks = []
    for size, slots in zip(_blocks(n, depth), search_slots(depth, len(alphas)), strict=True):
        scale = session.noise(alone, (size + 0.5) / n).scale  # of this many users
        blocks.append((size, scale * sqrt(slots * len(sides))))
    return _share_targets(tuple(blocks), tuple(alphas)), depth


def _blocks(n: int, depth: int) -> list[int]:
    """Numbers of users who answer each step: equal, up to one."""
    return [n // depth + (step < n % depth) for step in range(depth)]


def _counter(
    session: "SessionPart", score: Any, sides: tuple[int, ...], slots: list[int], reported: bool
) -> Callable[..., Any]:
    """Function ``ask(step, thresholds)``: noisy counts (a curator) or shares (users) of scores."""
    if session.trust.can.same_rows:
        shares = [slot / sum(slots) for slot in slots]
        return lambda step, thresholds: (
            session.sum(ScoresWithin(score, thresholds), shares[step]).value
        )
    sizes = _blocks(session.n, len(slots))  # each user answers one step
    if reported:  # or one count, and fewer users than there are counts are left over
        n_counts = len(sides) * sum(slots)
        sizes = [session.n // n_counts] * n_counts
    parts = iter(split(session, *sizes))

    def ask(step: int, thresholds: tuple[tuple[int, float], ...]) -> np.ndarray:
        queries = [ScoresWithin(score, thresholds)]
        if reported:
            queries = [ScoreReports(score, (threshold,)) for threshold in thresholds]
        answers = [next(parts).sum(query, 1.0) for query in queries]
        return np.concatenate([answer.mean for answer in answers])

    return ask


def _search(
    session: "SessionPart",
    score: Any,
    targets: list[float] | tuple[float, float],
    sides: tuple[int, ...],
    grid: np.ndarray,
    depth: int,
    reported: bool = False,
) -> "Array":
    """Binary search for all sides and targets at once; returns the right end of each search."""
    slots = search_slots(depth, len(targets))
    ask = _counter(session, score, sides, slots, reported)
    owners = np.repeat(sides, len(targets)).tolist()
    goals = np.tile(targets, len(sides))
    low = np.full(len(goals), -1)
    high = np.full(len(goals), len(grid) - 1)
    for step in range(depth):
        middle = (low + high) // 2
        nodes = list(zip(owners, grid[middle].tolist(), strict=True))
        thresholds = []
        for side in sides:  # each side has a public number of thresholds: searches may share some
            distinct = [node for node in dict.fromkeys(nodes) if node[0] == side]
            thresholds += distinct + [(side, 0.0)] * (slots[step] - len(distinct))
        values = ask(step, tuple(thresholds))
        left = values[[thresholds.index(node) for node in nodes]] >= goals
        low = np.where(left, low, middle)
        high = np.where(left, middle, high)
    return grid[high]


def calibration(
    model: Any,
    held_out: "SessionPart | None",
    deviation: Sequence[float] | None = None,
    channel: str = "gaussian",
    score: Any = None,
) -> Calibration | None:
    """Release the quantiles of the scores of the calibration rows.

    Parameters
    ----------
    model : PredictionIntervals
        It predicts already.
    held_out : Session or None
    deviation : (float, float) or None
        Bounds on the deviation of the residuals that released answers leave open.
    channel : {"gaussian", "codebook"}
        The channel. With "codebook", of pure reports, users answer by randomised response. They
        have reported signs of targets, of which no deviation of residuals can be read off.
    score : callable, default=None
        What is scored; None is the distance of a target from the prediction.

    Returns
    -------
    Calibration, or None where nothing was to be held out
    """
    if model.calibration_size is None:
        return None
    levels = checked_levels(model.prediction_levels)
    pure = channel == "codebook"
    score = score or Score(model._function, public_bounds(model))
    if held_out is None:
        return Calibration.unresolved(0, score.bounds, levels)
    sides = SIDES[model.conformity_score]
    return calibrate(held_out, score, levels, sides, None if pure else deviation, pure)


def released_quantiles(
    model: "PredictionIntervals | Any",
    confidence_level: Any,
    method: str,
    widest: str = "the interval is all of bounds_y",
) -> tuple[float, float]:
    """The quantiles of a fitted model that serve a level, for one of its methods."""
    check_is_fitted(model)
    check_level(confidence_level)
    if model._calibration is None:
        raise ValueError(
            f"{method} needs rows that the fit did not see: pass calibration_size, for example "
            "calibration_size=0.1, to the estimator and fit it again."
        )
    return model._calibration.quantiles(confidence_level, widest)


@parameters
class PredictionIntervals(PrivateRegressor):
    """Base class of the regressors with prediction intervals; not for direct use.

    An estimator has the parameters below, ``_function(X)`` (its predictions for checked rows), and
    in ``fit``, in this order::

        session, held_out = hold_out(self, session)
        ...                      # fit with session
        self._calibration = calibration(self, held_out, deviation, channel)

    Parameters
    ----------
    calibration_size : float in (0, 1), default=None
        Part of the rows that is held out of the fit, at random, for :meth:`prediction_interval`;
        both parts have the whole budget. None holds out nothing.
    conformity_score : {"absolute", "signed"}, default="absolute"
        Prediction intervals go equally far to both sides, or, for skewed targets, as far to each as
        targets do.
    prediction_levels : array-like of float in (0, 1), default=(0.9, 0.95)
        Confidence levels whose quantiles ``fit`` releases for :meth:`prediction_interval`. They
        share the budget of the calibration rows.
    """

    calibration_size: Level | None = None
    conformity_score: ConformityScore = "absolute"
    prediction_levels: ArrayLike = (0.9, 0.95)
    _calibration: Calibration | None = field(init=False)

    # A calibration takes the standard deviation of the residuals to lie between these multiples of
    # the released one, and lays the grid of their quantiles accordingly.
    _deviations = (0.7, 1.4)

    def _calibrated(
        self, held_out: "SessionPart | None", channel: str = "gaussian"
    ) -> Calibration | None:
        """Release the quantiles of the scores of the calibration rows, after steps of the loop."""
        return calibration(self, held_out, self._deviation(), channel)

    def _deviation(self) -> tuple[float, ...] | None:
        """Bounds on the standard deviation of the residuals, in units of y, by released answers."""
        size = self._record_map.radius * sqrt(max(self._released.variance, 0.0))
        return tuple(factor * size for factor in self._deviations) if size else None

    @of_numbers
    @rowwise
    def prediction_interval(self, X: Any, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Interval for a new y at each row, for any distribution of (x, y): split conformal.

        A new record of the same population as the rows has its target inside with probability at
        least ``confidence_level``, over the rows, their random division, the noise and the new
        record, for any number of rows. Neither linearity nor a model of the noise is assumed. Only
        targets outside of ``bounds_y`` are not counted. The level holds on average over x, not at
        each x. In the local and shuffle models rows must be independent; with the codebook channel,
        also at ``delta=0``, held-out users send one bit each by randomised response, and the level
        counts their coins exactly. After a fit with ``groups`` a new record is one row, chosen at
        random, of a new person: persons are held out with all their rows, and each is counted with
        one of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which to predict; they are clipped to their public bounds.
        confidence_level : float in (0, 1), default=0.95
            Quantiles are released by ``fit``, for ``prediction_levels``: the smallest of these that
            is at least this level serves, and above all of them ``bounds_y`` does.

        Returns
        -------
        ConfidenceInterval
            Named tuple (low, high) of ndarrays of shape (n_samples,), in the units of y and inside
            ``bounds_y``; all of ``bounds_y`` where the calibration rows are too few for the budget.

        Raises
        ------
        ValueError
            If the estimator was fitted with ``calibration_size=None``.
        """
        below, above = released_quantiles(self, confidence_level, "prediction_interval")
        quantiles: Any = self._calibration
        bounds = quantiles.bounds
        centre = self.predict(X).clip(*bounds)
        slack = OUTWARD * (np.abs(centre) + max(map(abs, bounds)))
        low = centre - below - slack
        return ConfidenceInterval(low.clip(*bounds), (centre + above + slack).clip(*bounds))
