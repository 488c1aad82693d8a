"""An append-only list of charges that processes and threads share, under one total.

A charge protects a row, or a person with several rows; a ledger adds up one kind of them. The total
is a budget in a currency, of which a part may be set aside. The total stands in the ledger's file,
beside the charges.
"""

import json
import os
import shutil
import tempfile
import uuid
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from functools import cached_property
from math import inf, isinf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._sqlite import Database, legible
from ..._stored import frozen
from ...exceptions import BudgetExceeded, PrivacyError
from .._accounting._cost import CURRENCIES, SHARE_SLACK, Budget, Cost, gdp_delta

if TYPE_CHECKING:
    from ..._sqlite import Connection


def unit_text(unit: Any) -> str:
    """Text of "row", "patient:9" or ("patient", 9)."""
    value = unit_value(unit) if isinstance(unit, str) and not unit.startswith(":") else unit
    match value:
        case "row":
            return "row"
        case (str() as column, int() as largest) if largest >= 1 and largest is not True:
            return f"{column}:{largest}"
    raise ValueError(
        f"unit={unit!r} must be 'row', or the column that says whose row it is and the most "
        "rows of a person that are used, such as ('patient', 9)."
    )


def unit_value(text: str) -> "str | tuple[str, int]":
    """The unit of a text, as it was given: "row", or a column and the most rows."""
    column, _, largest = text.rpartition(":")
    return (column, int(largest)) if largest.isdecimal() else text


def unit_sentence(text: str) -> str:
    """The protected unit, in words."""
    match unit_value(text):
        case (column, largest):
            named = f"column {column!r}, " if column else ""
            return f"a person ({named}at most {largest} row{'s' * (largest != 1)})"
    return "a row"


def check_unit(ledger: str, charge: str, name: str) -> None:
    """Refuse a charge that protects something else than a ledger does.

    Raises
    ------
    PrivacyError
    """
    match unit_value(ledger), unit_value(charge):
        case ("row", "row"):
            return
        case ("row", (column, used)):
            unit = (column or "person", used)
            remedy = (
                f"Begin a ledger with the unit {unit!r} (on the command line `budget --unit "
                f"{unit_text(unit)!r}`), and make every release with groups."
            )
        case ((person, largest), (column, used)) if column in ("", person) and used <= largest:
            return
        case ((person, largest), _):
            remedy = (
                f"Release with groups, the column {person!r}, and at most {largest} rows of each "
                f"person (on the command line --group {person!r} --max-rows {largest}; a policy "
                "with as many visits), or begin another ledger."
            )
    raise PrivacyError(
        f"The ledger protects {unit_sentence(ledger)}, and {name} would protect "
        f"{unit_sentence(charge)}: their costs do not add up. Nothing was charged. {remedy}"
    )


