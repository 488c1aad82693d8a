"""A budget that the fits of a block of code share."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite, isinf
from types import TracebackType
from typing import Any, Self

from ..._printing import Printed, Table
from ...exceptions import PrivacyError
from .._accounting._cost import Budget, pure_mu
from ._ledger import Charge, Ledger, Limit, unit_sentence, unit_text, unit_value
from ._parts import Key, inside, pop, process, push

__all__ = ["BudgetAccountant"]

COLUMNS = "release,own epsilon,part of the total,protects,about,when,who,what for".split(",")


class BudgetAccountant(Printed):
    """Hold the fits inside a ``with`` block to one privacy budget.

    Every fit, those of cross-validation and of worker processes included, is charged before it
    reads any data; one that does not fit into what remains raises `BudgetExceeded` instead.

    Parameters
    ----------
    epsilon : float >= 0, or infinity, default=None
        None: the total that stands in the ledger. Infinite: everything is recorded, and nothing
        is refused but what exceeds the total of the ledger, if it has one.
    delta : float in [0, 1), default=None
        None: that of the total in the ledger, and 0 if it has none. With 0 only pure mechanisms
        fit; Gaussian noise needs more.
    ledger : str, path-like or Ledger, default=None
        File where the charges are kept, so that a budget outlives this process. The first
        accountant of a file writes its total into it. From then on that total binds every
        accountant of the file, beside its own: the smaller of both decides. None: a temporary
        file, which lasts as long as the accountant.
    currency : {"gdp", "zcdp", "pure"}, default="gdp"
        What the charges add up in: mu^2 of Gaussian DP, rho of zero-concentrated DP, or epsilon.
        Every charge is converted into it, or refused; see the notes. With ``delta=0`` there is
        only "pure", whatever is asked for. A ledger that has a total counts in one currency: the
        default takes it over.
    set_aside : (float, float), default=None
        The part (epsilon, delta) of the budget for charges of which only (epsilon, delta) is
        known, as are those of the shuffle model. It is taken off what all others may spend. None:
        as the total in the ledger says; if there is none, such charges are refused.
    unit : "row", or (str, int), default=None
        What all charges of the ledger protect: "row" one row, and ("patient", 9) all rows of a
        person whom a column names, of which at most so many are used. It stands in the ledger from
        then on, and a release that protects something else is refused. None: as the ledger says,
        and "row" for a new one.
    who : str, default=""
        Who releases, for the list of charges. Of nested accountants of one ledger, the innermost
        one counts.
    purpose : str, default=""
        What it is released for, for the list of charges; as ``who``.

    Attributes
    ----------
    budget : Budget
        What may be spent: the smaller of what was given and of the total in the ledger, where
        they differ in epsilon alone. Where they differ otherwise it is what was given, and the
        other binds all the same.
    currency : str
        What charges add up in.
    unit : str or (str, int)
        What all charges protect.
    set_aside : Budget
        The part of it for (epsilon, delta) charges.
    spent : Budget
        What the charges so far amount to.
    remaining : Budget
        The largest budget of one more fit that is paid in the accountant's currency.
    remaining_aside : Budget
        What is left of the part set aside.
    status : str
        What is spent and what is left, in one sentence.
    charges : list of Charge
        The charges, as named tuples ``(name, part, cost, who, when, purpose, unit)``, with the time
        in UTC.

    Raises
    ------
    ValueError
        If there is neither an epsilon nor a ledger with a total, or the currency is not that of
        the ledger.
    PrivacyError
        If the file is no ledger, or was made by a later version.

    Notes
    -----
    **Privacy guarantee**: all that was released inside is together (epsilon, delta)-DP, when one
    unit is replaced: a row, or a person with all rows. Which fits are made, their amounts, and when
    to stop may depend on earlier releases, but not on the data. A sum in one currency that is kept
    below a limit fixed beforehand is a *filter*, for mu^2 (Smith and Thakurta 2022), for rho
    (Whitehouse et al. 2023) and for epsilon. Different currencies must not be mixed: Gaussian
    releases followed, at a time chosen from them, by a pure one, may have 20 times the delta that
    either order alone has. The part set aside is a limit of its own, fixed beforehand too: epsilons
    and deltas of two interactive mechanisms add up, however their questions alternate (Vadhan and
    Zhang 2023).

    What a fit of (e, d) costs:

    - *Gaussian noise*: mu(e, d)^2 in "gdp", exactly; half of it in "zcdp", whose conversion to
      (epsilon, delta) wastes 7 to 8% of epsilon; refused in "pure".
    - *`IHTRegressor`*, which divides a rho(e, d) between Gaussian noise and selections: rho in
      "zcdp", so that a fit of the whole budget fits; up to pi rho in "gdp", where selections are
      more expensive than Gaussian noise of equal rho by pi / 2 (but fits of both kinds then share
      a limit).
    - *pure noise* (``delta=0``): e in "pure"; e^2 / 2 in "zcdp", and mu = 2 Phi^-1(s), s the
      logistic function of e, in "gdp". With delta 1e-6 one pure fit of epsilon 1 needs
      an accountant of epsilon 6.3 in "gdp", but a hundred of epsilon 0.05 need 2.9, not 5.
    - *the shuffle model*: (e, d) of the part set aside, in each.
    - *rho-zCDP of unknown origin*: refused in "gdp", as no Gaussian dominates it.

    A ledger has an identity. One that is removed and made again while an accountant of it is
    active, or is put back as it was before, takes no more charges of that accountant. The file
    itself is trusted: whoever edits or resets it resets the guarantee.

    Accountants may be nested: a fit is charged to all that are active, or if one of them refuses,
    to none. The same accountant may be entered again while it is active; that changes nothing.

    The active accountants belong to the process and its descendants, and not to a thread. A fit in
    an unrelated thread is charged too. So is one in a process that was started by this one, before
    the block or in it, by any means. An accountant that is itself pickled shares its charges.
    Machines, containers and users other than this process's are out of reach, unless the estimator
    was pickled inside the block: then it refuses to be fitted.

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
        epsilon: float | None = None,
        delta: float | None = None,
        ledger: "str | os.PathLike[str] | Ledger | None" = None,
        currency: str = "gdp",
        *,
        set_aside: "tuple[float, float] | None" = None,
        unit: "str | tuple[str, int] | None" = None,
        who: str = "",
        purpose: str = "",
    ) -> None:
        known = _known(ledger)
        total = None if known is None else known.limit
        if epsilon is None and total is None:
            raise ValueError(
                "There is no ledger with a total to take epsilon from: pass epsilon, and delta for "
                "Gaussian noise. A ledger keeps them."
            )
        asked = _asked(epsilon, delta, currency, set_aside, total)
        text = None if unit is None else unit_text(unit)
        if known is None:
            known = Ledger(ledger, unit=text)  # type: ignore[arg-type]
        self.ledger = known
        total = self.ledger.bind(asked, text)
        self._limit = asked if total is None else asked.smaller(total)
        self.who, self.purpose = str(who), str(purpose)
        self._home = process()

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return self._limit.budget

    @property
    def currency(self) -> str:
        """In what charges add up."""
        return self._limit.currency

    @property
    def unit(self) -> "str | tuple[str, int]":
        """What all charges protect."""
        return unit_value(self.ledger.unit)

    @property
    def set_aside(self) -> Budget:
        """The part of the budget for (epsilon, delta) charges."""
        return self._limit.set_aside

    @property
    def _key(self) -> Key:
        return self.ledger.path, self.ledger.identity, self._limit

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
        """Charge what follows to one part of the data; the most expensive part alone is paid.

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
        return self._limit.as_budget(self.ledger.total(self.currency))

    @property
    def remaining(self) -> Budget:
        """The largest budget of one more fit that is paid in the accountant's currency."""
        return self._smallest(lambda limit: limit.left(self.ledger.total(limit.currency)))

    @property
    def remaining_aside(self) -> Budget:
        """What is left of the part set aside for (epsilon, delta) charges."""
        return self._smallest(lambda limit: limit.left_aside(self.ledger.total()))

    def _smallest(self, left: Callable[[Limit], Budget]) -> Budget:
        """What the accountant's own limit and the ledger's leave: the smaller of both."""
        limits = {self._limit, self.ledger.bind() or self._limit}
        return min(map(left, limits), key=lambda b: (b.mu or pure_mu(b.epsilon), b.epsilon))

    @property
    def charges(self) -> list[Charge]:
        """The charges, the oldest first."""
        return self.ledger.charges()

    def _announced(self) -> dict[str, Any]:
        """What a descendant needs to charge this accountant."""
        return {
            "path": self.ledger.path,
            "identity": self.ledger.identity,
            "budget": (self.budget.epsilon, self.budget.delta),
            "currency": self.currency,
            "set_aside": (self.set_aside.epsilon, self.set_aside.delta),
            "who": self.who,
            "purpose": self.purpose,
        }

    @classmethod
    def _revived(cls, entry: dict[str, Any]) -> "BudgetAccountant":
        """The accountant of an ancestor."""
        revived = cls.__new__(cls)
        revived.ledger = Ledger.at(entry["path"], entry["identity"])
        revived._limit = Limit(
            Budget(*entry["budget"]), entry["currency"], Budget(*entry["set_aside"])
        )
        revived.who, revived.purpose = entry["who"], entry["purpose"]
        revived._home = process()
        return revived

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
        try:
            spent, count = self.spent, len(self.charges)
        except PrivacyError:
            return f"{head}, ledger gone)"
        return f"{head}, spent={spent.epsilon:.6g}, charges={count})"

    @property
    def status(self) -> str:
        """What is spent and what is left, in one sentence."""
        total, spent, left = self.budget, self.spent, self.remaining
        if isinf(total.epsilon):
            return f"Spent epsilon {spent.epsilon:.4g} at delta {total.delta:g}; it has no total."
        return (
            f"Spent epsilon {spent.epsilon:.4g} of {total.epsilon:g} at delta {total.delta:g} for "
            f"{unit_sentence(self.ledger.unit)}; left epsilon {left.epsilon:.4g}."
        )

    def _parts(self) -> Any:
        try:
            charges, status = self.charges, self.status
        except PrivacyError:
            return [repr(self)]
        return [Table(COLUMNS, [*map(self._cells, charges)], left=len(COLUMNS)), status]

    def _cells(self, charge: Charge) -> tuple[str, ...]:
        """One charge as texts: its own epsilon, and its part of the total in what adds up."""
        totals = {"gdp": self.budget.mu**2, "zcdp": self.budget.rho, "pure": self.budget.epsilon}
        total, amount = totals[self.currency], charge.cost.amount(self.currency)
        known = isfinite(amount) and isfinite(total) and total > 0.0 and not charge.cost.approximate
        return (
            charge.name,
            f"{charge.cost.epsilon(self.budget.delta):.3f}",
            f"{amount / total:.1%}" if known else "-",
            unit_sentence(charge.unit),
            charge.part or "all",
            charge.when,
            charge.who,
            charge.purpose,
        )


def _known(ledger: "str | os.PathLike[str] | Ledger | None") -> Ledger | None:
    """The ledger of a file that exists; None where one is to be made."""
    if isinstance(ledger, Ledger):
        return ledger
    return Ledger(ledger) if ledger is not None and os.path.isfile(ledger) else None


def _asked(
    epsilon: float | None,
    delta: float | None,
    currency: str,
    set_aside: "tuple[float, float] | None",
    total: Limit | None,
) -> Limit:
    """The limit that parameters ask for; what they leave out is as in the ledger's total."""
    if total is None:
        return Limit(Budget(epsilon or 0.0, delta or 0.0), currency, Budget(*(set_aside or (0, 0))))
    budget = Budget(
        total.budget.epsilon if epsilon is None else epsilon,
        total.budget.delta if delta is None else delta,
    )
    aside = total.set_aside if set_aside is None else Budget(*set_aside)
    if currency == "gdp":
        currency = total.currency
    if budget.delta and total.budget.delta and currency != total.currency:
        raise ValueError(
            f"currency={currency!r}: the ledger counts in {total.currency!r}. Leave it out."
        )
    return Limit(budget, currency, aside)
