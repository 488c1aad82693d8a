"""Which accountants are active, in this process, and about which part of the data.

The stack of accountants belongs to the process and not to the thread, so that a fit in a thread
of joblib cannot escape it. The part of the data belongs to the code that entered it: another
thread that fits at the same time is charged as if about all records. Either way an uncertain
charge is one too many, never one too few.
"""

import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._accounting._budget import Budget
from .._accounting._cost import Cost
from ._ledger import Part
from ._prepaid import allowance

if TYPE_CHECKING:
    from ._accountant import BudgetAccountant

__all__ = ["Handle", "activated", "capture", "charge", "parallel_part", "process"]

Key = tuple[str, Budget]  # the ledger's path, and the budget it is held against

_lock = threading.RLock()
_stack: list["BudgetAccountant"] = []
_process = uuid.uuid4().hex
# The thread is kept beside its parts: some interpreters start a thread with a copy of the context.
_parts: ContextVar[tuple[int, dict[Key, Part]]] = ContextVar("_parts", default=(0, {}))


def _after_fork() -> None:
    global _lock, _process
    _lock, _process = threading.RLock(), uuid.uuid4().hex


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True)
class Handle:
    """The accountants that were active somewhere: pickle it to charge them from elsewhere.

    Parameters
    ----------
    entries : tuple of (accountant, part) pairs, default=()
    """

    entries: tuple[tuple["BudgetAccountant", Part], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.entries)

    def joined(self, other: "Handle") -> "Handle":
        """Return the accountants of both handles."""
        mine = {accountant._key for accountant, _ in self.entries}
        return Handle(self.entries + tuple(e for e in other.entries if e[0]._key not in mine))

    def living(self) -> "Handle":
        """Return the accountants whose ledger still exists."""
        return Handle(tuple(e for e in self.entries if e[0].ledger.exists()))

    def abroad(self) -> "Handle":
        """Return the accountants of other processes: of this one's, the ``with`` blocks decide."""
        return Handle(tuple(e for e in self.entries if e[0]._home != _process))


def process() -> str:
    """Return a name of this process that no other has, before or after, forks included."""
    return _process


def push(accountant: "BudgetAccountant") -> None:
    """Activate an accountant in this process; as often as it is `pop`-ped later."""
    with _lock:
        _stack.append(accountant)


def pop(accountant: "BudgetAccountant") -> None:
    """Undo one `push`."""
    with _lock:
        for index in range(len(_stack) - 1, -1, -1):
            if _stack[index] is accountant:
                del _stack[index]
                return


def active() -> list["BudgetAccountant"]:
    """List the active accountants, each of them once, the outermost first."""
    with _lock:
        return list({accountant._key: accountant for accountant in _stack}.values())


def current_parts() -> dict[Key, Part]:
    """Return the part of the data that this thread is in, for each accountant."""
    thread, parts = _parts.get()
    return parts if thread == threading.get_ident() else {}


@contextmanager
def inside(parts: dict[Key, Part]) -> Iterator[None]:
    """Set the part that this thread is in."""
    token = _parts.set((threading.get_ident(), {**current_parts(), **parts}))
    try:
        yield
    finally:
        _parts.reset(token)


def charge(cost: Cost, name: str) -> None:
    """Charge every active accountant; called before the data are read.

    Either all of them record the cost, or none does.

    Parameters
    ----------
    cost : Cost
        It must be public: fixed without looking at the data.
    name : str
        What is released, for the list of charges.

    Raises
    ------
    BudgetExceeded
        If the cost does not fit into what is left of the budget of an active accountant.

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
        return
    accountants, parts = active(), current_parts()
    # A ledger may be shared by several accountants: all check it, and it records one line, about
    # all records unless they agree on the part. Sorted, so that no two threads wait in a circle.
    ledgers = {accountant.ledger.path: accountant.ledger for accountant in accountants}
    with ExitStack() as stack:
        opened = {
            path: stack.enter_context(ledgers[path].transaction()) for path in sorted(ledgers)
        }
        places: dict[str, Part] = {}
        for path in opened:
            found = {parts.get(a._key, ()) for a in accountants if a.ledger.path == path}
            places[path] = found.pop() if len(found) == 1 else ()
        for accountant in accountants:
            path = accountant.ledger.path
            accountant._check(cost, name, opened[path], places[path])
        for path, transaction in opened.items():
            transaction.record(name, cost, places[path])


@contextmanager
def parallel_part(name: object, *, partition: str) -> Iterator[None]:
    """Charge what follows to one part of the data, for all active accountants.

    The records of a part must be disjoint from those of the other parts of the same partition,
    and indexed publicly, such as the epochs of a bandit: the dearest part alone is then paid.

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
    parts, step = current_parts(), (str(partition), str(name))
    with inside({a._key: (*parts.get(a._key, ()), step) for a in active()}):
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
    >>> from skpriv.privacy._ledger._accountant import activated, capture
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
        Of `capture`. The part of the data where this thread is already goes before the handle's.
    """
    if not handle:
        yield
        return
    known = current_parts()
    parts = {a._key: part for a, part in handle.entries if part and a._key not in known}
    with ExitStack() as stack:
        for accountant, _ in handle.entries:
            stack.enter_context(accountant)
        stack.enter_context(inside(parts))
        yield
