"""Quantiles of the noise in a bin's released moments, for the two noise laws.

A bin releases noisy sums of z z' (d, d), and of z times further columns. Three quantiles serve the
intervals: of the largest |eigenvalue| of the noise N of z z'; of ||N v|| for a fixed unit v; and
the standard deviation of the noise of z times a column, given N. Failure probabilities are
explicit. Where noise has no exact law (reports), the last is a bound on a norm instead.
"""

from dataclasses import dataclass
from math import log, sqrt

from ..._estimation._certified._tails import norm_quantile, operator_quantile
from ...privacy import CodebookBlocksNoise

CROSS_WEIGHT = 0.5  # squared weight of the further columns beside z, see LevelQuery


@dataclass(frozen=True)
class GaussianLaw:
    """GOE(scale) noise on z z', and independent N(0, scale^2) on z times a column."""

    scale: float

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
class ReportLaw:
    """Sums of independent codebook reports: bounded terms, given the records.

    One term's error has second moment ``across`` in directions orthogonal to its vector, at most
    ``along`` in all, and norm at most ``bound``. For a linear map of norm 1 to vectors, whose
    squared entries add up to k, the expected norm of a sum over n users is at most
    sqrt(n (k across + (along - across)+)), and exceeds it as Klein and Rio (2005, Theorem 1.1)
    bound suprema of independent, not identically distributed terms. Levels of the tree depend on
    reports of earlier levels: the bounds of each level, given the earlier ones, are added.

    Parameters
    ----------
    parts : tuple of CodebookBlocksNoise
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
    if isinstance(noise, CodebookBlocksNoise):
        return ReportLaw((noise,))
    return GaussianLaw(noise.scale)
