"""An append-only list of charges that processes and threads share, under one total."""

import json
import os
import shutil
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import NamedTuple

from ..._sqlite import Connection
from ...exceptions import PrivacyError
from .._accounting._cost import Cost
from ._ledger_file import COLUMNS, ledger_database, opened, prepared, set_total
from ._limit import Limit
from ._unit import check_unit

__all__ = ["Charge", "Ledger", "Part", "Transaction"]

# The way from the whole data set to a part of it: pairs (partition, name of the part).
Part = tuple[tuple[str, str], ...]

_MARKS = ", ".join("?" for _ in COLUMNS)
# What is no number counts as infinite: 9e999 is beyond the floating-point numbers.
_TOTALS = ", ".join(
    f"TOTAL(CASE WHEN typeof({name}) IN ('real', 'integer') THEN {name} ELSE 9e999 END)"
    for name in COLUMNS
)


class Charge(NamedTuple):
    """One line of a ledger: what was released, about which part of the data, at what cost.

    ``when`` is the time in UTC, ``who`` and ``purpose`` are what the accountant was given, and
    ``unit`` is what the charge protects: "row", or "patient:9".
    """

    name: str
    part: str
    cost: Cost
    who: str = ""
    when: str = ""
    purpose: str = ""
    unit: str = "row"


class Ledger:
    """Charges in one SQLite file, that any process or thread may read and extend.

    Parameters
    ----------
    path : str or path-like, default=None
        The file; it is created if need be, and stays. None: a temporary file, which is removed
        when this object is garbage collected in the process that made it.
    limit : Limit, default=None
        The total of a file that has none; one that a file has is never changed.
    unit : str, default=None
        What a new file protects. None: a row.

    Attributes
    ----------
    identity : str
        A name that no other ledger has. A file that was removed and made again has another one.
    unit : str
        What every charge protects: "row", or a column and the most rows, such as "patient:9".
    limit : Limit or None
        The total that stands in the file, when it was opened. It is asked in the transaction of
        every charge, whoever makes it.

    Raises
    ------
    PrivacyError
        If the file is no ledger, or one of a later version.

    Notes
    -----
    A connection is opened for every operation, so a ledger survives forks and is pickled by its
    path and identity alone. An unpickled ledger does not own the file: if it is gone, using it is
    an error. SQLite's locks must work on the file system: do not put a shared ledger on one, such
    as some network drives, where they do not.

    No total of what was spent is kept: it is added up from the charges whenever it is needed.

    Examples
    --------
    >>> from skpriv.privacy import Cost
    >>> from skpriv.privacy._ledger._ledger import Ledger
    >>> ledger = Ledger()
    >>> ledger.charge("first fit", Cost.from_epsilon(1.0))
    True
    >>> ledger.total()
    Cost(pure=1, pure_squared=0.5, pure_gaussian=1.51791)
    """

    limit: Limit | None = None
    unit = "row"

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        limit: Limit | None = None,
        unit: str | None = None,
    ) -> None:
        if path is None:
            folder = tempfile.mkdtemp(prefix="skpriv-ledger-")
            weakref.finalize(self, _remove, folder, os.getpid())
            path = Path(folder, "ledger.sqlite")
        self.path = str(Path(path).resolve())
        self.identity, self.unit, self.limit = prepared(self.path, limit, unit)

    def bind(self, limit: Limit | None = None, unit: str | None = None) -> Limit | None:
        """Return the total that stands in the file, which is this limit if there was none."""
        if self.exists():
            identity, self.unit, self.limit = prepared(self.path, limit, unit)
            if identity != self.identity:
                raise PrivacyError(_MADE_AGAIN.format(self.path))
        return self.limit

    def exists(self) -> bool:
        """Whether the file is still there."""
        return os.path.isfile(self.path)

    def charge(
        self,
        name: str,
        cost: Cost,
        part: Part = (),
        fits: Callable[[Cost], bool] | None = None,
    ) -> bool:
        """Record a charge, unless ``fits`` or the file's total refuses it; as one atomic step.

        Parameters
        ----------
        name : str
        cost : Cost
        part : tuple of (partition, name) pairs, default=()
        fits : callable, default=None
            Called with the new total; if it returns False or raises, nothing is recorded.

        Returns
        -------
        recorded : bool

        Raises
        ------
        BudgetExceeded
            If the charge does not fit into the total that stands in the file.
        """
        with self.transaction() as transaction:
            if fits is not None and not fits(transaction.total_with(cost, part)):
                return False
            transaction.record(name, cost, part)
        return True

    @classmethod
    def at(cls, path: str, identity: str) -> "Ledger":
        """The ledger of another process, which is neither made nor owned here."""
        ledger = cls.__new__(cls)
        ledger.path, ledger.identity = path, identity
        return ledger

    @contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """Hold the ledger exclusively: committed at the end, rolled back by an exception."""
        with ledger_database(self.path).transaction() as connection:
            yield self._expected(connection)

    @contextmanager
    def _reading(self) -> Iterator["Transaction"]:
        with ledger_database(self.path).reading() as connection:
            yield self._expected(connection)

    def _expected(self, connection: Connection) -> "Transaction":
        transaction = Transaction(connection, self.path)
        transaction.expect(self.identity)
        return transaction

    def total(self, currency: str | None = None) -> Cost:
        """Cost of all charges: see `compose` for how the parts count.

        Parameters
        ----------
        currency : {"gdp", "zcdp", "pure"}, default=None
            Convert each part's costs into it first, so that the most expensive part can be told.
        """
        with self._reading() as transaction:
            return transaction.total(currency)

    def charges(self) -> list[Charge]:
        """All charges, the oldest first."""
        with self._reading() as transaction:
            return transaction.charges()

    def __getstate__(self) -> dict[str, str]:
        return {"path": self.path, "identity": self.identity}


