"""The public task of a round: what devices, servers and the analyst derive from the same fields.

A task says which estimator is fitted and what the rounds before this one have released. Everything
else follows: whoever reads it runs the fit up to the first sum that is not there, by the own copy
of the library. So a device asks its own code what may be asked, with which sensitivity and at which
price, and believes no server.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, prod
from typing import Any

import numpy as np

from ...exceptions import PrivacyError
from ...privacy import (
    NO_ROOM,
    WIRE_VERSION,
    Cost,
    Devices,
    Lattice,
    capabilities,
    shares_needed,
    task_hash,
)
from ...records import Rows
from .._settings import restored

CHANNEL = "shared-sum"
TRANSPORTS = ("two-servers", "shuffled-shares")
LARGEST_TASK = np.iinfo(np.int32).max  # users, or numbers in a vector
DAMAGED = "the task has parts that are missing, or of a wrong kind or size: nothing was answered."
NO_ROWS = "the rows are on the users' devices, of which nothing but the sum of all can be had."


class SumNeeded(Exception):
    """A fit has come to a sum that devices have not reported yet.

    Parameters
    ----------
    query : Query
    lattice : Lattice
    shares : int
        Number of shares in which each number is sent.
    cost : Cost
        What this sum costs a record.
    """

    def __init__(self, query: Any, lattice: Lattice, shares: int, cost: Any) -> None:
        super().__init__(query.name)
        self.query, self.lattice, self.shares, self.cost = query, lattice, shares, cost

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return prod(self.query.shape)


class SumRows(Rows):
    """Rows on devices: sums are those of the rounds so far.

    Parameters
    ----------
    n, n_features : int
    devices : Devices
    answers : list of (total, n)
        Answers of the rounds that are closed: sums in steps of the grid, and how many users are in
        them.
    paid_for : bool
        Whether the collection was charged before.
    lineage : Lineage or None
    rehearsal : bool
        Whether the fit goes on behind the answers, as if every record were zero. Then ``needed`` is
        the first sum that is not there, and ``reports`` are those of the sessions of the fit.
    """

    def __init__(self, n, n_features, devices, answers, paid_for, lineage=None, *, rehearsal=False):
        self.n, self.n_features, self.devices = n, n_features, devices
        self._answers, self._asked, self._paid_for = answers, 0, paid_for
        self.lineage, self._rehearsal = lineage, rehearsal
        self.needed, self.reports = None, {}

    @property
    def paid_for(self):
        """Whether the collection was charged before."""
        return self._paid_for

    def pieces(self, most, subset=None, sparse=True):
        """Refuse: no server has rows."""
        raise PrivacyError(NO_ROWS)

    def sum(self, query, subset=None):
        """Refuse: nobody sees an exact sum."""
        raise PrivacyError(NO_ROWS)

    def shared_sum(self, query, lattice, security, prices, subset=None):
        """Noisy sum of a round that is closed, and how many users are in it.

        Raises
        ------
        SumNeeded
            If it is not closed, and this is no rehearsal.
        """
        if subset is not None:
            raise PrivacyError(
                "devices answer all queries together: pass calibration_size=None, and no parts."
            )
        report, cost = prices
        self.reports[id(report)] = report
        size = prod(query.shape)
        if self._asked >= len(self._answers):
            shares = shares_needed(self.devices.adding, size, security) if security else 2
            needed = SumNeeded(query, lattice, max(shares, 2), cost)
            if not self._rehearsal:
                raise needed
            if not self._answers and not lattice.has_room(query.sensitivity, size):
                raise PrivacyError(f"the rounds of this collection do not fit into {NO_ROOM}")
            self.needed = self.needed or needed
            zero = query.sum(np.zeros((1, self.n_features)), np.zeros(1))
            return np.reshape(zero, query.shape) * self.n, self.n
        total, n = self._answers[self._asked]
        self._asked += 1
        if len(total) != size:
            raise ValueError(DAMAGED)
        return np.reshape(total, query.shape).astype(float) * lattice.step, n


@dataclass(frozen=True)
class Round:
    """What a task asks for, as the own copy of the library derives it.

    Parameters
    ----------
    fields : dict
        Fields of the task.
    needed : SumNeeded
    cost : Cost
        What a user loses to the whole collection.
    """

    fields: dict
    needed: SumNeeded
    cost: Cost

    @property
    def collection(self) -> str:
        """Name of the collection: a hash of all that is fixed before its first round."""
        return collection_of(self.fields)


FIXED = ("version", "channel", "estimator", "users", "n_features", "nonce")


def collection_of(fields):
    """Hash of what is fixed before the first round."""
    text = json.dumps({name: fields[name] for name in FIXED}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def rounds_of(fields):
    """Hash of each round up to the open one: the same for all attempts at it.

    A round is what was released before it. Rounds whose pasts contradict each other could have
    shares of the budget that together exceed it.
    """
    collection, answers = collection_of(fields), fields["answers"]
    texts = (
        json.dumps([collection, answers[:place]], allow_nan=False)
        for place in range(len(answers) + 1)
    )
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def task_fields(settings, answers, attempt):
    """Fields of the task of the next round.

    Parameters
    ----------
    settings : dict
        Settings of the collection.
    answers : list of (total, n)
    attempt : int
    """
    fields = {
        "version": WIRE_VERSION,
        "channel": {"name": CHANNEL, "transport": settings["transport"]},
        "estimator": settings["estimator"],
        "users": {"n": settings["n_users"], "adding": settings["n_min"]},
        "n_features": settings["n_features"],
        "nonce": settings["nonce"],
        "answers": [[[int(number) for number in total], int(n)] for total, n in answers],
        "attempt": attempt,
    }
    return {**fields, "hash": task_hash(fields)}


def open_round(fields: Any) -> Round:
    """What the fields of a task ask for; nothing but them is looked at.

    Raises
    ------
    ValueError
        If they are no task, or nothing is left to be asked.
    PrivacyError
        If what they ask for cannot be had.
    """
    _check(fields)
    return _opened(json.dumps(fields, sort_keys=True, allow_nan=False))


@lru_cache(maxsize=4)
def _opened(text):
    fields = json.loads(text)
    devices = Devices(
        fields["users"]["n"], fields["users"]["adding"], fields["channel"]["transport"]
    )
    answers = [(np.array(total, dtype=np.int64), n) for total, n in fields["answers"]]
    rows = SumRows(
        devices.total, fields["n_features"], devices, answers, paid_for=True, rehearsal=True
    )
    try:
        restored(fields["estimator"]).fit(rows, None)
    except PrivacyError:  # of a later round: only where nobody has been charged yet
        if rows.needed is None or not answers:
            raise
    except Exception:  # a fit of numbers that no devices have reported may end in any way
        if rows.needed is None:
            raise ValueError(DAMAGED) from None
    if rows.needed is None:
        raise ValueError("the last round is closed: nothing is asked any more.")
    return Round(
        fields, rows.needed, sum((report.charged for report in rows.reports.values()), Cost())
    )


def _check(fields):
    """Refuse fields of a wrong kind."""
    try:
        channel, users, answers = fields["channel"], fields["users"], fields["answers"]
        params = fields["estimator"]["params"]
        proper = channel["name"] == CHANNEL and channel["transport"] in TRANSPORTS
        proper &= _whole(users["n"], 1, LARGEST_TASK) and _whole(users["adding"], 1, users["n"])
        proper &= _whole(fields["n_features"], 1, 2**16) and _whole(
            fields["attempt"], 0, LARGEST_TASK
        )
        proper &= isinstance(fields["nonce"], str)
        # Shuffled shares are seen when they are sent, so that no round of them is repeated.
        proper &= fields["attempt"] == 0 or channel["transport"] == "two-servers"
        proper &= capabilities(params["privacy"]).summed
        epsilon = params["epsilon"]
        proper &= type(epsilon) in (int, float) and isfinite(epsilon) and epsilon > 0.0
        for total, n in answers:
            proper &= _whole(n, users["adding"], users["n"])
            proper &= all(_whole(number, -(2**63), 2**63 - 1) for number in total)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
        proper = False
    if not proper:
        raise ValueError(DAMAGED)


def _whole(number, low, high):
    return type(number) is int and low <= number <= high
