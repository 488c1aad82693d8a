"""Instruments: what multiplies the residual in the normal equations."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._linalg import psd_power, row_norms

TINY = 1e-150  # shorter U phi count as zero: their direction is not representable


@dataclass(frozen=True, eq=False)
class Instrument:
    """Rows e = U phi / ||U phi|| for a public U, or e = phi itself when there is no U.

    Parameters
    ----------
    matrix : ndarray of shape (p, p) or None
        The symmetric positive definite U.
    """

    matrix: np.ndarray | None = None

    def weights(self, phi):
        """1 / ||U phi|| of a chunk of rows, 0 for zero rows; 1 without U."""
        if self.matrix is None:
            return np.ones(len(phi))
        return _inverse(row_norms(phi @ self.matrix))

    def rows(self, phi):
        """Rows e of a chunk. (U (sum w^2 phi phi') U would lose cond(U)^2 in precision.)"""
        if self.matrix is None:
            return phi
        rows = phi @ self.matrix
        rows *= _inverse(row_norms(rows))[:, None]
        return rows

    @cached_property
    def root(self):
        """U^{1/2}, which every chunk of the normalisation needs."""
        return psd_power(self.matrix, 0.5)

    @cached_property
    def condition(self):
        """Condition number of U; 1 without U."""
        if self.matrix is None:
            return 1.0
        values = np.linalg.eigvalsh(self.matrix)
        return float(values[-1] / values[0])


def _inverse(norms):
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > TINY)
