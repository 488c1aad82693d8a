"""The file of a service: events, the policy as of the last ones learned, and what went wrong."""

import json
from copy import deepcopy
from hashlib import blake2b, sha256
from typing import Any

import numpy as np

from ..._codec import encoded, parsed
from ..._sqlite import Connection, Database
from ...exceptions import PrivacyError, SkprivError
from ...privacy import Numbering
from ...records import name_of
from .._policy._base import BasePolicy
from .._policy._state import policy_of, policy_values

SCHEMA = """
CREATE TABLE policy (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    version INTEGER,
    first INTEGER,  -- number of the first event that was not learned
    state BLOB
);
CREATE TABLE events (
    number INTEGER PRIMARY KEY,  -- without gaps, since no event is removed
    id TEXT UNIQUE NOT NULL,
    time REAL NOT NULL,
    places BLOB NOT NULL,  -- actions that were chosen, and their propensities
    question BLOB NOT NULL,  -- keyed hash of contexts and mask; the key is not in this file
    action INTEGER NOT NULL,  -- the first of them
    row BLOB,  -- features of the action that was chosen, until they are learned
    reward REAL,
    player INTEGER,  -- which policy of a combiner acted
    user BLOB,  -- keyed hash
    shown INTEGER NOT NULL DEFAULT 1,  -- 0: withdrawn, and learned without its features
    learned INTEGER NOT NULL DEFAULT 0  -- 1: with the default reward, 2: with its own
);
CREATE TABLE troubles (time REAL, sentence TEXT);
CREATE TABLE settings (
    only INTEGER PRIMARY KEY CHECK (only = 0),
    cutoff REAL,
    default_reward REAL,
    closed INTEGER  -- events before it take no more rewards: they have one, or passed their cutoff
);
"""  # noqa: E501
IN_RANGE = "number >= ? AND number < ?"  # from a first number up to another one
# From a first number on, with a reward or past the cutoff.
CAME = """
number >= ? AND learned = 0
AND (reward IS NOT NULL OR time <= ? - (SELECT cutoff FROM settings))
"""
# Up to version 7 the policy was a Python object, of other attributes up to 6; 8 had one place, and
# 9 no settings.
EVENTS_VERSION = 10
# Statements of each request
ADDED = """
INSERT INTO events (time, player, id, places, question, action, row, user)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
AFTER_ALL = "(SELECT ifnull(max(number), 0) + 1 FROM events)"
WAITING = f"""
SELECT first, ifnull((
    SELECT number FROM events JOIN settings
    WHERE number >= max(first, closed, ?) AND reward IS NULL AND time > ? - cutoff
    ORDER BY number LIMIT 1
), {AFTER_ALL}) FROM policy
"""
FOUND = """
SELECT version, cutoff, max(first, closed), places, question, learned, reward, time, number
FROM policy JOIN settings LEFT JOIN events ON id = ?
"""


# Rows with a value of another kind: anybody may have written the file
FORGED_ROWS = """
SELECT 1 FROM policy WHERE typeof(version) || typeof(first) || typeof(state) != 'integerintegerblob'
UNION ALL SELECT 1 FROM settings WHERE
typeof(cutoff) || typeof(default_reward) || typeof(closed) != 'realrealinteger'
UNION ALL SELECT 1 FROM events WHERE
typeof(time) || typeof(places) || typeof(action) != 'realblobinteger' OR length(places) % 16
OR typeof(shown) != 'integer' OR typeof(question) != 'blob'
OR typeof(row) || typeof(user) NOT IN ('blobblob', 'blobnull', 'nullnull')
OR typeof(reward) NOT IN ('real', 'null') OR typeof(player) NOT IN ('integer', 'null')
"""
DAMAGED_POLICY = "the policy in the file of Loop is damaged: put a backup of it back."


class Transaction(Connection):
    """Queries and changes of the file while it is held or looked at."""

    def prepare(self) -> None:
        """Make the tables, once, and refuse a file of another version."""
        version = self._one("PRAGMA user_version")
        if version != EVENTS_VERSION:
            if version or self._one("SELECT count(*) FROM sqlite_master"):
                raise ValueError(
                    f"the file has version {version} of the format of Loop, and this skpriv reads "
                    f"version {EVENTS_VERSION}: let the skpriv that wrote it learn its events, and "
                    "begin a new file."
                )
            for statement in SCHEMA.split(";\n"):
                self.execute(statement)
            self.execute(f"PRAGMA user_version = {EVENTS_VERSION}")

    def _one(self, query: str, *given: float) -> Any:
        row = self.execute(query, given).fetchone()
        return None if row is None else row[0]

    def version(self) -> Any:
        """Number of the saved policy; None if there is none."""
        return self._one("SELECT version FROM policy")

    def policy(self) -> BasePolicy:
        """Saved policy."""
        state = self._one("SELECT state FROM policy")
        digest = state[:32]
        state = state[32:]
        if sha256(state).digest() != digest:
            raise PrivacyError(DAMAGED_POLICY)
        try:
            policy = policy_of(parsed(state))
        except ValueError as error:
            raise PrivacyError(f"{DAMAGED_POLICY} {error}") from error
        if not isinstance(policy, BasePolicy):
            raise PrivacyError(DAMAGED_POLICY)
        if policy.random_state is None and policy._has_begun:
            # Processes that load the same state must not draw the same actions.
            policy._rng = np.random.RandomState()
        return policy

    def save(self, version: int, first: int, policy: BasePolicy) -> None:
        """Save the policy, which has learned the events before the first one."""
        state = json.dumps(policy_values(policy)).encode()
        row = version, first, sha256(state).digest() + state
        self.execute("DELETE FROM policy")  # first: its pages are used again, and the file is half
        self.execute("INSERT INTO policy VALUES (0, ?, ?, ?)", row)

    def find(self, event_id: str) -> Any:
        """Version of the policy, terms of the file, and what it has of an event; see `FOUND`."""
        return self.execute(FOUND, (event_id,)).fetchone()

    def add(self, *event: Any) -> Any:
        """Add an event whose reward is awaited, and return its number."""
        return self.execute(ADDED, event).lastrowid

    def set_reward(self, number: int, reward: float, withdrawn: bool) -> None:
        """Note the reward of an event, and whether it was withdrawn.

        What was withdrawn keeps its user, whose visit it is, and its row: neither may tell that it
        was withdrawn.
        """
        given = reward, not withdrawn, number
        self.execute("UPDATE events SET reward = ?, shown = ? WHERE number = ?", given)

    def first_open(self) -> int:
        """Number of the first event that was not learned, or that of the next one to come."""
        number: int = self._one("SELECT first FROM policy")
        return number

    def set(self, cutoff: float | None, default_reward: float | None) -> None:
        """Keep what is not None; a file that begins has an hour, and a reward of 0.

        A new version lets all workers find out again which events have passed the cutoff.
        """
        self.execute(
            "INSERT INTO settings VALUES (0, 3600.0, 0.0, 0) ON CONFLICT (only) DO NOTHING"
        )
        changed = "UPDATE policy SET version = version + 1 WHERE ? != (SELECT cutoff FROM settings)"
        self.execute(changed, (cutoff and float(cutoff),))
        for name, value in {"cutoff": cutoff, "default_reward": default_reward}.items():
            if value is not None:
                self.execute(f"UPDATE settings SET {name} = ?", (float(value),))

    def close_before(self, first: int) -> None:
        """Take no more rewards of the events before this one."""
        self.execute("UPDATE settings SET closed = ?", (first,))

    def last(self) -> int:
        """Number of the last event: how many there are."""
        return self._one("SELECT max(number) FROM events") or 0

    def behind(self, now: float, start: int) -> Any:
        """Seconds from now to the latest `rank` of an event from ``start`` on, or the last one."""
        query = (
            "SELECT max(0.0, max(time) - ?) FROM events "
            "WHERE number >= min(?, (SELECT max(number) FROM events))"
        )
        return self._one(query, now, start) or 0.0

    def first_waiting(self, start: int, now: float) -> Any:
        """Numbers of the first event that was not learned, and that may still get a reward.

        All events before ``start`` were learned, or may get none.
        """
        return self.execute(WAITING, (start, now)).fetchone()

    def events(self, which: str, *given: float) -> list[tuple[Any, ...]]:
        """(row, action, reward, player, user, id) of each event `IN_RANGE`, or that `CAME`.

        Those without a reward have the default, and those that were withdrawn no features.
        """
        row = "iif(shown, row, zeroblob(length(row)))"
        columns = f"{row}, action, ifnull(reward, default_reward), player, user, id"
        query = f"SELECT {columns} FROM events, settings WHERE {which}"
        return self.execute(f"{query} ORDER BY number", given).fetchall()

    def forget(self, which: str, *given: float) -> None:
        """Mark the same events as learned, and remove their features, rewards and users."""
        self.execute(
            "UPDATE events SET learned = 1 + (reward IS NOT NULL), row = NULL, reward = NULL, "
            f"user = NULL, shown = 1 WHERE {which}",
            given,
        )

    def oldest(self, start: int) -> Any:
        """Number of the oldest event that was not learned, from ``start`` on, or the next one."""
        oldest = "SELECT number FROM events WHERE number >= ? AND learned = 0 ORDER BY number"
        return self._one(f"SELECT ifnull(({oldest} LIMIT 1), {AFTER_ALL})", start)

    def note(self, time: float, sentence: str) -> None:
        """Keep what went wrong, the last hundred times."""
        self.execute("INSERT INTO troubles VALUES (?, ?)", (time, sentence))
        self.execute(
            "DELETE FROM troubles WHERE rowid NOT IN "
            "(SELECT rowid FROM troubles ORDER BY rowid DESC LIMIT 100)"
        )

    def troubles(self) -> list[tuple[float, str]]:
        """Errors, the last one last: (seconds, sentence)."""
        return self.execute("SELECT time, sentence FROM troubles ORDER BY rowid").fetchall()


class Store(Database):
    """The file of a service, with one connection of the process for all of its threads.

    Parameters
    ----------
    path : str or path-like
    """

    factory = Transaction

    def __init__(self, path: Any) -> None:
        super().__init__(path, "file of Loop", stays_open=True)
        self.create()
        self.checked()
        with self.transaction() as held:
            held.prepare()
        if self.ask(f"{FORGED_ROWS} LIMIT 1"):  # a long look, while others write
            raise PrivacyError(DAMAGED_POLICY)

    def backup(self, path: Any) -> None:
        """Copy the file as of one instant."""
        copy = Database(path, "backup")
        copy.create()
        with self.reading() as held, copy.reading() as other:
            held.backup(other)


def served(policy: BasePolicy, max_visits: int | None, in_order: bool) -> Any:
    """The policy, or a copy with this number of visits; refuse one that cannot learn so."""
    if not in_order and not policy._can_be_late:
        raise ValueError(
            "in_order=False is for LinUCB and LinSquareCB with privacy='central', a finite epsilon "
            "and width='asymptotic': what else learns needs the rewards in the order of the ranks."
        )
    if max_visits is None:
        return policy
    if policy.max_visits not in (None, max_visits):
        raise ValueError(f"max_visits={max_visits} is not that of the policy.")
    if "max_visits" not in policy.get_params(deep=False):
        raise ValueError(
            f"{type(policy).__name__} has no max_visits: it protects rounds, and user_guarantee "
            "says what that means for people who come back."
        )
    return deepcopy(policy).set_params(max_visits=int(max_visits))


def begun(policy: Any, in_order: bool) -> Any:
    """Policy of a file that begins; all copies of it find each other's answers."""
    if policy is None:
        raise ValueError("the file holds no policy yet: the first Loop on it needs one.")
    if policy._has_begun:
        raise ValueError(
            "a Loop needs a policy that has not acted, and this one has acted: pass a new one, "
            "such as sklearn.base.clone(policy)."
        )
    policy = deepcopy(policy)
    policy._numbering = Numbering()
    policy._out_of_order = not in_order
    return policy


