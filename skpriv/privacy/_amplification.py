"""The epsilon that each of n users may spend on a shuffled report, by the private sorter.

*Pure reports of two levels.* Symbols -> docs/mathematics/shuffle.md (the section of that name). A
report takes each value with one of two probabilities (densities), whose ratio is p = exp(local
epsilon); P is the probability of the likely values, the same for all inputs, at most p / (1 + p).
Then the profile of one report is H(t) = P (1 - t / p) for 1 <= t <= p, the weights are at most p
with mean 1, and G* has four atoms.

*Gaussian reports.* The adversary may be shown any private order of them. Symbols ->
docs/mathematics/shuffle.md ("The private sorter", which has the theorem and its proof):
    E = exp(epsilon), H_m(t) the delta at log t of one Gaussian release of parameter m,
    A = reach * mu bounds how far any input lies from one public centre, in units of the noise,
    u, U the weight with which the differing report is swapped with another one, and its cap,
    (T, g) where the positive tails of G* and of the first slot are cut, lambda the tilt,
    z how far the sum of weights may fall short, t0 what it then still is.
Every choice of (lambda, U, T, z, g) gives a valid bound. A good one is looked for from the point
that a table has; whatever is found, what is returned was computed at that point.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from math import exp, expm1, inf, log, log1p, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from .._linalg import bisected
from ._accounting._cost import Budget, gdp_delta

if TYPE_CHECKING:
    from .._contracts import Scalar

# No report has a larger epsilon. For a larger budget the local guarantee is kept as it is.
LARGEST_AMPLIFIED = 30.0
LARGEST_REACH = sqrt(0.5)  # a set of diameter D lies in a ball of radius D / sqrt(2) (Jung)
# Bound on twice the relative error of a normal tail, since the mass of a cell is a difference of
# two. At z deviations SciPy's tail loses at most 5 z^2/2 + 20 times 2^-53, by roundings of z^2/2,
# and its logarithm one z^2/2 more: 5e-13 at z = 37.5, beyond which a tail is below 1e-307. MARGIN
# is far above what this moves mu by, at most 2e-7 of it for 112 budgets.
RELATIVE = 1e-12
ABSOLUTE = 1e-9  # bound on the error of the logarithm of a tail or of a product over the reports
# Number of cells of an upper sum. For 38 random budgets, more cells made mu larger by 0.03% in the
# median and by at most 0.1%.
SUM_CELLS = 480
LARGEST_EXPONENT = 600.0  # sums of terms up to exp(600) = 1e260 stay below the largest double
TAIL_DEVIATIONS = 10.0  # beyond so many deviations a tail is one cell


class Point(NamedTuple):
    """The free numbers of the theorem, scaled such that none of them is far from 1.

    tilt = log(lambda (n - 1) (E - 1)), cap = log(U - 1),
    cut = log(T / ((n - 1) (E - 1))), short = -log of the probability that the sum of weights falls
    short, and slot = the number of deviations at which the first slot is cut.
    """

    tilt: float
    cap: float
    cut: float
    short: float
    slot: float


def reach_of(dimension: int | None = None) -> float:
    """Radius of a ball around any set of inputs, in units of the diameter of the set, rounded up.

    Jung's theorem: sqrt(k / (2 (k + 1))) in k dimensions.
    """
    if dimension is None:
        return LARGEST_REACH * (1.0 + 1e-12)
    return sqrt(dimension / (2.0 * (dimension + 1.0))) * (1.0 + 1e-12)


def weight_moments(reach: float, cap: float) -> tuple[float, float]:
    """E min(u, U), rounded down, and E min(u, U)^2, rounded up, for log u ~ N(-A^2/2, A^2)."""
    log_cap = log(cap)
    mean = 1.0 - gdp_delta(log_cap, reach) * (1.0 + RELATIVE)
    below = exp(reach**2 + log_ndtr((log_cap - 1.5 * reach**2) / reach))
    above = exp(2.0 * log_cap + log_ndtr(-(log_cap + 0.5 * reach**2) / reach))
    return mean - RELATIVE, (below + above) * (1.0 + RELATIVE)


def _chords(
    masses: np.ndarray,
    means: np.ndarray,
    ends: np.ndarray,
    values: np.ndarray,
    error: tuple[np.ndarray, np.ndarray],
) -> "Scalar":
    """Upper bound of the mean of a convex function from cells of known mass and first moment.

    Between the ``ends`` of a cell a convex function lies below its chord, whose mean needs the mass
    and the first moment only. ``error`` bounds the absolute errors of both.
    """
    steps = np.diff(ends)
    steps = np.where(steps == 0.0, 1.0, steps)
    upper = ((means - ends[:-1] * masses) / steps).clip(0.0, np.maximum(masses, 0.0))
    total = ((masses - upper) * values[:-1] + upper * values[1:]).sum()
    slopes = np.abs(np.diff(values) / steps)
    sizes = np.maximum(np.abs(values[:-1]), np.abs(values[1:]))
    return total + (error[0] * (sizes + np.abs(ends[:-1]) * slopes) + error[1] * slopes).sum()


def tilted_moments(
    tilt: float, epsilon: float, mu: float, cut: float, loss: float
) -> tuple[float, float]:
    """Upper bounds of E exp(lambda X^+) - 1 and of E exp(-lambda X^-) - 1, and X = X^+ - X^-.

    X = min(G*, T)^+ / (1 - eta) - G*^-, with lambda = ``tilt``, T = ``cut`` and eta = ``loss``.
    The positive part of G* is exp(mu z - mu^2/2) - E, the negative part 1 - E exp(mu z - mu^2/2),
    each where it has that sign, for a standard normal z.
    """
    boost = exp(epsilon)
    middle = mu**2 / 2.0
    first = epsilon / mu + mu / 2.0
    last = (log(boost + cut) + middle) / mu
    z = np.linspace(first, last, SUM_CELLS + 1)
    ends = np.maximum(np.exp(mu * z - middle) - boost, 0.0)
    ends[0] = 0.0
    ends[-1] = cut
    values = np.expm1(tilt * ends / (1.0 - loss))
    plus = _convex_mean(z, mu, (1.0, -boost), ends, values, 1.0 + RELATIVE)

    first = mu / 2.0 - epsilon / mu
    z = np.linspace(first, max(first, 0.0) + TAIL_DEVIATIONS, SUM_CELLS + 1)
    ends = np.minimum(1.0 - np.exp(epsilon + mu * z - middle), 0.0)
    ends[0] = 0.0
    minus = _convex_mean(z, mu, (-boost, 1.0), ends, np.expm1(tilt * ends), 1.0 - RELATIVE)
    return float(plus), float(min(minus, 0.0))


def _convex_mean(
    z: np.ndarray,
    mu: float,
    line: tuple[float, float],
    ends: np.ndarray,
    values: np.ndarray,
    tail: float,
) -> "Scalar":
    """Upper bound of the mean of a convex function of W = a exp(mu Z - mu^2/2) + b, Z normal.

    ``line`` is (a, b). W is at the ``ends`` of its cells, where the function has these ``values``,
    if Z is in the cells of ``z``. Beyond the last one the value there counts, times ``tail``.
    """
    a, b = line
    plain = ndtr(-z)  # P(Z > z)
    moved = ndtr(mu - z)  # E exp(mu Z - mu^2/2) 1(Z > z)
    masses = plain[:-1] - plain[1:]
    means = a * (moved[:-1] - moved[1:]) + b * masses
    error = RELATIVE * plain[:-1], RELATIVE * (abs(a) * moved[:-1] + abs(b) * plain[:-1])
    return _chords(masses, means, ends, values, error) + plain[-1] * values[-1] * tail


def log_slot_mean(
    n: int, plus: float, minus: float, reach: float, cap: float, rest: float
) -> float:
    """Log of an upper bound of E (phi + v (phi_+ - phi))^(n-1) over the first slot.

    phi_+ = 1 + ``plus`` and phi = phi_+ + ``minus``; v grows with u = exp(A Z + A^2/2) and is
    the same for all u <= 1, so that a sum with v at the right ends of cells lies above. ``rest``
    is t0.
    """
    # Beyond this point the tail is small even times phi_+^(n-1).
    beyond = sqrt(2.0 * (n - 1) * log1p(max(plus, 0.0)) + TAIL_DEVIATIONS**2)
    z = np.linspace(-reach / 2.0, beyond, SUM_CELLS + 1)
    log_u = np.maximum(reach * z + reach**2 / 2.0, 0.0)
    u = np.exp(np.minimum(log_u, log(cap)))
    hidden = np.exp(np.minimum(0.0, log(cap) - log_u)) / (1.0 + u / rest)  # 1 - v
    tails = log_ndtr(-z)
    inside = tails[:-1] + np.log(-np.expm1(np.diff(tails)))
    masses = np.concatenate([[log_ndtr(z[0])], inside, tails[-1:]])
    logs = masses + (n - 1) * np.log1p(np.concatenate([plus + minus * hidden, [plus]]))
    top = logs.max()
    return float(top + log(np.exp(logs - top).sum()))


def log_sorter_delta(epsilon: float, mu: float, n: int, reach: float, point: Point) -> float:
    """Log of the delta that the theorem proves at one choice of its free numbers, rounded up.

    ``reach`` is A / mu. It is at most 0, which says nothing.
    """
    others = n - 1
    boost = exp(epsilon)
    reach *= mu
    if max(map(abs, point)) > 200.0 or point.short <= 0.0:
        return 0.0
    scale = others * expm1(epsilon)
    tilt = exp(point.tilt) / scale
    cut = exp(point.cut) * scale
    cap = 1.0 + exp(point.cap)
    mean, square = weight_moments(reach, cap)
    rest = others * mean - sqrt(2.0 * square * point.short * others) - cap + 1.0  # t0
    if not rest > 1.01 * cap:
        return 0.0
    loss = cap / rest  # eta
    if tilt * cut / (1.0 - loss) > LARGEST_EXPONENT:
        return 0.0
    log_first = max(0.0, reach * point.slot + reach**2 / 2.0)  # log g
    plus, minus = tilted_moments(tilt, epsilon, mu, cut, loss)
    main = log_slot_mean(n, plus, minus, reach, cap, rest) + ABSOLUTE
    main += tilt * exp(log_first) - 1.0 - log(tilt * rest)
    parts = [
        -point.short,  # the sum of weights falls short
        _log(gdp_delta(log_first, reach) / rest),  # the first slot is cut
        _log(others * gdp_delta(log(boost + cut), mu) / (rest * (1.0 - loss))),  # G* is cut
        main,
    ]
    top = max(parts)
    total = top + log(sum(exp(part - top) for part in parts)) + ABSOLUTE
    return min(0.0, total)


def _log(value: float) -> float:
    return log(value) if value > 0.0 else -inf


# First steps of the search, about as large as the differences between the best points.
STEPS = (0.15, 0.5, 0.15, 1.0, 0.2)


def nearby_best(
    budget: Budget, mu: float, n: int, reach: float, numbers: list[float], largest: int
) -> tuple[float, Point]:
    """Value and free numbers of a local minimum of the bound near some, by so many evaluations."""
    # It takes a quarter of a second to load, and without shuffling it is not needed.
    from scipy.optimize import minimize

    def bound(x: np.ndarray) -> float:
        return log_sorter_delta(budget.epsilon, mu, n, reach, Point(*x))

    simplex = numbers + np.vstack([np.zeros(5), np.diag(STEPS)])
    options = {"initial_simplex": simplex, "maxfev": largest, "xatol": 1e-2, "fatol": 2e-3}
    found = minimize(bound, numbers, method="Nelder-Mead", options=options)
    return found.fun, Point(*map(float, found.x))


def sorter_mu(budget: Budget, n: int, reach: float) -> float:
    """Largest mu of a Gaussian report for which a proof was found, or 0; ``reach`` is A / mu."""
    if n < 3:
        return 0.0
    log_mu, *numbers = _table()([log(budget.epsilon), log(n), -log(budget.delta)])[0].tolist()
    mu = exp(log_mu)
    mu = _largest_mu(budget, n, reach, Point(*numbers), mu) or mu
    _, best = nearby_best(budget, mu, n, reach, numbers, 60)
    return _largest_mu(budget, n, reach, best, mu)


@lru_cache(maxsize=1)
def _table() -> Any:
    """Free numbers by linear interpolation in a table, which `benchmarks/shuffle_points.py` makes.

    It is a function of the logarithms of epsilon, of n and of one over delta, also beyond its ends.
    """
    from scipy.interpolate import RegularGridInterpolator

    read = json.loads(Path(__file__).with_name("points.json").read_text(encoding="utf-8"))
    return RegularGridInterpolator(**read, bounds_error=False, fill_value=None)


def _largest_mu(budget: Budget, n: int, reach: float, point: Point, mu: float) -> float:
    """Largest mu near the given one at which this point proves the budget, or 0."""
    target = log(budget.delta)
    low = 0.0
    high = mu
    factor = 1.03

    def proves(value: float) -> bool:
        return log_sorter_delta(budget.epsilon, value, n, reach, point) <= target

    while low == 0.0 and high > 0.5 * mu:
        low, high = (high, high * factor) if proves(high) else (0.0, high / factor)
    while low > 0.0 and high < 4.0 * mu and proves(high):
        low = high
        high *= factor
    return low and bisected(proves, low, high, 1e-5 * low)[0]


TILTS = np.geomspace(1e-5, 1.0, 300)  # tilts that are tried, over the largest one
# For each, exp(-short) is the part of delta for the event that the sum of weights falls short.
SHORTS = np.array([0.1, 1.0, 3.0, 6.0, 10.0])
SMALLEST_EPSILON = 1e-6  # below it exp(epsilon) - 1 loses its digits, and nothing is gained
MARGIN = 1e-4  # taken off every result, relatively: far above the errors of floating point


def weight_square(p: float, top: float) -> float:
    """E min(u, U)^2 with U = p, rounded up."""
    return (p * top + 1.0 - top) * (1.0 + 1e-12)


def atoms(p: float, boost: float, top: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities of G*, for the worst inputs of the other users."""
    values = np.array([p - boost, 0.0, 1.0 - boost, 1.0 - boost * p])
    return values, np.array([top / p, top - top / p, 1.0 - top - top / p, top / p])


