"""No privacy: exact answers, for references and tests."""

from .._answer import Answer
from .._noise._laws import GaussianNoise, GumbelNoise
from .._accounting._report import ReportRow
from ._base import Session


class ExactSession(Session):
    """Exact answers over all records. Its cost is infinite: no finite accountant admits it."""

    model = "none"

    def _answer(self, query, share):
        return self._noiseless(self._exact(query), query)

    def _noise(self, query, share):
        return GaussianNoise(0.0)

    def _perturb(self, procedure, share):
        return self._noiseless(procedure.run(self._X, self._y), procedure)

    def _noiseless(self, exact, asked):
        noise = GaussianNoise(0.0)
        return Answer(exact, self.n, noise), noise.cost(asked.sensitivity)

    def _select(self, query, k, share):
        noise = GumbelNoise(0.0)
        indices = self._source.top(abs(self._exact(query)), k, noise)
        cost = noise.cost(query.sensitivity, k)
        return indices, ReportRow.of_noise(query, share, self.n, noise, cost)
