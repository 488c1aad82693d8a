"""What a policy reports of a whole run, and what its releases about one person may cost."""

from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any

from ..._printing import Printed, Table
from ..._stored import frozen, stored_in_policies
from ...privacy import Budget, Cost, Guarantee, PrivacyReport

HEADERS = ("epoch", "rounds", "mu, at most", "epsilon", "delta")


@stored_in_policies
@frozen
class Epoch:
    """A closed epoch: its public rounds, and what the fit to them reports.

    Parameters
    ----------
    rounds : (int, int)
        First round, and the one after the last.
    report : PrivacyReport or None
        None if the oracle is not private.
    """

    rounds: tuple[int, int]
    report: PrivacyReport | None

    @property
    def guarantee(self) -> Guarantee:
        """The promise to its users."""
        return self.report.guarantee.protecting("user") if self.report else Guarantee.absent("user")


@dataclass(frozen=True, repr=False)
class EpochsReport(Printed):
    """The released answers of a policy that learns by epochs; prints as a table, and in HTML.

    Parameters
    ----------
    name : str
        The policy.
    promise : Guarantee
        What users of the epochs to come are promised.
    epochs : list of Epoch
        The closed ones, in order.
    """

    name: str
    promise: Guarantee
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of what users were promised, and of what is to come.

        Joint differential privacy where a curator is trusted (Kearns et al. 2014): the actions of
        all others are protected.
        """
        return Guarantee.weakest([self.promise, *(epoch.guarantee for epoch in self.epochs)])

    @property
    def privacy(self) -> str:
        """Who is trusted: "central", "local", "shuffle", or "none" for no privacy."""
        return self.guarantee.model

    @property
    def budget(self) -> Budget:
        """The loss of one user in the whole run, at most."""
        return Budget(self.guarantee.epsilon, self.guarantee.delta)

    @property
    def total(self) -> Cost:
        """Cost to one user: that of the most expensive epoch, since epochs are disjoint."""
        if self.epochs and not self.guarantee.private:
            return Cost(gaussian=inf)
        return Cost.maximum([e.report.total for e in self.epochs if e.report] or [Cost()])

    def _parts(self) -> list[Any]:
        lines = []
        for index, epoch in enumerate(self.epochs):
            mu = sqrt(2.0 * epoch.report.total.amount("zcdp")) if epoch.report else inf
            rounds = f"{epoch.rounds[0]}-{epoch.rounds[1] - 1}"
            promised = epoch.guarantee
            epsilon = f"{promised.epsilon:.6g}"
            lines.append((str(index), rounds, f"{mu:.4g}", epsilon, f"{promised.delta:g}"))
        return [f"{self.name}: {self.guarantee}", Table(HEADERS, lines, len(HEADERS))]


def divided_budget(budget: Budget, releases: int, currency: str | None) -> Budget:
    """Budget of each of so many releases about one person, which are paid in this currency.

    Squares of mu add up, and so do values of rho. If the currency is not known (None), epsilon and
    delta are added up, which always holds.
    """
    if currency is None or not budget.mu > 0.0:
        return Budget(budget.epsilon / releases, budget.delta / releases)
    if currency == "zcdp":
        return Budget.from_rho(budget.rho / releases, budget.delta)
    return Budget.from_mu(budget.mu / sqrt(releases), budget.delta)
