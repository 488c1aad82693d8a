"""A budget that the fits of a block of code share."""

import html
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from ...exceptions import BudgetExceeded
from .._accounting._budget import Budget
from .._accounting._conversions import gdp_delta
from .._accounting._cost import CURRENCIES, SHARE_SLACK, Cost
from ._ledger import Charge, Ledger, Part, _Transaction
from ._parts import Key, inside
from ._stack import pop, process, push

__all__ = ["BudgetAccountant"]


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
    currency : {"gdp", "zcdp", "pure"}, default="gdp"
        In what the charges add up: mu^2 of Gaussian DP, rho of zero-concentrated DP, or epsilon.
        Every charge is converted into it, or refused; see the notes. With ``delta=0`` there is
        only "pure", whatever is asked for.
    set_aside : (float, float), default=None
        The part (epsilon, delta) of the budget for charges of which only (epsilon, delta) is
        known, as are those of the shuffle model. It is taken off what all others may spend. None:
        such charges are refused.

    Attributes
    ----------
    budget : Budget
        What may be spent.
    currency : str
        In what charges add up.
    set_aside : Budget
        The part of it for (epsilon, delta) charges.
    spent : Budget
        What the charges so far amount to.
    remaining : Budget
        The largest budget of one more fit that is paid in the accountant's currency.
    remaining_aside : Budget
        What is left of the part set aside.
    charges : list of Charge
        The charges, as named tuples ``(name, part, cost)``.

    Notes
    -----
    **Privacy guarantee**: all that was released inside is together (epsilon, delta)-DP, when one
    record is replaced. Which fits are made, their amounts, and when to stop may be chosen in view
    of earlier releases, but not of the data: a sum in one currency that is kept below a limit
    fixed beforehand is a *filter*, for mu^2 (Smith and Thakurta 2022), for rho (Whitehouse et al.
    2023) and for epsilon. Different currencies must not be mixed: Gaussian releases followed, at a
    time chosen from them, by a pure one, may have 20 times the delta that either order alone has.
    The part set aside is a limit of its own, fixed beforehand too: epsilons and deltas of two
    interactive mechanisms add up, however their questions alternate (Vadhan and Zhang 2023).

    What a fit of (e, d) costs:

    - *Gaussian noise*: mu(e, d)^2 in "gdp", exactly; half of it in "zcdp", whose conversion to
      (epsilon, delta) wastes 7 to 8% of epsilon; refused in "pure".
    - *`IHTRegressor`*, which divides a rho(e, d) between Gaussian noise and selections: rho in
      "zcdp", so that a fit of the whole budget fits; up to pi rho in "gdp", where selections are
      dearer than Gaussian noise of equal rho by pi / 2 (but fits of both kinds then share a limit).
    - *pure noise* (``delta=0``): e in "pure"; e^2 / 2 in "zcdp", and mu = 2 Phi^-1(s), s the
      logistic function of e, in "gdp". With delta 1e-6 one pure fit of epsilon 1 needs
      an accountant of epsilon 6.3 in "gdp", but a hundred of epsilon 0.05 need 2.9, not 5.
    - *the shuffle model*: (e, d) of the part set aside, in each.
    - *rho-zCDP of unknown origin*: refused in "gdp", as no Gaussian dominates it.

    Accountants may be nested: a fit is charged to all that are active, or if one of them refuses,
    to none. The same accountant may be entered again while it is active; that changes nothing.

    The active accountants belong to the process and its descendants, and not to a thread: a fit in
    an unrelated thread is charged too, and so is one in a process that was started by this one,
    before the block or in it, by whatever means. An accountant that is itself pickled shares its
    charges. Machines, containers and users other than this process's are out of reach, unless
    the estimator was pickled inside the block: then it refuses to be fitted.

    The searches of scikit-learn turn errors of a fit into a score of NaN and a warning, and go on
    with fits that are refused as well; ``error_score="raise"`` stops them at the first one.

    References
    ----------
    A. Smith and A. Thakurta (2022). Fully adaptive composition for Gaussian differential privacy.
    J. Whitehouse, A. Ramdas, R. Rogers and Z. S. Wu (2023). Fully-adaptive composition in
    differential privacy. ICML.
    S. Vadhan and W. Zhang (2023). Concurrent composition theorems for differential privacy. STOC.

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
        currency: str = "gdp",
        set_aside: "tuple[float, float] | None" = None,
    ) -> None:
        if currency not in CURRENCIES:
            raise ValueError(f"currency={currency!r} must be one of {list(CURRENCIES)}.")
        self.budget = Budget(epsilon, delta)
        self.currency = currency if self.budget.delta else "pure"
        self.set_aside = Budget(*(set_aside or (0.0, 0.0)))
        left = epsilon - self.set_aside.epsilon, delta - self.set_aside.delta
        if math.isinf(self.set_aside.epsilon) or min(left) < 0.0:
            raise ValueError(
                f"set_aside={set_aside} must be a finite part of (epsilon, delta)="
                f"({epsilon}, {delta})."
            )
        self._main = Budget(*left)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._home = process()

    @property
    def _key(self) -> Key:
        return self.ledger.path, self.budget, self.currency, self.set_aside

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
    def part(self, name: object, *, partition: str) -> Iterator["BudgetAccountant"]:
        """Charge what follows to one part of the data; the dearest part alone is paid.

        Parameters
        ----------
        name : str or int
            The part, such as a site.
        partition : str
            What is divided into parts, such as "sites". Parts of one partition must be disjoint,
            publicly indexed sets of records; costs of different partitions add up, because
            nothing is known about how they overlap. Inside a part, a second one divides it again.

        Notes
        -----
        A part holds for the code that is called from where it was entered. What a suspended
        generator, another thread or another process does is charged as if about all records: more
        than needed, never less.

        Examples
        --------
        >>> from skpriv.privacy import BudgetAccountant, Cost, charge
        >>> with BudgetAccountant(epsilon=1.0) as accountant:
        ...     for site in ("north", "south"):
        ...         with accountant.part(site, partition="sites"):
        ...             charge(Cost.from_epsilon(0.5), "mean")
        >>> accountant.spent
        Budget(epsilon=0.5, delta=0.0)
        """
        with inside({self._key: ((str(partition), str(name)),)}):
            yield self

    @property
    def spent(self) -> Budget:
        """What the charges so far amount to, at the accountant's delta."""
        return self._as_budget(self.ledger.total(self.currency))

    @property
    def remaining(self) -> Budget:
        """The largest budget of one more fit that is paid in the accountant's currency."""
        return self._left(self.ledger.total(self.currency))

    @property
    def remaining_aside(self) -> Budget:
        """What is left of the part set aside for (epsilon, delta) charges."""
        return self._left_aside(self.ledger.total())

    @property
    def charges(self) -> list[Charge]:
        """The charges, the oldest first."""
        return self.ledger.charges()

    @property
    def _limit(self) -> float:
        """The most that the converted charges may add up to."""
        if self.currency == "pure":
            return self._main.epsilon
        return self._main.mu**2 if self.currency == "gdp" else self._main.rho

    def _implied(self, amount: float) -> Budget:
        """The guarantee that an amount of the currency implies, at the delta of the main part."""
        delta = self._main.delta
        if self.currency == "pure" or amount == 0.0:
            return Budget(amount)
        if delta == 0.0 or math.isinf(amount):
            return Budget(math.inf, delta)
        if self.currency == "gdp":
            return Budget.from_mu(math.sqrt(amount), delta)
        return Budget.from_rho(amount, delta)

    def _as_budget(self, cost: Cost) -> Budget:
        main = self._implied(cost.amount(self.currency))
        delta = min(main.delta + cost.delta, 1.0 - 2.0**-53)
        return Budget(main.epsilon + cost.approximate, delta)

    def _left(self, total: Cost) -> Budget:
        limit, delta = self._limit, self._main.delta
        if math.isinf(self.budget.epsilon):
            return self.budget
        left = max(0.0, limit - total.amount(self.currency))
        if left <= SHARE_SLACK * limit:
            return Budget(0.0, 0.0)
        implied = self._implied(left)
        if implied.epsilon or self.currency != "gdp":
            return implied
        # At epsilon = 0 a whole delta might be more than what is left.
        return Budget(0.0, min(delta, gdp_delta(0.0, math.sqrt(left))))

    def _left_aside(self, total: Cost) -> Budget:
        return Budget(
            max(0.0, self.set_aside.epsilon - total.approximate),
            max(0.0, self.set_aside.delta - total.delta),
        )

    def _check(self, cost: Cost, name: str, transaction: _Transaction, part: Part) -> None:
        if math.isinf(self.budget.epsilon):
            return
        before = transaction.total(self.currency)
        total = transaction.total_with(cost, part, self.currency)
        enough = 1.0 + SHARE_SLACK
        # What is not asked for is not refused: a ledger may have had a larger budget before.
        main = total.amount(self.currency) <= self._limit * enough
        aside = (
            total.approximate <= self.set_aside.epsilon * enough
            and total.delta <= self.set_aside.delta * enough
        )
        if main and aside:
            return
        converted, left = cost.converted(self.currency), self._left(before)
        asked = f"{name} asks for {self._as_budget(converted)}"
        remedy = (
            "Fit with a smaller epsilon or fewer times (each fold and candidate of a search is one "
            "fit), or give BudgetAccountant a larger budget."
        )
        if math.isinf(cost.amount("zcdp") + cost.approximate):
            asked = f"{name} asks for an infinite epsilon"
        elif not aside:
            left = self._left_aside(before)
            asked += ", of which only (epsilon, delta) is known: the part set_aside pays for that"
            needed = f"({total.approximate:g}, {total.delta:g})"
            remedy = f"Give BudgetAccountant set_aside={needed} or more, a part of its budget."
        elif self.budget.delta == 0.0 and math.isinf(converted.pure):
            asked = f"{name} asks for a delta above 0"
            remedy = "Give BudgetAccountant a delta, for example delta=1e-6."
        elif math.isinf(converted.amount(self.currency)):
            asked = f"{name} has no cost in the accountant's currency={self.currency!r}, use 'zcdp'"
        elif 0.0 < cost.pure and self.currency != "pure":
            asked += f" in the currency {self.currency!r}, for a pure epsilon={cost.pure:g}"
            remedy = "Where all is pure, currency='pure' adds up epsilons as they are. " + remedy
        raise BudgetExceeded(
            f"{asked}, but {left} remains of {self.budget}. Nothing was "
            f"released or charged. {remedy}"
        )

    def _announced(self) -> dict[str, Any]:
        """What a descendant needs to charge this accountant."""
        return {
            "path": self.ledger.path,
            "budget": (self.budget.epsilon, self.budget.delta),
            "currency": self.currency,
            "set_aside": (self.set_aside.epsilon, self.set_aside.delta),
        }

    @classmethod
    def _revived(cls, entry: dict[str, Any]) -> "BudgetAccountant":
        """The accountant of an ancestor."""
        return cls(
            *entry["budget"],
            ledger=Ledger.at(entry["path"]),
            currency=entry["currency"],
            set_aside=entry["set_aside"],
        )

    def __sklearn_clone__(self) -> "BudgetAccountant":
        return self

    def __copy__(self) -> "BudgetAccountant":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "BudgetAccountant":
        return self

    def __repr__(self) -> str:
        head = f"BudgetAccountant(epsilon={self.budget.epsilon}, delta={self.budget.delta}"
        if self.currency != "gdp" and self.budget.delta:
            head += f", currency={self.currency!r}"
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
