"""Sums of integers to which every user adds a part of the noise: grid, noise, shares and price.

docs/mathematics/aggregate.md has the proofs. Lengths are in steps of the grid unless it says
otherwise. Two servers that do not collude need two shares of a number, which hide all but the sum;
where a shuffler mixes the shares of all users, more are needed.
"""

from bisect import bisect_left
from functools import lru_cache
from math import ceil, exp, floor, inf, log, log2, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from ..._stored import frozen, stored
from ...exceptions import PrivacyError

if TYPE_CHECKING:
    from ._cost import Budget

MODULUS = np.iinfo(np.uint64).bits  # sums are computed modulo 2^MODULUS
HEADROOM = MODULUS - 2  # bits that a sum may use: a quarter of the range on either side of zero
# A step of the grid is 2^-bits of the sensitivity over sqrt(size), which makes the noise larger by
# a factor 1 + 2^-bits. The grid has as many bits as there is room for, within these two numbers.
FINEST = 32
COARSEST = 8
NO_ROOM = (
    f"sums modulo 2^{MODULUS}: ask fewer users, fewer numbers, or give a larger epsilon or delta."
)
LARGEST_ENTRY = 4.0  # an entry of a record's vector is at most so many sensitivities from zero
NOISE_ROOM = 40.0  # standard deviations of the noise for which a sum has room
# Standard deviation of the narrowest discrete Gaussian that is drawn, in steps of the grid. The
# proofs of docs/mathematics/aggregate.md leave out two factors. The factor of rounding to the grid
# differs from 1 by less than 2 exp(-2 pi^2 WIDTH^2) / (1 - exp(-2 pi^2)) < 1e-857. The factor of
# the sum of the noise of n users is below exp(5 n exp(-pi^2 WIDTH^2)) < exp(n 1e-427).
WIDTH = 10.0


# For each transport: whom the guarantee trusts, and who together could see each record.
HIDERS = {
    "two-servers": ("the two servers do not collude", "the servers"),
    "shuffled-shares": ("the shuffler and the server do not collude", "shuffler and server"),
}


@stored
@frozen
class Devices:
    """How many devices there are, how many are counted on for noise, and how sums are hidden.

    Parameters
    ----------
    total : int
        Public number of devices that are asked.
    adding : int
        How many of them must add their noise honestly: with fewer there is no answer.
    transport : {"two-servers", "shuffled-shares"}
        How devices report.
    """

    total: int
    adding: int
    transport: str = "two-servers"

    @property
    def premise(self) -> str:
        """Whom the guarantee trusts."""
        who, _ = HIDERS[self.transport]
        return f"{who}; at least {self.adding:,} of {self.total:,} devices add their noise"

    @property
    def caveat(self) -> str:
        """The view that all trusted parties could have together."""
        return f"together {HIDERS[self.transport][1]} see each record almost as it is"


@frozen
class Lattice:
    """Grid and noise of one query whose sum alone is seen.

    Parameters
    ----------
    step : float
        Size of a step of the grid, in the units of the query.
    variance : int
        Variance of the discrete Gaussian noise of each user, in steps squared.
    adding : int
        Users whose noise is counted on.
    """

    step: float
    variance: int
    adding: int

    @classmethod
    def calibrated(
        cls, sensitivity: float, mu: float, size: int, users: int, adding: int
    ) -> "Lattice":
        """Noise that makes the sum of integers mu-Gaussian-DP, as long as ``adding`` users add it.

        Rounding to the grid moves each coordinate of a difference by at most one step, hence its
        l2 norm by at most sqrt(size) steps. Noise of variance S^2 on the integers is a function of
        Gaussian noise of variance S^2 - WIDTH^2, of which mu is the norm over its deviation.

        Parameters
        ----------
        sensitivity : float
            Sensitivity in l2, in the units of the query.
        mu : float
        size : int
            Number of coordinates.
        users, adding : int
            Public number of users, and how many of them are counted on for noise.

        Raises
        ------
        PrivacyError
            If the numbers do not fit into 64 bits, or a user's noise is too narrow for the grid.
        """
        if not mu > 0.0:
            raise PrivacyError("noise that users add in parts is Gaussian: it needs delta above 0.")
        if not 1 <= adding <= users:
            raise PrivacyError(f"adding={adding} devices must be from 1 to all {users} of them.")
        # Largest absolute sum of all vectors and of all noise, in units of 2^bits steps.
        largest_sum = sqrt(size) * (
            users * (LARGEST_ENTRY + 1.0) + NOISE_ROOM * sqrt(users / adding) / mu
        )
        # A user's noise has a deviation of 2^bits root(size / adding) / mu steps, and the sampler
        # takes at most 2^45.
        widest = 44.5 + log2(mu * sqrt(adding / size))
        bits = min(FINEST, HEADROOM - ceil(log2(largest_sum)), floor(widest))
        if bits < COARSEST:
            raise PrivacyError(
                f"{users} users and {size} numbers at mu={mu:.3g} do not fit into {NO_ROOM}"
            )
        longest = sqrt(size) * (2.0**bits + 1.0)  # the sensitivity, rounded to the grid
        variance = ceil(((longest / mu) ** 2 + WIDTH**2) * (1.0 + 2.0**-40) / adding)
        if variance < WIDTH**2:
            raise PrivacyError(
                f"{users} users leave each of them with too little noise for a grid: ask fewer."
            )
        return cls(sensitivity / (sqrt(size) * 2.0**bits), variance, adding)

    def has_room(self, sensitivity: float, size: int) -> bool:
        """Whether a later round that gets 2^-24 of this round's share of the budget has room, too.

        The grid may be coarser by twelve bits then. Noise has the root of 1 / share: a question has
        at least 2^-8 of the budget, which takes four bits. The other eight are for questions that
        answers lead to and records of zero do not, of up to 2^16 times as many numbers. A round
        that does not fit all the same is refused: its users have paid for nothing, and no more.
        """
        return bool(self.step * sqrt(size) * 2.0 ** (COARSEST + 11.5) <= sensitivity)

    @property
    def scale(self) -> float:
        """Standard deviation of the noise that is counted on, in the units of the query."""
        return self.step * sqrt(self.variance * self.adding)

    def mu(self, sensitivity: float, size: int) -> float:
        """The cost of a sum with this noise for a record."""
        longest = sensitivity / self.step + sqrt(size)
        return longest / sqrt(self.variance * self.adding - WIDTH**2)

    def check(self, origin: Any, sensitivity: float) -> None:
        """Refuse a query whose numbers may wrap around: one about records far from zero.

        Parameters
        ----------
        origin : float
            Largest absolute entry of its vector of the record of zeros, which is public.
        sensitivity : float
        """
        if not origin + sensitivity <= (LARGEST_ENTRY + 1.0) * sensitivity:
            raise PrivacyError(
                "the numbers of a query are too far from zero for sums modulo "
                f"2^{MODULUS}: subtract a public constant from each record's."
            )


