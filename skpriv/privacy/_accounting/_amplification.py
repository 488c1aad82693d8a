"""Privacy amplification by shuffling: what n anonymous reports guarantee together.

Every function is pure and rounded to the safe side. Symbols: p = exp(local epsilon), and beta = the
total variation distance of the reports of the two records that neighbours differ in.

The reduction (Feldman, McMillan and Talwar 2023, "Stronger privacy amplification by shuffling",
and Wang et al. 2023, "Unified, tight and fast privacy amplification in the shuffle model"). Let R0
and R1 be those two reports, with likelihood ratio at most p. Where R0 >= R1 put
Q0 = (R0 - R1) / beta, elsewhere Q1 = (R1 - R0) / beta; with a = beta / (p - 1),
    R0 = p a Q0 + a Q1 + rest,  R1 = a Q0 + p a Q1 + rest,  rest the same in both,
and every other report has R(x) >= R0 / p >= a Q0 on the one part and >= a Q1 on the other. So the
shuffled reports are a function of how many came from Q0 and from Q1: the neighbours' record sends
(p a, a) against (a, p a), and each of the others (a, a), a "clone". The hockey-stick divergence of
these two laws of counts is the bound; for randomised response it is attained. It grows with beta:
sending each count on with a fixed probability lowers beta, and is post-processing. The largest
beta, (p - 1) / (p + 1), is the bound for all randomisers with this local epsilon.

Gaussian reports have no finite local epsilon. They satisfy D_p(R(x) || R(x')) <= d0, the Gaussian
delta at epsilon log p. Cutting off what exceeds p times the other changes R0 and R1 by the same
mass of at most d0 each (the pair is symmetric), which joins the common rest; what the clones of
another report then lack is at most d0 / p on either side. These replacements move the reports of
the two worlds by tau = d0 + 2 (n - 1) d0 / p in total variation, so that
    delta = hockey-stick + (1 + exp(epsilon)) tau.
(Feldman, McMillan and Talwar 2022 allow for (1 + exp(epsilon)) (1 + 1/(2p)) n d0.)
"""

import math
from functools import lru_cache

import numpy as np
from scipy import special

from ._budget import Budget
from ._conversions import gdp_delta, gdp_mu

__all__ = ["amplified", "closed_form_epsilon", "gaussian_delta", "shuffle_delta"]

LARGEST_BLOCK = 10**7  # the reports beyond it only help: leaving them out is safe, and fast
LARGEST_EPSILON = 30.0  # beyond it a report is not private, and the local guarantee is kept
TAIL = 1e-3  # part of delta for numbers of clones that are not looked at
ROUNDING = 1e-7  # of the sums of absolute terms, far above the error of the binomial tails
CLONE_PARTS = (0.5, 0.8, 0.95)  # of delta for the clones, the rest for d0: the best is taken


def shuffle_delta(epsilon, local_epsilon, n, total_variation=None, tail=1e-14):
    """Delta of n shuffled reports with this local epsilon, rounded up.

    Parameters
    ----------
    epsilon : float >= 0
        Of the guarantee for all reports together.
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
    >>> from skpriv.privacy._accounting._amplification import shuffle_delta
    >>> bool(shuffle_delta(0.5, 2.0, 10_000) < 1e-6)
    True
    """
    p = math.exp(local_epsilon)
    beta = math.tanh(local_epsilon / 2.0)
    beta = beta if total_variation is None else min(beta, total_variation)
    if epsilon >= local_epsilon:
        return 0.0
    a, boost = beta / (p - 1.0), math.exp(epsilon)
    hidden = max(0.0, 1.0 - (p + 1.0) * a)  # the differing report tells nothing
    totals = _likely_totals(n, 2.0 * a, tail / 2.0)  # m: visible counts, those of Q0 and of Q1
    before = _binomial_pmf(totals - 1, n - 1, 2.0 * a)  # the differing report is visible
    without = _binomial_pmf(totals, n - 1, 2.0 * a) * hidden
    # log P/Q grows with the count of Q0, so that P > exp(epsilon) Q from a threshold on: up to the
    # factor Pr(others) > 0, with i of the m counts from Q0, P - boost Q is
    # a ((p - boost) i + (1 - boost p) (m - i)) (1 - 2a) / (a (n - m)) - hidden (boost - 1).
    # (n - m at m = n: nobody is left to be hidden, and the count is visible anyway.)
    hiding = np.where(totals < n, n - totals, 0) * hidden * (boost - 1.0)
    offset = hiding / (1.0 - 2.0 * a) if 2.0 * a < 1.0 else np.zeros(len(totals))
    slope = (p - 1.0) * (1.0 + boost)
    start = np.floor(((boost * p - 1.0) * totals + offset) / slope) + 1.0
    ones, zeros = _tail(start - 1.0, totals - 1), _tail(start, totals - 1)
    terms = np.array(
        [
            a * (p - boost) * before * ones,
            a * (1.0 - boost * p) * before * zeros,
            (1.0 - boost) * without * _tail(start, totals),
        ]
    )
    total = np.maximum(terms.sum(axis=0), 0.0).sum()
    return float(min(1.0, total + ROUNDING * np.abs(terms).sum() + tail))


