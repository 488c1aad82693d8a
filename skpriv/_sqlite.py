"""SQLite files that must not lose an entry: how they are opened, written and checked."""

import json
import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from sqlite3 import Connection, OperationalError
from threading import RLock, get_ident
from time import monotonic, sleep
from typing import Any

from .exceptions import PrivacyError, SkprivError, StorageError

__all__ = ["Connection", "Database", "OperationalError", "legible"]

DAMAGED = "The file {} is no {} of skpriv, or it is damaged ({}). Give another path, or a backup."
# Views, triggers, tables of modules, and what indices and columns compute run what whoever wrote
# the file has put there, without end; and a rule such as UNIQUE ON CONFLICT REPLACE removes
# entries. So no table has brackets in its brackets, but those of skpriv's own keys and rows. The
# keys and types that are left refuse what is written, since each statement names the key that it
# may meet.
PROGRAMS = """
SELECT 1 FROM sqlite_master WHERE type != 'table' AND sql IS NOT NULL
OR sql LIKE 'CREATE VIRTUAL%' OR sql LIKE '%CONFLICT%' OR sql LIKE '%COLLATE%'
OR sql LIKE '%REFERENCES%' OR replace(replace(replace(replace(replace(sql,
'CHECK (only = 0)', ''), 'CHECK (only_one = 0)', ''), 'PRIMARY KEY (collection, place)', ''),
'PRIMARY KEY (object, number)', ''), 'PRIMARY KEY (object, person, place)', '') LIKE '%(%(%' LIMIT 1
"""
PROGRAMS_FOUND = (
    "The file {1} is no {0} of skpriv, or it is damaged (it holds programs), or its tables, of "
    "version {2}, are those of another skpriv. Give another path, or a backup."
)
PUT_BACK = (
    "The {} {} lacks entries that it had before, as a copy that was made earlier does. What it has "
    "forgotten could happen twice: put the newest file back."
)
MOST_OF_MARK = 10_000  # bytes that are read of a mark, which has about 50

# Identity and entries of a file as this process has seen them: a mark can be put back, too
_LAST_ENTRIES: dict[Any, Any] = {}

FORK_WAIT = 5.0  # seconds that a fork waits at most for threads that are in a file
_gate = RLock()  # which a thread holds while it forks
_in_files: set[int] = set()  # the numbers of threads that are in a file


@contextmanager
def _entered() -> Iterator[None]:
    """List this thread as one that is in a file; it waits for a fork unless it is in another."""
    thread = get_ident()
    if thread in _in_files:
        yield
        return
    try:
        with _gate:
            _in_files.add(thread)
        yield
    finally:
        _in_files.discard(thread)


def _before_fork() -> None:
    """Wait until no other thread is in a file: SQLite in the child would wait for that thread."""
    _gate.acquire()
    end = monotonic() + FORK_WAIT
    while _in_files - {get_ident()} and monotonic() < end:
        sleep(0.001)


def _in_child() -> None:
    _in_files.clear()
    _gate.release()


if os.name == "posix":
    os.register_at_fork(
        before=_before_fork, after_in_parent=_gate.release, after_in_child=_in_child
    )


@contextmanager
def legible(path: Any) -> Iterator[None]:
    """Name the file in every error of code that reads its cells: anybody may have written them."""
    try:
        yield
    except (SkprivError, sqlite3.Error):
        raise
    except Exception as error:
        raise PrivacyError(
            f"A value in the file {path} cannot be read: another version of skpriv wrote it, or it "
            "was changed. Put the newest file back, go on with the skpriv that wrote it, or give "
            "another path."
        ) from error


