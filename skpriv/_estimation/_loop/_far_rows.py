"""Rows that steps weigh down: what a slope misses, and by how much scores are shortened there."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ..._linalg import add_gram, psd_part, quadratic_forms, vech
from ..._stored import frozen_object, stored
from .._cells import noise_floor, split
from ._rows import WhiteningQuery

if TYPE_CHECKING:
    from ..._contracts import Array

# The length up to which a whitened row counts in full; in steps that is 1. At 3 lines were no
# closer to least squares on 13 tables (docs/evidence/coefficients.md).
FAR_LENGTH = 2.0
# How many times shorter scores may be in the directions of far rows: rows of the length FAR_LENGTH
# are then as long as usual ones, and so are rows four times as long. Measured.
SHORTER = 1.0, 4.0
# Chance that noise passes for far rows along any eigenvector of the slope
SELDOM = 0.025


@frozen_object
class FarRowsQuery(WhiteningQuery):
    """Sum of vech g ee', g = (min(|psi|, L)^2 - 1)_+ for L = FAR_LENGTH.

    e is psi shortened to the length 1, and g is in [0, L^2 - 1], 0 where psi is no longer. So
    |g ee' - g' e'e''|^2 <= g^2 |e|^4 + g'^2 |e'|^4 <= 2 (L^2 - 1)^2: sensitivity
    sqrt(2) (L^2 - 1), attained at orthogonal rows of the length L.
    """

    name = "far rows"
    sensitivity = (FAR_LENGTH**2 - 1.0) * WhiteningQuery.sensitivity

    def sum(self, X: np.ndarray, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows."""
        total = np.zeros(self.whitened.W.shape)
        for _, e, _, _, factors in self.whitened.blocks(X):
            far = factors < 1.0  # g is 0 elsewhere
            g = np.minimum(1.0 / factors[far], FAR_LENGTH) ** 2 - 1.0
            add_gram(total, e[far] * np.sqrt(g)[:, None])
        return vech(total)


@stored
class FarRows(NamedTuple):
    """The part of the Gram matrix of whitened rows that weights of steps take away, as released.

    Attributes
    ----------
    gram : ndarray of shape (p, p)
        Mean of vv' - ee': e is a row psi shortened to the length 1, and v to FAR_LENGTH.
    scale : float
        Standard deviation of its noise (GOE).
    farther : float
        Part of it that counts as one deviation of the slope, since rows beyond FAR_LENGTH are asked
        as if they had it: the logarithm of how many times as long the bounds allow a row to be. If
        lengths x fall like x^-2, each factor of e has as much of the mean square as any other.
    """

    gram: np.ndarray
    scale: float
    farther: float = 0.5  # that of the files of earlier versions

    def missing(self, slope: np.ndarray, rare: Any = ()) -> tuple[np.ndarray, np.ndarray]:
        """The part that the slope of steps lacks in directions of far rows, and the noise there.

        Steps give a row beyond the length 1 a weight, so that their slope is smaller than the Gram
        matrix of the rows. The least-squares line has the latter. Directions that noise may explain
        have nothing: of the eigenvectors of this matrix and then, of what is left of it, of those
        of the slope, in the weakest of which the rows of a rare level are.

        Parameters
        ----------
        slope : ndarray of shape (p, p)
        rare : ndarray of shape (n_rare, p)
            Directions of rare cells, which are left out.

        Returns
        -------
        (missing, directions)
            What is missing, positive semi-definite, shape (p, p), and its k orthonormal directions,
            shape (p, k).
        """
        _, across = split(rare, len(slope))
        gram = across.T @ self.gram @ across
        values, vectors = np.linalg.eigh(gram)
        values = np.where(values > noise_floor(values, self.scale), values, 0.0)
        found = vectors[:, values > 0.0]
        rest = gram - (vectors * values) @ vectors.T
        _, vectors = np.linalg.eigh(across.T @ slope @ across)
        least = -ndtri(SELDOM / len(slope)) * self.scale
        single = vectors[:, quadratic_forms(vectors.T, rest) > least]
        vectors, _ = split(np.hstack([found, single]).T, len(gram))
        missing = psd_part(vectors.T @ gram @ vectors)
        vectors = across @ vectors
        return vectors @ missing @ vectors.T, vectors

    def shorter(self, slope: np.ndarray, least: float, length: float) -> list[np.ndarray]:
        """Matrices to coordinates in which far rows are shorter; none where there are no far rows.

        Let K be what the slope D misses, relative to it: the squared length of far rows less 1, for
        a direction that has no other rows. In such coordinates the squared length of u is u'M^-1 u
        with M = I + K s^2 / length^2, for s in SHORTER.

        Parameters
        ----------
        slope : ndarray of shape (p, p)
        least : float
            Its smallest eigenvalue that is told from noise.
        length : float
            Root mean square length of a whitened row.
        """
        missing, found = self.missing(slope)
        root = psd_part(slope, least, -0.5) / length
        squares, vectors = np.linalg.eigh(root @ missing @ root)
        squares = np.maximum(squares, 0.0)
        times = SHORTER if found.size else ()
        return [(vectors / np.sqrt(1.0 + squares * s**2)) @ vectors.T for s in times]
