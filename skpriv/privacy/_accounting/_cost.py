"""What releases have cost, in units that add up."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from ._budget import Budget
from ._conversions import gdp_epsilon, zcdp_epsilon

__all__ = ["Cost"]

# Shares such as ten times 0.1 add up to 1 + 2e-16: only such rounding is forgiven.
_ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class Cost:
    """The privacy cost of some releases: a vector whose coordinates add up under composition.

    Parameters
    ----------
    gaussian : float, default=0.0
        Sum of mu^2 of the Gaussian mechanisms, whose composition is exactly Gaussian.
    concentrated : float, default=0.0
        Sum of rho of the zCDP mechanisms that are not Gaussian.
    pure : float, default=0.0
        Sum of epsilon of the pure mechanisms.
    pure_squared : float, default=0.0
        Sum of epsilon^2 / 2 of the same ones: what they cost in zCDP.
    approximate : float, default=0.0
        Sum of epsilon of the (epsilon, delta) mechanisms.
    delta : float, default=0.0
        Sum of delta of the same ones.

    Notes
    -----
    Mechanisms may be chosen adaptively, but the costs themselves must be public: fixed without
    looking at the data. Infinite costs stand for releases that are not private.

    Examples
    --------
    >>> from skpriv.privacy import Budget, Cost
    >>> budget = Budget(1.0, 1e-6)
    >>> quarter = Cost.from_mu(budget.mu / 2)
    >>> (quarter + quarter + quarter + quarter).fits(budget)
    True
    """

    gaussian: float = 0.0
    concentrated: float = 0.0
    pure: float = 0.0
    pure_squared: float = 0.0
    approximate: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = float(getattr(self, field.name))
            if not value >= 0.0:
                raise ValueError(f"{field.name} must be at least 0, got {value}.")
            object.__setattr__(self, field.name, value)

    @classmethod
    def from_mu(cls, mu: float) -> "Cost":
        """Cost of a Gaussian release, of l2 sensitivity mu times its standard deviation."""
        return cls(gaussian=_nonnegative("mu", mu) * mu)

    @classmethod
    def from_rho(cls, rho: float) -> "Cost":
        """Cost of a rho-zCDP mechanism (use `from_mu` if it is Gaussian: that is tighter)."""
        return cls(concentrated=_nonnegative("rho", rho))

    @classmethod
    def from_epsilon(cls, epsilon: float) -> "Cost":
        """Cost of an epsilon-DP mechanism."""
        epsilon = _nonnegative("epsilon", epsilon)
        return cls(pure=epsilon, pure_squared=epsilon * epsilon / 2.0)

    @classmethod
    def from_budget(cls, budget: Budget) -> "Cost":
        """Cost of a mechanism of which only its (epsilon, delta) guarantee is known."""
        if budget.delta == 0.0:
            return cls.from_epsilon(budget.epsilon)
        return cls(approximate=budget.epsilon, delta=budget.delta)

    @classmethod
    def maximum(cls, costs: Iterable["Cost"]) -> "Cost":
        """Cost of releases about disjoint, publicly indexed sets of records.

        Neighbours differ in one record, which is in one of the sets: only the releases about
        that set can tell them apart, so its cost is what is paid. The coordinate-wise maximum is
        at least the cost of any of the sets, and `epsilon` is non-decreasing in each coordinate.
        """
        columns = zip(*(cost.as_tuple() for cost in costs), strict=True)
        return cls(*(max(column) for column in columns))

    def as_tuple(self) -> tuple[float, ...]:
        """Return the coordinates, in the order of the parameters."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def __add__(self, other: "Cost") -> "Cost":
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(*map(sum, zip(self.as_tuple(), other.as_tuple(), strict=True)))

    def epsilon(self, delta: float = 0.0) -> float:
        """Smallest epsilon for which the releases together are known to be (epsilon, delta)-DP.

        Parameters
        ----------
        delta : float in [0, 1), default=0.0

        Returns
        -------
        epsilon : float
            Infinite if there is none.

        Notes
        -----
        The smallest over three valid routes: the Gaussian releases by Gaussian DP, or they and
        the concentrated ones by zCDP, plus the sum of the pure epsilons; or all these by zCDP. Each
        leaves the sum of the approximate epsilons and deltas to be added.
        """
        left = delta - self.delta
        if left < -_ROUNDING * delta:
            return math.inf
        left = max(0.0, left)
        concentrated = self.gaussian / 2.0 + self.concentrated
        routes = []
        if self.concentrated == 0.0:
            routes.append(gdp_epsilon(math.sqrt(self.gaussian), left) + self.pure)
        else:
            routes.append(zcdp_epsilon(concentrated, left) + self.pure)
        if self.pure > 0.0:
            routes.append(zcdp_epsilon(concentrated + self.pure_squared, left))
        return min(routes) + self.approximate

    def fits(self, budget: Budget) -> bool:
        """Whether the releases together are known to satisfy ``budget``.

        A relative excess of 1e-9 is forgiven, for the rounding of sums that spend a budget
        exactly. Gaussian costs are compared in mu, where no conversion is needed.
        """
        if budget.epsilon == math.inf:
            return True
        if self == Cost(gaussian=self.gaussian):
            return math.sqrt(self.gaussian) <= budget.mu * (1.0 + _ROUNDING)
        return self.epsilon(budget.delta) <= budget.epsilon * (1.0 + _ROUNDING)

    def __repr__(self) -> str:
        shown = (f"{field.name}={getattr(self, field.name):.6g}" for field in fields(self))
        return f"Cost({', '.join(text for text in shown if not text.endswith('=0'))})"


def _nonnegative(name: str, value: float) -> float:
    if not value >= 0.0:
        raise ValueError(f"{name} must be at least 0, got {value!r}.")
    return float(value)