@frozen
class Limit:
    """A total that charges must not exceed, fixed before the first of them.

    Parameters
    ----------
    budget : Budget
        All that may be spent.
    currency : {"gdp", "zcdp", "pure"}
        What charges add up in; "pure" whatever is asked for, if the budget has no delta.
    set_aside : Budget
        The part of the budget for charges of which only (epsilon, delta) is known.
    """

    budget: Budget
    currency: str
    set_aside: Budget

    def __post_init__(self) -> None:
        if self.currency not in CURRENCIES:
            raise ValueError(f"currency={self.currency!r} must be one of {list(CURRENCIES)}.")
        if not self.budget.delta:
            object.__setattr__(self, "currency", "pure")
        aside = self.set_aside.epsilon, self.set_aside.delta
        exceeds = aside[0] > self.budget.epsilon or aside[1] > self.budget.delta
        if isinf(aside[0]) or exceeds:
            raise ValueError(
                f"set_aside={aside} must be a finite part of (epsilon, delta)="
                f"({self.budget.epsilon}, {self.budget.delta})."
            )

    @classmethod
    def of(cls, epsilon: float, delta: float, currency: str, *set_aside: float) -> "Limit":
        """Limit of the numbers and the currency that `as_row` gave."""
        return cls(Budget(epsilon, delta), currency, Budget(*set_aside))

    def as_row(self) -> tuple[float, float, str, float, float]:
        """Budget, currency, and what is set aside, as a database or JSON can hold them."""
        aside = self.set_aside
        return self.budget.epsilon, self.budget.delta, self.currency, aside.epsilon, aside.delta

    @cached_property
    def main(self) -> Budget:
        """The budget without what is set aside."""
        left = self.budget.epsilon - self.set_aside.epsilon
        return Budget(left, self.budget.delta - self.set_aside.delta)

    @cached_property
    def amount(self) -> float:
        """The most that the converted charges may add up to."""
        if self.currency == "pure":
            return self.main.epsilon
        return self.main.mu * self.main.mu if self.currency == "gdp" else self.main.rho

    def smaller(self, other: "Limit") -> "Limit":
        """The smaller one of two limits that differ in epsilon alone; this one otherwise."""
        alike = self.currency == other.currency and self.set_aside == other.set_aside
        if alike and self.budget.delta == other.budget.delta:
            return min(self, other, key=lambda limit: limit.budget.epsilon)
        return self

    def implied(self, amount: float) -> Budget:
        """The guarantee that an amount of the currency implies, at the delta of the main part."""
        delta = self.main.delta
        if self.currency == "pure" or amount == 0.0:
            return Budget(amount)
        if delta == 0.0 or isinf(amount):
            return Budget(inf, delta)
        if self.currency == "gdp":
            return Budget.from_mu(sqrt(amount), delta)
        return Budget.from_rho(amount, delta)

    def as_budget(self, cost: Cost) -> Budget:
        """The sum of the charges, at the delta of the main part."""
        main = self.implied(cost.amount(self.currency))
        delta = min(main.delta + cost.delta, 1.0 - 2.0**-53)
        return Budget(main.epsilon + cost.approximate, delta)

    def left(self, total: Cost) -> Budget:
        """The largest budget of one more fit that is paid in the currency."""
        if isinf(self.budget.epsilon):
            return self.budget
        left = max(0.0, self.amount - total.amount(self.currency))
        if left <= SHARE_SLACK * self.amount:
            return Budget(0.0, 0.0)
        implied = self.implied(left)
        if implied.epsilon or self.currency != "gdp":
            return implied
        # At epsilon = 0 the whole delta could be more than what is left.
        return Budget(0.0, min(self.main.delta, gdp_delta(0.0, sqrt(left))))

    def left_aside(self, total: Cost) -> Budget:
        """The rest of the part that was set aside."""
        return Budget(
            max(0.0, self.set_aside.epsilon - total.approximate),
            max(0.0, self.set_aside.delta - total.delta),
        )

    def check(self, cost: Cost, name: str, before: Cost, total: Cost, larger: str) -> None:
        """Refuse a charge that does not fit.

        Parameters
        ----------
        cost : Cost
            Cost of the charge.
        name : str
            What asks for it.
        before, total : Cost
            Costs of all charges, without and with this one, in the currency.
        larger : str
            How more could be had, for the error.

        Raises
        ------
        BudgetExceeded
        """
        if isinf(self.budget.epsilon):
            return
        enough = 1.0 + SHARE_SLACK
        # A currency that is not asked for is not refused: a ledger may have had a larger budget
        # before.
        main = total.amount(self.currency) <= self.amount * enough
        aside = (
            total.approximate <= self.set_aside.epsilon * enough
            and total.delta <= self.set_aside.delta * enough
        )
        if main and aside:
            return
        converted = cost.converted(self.currency)
        left = self.left(before)
        words = f"{name} asks for {self.as_budget(converted)}"
        remedy = (
            "Fit with a smaller epsilon or fewer times (each fold and candidate of a search is one "
            f"fit), or {larger}."
        )
        if isinf(cost.amount("zcdp") + cost.approximate):
            words = f"{name} asks for an infinite epsilon"
        elif not aside:
            left = self.left_aside(before)
            words += ", of which only (epsilon, delta) is known: the part set_aside pays for that"
            needed = f"({total.approximate:g}, {total.delta:g})"
            remedy = f"Give BudgetAccountant set_aside={needed} or more, a part of its budget."
        elif self.budget.delta == 0.0 and isinf(converted.pure):
            words = f"{name} asks for a delta above 0"
            remedy = "Give that budget a delta, for example delta=1e-6."
        elif isinf(converted.amount(self.currency)):
            words = f"{name} has no cost in the accountant's currency={self.currency!r}, use 'zcdp'"
        elif 0.0 < cost.pure and self.currency != "pure":
            words += f" in the currency {self.currency!r}, for a pure epsilon={cost.pure:g}"
            remedy = "Where all is pure, currency='pure' adds up epsilons as they are. " + remedy
        raise BudgetExceeded(
            f"{words}, but {left} remains of {self.budget}. Nothing was "
            f"released or charged. {remedy}"
        )


COLUMNS = tuple(field.name for field in fields(Cost))
# Version of the tables below, which SQLite keeps as the user_version of the file.
LEDGER_VERSION = 2

