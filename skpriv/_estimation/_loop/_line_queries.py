"""The questions of a line: scores without clips or weights, of which the longest are shortened.

They are asked by themselves or beside those of the last step, in one pass over the records. The
slope of a likelihood is asked in the same way.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import exp, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._linalg import (
    SQRT2, add_gram, one_blas_thread, quadratic_forms, row_norms, unvech, unwarned,
    vech,
)  # fmt: skip
from ..._stored import frozen_object, set_state
from ...privacy import ROUNDING, Answer, GaussianNoise, Query
from .._persons import person_sums
from ._score import Scores, ScoreQuery

if TYPE_CHECKING:
    from ..._contracts import Scalar

# Mean distance of an exponential variable from its mean, over the mean.
UNEVEN = 2.0 * exp(-1.0)


def _line_scores(block: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Factors that make the scores u of the rows e of `Scores`, and the lengths of u.

    Both e and the residual c were shortened, so that their product is divided by the square.
    """
    with unwarned():
        factors = block.residuals / block.factors**2
    # A value that is not a number counts as 0, and squares do not overflow. Each record is clipped,
    # whatever the others are: that the sum of a block is finite says nothing of a single one.
    factors = np.where(np.isnan(factors), 0.0, factors.clip(-1e100, 1e100))
    return factors, np.abs(factors) * block.lengths


