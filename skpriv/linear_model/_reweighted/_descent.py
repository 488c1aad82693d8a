"""Re-weighted gradient descent for any link: the questions of its steps, and their number."""

from dataclasses import replace
from functools import lru_cache, partial
from math import ceil, inf, log, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimation._links import IdentityLink, Link, LogitLink
from ..._estimation._moments import Instrument
from ..._linalg import (
    RELATIVE_ZERO,
    nearest_in_ball,
    norm_of,
    psd_part,
    unvech,
    vech,
    vech_size,
)
from ..._stored import frozen_object
from ...privacy import ROUNDING, InnerSum, Procedure, Query
from ._certificate import GradientCertificate
from ._normalisation import EIGENVALUE_FLOOR

if TYPE_CHECKING:
    from ...privacy import Answer, Session, SessionPart
    from ..._estimation._public_maps import RecordMap
    from ..._contracts import Array
    from ...records import ArrayRows

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025):
#   theta = U w,  mean of the link -> nu,  instrument e -> U phi / ||U phi||,  mean_phi -> H,
#   sigma -> U^{1/2} (H + lambda) U^{1/2},  radius -> the bound on ||theta*||

# Each step takes GROWTH times the share of the one before it: early steps only have to come near,
# and the last gradient is both the last step and the interval's certificate.
STEPS = {"budget": 5, "users": 2}
GROWTH = {"budget": 2.5, "users": 2.0}


# Steps of a curved link must converge further the smaller the noise is: above the precision PRECISE
# (mu sqrt(n / p)) they are FURTHER more for each factor e.
FURTHER = 3.0
PRECISE = 150.0


MAX_ITER = 500  # steps of the minimiser without noise
SMALL = 1e-5  # step of the differences that its slopes are computed from


def step_shares(divides: str, link: Link, precision: float) -> "Array":
    """Parts of the regression's share that the steps take, in their order, by public numbers."""
    steps = STEPS[divides]
    if divides == "budget" and not link.linear:
        steps += ceil(FURTHER * log(max(1.0, precision / PRECISE)))
    parts = GROWTH[divides] ** np.arange(steps)
    return parts / parts.sum()


@frozen_object
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

    maps: "RecordMap"
    instrument: Instrument
    link: Link
    theta: np.ndarray
    weight: float = 1.0
    largest: float = inf
    name = "re-weighted gradient"

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (self.maps.size + vech_size(self.maps.size),)

    @property
    def sensitivity(self) -> float:
        """Largest change at this theta and U, rounded up."""
        change = 2.0 * (1.0 + np.abs(self._mean_bounds).max())
        increasing = type(self.link) in (IdentityLink, LogitLink)  # others may not be
        if increasing and self.instrument.floor == 0.0:
            norm = norm_of(self.theta)
            change = min(change, gradient_change(self.link, norm, self.instrument.condition))
        return sqrt(change**2 + 2.0 * self.weight**2) * ROUNDING

    @property
    def _mean_bounds(self) -> np.ndarray:
        norm = norm_of(self.theta)
        bounds = np.asarray(self.link.mean(np.array([-norm, norm])), float)
        return np.where(np.isfinite(bounds), bounds, 0.0).clip(-self.largest, self.largest)

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        phi, r = self.maps.records(X, y)
        mean = np.nan_to_num(self.link.mean(phi @ self.theta)).clip(*self._mean_bounds)
        halves = self.instrument.halves(phi)
        gradient = self.instrument.rows(phi).T @ (mean - r)
        return np.concatenate([gradient, self.weight * vech(halves.T @ halves)])

    def read(self, answer: "Answer") -> GradientCertificate:
        """The `GradientCertificate` at theta: both means, and the deviations of their noise."""
        p = self.maps.size
        n = answer.n
        scale = answer.mean_scale
        U = np.eye(p) if self.instrument.matrix is None else self.instrument.matrix
        mean_phi = unvech(answer.value[p:], p) / (n * self.weight)
        gradient = answer.value[:p] / n
        mean_scale = scale / self.weight
        return GradientCertificate(
            self.link, U, self.theta, gradient, scale, mean_phi, mean_scale, n
        )


