"""Re-weighted generalised linear regression by noisy preconditioned gradient descent."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log, sqrt

import numpy as np
from scipy import optimize

from ..._estimation._moments import Instrument
from ..._estimation._scaling import Scaling
from ..._linalg import RELATIVE_ZERO, TINY, psd_part, psd_power, unvech, vech, vech_size
from ...privacy import ROUNDING, Procedure, Query
from ._certificate import GradientCertificate
from ._links import IdentityLink, Link, LogitLink
from ._normalisation import EIGENVALUE_FLOOR

# code -> paper (Chen, Li, Rakhlin and Simchi-Levi 2025):
#   theta = U w,  mean of the link -> nu,  instrument e -> U phi / ||U phi||,  mean_phi -> H,
#   sigma -> U^{1/2} (H + lambda) U^{1/2},  radius -> the bound on ||theta*||

# Each step takes GROWTH times the share of the one before it: early steps only have to come near,
# and the last gradient is both the last step and the interval's certificate.
STEPS, GROWTH = {"budget": 5, "users": 2}, {"budget": 2.5, "users": 2.0}
# A curved link needs more steps where noise is so small that their convergence is seen beside it:
# so many for each factor e of the precision (mu sqrt(n / p)) above PRECISE.
FURTHER, PRECISE = 3.0, 150.0

UNBOUNDED = 1e6  # radius of a ball that holds all parameters
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
    scaling : Scaling
    instrument : Instrument
        Without U the rows e are phi itself, and Phi_U is phi phi'.
    link : Link
    theta : ndarray of shape (p,)
    weight : float
    largest : float
        Bound to which |nu| is clipped, too: 1 where theta may leave the ball in which the mean is
        in the range of the target.
    """

    scaling: Scaling
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
        """Mean gradient and its noise scale, mean of Phi_U and its noise scale."""
        p, scale = self.scaling.size, answer.noise.scale / answer.n
        mean_phi = unvech(answer.value[p:], p) / (answer.n * self.weight)
        return answer.value[:p] / answer.n, scale, mean_phi, scale / self.weight


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
    >>> from skpriv.linear_model._reweighted._links import IdentityLink
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
    U = np.eye(p) if instrument.matrix is None else instrument.matrix
    inverse_root = psd_power(U, -0.5)
    theta, precision = np.zeros(p), 0.0
    mean_phi, mean_precision = np.zeros((p, p)), 0.0
    free = radius >= UNBOUNDED
    slope = link.slope_bounds(radius)[1] if free else sum(link.slope_bounds(radius)) / 2.0
    for share in shares:
        query = LinkGradientQuery(scaling, instrument, link, theta, largest=1.0 if free else inf)
        answer = session.sum(query, share)
        gradient, scale, latest, latest_scale = query.read(answer)
        # All noisy means of Phi_U so far, weighted by precision
        mean_precision += latest_scale**-2
        mean_phi += (latest - mean_phi) / (latest_scale**2 * mean_precision)
        ridge = sqrt(2.0 * p / mean_precision)  # the operator norm that the noise alone would have
        floored = psd_part(mean_phi + ridge * np.eye(p), EIGENVALUE_FLOOR * ridge)
        precision += scale**-2
        rate = 1.0 / (scale**2 * precision)
        point = theta
        # In theta = U w the metric is U^{-1/2} (H + lambda) U^{-1/2}, and the gradient U^{-1} g
        metric = inverse_root @ floored @ inverse_root
        proposal = theta - rate / slope * np.linalg.solve(metric, np.linalg.solve(U, gradient))
        theta = nearest(proposal, metric, radius)
    if session.trust.can.same_rows:  # the same records in every step
        latest, latest_scale = mean_phi, mean_precision**-0.5
    certificate = GradientCertificate(
        link, U, point, gradient, scale, latest, latest_scale, answer.n
    )
    return theta, certificate


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

    scaling: Scaling
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
        for _ in range(MAX_ITER if self.radius < UNBOUNDED else FREE_ITER):
            gradient = rows.sum(LinkScoreQuery(self.scaling, self.link, ahead)) / n
            after = nearest(ahead - inverse @ gradient / largest_slope, metric, self.radius)
            step = after - theta
            if np.linalg.norm(step) <= RELATIVE_ZERO * (1.0 + np.linalg.norm(after)):
                return after
            age = 0 if (ahead - after) @ metric @ step > 0.0 else age + 1
            theta, ahead = after, after + age / (age + 3.0) * step
        return theta


@dataclass(frozen=True, eq=False)
class LinkScoreQuery(Query):
    """Sum of phi (nu(<phi, theta>) - r): asked without privacy only, nothing is clipped."""

    scaling: Scaling
    link: Link
    theta: np.ndarray
    name: str = "score"
    sensitivity: float = float("inf")

    @property
    def shape(self):
        """Number of coordinates."""
        return (self.scaling.size,)

    def sum(self, X, y):
        """Exact sum over a chunk of rows."""
        phi = self.scaling.rows(X)
        return (self.link.mean(phi @ self.theta) - self.scaling.target(y)) @ phi


def minimise(session, scaling, link, radius):
    """The same as :func:`descend` for exact answers, where weights have nothing to protect."""
    theta = session.release(Minimiser(scaling, link, radius), 0.5).value
    query = LinkGradientQuery(scaling, Instrument(), link, theta)
    answer = session.sum(query, 0.5)
    gradient, scale, mean_phi, mean_scale = query.read(answer)
    U = np.eye(scaling.size)
    return theta, GradientCertificate(
        link, U, theta, gradient, scale, mean_phi, mean_scale, answer.n
    )
