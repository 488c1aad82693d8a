"""What second moments are summed of: rows in the unit ball and targets in [-1, 1], and back."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from .._linalg import add_gram, blocks_of
from ._public_maps import ORDINARY, RowMap, TargetMap


@dataclass(frozen=True)
class Scaling:
    """The public map from a record (x, y) to (phi, r): a `RowMap` of bounded norm, a `TargetMap`.

    phi = x / row_bound without an intercept and (t x / row_bound, 1) / sqrt(1 + t^2) with one.
    Two scalings of the same public numbers are equal, and their sums may be added up.

    Parameters
    ----------
    row_bound : float
        Rows are clipped to this l2 norm; of sparse models, entries to this absolute value.
    bounds_y : (float, float)
        Targets are clipped to this range.
    fit_intercept : bool
    n_features : int
    feature_length : float
        t.
    """

    row_bound: float
    bounds_y: tuple
    fit_intercept: bool
    n_features: int
    feature_length: float = 1.0

    @cached_property
    def row_map(self):
        """The map of rows."""
        public = self.fit_intercept, self.n_features, self.feature_length
        return RowMap(None, None, self.row_bound, *public)

    @cached_property
    def target_map(self):
        """The map of targets."""
        return TargetMap(self.bounds_y, self.fit_intercept)

    @property
    def size(self):
        """Length p of phi."""
        return self.row_map.size

    @property
    def shrink(self):
        """The factor of x / row_bound in phi, which makes room for the constant."""
        return self.row_map.parts[0]

    @property
    def centre(self):
        """The target that is mapped to 0: the middle of bounds_y, or 0 without an intercept."""
        return self.target_map.centre

    @property
    def radius(self):
        """Half the width of bounds_y, or the largest absolute value without an intercept."""
        return self.target_map.radius

    def rows(self, X):
        """Clipped phi of a chunk of rows; rows that are not finite become zero rows."""
        return self.row_map.rows(X)

    def blocks(self, X):
        """Yield (slice, phi) of one block of ``rows`` after the other: it and a product of it fit
        into the cache.
        """
        for block in blocks_of(len(X), 2 * self.size):
            yield block, self.rows(X[block])

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
        d, unit = self.n_features, self._unit
        long, short = self.row_map.parts
        left = np.vstack([left, np.ones(len(X))])
        gram, sums = np.zeros((self.size, self.size), order="F"), np.zeros((len(left), d))
        square, room = np.zeros((d, d), order="F"), np.empty((0, d))
        for block in blocks_of(len(X), d):
            Z, factor = self.row_map.shortened(X[block])
            room = np.empty(Z.shape) if len(room) < len(Z) else room
            if np.ndim(factor):
                Z = np.multiply(Z, (factor * unit)[:, None], out=room[: len(Z)])
            if weigh is not None:
                left[-1, block] = weigh(block, partial(self._fitted, Z))
                Z = np.multiply(Z, left[-1, block, None], out=room[: len(Z)])
            add_gram(square, Z)
            sums += left[:, block] @ Z
        sums *= long / unit
        gram[:d, :d] = square * (long / unit) ** 2
        if self.fit_intercept:
            sums = np.column_stack([sums, short * (left @ left[-1])])
            gram[:, d] = short * sums[-1]
        return gram, sums[:-1]

    def _fitted(self, Z, theta):
        """phi'theta of clipped rows. (Before they are clipped, Z'theta may be no number.)"""
        long, short = self.row_map.parts
        fitted = long * (Z @ theta[: self.n_features]) / self._unit
        return fitted + (short * theta[-1] if self.fit_intercept else 0.0)

    @property
    def _unit(self):
        """Norm up to which rows are summed: one number leaves rounding errors what they are."""
        ordinary = ORDINARY[0] <= self.row_bound <= ORDINARY[1]
        return self.row_bound if ordinary else 1.0

    def features(self, X):
        """Return phi without clipping, for predictions."""
        return self.row_map.features(X)

    def weigh(self, instruments, X):
        """Instruments of rows, which have no weights here."""
        return instruments

    def target(self, y):
        """Clipped r of a chunk of targets; NaN becomes 0."""
        return self.target_map.scaled(y)

    def wire(self):
        """The map as a public task has it."""
        return {
            "n_features": self.n_features,
            "data_norm": self.row_bound,
            "parts": list(self.row_map.parts),
            "bounds_y": list(self.bounds_y),
            "fit_intercept": self.fit_intercept,
        }

    def unscale(self, value):
        """From [-1, 1] to the units of y, clipped to bounds_y."""
        return self.target_map.unscale(value)

    def coefficients(self, theta):
        """Coefficients and intercept in the units of X and y."""
        coef, intercept = self.row_map.coefficients(self.radius * theta)
        return coef, self.centre + intercept

    def scaled(self, coef, intercept):
        """Return the parameter of phi for these coefficients; undoes ``coefficients``."""
        intercept = (intercept - self.centre) / self.radius
        return self.row_map.theta(np.asarray(coef) / self.radius, intercept)

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
        return self.row_map.theta_bound(coef_norm)
