"""The file of a service: events, and the policy as of the last ones that were learned."""

from contextlib import contextmanager

from ..._sqlite import Database

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
# Events before it have their rewards, or have passed the cutoff of whoever learns them.
CLOSED = (
    "CREATE TABLE IF NOT EXISTS closed (only INTEGER PRIMARY KEY CHECK (only = 0), first INTEGER)"
)
CAME = "number >= ? AND learned = 0 AND (reward IS NOT NULL OR time <= ?)"
# Of the file; 3 had no hash of the policy, 2 kept the rounds of people, and 1 all contexts.
EVENTS_VERSION = 4


class Store(Database):
    """The file of a service, with one connection of the process for all of its threads.

    Parameters
    ----------
    path : str or path-like
    """

    def __init__(self, path):
        super().__init__(path, "file of Loop", kept=True)
        self.create()
        self.checked()
        with self.transaction() as held:
            held.prepare()

    @contextmanager
    def transaction(self):
        """Hold the file; committed at the end, rolled back by an exception or a crash."""
        with super().transaction() as connection:
            yield Transaction(connection)

    @contextmanager
    def looking(self):
        """Look without holding the file."""
        with self.reading() as connection:
            yield Transaction(connection)

    def backup(self, path):
        """Copy the file as of one instant."""
        copy = Database(path, "backup")
        copy.create()
        with self.reading() as connection, copy.reading() as other:
            connection.backup(other)


class Transaction:
    """What may be asked and written."""

    def __init__(self, connection):
        self._run = connection.execute

    def prepare(self):
        """Make the tables, once, and refuse a file of another version."""
        version = self._one("PRAGMA user_version")
        if version != EVENTS_VERSION:
            if version or self._one("SELECT count(*) FROM sqlite_master"):
                raise ValueError(
                    f"the file has another version of the format of Loop than {EVENTS_VERSION}: "
                    "let the skpriv that wrote it learn its events, and begin a new file."
                )
            for statement in SCHEMA.split(";\n"):
                self._run(statement)
            self._run(f"PRAGMA user_version = {EVENTS_VERSION}")
        self._run(CLOSED)

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

    def close(self, first):
        """Take no more rewards of the events before this one."""
        self._run("INSERT OR REPLACE INTO closed VALUES (0, ?)", (first,))

    def first_not_closed(self):
        """Number of the first event whose reward may still be taken."""
        return self._one("SELECT max(first, ifnull((SELECT first FROM closed), 0)) FROM policy")

    def last(self):
        """Number of the last event: how many there are."""
        return self._one("SELECT max(number) FROM events") or 0

    def last_time(self):
        """Seconds at which the last event was ranked, or None."""
        return self._one("SELECT time FROM events ORDER BY number DESC LIMIT 1")

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