HISTORY = "SELECT identity, (SELECT COUNT(*) FROM charges) FROM ledger"
GONE = (
    "The ledger {} is gone, so nothing can be charged to its budget: the accountant that owned it "
    "has ended, or the file was removed. An estimator that was pickled or cloned under that "
    "accountant stays bound to it: make a new one of its parameters, or give BudgetAccountant a "
    "'ledger' path that lasts."
)
_CHARGES = (
    f"CREATE TABLE charges (name TEXT, part TEXT, {', '.join(COLUMNS)}, who TEXT, time TEXT, "
    "purpose TEXT, unit TEXT NOT NULL DEFAULT 'row')"
)
# A table with one row, whose epsilon is NULL as long as there is no total.
_LEDGER = (
    "CREATE TABLE ledger (identity TEXT NOT NULL, epsilon REAL, delta REAL, currency TEXT, "
    "aside_epsilon REAL, aside_delta REAL, unit TEXT NOT NULL DEFAULT 'row')"
)


def ledger_database(path: str, history: str = HISTORY) -> Database:
    """The file of a ledger, which must be there."""
    return Database(path, "ledger", gone=GONE.format(path), history=history)


def _no_ledger(path: str) -> PrivacyError:
    return PrivacyError(
        f"The file {path} is no ledger of skpriv, or one that is older than version 0.2: give the "
        "path of another file, or open it once with version 0.2."
    )


