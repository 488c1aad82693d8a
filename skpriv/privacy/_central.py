"""The central model: a trusted curator adds the noise."""

from math import sqrt

from ._answer import Answer
from ._noise import GaussianNoise, GumbelNoise
from ._report import ReportRow
from ._session import Session


class CentralSession(Session):
    """A trusted curator: every query sees all records and pays its share of the budget.

    The noise of a query is Gaussian with mu_q = mu sqrt(share). The squares add up to at most mu^2,
    and adaptive composition of Gaussian mechanisms is exact (Dong, Roth and Su 2022, Cor. 3.3).
    """

    model = "central"

    def _answer(self, query, share):
        return self._noisy(self._exact(query), query.sensitivity, share)

    def _perturb(self, procedure, share):
        return self._noisy(procedure.run(self._X, self._y), procedure.sensitivity, share)

    def _noisy(self, exact, sensitivity, share):
        noise = GaussianNoise.calibrated(sensitivity, self._mu * sqrt(share))
        return Answer(self._source.add(exact, noise), self.n, noise), noise.cost(sensitivity)

    def _select(self, query, k, share):
        noise = GumbelNoise.calibrated(query.sensitivity, k, share * self._mu**2 / 2.0)
        indices = self._source.top(abs(self._exact(query)), k, noise)
        cost = noise.cost(query.sensitivity, k)
        return indices, ReportRow.of_noise(query, share, self.n, noise, cost)

    @property
    def _mu(self):
        """Gaussian noise of this mu spends the whole budget (rho = mu^2 / 2)."""
        if self._currency == "gdp":
            return self._budget.mu
        return sqrt(2.0 * self._budget.rho)
