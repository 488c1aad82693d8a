"""The questions of steps, clipped scores of rows or of persons at a point, and their released
equations.

`ScoreQuery.sum` goes through a chunk of rows, or of `PreparedRows`, block by block: `scores` makes
the values of each record, `sum_with_line` adds up their products, and `ScoreEquation.of` reads the
noisy sum as an equation for the coefficients.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._linalg import (
    RELATIVE_ZERO,
    SQRT2,
    add_gram,
    one_blas_thread,
    trace_of,
    unvech,
    unwarned,
    vech,
)
from ..._stored import frozen_object, set_state, stored
from ...privacy import ROUNDING, Answer, Query
from .._links import IDENTITY, StepLink
from .._persons import MATRICES, JointScores, PersonScores
from .._targets import scaled_targets
from ._rows import Whitened
from ._rules import normal_clip

if TYPE_CHECKING:
    from .._public_maps import TargetMap
    from ..._contracts import Scalar

# Numbers of the proof in `ScoreQuery`. Residuals are counted from the part CUT of the limit on, and
# with COUNT_WEIGHT that count costs nothing. If what is cut is asked, a record with a cut score
# counts for less, by FALL at most. RESIDUAL_WEIGHT is the weight of uu', and there of s^2.
# SIDE_WEIGHT is that of the rows that are cut, and of counts of persons.
CUT = 0.75
COUNT_WEIGHT = 0.79
FALL = 0.5
RESIDUAL_WEIGHT = 0.5
SIDE_WEIGHT = sqrt(1.0 / 8.0)
# Least and largest weight of the slopes of persons. The larger one is for so few records that noise
# hides slopes: it leaves three quarters of it, and scores have a tenth more. Measured
# (docs/evidence/coefficients.md).
SLOPE_WEIGHTS = sqrt(0.5), 1.0


class Scores(NamedTuple):
    """The values of each record of a block: all that a sum over records or over persons needs.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, p)
        e, which nobody may write over.
    scores : ndarray of shape (n_rows,)
        s in [-1, 1].
    slopes : ndarray of shape (n_rows,)
        h in [0, 1].
    residuals : ndarray of shape (n_rows,)
        c, before the clip.
    lengths : ndarray of shape (n_rows,)
        |e|.
    factors : ndarray of shape (n_rows,)
        What rows and residuals were multiplied by to be no longer than they may.
    """

    rows: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray
    residuals: np.ndarray
    lengths: np.ndarray
    factors: np.ndarray


@frozen_object
class ScoreQuery(JointScores, Query):
    """Joint sum of (e s, c h ee', s^2) and, where it is asked, (uu'/2, .79 J) with u = e s.

    Here s = clip(v (r - mu(m + psi'b)), -R, R) / R at a released b, e = w psi of a weight w in
    [0, 1] is at most 1 long, the weight v in [0, 1] is any public function of the row, h in [0, 1]
    is the slope of the clipped score over its largest (0 where it is cut), J = 1{|s| >= .75}, and
    matrices stand for their vech. The squared sensitivity is 4 + c^2 = 4.25 for c = 1/2 and any h,
    and 4, that of sum e s alone, where h = 1 for every record, and of (e s, s^2, .79 J), without
    any matrix (item 2). For the logit it is 4.52 + 1.2 (4 R (1 - R))^4, with c = 1.2 and no J (5).

    Proof. Let a = |e|^2, b = |e'|^2, x = |s|, z = |s'|; (-e, -s) gives the same release, so
    s, s' >= 0, and t = -<e, e'>. With J = 1 if the counts differ, D^2 is at most
          a x^2 + b z^2 + 2 t x z + (a^2 x^4 + b^2 z^4 - 2 t^2 x^2 z^2) / 4
          + (a^2 h^2 + b^2 h'^2 - 2 t^2 h h') / 4 + (x^2 - z^2)^2 + .79^2 J.
    1. For given t, x, z, h, h' it increases in a and in b, and |t| <= sqrt(a b) <= 1: take
       a = b = 1. It is convex in h and in h': take 0 or 1.
    2. h = h' = 1. With p = x z, t enters as 2 t p - t^2 (1 + p^2) / 2, whose maximum is
       2 p^2 / (1 + p^2). With X = x^2 and Z = z^2, D^2 <= g(X, Z) + .79^2 J where
       g = X + Z + 2 X Z / (1 + X Z) + (5/4)(X^2 + Z^2) - 2 X Z + 1/2, symmetric; take X >= Z.
       dg/dX = 1 + 2 Z / (1 + X Z)^2 + 2.5 X - 2 Z >= 1 + .5 X > 0, so X = 1, and
       q(Z) = 11/4 - Z + 2 Z / (1 + Z) + (5/4) Z^2 has q' = -1 + 2 / (1 + Z)^2 + 2.5 Z > 0: by
       (1 + Z)^-2 >= 1 - 2 Z it is at least 1 - 1.5 Z for Z <= 2/3, and 2.5 Z > 1 beyond.
       J = 0: D^2 <= q(1) = 4, attained at e' = -e, |e| = |s| = |s'| = 1. J = 1: Z < .75^2, and
       D^2 < q(9/16) + .79^2 = 3.3031 + .6241 < 4. In any dimension.
       h = h' = 0 leaves less, since a^2 + b^2 >= 2 t^2, and so does what asks no matrix: of
       what it leaves out each term is at least 0.
    3. h = 1, h' = 0, or the other way round: 2 t p - t^2 p^2 / 2 increases in t, so t = 1, and
       D^2 <= 1/4 + k, k = (x + z)^2 (1 + (5/4)(x - z)^2) + .79^2 J; for x >= z, k increases in x,
       and at x = 1 it increases in z, as its derivative is there
       2 (1 + z)(1 - 2.5 z (1 - z)) > 0. So k is at most 4 for J = 0, and 3.302 + .625 for J = 1
       (z < .75): D^2 <= 4.25, attained in the limit by a record whose residual is just cut and one
       whose residual is just not.
    4. If what is cut is asked (of a line), the score is e s (1 - f o), o = min((|c| - R)_+ / E, 1),
       with the residual c before the clip, the largest excess E and f = min(1/2, E / R). The
       matrices are then ee'/2 of all rows and ee'/sqrt(8) of those that are cut, s^2 has the weight
       1/2, and sqrt(3 f) |e| o is asked, too. The rows that are cut add at most 2/8
       to D^2. For the rest, 3 f (|e| o - |e'| o')^2 is at most 3 f |e|^2 o^2, or that of e', so
       that a = b = 1 is the worst case. With y = x (1 - f o), y' alike, step 2 leaves at most
       2 (y y')^2 / (1 + X Z) of the terms in t. o = o' = 0 is as above, with smaller weights.
       o > 0 = o': X = 1, and D^2 <= (1 - f o)^2 (1 + 2 Z / (1 + Z)) + 3 f o^2 + Z + 3/4 + Z^2 / 4
       + (1 - Z)^2 / 4 + .79^2 J is convex in o and, at o = 1, in f: o = 0 and f = 0 are
       the case above, and at o = 1, f = 1/2 it increases in Z, to 4 at 1 and to 3.994 at 9/16,
       below which J = 1.
       o, o' > 0: X = Z = 1, J = 0, and D^2 <= (1 + y^2) (1 + y'^2) + 3 f o^2
       <= 2 (1 + y^2) + 3 f o^2 is convex in o, 4 at 0 and 4 - f + 2 f^2 <= 4 at 1.
    5. The logit, with c = 1.2, no J, 1/2 <= R <= 1 and weights v = min(1, R / max(mu, 1 - mu)): s
       and h are tied. The larger residual q of a row has x = v q / R and h <= 4 v q (1 - q). So
       h <= k(R x) for k(x) = 1 up to 1/2 and 4 x (1 - x) beyond: if v < 1 then x = 1, and
       h = 4 R (1 - q) < k(R). The smaller one has R x <= 1/2. Take a = b = 1 and the ends 0 and
       k(R x) of h as in 1. The best t is p / (p^2 / 2 + 2 c^2 h h'), or 1 if that is larger, and
       D^2 <= 4.52 + 1.2 k(R)^4 for all x and z on a grid, with a bound on the gradient (see the
       test of this class). In any dimension.

    Parameters
    ----------
    whitened : Whitened
    target_map : TargetMap, or what stands in its place
        ``scaled(y)`` is r; NaN is a record whose score and slope are 0.
    location : float
        m, of the linear part.
    point : ndarray of shape (p,)
        b.
    limit : float
        R.
    link : StepLink
    sandwich : bool
        Whether uu' and the count are asked.
    most_excess : float or None
        E; 0 if nothing can be beyond the limit, None if what is cut is not asked. It is asked with
        matrices alone.
    matrices : bool
        Whether the slope and uu' are asked.

    Attributes
    ----------
    weights : dict of str to float
        Weights of what is asked. If what is cut is asked, the slope matrix is that of all rows.
    fall : float
        f, 0 where what is cut is not asked.
    """

    whitened: Whitened
    target_map: "TargetMap"
    location: float
    point: np.ndarray
    limit: float
    link: StepLink = IDENTITY
    sandwich: bool = False
    most_excess: Any = None
    matrices: bool = True
    name = "scores"
    sensitivity: float = field(init=False, default=inf)
    weights: dict[str, float] = field(init=False)
    fall: float = field(init=False)

    def __post_init__(self) -> None:
        link = self.link
        excess = (self.matrices and self.most_excess) or 0.0
        fall = min(FALL, excess / self.limit)
        slope_weight, square = link.proved(self.limit)
        weights = {"moment": 1.0, "slope": slope_weight, "square": 1.0}
        if not self.matrices:
            weights = {"moment": 1.0, "square": 1.0, "nearly_cut": COUNT_WEIGHT}
        elif self.sandwich:
            weights["residual"] = RESIDUAL_WEIGHT
            weights |= {"nearly_cut": COUNT_WEIGHT} if link.counts else {}
        if excess:
            side = {"cut_rows": SIDE_WEIGHT, "excess": sqrt(3.0 * fall)}
            weights |= {"square": RESIDUAL_WEIGHT, **side}
        # The slope h is 1 for every record, or it is not asked: items 2 and 4 of the proof
        even = link.linear and (self.most_excess == 0.0 or not self.matrices)
        largest = 2.0 if even else sqrt(square)
        set_state(self, sensitivity=largest * ROUNDING, weights=weights, fall=fall)

    @property
    def prepared(self) -> "tuple[Whitened, Query] | None":
        """The maker of prepared rows and this query of them, where they may be kept."""
        return self.whitened.prepared_for(self)

    def scores(self, X: Any, y: np.ndarray) -> Iterator[Scores]:
        """Yield the `Scores` of one block of rows after the other."""
        with one_blas_thread.vector_turn:
            r, roots = scaled_targets(self.whitened.row_map, self.target_map, X, y, self.link.low)
        for block, e, weights, lengths, factors in self.whitened.blocks(X):
            eta = e @ self.point
            with one_blas_thread.vector_turn, unwarned():
                eta /= weights  # which may be 0
                eta += self.location
                residual, h = self.residuals(eta, r[block], roots[block], weights, factors)
                if not np.isfinite(residual.sum()):  # a label that is none, or an overflow
                    is_number = np.isfinite(residual)
                    residual = np.where(is_number, residual, 0.0)
                    h = np.where(is_number, h, 0.0)
                s = (residual / self.limit).clip(-1.0, 1.0)
            yield Scores(e, s, h, residual, lengths, factors)

    def residuals(
        self,
        eta: np.ndarray,
        r: np.ndarray,
        roots: np.ndarray,
        weights: np.ndarray,
        factors: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weighted residuals c before the clip, and the slopes h of their scores."""
        link = self.link
        mean = link.mean(eta)
        residual = r - mean
        if link.linear:
            residual *= weights
            inside = np.abs(residual) < self.limit
            # If nothing can be cut, the largest residual may be the limit itself
            return residual, (inside | (self.most_excess == 0.0)).astype(float)
        largest_weight = link.far_length * weights
        v = np.minimum(roots, largest_weight)
        residual *= v * link.thin(mean)
        inside = np.abs(residual) < self.limit
        return residual, np.where(inside, v / largest_weight * link.slope(eta, mean), 0.0)

    def rows_of(self, X: Any, blocks: Sequence[np.ndarray]) -> np.ndarray:
        """Rows e of a chunk in one array: that which is kept by person, or a copy of blocks."""
        side_by_side = X.by_person if self.whitened.row_map is None else None
        return np.concatenate(blocks) if side_by_side is None else side_by_side

    @property
    def _of_kept(self) -> bool:
        return self.link.linear and self.whitened.row_map is None

    def start_of_slopes(self, X: Any) -> np.ndarray:
        """What `add_slopes` begins with: of a line and rows that are kept, their Gram matrix.

        Slopes of a line are 0 or 1, so that this matrix less that of the rows that are cut is what
        is asked (docs/mathematics/sensitivities.md bounds the rounding).
        """
        return X.gram.copy() if self._of_kept else np.zeros(self.whitened.W.shape)

    def add_slopes(self, total: np.ndarray, e: np.ndarray, h: np.ndarray) -> None:
        """Add the sum of h ee' over a block to ``total``, in place."""
        if self._of_kept:
            cut = e[(h == 0.0) & (not self.fall)]
            total -= np.dot(cut.T, cut)
        else:
            add_gram(total, e if self.fall or (h == 1.0).all() else e * np.sqrt(h)[:, None])

    def sum(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        return self.sum_with_line(X, y)

    def sum_with_line(self, X: Any, y: np.ndarray, line: Any = None) -> np.ndarray:
        """The same, and the sums of the line over the same blocks, whose products uu' are shared.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
        line : LineSums, default=None
            They grow by this chunk.
        """
        numbers = dict.fromkeys(self.weights, 0.0)
        moment = np.zeros_like(self.point)
        grams = {name: np.zeros(self.whitened.W.shape) for name in MATRICES if name in numbers}
        if "slope" in grams:
            grams["slope"] = self.start_of_slopes(X)
        for block in self.scores(X, y):
            e, s, h, residual, lengths, _ = block
            with one_blas_thread.vector_turn:
                numbers["square"] += s @ s
                if "nearly_cut" in numbers:
                    numbers["nearly_cut"] += np.count_nonzero(np.abs(s) >= CUT)
            scaled = np.empty_like(e)  # rows are not written over: they may be kept
            apart = line.add_block(block) if line else ()
            lowered = s
            cut = np.flatnonzero(h == 0.0) if self.fall else ()
            if len(cut):
                over = (np.abs(residual[cut]) - self.limit) / float(self.most_excess or 1.0)
                over = over.clip(0.0, 1.0)
                lowered = s.copy()
                lowered[cut] *= 1.0 - self.fall * over
                numbers["excess"] += lengths[cut] @ over
                add_gram(grams["cut_rows"], e[cut])
            moment += np.dot(lowered, e)  # without the interpreter's lock, see `add_gram`
            if "slope" in grams:
                self.add_slopes(grams["slope"], e, h)
            if "residual" in grams:
                np.multiply(e, s[:, None], scaled)
                if len(apart):
                    add_gram(grams["residual"], scaled[apart])
                    scaled[apart] = 0.0
                add_gram(line.alike if line else grams["residual"], scaled)
        if line:
            grams["residual"] += line.alike
        numbers |= {name: vech(gram) for name, gram in grams.items()}
        return self.joined(numbers | {"moment": moment})


@frozen_object
class PersonScoreQuery(PersonScores, ScoreQuery):
    """Joint sum of (u, c h ee', q s^2, uu' / sqrt(2), k J) over persons.

    u is the sum of the scores e s of a person over m L, shortened to norm 1, and all but u and uu'
    are means over the m places of the person. The squared sensitivity is 4 + 2 c^2 + q^2 + k^2
    for q = 1/2 and k = sqrt(1/8): 5.375 for c = sqrt(1/2), and 6.375 for 1. Proof. u and
    uu' / sqrt(2) move by at most 4 squared, see `PersonScores`. The means A of h ee' are positive
    semi-definite of trace at most 1, so that <A, A'> >= 0 and |A - A'|^2 <= 2. The means of s^2
    and J are in [0, 1]. Scores are short by L, so that slopes have most of the noise: with c = q
    theirs is 1.85 times as large, and that of scores .93 times (docs/evidence/coefficients.md).

    Parameters
    ----------
    length : float
        L: the part of m at which the sum of the scores of a person is cut; 1 cuts nothing.
    slope_weight : float
        c.
    """

    length: float = 1.0
    slope_weight: float = SLOPE_WEIGHTS[0]
    name = "scores of persons"

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = dict.fromkeys(self.weights, SIDE_WEIGHT)
        weights |= {"moment": 1.0, "residual": 1.0 / SQRT2, "square": RESIDUAL_WEIGHT}
        weights["slope"] = self.slope_weight
        square = 4.0 + 2.0 * self.slope_weight**2 + RESIDUAL_WEIGHT**2 + SIDE_WEIGHT**2
        set_state(self, weights=weights, sensitivity=sqrt(square) * ROUNDING)

    def scored(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Rows e and s of a chunk, and the slope matrix, squares and counts of its rows."""
        rows, scores, slopes, *_ = zip(*self.scores(X, y))
        slope = self.start_of_slopes(X)
        for e, h in zip(rows, slopes):
            self.add_slopes(slope, e, h)
        s = np.concatenate(scores)
        return (
            self.rows_of(X, rows),
            s,
            {
                "square": s @ s,
                "nearly_cut": np.count_nonzero(np.abs(s) >= CUT),
                "slope": vech(slope),
            },
        )


# Mean excess over the clip, in units of it, of each residual that is counted near the limit, for a
# tail like the inverse cube.
CUBE = 0.5 * CUT**3


@stored
@frozen_object
class ScoreEquation:
    """Means over n records, released at a point b with residuals clipped at R.

    With rows e of norm at most 1, weights w and c = w (r - mu(m + psi'b)), all plus Gaussian noise
    of the given scale (GOE for matrices, independent of each other).

    Attributes
    ----------
    point : ndarray of shape (p,)
        b, released before.
    limit : float
        R.
    moment : ndarray of shape (p,)
        Mean of e clip(c, -R, R); less fall e (|c| - R)_+ sign(c) where what is cut was asked.
    slope : ndarray of shape (p, p) or None
        Minus the derivative of that mean by b: of mu' ee' of the records that are not cut; None if
        it was not asked, and then its scale is infinite.
    square : float
        Mean of clip(c)^2.
    gram : ndarray of shape (p, p) or None
        Mean of ee', where it is known: for a line of which nothing is cut, or what is was asked.
    residual_gram : ndarray of shape (p, p) or None
        Mean of ee' clip(c)^2; None if it was not asked, and then the count is 0.
    nearly_cut : float
        Part of the records with |c| at least .75 R.
    most_excess : float or None
        Largest (|c| - R)_+ of any record, 0 where nothing can be cut; None if it was not asked.
    excess : float
        Mean of |e| (|c| - R)_+; 0 if it was not asked.
    fall : float
        The part by which a residual beyond R counts for less: 0 where it is clipped.
    n : int
    moment_scale, slope_scale, square_scale, gram_scale, residual_scale, cut_scale : float
    excess_scale : float
    widest : float
        Largest |r - m|.
    length : float
        Where records are persons: the part of their rows' scores at which the sum is cut.
    far : tuple
        Directions in which the slope has noise beside its scale, shape (p, k), and its deviation:
        `FarRows`. The likelihood's slope also has an error by shortening, shape (p, p), and the
        part of it by which a step of length 1 changes it, since the link bends.
    errors : ndarray of shape (p, n_errors) or None
        Deviations of the moment of a `Line` beside its noise.
    """

    point: np.ndarray
    limit: float
    moment: np.ndarray
    slope: Any
    square: float
    n: "Scalar"
    moment_scale: float
    slope_scale: float
    gram: Any = None
    residual_gram: Any = None
    nearly_cut: float = 0.0
    most_excess: Any = None
    excess: float = 0.0
    fall: float = 0.0
    square_scale: float = 0.0
    gram_scale: float = 0.0
    residual_scale: float = 0.0
    cut_scale: float = 0.0
    excess_scale: float = 0.0
    widest: float = 1.0
    length: float = 1.0
    far: tuple[Any, ...] = ()
    errors: np.ndarray | None = None

    @property
    def cut_length(self) -> float:
        """Where scores are cut, in units of a residual; where records are persons, their sums."""
        return self.limit * self.length

    @property
    def uncut(self) -> float:
        """Part of the residuals within the limit, if they are normal."""
        return self._normal(0.0)[0]

    @property
    def variance(self) -> float:
        """Residual variance with what was cut, as if residuals were normal."""
        return self._normal(2.0 * self.square_scale)[1]

    def _normal(self, least: float) -> tuple[float, float]:
        square = max(self.square, least, RELATIVE_ZERO)
        return (1.0, square) if self.limit >= self.widest else normal_clip(square, self.limit)

    @classmethod
    def of(cls, query: ScoreQuery, answer: "Answer") -> "ScoreEquation":
        """Read the answer to a `ScoreQuery` (its layout is in the query's docstring)."""
        p = len(query.point)
        found, scales = query.named(answer.mean, answer.mean_scale)
        matrices = {name: unvech(found[name], p) for name in MATRICES if name in found}
        numbers: dict[str, Any] = {
            name: float(found[name][0]) for name in found if name not in (*matrices, "moment")
        }
        slope = matrices.get("slope")
        slope_scale = scales.get("slope", inf)
        gram = None if query.most_excess is None else slope
        gram_scale = 0.0 if gram is None else slope_scale
        fall = 0.0
        if query.fall:
            fall = query.fall * query.limit / query.most_excess
            counted = max(numbers.get("nearly_cut", 1.0), 0.0) + scales.get("nearly_cut", 0.0)
            parts: tuple[Any, ...] = matrices["cut_rows"], scales["cut_rows"], counted
            cut, cut_noise = _shrunk(*((1.0 + fall) * part for part in parts))
            slope = slope - cut
            slope_scale = sqrt(slope_scale**2 + cut_noise**2)
        residual = matrices.get("residual")
        residual_scale = scales.get("residual", 0.0)
        if "square" not in numbers:
            numbers["square"] = trace_of(residual)
        return cls(
            point=query.point,
            limit=query.limit,
            moment=found["moment"],
            slope=slope,
            n=answer.n,
            moment_scale=scales["moment"],
            slope_scale=slope_scale,
            cut_scale=scales.get("nearly_cut", 0.0),
            most_excess=query.most_excess,
            square_scale=scales.get("square", sqrt(p) * residual_scale),
            widest=1.0 + abs(query.location) if query.link.linear else query.link.limit or 1.0,
            length=query.length,
            gram=gram,
            gram_scale=gram_scale,
            residual_gram=residual,
            residual_scale=residual_scale,
            fall=fall,
            excess_scale=scales.get("excess", 0.0),
            **numbers,
        )


def _shrunk(matrix: np.ndarray, scale: float, largest: float) -> tuple[np.ndarray, float]:
    """A noisy matrix shrunk to 0, and the deviation of its error.

    Let b be the Frobenius norm of the matrix. In a direction that has all of it, the weight
    b^2 / (b^2 + s^2) has the least mean squared error, which is s^2 times that weight. In no
    direction is the error more, so that rows which are cut in one direction alone are no worse than
    is said. b is known from its bound, and from what the matrix has beyond its noise, of which the
    square is a chi-squared variable.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        A matrix plus GOE(scale).
    scale : float
        s.
    largest : float
        Bound on b.
    """
    if not scale:
        return matrix, 0.0
    size = len(matrix) * (len(matrix) + 1) / 2.0
    square = max(float((matrix**2).sum()) - size * scale**2, 0.0)
    square = min(square + scale**2 * sqrt(2.0 * size), largest**2)
    weight = square / (square + scale**2)
    return weight * matrix, sqrt(weight) * scale


def largest_excess(whitened: Whitened, location: float, b: np.ndarray, clip: float) -> "Scalar":
    """Largest excess of a residual w (r - m) - e'b over the clip.

    Here w <= 1, r is in [-1, 1], and e'b = w phi'theta is at most |b|.
    """
    theta = whitened.W.T @ b
    longest = sqrt(b @ b)
    low, high = whitened.row_map.span(theta)
    above = 1.0 + location + min(high, longest)
    below = 1.0 - location + min(-low, longest)
    return max(max(above, below) - clip, 0.0)
