"""The subject of the running code: a part of the data, a step that is paid for, rows or persons.

A part belongs to the code that is called from where it was entered: to the frames below that one on
the stack of calls. A suspended generator or coroutine is on nobody's stack, other threads have
stacks of their own, and whoever leaves out of order takes away the own part alone. If no part is
found, a charge counts as about all records: one too many, never one too few.

Accountants that are active belong to the process and not to the thread, so that a fit in a thread
of joblib cannot escape them; and they are announced to all descendants, so that no worker can. A
process writes its active accountants into a small file named after its id and start. A charge
looks for the files of all ancestors: of the parent, its parent, and so on, and of those that an
environment variable names, which a process inherits even if one between has ended. So a worker is
found whatever started it, and whether it was started before the block or in it.

A fork has a copy of the block, which lasts although the original may leave its own: programs that
the fork starts have the copied accountants from their environment. A program that takes the place
of a process in a block stays in it.
"""

import atexit
import contextlib
import json
import os
import stat
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from math import inf
from pathlib import Path
from traceback import walk_stack
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..._linalg import after_fork
from ...exceptions import BudgetExceeded, PrivacyError
from .._accounting._cost import SHARE_SLACK
from ._ledger import Limit, Steps, unit_text

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from .._accounting._cost import Cost

_LINEAGE = "SKPRIV_LINEAGE"
_BLOCKS = "SKPRIV_BLOCKS"
# Start of a process where the system does not tell it. If it does, the file of a process that was
# killed is not taken for that of a later process with the same id.
_UNKNOWN = "0"


def folders() -> list[Path]:
    """Folders for the files, the best first; a child has the same ones, whatever its TMPDIR is."""
    posix = os.name == "posix"
    owner = os.getuid() if posix else os.environ.get("USERNAME", "user")
    roots = ["/tmp", "/var/tmp"] if posix else []
    roots.append(str(Path(tempfile.gettempdir()).resolve()))
    return [Path(root, f"skpriv-{owner}") for root in dict.fromkeys(roots)]


