"""Rounds in which nobody but a server with the other one sees more than a sum.

A server adds up shares, and opens no more than one sum of each round. Devices, servers and the
analyst derive the public task of a round from the same fields. A task says which estimator is
fitted and what the rounds before this one have released. Everything else follows: whoever reads it
runs the fit up to the first sum that is not there, by the own copy of the library. So a device asks
its own code what may be asked, with which sensitivity and at which price, and believes no server.
It sends shares of its vector and of its part of the noise.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, prod
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from sklearn.base import clone

from .._contracts import is_whole
from .._linalg import unwarned
from .._stored import frozen, set_state
from .._sqlite import Database, legible
from .._wire import (
    INDEX_BYTES, WIRE_VERSION, is_known, message_body, message_head, read_task, task_hash,
)  # fmt: skip
from ..exceptions import PrivacyError
from ..privacy import (
    MODULUS, NO_ROOM, Budget, Cost, Devices, additive_shares, capabilities, discrete_gaussian,
    rounded, shares_needed, summed_shares,
)  # fmt: skip
from ..records import Rows
from ._ledger import MOST_ATTEMPTS
from ._record import CHANNEL, DAMAGED, check_size, floats, n_cells, number
from ._store import n_features_of, restored

if TYPE_CHECKING:
    from .._wire import SumTask
    from sklearn.base import BaseEstimator

    from .._contracts import Array
    from ..privacy import Lattice, PrivacyReport, Query
    from ..records import Subset

# Most users of each transport. To find the number of shares of the second takes 16 seconds.
MOST_USERS = {"two-servers": 2_147_483_647, "shuffled-shares": 10_000_000}
TRANSPORTS = list(MOST_USERS)
# Devices and servers run the fit of a task, whoever made it, up to a minute by these bounds.
LARGEST_RECORD = 1_000  # features, or knots of their curves: a gigabyte
LARGEST_SUMS = 20_000_000  # numbers of all sums of a fit


class RoundNeeded(Exception):
    """A fit has come to a query that devices have not answered yet.

    Parameters
    ----------
    query : Query
    **details : object
        How devices answer it. In a round of sums: ``lattice``, the number of ``shares`` in which
        each number is sent, and what the sum costs a record, ``cost``. In a round of reports: the
        ``law`` of one report, and the positions ``start`` and ``stop`` in the public order of the
        users who are asked.
    """

    def __init__(self, query: Any, **details: Any) -> None:
        super().__init__(query.name)
        self.query = query
        self.size = prod(query.shape)
        set_state(self, **details)


class Rounds:
    """How a collection asks and takes its rounds.

    Parameters
    ----------
    collection : Collector
        Its settings, its store and its closed rounds are shared.
    """

    def __init__(self, collection: Any) -> None:
        self._collection = collection
        self._estimator = collection._estimator
        self._settings = collection._settings
        self._store = collection._store
        self._rounds = collection._rounds

    def write(self, settings: dict[str, Any]) -> None:
        """Write down further settings."""
        self._store.write_settings(settings)
        self._settings.update(settings)

    def fitted(self, rows: "RowsOnDevices") -> tuple[Any, Any]:
        """The fitted estimator and None; or None and the round that it needs."""
        estimator = clone(self._estimator).set_params(random_state=None)
        try:
            return estimator.fit(rows, None), None
        except RoundNeeded as needed:
            return None, needed


@dataclass(eq=False, repr=False)
class RowsOnDevices(Rows):
    """Rows that their users keep: whoever fits has answers of theirs, and no row.

    Parameters
    ----------
    n, n_features : int
    rounds : list
        Answers of the rounds that are closed.
    paid_for : bool
        Whether the collection was charged before, in this process.
    lineage : Lineage or None
        Lineage of the collection's file: ledgers that know it are not charged again.
    """

    n: int
    n_features: int
    _rounds: list[Any]
    _paid_for: bool
    lineage: Any = None
    refusal = "the rows are on the users' devices, of which nothing but the sum of all can be had."
    _n_asked = 0

    @property
    def paid_for(self) -> bool:
        """Whether the collection was charged before."""
        return self._paid_for

    def pieces(
        self, max_rows: int, subset: "Subset | None" = None, sparse: bool = True
    ) -> NoReturn:
        """Refuse: no server has rows, and nobody sees an exact sum of them."""
        raise PrivacyError(self.refusal)


@dataclass(eq=False, repr=False)
class SumRows(RowsOnDevices):
    """Rows on devices: sums are those of the rounds so far.

    Parameters
    ----------
    n, n_features, rounds, paid_for, lineage : see RowsOnDevices
        A closed round has a sum in steps of the grid, and the number of users who are in it.
    devices : Devices
    rehearsal : bool
        Whether the fit goes on behind the answers, as if every record were zero. Then ``needed`` is
        the first sum that is not there, and ``reports`` are those of the sessions of the fit.
    """

    devices: Any = None
    rehearsal: bool = False
    needed: Any = None
    reports: dict[int, Any] = field(default_factory=dict)
    _numbers = 0

    def shared_sum(
        self,
        query: "Query",
        lattice: "Lattice",
        security: float,
        prices: "tuple[PrivacyReport, Cost]",
        subset: "Subset | None" = None,
    ) -> tuple[np.ndarray, int]:
        """Noisy sum of a round that is closed, and how many users are in it.

        Raises
        ------
        RoundNeeded
            If it is not closed, and this is no rehearsal.
        """
        if subset is not None:
            raise PrivacyError(
                "devices answer all queries together: pass calibration_size=None, and no parts."
            )
        report, cost = prices
        self.reports[id(report)] = report
        size = prod(query.shape)
        self._numbers += max(size, 1_000)  # a sum takes as long as these, however small it is
        check_size(self._numbers, LARGEST_SUMS, "numbers in all sums")
        if self._n_asked >= len(self._rounds):
            shares = shares_needed(self.devices.adding, size, security) if security else 2
            needed = RoundNeeded(query, lattice=lattice, shares=max(shares, 2), cost=cost)
            if not self.rehearsal:
                raise needed
            if not self._rounds and not lattice.has_room(query.sensitivity, size):
                raise PrivacyError(f"the rounds of this collection do not fit into {NO_ROOM}")
            self.needed = self.needed or needed
            zero = query.sum(np.zeros((1, self.n_features)), np.zeros(1))
            return np.reshape(zero, query.shape) * self.n, self.n
        total, n = self._rounds[self._n_asked]
        self._n_asked += 1
        if len(total) != size:
            raise ValueError(DAMAGED)
        return np.reshape(total, query.shape).astype(float) * lattice.step, n


@frozen
class Round:
    """The question of a task, as the device's own copy of the library derives it.

    Parameters
    ----------
    needed : RoundNeeded
    cost : Cost
        What a user loses to the whole collection.
    """

    needed: Any
    cost: Cost


FIXED = ("version", "channel", "estimator", "users", "n_features", "nonce")


def collection_of(fields: Mapping[str, Any]) -> str:
    """Hash of what is fixed before the first round."""
    text = json.dumps({name: fields[name] for name in FIXED}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def place_of(fields: "SumTask") -> tuple[str, int]:
    """The collection of a round, and how many rounds were closed before it."""
    return collection_of(fields), len(fields["answers"])


def rounds_of(fields: "SumTask") -> list[str]:
    """Hash of each round up to the open one: the same for all attempts at it.

    A round is what was released before it. Rounds whose pasts contradict each other could have
    shares of the budget that together exceed it.
    """
    collection = collection_of(fields)
    answers = fields["answers"]
    texts = (
        json.dumps([collection, answers[:place]], allow_nan=False)
        for place in range(len(answers) + 1)
    )
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def task_fields(
    settings: dict[str, Any], answers: list[tuple[list[int], int]], attempt: int
) -> Any:
    """Fields of the task of the next round.

    Parameters
    ----------
    settings : dict
        Settings of the collection.
    answers : list of (total, n)
    attempt : int
    """
    fields: Any = {
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
    """The question of the fields of a task; nothing but them is looked at.

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
def _opened(text: str) -> Round:
    fields = json.loads(text)
    users = fields["users"]
    transport = fields["channel"]["transport"]
    devices = Devices(users["n"], users["adding"], transport)
    answers = [(np.array(total, np.int64), n) for total, n in fields["answers"]]
    rows = SumRows(
        devices.total, fields["n_features"], answers, True, devices=devices, rehearsal=True
    )
    try:
        restored(fields["estimator"]).fit(rows, None)
    except PrivacyError:  # a later round cannot be had: refused as long as nobody was charged
        if rows.needed is None or not answers:
            raise
    except Exception:  # a fit to made-up numbers may end with any error
        if rows.needed is None:
            raise ValueError(DAMAGED) from None
    if rows.needed is None:
        raise ValueError("the last round is closed: nothing is asked any more.")
    return Round(rows.needed, sum((report.charged for report in rows.reports.values()), Cost()))


