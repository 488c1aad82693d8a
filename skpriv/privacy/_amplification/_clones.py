"""Bounds by clones: what others are sure to send that looks like the report in question.

Symbols: p = exp(local epsilon), R0 and R1 the reports of the two records that neighbours differ in,
t their total variation distance, a = beta / (p - 1) for a number beta >= t that we may choose.

The reduction (Feldman, McMillan and Talwar 2022; the form with a total variation is in the spirit
of Wang et al. 2023, whose reduction to counts alone is not valid: see
docs/mathematics/shuffle.md). With the densities M = max(R0, R1) and m = min(R0, R1), (p m - M) / (p
(p - 1)) of M / p is left
over when |R0 - R1| / (p - 1) is taken off. Let C be it, normalised, and
    Q0 = ((R0 - R1)^+ + (beta - t) C) / beta,  Q1 = ((R1 - R0)^+ + (beta - t) C) / beta.
As long as t <= beta <= (p - 1) (1 + t) / (2 p),
    R0 = p a Q0 + a Q1 + rest,  R1 = a Q0 + p a Q1 + rest,  the same rest in both worlds,
and every other report has R >= M / p >= a Q0 + a Q1. So a report is of one of three kinds: the
differing one is visible with probability (p + 1) a, and then from Q0 or Q1 with odds p : 1 or
1 : p; each other one is a clone with probability 2 a, from Q0 or Q1 with odds 1 : 1. Tell the
adversary whether the differing report is visible. If not, both worlds are the same. If it is, all
that matters is how many came from Q0 and how many from Q1: who the clones are, and what the rest
sent, can be drawn from these counts. Hence
    delta <= (p + 1) a D(2 a),
where D is the divergence of the two laws of counts. (Leaving the first sentence out, as the
reduction to counts does, is wrong: given the counts, the probability that the differing report
is visible is not the same in the two worlds.)

A bound t <= T for all pairs serves in two ways. If T <= (p - 1) / (2 p), every beta from T to that
number suits every pair; the two ends are tried. Else a pair may take the least of T and its own
largest beta: a is at most T / (p - 1), and 2 a at least 1 / p, of which D is a falling function.
Without T this is (p + 1) a = 1 and 2 a = 1 / p, the bound of Feldman, McMillan and Talwar.
"""

import math

import numpy as np
from scipy import special

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
