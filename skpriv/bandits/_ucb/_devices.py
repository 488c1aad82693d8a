"""A policy whose users act and report on their own devices."""

import json
import secrets
from collections import Counter
from typing import Any, Self

from ...exceptions import PrivacyError
from ...privacy import (
    WIRE_VERSION,
    LiftedReports,
    is_known,
    read_report,
    reported_directions,
    task_hash,
)

EVERY_USER = 2**53  # every whole number that JSON keeps is the number of a user


class ServesDevices:
    """Mixin of policies with sums of codebook reports: public state out, reports in."""

    # of the policy
    _acting: Any  # () -> what a device acts by, as JSON has it; None before the first read
    _begin: Any
    _shared: bool
    _sums: Any
    _pay: Any
    _take_reports: Any
    _whole: Any
    _trust: Any
    _sent: str
    _max_visits: Any
    _round_budget: Any
    epsilon: float
    n_actions: Any
    n_actions_: int
    n_rounds_: int
    _offset: Any

    def public_state(self, *, n_actions: int | None = None, n_features: Any = None) -> str:
        """What a device needs to act and to report; nothing in it is more than was released.

        Parameters
        ----------
        n_actions, n_features : int, default=None
            Public shape of the contexts, needed before the first call of ``act``.

        Returns
        -------
        str
            JSON text for :func:`skpriv.protocol.act` and :func:`skpriv.protocol.report`. It
            changes with every update of the policy; the task in it does not, so that reports may
            come late.
        """
        if not hasattr(self, "n_rounds_"):
            if n_features is None or (self._shared and n_actions is None):
                raise ValueError("before the first round n_actions and n_features must be given.")
            self._begin(n_actions if self._shared else self.n_actions, n_features)
        state = {
            "task": self._device_task(),
            "region": self._acting(),
            "n_rounds": int(self.n_rounds_),
        }
        return json.dumps(state, allow_nan=False)

    def update_from_reports(self, reports: Any) -> Self:
        """Learn from reports of devices; refuse all of them if one is not as it should be.

        Parameters
        ----------
        reports : iterable of (user, bytes)
            Every user has one round, hence one report; with ``max_visits`` as many reports, each
            of which has its part of the budget.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a user is unknown or has reported (``max_visits`` times), or if bytes are malformed,
            out of range or of another policy; nothing has changed then.
        """
        fields, answers = self._device_task(), []
        seen: Counter = Counter()
        most = self._max_visits or 1
        for user, answer in reports:
            is_known(fields["users"], user)
            seen[int(user)] += 1
            if self._reported[int(user)] + seen[int(user)] > most:
                raise ValueError(
                    f"user {user} has reported {most} times: a further report is refused."
                )
            seed, _, index = read_report(fields, user, answer)
            answers.append((seed, index))
        if answers:
            directions = reported_directions(fields, self._sums.code.size, answers)
            self._pay(len(answers))
            with self._whole():
                self._take_reports(LiftedReports(directions, self._sums.code))
                self._reported += seen
                self.n_rounds_ += len(answers)
        return self

    def _device_task(self):
        """Fields of the task of all rounds: the same for the policy's whole life."""
        if not hasattr(self, "n_rounds_"):
            raise ValueError("devices have not been given a task: call public_state.")
        if self._trust.exact or self._sent != "codebook":
            raise PrivacyError(
                "devices send one index of a codebook each: pass privacy='local' and "
                "channel='codebook'."
            )
        if not hasattr(self, "_device_fields"):
            code, query = self._sums.code, self._sums.query
            fields = {
                "version": WIRE_VERSION,
                "policy": {
                    "class": type(self).__name__, "id": secrets.token_hex(16),
                    "shared": bool(self._shared), "n_actions": int(self.n_actions_),
                },
                "query": {**query.wire(), "offset": self._offset},
                "channel": {
                    "name": "codebook", "epsilon": code.epsilon, "size": code.size,
                    "count": code.count, "nearest": code.nearest, "seed": "user",
                },
                "budget": {"epsilon": self._round_budget.epsilon, "delta": 0.0},
                "round": 1,
                "users": {"n": EVERY_USER, "seed": 0, "start": 0, "stop": EVERY_USER},
            }  # fmt: skip
            self._device_fields = {**fields, "hash": task_hash(fields)}
            self._reported: Counter = Counter()
        return self._device_fields
