"""The stream of the shuffle model, by summation: batches of which only the sum can be seen."""

from math import sqrt

import numpy as np

from ...exceptions import PrivacyError
from .._accounting._budget import Budget
from .._accounting._cost import Cost
from .._noise._laws import GaussianNoise
from ._base import Stream
from ._shuffle import check_full, check_shuffle

# Statistical security of the sharing, and the distance of a sum of discrete Gaussians from one.
SECURITY = 2.0**-40
# Of the grid: rounding moves a record by at most this part of the sensitivity.
GRID = 1.0 + 2.0**-20


class VectorSumStream(Stream):
    """Running sums of batches, of which a shuffler reveals nothing but the noisy vector sum.

    A user rounds the own vector to a fine grid, adds a small part of the noise, and splits the
    result into several random shares, that add up to it modulo a large number. The shuffler mixes
    the shares of a batch: what can be learnt from them is their sum. One batch hence costs as much
    noise as a trusted curator would add to it, and batches add up. See
    :class:`skpriv.privacy.Stream` for the parameters.

    Notes
    -----
    **Privacy guarantee**: (epsilon, delta)-DP of what the shuffler sends on, where a user is in one
    batch. The shares are within 2^-40 of a function of the sum (Balle et al. 2020), which is taken
    off delta. The noise of a batch is a sum of discrete Gaussians, each many grid steps wide, hence
    a discrete Gaussian but for less than that (Kairouz, Liu and Steinke 2021), for which
    rho = D^2 / (2 scale^2) in zCDP. All users of a batch must add their noise. Public: times and
    sizes of batches. Simulated is the noisy sum, by one Gaussian draw a batch.

    References
    ----------
    B. Balle, J. Bell, A. Gascon and K. Nissim (2020). Private summation in the multi-message
    shuffle model. CCS.
    P. Kairouz, Z. Liu and T. Steinke (2021). The distributed discrete Gaussian mechanism for
    federated learning with secure aggregation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, Query, open_stream
    >>> class ClippedTotal(Query):
    ...     name, shape, sensitivity = "total", (1,), 1.0
    ...     def sum(self, X, y):
    ...         return np.array([np.clip(y, 0.0, 1.0).sum()])
    >>> stream = open_stream(
    ...     "shuffle", ClippedTotal(), Budget(1.0, 1e-6), 20, batch=1000, mechanism="vector-sum",
    ...     random_state=0,
    ... )
    >>> round(stream.push(np.ones((1000, 1)), np.ones(1000)).read().noise.scale, 1)
    4.5
    """

    model = "shuffle"

    def _calibrate(self, budget):
        check_shuffle(budget, self.batch)
        if budget.delta <= 2.0 * SECURITY:
            raise PrivacyError(
                f"delta={budget.delta} must exceed 2^-39, of which the sharing takes a part."
            )
        rho = Budget(budget.epsilon, budget.delta - SECURITY).rho
        self.noise = GaussianNoise.calibrated(self.query.sensitivity * GRID, sqrt(2.0 * rho))
        self.cost = Cost.from_budget(budget)
        self._total = np.zeros(self.query.shape)

    def _release(self, increment, count):
        check_full(count, self.batch)
        self._total = self._total + self._source.add(increment, self.noise)
        return self._total, self.noise.summed(self.reads)
