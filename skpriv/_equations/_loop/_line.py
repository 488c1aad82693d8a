"""The least-squares line: scores without clips or weights, shortened where they are far."""

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..._linalg import SQRT2, add_gram, row_norms, unvech, vech, vech_size
from ...privacy import ROUNDING
from .._persons import person_sums
from .._public_maps import TargetMap
from ._equation import ScoreEquation
from ._queries import Whitened, handed
from ._score import ScoreQuery
from ._whitening import BELIEVED_ABOVE

# Weight of the directions of shortened scores: of least noise, where half of it is added to them
BEYOND = sqrt(0.5)
LINE_LENGTHS = 0.2  # part of the share of the line that finds where scores are shortened
Maps = tuple[Whitened, TargetMap, float, np.ndarray]


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


class _Lines:
    """Scores u = v psi (r - mu(m + psi'b)) of records with weights v; of persons, their means."""

    shape: Any
    point: np.ndarray
    location: float
    whitened: Whitened
    target: Any
    link: Any
    _summed: Any

    def sum(self, X, y):
        """Exact sum over a chunk of rows, each of which is a record."""
        return self._summed(self._lines(X, y))

    def sum_persons(self, X, y, starts, largest):
        """Exact sum over a chunk of persons."""
        rows = [psi * factors[:, None] for psi, factors, _ in self._lines(X, y)]
        u = person_sums(np.vstack([np.empty((0, len(self.point))), *rows]), starts) / largest
        return self._summed([(u, np.ones(len(u)), row_norms(u))])

    def _lines(self, X, y):
        """Yield rows psi of one block after the other, what makes u of each, and its length."""
        r, _ = handed(self.whitened.rows, self.target, X, y, self.link.low)
        for block, psi, norms, roots in self.whitened.long_blocks(X):
            with np.errstate(all="ignore"):  # overflow, and rows of weight 0
                eta = psi @ self.point
                eta /= roots
                eta += self.location
                factors = roots * (r[block] - self.link.mean(eta))
            # What is no number counts as 0, and squares do not overflow
            if not np.isfinite(factors.sum()):
                factors = np.clip(np.nan_to_num(factors, nan=0.0), -1e100, 1e100)
            yield psi, factors, np.abs(factors) * norms


@dataclass(frozen=True, eq=False)
class LineLengthsQuery(_Lines, ScoreQuery):
    """Number of records in each class of lengths of u.

    A record is in one class: replacing it moves two counts by one, sensitivity sqrt(2).

    Parameters
    ----------
    ends : ndarray of shape (n_classes,)
        Ends of the classes. The last one has all that is longer, too.
    """

    ends: np.ndarray = field(default_factory=lambda: np.ones(1))
    name: str = "lengths of the line's scores"

    @property
    def parts(self):
        """Number of classes."""
        return {"counts": len(self.ends)}

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return SQRT2 * ROUNDING

    def _summed(self, blocks):
        counts = np.zeros(len(self.ends))
        for _, _, lengths in blocks:
            classes = np.minimum(np.searchsorted(self.ends, lengths), len(self.ends) - 1)
            counts += np.bincount(classes, minlength=len(self.ends))
        return counts


@dataclass(frozen=True, eq=False)
class LineScoreQuery(_Lines, ScoreQuery):
    """Joint sum of (v, c v J, vv' / sqrt(2)), v = u / max(T, |u|), J = 1{|u| > T}, c = sqrt(1/2).

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

    @property
    def parts(self):
        """Sizes of what is asked, in the order of the answer."""
        p = len(self.point)
        return {"moment": p, "beyond": p, "residual": vech_size(p)}

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return 2.0 * sqrt(1.0 + BEYOND**2) * ROUNDING

    def _summed(self, blocks):
        moment, beyond, meat = *np.zeros((2, len(self.point))), self.whitened.empty_gram()
        for rows, factors, lengths in blocks:
            factors = factors / np.maximum(lengths, self.limit)
            moment += factors @ rows
            far = lengths > self.limit
            if far.any():
                beyond += BEYOND * (factors[far] @ rows[far])
            rows *= factors[:, None]
            add_gram(meat, rows)
        return np.concatenate([moment, beyond, vech(meat) / SQRT2])


def length_classes(longest, reach):
    """Ends of classes of lengths, each twice as long, from a quarter of the reach on."""
    first = 0.25 * reach  # typical scores are longer than that
    count = max(1, int(np.ceil(np.log2(max(longest / first, 1.0)))) + 1)
    return first * 2.0 ** np.arange(count)


def least_squares(session: Any, maps: Maps, far: Any, counts: Any, last: Any, share: float) -> Line:
    """Ask for the equation of the least-squares line at the end of the loop.

    What shortening takes away is T B / (a - 1), for the mean B of the directions of scores that are
    longer than T, if P(|u| > x) falls like x^-a. With a finite variance a is at least 2, so that it
    lies between 0 and T B: half of that is added, and what remains uncertain is as large.

    Parameters
    ----------
    session : Session
    maps : (Whitened, TargetMap, float, ndarray)
        The first fields of a `ScoreQuery`: the point is that of the fit.
    far : LineLengthsQuery
        Asked beside the last step, of scores at the point of that.
    counts : Answer
        Its answer.
    last : ScoreEquation
        The last step.
    share : float

    Returns
    -------
    Line
    """
    noise = session.noise(LineScoreQuery(*maps, last.limit), share).scale / session.records(share)
    limit = _length(counts.value / counts.n, counts.noise.scale / counts.n, far.ends, noise)
    query = LineScoreQuery(*maps, limit)
    answer = session.sum(query, share)
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
    seen = np.where(parts > BELIEVED_ABOVE * deviation, parts, 0.0)
    missing = np.maximum(ends / SQRT2 - ends[:, None], 0.0) @ seen
    error = (1.0 + 0.25 / BEYOND**2) * (noise * ends) ** 2 + missing**2
    return float(ends[np.argmin(error)])
