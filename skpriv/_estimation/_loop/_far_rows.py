"""What weights of far rows take away from the slope of the least-squares line."""

from typing import Any, NamedTuple

import numpy as np

from ..._stored import stored
from .._cells import noise_floor
from ._rows import Whitened, WhiteningQuery

# The length up to which a whitened row counts in full; in steps that is 1. The noise of the matrix
# is its square times that of rows up to 1. At 3 lines were no closer to least squares on 13 tables
# (docs/evidence/coefficients.md).
FAR_LENGTH = 2.0


@stored
class FarRows(NamedTuple):
    """A released Gram matrix of whitened rows, of which those beyond `FAR_LENGTH` are shortened.

    Attributes
    ----------
    gram : ndarray of shape (p, p)
        Mean of v v', v a row psi of length |psi|, or FAR_LENGTH if that is less.
    scale : float
        Standard deviation of its noise (GOE).
    """

    gram: np.ndarray
    scale: float

    @classmethod
    def ask(cls, session: Any, whitened: Whitened, share: float, subset: Any) -> "FarRows":
        """Ask the session for it, with this share of the budget and of these records."""
        shorter = Whitened(whitened.row_map, whitened.W / FAR_LENGTH)
        query = WhiteningQuery(shorter, name="far rows")
        gram, scale = query.gram(session.sum(query, share, subset))
        return cls(FAR_LENGTH**2 * gram, FAR_LENGTH**2 * scale)

    def missing_from(self, slope: np.ndarray, scale: float) -> tuple:
        """What this matrix has beyond a noisy slope and the noise of both.

        Steps give a row beyond the length 1 a weight, so that their slope is smaller than the Gram
        matrix of the rows, in the directions of far rows. The least-squares line has the latter.
        Directions that noise may explain have nothing.

        Parameters
        ----------
        slope : ndarray of shape (p, p)
        scale : float

        Returns
        -------
        (missing, directions, noise)
            What is missing, positive semi-definite, shape (p, p), its k orthonormal directions,
            shape (p, k), and the standard deviation of its noise there (GOE).
        """
        noise = float(np.hypot(scale, self.scale))
        values, vectors = np.linalg.eigh(self.gram - slope)
        found = values > noise_floor(values, noise)
        vectors = vectors[:, found]
        return (vectors * values[found]) @ vectors.T, vectors, noise
