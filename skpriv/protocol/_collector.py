"""The server of a fit with real devices, whose rows stay there.

An estimator's fit meets reports that have been collected. In each round every user sends one, the
index of a row of a public codebook.
"""

import json
import os
import warnings
from dataclasses import astuple, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NoReturn

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from .._contracts import is_whole, passed_on
from .._estimation._cells import KnowsCells
from .._sqlite import legible
from .._wire import WIRE_VERSION, is_known, read_report, reported_directions, task_hash
from ..exceptions import PrivacyError
from ..privacy import LiftedReports, Lineage, active_ledgers, best_codebook, capabilities
from ..records import check_length
from ._device import public_order
from ._store import ReportStore, described, home, n_features_of, restored
from ._sums import RoundNeeded, Rounds, RowsOnDevices, Sums

if TYPE_CHECKING:
    from .._wire import Task
    from sklearn.base import BaseEstimator

    from ..privacy import CodebookNoise

NO_ROWS = (
    "the rows are on the users' devices, which send one index of a codebook each: pass "
    "SSPRegressor, LinearRegression, ReweightedRegressor or ImproperSGDRegressor with "
    "privacy='local' or 'shuffle' and channel='codebook'. Other estimators ask what a device "
    "cannot answer."
)


# The first of the reports may say so many features: whoever sends it could otherwise let the server
# solve for 65,533 of them, with 34 GB of moments. A thousand take two seconds, and 8 MB.
MOST_UNTOLD = 1_000


class DeviceRows(RowsOnDevices):
    """Rows of n users who each keep their own; queries are answered from the rounds so far.

    A fit is run once more after every round, on this: it takes the same public decisions as before
    until it comes to the first query without an answer, which is the next round. So an estimator
    needs no code of its own for devices, and the server no state but the reports.

    Parameters
    ----------
    n, n_features, rounds, paid_for, lineage : see RowsOnDevices
        A closed round has the `LiftedReports` of its users.
    """

    on_devices = True
    refusal = NO_ROWS

    def order(self, seed: bytes) -> Any:
        """These rows, as the order of users: devices are asked by their places in a public order.

        It is the order of the collection's seed (`public_order`), whatever the estimator draws.
        """
        return self

    def users(self, start: int, stop: int) -> range:
        """Places of users in the public order, from start up to stop."""
        return range(start, stop)

    def collect(self, query: Any, law: "CodebookNoise", users: range) -> Any:
        """Reports of a round, if it is closed.

        Raises
        ------
        RoundNeeded
            If it is not.
        """
        self._n_asked += 1
        if self._n_asked > len(self._rounds):
            raise RoundNeeded(query, law=law, start=users.start, stop=users.stop)
        return self._rounds[self._n_asked - 1]


