"""What the best of a random number of private runs costs."""

import math
from functools import lru_cache

import numpy as np

from ._budget import Budget
from ._conversions import _boundary

__all__ = ["repeated_epsilon", "repeated_mu"]

_ORDERS = np.exp(np.linspace(math.log(0.02), math.log(1e5), 2_000))  # of lambda - 1; any are valid


def repeated_epsilon(mu: float, mean_runs: float, delta: float) -> float:
    """Epsilon of the best of J runs, J geometric with this mean, each of them mu^2/2-zCDP.

    Parameters
    ----------
    mu : float > 0
        Each run, its score included, is (mu^2/2)-zCDP; a mu-Gaussian-DP run is.
    mean_runs : float >= 1
        P(J = j) = g (1 - g)^(j-1) with g = 1/mean_runs. J must not be released.
    delta : float in (0, 1)

    Returns
    -------
    epsilon : float

    Notes
    -----
    Papernot and Steinke (2022), Theorem 2 with eta = 1. A proof: let Q be the law of one run, whose
    scores have no ties, F(y) the probability that a run scores below y, and u = 1 - F. The best
    run has density q(y) g / a(y)^2 with a = 1 - (1-g) F = g + (1-g) u in [g, 1]. For a neighbour Q'
    and an order l > 1 the moment of the likelihood ratio is

        g int q'^l q^(1-l) a'^(-2l) a^(2(l-1)).

    a and a' are probabilities of one event ("a coin of probability g, or a better score") under Q
    and Q', so that for any order k > 1 Hoelder's inequality gives a <= (e^r(k) a')^(1-1/k), with
    r(k) = k mu^2/2 the Renyi divergence of a run. Inserted, the power of a' that is left is
    -2 (1 + (l-1)/k), and a' >= g: the divergence of the best run is at most

        r(l) + 2 (1-1/k) r(k) + 2 log(1/g)/k + log(1/g)/(l-1).

    Any k and l are valid; the minimum over a public grid is taken, and the conversion to
    (epsilon, delta) is that of Canonne, Kamath and Steinke (2020).
    """
    k = 1.0 + _ORDERS
    log_mean = math.log(mean_runs)
    extra = float(np.min((k - 1.0) * mu * mu + 2.0 * log_mean / k))
    order = _ORDERS  # l - 1
    divergence = (1.0 + order) * mu * mu / 2.0 + extra + log_mean / order
    slack = (math.log(1.0 / delta) - np.log1p(order)) / order - np.log1p(1.0 / order)
    return max(0.0, float(np.min(divergence + slack)))


@lru_cache(maxsize=256)
def repeated_mu(budget: Budget, mean_runs: float) -> float:
    """Largest mu of a run for which the best of a geometric number of runs meets a budget.

    Parameters
    ----------
    budget : Budget
        With a positive delta.
    mean_runs : float >= 1

    Returns
    -------
    mu : float
        Rounded down.
    """
    if budget.epsilon == math.inf:
        return math.inf
    return _boundary(lambda mu: repeated_epsilon(mu, mean_runs, budget.delta) <= budget.epsilon)[0]
