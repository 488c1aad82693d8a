"""The models without a curator: every user adds the noise, before anything leaves the device."""

from dataclasses import replace
from math import ceil, floor, inf, prod

from ...exceptions import PrivacyError
from .._amplification import amplified, amplified_epsilon
from .._accounting._budget import Budget
from .._accounting._capabilities import LOCAL, SHUFFLE
from .._accounting._cost import SHARE_SLACK, Cost
from .._noise._codebook_reports import LiftedReports
from .._query import Answer
from .._stream._local import LocalStream, ShuffleStream
from ._base import Session


class LocalSession(Session):
    """Every user answers one query, with the full budget; shares divide the users.

    Which users answer which query is a public random order, drawn without looking at them. Blocks
    of users are disjoint, so that each record pays for one report (parallel composition). A sum of
    m reports with N(0, s^2) noise has N(0, m s^2) noise: m users cost one draw, exactly.

    A query about a subset is answered by its users between two heights of the whole order. Queries
    whose subsets have a user in common are at different heights, hence ask different users.
    """

    model, capabilities = "local", LOCAL
    streams = {"reports": LocalStream}
    _users_order = None

    def _check(self, budget, n, smallest_share):
        super()._check(budget, n, smallest_share)
        if smallest_share and floor((smallest_share + SHARE_SLACK) * n) < 1:
            raise PrivacyError(
                f"n_samples={n} is too few: in the local model each user answers one query, and "
                f"a query needs a share of {smallest_share:.4g} of the users. "
                f"Give at least {ceil(1.0 / smallest_share)} rows, or use privacy='central'."
            )

    def _answer(self, query, slot, law):
        users = self._users(slot)
        value = law.collected(query, self._rows, users, self._source)
        if isinstance(value, LiftedReports):  # as many as came, of those who were asked
            n = len(value.directions)
            law = replace(law, code=value.code).summed(n)
            return Answer(query.summed(value), n, law, value)
        return Answer(value, len(users), law.summed(len(users)))

    def _users(self, slot):
        """Users who answer, in the public order."""
        if self._users_order is None:
            self._users_order = self._source.users(self._rows)
        start, stop = self._position(slot.start), self._position(slot.stop)
        return self._users_order.users(start, stop, slot.subset)

    def _noise(self, query, slot):
        return self._law(query, slot).summed(self._count(slot))

    def _law(self, query, slot):
        return query.local_noise(self._report_budget(query, self._count(slot)))

    def _stream_law(self, stream, slot):
        return stream.query.local_noise(self._budget)

    def _count(self, slot):
        if slot.subset is not None:
            return len(self._users(slot))
        return self._position(slot.stop) - self._position(slot.start)

    def _position(self, share):
        return floor((share + SHARE_SLACK) * self.n)

    def _report_budget(self, query, users):
        """Budget of each report of a block of this many users."""
        return self._budget


class ShuffleSession(LocalSession):
    """Every user answers one query; a shuffler sends on the reports of each query without names.

    The budget is a central guarantee for the shuffled reports. Users hide each other, so that a
    report may spend more than the budget: as much as the best of the bounds
    that docs/mathematics/shuffle.md proves allows for the number of users who answer the same query
    (only these are shuffled together). With few users there is no amplification, and the model is
    the local one at the same budget.

    Whom users trust: the shuffler, to drop names, times and order and not to collude with the
    analyst; and the other users, to report as told (if only m of n do, the guarantee is that of m).
    Without them a user still has the local guarantee of the own report, which is weaker. The
    analyst is not trusted at all. That a user answers, and which query, is public.

    Accountants are charged the (epsilon, delta) guarantee: amplification has no tighter currency,
    so that the epsilons and deltas of several fits add up.
    """

    model, capabilities = "shuffle", SHUFFLE
    streams = {"amplified": ShuffleStream}

    def _check(self, budget, n, smallest_share):
        if not 0.0 < budget.epsilon < inf:
            raise PrivacyError(
                f"epsilon={budget.epsilon} is outside of (0, inf), where the shuffle model gives a "
                "guarantee: pass a positive, finite epsilon, or privacy='none'."
            )
        super()._check(budget, n, smallest_share)

    def _report_budget(self, query, users):
        if self._currency != "pure":
            return amplified(self._budget, users, dimension=int(prod(query.shape)))
        likely = getattr(query, "likely", None)  # of reports of two levels; any pure ones else
        return Budget(amplified_epsilon(self._budget, users, likely))

    def _stream_law(self, stream, slot):
        return stream.batch_noise(self._budget)

    def _charged(self, cost):
        return Cost.from_budget(self._budget)
