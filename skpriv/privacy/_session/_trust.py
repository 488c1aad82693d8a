"""Who is trusted with what: decided once, before a session is opened, and used by all."""

from dataclasses import dataclass
from math import inf

from .._accounting._budget import Budget
from .._accounting._cost import Cost
from .._accounting._guarantee import Guarantee

LOCAL_MODELS = frozenset({"local", "shuffle"})  # where shares divide the users


@dataclass(frozen=True)
class Trust:
    """A privacy model and its budget, as they are meant: an infinite epsilon is no privacy.

    Attributes
    ----------
    model : {"central", "local", "shuffle", "none"}
    budget : Budget
        Infinite where there is no privacy.

    Examples
    --------
    >>> from skpriv.privacy import Budget, Trust
    >>> Trust.of("local", Budget(float("inf"), 1e-6)) == Trust.of("none", Budget(1.0, 1e-6))
    True
    >>> trust = Trust.of("shuffle", Budget(1.0, 1e-6))
    >>> trust.exact, trust.curator, trust.divides
    (False, False, 'users')
    >>> print(trust.guarantee("user"))
    (epsilon=1, delta=1e-06) differential privacy (trusted shuffler of each batch of reports),
    replacing one user, who is in one round: context, action and reward; the numbers of rounds are
    public
    """

    model: str
    budget: Budget

    @classmethod
    def of(cls, privacy: str, budget: Budget) -> "Trust":
        """Trust that parameters of an estimator or a policy ask for."""
        absent = cls.absent(privacy, budget.epsilon)
        return cls("none", Budget(inf)) if absent else cls(privacy, budget)

    @staticmethod
    def absent(privacy, epsilon) -> bool:
        """Whether these parameters, valid or not, ask for no privacy."""
        return privacy == "none" or epsilon == inf

    @property
    def exact(self) -> bool:
        """Whether answers have no noise."""
        return self.model == "none"

    @property
    def curator(self) -> bool:
        """Whether somebody sees all records, and answers about them."""
        return self.model not in LOCAL_MODELS

    @property
    def divides(self) -> str:
        """What a share divides: the "budget" of every record, or the "users"."""
        return "budget" if self.curator else "users"

    def price(self, currency: str = "gdp") -> Cost:
        """What a session or stream that divides this currency is charged, in whole."""
        if self.model == "shuffle":  # amplification has no tighter currency
            return Cost.from_budget(self.budget)
        if currency == "pure":
            return Cost.from_epsilon(self.budget.epsilon)
        # A rho is divided between Gaussian noise and selections, which in no currency cost less.
        return Cost.from_mu(self.budget.mu) if currency == "gdp" else Cost(selected=self.budget.rho)

    def guarantee(self, unit: str = "record", currency: str | None = None) -> Guarantee:
        """What will be promised; without a currency it is no more than the budget."""
        if self.exact:
            return Guarantee.absent(unit)
        cost = Cost.from_budget(self.budget) if currency is None else self.price(currency)
        return Guarantee(self.model, (cost,), self.budget.delta, unit)
