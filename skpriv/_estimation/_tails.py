"""Certificates as data, and the quantiles that certified intervals share.

A certified interval holds on the intersection of some events. By the union bound its failure is at
most the sum of theirs. Each place that turns a failure probability into a quantile passes it
through `event`, which notes it while a `certificate` is open and is free otherwise. So what is
added up is what was used, and not what was planned.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
from scipy import optimize, special, stats

from .._linalg import ROUNDED


class Certificate:
    """Events of the intervals that were computed while it was open.

    Attributes
    ----------
    failures : dict of str to float
        Failure probability of each event. One that was used several times is one event.
    """

    def __init__(self, sharper: str | None = None) -> None:
        self.failures: dict[str, float] = {}
        self._sharper = sharper

    def noted(self, name: str, failure: float) -> float:
        """Note an event, and return the failure probability that its quantile is to have."""
        self.failures[name] = max(failure, self.failures.get(name, 0.0))
        return failure**2 if name == self._sharper else failure


_OPEN: ContextVar[Certificate | None] = ContextVar("_OPEN", default=None)


@contextmanager
def certificate(sharper: str | None = None) -> Iterator[Certificate]:
    """Collect the events of all intervals that are computed inside.

    Parameters
    ----------
    sharper : str, default=None
        An event whose failure probability is squared where it is used: an interval that rests on it
        becomes wider.

    Examples
    --------
    >>> from skpriv._estimation._tails import certificate, event
    >>> with certificate() as found:
    ...     _ = event("noise of the target", 0.025), event("largest eigenvalue", 0.025)
    >>> found.failures
    {'noise of the target': 0.025, 'largest eigenvalue': 0.025}
    """
    token = _OPEN.set(Certificate(sharper))
    try:
        yield _OPEN.get()  # type: ignore[misc]
    finally:
        _OPEN.reset(token)


def event(name: str, failure: float) -> float:
    """Failure probability of an event, where its quantile is taken."""
    found = _OPEN.get()
    return failure if found is None else found.noted(name, failure)


def split_failure(failure: float, *weights: float) -> tuple[float, ...]:
    """Divide a failure probability over the parts of a bound, in proportion to public weights.

    By the union bound all parts hold at once but for the whole of it. A part that cannot fail, such
    as that of noise without privacy, has the weight 0 and leaves its share to the others.

    Examples
    --------
    >>> from skpriv._estimation._tails import split_failure
    >>> split_failure(0.5, 3.0, 1.0, 0.0)
    (0.375, 0.125, 0.0)
    """
    whole = sum(weights)
    return tuple(failure * weight / whole for weight in weights)


def events(failure: float, weights: Mapping[str, float], title: str = "") -> Iterator[float]:
    """Divide a failure probability over named events, and note each of them as it is taken.

    Parameters
    ----------
    failure : float
    weights : mapping of str to float
        Public weight of each event; one with the weight 0 cannot fail, and is not noted.
    title : str
        What the names begin with in a certificate.

    Yields
    ------
    float
        The failure probability of one event after the other.
    """
    parts = split_failure(failure, *weights.values())
    for (name, weight), part in zip(weights.items(), parts, strict=True):
        yield event(title + name, part) if weight else 0.0


def shared(failure: float, weights: Mapping[str, float], title: str = "") -> SimpleNamespace:
    """The same, with the events as attributes by their names."""
    return SimpleNamespace(**dict(zip(weights, events(failure, weights, title), strict=True)))


RANGE = 2.0  # |zeta| <= 2: a scaled target in [-1, 1] is at most that far from its mean
SHARPENINGS = 6  # of a bound by itself; each is valid, whatever their number
ROUNDED_UP = 1.0 + 1e-4  # quantiles by quadrature, and whole descents
TIMES_UP = 1.0 + ROUNDED


def norm_quantile(first, rest, p, failure):
    """Upper quantile of the square root of first chi2_1 + rest chi2_{p-1}.

    With GOE noise N theta ~ N(0, (s^2/2) ||theta||^2 (I + uu')), u = theta / ||theta||: that is
    s ||theta|| times the quantile for 1 and 1/2.
    """
    return sqrt(first) * _unit_norm_quantile(rest / first, p, failure) if first else 0.0


def operator_quantile(scale, p, failure):
    """Upper quantile of the largest eigenvalue of GOE(scale): Gordon's mean plus concentration."""
    return scale * (sqrt(2.0 * p) + sqrt(2.0 * log(1.0 / failure)))


def largest_sum(mean, weak, term, length, last=2.0):
    """Bound on the supremum of sums of independent terms, but for exp(-length).

    The mean of the supremum and the largest variance of a sum are bounded by `mean` and `weak`, and
    each term by `term`. It is the inequality of Klein and Rio (2005), and with ``last=1`` that of
    Bousquet, for terms that have one law.
    """
    return mean + np.sqrt(2.0 * length * (weak + 2.0 * term * mean)) + last * term * length / 3.0


def expected_sum(realised, unit):
    """Bound on the mean v of a sum of independent terms in [0, b] from its value r, unit = b l.

    It fails with probability exp(-l): P(sum <= r) <= exp(-(v - r - r log(v / r)) / b) (Chernoff).
    Newton's method from above stays above.
    """
    realised = np.maximum(realised, 1e-9 * unit)
    value = (np.sqrt(unit / 2.0) + np.sqrt(unit / 2.0 + realised)) ** 2
    for _ in range(4):
        left = value - realised - realised * np.log(value / realised) - unit
        value = value - np.maximum(left, 0.0) / (1.0 - realised / value)
    return value


@lru_cache(maxsize=256)
def main_region(failure, noise_part=0.2):
    """(t0, q) such that a sum of bounded terms and a normal variable of any scale are bounded.

    Let P(S > sqrt(2 V t) + B t / 3) <= exp(-t) (Bernstein) and N ~ N(0, 1), independent of S. For
    any scale G >= 0, even one that depends on S, S + G N > sqrt(2 V t0 + (G q)^2) + B t0 / 3 only
    if (t(S), N) leaves the region t <= t0 (1 - (N_+ / q)^2), N <= q, of which that is the support
    function, with probability
    exp(-t0) / 2 + int_0^q phi(a) exp(-t0 (1 - a^2 / q^2)) da + P(N > q).

    Parameters
    ----------
    failure : float
        Probability of failure of one side.
    noise_part : float in (0, 1), default=0.2
        Part of it that is P(N > q). Widths change by 2% at most between 0.15 and 0.25, where the
        two deviations are about equal.
    """
    q = float(stats.norm.isf(noise_part * failure))
    nodes, weights = special.roots_legendre(60)
    a = 0.5 * q * (nodes + 1.0)
    density = 0.5 * q * weights * stats.norm.pdf(a)

    def excess(t):
        left = 0.5 * np.exp(-t) + density @ np.exp(-t * (1.0 - (a / q) ** 2))
        return left - (1.0 - noise_part) * failure

    return float(optimize.brentq(excess, 0.0, 100.0)) * TIMES_UP, q


@lru_cache(maxsize=1024)
def _unit_norm_quantile(rest, p, failure):
    """Upper quantile of the square root of chi2_1 + rest chi2_{p-1}, by quadrature, rounded up."""
    if p == 1 or rest == 1.0:
        return float(stats.chi.isf(failure, p))
    nodes, weights = _gauss_legendre()
    z = 6.0 * (nodes + 1.0)  # [0, 12]
    density = 6.0 * weights * 2.0 * stats.norm.pdf(z)

    def excess(q):
        halves = np.maximum(q - z**2, 0.0) / (2.0 * rest)
        return density @ special.gammaincc((p - 1) / 2.0, halves) - failure  # chi-squared tail

    upper = p + 4.0 * sqrt(p * log(1.0 / failure)) + 4.0 * log(1.0 / failure)
    return sqrt(optimize.brentq(excess, 0.0, upper)) * ROUNDED_UP


@lru_cache(maxsize=1)
def _gauss_legendre():
    return np.polynomial.legendre.leggauss(400)
