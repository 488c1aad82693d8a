"""No privacy: exact answers, for references and tests."""

from ._answer import Answer
from ._noise import GaussianNoise
from ._session import Session


class ExactSession(Session):
    """Exact answers over all records. Its cost is infinite: no finite accountant admits it."""

    model = "none"

    def _answer(self, query, share):
        noise = GaussianNoise(0.0)
        return Answer(self._exact(query), self.n, noise), noise.cost(query.sensitivity)
