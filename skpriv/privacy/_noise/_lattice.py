"""Exact draws of discrete Gaussian noise on a grid, and the shares that a device sends.

No rounding is part of the law of noise: every decision compares random bits with a chance. Doubles
decide where their error, which is proved in docs/mathematics/noise.md, cannot matter; elsewhere
digits and bits are added until they decide. NumPy and the standard library are enough for that.
"""

import os
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, frexp, isqrt, ldexp, log
from sys import float_info
from typing import Any

import numpy as np

from ..._linalg import unwarned
from ...exceptions import PrivacyError
from .._accounting._lattice import WIDTH

WORD = np.iinfo(np.uint64).bits  # bits of one random number
BUCKETS = 512  # buckets of equal width, which cover at least 12 deviations of the noise
CHANCE_BITS = 40  # bits of the weight of a bucket as wide as the first one
# Doubles do not decide where a random number differs from a chance by less than CLOSE times the
# chance, or by less than NO_DIFFERENCE. Their relative error is below 2^-43 for every chance above
# 2^-51, an eighth of CLOSE.
CLOSE = 2.0**-40
NO_DIFFERENCE = 2.0**-50
# The standard deviation of released noise is between 2^44 and 2^45 steps of its grid. Points of the
# grid are exact doubles up to 80 times that.
GRANULARITY = 44
LARGEST_VARIANCE = 4 ** (GRANULARITY + 1)  # largest variance, in steps squared
PROPOSAL_ROUNDS = 512  # all of them fail less than once in 2^400 draws
# Each term of the series of 2^r over the term before and r; twelve leave out less than 2^-51.
RATIOS = log(2.0) / np.arange(1, 13)[:, None]


def discrete_gaussian(
    variance: int, centers: np.ndarray, entropy: Callable[[int], bytes] = os.urandom
) -> np.ndarray:
    """Independent integers z, each with a chance in proportion to exp(-(z - c)^2 / (2 variance)).

    Parameters
    ----------
    variance : int
        A number from 1 to 2^90.
    centers : ndarray of shape (size,)
        c of each of them, from -1/2 to 1/2.
    entropy : callable, default=os.urandom
        ``entropy(n)`` returns n random bytes; of the operating system for a real release.

    Returns
    -------
    ndarray of shape (size,), of 64-bit integers

    Notes
    -----
    Proposed are a bucket with a chance in proportion to its weight, one of its integers with equal
    chances, and a sign. The weight bounds the law inside of the bucket, so that what is taken with
    the chance of the law over that bound has the law itself. A negative zero is not taken.
    """
    if not 1 <= variance <= LARGEST_VARIANCE:
        raise PrivacyError(f"variance={variance} must be from 1 to 2^90 steps squared.")
    found = np.empty(len(centers), np.int64)
    missing = np.arange(len(centers))
    for _ in range(PROPOSAL_ROUNDS):
        # Rejected proposals are drawn again, in their places
        found[missing], taken = _proposals(variance, centers[missing], entropy)
        missing = missing[~taken]
        if not missing.size:
            return found
    raise PrivacyError("the source of random bytes gives no usable ones.")


def _proposals(
    variance: int, centers: np.ndarray, entropy: Callable[[int], bytes]
) -> tuple[np.ndarray, np.ndarray]:
    """One proposal for each center, and whether it is taken."""
    starts, widths, tops, weights, ends, sure = _buckets(variance)
    words, places, chances = random_words(3 * len(centers), entropy).reshape(3, -1)
    # A remainder of a random word is uniform only if the smallest words are left out.
    possible = words >= np.uint64(2**WORD % int(ends[-1]))
    bucket = ends.searchsorted(words % ends[-1], side="right")
    z = starts[bucket] + (places & (widths[bucket] - np.uint64(1))).view(np.int64)
    sign = 1 - 2 * (places >> np.uint64(WORD - 1)).view(np.int64)
    possible &= (z > 0) | (sign > 0)
    taken = possible & (chances < sure[bucket])
    z *= sign
    (rest,) = (possible & ~taken).nonzero()
    if not rest.size:
        return z, taken
    about = centers[rest]
    inside = bucket[rest]
    computed = _chance(z[rest] - about, variance) * (tops[inside] / weights[inside])
    drawn = chances[rest] * 2.0**-WORD
    taken[rest] = drawn < computed
    for i in (np.abs(drawn - computed) <= CLOSE * computed + NO_DIFFERENCE).nonzero()[0]:
        distance = Decimal(int(z[rest[i]])), Decimal(about[i])
        height = int(tops[inside[i]]), int(weights[inside[i]])
        taken[rest[i]] = _exactly(int(chances[rest[i]]), height, distance, variance, entropy)
    return z, taken


