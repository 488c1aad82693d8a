"""What a collector must not lose: its settings, the reports, and which rounds are closed."""

import json

from .._sqlite import Database

TABLES = (
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS reports (user INTEGER PRIMARY KEY, round INTEGER NOT NULL, "
    "seed BLOB NOT NULL, direction INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS closed (round INTEGER PRIMARY KEY)",
)


class Store(Database):
    """Reports on disk, each written before it is acknowledged; safe in several threads.

    Parameters
    ----------
    path : str or path, or None
        An SQLite file; None keeps all in memory.
    """

    def __init__(self, path):
        super().__init__(path, "collection", kept=True)
        self.create()
        self.checked()
        with self.transaction() as connection:
            for table in TABLES:
                connection.execute(table)

    def settings(self):
        """Settings of the collection, None if there is none yet."""
        rows = dict(self.ask("SELECT name, value FROM settings"))
        return {name: json.loads(value) for name, value in rows.items()} or None

    def write_settings(self, settings):
        """Write settings, all or none; those that are there are replaced."""
        rows = [(name, json.dumps(value)) for name, value in settings.items()]
        with self.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    def take_over(self, owner):
        """Make this connection the file's only one; `owned` is false for those before it."""
        self._owner = owner
        self.write_settings({"owner": owner})

    def owned(self):
        """Whether nobody has taken the file over."""
        return self.ask("SELECT value FROM settings WHERE name = 'owner'") == [
            (json.dumps(self._owner),)
        ]

    def has(self, user):
        """Round in which a user has answered, or None."""
        found = self.ask("SELECT round FROM reports WHERE user = ?", user)
        return found[0][0] if found else None

    def add(self, round_, user, seed, index):
        """Keep a report."""
        self.write("INSERT INTO reports VALUES (?, ?, ?, ?)", user, round_, seed, index)

    def reports(self, round_):
        """(seed, index) of the reports of a round, by the users' numbers."""
        return self.ask("SELECT seed, direction FROM reports WHERE round = ? ORDER BY user", round_)

    def count(self, round_):
        """Number of reports of a round."""
        return self.ask("SELECT COUNT(*) FROM reports WHERE round = ?", round_)[0][0]

    def close_round(self, round_):
        """Take no more reports of a round."""
        self.write("INSERT OR IGNORE INTO closed VALUES (?)", round_)

    def closed(self):
        """Number of rounds that are closed."""
        return self.ask("SELECT COUNT(*) FROM closed")[0][0]
