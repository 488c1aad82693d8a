"""Public scaling of records into the unit ball, and of coefficients back."""

from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np

from .._linalg import add_gram, blocks_of, row_norms

ORDINARY = (1e-100, 1e100)  # lengths whose squares, and those of far shorter rows, are numbers


@dataclass(frozen=True)
class Scaling:
    """The public map from a record (x, y) to (phi, r) with ||phi|| <= 1 and |r| <= 1.

    phi = x / row_bound without an intercept and (x / row_bound, 1) / sqrt(2) with one; r maps
    bounds_y into [-1, 1], keeping 0 at 0 if there is no intercept. Nothing is read off the data.

    Parameters
    ----------
    row_bound : float
        Rows are clipped to this l2 norm; of sparse models, entries to this absolute value.
    bounds_y : (float, float)
        Targets are clipped to this range.
    fit_intercept : bool
    n_features : int
    """

    row_bound: float
    bounds_y: tuple
    fit_intercept: bool
    n_features: int

    @property
    def size(self):
        """Length p of phi."""
        return self.n_features + self.fit_intercept

    @property
    def shrink(self):
        """Factor which makes room for the constant in the unit ball."""
        return 1.0 / sqrt(2.0) if self.fit_intercept else 1.0

    @property
    def centre(self):
        """The target that is mapped to 0: the middle of bounds_y, or 0 without an intercept."""
        if not self.fit_intercept:
            return 0.0
        return self.bounds_y[0] / 2 + self.bounds_y[1] / 2

    @property
    def radius(self):
        """Half the width of bounds_y, or the largest absolute value without an intercept."""
        if not self.fit_intercept:
            return max(map(abs, self.bounds_y))
        return self.bounds_y[1] / 2 - self.bounds_y[0] / 2

    def rows(self, X):
        """Clipped phi of a chunk of rows; rows that are not finite become zero rows.

        Returns
        -------
        ndarray of shape (n_rows, p), rows of norm at most 1 up to rounding
        """
        X, factor = self.clipped(X)
        return self._phi(X, (factor if np.ndim(factor) == 0 else factor[:, None]) * self.shrink)

    def blocks(self, X):
        """Yield (slice, phi) of one block of ``rows`` after the other: it and a product of it fit
        into the cache.
        """
        for block in blocks_of(len(X), 2 * self.size):
            yield block, self.rows(X[block])

    def clipped(self, X):
        """Rows and factors whose product is in the unit ball: phi without its constant and shrink.

        The factor is one number if there is nothing to clip. A sum of terms that are quadratic in
        the rows may then be multiplied by its square afterwards, without a copy of the rows: one
        number leaves the rounding of a sum relative to its largest term what it is.

        Returns
        -------
        (rows, factor) : ndarray of shape (n_rows, n_features), float or ndarray (n_rows,)
        """
        norms = row_norms(X)
        if ORDINARY[0] <= self.row_bound <= ORDINARY[1] and norms.max(initial=0) <= self.row_bound:
            return X, 1.0 / self.row_bound
        finite = np.isfinite(norms)
        if not finite.all():
            X, norms = np.where(finite[:, None], X, 0.0), np.where(finite, norms, 0.0)
        return X, 1.0 / np.maximum(norms, self.row_bound)

    def sums(self, X, left, weigh=None):
        """Sums over a chunk of w^2 phi phi' and of left_i w phi, a block in the cache at a time.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        left : ndarray of shape (k, n_rows)
        weigh : callable, default=None
            ``weigh(block, fitted)`` gives weights w in [-1, 1] of a block of rows, where
            ``fitted(theta)`` is phi'theta of its rows. None is 1.

        Returns
        -------
        (gram, sums) : ndarray of shape (p, p), whose upper triangle counts, and of shape (k, p)
        """
        d, shrink, unit = self.n_features, self.shrink, self._unit
        left = np.vstack([left, np.ones(len(X))])
        gram, sums = np.zeros((self.size, self.size), order="F"), np.zeros((len(left), d))
        square, room = np.zeros((d, d), order="F"), np.empty((0, d))
        for block in blocks_of(len(X), d):
            Z, factor = self.clipped(X[block])
            room = np.empty(Z.shape) if len(room) < len(Z) else room
            if np.ndim(factor):
                Z = np.multiply(Z, (factor * unit)[:, None], out=room[: len(Z)])
            if weigh is not None:
                left[-1, block] = weigh(block, partial(self._fitted, Z))
                Z = np.multiply(Z, left[-1, block, None], out=room[: len(Z)])
            add_gram(square, Z)
            sums += left[:, block] @ Z
        sums /= unit
        gram[:d, :d] = square / unit**2
        if self.fit_intercept:
            sums = np.column_stack([sums, left @ left[-1]])
            gram[:, d] = sums[-1]
        return shrink**2 * gram, shrink * sums[:-1]

    def _fitted(self, Z, theta):
        """phi'theta of clipped rows. (Before they are clipped, Z'theta may be no number.)"""
        fitted = Z @ theta[: self.n_features] / self._unit
        return self.shrink * (fitted + (theta[-1] if self.fit_intercept else 0.0))

    @property
    def _unit(self):
        """Norm up to which rows are summed: one number leaves rounding errors what they are."""
        ordinary = ORDINARY[0] <= self.row_bound <= ORDINARY[1]
        return self.row_bound if ordinary else 1.0

    def features(self, X):
        """Return phi without clipping, for predictions."""
        return self._phi(X, self.shrink / self.row_bound)

    def weigh(self, instruments, X):
        """Instruments of rows, which have no weights here."""
        return instruments

    def _phi(self, X, factor):
        phi = np.empty((len(X), self.size))
        phi[:, : self.n_features] = X
        phi[:, self.n_features :] = 0.0
        phi *= factor  # as long vectors: of a part of the columns it is slower
        if self.fit_intercept:
            phi[:, -1] = self.shrink
        return phi

    def target(self, y):
        """Clipped r of a chunk of targets; NaN becomes 0."""
        return scaled_target(y, self.bounds_y, self.centre, self.radius)

    def wire(self):
        """The map as a public task has it."""
        return {
            "n_features": self.n_features,
            "data_norm": self.row_bound,
            "parts": [self.shrink, self.shrink if self.fit_intercept else 0.0],
            "bounds_y": list(self.bounds_y),
            "fit_intercept": self.fit_intercept,
        }

    def unscale(self, value):
        """From [-1, 1] to the units of y, clipped to bounds_y."""
        return np.clip(self.centre + self.radius * value, *self.bounds_y)

    def coefficients(self, theta):
        """Coefficients and intercept in the units of X and y."""
        weights = self.shrink * self.radius * theta
        coef = weights[: self.n_features] / self.row_bound
        return coef, self.centre + (float(weights[-1]) if self.fit_intercept else 0.0)

    def scaled(self, coef, intercept):
        """Return the parameter of phi for these coefficients; undoes ``coefficients``."""
        weights = np.asarray(coef) * self.row_bound
        if self.fit_intercept:
            weights = np.append(weights, intercept - self.centre)
        return weights / (self.shrink * self.radius)

    def penalty(self, alpha):
        """Diagonal ridge on theta which equals ``alpha * ||coef||^2`` in the units of X and y.

        ||y - Xw||^2 + alpha ||w||^2 = radius^2 (||r - phi theta||^2 + sum penalty theta^2), with
        w = shrink radius theta / row_bound; the intercept is free, as in scikit-learn's Ridge.
        """
        diagonal = np.full(self.size, alpha * (self.shrink / self.row_bound) ** 2)
        if self.fit_intercept:
            diagonal[-1] = 0.0
        return diagonal

    def theta_bound(self, coef_norm):
        """Bound on ||theta|| when (coef, intercept) in scaled units has norm at most coef_norm."""
        return coef_norm / self.shrink


def scaled_target(y, bounds, centre, radius):
    """Targets clipped to their bounds and mapped to [-1, 1]; NaN becomes 0."""
    scaled = np.clip(np.asarray(y, dtype=np.float64), *bounds)
    scaled -= centre
    scaled /= radius
    # Again: of narrow bounds far from 0 the centre itself is rounded.
    np.clip(scaled, -1.0, 1.0, out=scaled)
    if np.isnan(scaled.sum()):
        np.nan_to_num(scaled, copy=False, nan=0.0)
    return scaled
