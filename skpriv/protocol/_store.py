"""What a collector must not lose: its settings, the reports, and which rounds are closed."""

import json
import sqlite3
from threading import RLock

TABLES = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reports (
    user INTEGER PRIMARY KEY, round INTEGER NOT NULL, seed BLOB NOT NULL, direction INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS closed (round INTEGER PRIMARY KEY);
"""


class Store:
    """Reports on disk, each written before it is acknowledged; safe in several threads.

    Parameters
    ----------
    path : str or path
        An SQLite file, or ":memory:".
    """

    def __init__(self, path):
        self.lock = RLock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.executescript(TABLES)

    def settings(self):
        """Settings of the collection, None if there is none yet."""
        rows = dict(self._query("SELECT name, value FROM settings"))
        return {name: json.loads(value) for name, value in rows.items()} or None

    def write(self, settings):
        """Write settings; those that are there are replaced."""
        for name, value in settings.items():
            self._query("INSERT OR REPLACE INTO settings VALUES (?, ?)", name, json.dumps(value))

    def take_over(self, owner):
        """Make this connection the file's only one; `owned` is false for those before it."""
        self._owner = owner
        self.write({"owner": owner})

    def owned(self):
        """Whether nobody has taken the file over."""
        return self._query("SELECT value FROM settings WHERE name = 'owner'") == [
            (json.dumps(self._owner),)
        ]

    def has(self, user):
        """Round in which a user has answered, or None."""
        found = self._query("SELECT round FROM reports WHERE user = ?", user)
        return found[0][0] if found else None

    def add(self, round_, user, seed, index):
        """Keep a report."""
        self._query("INSERT INTO reports VALUES (?, ?, ?, ?)", user, round_, seed, index)

    def reports(self, round_):
        """(seed, index) of the reports of a round, by the users' numbers."""
        return self._query(
            "SELECT seed, direction FROM reports WHERE round = ? ORDER BY user", round_
        )

    def count(self, round_):
        """Number of reports of a round."""
        return self._query("SELECT COUNT(*) FROM reports WHERE round = ?", round_)[0][0]

    def close_round(self, round_):
        """Take no more reports of a round."""
        self._query("INSERT OR IGNORE INTO closed VALUES (?)", round_)

    def closed(self):
        """Number of rounds that are closed."""
        return self._query("SELECT COUNT(*) FROM closed")[0][0]

    def close(self):
        """Close the file."""
        with self.lock:
            self._database.close()

    def _query(self, text, *values):
        with self.lock:
            return self._database.execute(text, values).fetchall()
