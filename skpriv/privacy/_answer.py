"""What a session gives back."""

from dataclasses import dataclass

import numpy as np

from ._noise._laws import GaussianNoise


@dataclass(frozen=True)
class Answer:
    """Noisy sum of a query, with the exact law of its noise.

    Attributes
    ----------
    value : ndarray
        The noisy sum over ``n`` records.
    n : int
        Number of records in the sum (public).
    noise : GaussianNoise
        Law of ``value`` minus the exact sum, for intervals.
    """

    value: np.ndarray
    n: int
    noise: GaussianNoise
