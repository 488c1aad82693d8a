"""A budget that the fits of a block of code share."""

import html
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from ...exceptions import BudgetExceeded
from ._active import (
    Key,
    activated,
    capture,
    charge,
    current_parts,
    inside,
    parallel_part,
    pop,
    process,
    push,
)
from .._accounting._budget import Budget
from .._accounting._conversions import gdp_delta
from .._accounting._cost import Cost
from ._ledger import Charge, Ledger, Part, _Transaction

__all__ = ["BudgetAccountant", "activated", "capture", "charge", "parallel_part"]

# Below this part of mu^2, what is left of a Gaussian budget is rounding.
_ROUNDING = 1e-9


class BudgetAccountant:
    """Hold the fits inside a ``with`` block to one privacy budget.

    Every fit, those of cross-validation and of worker processes included, is charged before it
    reads any data; one that does not fit into what remains raises `BudgetExceeded` instead.

    Parameters
    ----------
    epsilon : float >= 0, or infinity
        Infinite: everything is recorded, nothing is refused.
    delta : float in [0, 1), default=0.0
        With 0 only pure mechanisms fit; Gaussian noise needs more.
    ledger : str, path-like or Ledger, default=None
        File where the charges are kept, so that a budget outlives this process. None: a
        temporary file, which lasts as long as the accountant.

    Attributes
    ----------
    budget : Budget
        What may be spent.
    spent : Budget
        What the charges so far amount to.
    remaining : Budget
        The largest budget of one more fit with Gaussian noise (of any fit, if ``delta`` is 0).
    charges : list of Charge
        The charges, as named tuples ``(name, part, cost)``.

    Notes
    -----
    **Privacy guarantee**: all that was released inside is together (epsilon, delta)-DP, when one
    record is replaced, and if the amounts are public: they may be chosen in view of earlier
    releases, but not of the data. Gaussian releases compose exactly.

    Accountants may be nested: a fit is charged to all that are active, or if one of them refuses,
    to none. The same accountant may be entered again while it is active; that changes nothing.

    The active accountants belong to the process, and not to a thread: a fit in an unrelated
    thread is charged too. Fits in other processes are charged if the estimator was pickled inside
    the block, as joblib does. An accountant that is itself pickled shares its charges.

    The searches of scikit-learn turn errors of a fit into a score of NaN and a warning, and go on
    with fits that are refused as well; ``error_score="raise"`` stops them at the first one.

    Examples
    --------
    >>> from skpriv.privacy import Budget, BudgetAccountant, Cost, charge
    >>> with BudgetAccountant(epsilon=1.0, delta=1e-6) as accountant:
    ...     charge(Cost.from_mu(Budget(0.5, 1e-6).mu), "a fit")
    >>> round(accountant.spent.epsilon, 3), round(accountant.remaining.epsilon, 3)
    (0.5, 0.841)
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        ledger: "str | os.PathLike[str] | Ledger | None" = None,
    ) -> None:
        self.budget = Budget(epsilon, delta)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._home = process()

    @property
    def _key(self) -> Key:
        return self.ledger.path, self.budget

    def __enter__(self) -> Self:
        push(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pop(self)

    @contextmanager
    def part(self, name: object) -> Iterator["BudgetAccountant"]:
        """Charge what follows to one part of the data; the dearest part alone is paid.

        Parameters
        ----------
        name : str or int
            Fits under different part names must use disjoint, publicly indexed records. Inside a
            part, a second name divides that part again.

        Notes
        -----
        A part is known to the thread that entered it. Fits that are handed to other threads or
        processes inside it are charged as if about all records: more than needed, never less.

        Examples
        --------
        >>> from skpriv.privacy import BudgetAccountant, Cost, charge
        >>> with BudgetAccountant(epsilon=1.0) as accountant:
        ...     for site in ("north", "south"):
        ...         with accountant.part(site):
        ...             charge(Cost.from_epsilon(0.5), "mean")
        >>> accountant.spent
        Budget(epsilon=0.5, delta=0.0)
        """
        here: Part = current_parts().get(self._key, ())
        with inside({self._key: (*here, ("", str(name)))}):
            yield self

    @property
    def spent(self) -> Budget:
        """What the charges so far amount to, at the accountant's delta."""
        return self._as_budget(self.ledger.total())

    @property
    def remaining(self) -> Budget:
        """The largest budget of one more fit with Gaussian noise (of any, if delta is 0)."""
        return self._left(self.ledger.total())

    @property
    def charges(self) -> list[Charge]:
        """The charges, the oldest first."""
        return self.ledger.charges()

    def _as_budget(self, cost: Cost) -> Budget:
        if cost == Cost():
            return Budget(0.0, 0.0)
        return Budget(cost.epsilon(self.budget.delta), self.budget.delta)

    def _left(self, total: Cost) -> Budget:
        epsilon, delta = self.budget.epsilon, self.budget.delta
        if epsilon == float("inf"):
            return self.budget
        if delta == 0.0:
            return Budget(max(0.0, epsilon - total.epsilon(0.0)))
        low, high = 0.0, self.budget.mu**2
        if total == Cost(gaussian=total.gaussian):
            low = max(0.0, high - total.gaussian)
        else:
            for _ in range(60):
                middle = 0.5 * (low + high)
                fits = (total + Cost(gaussian=middle)).epsilon(delta) <= epsilon
                low, high = (middle, high) if fits else (low, middle)
        if low <= _ROUNDING * self.budget.mu**2:
            return Budget(0.0, 0.0)
        left = Budget.from_mu(low**0.5, delta)
        # At epsilon = 0 a whole delta might be more than what is left.
        return left if left.epsilon else Budget(0.0, min(delta, gdp_delta(0.0, low**0.5)))

    def _check(self, cost: Cost, name: str, transaction: _Transaction, part: Part) -> None:
        if transaction.total_with(cost, part).fits(self.budget):
            return
        asked = self._as_budget(cost)
        if asked.epsilon < float("inf"):
            text = f"{name} asks for {asked}"
        elif cost.gaussian + cost.concentrated < float("inf") and self.budget.delta == 0.0:
            text = f"{name} asks for a delta above 0"
        else:
            text = f"{name} asks for an infinite epsilon"
        raise BudgetExceeded(
            f"{text}, but {self._left(transaction.total())} remains of {self.budget}. Nothing was "
            "released or charged. Fit with a smaller epsilon or fewer times (each fold and "
            "candidate of a search is one fit), or give BudgetAccountant a larger budget."
        )

    def __sklearn_clone__(self) -> "BudgetAccountant":
        return self

    def __copy__(self) -> "BudgetAccountant":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "BudgetAccountant":
        return self

    def __repr__(self) -> str:
        head = f"BudgetAccountant(epsilon={self.budget.epsilon}, delta={self.budget.delta}"
        if not self.ledger.exists():
            return f"{head}, ledger gone)"
        spent, count = self.spent, len(self.charges)
        return f"{head}, spent={spent.epsilon:.6g}, charges={count})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(part)}</td>"
            f"<td>{html.escape(repr(cost))}</td></tr>"
            for name, part, cost in (self.charges if self.ledger.exists() else [])
        )
        return (
            f"<table><caption>{html.escape(repr(self))}</caption>"
            f"<thead><tr><th>release</th><th>part</th><th>cost</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )
