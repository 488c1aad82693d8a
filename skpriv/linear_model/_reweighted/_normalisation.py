"""A learned normalisation of the rows, and the moments that are re-weighted by it.

A user's report is about a row h and a target k, and serves the sums of k h and of h h'. With a
public matrix M and the length l = |M phi|, the rows h = M phi / max(1, l) and the targets
k = r / max(1, l) have the same regression line: if r has mean phi'theta*, k has mean h'w* for
theta* = M w*. Long rows lose weight, as with the weights of Algorithm 12, and short ones keep
theirs. M is the normalisation times the factor that makes l about 1 on average. With a smaller
factor rows would be below the noise, and with a larger one many would be shortened.
"""

from dataclasses import replace
from functools import lru_cache
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimation._loop._rules import SUBSET_RESOLUTIONS, part_needed
from ..._estimation._moments import Instrument, NormalEquations
from ..._estimation._reports import LiftedMomentsQuery
from ..._linalg import (
    HALF_DIGITS,
    RELATIVE_ZERO,
    add_gram,
    norm_of,
    psd_part,
    row_norms,
    trace_of,
    unvech,
    vech,
    vech_size,
)
from ..._stored import frozen, frozen_object
from ...privacy import ROUNDING, Query

if TYPE_CHECKING:
    from ...privacy import Answer, Session, SessionPart
    from ..._estimation._public_maps import RecordMap
    from ..._contracts import Array

# Weight of r^2 beside the other sums: the largest that costs nothing, see `ReweightedMomentsQuery`.
REWEIGHTED_SQUARE_WEIGHT = sqrt(1.25)


# In a direction where phi has the deviation s, a term e phi' is about s / sqrt(p). The noise of
# their sum, of sensitivity sqrt(8), has an operator norm of 2 sqrt(8 p) / mu: it hides deviations
# below this number times p / N, N = n mu. U grows no further in directions that it hides.
HIDDEN_DEVIATION = 2.0 * sqrt(8.0)


EIGENVALUE_FLOOR = 0.1  # least eigenvalue that is kept of a noisy matrix, as a part of the ridge


# Rows that are shorter than this times the precision (mu sqrt(n / p) under a curator), in lengths
# of a typical row, keep their full weight: privacy noise then stays a few percent of sampling. If
# that is less than LEAST_FADE lengths all rows are weighed, as the sensitivity is smaller then.
FADE = 1.0 / 300.0
LEAST_FADE = 0.5


