"""An append-only list of charges that processes and threads share."""

import json
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from ...exceptions import PrivacyError
from .._accounting._cost import Cost

__all__ = ["Charge", "Ledger", "Part"]

# The way from the whole data set to a part of it: pairs (partition, name of the part).
Part = tuple[tuple[str, str], ...]

_COLUMNS = ", ".join(field.name for field in fields(Cost))
_MARKS = ", ".join("?" for _ in fields(Cost))
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS charges (name TEXT, part TEXT, {_COLUMNS});
CREATE TABLE IF NOT EXISTS totals (part TEXT PRIMARY KEY, {_COLUMNS});
"""
# Columns that older files lack, and what their charges cost in them, rounded up.
_ADDED = {"selected": "0", "pure_gaussian": "3.141593 * pure_squared"}


class Charge(NamedTuple):
    """One line of a ledger: what was released, about which part of the data, at what cost."""

    name: str
    part: str
    cost: Cost


class Ledger:
    """Charges in one SQLite file, that any process or thread may read and extend.

    Parameters
    ----------
    path : str or path-like, default=None
        The file; it is created if need be, and stays. None: a temporary file, which is removed
        when this object is garbage collected in the process that made it.

    Notes
    -----
    A connection is opened for every operation, so a ledger survives forks and is pickled by its
    path alone. An unpickled ledger does not own the file: if it is gone, using it is an error.
    SQLite's locks must work on the file system: do not put a shared ledger on one, such as some
    network drives, where they do not.

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

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is None:
            folder = tempfile.mkdtemp(prefix="skpriv-ledger-")
            weakref.finalize(self, _remove, folder, os.getpid())
            path = Path(folder, "ledger.sqlite")
        self.path = str(Path(path).resolve())
        with _connection(self.path, mode="rwc") as connection:
            connection.executescript(_SCHEMA)
            _extend(connection)

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
        """Record a charge, unless ``fits`` refuses the new total; both as one atomic step.

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
        """
        with self.transaction() as transaction:
            if fits is not None and not fits(transaction.total_with(cost, part)):
                return False
            transaction.record(name, cost, part)
        return True

    @classmethod
    def at(cls, path: str) -> "Ledger":
        """The ledger of another process, which is neither made nor owned here."""
        ledger = cls.__new__(cls)
        ledger.path = path
        return ledger

    @contextmanager
    def transaction(self) -> Iterator["_Transaction"]:
        """Hold the ledger exclusively: committed at the end, rolled back by an exception."""
        with _connection(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _Transaction(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def total(self, currency: str | None = None) -> Cost:
        """Cost of all charges: see `compose` for how the parts count.

        Parameters
        ----------
        currency : {"gdp", "zcdp", "pure"}, default=None
            Convert each part's costs into it first, so that the dearest part can be told.
        """
        with _connection(self.path) as connection:
            return _Transaction(connection).total(currency)

    def charges(self) -> list[Charge]:
        """All charges, the oldest first."""
        with _connection(self.path) as connection:
            query = f"SELECT name, part, {_COLUMNS} FROM charges ORDER BY rowid"
            rows = connection.execute(query).fetchall()
        return [
            Charge(name, "/".join(label for _, label in json.loads(part)), Cost(*values))
            for name, part, *values in rows
        ]

    def __getstate__(self) -> dict[str, str]:
        return {"path": self.path}


class _Transaction:
    """Reading and appending while the ledger is held."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def totals(self) -> dict[Part, Cost]:
        rows = self._connection.execute(f"SELECT part, {_COLUMNS} FROM totals")
        return {
            tuple((partition, label) for partition, label in json.loads(part)): Cost(*values)
            for part, *values in rows
        }

    def total(self, currency: str | None = None) -> Cost:
        return compose(self.totals(), currency)

    def total_with(self, cost: Cost, part: Part, currency: str | None = None) -> Cost:
        totals = self.totals()
        totals[part] = totals.get(part, Cost()) + cost
        return compose(totals, currency)

    def record(self, name: str, cost: Cost, part: Part) -> None:
        key = json.dumps(part)
        self._connection.execute(
            f"INSERT INTO charges (name, part, {_COLUMNS}) VALUES (?, ?, {_MARKS})",
            (name, key, *cost.as_tuple()),
        )
        total = self.totals().get(part, Cost()) + cost
        self._connection.execute(
            f"INSERT OR REPLACE INTO totals (part, {_COLUMNS}) VALUES (?, {_MARKS})",
            (key, *total.as_tuple()),
        )


def compose(totals: Mapping[Part, Cost], currency: str | None = None) -> Cost:
    """Cost of charges about the whole data set and about parts of it.

    The parts of one partition are disjoint sets of records, so a record pays for the dearest of
    them (see `Cost.maximum`). Different partitions need not have anything to do with each other:
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


@contextmanager
def _connection(path: str, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    if mode == "rw" and not os.path.isfile(path):
        raise PrivacyError(
            f"The ledger {path} is gone, so nothing can be charged to its budget: the accountant "
            "that owned it has ended, or the file was removed. An estimator that was pickled or "
            "cloned under that accountant stays bound to it: make a new one of its parameters, "
            "or give BudgetAccountant a 'ledger' path that lasts."
        )
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}", uri=True, timeout=120.0, isolation_level=None
    )
    try:
        yield connection
    finally:
        connection.close()


def _extend(connection: sqlite3.Connection) -> None:
    """Give a file of an older version the columns that it lacks."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(totals)")}
    if columns.issuperset(_ADDED):
        return
    connection.execute("BEGIN IMMEDIATE")
    for table in ("charges", "totals"):
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for name in _ADDED.keys() - columns:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} DEFAULT 0.0")
            connection.execute(f"UPDATE {table} SET {name} = {_ADDED[name]}")
    connection.execute("COMMIT")


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a fork has a copy of the object, but does not own the file
        shutil.rmtree(folder, ignore_errors=True)
