"""The question of the loop: clipped scores of rows or of persons at a point; its answer, read."""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, pi, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from ..._linalg import RELATIVE_ZERO, add_gram, unvech, vech, vech_size
from ...privacy import ROUNDING, Query
from .._persons import PersonScores, named_parts
from .._public_maps import RowMap, TargetMap
from ._links import IDENTITY, MeanLink
from ._queries import Whitened, scaled_targets

# Part of the limit beyond which residuals are counted, and the weight of that count, with which it
# is free in every case. Where what is cut is asked: the largest part by which a record that is cut
# counts for less. The weight of uu', and there of s^2; and of the rows that are cut, and of what is
# asked beside scores of persons. See the proofs.
CUT, COUNT_WEIGHT, FALL, RESIDUAL_WEIGHT = 0.75, 0.79, 0.5, 0.5
SIDE_WEIGHT = sqrt(1.0 / 8.0)
MATRICES = "slope", "residual", "cut_rows"


class Scores(NamedTuple):
    """What each record of a block has: all that a sum over records or over persons needs.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, p)
        e, overwritten by the next block.
    scores : ndarray of shape (n_rows,)
        s in [-1, 1].
    slopes : ndarray of shape (n_rows,)
        h in [0, 1].
    residuals : ndarray of shape (n_rows,)
        c, before the clip.
    lengths : ndarray of shape (n_rows,)
        |e|.
    factors : ndarray of shape (n_rows,)
        What made rows and residuals shorter.
    """

    rows: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray
    residuals: np.ndarray
    lengths: np.ndarray
    factors: np.ndarray


