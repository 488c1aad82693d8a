"""What each of n users may spend on a shuffled report: the best of all bounds that are proved.

*Pure reports of two levels.* Symbols -> docs/mathematics/shuffle.md (the section of that name). A
report takes each value with one of two probabilities (densities), whose ratio is p = exp(local
epsilon); P is the probability of the likely values, the same for all inputs, at most p / (1 + p).
Then the profile of one report is H(t) = P (1 - t / p) for 1 <= t <= p, the weights are at most p
with mean 1, and G* has four atoms.

*Clones.* What others are sure to send looks like the report in question. Symbols: p = exp(local
epsilon), R0 and R1 the reports of the two records that neighbours differ in, t their total
variation distance, a = beta / (p - 1) for a number beta >= t that we may choose.

The reduction (Feldman, McMillan and Talwar 2022; the form with a total variation is in the spirit
of Wang et al. 2023, whose reduction to counts alone is not valid: see docs/mathematics/shuffle.md).
With the densities M = max(R0, R1) and m = min(R0, R1), (p m - M) / (p (p - 1)) of M / p is left
over when |R0 - R1| / (p - 1) is taken off. Let C be it, normalised, and
    Q0 = ((R0 - R1)^+ + (beta - t) C) / beta,  Q1 = ((R1 - R0)^+ + (beta - t) C) / beta.
As long as t <= beta <= (p - 1) (1 + t) / (2 p),
    R0 = p a Q0 + a Q1 + rest,  R1 = a Q0 + p a Q1 + rest,  the same rest in both worlds,
and every other report has R >= M / p >= a Q0 + a Q1. So a report is of one of three kinds: the
differing one is visible with probability (p + 1) a, and then from Q0 or Q1 with odds p : 1 or 1 :
p; each other one is a clone with probability 2 a, from Q0 or Q1 with odds 1 : 1. Tell the adversary
whether the differing report is visible. If not, both worlds are the same. If it is, all that
matters is how many came from Q0 and how many from Q1: who the clones are, and what the rest sent,
can be drawn from these counts. Hence
    delta <= (p + 1) a D(2 a),
where D is the divergence of the two laws of counts. (Leaving the first sentence out, as the
reduction to counts does, is wrong: given the counts, the probability that the differing report is
visible is not the same in the two worlds.)

A bound t <= T for all pairs serves in two ways. If T <= (p - 1) / (2 p), every beta from T to that
number suits every pair; the two ends are tried. Else a pair may take the least of T and its own
largest beta: a is at most T / (p - 1), and 2 a at least 1 / p, of which D is a falling function.
Without T this is (p + 1) a = 1 and 2 a = 1 / p, the bound of Feldman, McMillan and Talwar.

*Gaussian reports.* The adversary may be shown any private order of them. Symbols ->
docs/mathematics/shuffle.md ("The private sorter", which has the theorem and its proof):
    E = exp(epsilon), H_m(t) the delta at log t of one Gaussian release of parameter m,
    A = reach * mu bounds how far any input lies from one public centre, in units of the noise,
    u, U the weight with which the differing report is swapped with another one, and its cap,
    (T, g) where the positive tails of G* and of the first slot are cut, lambda the tilt,
    z how far the sum of weights may fall short, t0 what it then still is.
Every choice of (lambda, U, T, z, g) gives a valid bound. The best is looked for by a table, a short
search from it, and a long one; whatever they find, what is returned was computed at the point that
was found.
"""

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr, ndtri

from ._accounting._cost import Budget, gdp_delta, gdp_mu

LARGEST_AMPLIFIED = 30.0  # beyond it a report is not private, and the local guarantee is kept
RELATIVE_ERROR = 1e-7  # of the sums of absolute terms, far above the error of the binomial tails


