"""Public maps of records: a row to phi in the unit ball, a target to [-1, 1], and back."""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from .._linalg import row_norms

# phi = (t z, 1) / sqrt(1 + t^2), t = FEATURE_LENGTH: a unit vector z of features has three times
# the length of the constant, so that whitening starts from features that are above its noise.
FEATURE_LENGTH = 3.0
ORDINARY = (1e-100, 1e100)  # lengths whose squares, and those of far shorter rows, are numbers
FOLD = 16  # rows that one vector operation takes at once


@dataclass(frozen=True, eq=False)
class RowMap:
    """The public map from a row x to phi with ||phi|| <= 1: affine inside the bounds.

    With ranges of the features, z = (x - middle) / (half-width sqrt(d)) after clipping x to them;
    with ``data_norm``, z = x / data_norm after clipping x to that norm. With an intercept
    phi = (t z, 1) / sqrt(1 + t^2), without one phi = z (and then a range is centred at 0).

    Any object with ``size``, ``constant``, ``rows(X)`` and ``features(X)`` can stand in its place.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,), or None
        Ranges of the features.
    data_norm : float or None
        Without ranges: bound on the l2 norm of a row.
    fit_intercept : bool
    n_features : int
    feature_length : float
        t. Equal lengths, 1, give second moments of the least sensitivity for their size.
    """

    low: np.ndarray | None
    high: np.ndarray | None
    data_norm: float | None
    fit_intercept: bool
    n_features: int
    feature_length: float = FEATURE_LENGTH

    @property
    def size(self):
        """Length p of phi."""
        return self.n_features + self.fit_intercept

    @property
    def _norm(self):
        return 1.0 if self.data_norm is None else float(self.data_norm)

    @property
    def _range(self):
        """Ranges, wide open where only the norm is bounded."""
        wide = np.full(self.n_features, np.inf)
        return (-wide, wide) if self.low is None or self.high is None else (self.low, self.high)

    @property
    def offset(self):
        """The row that is mapped to z = 0, shape (n_features,)."""
        if self.low is None or not self.fit_intercept:
            return np.zeros(self.n_features)
        return self._range[0] / 2.0 + self._range[1] / 2.0

    @property
    def divisor(self):
        """What the features are divided by, shape (n_features,)."""
        if self.low is None:
            return np.full(self.n_features, self._norm)
        low, high = self._range
        half = high / 2.0 - low / 2.0
        if not self.fit_intercept:
            half = np.maximum(np.abs(low), np.abs(high))
        return half * sqrt(max(1, self.n_features))

    @property
    def parts(self):
        """Length of z and of the constant in phi."""
        root = sqrt(1.0 + self.feature_length**2)
        return (self.feature_length / root, 1.0 / root) if self.fit_intercept else (1.0, 0.0)

    @property
    def constant(self):
        """The vector c with phi'c = 1 for every row, shape (p,); None without an intercept."""
        if not self.fit_intercept:
            return None
        return np.eye(self.size)[-1] / self.parts[1]

    @property
    def half_ranges(self):
        """Vectors c with phi'c = a feature in half-ranges from its middle; None without ranges."""
        if self.low is None or not self.fit_intercept:
            return None
        return sqrt(max(1, self.n_features)) / self.parts[0] * np.eye(self.n_features, self.size)

    def span(self, theta):
        """Least and largest phi'theta of any row."""
        long, short = self.parts
        slopes, centre = np.asarray(theta[: self.n_features]), 0.0
        if self.fit_intercept:
            centre = short * float(theta[-1])
        if self.low is None:
            reach = long * float(np.linalg.norm(slopes))
        else:
            reach = long / sqrt(max(1, self.n_features)) * float(np.abs(slopes).sum())
        return centre - reach, centre + reach

    def reach(self, W):
        """Length of W phi of a row inside of the bounds that is as long as can easily be found.

        With ranges, of a corner: from the corner nearest to each coordinate of W phi, and from the
        opposite one, all features move to the ends that make it longer until none does. With
        ``data_norm``, of the longest row with one feature.

        Parameters
        ----------
        W : ndarray of shape (p, p)

        Returns
        -------
        float
        """
        long, short = self.parts
        A, b = long * W[:, : self.n_features], np.zeros(len(W))
        if self.fit_intercept:
            b = short * W[:, -1]
        if self.low is None:
            rows = np.concatenate([A.T, -A.T])
            return float(row_norms(rows + b).max(initial=0.0))
        A = A / sqrt(max(1, self.n_features))
        rows = np.where(np.concatenate([A, -A]) < 0.0, -1.0, 1.0)
        # The search stops by itself long before 50 moves
        for _ in range(50):
            better = np.where((rows @ A.T + b) @ A < 0.0, -1.0, 1.0)
            if (better == rows).all():
                break
            rows = better
        return float(row_norms(rows @ A.T + b).max(initial=0.0))

    def clipped(self, X):
        """Rows within the bounds, in the units of X; NaN becomes the middle, or a zero row."""
        if self.low is not None:
            inside = np.clip(np.asarray(X, dtype=np.float64), *self._range)
            return np.where(np.isnan(inside), self.offset, inside)
        X, norms = _finite(np.asarray(X, dtype=np.float64))
        return X * (self._norm / np.maximum(norms, self._norm))[:, None]

    def shortened(self, X):
        """Rows and factors whose product is z, where only the norm of rows is bounded.

        The factor is one number if there is nothing to clip. A sum of terms that are quadratic in
        the rows may then be multiplied by its square afterwards, without a copy of the rows: one
        number leaves the rounding of a sum relative to its largest term what it is.

        Returns
        -------
        (rows, factor) : ndarray of shape (n_rows, n_features), float or ndarray (n_rows,)
        """
        norms = row_norms(X)
        if ORDINARY[0] <= self._norm <= ORDINARY[1] and norms.max(initial=0) <= self._norm:
            return X, 1.0 / self._norm
        X, norms = _finite(X, norms)
        return X, 1.0 / np.maximum(norms, self._norm)

    def outside(self, X):
        """Whether each value is outside of its range, shape (n_rows, n_features); of a row that is
        too long, all are. NaN is not.
        """
        X = np.asarray(X, dtype=np.float64)
        if self.low is not None:
            found = np.empty((2, *X.shape), dtype=bool)
            for compare, end, out in zip((np.less, np.greater), self._range, found, strict=True):
                _by_columns(compare, X, _folded(end, ()), out)
            return found[0] | found[1]
        long = row_norms(X) > self._norm * (1.0 + 1e-9)
        return np.repeat(long[:, None], self.n_features, axis=1)

    def rows(self, X, out=None):
        """Clipped phi of a chunk of rows, of norm at most 1 up to rounding; total.

        NaN becomes the middle of its range, and a row that is not finite the zero row where only
        its norm is bounded.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        out : ndarray of shape (n_rows, p), default=None
            Where to write phi, contiguous; NaN stays NaN then, since who gives it looks at norms.
            None makes a new one.
        """
        if self.low is None:
            X, factor = self.shortened(X)
            return self._phi(X, factor if np.ndim(factor) == 0 else factor[:, None], out)
        # Clipping after the affine map is the same, and as few passes over the rows as can be.
        d, phi = self.n_features, np.empty((len(X), self.size)) if out is None else out
        shift, scale, limit = self._affine
        phi[:, :d], phi[:, d:] = X, 0.0
        if shift is not None:
            _by_columns(np.subtract, phi, shift)
        _by_columns(np.multiply, phi, scale)
        phi.clip(-limit, limit, out=phi)
        phi[:, d:] = self.parts[1]
        if out is None and np.isnan(phi.sum()):
            np.nan_to_num(phi, copy=False, nan=0.0)
        return phi

    @cached_property
    def _affine(self):
        """What is subtracted from the columns of phi, None if it is 0, their factors, and the limit
        of the products.

        A few long vector operations are faster than many short ones, and one number is faster than
        as many equal ones as there are columns. That of the constant is written afterwards.
        """
        long, d = self.parts[0], self.n_features
        more, limit = np.zeros(self.size - d), long / sqrt(max(1, d))
        scale = long / self.divisor
        shift = _folded(self.offset, more) if self.offset.any() else None
        return shift, _folded(scale, more), limit

    def features(self, X):
        """Return phi without clipping, for predictions."""
        if self.low is None:
            return self._phi(X, 1.0 / self._norm)
        return self._phi((X - self.offset) / self.divisor, 1.0)

    def _phi(self, X, factor, phi=None):
        phi = np.empty((len(X), self.size)) if phi is None else phi
        phi[:, : self.n_features], phi[:, self.n_features :] = X, 0.0
        phi *= factor * self.parts[0]  # as long vectors: of a part of the columns it is slower
        phi[:, self.n_features :] = self.parts[1]
        return phi

    def coefficients(self, theta):
        """The same as the product with `coefficient_map`, as (coef, intercept)."""
        long, short = self.parts
        coef = long * theta[: self.n_features] / self.divisor
        return coef, float(short * theta[-1] - coef @ self.offset) if self.fit_intercept else 0.0

    def coefficient_map(self):
        """Matrix L, shape (n_features + 1, p): (coef, intercept) = L theta of phi'theta = x'coef
        + intercept; the last row is zero without an intercept.
        """
        long, short = self.parts
        matrix = np.zeros((self.n_features + 1, self.size))
        slopes = long / self.divisor
        matrix[: self.n_features, : self.n_features] = np.diag(slopes)
        if self.fit_intercept:
            matrix[-1, : self.n_features] = -slopes * self.offset
            matrix[-1, -1] = short
        return matrix

    def theta_bound(self, coef_norm):
        """Bound on |theta| where (coef * half-width, intercept) has norm at most ``coef_norm``."""
        long, short = self.parts
        ranges = 1.0 if self.low is None else sqrt(max(1, self.n_features))
        return coef_norm * max(ranges / long, 1.0 / short if self.fit_intercept else 0.0)

    def theta(self, coef, intercept):
        """Return the parameter of phi for x'coef + intercept; undoes ``coefficient_map``."""
        long, short = self.parts
        theta = np.asarray(coef) * self.divisor / long
        if not self.fit_intercept:
            return theta
        return np.append(theta, (intercept + np.asarray(coef) @ self.offset) / short)