def event_name(event: Any) -> Any:
    """Text of an event's name, or bytes where it has parts: the same for equal names alone."""
    name = str(event).encode(errors="surrogatepass") if isinstance(event, str) else name_of(event)
    if name is None:
        raise ValueError("an event needs a name: None, NaN, blanks and floats of 2**53 are none.")
    if not 1 <= len(name) <= 1_000:
        raise ValueError(f"an event's name has 1 to 1,000 bytes, and here {len(name):,}.")
    try:
        return name.decode()
    except UnicodeDecodeError:  # its parts have lengths, or a letter is half of one
        return name


def hash_of(key: bytes, name: str, context: np.ndarray, mask: np.ndarray) -> bytes:
    """Hash of a question, by which nobody without the key finds it."""
    head = repr((name, context.shape)).encode()  # with escapes in place of surrogates
    return blake2b(head + context.tobytes() + mask.tobytes(), digest_size=8, key=key).digest()


def repeated(row: tuple[Any, ...], question: bytes, k: Any) -> Any:
    """Places of an event that was ranked, None of one that was not; by its row of `FOUND`.

    Another question under its name is refused. The hash is kept for good: whether an event was
    learned may be private, and makes no difference.
    """
    _, _, _, places, earlier, *_ = row
    if places is not None and (earlier, len(places)) != (question, 16 * (k or 1)):
        raise ValueError(
            "an event of this name was ranked with another question: repeat it with the contexts, "
            "the available actions and the k that it had, or give another event another name."
        )
    return places


def check_same(saved: BasePolicy, policy: BasePolicy, in_order: bool) -> None:
    if saved._out_of_order == in_order:
        raise PrivacyError(f"the file was begun with in_order={not in_order}: go on with that.")
    one, two = (encoded(each.get_params(), of_policies=True) for each in (saved, policy))
    if type(saved) is not type(policy) or one != two:
        raise PrivacyError(
            "the file holds another policy: give Loop the same class and parameters, or another "
            "path. Parameters of a policy that has promised a guarantee cannot be changed."
        )


def sentence_of(error: Any, meaning: str) -> str:
    """What went wrong; the text of an error that is not skpriv's might hold a value."""
    text = f": {error}" if isinstance(error, SkprivError) else ""
    return f"Learning failed with {type(error).__name__}{text} ({meaning})"
