"""What each of n users may spend on a shuffled report: the best of all bounds that are proved.

Symbols of pure reports -> docs/mathematics/shuffle.md ("Pure reports of two levels"). A report
takes each value with one of two probabilities (densities), whose ratio is p = exp(local epsilon); P
is the probability of the likely values, the same for all inputs, at most p / (1 + p). Then the
profile of
one report is H(t) = P (1 - t / p) for 1 <= t <= p, the weights are at most p with mean 1, and G*
has four atoms.
"""

from typing import Any
import math
from functools import lru_cache

import numpy as np

from .._accounting._budget import Budget
from ._clones import LARGEST_AMPLIFIED, shuffle_delta
from ._search import sorter_mu
from ._sorter import ABSOLUTE, reach_of

TILTS = np.geomspace(1e-5, 1.0, 300)  # of the largest tilt that is tried
SHORTS = np.array([0.1, 1.0, 3.0, 6.0, 10.0])  # -log of the part of delta for the sum of weights
LARGEST_EXPONENT = 600.0
SMALLEST_EPSILON = 1e-6  # below it exp(epsilon) - 1 has lost its digits, and nothing is gained
MARGIN = 1e-4  # relative, taken off what was computed: far above its floating-point errors


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


@lru_cache(maxsize=1024)
def amplified(budget: Budget, n: int, *, dimension: Any = None, ball: bool = False) -> Budget:
    """Budget that each of n users may spend on one Gaussian report, so that all meet ``budget``.

    Parameters
    ----------
    budget : Budget
        What the shuffled reports guarantee together.
    n : int
        Number of users whose reports are shuffled together, and who add their noise.
    dimension : int, default=None
        Length of a report; None: any. In fewer dimensions inputs lie closer to one centre.
    ball : bool, default=False
        Whether all inputs lie in one public ball whose *diameter* is the sensitivity.

    Returns
    -------
    Budget
        Its ``mu`` is what counts. It is ``budget`` itself where amplification does not help:
        shuffling is post-processing, so that the local guarantee always holds too.

    Raises
    ------
    ValueError
        If n < 1 or dimension < 1.

    Notes
    -----
    The noise of all users must be the same, of equal size in all directions of the norm in which
    the sensitivity is measured, and inputs must be clipped on the device. A smaller ``mu`` than
    the one that was proved is safe, too: more noise is post-processing.

    Examples
    --------
    >>> from skpriv import Budget
    >>> from skpriv.privacy._amplification import amplified
    >>> budget = Budget(1.0, 1e-6)
    >>> amplified(budget, 1) == budget
    True
    >>> print(f"{budget.mu:.3f} {amplified(budget, 100_000).mu:.3f}")
    0.237 2.125
    """
    n = _counted(n)
    if dimension is not None and dimension < 1:
        raise ValueError(f"dimension={dimension} must be at least 1.")
    if budget.delta == 0.0 or not SMALLEST_EPSILON <= budget.epsilon <= LARGEST_AMPLIFIED:
        return budget
    mu = sorter_mu(budget, n, reach_of(dimension, ball)) * (1.0 - MARGIN)
    return Budget.from_mu(mu, budget.delta) if mu > budget.mu else budget


@lru_cache(maxsize=1024)
def amplified_epsilon(budget: Budget, n: int, top: Any = None) -> float:
    """Largest local epsilon that is proved for each of n pure reports to meet ``budget``.

    Parameters
    ----------
    budget : Budget
        What the shuffled reports guarantee together.
    n : int
        Number of users whose reports are shuffled together.
    top : callable, default=None
        The function for reports of two levels (codebooks, K-ary subsets): the probability P of the
        likely values at a local epsilon, ``m p / (m p + K - m)`` with p = exp(local epsilon) and m
        <= K / 2; m and K may depend on the local epsilon. None: any pure reports, by clones.

    Returns
    -------
    local_epsilon : float
        ``budget.epsilon`` where nothing is gained, and with ``delta=0``.

    Raises
    ------
    ValueError
        If n < 1, or if P is larger than p / (1 + p).

    Notes
    -----
    A codebook that is drawn anew for each user must come with the report, from a seed that the
    device drew without looking at its record: a seed by the user's number would undo the shuffle.

    Examples
    --------
    >>> import math
    >>> from skpriv import Budget
    >>> from skpriv.privacy._amplification import amplified_epsilon
    >>> def top(local_epsilon, K=64, m=22):
    ...     return m / (m + (K - m) * math.exp(-local_epsilon))
    >>> print(f"{amplified_epsilon(Budget(1.0, 1e-6), 10_000, top):.2f}")
    5.02
    """
    n = _counted(n)
    epsilon, delta = budget.epsilon, budget.delta
    if delta == 0.0 or not SMALLEST_EPSILON <= epsilon <= LARGEST_AMPLIFIED:
        return epsilon
    low, high = epsilon, min(LARGEST_AMPLIFIED, epsilon + math.log(n) + 1.0)
    for _ in range(30):
        middle = 0.5 * (low + high)
        if _pure_delta(budget, middle, n, top) <= delta:
            low = middle
        else:
            high = middle
    return low


def _pure_delta(budget, local_epsilon, n, top):
    """The best bound, at a local epsilon that is MARGIN larger, with the same likely values."""
    larger = local_epsilon * (1.0 + MARGIN)
    tail = 1e-3 * budget.delta
    if top is None:
        return shuffle_delta(budget.epsilon, larger, n, None, tail)
    likely = top(local_epsilon)
    odds = likely / (1.0 - likely) * math.exp(larger - local_epsilon)
    likely = odds / (1.0 + odds)
    sorter = two_level_delta(budget.epsilon, larger, n, likely, budget.delta)
    # Two reports differ most where their likely values are disjoint: H(1) = P (1 - 1 / p).
    distance = likely * -math.expm1(-larger)
    return min(sorter, shuffle_delta(budget.epsilon, larger, n, distance, tail))


def _counted(n):
    if n < 1:
        raise ValueError(f"n={n} must be at least 1: the number of reports shuffled together.")
    # The reports beyond 1e7 only help: leaving them out is safe, and fast
    return min(int(n), 10**7)