@lru_cache(maxsize=1)
def _angles(condition: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cosines of a and a', where they are positive, and of alpha: the grid of `gradient_change`.

    All steps of a descent have the same.
    """
    # alpha on a grid that is fine near pi, where beta changes fastest for a large condition
    edge = pi / 2 - np.geomspace(1e-12, 1.0, 400)
    half = np.concatenate([np.linspace(0.0, pi / 2, 401), edge])
    beta = 2.0 * np.arctan(np.tan(half) / condition)
    part = np.linspace(0.0, 1.0, 201)[:, None]
    along, other = (np.maximum(np.cos(side * beta), 0.0) for side in (part, 1.0 - part))
    return along, other, np.cos(2.0 * half)


@lru_cache(maxsize=1024)
def gradient_change(link: Link, norm: float, condition: float) -> float:
    """Largest change of e (nu(<phi, theta>) - r), for ||theta|| = norm and U of this condition.

    At angles a and a' of phi and phi' to theta (a + a' >= beta, their own angle) the residuals are
    at most 1 + nu(norm max(cos a, 0)) in size (a short phi has the same e), and e and e' are at an
    angle alpha with tan(beta/2) >= tan(alpha/2) / condition (Bauer and Householder 1960). This is
    for residuals of the same sign; mirroring a phi turns the others into such. For an increasing
    link with nu(-t) = -nu(t). The grid's rounding is added.

    Examples
    --------
    >>> from skpriv._estimation._links import IdentityLink
    >>> from skpriv.linear_model._reweighted._descent import gradient_change
    >>> [round(gradient_change(IdentityLink(), 1.0, c), 1) for c in (1.0, 3.0, 10.0, 1e9)]
    [3.0, 3.3, 3.7, 4.0]
    """
    along, other, between = _angles(condition)
    first = 1.0 + link.mean(norm * along)
    second = 1.0 + link.mean(norm * other)
    squares = first**2 + second**2 - 2.0 * first * second * between
    largest: Any = 2.0 * (1.0 + link.mean(norm))
    return float(min(largest, sqrt(squares.max()) * (1.0 + 1e-3)))


def descend(
    session: "Session | SessionPart",
    maps: "RecordMap",
    instrument: Instrument,
    link: Link,
    radius: float,
    shares: np.ndarray,
) -> tuple[np.ndarray, GradientCertificate]:
    """Algorithms 7 and 10: the last point, and the certificate of the point before it.

    Every step is w <- w - rate sigma^{-1} g / c with c the middle slope of the link, then the
    nearest point, in the metric of sigma, with ||U w|| <= radius. The rates weigh the proposals of
    all the steps by their precision: for the identity link no step's budget is lost.
    """
    p = maps.size
    theta = np.zeros(p)
    precision = 0.0
    mean_phi = np.zeros((p, p))
    mean_precision = 0.0
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
        inverse_root = psd_part(found.U, power=-0.5)
        gradient = np.linalg.solve(found.U, found.gradient)
        metric = inverse_root @ floored @ inverse_root
        step = rate / slope * np.linalg.solve(metric, gradient)
        theta = nearest_in_ball(theta - step, metric, radius)
    if session.trust.can.same_rows:  # the same records in every step
        found = replace(found, mean_phi=mean_phi, mean_scale=mean_precision**-0.5)
    return theta, found


@frozen_object
class Minimiser(Procedure):
    """Solution of the score equation sum phi (nu(<phi, theta>) - r) = 0 in the ball: no privacy.

    For the logit it is maximum likelihood, for the identity least squares. Newton steps, each to
    the nearest point of the ball in the metric of the slopes. If the link bends, a step of length l
    is made log(1 + l) long, with which those of the logit always descend (Bach 2010).
    """

    maps: "RecordMap"
    link: Link
    radius: float
    name = "score equation"
    sensitivity = inf

    def run(self, rows: "ArrayRows") -> np.ndarray:
        """Return the solution."""
        theta = np.zeros(self.maps.size)
        # Without a ball separable targets have no solution: the path to infinity is cut.
        for _ in range(MAX_ITER):
            sums = rows.sum(InnerSum(partial(self._slopes, theta), (len(theta), len(theta) + 1)))
            metric = psd_part(sums[:, :-1])
            step = -np.linalg.lstsq(metric, sums[:, -1], rcond=RELATIVE_ZERO)[0]
            move = nearest_in_ball(theta + step, metric, self.radius) - theta
            length = norm_of(move)
            bent = length and not self.link.linear
            theta = theta + (move * np.log1p(length) / length if bent else move)
            if length <= RELATIVE_ZERO * (1.0 + norm_of(theta)):
                break
        return theta

    def _slopes(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sums of slopes phi phi' and of scores phi (nu(<phi, theta>) - r); nothing is clipped."""
        phi, target = self.maps.records(X, y)
        linear = phi @ theta
        slopes = (self.link.mean(linear + SMALL) - self.link.mean(linear - SMALL)) / (2.0 * SMALL)
        return np.column_stack(
            [(phi * slopes[:, None]).T @ phi, (self.link.mean(linear) - target) @ phi]
        )


def minimise(
    session: Any, maps: "RecordMap", link: Link, radius: float
) -> tuple[np.ndarray, GradientCertificate]:
    """The same as :func:`descend` for exact answers, where weights have nothing to protect."""
    theta = session.release(Minimiser(maps, link, radius), 0.5).value
    query = LinkGradientQuery(maps, Instrument(), link, theta)
    return theta, query.read(session.sum(query, 0.5))
