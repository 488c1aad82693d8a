"""Re-weighted regression: a learned normalisation of the rows, and the two solvers that need it.

A user's report is about a row h and a target k, and serves the sums of k h and of h h'. With a
public matrix M and the length l = |M phi|, the rows h = M phi / max(1, l) and the targets
k = r / max(1, l) have the same regression line: if r has mean phi'theta*, k has mean h'w* for
theta* = M w*. Long rows lose weight, as with the weights of Algorithm 12, and short ones keep
theirs. M is the normalisation times the factor that makes l about 1 on average. With a smaller
factor rows would be below the noise, and with a larger one many would be shortened.

Confidence intervals come from one released gradient, for any increasing link. For a public point
theta = U w and the truth theta* = U w*, u = w - w*, the mean gradients differ by M u with mu S <= M
<= L S, S the mean of U phi phi' U / ||U phi|| and (mu, L) the slope bounds of the link on the ball.
The gradient at the truth is a mean of n independent centred terms of norm at most one, and M u = g
+ noise for the released g. Every bound below follows from that and three events (the norm of the
gradient's noise, of the gradient at the truth, and the largest eigenvalue of the noise of S): none
needs that the descent converged, nor a condition on U or on the eigenvalues of S.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import ceil, inf, log, sqrt
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy import stats

from .._compat import StrOptions
from .._estimation._coefficients import CoefficientLaw, NoLaw
from .._estimation._intervals import event, inside_bounds, operator_quantile, split_failure
from .._estimation._links import LINKS, IdentityLink, Link, LogitLink
from .._estimation._loop._rules import SUBSET_RESOLUTIONS, part_needed
from .._estimation._moments import Instrument, NormalEquations
from .._estimation._public_maps import RecordMap
from .._estimation._reports import LiftedMomentsQuery, moments_query
from .._linalg import (
    HALF_DIGITS,
    RELATIVE_ZERO,
    add_gram,
    nearest_in_ball,
    psd_part,
    psd_power,
    row_norms,
    unvech,
    vech,
    vech_size,
)  # fmt: skip
from .._parameters import Count, Estimand, parameters
from .._stored import stored
from ..privacy import ROUNDING, InnerSum, Procedure, Query
from ._moments import MomentRegressor, residual_share, weighted_records
from ._opening import channel_of, held_out_size, hold_out, open_fit, scaled_rows
from ._prediction_intervals import calibration

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
FADE, LEAST_FADE = 1.0 / 300.0, 0.5


@dataclass(frozen=True, eq=False)
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

    maps: RecordMap
    instrument: Instrument
    name: str = "normalisation"
    sensitivity: float = sqrt(2.0) * ROUNDING

    @property
    def shape(self):
        """Number of coordinates."""
        return (vech_size(self.maps.size),)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        total = np.zeros((self.maps.size, self.maps.size))
        for _, phi in self.maps.row_map.in_blocks(X):
            add_gram(total, self.instrument.rows(phi, longest=self.instrument.length))
        return vech(total)

    def read(self, answer):
        """Noisy mean of h h', and the standard deviation of its orthonormal coordinates."""
        return unvech(answer.value, self.maps.size) / answer.n, answer.noise.scale / answer.n

    @property
    def root(self):
        """The matrix B for which B (mean of h h') B' estimates Sigma of Eq. (6)."""
        return sqrt(self.instrument.length) * np.eye(self.maps.size)


