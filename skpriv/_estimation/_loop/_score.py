"""The questions of steps, clipped scores of rows or of persons at a point, and their released
equations.

The equation of the least-squares line comes from scores without clips or weights, of which the
longest are shortened.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from math import exp, hypot, inf, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ..._linalg import (
    RELATIVE_ZERO,
    SQRT2,
    add_gram,
    norm_of,
    one_blas_thread,
    row_norms,
    trace_of,
    unvech,
    vech,
)
from ..._stored import frozen_object, set_state, stored
from ...privacy import ROUNDING, TOLD_ABOVE, Answer, GaussianNoise, Query
from .._links import IDENTITY, StepLink
from .._persons import (
    MATRICES, JointScores, PersonScores, ScoreLengthsQuery, person_sums, scaled_rows,
)  # fmt: skip
from .._targets import scaled_targets
from ._far_rows import FAR_LENGTH, FarRows, FarRowsQuery, inverse_root
from ._rows import Whitened
from ._rules import LEARNT, OWN_SLOPE, Rules, normal_clip

if TYPE_CHECKING:
    from .._public_maps import TargetMap
    from ...privacy import Piece, Session, SessionPart
    from ..._contracts import Array, Scalar

# Numbers of the proof in `ScoreQuery`. Residuals are counted from the part CUT of the limit on, and
# with COUNT_WEIGHT that count costs nothing. If what is cut is asked, a record with a cut score
# counts for less, by FALL at most. RESIDUAL_WEIGHT is the weight of uu', and there of s^2.
# SIDE_WEIGHT is that of the rows that are cut, and of what is asked beside scores of persons.
CUT = 0.75
COUNT_WEIGHT = 0.79
FALL = 0.5
RESIDUAL_WEIGHT = 0.5
SIDE_WEIGHT = sqrt(1.0 / 8.0)


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
    any matrix (item 2). It is 4 for the logit, with c = 1 and without J (item 5).

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
    5. The logit, with R = 1 and no J: s and h are tied. For q = |r - mu|, h <= 4 q (1 - q) and
       x <= q, hence h <= k(x), where k(x) = 1 up to x = 1/2 and 4 x (1 - x) beyond; c = 1, and
       the ends of h are 0 and k(x).
       Both 0: t = 1 as in 3, and D^2 <= (x + z)^2 (1 + (5/4) (x - z)^2) =: g(x, z) <= 4.
       One is 0, say h = 0, h' = k(z): t = 1, and D^2 <= g(x, z) + k(z)^2. In x it increases, since
       1 + (5/2) x (x - z) >= 1 - (5/8) z^2 > 0: x = 1. For z <= 1/2, g increases in z, and
       D^2 <= g(1, 1/2) + 1 = 2.954 + 1. For z = 1 - v >= 1/2, 4 - D^2 = v Q(v) with
       Q = 4 - 22 v + 37 v^2 - 17.25 v^3, convex on [0, 1/2], Q(.42) > .0087 and
       -.0488 < Q'(.42) < 0, so that Q > 0 there. Both nonzero, with k(x) <= k(z): D^2 is above the
       case h = 0 by at most (1 - t) (-2 p + (1 + t) p^2 / 2) + k(x)^2 (1 - 2 t^2), which is not
       positive where t^2 >= 1/2. For t^2 < 1/2, D^2 <= x^2 + z^2 + sqrt(2) p + (x^4 + z^4) / 4
       + (x^2 - z^2)^2 + k(x)^2 + k(z)^2 <= 3.95 (on a grid, with a bound on the gradient: see
       the test of this class). In any dimension. Attained at e' = -e, |e| = |s| = |s'| = 1.

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
        """The maker of rows (e, w, |e|) and this query of them, where they may be kept."""
        return self.whitened.prepared_for(self)

    def scores(self, X: Any, y: np.ndarray) -> Iterator[Scores]:
        """Yield the `Scores` of one block of rows after the other."""
        with one_blas_thread.vector_turn:
            r, roots = scaled_targets(self.whitened.row_map, self.target_map, X, y, self.link.low)
        for block, e, weights, lengths, factors in self.whitened.blocks(X):
            eta = e @ self.point
            with one_blas_thread.vector_turn, np.errstate(all="ignore"):
                eta /= weights  # which may be 0
                eta += self.location
                residual, h = self.residuals(eta, r[block], roots[block], weights, factors)
                if not np.isfinite(residual.sum()):  # a label that is none, or an overflow
                    is_number = np.isfinite(residual)
                    residual = np.where(is_number, residual, 0.0)
                    h = np.where(is_number, h, 0.0)
                s = np.clip(residual / self.limit, -1.0, 1.0)
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
        largest_weight = link.far * weights
        v = np.minimum(roots, largest_weight)
        residual *= v * link.thin(mean)
        inside = np.abs(residual) < self.limit
        return residual, np.where(inside, v / largest_weight * link.slope(eta, mean), 0.0)

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
            cut = e[h == 0.0]
            total -= np.dot(cut.T, cut)
        else:
            add_gram(total, e if (h == 1.0).all() else e * np.sqrt(h)[:, None])

    def sum(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        return self.sum_with_line(X, y)

    def sum_with_line(self, X: Any, y: np.ndarray, line: Any = None) -> np.ndarray:
        """The same, and the sums of the line over the same blocks, whose products uu' are shared.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
        line : _LineSums, default=None
            They grow by this chunk.
        """
        numbers = dict.fromkeys(self.weights, 0.0)
        moment = np.zeros(len(self.point))
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
                over = np.clip(over, 0.0, 1.0)
                lowered = s.copy()
                lowered[cut] *= 1.0 - self.fall * over
                numbers["excess"] += lengths[cut] @ over
                add_gram(grams["cut_rows"], e[cut])
            moment += np.dot(lowered, e)  # without the interpreter's lock, see `add_gram`
            if "slope" in grams:
                self.add_slopes(grams["slope"], e, np.ones_like(h) if self.fall else h)
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
    for c = q = k = sqrt(1/8): 4.5, for noise that is 6% larger. Proof. u and uu' / sqrt(2) move by
    at most 4 squared, see `PersonScores`. The means A of h ee' are positive semi-definite of trace
    at most 1, so that <A, A'> >= 0 and |A - A'|^2 <= 2. The means of s^2 and J are in [0, 1].

    Parameters
    ----------
    length : float
        L: the part of m at which the sum of the scores of a person is cut; 1 cuts nothing.
    """

    length: float = 1.0
    name = "scores of persons"

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = dict.fromkeys(self.weights, SIDE_WEIGHT)
        weights |= {"moment": 1.0, "residual": 1.0 / SQRT2}
        set_state(self, weights=weights, sensitivity=sqrt(4.0 + 4.0 * SIDE_WEIGHT**2) * ROUNDING)

    def scored(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        """Rows e s of a chunk, and the slope matrix, squares and counts of its rows."""
        rows, scores, slopes, *_ = zip(*self.scores(X, y))
        slope = self.start_of_slopes(X)
        for e, h in zip(rows, slopes):
            self.add_slopes(slope, e, h)
        s = np.concatenate(scores)
        return scaled_rows(rows, s), {
            "square": s @ s,
            "nearly_cut": np.count_nonzero(np.abs(s) >= CUT),
            "slope": vech(slope),
        }


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
    far: Any = ()

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
        numbers = {
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
            widest=1.0 + abs(query.location) if query.link.linear else 1.0,
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


# Exponents a of power laws P(|u| > x) like x^-a that the scores beyond a length may follow. With
# the mean excess 1 / (a - 1) from .1 to 1 its logarithm is uniform a priori, and so are slower laws
# in a. Those have an infinite variance, and visible counts have to say so.
EXPONENTS = np.concatenate([np.arange(1.0, 1.95, 0.1), 1.0 + 1.0 / np.linspace(1.0, 0.1, 10)])
PRIOR = np.maximum(EXPONENTS - 1.0, 1.0)
LEAST_EXCESS = 0.1
LOCAL_CLASSES = 3  # classes just below T, or the last visible ones, that say how a tail falls
SLOWER = 0.45  # by how much slower than there it may fall beyond
SPACING = np.gradient(EXPONENTS)
FASTER = EXPONENTS < np.minimum(EXPONENTS + SLOWER, 2.0)[:, None]  # than each, by row
# Mean distance of an exponential variable from its mean, over the mean.
UNEVEN = 2.0 * exp(-1.0)
# Part of the slope of counts that rows beyond its length may have. Errors were up to 8 times what
# was said where they had .2 to .7, and as said where they had less (docs/evidence/glm.md).
LONG_TAIL = 0.25
# The part w of what shortening takes away in the mean direction of long scores that is put back to
# lines by the way, and to declared ones; all of it if the link bends. Noise grows as 1 + w h,
# and the mean distance of an exponential variable from w of its mean is w - 1 + 2 exp(-w) of that:
# .71 for one half, and UNEVEN for all. Nothing is better, since scores up to T (1 + w h) are whole
# with as much noise. Lines by the way keep their questions (docs/evidence/coefficients.md).
PUT_BACK = 0.5, 0.0
# The part of the largest vector that shortening may take away from a declared line which counts as
# one deviation. On 60 tables the root mean square of the part that is missing is .60
# (docs/evidence/coefficients.md).
MISSED = 0.83
# The first fields of a `ScoreQuery`: whitened rows, the map of targets, location and point
ScoreFields = tuple[Whitened, Any, float, np.ndarray]


@stored
class Line(NamedTuple):
    """The released equation of the least-squares line.

    Attributes
    ----------
    equation : ScoreEquation
        It has the moment of all rows, without clips or weights, and the slope of the step before.
    along : ndarray of shape (p,) or (p, p)
        An error of the moment by shortening, one deviation long, beside privacy noise; of a
        declared line those that one hidden record may make.
    across : float or ndarray of shape (p, p)
        Standard deviation of another one, in each direction, or deviations of several.
    far : FarRows or None
        Rows that steps weigh down; None where there are none, or records are persons.
    shorter : ndarray of shape (p, p) or float
        Takes whitened rows to the coordinates in which the noise of the moment has its scale, and
        the other error is `across`. Symmetric; no eigenvalue is above 1, which is the identity.
    own : ndarray of shape (p, p) or None
        Takes whitened rows of the steps to those of this equation, which has a slope of its own;
        None where it has that of the steps.
    """

    equation: ScoreEquation
    along: np.ndarray
    across: Any
    far: Any = None
    shorter: Any = 1.0  # that of the files of earlier versions
    own: Any = None

    @property
    def errors(self) -> np.ndarray:
        """Deviations of these independent errors, and of noise beside that of the scale of the
        moment, shape (p, n_errors).
        """
        values, vectors = np.linalg.eigh(np.dot(np.eye(len(self.along)), self.shorter))
        more = self.equation.moment_scale * np.sqrt(np.maximum(values**-2.0 - 1.0, 0.0))
        back = vectors / values @ vectors.T
        return np.column_stack([self.along, np.dot(back, self.across), vectors * more])

    @classmethod
    def of(
        cls,
        query: "LineScoreQuery",
        answer: "Answer",
        last: ScoreEquation,
        shorter: np.ndarray,
        far: FarRows | None = None,
    ) -> "Line":
        """Read the answer to a `LineScoreQuery`, with the slope of the last step.

        Let B be the mean of the directions of scores that are longer than T, and h T the mean of
        what they are longer. Shortening takes away h T B if lengths do not depend on directions
        there, and w h T B is added, with PUT_BACK for w. Where that is 0, the moment has two errors
        by it: a vector that is no longer than `missed`, and what one record lacks that no count
        tells of, each in equal parts in p directions. Else it has three. The noise of B counts as
        that of the moment. The error of h, which follows from noisy counts, is along B. And lengths
        may depend on directions: then a vector is missing that is no longer than the mean distance
        of lengths from w of their mean, `missed`. Its direction is not known: it is that of B, or
        each of p has an equal part. The error along B counts by the square of B, less that of its
        noise.

        If a link bends, more is used, which was not measured for lines with their heavy tails:
        cov(l, a) is missing, of lengths l and directions a with the second moment S. In orthonormal
        functions S^-1/2 a the squares of its coordinates add up to var(l) at most (Bessel). Each of
        p has an equal part: the covariance is S var(l) / p. S is that of the squares of scores, as
        far as their noise does not hide it. The deviation of l is its mean for an exponential tail,
        and 1.5 times that here: T is where the tail looks light, by noise as well.

        Parameters
        ----------
        query : LineScoreQuery
        answer : Answer
        last : ScoreEquation
        shorter : ndarray of shape (p, p)
            What the whitening of the query was multiplied by.
        far : FarRows or None
        """
        found, scales = query.named(answer.mean, answer.mean_scale)
        p = len(query.point)
        excess = query.mean_excess
        scale = scales.get("beyond", 0.0)
        beyond = found.get("beyond", np.zeros(p))
        square = max(beyond @ beyond, 1e-300)
        seen = max(1.0 - query.link.linear * p * scale**2 / square, 0.0)
        back = np.linalg.inv(shorter)
        beyond = back @ beyond
        across = query.missed / sqrt(p)
        if not query.link.linear:
            values, vectors = np.linalg.eigh(unvech(found["residual"], p))
            squares = np.maximum(values, 0.0) + scales["residual"] / sqrt(p)
            across = 2.0 * query.missed * vectors * np.sqrt(squares / squares.sum() / p)
        equation = replace(
            last,
            point=shorter @ query.point,
            moment=back @ found["moment"] + excess * beyond,
            moment_scale=hypot(scales["moment"], excess * scale),
            residual_gram=back @ unvech(found["residual"], p) @ back,
            residual_scale=scales["residual"],
            limit=query.limit,
            length=1.0,
            n=answer.n,
        )
        along = sqrt(seen) * query.along * beyond
        if not excess:  # one record, or the part of one that noise hides
            hidden = min(1.0 / answer.n, scales["moment"] / query.limit)
            along = hidden / sqrt(p) * back @ query.longest_scores()
        return cls(equation, along, across, far, shorter)


def _line_scores(block: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Factors that make the scores u of the rows e of `Scores`, and the lengths of u.

    Both e and the residual c were shortened, so that their product is divided by the square.
    """
    with np.errstate(all="ignore"):
        factors = block.residuals / block.factors**2
    # A value that is not a number counts as 0, and squares do not overflow. Each record is clipped,
    # whatever the others are: that the sum of a block is finite says nothing of a single one.
    factors = np.clip(factors, -1e100, 1e100)
    factors[np.isnan(factors)] = 0.0
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
    put_back : float
        w.
    """

    mean_excess: float = 0.5
    along: float = 0.0
    missed: float = 0.0
    put_back: float = 1.0
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

    def longest_scores(self) -> "Array":
        """The score of a record that no count tells of, along each of some directions, (p, p).

        A row is as long as its bounds allow along a principal direction of the whitening, and its
        target is as far from the line as its range allows: its score has the length L there. A
        level without rows has a direction of its own, and makes no score longer along others. A
        length beyond T may be any up to L, with equal chances of its logarithm: its mean square is
        no more than L^2 / (2 log(L / T)), unless it is near T.
        """
        W = self.whitened.W
        directions = np.linalg.svd(W)[0]
        rows = np.abs([*map(self.whitened.row_map.span, directions.T @ W)]).max(axis=1)
        longest = rows * (1.0 + abs(self.location) + rows * np.abs(self.point @ directions))
        return directions * longest / np.sqrt(2.0 * np.log(np.maximum(longest / self.limit, 2.0)))

    def sum(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows, each of which is a record."""
        return self._summed((block.rows, *_line_scores(block)) for block in self.scores(X, y))

    def sum_persons(self, X: Any, y: np.ndarray, starts: np.ndarray, largest: int) -> np.ndarray:
        """Exact sum over a chunk of persons."""
        u = person_sums(self.score_rows(X, y), starts) / largest
        return self._summed([(u, np.ones(len(u)), row_norms(u))])

    def score_rows(self, X: Any, y: np.ndarray) -> np.ndarray:
        """Rows u of a chunk."""
        blocks = ((block.rows, _line_scores(block)[0]) for block in self.scores(X, y))
        rows, factors = zip(*blocks)
        return scaled_rows(rows, np.concatenate(factors))

    def _summed(self, blocks: Iterable[Any]) -> np.ndarray:
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
        far = lengths > limit
        self._moment += np.dot(v, rows)
        self._beyond += v[far] @ rows[far]
        return v, far

    def add_block(self, block: Scores) -> np.ndarray:
        """Add a block of `Scores`, without uu' of rows that are alike; return where others are."""
        with one_blas_thread.vector_turn:
            v, far = self.add(block.rows, *_line_scores(block))
            apart = np.flatnonzero(far | (block.factors != 1.0) | (np.abs(block.scores) == 1.0))
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
        line = _LineSums(self.line, self.step.limit)
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


def length_classes(longest: float, cut_length: float) -> "Array":
    """Ends of classes of lengths, from a quarter of the cut_length on, by factors of sqrt(2)."""
    first = 0.25 * cut_length  # typical scores are longer than that
    return first * SQRT2 ** np.arange(np.ceil(2.0 * np.log2(max(longest / first, 1.0))) + 1.0)


def line_query(
    session: "Session | SessionPart",
    fields: ScoreFields,
    cut_length: float,
    rules: "Rules",
    slope: tuple[np.ndarray, float],
    link: StepLink = IDENTITY,
    shapes: Sequence[np.ndarray] = (),
) -> tuple[LineScoreQuery, np.ndarray, FarRows | None]:
    """The question of the line; its scores are shortened by their lengths.

    Lengths are counted in classes, up to the longest score that bounds of rows and targets allow.
    A quarter of that share is for the far rows of a line that can have rows beyond the length 1.
    If there are any, the lengths are counted in several coordinates. Those are taken in which
    the ellipsoid of the error has the least volume: a few directions of far rows have more noise,
    if all others have so much less.

    Parameters
    ----------
    session : Session
    fields : (Whitened, TargetMap, float, ndarray)
        The first fields of a `ScoreQuery`.
    cut_length : float
        Where the scores of steps are cut.
    rules : Rules
    slope : (ndarray of shape (p, p), float)
        A released one of steps, and the scale of its noise.
    link : StepLink
    shapes : sequence of ndarray of shape (p, p)
        Further coordinates, as `Line.shorter`.

    Returns
    -------
    (query, shorter, far)
        A `LineScoreQuery`, and the last arguments of `Line.of`.
    """
    line = LineScoreQuery(*fields, cut_length, link)
    whitened, _, location, point = fields
    W = whitened.W
    longest = longest_row = _longest(whitened)
    if link.linear:  # means of a link that bends count as inside of the range of the target
        line = replace(line, put_back=PUT_BACK[rules.declared])
        longest *= largest_excess(
            Whitened(whitened.row_map, W / longest), location, longest * point, 0.0
        )
    ends = length_classes(longest, cut_length)
    far: Any = None
    learnt = LEARNT * rules.line
    subset = session.piece(rules.subset)
    if link.linear and (session.persons or 1) == 1 and longest_row > 1.0:
        query = FarRowsQuery(whitened)
        gram, scale = query.gram(session.sum(query, 0.25 * learnt, subset))
        far = FarRows(gram, scale, log(max(longest_row / FAR_LENGTH, 1.0)))
        learnt *= 0.75
        shapes = far.shorter(*slope, rules.length)
    lines = [(line, np.eye(len(W))), *((_turned(line, shape), shape) for shape in shapes)]
    shares = learnt / len(lines), (1.0 - LEARNT) * rules.line
    found = []
    for line, shorter in lines:
        line, error = _shortened(session, line, ends, shares, subset)
        found.append((error / np.linalg.det(shorter) ** (2.0 / len(point)), line, shorter, far))
    return min(found, key=lambda one: one[0])[1:]


def _longest(whitened: Whitened) -> "Scalar":
    """Length of the longest row, or 1 where that is more."""
    return max(whitened.row_map.longest_row(whitened.W) or norm_of(whitened.W, 2), 1.0)


def _turned(line: LineScoreQuery, shorter: np.ndarray) -> LineScoreQuery:
    """The same question in other coordinates."""
    return replace(
        line,
        whitened=replace(line.whitened, W=shorter @ line.whitened.W),
        point=np.linalg.solve(shorter, line.point),
    )


def _shortened(
    session: "Session | SessionPart",
    line: LineScoreQuery,
    ends: np.ndarray,
    shares: Any,
    subset: "Piece | None",
    power: float = 1.0,
) -> tuple[LineScoreQuery, float]:
    """The question with its best length, by private counts, and its error there.

    The shares are those of the counts and of the question, and the length is chosen for this power
    of the lengths. If that is 2, the noise counts twice: what is missing beyond the length is a
    part of a difference from a matrix that is known.
    """
    counts = session.sum(
        ScoreLengthsQuery(line, ends, "lengths of the line's scores"), shares[0], subset
    )
    noise = power * session.noise(line, shares[1]).scale / line.sensitivity
    limit, excess, along, missed, error = _best_length(
        counts.mean,
        counts.mean_scale,
        ends**power,
        noise / session.records(shares[1]),
        len(line.point),
        line.put_back,
    )
    limit **= 1.0 / power
    return replace(line, limit=limit, mean_excess=excess, along=along, missed=missed), error


def with_line(
    session: "Session | SessionPart",
    step: ScoreQuery,
    share: float,
    rules: "Rules",
    slope: tuple[np.ndarray, float],
) -> tuple[ScoreEquation, Line]:
    """The equation of a step and the `Line` at the same point, in one pass over the records if both
    have the same coordinates.
    """
    line, shorter, far = line_query(
        session,
        (step.whitened, step.target_map, step.location, step.point),
        step.limit,
        rules,
        slope,
    )
    own = (1.0 - LEARNT) * rules.line
    if line.whitened is step.whitened:
        both = StepAndLineQuery(step, line, (share, own))
        answer, found = both.read(session.sum(both, share + own))
    else:
        answer = session.sum(step, share)
        found = session.sum(line, own)
    last = ScoreEquation.of(step, answer)
    return last, Line.of(line, found, last, shorter, far)


def line_alone(
    session: "Session | SessionPart",
    fields: ScoreFields,
    last: ScoreEquation,
    rules: "Rules",
    slope: tuple[np.ndarray, float],
    link: StepLink,
    shapes: Sequence[np.ndarray] = (),
) -> Line:
    """The `Line` at a point, after the last step."""
    line, shorter, far = line_query(session, fields, last.cut_length, rules, slope, link, shapes)
    return Line.of(line, session.sum(line, (1.0 - LEARNT) * rules.line), last, shorter, far)


def likelihood_alone(
    session: "Session | SessionPart",
    maps: ScoreFields,
    last: ScoreEquation,
    rules: "Rules",
    slope: tuple[np.ndarray, float],
    link: Any,
) -> Line | None:
    """The equation of the likelihood with a slope of its own, in coordinates of its own.

    Weights of far rows and of large means take a part of the slope D of steps, which is no more
    than the slope H of the likelihood. So H - D is asked in coordinates in which D is the identity,
    as `FarRows` are of a line. The scores are then asked in those coordinates in which the
    ellipsoid of the error has the least volume: of D, of H, and of the steps.

    Parameters
    ----------
    session : Session
    maps : (Whitened, TargetMap, float, ndarray)
    last : ScoreEquation
    rules : Rules
    slope : (ndarray of shape (p, p), float)
        D, and the scale of its noise.
    link : StepLink

    Returns
    -------
    Line or None
        None where a few rows have much of the slope of counts.
    """
    matrix, scale = slope
    p = len(matrix)
    own = inverse_root(matrix, 2.0 * scale * sqrt(2.0 * p))
    query: Any = _turned(OwnSlopeQuery(*maps, 1.0, link), own)
    shares = OWN_SLOPE * rules.line * np.array([LEARNT, 1.0 - LEARNT])
    ends = np.sqrt(length_classes(_longest(query.whitened) ** 2, float(p)))
    query, _ = _shortened(session, query, ends, shares, session.piece(rules.subset), 2.0)
    found, put_back, noise = query.read(session.sum(query, shares[1]))
    matrix = own @ matrix @ own
    of_steps = scale * norm_of(own, 2) ** 2
    directions = np.empty((p, 0))
    of_far = np.eye(p)
    if of_steps < noise:  # directions of far rows alone have the noise of what was asked
        missing, directions, _ = FarRows(found - matrix, hypot(noise, of_steps)).missing(matrix)
        found = matrix + missing
        of_far = directions @ directions.T
    # Rows beyond T have about the length l = T sqrt(1 + h), and the slope (1 + 1 / h) of what was
    # put back. A step x moves their linear part by l |x| over the root of mu', and the bend of the
    # link half as much of their slope.
    bend = query.limit * sqrt((1.0 + query.mean_excess) / link.free(query.location)[1])
    bend *= (1.0 + 1.0 / query.mean_excess) / (2.0 * UNEVEN)
    last = replace(
        last,
        limit=sqrt(p * max(last.square, last.square_scale) / max(trace_of(slope[0]), 1e-300)),
        length=1.0,
        slope=found,
        slope_scale=min(noise, of_steps),
        far=(directions, hypot(noise, of_steps), UNEVEN * put_back, bend),
    )
    rules = replace(rules, line=(1.0 - OWN_SLOPE) * rules.line)
    shapes = [
        shape / norm_of(shape, 2)
        for shape in (inverse_root(found, noise / 4.0), np.linalg.inv(own))
    ]
    fields = query.whitened, query.target_map, query.location, query.point
    line = line_alone(session, fields, last, rules, slope, link, shapes)._replace(own=own)
    too_much = np.vdot(of_far, put_back - LONG_TAIL * found) > 0.0
    return None if link.limit is None and too_much else line


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


def _best_length(
    parts: np.ndarray, deviation: float, ends: np.ndarray, noise: float, size: int, put_back: float
) -> tuple[float, ...]:
    """The length T with the least error, and what is known of scores beyond it.

    The error has three parts: noise, what is missing beyond T if lengths depend on directions, and
    the error of the mean excess if all scores there have one direction. If nothing is put back,
    what is missing is no longer than the part of the records beyond T times their mean excess.
    MISSED of that counts.

    Parameters
    ----------
    parts : ndarray of shape (n_classes,)
        Noisy parts of the records in each class.
    deviation : float
        Standard deviation of the noise of these.
    ends : ndarray of shape (n_classes,)
    noise : float
        Standard deviation of each coordinate of a mean of scores, for the sensitivity 1.
    size : int
        Number of coordinates.
    put_back : float
        w, of PUT_BACK, or 1 if the link bends.

    Returns
    -------
    (length, excess, along, missed, error) : tuple of float
        T, w times the mean excess h in units of T, `along` and `missed` of a `LineScoreQuery`, and
        the mean square of the error in each of the coordinates.
    """
    # Noise passes for any of them as seldom as one number does for TOLD_ABOVE deviations
    from_counts = parts > -ndtri(ndtr(-TOLD_ABOVE) / len(parts)) * deviation
    best: tuple[float, ...] = (inf,)
    for place, end in enumerate(ends, 1):
        if best[-1] < (2.0 * noise * end) ** 2:
            break  # each longer one has more noise than that alone
        beyond, excess, unknown = _tail(parts, from_counts, place, deviation, put_back == 1.0)
        missed = (UNEVEN if put_back else MISSED) * excess * beyond
        along = np.hypot(UNEVEN * excess, unknown)
        lost = (missed**2 + (unknown * beyond) ** 2) / size
        excess *= put_back
        error = (lost + (2.0 * (1.0 + excess) * noise) ** 2) * end**2
        if place == 1 or error < best[-1]:
            best = end, excess, along, end * missed, error
    return tuple(map(float, best))


def _tail(
    parts: np.ndarray, from_counts: np.ndarray, place: int, deviation: float, bends: bool = False
) -> tuple[float, float, float]:
    """Part of the records beyond a length T, and by how much they exceed it in the mean, relative.

    Classes that noise hides are filled in by the power law whose counts are nearest to all,
    averaged over such laws. Usual tails fall no more slowly beyond T than below. So a law of an
    infinite variance has the weight 2 P - 1, or 0 if that is negative, for the chance P that the
    last visible classes up to T, or the first three, give to exponents below its own and SLOWER,
    and below 2. If the link bends, all laws are as likely, since means of far rows may grow faster
    than any power of their lengths. A score in a class is taken to be as long as the geometric
    middle of its ends, and so a little longer than such laws say: more is missing where lengths
    depend on directions.

    Parameters
    ----------
    parts : ndarray of shape (n_classes,)
        Noisy parts of the records in each class.
    from_counts : ndarray of bool of shape (n_classes,)
        Which of them stand out of their noise.
    place : int
        The first class beyond T.
    deviation : float
    bends : bool, default=False
        Whether the link bends.

    Returns
    -------
    (part, excess, deviation) : tuple of float
        The part is one deviation of the noise of counts more than is found. The deviation of the
        excess is that over the laws which counts leave possible, and by the noise of the counts
        that stand for themselves.
    """
    if place == len(parts):
        return 0.0, 1.0, 0.0  # no record is longer
    last = max(np.flatnonzero(from_counts[1 : max(place, LOCAL_CLASSES + 1)]), default=-1) + 2
    local = parts[max(last - LOCAL_CLASSES, 1) : last]
    _, chances = _power_laws(local, deviation, SPACING)
    usual = EXPONENTS >= 2.0
    slow = np.where(usual | bends, 1.0, np.maximum(2.0 * FASTER @ chances - 1.0, 0.0))
    parts = parts[place:]
    from_counts = from_counts[place:]
    laws, chances = _power_laws(parts, deviation, slow * PRIOR)
    filled = np.where(from_counts, parts, laws)
    lengths = SQRT2 ** (np.arange(len(parts)) + 0.5) - 1.0
    records = filled.sum(axis=1)
    found = np.maximum(filled @ lengths / records, LEAST_EXCESS)
    beyond = chances @ records + deviation
    excess = chances @ found
    noise = deviation * np.linalg.norm(lengths[from_counts] - excess) / beyond
    return beyond, excess, min(hypot(sqrt(chances @ (found - excess) ** 2), noise), excess)


def _power_laws(
    parts: np.ndarray, deviation: float, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Power laws with EXPONENTS that are nearest to noisy parts, and the chances of these.

    Returns
    -------
    (laws, chances) : ndarrays of shape (n_laws, n_classes) and (n_laws,)
    """
    shapes = SQRT2 ** (-EXPONENTS[:, None] * np.arange(len(parts)))
    laws = shapes @ parts / np.maximum((shapes**2).sum(axis=1), 1e-300)
    laws = np.maximum(laws, 1e-12)[:, None] * shapes
    misfit = np.square((parts - laws) / max(deviation, 1e-9)).sum(axis=1)
    chances = prior * np.exp(np.maximum(0.5 * (misfit.min() - misfit), -200.0))
    return laws, chances / chances.sum()