class Reports(Rounds):
    """Rounds of reports, each of which other users answer; see `Rounds`."""

    _answers = 0

    @staticmethod
    def settings(
        estimator: "BaseEstimator",
        n_users: int,
        n_features: int | None,
        *,
        seed: int | None,
        n_min: int | None,
        transport: str | None,
    ) -> dict[str, Any]:
        """Settings of a new collection, all of them public."""
        if n_min is not None or transport is not None:
            raise ValueError(
                "n_min, the users whose noise is counted on, and transport are for "
                "privacy='aggregate': leave them out."
            )
        if estimator.calibration_size is not None:
            raise ValueError(
                "devices send indices of a codebook, and none of the bits that prediction "
                "intervals are calibrated by: pass calibration_size=None."
            )
        if not is_whole(seed, 0, 2**32 - 1):
            raise ValueError(f"seed={seed!r} must be a whole number from 0 to 2^32 - 1.")
        return {"seed": int(seed), "n_features": n_features_of(estimator, n_features)}

    @property
    def n_answers(self) -> int:
        """Public number of answers in the open round."""
        return self._answers

    def go_on(self) -> tuple[Any, Any]:
        """Fitted estimator, or the fields of the first query that is not answered."""
        settings = self._settings
        rows = DeviceRows(
            settings["n_users"], 1 if self._open_width else self._n_features, self._rounds,
            self._collection._paid_for, self._collection._lineage,
        )  # fmt: skip
        fitted, needed = self.fitted(rows)
        if needed is None:
            return fitted, None
        fields = self._task_fields(needed)
        name = f"task {self._collection.round}"
        if name not in settings:
            self.write({name: fields})
        # Devices were given this task before a restart, and rounding may make it anew
        fields = self._settings[name]
        order = public_order(settings["n_users"], settings["seed"])
        self._members = frozenset(order[needed.start : needed.stop].tolist())
        self._answers = self._store.count(self._collection.round)
        return None, fields

    def _task_fields(self, needed: Any) -> Any:
        settings = self._settings
        code = needed.law.code
        query = needed.query.wire()
        if self._open_width:
            if "weights" in query:
                raise ValueError("n_features must be given: the first query has a matrix of them.")
            # The code is chosen for directions of six coordinates where their size is not known.
            code = best_codebook(6, code.epsilon)
            query["n_features"] = None
        self._code = code
        shuffled = capabilities(self._estimator.privacy).amplifies
        fields: Any = {
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
            "round": self._collection.round,
            "users": {
                "n": settings["n_users"], "seed": settings["seed"],
                "start": needed.start, "stop": needed.stop,
            },
        }  # fmt: skip
        if shuffled:
            fields["budget"]["delta"] = float(self._estimator.delta)
        return {**fields, "hash": task_hash(fields)}

    def add(self, fields: "Task", user: Any, answer: Any) -> bool:
        """Keep the report of a user; whether it was the last one."""
        users = fields["users"]
        is_known(users, user)
        if int(user) not in self._members:
            raise ValueError(f"user {user} is not asked in round {self._collection.round}.")
        seed, size, index = read_report(fields, user, answer)
        if self._store.has(int(user)):
            raise ValueError(f"user {user} has answered: a second report is refused.")
        self._check_size(fields, size)
        self._collection._step()
        try:
            self._store.add(self._collection.round, int(user), seed, index)
            self._answers += 1
        except BaseException:  # it may be in the store, and its user has answered then
            self._answers = self._store.count(self._collection.round)
            raise
        return bool(self._answers == users["stop"] - users["start"])

    def check_totals(
        self, fields: "Task", totals: tuple[Any, ...], n: int | None
    ) -> dict[str, Any]:
        """Refuse to close a round without answers; nothing more is said of it."""
        if totals or n is not None:
            raise ValueError("the answers of this round were given to add: pass nothing.")
        if not self._answers:
            raise ValueError("nobody has answered in this round: there is nothing to go on.")
        return {}

    def repeat(self) -> NoReturn:
        """Refuse: reports have been seen."""
        raise PrivacyError("reports have been seen: their round is not repeated.")

    def _check_size(self, fields: "Task", size: int) -> None:
        """Number of features of the first report, where the task leaves it open."""
        n_features = size - 1 - bool(fields["query"]["fit_intercept"])
        if self._n_features is None and 1 <= n_features <= MOST_UNTOLD:
            self.write({"found": n_features})
        elif self._n_features != n_features:
            raise ValueError(
                "the report has another number of features than the first one, or, where "
                f"n_features is None, more than {MOST_UNTOLD:,}."
            )

    @property
    def _n_features(self) -> Any:
        """Number of features, as it was given or found in the first report."""
        return self._settings["n_features"] or self._settings.get("found")

    @property
    def _open_width(self) -> bool:
        """Whether the open round is one in which the first report says the number of features."""
        return self._settings["n_features"] is None and not self._rounds

    def taken(self, fields: "Task") -> LiftedReports:
        """Reports of the open round, decoded."""
        size = self._n_features + 1 + bool(fields["query"]["fit_intercept"])
        reports = self._store.reports(self._collection.round)
        with legible(self._store.path):
            directions = reported_directions(fields, size, reports)
        return LiftedReports(directions, replace(self._code, size=size))


def _rounds_of(estimator: Any) -> type[Sums] | type[Reports]:
    """How devices answer the model of an estimator."""
    ours = isinstance(estimator, KnowsCells)
    can = capabilities(estimator.privacy if ours else "none")
    if not (can.reports or can.summed):
        raise PrivacyError(NO_ROWS)
    return Sums if can.summed else Reports


