"""Rounds in which users send reports: one index of a public codebook each."""

from dataclasses import replace

import numpy as np
from sklearn.base import clone

from ..exceptions import PrivacyError
from ..privacy import (
    WIRE_VERSION,
    LiftedReports,
    best_codebook,
    capabilities,
    is_known,
    read_report,
    reported_directions,
    task_hash,
)
from ._device import public_order
from ._rows import DeviceRows, RoundNeeded
from ._settings import n_features_of


class Reports:
    """How a collection of reports asks, takes and decodes its rounds.

    Parameters
    ----------
    collection : Collector
        Its settings, its store and its rounds are shared.
    """

    def __init__(self, collection):
        self._collection, self._estimator = collection, collection._estimator
        self._settings, self._store = collection._settings, collection._store
        self._rounds, self._answers = collection._rounds, 0

    @staticmethod
    def settings(estimator, n_users, n_features, *, seed, n_min, transport):
        """Settings of a new collection, all of them public."""
        if n_min is not None or transport is not None:
            raise ValueError("n_min and transport are for privacy='aggregate': leave them out.")
        if getattr(estimator, "calibration_size", None) is not None:
            raise ValueError(
                "devices send indices of a codebook, and none of the bits that prediction "
                "intervals are calibrated by: pass calibration_size=None."
            )
        if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
            raise ValueError(f"seed={seed!r} must be a whole number from 0 to 2^32 - 1.")
        return {"seed": int(seed), "n_features": n_features_of(estimator, n_features)}

    @property
    def n_answers(self):
        """Public number of answers in the open round."""
        return self._answers

    def go_on(self):
        """Fitted estimator, or the fields of the first query that is not answered."""
        settings = self._settings
        rows = DeviceRows(
            settings["n_users"], 1 if self._open_width else self._n_features, settings["seed"],
            self._rounds, self._collection._paid_for, self._collection._lineage,
        )  # fmt: skip
        estimator = clone(self._estimator).set_params(random_state=None)
        try:
            return estimator.fit(rows, None), None
        except RoundNeeded as needed:
            fields = self._as_it_was(self._task_fields(needed))
            order = public_order(settings["n_users"], settings["seed"])
            self._members = frozenset(order[needed.start : needed.stop].tolist())
            self._answers = self._store.count(self._round)
            return None, fields

    @property
    def _round(self):
        return len(self._rounds) + 1

    def _as_it_was(self, fields):
        """The task that devices were given before a restart, which rounding may make anew."""
        name = f"task {self._round}"
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
            "round": self._round,
            "users": {
                "n": settings["n_users"], "seed": settings["seed"],
                "start": needed.start, "stop": needed.stop,
            },
        }  # fmt: skip
        if shuffled:
            fields["budget"]["delta"] = float(self._estimator.delta)
        return {**fields, "hash": task_hash(fields)}

    def add(self, fields, user, answer):
        """Keep the report of a user; whether it was the last one."""
        users = fields["users"]
        is_known(users, user)
        if int(user) not in self._members:
            raise ValueError(f"user {user} is not asked in round {self._round}.")
        seed, size, index = read_report(fields, user, answer)
        if self._store.has(int(user)) is not None:
            raise ValueError(f"user {user} has answered: a second report is refused.")
        self._check_size(fields, size)
        self._collection._step()
        self._store.add(self._round, int(user), seed, index)
        self._answers += 1
        return self._answers == users["stop"] - users["start"]

    def check_totals(self, fields, totals, n):
        """Refuse to close a round without answers; nothing more is said of it."""
        if totals or n is not None:
            raise ValueError("the answers of this round were given to add: pass nothing.")
        if not self._answers:
            raise ValueError("nobody has answered in this round: there is nothing to go on.")
        return {}

    def repeat(self):
        """Refuse: reports have been seen."""
        raise PrivacyError("reports have been seen: their round is not repeated.")

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

    def taken(self, fields):
        """Reports of the open round, decoded."""
        size = self._n_features + 1 + bool(fields["query"]["fit_intercept"])
        directions = reported_directions(fields, size, self._store.reports(self._round))
        return LiftedReports(directions, replace(self._code, size=size))