# Largest total variation distance between all shares of a fit and shares that are drawn from the
# sums alone.
SECURITY = 2.0**-40
SUMMED_USERS = 256  # up to so many users the recursion of `_log_excess` is computed user by user
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
        return 1  # the sum is the user's own vector
    target = 2.0 * (log(security) - log(size) + log(2.0))

    def enough(mixed: int) -> bool:
        return _log_excess(users, mixed) <= target - 1e-6

    if not enough(MOST_SHARES):
        raise PrivacyError(f"{users} users need more than {MOST_SHARES} shares of each number.")
    return bisect_left(range(MOST_SHARES), True, lo=2, key=enough) + 1


def _log_excess(users: int, mixed: int) -> float:
    """Log of an upper bound of E q^(C - 1) - 1, for this many users and mixed shares of each.

    A set of s of r users is a union of components with probability 1 / binom(r m, s m). By the
    component of one user, of s users, A_r = E q^(C - 1) has
        A_r - 1 <= sum over s < r of binom(r - 1, s - 1) / binom(r m, s m) q A_(r - s), A_1 = 1.
    Taking the last user out splits components only, unless that user is one, which has probability
    1 / binom(r m, m): A_r <= A_(r-1) (1 + q / binom(r m, m)). For more than 256 users the second
    bounds each A_(r - s) of a single step of the first, at r = users.
    """
    summed = min(users, SUMMED_USERS)
    order = MODULUS * log(2.0)
    logs = np.zeros(users + 1)  # of A_r
    excess = -inf
    for r in range(2, summed + 1):
        excess = _last_step(logs, r, mixed, order)
        logs[r] = np.logaddexp(0.0, excess)
    if users > summed:
        more = np.arange(summed + 1.0, users + 1.0)
        isolated = np.logaddexp(0.0, order - log_binomial(more * mixed, mixed))
        logs[summed + 1 :] = logs[summed] + np.cumsum(isolated)
        excess = _last_step(logs, users, mixed, order)
    return excess


def _last_step(logs: np.ndarray, r: int, mixed: int, order: float) -> float:
    """Log of the sum, over the sizes s of one user's component, in the recursion for r users."""
    s = np.arange(1, r)
    terms = log_binomial(r - 1, s - 1) - log_binomial(r * mixed, s * mixed)
    return float(np.logaddexp.reduce(terms + order + logs[r - s]))


def log_binomial(n: Any, k: Any) -> Any:
    """Log of the number of ways to choose k of n."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def sharing_security(budget: "Budget") -> float:
    """Distance tau that all shares of a fit may have, which adds (1 + exp(epsilon)) tau to delta.

    With P, P' the laws in two worlds and Q, Q' those drawn from the sums, P <= Q + tau,
    Q <= exp(epsilon) Q' + delta', Q' <= P' + tau.
    """
    return min(SECURITY, budget.delta / (4.0 * (1.0 + exp(min(budget.epsilon, 700.0)))))
