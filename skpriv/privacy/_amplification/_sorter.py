"""Gaussian reports: the adversary may be shown any private order of them.

Symbols -> docs/mathematics/shuffle.md ("The private sorter", which has the theorem and its proof):
    E = exp(epsilon), H_m(t) the delta at log t of one Gaussian release of parameter m,
    A = reach * mu bounds how far any input lies from one public centre, in units of the noise,
    u, U the weight with which the differing report is swapped with another one, and its cap,
    (T, g) where the positive tails of G* and of the first slot are cut, lambda the tilt,
    z how far the sum of weights may fall short, t0 what it then still is.
Every choice of (lambda, U, T, z, g) gives a valid bound. The best is looked for; what is returned
was computed at the point that was found.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from .._accounting._conversions import gdp_delta

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
