"""A budget that the fits of a block share, and which budgets are active in this process.

All that is charged passes here. An uncertain charge is one too many, never one too few. Only a copy
of a saved object that descends from the state that its ledgers know goes on.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from math import inf, isfinite, isinf
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from ..._contracts import passed_on
from ..._printing import Printed, Table
from ..._stored import frozen
from ...exceptions import PrivacyError
from .._accounting._cost import Budget, Cost, pure_mu
from .._noise._laws import tell_charge
from ._context import (
    allowance, announced, current_parts, during, inside, pop, process, push, stacked, unit_now,
)  # fmt: skip
from ._ledger import Ledger, Limit, Steps, check_unit, unit_sentence, unit_text, unit_value

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from ._context import Key
    from ._ledger import Charge, LedgerTransaction

COLUMNS = "release,own epsilon,part of the total,protects,which rows,when,who,what for".split(",")


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
        Who releases, for the list of charges. The innermost one of nested accountants of one ledger
        counts.
    purpose : str, default=""
        What it is released for, for the list of charges; as ``who``.

    Attributes
    ----------
    budget : Budget
        What may be spent: the smaller of what was given and of the total in the ledger, where they
        differ in epsilon alone. If they differ otherwise, it is what was given, and the other binds
        all the same.
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
    status : str
        The spent budget and the rest, in one sentence.
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

    The cost of a fit of (e, d):

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
        existing = existing_ledger(ledger)
        total = None if existing is None else existing.limit
        if epsilon is None and total is None:
            raise ValueError(
                "epsilon is None: pass epsilon, and delta for Gaussian noise, unless ledger is a "
                "file that has a total."
            )
        limit = limit_of(epsilon, delta, currency, set_aside, total)
        text = None if unit is None else unit_text(unit)
        self.ledger = existing or Ledger(ledger, limit, text)  # type: ignore[arg-type]
        total = self.ledger.bind(limit, text)
        self._limit = limit if total is None else limit.smaller(total)
        self.who = str(who)
        self.purpose = str(purpose)
        self._home = process()

    budget: Budget = passed_on("_limit.budget", "What may be spent.")

    currency: str = passed_on("_limit.currency", "In what charges add up.")

    @property
    def unit(self) -> "str | tuple[str, int]":
        """What all charges protect."""
        return unit_value(self.ledger.unit)

    set_aside: Budget = passed_on(
        "_limit.set_aside", "The part of the budget for (epsilon, delta) charges."
    )

    @property
    def _key(self) -> "Key":
        return self.ledger.path, self.ledger.identity, self._limit

    def __enter__(self) -> Self:
        push(self)
        return self

    # Not a method that calls it: an interrupt between the two would leave the accountant active
    __exit__ = pop

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

        Yields
        ------
        BudgetAccountant
            The accountant, which charges the part while the block runs.

        Notes
        -----
        A part holds for the code that is called from where it was entered. Work of a suspended
        generator, another thread or another process is charged as if about all records: more than
        needed, never less.

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
        """The sum of the charges so far, at the accountant's delta."""
        return self._limit.as_budget(self.ledger.total(self.currency))

    @property
    def remaining(self) -> Budget:
        """The largest budget of one more fit that is paid in the accountant's currency."""
        limits = {self._limit, self.ledger.bind() or self._limit}  # its own, and the ledger's
        left = (limit.left(self.ledger.total(limit.currency)) for limit in limits)
        return min(left, key=lambda b: (b.mu or pure_mu(b.epsilon), b.epsilon))

    @property
    def charges(self) -> "list[Charge]":
        """The charges, the oldest first."""
        return self.ledger.charges()

    def _announced(self) -> dict[str, Any]:
        """The values that a descendant needs to charge this accountant."""
        ledger = self.ledger.path, self.ledger.identity
        return {"ledger": ledger, "limit": self._limit.as_row(), "said": (self.who, self.purpose)}

    @classmethod
    def _revived(cls, entry: dict[str, Any]) -> "BudgetAccountant":
        """The accountant of an ancestor."""
        revived = cls.__new__(cls)
        revived.ledger = Ledger.at(*entry["ledger"])
        revived._limit = Limit.of(*entry["limit"])
        revived.who, revived.purpose = entry["said"]
        revived._home = entry.get("home", process())
        return revived

    def __sklearn_clone__(self) -> "BudgetAccountant":
        return self

    __copy__ = __sklearn_clone__

    def __deepcopy__(self, memo: dict[int, Any]) -> "BudgetAccountant":
        return self

    def __repr__(self) -> str:
        head = f"BudgetAccountant(epsilon={self.budget.epsilon}, delta={self.budget.delta}"
        if self.currency != "gdp" and self.budget.delta:
            head += f", currency={self.currency!r}"
        try:
            spent = self.spent
            count = len(self.charges)
        except PrivacyError:
            return f"{head}, ledger gone)"
        return f"{head}, spent={spent.epsilon:.6g}, charges={count})"

    @property
    def status(self) -> str:
        """The spent budget and the rest, in one sentence."""
        total = self.budget
        spent = self.spent
        left = self.remaining
        if isinf(total.epsilon):
            return f"Spent epsilon {spent.epsilon:.4g} at delta {total.delta:g}; it has no total."
        return (
            f"Spent epsilon {spent.epsilon:.4g} of {total.epsilon:g} at delta {total.delta:g} for "
            f"{unit_sentence(self.ledger.unit)}; left epsilon {left.epsilon:.4g}."
        )

    def _parts(self) -> Any:
        try:
            charges = self.charges
            status = self.status
        except PrivacyError:
            return [repr(self)]
        if not charges:
            return [f"No charges yet. {status}"]
        parts = [Table(COLUMNS, list(map(self._cells, charges)), left=len(COLUMNS)), status]
        sums = "Costs compose to less than their sum, so spent and left can exceed the total."
        return [*parts, sums] if self.currency == "gdp" and isfinite(self.budget.epsilon) else parts

    def _cells(self, charge: "Charge") -> tuple[str, ...]:
        """One charge as texts: its own epsilon, and its part of the total in the currency."""
        total = self._limit.amount
        amount = charge.cost.amount(self.currency)
        additive = isfinite(amount) and 0.0 < total < inf and not charge.cost.approximate
        epsilon = f"{charge.cost.epsilon(self.budget.delta):.3f}"
        part_of_total = f"{amount / total:.1%}" if additive else "-"
        part = f"part {charge.part}" if charge.part else "all"
        unit = unit_sentence(charge.unit)
        return (
            charge.name,
            epsilon,
            part_of_total,
            unit,
            part,
            charge.when,
            charge.who,
            charge.purpose,
        )


