"""The file of a ledger: its tables, its version, and the one total that stands in it."""

import uuid
from dataclasses import fields
from math import isinf

from ..._sqlite import Connection, Database
from ...exceptions import PrivacyError
from .._accounting._budget import Budget
from .._accounting._cost import Cost
from ._limit import Limit
from ._unit import unit_sentence

__all__ = ["COLUMNS", "ledger_database", "opened", "prepared", "set_total"]

COLUMNS = tuple(field.name for field in fields(Cost))
# Of the tables below, kept by SQLite as the file's user_version. Files without a number are older.
LEDGER_VERSION = 2

HISTORY = "SELECT identity, (SELECT COUNT(*) FROM charges) FROM ledger"
GONE = (
    "The ledger {} is gone, so nothing can be charged to its budget: the accountant that owned it "
    "has ended, or the file was removed. An estimator that was pickled or cloned under that "
    "accountant stays bound to it: make a new one of its parameters, or give BudgetAccountant a "
    "'ledger' path that lasts."
)
_CHARGES = f"CREATE TABLE charges (name TEXT, part TEXT, {', '.join(COLUMNS)})"
_SAID = ("who", "time", "purpose")
# Columns that files without a number may lack, and what their charges cost in them, rounded up.
_ADDED = {"selected": "0", "pure_gaussian": "3.141593 * pure_squared"}
# One row; epsilon is NULL as long as there is no total.
_LEDGER = (
    "CREATE TABLE ledger (identity TEXT NOT NULL, epsilon REAL, delta REAL, currency TEXT, "
    "aside_epsilon REAL, aside_delta REAL, unit TEXT NOT NULL DEFAULT 'row')"
)


def prepared(
    path: str, limit: Limit | None, unit: str | None = None
) -> tuple[str, str, Limit | None]:
    """Make the file if need be, or bring an older one up to date; return what `opened` does.

    Parameters
    ----------
    path : str
    limit : Limit or None
        The total of a file that has none. An infinite one is none.
    unit : str or None
        What a file protects that has neither a total nor charges. None: as it stands there.
    """
    database = ledger_database(path, "")
    database.create()
    with database.reading() as connection:
        if _version(connection) >= LEDGER_VERSION:
            found = opened(connection, path)
            nothing_new = found[2] is not None or limit is None or isinf(limit.budget.epsilon)
            if nothing_new and unit in (None, found[1]):
                return found
    with database.transaction() as connection:
        if _version(connection) < LEDGER_VERSION:
            _bring_up_to_date(connection, path)
        if unit is not None:
            _set_unit(connection, path, unit)
        if limit is not None and not isinf(limit.budget.epsilon):
            set_total(connection, limit)
        return opened(connection, path)


def ledger_database(path: str, history: str = HISTORY) -> Database:
    """The file of a ledger, which must be there."""
    return Database(path, "ledger", gone=GONE.format(path), history=history)


def opened(connection: Connection, path: str) -> tuple[str, str, Limit | None]:
    """Return the identity of a ledger, what it protects, and its total, None if it has none."""
    version = _version(connection)
    if version > LEDGER_VERSION:
        raise PrivacyError(
            f"The ledger {path} has version {version}, and this skpriv knows versions up to "
            f"{LEDGER_VERSION}: open it with a newer skpriv."
        )
    if version < LEDGER_VERSION:
        raise _no_ledger(path)
    identity, epsilon, *rest, unit = connection.execute("SELECT * FROM ledger").fetchone()
    if epsilon is None:
        return identity, unit, None
    delta, currency, *aside = rest
    return identity, unit, Limit(Budget(epsilon, delta), currency, Budget(*aside))


def _no_ledger(path: str) -> PrivacyError:
    return PrivacyError(f"The file {path} is no ledger of skpriv: give the path of another file.")


def _version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _columns(connection: Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _bring_up_to_date(connection: Connection, path: str) -> None:
    """Make the tables of a new file, or add what a file without a number lacks."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if _version(connection) == 1:
        for table in ("ledger", "charges"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN unit TEXT NOT NULL DEFAULT 'row'")
        connection.execute(f"PRAGMA user_version = {LEDGER_VERSION}")
        return
    if "charges" not in tables:
        if tables:
            raise _no_ledger(path)
        connection.execute(_CHARGES)
    for name in _ADDED.keys() - _columns(connection, "charges"):
        connection.execute(f"ALTER TABLE charges ADD COLUMN {name} DEFAULT 0.0")
        connection.execute(f"UPDATE charges SET {name} = {_ADDED[name]}")
    for name in _SAID:
        connection.execute(f"ALTER TABLE charges ADD COLUMN {name} TEXT DEFAULT ''")
    connection.execute("ALTER TABLE charges ADD COLUMN unit TEXT NOT NULL DEFAULT 'row'")
    connection.execute("DROP TABLE IF EXISTS totals")  # which older versions kept
    connection.execute(_LEDGER)
    connection.execute("INSERT INTO ledger (identity) VALUES (?)", (uuid.uuid4().hex,))
    if "skpriv_total" in tables:  # where the command `budget` kept the total before
        row = connection.execute("SELECT epsilon, delta FROM skpriv_total").fetchone()
        if row is not None:
            set_total(connection, Limit(Budget(*row), "gdp", Budget(0.0)))
        connection.execute("DROP TABLE skpriv_total")
    connection.execute(f"PRAGMA user_version = {LEDGER_VERSION}")


def _set_unit(connection: Connection, path: str, unit: str) -> None:
    """Write what is protected, unless the ledger has a total or charges."""
    (count,) = connection.execute("SELECT COUNT(*) FROM charges").fetchone()
    _, known, total = opened(connection, path)
    if unit != known and (count or total is not None):
        raise PrivacyError(
            f"The ledger {path} protects {unit_sentence(known)}, and not {unit_sentence(unit)}: "
            "leave unit out, or begin another ledger."
        )
    connection.execute("UPDATE ledger SET unit = ?", (unit,))


def set_total(connection: Connection, limit: Limit) -> None:
    """Write the total of a ledger that has none."""
    budget, aside = limit.budget, limit.set_aside
    connection.execute(
        "UPDATE ledger SET epsilon = ?, delta = ?, currency = ?, aside_epsilon = ?, "
        "aside_delta = ? WHERE epsilon IS NULL",
        (budget.epsilon, budget.delta, limit.currency, aside.epsilon, aside.delta),
    )