def two_level_delta(
    epsilon: float, local_epsilon: float, n: int, top: float, delta: float
) -> float:
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
    p = exp(local_epsilon)
    boost = exp(epsilon)
    others = n - 1
    if not 0.0 < top <= p / (1.0 + p) * (1.0 + 1e-12):
        raise ValueError(f"top={top} must lie in (0, p / (1 + p)], p={p:.6g}: take m <= K / 2.")
    if epsilon >= local_epsilon:
        return 0.0
    if others < 1:
        return 1.0
    short = log(1.0 / delta) + SHORTS[:, None]
    rest = others - np.sqrt(2.0 * weight_square(p, top) * short * others) - p + 1.0  # t0
    possible = rest[:, 0] > 1.01 * p
    if not possible.any():
        return 1.0
    short = short[possible]
    rest = rest[possible]
    values, masses = atoms(p, boost, top)
    gain = values[0] / (1.0 - p / rest)
    tilts = TILTS * LARGEST_EXPONENT / gain
    plus = masses[0] * np.expm1(tilts * gain)
    minus = masses[2] * np.expm1(tilts * values[2]) + masses[3] * np.expm1(tilts * values[3])
    # In the first slot u is p with probability at most P, and at most 1 otherwise.
    logs = [
        log(mass) + others * np.log1p(plus + minus / (1.0 + u / rest))
        for mass, u in ((top, p), (1.0 - top, 1.0))
    ]
    main = np.logaddexp(*logs) + tilts - 1.0 - np.log(tilts * rest)
    total = np.logaddexp(main, -short).min() + 2.0 * ABSOLUTE
    return exp(min(0.0, total))


