"""The shuffle model: every user adds noise, and nobody knows whose report is whose."""

from math import inf

from ...exceptions import PrivacyError
from .._accounting._amplification import amplified
from .._accounting._cost import Cost
from ._local import LocalSession


class ShuffleSession(LocalSession):
    """Every user answers one query; a shuffler sends on the reports of each query without names.

    The budget is a central guarantee for the shuffled reports. Users hide each other, so that a
    report may spend more than the budget: as much as the best of the bounds
    that docs/shuffle.md proves for the number of users who answer the same query
    (only these are shuffled together). With few users there is no amplification, and the model is
    the local one at the same budget.

    Whom users trust: the shuffler, to drop names, times and order and not to collude with the
    analyst; and the other users, to report as told (if only m of n do, the guarantee is that of m).
    Without them a user still has the local guarantee of the own report, which is weaker. The
    analyst is not trusted at all. That a user answers, and which query, is public.

    Accountants are charged the (epsilon, delta) guarantee: amplification has no tighter currency,
    so that the epsilons and deltas of several fits add up.
    """

    model = "shuffle"

    @staticmethod
    def _price(budget, currency):
        return Cost.from_budget(budget)

    def _check(self, budget, n, smallest_share):
        if not 0.0 < budget.epsilon < inf:
            raise PrivacyError(
                f"epsilon={budget.epsilon} is outside of (0, inf), where the shuffle model gives a "
                "guarantee: pass a positive, finite epsilon, or privacy='none'."
            )
        super()._check(budget, n, smallest_share)

    def _report_budget(self, users):
        # The bound is one for Gaussian reports: pure ones keep their local budget.
        return self._budget if self._currency == "pure" else amplified(self._budget, users)

    def _report_cost(self, query, noise):
        return Cost.from_budget(self._budget)
