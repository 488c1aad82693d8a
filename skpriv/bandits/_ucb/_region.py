"""Confidence regions for the weights of a linear bandit, from noisy moment sums.

With b = sum phi r + N_b and S = sum phi phi' + N_A released, b - S theta* = sum phi zeta + N_b -
N_A theta*. Every region is one ellipsoid, so that the index of an arm costs what it costs in
LinUCB: phi'centre + sqrt(phi' form phi). Without noise the sums and their inverse are those of
the textbook, updated by rank one.
"""

from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np

from ..._estimation._tails import event, events, operator_quantile
from ..._estimation._moments import PRIOR_VARIANCES
from ..._linalg import psd_part

# Weights of the likelihood's ellipsoid beside the ball; any is valid, the smallest result is used.
# Not 0: the ball alone would leave the choice among arms of equal norm to rounding.
WEIGHTS = (0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)


@dataclass(frozen=True)
class Region:
    """Ellipsoid with phi'theta <= phi'centre + sqrt(phi' form phi) for all its theta."""

    centre: np.ndarray
    form: np.ndarray

    def bounds(self, phi):
        """Mean and width of every row of phi, of shape (n, p): phi'centre, sqrt(phi' form phi)."""
        squares = np.einsum("ij,ij->i", phi @ self.form, phi)
        return phi @ self.centre, np.sqrt(np.maximum(squares, 0.0))

    def upper(self, phi, bonus_scale):
        """Index of every row of phi, of shape (n, p)."""
        means, widths = self.bounds(phi)
        return means + bonus_scale * widths


def ball(size, bound):
    """Region before anything is known: ||theta|| <= bound."""
    return Region(np.zeros(size), bound**2 * np.eye(size))


def certified(equations, alpha, bound, failure):
    """Region that contains theta* with probability at least 1 - failure, actions adaptive.

    If ||theta*|| <= bound and the centred rewards lie in [-1, 1]. Three events: the largest
    eigenvalue of N_A is at most q_op, so that W = S + (q_op + lam) I >= V + lam I; the
    self-normalised bound ||sum phi zeta|| <= sqrt(2 log(1/f) + log det(I + V / lam)) in the norm of
    (V + lam I)^-1, hence of W^-1 (Abbasi-Yadkori et al. 2011, Theorem 1); and ||N_b - N_A theta*||
    <= q, a weighted chi-square (Laurent and Massart 2000, Lemma 1). Then theta* is in
    {||b - S theta||_{W^-1} <= beta} and in the ball, hence in the ellipsoids that average the two.
    """
    if equations.law is not None:  # one bound on b - S theta*, rewards' noise and privacy together
        residual = equations.law.martingale_bound(bound, event("errors of the reports", failure))
        return within(equations, residual, bound)
    p = len(equations.target)
    names = ("errors of the rewards", "noise at theta", "eigenvalue of the design's noise")
    of_rewards, of_noise, of_operator = events(failure, dict.fromkeys(names, 1.0))
    level = log(1.0 / of_rewards)
    noise = noise_bound(equations, bound, log(1.0 / of_noise))
    operator = operator_quantile(equations.design_scale, p, of_operator)
    ridge = max(alpha, noise**2 / (p + 2.0 * level))  # the noise then costs what the rewards do

    values, vectors = np.linalg.eigh(equations.design)
    widened = np.maximum(values + operator + ridge, ridge)  # W in the eigenvectors of S
    beta = rewards_bound(widened / ridge, level) + noise / sqrt(ridge)
    return _smallest(values, vectors, equations.target, widened, beta, bound)


def self_normalized(equations, alpha, bound, failure):
    """Region of exact sums at all times together (Abbasi-Yadkori et al. 2011, Theorem 2)."""
    size = len(equations.target)
    covariance = np.linalg.inv(equations.design + alpha * np.eye(size))
    growth = -np.linalg.slogdet(alpha * covariance)[1]
    radius = sqrt(2.0 * log(1.0 / failure) + growth) + sqrt(alpha) * bound
    return Region(covariance @ equations.target, radius**2 * covariance)


def noise_bound(equations, bound, level):
    """Bound on ||N_b - N_A theta||, ||theta|| <= bound, but for a probability of exp(-level)."""
    p = len(equations.target)
    variance = equations.target_scale**2 + (equations.design_scale * bound) ** 2 / 2.0
    largest = equations.target_scale**2 + (equations.design_scale * bound) ** 2
    trace, square = largest + (p - 1) * variance, largest**2 + (p - 1) * variance**2
    return sqrt(trace + 2.0 * sqrt(square * level) + 2.0 * largest * level)


