"""Pure reports of two levels: the sorter for codebook and K-ary subset reports.

Symbols -> docs/shuffle.md ("Pure reports of two levels"). A report takes each value with one of two
probabilities (densities), whose ratio is p = exp(local epsilon); P is the probability of the likely
values, the same for all inputs, at most p / (1 + p). Then the profile of one report is
H(t) = P (1 - t / p) for 1 <= t <= p, the weights are at most p with mean 1, and G* has four atoms.
"""

import math

import numpy as np

from ._sorter import ABSOLUTE

TILTS = np.geomspace(1e-5, 1.0, 300)  # of the largest tilt that is tried
SHORTS = np.array([0.1, 1.0, 3.0, 6.0, 10.0])  # -log of the part of delta for the sum of weights
LARGEST_EXPONENT = 600.0


def weight_square(p, top):
    """E min(u, U)^2 with U = p, rounded up."""
    return (p * top + 1.0 - top) * (1.0 + 1e-12)


def atoms(p, boost, top):
    """Values and probabilities of G*, the others at their worst."""
    values = np.array([p - boost, 0.0, 1.0 - boost, 1.0 - boost * p])
    return values, np.array([top / p, top - top / p, 1.0 - top - top / p, top / p])


def two_level_delta(epsilon, local_epsilon, n, top, delta):
    """Delta of n shuffled reports of two levels, rounded up.

    Parameters
    ----------
    epsilon : float >= 0
    local_epsilon : float > 0
    n : int
    top : float in (0, p / (1 + p)]
        P, the probability of the likely values. K-ary subset reports with m of K values have
        P = m p / (m p + K - m), and m <= K / 2.
    delta : float in (0, 1)
        What is hoped for: the bound is best near it, and valid everywhere.

    Returns
    -------
    delta : float

    Raises
    ------
    ValueError
        If ``top`` is outside of its range, where the theorem does not hold.
    """
    p, boost, others = math.exp(local_epsilon), math.exp(epsilon), n - 1
    if not 0.0 < top <= p / (1.0 + p) * (1.0 + 1e-12):
        raise ValueError(f"top={top} must lie in (0, p / (1 + p)], p={p:.6g}: take m <= K / 2.")
    if epsilon >= local_epsilon:
        return 0.0
    if others < 1:
        return 1.0
    short = math.log(1.0 / delta) + SHORTS[:, None]
    rest = others - np.sqrt(2.0 * weight_square(p, top) * short * others) - p + 1.0  # t0
    possible = rest[:, 0] > 1.01 * p
    if not possible.any():
        return 1.0
    short, rest = short[possible], rest[possible]
    values, masses = atoms(p, boost, top)
    gain = values[0] / (1.0 - p / rest)
    tilts = TILTS * LARGEST_EXPONENT / gain
    plus = masses[0] * np.expm1(tilts * gain)
    minus = masses[2] * np.expm1(tilts * values[2]) + masses[3] * np.expm1(tilts * values[3])
    # Of the first slot: u = p with probability at most P, else at most 1; 1 - v at both.
    logs = [
        math.log(mass) + others * np.log1p(plus + minus / (1.0 + u / rest))
        for mass, u in ((top, p), (1.0 - top, 1.0))
    ]
    main = np.logaddexp(*logs) + tilts - 1.0 - np.log(tilts * rest)
    total = np.logaddexp(main, -short).min() + 2.0 * ABSOLUTE
    return float(math.exp(min(0.0, total)))
