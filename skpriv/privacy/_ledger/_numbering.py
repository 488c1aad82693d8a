"""Numbers of the answers that an object has given, so that no copy of it gives another one."""

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._codec import decoded, encoded, parsed
from ..._sqlite import Database, OperationalError, legible
from ..._stored import set_state, stored_in_policies
from ...exceptions import PrivacyError
from ._accountant import BudgetAccountant, active, charged_once
from ._context import folders

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from ..._sqlite import Connection
    from ._accountant import Handle

_ASK = "SELECT answer FROM answers WHERE object = ? AND number = ?"
# An answer that was given stays
_ANSWER = "INSERT INTO answers VALUES (?, ?, ?) ON CONFLICT (object, number) DO NOTHING"
# An answer with the number -1 shows that this file is the one that keeps the object's answers.
_BEGIN = "INSERT INTO answers VALUES (?, -1, NULL)"
_BEGUN = "SELECT 1 FROM answers WHERE object = ? AND number = -1"
_ANSWER_TABLES = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(object TEXT, number INTEGER, answer BLOB, PRIMARY KEY (object, number))",
    "CREATE TABLE IF NOT EXISTS visits (object TEXT, person BLOB, place INTEGER, "
    "PRIMARY KEY (object, person, place)) WITHOUT ROWID",
)
_COUNT = "SELECT count(*), total(place = ?) FROM visits WHERE object = ? AND person = ?"
_VISIT = "INSERT INTO visits VALUES (?, ?, ?) ON CONFLICT (object, person, place) DO NOTHING"
_SEEN = "SELECT 1 FROM visits WHERE object = ? AND person = ? AND place = ?"
_GONE = (
    "The file {} is gone, in which the answers of this object and its copies are numbered: one "
    "that was made before could be drawn again. Put the file back, make the object under a "
    "BudgetAccountant with a 'ledger' that lasts, or start afresh."
)
_FORKED = (
    "This object was copied by a fork of its process, where its answers cannot be told from those "
    "of the original, or while another thread used it: pickle it, or make it in the new process."
)


class TurnLock:
    """Lock by which the threads of a process take turns with an object; copies have their own.

    A fork copies it with its object. If a thread held it then, the object was copied in the midst
    of a turn, and is refused. Whether the new process waits for a thread that it does not have, or
    gives its number to another one, does not matter: each process has a lock of its own.
    """

    def __init__(self) -> None:
        self._locks: dict[int, Any] = {}
        self._process = 0  # whose turn it is
        self._depth = 0  # how often it was entered

    def __enter__(self) -> None:
        process = os.getpid()
        if self._depth and self._process != process:
            raise PrivacyError(_FORKED)
        self._locks.setdefault(process, RLock()).acquire()
        self._process = process
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        self._locks[self._process].release()

    def __reduce__(self) -> Any:
        return TurnLock, ()


@stored_in_policies
class Hashed(bytes):
    """Keyed hash of a person's name, or the key, by which others could find out who has come."""


