"""The server of a local fit with real devices."""

from typing import Any
import json
import os
import warnings
from dataclasses import replace
from importlib import import_module
from secrets import token_hex

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..exceptions import PrivacyError
from ..privacy import (
    WIRE_VERSION,
    LiftedReports,
    Lineage,
    active_ledgers,
    best_codebook,
    capabilities,
    is_known,
    read_report,
    reported_directions,
    task_hash,
)
from ._device import public_order
from ._rows import NO_ROWS, DeviceRows, RoundNeeded
from ._settings import described, home, n_features_of, restored
from ._store import Store


def check_users(n_users):
    """Refuse what is not a number of users."""
    if not isinstance(n_users, (int, np.integer)) or n_users is True or n_users < 1:
        raise ValueError(f"n_users={n_users!r} must be a whole number of at least 1.")


class Collector:
    """Fits an estimator from the reports of devices, in the local or the shuffle model.

    Each user's device answers once: it takes the public task and its own record, and sends one
    index of a public codebook (:func:`skpriv.protocol.report`). The fitted estimator has the law
    that ``fit`` simulates with ``channel="codebook"``.

    Parameters
    ----------
    estimator : regressor
        A regressor with ``privacy="local"`` or ``"shuffle"`` and ``channel="codebook"`` (or "auto",
        where that is the codebook). It is not changed.
    n_users : int
        Public number of users, who have the numbers 0 to n_users - 1.
    seed : int
        Public seed of the order in which users are dealt out to rounds.
    n_features : int, default=None
        Public number of features of a record. None: as the estimator's ``bounds_X`` tell; and if
        there are none, as the first report says, to which all others must then be alike. (Anybody
        who answers first can then spoil the collection, and the code is not quite the best one.)
    path : str, default=None
        An SQLite file in which every report is written before ``add`` returns, for
        :meth:`load` after a restart. None keeps all in memory.

    Attributes
    ----------
    task : str or None
        Public JSON text of the round that is open: version, estimator, query, bounds, channel,
        budget, round, which users answer, and a hash of all of it. None after the last round.
    round : int
        Number of the open round, from 1 on.
    n_answers : int
        Public number of answers in the open round.

    Notes
    -----
    **Privacy guarantee**: that of the device's report, epsilon-local differential privacy with
    delta = 0, whatever this server does. In the shuffle model the budget is a guarantee for the
    shuffled reports, and holds for as many honest answers as were counted on: fewer weaken it.
    Not protected: that a user answers, when, and in which round.

    A collection in a file is charged once to each ledger that is active when it is begun or loaded.
    These ledgers know the last step of the collection, so that no two copies of its file go on.

    Who answers must be known: a transport that checks who a user is, is not part of this class.
    Fewer answers than asked leave the guarantee of a local report as it is, and the fit counts the
    answers that are there.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.protocol import Collector, report
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(2_000, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1),
    ...     epsilon=8.0, delta=0.0, privacy="local", channel="codebook", fit_intercept=False
    ... )
    >>> collector = Collector(model, n_users=2_000, seed=0, n_features=2)
    >>> while collector.task is not None:
    ...     task = collector.task
    ...     for user in range(2_000):
    ...         answer = report(task, X[user], y[user], user=user)
    ...         if answer is not None:
    ...             collector.add(user, answer)
    >>> bool(abs(collector.result().coef_ - [0.5, -0.5]).max() < 0.3)
    True
    """

    def __new__(cls, estimator: Any = None, *arguments: Any, **named: Any) -> "Collector":
        """Collector of the model: one of reports, or one of sums."""
        model = getattr(estimator, "privacy", None)
        if cls is Collector and model is not None and capabilities(model).summed:
            cls = import_module("._sums._collector", __package__).SumCollector
        return super().__new__(cls)

    def __init__(
        self, estimator: Any, n_users: int, seed: Any, *, n_features: Any = None, path: Any = None
    ) -> None:
        model = getattr(estimator, "privacy", None)
        if model is None or not capabilities(model).reports:
            raise PrivacyError(NO_ROWS)
        if getattr(estimator, "calibration_size", None) is not None:
            raise ValueError(
                "devices send indices of a codebook, and none of the bits that prediction "
                "intervals are calibrated by: pass calibration_size=None."
            )
        check_users(n_users)
        if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
            raise ValueError(f"seed={seed!r} must be a whole number from 0 to 2^32 - 1.")
        settings = {
            "estimator": described(estimator),
            "n_users": int(n_users),
            "seed": int(seed),
            "n_features": n_features_of(estimator, n_features),
        }
        self._begin(estimator, settings, path)

    def _begin(self, estimator, settings, path):
        """Begin a collection, in a file unless the path is None."""
        store = Store(path)
        if store.settings() is not None:
            store.close()
            raise ValueError(
                f"{path!r} holds a collection already: Collector.load(path) goes on with it."
            )
        lineage = None if path is None else Lineage.begun()
        self._start(clone(estimator), settings, store, lineage)
        store.write_settings({**settings, "home": home(path)})

    @classmethod
    def load(cls, path: Any) -> "Collector":
        """Collector of a file, where it stood: no acknowledged report is lost, none asked twice.

        Whoever loads a file takes it over: a collector that was left open on it takes no more
        reports. A warning tells that the file is not the one in which the collection was begun. Of
        two copies only one may go on: users of later rounds would be asked by both.

        Accountants that are active now are charged for the whole collection, unless their ledgers
        have paid for it. Those ledgers know the collection's last step, so that of several copies
        of the file the first one that takes a step goes on, and no other one does.

        Parameters
        ----------
        path : str

        Returns
        -------
        Collector

        Raises
        ------
        PrivacyError
            If another copy of the file has gone on, or a ledger that has paid for the collection is
            gone.
        BudgetExceeded
            If an active accountant cannot pay for the collection.
        """
        store = Store(path)
        settings = store.settings()
        if settings is None or "home" not in settings:
            store.close()
            raise ValueError(f"{path!r} holds no collection.")
        if settings["home"] != home(path):
            warnings.warn(
                f"{path!r} is not the file in which this collection was begun. If it is a copy, "
                "let one of them alone go on: both would ask the same users.",
                stacklevel=2,
            )
            store.write_settings({"home": home(path)})
        estimator = restored(settings["estimator"])
        self = cls.__new__(cls, estimator)
        lineage = Lineage.of(settings["lineage"]) if "lineage" in settings else Lineage.begun()
        self._start(estimator, settings, store, lineage.step())
        return self

    def _start(self, estimator, settings, store, lineage):
        self._estimator, self._settings, self._store = estimator, settings, store
        self._paid_for, self._fitted, self._process = False, None, os.getpid()
        self._rounds: list[Any] = []  # the reports or the sum of each closed round
        self._lineage = lineage
        try:
            if lineage is not None:
                store.write_settings({"lineage": lineage.as_json()})
                lineage.tell()  # a copy ends here, before anything is charged
            store.take_over(token_hex(16))
            self._go_on()
            if lineage is not None:
                self._lineage = lineage.paid_by(active_ledgers())
                store.write_settings({"lineage": self._lineage.as_json()})
            for _ in range(store.closed()):
                self._take_round()
        except BaseException:
            store.close()
            raise

    def _step(self):
        """Tell the ledgers that have paid that this file has gone on, and no copy of it."""
        if self._lineage is not None and self._lineage.ledgers:
            self._lineage = self._lineage.step()
            self._store.write_settings({"lineage": self._lineage.as_json()})
            self._lineage.tell()

    def _go_on(self):
        """Run the fit up to the first query that is not answered; it is the open round."""
        settings = self._settings
        rows = DeviceRows(
            settings["n_users"], 1 if self._open_width else self._n_features, settings["seed"],
            self._rounds, self._paid_for, self._lineage,
        )  # fmt: skip
        estimator = clone(self._estimator).set_params(random_state=None)
        try:
            self._fitted, self._fields = estimator.fit(rows, None), None
        except RoundNeeded as needed:
            self._fields = self._as_it_was(self._task_fields(needed))
            order = public_order(settings["n_users"], settings["seed"])
            self._members = frozenset(order[needed.start : needed.stop].tolist())
        self._paid_for, self._answers = True, self._store.count(self.round)

    def _as_it_was(self, fields):
        """The task that devices were given before a restart, which rounding may make anew."""
        name = f"task {self.round}"
        if name not in self._settings:
            self._settings[name] = fields
            self._store.write_settings({name: fields})
        return self._settings[name]

    def _task_fields(self, needed):
        settings, code, query = self._settings, needed.law.code, needed.query.wire()
        if self._open_width:
            if "weights" in query:
                raise ValueError("n_features must be given: the first query has a matrix of them.")
            # A task that does not know the size of directions has the code for six
            code, query["n_features"] = best_codebook(6, code.epsilon), None
        self._code = code
        shuffled = capabilities(self._estimator.privacy).amplifies
        fields = {
            "version": WIRE_VERSION,
            "estimator": settings["estimator"],
            "query": query,
            "channel": {
                "name": "codebook", "epsilon": code.epsilon,
                "size": None if self._open_width else code.size,
                "count": code.count, "nearest": code.nearest,
                "seed": "device" if shuffled else "user",
            },
            "budget": {"epsilon": float(self._estimator.epsilon), "delta": 0.0},
            "round": self.round,
            "users": {
                "n": settings["n_users"], "seed": settings["seed"],
                "start": needed.start, "stop": needed.stop,
            },
        }  # fmt: skip
        if shuffled:
            fields["budget"]["delta"] = float(self._estimator.delta)
        return {**fields, "hash": task_hash(fields)}

    @property
    def round(self) -> int:
        """Number of the open round."""
        return len(self._rounds) + 1

    @property
    def task(self) -> str | None:
        """Public JSON text of the open round, None after the last one."""
        return None if self._fields is None else json.dumps(self._fields, allow_nan=False)

    @property
    def n_answers(self) -> int:
        """Public number of answers in the open round."""
        return self._answers

    def add(self, user: int, answer: Any) -> None:
        """Take the report of a user; the round closes with the last one.

        Parameters
        ----------
        user : int
            The user's number, as the transport has checked it.
        answer : bytes
            Answer of :func:`skpriv.protocol.report`.

        Raises
        ------
        ValueError
            If the user is unknown, is not asked in this round or has answered, or if the bytes are
            malformed, out of range or answer another round. Nothing has changed then.
        """
        with self._store.lock:
            fields = self._open()
            users = fields["users"]
            is_known(users, user)
            if int(user) not in self._members:
                raise ValueError(f"user {user} is not asked in round {self.round}.")
            seed, size, index = read_report(fields, user, answer)
            if self._store.has(int(user)) is not None:
                raise ValueError(f"user {user} has answered: a second report is refused.")
            self._check_size(fields, size)
            self._step()
            self._store.add(self.round, int(user), seed, index)
            self._answers += 1
            if self.n_answers == users["stop"] - users["start"]:
                self.close_round()

    def close_round(self) -> None:
        """Go on with the answers that are there, be they fewer than asked.

        Raises
        ------
        ValueError
            If nobody has answered.
        """
        with self._store.lock:
            self._open()
            if not self.n_answers:
                raise ValueError("nobody has answered in this round: there is nothing to go on.")
            self._step()
            self._store.close_round(self.round)
            self._take_round()

    def result(self) -> Any:
        """The fitted estimator.

        Raises
        ------
        NotFittedError
            If rounds are open.
        """
        if self._fitted is None:
            raise NotFittedError(
                f"round {self.round} is open: its {self.n_answers} answers are not all, and "
                "close_round() goes on without the others."
            )
        return self._fitted

    def close(self) -> None:
        """Close the file; ``load`` opens it again."""
        self._store.close()

    def _open(self):
        if self._process != os.getpid():
            raise PrivacyError(
                "this collector was copied by a fork of its process: only the original goes on."
            )
        if not self._store.owned():
            raise ValueError("another collector has taken this file over, and goes on with it.")
        if self._fields is None:
            raise ValueError("the last round is closed: the report comes too late.")
        return self._fields

    def _check_size(self, fields, size):
        """Number of features of the first report, where the task leaves it open."""
        n_features = size - 1 - bool(fields["query"]["fit_intercept"])
        if self._n_features is None and n_features >= 1:
            self._settings["found"] = n_features
            self._store.write_settings({"found": n_features})
        elif self._n_features != n_features:
            raise ValueError("the report has another number of features than the first one.")

    @property
    def _n_features(self):
        """Number of features, as it was given or found in the first report."""
        return self._settings["n_features"] or self._settings.get("found")

    @property
    def _open_width(self):
        """Whether the open round is one in which the first report says the number of features."""
        return self._settings["n_features"] is None and not self._rounds

    def _take_round(self):
        """Decode the reports of the open round, and go on with the fit."""
        fields = self._open()
        size = self._n_features + 1 + bool(fields["query"]["fit_intercept"])
        code = replace(self._code, size=size)
        directions = reported_directions(fields, size, self._store.reports(self.round))
        self._rounds.append(LiftedReports(directions, code))
        self._go_on()
