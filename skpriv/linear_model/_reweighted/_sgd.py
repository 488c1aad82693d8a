"""Re-weighted generalised linear regression by noisy preconditioned gradient descent.

Confidence intervals come from one released gradient, for any increasing link. For a public point
theta = U w and the truth theta* = U w*, u = w - w*, the mean gradients differ by M u with mu S <= M
<= L S, S the mean of U phi phi' U / ||U phi|| and (mu, L) the slope bounds of the link on the ball.
The gradient at the truth is a mean of n independent centred terms of norm at most one, and M u = g
+ noise for the released g. Every bound below follows from that and three events (the norm of the
gradient's noise, of the gradient at the truth, and the largest eigenvalue of the noise of S): none
needs that the descent converged, nor a condition on U or on the eigenvalues of S.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import ceil, inf, log, sqrt
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from ..._estimation._intervals import event, operator_quantile, split_failure
from ..._estimation._moments import Instrument
from ..._estimation._public_maps import RecordMap
from ..._linalg import RELATIVE_ZERO, TINY, psd_part, psd_power, unvech, vech, vech_size
from ...privacy import ROUNDING, InnerSum, Procedure, Query
from ._normalisation import EIGENVALUE_FLOOR


class Link(ABC):
    """An increasing link of a generalised linear model, in scaled units (targets in [-1, 1]).

    The mean of the target is ``mean(<phi, theta>)``. The privacy guarantee does not rely on what a
    link promises; accuracy and intervals do.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import Link
    >>> class Arctan(Link):
    ...     '''The mean is (2 / pi) arctan(t).'''
    ...     def mean(self, linear):
    ...         return 2.0 / np.pi * np.arctan(linear)
    ...     def slope_bounds(self, bound):
    ...         return 2.0 / np.pi / (1.0 + bound**2), 2.0 / np.pi
    >>> float(Arctan().mean(1.0))
    0.5
    """

    @abstractmethod
    def mean(self, linear: Any) -> np.ndarray:
        """Mean of the target, in [-1, 1], at values of the linear function.

        Parameters
        ----------
        linear : ndarray

        Returns
        -------
        ndarray of the same shape
        """

    @abstractmethod
    def slope_bounds(self, bound: Any) -> tuple[float, float]:
        """Smallest and largest derivative of ``mean`` on [-bound, bound], both positive.

        Parameters
        ----------
        bound : float

        Returns
        -------
        (low, high) : floats
        """


class IdentityLink(Link):
    """The mean is the linear function itself."""

    def mean(self, linear):
        """Linear function."""
        return linear

    def slope_bounds(self, bound):
        """One."""
        return 1.0, 1.0


class LogitLink(Link):
    """Logistic regression: the mean is 2 / (1 + exp(-t)) - 1 = tanh(t / 2).

    In the units of a target in ``bounds_y=(0, 1)`` that is the logistic function of t.
    """

    def mean(self, linear):
        """tanh(linear / 2)."""
        return np.tanh(np.asarray(linear) / 2.0)

    def slope_bounds(self, bound):
        """1 / (2 cosh(bound / 2)^2) and one half."""
        return 2.0 * float(special.expit(bound) * special.expit(-bound)), 0.5


LINKS: dict[str, Link] = {"identity": IdentityLink(), "logit": LogitLink()}


# Public grid of ridges lambda', in the units of H (whose trace is at most one).
RIDGES = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 37)])
# Weights of the failure probability: of the gradient at the truth, and of the noises of both sums.
CERTIFICATE_PARTS = (0.5, 0.45, 0.05)


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
# A curved link needs more steps where noise is so small that their convergence is seen beside it:
# so many for each factor e of the precision (mu sqrt(n / p)) above PRECISE.
FURTHER, PRECISE = 3.0, 150.0

MAX_ITER, FREE_ITER = 10_000, 500  # of the minimiser without noise


def step_shares(divides, link, precision):
    """Parts of the regression's share that the steps take, in order; all from public numbers."""
    steps = STEPS[divides]
    if divides == "budget" and not isinstance(link, IdentityLink):
        steps += ceil(FURTHER * log(max(1.0, precision / PRECISE)))
    parts = GROWTH[divides] ** np.arange(steps)
    return parts / parts.sum()


