"""Instruments: what multiplies the residual in the normal equations."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._linalg import psd_power, row_norms

SHORTEST = 1e-150  # shorter U phi count as zero: their direction is not representable


@dataclass(frozen=True, eq=False)
class Instrument:
    """Rows e = U phi / ||U phi|| for a public U, or e = phi itself when there is no U.

    Parameters
    ----------
    matrix : ndarray of shape (p, p) or None
        The symmetric positive definite U.
    """

    matrix: np.ndarray | None = None

    def halves(self, phi):
        """Rows h = U^{1/2} phi / sqrt(||U phi||) of a chunk, of norm at most 1 whatever rounding.

        Without U, phi itself. U^{1/2} is applied to rows and not to their sum, in which rounding
        errors of weights as large as cond(U) would be left over.
        """
        if self.matrix is None:
            return phi
        lengths = row_norms(phi @ self.matrix)
        halves = phi @ self.root
        halves *= np.sqrt(_inverse(lengths))[:, None]
        halves /= np.maximum(row_norms(halves), 1.0)[:, None]
        return halves

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
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > SHORTEST)
