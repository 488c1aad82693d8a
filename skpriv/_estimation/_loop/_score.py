"""The one question of the loop: clipped scores at a point, their slope, and what comes free."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from ..._linalg import add_gram, vech, vech_size
from ...privacy import ROUNDING, Query
from .._public_maps import TargetMap
from ._links import IDENTITY, Link
from ._queries import Whitened, handed

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
    link : Link
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
    link: Link = IDENTITY
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
        return self.whitened.mapped(self, begin=not (self.matrices and self.link.linear))

    def scores(self, X, y):
        """Yield the `Scores` of one block of rows after the other."""
        link = self.link
        r, roots = handed(self.whitened.rows, self.target, X, y, link.low)
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