class Transaction:
    """Reading and appending while the ledger is held."""

    def __init__(self, connection: Connection, path: str) -> None:
        self.connection, self._path = connection, path
        self.identity, self.unit, self.limit = opened(connection, path)

    def expect(self, identity: str) -> None:
        """Refuse another ledger than the one that was opened before."""
        if self.identity != identity:
            raise PrivacyError(_MADE_AGAIN.format(self._path))

    def bind(self, limit: Limit) -> None:
        """Write the total into a file that has none."""
        if self.limit is None:
            set_total(self.connection, limit)
            self.limit = limit

    def totals(self) -> dict[Part, Cost]:
        rows = self.connection.execute(f"SELECT part, {_TOTALS} FROM charges GROUP BY part")
        return {
            tuple((partition, label) for partition, label in json.loads(part)): _cost(values)
            for part, *values in rows
        }

    def total(self, currency: str | None = None) -> Cost:
        return compose(self.totals(), currency)

    def total_with(self, cost: Cost, part: Part, currency: str | None = None) -> Cost:
        totals = self.totals()
        totals[part] = totals.get(part, Cost()) + cost
        return compose(totals, currency)

    def charges(self) -> list[Charge]:
        rows = self.connection.execute(
            f"SELECT name, part, who, time, purpose, unit, {', '.join(COLUMNS)} "
            "FROM charges ORDER BY rowid"
        )
        return [
            Charge(
                name,
                "/".join(label for _, label in json.loads(part)),
                _cost(values),
                *(text or "" for text in said),
            )
            for name, part, *said, values in ((*row[:6], row[6:]) for row in rows)
        ]

    def check(self, limit: Limit, name: str, cost: Cost, part: Part, larger: str) -> None:
        """Refuse a charge that a limit does not hold."""
        totals = self.totals()
        before = compose(totals, limit.currency)
        totals[part] = totals.get(part, Cost()) + cost
        limit.check(cost, name, before, compose(totals, limit.currency), larger)

    def record(
        self, name: str, cost: Cost, part: Part, who: str = "", purpose: str = "", unit: str = "row"
    ) -> None:
        """Append a charge, unless the total or the unit that stand in the file refuse it."""
        check_unit(self.unit, unit, name)
        if self.limit is not None:
            self.check(self.limit, name, cost, part, _LARGER)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        self.connection.execute(
            f"INSERT INTO charges (name, part, who, time, purpose, unit, {', '.join(COLUMNS)}) "
            f"VALUES (?, ?, ?, ?, ?, ?, {_MARKS})",
            (name, json.dumps(part), who, when, purpose, unit, *cost.as_tuple()),
        )


_MADE_AGAIN = (
    "The ledger {} was removed and made again, so that what was spent is forgotten: nothing can be "
    "charged to its budget. Put the former file back."
)
_LARGER = "begin a new ledger with a larger total: that of a ledger is set once"


def _cost(values: Sequence[float | None]) -> Cost:
    """Cost of the values of columns; one that is no number counts as infinite."""
    return Cost(*(value if isinstance(value, float | int) else inf for value in values))


def compose(totals: Mapping[Part, Cost], currency: str | None = None) -> Cost:
    """Cost of charges about the whole data set and about parts of it.

    The parts of one partition are disjoint sets of records, so a record pays for the most expensive
    of them (see `Cost.maximum`). Different partitions need not have anything to do with each other:
    a record is in at most one part of each, so their costs add up. A part may be divided again.
    """
    if currency is not None:
        totals = {part: cost.converted(currency) for part, cost in totals.items()}
    total = totals.get((), Cost())
    partitions: dict[str, dict[str, dict[Part, Cost]]] = defaultdict(lambda: defaultdict(dict))
    for part, cost in totals.items():
        if part:
            (partition, label), *rest = part
            partitions[partition][label][tuple(rest)] = cost
    for parts in partitions.values():
        total += Cost.maximum(compose(inner) for inner in parts.values())
    return total


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a fork has a copy of the object, but does not own the file
        shutil.rmtree(folder, ignore_errors=True)
