"""What `LinearRegression` asks of the records, with the sensitivity of each joint release.

All statements are for replacing one record by another, marked with a prime. A row of the map is
phi with ||phi|| <= 1, psi = W phi for a released W, w = min(1, 1 / ||psi||) and e = w psi, so that
||e|| <= 1 whatever W is. r is the target in [-1, 1], and m a released location.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from scipy.linalg import blas

from ..._equations._newton import CUT, FAR
from ..._equations._public_maps import RowMap, TargetMap
from ..._linalg import SQRT2, add_gram, blocks_of, row_norms, unvech, vech, vech_size
from ...privacy import ROUNDING, Query

COUNT_WEIGHT = 0.83  # of the residuals beyond CUT beside the Newton sums: free, see NewtonQuery
SMALL, FAR_WEIGHT = 0.5, 0.57  # that count is free too, of residuals within half of the clip
# Where what is cut is asked, too: the largest part by which a record that is cut counts for less,
# and the weights of s^2 and of the count that leave it free.
FALL, CUT_SQUARE_WEIGHT, CUT_COUNT_WEIGHT = 0.5, 0.5, 0.79
# Ends of the classes of lengths of whitened rows: coarse beyond 2, where rows are few
LENGTHS = 2.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0])


@dataclass(frozen=True)
class LocationQuery(Query):
    """Sum of r in [-1, 1]: replacing a record moves it by at most 2."""

    target: TargetMap
    name: str = "mean of the target"
    shape: tuple = (1,)
    sensitivity: float = 2.0 * ROUNDING

    width = 0  # no column of X

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return np.array([self.target.scaled(y).sum()])


@dataclass(frozen=True)
class SpreadQuery(Query):
    """Sum of min(|r - m|, 1) in [0, 1]: replacing a record moves it by at most 1."""

    target: TargetMap
    location: float
    name: str = "mean deviation of the target"
    shape: tuple = (1,)
    sensitivity: float = 1.0 * ROUNDING

    width = 0  # no column of X

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        return np.array([np.minimum(np.abs(self.target.scaled(y) - self.location), 1.0).sum()])


@dataclass(frozen=True, eq=False)
class ResidualMeanQuery(Query):
    """Sum of clip(r - m - phi'theta, -R, R) / R in [-1, 1]: a record moves it by at most 2.

    Without weights and without the directions of the rows, so that the mean of the fit costs the
    noise of one number.
    """

    rows: RowMap
    target: TargetMap
    location: float
    theta: np.ndarray
    limit: float
    name: str = "mean of the residuals"
    shape: tuple = (1,)
    sensitivity: float = 2.0 * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        residual = self.target.scaled(y) - self.location - self.rows.rows(X) @ self.theta
        return np.array([np.clip(residual / self.limit, -1.0, 1.0).sum()])


@dataclass(frozen=True, eq=False)
class Whitened:
    """Rows e = w W phi and weights w of a chunk.

    Parameters
    ----------
    rows : RowMap, or what stands in its place
    W : ndarray of shape (p, p)
        Cheapest if it is upper triangular: W phi and Q W phi of a rotation Q are alike to all
        queries, whose noise is the same in every direction.
    """

    rows: RowMap
    W: np.ndarray

    def blocks(self, X):
        """Yield (slice, e, w) of one block of rows after the other, which stays in the cache.

        A block is overwritten by the next one.
        """
        room = np.empty(0)
        for block in blocks_of(len(X), len(self.W)):
            if len(room) < block.stop - block.start:
                room = np.empty((block.stop - block.start, len(self.W)))
            yield block, *self(X[block], room[: block.stop - block.start])

    def __call__(self, X, out=None):
        """Return e, shape (n_rows, p), and w, shape (n_rows,)."""
        ours = isinstance(self.rows, RowMap)  # else phi may be theirs
        phi = self.rows.rows(X, out) if ours else self.rows.rows(X)
        if self._shape == "identity":
            e = phi if ours else phi.copy()
        elif self._shape == "triangular":  # in place, at half the price
            e = blas.dtrmm(1.0, self.W, phi.T, overwrite_b=ours).T
        else:
            e = phi @ self.W.T
        norms = row_norms(e)
        if out is not None and not np.isfinite(norms.sum()):  # there is NaN in X
            return self(X)
        weights = np.ones(len(norms))
        if not norms.max(initial=0.0) <= 1.0:
            weights /= np.maximum(1.0, norms)
            e *= weights[:, None]
        return e, weights

    def empty_gram(self):
        """Zeros to which products of rows are added."""
        return np.zeros((len(self.W), len(self.W)), order="F")

    @cached_property
    def _shape(self):
        if np.array_equal(self.W, np.eye(len(self.W))):
            return "identity"
        return "triangular" if np.array_equal(self.W, np.triu(self.W)) else "full"


@dataclass(frozen=True, eq=False)
class WhiteningQuery(Query):
    """Sum of vech ee'.

    |ee' - e'e''|^2 = |e|^4 + |e'|^4 - 2 <e, e'>^2 <= 2 in the Frobenius norm: sensitivity sqrt(2),
    attained at orthogonal unit e and e'.
    """

    whitened: Whitened
    name: str = "whitening"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (vech_size(len(self.whitened.W)),)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        gram = self.whitened.empty_gram()
        for _, e, _ in self.whitened.blocks(X):
            add_gram(gram, e)
        return vech(gram)

    def gram(self, answer):
        """Noisy mean of ee', and the standard deviation of its noise (GOE)."""
        return unvech(answer.value, len(self.whitened.W)) / answer.n, answer.noise.scale / answer.n


@dataclass(frozen=True, eq=False)
class LengthsQuery(Query):
    """Number of rows W phi in each class of lengths, up to each of `LENGTHS` and above.

    A record is in one class: replacing it moves two counts by one, sensitivity sqrt(2).
    """

    whitened: Whitened
    name: str = "lengths of whitened rows"
    shape: tuple = (len(LENGTHS) + 1,)
    sensitivity: float = SQRT2 * ROUNDING

    def sum(self, X, y):
        """Exact counts over a chunk of rows."""
        counts = np.zeros(len(LENGTHS) + 1)
        for block in blocks_of(len(X), len(self.whitened.W)):
            norms = row_norms(self.whitened.rows.rows(X[block]) @ self.whitened.W.T)
            classes = np.searchsorted(LENGTHS, norms)  # NaN, of overflow, is the last
            counts += np.bincount(classes, minlength=len(counts))
        return counts


@dataclass(frozen=True, eq=False)
class FirstMomentsQuery(Query):
    """Joint sum of (e q, vech ee' / sqrt(2), sqrt(2) q^2), q = w clip(r - m, -K, K) / K.

    Sensitivity 2. With a = |e|^2, b = |e'|^2, x = |q|, z = |q'| and t = -<e, e'> (the signs may be
    chosen such that q, q' >= 0, since (-e, -q) gives the same release), the squared change is
    a x^2 + b z^2 + 2 t x z + (a^2 + b^2 - 2 t^2) / 2 + 2 (x^2 - z^2)^2. It increases in a and b for
    a given t, so a = b = 1; then 2 t x z - t^2 is largest at t = x z, which leaves
    X + Z + X Z + 1 + 2 (X - Z)^2 in X = x^2, Z = z^2. That is convex in each: its maximum is at a
    corner, 4 at (1, 1) and at (1, 0). Attained at e' = -e, |e| = |q| = |q'| = 1.
    """

    whitened: Whitened
    target: TargetMap
    location: float
    limit: float
    name: str = "first moments"
    sensitivity: float = 2.0 * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        p = len(self.whitened.W)
        return (p + vech_size(p) + 1,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        p, residual = len(self.whitened.W), self.target.scaled(y) - self.location
        moment, gram, square = np.zeros(p), self.whitened.empty_gram(), 0.0
        for block, e, weights in self.whitened.blocks(X):
            q = weights * np.clip(residual[block] / self.limit, -1.0, 1.0)
            moment += q @ e
            add_gram(gram, e)
            square += q @ q
        return np.concatenate([moment, vech(gram) / SQRT2, [SQRT2 * square]])

    def read(self, answer):
        """Noisy means of e q K, ee' and (q K)^2, and the noise scale of each, as pairs."""
        p, value, scale = len(self.whitened.W), answer.value / answer.n, answer.noise.scale
        scale /= answer.n
        return (
            (self.limit * value[:p], self.limit * scale),
            (SQRT2 * unvech(value[p:-1], p), SQRT2 * scale),
            (self.limit**2 / SQRT2 * value[-1], self.limit**2 / SQRT2 * scale),
        )


@dataclass(frozen=True, eq=False)
class NewtonQuery(Query):
    """Joint sum of (e s, uu'/2, ee'/2, s^2, .83 1{|s| >= .75}, .57 1{|psi| > 2, |s| < .5}).

    Here u = e s, matrices stand for their vech, the last count is there if it is asked for, and
    s = clip(w (r - m) - e'b, -R, R) / R at a released b. Sensitivity 2, that of sum e s alone:
    the other statistics are free. Proof. Let a = |e|^2, b = |e'|^2, x = |s|, z = |s'|; (-e, -s)
    gives the same release, so s, s' >= 0, and t = -<e, e'>. With J and F = 1 if the counts differ,
    D^2 = a x^2 + b z^2 + 2 t x z + (a^2 x^4 + b^2 z^4 - 2 t^2 x^2 z^2) / 4
          + (a^2 + b^2 - 2 t^2) / 4 + (x^2 - z^2)^2 + .83^2 J + .57^2 F.
    1. For given t, x, z it increases in a and in b, and |t| <= sqrt(a b) <= 1: take a = b = 1.
    2. With p = x z, t enters as 2 t p - t^2 (1 + p^2) / 2, whose maximum is 2 p^2 / (1 + p^2). With
       X = x^2 and Z = z^2, D^2 <= g(X, Z) + .83^2 J + .57^2 F where
       g = X + Z + 2 X Z / (1 + X Z) + (5/4)(X^2 + Z^2) - 2 X Z + 1/2, symmetric; take X >= Z.
    3. dg/dX = 1 + 2 Z / (1 + X Z)^2 + 2.5 X - 2 Z >= 1 + .5 X > 0, so X = 1, and
       h(Z) = 11/4 - Z + 2 Z / (1 + Z) + (5/4) Z^2 has h' = -1 + 2 / (1 + Z)^2 + 2.5 Z > 0: by
       (1 + Z)^-2 >= 1 - 2 Z it is at least 1 - 1.5 Z for Z <= 2/3, and 2.5 Z > 1 beyond.
    4. J = F = 0: D^2 <= h(1) = 4, attained at e' = -e, |e| = |s| = |s'| = 1. J = 1, F = 0:
       Z < .75^2, and D^2 < h(9/16) + .83^2 = 3.3031 + .6889 < 4. F = 1: one of them is below 1/4,
       so Z is, and D^2 < h(1/4) + .83^2 + .57^2 = 2.9782 + .6889 + .3249 < 4. In any dimension.
    5. If what is cut is asked for, too, so is sqrt(3 f) |e| h, h = min((|c| - R)_+ / E, 1), with
       the residual c before the clip, the largest excess E and f = min(1/2, E / R): a record that
       is cut gives e s (1 - f h) in place of e s. s^2 has the weight 1/2 then, and the first count
       .79. The new term 3 f (|e| h - |e'| h')^2 is at most 3 f |e|^2 h^2, or that of e', so that
       a = b = 1 is the worst case. With m = x (1 - f h), m' alike, step 2 leaves at most
       2 (m m')^2 / (1 + X Z) of the terms in t. h = h' = 0 is as above, with smaller weights.
       h > 0 = h': X = 1, and D^2 <= (1 - f h)^2 (1 + 2 Z / (1 + Z)) + 3 f h^2 + Z + 3/4 + Z^2 / 4
       + (1 - Z)^2 / 4 + .79^2 J + .57^2 F is convex in h and, at h = 1, in f: h = 0 and f = 0 are
       the case above, and at h = 1, f = 1/2 it increases in Z, to 4 at 1, to 3.994 at 9/16, below
       which J = 1, and to 3.956 at 1/4, below which F = 1.
       h, h' > 0: X = Z = 1, J = F = 0, and D^2 <= (1 + m^2) (1 + m'^2) + 3 f h^2
       <= 2 (1 + m^2) + 3 f h^2 is convex in h, 4 at 0 and 4 - f + 2 f^2 <= 4 at 1.
    """

    whitened: Whitened
    target: TargetMap
    location: float
    point: np.ndarray
    limit: float
    name: str = "Newton step"
    count_far: bool = True
    most_excess: float | None = None

    @property
    def sensitivity(self):
        """Declared sensitivity, whatever is asked."""
        return 2.0 * ROUNDING

    @property
    def fall(self):
        """f, 0 where what is cut is not asked: for None, or 0 where nothing can be."""
        return min(FALL, self.most_excess / self.limit) if self.most_excess else 0.0

    @property
    def excess_weight(self):
        """Weight of what is cut, 0 where it is not asked."""
        return sqrt(3.0 * self.fall)

    @property
    def square_weight(self):
        """Weight of s^2."""
        return CUT_SQUARE_WEIGHT if self.most_excess else 1.0

    @property
    def count_weight(self):
        """Weight of the count of residuals beyond CUT."""
        return CUT_COUNT_WEIGHT if self.most_excess else COUNT_WEIGHT

    @property
    def far_weight(self):
        """Weight of the count of far rows, 0 where it is not asked."""
        return FAR_WEIGHT if self.count_far else 0.0

    @property
    def shape(self):
        """Number of coordinates."""
        p = len(self.whitened.W)
        more = int(self.count_far) + int(bool(self.most_excess))
        return (p + 2 * vech_size(p) + 2 + more,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        cut = 0.0
        p, target = len(self.whitened.W), self.target.scaled(y) - self.location
        moment, tail = np.zeros(p), np.zeros(3)
        gram, residual_gram = self.whitened.empty_gram(), self.whitened.empty_gram()
        for block, e, weights in self.whitened.blocks(X):
            residual = weights * target[block] - e @ self.point
            s = np.clip(residual / self.limit, -1.0, 1.0)
            kept = s
            if self.most_excess:
                over = np.clip((np.abs(residual) - self.limit) / self.most_excess, 0.0, 1.0)
                beyond = np.flatnonzero(over)
                lengths = np.minimum(row_norms(e[beyond]), 1.0)
                cut += self.excess_weight * (lengths @ over[beyond])
                kept = s * (1.0 - self.fall * over)
            moment += kept @ e
            add_gram(gram, e)
            e *= s[:, None]
            add_gram(residual_gram, e)
            size = np.abs(s)
            far = self.far_weight * np.count_nonzero((weights < 1.0 / FAR) & (size < SMALL))
            count = self.count_weight * np.count_nonzero(size >= CUT)
            tail += self.square_weight * (s @ s), count, far
        tail = tail if self.count_far else tail[:2]
        tail = np.append(tail, cut) if self.most_excess else tail
        return np.concatenate([moment, vech(residual_gram) / 2.0, vech(gram) / 2.0, tail])