class Database:
    """An SQLite file: a transaction that has ended survives a loss of power.

    Parameters
    ----------
    path : str, path-like or None
        None keeps all in memory, as long as this object lives.
    kind : str
        What the file is, for the text of errors.
    stays_open : bool, default=False
        Whether the process keeps one connection to a file in write-ahead mode. Otherwise every
        transaction opens the file anew.
    gone : str, default="The {kind} {path} is gone."
        What is said where the file is missing and may not be made.
    history : str, default=None
        Query of (identity, number of entries), where entries are only ever added. A mark beside the
        file keeps the last number, so that a file that was put back alone is refused.
    """

    factory: Any = Connection  # class of the connections

    def __init__(
        self, path: Any, kind: str, *, stays_open: bool = False, gone: str = "", history: str = ""
    ) -> None:
        self.path = None if path is None else str(Path(path).resolve())
        self.kind = kind
        self.stays_open = stays_open or path is None
        self.gone = gone or f"The {kind} {self.path} is gone."
        self.history = history
        self._lock = RLock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None

    @property
    def lock(self) -> Any:
        """Lock of this process: a forked one opens a connection of its own, and waits for none of
        the threads that it does not have."""
        if self._process != os.getpid():
            self._inherited = self._connection
            self._lock = RLock()
            self._connection = None
            self._process = os.getpid()  # last: an interrupt before it lets all be done again
        return self._lock

    def create(self) -> None:
        """Make the file if there is none. It appears at its path only when it is complete."""
        path = self.path
        if path is None or os.path.isfile(path):
            return
        if os.path.isdir(path) or not Path(path).parent.is_dir():
            raise StorageError(
                f"The {self.kind} must be a file, in a folder that exists, and {path} is not."
            )
        fresh = f"{path}.{uuid.uuid4().hex}"
        try:
            with (
                self._named_errors(),
                closing(sqlite3.connect(fresh, isolation_level=None)) as connection,
            ):
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA application_id = 0x736B7072")  # "skpr"
            with suppress(FileExistsError):  # another process was faster
                try:
                    os.link(fresh, path)
                except OSError:  # no hard links here; nor may this file take the place of another
                    with open(path, "xb") as file:
                        file.write(Path(fresh).read_bytes())
        finally:
            Path(fresh).unlink(missing_ok=True)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Hold the file: what was written is on the disk at the end, or undone by an exception."""
        with self.reading() as connection:
            try:  # so that no interrupt leaves a transaction open
                connection.execute("BEGIN IMMEDIATE")
                before = self._entries(connection)
                yield connection
                after = self._entries(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if after != before:
                _LAST_ENTRIES[self.path] = after
                self._write_mark(after)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Read the file while others may write to it."""
        with _entered(), self.lock, self._named_errors():
            connection = self._connection or self._opened()
            try:
                self._check_history(connection)
                yield connection
            finally:
                if self.stays_open:
                    self._connection = connection
                else:
                    connection.close()

    def checked(self) -> None:
        """Refuse a file in which SQLite finds damage."""
        with self.reading() as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise PrivacyError(DAMAGED.format(self.path, self.kind, "its pages contradict"))

    def prepare(self, *tables: str) -> None:
        """Make the file and its tables, where there are none, and refuse one that is damaged."""
        self.create()
        self.checked()
        with self.transaction() as connection:
            for table in tables:
                connection.execute(table)

    def ask(self, text: str, *values: Any) -> Any:
        """All rows that an SQL query finds."""
        with self.reading() as connection:
            return connection.execute(text, values).fetchall()

    def write(self, text: str, *values: Any) -> None:
        """Run one SQL statement as a transaction."""
        with self.transaction() as connection:
            connection.execute(text, values)

    def close(self) -> None:
        """Close the connection, if one is kept open."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:  # Python warns of connections that nobody closes
        if getattr(self, "_connection", None) is not None:
            self.close()

    def _opened(self) -> Any:
        path = self.path
        if path is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if not os.path.isfile(path):
            raise PrivacyError(self.gone)
        if not os.path.getsize(path):
            raise PrivacyError(
                f"The {self.kind} {path} is empty, as a file that was cut off is. Put its last "
                "copy back, or remove it to begin anew."
            )
        # A process waits up to two minutes until another one has ended its transaction.
        connection = sqlite3.connect(
            f"{Path(path).as_uri()}?mode=rw",
            uri=True, timeout=120.0, isolation_level=None, check_same_thread=False,
            factory=self.factory,
        )  # fmt: skip
        try:
            if self.stays_open:
                connection.execute("PRAGMA journal_mode = WAL")
                # In 16 MB of memory there is room for the indices of a million events.
                connection.execute("PRAGMA cache_size = -16384")
            # Beyond FULL, the folder is synced after a journal was removed: no loss of power
            # undoes a commit.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA secure_delete = ON")
            # An error of SQLite quotes a text that is none, which may be a person's
            connection.text_factory = partial(str, encoding="utf-8", errors="backslashreplace")
            for _ in connection.execute(PROGRAMS):
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                raise PrivacyError(PROGRAMS_FOUND.format(self.kind, path, version))
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into sentences that name the file."""
        try:
            yield
        except sqlite3.OperationalError as error:  # locked, read-only, a full disk
            raise StorageError(
                f"The {self.kind} {self.path} cannot be read or written ({error}). What was not "
                "acknowledged was not kept."
            ) from error
        except sqlite3.DatabaseError as error:
            raise PrivacyError(DAMAGED.format(self.path, self.kind, error)) from error

    def _entries(self, connection: Connection) -> Any:
        return connection.execute(self.history).fetchone() if self.history else None

    def _check_history(self, connection: Connection) -> None:
        """Refuse a file that has fewer entries than the mark beside it says."""
        if self.history:
            earlier = [self._marked(), _LAST_ENTRIES.get(self.path)]
            now = self._entries(connection)  # after these
            if any(one and now and one[0] == now[0] and now[1] < one[1] for one in earlier):
                raise PrivacyError(PUT_BACK.format(self.kind, self.path))

    def _marked(self) -> Any:
        """Identity and number of entries in the mark, or None where there is no mark."""
        try:
            with open(f"{self.path}.mark", "rb") as file:
                content = file.read(MOST_OF_MARK)
        except OSError:
            return None
        if not content.strip(b"\0"):  # a loss of power leaves such a file, which was not synced
            return None
        with suppress(RecursionError, TypeError, ValueError):
            identity, number = json.loads(content)
            if type(identity) is str and type(number) is int:
                return identity, number
        raise PrivacyError(
            f"The mark {self.path}.mark is damaged, or is no mark of skpriv. It says how many "
            f"entries the {self.kind} beside it must have. If that file is the newest one, and no "
            "earlier copy, remove the mark: the next entry makes it again."
        )

    def _write_mark(self, entries: Any) -> None:
        """Write the number of entries into the mark beside the file. It is not synced."""
        fresh = Path(f"{self.path}.{uuid.uuid4().hex}")
        with suppress(OSError):  # the entry itself is in the file
            fresh.write_text(json.dumps(entries, default=str), "utf-8")
            os.replace(fresh, f"{self.path}.mark")