def existing_ledger(ledger: "str | os.PathLike[str] | Ledger | None") -> Ledger | None:
    """The ledger of a file that exists; None where one is to be made."""
    if isinstance(ledger, Ledger):
        return ledger
    return Ledger(ledger) if ledger is not None and os.path.isfile(ledger) else None


def limit_of(
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


_OBJECTS_TABLE = (
    "CREATE TABLE IF NOT EXISTS objects (identity TEXT PRIMARY KEY, state TEXT NOT NULL)"
)


@frozen
class Lineage:
    """The identity of an object that is kept in a file, and the last states it was in.

    Each step of the object draws a new state at random. The object writes it into its file first,
    and then into the ledgers that have paid for it. A file goes on if the state that a ledger knows
    is among its own last ones: then nobody else has taken a step since. So of two copies of a file
    the first one that takes a step goes on, and the other one is refused from then on.

    Parameters
    ----------
    identity : str
    states : tuple of str
        The last one is that of now.
    ledgers : tuple of (path, identity)
        Ledgers that were charged for the object.

    Examples
    --------
    >>> from skpriv.privacy import BudgetAccountant, Cost, Lineage, active_ledgers, charge
    >>> lineage = Lineage.begun()
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     charge(Cost.from_epsilon(1.0), "collection", lineage=lineage)
    ...     charge(Cost.from_epsilon(1.0), "collection", lineage=lineage.step())  # paid for
    >>> len(accountant.charges)
    1
    """

    identity: str
    states: tuple[str, ...]
    ledgers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def begun(cls) -> "Lineage":
        """Lineage of a new object."""
        return cls(uuid.uuid4().hex, (uuid.uuid4().hex,))

    @classmethod
    def of(cls, state: Any) -> "Lineage":
        """Lineage of its fields as JSON holds them: tuples are lists there."""
        identity, states, ledgers = state
        return cls(identity, tuple(states), tuple(map(tuple, ledgers)))

    def step(self) -> "Lineage":
        """The lineage after one more step."""
        # The file remembers eight states. One is enough where no process is killed, and a process
        # that is killed between its two writes needs one more.
        return replace(self, states=(*self.states, uuid.uuid4().hex)[-8:])

    def paid_by(self, ledgers: Iterable[tuple[str, str]]) -> "Lineage":
        """The same lineage with more ledgers."""
        return replace(self, ledgers=tuple(dict.fromkeys((*self.ledgers, *ledgers))))

    def tell(self) -> None:
        """Write the state of now into all ledgers.

        Raises
        ------
        PrivacyError
            If a ledger is gone, or another copy has gone on.
        """
        for path, identity in self.ledgers:
            with Ledger.at(path, identity).transaction() as transaction:
                advance(transaction, self)


def advance(transaction: "LedgerTransaction", lineage: Lineage) -> bool:
    """Write the state of now into a ledger that is held; return whether the object was known to it.

    Raises
    ------
    PrivacyError
        If another copy has gone on.
    """
    connection = transaction.connection
    connection.execute(_OBJECTS_TABLE)
    row = connection.execute(
        "SELECT state FROM objects WHERE identity = ?", (lineage.identity,)
    ).fetchone()
    if row is not None and row[0] not in lineage.states:
        raise PrivacyError(
            "Another copy of this file has gone on since this one was made: only that one may, "
            "because both would ask the same people. Go on with the one that is the furthest."
        )
    connection.execute(
        "INSERT INTO objects VALUES (?, ?) "
        "ON CONFLICT (identity) DO UPDATE SET state = excluded.state",
        (lineage.identity, lineage.states[-1]),
    )
    return row is not None


_HANDLE = "_skpriv_accountants"
_LARGER = "give BudgetAccountant a larger budget"
_answer: ContextVar[list[str] | None] = ContextVar("_answer", default=None)
_noticing: dict[int, list[Cost]] = {}  # the lists of `noticed_charges`, by their ids


# Accountants that were active at one place, each with its part of the data. It can be pickled, so
# that they are charged from another place.
Handle = tuple[tuple[BudgetAccountant, Steps], ...]


def active() -> list[BudgetAccountant]:
    """List the active accountants, each once: the innermost first, then those of ancestors."""
    accountants = stacked()
    for entry in announced():
        accountant = BudgetAccountant._revived(entry)
        accountants.setdefault(accountant._key, accountant)
    return list(accountants.values())


def adds_up_gaussians() -> bool:
    """Whether charges made here may add up in a currency in which pure noise is expensive.

    Public: which accountants are active follows from no record.
    """
    paid = allowance()  # inside of what was charged as a whole no accountant is charged
    return paid.currency != "pure" if paid else any(a.currency != "pure" for a in active())


def active_ledgers() -> list[tuple[str, str]]:
    """Path and identity of the ledgers of the active accountants."""
    return [(accountant.ledger.path, accountant.ledger.identity) for accountant in active()]


def charge(cost: Cost, name: str, *, lineage: Lineage | None = None) -> None:
    """Charge every active accountant; called before the data are read.

    Either all of them record the cost, or none does.

    Parameters
    ----------
    cost : Cost
        It must be public: fixed without looking at the data.
    name : str
        What is released, for the list of charges.
    lineage : Lineage, default=None
        Lineage of an object that is kept in a file and paid for once: a ledger that knows it is not
        charged again, as long as no other copy of it has gone on.

    Raises
    ------
    BudgetExceeded
        If the cost does not fit into what is left of the budget of an active accountant.
    PrivacyError
        If another copy of the object has gone on, or a ledger protects something else: rows, where
        the charge is of a release that protects persons.

    Examples
    --------
    >>> from skpriv.privacy import BudgetAccountant, Cost, charge
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     charge(Cost.from_epsilon(0.25), "mean")
    >>> accountant.remaining
    Budget(epsilon=0.75, delta=0.0)
    """
    if (step := allowance()) is not None:
        step.take(cost, name)
        _notice(cost)
        return
    tell_charge(cost, name)  # a step was charged with all others, however far they come
    accountants = active()
    parts = current_parts()
    if lineage is None:
        lineage = _paid_once(cost, parts)
    # Several accountants may share a ledger. Each of them checks the charge, which is recorded
    # once, and about all records unless they agree on the part. Ledgers are held in the order of
    # their paths, so that no two threads wait for each other.
    by_path: dict[str, list[BudgetAccountant]] = {}
    for accountant in accountants:
        by_path.setdefault(accountant.ledger.path, []).append(accountant)
    with ExitStack() as stack:  # an error undoes what was written into all of them
        for _, sharing in sorted(by_path.items()):
            transaction = stack.enter_context(sharing[0].ledger.transaction())
            found = {parts.get(accountant._key, ()) for accountant in sharing}
            part = found.pop() if len(found) == 1 else ()
            for accountant in sharing:
                transaction.expect(accountant.ledger.identity)
            if lineage is not None and advance(transaction, lineage):
                continue
            check_unit(transaction.unit, unit_now(), name)
            for accountant in sharing:
                transaction.check(accountant._limit, name, cost, part, _LARGER)
            first = sharing[0]
            transaction.record(name, cost, part, first.who, first.purpose, unit_now())
    _notice(cost)


def charged_once(name: str) -> "AbstractContextManager[None]":
    """Charge what this thread does inside once in each ledger, however often it is done again.

    For an answer that only counts when it was written down: a process that dies between the charge
    and the answer does the same again after a restart, and nothing was released before. The payment
    of the answer is written with the charge.

    Parameters
    ----------
    name : str
        A name of the answer that no other one has.

    Examples
    --------
    >>> from skpriv.privacy import BudgetAccountant, Cost, charge, charged_once
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     for attempt in range(4):
    ...         with charged_once("epoch 1 of policy 7"):
    ...             charge(Cost.from_epsilon(1.0), "fit")
    >>> len(accountant.charges)
    1
    """
    return during(_answer, [name])


def _paid_once(cost: Cost, parts: "dict[Key, Steps]") -> Lineage | None:
    """Lineage that stands for a charge inside `charged_once`; None outside of it.

    Its name has the answer, the cost, the part of the data, and the number of charges of this cost
    to this part so far. The names of partitions are left out, since a policy that is begun again
    has others.
    """
    answer = _answer.get()
    if answer is None:
        return None
    about = sorted({"/".join(label for _, label in steps) for steps in parts.values()})
    answer.append(f"{answer[0]}: {cost.as_tuple()} {about}")
    return Lineage(f"{answer[-1]}, {answer.count(answer[-1])}", ("paid",))


@contextmanager
def noticed_charges() -> Iterator[list[Cost]]:
    """Notice what is charged in this process, by whatever thread, whether accountants are active.

    For what must not be done again once it was paid for.

    Examples
    --------
    >>> from skpriv.privacy import Cost, charge, noticed_charges
    >>> with noticed_charges() as costs:
    ...     charge(Cost.from_epsilon(1.0), "mean")
    >>> costs
    [Cost(pure=1, pure_squared=0.5, pure_gaussian=1.51791)]
    """
    costs: list[Cost] = []
    _noticing[id(costs)] = costs
    try:
        yield costs
    finally:
        del _noticing[id(costs)]


def _notice(cost: Cost) -> None:
    for costs in list(_noticing.values()):
        costs.append(cost)


@contextmanager
def parallel_part(name: object, *, partition: str) -> Iterator[None]:
    """Charge what follows to one part of the data, for all active accountants.

    The records of a part must be disjoint from those of the other parts of the same partition, and
    indexed publicly, such as the epochs of a bandit: the most expensive part alone is then paid.

    Parameters
    ----------
    name : str or int
        The part.
    partition : str
        What is divided into parts. Costs of different partitions add up, because nothing is
        known about how they overlap: an object that makes its own parts should make a unique name.

    Yields
    ------
    None
        Nothing: what the block charges is charged to the part.

    Examples
    --------
    >>> from skpriv.privacy import BudgetAccountant, Cost, charge, parallel_part
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     for epoch in range(10):
    ...         with parallel_part(epoch, partition="epochs of policy 1"):
    ...             charge(Cost.from_epsilon(1.0), "oracle")
    >>> accountant.spent
    Budget(epsilon=1.0, delta=0.0)
    """
    step = (str(partition), str(name))
    with inside({accountant._key: (step,) for accountant in active()}):
        yield


def capture(*, with_parts: bool = True) -> Handle:
    """Return a picklable handle of the accountants that are active here.

    Parameters
    ----------
    with_parts : bool, default=True
        Whether the current part of the data goes along; if not, what is done with the handle
        counts as about all records.

    Returns
    -------
    handle : tuple of (accountant, part) pairs
        Empty if no accountant is active. Give it to `activated` elsewhere.

    Examples
    --------
    >>> from skpriv.privacy import BudgetAccountant, Cost, charge
    >>> from skpriv.privacy import activated, capture
    >>> def job(handle):  # in another process or thread
    ...     with activated(handle):
    ...         charge(Cost.from_epsilon(0.5), "job")
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     job(capture())
    >>> accountant.spent
    Budget(epsilon=0.5, delta=0.0)
    """
    parts = current_parts() if with_parts else {}
    return tuple((a, parts.get(a._key, ())) for a in active())


@contextmanager
def activated(handle: Handle | None) -> Iterator[None]:
    """Activate the accountants of a handle; one that is active already is still charged once.

    Parameters
    ----------
    handle : tuple of (accountant, part) pairs, or None
        What `capture` has returned. The part of the data where this thread is already goes first.
    """
    if not handle:
        yield
        return
    here = current_parts()
    parts = {a._key: part for a, part in handle if part and a._key not in here}
    with ExitStack() as stack:
        for accountant, _ in handle:
            stack.enter_context(accountant)
        with inside(parts):
            yield


class Accounted:
    """Mixin of estimators: their fits in other processes reach the accountants of this one.

    An estimator that is pickled while accountants are active takes along a handle of them, its
    clones inherit it, and `_accounting` activates it. Put the mixin before ``BaseEstimator``, and
    do everything that is charged inside ``with self._accounting():``.

    Notes
    -----
    An estimator that is pickled outside of any accountant carries nothing. In the process that
    made an accountant no handle of it is needed: there, the ``with`` blocks decide. In other
    processes it is charged as long as its ledger can be reached; after that, and on other machines,
    a fit raises `PrivacyError`, and so does that of a clone: a new estimator, made of its
    parameters, is free.

    The part of the data is not carried along, because a pickled estimator may be fitted to other
    records: outside of a part, its fits are charged as if about all records.

    An estimator that a descendant of this process makes from nothing finds the accountants that
    are active here by itself, see `BudgetAccountant`. For a worker elsewhere, hand `capture()` to
    it and use `activated` there.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from skpriv.privacy import Accounted, BudgetAccountant, Cost, charge
    >>> class Dummy(Accounted, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         with self._accounting():
    ...             charge(Cost.from_epsilon(0.5), "Dummy")
    ...         return self
    >>> with BudgetAccountant(epsilon=1.0) as accountant:
    ...     _ = Dummy().fit(None)
    >>> accountant.spent
    Budget(epsilon=0.5, delta=0.0)
    """

    epsilon: float
    delta: float
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    _skpriv_accountants: Handle = ()  # those under which it was pickled

    @property
    def _stated_budget(self) -> Budget:
        """The budget that the parameters state."""
        return Budget(self.epsilon, self.delta)

    def _accounting(self) -> "AbstractContextManager[None]":
        """Charge the accountants under which this estimator was pickled, if not yet active."""
        return activated(self._skpriv_accountants)

    def _handle(self) -> Handle:
        """The state that a copy takes along: the handle of this estimator, and what is active
        now."""
        handle = self._skpriv_accountants
        keys = {accountant._key for accountant, _ in handle}
        return handle + tuple(e for e in capture(with_parts=False) if e[0]._key not in keys)

    def written_accountants(self) -> list[dict[str, Any]]:
        """The handle of a copy as plain values: which ledgers its fits are charged to.

        Returns
        -------
        list of dict
            One entry for each ledger, of texts and numbers that JSON can hold.
        """
        return [
            {**accountant._announced(), "home": accountant._home}
            for accountant, _ in self._handle()
        ]

    def charge_to(self, written: list[dict[str, Any]]) -> None:
        """Take the handle that a file had, as a copy does. No ledger is opened before a charge.

        Parameters
        ----------
        written : list of dict
            What `written_accountants` returned.
        """
        handle = tuple((BudgetAccountant._revived(entry), ()) for entry in written)
        self.__setstate__({_HANDLE: handle})

    def __getstate__(self) -> dict[str, Any]:
        state = dict(cast(dict[str, Any], super().__getstate__()))
        state.pop(_HANDLE, None)
        return {**state, _HANDLE: handle} if (handle := self._handle()) else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        # In the process that made an accountant, the ``with`` blocks decide whether it is active.
        handle = tuple(e for e in state.pop(_HANDLE, ()) if e[0]._home != process())
        super().__setstate__(state)  # type: ignore[misc]
        # Parameters of files of earlier versions may be NumPy's, which no clone would keep
        for name in self._parameter_constraints.keys() & state.keys():
            setattr(self, name, state[name])
        if handle:
            self._skpriv_accountants = handle

    def __sklearn_clone__(self) -> "Accounted":
        clone: Accounted = super().__sklearn_clone__()  # type: ignore[misc]
        if self._skpriv_accountants:
            clone._skpriv_accountants = self._skpriv_accountants
        return clone