def _check(fields: Any) -> None:
    """Refuse fields of a wrong kind."""
    try:
        channel = fields["channel"]
        users = fields["users"]
        most_users = MOST_USERS[channel["transport"]]
        answers = fields["answers"]
        params = fields["estimator"]["params"]
        epsilon = params["epsilon"]
        proper = (
            channel["name"] == CHANNEL
            and is_whole(users["n"], 1, inf)
            and is_whole(users["adding"], 1, users["n"])
            and is_whole(fields["n_features"], 1, inf)
            and is_whole(fields["attempt"], 0, inf)
            and fields["nonce"].startswith(CHANNEL)
            # Shuffled shares are seen when they are sent: their rounds are not repeated.
            and (fields["attempt"] == 0 or channel["transport"] == "two-servers")
            and capabilities(params["privacy"]).summed
            and 0.0 < epsilon < inf
            and all(is_whole(n, users["adding"], users["n"]) for _, n in answers)
            and all(
                is_whole(number, -(2**63), 2**63 - 1) for total, _ in answers for number in total
            )
        )
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
        proper = False
    if not proper:
        raise ValueError(DAMAGED)
    check_size(users["n"], most_users, "users of this transport")
    knots = params.get("knots")  # a fit of curves works with so many numbers of each feature
    each = knots if type(knots) is int else 1
    check_size(fields["n_features"] * each, LARGEST_RECORD, "features, or knots of all of them")


