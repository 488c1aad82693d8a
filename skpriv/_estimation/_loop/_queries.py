"""What the loop asks beside its scores, with the sensitivity of each release.

All statements are for replacing one record by another, marked with a prime. A row of the map is
phi with ||phi|| <= 1, psi = W phi for a released W, w = min(1, 1 / ||psi||) and e = w psi, so that
||e|| <= 1 whatever W is. r is the target, and m a released location. Of a row with weight v, w and
e are multiplied by its root.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas

from ..._linalg import SQRT2, add_gram, blocks_of, row_norms, unvech, vech, vech_size
from ...privacy import ROUNDING, Mapped, Query
from .._public_maps import RowMap
from ._links import IDENTITY, MeanLink

SQUARES = 1.5  # c of `MarginsQuery`: as large as costs nothing
LEAST_RATE = 3.0  # records of a class, and records that have a target: there are not fewer
# Ends of the classes of lengths of whitened rows: coarse beyond 2, where rows are few
LENGTHS = 2.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0])


def scaled_targets(rows, target, X, y, low, high=1.0):
    """Targets r in [low, high] of a chunk, NaN for none, and roots of weights in [0, 1].

    Rows with weights have their root as last column, and targets come multiplied by it.
    """
    r = target.scaled(y)
    if not getattr(rows, "weighted", False):
        return r, np.ones(len(r))
    roots = rows.roots(X)
    with np.errstate(all="ignore"):
        return np.clip(r / roots, low, high), roots


@dataclass(frozen=True, eq=False)
class LocationQuery(Query):
    """Sums of v r and of v for weights v in [0, 1] and r in [low, 1] brought to [-1, 1].

    Without weights v is 1, and 0 of a record without a target; of v r alone where all records have
    one. The distance of two records is convex in v and in v', so that it is largest where both are
    0 or 1: |r - r'| <= 2 for v = v' = 1, and |(r, 1)| <= sqrt(2) for v = 1 and v' = 0. Sensitivity
    2, that of the mean alone.
    """

    target: Any
    low: float = -1.0
    rows: Any = None  # with weights, or None
    name: str = "mean of the target"
    sensitivity: float = 2.0 * ROUNDING

    @property
    def weighted(self):
        """Whether the last column of X is the root of a weight."""
        return getattr(self.rows, "weighted", False)

    @property
    def width(self):
        """No column of X, if there are no weights in it."""
        return None if self.weighted else 0

    @property
    def shape(self):
        """One or two numbers: targets of a line are all there."""
        return (1 if self.low and not self.weighted else 2,)

    def sum(self, X, y):
        """Exact sums over a chunk of rows."""
        r, roots = scaled_targets(self.rows, self.target, X, y, self.low)
        known = np.isfinite(r)
        r, v = (2.0 * r[known] - (1.0 + self.low)) / (1.0 - self.low), roots[known] ** 2
        return np.array([v @ r, v.sum()])[: self.shape[0]]

    def read(self, answer):
        """The `Location`."""
        noise, (moment, *part) = answer.noise.scale / answer.n, answer.value / answer.n
        few = LEAST_RATE / answer.n
        part = min(max(float(part[0]), 2.0 * noise, few), 1.0) if part else 1.0
        # Of rates: nobody thinks that they are below those of a few records
        least = 0.0 if self.low else min(few / part, 0.25)
        half = (1.0 - self.low) / 2.0
        mean = (1.0 + self.low) / 2.0 + half * float(moment) / part
        mean = float(np.clip(mean, self.low + least, 1.0 - least))
        return Location(mean, half * noise / part, part)


class Location(NamedTuple):
    """Released mean of the target, the scale of its noise, and the part of the records it is of."""

    mean: float
    scale: float
    part: float


@dataclass(frozen=True, eq=False)
class SpreadQuery(Query):
    """Sum of v min(|r - m|, 1) in [0, 1]: replacing a record moves it by at most 1."""

    target: Any
    location: float
    low: float = -1.0
    rows: Any = None
    name: str = "mean deviation of the target"
    shape: tuple = (1,)
    sensitivity: float = 1.0 * ROUNDING

    weighted, width = LocationQuery.weighted, LocationQuery.width

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        r, roots = scaled_targets(self.rows, self.target, X, y, self.low)
        return np.array([np.nansum(roots**2 * np.minimum(np.abs(r - self.location), 1.0))])


@dataclass(frozen=True, eq=False)
class ResidualMeanQuery(Query):
    """Sum of v clip(r - mu(m + phi'theta), -R, R) / R in [-1, 1]: a record moves it by at most 2.

    Without the weights of far rows and without their directions, so that the mean of the fit costs
    the noise of one number.
    """

    rows: RowMap
    target: Any
    location: float
    theta: np.ndarray
    limit: float
    link: MeanLink = IDENTITY
    name: str = "mean of the residuals"
    shape: tuple = (1,)
    sensitivity: float = 2.0 * ROUNDING

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        r, roots = scaled_targets(self.rows, self.target, X, y, self.link.low)
        rows = self.rows
        phi = rows.plain.rows(X[:, :-1]) if hasattr(rows, "plain") else rows.rows(X)
        with np.errstate(all="ignore"):
            eta = self.location + phi @ self.theta
            residual = roots**2 * np.clip((r - self.link.mean(eta)) / self.limit, -1.0, 1.0)
        return np.array([np.nansum(residual)])


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

    rows: Any
    W: np.ndarray

    def blocks(self, X):
        """Yield (slice, e, w, |e|, f) of one block of rows after the other, which stays in the
        cache. f is what made a row shorter: w but for the root of its weight.

        A block is overwritten by the next one.
        """
        for block, e, norms, roots in self.long_blocks(X):
            if norms.max(initial=0.0) <= 1.0:
                factors = np.ones(len(norms))
            else:
                factors = 1.0 / np.maximum(norms, 1.0)
                e *= factors[:, None]
                roots, norms = roots * factors, np.minimum(norms, 1.0)
            yield block, e, roots, norms, factors

    def long_blocks(self, X):
        """Yield (slice, W phi, |W phi|, roots of weights) of one block after the other."""
        room = np.empty(0)
        for block in blocks_of(len(X), len(self.W)):
            if len(room) < block.stop - block.start:
                room = np.empty((block.stop - block.start, len(self.W)))
            yield block, *self._long(X[block], room[: block.stop - block.start])

    def _long(self, X, out=None):
        """Rows W phi, their norms, and roots of their weights."""
        ours = isinstance(self.rows, RowMap)  # else phi may be theirs
        phi = self.rows.rows(X, out) if ours else self.rows.rows(X)
        if self._shape == "identity":
            psi = phi if ours else phi.copy()
        elif self._shape == "triangular":  # in place, at half the price
            psi = blas.dtrmm(1.0, self.W, phi.T, overwrite_b=ours).T
        else:
            psi = phi @ self.W.T
        norms = row_norms(psi)
        if out is not None and not np.isfinite(norms.sum()):  # there is NaN in X
            return self._long(X)
        weighted = getattr(self.rows, "weighted", False)
        return psi, norms, self.rows.roots(X) if weighted else np.ones(len(norms))

    def mapped(self, query):
        """A query with ``whitened`` as one of rows (e, w) of this, which are kept; None where rows
        have weights of their own.
        """
        if getattr(self.rows, "weighted", False):
            return None
        kept = partial(replace, query, whitened=WhitenedAlready(self.W))
        return Mapped(self.W, len(self.W) + 1, self._records, kept)

    def _records(self, X, y):
        """Rows (e, w) of a chunk, and y."""
        found = np.empty((len(X), len(self.W) + 1))
        for block, e, weights, *_ in self.blocks(X):
            found[block, :-1], found[block, -1] = e, weights
        return found, y

    def empty_gram(self):
        """Zeros to which products of rows are added."""
        return np.zeros((len(self.W), len(self.W)), order="F")

    @cached_property
    def _shape(self):
        if (self.W != np.triu(self.W)).any():
            return "full"
        return "identity" if (self.W == np.eye(len(self.W))).all() else "triangular"


@dataclass(frozen=True, eq=False)
class WhitenedAlready:
    """Stands for `Whitened` where rows are (e, w).

    Parameters
    ----------
    W : ndarray of shape (p, p)
    """

    W: np.ndarray
    rows: Any = None  # they have no weights of their own

    empty_gram = Whitened.empty_gram

    def blocks(self, X):
        """Yield (slice, e, w, None, None) of one block of rows after the other."""
        for block in blocks_of(len(X), X.shape[1]):
            yield block, X[block, :-1], X[block, -1], None, None


@dataclass(frozen=True, eq=False)
class WhiteningQuery(Query):
    """Sum of vech ee'.

    |ee' - e'e''|^2 = |e|^4 + |e'|^4 - 2 <e, e'>^2 <= 2 in the Frobenius norm: sensitivity sqrt(2),
    attained at orthogonal unit e and e'.
    """

    whitened: Whitened
    kept: bool = False  # whether the same rows are asked next
    name: str = "whitening"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (vech_size(len(self.whitened.W)),)

    @property
    def mapped(self):
        """The same of rows e that are kept."""
        return self.whitened.mapped(self) if self.kept else None

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        gram = self.whitened.empty_gram()
        for _, e, *_ in self.whitened.blocks(X):
            add_gram(gram, e)
        return vech(gram)

    def gram(self, answer):
        """Noisy mean of ee', and the standard deviation of its noise (GOE)."""
        return unvech(answer.value, len(self.whitened.W)) / answer.n, answer.noise.scale / answer.n


@dataclass(frozen=True, eq=False)
class MarginsQuery(Query):
    """Sums of z and c z^2 of each feature z, in half-ranges from the middle of its range.

    With a, a' in [-1, 1], t = |a + a'| and |a - a'| <= 2 - t, the square of the change of one
    feature is (a - a')^2 (1 + c^2 t^2), which is at most 4 where t + c^2 t (2 - t)^2 <= 4. The
    second term is at most 32 c^2 / 27, and 4 c^2 / 9 from t = 4 / 3 on, so that c = 3/2 will do: a
    feature changes by at most 2, and all d of them by 2 sqrt(d), attained at opposite corners.
    """

    rows: RowMap
    name: str = "means and squares of features"

    @property
    def shape(self):
        """Number of coordinates."""
        return (2 * self.rows.n_features,)

    @property
    def sensitivity(self):
        """2 sqrt(d)."""
        return 2.0 * self.rows.n_features**0.5 * ROUNDING

    def sum(self, X, y):
        """Exact sums over a chunk of rows."""
        d = self.rows.n_features
        z = np.clip(self.rows.rows(X)[:, :d] * (d**0.5 / self.rows.parts[0]), -1.0, 1.0)
        return np.concatenate([z.sum(axis=0), SQUARES * np.einsum("ij,ij->j", z, z)])


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
        for _, _, norms, _ in self.whitened.long_blocks(X):
            classes = np.searchsorted(LENGTHS, norms)  # infinity, of overflow, is the last
            counts += np.bincount(classes, minlength=len(counts))
        return counts


@dataclass(frozen=True, eq=False)
class ClippedRowsQuery(Query):
    """Numbers of records outside of the bounds, and of those for each value over sqrt(d).

    The values are the features, and the target where its map has bounds. A record moves the first
    count by at most 1, and each of the d others by at most 1 / sqrt(d): sensitivity sqrt(2),
    attained by a record that leaves all bounds and one that leaves none.
    """

    rows: RowMap
    target: Any = None
    name: str = "rows outside of their bounds"
    sensitivity: float = SQRT2 * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (1 + self._columns,)

    @property
    def _columns(self):
        return getattr(self.rows, "n_inputs", self.rows.n_features) + self._bounded

    @property
    def _bounded(self):
        return hasattr(self.target, "outside")

    def sum(self, X, y):
        """Exact counts over a chunk of rows."""
        counts = np.zeros(1 + self._columns)
        for block in blocks_of(len(X), X.shape[1]):
            outside = self.rows.outside(X[block])
            if self._bounded:
                outside = np.column_stack([outside, self.target.outside(y[block])])
            if outside.any():
                counts[0] += np.count_nonzero(outside.any(axis=1))
                counts[1:] += np.count_nonzero(outside, axis=0)
        counts[1:] /= np.sqrt(max(1, self._columns))
        return counts

    def read(self, answer):
        """Noisy parts of the rows, of all bounds and of those of each feature, and the noise of the
        first.
        """
        root = np.sqrt(max(1, self._columns))
        parts = answer.value / answer.n
        return float(parts[0]), root * parts[1:], answer.noise.scale / answer.n
