"""Sums of integers to which every user adds a part of the noise: grid, noise and price.

docs/mathematics/aggregate.md has the proofs. Lengths are in steps of the grid unless it says
otherwise. Two servers that do not collude get one share of each number, which hide all but the sum.
"""

from dataclasses import dataclass
from math import ceil, floor, log2, sqrt
from typing import Any

import numpy as np

from ..._stored import stored
from ...exceptions import PrivacyError

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


# For each transport: whom the guarantee trusts, and who together could see each record. Models of
# 0.2.0 may have been fitted to shuffled shares.
HIDERS = {
    "two-servers": ("the two servers do not collude", "the servers"),
    "shuffled-shares": ("the shuffler and the server do not collude", "shuffler and server"),
}


@stored
@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        bits = min(FINEST, int(HEADROOM - ceil(log2(largest_sum))), floor(widest))
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
        return self.step * sqrt(size) * 2.0 ** (COARSEST + 11.5) <= sensitivity

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