@dataclass(frozen=True, eq=False)
class ScoreQuery(Query):
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
    target : TargetMap, or what stands in its place
        ``scaled(y)`` is r; NaN is a record whose score and slope are 0.
    location : float
        m, of the linear part.
    point : ndarray of shape (p,)
        b.
    limit : float
        R.
    link : MeanLink
    sandwich : bool
        Whether uu' and the count are asked.
    most_excess : float or None
        E; 0 if nothing can be beyond the limit, None if what is cut is not asked.
    matrices : bool
        Whether the slope and uu' are asked.
    """

    whitened: Whitened
    target: TargetMap
    location: float
    point: np.ndarray
    limit: float
    link: MeanLink = IDENTITY
    sandwich: bool = False
    most_excess: float | None = None
    matrices: bool = True
    name: str = "scores"
    count_weight: ClassVar[float] = COUNT_WEIGHT

    @property
    def sensitivity(self):
        """Declared sensitivity: of the link."""
        # Of every record h = 1, or h is not asked
        if self.link.linear and (self.most_excess == 0.0 or not self.matrices):
            return 2.0 * ROUNDING
        return sqrt(self.link.squared_sensitivity) * ROUNDING

    @property
    def asks_cut(self):
        """Whether what is cut is asked."""
        return bool(self.most_excess)

    @property
    def fall(self):
        """f, 0 where what is cut is not asked."""
        return min(FALL, self.most_excess / self.limit) if self.most_excess else 0.0

    @property
    def slope_weight(self):
        """Weight of the slope matrix, or of that of all rows where what is cut is asked."""
        return self.link.slope_weight

    @property
    def excess_weight(self):
        """Weight of what is cut."""
        return sqrt(3.0 * self.fall)

    @property
    def square_weight(self):
        """Weight of s^2."""
        return RESIDUAL_WEIGHT if self.asks_cut else 1.0

    @property
    def unit(self):
        """What a score of norm 1 stands for."""
        return self.limit

    @property
    def residual_unit(self):
        """What the entries of uu' / 2 stand for."""
        return self.limit**2 / RESIDUAL_WEIGHT

    @property
    def parts(self):
        """Sizes of what is asked, in the order of the answer."""
        p = len(self.whitened.W)
        if not self.matrices:
            return {"moment": p, "square": 1, "nearly_cut": 1}
        sizes = {"moment": p, "slope": vech_size(p), "square": 1}
        if self.sandwich:
            sizes |= {"residual": vech_size(p)} | ({"nearly_cut": 1} if self.link.counts else {})
        if self.asks_cut:
            sizes |= {"cut_rows": vech_size(p), "excess": 1}
        return sizes

    @property
    def shape(self):
        """Number of coordinates."""
        return (sum(self.parts.values()),)

    @property
    def mapped(self):
        """The same of rows e that are kept: from one on that is not the last of them."""
        if type(self) is not ScoreQuery or self.asks_cut:
            return None
        costly = not isinstance(self.whitened.rows, RowMap)  # hats, for one
        return self.whitened.mapped(self, begin=costly or not (self.matrices and self.link.linear))

    def scores(self, X, y):
        """Yield the `Scores` of one block of rows after the other."""
        link = self.link
        r, roots = scaled_targets(self.whitened.rows, self.target, X, y, link.low)
        for block, e, weights, lengths, factors in self.whitened.blocks(X):
            with np.errstate(all="ignore"):  # overflow, and rows of weight 0
                eta = e @ self.point
                eta /= weights
                eta += self.location
                mean = link.mean(eta)
                residual = r[block] - mean
                if link.linear:
                    residual *= weights
                    inside = np.abs(residual) < self.limit
                    # Where nothing can be cut, the largest residual may be the limit itself
                    h = (inside | (self.most_excess == 0.0)).astype(float)
                else:
                    v = np.minimum(roots[block], link.far * weights)
                    residual *= v * link.thin(mean)
                    h = v / (link.far * weights) * link.slope(eta, mean)
                    h[~(np.abs(residual) < self.limit)] = 0.0
            if not np.isfinite(residual.sum()):  # a label that is none, or an overflow
                known = np.isfinite(residual)
                residual, h = np.where(known, residual, 0.0), np.where(known, h, 0.0)
            s = np.clip(residual / self.limit, -1.0, 1.0)
            yield Scores(e, s, h, residual, lengths, factors)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return self.sum_beside(X, y)

    def sum_beside(self, X, y, beside=None):
        """The same, and with it what else is summed over the same blocks.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        y : ndarray of shape (n_rows,)
        beside : callable, default=None
            Given the `Scores` of one block after the other, it returns places of rows: uu' of the
            others is added to its ``alike``, too.
        """
        parts, moment = self.parts, np.zeros(len(self.point))
        numbers = dict.fromkeys(parts, 0.0)
        grams = {name: self.whitened.empty_gram() for name in MATRICES if name in parts}
        for one in self.scores(X, y):
            e, s, h, residual, lengths, _ = one
            apart = beside(one) if beside else ()
            asked, cut = s, np.flatnonzero(h == 0.0) if self.asks_cut else ()
            if len(cut):
                over = (np.abs(residual[cut]) - self.limit) / float(self.most_excess or 1.0)
                over = np.clip(over, 0.0, 1.0)
                asked = s.copy()
                asked[cut] *= 1.0 - self.fall * over
                numbers["excess"] += self.excess_weight * (lengths[cut] @ over)
                add_gram(grams["cut_rows"], e[cut])
            moment += asked @ e
            if "slope" in grams:
                whole = self.asks_cut or (h == 1.0).all()
                room = None if "residual" in grams else e  # nobody reads them again
                add_gram(grams["slope"], e if whole else np.multiply(e, np.sqrt(h)[:, None], room))
            numbers["square"] += self.square_weight * (s @ s)
            if "nearly_cut" in numbers:
                numbers["nearly_cut"] += self.count_weight * np.count_nonzero(np.abs(s) >= CUT)
            if "residual" in grams:
                e *= s[:, None]
                if len(apart):
                    add_gram(grams["residual"], e[apart])
                    e[apart] = 0.0
                add_gram(beside.alike if beside else grams["residual"], e)
        if beside:
            grams["residual"] += beside.alike
        weights = dict(zip(MATRICES, (self.slope_weight, RESIDUAL_WEIGHT, SIDE_WEIGHT)))
        found = {name: weights[name] * vech(gram) for name, gram in grams.items()}
        found["moment"] = moment
        return np.concatenate([found.get(name, [numbers[name]]) for name in parts])


