"""Noisy normal equations: what a moment-based fit releases, and how they are solved."""

from dataclasses import dataclass, replace
from math import hypot, sqrt

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from .._linalg import RELATIVE_ZERO, psd_part, unvech
from ..privacy import CodebookNoise

# Public grid of prior variances for the empirical-Bayes shrinkage, in units of theta^2.
PRIOR_VARIANCES = np.geomspace(1e-7, 1e2, 46)
# The intercept is the best determined coefficient: its prior is this much wider.
INTERCEPT_PRIOR = 100.0
RESIDUAL_CLIP = 5.0  # released deviations: beyond them are few residuals, and much noise
SAMPLING = 10.0  # privacy noise over sampling, from where sampling is shrunk as a whole


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
        The residuals are those at a released theta, and clipped.
    residual_scale : float
    residual_excess, excess_scale : float
        Noisy sum of what the clip took off from squared residuals, and the deviation of its noise.
    residual_thetas : tuple of tuple of float
        Where residuals were taken; more than one if sums were pooled, and none if what was cut is
        not known.
    law : CodebookNoise or None
        Where the noises of ``target`` and ``design`` are dependent: their law. The residual Gram is
        then the whole covariance of target - design theta*, privacy included.
    person_gram : ndarray of shape (p, p) or None
        Sums of persons with several rows: noisy sum uu' for the sums u = e zeta over a person, over
        m; with the residual Gram's noise.
    debias : float or None
        Factor of the sampling covariance by degrees of freedom; None is n / (n - p).
    weight : float
        Weight of pooled sums: what the heaviest of them was divided by; 0 if nothing was pooled.
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
    residual_excess: float = 0.0
    excess_scale: float = 0.0
    residual_thetas: tuple = ()
    law: CodebookNoise | None = None
    person_gram: np.ndarray | None = None
    debias: float | None = None
    weight: float = 0.0

    @classmethod
    def of_moments(cls, answer, p, square_weight):
        """Equations of an answer about (r phi, vech phi phi', w r^2) with this weight w."""
        design = unvech(answer.value[p:-1], p)
        square = float(answer.value[-1]) / square_weight
        scales = dict.fromkeys(("design_scale", "target_scale", "gram_scale"), answer.noise.scale)
        return cls(design, answer.value[:p], design, square, answer.n, True, **scales)

    def pooled(self, other):
        """Sums of two sets of records, disjoint or not, weighted by what is publicly known.

        Whatever the weights, the weighted sums are normal equations of the same theta*. The errors
        have variances n / p (at most, of the targets) plus that of the noise, the signal is as n:
        weights n over the variance are best. They are public, and divided by the largest, so that
        errors are not larger than they would be without weights.
        """
        own, its = self.weight or self._precision, other.weight or other._precision
        largest, law = max(own, its), None
        a, b = own / largest, its / largest
        if self.law is not None or other.law is not None:
            # Codebook reports of two sets of users: all have one law, hence one weight
            if self.law is None or other.law is None or self.law.code != other.law.code:
                raise ValueError("sums of codebook reports are pooled with those of one code only.")
            a, b, largest, law = 1.0, 1.0, 0.0, self.law.plus(other.law)
        known = self.residual_gram is not None and other.residual_gram is not None
        persons = self.person_gram is not None and other.person_gram is not None
        return NormalEquations(
            design=a * self.design + b * other.design,
            target=a * self.target + b * other.target,
            gram=a**2 * self.gram + b**2 * other.gram,
            square=self.square + other.square,
            n=self.n + other.n,
            symmetric=self.symmetric and other.symmetric,
            design_scale=hypot(a * self.design_scale, b * other.design_scale),
            target_scale=hypot(a * self.target_scale, b * other.target_scale),
            gram_scale=hypot(a**2 * self.gram_scale, b**2 * other.gram_scale),
            residual_gram=a**2 * self.residual_gram + b**2 * other.residual_gram if known else None,
            residual_scale=hypot(a**2 * self.residual_scale, b**2 * other.residual_scale),
            residual_excess=a**2 * self.residual_excess + b**2 * other.residual_excess,
            excess_scale=hypot(a**2 * self.excess_scale, b**2 * other.excess_scale),
            residual_thetas=self.residual_thetas + other.residual_thetas if known else (),
            person_gram=a**2 * self.person_gram + b**2 * other.person_gram if persons else None,
            law=law,
            weight=largest,
        )

    def widened(self, place, extra):
        """Sums of records with ``extra`` further features from ``place`` on, all of them 0.

        They have no noise there: the scales of the others are more than there is.
        """
        places = np.full(extra, place)

        def wide(matrix):
            if matrix is None:
                return None
            for axis in range(matrix.ndim):
                matrix = np.insert(matrix, places, 0.0, axis=axis)
            return matrix

        names = ("design", "target", "gram", "residual_gram", "person_gram")
        thetas = tuple(tuple(wide(np.array(theta))) for theta in self.residual_thetas)
        widened = {name: wide(getattr(self, name)) for name in names}
        return replace(self, **widened, residual_thetas=thetas)

    @property
    def _precision(self):
        noise = self.target_scale**2 + self.design_scale**2 / 2.0
        return self.n / (self.n / len(self.target) + noise)

    @property
    def sampling_gram(self):
        """Noisy covariance of sum e zeta, by persons if records are; None if it is not known."""
        return self.residual_gram if self.person_gram is None else self.person_gram

    def residual_level(self, rows):
        """Released mean square of residuals, or by persons of what is left of theirs, from the
        trace of the Gram matrix.
        """
        released = float(np.trace(self.sampling_gram))
        return max(released, self.residual_scale * sqrt(len(self.target))) / max(rows, 1e-300)

    @property
    def degrees(self):
        """Factor of the sampling covariance by degrees of freedom, as in least squares."""
        if self.debias is not None:
            return self.debias
        return self.n / (self.n - len(self.target)) if self.n > len(self.target) else 1.0

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
            # of rows of length 1, or shorter where weights fade
            longer = self.n / min(self.n, max(float(np.trace(self.gram)), 0.01 * self.n))
            square = float(np.trace(self.residual_gram)) * longer
            noise = self.residual_scale * sqrt(len(theta)) * longer
        elif self.symmetric:
            square = self.square + float(theta @ (self.design @ theta - 2.0 * self.target))
            noise = self.target_scale * sqrt(1.0 + 4.0 * norm + norm**2)
        else:
            square, noise = self.square / 2.0, max(self.square, 0.0) / 4.0 + self.target_scale
        low, high = max(square - 2.0 * noise, 0.0), max(square, 0.0) + 2.0 * noise
        return sqrt(low / self.n), sqrt(high / self.n)

    def solve_ridge(self, penalty):
        """Solution with a public penalty, a diagonal or a matrix; of least norm if singular."""
        design = psd_part(self.design) if self.symmetric and not self.exact else self.design
        design = design + (np.diag(penalty) if penalty.ndim == 1 else penalty)
        if not self.exact:
            return linalg.lstsq(design, self.target)[0]
        values = np.diagonal(design)
        balance = 1.0 / np.sqrt(np.where(values > 0.0, values, 1.0))
        balanced = design * np.outer(balance, balance)
        return balance * linalg.lstsq(balanced, balance * self.target)[0]

    def solve_shrunk(self, priors):
        """Noise-aware solution: posterior mean of theta; see `posterior`.

        Sampling counts as error only where privacy noise is not small beside it. As epsilon grows
        nothing is shrunk, and the solution is that of the records' own equations.
        """
        return self.posterior(priors, fading=True)[0]

    def posterior(self, priors, least_variance=0.0, fading=False):
        """Posterior mean and covariance of theta, the prior's shape and size by evidence.

        The error of the equations has covariance C = v gram + (s_b^2 + s_A^2 ||theta||^2 / k) I,
        with k = 2 for GOE noise and 1 otherwise, and v the residual variance. All inputs are
        released answers, so that the choice of the prior is post-processing and costs nothing.

        Parameters
        ----------
        priors : list of ndarray of shape (p, p)
            Candidates R for the prior theta = tau R w, w ~ N(0, I), each public or released.
        least_variance : float
            Least value of tau^2: a prior that is too narrow, by the accident of little evidence,
            tells that everything is known.
        fading : bool
            Whether v falls with the privacy noise where that is small beside sampling.

        Returns
        -------
        (ndarray of shape (p,), ndarray of shape (p, p))
        """
        gram = psd_part(self.gram)
        design = psd_part(self.design) if self.symmetric else self.design
        variance = float(np.clip(self.square / self.n, 0.01, 1.0))
        theta = np.zeros(len(self.target))
        for _ in range(3):
            spread = self.target_scale**2 + self.design_scale**2 * (theta @ theta) / (
                2.0 if self.symmetric else 1.0
            )
            spread = max(
                spread, RELATIVE_ZERO * (1.0 + np.trace(gram))
            )  # without noise it may be 0
            typical = max(variance * float(np.trace(gram)) / len(gram), 1e-300)
            part = min(1.0, SAMPLING * float(spread) / typical) if fading else 1.0
            covariance = part * variance * gram + spread * np.eye(len(theta))
            root = np.linalg.cholesky(covariance)
            both = lapack.dtrtrs(root, np.column_stack([design, self.target]), lower=1)[0]
            whitened, response = both[:, :-1], both[:, -1]
            fits = [
                (normal_posterior(whitened @ prior, response, least_variance), prior)
                for prior in priors
            ]
            (_, weights, factor), prior = max(fits, key=lambda fit: fit[0][0])
            theta, factor = prior @ weights, prior @ factor
        return theta, factor @ factor.T


def ridge_prior(size, has_intercept):
    """Prior of equal coefficients, with a much wider one for the intercept."""
    width = np.ones(size)
    if has_intercept:
        width[-1] = sqrt(INTERCEPT_PRIOR)
    return np.diag(width)


def normal_posterior(design, response, least_variance):
    """Log evidence, mean and root covariance of w in response = design w + N(0, I).

    The prior is w ~ N(0, tau^2 I).
    """
    left, singular, right = np.linalg.svd(design, full_matrices=False)
    projected = left.T @ response
    priors = np.maximum(PRIOR_VARIANCES, least_variance)
    variances = 1.0 + np.outer(priors, singular**2)  # (grid, p)
    evidence = -(np.log(variances) + projected**2 / variances).sum(axis=1)
    best = int(np.argmax(evidence))
    tau2 = priors[best]
    spread = tau2 / (1.0 + tau2 * singular**2)
    return evidence[best], right.T @ (spread * singular * projected), right.T * np.sqrt(spread)
