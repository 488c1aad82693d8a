"""The least-squares line: scores without clips or weights, shortened where they are far."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..._linalg import SQRT2, add_gram, row_norms, unvech, vech, vech_size
from ...privacy import ROUNDING, GaussianNoise, Query
from .._persons import ScoreLengthsQuery, person_sums
from ._score import ScoreEquation, ScoreQuery, Scores
from ._links import IDENTITY
from ._queries import Whitened, scaled_targets
from ._rules import LEARNT
from ._whitening import believed

# Weight of the directions of shortened scores: of least noise, where half of it is added to them
BEYOND = sqrt(0.5)
Maps = tuple[Whitened, Any, float, np.ndarray]


class Line(NamedTuple):
    """What was released of the least-squares line.

    Attributes
    ----------
    equation : ScoreEquation
        It has the moment of all rows, without clips or weights, and the slope of the step before.
    tail : ndarray of shape (p,)
        Half of the longest part of the moment that shortening may have taken away. It is added to
        the moment, which is that far away at most.
    tail_scale : float
        Standard deviation of its noise.
    """

    equation: ScoreEquation
    tail: np.ndarray
    tail_scale: float

    def uncertain(self, dual):
        """How far shortening may move v'moment beyond the noise of the tail, for each row v."""
        told = (dual @ self.tail) ** 2 - self.tail_scale**2 * row_norms(dual) ** 2
        return np.sqrt(np.maximum(told, 0.0))


def _line_scores(one):
    """What makes u of the rows e of `Scores`, and the lengths of u: both e and c are too short."""
    with np.errstate(all="ignore"):
        factors = one.residuals / one.factors**2
    # What is no number counts as 0, and squares do not overflow
    if not np.isfinite(factors.sum()):
        factors = np.clip(np.nan_to_num(factors, nan=0.0), -1e100, 1e100)
    return factors, np.abs(factors) * one.lengths


