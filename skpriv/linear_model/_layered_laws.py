"""Quantiles of the noise in a bin's released moments, for both noise laws.

A bin releases noisy sums of z z' (d, d), and of z times further columns. Three quantiles serve the
intervals: of the largest |eigenvalue| of the noise N of z z'; of ||N v|| for a fixed unit v; and
the standard deviation of the noise of z times a column, given N. Failure probabilities are
explicit.
"""

from dataclasses import dataclass
from math import log, sqrt

from scipy import stats

from ._intervals import _norm_quantile, _operator_quantile

CROSS_WEIGHT = 0.5  # squared weight of the further columns beside z, see LevelQuery


@dataclass(frozen=True)
class GaussianLaw:
    """GOE(scale) noise on z z', and independent N(0, scale^2) on z times a column."""

    scale: float

    @classmethod
    def of(cls, noise):
        """Law of the noise of an answer."""
        return cls(noise.scale)

    @property
    def rms(self):
        """Standard deviation of an orthonormal coordinate."""
        return self.scale

    def plus(self, other):
        """Law of the sum of two independent copies."""
        return GaussianLaw(sqrt(self.scale**2 + other.scale**2))

    def operator(self, d, failure):
        """Bound on -N in every direction at once, exceeded with at most this probability."""
        return _operator_quantile(self.scale, d, failure) if self.scale else 0.0

    def vector(self, d, failure):
        """Bound on ||N v|| for a fixed unit v."""
        return self.scale * _norm_quantile(1.0, 0.5, d, failure) if self.scale else 0.0

    def cross(self, d, failure):
        """Standard deviation of z times a column in any direction, given N; it never fails."""
        return self.scale


@dataclass(frozen=True)
class WishartLaw:
    """W1 - W2 with W = scale G G', G of shape (p, dof): pure noise on u u', u = (z, weighted rest).

    Parameters
    ----------
    scale : float
    dof : int
    """

    scale: float
    dof: int

    @classmethod
    def of(cls, noise):
        """Law of the noise of an answer."""
        return cls(noise.scale, noise.dof)

    @property
    def rms(self):
        """Standard deviation of an orthonormal coordinate of z z'."""
        return 2.0 * self.scale * sqrt(self.dof)

    def plus(self, other):
        """Law of the sum of two independent copies of the same scale."""
        return WishartLaw(self.scale, self.dof + other.dof)

    def operator(self, d, failure):
        """Bound on -N in every direction at once.

        With P = (G1 + G2) / sqrt 2 and Q = (G1 - G2) / sqrt 2, independent Gaussians, N is
        scale (P Q' + Q P'). Given P its quadratic form is 2 scale x'(P P')^(1/2) Z x, Z Gaussian,
        whose increments are at most those of 2 scale s sqrt(2) g'x for s = ||P|| (Sudakov and
        Fernique), and which is 2 scale s-Lipschitz in Z: the bound of GOE(2 scale s).
        """
        largest = sqrt(self.dof) + sqrt(d) + sqrt(2.0 * log(10.0 / failure))
        return _operator_quantile(2.0 * self.scale * largest, d, 0.9 * failure)

    def vector(self, d, failure):
        """Bound on ||N v|| for a fixed unit v.

        With V = ||G1'v||^2 + ||G2'v||^2 ~ chi2_{2m}, independent of b ~ Beta(m/2, m/2), the vector
        is scale (V (2b - 1), sqrt(V) g), g ~ N(0, I_{d-1}); 2b - 1 is sub-Gaussian with proxy
        1/(m + 1) (Marchal and Arbel 2017). Tail of a quadratic form: Hsu, Kakade and Zhang (2012).
        """
        largest = float(stats.chi2.isf(failure / 10.0, 2 * self.dof))
        first, rest = largest**2 / (self.dof + 1.0), largest
        tail = log(1.0 / (0.9 * failure))
        squares = sqrt(first**2 + (d - 1) * rest**2)
        proxy = first + (d - 1) * rest + 2.0 * squares * sqrt(tail) + 2.0 * max(first, rest) * tail
        return self.scale * sqrt(proxy)

    def cross(self, d, failure):
        """Standard deviation of z times a column: Gaussian given G_z, with covariance W1 + W2."""
        largest = sqrt(2.0 * self.dof) + sqrt(d) + sqrt(2.0 * log(1.0 / failure))
        return self.scale * largest / sqrt(CROSS_WEIGHT)


def law_of(noise):
    """Quantiles of an answer's noise."""
    return WishartLaw.of(noise) if hasattr(noise, "dof") else GaussianLaw.of(noise)