def shuffle_delta(epsilon, local_epsilon, n, total_variation=None, tail=1e-14):
    """Delta of n shuffled reports with this local epsilon, rounded up.

    Parameters
    ----------
    epsilon : float >= 0
        The epsilon of the guarantee for all reports together.
    local_epsilon : float > 0
        Bound on the log likelihood ratio of any two reports.
    n : int
        Number of reports.
    total_variation : float, default=None
        Bound on the total variation distance of any two reports; None: the largest possible.
    tail : float, default=1e-14
        Probability that may be added to the result to save time.

    Returns
    -------
    delta : float

    Examples
    --------
    >>> from skpriv.privacy._amplification import shuffle_delta
    >>> bool(shuffle_delta(0.5, 2.0, 10_000) < 1e-6)
    True
    """
    if epsilon >= local_epsilon:
        return 0.0
    p = math.exp(local_epsilon)
    largest = 1.0 / (p + 1.0)  # of a, as t <= (p - 1) / (p + 1) for a ratio of at most p
    a = largest if total_variation is None else min(largest, total_variation / (p - 1.0))
    sure = 1.0 / (2.0 * p)  # every pair may take this a, unless its t is larger
    bounds = [(a, 2.0 * a), (sure, 2.0 * sure)] if a < sure else [(a, 2.0 * sure)]
    return min(
        _counts_delta(epsilon, p, n, min(1.0, (p + 1.0) * a), rate, tail) for a, rate in bounds
    )


def _counts_delta(epsilon, p, n, visible, rate, tail):
    """``visible`` times D(``rate``): the odds p : 1 against 1 : p among Bin(n - 1, rate) clones."""
    boost = math.exp(epsilon)
    totals = _likely_totals(n, rate, tail)  # m: the clones and the differing report
    clones = visible * _binomial_pmf(totals - 1, n - 1, rate)
    # Up to a factor, with i of the m counts from Q0, P - boost Q is
    # (p - boost) i + (1 - boost p) (m - i): positive from a threshold on.
    start = np.floor((boost * p - 1.0) * totals / ((p - 1.0) * (1.0 + boost))) + 1.0
    terms = np.array(
        [
            (p - boost) / (p + 1.0) * clones * _tail(start - 1.0, totals - 1),
            (1.0 - boost * p) / (p + 1.0) * clones * _tail(start, totals - 1),
        ]
    )
    total = np.maximum(terms.sum(axis=0), 0.0).sum()
    return float(min(1.0, total + RELATIVE_ERROR * np.abs(terms).sum() + tail))


def _likely_totals(n, rate, tail):
    """Numbers of visible reports outside of which one more than the clones has this tail."""
    spread = math.sqrt(2.0 * math.log(2.0 / tail))
    mean, sd = n * rate, math.sqrt(n * rate)
    low = math.floor(mean - spread * sd) - 1  # Chernoff's bounds of the binomial law
    high = math.ceil(mean + spread * sd + spread**2 / 3.0) + 2
    return np.arange(max(1, low), min(n, high) + 1)


def _binomial_pmf(k, n, rate):
    log = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    return np.exp(log + special.xlogy(k, rate) + special.xlog1py(n - k, -rate))


def _tail(start, count):
    """Pr(Bin(count, 1/2) >= start)."""
    inside = np.clip(start, 1, count + 1)
    value = np.where(
        inside > count, 0.0, special.betainc(inside, np.maximum(count - inside + 1, 1e-9), 0.5)
    )
    return np.where(start <= 0, 1.0, value)


LARGEST_REACH = math.sqrt(0.5)  # Jung: a set of diameter D lies in a ball of radius D / sqrt(2)
RELATIVE = 1e-13  # error of a normal tail, far above what the special functions promise
ABSOLUTE = 1e-9  # error of a logarithm of a tail, or of a product over the reports
INFEASIBLE = 1e9  # log delta of a point where the theorem says nothing
COARSE, FINE = 240, 2400  # cells of the upper sums while looking for a point, and at the point
TAIL_DEVIATIONS = 10.0  # deviations after which a tail is taken as a whole


@dataclass(frozen=True)
class Point:
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

    def array(self):
        return np.array([self.tilt, self.cap, self.cut, self.short, self.slot])


def reach_of(dimension=None, ball=False):
    """Radius, in diameters, of a ball round every set of such inputs, rounded up.

    Jung's theorem: sqrt(k / (2 (k + 1))) in k dimensions. A set that is known to lie in a ball of
    its own diameter has 1/2.
    """
    if ball:
        return 0.5
    if dimension is None:
        return LARGEST_REACH * (1.0 + 1e-12)
    return math.sqrt(dimension / (2.0 * (dimension + 1.0))) * (1.0 + 1e-12)