def _likely_totals(n, rate, tail):
    """Numbers of visible counts outside of which the others' (and one more) lie with this tail."""
    if rate >= 1.0:
        return np.arange(n, n + 1)
    spread = math.sqrt(2.0 * math.log(2.0 / tail))
    mean, sd = n * rate, math.sqrt(n * rate)
    low = math.floor(mean - spread * sd) - 1  # Chernoff's bounds of the binomial law
    high = math.ceil(mean + spread * sd + spread**2 / 3.0) + 2
    return np.arange(max(1, low) if low > 1 else 0, min(n, high) + 1)


def _binomial_pmf(k, n, rate):
    if rate >= 1.0:
        return np.where(k == n, 1.0, 0.0)
    inside = (k >= 0) & (k <= n)
    k = np.where(inside, k, 0)
    log = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
    log = log + k * math.log(rate) + (n - k) * math.log1p(-rate)
    return np.where(inside, np.exp(log), 0.0)


def _tail(start, count):
    """Pr(Bin(count, 1/2) >= start)."""
    count = np.maximum(count, 0)
    inside = np.clip(start, 1, count + 1)
    value = np.where(
        inside > count, 0.0, special.betainc(inside, np.maximum(count - inside + 1, 1e-9), 0.5)
    )
    return np.where(start <= 0, 1.0, value)


def gaussian_delta(epsilon, mu, n, local_epsilon):
    """Delta of n shuffled Gaussian reports, cut off at a local epsilon of choice; rounded up.

    Examples
    --------
    >>> from skpriv.privacy._accounting._amplification import gaussian_delta
    >>> bool(gaussian_delta(1.0, 0.5, 100_000, 5.0) < 1e-6)
    True
    """
    total_variation = gdp_delta(0.0, mu)
    return shuffle_delta(epsilon, local_epsilon, n, total_variation) + _cut(
        epsilon, mu, n, local_epsilon
    )


def _cut(epsilon, mu, n, local_epsilon):
    """(1 + exp(epsilon)) tau of the module's notes."""
    reports = 1.0 + 2.0 * (n - 1) * math.exp(-local_epsilon)
    return (1.0 + math.exp(epsilon)) * reports * gdp_delta(local_epsilon, mu)


@lru_cache(maxsize=1024)
def amplified(budget, n):
    """Budget that each of n users may spend on one Gaussian report, so that all meet ``budget``.

    Parameters
    ----------
    budget : Budget
        What the shuffled reports guarantee together.
    n : int
        Number of users whose reports are shuffled together.

    Returns
    -------
    Budget
        Its ``mu`` is what counts. It is ``budget`` itself where amplification does not help:
        shuffling is post-processing, so that the local guarantee always holds too.

    Raises
    ------
    ValueError
        If n < 1.

    Examples
    --------
    >>> from skpriv import Budget
    >>> from skpriv.privacy._accounting._amplification import amplified
    >>> budget = Budget(1.0, 1e-6)
    >>> amplified(budget, 1) == budget
    True
    >>> bool(amplified(budget, 100_000).mu > 3 * budget.mu)
    True
    """
    if n < 1:
        raise ValueError(f"n={n} must be at least 1: the number of reports shuffled together.")
    if budget.delta == 0.0 or not 0.0 < budget.epsilon <= LARGEST_EPSILON:
        return budget
    n = min(int(n), LARGEST_BLOCK)
    mu = max(_amplified_mu(budget, n, part) for part in CLONE_PARTS) * (1.0 - 1e-9)
    return Budget.from_mu(mu, budget.delta) if mu > budget.mu else budget


def _amplified_mu(budget, n, part):
    """Largest mu found by bisection on the local epsilon; what is returned was checked."""
    epsilon, delta = budget.epsilon, budget.delta
    best, low, high = 0.0, epsilon, min(LARGEST_EPSILON, epsilon + math.log(n) + 1.0)
    for _ in range(24):
        local = 0.5 * (low + high)
        reports = 1.0 + 2.0 * (n - 1) * math.exp(-local)
        room = (1.0 - part) * delta / ((1.0 + math.exp(epsilon)) * reports)
        mu = gdp_mu(local, room)
        used = shuffle_delta(epsilon, local, n, gdp_delta(0.0, mu), TAIL * delta)
        if used <= part * delta:
            best, low = max(best, mu), local
        else:
            high = local
    return best


def closed_form_epsilon(local_epsilon, delta, n):
    """Epsilon of n shuffled pure reports by the closed form of the literature, for comparison.

    Feldman, McMillan and Talwar (2022), "Hiding among the clones", Section 3: their main theorem,
    with the range of epsilon that the authors' program checks.

    Parameters
    ----------
    local_epsilon : float > 0
    delta : float in (0, 1)
    n : int

    Returns
    -------
    epsilon : float

    Raises
    ------
    ValueError
        Outside of the range local_epsilon <= log(n / (16 log(4 / delta))), where it does not hold.

    Examples
    --------
    >>> from skpriv.privacy._accounting._amplification import closed_form_epsilon
    >>> round(closed_form_epsilon(1.0, 1e-6, 100_000), 4)
    0.0726
    """
    largest = math.log(n / (16.0 * math.log(4.0 / delta)))
    if not 0.0 < local_epsilon <= largest:
        raise ValueError(
            f"local_epsilon={local_epsilon} must lie in (0, {largest:.4g}], where the closed form "
            f"holds for n={n} and delta={delta}."
        )
    p = math.exp(local_epsilon)
    rate = 8.0 * math.sqrt(p * math.log(4.0 / delta) / n) + 8.0 * p / n
    return math.log1p((p - 1.0) / (p + 1.0) * rate)