@stored_in_policies
class _Place:
    """The file in which the answers of an object are numbered, once the object was copied."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.ledgers = [accountant.ledger.path for accountant in reversed(active())]
        self.path: str | None = None
        self.name = ""  # under which the file has the answer of number -1

    def check(self) -> None:
        if self.path is None and os.getpid() != self.process:
            raise PrivacyError(_FORKED)
        if self.path is not None and not os.path.isfile(self.path):
            raise PrivacyError(_GONE.format(self.path))

    def made_key(self) -> bytes:
        """Key of hashes, made when it is used, or is to be copied, for the first time."""
        key: bytes = vars(self).setdefault("key", Hashed(os.urandom(32)))
        return key

    def share(self, name: str) -> None:
        """Use a file from now on, which copies can read."""
        self.check()
        if self.path is not None:
            return
        living = [path for path in self.ledgers if os.path.isfile(path)]
        database = _file_of_answers(living[0]) if living else _own_file(name)
        with database.transaction() as connection:
            for statement in _ANSWER_TABLES:
                connection.execute(statement)
            connection.execute(_BEGIN, (name,))
        self.path = database.path
        self.name = name

    def expect(self, connection: "Connection", query: str, *given: Any) -> None:
        """Refuse a file in which something is missing that was written down before."""
        found = None
        with suppress(OperationalError):  # the file has no such table
            found = connection.execute(query, given).fetchone()
        if found is None:
            raise PrivacyError(
                f"The file {self.path} was made again, or put back as it was before: answers of "
                "this object, which may have been shown, are not in it. Put the newest file back, "
                "or start afresh."
            )

    @contextmanager
    def file(self) -> "Iterator[Connection]":
        """Hold the file; what was written is kept if the ``with`` block ends well."""
        self.check()
        with _file_of_answers(self.path).transaction() as connection:
            self.expect(connection, _BEGUN, self.name)
            yield connection

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_state(self, **{**state, "process": os.getpid()})


@stored_in_policies
class Numbering:
    """The numbered answers of one object and all its copies, each drawn once.

    As long as an object is not copied it numbers its answers itself. Before it is pickled or
    copied, it turns to a file, which all copies share from then on: whoever comes first to a number
    writes down the answer, and the others repeat it.

    Notes
    -----
    The file is the ledger of the accountant under which the object was made, and without one a
    small file of its own in the folder ``SKPRIV_STATE``, or ``~/.local/state/skpriv``. It holds
    released answers, the key of a service's hashes of questions and, where people are counted,
    keyed hashes of them with the numbers of the answers that they are in; nothing else. A copy that
    does not find it refuses to answer, on another machine say, and so does an object in a forked
    process, which copied it unseen. The file must not be put back with a backup of the object: it
    tells what was released after the backup. An object refuses a file that does not have the answer
    which it has given last.

    Examples
    --------
    >>> import copy
    >>> import numpy as np
    >>> from skpriv.privacy import Numbering
    >>> numbering = Numbering()
    >>> other = copy.deepcopy(numbering)
    >>> numbering.settle(0, np.array([[0.25, 0.5]]))
    array([[0.25, 0.5 ]])
    >>> other.settle(0, np.array([[7.0, 8.0]]))
    array([[0.25, 0.5 ]])
    """

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._place = _Place()
        self._last: int | None = None  # number of the last answer that was written down
        self._people: dict[bytes, set[int]] = {}  # numbers of the answers that each person is in
        self._seen: tuple[bytes, int] | None = None  # the last person that was written down

    def part(self, name: object) -> "Numbering":
        """Numbering of a part of the object, which copies of the object find by the same name."""
        part = Numbering()
        part._name = f"{self._name}/{name}"
        part._place = self._place
        return part

    @property
    def key(self) -> bytes:
        """Key of the hashes of people: that of all copies, those that have not begun included."""
        return self._place.made_key()

    @property
    def accountants(self) -> "Handle":
        """Handle of the accountants under which the object was made, by their ledgers."""
        ledgers = self._place.ledgers
        return tuple((BudgetAccountant(ledger=path), ()) for path in ledgers)

    def check(self) -> None:
        """Raise `PrivacyError` if answers can no longer be told from those of copies."""
        self._place.check()

    def settle(self, first: int, fresh: np.ndarray) -> np.ndarray:
        """Return the answers of these numbers: those given before, else the fresh ones.

        Parameters
        ----------
        first : int
            Number of the first row; the others follow.
        fresh : ndarray of shape (n_answers, ...)
            Noisy answers, drawn now.

        Returns
        -------
        answers : ndarray of shape (n_answers, ...)

        Raises
        ------
        PrivacyError
            If copies may exist that cannot be asked.
        """
        self.check()
        if self._place.path is None or not len(fresh):
            return fresh
        answers = np.array(fresh, float)
        with self._held() as connection:
            for number, answer in enumerate(answers, first):
                (given,) = self._first(connection, number, answer.tobytes())
                with legible(self._place.path):
                    answer[...] = np.frombuffer(given).reshape(answer.shape)
        self._last = first + len(answers) - 1
        return answers

    def settle_made(self, number: int, model: Any, make: Callable[[Any], Any]) -> Any:
        """Return the model of this number that was fitted before, else this one, fitted now.

        Copies that fit one at the same time all give the one that was written down first: the
        others were never seen.

        Parameters
        ----------
        number : int
        model : estimator
            Not yet fitted.
        make : callable
            It fits and charges the model, and returns it, or None if the fit failed. If it raises,
            no answer was given.

        Returns
        -------
        model : estimator or None

        Raises
        ------
        PrivacyError
            If copies may exist that cannot be asked, or what they wrote down cannot be read.
        TypeError
            If the class of the model is not stored: nothing is charged then.
        """
        self.check()
        if self._place.path is None:
            return make(model)
        with self._held() as connection:
            given = connection.execute(_ASK, (self._name, number)).fetchone()
        if given is None:
            encoded(model)
            with self.once(number):
                made = json.dumps(encoded(make(model))).encode()
            with self._held() as connection:
                given = self._first(connection, number, made)
        self._last = number
        with legible(self._place.path):
            answer = decoded(parsed(given[0]))
            if answer is not None and type(answer) is not type(model):
                raise TypeError("an answer of another class")
        return answer

    def _first(self, connection: "Connection", number: int, fresh: bytes) -> Any:
        """The row of the answer of this number that was written down first, now or before."""
        connection.execute(_ANSWER, (self._name, number, fresh))
        return connection.execute(_ASK, (self._name, number)).fetchone()

    def once(self, name: object) -> "AbstractContextManager[None]":
        """Charge what is done inside once, in whichever copy or process it is done again."""
        return charged_once(f"{self._name}/{name}")

    def admit(self, people: Iterable[bytes], number: int, max_visits: int) -> list[bool]:
        """Count people who come to an answer, each of whom may be in at most so many answers.

        All copies count together, so that whoever was in an answer of one of them is not forgotten
        by another. A second time in the same answer is free: all copies give one answer of it.

        Parameters
        ----------
        people : iterable of bytes
            Keyed hashes.
        number : int
            Number of the answer that their records will be in.
        max_visits : int

        Returns
        -------
        admitted : list of bool

        Raises
        ------
        PrivacyError
            If copies may exist that cannot be asked.
        """
        self.check()
        admitted = []
        if self._place.path is None:
            for person in people:
                numbers = self._people.setdefault(person, set())
                admitted.append(number in numbers or len(numbers) < max_visits)
                if admitted[-1]:
                    numbers.add(number)
            return admitted
        self._write_down()
        with self._held() as connection:
            for person in people:
                count, here = connection.execute(_COUNT, (number, self._name, person)).fetchone()
                admitted.append(bool(here or count < max_visits))
                if admitted[-1]:
                    connection.execute(_VISIT, (self._name, person, number))
                    self._seen = person, number
        return admitted

    def _write_down(self) -> None:
        """Move the people who were counted in memory to the file."""
        if self._people:
            rows = [(self._name, person, n) for person, ns in self._people.items() for n in ns]
            with self._held() as connection:
                connection.executemany(_VISIT, rows)
            self._people = {}
            self._seen = rows[-1][1:] if rows else self._seen

    @contextmanager
    def _held(self) -> "Iterator[Connection]":
        """Hold the file, after a check that it has what this object has written down last."""
        with self._place.file() as connection:
            if self._last is not None:
                self._place.expect(connection, _ASK, self._name, self._last)
            if self._seen is not None:
                self._place.expect(connection, _SEEN, self._name, *self._seen)
            yield connection

    def share(self) -> None:
        """Turn to the file that all copies read, as must be done before a copy is made."""
        self._place.made_key()
        self._place.share(self._name.split("/")[0])
        self._write_down()

    def __getstate__(self) -> dict[str, Any]:
        self.share()
        return dict(vars(self))


def _file_of_answers(path: str | Path | None) -> Database:
    return Database(path, "file of answers", gone=_GONE.format(path))


def _own_file(name: str) -> Database:
    """A new file in the first folder where one can be made."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    stated = os.environ.get("SKPRIV_STATE")
    for folder in [Path(stated)] if stated else [Path(home, "skpriv"), *folders()]:
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            database = _file_of_answers(Path(folder, f"{name}.answers"))
            database.create()
            os.chmod(database.path, 0o600)  # type: ignore[arg-type]
            return database
    raise PrivacyError(
        "No folder can be written in which a copy's answers would be numbered: set SKPRIV_STATE."
    )