@frozen_object
class NormalisationQuery(Query):
    """Sum of h h', h = U phi / sqrt(l max(l, L)), l = ||U phi||: for l < L that of Eq. (6) over L.

    Positive semi-definite of rank one with trace l / max(l, L) <= 1; two such matrices differ by at
    most sqrt(1 + 1) in Frobenius norm. Sensitivity sqrt(2), attained where U phi and U phi' are
    orthogonal and not shorter than L. (The paper's SymPriv_1 allows for 2, and it asks for
    U^{1/2} phi phi' U^{1/2} / l, of trace 1 at most, which it multiplies by U^{1/2} from both sides
    afterwards: its noise hides small scales again in every iteration, while this one hides none
    that the iteration before has found. L, the length of the instrument, is about the mean of l, as
    far as it was released, and else 1; longer rows are cut to it.)
    """

    maps: "RecordMap"
    instrument: Instrument
    name = "normalisation"
    sensitivity = sqrt(2.0) * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (vech_size(self.maps.size),)

    def sum(self, X: np.ndarray, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows."""
        total = np.zeros((self.maps.size, self.maps.size))
        for _, phi in self.maps.row_map.in_blocks(X):
            add_gram(total, self.instrument.rows(phi, longest=self.instrument.length))
        return vech(total)

    def read(self, answer: "Answer") -> tuple[np.ndarray, float]:
        """Noisy mean of h h', and the standard deviation of its orthonormal coordinates."""
        return unvech(answer.value, self.maps.size) / answer.n, answer.mean_scale

    @property
    def root(self) -> np.ndarray:
        """The matrix B for which B (mean of h h') B' estimates Sigma of Eq. (6)."""
        return sqrt(self.instrument.length) * np.eye(self.maps.size)


@frozen_object
class ReweightedMomentsQuery(Query):
    """Joint sum of (e r, e phi', vech e e', sqrt(5/4) r^2), e = U phi / ||U phi|| (Algorithm 12).

    With p = <e, e'> and q = <phi, phi'> of the two records, the squared change is at most
    (r^2 + r'^2 + 2|p r r'|) + (2 - 2pq) + (2 - 2p^2) + 1.25 (r^2 - r'^2)^2,
    largest at |r| = 1. Without a bound on U, q = 1 is approached as p -> -1: sensitivity 2 sqrt(2).
    For a given U of condition number kappa, angles obey tan(beta/2) >= tan(alpha/2) / kappa (Bauer
    and Householder 1960), and the maximum is smaller: 2.5 for U = I. (Algorithm 12 allows for 6.)

    For weighted records (s phi, s r) with instruments s e all of it is s^2 <= 1 times what it is of
    (phi, r). The change is convex in s^2 of each, hence largest at 0 or 1: the same, or the norm of
    one record's part, which is at most sqrt(1 + 1 + 1 + 5/4) < 2.5.

    With a floor, where no record has a weight of its own, e may be shorter, and 2 sqrt(2) holds
    still, whatever U is: with a = ||e||, b = ||e'|| and t = |p| the squared change is at most
    a^2 (r^2 + 1) + b^2 (r'^2 + 1) + a^4 + b^4 + 2 t (|r r'| + 1) - 2 t^2 + 1.25 (r^2 - r'^2)^2,
    which grows with a and b; at a = b = 1 it is largest at t = (1 + |r r'|) / 2. With
    |r r'| <= (r^2 + r'^2) / 2 the rest is convex in r^2 and in r'^2, with corners 4.5, 7.375, 8.
    """

    maps: "RecordMap"
    instrument: Instrument
    name = "re-weighted moments"

    @property
    def sensitivity(self) -> float:
        """Largest change for this U, rounded up."""
        if self.instrument.floor > 0.0:
            return sqrt(8.0) * ROUNDING
        return reweighted_sensitivity(self.instrument.condition) * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        p = self.maps.size
        return (p + p * p + vech_size(p) + 1,)

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        p = self.maps.size
        r = self.maps.target(y)
        target = np.zeros(p)
        design = np.zeros((p, p))
        gram = np.zeros((p, p))
        for block, phi in self.maps.row_map.in_blocks(X):
            e = self.maps.row_map.weigh(self.instrument.rows(phi), X[block])
            target += np.dot(r[block], e)  # without the interpreter's lock, see `add_gram`
            design += np.dot(e.T, phi)
            add_gram(gram, e)
        square = REWEIGHTED_SQUARE_WEIGHT * (r @ r)
        return np.concatenate([target, design.ravel(), vech(gram), [square]])

    def equations(self, answer: "Answer") -> NormalEquations:
        """Normal equations of an answer."""
        p = self.maps.size
        target, design, rest = np.split(answer.value, [p, p + p * p])
        found = NormalEquations.of_moments(
            replace(answer, value=np.append(target, rest)), p, REWEIGHTED_SQUARE_WEIGHT
        )
        return replace(found, design=design.reshape(p, p), symmetric=False)


def learn_normalisation(
    session: "Session",
    maps: "RecordMap",
    share: float,
    iterations: int,
    fades: bool = False,
    kind: type[Any] = NormalisationQuery,
) -> Instrument:
    """Algorithm 1: U <- sym(Sigma^{-1/2} U), with the same records in every iteration.

    Under a curator these are all of them, or a secret random part, whose size follows from public
    numbers: n, p and the noise.

    Parameters
    ----------
    session : Session
    maps : RecordMap
    share : float
        Fraction of the session's budget, for all iterations together.
    iterations : int
    fades : bool
        Whether rows keep their full weight as far as public numbers say that privacy affords it.
    kind : type
        Makes the query of an iteration from the record map and the instrument so far.
    """
    p = maps.size
    U = np.eye(p)
    subset = None
    length = 1.0
    if session.trust.can.curator and not session.trust.exact:
        n = session.n
        noise = session.noise(NormalisationQuery(maps, Instrument()), share).scale
        resolution = n * sqrt(2.0 / share) / noise / p**1.5  # n mu / p^1.5 of the whole budget
        subset = session.piece(part_needed(n, SUBSET_RESOLUTIONS[0] / resolution))
    for _ in range(iterations):
        query = kind(maps, instrument=Instrument(U, length=length))
        noisy, scale = query.read(session.sum(query, share / iterations, subset))
        # lambda: the operator norm that the noise alone would have
        ridge = np.sqrt(2.0 * p) * scale
        if ridge == 0.0:
            ridge = RELATIVE_ZERO * max(norm_of(noisy, 2), RELATIVE_ZERO)
        mean = noisy + ridge * np.eye(p)
        root = query.root
        sigma = root @ psd_part(mean, EIGENVALUE_FLOOR * ridge) @ root  # Eq. (6)
        before = max(trace_of(root @ noisy @ root), EIGENVALUE_FLOOR * ridge)  # E ||U phi||
        # Records over the noise of a sum of sensitivity 1 with the whole budget
        effective_records = sqrt(2.0 * iterations / share) / scale if scale else inf
        effective_records *= 1.0 if subset is None else session.n / len(subset)
        sigma += (HIDDEN_DEVIATION * p / effective_records) ** 2 / before * U @ U
        U = psd_part(U @ np.linalg.inv(sigma) @ U, power=0.5)
        # Weighed rows do not depend on the size of U; their rounding depends on its condition.
        norm = norm_of(U, 2)
        U = psd_part(U / norm, 1.0 / HALF_DIGITS)
        # E ||V phi|| for the new V and the last U, by Cauchy and Schwarz at most the root of
        # E ||U phi|| and E ||V phi||^2 / ||U phi|| = p / norm^2
        length = min(1.0, sqrt(before * p) / float(norm))
    if not fades:
        return Instrument(U, length=length)
    precision = effective_records / sqrt(session.n * p)  # sampling is sqrt(n p)
    fade = min(FADE * precision, sqrt(session.n / p))
    floor = min(1.0, fade * length) if fade >= LEAST_FADE else 0.0
    return Instrument(U, length=length, floor=floor)


@lru_cache(maxsize=256)
def reweighted_sensitivity(condition: float) -> float:
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
    return min(sqrt(8.0), sqrt(square.max()) * (1.0 + 1e-5))


MOST_SHAPE_NOISE = 0.5  # noise over an eigenvalue of 1 / p, above which the rows' shape is hidden


@frozen
class ReportedNormalisationQuery(LiftedMomentsQuery):
    """Sum of Phi_U = h h', h = U^{1/2} phi / sqrt(||U phi||), from lifted reports about h.

    The sign of the target carries nothing here: its mean is 0. Each report costs epsilon, whatever
    the record and U are.
    """

    instrument: Instrument = Instrument()
    name = "normalisation"
    use = "square"

    def records(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows h, and targets of 0."""
        return self.instrument.halves(self.maps.rows(X)), np.zeros(len(X))

    def read(self, answer: "Answer") -> tuple[np.ndarray, float]:
        """Noisy mean of Phi_U, and the standard deviation of its orthonormal coordinates."""
        p = self.maps.size
        n = answer.n
        noise: Any = answer.noise
        return unvech(answer.value[p:-1], p) / n, noise.square_scale / n

    @property
    def root(self) -> np.ndarray:
        """U^{1/2}, by which Sigma of Eq. (6) is estimated from Phi_U."""
        return self.instrument.root

    def wire(self) -> dict[str, float | list[float] | str]:
        """The query as a public task has it."""
        U = np.asarray(self.instrument.matrix)
        weights = {"kind": "halves", "matrix": U.tolist(), "root": self.instrument.root.tolist()}
        return {**super().wire(), "weights": weights}


@frozen
class ReweightedReportsQuery(LiftedMomentsQuery):
    """Sums of k h and h h', h = M phi / max(1, |M phi|) and k = r / max(1, |M phi|)."""

    instrument: Instrument = Instrument()
    name = "re-weighted moments"

    def records(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows h and targets k."""
        h = self.maps.rows(X) @ self.instrument.matrix
        weight = 1.0 / np.maximum(row_norms(h), 1.0)
        return h * weight[:, None], self.maps.target(y) * weight

    def wire(self) -> dict[str, float | list[float] | str]:
        """The query as a public task has it."""
        weights = {"kind": "whole", "matrix": np.asarray(self.instrument.matrix).tolist()}
        return {**super().wire(), "weights": weights}


def affordable(
    session: "Session | SessionPart", maps: "RecordMap", share: float, iterations: int
) -> int:
    """Largest number of iterations, up to the given one, whose answers stand out of their noise.

    Rows that are alike in all p directions have eigenvalues of 1 / p at most. If the noise of an
    iteration is above half of that, the answer would not show the shape of the rows, and users are
    better asked for the moments. All numbers here are public.
    """
    query = ReportedNormalisationQuery(maps, instrument=Instrument(np.eye(maps.size)))
    for count in range(iterations, 0, -1):
        noise = session.noise(query, share / count)
        operator = sqrt(2.0 * maps.size) * noise.square_scale / noise.reports
        if operator * maps.size <= MOST_SHAPE_NOISE:
            return count
    return 0