class Collector:
    """Fits an estimator from the answers of devices, in the local, shuffle or aggregate model.

    A user's device takes the public task and its own record (:func:`skpriv.protocol.report`). In
    the local and shuffle models it answers once, and sends one index of a public codebook: the
    fitted estimator has the law that ``fit`` simulates with ``channel="codebook"``. In the
    aggregate model the same users answer every round. The server sees sums with their noise then,
    and no share of a user (or, with shuffled shares, all of them without names).

    Parameters
    ----------
    estimator : regressor
        A regressor with ``privacy="aggregate"``; or with ``privacy="local"`` or ``"shuffle"`` and
        ``channel="codebook"`` (or "auto", where that is the codebook). It is not changed.
    n_users : int
        Public number of users, who have the numbers 0 to n_users - 1.
    seed : int, default=None
        Public seed of the order in which users are dealt out to rounds. Not used in the aggregate
        model, where all users answer; required in the others.
    n_features : int, default=None
        Public number of features of a record. None: as the estimator's ``bounds_X`` tell; and if
        there are none, as the first report says, up to 1,000, to which all others must then be
        alike. (Anybody who answers first can then spoil the collection, and the code is not quite
        the best one.)
    path : str, default=None
        An SQLite file in which every report is written before ``add`` returns, for
        :meth:`load` after a restart. None keeps all in memory.
    n_min : int, default=None
        How many users of the aggregate model are counted on for noise: a sum of fewer is not
        opened. None is 95% of them. The fewer, the more noise each of them adds.
    transport : {"two-servers", "shuffled-shares"}, default=None
        How devices of the aggregate model report: a share to each of two :class:`ShareServer`,
        which None is, or several shares of each number through a shuffler.

    Attributes
    ----------
    task : str or None
        Public JSON text of the round that is open: version, estimator, query, bounds, channel,
        budget, round, which users answer, and a hash of all of it. None after the last round.
    round : int
        Number of the open round, from 1 on.
    n_answers : int
        Public number of answers in the open round; in the aggregate model, in the last closed one.

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
    >>> X = rng.uniform(-0.7, 0.7, size=(300, 2))
    >>> y = X @ [0.5, -0.5]
    >>> model = SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1),
    ...     epsilon=20.0, delta=0.0, privacy="local", channel="codebook", fit_intercept=False
    ... )
    >>> collector = Collector(model, n_users=300, seed=0, n_features=2)
    >>> while collector.task is not None:
    ...     task = collector.task
    ...     for user in range(300):
    ...         answer = report(task, X[user], y[user], user=user)
    ...         if answer is not None:
    ...             collector.add(user, answer)
    >>> bool(abs(collector.result().coef_ - [0.5, -0.5]).max() < 1.0)  # by seven deviations
    True
    """

    def __init__(
        self,
        estimator: Any,
        n_users: int,
        seed: Any = None,
        *,
        n_features: Any = None,
        path: Any = None,
        n_min: Any = None,
        transport: str | None = None,
    ) -> None:
        rounds = _rounds_of(estimator)
        n_users = check_length(n_users, "n_users")
        own = rounds.settings(
            estimator, n_users, n_features, seed=seed, n_min=n_min, transport=transport
        )
        settings = {"estimator": described(estimator), "n_users": n_users, **own}
        store = ReportStore(path)
        if store.settings() is not None:
            store.close()
            raise ValueError(
                f"{str(path)!r} holds a collection already: Collector.load(path) goes on with it."
            )
        self._start(clone(estimator), settings, store, None if path is None else Lineage.begun())
        store.write_settings({**settings, "home": home(path)})

    @classmethod
    def load(cls, path: Any) -> "Collector":
        """Collector of a file, where it stood: no acknowledged report is lost, none asked twice.

        A process that loads a file takes it over: a collector that was left open on it takes no
        more reports. A warning tells that the file is not the one in which the collection was
        begun. Only one of two copies may go on: users of later rounds would be asked by both.

        Accountants that are active now are charged for the whole collection, unless their ledgers
        have paid for it. Those ledgers know the collection's last step, so that of several copies
        of the file the first one that takes a step goes on, and no other one does.

        Parameters
        ----------
        path : str
            File that a collector wrote.

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
        store = ReportStore(path)
        settings = store.settings()
        if settings is None or "home" not in settings:
            store.close()
            raise ValueError(f"{str(path)!r} holds no collection.")
        if settings["home"] != home(path):
            warnings.warn(
                f"{str(path)!r} is not the file in which this collection was begun. If it is a "
                "copy, let one of them alone go on: both would ask the same users.",
                stacklevel=2,
            )
            store.write_settings({"home": home(path)})
        self = cls.__new__(cls)
        with legible(path):
            estimator = restored(settings["estimator"])
            lineage = Lineage.of(settings["lineage"]) if "lineage" in settings else Lineage.begun()
            self._start(estimator, settings, store, lineage.step())
        return self

    def _start(
        self, estimator: Any, settings: dict[str, Any], store: ReportStore, lineage: Lineage | None
    ) -> None:
        self._estimator = estimator
        self._settings = settings
        self._store = store
        self._paid_for = False
        self._fitted: Any = None
        self._process = os.getpid()
        self._rounds: list[Any] = []  # reports, or sum and number of users, of each closed round
        self._lineage = lineage
        self._way = _rounds_of(estimator)(self)
        try:
            if lineage is not None:
                self._write_lineage(lineage)
                lineage.tell()  # refuses a copy of the file before anything is charged
            store.take_over(token_hex(16))
            self._go_on()
            if lineage is not None:
                self._write_lineage(lineage.paid_by(active_ledgers()))
            for _ in range(store.closed()):
                self._take_round(self._open())
        except BaseException:
            store.close()
            raise

    def _step(self) -> None:
        """Tell the ledgers that have paid that this file has gone on, and no copy of it."""
        if self._lineage is not None and self._lineage.ledgers:
            self._write_lineage(self._lineage.step())
            self._lineage.tell()

    def _write_lineage(self, lineage: Lineage) -> None:
        """Take over a lineage, which is in the file before anybody is told of it."""
        self._lineage = lineage
        self._store.write_settings({"lineage": astuple(lineage)})

    def _go_on(self) -> None:
        """Run the fit up to the first query that is not answered; it is the open round."""
        self._fitted, self._fields = self._way.go_on()
        self._paid_for = True

    @property
    def round(self) -> int:
        """Number of the open round."""
        return len(self._rounds) + 1

    @property
    def task(self) -> str | None:
        """Public JSON text of the open round, None after the last one."""
        return None if self._fields is None else json.dumps(self._fields, allow_nan=False)

    n_answers: int = passed_on(
        "_way.n_answers", "Public number of answers in this round, or in the last one of sums."
    )

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
            if self._way.add(self._open(), user, answer):
                self.close_round()

    def repeat_round(self) -> None:
        """Begin the open round of sums anew, with fresh noise and fresh shares, at most twice.

        For a round of two servers of which no sum was opened: messages were lost, or a server was.
        The accountants of the analyst are not charged again. A device cannot know that no sum was
        opened: its ledger is charged for the round once more. Shuffled shares and reports have been
        seen when they come, so that their rounds are not repeated.
        """
        with self._store.lock:
            self._open()
            self._way.repeat()
            self._go_on()

    def close_round(self, *totals: Any, n: int | None = None) -> None:
        """Go on with the answers that are there, be they fewer than asked.

        Parameters
        ----------
        *totals : bytes, or iterable of bytes
            Messages of the aggregate model: with two servers the :meth:`ShareServer.total` of each;
            with shuffled shares one iterable of all messages of the round, as the shuffler sends
            them on. Nothing in the other models.
        n : int, default=None
            Number of users with shuffled shares: how many users have sent them, as the shuffler has
            counted.

        Raises
        ------
        ValueError
            If nobody has answered, or messages are malformed, or not of the same users and of this
            attempt. Nothing has changed then.
        PrivacyError
            If there are fewer users than are counted on.
        """
        with self._store.lock:
            fields = self._open()
            checked = self._way.check_totals(fields, totals, n)
            self._fields = None  # what is interrupted from here on is not gone on with
            self._step()
            self._way.write(checked)
            self._store.close_round(self.round)
            self._take_round(fields)

    def result(self) -> Any:
        """The fitted estimator.

        Returns
        -------
        estimator
            The estimator that was given to the collector, fitted from the reports.

        Raises
        ------
        NotFittedError
            If rounds are open.
        """
        if self._fitted is None:
            raise NotFittedError(
                f"round {self.round} is open: close_round(...) ends it with the answers that came."
            )
        return self._fitted

    def close(self) -> None:
        """Close the file; ``load`` opens it again."""
        self._store.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise PrivacyError("a collector is not copied, but loaded: both would ask the same users.")

    def _open(self) -> Any:
        if self._process != os.getpid():
            raise PrivacyError(
                "this collector was copied by a fork of its process: only the original goes on."
            )
        if not self._store.owned():
            raise ValueError("another collector has taken this file over, and goes on with it.")
        if self._fields is self._fitted is None:
            raise PrivacyError(
                "the end of a round was interrupted: Collector.load(path) goes on from its file."
            )
        if self._fields is None:
            raise ValueError("the last round is closed: the report comes too late.")
        return self._fields

    def _take_round(self, fields: Any) -> None:
        """Take over a round that is closed, and go on with the fit."""
        self._rounds.append(self._way.taken(fields))
        self._go_on()