@dataclass(frozen=True, eq=False)
class PersonScoreQuery(PersonScores, ScoreQuery):
    """Joint sum of (u, c h ee', q s^2, uu' / sqrt(2), k J) over persons.

    u is the sum of the scores e s of a person over m L, shortened to norm 1, and all but u and uu'
    are means over the m places of the person. The squared sensitivity is 4 + 2 c^2 + q^2 + k^2
    for c = q = k = sqrt(1/8): 4.5, for noise that is 6% larger. Proof. u and uu' / sqrt(2) move by
    at most 4 squared, see `joint_sums`. The means A of h ee' are positive semi-definite of trace at
    most 1, so that <A, A'> >= 0 and |A - A'|^2 <= 2. The means of s^2 and J are in [0, 1].

    Parameters
    ----------
    length : float
        L: the part of m at which the sum of the scores of a person is cut; 1 cuts nothing.
    """

    length: float = 1.0
    name: str = "scores of persons"

    @property
    def sensitivity(self):
        """Declared sensitivity."""
        return sqrt(4.0 + 4.0 * SIDE_WEIGHT**2) * ROUNDING

    slope_weight = SIDE_WEIGHT
    square_weight = SIDE_WEIGHT
    count_weight = SIDE_WEIGHT
    asks_cut = False

    @property
    def unit(self):
        """What a score of norm 1 stands for."""
        return self.limit * self.length

    def scored(self, X, y):
        """Rows e s of a chunk, and the slope matrix, squares and counts of its rows."""
        slope, numbers = self.whitened.empty_gram(), np.zeros(2)
        scores = [np.empty((0, len(slope)))]
        for e, s, h, *_ in self.scores(X, y):
            add_gram(slope, e * np.sqrt(h)[:, None])
            numbers += s @ s, np.count_nonzero(np.abs(s) >= CUT)
            scores.append(e * s[:, None])
        square, count = SIDE_WEIGHT * numbers
        beside = {"slope": SIDE_WEIGHT * vech(slope), "square": square, "nearly_cut": count}
        return np.vstack(scores), beside


CUBE = 0.5 * CUT**3  # mean excess over the clip, in clips, of each that is counted: an inverse cube
SMALLEST_LIMIT = 0.5  # deviations: with residuals cut at fewer, their variance is not known


