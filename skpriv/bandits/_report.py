"""What a policy released in a whole run, and at what price."""

from dataclasses import dataclass, field
from html import escape
from math import inf, isinf

from ..privacy import Budget, Cost, PrivacyReport

HEADERS = ("epoch", "rounds", "mu, at most", "guarantee of the fit")
MODELS = {"central": "joint", "local": "local", "shuffle": "shuffle", "none": "none"}
STRENGTHS = ("none", "joint", "shuffle", "local")  # the weakest first
WORDS = {
    "joint": "joint differential privacy (trusted curator)",
    "local": "local differential privacy",
    "shuffle": "shuffle differential privacy",
}
UNIT = "replacing one user, who is in one round: context, action and reward"


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


@dataclass(frozen=True)
class EpochsReport:
    """What a policy that learns by epochs released; prints as a table, and in HTML.

    Attributes
    ----------
    name : str
        The policy.
    privacy : {"joint", "local", "shuffle", "none"}
        Joint differential privacy (Kearns et al. 2014): the actions of all others are protected.
    budget : Budget
        What one user may lose in the whole run.
    epochs : list of Epoch
        The closed ones, in order.
    """

    name: str
    privacy: str
    budget: Budget
    epochs: list[Epoch] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """What is replaced between neighbours."""
        return UNIT

    @property
    def total(self) -> Cost:
        """Cost to one user: epochs are disjoint publicly indexed sets of users, so the dearest."""
        if self.privacy == "none" and self.epochs:
            return Cost(gaussian=inf)
        return Cost.maximum([e.report.total for e in self.epochs if e.report] or [Cost()])

    @property
    def guarantee(self) -> str:
        """The guarantee in one sentence."""
        if self.privacy == "none":
            return "none"
        return (
            f"(epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}) "
            f"{WORDS[self.privacy]}, {UNIT}; the numbers of rounds are public"
        )

    def _lines(self):
        for index, epoch in enumerate(self.epochs):
            rounds = f"{epoch.rounds[0]}-{epoch.rounds[1] - 1}"
            if epoch.report is None:
                yield (str(index), rounds, "inf", "none")
            else:
                mu = (2.0 * epoch.report.total.amount("zcdp")) ** 0.5
                yield (str(index), rounds, f"{mu:.4g}", epoch.report.guarantee)

    def __str__(self) -> str:
        table = [HEADERS, *self._lines()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
        return "\n".join([f"{self.name}: {self.guarantee}", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{escape(c)}</{tag}>" for c in cells) + "</tr>"

        body = "".join(line(cells, "td") for cells in self._lines())
        return (
            f"<p><b>{escape(self.name)}</b>: {escape(self.guarantee)}</p>"
            f"<table><thead>{line(HEADERS, 'th')}</thead><tbody>{body}</tbody></table>"
        )


def report_of(name, oracle, epochs):
    """Report of a policy that gives each epoch to a clone of this oracle, and gave these.

    An oracle is private only if it says so itself: what is wrapped in a pipeline is not looked at.
    The guarantee is the weakest of what was fitted and of what will be.
    """
    epsilon, delta = getattr(oracle, "epsilon", inf), getattr(oracle, "delta", 0.0)
    models = {MODELS.get(getattr(oracle, "privacy", "none"), "none")}
    budgets = [(epsilon, delta)]
    for epoch in epochs:
        if epoch.report is None:
            models.add("none")
        else:
            models.add(MODELS.get(epoch.report.privacy, "none"))
            budgets.append((epoch.report.budget.epsilon, epoch.report.budget.delta))
    epsilon, delta = map(max, zip(*budgets, strict=True))
    privacy = next(model for model in STRENGTHS if model in models)
    if privacy == "none" or isinf(epsilon):
        return EpochsReport(name, "none", Budget(inf), list(epochs))
    return EpochsReport(name, privacy, Budget(epsilon, delta), list(epochs))