def announce(accountants: list[dict[str, Any]]) -> None:
    """Write down which accountants are active in this process, for its descendants."""
    mine = f"{identity(os.getpid())}.json"
    if not accountants:
        for folder in folders():
            if _usable(folder):
                Path(folder, mine).unlink(missing_ok=True)
        return
    for folder in folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _usable(folder):
                continue
            descriptor, name = tempfile.mkstemp(dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(accountants, file)
            os.replace(name, Path(folder, mine))
        except OSError:
            continue
        return
    raise PrivacyError(
        "No folder can be written where worker processes would find this accountant, of "
        f"{', '.join(map(str, folders()))}: their fits would not be charged."
    )


def announced() -> list[dict[str, Any]]:
    """List what the ancestors of this process have announced, the nearest first.

    Their files are looked up by name: a process that is killed leaves its file behind, and a charge
    must not take longer for every one of them.
    """
    return [*_inherited, *_announced_by(ancestors())]


def _announced_by(names: list[str]) -> list[dict[str, Any]]:
    """Announcements of processes of these identities."""
    found = []
    usable = list(filter(_usable, folders()))
    for name in names:
        for folder in usable:
            # It announces nothing, or its block has just ended. A file that is there and cannot be
            # read, such as when too many are open, is an error: a fit would be charged to nobody.
            with suppress(FileNotFoundError):
                text = Path(folder, f"{name}.json").read_text(encoding="utf-8")
                found.extend(json.loads(text))
    return found


def ancestors() -> list[str]:
    """Identities of this process's ancestors that still run, each once, the nearest first."""
    found = dict.fromkeys(_chain(os.getppid()))
    for name in reversed([name for name in _named() if name not in found]):
        pid = name.partition("-")[0]
        if pid.isdigit() and identity(int(pid)) in (name, f"{pid}-{_UNKNOWN}"):
            found[name] = None
    found.pop(identity(os.getpid()), None)
    return list(found)


def _chain(pid: int) -> list[str]:
    """Identities of a process and of its ancestors, the nearest first."""
    found = []
    while pid > 0:
        parent, start = _status(pid)
        found.append(f"{pid}-{start}")
        pid = parent
    return found


def _named() -> list[str]:
    """Identities in the environment variable, the oldest first."""
    return list(filter(None, os.environ.get(_LINEAGE, "").split(",")))


def start_lineage() -> None:
    """Name this process to those that it will start."""
    names = _named()
    mine = identity(os.getpid())
    if mine not in names:
        os.environ[_LINEAGE] = ",".join([*names, mine][-64:])


def identity(pid: int) -> str:
    """Return a process's id and start, which no later process shares."""
    return f"{pid}-{_status(pid)[1]}"


def _status(pid: int) -> tuple[int, str]:
    """Parent and start of a process; (0, "0") where the system does not tell."""
    if sys.platform == "linux":
        with suppress(FileNotFoundError, PermissionError, ProcessLookupError):
            return _process_facts(pid)
    return 0, _UNKNOWN


@lru_cache
def _process_facts(pid: int) -> tuple[int, str]:
    """What Linux tells of a process, which is asked once.

    A process whose parent ends goes to an ancestor of that parent, so that no later answer has an
    ancestor that the first one lacks.
    """
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    fields = text.rpartition(")")[2].split()  # the name of the program ends with this bracket
    return int(fields[1]), fields[19]


def _usable(folder: Path) -> bool:
    """Whether a folder belongs to this user alone, so that nobody else removes announcements."""
    with suppress(OSError):
        status = os.lstat(folder)
        return stat.S_ISDIR(status.st_mode) and (
            os.name != "posix" or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
        )
    return False


# The identity of an accountant: the path and identity of the ledger, and the limit.
Key = tuple[str, str, Limit]


_lock = threading.RLock()  # of what follows, and of the active accountants
# The frame that has entered some parts, and the steps to them. A pair is removed by its identity,
# because a frame may enter the same parts twice.
_entries: list[tuple[FrameType | None, dict[Key, Steps]]] = []


@contextmanager
def inside(steps: Mapping[Key, Steps]) -> Iterator[None]:
    """Enter parts of the data until the ``with`` statement ends."""
    entry = entering(sys._getframe(1)), dict(steps)
    with _lock:
        _entries.append(entry)
    try:
        yield
    finally:
        with _lock:
            _entries[:] = [other for other in _entries if other is not entry]


def current_parts() -> dict[Key, Steps]:
    """Return the part of the data that the calling code is about, for each accountant."""
    with _lock:
        entries = list(_entries)
    if not entries:
        return {}
    stack = running()
    parts: dict[Key, Steps] = {}
    for frame, entered in entries:
        if id(frame) in stack:
            for key, steps in entered.items():
                parts[key] = (*parts.get(key, ()), *steps)
    # Code that is in two parts of one partition at once has none: such parts are disjoint.
    return {
        key: part
        for key, part in parts.items()
        if len({partition for partition, _ in part}) == len(set(part))
    }


def running() -> set[int]:
    """Return the ids of the frames on this thread's stack of calls."""
    return {id(frame) for frame, _ in walk_stack(sys._getframe(1))}


def entering(frame: FrameType | None) -> FrameType | None:
    """Frame of the ``with`` statement that enters a part, at once or through context managers.

    A function made a context manager by contextlib is suspended while the body runs: what it
    enters belongs to the statement that entered it.
    """
    while frame is not None:
        caller = frame.f_back
        if (
            _of_contextlib(frame)
            or caller is not None
            and _of_contextlib(caller)
            and caller.f_code.co_name in _ENTERS
        ):
            frame = caller
        else:
            return frame
    return None


_ENTERS = ("__enter__", "__aenter__")


def _of_contextlib(frame: FrameType) -> bool:
    return frame.f_code.co_filename == contextlib.__file__


@contextmanager
def during(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Give a variable of this thread a value until the ``with`` statement ends."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class _Allowance:
    """The rest that a step may still spend, in one currency.

    Only what is called from the ``with`` statement has it: no thread that the step starts, and
    nobody else while a generator that entered it is suspended.
    """

    def __init__(self, cost: "Cost", currency: str, frame: FrameType | None) -> None:
        self.currency = currency
        self.frame = frame
        self.total = self.left = amount_in(cost, currency)

    def take(self, cost: "Cost", name: str) -> None:
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


def amount_in(cost: "Cost", currency: str) -> float:
    """Cost in a currency; infinite where only (epsilon, delta) is known."""
    if cost.approximate or cost.delta:
        return inf
    return cost.amount(currency)


def allowance() -> _Allowance | None:
    """The rest that this thread may still spend inside `prepaid`; None outside of it."""
    current = _current.get()
    return current if current and id(current.frame) in running() else None


@contextmanager
def prepaid(cost: "Cost", currency: str = "zcdp") -> Iterator[None]:
    """Let the releases of a step through whose cost an enclosing mechanism has charged.

    For mechanisms whose total is not the sum of their steps, or whose steps are known by and by,
    such as a search: the total is charged once, to the accountants, and each step runs in here. A
    step that asks for more than `cost` is refused.

    Parameters
    ----------
    cost : Cost
        What the step may cost at most.
    currency : {"zcdp", "gdp", "pure"}, default="zcdp"
        The currency in which costs are compared; that of the enclosing mechanism's proof.

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
    with during(_current, _Allowance(cost, currency, entering(sys._getframe(1)))):
        yield


# The protected unit, as the text that a command takes: "row", "patient:9", or ":9" without a name.
_unit: ContextVar[str] = ContextVar("_unit", default="row")


def protecting(name: str, largest: int) -> "AbstractContextManager[None]":
    """Say that what this thread charges inside protects persons, with all of their rows.

    Parameters
    ----------
    name : str
        The column that says whose row it is; "" where it has no name, or that of an outer block.
    largest : int
        Rows of a person that are used at most.
    """
    return during(_unit, unit_text((name or _unit.get().rpartition(":")[0], largest)))


def unit_now() -> str:
    """The unit that a charge here protects."""
    return _unit.get()


# A list of its own for each time that an accountant is entered; its class is defined in a file that
# imports this one.
_stack: list[list[Any]] = []
_process_name = uuid.uuid4().hex


def _after_fork() -> None:
    # Accountants stay active in the child, because its copy of their block has not ended. Parts do
    # not, because the parent goes on to other parts while the child works.
    global _lock, _process_name
    _lock = threading.RLock()
    _process_name = uuid.uuid4().hex
    _entries.clear()
    _process_facts.cache_clear()  # of another namespace, a child may have the number of its parent
    start_lineage()
    if _stack:
        os.environ[_BLOCKS] = json.dumps(_entries_of_active())


def _inherit() -> list[dict[str, Any]]:
    """Accountants in whose block this program was started: by a fork that has copied the block, or
    in the place of a program that has announced them, which had the same identity.
    """
    mine = identity(os.getpid())
    before = [] if mine.endswith(f"-{_UNKNOWN}") else _announced_by([mine])
    return [*json.loads(os.environ.get(_BLOCKS, "[]")), *before]


start_lineage()
after_fork(_after_fork)
_inherited = _inherit()


def process() -> str:
    """Return a name that no other process ever has, not even a fork of this one."""
    return _process_name


def push(accountant: Any) -> None:
    """Activate an accountant in this process; as often as it is `pop`-ped later."""
    entry = [accountant]
    try:
        with _lock:
            _stack.append(entry)
            _announce_active()
    except BaseException:
        _leave(entry)
        raise


def pop(accountant: Any, *error: object, entry: Any = None) -> None:
    """Undo one `push`, whatever interrupts it: nothing less, and nothing more."""
    try:
        with _lock:
            entry = _entry_of(accountant)
            _leave(entry)
    except BaseException:
        _leave(entry or _entry_of(accountant))
        raise


def _entry_of(accountant: Any) -> Any:
    """The last entry of an accountant that is active; None of another one."""
    return next((entry for entry in reversed(_stack) if entry[0] is accountant), None)


def _leave(entry: Any) -> None:
    """Take an entry away, and no other one if that was done before."""
    with _lock:
        _stack[:] = [other for other in _stack if other is not entry]
        _announce_active()


def _entries_of_active() -> list[dict[str, Any]]:
    return [*_inherited, *(accountant._announced() for accountant in stacked().values())]


def _announce_active() -> None:
    announce(_entries_of_active())
    if _BLOCKS in os.environ:  # of a fork: programs of other processes find the file alone
        os.environ[_BLOCKS] = json.dumps(_entries_of_active())


@atexit.register
def _end() -> None:
    if _stack or _inherited:
        announce([])


def stacked() -> dict[Key, Any]:
    """The active accountants of this process by their keys, the innermost first."""
    found: dict[Key, Any] = {}
    with _lock:
        for (accountant,) in reversed(_stack):
            found.setdefault(accountant._key, accountant)
    return found