@frozen_object
class LineScoreQuery(ScoreQuery):
    """Joint sum of (v, c v J, vv' / sqrt(2)), v = u / max(T, |u|), J = 1{|u| > T}, c^2 = w h.

    u = a psi (r - mu(m + psi'b)) of a record with weight a; of a person, the mean of its rows'.
    The squared sensitivity is 4 (1 + c^2) for any c. Proof. Let a = |v|, b = |v'| and
    t = -<v, v'>, which is at most a b. (1) J = J' = 0: D^2 = a^2 + b^2 + 2 t + (a^4 + b^4 - 2 t^2)
    / 2 increases in t up to 1, and at t = a b it is (a + b)^2 + (a^2 - b^2)^2 / 2 <= 4, since at
    a = 1 the derivative by b is 2 + 2 b^3 > 0. (2) J = 1, J' = 0 adds c^2. (3) J = J' = 1:
    a = b = 1, and D^2 = (2 + 2 t)(1 + c^2) + 1 - t^2 increases in t up to 1, where it is
    4 (1 + c^2).

    The directions of long scores are added to the moment with w h T, see `Line.of`. Both together
    have (1 + c^2)(1 + (w h / c)^2) times the noise variance of the moment alone: least at
    c^2 = w h. They are not asked where w is 0.

    Parameters
    ----------
    limit : float
        T: the length to which scores are shortened.
    mean_excess : float
        w h: the part w of how much longer those are that are shortened, in the mean and in units of
        T.
    along : float
        Standard deviation of the error along the mean direction, in units of T: that of the error
        of h, and what is missing where lengths depend on directions.
    missed : float
        Mean distance of lengths beyond T from their mean there, as part of a mean over all scores.
        It is what shortening takes away, one deviation long, where w is 0.
    put_back : tuple of float
        w, and the part of the mean excess that is missing.
    uncounted : float
        The part of the records that the noise of a count of lengths hides.
    longest : float
        End of the longest class of lengths that stands out of its noise.
    """

    mean_excess: float = 0.5
    along: float = 0.0
    missed: float = 0.0
    put_back: tuple[float, float] = (1.0, UNEVEN)
    uncounted: float = 0.0
    longest: float = 0.0
    name = "scores of the line"

    def residuals(
        self,
        eta: np.ndarray,
        r: np.ndarray,
        roots: np.ndarray,
        weights: np.ndarray,
        factors: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Residuals as those of a step; where the link bends, without the weights of far rows."""
        if self.link.linear:
            return super().residuals(eta, r, roots, weights, factors)
        mean, slope = self.link.free(eta)
        return (r - mean) * roots * factors, slope  # multiplied by the factors, as a line's are

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = {"moment": 1.0, "beyond": sqrt(self.mean_excess), "residual": 1.0 / SQRT2}
        if not self.mean_excess:
            del weights["beyond"]
        set_state(self, weights=weights, sensitivity=2.0 * sqrt(1.0 + self.mean_excess) * ROUNDING)

    def hidden_scores(
        self, slope: np.ndarray, scale: float, moment: np.ndarray, n: "Scalar"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Directions of long rows, and what the mean of scores lacks by records hidden there.

        Along a principal direction of the whitening a row may have any length l that its bounds
        allow and with which its score u is longer than T, with equal chances of the logarithm, and
        any target of its range. The score is that at the line which the moment tells: the point is
        another one in each fit. There are L / u of them for the longest score L, as many as the
        slowest law of tails has, and no more than noise hides of a count. They have a part of the
        slope d, too: of the step by k records d / (d + k l^2 / n) is left. A level without rows has
        a direction of its own, and makes no score longer along others.

        Parameters
        ----------
        slope : ndarray of shape (p, p)
            The slope of the line without these records.
        scale : float
            The scale of its noise: d is no less along any direction.
        moment : ndarray of shape (p,)
            Released mean of the scores at the point.
        n : float

        Returns
        -------
        (directions, deviations)
            Orthonormal columns, shape (p, p), and a root mean square for each, shape (p,).
        """
        directions, rows = self.whitened.longest_along
        own = np.maximum(quadratic_forms(directions.T, slope), scale)
        bend = (self.point @ directions + moment @ directions / own) ** 2
        even = 1.0 / 3.0 + self.location**2  # the mean square of targets, from the location
        lengths = np.geomspace(1e-9 * rows, rows, 2000)
        scores = lengths * np.sqrt(even + bend * lengths**2)
        records = np.minimum(scores[-1] / scores / n, self.uncounted)
        missing = records * np.maximum(scores - self.limit, 0.0)
        missing /= 1.0 + records * lengths**2 / own
        longer = np.maximum((scores > self.limit).sum(axis=0), 1)
        return directions, row_norms(missing.T) / np.sqrt(longer)

    def sum(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows, each of which is a record."""
        return self._summed((block.rows, *_line_scores(block)) for block in self.scores(X, y))

    def sum_persons(self, X: Any, y: np.ndarray, starts: np.ndarray, largest: int) -> np.ndarray:
        """Exact sum over a chunk of persons."""
        u = person_sums(*self.score_rows(X, y), starts) / largest
        return self._summed([(u, np.ones(len(u)), row_norms(u))])

    def score_rows(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows e of a chunk, and the factors that make u of them."""
        blocks = ((block.rows, _line_scores(block)[0]) for block in self.scores(X, y))
        rows, factors = zip(*blocks)
        return self.rows_of(X, rows), np.concatenate(factors)

    def score_lengths(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Lengths |u| of the rows of a chunk."""
        return np.concatenate([_line_scores(block)[1] for block in self.scores(X, y)])

    def _summed(self, blocks: Iterable[Any]) -> np.ndarray:
        sums = LineSums(self)
        for rows, factors, lengths in blocks:
            v, _ = sums.add(rows, factors, lengths)
            add_gram(sums.meat, rows * v[:, None])
        return sums.value


class LineSums:
    """Sums of a `LineScoreQuery`, also beside those of a step at the same point.

    Attributes
    ----------
    meat : ndarray of shape (p, p)
        Sum of vv' of the records that are not in ``alike``.
    alike : ndarray of shape (p, p)
        Sum of uu' of the step, over records where v is u times the ratio of the two limits.
    """

    def __init__(self, query: LineScoreQuery, limit: float = 1.0) -> None:
        self._query = query
        self._ratio = limit / query.limit
        self._moment, self._beyond = np.zeros((2, len(query.point)))
        self.meat, self.alike = np.zeros((2, *query.whitened.W.shape))

    def add(
        self, rows: np.ndarray, factors: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add rows; return what makes v of each, and which u are longer than T."""
        limit = self._query.limit
        v = factors / np.maximum(lengths, limit)
        longer = lengths > limit
        self._moment += np.dot(v, rows)
        self._beyond += v[longer] @ rows[longer]
        return v, longer

    def add_block(self, block: Scores) -> np.ndarray:
        """Add a block of `Scores`, without uu' of rows that are alike; return where others are."""
        with one_blas_thread.vector_turn:
            v, longer = self.add(block.rows, *_line_scores(block))
            apart = np.flatnonzero(longer | (block.factors != 1.0) | (np.abs(block.scores) == 1.0))
        add_gram(self.meat, block.rows[apart] * v[apart, None])
        return apart

    @property
    def value(self) -> np.ndarray:
        """The sums, in the order of the answer."""
        residual = vech(self.meat + self._ratio**2 * self.alike)
        return self._query.joined(
            {"moment": self._moment, "beyond": self._beyond, "residual": residual}
        )


@frozen_object
class StepAndLineQuery(Query):
    """Joint sum of a step and of the line at the same point, in one pass over the records.

    Each is asked in units of its sensitivity over the root of its share, so that it moves by at
    most that root. The squared sensitivity is the sum of the shares. For this sum as a share each
    has the noise that it would have by itself.

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
    shares: tuple[float, float]
    name = "scores, and those of the line"

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (self.step.shape[0] + self.line.shape[0],)

    @property
    def sensitivity(self) -> float:
        """Declared sensitivity."""
        return sqrt(sum(self.shares)) * ROUNDING

    @property
    def _units(self) -> Any:
        sensitivities = self.step.sensitivity, self.line.sensitivity
        return (sensitivities / np.sqrt(self.shares)).tolist()

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        line = LineSums(self.line, self.step.limit)
        sums = zip((self.step.sum_with_line(X, y, line), line.value), self._units, strict=True)
        return np.concatenate([value / unit for value, unit in sums])

    def read(self, answer: "Answer") -> "list[Answer]":
        """The answers to the step and to the line."""
        values = np.split(answer.value, self.step.shape)
        return [
            replace(answer, value=unit * value, noise=GaussianNoise(unit * answer.noise.scale))
            for value, unit in zip(values, self._units, strict=True)
        ]


@frozen_object
class OwnSlopeQuery(LineScoreQuery):
    """Joint sum of (vv', c J vv'), v = q / max(T, |q|), J = 1{|q| > T}, c^2 = h.

    q = psi sqrt(a mu'(m + psi'b)) of a row with weight a: the mean of qq' is the slope of the
    likelihood at b. Both parts are positive semi-definite, of norms at most 1 and c, so that those
    of two records have no negative product: the squared sensitivity is 2 (1 + c^2).
    """

    name = "slope of the likelihood"

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = {"residual": 1.0, "cut_rows": sqrt(self.mean_excess)}
        largest = sqrt(2.0 * (1.0 + self.mean_excess))
        set_state(self, weights=weights, sensitivity=largest * ROUNDING)

    def residuals(
        self,
        eta: np.ndarray,
        r: np.ndarray,
        roots: np.ndarray,
        weights: np.ndarray,
        factors: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Roots of slopes in place of residuals; NaN of records without a target."""
        _, slope = self.link.free(eta)
        return np.sqrt(slope) * factors + 0.0 * r, slope

    def _summed(self, blocks: Iterable[Any]) -> np.ndarray:
        within, beyond = np.zeros((2, *self.whitened.W.shape))
        for rows, factors, lengths in blocks:
            v = rows * (factors / np.maximum(lengths, self.limit))[:, None]
            add_gram(within, v)
            add_gram(beyond, v[lengths > self.limit])
        return self.joined({"residual": vech(within), "cut_rows": vech(beyond)})

    def read(self, answer: "Answer") -> tuple[np.ndarray, np.ndarray, float]:
        """The slope, with what it lacks by shortening, and that; and the scale of its noise."""
        found, _ = self.named(answer.mean, 0.0)
        within, beyond = (unvech(part, len(self.point)) for part in found.values())
        put_back = self.limit**2 * self.mean_excess * beyond
        scale = self.limit**2 * sqrt(1.0 + self.mean_excess) * answer.mean_scale
        return within + put_back, put_back, scale
