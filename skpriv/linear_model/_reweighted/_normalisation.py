"""Queries of re-weighted regression, from rows and from reports, and the learned normalisation.

A lifted report is about a row h and a target k, and serves the sums of k h and h h'. With a public
matrix M and l = |M phi|, h = M phi / max(1, l) and k = r / max(1, l) give equations of the same
line: if r has mean phi'theta*, k has mean h'w* for theta* = M w*. Long rows lose weight, as with
the weights of Algorithm 12, and short ones keep theirs. M is the normalisation, with the factor
that makes l about 1 on average: with less the rows are below the noise, with more w* meets it.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import ClassVar

import numpy as np

from ..._estimation._loop._rules import SUBSET_RESOLUTIONS, part_needed
from ..._estimation._moments import Instrument, NormalEquations
from ..._estimation._reports import LiftedMomentsQuery
from ..._estimation._public_maps import RecordMap
from ..._linalg import (
    HALF_DIGITS,
    RELATIVE_ZERO,
    add_gram,
    psd_part,
    psd_power,
    row_norms,
    unvech,
    vech,
    vech_size,
)
from ...privacy import ROUNDING, Query

# Weights of (W, r^2) beside (xi, Xi): free, see ReweightedMomentsQuery.
REWEIGHTED_SQUARE_WEIGHT = sqrt(1.25)
# In a direction where phi has deviation s, e phi' is about s / sqrt(p). The noise of its sum, of
# sensitivity sqrt(8), has an operator norm of 2 sqrt(8 p) / mu: it hides what is below this times
# p / N, N = n mu. There U is not larger for smaller s, since there is nothing to be found.
HIDDEN_DEVIATION = 2.0 * sqrt(8.0)
EIGENVALUE_FLOOR = 0.1  # of the ridge
# Rows up to this many lengths of a typical one are not weighed, per unit of the precision (mu
# sqrt(n / p) under a curator): privacy noise then stays a few percent of sampling. Below LEAST_FADE
# nothing fades, since the sensitivity would be larger, for little.
FADE, LEAST_FADE = 1.0 / 300.0, 0.5


@dataclass(frozen=True, eq=False)
class NormalisationQuery(Query):
    """Sum of h h', h = U phi / sqrt(l max(l, L)), l = ||U phi||: for l < L that of Eq. (6) over L.

    Positive semi-definite of rank one with trace l / max(l, L) <= 1; two such matrices differ by at
    most sqrt(1 + 1) in Frobenius norm. Sensitivity sqrt(2), attained where U phi and U phi' are
    orthogonal and not shorter than L. (The paper's SymPriv_1 allows for 2, and it asks for
    U^{1/2} phi phi' U^{1/2} / l, of trace 1 at most, which it multiplies by U^{1/2} from both sides
    afterwards: its noise hides small scales again in every iteration, this one hides none that the
    iteration before has found. L is about the mean of l: longer rows count as if they had it.)
    """

    scaling: RecordMap
    instrument: Instrument
    name: str = "normalisation"
    sensitivity: float = sqrt(2.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (vech_size(self.scaling.size),)

    def sum(self, X, y):
        """Exact sum over a chunk of rows, of Q'h for U = QR."""
        total = np.zeros((self.scaling.size, self.scaling.size), order="F")
        for _, phi in self.scaling.row_map.blocks(X):
            add_gram(total, self.instrument.turned(phi, longest=self.longest))
        return vech(total)

    def read(self, answer):
        """Noisy mean of h h', and the standard deviation of its orthonormal coordinates."""
        mean = self.instrument.unturned(unvech(answer.value, self.scaling.size), matrix=True)
        return mean / answer.n, answer.noise.scale / answer.n

    @property
    def longest(self):
        """L, from what was released; ||U phi|| is at most 1 where nothing was."""
        return self.instrument.length

    @property
    def root(self):
        """The matrix B for which B (mean of h h') B' estimates Sigma of Eq. (6)."""
        return sqrt(self.longest) * np.eye(self.scaling.size)