def weight_moments(reach, cap):
    """E min(u, U), rounded down, and E min(u, U)^2, rounded up, for log u ~ N(-A^2/2, A^2)."""
    log = math.log(cap)
    mean = 1.0 - gdp_delta(log, reach) * (1.0 + RELATIVE)
    below = math.exp(reach**2 + float(log_ndtr((log - 1.5 * reach**2) / reach)))
    above = math.exp(2.0 * log + float(log_ndtr(-(log + 0.5 * reach**2) / reach)))
    return mean - RELATIVE, (below + above) * (1.0 + RELATIVE)


def _chords(masses, means, ends, values, error):
    """Upper bound of the mean of a convex function from cells of known mass and first moment.

    Between the ``ends`` of a cell a convex function lies below its chord, whose mean needs the mass
    and the first moment only. ``error`` bounds the absolute errors of both.
    """
    steps = np.diff(ends)
    steps = np.where(steps == 0.0, 1.0, steps)
    upper = np.clip((means - ends[:-1] * masses) / steps, 0.0, np.maximum(masses, 0.0))
    total = ((masses - upper) * values[:-1] + upper * values[1:]).sum()
    slopes = np.abs(np.diff(values) / steps)
    sizes = np.maximum(np.abs(values[:-1]), np.abs(values[1:]))
    return total + (error[0] * (sizes + np.abs(ends[:-1]) * slopes) + error[1] * slopes).sum()


def tilted_moments(tilt, epsilon, mu, cut, loss, cells):
    """Upper bounds of E exp(lambda X^+) - 1 and of E exp(-lambda X^-) - 1, and X = X^+ - X^-.

    X = min(G*, T)^+ / (1 - eta) - G*^-, with lambda = ``tilt``, T = ``cut`` and eta = ``loss``.
    The positive part of G* is exp(mu z - mu^2/2) - E, the negative part 1 - E exp(mu z - mu^2/2),
    each where it has that sign, for a standard normal z.
    """
    boost = math.exp(epsilon)
    first, last = epsilon / mu + mu / 2.0, (math.log(boost + cut) + mu**2 / 2.0) / mu
    z = np.linspace(first, last, cells + 1)
    plain, moved = ndtr(-z), ndtr(mu - z)  # P(Z > z), and E exp(mu Z - mu^2/2) 1(Z > z)
    ends = np.maximum(np.exp(mu * z - mu**2 / 2.0) - boost, 0.0)
    ends[0], ends[-1] = 0.0, cut
    masses = plain[:-1] - plain[1:]
    means = moved[:-1] - moved[1:] - boost * masses
    values = np.expm1(tilt * ends / (1.0 - loss))
    error = RELATIVE * plain[:-1], RELATIVE * (moved[:-1] + boost * plain[:-1])
    plus = _chords(masses, means, ends, values, error) + plain[-1] * values[-1] * (1.0 + RELATIVE)

    first = mu / 2.0 - epsilon / mu
    z = np.linspace(first, max(first, 0.0) + TAIL_DEVIATIONS, cells + 1)
    plain, moved = ndtr(-z), ndtr(mu - z)
    ends = np.minimum(1.0 - np.exp(epsilon + mu * z - mu**2 / 2.0), 0.0)
    ends[0] = 0.0
    masses = plain[:-1] - plain[1:]
    means = masses - boost * (moved[:-1] - moved[1:])
    values = np.expm1(tilt * ends)
    error = RELATIVE * plain[:-1], RELATIVE * (plain[:-1] + boost * moved[:-1])
    minus = _chords(masses, means, ends, values, error) + plain[-1] * values[-1] * (1.0 - RELATIVE)
    return float(plus), float(min(minus, 0.0))