@lru_cache(maxsize=64)
def _buckets(variance: int) -> tuple[np.ndarray, ...]:
    """First integer, width, unit and weight of each bucket, the sums of the weights up to each, and
    words below which all is taken.

    The weight is an integer above ``unit exp(-z^2 / (2 variance))`` for each z within 1/2 of the
    bucket; the unit is 2^40 times the width, in widths of the first one.
    """
    width = 1 << ((12 * (isqrt(variance) + 1) - 1) // BUCKETS).bit_length()
    widths = np.append(np.ones(BUCKETS, np.uint64), [BUCKETS, 2 * BUCKETS]).astype(np.uint64)
    tops = 2.0**CHANCE_BITS * widths
    widths *= np.uint64(width)
    ends = widths.cumsum()
    starts = (ends - widths).view(np.int64)
    nearest = tops * _chance(np.maximum(starts - 0.5, 0.0), variance)
    weights = (nearest * (1.0 + 2.0**-30)).astype(np.uint64) + np.uint64(2)
    least = tops * _chance(ends.astype(float), variance) / weights
    sure = (least * (1.0 - 2.0**-30) * 2.0**WORD).astype(np.uint64)
    return starts, widths, tops, weights, weights.cumsum(), sure


def _chance(away: np.ndarray, variance: int) -> Any:
    """exp(-away^2 / (2 variance)) by sums, products and roundings of doubles alone."""
    exponent = away * away * (-1.0 / (2.0 * log(2.0) * variance))
    integer = np.rint(exponent)
    rest = exponent - integer  # an exact difference, from -1/2 to 1/2
    terms = np.multiply.accumulate(RATIOS * rest)
    return np.ldexp(1.0 + terms.sum(axis=0), integer.astype(np.int32))


def _exactly(word: int, height: Any, distance: Any, variance: int, entropy: Any) -> bool:
    """Whether a uniform number that begins with these bits is below a chance.

    The chance is top exp(-(z - c)^2 / (2 variance)) / weight for the height (top, weight) and the
    distance (z, c). Digits and bits are added until they decide. So many digits as are computed
    leave 2^bits times the chance with an error below 10^-20 (docs/mathematics/noise.md).
    """
    bits = WORD
    while True:
        with localcontext(prec=30 + bits // 3):
            away = distance[0] - distance[1]
            chance = (-away * away / Decimal(2 * variance)).exp() * height[0] * 2**bits / height[1]
            error = Decimal(10) ** -20
            if word + 1 <= chance - error:
                return True
            if word >= chance + error:
                return False
        word = (word << WORD) | int.from_bytes(entropy(8), "little")
        bits += WORD


def random_words(n: int, entropy: Callable[[int], bytes]) -> np.ndarray:
    """Uniform 64-bit words."""
    return np.frombuffer(entropy(8 * n), "<u8")


SMALLEST_EXPONENT = float_info.min_exp - float_info.mant_dig  # the exponent of the smallest double


def gaussian_on_grid(values: Any, scale: float) -> np.ndarray:
    """Each value plus Gaussian noise that is rounded to a grid at random: an exact draw.

    Parameters
    ----------
    values : ndarray of floats
        What is no number counts as 0.
    scale : float
        Standard deviation, above 0. The result is a random function of the value plus Gaussian
        noise of at least this deviation, which does not depend on the value.

    Returns
    -------
    ndarray of the same shape
        Points of the grid, rounded to doubles.

    Notes
    -----
    The nearest point of the grid plus a draw about the rest of the value: that has the chance
    exp(-(point - value)^2 / (2 s^2)) over a constant for every point, with the exact value.
    """
    step, variance = grid(scale)
    with unwarned():
        flat = np.asarray(values, float).ravel()
        steps = flat / step  # exact, because the step is a power of two
        nearest = np.rint(steps)
        points = nearest * step
        rests = steps - nearest
        # Doubles as large as these are points of the grid themselves
        (far,) = (~(np.abs(steps) < 2.0**52)).nonzero()
        if far.size:
            points[far] = np.nan_to_num(flat[far])
            rests[far] = 0.0
        # The exact sum of two points of the grid is rounded to a double: a function of it.
        points += step * discrete_gaussian(variance, rests, os.urandom)
    return points.reshape(np.shape(values))


@lru_cache(maxsize=64)
def grid(scale: float) -> tuple[float, int]:
    """Step of the grid, a power of two, and variance of the noise, in steps squared."""
    step = ldexp(1.0, max(frexp(scale)[1] - 1 - GRANULARITY, SMALLEST_EXPONENT))
    return step, ceil((Fraction(scale) / Fraction(step)) ** 2) + int(WIDTH**2)


def rounded(values: np.ndarray, step: float) -> np.ndarray:
    """Nearest points of the grid, as 64-bit integers; what is no number is 0."""
    with unwarned():
        scaled = np.rint(np.asarray(values, float).ravel() / step)
    inside = np.abs(scaled) < 2.0**62
    return np.where(inside, scaled, 0.0).astype(np.int64)


def additive_shares(
    values: np.ndarray, shares: int, entropy: Callable[[int], bytes] = os.urandom
) -> np.ndarray:
    """Split each integer into uniform ones that add up to it modulo 2^64.

    Parameters
    ----------
    values : ndarray of shape (size,), of 64-bit integers
    shares : int
        How many of each; any number of them but all is uniform and independent of the value.
    entropy : callable, default=os.urandom

    Returns
    -------
    ndarray of shape (shares, size), of unsigned 64-bit integers
    """
    values = np.asarray(values, np.int64).view(np.uint64)
    mixed = random_words((shares - 1) * len(values), entropy).reshape(shares - 1, len(values))
    return np.vstack([mixed, values - mixed.sum(axis=0, dtype=np.uint64)])


def summed_shares(parts: np.ndarray) -> np.ndarray:
    """Sum of shares modulo 2^64, as signed integers."""
    total: np.ndarray = np.asarray(parts, np.uint64).sum(axis=0, dtype=np.uint64)
    return total.view(np.int64)
