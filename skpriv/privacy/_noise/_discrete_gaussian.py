"""Exact draws of discrete Gaussian noise on a grid: no rounding is part of their law.

Every decision compares random bits with a chance. Doubles decide where their error, which is proved
in docs/mathematics/noise.md, cannot matter; elsewhere digits and bits are added until they decide.
NumPy and the standard library are enough for that.
"""

import os
from collections.abc import Callable
from decimal import Decimal, localcontext
from math import isqrt, log

import numpy as np

from ...exceptions import PrivacyError

WORD = np.iinfo(np.uint64).bits  # that are drawn at once
HIGHEST = 56  # of them tell a level, and another one the sign
# Doubles decide nothing within CLOSE of a chance or within NOTHING: 8 times their error, 2^-43 of
# any chance above 2^-51.
CLOSE, NOTHING = 2.0**-40, 2.0**-50
# The scale of released noise is from 2^44 to 2^45 steps of its grid, of which multiples are exact
# doubles up to 80 times the scale.
GRANULARITY = 44
LARGEST = 4 ** (GRANULARITY + 1)  # variance
PROPOSAL_ROUNDS = 512  # of two proposals or more: they all fail less than once in 2^350 draws
PROPOSALS = 1024  # at most so many are made at once: a second round costs as much as 600 more
LN2 = log(2.0)
POWERS = [1.0]  # 2^r for |r| <= 1/2 is a series in r, whose rest is below 2^-51
for j in range(1, 13):
    POWERS.append(POWERS[-1] * LN2 / j)
DEAD = "the source of random bytes gives no usable ones."


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
    Proposed is z = v t + u with a random sign, where t is a power of two and t - 1/2 at least
    sqrt(2 ln 2 variance), u is uniform from 0 to t - 1, and v has the chance 2^-(v+1). It is taken
    with the chance 2^v exp(-(z - c)^2 / (2 variance)), which is at most 1 since |z - c| is at least
    v t - 1/2 and v <= v^2; a negative zero is not taken. From 26% to 53% are taken.
    """
    if not 1 <= variance <= LARGEST:
        raise PrivacyError(f"variance={variance} must be from 1 to 2^90 steps squared.")
    width = 1 << (isqrt(int(2.0 * LN2 * variance * (1.0 + 2.0**-40))) + 1).bit_length()
    found = np.zeros(len(centers), dtype=np.int64)
    missing = np.arange(len(centers))
    for _ in range(PROPOSAL_ROUNDS):
        if not missing.size:
            return found
        # Of twelve all fail once in 300 draws, or in 40 at worst
        tries = max(2, min(12, PROPOSALS // missing.size))
        about = np.concatenate([centers[missing]] * tries)
        proposed, taken = _proposals(variance, width, about, entropy)
        first = taken.reshape(tries, -1).argmax(axis=0) * missing.size + np.arange(missing.size)
        found[missing] = proposed[first]  # those of which none is taken are drawn again
        missing = missing[~taken[first]]
    raise PrivacyError(DEAD)


def _proposals(variance, width, centers, entropy):
    """One proposal for each center, and whether it is taken."""
    uniform = (random_words(len(centers), entropy) & np.uint64(width - 1)).view(np.int64)
    level, negative = _levels(len(centers), entropy)
    z = level * width + uniform
    words = random_words(len(centers), entropy)
    sign = 1 - 2 * negative
    away = z - sign * centers
    drawn, chance = words * 2.0**-WORD, _chance(level, away, variance)
    taken = drawn < chance
    possible = (level < HIGHEST) & ~(negative & (z == 0))
    near = np.abs(drawn - chance) <= CLOSE * chance + NOTHING
    for i in np.flatnonzero(near & possible):
        distance = Decimal(int(z[i])), Decimal(sign[i] * centers[i])
        taken[i] = _exactly(int(words[i]), int(level[i]), distance, variance, entropy)
    return sign * z, taken & possible


def _chance(level, away, variance):
    """2^level exp(-away^2 / (2 variance)) by sums, products and roundings of doubles alone."""
    exponent = level - away * away * (1.0 / (2.0 * LN2 * variance))
    whole = np.rint(exponent)
    rest = exponent - whole  # exact, within half a unit of 0
    power = POWERS[-1] * rest
    power += POWERS[-2]
    for coefficient in POWERS[-3::-1]:
        power *= rest
        power += coefficient
    return np.ldexp(power, whole.astype(np.int32))


def _exactly(word, level, distance, variance, entropy):
    """Whether a uniform number that begins with these bits is below a chance.

    The chance is 2^level exp(-(z - c)^2 / (2 variance)) for the distance (z, c). Digits and bits
    are added until they decide.
    """
    bits = WORD
    while True:
        with localcontext() as context:
            context.prec = 30 + bits
            away = distance[0] - distance[1]
            chance = (-away * away / Decimal(2 * variance)).exp() * 2**level * 2**bits
            error = chance * Decimal(10) ** -(25 + bits // 2) + Decimal(10) ** -20
            if word + 1 <= chance - error:
                return True
            if word >= chance + error:
                return False
        word, bits = (word << WORD) | int.from_bytes(entropy(8), "little"), bits + WORD


def random_words(n: int, entropy: Callable[[int], bytes]) -> np.ndarray:
    """Uniform 64-bit words."""
    return np.frombuffer(entropy(8 * n), dtype="<u8")


def _levels(n, entropy):
    """v with the chance 2^-(v+1): ones before the first zero; and a fair bit.

    Levels from 56 on are all called 56: they would be taken with a chance below 2^-3000, and are
    left out.
    """
    words = random_words(n, entropy)
    negative = (words & np.uint64(1)).astype(bool)
    rest = words >> np.uint64(WORD - HIGHEST) | np.uint64(1 << HIGHEST)
    lowest = (rest & -rest).astype(float)  # 2^level, whose exponent is above 52 other bits
    return (lowest.view(np.int64) >> 52) - 1023, negative