@dataclass(frozen=True, eq=False)
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

    maps: RecordMap
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
        p = self.maps.size
        return (p + p * p + vech_size(p) + 1,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        p, r = self.maps.size, self.maps.target(y)
        target, design, gram = np.zeros(p), np.zeros((p, p)), np.zeros((p, p))
        for block, phi in self.maps.row_map.in_blocks(X):
            e = self.maps.row_map.weigh(self.instrument.rows(phi), X[block])
            target += np.dot(r[block], e)  # without the interpreter's lock, see `add_gram`
            design += np.dot(e.T, phi)
            add_gram(gram, e)
        square = REWEIGHTED_SQUARE_WEIGHT * (r @ r)
        return np.concatenate([target, design.ravel(), vech(gram), [square]])

    def equations(self, answer):
        """Normal equations of an answer."""
        p = self.maps.size
        target, design, rest = np.split(answer.value, [p, p + p * p])
        found = NormalEquations.of_moments(
            replace(answer, value=np.append(target, rest)), p, REWEIGHTED_SQUARE_WEIGHT
        )
        return replace(found, design=design.reshape(p, p), symmetric=False)


def learn_normalisation(session, maps, share, iterations, fades=False, kind=NormalisationQuery):
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
    U, subset, length = np.eye(maps.size), None, 1.0
    if session.trust.can.curator and not session.trust.exact:
        n, p = session.n, maps.size
        noise = session.noise(NormalisationQuery(maps, Instrument()), share).scale
        resolution = n * sqrt(2.0 / share) / noise / p**1.5  # n mu / p^1.5 of the whole budget
        subset = session.part(part_needed(n, SUBSET_RESOLUTIONS[0] / resolution))
    for _ in range(iterations):
        instrument = Instrument(U, length=length)
        query = kind(maps, instrument=instrument)
        noisy, scale = query.read(session.sum(query, share / iterations, subset))
        # lambda: the operator norm that the noise alone would have
        ridge = np.sqrt(2.0 * maps.size) * scale
        if ridge == 0.0:
            ridge = RELATIVE_ZERO * max(float(np.linalg.norm(noisy, 2)), RELATIVE_ZERO)
        mean = noisy + ridge * np.eye(maps.size)
        root = query.root
        sigma = root @ psd_part(mean, EIGENVALUE_FLOOR * ridge) @ root  # Eq. (6)
        before = max(float(np.trace(root @ noisy @ root)), EIGENVALUE_FLOOR * ridge)  # E ||U phi||
        # Records over the noise of a sum of sensitivity 1 with the whole budget
        effective_records = sqrt(2.0 * iterations / share) / scale if scale else np.inf
        effective_records *= 1.0 if subset is None else session.n / len(subset)
        sigma += (HIDDEN_DEVIATION * maps.size / effective_records) ** 2 / before * U @ U
        U = psd_power(U @ np.linalg.inv(sigma) @ U, 0.5)
        # Weighed rows do not depend on the size of U; their rounding depends on its condition.
        norm = np.linalg.norm(U, 2)
        U = psd_part(U / norm, 1.0 / HALF_DIGITS)
        # E ||V phi|| for the new V and the last U, by Cauchy and Schwarz at most the root of
        # E ||U phi|| and E ||V phi||^2 / ||U phi|| = p / norm^2
        length = min(1.0, sqrt(before * maps.size) / float(norm))
    if not fades:
        return Instrument(U, length=length)
    precision = effective_records / sqrt(session.n * maps.size)  # sampling is sqrt(n p)
    fade = min(FADE * precision, sqrt(session.n / maps.size))
    floor = min(1.0, fade * length) if fade >= LEAST_FADE else 0.0
    return Instrument(U, length=length, floor=floor)


@lru_cache(maxsize=256)
def reweighted_sensitivity(condition):
    """Largest change of (e r, e phi', vech e e', sqrt(5/4) r^2) for U of this condition number.

    The maximum over the angle alpha of e and e' (p = cos alpha) with the least angle beta that phi
    and phi' can have (q = cos beta), and over |r'|. Only p <= 0 matters: mirroring one phi changes
    the signs of p and q, and neither |p| nor pq. The grid's rounding is added.

    Examples
    --------
    >>> from skpriv.linear_model._reweighted import reweighted_sensitivity
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


MOST_SHAPE_NOISE = 0.5  # noise over an eigenvalue of 1 / p, above which the rows' shape is hidden


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
        return self.instrument.halves(self.maps.rows(X)), np.zeros(len(X))

    def read(self, answer):
        """Noisy mean of Phi_U, and the standard deviation of its orthonormal coordinates."""
        p, n = self.maps.size, answer.n
        return unvech(answer.value[p:-1], p) / n, answer.noise.square_scale / n

    @property
    def root(self):
        """U^{1/2}, by which Sigma of Eq. (6) is estimated from Phi_U."""
        return self.instrument.root

    def wire(self):
        """The query as a public task has it."""
        U, root = np.asarray(self.instrument.matrix), self.instrument.root
        weights = {"kind": "halves", "matrix": U.tolist(), "root": root.tolist()}
        return {**super().wire(), "weights": weights}


@dataclass(frozen=True)
class ReweightedReportsQuery(LiftedMomentsQuery):
    """Sums of k h and h h', h = M phi / max(1, |M phi|) and k = r / max(1, |M phi|)."""

    instrument: Instrument = Instrument()
    name: str = "re-weighted moments"

    def records(self, X, y):
        """Rows h and targets k."""
        h = self.maps.rows(X) @ self.instrument.matrix
        weight = 1.0 / np.maximum(row_norms(h), 1.0)
        return h * weight[:, None], self.maps.target(y) * weight

    def wire(self):
        """The query as a public task has it."""
        weights = {"kind": "whole", "matrix": np.asarray(self.instrument.matrix).tolist()}
        return {**super().wire(), "weights": weights}


def affordable(session, maps, share, iterations):
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


# Public grid of ridges lambda', in the units of H (whose trace is at most one).
RIDGES = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 37)])
# Weights of the failure probability: of the gradient at the truth, and of the noises of both sums.
CERTIFICATE_PARTS = (0.5, 0.45, 0.05)


