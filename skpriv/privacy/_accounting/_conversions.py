"""Conversions between (epsilon, delta), Gaussian and zero-concentrated differential privacy.

Every function is pure, takes floats, and is rounded to the safe side: an epsilon up, and a
``mu`` or a ``rho`` down, so that the guarantee holds for the number that is returned.

Symbols: mu = Gaussian-DP parameter (Dong, Roth and Su, 2022); rho = zCDP parameter (Bun and
Steinke, 2016); alpha = order of the Renyi divergence.
"""

import math
from collections.abc import Callable
from functools import lru_cache

from scipy.special import erfcx, ndtr

__all__ = ["gdp_delta", "gdp_epsilon", "gdp_mu", "zcdp_delta", "zcdp_epsilon", "zcdp_rho"]

_SQRT2 = math.sqrt(2.0)


def _boundary(below: Callable[[float], bool]) -> tuple[float, float]:
    """Last point below and first point above a threshold of [0, inf), as adjacent floats.

    ``below`` is true on an initial interval of the half-line and false after it.
    """
    low, high = 0.0, 1.0
    while below(high):
        low, high = high, 2.0 * high
        if math.isinf(high):
            return low, high
    for _ in range(300):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high


def gdp_delta(epsilon: float, mu: float) -> float:
    """Smallest delta such that mu-Gaussian DP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float >= 0
    mu : float >= 0

    Returns
    -------
    delta : float in [0, 1]

    Notes
    -----
    delta = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu). With t = epsilon/mu and
    h = mu/2, exp(epsilon) phi(t + h) = phi(t - h): the two terms are phi(t - h) times the Mills
    ratios of t - h and t + h, which neither overflow nor lose the digits of a tiny delta.

    Examples
    --------
    >>> round(gdp_delta(epsilon=1.0, mu=1.0), 6)
    0.126937
    """
    if mu == 0.0 or epsilon == math.inf:
        return 0.0
    if mu == math.inf:
        return 1.0
    if epsilon == 0.0:
        return math.erf(mu / (2.0 * _SQRT2))
    t, h = epsilon / mu, mu / 2.0
    density = 0.5 * math.exp(-0.5 * (t - h) * (t - h))  # erfcx is the Mills ratio, rescaled
    if t <= h:  # a large delta: nothing cancels
        delta = ndtr(h - t) - density * erfcx((t + h) / _SQRT2)
    else:
        delta = density * (erfcx((t - h) / _SQRT2) - erfcx((t + h) / _SQRT2))
    return min(1.0, max(0.0, float(delta)))


@lru_cache(maxsize=4096)
def gdp_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon such that mu-Gaussian DP implies (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    epsilon : float
        Infinite when ``delta`` is 0 and ``mu`` is not.

    Examples
    --------
    >>> round(gdp_epsilon(mu=1.0, delta=1e-6), 4)
    4.8866
    """
    if gdp_delta(0.0, mu) <= delta:
        return 0.0
    if delta == 0.0 or mu == math.inf:
        return math.inf
    return _boundary(lambda epsilon: gdp_delta(epsilon, mu) > delta)[1]


@lru_cache(maxsize=4096)
def gdp_mu(epsilon: float, delta: float) -> float:
    """Largest mu such that mu-Gaussian DP implies (epsilon, delta)-DP, rounded down.

    A Gaussian release of l2 sensitivity D needs the standard deviation D / mu; this is the
    analytic Gaussian mechanism of Balle and Wang (2018).

    Parameters
    ----------
    epsilon : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    mu : float
        0 when ``delta`` is 0 and ``epsilon`` is finite.

    Examples
    --------
    >>> round(1 / gdp_mu(epsilon=1.0, delta=1e-6), 3)
    4.225
    """
    if epsilon == math.inf:
        return math.inf
    if delta == 0.0:
        return 0.0
    return _boundary(lambda mu: gdp_delta(epsilon, mu) <= delta)[0]


def zcdp_delta(epsilon: float, rho: float) -> float:
    """Smallest delta known such that rho-zCDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float >= 0
    rho : float >= 0

    Returns
    -------
    delta : float in [0, 1]

    Notes
    -----
    Canonne, Kamath and Steinke (2020), Corollary 13: the minimum over alpha > 1 of
    exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1). The derivative of the
    logarithm, (2 alpha - 1) rho - epsilon + log(1 - 1/alpha), is increasing, so the minimum is
    found by bisection; any alpha gives a valid bound.

    Examples
    --------
    >>> round(zcdp_delta(epsilon=1.0, rho=0.5), 4)
    0.2468
    """
    if rho == 0.0 or epsilon == math.inf:
        return 0.0
    if rho == math.inf:
        return 1.0
    # of log(alpha - 1); the end is finite for the tiniest rho, too
    low, high = -700.0, min(700.0, math.log((epsilon + 1.0) / (2.0 * rho) + 2.0))
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        order = math.exp(middle)  # alpha - 1
        slope = (2.0 * order + 1.0) * rho - epsilon - math.log1p(1.0 / order)
        low, high = (middle, high) if slope < 0 else (low, middle)
    order = math.exp(high)
    exponent = order * ((1.0 + order) * rho - epsilon - math.log1p(1.0 / order))
    return math.exp(min(0.0, exponent - math.log1p(order)))


@lru_cache(maxsize=4096)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """Smallest epsilon known such that rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    rho : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    epsilon : float
        Infinite when ``delta`` is 0 and ``rho`` is not.

    Examples
    --------
    >>> round(zcdp_epsilon(rho=0.5, delta=1e-6), 4)
    5.2215
    """
    if zcdp_delta(0.0, rho) <= delta:
        return 0.0
    if delta == 0.0 or rho == math.inf:
        return math.inf
    return _boundary(lambda epsilon: zcdp_delta(epsilon, rho) > delta)[1]


@lru_cache(maxsize=4096)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho known such that rho-zCDP implies (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float >= 0
    delta : float in [0, 1)

    Returns
    -------
    rho : float
        0 when ``delta`` is 0 and ``epsilon`` is finite.

    Examples
    --------
    >>> round((2 * zcdp_rho(epsilon=1.0, delta=1e-6)) ** -0.5, 3)
    4.531
    """
    if epsilon == math.inf:
        return math.inf
    if delta == 0.0:
        return 0.0
    return _boundary(lambda rho: zcdp_delta(epsilon, rho) <= delta)[0]
