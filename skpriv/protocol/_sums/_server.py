"""A server that adds up shares, and opens no more than one sum of each round."""

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..._sqlite import Database
from ...exceptions import PrivacyError
from ...privacy import is_known, read_task
from ._device import unpacked
from ._task import collection_of, open_round, rounds_of

TABLES = (
    "CREATE TABLE IF NOT EXISTS shares (user INTEGER PRIMARY KEY, share BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS task (only_one INTEGER PRIMARY KEY CHECK (only_one = 0), "
    "text TEXT)",
    "CREATE TABLE IF NOT EXISTS opened (collection TEXT, place INTEGER, round TEXT, users TEXT, "
    "total TEXT, PRIMARY KEY (collection, place))",
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
        self.which, self._store = int(which), Database(path, "share server", kept=True)
        self._store.create()
        self._store.checked()
        with self._store.transaction() as connection:
            for table in TABLES:
                connection.execute(table)
        self._store.history = OPENINGS
        task = self.task
        self._fields: Any = None if task is None else read_task(task)
        self._size = 0 if task is None else open_round(self._fields).needed.size

    @property
    def task(self) -> str | None:
        """The task that is open."""
        found = self._store.ask("SELECT text FROM task")
        return found[0][0] if found else None

    @property
    def users(self) -> list[int]:
        """Who has reported to this server."""
        return [user for (user,) in self._store.ask("SELECT user FROM shares ORDER BY user")]

    def open(self, task: str) -> None:
        """Take shares for a task from now on; those of another attempt are deleted unopened.

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
            place = len(fields["answers"])
            if self._opened(collection_of(fields), place) is not None:
                raise PrivacyError("this round has been opened: there is one sum of each round.")
            for earlier, name in enumerate(rounds_of(fields)[:-1]):
                known = self._opened(collection_of(fields), earlier)
                if known is None or known[0] != name:
                    raise PrivacyError("the task's past is not what this server has opened.")
            with self._store.transaction() as connection:
                connection.execute("DELETE FROM shares")
                connection.execute("INSERT OR REPLACE INTO task VALUES (0, ?)", (task,))
            self._fields, self._size = fields, opened.needed.size

    def add(self, user: int, message: Any) -> None:
        """Keep the share of a user.

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
                    "INSERT OR IGNORE INTO shares VALUES (?, ?)", (int(user), share.tobytes())
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
            collection, place = collection_of(fields), len(fields["answers"])
            known = self._opened(collection, place)
            if known is None:
                self._open_for(wanted, (collection, place, rounds_of(fields)[-1], who))
            elif known[:2] != (rounds_of(fields)[-1], who):
                raise PrivacyError("this round has been opened for other users: not twice.")
            elif known[2] is not None:
                return known[2].encode()
            return self._formed(wanted, who, (collection, place)).encode()

    def _open_for(self, users, opening):
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

    def _formed(self, users, who, round_):
        """Sum of the shares of a round that is opened, which are deleted then."""
        shares = dict(self._store.ask("SELECT user, share FROM shares"))
        total = np.zeros(self._size, dtype=np.uint64)
        for user in users:
            total += np.frombuffer(shares[user], dtype=np.uint64)
        answer = json.dumps(
            {
                "task": self._fields["hash"], "which": self.which, "users": who, "n": len(users),
                "total": base64.b64encode(total.astype("<u8").tobytes()).decode(),
            }
        )  # fmt: skip
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE opened SET total = ? WHERE collection = ? AND place = ?", (answer, *round_)
            )
            connection.execute("DELETE FROM shares")
        self._store.ask("PRAGMA wal_checkpoint(TRUNCATE)")  # where deleted shares would stay
        return answer

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _open_fields(self, closed=False):
        if self._fields is None:
            raise ValueError("no task is open: open(task) comes first.")
        if not closed and self._opened(collection_of(self._fields), len(self._fields["answers"])):
            raise ValueError("the round is closed: the share comes too late.")
        return self._fields

    def _opened(self, collection, place):
        found = self._store.ask(
            "SELECT round, users, total FROM opened WHERE collection = ? AND place = ?",
            collection, place,
        )  # fmt: skip
        return found[0] if found else None