@stored
@dataclass(frozen=True, eq=False)
class GradientCertificate:
    """Released gradient and mean of Phi_U at a public point.

    Attributes
    ----------
    link : Link
    U : ndarray of shape (p, p)
    theta : ndarray of shape (p,)
        The public point at which the gradient was taken.
    gradient : ndarray of shape (p,)
        Noisy mean of e (nu(<phi, theta>) - r).
    gradient_scale : float
    mean_phi : ndarray of shape (p, p)
        Noisy mean of Phi_U, over the same records.
    mean_scale : float
    n : int
        Number of records.
    """

    link: Link
    U: np.ndarray
    theta: np.ndarray
    gradient: np.ndarray
    gradient_scale: float
    mean_phi: np.ndarray
    mean_scale: float
    n: int

    def interval(self, points, radius, confidence_level):
        """Bounds on the mean in [-1, 1] which hold at all points at once.

        Parameters
        ----------
        points : ndarray of shape (n_points, p)
        radius : float
            Assumed bound on ||theta*||.
        confidence_level : float

        Returns
        -------
        (low, high) : ndarrays of shape (n_points,)
        """
        residual, slack = self._events(1.0 - confidence_level)
        reach = radius + np.linalg.norm(self.theta)
        slopes = self.link.slope_bounds(max(radius, float(np.linalg.norm(self.theta))))
        trivial = radius * np.linalg.norm(points, axis=1)
        centre, half = np.zeros(len(points)), trivial
        for ridge in RIDGES:
            smallest = float(np.linalg.eigvalsh(self.mean_phi)[0]) + ridge
            if smallest <= slack or smallest <= 0.0:
                continue
            for middle, width in (
                self._about_point(points, ridge, slopes, residual, slack, reach),
                self._about_step(points, ridge, slopes, residual, slack, reach),
            ):
                better = width < half
                centre, half = np.where(better, middle, centre), np.where(better, width, half)
        # Both ends may lie beyond: the interval then ends there with the width that it has
        low = np.clip(np.minimum(centre, trivial) - half, -trivial, trivial)
        high = np.clip(np.maximum(centre, -trivial) + half, -trivial, trivial)
        return self.link.mean(low), self.link.mean(high)

    def _events(self, failure):
        """Bounds on the noise of the gradient plus the gradient at the truth, and on the noise of
        H.

        The gradient at the truth is sum e zeta / n with E ||.||^2 <= 1 / n and, given the rows, a
        sub-Gaussian vector with proxy sum e e' / n^2 of trace at most 1 / n (Hsu, Kakade and Zhang
        2012): its dimension does not matter.
        """
        noisy = self.gradient_scale > 0.0
        weights = CERTIFICATE_PARTS if noisy else (1.0, 0.0, 0.0)
        truth, of_gradient, of_mean = split_failure(failure, *weights)
        length = log(1.0 / event("gradient at the truth", truth))
        residual = sqrt((1.0 + 2.0 * sqrt(length) + 2.0 * length) / self.n)
        if not noisy:
            return residual, 0.0
        p = len(self.theta)
        of_gradient = event("noise of the gradient", of_gradient)
        residual += self.gradient_scale * stats.chi.isf(of_gradient, p)
        two_sided = split_failure(of_mean, 1.0, 1.0)  # the eigenvalues above and below
        names = ("eigenvalue of the noise of H", "eigenvalue of minus the noise of H")
        return residual, operator_quantile(self.mean_scale, p, min(map(event, names, two_sided)))

    def _about_point(self, points, ridge, slopes, residual, slack, reach):
        """|<phi, theta - theta*>| <= ||U phi|| ||u||, and strong monotonicity bounds ||u||."""
        p = len(self.theta)
        root = psd_power(self.U, 0.5)
        below = root @ (self.mean_phi + (ridge - slack) * np.eye(p)) @ root
        size = np.linalg.norm(self.gradient) + residual + slopes[0] * ridge * reach
        radius = size / (slopes[0] * np.linalg.eigvalsh(below)[0])
        return points @ self.theta, np.linalg.norm(points @ self.U, axis=1) * radius

    def _about_step(self, points, ridge, slopes, residual, slack, reach):
        """The same about the point after one more step, which is closer to the truth.

        With c the middle slope, M + c ridge U = c b (S' + E), where S' is the released S plus
        ridge U and ||S'^{-1/2} E S'^{-1/2}|| <= spread < 1; so u = z + S'^{-1} (noise / (c b) - E
        u) for the step z = S'^{-1} g / (c b). For the identity link only the noise of S is in E.
        """
        root = psd_power(self.U, 0.5)
        sigma = root @ (self.mean_phi + ridge * np.eye(len(root))) @ root
        values, vectors = np.linalg.eigh(sigma)
        relative = slack / float(np.linalg.eigvalsh(self.mean_phi)[0] + ridge)
        middle = sum(slopes) / 2.0
        low, high = slopes[0] * (1.0 - relative), slopes[1] * (1.0 + relative)
        average, spread = (low + high) / 2.0, (high - low) / (high + low)
        noise = (residual + middle * ridge * reach) / average
        rotated = points @ self.U @ vectors  # <phi, U v> = <U phi, v>
        dual = np.sqrt((rotated**2 / values).sum(axis=1))  # ||U phi|| in the norm of S'^{-1}
        inverse = np.sqrt(((rotated / values) ** 2).sum(axis=1))
        step = vectors.T @ self.gradient / average
        step_size = sqrt((step**2 / values).sum())  # ||z|| in the norm of S'
        beyond = (spread * step_size + noise / sqrt(values[0])) / (1.0 - spread)  # ||u - z||
        width = np.minimum(dual * beyond, inverse * noise + dual * spread * (step_size + beyond))
        return points @ self.theta - rotated @ (step / values), width


# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025):
#   theta = U w,  mean of the link -> nu,  instrument e -> U phi / ||U phi||,  mean_phi -> H,
#   sigma -> U^{1/2} (H + lambda) U^{1/2},  radius -> the bound on ||theta*||

# Each step takes GROWTH times the share of the one before it: early steps only have to come near,
# and the last gradient is both the last step and the interval's certificate.
STEPS, GROWTH = {"budget": 5, "users": 2}, {"budget": 2.5, "users": 2.0}
# Steps of a curved link must converge further the smaller the noise is: above the precision PRECISE
# (mu sqrt(n / p)) they are FURTHER more for each factor e.
FURTHER, PRECISE = 3.0, 150.0

MAX_ITER, SMALL = 500, 1e-5  # of the minimiser without noise: steps, and that of its slopes


def step_shares(divides, link, precision):
    """Parts of the regression's share that the steps take, in their order, by public numbers."""
    steps = STEPS[divides]
    if divides == "budget" and not link.linear:
        steps += ceil(FURTHER * log(max(1.0, precision / PRECISE)))
    parts = GROWTH[divides] ** np.arange(steps)
    return parts / parts.sum()


@dataclass(frozen=True, eq=False)
class LinkGradientQuery(Query):
    """Joint sum of (e (nu(<phi, theta>) - r), weight vech Phi_U) at a public theta.

    The residual is at most 1 + b with b = max |nu| on [-||theta||, ||theta||], or ``largest``, to
    which nu is clipped, and ||e|| <= 1: the gradient moves by at most 2 (1 + b), attained for an
    ill-conditioned U, and by less for a given U (see :func:`gradient_change`), if all e have length
    1. Phi_U is positive semi-definite of rank one and trace at most 1, and moves by sqrt(2). The
    sensitivity is the root of the sum of the squares. (The paper's Priv_2 is the first alone, with
    b = 1.)

    Parameters
    ----------
    maps : RecordMap
    instrument : Instrument
        Without U the rows e are phi itself, and Phi_U is phi phi'.
    link : Link
    theta : ndarray of shape (p,)
    weight : float
    largest : float
        Bound to which |nu| is clipped, too: 1 where theta may leave the ball in which the mean is
        in the range of the target.
    """

    maps: RecordMap
    instrument: Instrument
    link: Link
    theta: np.ndarray
    weight: float = 1.0
    largest: float = inf
    name: str = "re-weighted gradient"

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.maps.size + vech_size(self.maps.size),)

    @property
    def sensitivity(self):
        """Largest change at this theta and U, rounded up."""
        change = 2.0 * (1.0 + np.abs(self._mean_bounds).max())
        increasing = type(self.link) in (IdentityLink, LogitLink)  # others may not be
        if increasing and self.instrument.floor == 0.0:
            norm = float(np.linalg.norm(self.theta))
            change = min(change, gradient_change(self.link, norm, self.instrument.condition))
        return sqrt(change**2 + 2.0 * self.weight**2) * ROUNDING

    @property
    def _mean_bounds(self):
        norm = np.linalg.norm(self.theta)
        bounds = np.asarray(self.link.mean(np.array([-norm, norm])), dtype=float)
        return np.clip(np.where(np.isfinite(bounds), bounds, 0.0), -self.largest, self.largest)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi, r = self.maps.records(X, y)
        mean = np.clip(np.nan_to_num(self.link.mean(phi @ self.theta)), *self._mean_bounds)
        halves = self.instrument.halves(phi)
        gradient = self.instrument.rows(phi).T @ (mean - r)
        return np.concatenate([gradient, self.weight * vech(halves.T @ halves)])

    def read(self, answer):
        """The `GradientCertificate` at theta: both means, and the deviations of their noise."""
        p, n, scale = self.maps.size, answer.n, answer.noise.scale / answer.n
        U = np.eye(p) if self.instrument.matrix is None else self.instrument.matrix
        mean_phi = unvech(answer.value[p:], p) / (n * self.weight)
        gradient, mean_scale = answer.value[:p] / n, scale / self.weight
        return GradientCertificate(
            self.link, U, self.theta, gradient, scale, mean_phi, mean_scale, n
        )


