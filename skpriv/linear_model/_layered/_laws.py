"""Quantiles of the noise in a bin's released moments, for the three noise laws.

A bin releases noisy sums of z z' (d, d), and of z times further columns. Three quantiles serve the
intervals: of the largest |eigenvalue| of the noise N of z z'; of ||N v|| for a fixed unit v; and
the standard deviation of the noise of z times a column, given N. Failure probabilities are
explicit. Where noise has no exact law (PrivUnit), the last is a bound on a norm instead.
"""

from dataclasses import dataclass
from math import log, sqrt

from scipy import stats

from ..._equations._intervals import split_failure
from ..._equations._certified._tails import norm_quantile, operator_quantile
from ...privacy import PrivUnitNoise

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

    @property
    def typical(self):
        """The law itself, for choices that no guarantee depends on."""
        return self

    def plus(self, other):
        """Law of the sum of two independent copies."""
        return GaussianLaw(sqrt(self.scale**2 + other.scale**2))

    def operator(self, d, failure):
        """Bound on -N in every direction at once, exceeded with at most this probability."""
        return operator_quantile(self.scale, d, failure) if self.scale else 0.0

    def vector(self, d, failure):
        """Bound on ||N v|| for a fixed unit v."""
        return self.scale * norm_quantile(1.0, 0.5, d, failure) if self.scale else 0.0

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

    @property
    def typical(self):
        """The law itself, for choices that no guarantee depends on."""
        return self

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
        of_factor, of_form = split_failure(failure, 0.1, 0.9)
        largest = sqrt(self.dof) + sqrt(d) + sqrt(2.0 * log(1.0 / of_factor))
        return operator_quantile(2.0 * self.scale * largest, d, of_form)

    def vector(self, d, failure):
        """Bound on ||N v|| for a fixed unit v.

        With V = ||G1'v||^2 + ||G2'v||^2 ~ chi2_{2m}, independent of b ~ Beta(m/2, m/2), the vector
        is scale (V (2b - 1), sqrt(V) g), g ~ N(0, I_{d-1}); 2b - 1 is sub-Gaussian with proxy
        1/(m + 1) (Marchal and Arbel 2017). Tail of a quadratic form: Hsu, Kakade and Zhang (2012).
        """
        of_length, of_form = split_failure(failure, 0.1, 0.9)
        largest = float(stats.chi2.isf(of_length, 2 * self.dof))
        first, rest = largest**2 / (self.dof + 1.0), largest
        tail = log(1.0 / of_form)
        squares = sqrt(first**2 + (d - 1) * rest**2)
        proxy = first + (d - 1) * rest + 2.0 * squares * sqrt(tail) + 2.0 * max(first, rest) * tail
        return self.scale * sqrt(proxy)

    def cross(self, d, failure):
        """Standard deviation of z times a column: Gaussian given G_z, with covariance W1 + W2."""
        largest = sqrt(2.0 * self.dof) + sqrt(d) + sqrt(2.0 * log(1.0 / failure))
        return self.scale * largest / sqrt(CROSS_WEIGHT)


@dataclass(frozen=True)
class ReportLaw:
    """Sums of independent PrivUnit reports: bounded terms, given the records.

    One term's error has second moment ``across`` in directions orthogonal to its vector, at most
    ``along`` in all, and norm at most ``bound``. For a linear map of norm 1 to vectors, whose
    squared entries add up to k, the expected norm of a sum over n users is at most
    sqrt(n (k across + (along - across)+)), and exceeds it as Klein and Rio (2005, Theorem 1.1)
    bound suprema of independent, not identically distributed terms. Levels of the tree depend on
    reports of earlier levels: the bounds of each level, given the earlier ones, are added.

    Parameters
    ----------
    parts : tuple of PrivUnitNoise
        The laws of the sums that have been added, each over users of its own.
    """

    parts: tuple

    @property
    def rms(self):
        """Standard deviation of an orthonormal coordinate."""
        return sqrt(sum(part.scale**2 for part in self.parts))

    @property
    def typical(self):
        """The nearest Gaussian law, for choices that no guarantee depends on."""
        return GaussianLaw(self.rms)

    def plus(self, other):
        """Law of the sum of two independent copies."""
        return ReportLaw(self.parts + other.parts)

    def operator(self, d, failure):
        """Bound on -N in every direction at once; its mean by Tropp (2015, Theorem 6.6.1)."""

        def mean(part):
            variance = part.reports * max(part.along, part.across) * (d + 1.0) / 2.0
            return sqrt(2.0 * variance * log(d)) + part.bound * log(d) / 3.0

        return self._total(failure, d * (d + 1.0) / 2.0, 1.0, mean)

    def equation(self, d, factor, inner, outer, failure):
        """Bound on the norm of (target - cross P'theta) - gram Q'theta / factor, all noise alone.

        With ||Q'theta|| <= inner and ||P'theta|| <= outer. The three act on coordinates of their
        own; the squared norms add up, and the squared entries of gram's map are (d + 1) / 2.
        """
        top = 1.0 + outer**2 + (inner / factor) ** 2
        squares = d * (1.0 + outer**2) + (d + 1.0) / 2.0 * (inner / factor) ** 2
        return self._total(failure, squares, top)

    def cross(self, d, failure):
        """Standard deviation of z times a column in any direction, on average."""
        return self.rms

    def _total(self, failure, squares, top, matrix_mean=None):
        """Bound for a map whose squared entries add up to squares, its squared norm top."""
        tail, total = log(len(self.parts) / failure), 0.0
        for part in self.parts:
            excess = max(part.along - part.across, 0.0)
            mean = sqrt(part.reports * (squares * part.across + top * excess))
            if matrix_mean is not None:
                mean = min(mean, matrix_mean(part))
            weak, bound = part.reports * top * max(part.along, part.across), sqrt(top) * part.bound
            first = 3.0 * bound * tail
            total += mean + 0.5 * (
                first + sqrt(first**2 + 8.0 * tail * (weak + 2.0 * bound * mean))
            )
        return total


def law_of(noise):
    """Quantiles of an answer's noise."""
    if isinstance(noise, PrivUnitNoise):
        return ReportLaw((noise,))
    return WishartLaw.of(noise) if hasattr(noise, "dof") else GaussianLaw.of(noise)
