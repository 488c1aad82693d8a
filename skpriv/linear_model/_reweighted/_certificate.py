"""Confidence intervals from one released gradient, for any increasing link.

For a public point theta = U w and the truth theta* = U w*, u = w - w*, the mean gradients differ by
M u with mu S <= M <= L S, S the mean of U phi phi' U / ||U phi|| and (mu, L) the slope bounds of
the link on the ball. The gradient at the truth is a mean of n independent centred terms of norm at
most one, and M u = g + noise for the released g. Every bound below follows from that and three
events (the norm of the gradient's noise, of the gradient at the truth, and the largest eigenvalue
of the noise of S): none needs that the descent converged, nor a condition on U or on the
eigenvalues of S.
"""

from math import log, sqrt

import numpy as np
from scipy import stats

from ..._estimation._intervals import event, operator_quantile, split_failure
from ..._linalg import lengths_of, norm_of, psd_part
from ..._stored import frozen_object, stored
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..._estimation._links import Link

# Public grid of ridges lambda', in the units of H (whose trace is at most one).
RIDGES = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 37)])


# Weights of the failure probability: of the gradient at the truth, and of the noises of both sums.
CERTIFICATE_PARTS = (0.5, 0.45, 0.05)


@stored
@frozen_object
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
    n : float
        Number of records.
    """

    link: "Link"
    U: np.ndarray
    theta: np.ndarray
    gradient: np.ndarray
    gradient_scale: float
    mean_phi: np.ndarray
    mean_scale: float
    n: float

    def interval(
        self, points: np.ndarray, radius: float, confidence_level: float
    ) -> tuple[np.ndarray, np.ndarray]:
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
        reach = radius + norm_of(self.theta)
        slopes = self.link.slope_bounds(max(radius, norm_of(self.theta)))
        trivial = radius * lengths_of(points)
        centre = np.zeros(len(points))
        half = trivial
        for ridge in RIDGES:
            smallest = np.linalg.eigvalsh(self.mean_phi)[0] + ridge
            if smallest <= slack or smallest <= 0.0:
                continue
            for about in (self._about_point, self._about_step):
                middle, width = about(points, ridge, slopes, residual, slack, reach)
                better = width < half
                centre = np.where(better, middle, centre)
                half = np.where(better, width, half)
        # Both ends may lie beyond: the interval then ends there with the width that it has
        low = (np.minimum(centre, trivial) - half).clip(-trivial, trivial)
        high = (np.maximum(centre, -trivial) + half).clip(-trivial, trivial)
        return self.link.mean(low), self.link.mean(high)

    def _events(self, failure: float) -> tuple[float, float]:
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

    def _about_point(
        self,
        points: np.ndarray,
        ridge: float,
        slopes: tuple[float, float],
        residual: float,
        slack: float,
        reach: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """|<phi, theta - theta*>| <= ||U phi|| ||u||, and strong monotonicity bounds ||u||."""
        p = len(self.theta)
        root = psd_part(self.U, power=0.5)
        below = root @ (self.mean_phi + (ridge - slack) * np.eye(p)) @ root
        size = norm_of(self.gradient) + residual + slopes[0] * ridge * reach
        radius = size / (slopes[0] * np.linalg.eigvalsh(below)[0])
        return points @ self.theta, lengths_of(points @ self.U) * radius

    def _about_step(
        self,
        points: np.ndarray,
        ridge: float,
        slopes: tuple[float, float],
        residual: float,
        slack: float,
        reach: float,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same about the point after one more step, which is closer to the truth.

        With c the middle slope, M + c ridge U = c b (S' + E), where S' is the released S plus
        ridge U and ||S'^{-1/2} E S'^{-1/2}|| <= spread < 1; so u = z + S'^{-1} (noise / (c b) - E
        u) for the step z = S'^{-1} g / (c b). For the identity link only the noise of S is in E.
        """
        root = psd_part(self.U, power=0.5)
        values, vectors = np.linalg.eigh(root @ (self.mean_phi + ridge * np.eye(len(root))) @ root)
        relative = slack / (np.linalg.eigvalsh(self.mean_phi)[0] + ridge)
        middle = sum(slopes) / 2.0
        low = slopes[0] * (1.0 - relative)
        high = slopes[1] * (1.0 + relative)
        average = (low + high) / 2.0
        spread = (high - low) / (high + low)
        noise = (residual + middle * ridge * reach) / average
        rotated = points @ self.U @ vectors  # <phi, U v> = <U phi, v>
        dual = np.sqrt((rotated**2 / values).sum(axis=1))  # ||U phi|| in the norm of S'^{-1}
        inverse = np.sqrt(((rotated / values) ** 2).sum(axis=1))
        step = vectors.T @ self.gradient / average
        step_size = sqrt((step**2 / values).sum())  # ||z|| in the norm of S'
        beyond = (spread * step_size + noise / sqrt(values[0])) / (1.0 - spread)  # ||u - z||
        width = np.minimum(dual * beyond, inverse * noise + dual * spread * (step_size + beyond))
        return points @ self.theta - rotated @ (step / values), width