def rewards_bound(growth, level):
    """Bound on ||sum phi zeta|| in the norm of W^-1 at all times, but for exp(-level).

    The eigenvalues of W over the ridge are the growth.
    """
    return sqrt(2.0 * level + np.log(growth).sum())


def within(equations, residual, bound):
    """Region of ||b - S theta|| <= residual and ||theta|| <= bound."""
    values, vectors = np.linalg.eigh(equations.design)
    return _smallest(values, vectors, equations.target, np.ones(len(values)), residual, bound)


def _smallest(values, vectors, target, metric, beta, bound):
    """Smallest average of two ellipsoids: ||b - S theta||_{W^-1} <= beta, and the ball."""
    target = vectors.T @ target
    data = values**2 / metric / beta**2
    pull = values * target / metric / beta**2
    offset = (target**2 / metric).sum() / beta**2
    smallest = np.inf
    for weight in WEIGHTS:
        precision = weight * data + (1.0 - weight) / bound**2
        centre = weight * pull / precision
        radius = max(0.0, 1.0 - weight * offset + (centre**2 * precision).sum())
        size = radius * (1.0 / precision).sum()
        if size < smallest:
            smallest, best, form = size, centre, radius / precision
    return Region(vectors @ best, (vectors * form) @ vectors.T)


def without_blanks(equations):
    """Equations with a number of rounds in which those without features do not count.

    Rounds of people who came too often are blank, and how many these are is private: their zeros
    would make the mean square of the rewards too small. Rows have a norm of at most 1, so that the
    released sum of their squares is about the number of the others, or less.
    """
    rounds = float(np.clip(np.trace(equations.design), 1.0, equations.n))
    return replace(equations, n=rounds)


def asymptotic(equations, least_variance=0.0, blocks=1, resolved=0.0):
    """Posterior of theta with the noise's exact law, and a normal prior chosen by its evidence.

    Where each action has weights of its own, the Gram matrix is made of blocks: what is released
    outside of them is noise alone, and is left out.

    Parameters
    ----------
    equations : NormalEquations
    least_variance : float
        The least variance of the prior.
    blocks : int
        Number of blocks of equal size.
    resolved : float
        An eigenvalue of the design counts if it exceeds so many times the operator norm of its
        noise. If this is above 0, nothing is taken for known in other directions.

    Returns
    -------
    Region
    """
    if blocks == 1:
        return _posterior(equations, least_variance, resolved)
    p = len(equations.target)
    size, centre, form = p // blocks, np.zeros(p), np.zeros((p, p))
    for start in range(0, p, size):
        at = slice(start, start + size)
        part = replace(
            equations,
            design=equations.design[at, at],
            target=equations.target[at],
            gram=equations.gram[at, at],
        )
        region = _posterior(part, least_variance, resolved)
        centre[at], form[at, at] = region.centre, region.form
    return Region(centre, form)


def _posterior(equations, least_variance, resolved):
    """Posterior of theta in one block.

    In the eigenvectors of the released design, target_i = value_i theta_i + error_i, where the
    error has variance v value_i + s_b^2 + s_A^2 ||theta||^2 / 2, v the mean square reward and theta
    plugged in. For the prior N(0, tau^2 I) target_i has variance tau^2 value_i^2 more: tau^2 is the
    one on a public grid, and at least ``least_variance``, under which the released target is most
    likely. Not a certified region.
    """
    values, vectors = np.linalg.eigh(psd_part(equations.design))
    values, target = np.maximum(values, 0.0), vectors.T @ equations.target
    values[values < resolved * equations.design_scale * sqrt(2.0 * len(values))] = 0.0
    variance = float(np.clip(equations.square / equations.n, 0.01, 1.0))
    priors = np.maximum(PRIOR_VARIANCES, least_variance)
    centre = np.zeros(len(target))
    for _ in range(3):
        spread = equations.target_scale**2 + equations.design_scale**2 * (centre @ centre) / 2.0
        errors = variance * values + spread
        errors[errors == 0.0] = 1.0  # nothing is known there, without noise: values are 0 too
        total = np.outer(priors, values**2) + errors
        evidence = -(np.log(total) + target**2 / total).sum(axis=1)
        covariance = 1.0 / (values**2 / errors + 1.0 / priors[np.argmax(evidence)])
        centre = covariance * values * target / errors
    if resolved:
        # A large variance: weights are about 1
        covariance[values == 0.0] = 1e6
    return Region(vectors @ centre, (vectors * covariance) @ vectors.T)
