"""Who is trusted with what, and who is protected: decided once, before a session is opened."""

from typing import Any
from dataclasses import dataclass
from math import inf
from numbers import Integral

import numpy as np

from ...exceptions import PrivacyError
from ...records import codes, public_shape
from .._accounting._cost import Budget, Cost
from .._accounting._guarantee import Capabilities, Guarantee, capabilities, models_that
from .._query import ROUNDING, Query


@dataclass(frozen=True)
class Trust:
    """A privacy model and its budget, as they are meant: an infinite epsilon is no privacy.

    Attributes
    ----------
    model : str
        Name of the privacy model; one that has not stated its capabilities is refused.
    budget : Budget
        Infinite where there is no privacy.

    Examples
    --------
    >>> from skpriv.privacy import Budget, Trust
    >>> Trust.of("local", Budget(float("inf"), 1e-6)) == Trust.of("none", Budget(1.0, 1e-6))
    True
    >>> trust = Trust.of("shuffle", Budget(1.0, 1e-6))
    >>> trust.exact, trust.can.curator, trust.can.divides
    (False, False, 'users')
    >>> print(trust.guarantee("user"))
    (epsilon=1, delta=1e-06) differential privacy (trusted shuffler of each batch of reports),
    replacing one user, who is in one round: context, action and reward; the numbers of rounds are
    public
    """

    model: str
    budget: Budget

    def __post_init__(self) -> None:
        capabilities(self.model)  # a model that is not known is refused

    @classmethod
    def of(cls, privacy: str, budget: Budget) -> "Trust":
        """Trust that parameters of an estimator or a policy ask for."""
        absent = cls.absent(privacy, budget.epsilon)
        return cls("none", Budget(inf)) if absent else cls(privacy, budget)

    @staticmethod
    def absent(privacy: str, epsilon: float) -> bool:
        """Whether these parameters, valid or not, ask for no privacy."""
        return privacy == "none" or epsilon == inf

    @property
    def exact(self) -> bool:
        """Whether answers have no noise."""
        return self.can.exact

    @property
    def can(self) -> Capabilities:
        """What the model can: `Capabilities`."""
        return capabilities(self.model)

    def price(self, currency: str = "gdp") -> Cost:
        """What a session or stream that divides this currency is charged, in whole.

        Nothing is free: a budget that is too small for Gaussian noise has no price in it.
        """
        if self.can.amplifies:  # amplification has no tighter currency
            return Cost.from_budget(self.budget)
        if currency == "pure":
            return Cost.from_epsilon(self.budget.epsilon)
        if not self.budget.mu > 0.0:
            raise PrivacyError(
                f"delta={self.budget.delta} leaves no room for Gaussian noise at "
                f"epsilon={self.budget.epsilon}: pass delta in (0, 1), for example delta=1e-6, "
                "or ask for pure noise."
            )
        # A rho is divided between Gaussian noise and selections, which in no currency cost less.
        return Cost.from_mu(self.budget.mu) if currency == "gdp" else Cost(selected=self.budget.rho)

    def guarantee(self, unit: str = "record", currency: str | None = None) -> Guarantee:
        """What will be promised; without a currency it is no more than the budget."""
        if self.exact:
            return Guarantee.absent(unit)
        cost = Cost.from_budget(self.budget) if currency is None else self.price(currency)
        return Guarantee(self.model, (cost,), self.budget.delta, unit)


class Groups:
    """The person of each row, and how many rows of a person are used at most.

    Neighbours are data sets that differ in one person: all rows of one are replaced by any rows of
    another, however many. The number of persons and `largest` are public. A session makes
    :class:`skpriv.records.PersonRows` of them, in which a person is one record.

    Parameters
    ----------
    labels : array-like of shape (n_records,)
        Who each row belongs to.
    largest : int
        Rows of a person that are used at most.
    change : callable, default=None
        ``change(X, y, starts)`` replaces the rows of persons before they are asked about: person g
        has those from starts[g] up to starts[g + 1], and those alone decide what replaces them.

    Attributes
    ----------
    codes : ndarray of int of shape (n_records,)
        Labels as numbers from 0 up to the number of persons.
    name : str
        Name of the column of labels; "" where it has none.
    largest : int

    Raises
    ------
    ValueError

    Examples
    --------
    >>> from skpriv.privacy import Groups
    >>> Groups(["a", "b", "a", "a"], 2).codes.tolist()
    [0, 1, 0, 0]
    """

    def __init__(self, labels: Any, largest: Any, change: Any = None) -> None:
        if len(public_shape(labels)) != 1:
            raise ValueError("groups must be one label a row: an array of shape (n_samples,).")
        if isinstance(largest, bool) or not isinstance(largest, Integral) or largest < 1:
            raise ValueError(
                "groups needs max_rows_per_group, a number of at least 1: how many rows of each "
                f"person are used, not {largest!r}. The noise grows in proportion to it."
            )
        self.largest, self.change = int(largest), change
        self.codes = codes(labels)
        name = getattr(labels, "name", None)
        self.name = name if isinstance(name, str) else ""

    def __len__(self):
        return len(self.codes)

    @property
    def n(self) -> int:
        """Public number of persons."""
        return int(self.codes.max(initial=-1)) + 1

    def check(self, rows: Any, model: str, currency: str) -> None:
        """Refuse what cannot be protected, and labels of other rows."""
        if not capabilities(model).protects_groups or currency == "pure":
            raise PrivacyError(
                f"privacy={model!r} with the currency {currency!r} protects rows alone: groups "
                f"need {models_that('protects_groups')} and Gaussian noise. Where users send "
                "reports let every person send one."
            )
        if len(self) != rows.n:
            raise ValueError(f"groups has {len(self)} labels, but there are {rows.n} rows.")


@dataclass(frozen=True)
class FilledPlaces(Query):
    """Number of rows, which of persons is one over their places: each adds between 0 and 1.

    Replacing a person moves it by less than 1. It reads nobody's values, only whose row it is.
    """

    name: str = "rows of persons"
    sensitivity: float = 1.0 * ROUNDING

    shape: tuple = (1,)
    width: int = 0

    def sum(self, X, y):
        """The exact number."""
        return np.array([float(len(X))])