@dataclass(frozen=True)
class TargetMap:
    """The public map from a target y to r in [-1, 1], keeping 0 at 0 if there is no intercept.

    Parameters
    ----------
    bounds_y : (float, float)
    fit_intercept : bool
    """

    bounds_y: tuple
    fit_intercept: bool

    @property
    def centre(self):
        """The target that is mapped to 0."""
        return self.bounds_y[0] / 2.0 + self.bounds_y[1] / 2.0 if self.fit_intercept else 0.0

    @property
    def radius(self):
        """Half the width of bounds_y, or the largest absolute value without an intercept."""
        if not self.fit_intercept:
            return max(map(abs, self.bounds_y))
        return self.bounds_y[1] / 2.0 - self.bounds_y[0] / 2.0

    def scaled(self, y):
        """Clipped r of a chunk of targets; NaN becomes 0."""
        scaled = np.asarray(y, dtype=np.float64).clip(*self.bounds_y)
        scaled -= self.centre
        scaled /= self.radius
        # Again: of narrow bounds far from 0 the centre itself is rounded.
        scaled.clip(-1.0, 1.0, out=scaled)
        if np.isnan(scaled.sum()):
            np.nan_to_num(scaled, copy=False, nan=0.0)
        return scaled

    def unscale(self, value):
        """From scaled units to those of y, clipped to bounds_y."""
        return np.clip(self.centre + self.radius * value, *self.bounds_y)


def _finite(X, norms=None):
    """Rows and their lengths; those that are not finite become zero rows."""
    norms = row_norms(X) if norms is None else norms
    finite = np.isfinite(norms)
    if finite.all():
        return X, norms
    return np.where(finite[:, None], X, 0.0), np.where(finite, norms, 0.0)


def _folded(values, more):
    """One of the values if they are all the same, else them and more for FOLD rows of phi."""
    if len(values) and (values == values[0]).all():
        return values[0]
    return np.tile(np.append(values, more), FOLD)


def _by_columns(operation, rows, folded, out=None):
    """Apply a ufunc with one number, or one a column, to rows, in place if there is no ``out``.

    What is written to is contiguous.
    """
    out = rows if out is None else out
    if np.ndim(folded) == 0:
        operation(rows, folded, out=out)
        return
    whole, width = len(rows) - len(rows) % FOLD, rows.shape[1]
    wide = (-1, FOLD * width)
    operation(rows[:whole].reshape(wide), folded, out=out[:whole].reshape(wide))
    operation(rows[whole:], folded[:width], out=out[whole:])
