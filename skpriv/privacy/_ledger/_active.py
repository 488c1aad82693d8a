"""Which accountants are active: those of this process, and those of its ancestors.

All that is charged passes here. An uncertain charge is one too many, never one too few. Of a saved
object only a copy that descends from the state that its ledgers know goes on.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, cast

from ...exceptions import PrivacyError
from .._accounting._cost import Cost
from .._tape import tell_charge
from ._accountant import BudgetAccountant
from ._ledger import Ledger, Part, LedgerTransaction, check_unit, unit_now
from ._parts import Key, allowance, announced, current_parts, inside, process, stacked

_SCHEMA = "CREATE TABLE IF NOT EXISTS objects (identity TEXT PRIMARY KEY, state TEXT NOT NULL)"


@dataclass(frozen=True)
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
        """Lineage of what `as_json` gave."""
        identity, states, ledgers = state
        return cls(identity, tuple(states), tuple(map(tuple, ledgers)))

    def as_json(self) -> list[Any]:
        """All of it, as JSON can hold it."""
        return [self.identity, list(self.states), list(map(list, self.ledgers))]

    def step(self) -> "Lineage":
        """The lineage after one more step."""
        # A file remembers eight states: one would do where no process is killed, and each kill adds
        # one
        return replace(self, states=(*self.states, uuid.uuid4().hex)[-8:])

    def paid_by(self, ledgers: Iterable[tuple[str, str]]) -> "Lineage":
        """The same one with more ledgers."""
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


def advance(transaction: LedgerTransaction, lineage: Lineage) -> bool:
    """Write the state of now into a ledger that is held; return whether the object was known to it.

    Raises
    ------
    PrivacyError
        If another copy has gone on.
    """
    connection = transaction.connection
    connection.execute(_SCHEMA)
    row = connection.execute(
        "SELECT state FROM objects WHERE identity = ?", (lineage.identity,)
    ).fetchone()
    if row is not None and row[0] not in lineage.states:
        raise PrivacyError(
            "Another copy of this file has gone on since this one was made: only that one may, "
            "because both would ask the same people. Go on with the one that is the furthest."
        )
    connection.execute(
        "INSERT OR REPLACE INTO objects VALUES (?, ?)", (lineage.identity, lineage.states[-1])
    )
    return row is not None


_HANDLE = "_skpriv_accountants"
_LARGER = "give BudgetAccountant a larger budget"
_answer: ContextVar[list[str] | None] = ContextVar("_answer", default=None)
_noticing: dict[int, list[Cost]] = {}  # lists that fill with charges, by their ids


@dataclass(frozen=True)
class Handle:
    """The accountants that were active somewhere: pickle it to charge them from elsewhere.

    Parameters
    ----------
    entries : tuple of (accountant, part) pairs, default=()
    """

    entries: tuple[tuple[BudgetAccountant, Part], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries)

    def joined(self, other: "Handle") -> "Handle":
        """Return the accountants of both handles."""
        mine = {accountant._key for accountant, _ in self.entries}
        return Handle(self.entries + tuple(e for e in other.entries if e[0]._key not in mine))

    def abroad(self) -> "Handle":
        """Return the accountants of other processes: of this one's, the ``with`` blocks decide."""
        return Handle(tuple(e for e in self.entries if e[0]._home != process()))


def active() -> list[BudgetAccountant]:
    """List the active accountants, each once: the innermost first, then those of ancestors."""
    accountants: dict[Key, BudgetAccountant] = stacked()
    for entry in announced():
        accountant = BudgetAccountant._revived(entry)
        accountants.setdefault(accountant._key, accountant)
    return list(accountants.values())


def adds_up_gaussians() -> bool:
    """Whether charges now add up in the currency of Gaussian noise, where pure ones are expensive.

    Public: which accountants are active follows from no record.
    """
    return allowance() is not None or any(a.currency != "pure" for a in active())


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
    tell_charge(cost, name)
    if (step := allowance()) is not None:
        step.take(cost, name)
        _notice(cost)
        return
    if lineage is None:
        lineage = _paid_once(cost)
    accountants, parts = active(), current_parts()
    # A ledger may be shared by several accountants: all check it, and it records one line, about
    # all records unless they agree on the part. Sorted, so that no two threads wait in a circle.
    by_path: dict[str, list[BudgetAccountant]] = {}
    for accountant in accountants:
        by_path.setdefault(accountant.ledger.path, []).append(accountant)
    with ExitStack() as stack:
        lines = []
        for path, sharing in sorted(by_path.items()):
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
            lines.append((transaction, part, sharing[0].who, sharing[0].purpose))
        for transaction, part, who, purpose in lines:
            transaction.record(name, cost, part, who, purpose, unit_now())
    _notice(cost)


@contextmanager
def charged_once(name: str) -> Iterator[None]:
    """Charge what this thread does inside once in each ledger, however often it is done again.

    For an answer that only counts when it was written down: a process that dies between the charge
    and the answer does the same again after a restart, and nothing was released before. That the
    answer is paid for is written with the charge.

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
    token = _answer.set([name])
    try:
        yield
    finally:
        _answer.reset(token)


def _paid_once(cost: Cost) -> Lineage | None:
    """Name of a charge: its answer, its cost, and how many of this cost came before."""
    answer = _answer.get()
    if answer is None:
        return None
    answer.append(f"{answer[0]}: {cost.as_tuple()}")
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
    handle : Handle
        False as a condition if no accountant is active. Give it to `activated` elsewhere.

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
    return Handle(tuple((a, parts.get(a._key, ())) for a in active()))


@contextmanager
def activated(handle: Handle | None) -> Iterator[None]:
    """Activate the accountants of a handle; one that is active already is still charged once.

    Parameters
    ----------
    handle : Handle or None
        Handle of `capture`. The part of the data where this thread is already goes before the
        handle's.
    """
    if not handle:
        yield
        return
    known = current_parts()
    parts = {a._key: part for a, part in handle.entries if part and a._key not in known}
    with ExitStack() as stack:
        for accountant, _ in handle.entries:
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

    @contextmanager
    def _accounting(self) -> Iterator[None]:
        """Charge the accountants under which this estimator was pickled, if not yet active."""
        with activated(self.__dict__.get(_HANDLE)):
            yield

    def __getstate__(self) -> dict[str, Any]:
        state = dict(cast(dict[str, Any], super().__getstate__()))
        handle = state.pop(_HANDLE, Handle()).joined(capture(with_parts=False))
        if handle:
            state[_HANDLE] = handle
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        handle = state.pop(_HANDLE, Handle()).abroad()
        parent = getattr(super(), "__setstate__", self.__dict__.update)
        parent(state)
        if handle:
            self.__dict__[_HANDLE] = handle

    def __sklearn_clone__(self) -> "Accounted":
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        handle = self.__dict__.get(_HANDLE)
        if handle:
            clone.__dict__[_HANDLE] = handle
        return clone
