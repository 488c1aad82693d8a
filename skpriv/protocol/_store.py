"""The state that a collector must not lose: its settings, the reports, and which rounds are closed.

Its file says which estimator is fitted and what the records are.
"""

import importlib
import json
import os
from typing import Any

import numpy as np

from .._sqlite import Database, legible
from .._wire import LARGEST_SIZE
from ..records import check_length

MOST_FEATURES = LARGEST_SIZE - 2  # a direction has two more coordinates, see `lifted`
ROOMS = ("skpriv.linear_model",)  # a file may name the public classes of these


def described(estimator: Any) -> dict[str, Any]:
    """Name and parameters of an estimator of this library, as JSON can hold them."""
    kind = type(estimator)
    room = ".".join(kind.__module__.split(".")[:2])
    params = estimator.get_params(deep=False)
    params.pop("random_state", None)
    try:
        text = json.dumps(params, allow_nan=False, default=_plain)
    except (TypeError, ValueError):
        raise ValueError(
            f"a parameter of {kind.__name__} has no JSON form, which a public task needs: "
            f"{params!r}."
        ) from None
    return {"room": room, "class": kind.__name__, "params": json.loads(text)}


def restored(description: dict[str, Any]) -> Any:
    """Estimator of a description; only classes that this library exports are made."""
    if description["room"] not in ROOMS:
        raise ValueError(f"{description['room']!r} is no room of estimators.")
    room = importlib.import_module(description["room"])
    if description["class"] not in room.__all__:
        raise ValueError(f"{description['class']!r} is no estimator of {description['room']}.")
    params = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in description["params"].items()
    }
    return getattr(room, description["class"])(**params)


def home(path: Any) -> Any:
    """The mark that tells a file from its copies; None of a collection in memory."""
    if path is None:
        return None
    status = os.stat(path)
    return [status.st_dev, status.st_ino]


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value, float if value.dtype.kind == "f" else None).tolist()
    raise TypeError


def n_features_of(estimator: Any, n_features: int | None) -> int | None:
    bounds = estimator.bounds_X
    if n_features is None and bounds is not None and np.ndim(bounds) != 1:
        n_features = len(bounds)
    if n_features is None:
        return None
    if check_length(n_features, "n_features") > MOST_FEATURES:
        raise ValueError(
            f"n_features={n_features} is above {MOST_FEATURES}, which reports can say."
        )
    return int(n_features)


TABLES = (
    "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS reports (user INTEGER PRIMARY KEY, round INTEGER NOT NULL, "
    "seed BLOB NOT NULL, direction INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS closed (round INTEGER PRIMARY KEY)",
)
SETTING = (
    "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class ReportStore(Database):
    """Reports on disk, each written before it is acknowledged; safe in several threads.

    Parameters
    ----------
    path : str or path, or None
        An SQLite file; None keeps all in memory.
    """

    def __init__(self, path: Any) -> None:
        super().__init__(path, "collection", stays_open=True)
        self.prepare(*TABLES)

    def settings(self) -> dict[str, Any] | None:
        """Settings of the collection, None if there is none yet."""
        rows = dict(self.ask("SELECT name, value FROM settings"))
        with legible(self.path):
            return {name: json.loads(value) for name, value in rows.items()} or None

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Write settings, all or none; those that are there are replaced."""
        rows = [(name, json.dumps(value)) for name, value in settings.items()]
        with self.transaction() as connection:
            connection.executemany(SETTING, rows)

    def take_over(self, owner: str) -> None:
        """Make this connection the file's only one; `owned` is false for those before it."""
        self._owner = owner
        self.write_settings({"owner": owner})

    def owned(self) -> Any:
        """Whether nobody has taken the file over."""
        return self.ask("SELECT value FROM settings WHERE name = 'owner'") == [
            (json.dumps(self._owner),)
        ]

    def has(self, user: Any) -> bool:
        """Whether a user has answered."""
        return bool(self.ask("SELECT round FROM reports WHERE user = ?", user))

    def add(self, round_: int, user: Any, seed: bytes, index: int) -> None:
        """Keep a report."""
        self.write("INSERT INTO reports VALUES (?, ?, ?, ?)", user, round_, seed, index)

    def reports(self, round_: int) -> Any:
        """(seed, index) of the reports of a round, by the users' numbers."""
        return self.ask("SELECT seed, direction FROM reports WHERE round = ? ORDER BY user", round_)

    def count(self, round_: int) -> Any:
        """Number of reports of a round."""
        return self.ask("SELECT COUNT(*) FROM reports WHERE round = ?", round_)[0][0]

    def close_round(self, round_: int) -> None:
        """Take no more reports of a round."""
        self.write("INSERT INTO closed VALUES (?) ON CONFLICT (round) DO NOTHING", round_)

    def closed(self) -> Any:
        """Number of rounds that are closed."""
        return self.ask("SELECT COUNT(*) FROM closed")[0][0]
