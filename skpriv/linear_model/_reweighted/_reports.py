"""Re-weighted regression from codebook reports: what users are asked, one index each.

A lifted report is about a row h and a target k, and serves the sums of k h and h h'. With a public
matrix M and l = |M phi|, h = M phi / max(1, l) and k = r / max(1, l) give equations of the same
line: if r has mean phi'theta*, k has mean h'w* for theta* = M w*. Long rows lose weight, as with
the weights of Algorithm 12, and short ones keep theirs. M is the normalisation, with the factor
that makes l about 1 on average: with less the rows are below the noise, with more w* meets it.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from ..._estimation._moments import Instrument
from ..._estimation._reports import LiftedMomentsQuery
from ..._linalg import row_norms, unvech

MOST_SHAPE_NOISE = 0.5  # of an eigenvalue 1 / p: noise above it hides the shape of the rows


@dataclass(frozen=True)
class ReportedNormalisationQuery(LiftedMomentsQuery):
    """Sum of Phi_U = h h', h = U^{1/2} phi / sqrt(||U phi||), from lifted reports about h.

    The sign of the target carries nothing here: its mean is 0. Each report costs epsilon, whatever
    the record and U are.
    """

    instrument: Instrument = Instrument()
    name: str = "normalisation"
    use: ClassVar[str] = "square"

    def records(self, X, y):
        """Rows h, and targets of 0."""
        return self.instrument.halves(self.scaling.rows(X)), np.zeros(len(X))

    def read(self, answer):
        """Noisy mean of Phi_U, and the standard deviation of its orthonormal coordinates."""
        p, n = self.scaling.size, answer.n
        return unvech(answer.value[p:-1], p) / n, answer.noise.square_scale / n

    @property
    def root(self):
        """U^{1/2}, by which Sigma of Eq. (6) is estimated from Phi_U."""
        return self.instrument.root

    def wire(self):
        """The query as a public task has it."""
        U = self.instrument
        weights = {"kind": "halves", "matrix": _listed(U.matrix), "root": _listed(U.root)}
        return {**super().wire(), "weights": weights}


@dataclass(frozen=True)
class ReweightedReportsQuery(LiftedMomentsQuery):
    """Sums of k h and h h', h = M phi / max(1, |M phi|) and k = r / max(1, |M phi|)."""

    instrument: Instrument = Instrument()
    name: str = "re-weighted moments"

    def records(self, X, y):
        """Rows h and targets k."""
        h = self.scaling.rows(X) @ self.instrument.matrix
        weight = 1.0 / np.maximum(row_norms(h), 1.0)
        return h * weight[:, None], self.scaling.target(y) * weight

    def wire(self):
        """The query as a public task has it."""
        weights = {"kind": "whole", "matrix": _listed(self.instrument.matrix)}
        return {**super().wire(), "weights": weights}


def _listed(matrix):
    return np.asarray(matrix).tolist()


def affordable(session, scaling, share, iterations):
    """Number of iterations of the normalisation that reports can tell from noise, at most so many.

    Rows that are alike in all p directions have eigenvalues of 1 / p at most. Where the noise of an
    iteration is above half of that there would be no shape in it, and users are better asked for
    the moments. Everything here is public.
    """
    query = ReportedNormalisationQuery(scaling, instrument=Instrument(np.eye(scaling.size)))
    for count in range(iterations, 0, -1):
        noise = session.noise(query, share / count)
        operator = sqrt(2.0 * scaling.size) * noise.square_scale / noise.reports
        if operator * scaling.size <= MOST_SHAPE_NOISE:
            return count
    return 0