@dataclass(frozen=True, eq=False)
class ReweightedMomentsQuery(Query):
    """Joint sum of (e r, e phi', vech e e', sqrt(5/4) r^2), e = U phi / ||U phi|| (Algorithm 12).

    With p = <e, e'> and q = <phi, phi'> of the two records, the squared change is at most
    (r^2 + r'^2 + 2|p r r'|) + (2 - 2pq) + (2 - 2p^2) + 1.25 (r^2 - r'^2)^2,
    largest at |r| = 1. Without a bound on U, q = 1 is approached as p -> -1: sensitivity 2 sqrt(2).
    For a given U of condition number kappa, angles obey tan(beta/2) >= tan(alpha/2) / kappa (Bauer
    and Householder 1960), and the maximum is smaller: 2.5 for U = I. (Algorithm 12 allows for 6.)

    Of weighted records (s phi, s r) with instruments s e all of it is s^2 <= 1 times what it is of
    (phi, r). The change is convex in s^2 of each, hence largest at 0 or 1: the same, or the norm
    of one record's part, which is at most sqrt(1 + 1 + 1 + 5/4) < 2.5.

    With a floor, where no record has a weight of its own, e may be shorter, and 2 sqrt(2) holds
    still, whatever U is: with a = ||e||, b = ||e'|| and t = |p| the squared change is at most
    a^2 (r^2 + 1) + b^2 (r'^2 + 1) + a^4 + b^4 + 2 t (|r r'| + 1) - 2 t^2 + 1.25 (r^2 - r'^2)^2,
    which grows with a and b; at a = b = 1 it is largest at t = (1 + |r r'|) / 2. With
    |r r'| <= (r^2 + r'^2) / 2 the rest is convex in r^2 and in r'^2, with corners 4.5, 7.375, 8.
    """

    scaling: RecordMap
    instrument: Instrument
    name: str = "re-weighted moments"

    @property
    def sensitivity(self):
        """Largest change for this U, rounded up."""
        if self.instrument.floor > 0.0:
            return sqrt(8.0) * ROUNDING
        return reweighted_sensitivity(self.instrument.condition) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        p = self.scaling.size
        return (p + p * p + vech_size(p) + 1,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows, of Q'e for U = QR."""
        p, r = self.scaling.size, self.scaling.target(y)
        target, design, gram = np.zeros(p), np.zeros((p, p)), np.zeros((p, p), order="F")
        for block, phi in self.scaling.row_map.blocks(X):
            e = self.scaling.row_map.weigh(self.instrument.turned(phi.copy()), X[block])
            target += r[block] @ e
            design += e.T @ phi
            add_gram(gram, e)
        square = REWEIGHTED_SQUARE_WEIGHT * (r @ r)
        return np.concatenate([target, design.ravel(), vech(gram), [square]])

    def equations(self, answer):
        """Normal equations of an answer."""
        p, unturned = self.scaling.size, self.instrument.unturned
        scale = answer.noise.scale
        return NormalEquations(
            design=unturned(answer.value[p : p + p * p].reshape(p, p)),
            target=unturned(answer.value[:p]),
            gram=unturned(unvech(answer.value[p + p * p : -1], p), matrix=True),
            square=float(answer.value[-1]) / REWEIGHTED_SQUARE_WEIGHT,
            n=answer.n,
            symmetric=False,
            design_scale=scale,
            target_scale=scale,
            gram_scale=scale,
        )


def learn_normalisation(session, scaling, share, iterations, fades=False, kind=NormalisationQuery):
    """Algorithm 1: U <- sym(Sigma^{-1/2} U), with the same records in every iteration.

    Under a curator these are all of them, or a secret random part. Its size follows from public
    numbers: n, p and the noise. ``kind`` makes the query of an
    iteration from the scaling and the instrument so far. If it fades, weights are left off the rows
    as far as privacy can afford it, by public numbers.
    """
    U, subset, length = np.eye(scaling.size), None, 1.0
    if session.trust.can.curator and not session.trust.exact:
        subset = session.part(_enough(session, scaling, share))
    for _ in range(iterations):
        instrument = Instrument(U, length=length)
        query = kind(scaling, instrument=instrument)
        noisy, scale = query.read(session.sum(query, share / iterations, subset))
        # lambda: the operator norm that the noise alone would have
        ridge = np.sqrt(2.0 * scaling.size) * scale
        if ridge == 0.0:
            ridge = RELATIVE_ZERO * max(float(np.linalg.norm(noisy, 2)), RELATIVE_ZERO)
        mean = noisy + ridge * np.eye(scaling.size)
        root = query.root
        sigma = root @ psd_part(mean, EIGENVALUE_FLOOR * ridge) @ root  # Eq. (6)
        before = max(float(np.trace(root @ noisy @ root)), EIGENVALUE_FLOOR * ridge)  # E ||U phi||
        # Records over the noise of a sum of sensitivity 1 with the whole budget
        effective_records = sqrt(2.0 * iterations / share) / scale if scale else np.inf
        effective_records *= 1.0 if subset is None else session.n / len(subset)
        sigma += (HIDDEN_DEVIATION * scaling.size / effective_records) ** 2 / before * U @ U
        U = psd_power(U @ np.linalg.inv(sigma) @ U, 0.5)
        # The instrument does not depend on the size of U, but its precision on the condition.
        norm = np.linalg.norm(U, 2)
        U = psd_part(U / norm, 1.0 / HALF_DIGITS)  # rounding stays below margins
        # E ||V phi|| for the new V and the last U, by Cauchy and Schwarz at most the root of
        # E ||U phi|| and E ||V phi||^2 / ||U phi|| = p / norm^2
        length = min(1.0, sqrt(before * scaling.size) / float(norm))
    if not fades:
        return Instrument(U, length=length)
    precision = effective_records / sqrt(session.n * scaling.size)  # sampling is sqrt(n p)
    fade = min(FADE * precision, sqrt(session.n / scaling.size))
    floor = min(1.0, fade * length) if fade >= LEAST_FADE else 0.0
    return Instrument(U, length=length, floor=floor)


def _enough(session, scaling, share):
    """Fraction of the records that the normalisation need ask, from 1 on all of them."""
    n, p = session.n, scaling.size
    noise = session.noise(NormalisationQuery(scaling, Instrument()), share).scale
    resolution = n * sqrt(2.0 / share) / noise / p**1.5  # n mu / p^1.5 of the whole budget
    return part_needed(n, SUBSET_RESOLUTIONS[0] / resolution)


@lru_cache(maxsize=256)
def reweighted_sensitivity(condition):
    """Largest change of (e r, e phi', vech e e', sqrt(5/4) r^2) for U of this condition number.

    The maximum over the angle alpha of e and e' (p = cos alpha) with the least angle beta that phi
    and phi' can have (q = cos beta), and over |r'|. Only p <= 0 matters: mirroring one phi changes
    the signs of p and q, and neither |p| nor pq. The grid's rounding is added.

    Examples
    --------
    >>> from skpriv.linear_model._reweighted._normalisation import reweighted_sensitivity
    >>> round(reweighted_sensitivity(1.0), 3), round(reweighted_sensitivity(1e12), 3)
    (2.5, 2.828)
    """
    # u = 1 / tan(alpha/2)^2 in [0, 1] for alpha in [pi/2, pi]; the maximiser has u ~ 1 / condition.
    u = np.concatenate([np.linspace(0.0, 1.0, 4001), np.geomspace(1e-18, 1.0, 4001)])
    p = (1.0 - u) / (1.0 + u)  # |cos alpha|
    ratio = u * condition**2
    q = (ratio - 1.0) / (ratio + 1.0)  # cos beta at tan(beta/2) = tan(alpha/2) / condition
    r = np.linspace(0.0, 1.0, 101)[:, None]
    square = (1.0 + r**2 + 2.0 * p * r) + (2.0 + 2.0 * p * q) + (2.0 - 2.0 * p**2)
    square += (REWEIGHTED_SQUARE_WEIGHT * (1.0 - r**2)) ** 2
    return float(min(sqrt(8.0), sqrt(square.max()) * (1.0 + 1e-5)))


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