@dataclass(frozen=True, eq=False)
class LineScoreQuery(ScoreQuery):
    """Joint sum of (v, c v J, vv' / sqrt(2)), v = u / max(T, |u|), J = 1{|u| > T}, c = sqrt(1/2).

    u = a psi (r - mu(m + psi'b)) of a record with weight a; of a person, the mean of its rows'.
    The squared sensitivity is 4 (1 + c^2) = 6. Proof. Let a = |v|, b = |v'| and t = -<v, v'>,
    which is at most a b. (1) J = J' = 0: D^2 = a^2 + b^2 + 2 t + (a^4 + b^4 - 2 t^2) / 2 increases
    in t up to 1, and at t = a b it is (a + b)^2 + (a^2 - b^2)^2 / 2 <= 4, since at a = 1 the
    derivative by b is 2 + 2 b^3 > 0. (2) J = 1, J' = 0 adds c^2. (3) J = J' = 1: a = b = 1, and
    D^2 = (2 + 2 t)(1 + c^2) + 1 - t^2 increases in t up to 1, where it is 4 (1 + c^2).

    Parameters
    ----------
    limit : float
        T: the length to which scores are shortened.
    """

    name: str = "scores of the line"

    def scores(self, X, y):
        """Yield the `Scores` of one block after the other; of a link that bends without weights."""
        if self.link.linear:
            yield from super().scores(X, y)
            return
        r, roots = scaled_targets(self.whitened.rows, self.target, X, y, self.link.low)
        for block, e, weights, lengths, factors in self.whitened.blocks(X):
            with np.errstate(all="ignore"):
                mean, slope = self.link.free(self.location + (e @ self.point) / weights)
                residual = (r[block] - mean) * roots[block] * factors  # as a line's are
            yield Scores(e, np.ones(len(e)), slope, residual, lengths, factors)

    @property
    def parts(self):
        """Sizes of what is asked, in the order of the answer."""
        p = len(self.point)
        return {"moment": p, "beyond": p, "residual": vech_size(p)}

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return 2.0 * sqrt(1.0 + BEYOND**2) * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows, each of which is a record."""
        return self._summed((one.rows, *_line_scores(one)) for one in self.scores(X, y))

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        u = person_sums(self.score_rows(X, y), starts) / largest
        return self._summed([(u, np.ones(len(u)), row_norms(u))])

    def score_rows(self, X, y):
        """Rows u of a chunk."""
        rows = [one.rows * _line_scores(one)[0][:, None] for one in self.scores(X, y)]
        return np.vstack([np.empty((0, len(self.point))), *rows])

    def score_lengths(self, X, y):
        """Lengths |u| of a chunk, without the rows."""
        return np.concatenate([[], *(_line_scores(one)[1] for one in self.scores(X, y))])

    def _summed(self, blocks):
        sums = _LineSums(self)
        for rows, factors, lengths in blocks:
            v, _ = sums.add(rows, factors, lengths)
            add_gram(sums.meat, rows * v[:, None])
        return sums.value


class _LineSums:
    """Sums of a `LineScoreQuery`, also beside those of a step at the same point.

    Attributes
    ----------
    meat : ndarray of shape (p, p)
        Sum of vv'.
    alike : ndarray of shape (p, p)
        That of uu' of the step, of records where v is u times the ratio of the two limits.
    """

    def __init__(self, query, limit=1.0):
        self._limit, self._ratio = query.limit, limit / query.limit
        self._moment, self._beyond = np.zeros((2, len(query.point)))
        self.meat, self.alike = query.whitened.empty_gram(), query.whitened.empty_gram()

    def add(self, rows, factors, lengths):
        """Add rows; return what makes v of each, and which u are longer than T."""
        v, far = factors / np.maximum(lengths, self._limit), lengths > self._limit
        self._moment += v @ rows
        if far.any():
            self._beyond += BEYOND * (v[far] @ rows[far])
        return v, far

    def __call__(self, one):
        """Add a block of `Scores`; return places of the records that are not alike."""
        v, far = self.add(one.rows, *_line_scores(one))
        apart = np.flatnonzero(far | (one.factors != 1.0) | (np.abs(one.scores) == 1.0))
        if len(apart):
            add_gram(self.meat, one.rows[apart] * v[apart, None])
        return apart

    @property
    def value(self):
        """The sums, in the order of the answer."""
        meat = self.meat + self._ratio**2 * self.alike
        return np.concatenate([self._moment, self._beyond, vech(meat) / SQRT2])


@dataclass(frozen=True, eq=False)
class StepAndLineQuery(Query):
    """Joint sum of a step and of the line at the same point: one pass over the records.

    Each is asked in units of its sensitivity over the root of its share, so that it moves by at
    most that root: the squared sensitivity is the sum of the shares. For that share each has the
    noise that it would have alone.

    Parameters
    ----------
    step : ScoreQuery
        Its ``sandwich`` is true.
    line : LineScoreQuery
        It has the same maps, location and point.
    shares : tuple of float
        Those of the step and of the line.
    """

    step: ScoreQuery
    line: LineScoreQuery
    shares: tuple
    name: str = "scores, and those of the line"

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.step.shape[0] + self.line.shape[0],)

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return sqrt(sum(self.shares)) * ROUNDING

    @property
    def _units(self):
        queries = zip((self.step, self.line), self.shares, strict=True)
        return [query.sensitivity / sqrt(share) for query, share in queries]

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        line = _LineSums(self.line, self.step.limit)
        step = self.step.sum_beside(X, y, line)
        sums = zip((step, line.value), self._units, strict=True)
        return np.concatenate([value / unit for value, unit in sums])

    def read(self, answer):
        """The answers to the step and to the line."""
        values = np.split(answer.value, self.step.shape)
        return [
            replace(answer, value=unit * value, noise=GaussianNoise(unit * answer.noise.scale))
            for value, unit in zip(values, self._units, strict=True)
        ]


def length_classes(longest, cut_length):
    """Ends of classes of lengths, each twice as long, from a quarter of the cut_length on."""
    first = 0.25 * cut_length  # typical scores are longer than that
    count = max(1, int(np.ceil(np.log2(max(longest / first, 1.0)))) + 1)
    return first * 2.0 ** np.arange(count)


def line_scores(
    session: Any, maps: Maps, cut_length: float, rules: Any, link: Any = IDENTITY
) -> LineScoreQuery:
    """The question of the line: where its scores are shortened follows from their lengths.

    Parameters
    ----------
    session : Session
    maps : (Whitened, TargetMap, float, ndarray)
        The first fields of a `ScoreQuery`.
    cut_length : float
        Where the scores of steps are cut.
    rules : Rules
    link : MeanLink
    """
    line = LineScoreQuery(*maps, cut_length, link)
    ends = length_classes(_longest_score(*maps, link), cut_length)
    lengths = ScoreLengthsQuery(line, ends, "lengths of the line's scores")
    counts = session.sum(lengths, LEARNT * rules.line, session.part(rules.subset))
    share = (1.0 - LEARNT) * rules.line
    noise = session.noise(line, share).scale / session.records(share)
    limit = _length(counts.value / counts.n, counts.noise.scale / counts.n, ends, noise)
    return replace(line, limit=limit)


def with_line(session: Any, step: ScoreQuery, share: float, rules: Any) -> tuple:
    """The equation of a step and the `Line` at the same point, in one pass over the records."""
    maps, part = (step.whitened, step.target, step.location, step.point), rules.line
    line = line_scores(session, maps, step.limit, rules)
    both = StepAndLineQuery(step, line, (share, (1.0 - LEARNT) * part))
    answer, found = both.read(session.sum(both, sum(both.shares)))
    last = ScoreEquation.of(step, answer)
    return last, least_squares(line, found, last)


def line_alone(
    session: Any, maps: Maps, last: ScoreEquation, rules: Any, link: Any = IDENTITY
) -> Line:
    """The `Line` at a point, after the last step."""
    line = line_scores(session, maps, last.cut_length, rules, link)
    return least_squares(line, session.sum(line, (1.0 - LEARNT) * rules.line), last)


def least_squares(query: LineScoreQuery, answer: Any, last: Any) -> Line:
    """The equation of the least-squares line at a point.

    What shortening takes away is T B / (a - 1), for the mean B of the directions of scores that are
    longer than T, if P(|u| > x) falls like x^-a. With a finite variance a is at least 2, so that it
    lies between 0 and T B: half of that is added, and what remains uncertain is as large.

    Parameters
    ----------
    query : LineScoreQuery
    answer : Answer
    last : ScoreEquation
        The last step.

    Returns
    -------
    Line
    """
    limit = query.limit
    unit, value = limit * answer.noise.scale / answer.n, limit * answer.value / answer.n
    p = len(query.point)
    tail, rest = value[p : 2 * p] / (2.0 * BEYOND), value[2 * p :]
    equation = replace(
        last,
        point=query.point,
        moment=value[:p] + tail,
        moment_scale=unit * sqrt(1.0 + 0.25 / BEYOND**2),
        residual_gram=SQRT2 * limit * unvech(rest, p),
        residual_scale=SQRT2 * limit * unit,
        limit=limit,
        length=1.0,
        n=answer.n,
    )
    return Line(equation, tail, 0.5 * unit / BEYOND)


def _longest_score(whitened, target, location, b, link=IDENTITY):
    """How long scores of the line are at most, for what bounds of rows and targets allow.

    Means of a link that bends count as inside of the range of the target.
    """
    rows, W = whitened.rows, whitened.W
    longest = rows.longest_row(W) if hasattr(rows, "longest_row") else 0.0
    longest = max(longest or float(np.linalg.norm(W, 2)), 1.0)
    if not link.linear:
        return longest
    return longest * largest_excess(Whitened(rows, W / longest), location, longest * b, 0.0)


def largest_excess(whitened, location, b, clip):
    """Largest excess of a residual w (r - m) - e'b over the clip: w <= 1, r in [-1, 1], and e'b is
    w phi'theta, and at most |b|.
    """
    theta, most = whitened.W.T @ b, sqrt(b @ b)
    if hasattr(whitened.rows, "span"):
        low, high = whitened.rows.span(theta)
    else:
        high = sqrt(theta @ theta)
        low = -high
    above, below = 1.0 + location + min(high, most), 1.0 - location + min(-low, most)
    return max(max(above, below) - clip, 0.0)


def _length(parts, deviation, ends, noise):
    """T of the least error: noise of the scores, and what is seen beyond T at its length.

    Parameters
    ----------
    parts : ndarray of shape (n_classes,)
        Noisy parts of the records in each class.
    deviation : float
        Standard deviation of the noise of these.
    ends : ndarray of shape (n_classes,)
    noise : float
        Standard deviation of each coordinate of a mean of scores of length 1.
    """
    missing = np.maximum(ends / SQRT2 - ends[:, None], 0.0) @ believed(parts, deviation)
    error = (1.0 + 0.25 / BEYOND**2) * (noise * ends) ** 2 + missing**2
    return float(ends[np.argmin(error)])
