"""Steps of a mechanism whose total has been charged already, each held to its own cost."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from types import FrameType

from ...exceptions import BudgetExceeded
from .._accounting._cost import SHARE_SLACK, Cost
from ._parts import entering, running

__all__ = ["allowance", "prepaid"]


class _Allowance:
    """What is left to the step, in one currency.

    Only what is called from the ``with`` statement has it: no thread that the step starts, and
    nobody else while a generator that entered it is suspended.
    """

    def __init__(self, cost: Cost, currency: str, frame: FrameType | None) -> None:
        self.currency, self.frame = currency, frame
        self.total = self.left = amount_in(cost, currency)

    def take(self, cost: Cost, name: str) -> None:
        amount = amount_in(cost, self.currency)
        if not amount <= self.left + SHARE_SLACK * self.total:
            raise BudgetExceeded(
                f"{name} asks for more than its part of a mechanism that was charged as a whole: "
                "use an estimator whose cost is Gaussian, concentrated or pure and follows its "
                "epsilon and delta."
            )
        if amount < inf:
            self.left -= amount


_current: ContextVar[_Allowance | None] = ContextVar("_current", default=None)


def amount_in(cost: Cost, currency: str) -> float:
    """Cost in a currency; infinite where only (epsilon, delta) is known."""
    if cost.approximate or cost.delta:
        return inf
    return cost.amount(currency)


def allowance() -> _Allowance | None:
    """What this thread may still spend inside `prepaid`; None outside of it."""
    current = _current.get()
    return current if current and id(current.frame) in running() else None


@contextmanager
def prepaid(cost: Cost, currency: str = "zcdp") -> Iterator[None]:
    """Let the releases of a step through whose cost an enclosing mechanism has charged.

    For mechanisms whose total is not the sum of their steps, or whose steps are known by and by,
    such as a search: the total is charged once, to the accountants, and each step runs in here. A
    step that asks for more than `cost` is refused.

    Parameters
    ----------
    cost : Cost
        What the step may cost at most.
    currency : {"zcdp", "gdp", "pure"}, default="zcdp"
        In which costs are compared; that of the enclosing mechanism's proof.

    Raises
    ------
    BudgetExceeded
        Where a release inside asks for more; nothing is released then.

    Examples
    --------
    >>> from skpriv.privacy import BudgetAccountant, Cost, charge, prepaid
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     charge(Cost.from_epsilon(1.0), "a search")
    ...     with prepaid(Cost.from_epsilon(0.5)):
    ...         charge(Cost.from_epsilon(0.5), "one step")
    >>> len(accountant.charges)
    1
    """
    token = _current.set(_Allowance(cost, currency, entering(sys._getframe(1))))
    try:
        yield
    finally:
        _current.reset(token)