def sum_report(
    fields: Any, x: Any, y: Any, user: int, *, largest_epsilon: Any, ledger: Any
) -> list[bytes]:
    """Messages of one user's device: shares of the own vector and of the own part of the noise.

    Parameters
    ----------
    fields : dict
        Fields of a task whose hash was checked.
    x, y : array-like of shape (n_features,), float
        The record. A value that is no number counts as zero.
    user : int
    largest_epsilon, ledger : float, DeviceLedger
        The same as for :func:`skpriv.protocol.report`. A collection is charged with its first
        answer, and another attempt at a round as that round once more.

    Returns
    -------
    list of bytes
        Messages: with two servers one message for each; else one for each share of each coordinate.

    Notes
    -----
    **Privacy guarantee**: any messages but those of all servers together are uniform numbers that
    do not depend on the record. All of them add up to the record's vector and noise of the task's
    variance, and see the record almost as it is.
    """
    opened = open_round(fields)
    is_known(fields["users"], user)
    if n_cells(x) != fields["n_features"]:
        raise ValueError(f"a record has {fields['n_features']} features in this task.")
    delta = 0.0 if ledger is None else ledger.budget.delta
    if largest_epsilon is not None and not opened.cost.fits(Budget(largest_epsilon, delta)):
        raise PrivacyError(
            f"the task asks for epsilon={opened.cost.epsilon(delta):g} at delta={delta:g}, more "
            f"than the largest_epsilon={largest_epsilon} that was agreed to. The delta is that of "
            "a DeviceLedger."
        )
    if ledger is not None:  # before the record is looked at
        # A round of shuffled shares is not repeated, because they are seen when they are sent.
        again = opened.needed.cost if fields["channel"]["transport"] == "two-servers" else None
        ledger.charge(
            collection_of(fields), opened.cost, rounds_of(fields),
            again=again, adding=fields["users"]["adding"],
        )  # fmt: skip
    steps = noisy_vector(opened.needed, x, y)
    return packed(fields, additive_shares(steps, opened.needed.shares, os.urandom))


