"""What a policy released in a whole run, and at what price."""

from dataclasses import dataclass, field
from math import inf

from .._printing import Printed, Table
from ..privacy import MODELS, Budget, Cost, Guarantee, PrivacyReport, Trust

HEADERS = ("epoch", "rounds", "mu, at most", "guarantee of the fit")


@dataclass(frozen=True)
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


@dataclass(frozen=True, repr=False)
class EpochsReport(Printed):
    """What a policy that learns by epochs released; prints as a table, and in HTML.

    Attributes
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
        closed = (
            epoch.report.guarantee.protecting("user") if epoch.report else Guarantee.absent("user")
            for epoch in self.epochs
        )
        return Guarantee.weakest([self.promise, *closed])

    @property
    def privacy(self) -> str:
        """Who is trusted: "central", "local", "shuffle", or "none" for no privacy."""
        return self.guarantee.model

    @property
    def budget(self) -> Budget:
        """What one user may lose in the whole run."""
        return Budget(self.guarantee.epsilon, self.guarantee.delta)

    @property
    def total(self) -> Cost:
        """Cost to one user: that of the most expensive epoch, since epochs are disjoint."""
        if self.epochs and not self.guarantee.private:
            return Cost(gaussian=inf)
        return Cost.maximum([e.report.total for e in self.epochs if e.report] or [Cost()])

    def _lines(self):
        for index, epoch in enumerate(self.epochs):
            rounds = f"{epoch.rounds[0]}-{epoch.rounds[1] - 1}"
            if epoch.report is None:
                yield (str(index), rounds, "inf", "none")
            else:
                mu = (2.0 * epoch.report.total.amount("zcdp")) ** 0.5
                yield (str(index), rounds, f"{mu:.4g}", str(epoch.report.guarantee))

    def _parts(self):
        return [f"{self.name}: {self.guarantee}", Table(HEADERS, [*self._lines()], len(HEADERS))]


def report_of(name, oracle, epochs, currency=None):
    """Report of a policy that gives each epoch to a clone of this oracle, and gave these.

    An oracle is private only if it says so itself: what is wrapped in a pipeline is not looked at.
    The guarantee is the weakest of what was fitted and of what will be; a currency in which its
    fits are known to be paid tells more of the latter.
    """
    return EpochsReport(name, trust_of(oracle).guarantee("user", currency), list(epochs))


def charged_report(oracle):
    """Report of a fit that was charged, and refused its rows; None if it is not private."""
    trust, name = trust_of(oracle), type(oracle).__name__
    if trust.exact:
        return None
    secure, charged = getattr(oracle, "random_state", 0) is None, Cost.from_budget(trust.budget)
    return PrivacyReport(name, trust.model, trust.budget, secure, charged=charged)


def trust_of(oracle):
    """Who is trusted by an oracle; one that does not say so is not private."""
    epsilon, delta = getattr(oracle, "epsilon", inf), getattr(oracle, "delta", 0.0)
    model = getattr(oracle, "privacy", "none")
    return Trust.of(model if model in MODELS else "none", Budget(epsilon, delta))