@lru_cache(maxsize=1)
def _angles(condition):
    """Cosines of a and a', where they are positive, and of alpha: the grid of `gradient_change`.

    All steps of a descent have the same.
    """
    # alpha on a grid that is fine near pi, where beta changes fastest for a large condition
    edge = np.pi / 2 - np.geomspace(1e-12, 1.0, 400)
    half = np.concatenate([np.linspace(0.0, np.pi / 2, 401), edge])
    beta = 2.0 * np.arctan(np.tan(half) / condition)
    part = np.linspace(0.0, 1.0, 201)[:, None]
    along, other = (np.maximum(np.cos(side * beta), 0.0) for side in (part, 1.0 - part))
    return along, other, np.cos(2.0 * half)


@lru_cache(maxsize=1024)
def gradient_change(link, norm, condition):
    """Largest change of e (nu(<phi, theta>) - r), for ||theta|| = norm and U of this condition.

    At angles a and a' of phi and phi' to theta (a + a' >= beta, their own angle) the residuals are
    at most 1 + nu(norm max(cos a, 0)) in size (a short phi has the same e), and e and e' are at an
    angle alpha with tan(beta/2) >= tan(alpha/2) / condition (Bauer and Householder 1960). This is
    for residuals of the same sign; mirroring a phi turns the others into such. For an increasing
    link with nu(-t) = -nu(t). The grid's rounding is added.

    Examples
    --------
    >>> from skpriv._estimation._links import IdentityLink
    >>> from skpriv.linear_model._reweighted import gradient_change
    >>> [round(gradient_change(IdentityLink(), 1.0, c), 1) for c in (1.0, 3.0, 10.0, 1e9)]
    [3.0, 3.3, 3.7, 4.0]
    """
    along, other, between = _angles(condition)
    first, second = 1.0 + link.mean(norm * along), 1.0 + link.mean(norm * other)
    squares = first**2 + second**2 - 2.0 * first * second * between
    return float(min(2.0 * (1.0 + link.mean(norm)), sqrt(squares.max()) * (1.0 + 1e-3)))


def descend(session, maps, instrument, link, radius, shares):
    """Algorithms 7 and 10: the last point, and the certificate of the point before it.

    Every step is w <- w - rate sigma^{-1} g / c with c the middle slope of the link, then the
    nearest point, in the metric of sigma, with ||U w|| <= radius. The rates weigh the proposals of
    all the steps by their precision: for the identity link no step's budget is lost.
    """
    p = maps.size
    theta, precision = np.zeros(p), 0.0
    mean_phi, mean_precision = np.zeros((p, p)), 0.0
    free = radius == inf
    slope = link.slope_bounds(radius)[1] if free else sum(link.slope_bounds(radius)) / 2.0
    for share in shares:
        query = LinkGradientQuery(maps, instrument, link, theta, largest=1.0 if free else inf)
        found = query.read(session.sum(query, share))
        # All noisy means of Phi_U so far, weighted by precision
        mean_precision += found.mean_scale**-2
        mean_phi += (found.mean_phi - mean_phi) / (found.mean_scale**2 * mean_precision)
        ridge = sqrt(2.0 * p / mean_precision)  # the operator norm that the noise alone would have
        floored = psd_part(mean_phi + ridge * np.eye(p), EIGENVALUE_FLOOR * ridge)
        precision += found.gradient_scale**-2
        rate = 1.0 / (found.gradient_scale**2 * precision)
        # In theta = U w the metric is U^{-1/2} (H + lambda) U^{-1/2}, and the gradient U^{-1} g
        inverse_root, gradient = psd_power(found.U, -0.5), np.linalg.solve(found.U, found.gradient)
        metric = inverse_root @ floored @ inverse_root
        step = rate / slope * np.linalg.solve(metric, gradient)
        theta = nearest_in_ball(theta - step, metric, radius)
    if session.trust.can.same_rows:  # the same records in every step
        found = replace(found, mean_phi=mean_phi, mean_scale=mean_precision**-0.5)
    return theta, found