def log_slot_mean(n, plus, minus, reach, cap, rest, cells):
    """Log of an upper bound of E (phi + v (phi_+ - phi))^(n-1) over the first slot.

    phi_+ = 1 + ``plus`` and phi = phi_+ + ``minus``; v grows with u = exp(A Z + A^2/2) and is
    the same for all u <= 1, so that a sum with v at the right ends of cells lies above. ``rest``
    is t0.
    """
    # Up to a tail that not even phi_+^(n-1) lifts.
    beyond = math.sqrt(2.0 * (n - 1) * math.log1p(max(plus, 0.0)) + TAIL_DEVIATIONS**2)
    z = np.linspace(-reach / 2.0, beyond, cells + 1)
    log_u = np.maximum(reach * z + reach**2 / 2.0, 0.0)
    u = np.exp(np.minimum(log_u, math.log(cap)))
    hidden = np.exp(np.minimum(0.0, math.log(cap) - log_u)) / (1.0 + u / rest)  # 1 - v
    tails = log_ndtr(-z)
    inside = tails[:-1] + np.log(-np.expm1(np.diff(tails)))
    masses = np.concatenate([[log_ndtr(z[0])], inside, tails[-1:]])
    logs = masses + (n - 1) * np.log1p(np.concatenate([plus + minus * hidden, [plus]]))
    top = logs.max()
    return float(top + math.log(np.exp(logs - top).sum()))


def log_sorter_delta(epsilon, mu, n, reach, point, cells=FINE):
    """Log of the delta that the theorem proves at one choice of its free numbers, rounded up.

    ``reach`` is A / mu. Where the theorem says nothing the result is at least INFEASIBLE.
    """
    others, boost, reach = n - 1, math.exp(epsilon), reach * mu
    if max(abs(value) for value in point.array()) > 200.0 or point.short <= 0.0:
        return 2.0 * INFEASIBLE
    scale = others * math.expm1(epsilon)
    tilt, cut = math.exp(point.tilt) / scale, math.exp(point.cut) * scale
    cap = 1.0 + math.exp(point.cap)
    mean, square = weight_moments(reach, cap)
    rest = others * mean - math.sqrt(2.0 * square * point.short * others) - cap + 1.0  # t0
    if not rest > 1.01 * cap:
        return INFEASIBLE * (1.0 + (cap - rest) / (cap + others))
    loss = cap / rest  # eta
    if tilt * cut / (1.0 - loss) > 600.0:
        return 1.5 * INFEASIBLE
    log_first = max(0.0, reach * point.slot + reach**2 / 2.0)  # log g
    plus, minus = tilted_moments(tilt, epsilon, mu, cut, loss, cells)
    main = log_slot_mean(n, plus, minus, reach, cap, rest, cells) + ABSOLUTE
    main += tilt * math.exp(log_first) - 1.0 - math.log(tilt * rest)
    parts = [
        -point.short,  # the sum of weights falls short
        _log(gdp_delta(log_first, reach) / rest),  # the first slot is cut
        _log(others * gdp_delta(math.log(boost + cut), mu) / (rest * (1.0 - loss))),  # G* is cut
        main,
    ]
    top = max(parts)
    return top + math.log(sum(math.exp(part - top) for part in parts)) + ABSOLUTE


def _log(value):
    return math.log(value) if value > 0.0 else -math.inf


STEPS = (0.15, 0.5, 0.15, 1.0, 0.2)  # of the search, about what the best points differ by


def sorter_mu(budget, n, reach):
    """Largest Gaussian mu of a report that was found and proved, or 0; ``reach`` is A / mu.

    The free numbers are those of the table, and are searched where it has none: where it ends, and
    where it proves nothing.
    """
    if n < 3:
        return 0.0
    known = _tabled(math.log(budget.epsilon), math.log(n), math.log(budget.delta))
    if known is not None:
        log_mu, *numbers = known
        start, mu = Point(*numbers), math.exp(log_mu)
        mu = _largest_mu(budget, n, reach, start, mu, COARSE) or mu
        point = _search(budget, mu, n, reach, start, 60)[1]  # a third of a whole search
        proved = _largest_mu(budget, n, reach, point, mu, FINE)
        if proved > 0.0:
            return proved
    return searched(budget, n, reach)[0]


@lru_cache(maxsize=1)
def _table():
    """Axes and values of the table of free numbers, which `benchmarks/shuffle_points.py` makes."""
    read = json.loads(Path(__file__).with_name("points.json").read_text(encoding="utf-8"))
    points = [[[p or [math.nan] * 6 for p in row] for row in plane] for plane in read["points"]]
    axes = [np.array(axis) for axis in read["axes"]]
    axes[2] = -axes[2]  # increasing
    return axes, np.array(points)


