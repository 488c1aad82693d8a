"""How many shares of a number hide all but the sum, where a shuffler mixes the shares of all users.

docs/mathematics/aggregate.md has the proof. Two servers that do not collude need two
shares, which hide all.
"""

from functools import lru_cache
from math import exp, log

import numpy as np
from scipy.special import gammaln, logsumexp

from ...exceptions import PrivacyError
from ._budget import Budget
from ._lattice import MODULUS

# Distance of all shares of a fit from what can be drawn from their sums, at most.
SECURITY = 2.0**-40
SUMMED_USERS = 256  # for which the recursion is computed user by user; see `_log_excess` for more
MOST_SHARES = 512


@lru_cache(maxsize=256)
def shares_needed(users: int, size: int, security: float = SECURITY) -> int:
    """Number of shares of each coordinate and user for which a sum is this secure.

    Parameters
    ----------
    users : int
        Whose shares are shuffled together.
    size : int
        Number of coordinates; each has shares of its own, and a shuffle of its own.
    security : float
        Total variation distance of all shares from what can be drawn from the sum.

    Returns
    -------
    shares : int

    Raises
    ------
    PrivacyError
        If there are too few users: it would take more than MOST_SHARES.

    Notes
    -----
    Each user sends m + 1 shares, all but one of them uniform (Ishai et al. 2006; this is the
    analysis of Balle et al. 2020, computed instead of simplified). The distance is at most
    sqrt(E q^(C - 1) - 1) / 2 for each coordinate, where q = 2^64 and C is the number of components
    of the graph that two random orders of m shares of each user make on the users. Coordinates add
    up.

    Examples
    --------
    >>> from skpriv.privacy import shares_needed
    >>> [shares_needed(users, 130) for users in (100, 1_000, 10_000, 100_000)]
    [22, 16, 13, 11]
    """
    if users == 1:
        return 1  # the sum is all that there is
    target = 2.0 * (log(security) - log(size) + log(2.0))
    low, high = 1, MOST_SHARES  # of mixed shares: too few, and checked
    if not _log_excess(users, high) <= target - 1e-6:
        raise PrivacyError(f"{users} users need more than {MOST_SHARES} shares of each number.")
    while high - low > 1:
        middle = (low + high) // 2
        enough = _log_excess(users, middle) <= target - 1e-6
        low, high = (low, middle) if enough else (middle, high)
    return high + 1


def _log_excess(users, mixed):
    """Log of an upper bound of E q^(C - 1) - 1, for this many users and mixed shares of each.

    A set of s of r users is a union of components with probability 1 / binom(r m, s m). By the
    component of one user, of s users, A_r = E q^(C - 1) has
        A_r - 1 <= sum over s < r of binom(r - 1, s - 1) / binom(r m, s m) q A_(r - s), A_1 = 1.
    Taking the last user out splits components only, unless that user is one, which has probability
    1 / binom(r m, m): A_r <= A_(r-1) (1 + q / binom(r m, m)). For more than 256 users the second
    bounds each A_(r - s) of a single step of the first, at r = users.
    """
    few, order = min(users, SUMMED_USERS), MODULUS * log(2.0)
    logs = np.zeros(users + 1)  # of A_r
    excess = -np.inf
    for r in range(2, few + 1):
        excess = _last_step(logs, r, mixed, order)
        logs[r] = np.logaddexp(0.0, excess)
    if users > few:
        more = np.arange(few + 1.0, users + 1.0)
        isolated = np.logaddexp(0.0, order - log_binomial(more * mixed, mixed))
        logs[few + 1 :] = logs[few] + np.cumsum(isolated)
        excess = _last_step(logs, users, mixed, order)
    return excess


def _last_step(logs, r, mixed, order):
    """Log of the sum over the sizes s of the component of one of r users."""
    s = np.arange(1, r)
    terms = log_binomial(r - 1, s - 1) - log_binomial(r * mixed, s * mixed)
    return float(logsumexp(terms + order + logs[r - s]))


def log_binomial(n, k):
    """Log of the number of subsets of k of n."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def sharing_security(budget: Budget) -> float:
    """Distance tau that all shares of a fit may have, of which (1 + exp(epsilon)) tau is owed.

    With P, P' the laws in two worlds and Q, Q' those drawn from the sums, P <= Q + tau,
    Q <= exp(epsilon) Q' + delta', Q' <= P' + tau.
    """
    return min(SECURITY, budget.delta / (4.0 * (1.0 + exp(min(budget.epsilon, 700.0)))))