@dataclass(frozen=True, eq=False)
class Minimiser(Procedure):
    """Solution of the score equation sum phi (nu(<phi, theta>) - r) = 0 in the ball: no privacy.

    For the logit it is maximum likelihood, for the identity least squares. Newton steps, each to
    the nearest point of the ball in the metric of the slopes. If the link bends, a step of length l
    is made log(1 + l) long, with which those of the logit always descend (Bach 2010).
    """

    maps: RecordMap
    link: Link
    radius: float
    name: str = "score equation"
    sensitivity: float = float("inf")

    def run(self, rows):
        """Return the solution."""
        theta = np.zeros(self.maps.size)
        # Without a ball separable targets have no solution: the path to infinity is cut.
        for _ in range(MAX_ITER):
            shape = (len(theta), len(theta) + 1)
            sums = rows.sum(InnerSum(partial(self._slopes, theta), shape))
            metric, score = psd_part(sums[:, :-1]), sums[:, -1]
            step = -np.linalg.lstsq(metric, score, rcond=RELATIVE_ZERO)[0]
            move = nearest_in_ball(theta + step, metric, self.radius) - theta
            length = float(np.linalg.norm(move))
            bent = length and not self.link.linear
            theta = theta + (move * np.log1p(length) / length if bent else move)
            if length <= RELATIVE_ZERO * (1.0 + np.linalg.norm(theta)):
                break
        return theta

    def _slopes(self, theta, X, y):
        """Sums of slopes phi phi' and of scores phi (nu(<phi, theta>) - r); nothing is clipped."""
        phi, target = self.maps.records(X, y)
        linear = phi @ theta
        slopes = (self.link.mean(linear + SMALL) - self.link.mean(linear - SMALL)) / (2.0 * SMALL)
        return np.column_stack(
            [(phi * slopes[:, None]).T @ phi, (self.link.mean(linear) - target) @ phi]
        )


def minimise(session, maps, link, radius):
    """The same as :func:`descend` for exact answers, where weights have nothing to protect."""
    theta = session.release(Minimiser(maps, link, radius), 0.5).value
    query = LinkGradientQuery(maps, Instrument(), link, theta)
    return theta, query.read(session.sum(query, 0.5))


# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025):
#   normalisation -> U,  mean -> H (Eq. 6),  ridge -> lambda,  target -> xi,  design -> Xi,
#   gram -> W,  instrument e -> U phi / ||U phi||

NORMALISATION_SHARE = {"budget": 0.08, "users": 0.1}