@dataclass(frozen=True, eq=False)
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
    """

    point: np.ndarray
    limit: float
    moment: np.ndarray
    slope: Any
    square: float
    gram: np.ndarray | None
    residual_gram: np.ndarray | None
    nearly_cut: float
    most_excess: float | None
    excess: float
    fall: float
    n: int
    moment_scale: float
    slope_scale: float
    square_scale: float
    gram_scale: float
    residual_scale: float
    cut_scale: float
    excess_scale: float
    widest: float
    length: float = 1.0

    @property
    def cut_length(self):
        """Where scores are cut, in units of a residual: of a person, those of all rows together."""
        return self.limit * self.length

    @property
    def variance(self):
        """Residual variance, with what was cut if residuals are normal."""
        square = max(self.square, 2.0 * self.square_scale, RELATIVE_ZERO)
        if self.limit >= self.widest:
            return square
        return normal_clip(square, self.limit)[1]

    @classmethod
    def of(cls, query, answer):
        """Read the answer to a `ScoreQuery` (its layout is in the query's docstring)."""
        p, limit = len(query.point), query.limit
        found = named_parts(query, answer.value / answer.n)
        unit = answer.noise.scale / answer.n
        one, slope_unit = query.link.steepest / query.slope_weight, query.link.steepest * unit
        slope, gram, slope_scale = None, None, inf
        if query.matrices:
            slope, slope_scale = one * unvech(found["slope"], p), one * unit
        gram_scale, fall, none = 0.0, 0.0, np.zeros(1)
        if query.most_excess is not None:
            gram, gram_scale = slope, slope_scale
        if query.asks_cut:
            fall = query.fall * limit / query.most_excess
            away = (1.0 + fall) / SIDE_WEIGHT
            counted = float(found["nearly_cut"][0]) if "nearly_cut" in found else 1.0
            most = (1.0 + fall) * (max(counted, 0.0) + unit) / query.count_weight
            cut, cut_noise = _shrunk(away * unvech(found["cut_rows"], p), away * slope_unit, most)
            slope, slope_scale = gram - cut, sqrt(slope_scale**2 + cut_noise**2)
        width = query.most_excess / query.excess_weight if query.asks_cut else 0.0
        asked = float("residual" in found)
        meat = query.residual_unit * unvech(found["residual"], p) if asked else None
        square_scale = limit**2 / query.square_weight
        square = square_scale * float(found.get("square", none)[0])
        if meat is not None and "square" not in found:
            square, square_scale = float(np.trace(meat)), query.residual_unit * sqrt(p)
        return cls(
            point=query.point,
            limit=limit,
            moment=query.unit * found["moment"],
            slope=slope,
            square=square,
            gram=gram,
            residual_gram=meat,
            nearly_cut=float(found.get("nearly_cut", none)[0]) / query.count_weight,
            most_excess=query.most_excess,
            excess=float(found.get("excess", none)[0]) * width,
            fall=fall,
            n=answer.n,
            moment_scale=query.unit * unit,
            slope_scale=slope_scale,
            square_scale=square_scale * unit,
            gram_scale=gram_scale,
            residual_scale=query.residual_unit * unit * asked,
            cut_scale=unit / query.count_weight * asked * query.link.counts,
            excess_scale=unit * width,
            widest=1.0 + abs(query.location) if query.link.linear else 1.0,
            length=getattr(query, "length", 1.0),
        )


def _shrunk(matrix, scale, most):
    """A noisy matrix of size at most ``most``, shrunk to 0, and the deviation of its error.

    With b its Frobenius norm, of a direction that has all of it the weight b^2 / (b^2 + s^2) has
    the least mean squared error, which is s^2 times the weight. In no direction is it more, so that
    rows which are cut in one direction alone are no worse than is said. b is known from the bound,
    and from what the matrix has beyond its noise, a chi-squared variable.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        A matrix plus GOE(scale).
    scale : float
        s.
    most : float
        Bound on the Frobenius norm.
    """
    if not scale:
        return matrix, 0.0
    size = len(matrix) * (len(matrix) + 1) / 2.0
    found = float((matrix**2).sum()) - size * scale**2
    square = min(max(found, 0.0) + scale**2 * sqrt(2.0 * size), most**2)
    weight = square / (square + scale**2)
    return weight * matrix, sqrt(weight) * scale


def normal_clip(square, limit):
    """Part of the residuals within the limit, and their variance, if they are normal.

    Parameters
    ----------
    square : float
        Mean of the squares of residuals clipped at the limit.
    limit : float

    Returns
    -------
    (part, variance)
    """
    deviations, squares = _clipped_squares()
    ratio = square / limit**2
    if ratio <= squares[-1]:
        return 1.0, square
    k = float(np.interp(-ratio, -squares, deviations))
    return float(1.0 - 2.0 * special.ndtr(-k)), (limit / k) ** 2


@lru_cache(maxsize=1)
def _clipped_squares():
    """Limits k in deviations of a normal z, and E min(z^2, k^2) / k^2, which decreases."""
    k = np.geomspace(SMALLEST_LIMIT, 8.0, 400)
    tail, density = special.ndtr(-k), np.exp(-(k**2) / 2.0) / sqrt(2.0 * pi)
    return k, (1.0 - 2.0 * tail - 2.0 * k * density) / k**2 + 2.0 * tail
