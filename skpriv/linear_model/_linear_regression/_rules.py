"""Public rules: shares, clips and weights from the numbers of records and features and the noise.

All follow from two public numbers. The reach N is the number of records over the noise of a sum of
sensitivity 1 that has the whole budget: n mu under a curator, sqrt(n) mu for users who answer once.
A mean of p numbers is then known up to about sqrt(p) / N, and a whitened Gram matrix, whose
eigenvalues are 1 / p, up to sqrt(p) / N in operator norm: it is resolved where N / p^1.5 is large.
The precision x = N / sqrt(n p) compares the noise with sampling: with residuals clipped at k
deviations and rows of length 2.5 / k, the privacy noise of a coefficient is about k^2 / (2.5 x) of
its sampling error. So k may grow with x, and clips and weights fade where n or epsilon grow.
"""

from dataclasses import dataclass
from math import sqrt

# Of the budget: location (twice the share of the spread), see Rules.of.
LOCATION_SHARES, LOCATION_REACH = (0.02, 0.3), 28.0
# Of the rest; the last Newton step has what is left, since intervals come from it alone.
WHITENING, MOMENTS, FIRST_STEP = 0.10, 0.10, 0.12
ROUNDS = 3
RESOLVED = 3.0  # N / p^1.5 below which only the mean is released
SMALLEST_REACH = 40.0
WIDE = 80.0  # N / p^1.5 above which wide clips cost nothing
LEAST_CLIP, GROWTH = 2.5, 0.45
WIDE_CLIP, WIDEST_CLIP = 5.0, 6.0  # deviations: enough for skewed targets, and for coefficients


@dataclass(frozen=True)
class Rules:
    """What a fit does, decided before any record is read.

    Attributes
    ----------
    mean_only : bool
        Whether only the mean of the target can be found.
    location, spread, whitening, moments, first, last : float
        Shares of the queries; they add up to one.
    rounds : int
        Rounds of the whitening.
    clip : float
        Deviations at which residuals are clipped.
    length : float
        Root mean square length of a whitened row.
    target_clip : float
        Mean deviations at which the target is clipped in the first moments.
    """

    mean_only: bool
    location: float
    spread: float
    whitening: float
    moments: float
    first: float
    last: float
    rounds: int
    clip: float
    length: float
    target_clip: float

    @classmethod
    def of(cls, n, p, reach, clip="auto", fit_intercept=True):
        """Rules for n records, rows of length p and this reach.

        Parameters
        ----------
        clip : {"auto", "wide"}
        """
        mean_only = reach < max(SMALLEST_REACH, RESOLVED * p**1.5)
        low, high = LOCATION_SHARES
        location = min(high, max(low, (LOCATION_REACH / reach) ** 2))
        spread = location / 2.0
        if not fit_intercept:  # the location is 0
            location = 0.0
        rest = 1.0 - location - spread
        shares = (WHITENING, MOMENTS, FIRST_STEP, 1.0 - WHITENING - MOMENTS - FIRST_STEP)
        k = max(LEAST_CLIP, (reach / sqrt(n * p)) ** GROWTH)
        if clip == "wide":
            k = max(k, WIDEST_CLIP)
        elif reach >= WIDE * p**1.5:
            k = max(k, WIDE_CLIP)
        length = LEAST_CLIP / k if clip == "wide" else min(1.0, max(LEAST_CLIP, 3.0) / k)
        length = LEAST_CLIP / k if k < WIDE_CLIP else min(length, 3.0 / k)
        return cls(
            mean_only, location, spread, *(rest * share for share in shares),
            rounds=ROUNDS, clip=k, length=length, target_clip=8.0 * (k / LEAST_CLIP) ** 2,
        )  # fmt: skip
