"""The central model: a trusted curator adds the noise."""

from math import sqrt

from ._answer import Answer
from ._noise import GaussianNoise
from ._session import Session


class CentralSession(Session):
    """A trusted curator: every query sees all records and pays its share of the budget.

    The noise of a query is Gaussian with mu_q = mu sqrt(share). The squares add up to at most mu^2,
    and adaptive composition of Gaussian mechanisms is exact (Dong, Roth and Su 2022, Cor. 3.3).
    """

    model = "central"

    def _answer(self, query, share):
        noise = GaussianNoise.calibrated(query.sensitivity, self._budget.mu * sqrt(share))
        value = self._source.add(self._exact(query), noise)
        return Answer(value, self.n, noise), noise.cost(query.sensitivity)
