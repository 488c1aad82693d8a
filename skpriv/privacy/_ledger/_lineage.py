"""Which copy of a saved object goes on: one that descends from the state that its ledgers know."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...exceptions import PrivacyError
from ._ledger import Ledger, Transaction

__all__ = ["Lineage", "advance"]


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


def advance(transaction: Transaction, lineage: Lineage) -> bool:
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
