"""The central model: a trusted curator adds the noise."""

from math import sqrt

from .._answer import Answer
from .._accounting._budget import Budget
from .._noise._laws import GaussianNoise, GumbelNoise
from .._accounting._report import ReportRow
from ._base import Session


class CentralSession(Session):
    """A trusted curator: every query sees all records and pays its share of the budget.

    The noise of a query is Gaussian with mu_q = mu sqrt(share). The squares add up to at most mu^2,
    and adaptive composition of Gaussian mechanisms is exact (Dong, Roth and Su 2022, Cor. 3.3).
    """

    model = "central"

    def _answer(self, query, share):
        noise = self._noise(query, share)
        answer = Answer(self._source.add(self._exact(query), noise), self.n, noise)
        return answer, noise.cost(query.sensitivity)

    def _noise(self, query, share):
        if self._currency == "pure":  # epsilons add up
            return query.local_noise(Budget(share * self._budget.epsilon))
        return GaussianNoise.calibrated(query.sensitivity, self._mu * sqrt(share))

    def _perturb(self, procedure, share):
        exact = procedure.run(self._X, self._y)
        noise = GaussianNoise.calibrated(procedure.sensitivity, self._mu * sqrt(share))
        answer = Answer(self._source.add(exact, noise), self.n, noise)
        return answer, noise.cost(procedure.sensitivity)

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