@stored
@parameters
class ReweightedRegressor(MomentRegressor):
    """Re-weighted regression, which is accurate when features have very different scales.

    A normalisation U is learned privately such that U phi has about equal length in all directions;
    weights 1 / ||U phi|| then bound every record's part in the normal equations without clipping
    the signal of small or rare directions. Error and interval width do not depend on the smallest
    eigenvalue of the Gram matrix, unlike those of sufficient-statistics perturbation.

    Parameters
    ----------
    link : {"identity", "logit"} or Link, default="identity"
        The mean of y is the link's inverse at a linear function. "logit" is logistic regression on
        ``bounds_y``: with (0, 1) the mean is 1 / (1 + exp(-x'coef - intercept)).
    solver : {"auto", "moments", "sgd"}, default="auto"
        "moments" solves the re-weighted normal equations (Algorithm 12), for the identity link
        only. "sgd" is noisy preconditioned gradient descent (Algorithms 7 and 10), for any. "auto"
        is the first where the link allows it, and else the second.
    n_spectral_iter : int >= 1, default=3
        Iterations of the normalisation (Algorithm 1); each takes an equal part of its share. In the
        local model there are fewer if there are not enough users for so many; with the codebook
        channel perhaps none, where public numbers say that noise would hide what they look for.
    coef_norm : float or None, default=None
        Assumed bound on the l2 norm of (coefficients, intercept) in scaled units, rows in the unit
        ball and target in [-1, 1]. None assumes nothing. Intervals use it, and "sgd" stays within
        it if it is a number (its intervals are ``bounds_y`` otherwise); for other links than the
        identity the coefficients are those of the link function, and no unit of y is in them.
    channel : {"auto", "gaussian", "codebook"}, default="auto"
        What users send in the local and shuffle models: vectors with Gaussian noise, or one index
        of a public codebook each, which is pure (``delta=0``) and safe to release. "auto" takes the
        one of less noise, from public numbers; with solver="sgd" it is "gaussian", and, unless
        delta is 0, in the local model under an accountant that adds up Gaussian noise.
    weights : {"fading", "always"}, default="fading"
        Weights serve privacy, and where the mean is not linear they move the line that is fitted.
        "fading" leaves them off where the budget can afford it, so that the fit is that of
        ``privacy="none"`` as epsilon grows. "always" keeps those of the papers at every epsilon,
        "none" included (with ``solver="moments"``).
    alpha : float or "auto", default="auto"
        Ridge penalty in the units of :class:`sklearn.linear_model.Ridge`, or a noise-aware
        shrinkage (none under ``privacy="none"``: ordinary least squares). Not used by "sgd".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the linear function; the mean is that function only for the identity link.
    intercept_ : float
    privacy_report_ : PrivacyReport
        What was asked of the records, and at what price.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    See Also
    --------
    SSPRegressor : Cheaper, and as good when all directions are alike.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-differential privacy under replacement of one record,
    local in the local model. Released: ``n_spectral_iter`` Gaussian answers for U, one for the
    moments and, in the central model, one for the residual variance; or one a step of "sgd".
    Adaptive composition of Gaussians is exact (Dong, Roth and Su 2022). With the codebook channel
    each user sends one index, about U or about the moments, whose price rests on one exact integer
    draw (delta = 0, docs/trust.md). Public: the number of records and all parameters.

    Departures from the paper: all records serve every central step (the paper splits them; of very
    many a public part serves the normalisation), Sigma of Eq. (6) is asked without the factors
    U^{1/2}, under which noise hides small scales, the sensitivities are tight for replacement, and
    the solution shrinks by the known noise law. By default rows are weighed only as far as privacy
    needs it: under ``privacy="none"`` the fit is ordinary least squares, or maximum likelihood for
    the logit. "sgd" grows its steps' shares, and its last step, at the last released gradient,
    comes after the point that this gradient certifies; so it is not lost.

    **Intervals** of ``solver="moments"`` are those of :class:`SSPRegressor`. With "sgd" there is a
    certified one, which holds at all rows *at once*, for any number of steps and whether or not
    they converged. It assumes that the mean of the clipped target is the link's at a linear
    function of the clipped rows, whose (coefficients, intercept) in scaled units have l2 norm at
    most ``coef_norm``; without that number it is ``bounds_y``.

    References
    ----------
    F. Chen, J. Li, A. Rakhlin and D. Simchi-Levi (2025). Near-optimal private learning in linear
    contextual bandits: Algorithm 1 and Eq. (6) for U, Algorithms 7, 10 and 12 for the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import ReweightedRegressor
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(50_000, 3)) * [1.0, 0.1, 0.02]
    >>> y = X @ [0.5, 0.5, 0.5] + rng.uniform(-0.2, 0.2, size=50_000)
    >>> est = ReweightedRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), epsilon=1.0, random_state=0
    ... ).fit(X, y)
    >>> bool(abs(est.predict(X) - X @ [0.5, 0.5, 0.5]).mean() < 0.02)
    True
    >>> low, high = est.confidence_interval(X[:2], confidence_level=0.9)
    >>> bool((low < high).all())
    True
    """

    link: Annotated[Any, StrOptions(set(LINKS)), Link] = "identity"
    solver: Literal["auto", "moments", "sgd"] = "auto"
    n_spectral_iter: Count = 3
    weights: Literal["fading", "always"] = "fading"

    interval_estimand: ClassVar[str | None] = (
        "weighted least-squares line (weights of the normalisation)"
    )
    interval_claims: ClassVar[tuple[str, ...]] = ("certified", "asymptotic")
    _certificate: GradientCertificate | None = field(init=False, default=None)

    def _fit(self, X, y, groups, weights):
        link = LINKS[self.link] if isinstance(self.link, str) else self.link
        rows, maps = scaled_rows(self, X, y)
        rows, query_map = weighted_records(self, rows, maps, weights)
        weighted, trust = query_map is not maps, self._trust
        descends = self._descends(link, weighted)
        channel = "gaussian" if descends else channel_of(self, maps.size, rows)
        records = rows.n if groups is None else groups.n  # how many rows persons have is private
        n = records - held_out_size(self, records)
        share, iterations, steps = self._shares(n, maps.size, link, descends)
        smallest = share / iterations or 1.0
        if descends:
            smallest = min(smallest, steps.min())
        session = open_fit(self, rows, channel, smallest_share=smallest, groups=groups)
        del X, y, rows  # only the session has the data now
        session, held_out = hold_out(self, session)

        kind: type = NormalisationQuery
        if channel == "codebook":
            kind = ReportedNormalisationQuery
            iterations = affordable(session, query_map, share, iterations)
            share = share if iterations else 0.0
        instrument = Instrument()  # without it weights have nothing to protect
        if share:
            fades = self.weights == "fading" and trust.can.same_rows and not weighted
            instrument = learn_normalisation(session, query_map, share, iterations, fades, kind)
        self._scaling, self._link = maps, link
        deviation = self._certificate = None
        if descends:
            self._equations = self._basis = None  # those of an earlier fit may be exact
            self._shapes = ()
            self._descend(session, maps, instrument, steps, link)
        else:
            deviation = self._solve_moments(session, query_map, instrument, 1.0 - share, channel)
        self._calibration = calibration(self, held_out, deviation, channel)

    def _descends(self, link, weighted):
        """Whether "sgd" is the solver; what it, or the other one, does not take is refused."""
        bends = not link.linear
        if bends and self.solver == "moments":
            raise ValueError(
                f"solver='moments' solves linear equations, so that link={self.link!r} needs "
                "solver='sgd'."
            )
        descends = bends or self.solver == "sgd"
        if descends and weighted:
            raise ValueError("sample_weight needs solver='moments': 'sgd' takes no weights.")
        if descends and self.channel == "codebook":
            raise ValueError(
                "solver='sgd' certifies gradients with Gaussian noise: pass channel='gaussian' "
                "or 'auto', or solver='moments'."
            )
        return descends

    def _shares(self, n, size, link, descends):
        """Share of the normalisation and its iterations, and shares of the steps of "sgd"."""
        trust, iterations = self._trust, self.n_spectral_iter
        share = NORMALISATION_SHARE[trust.can.divides]
        if trust.exact and (descends or self.weights == "fading"):
            share = 0.0  # weights balance noise, and exact answers have none
        if trust.can.reports:  # few users, each of whom answers once
            iterations = max(1, min(iterations, int(share * n)))
        precision = 0.0 if trust.exact else trust.budget.mu * sqrt(n / size)
        steps = (1.0 - share) * step_shares(trust.can.divides, link, precision)
        return share, iterations, steps

    def _solve_moments(self, session, query_map, instrument, share, channel):
        """Algorithm 12, of users by one index each; least squares without a normalisation."""
        query, self._shapes, self._basis = moments_query(query_map, channel), (), None
        if instrument.matrix is not None:
            query = ReweightedMomentsQuery(query_map, instrument)
            self._shapes = (instrument.matrix,)
        if channel == "codebook" and self._shapes:  # equations in whitened coordinates
            self._basis = instrument.matrix / instrument.length
            query = ReweightedReportsQuery(query_map, instrument=Instrument(self._basis))
        share -= residual_share(session.trust)
        return self._solve_sums(session, query, share, instrument)

    def _radius(self, maps):
        """Radius of the ball in which "sgd" stays; infinite without an assumption."""
        return inf if self.coef_norm is None else maps.theta_bound(self.coef_norm)

    def _descend(self, session, maps, instrument, steps, link):
        """Algorithms 7 and 10, and the certificate of the last gradient."""
        radius = self._radius(maps)
        if session.trust.exact:
            theta, self._certificate = minimise(session, maps, link, radius)
        else:
            theta, self._certificate = descend(session, maps, instrument, link, radius, steps)
        self.coef_, self.intercept_ = maps.coefficients(theta)
        if not link.linear:  # the linear function is not in the units of y
            self.coef_ = self.coef_ / maps.radius
            self.intercept_ = (self.intercept_ - maps.centre) / maps.radius

    def coefficient_law(self, estimand: Estimand = "fitted") -> CoefficientLaw:
        """Distribution of the coefficients for `skpriv.inspection.inference`; see SSPRegressor.

        They are those of least squares with the weights of the learned normalisation, another line
        than that of all rows alike where the mean is not linear.

        Parameters
        ----------
        estimand : {"fitted"}, default="fitted"

        Returns
        -------
        CoefficientLaw
            Estimates and their covariance.
        """
        if self._certificate is not None:
            raise NoLaw(
                "solver='sgd' certifies predictions and releases no coefficients with errors: use "
                "solver='moments', or LinearRegression."
            )
        return super().coefficient_law(estimand)

    def _function(self, X):
        """The mean of y for checked rows."""
        linear = super()._function(X)
        if self._link.linear:
            return linear
        return self._scaling.unscale(np.asarray(self._link.mean(linear)))

    @property
    def _interval_methods(self):
        return ("certified", "asymptotic") if self._certificate is None else ("certified",)

    def _interval(self, X, confidence_level, method):
        """The interval at checked rows: that of the moments, or of the last gradient of "sgd"."""
        if self._certificate is None:
            return super()._interval(X, confidence_level, method)
        points, radius = self._scaling.features(X), self._radius(self._scaling)
        middle, half = np.zeros(len(X)), np.full(len(X), inf)
        if self.coef_norm is not None:  # the certificate is for a ball
            low, high = self._certificate.interval(points, radius, confidence_level)
            middle, half = (low + high) / 2.0, (high - low) / 2.0
        return inside_bounds(self._scaling, middle, half, self._predicted(X))