def noisy_vector(needed: Any, x: Any, y: Any) -> "Array":
    """A record's vector in steps of the grid, with this user's part of the noise."""
    row = np.nan_to_num(floats(x), posinf=0.0, neginf=0.0)[None, :]
    target = np.nan_to_num(np.array([number(y)]), posinf=0.0, neginf=0.0)
    with unwarned():
        vector = np.asarray(needed.query.sum(row, target), float)
    steps = rounded(vector, needed.lattice.step)
    return steps + discrete_gaussian(needed.lattice.variance, np.zeros(needed.size), os.urandom)


def packed(fields: "SumTask", shares: np.ndarray) -> list[bytes]:
    """Messages of shares of shape (n_shares, size)."""
    head = message_head(fields, "share")

    def message(place: int, numbers: Any) -> Any:
        return head + place.to_bytes(INDEX_BYTES, "little") + numbers.astype("<u8").tobytes()

    if fields["channel"]["transport"] == "two-servers":
        return list(map(message, range(len(shares)), shares))
    return [message(place, share) for place, column in enumerate(shares.T) for share in column]


def unpacked(fields: "SumTask", message: bytes, size: int) -> tuple[int, np.ndarray]:
    """(place, numbers) of a message to a task.

    Raises
    ------
    ValueError
        If it is malformed, of another attempt, or of another length.
    """
    body = message_body(fields, "share", message, INDEX_BYTES + 8 * size)
    place = int.from_bytes(body[:INDEX_BYTES], "little")
    return place, np.frombuffer(body[INDEX_BYTES:], "<u8").astype(np.uint64)


