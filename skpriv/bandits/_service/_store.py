"""The file of a service: events, and the policy as of the last ones that were learned."""

import os
import sqlite3
import threading
from contextlib import closing, contextmanager
from pathlib import Path

SCHEMA = """
CREATE TABLE policy (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    version INTEGER,
    first INTEGER,  -- number of the first event that was not learned
    state BLOB
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- without gaps: what is rolled back takes none
    id TEXT UNIQUE NOT NULL,
    time REAL NOT NULL,
    action INTEGER NOT NULL,
    propensity REAL NOT NULL,
    row BLOB,  -- features of the action that was chosen, until they are learned
    reward REAL,
    player INTEGER,  -- which policy of a combiner acted
    user BLOB,  -- keyed hash
    learned INTEGER NOT NULL DEFAULT 0  -- 1: with the default reward, 2: with its own
);
CREATE TABLE troubles (time REAL, sentence TEXT);
"""  # noqa: E501
CAME = "number >= ? AND learned = 0 AND (reward IS NOT NULL OR time <= ?)"
EVENTS_VERSION = 3  # of the file; 2 kept the rounds of people, and 1 the contexts of all actions


class Connection:
    """A connection that is closed when the last one forgets it."""

    def __init__(self, path):
        self.process = os.getpid()
        # A process waits up to two minutes for another one
        self.raw = sqlite3.connect(
            path, timeout=120.0, isolation_level=None, check_same_thread=False
        )
        # An acknowledged event survives a crash of the machine, not only of the process.
        self.raw.execute("PRAGMA synchronous = FULL")
        # 16 MB of the file in memory hold the indices of a million events
        self.raw.execute("PRAGMA cache_size = -16384")

    def __del__(self):
        # A connection that a fork has copied belongs to the other process.
        if hasattr(self, "raw") and self.process == os.getpid():
            self.raw.close()


class Store:
    """One SQLite file in write-ahead mode; one connection for every thread.

    Parameters
    ----------
    path : str or path-like
    """

    def __init__(self, path):
        self.path = str(Path(path).resolve())
        self._threads = threading.local()
        self._connection().execute("PRAGMA journal_mode = WAL")
        with self.transaction() as held:
            held.prepare()

    def _connection(self):
        kept = getattr(self._threads, "kept", None)
        if kept is None or kept.process != os.getpid():
            if kept is not None:
                self._threads.inherited = kept  # never closed here: it is the other process's
            kept = self._threads.kept = Connection(self.path)
        return kept.raw

    @contextmanager
    def transaction(self):
        """Hold the file; committed at the end, rolled back by an exception or a crash."""
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield Transaction(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def reading(self):
        """Look without holding the file."""
        return Transaction(self._connection())

    def backup(self, path):
        """Copy the file as of one instant."""
        with closing(sqlite3.connect(str(path))) as copy:
            self._connection().backup(copy)

    def __getstate__(self):
        return {"path": self.path}

    def __setstate__(self, state):
        type(self).__init__(self, state["path"])


class Transaction:
    """What may be asked and written."""

    def __init__(self, connection):
        self._run = connection.execute

    def prepare(self):
        """Make the tables, once, and refuse a file of another version."""
        version = self._one("PRAGMA user_version")
        if version == EVENTS_VERSION:
            return
        if version or self._one("SELECT count(*) FROM sqlite_master"):
            raise ValueError(
                f"the file has another version of the format of Loop than {EVENTS_VERSION}: let "
                "the skpriv "
                "that wrote it learn its events, and begin a new file."
            )
        for statement in SCHEMA.split(";\n"):
            self._run(statement)
        self._run(f"PRAGMA user_version = {EVENTS_VERSION}")

    def _one(self, query, *given):
        row = self._run(query, given).fetchone()
        return None if row is None else row[0]

    def version(self):
        """Number of the saved policy; None if there is none."""
        return self._one("SELECT version FROM policy")

    def state(self):
        """Saved policy."""
        return self._one("SELECT state FROM policy")

    def save(self, version, first, state):
        """Save the policy, which has learned the events before the first one."""
        self._run("INSERT OR REPLACE INTO policy VALUES (0, ?, ?, ?)", (version, first, state))

    def find(self, event_id):
        """(action, propensity, learned, reward, time, number) of an event, or None."""
        query = "SELECT action, propensity, learned, reward, time, number FROM events WHERE id = ?"
        return self._run(query, (event_id,)).fetchone()

    def add(self, *event):
        """Add an event whose reward is awaited."""
        self._run(
            "INSERT INTO events (id, time, action, propensity, row, player, user) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            event,
        )

    def set_reward(self, number, reward):
        """Note the reward of an event."""
        self._run("UPDATE events SET reward = ? WHERE number = ?", (reward, number))

    def first_open(self):
        """Number of the first event that was not learned, or that of the next one to come."""
        return self._one("SELECT first FROM policy")

    def last(self):
        """Number of the last event: how many there are."""
        return self._one("SELECT max(number) FROM events") or 0

    def first_waiting(self, start, deadline):
        """Number of the first event from ``start`` on that may still get a reward."""
        waiting = self._one(
            "SELECT number FROM events WHERE number >= ? AND reward IS NULL AND time > ? "
            "ORDER BY number LIMIT 1",
            start,
            deadline,
        )
        return self.last() + 1 if waiting is None else waiting

    def events(self, start, stop):
        """Columns (rows, actions, rewards, players, users, ids) of the open events in a range."""
        return self._columns("number >= ? AND number < ?", start, stop)

    def _columns(self, which, *given):
        query = f"SELECT row, action, reward, player, user, id FROM events WHERE {which}"
        found = self._run(f"{query} ORDER BY number", given).fetchall()
        return tuple(zip(*found, strict=True)) if found else ((),) * 6

    def forget(self, start, stop):
        """Mark events as learned, and remove their features, rewards and users."""
        self._forget("number >= ? AND number < ?", start, stop)

    def _forget(self, which, *given):
        self._run(
            "UPDATE events SET learned = 1 + (reward IS NOT NULL), row = NULL, reward = NULL, "
            f"user = NULL WHERE {which}",
            given,
        )

    def oldest(self, start):
        """Number of the oldest event that was not learned, from ``start`` on, or the next one."""
        query = "SELECT min(number) FROM events WHERE number >= ? AND learned = 0"
        found = self._one(query, start)
        return self.last() + 1 if found is None else found

    def came(self, start, deadline):
        """Columns as of `events`, of those from ``start`` on with a reward or past the deadline."""
        return self._columns(CAME, start, deadline)

    def forget_came(self, start, deadline):
        """Mark the events of `came` as learned, and remove what they hold."""
        self._forget(CAME, start, deadline)

    def note(self, time, sentence):
        """Keep what went wrong, the last hundred times."""
        self._run("INSERT INTO troubles VALUES (?, ?)", (time, sentence))
        self._run(
            "DELETE FROM troubles WHERE rowid NOT IN "
            "(SELECT rowid FROM troubles ORDER BY rowid DESC LIMIT 100)"
        )

    def troubles(self):
        """What went wrong, the last one last: (seconds, sentence)."""
        return self._run("SELECT time, sentence FROM troubles ORDER BY rowid").fetchall()