def _version(connection: "Connection") -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _bring_up_to_date(connection: "Connection", path: str) -> None:
    """Make the tables of a new file, or add the columns that the version before did not have."""
    if _version(connection) == 1:
        for table in ("ledger", "charges"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN unit TEXT NOT NULL DEFAULT 'row'")
    elif connection.execute("SELECT name FROM sqlite_master").fetchone():
        raise _no_ledger(path)
    else:
        connection.execute(_CHARGES)
        connection.execute(_LEDGER)
        connection.execute("INSERT INTO ledger (identity) VALUES (?)", (uuid.uuid4().hex,))
    connection.execute(f"PRAGMA user_version = {LEDGER_VERSION}")


# From the whole data set to a part of it: pairs (partition, name of the part).
Steps = tuple[tuple[str, str], ...]

# A part in more parts than these counts as the one in which it is
MOST_STEPS = 100
_MARKS = ", ".join("?" for _ in COLUMNS)
# A value that is no number of at least 0 counts as infinite, which SQL writes as 9e999.
_TOTALS = ", ".join(
    f"TOTAL(CASE WHEN typeof({name}) IN ('real', 'integer') AND {name} >= 0 "
    f"THEN {name} ELSE 9e999 END)"
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
        The total of a file that has none.
    unit : str, default=None
        What every charge protects, of a file that has no charges.

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
    >>> with ledger.transaction() as held:
    ...     held.record("first fit", Cost.from_epsilon(1.0), ())
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
        self.identity = self._prepared(limit, unit)

    def _prepared(self, limit: Limit | None, unit: str | None) -> str:
        """Make the file if need be, or bring an older one up to date; return its identity.

        A file that has neither a total nor charges gets this unit, and one that has no total this
        limit, unless it is infinite.
        """
        database = ledger_database(self.path, "")
        database.create()
        if limit is not None and isinf(limit.budget.epsilon):
            limit = None
        with database.reading() as connection:
            old = _version(connection) < LEDGER_VERSION
            found = None if old else LedgerTransaction(connection, self.path)
        if found is None or limit and not found.limit or unit not in (None, found.unit):
            with database.transaction() as connection:
                if _version(connection) < LEDGER_VERSION:
                    _bring_up_to_date(connection, self.path)
                found = LedgerTransaction(connection, self.path)
                if unit is not None:
                    found.set_unit(unit)
                if limit is not None:
                    found.bind(limit)
        self.unit = found.unit
        self.limit = found.limit
        return found.identity

    def bind(self, limit: Limit | None = None, unit: str | None = None) -> Limit | None:
        """Return the total that stands in the file, which is this limit if there was none."""
        if os.path.isfile(self.path) and self._prepared(limit, unit) != self.identity:
            raise PrivacyError(_MADE_AGAIN.format(self.path))
        return self.limit

    @classmethod
    def at(cls, path: str, identity: str) -> "Ledger":
        """The ledger of another process, which is neither made nor owned here."""
        ledger = cls.__new__(cls)
        ledger.path = path
        ledger.identity = identity
        return ledger

    @contextmanager
    def transaction(self) -> Iterator["LedgerTransaction"]:
        """Hold the ledger exclusively: committed at the end, rolled back by an exception."""
        with ledger_database(self.path).transaction() as connection:
            yield LedgerTransaction(connection, self.path, self.identity)

    @contextmanager
    def _reading(self) -> Iterator["LedgerTransaction"]:
        with ledger_database(self.path).reading() as connection:
            yield LedgerTransaction(connection, self.path, self.identity)

    def total(self, currency: str | None = None) -> Cost:
        """Cost of all charges: see `compose` for how the parts count.

        Parameters
        ----------
        currency : {"gdp", "zcdp", "pure"}, default=None
            Convert each part's costs into it first, so that the most expensive part can be told.
        """
        with self._reading() as transaction:
            return compose(transaction.totals(), currency)

    def charges(self) -> list[Charge]:
        """All charges, the oldest first."""
        with self._reading() as transaction:
            return transaction.charges()

    def __getstate__(self) -> dict[str, str]:
        return {"path": self.path, "identity": self.identity}


class LedgerTransaction:
    """Reading and appending while the ledger is held; with an identity, to that ledger alone."""

    def __init__(self, connection: "Connection", path: str, identity: str | None = None) -> None:
        self.connection = connection
        self._path = path
        version = _version(connection)
        if version > LEDGER_VERSION:
            raise PrivacyError(
                f"The ledger {path} has version {version}, and this skpriv knows versions up to "
                f"{LEDGER_VERSION}: open it with a newer skpriv."
            )
        if version < LEDGER_VERSION:
            raise _no_ledger(path)
        with legible(path):
            ((name, *total, unit),) = connection.execute("SELECT * FROM ledger LIMIT 2").fetchall()
            self.identity = str(name)
            self.unit = unit_text(str(unit))
            self.limit = None if total[0] is None else Limit.of(*total)
        if identity is not None:
            self.expect(identity)

    def expect(self, identity: str) -> None:
        """Refuse another ledger than the one that was opened before."""
        if self.identity != identity:
            raise PrivacyError(_MADE_AGAIN.format(self._path))

    def bind(self, limit: Limit) -> Limit:
        """Return the total that stands in the file, which is this limit if there was none."""
        if self.limit is None:
            self.connection.execute(
                "UPDATE ledger SET epsilon = ?, delta = ?, currency = ?, aside_epsilon = ?, "
                "aside_delta = ? WHERE epsilon IS NULL",
                limit.as_row(),
            )
            self.limit = limit
        return self.limit

    def set_unit(self, unit: str) -> None:
        """Write what is protected, unless the ledger has a total or charges."""
        if unit != self.unit and (self.limit is not None or self.totals()):
            raise PrivacyError(
                f"The ledger {self._path} protects {unit_sentence(self.unit)}, and not "
                f"{unit_sentence(unit)}: leave unit out, or begin another ledger."
            )
        self.connection.execute("UPDATE ledger SET unit = ?", (unit,))
        self.unit = unit

    def totals(self) -> dict[Steps, Cost]:
        rows = self.connection.execute(f"SELECT part, {_TOTALS} FROM charges GROUP BY part")
        totals: dict[Steps, Cost] = defaultdict(Cost)
        with legible(self._path):
            for part, *values in rows:  # a part may have several texts
                steps = tuple((partition, label) for partition, label in json.loads(part))
                totals[steps[:MOST_STEPS]] += _cost(values)
        return totals

    def charges(self) -> list[Charge]:
        rows = self.connection.execute(
            f"SELECT name, part, {', '.join(COLUMNS)}, who, time, purpose, unit FROM charges "
            "ORDER BY rowid"
        )
        charges = []
        with legible(self._path):
            for name, part, *values in rows:
                label = "/".join(label for _, label in json.loads(part))
                said = (str(text or "") for text in values[len(COLUMNS) :])
                charges.append(Charge(str(name), label, _cost(values[: len(COLUMNS)]), *said))
        return charges

    def check(self, limit: Limit, name: str, cost: Cost, part: Steps, larger: str) -> None:
        """Refuse a charge that does not fit into a limit."""
        totals = self.totals()
        before = compose(totals, limit.currency)
        totals[part[:MOST_STEPS]] += cost
        limit.check(cost, name, before, compose(totals, limit.currency), larger)

    def record(
        self,
        name: str,
        cost: Cost,
        part: Steps,
        who: str = "",
        purpose: str = "",
        unit: str = "row",
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
    """Cost with these coordinates; a value that is no number of at least 0 counts as infinite."""
    return Cost(
        *(value if isinstance(value, float | int) and value >= 0 else inf for value in values)
    )


def compose(totals: Mapping[Steps, Cost], currency: str | None = None) -> Cost:
    """Cost of charges about the whole data set and about parts of it.

    The parts of one partition are disjoint sets of records, so a record pays for the most expensive
    of them (see `Cost.maximum`). Different partitions need not have anything to do with each other:
    a record is in at most one part of each, so their costs add up. A part may be divided again.
    """
    if currency is not None:
        totals = {part: cost.converted(currency) for part, cost in totals.items()}
    total = totals.get((), Cost())
    partitions: dict[str, dict[str, dict[Steps, Cost]]] = defaultdict(lambda: defaultdict(dict))
    for part, cost in totals.items():
        if part:
            (partition, label), *rest = part
            partitions[partition][label][tuple(rest)] = cost
    for parts in partitions.values():
        total += Cost.maximum(map(compose, parts.values()))
    return total


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked process has a copy of the object, and does not own it
        shutil.rmtree(folder, ignore_errors=True)