@dataclass(frozen=True, eq=False)
class LinkGradientQuery(Query):
    """Joint sum of (e (nu(<phi, theta>) - r), weight vech Phi_U) at a public theta.

    The residual is at most 1 + b with b = max |nu| on [-||theta||, ||theta||], or ``largest``, to
    which nu is clipped, and ||e|| <= 1: the gradient moves by at most 2 (1 + b), attained for an
    ill-conditioned U, and by less for a given U (see :func:`gradient_change`), if all e have length
    1. Phi_U is
    positive semi-definite of rank one and trace at most 1, and moves by sqrt(2). Sensitivity: the
    root of the sum of the squares. (The paper's Priv_2 is the first alone with b = 1.)

    Parameters
    ----------
    scaling : RecordMap
    instrument : Instrument
        Without U the rows e are phi itself, and Phi_U is phi phi'.
    link : Link
    theta : ndarray of shape (p,)
    weight : float
    largest : float
        Bound to which |nu| is clipped, too: 1 where theta may leave the ball in which the mean is
        in the range of the target.
    """

    scaling: RecordMap
    instrument: Instrument
    link: Link
    theta: np.ndarray
    weight: float = 1.0
    largest: float = inf
    name: str = "re-weighted gradient"

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.scaling.size + vech_size(self.scaling.size),)

    @property
    def sensitivity(self):
        """Largest change at this theta and U, rounded up."""
        change = 2.0 * (1.0 + np.abs(self._mean_bounds).max())
        known = type(self.link) in (IdentityLink, LogitLink)  # to be increasing
        if known and self.instrument.floor == 0.0:
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
        phi, r = self.scaling.rows(X), self.scaling.target(y)
        mean = np.clip(np.nan_to_num(self.link.mean(phi @ self.theta)), *self._mean_bounds)
        halves = self.instrument.halves(phi)
        gradient = self.instrument.rows(phi).T @ (mean - r)
        return np.concatenate([gradient, self.weight * vech(halves.T @ halves)])

    def read(self, answer):
        """The `GradientCertificate` at theta: both means, and the deviations of their noise."""
        p, n, scale = self.scaling.size, answer.n, answer.noise.scale / answer.n
        U = np.eye(p) if self.instrument.matrix is None else self.instrument.matrix
        mean_phi = unvech(answer.value[p:], p) / (n * self.weight)
        gradient, mean_scale = answer.value[:p] / n, scale / self.weight
        return GradientCertificate(
            self.link, U, self.theta, gradient, scale, mean_phi, mean_scale, n
        )


@lru_cache(maxsize=1024)
def gradient_change(link, norm, condition):
    """Largest change of e (nu(<phi, theta>) - r), for ||theta|| = norm and U of this condition.

    At angles a and a' of phi and phi' to theta (a + a' >= beta, their own angle) the residuals are
    at most 1 + nu(norm max(cos a, 0)) in size (a short phi has the same e), and e and e' are at an
    angle alpha with tan(beta/2) >= tan(alpha/2) / condition (Bauer and Householder 1960). That is
    for residuals of the same sign; mirroring a phi turns the others into such. For an increasing
    link with nu(-t) = -nu(t). The grid's rounding is added.

    Examples
    --------
    >>> from skpriv.linear_model._reweighted._sgd import IdentityLink
    >>> from skpriv.linear_model._reweighted._sgd import gradient_change
    >>> [round(gradient_change(IdentityLink(), 1.0, c), 1) for c in (1.0, 3.0, 10.0, 1e9)]
    [3.0, 3.3, 3.7, 4.0]
    """
    # alpha on a grid that is fine near pi, where beta changes fastest for a large condition
    edge = np.pi / 2 - np.geomspace(1e-12, 1.0, 400)
    half = np.concatenate([np.linspace(0.0, np.pi / 2, 401), edge])
    beta = 2.0 * np.arctan(np.tan(half) / condition)
    part = np.linspace(0.0, 1.0, 201)[:, None]
    first = 1.0 + link.mean(norm * np.maximum(np.cos(part * beta), 0.0))
    second = 1.0 + link.mean(norm * np.maximum(np.cos((1.0 - part) * beta), 0.0))
    squares = first**2 + second**2 - 2.0 * first * second * np.cos(2.0 * half)
    return float(min(2.0 * (1.0 + link.mean(norm)), sqrt(squares.max()) * (1.0 + 1e-3)))


