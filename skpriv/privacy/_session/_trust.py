"""Who is trusted with what: decided once, before a session is opened, and used by all."""

from dataclasses import dataclass
from math import inf

from .._accounting._budget import Budget

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
