"""The file of a service: events, and the policy as of the last one that was learned."""

import sqlite3
from contextlib import contextmanager
from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS policy (only INTEGER PRIMARY KEY CHECK (only = 0), version INTEGER, state BLOB);
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    time REAL NOT NULL,
    action INTEGER NOT NULL,
    propensity REAL NOT NULL,
    contexts BLOB,
    reward REAL,
    learned INTEGER NOT NULL DEFAULT 0  -- 1: with the default reward, 2: with its own
);
CREATE INDEX IF NOT EXISTS open_events ON events (number) WHERE learned = 0;
"""  # noqa: E501
BUSY = 120.0  # seconds that a process waits for another one


class Store:
    """One SQLite file in write-ahead mode; a connection for every operation.

    Parameters
    ----------
    path : str or path-like
    """

    def __init__(self, path):
        self.path = str(Path(path).resolve())
        with self._connected() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(SCHEMA)

    @contextmanager
    def _connected(self):
        connection = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None)
        try:
            # An acknowledged event survives a crash of the machine, not only of the process.
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        finally:
            connection.close()

    @contextmanager
    def transaction(self):
        """Hold the file; committed at the end, rolled back by an exception or a crash."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def reading(self):
        """Look without holding the file."""
        with self._connected() as connection:
            yield Transaction(connection)


class Transaction:
    """What may be asked and written."""

    def __init__(self, connection):
        self._run = connection.execute

    def version(self):
        """Number of the saved policy; None if there is none."""
        row = self._run("SELECT version FROM policy").fetchone()
        return None if row is None else row[0]

    def state(self):
        """Saved policy."""
        return self._run("SELECT state FROM policy").fetchone()[0]

    def save(self, version, state):
        """Save the policy."""
        self._run("INSERT OR REPLACE INTO policy VALUES (0, ?, ?)", (version, state))

    def find(self, event_id):
        """(action, propensity, learned, reward, time) of an event, or None."""
        query = "SELECT action, propensity, learned, reward, time FROM events WHERE id = ?"
        return self._run(query, (event_id,)).fetchone()

    def add(self, event_id, time, action, propensity, contexts):
        """Add an event whose reward is awaited."""
        self._run(
            "INSERT INTO events (id, time, action, propensity, contexts) VALUES (?, ?, ?, ?, ?)",
            (event_id, time, action, propensity, contexts),
        )

    def set_reward(self, event_id, reward):
        """Note the reward of an event."""
        self._run("UPDATE events SET reward = ? WHERE id = ?", (reward, event_id))

    def closed(self, deadline, limit):
        """Open events from the first on, up to one that still waits: (number, contexts, ...)."""
        rows = self._run(
            "SELECT number, contexts, action, reward, time FROM events WHERE learned = 0 "
            "ORDER BY number LIMIT ?",
            (limit,),
        ).fetchall()
        for place, (*_, reward, time) in enumerate(rows):
            if reward is None and time > deadline:
                return rows[:place]
        return rows

    def forget(self, last):
        """Mark events as learned, and remove their contexts and rewards."""
        self._run(
            "UPDATE events SET learned = 1 + (reward IS NOT NULL), contexts = NULL, reward = NULL "
            "WHERE learned = 0 AND number <= ?",
            (last,),
        )

    def counts(self):
        """Numbers of events and of those that were learned."""
        query = "SELECT count(*), coalesce(sum(learned > 0), 0) FROM events"
        return tuple(self._run(query).fetchone())