@lru_cache(maxsize=1024)
def amplified(budget: Budget, n: int, *, dimension: int | None = None) -> Budget:
    """Budget that each of n users may spend on one Gaussian report, so that all meet ``budget``.

    Parameters
    ----------
    budget : Budget
        What the shuffled reports guarantee together.
    n : int
        Number of users whose reports are shuffled together, and who add their noise.
    dimension : int, default=None
        Length of a report; None: any. In fewer dimensions inputs lie closer to one centre.

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
    mu = sorter_mu(budget, n, reach_of(dimension)) * (1.0 - MARGIN)
    return Budget.from_mu(mu, budget.delta) if mu > budget.mu else budget


@lru_cache(maxsize=1024)
def amplified_epsilon(budget: Budget, n: int, top: Callable[[float], float]) -> float:
    """Largest local epsilon that is proved for each of n reports of two levels to meet ``budget``.

    Parameters
    ----------
    budget : Budget
        What the shuffled reports guarantee together.
    n : int
        Number of users whose reports are shuffled together.
    top : callable
        The probability P of the likely values at a local epsilon, ``m p / (m p + K - m)`` for
        codebooks and K-ary subsets, with p = exp(local epsilon) and m <= K / 2; m and K may depend
        on the local epsilon.

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
    epsilon = budget.epsilon
    delta = budget.delta
    if delta == 0.0 or not SMALLEST_EPSILON <= epsilon <= LARGEST_AMPLIFIED:
        return epsilon
    high = min(LARGEST_AMPLIFIED, epsilon + log(n) + 1.0)

    def proves(local_epsilon: float) -> bool:
        return _pure_delta(budget, local_epsilon, n, top) <= delta

    return bisected(proves, epsilon, high, steps=30)[0]


def _pure_delta(
    budget: Budget, local_epsilon: float, n: int, top: Callable[[float], float]
) -> float:
    """Delta at a local epsilon that is larger by MARGIN, with the same likely values."""
    larger = local_epsilon * (1.0 + MARGIN)
    likely = top(local_epsilon)
    odds = likely / (1.0 - likely) * exp(larger - local_epsilon)
    return two_level_delta(budget.epsilon, larger, n, odds / (1.0 + odds), budget.delta)


def _counted(n: int) -> int:
    if n < 1:
        raise ValueError(f"n={n} must be at least 1: the number of reports shuffled together.")
    # More than 1e7 reports hide a user even better: counting fewer of them is safe, and fast.
    return min(int(n), 10**7)