def descend(session, scaling, instrument, link, radius, shares):
    """Algorithms 7 and 10: the last point, and the certificate of the point before it.

    Every step is w <- w - rate sigma^{-1} g / c with c the middle slope of the link, then the
    nearest point, in the metric of sigma, with ||U w|| <= radius. The rates weigh the proposals of
    all the steps by their precision: for the identity link no step's budget is lost.
    """
    p = scaling.size
    theta, precision = np.zeros(p), 0.0
    mean_phi, mean_precision = np.zeros((p, p)), 0.0
    free = radius == inf
    slope = link.slope_bounds(radius)[1] if free else sum(link.slope_bounds(radius)) / 2.0
    for share in shares:
        query = LinkGradientQuery(scaling, instrument, link, theta, largest=1.0 if free else inf)
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
        theta = nearest(theta - rate / slope * np.linalg.solve(metric, gradient), metric, radius)
    if session.trust.can.same_rows:  # the same records in every step
        found = replace(found, mean_phi=mean_phi, mean_scale=mean_precision**-0.5)
    return theta, found


def nearest(point, metric, radius):
    """Nearest point of the ball of this radius, in the norm of a positive definite metric."""
    if np.linalg.norm(point) <= radius:
        return point
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, max(values[-1] * 1e-15, TINY))
    rotated = vectors.T @ point

    def excess(logarithm):
        return np.linalg.norm(values / (values + np.exp(logarithm)) * rotated) - radius

    low = np.log(values[0]) - 50.0
    high = np.log(values[-1]) + np.log1p(np.linalg.norm(point) / radius)
    if excess(low) <= 0.0:
        return point * (radius / np.linalg.norm(point))
    multiplier = np.exp(optimize.brentq(excess, low, high, xtol=1e-14))
    return vectors @ (values / (values + multiplier) * rotated)


@dataclass(frozen=True, eq=False)
class Minimiser(Procedure):
    """Solution of the score equation sum phi (nu(<phi, theta>) - r) = 0 in the ball: no privacy.

    For the logit it is maximum likelihood, for the identity least squares. Preconditioned gradient
    descent with Nesterov's momentum, restarted whenever it turns away from the last step.
    """

    scaling: RecordMap
    link: Link
    radius: float
    name: str = "score equation"
    sensitivity: float = float("inf")

    def run(self, rows):
        """Return the solution."""
        n = max(1, rows.n)
        query = LinkGradientQuery(
            self.scaling, Instrument(), self.link, np.zeros(self.scaling.size)
        )
        metric = psd_part(unvech(rows.sum(query)[self.scaling.size :] / n, self.scaling.size))
        values, vectors = np.linalg.eigh(metric)
        inverse = (vectors / np.maximum(values, max(values[-1] * 1e-13, TINY))) @ vectors.T
        largest_slope = self.link.slope_bounds(self.radius)[1]
        theta = ahead = np.zeros(self.scaling.size)
        age = 0
        # Without a ball separable targets have no solution: the path to infinity is cut.
        for _ in range(MAX_ITER if self.radius < inf else FREE_ITER):
            gradient = rows.sum(InnerSum(partial(self._score, ahead), ahead.shape)) / n
            after = nearest(ahead - inverse @ gradient / largest_slope, metric, self.radius)
            step = after - theta
            if np.linalg.norm(step) <= RELATIVE_ZERO * (1.0 + np.linalg.norm(after)):
                return after
            age = 0 if (ahead - after) @ metric @ step > 0.0 else age + 1
            theta, ahead = after, after + age / (age + 3.0) * step
        return theta

    def _score(self, theta, X, y):
        """Sum of phi (nu(<phi, theta>) - r); nothing is clipped."""
        phi = self.scaling.rows(X)
        return (self.link.mean(phi @ theta) - self.scaling.target(y)) @ phi


def minimise(session, scaling, link, radius):
    """The same as :func:`descend` for exact answers, where weights have nothing to protect."""
    theta = session.release(Minimiser(scaling, link, radius), 0.5).value
    query = LinkGradientQuery(scaling, Instrument(), link, theta)
    return theta, query.read(session.sum(query, 0.5))