def _tabled(log_epsilon, log_n, log_delta):
    """Numbers between the points of the table, by lines along each axis; None where it has none."""
    axes, values = _table()
    for axis, x in zip(axes, (log_epsilon, log_n, -log_delta), strict=True):
        if not axis[0] <= x <= axis[-1]:
            return None
        i = min(int(np.searchsorted(axis, x, side="right")) - 1, len(axis) - 2)
        part = (x - axis[i]) / (axis[i + 1] - axis[i])
        values = (1.0 - part) * values[i] + part * values[i + 1]
    return None if np.isnan(values).any() else values.tolist()


def searched(budget, n, reach):
    """Largest Gaussian mu of a report that was found and proved, or 0, and its point.

    In turn: the best point at a mu, and the largest mu that this point proves.
    """
    mu = _first_guess(budget, n)
    starts, best = _starts(budget, n, mu), 0.0
    # Six searches, each at the mu that the last one proved
    for _ in range(6):
        found = [_search(budget, mu, n, reach, start) for start in starts]
        point = min(found, key=lambda pair: pair[0])[1]
        proved = _largest_mu(budget, n, reach, point, mu, COARSE)
        if proved == 0.0:
            mu *= 0.7
            if best > 0.0 or mu < budget.mu:
                break
            starts = _starts(budget, n, mu)
            continue
        done, best, mu, starts = proved < best * 1.0005, proved, proved, [point]
        if done:
            break
    proved = _largest_mu(budget, n, reach, starts[0], best, FINE) if best > 0.0 else 0.0
    return proved, starts[0]


def _first_guess(budget, n):
    """What is about in reach: one report outdoes the others, or their sum strays, as a Gaussian."""
    excess, log = math.expm1(budget.epsilon), math.log(1.0 / budget.delta)
    alone = gdp_mu(math.log1p(n * excess), budget.delta)
    together = math.sqrt(math.log1p(n * excess**2 / (4.0 * log)))
    return max(budget.mu, 0.9 * min(alone, together))


def _starts(budget, n, mu):
    log = math.log(1.0 / budget.delta)
    slot = max(1.0, -float(ndtri(min(0.1, 1e-2 * budget.delta * n))))
    return [
        Point(math.log(log), 2.0 * mu, -0.3, log + 4.0, slot),
        Point(math.log(log) - 1.0, 3.5 * mu, -0.3, log + 4.0, slot),
    ]


def _search(budget, mu, n, reach, start, evaluations=200):
    """Value and place of a local minimum of the bound over the free numbers."""
    found = minimize(
        lambda x: log_sorter_delta(budget.epsilon, mu, n, reach, Point(*x), COARSE),
        start.array(),
        method="Nelder-Mead",
        options={
            "initial_simplex": start.array() + np.vstack([np.zeros(5), np.diag(STEPS)]),
            "maxfev": evaluations,
            "xatol": 1e-2,
            "fatol": 2e-3,
        },
    )
    return found.fun, Point(*map(float, found.x))


def _largest_mu(budget, n, reach, point, mu, cells):
    """Largest mu near the given one at which this point proves the budget, or 0."""
    target, low, high, factor = math.log(budget.delta), 0.0, mu, 1.03

    def proves(value):
        return log_sorter_delta(budget.epsilon, value, n, reach, point, cells) <= target

    while low == 0.0 and high > 0.5 * mu:
        low, high = (high, high * factor) if proves(high) else (0.0, high / factor)
    while low > 0.0 and high < 4.0 * mu and proves(high):
        low, high = high, high * factor
    while low > 0.0 and high - low > 1e-5 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if proves(middle) else (low, middle)
    return low


TILTS = np.geomspace(1e-5, 1.0, 300)  # of the largest tilt that is tried
SHORTS = np.array([0.1, 1.0, 3.0, 6.0, 10.0])  # -log of the part of delta for the sum of weights
LARGEST_EXPONENT = 600.0  # exp of it is 1e260: sums of such terms stay below the largest double
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