class Sums(Rounds):
    """Rounds of sums (total, n), all of which the same users answer; see `Rounds`."""

    @staticmethod
    def settings(
        estimator: "BaseEstimator",
        n_users: int,
        n_features: int | None,
        *,
        seed: int | None,
        n_min: int | None,
        transport: str | None,
    ) -> dict[str, Any]:
        """Settings of a new collection, all of them public; the seed is not used."""
        if estimator.calibration_size is not None:
            raise ValueError("devices answer all queries together: pass calibration_size=None.")
        n_min = -(-19 * int(n_users) // 20) if n_min is None else n_min
        if not is_whole(n_min, 1, n_users):
            raise ValueError(
                f"n_min={n_min!r}, the users whose noise is counted on, must be a whole number "
                f"from 1 to n_users={n_users}: None takes 95% of them."
            )
        transport = TRANSPORTS[0] if transport is None else transport
        if transport not in TRANSPORTS:
            raise ValueError(f"transport={transport!r} must be one of {TRANSPORTS}.")
        n_known = n_features_of(estimator, n_features)
        if n_known is None:
            raise ValueError("n_features must be given: the public number of features of a record.")
        return {
            "n_min": int(n_min), "transport": transport, "n_features": n_known,
            "nonce": CHANNEL + token_hex(16),
        }  # fmt: skip

    @property
    def n_answers(self) -> int:
        """Users in the last closed round."""
        return self._rounds[-1][1] if self._rounds else 0

    def go_on(self) -> tuple[Any, Any]:
        """Fitted estimator, or the fields of the first sum that is not there."""
        settings = self._settings
        devices = Devices(settings["n_users"], settings["n_min"], settings["transport"])
        rows = SumRows(
            devices.total, settings["n_features"], self._rounds,
            self._collection._paid_for, self._collection._lineage, devices,
        )  # fmt: skip
        attempt = settings.get(f"attempt {len(self._rounds) + 1}", 0)
        fields = task_fields(settings, self._rounds, attempt)
        if not self._rounds:
            open_round(fields)  # before the charge, refuse what no device would answer
        fitted, needed = self.fitted(rows)
        return fitted, needed and fields

    def add(self, fields: "SumTask", user: Any, answer: bytes) -> None:
        """Refuse: shares go to the servers, and not to the analyst."""
        raise PrivacyError(
            "shares of users go to the two servers, or through the shuffler: an analyst who had "
            "them all would see each record. Pass what they give out to close_round."
        )

    def repeat(self) -> None:
        """Write down another attempt at the open round."""
        if self._settings["transport"] != TRANSPORTS[0]:
            raise PrivacyError(
                "shuffled shares have been seen, and a second round would show a second sum: "
                "begin another collection, which is charged again."
            )
        name = f"attempt {len(self._rounds) + 1}"
        attempt = self._settings.get(name, 0) + 1
        if attempt >= MOST_ATTEMPTS:
            raise PrivacyError(
                f"this round was tried {attempt} times, and devices answer no more attempts: "
                "begin another collection that counts on fewer users."
            )
        self._collection._step()
        self.write({name: attempt})

    def check_totals(
        self, fields: "SumTask", totals: tuple[bytes | list[bytes], ...], n: int | None
    ) -> dict[str, Any]:
        """Sum of what the servers give out, to be kept."""
        needed = open_round(fields).needed
        if fields["channel"]["transport"] == TRANSPORTS[0]:
            total, count = _of_servers(fields, totals, needed.size)
        else:
            total, count = _of_shuffler(fields, totals, needed, n)
        if not is_whole(count, fields["users"]["adding"], fields["users"]["n"]):
            raise PrivacyError(
                "fewer than n_min users have sent shares, or more than n_users: see repeat_round()."
            )
        return {f"answer {len(self._rounds) + 1}": [total.tolist(), count]}

    def taken(self, fields: "SumTask") -> tuple[np.ndarray, int]:
        """Sum of the open round, and how many users are in it."""
        total, n = self._settings[f"answer {len(self._rounds) + 1}"]
        return np.array(total, np.int64), int(n)


def _of_servers(fields: "SumTask", totals: Any, size: int) -> tuple[np.ndarray, int]:
    """Sum and number of users of what the two servers gave out."""
    try:
        read = [json.loads(total) for total in totals]
        proper = sorted(one["which"] for one in read) == [0, 1]
        proper &= all(one["task"] == fields["hash"] for one in read)
        parts = [np.frombuffer(base64.b64decode(one["total"]), "<u8") for one in read]
        proper &= all(len(part) == size for part in parts)
        same = len({(one["users"], one["n"]) for one in read}) == 1
    except (KeyError, RecursionError, TypeError, ValueError):
        proper = same = False
    if not proper:
        raise ValueError("two totals are expected, one of each server, for this round and attempt.")
    if not same:
        raise ValueError("the servers added up different users: let them agree on one list.")
    return summed_shares(np.array(parts)), read[0]["n"]


def _of_shuffler(
    fields: "SumTask", messages: Any, needed: Any, n: int | None
) -> tuple[np.ndarray, int]:
    """Sum of shuffled shares; a missing message would make its coordinate uniform, and is seen."""
    if len(messages) != 1:
        raise ValueError("one iterable of all messages of the round is expected.")
    total = [0] * needed.size
    counts = np.zeros(needed.size, int)
    for message in messages[0]:
        place, share = unpacked(fields, message, 1)
        if place >= needed.size:
            raise ValueError("a share names a coordinate that there is not.")
        total[place] = (total[place] + int(share[0])) % 2**MODULUS
        counts[place] += 1
    if not is_whole(n, 1, fields["users"]["n"]):
        raise ValueError(f"n={n!r} must be the number of users who have sent shares.")
    if not (counts == n * needed.shares).all():
        raise ValueError(
            f"{n} users send {n * needed.shares} shares of each coordinate, and another number "
            "came: a lost share makes its coordinate a random number. Begin another collection."
        )
    return np.array(total, np.uint64).view(np.int64), int(n)


TABLES = (
    "CREATE TABLE IF NOT EXISTS shares (user INTEGER PRIMARY KEY, share BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS task (only_one INTEGER PRIMARY KEY CHECK (only_one = 0), "
    "text TEXT)",
    "CREATE TABLE IF NOT EXISTS opened (collection TEXT, place INTEGER, round TEXT, users TEXT, "
    "total TEXT, PRIMARY KEY (collection, place))",
)
OPEN_TASK = (
    "INSERT INTO task VALUES (0, ?) ON CONFLICT (only_one) DO UPDATE SET text = excluded.text"
)
OPENINGS = "SELECT '', COUNT(*) FROM opened"


class ShareServer:
    """One of the two servers of ``privacy="aggregate"``: it adds up shares that tell it nothing.

    Parameters
    ----------
    which : {0, 1}
        The first or the second server.
    path : str or path-like
        An SQLite file in which every share is written before ``add`` returns; the same path goes on
        after a restart. A server that forgot would open a round twice, so that there is none
        without a file.

    Attributes
    ----------
    task : str or None
        The task that is open.
    users : list of int
        Who has reported to this server, in order.

    Notes
    -----
    **Privacy guarantee**: that of the task, as long as one of the two servers runs this code and
    keeps its shares to itself. It opens one sum of each round, of ``n_min`` users at least, and
    deletes the shares then: two sums of sets of users that differ by one would show that one. For
    whom a round is opened is on the disk before the sum is formed. A mark beside the file keeps the
    number of sums, so that a file that was put back alone is refused. Who
    answers must be known; a transport that checks who a user is, is not part of this class. Neither
    is encryption: messages must not be read on their way by who reads those of the other server.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.protocol import Collector, ShareServer, report
    >>> X = np.random.RandomState(0).uniform(-0.7, 0.7, size=(300, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=8.0, privacy="aggregate")
    >>> collector = Collector(model, n_users=300, seed=0, n_features=2)
    >>> folder = tempfile.TemporaryDirectory()
    >>> servers = [ShareServer(which, os.path.join(folder.name, f"{which}.db")) for which in (0, 1)]
    >>> while collector.task is not None:
    ...     for server in servers:
    ...         server.open(collector.task)
    ...     for user in range(300):
    ...         messages = report(collector.task, X[user], y[user], user=user)
    ...         for server, message in zip(servers, messages):
    ...             server.add(user, message)
    ...     both = sorted(set(servers[0].users) & set(servers[1].users))
    ...     collector.close_round(*(server.total(both) for server in servers))
    >>> bool(abs(collector.result().coef_ - [0.5, -0.5]).max() < 0.5)
    True
    >>> folder.cleanup()
    """

    def __init__(self, which: int, path: Any) -> None:
        if which not in (0, 1):
            raise ValueError(f"which={which!r} must be 0 or 1: there are two servers.")
        if path is None:
            raise ValueError("path=None: a server needs a file, since it must not forget.")
        self.which = int(which)
        self._store = Database(path, "share server", stays_open=True)
        self._store.prepare(*TABLES)
        self._store.history = OPENINGS
        task = self.task
        self._fields: Any = None if task is None else read_task(task)
        self._size = 0 if task is None else open_round(self._fields).needed.size

    @property
    def task(self) -> str | None:
        """The task that is open."""
        return next((text for (text,) in self._store.ask("SELECT text FROM task")), None)

    @property
    def users(self) -> list[int]:
        """Who has reported to this server."""
        return [user for (user,) in self._store.ask("SELECT user FROM shares ORDER BY user")]

    def open(self, task: str) -> None:
        """Take shares for a task from now on; those of another attempt are deleted unopened.

        Parameters
        ----------
        task : str
            Text of the task, which devices get, too.

        Raises
        ------
        ValueError
            If the text is no task of this kind.
        PrivacyError
            If this round has been opened, or one that followed it.
        """
        with self._store.lock:
            fields = read_task(task)
            if self._fields is not None and fields["hash"] == self._fields["hash"]:
                return
            opened = open_round(fields)
            if fields["channel"]["transport"] != "two-servers":
                raise ValueError("a server of two takes tasks of the transport 'two-servers'.")
            if self._opened(*place_of(fields)) is not None:
                raise PrivacyError("this round has been opened: there is one sum of each round.")
            for earlier, name in enumerate(rounds_of(fields)[:-1]):
                opening = self._opened(collection_of(fields), earlier)
                if opening is None or opening[0] != name:
                    raise PrivacyError("the task's past is not what this server has opened.")
            self._fields = None  # what is interrupted here is opened again
            with self._store.transaction() as connection:
                connection.execute("DELETE FROM shares")
                connection.execute(OPEN_TASK, (task,))
            self._size = opened.needed.size
            self._fields = fields

    def add(self, user: int, message: Any) -> None:
        """Keep the share of a user.

        Parameters
        ----------
        user : int
            Number of the user, from 0 to the number of users less 1.
        message : bytes
            What the device of the user made for this server.

        Raises
        ------
        ValueError
            If no task is open, the user is unknown or has reported, or the bytes are malformed, for
            another task, or for the other server. Nothing has changed then.
        """
        with self._store.lock:
            fields = self._open_fields()
            is_known(fields["users"], user)
            which, share = unpacked(fields, message, self._size)
            if which != self.which:
                raise ValueError(f"the share is for server {which}, and this is {self.which}.")
            with self._store.transaction() as connection:
                added = connection.execute(
                    "INSERT INTO shares VALUES (?, ?) ON CONFLICT (user) DO NOTHING",
                    (int(user), share.tobytes()),
                )
                if not added.rowcount:
                    raise ValueError(f"user {user} has reported: a second share is refused.")

    def total(self, users: Iterable[int]) -> bytes:
        """Sum of the shares of some users, and the end of the round: only one is ever given out.

        Parameters
        ----------
        users : iterable of int
            Those who have reported to both servers, as the two have agreed.

        Returns
        -------
        bytes
            A message for :meth:`skpriv.protocol.Collector.close_round`. Asked again for the same
            users it is the same.

        Raises
        ------
        PrivacyError
            If there are fewer than the task's ``n_min``, or the round was opened for other users.
        ValueError
            If one of them has not reported here.
        """
        with self._store.lock:
            wanted = sorted({int(user) for user in users})
            who = hashlib.sha256(json.dumps(wanted).encode()).hexdigest()
            fields = self._open_fields(closed=True)
            place = place_of(fields)
            name = rounds_of(fields)[-1]
            opening = self._opened(*place)
            if opening is None:
                self._open_for(wanted, (*place, name, who))
            elif opening[:2] != (name, who):
                raise PrivacyError("this round has been opened for other users: not twice.")
            elif opening[2] is not None:
                return str(opening[2]).encode()
            return self._formed(wanted, who, place).encode()

    def _open_for(self, users: list[int], opening: tuple[str, int, str, str]) -> None:
        """Write down for whom the round is opened, before their sum is formed."""
        adding = self._fields["users"]["adding"]
        if len(users) < adding:
            raise PrivacyError(
                f"{len(users)} users are fewer than the {adding} whose noise is counted on: "
                "repeat the round."
            )
        if not set(self.users) >= set(users):
            raise ValueError("a user of the list has not reported to this server.")
        self._store.write("INSERT INTO opened VALUES (?, ?, ?, ?, NULL)", *opening)

    def _formed(self, users: list[int], who: str, round_: tuple[str, int]) -> str:
        """Sum of the shares of a round that is opened, which are deleted then."""
        shares = dict(self._store.ask("SELECT user, share FROM shares"))
        total = np.zeros(self._size, np.uint64)
        with legible(self._store.path):
            for user in users:
                total += np.frombuffer(shares[user], np.uint64)
        text = base64.b64encode(total.astype("<u8").tobytes()).decode()
        answer = json.dumps({
            "task": self._fields["hash"], "which": self.which, "users": who, "n": len(users),
            "total": text,
        })  # fmt: skip
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE opened SET total = ? WHERE collection = ? AND place = ?", (answer, *round_)
            )
            connection.execute("DELETE FROM shares")
        self._store.ask("PRAGMA wal_checkpoint(TRUNCATE)")  # deleted shares would stay in the log
        return answer

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _open_fields(self, closed: bool = False) -> Any:
        if self._fields is None:
            raise ValueError("no task is open: open(task) comes first.")
        if not closed and self._opened(*place_of(self._fields)):
            raise ValueError("the round is closed: the share comes too late.")
        return self._fields

    def _opened(self, collection: str, place: int) -> Any:
        found = self._store.ask(
            "SELECT round, users, total FROM opened WHERE collection = ? AND place = ?",
            collection, place,
        )  # fmt: skip
        return found[0] if found else None
