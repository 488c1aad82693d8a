"""Noisy normal equations: what a moment-based fit releases, and how they are solved."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import linalg

from .._linalg import psd_part
from ..privacy import CodebookNoise

# Public grid of prior variances for the empirical-Bayes shrinkage, in units of theta^2.
PRIOR_VARIANCES = np.geomspace(1e-7, 1e2, 46)
# The intercept is the best determined coefficient: its prior is this much wider.
INTERCEPT_PRIOR = 100.0
EXACT_RCOND = 1e-15


@dataclass(frozen=True)
class NormalEquations:
    """Released sums with design' theta* = target up to noise of a known law.

    target = A theta* + sum e_i zeta_i + N_b and design = A + N_A, where A = sum e_i phi_i' and
    zeta_i = r_i - phi_i' theta* (docs/mathematics/normal_equations.md). The instrument e_i is phi_i
    itself for sufficient statistics, and U phi_i / ||U phi_i|| for re-weighted regression.

    Attributes
    ----------
    design : ndarray of shape (p, p)
    target : ndarray of shape (p,)
    gram : ndarray of shape (p, p)
        Noisy sum e_i e_i'.
    square : float
        Noisy sum r_i^2.
    n : int
        Number of records in the sums.
    symmetric : bool
        Whether the noise of ``design`` is GOE (else independent on all entries).
    design_scale, target_scale, gram_scale : float
        Standard deviation of the noise of each orthonormal coordinate.
    residual_gram : ndarray of shape (p, p) or None
        Noisy sum e_i e_i' zeta_i^2 (residual variance, robust to heteroscedasticity).
    residual_scale : float
    law : CodebookNoise or None
        Where the noises of ``target`` and ``design`` are dependent: their law. The residual Gram is
        then the whole covariance of target - design theta*, privacy included.
    """

    design: np.ndarray
    target: np.ndarray
    gram: np.ndarray
    square: float
    n: int
    symmetric: bool
    design_scale: float
    target_scale: float
    gram_scale: float
    residual_gram: np.ndarray | None = None
    residual_scale: float = 0.0
    law: CodebookNoise | None = None

    @property
    def exact(self):
        """Whether no noise was added."""
        return self.design_scale == 0.0

    def residual_deviation(self, theta):
        """Least and largest root mean square of r - phi'theta that the answers leave open.

        The released residual Gram of normalised rows has it as its trace; otherwise it is the
        quadratic form of the equations, or at most the target's own size. The limits are two
        standard deviations of the noise away. They place a grid, and nothing rests on them.
        """
        norm = float(theta @ theta)
        if not self.symmetric and self.residual_gram is not None:
            square = float(np.trace(self.residual_gram))
            noise = self.residual_scale * sqrt(len(theta))
        elif self.symmetric:
            square = self.square + float(theta @ (self.design @ theta - 2.0 * self.target))
            noise = self.target_scale * sqrt(1.0 + 4.0 * norm + norm**2)
        else:
            square, noise = self.square / 2.0, max(self.square, 0.0) / 4.0 + self.target_scale
        low, high = max(square - 2.0 * noise, 0.0), max(square, 0.0) + 2.0 * noise
        return sqrt(low / self.n), sqrt(high / self.n)

    def solve_ridge(self, penalty):
        """Solution with a public diagonal penalty; of least norm if it is singular."""
        design = psd_part(self.design) if self.symmetric and not self.exact else self.design
        design = design + np.diag(penalty)
        if not self.exact:
            return linalg.lstsq(design, self.target)[0]
        values = np.diagonal(design)
        balance = 1.0 / np.sqrt(np.where(values > 0.0, values, 1.0))
        balanced = design * np.outer(balance, balance)
        return balance * linalg.lstsq(balanced, balance * self.target, cond=EXACT_RCOND)[0]

    def solve_shrunk(self, priors):
        """Noise-aware solution: posterior mean of theta, the prior's shape and size by evidence.

        The error of the equations has covariance C = v gram + (s_b^2 + s_A^2 ||theta||^2 / k) I,
        with k = 2 for GOE noise and 1 otherwise, and v the residual variance. All inputs are
        released answers, so that the choice of the prior is post-processing and costs nothing.

        Parameters
        ----------
        priors : list of ndarray of shape (p, p)
            Candidates R for the prior theta = tau R w, w ~ N(0, I), each public or released.

        Returns
        -------
        ndarray of shape (p,)
        """
        gram = psd_part(self.gram)
        design = psd_part(self.design) if self.symmetric else self.design
        variance = float(np.clip(self.square / self.n, 0.01, 1.0))
        theta = np.zeros(len(self.target))
        for _ in range(3):
            spread = self.target_scale**2 + self.design_scale**2 * (theta @ theta) / (
                2.0 if self.symmetric else 1.0
            )
            covariance = variance * gram + spread * np.eye(len(theta))
            root = linalg.cholesky(covariance, lower=True)
            whitened = linalg.solve_triangular(root, design, lower=True)
            response = linalg.solve_triangular(root, self.target, lower=True)
            fits = [(_posterior_mean(whitened @ prior, response), prior) for prior in priors]
            (_, weights), prior = max(fits, key=lambda fit: fit[0][0])
            theta = prior @ weights
        return theta


def ridge_prior(size, has_intercept):
    """Prior of equal coefficients, with a much wider one for the intercept."""
    width = np.ones(size)
    if has_intercept:
        width[-1] = sqrt(INTERCEPT_PRIOR)
    return np.diag(width)


def _posterior_mean(design, response):
    """Log evidence and posterior mean of w in response = design w + N(0, I), w ~ N(0, tau^2 I)."""
    left, singular, right = linalg.svd(design, full_matrices=False)
    projected = left.T @ response
    variances = 1.0 + np.outer(PRIOR_VARIANCES, singular**2)  # (grid, p)
    evidence = -(np.log(variances) + projected**2 / variances).sum(axis=1)
    best = int(np.argmax(evidence))
    tau2 = PRIOR_VARIANCES[best]
    return evidence[best], right.T @ (tau2 * singular * projected / (1.0 + tau2 * singular**2))
