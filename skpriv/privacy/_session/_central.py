"""The models with a curator who sees all records, and the one without any privacy."""

from math import sqrt

from .._accounting._cost import Budget
from .._accounting._guarantee import CENTRAL, NONE
from .._noise._laws import GaussianNoise, GumbelNoise
from .._query import Answer
from .._stream import ExactStream, FactorStream, TreeStream
from ._base import Session


class CentralSession(Session):
    """A trusted curator: every query sees all records and pays its share of the budget.

    The noise of a query is Gaussian with mu_q = mu sqrt(share). The squares add up to at most mu^2
    for every record, and adaptive composition of Gaussian mechanisms is exact (Dong, Roth and Su
    2022, Cor. 3.3).
    """

    model, capabilities = "central", CENTRAL
    streams = {"factor": FactorStream, "tree": TreeStream}

    def _answer(self, query, slot, law):
        exact = self._pieces.sum(query, slot.subset)
        return Answer(
            self._source.add(exact, law), self._size(slot), law, counted=self.persons is None
        )

    def _law(self, query, slot):
        if self._currency == "pure":  # epsilons add up
            return query.local_noise(Budget(slot.share * self._budget.epsilon / self._reordered))
        return self._gaussian(query, slot)

    def _selection_law(self, query, k, slot):
        rho = slot.share * self._mu**2 / 2.0
        return GumbelNoise.calibrated(self._change(query), k, rho)

    def _gaussian(self, asked, slot):
        return GaussianNoise.calibrated(self._change(asked), self._mu * sqrt(slot.share))

    _stream_law = _release_law = _gaussian

    @property
    def _mu(self):
        """Gaussian noise of this mu spends the whole budget (rho = mu^2 / 2)."""
        if self._currency == "gdp":
            return self._budget.mu
        return sqrt(2.0 * self._budget.rho)


class ExactSession(CentralSession):
    """Exact answers over all records. Its cost is infinite: no finite accountant admits it."""

    model, capabilities = "none", NONE
    streams = {"exact": ExactStream}

    def _law(self, asked, slot):
        return GaussianNoise(0.0)

    _stream_law = _release_law = _law

    def _selection_law(self, query, k, slot):
        return GumbelNoise(0.0)

    def _enforce(self, asked, cost):
        """Nothing is priced."""
