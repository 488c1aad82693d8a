"""The analyst of a fit with real devices whose sums alone are seen."""

import base64
import json
from secrets import token_hex
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ...exceptions import PrivacyError
from ...privacy import MODULUS, Devices, capabilities, summed_shares
from .._collector import Collector, check_users
from .._ledger import MOST_ATTEMPTS
from .._settings import described, n_features_of
from ._device import unpacked
from ._task import TRANSPORTS, SumNeeded, SumRows, open_round, task_fields


class SumCollector(Collector):
    """Fits an estimator by secure aggregation, in the aggregate model.

    The same users answer every round. The fitted estimator has the law that ``fit`` simulates. The
    analyst who runs this sees sums with their noise, and no share of a user (or, with shuffled
    shares, all of them without names).

    Parameters
    ----------
    estimator : regressor
        A regressor with ``privacy="aggregate"``. It is not changed.
    n_users : int
        Public number of users, who have the numbers 0 to n_users - 1.
    seed : int, default=0
        Not used: all users answer. It is there because other collectors have it.
    n_features : int, default=None
        Public number of features of a record. None: as the estimator's ``bounds_X`` tell.
    path : str, default=None
        An SQLite file for :meth:`load` after a restart. None keeps all in memory.
    n_min : int, default=None
        How many users are counted on for noise: a sum of fewer is not opened. None is 95% of them.
        The fewer, the more noise each of them adds.
    transport : {"two-servers", "shuffled-shares"}, default="two-servers"
        How devices report: a share to each of two :class:`ShareServer`, or several shares of each
        number through a shuffler.

    Attributes
    ----------
    task : str or None
        Public JSON text of the open round, None after the last one.
    round : int
        Number of the open round, from 1 on.
    """

    _rounds: Any  # list of (total, n) of the closed rounds

    def __init__(
        self,
        estimator: Any,
        n_users: int,
        seed: Any = 0,
        *,
        n_features: Any = None,
        path: Any = None,
        n_min: Any = None,
        transport: str = "two-servers",
    ) -> None:
        if not capabilities(getattr(estimator, "privacy", "none")).summed:
            raise PrivacyError("devices of sums need privacy='aggregate'.")
        if getattr(estimator, "calibration_size", None) is not None:
            raise ValueError("devices answer all queries together: pass calibration_size=None.")
        check_users(n_users)
        n_min = max(1, -(-19 * int(n_users) // 20)) if n_min is None else n_min
        if not isinstance(n_min, (int, np.integer)) or not 1 <= n_min <= n_users:
            raise ValueError(f"n_min={n_min!r} must be a whole number from 1 to {n_users}.")
        if transport not in TRANSPORTS:
            raise ValueError(f"transport={transport!r} must be one of {list(TRANSPORTS)}.")
        known = n_features_of(estimator, n_features)
        if known is None:
            raise ValueError("n_features must be given: the public number of features of a record.")
        settings = {
            "estimator": described(estimator), "n_users": int(n_users), "n_min": int(n_min),
            "transport": transport, "n_features": known, "nonce": token_hex(16),
        }  # fmt: skip
        self._begin(estimator, settings, path)

    def _go_on(self):
        """Run the fit up to the first sum that is not there; it is the open round."""
        settings = self._settings
        devices = Devices(settings["n_users"], settings["n_min"], settings["transport"])
        rows = SumRows(
            devices.total, settings["n_features"], devices, self._rounds, self._paid_for,
            self._lineage,
        )  # fmt: skip
        estimator = clone(self._estimator).set_params(random_state=None)
        attempt = settings.get(f"attempt {self.round}", 0)
        fields = task_fields(settings, self._rounds, attempt)
        if not self._rounds:
            open_round(fields)  # what no device would answer is refused before anything is charged
        try:
            self._fitted, self._fields = estimator.fit(rows, None), None
        except SumNeeded:
            self._fields = fields
        self._paid_for = True

    def add(self, user: int, answer: Any) -> None:
        """Refuse: shares go to the servers, and not to the analyst."""
        raise PrivacyError(
            "shares of users go to the two servers, or through the shuffler: an analyst who had "
            "them all would see each record. Pass what they give out to close_round."
        )

    @property
    def n_answers(self) -> int:
        """Users in the last closed round."""
        return self._rounds[-1][1] if self._rounds else 0

    def repeat_round(self) -> None:
        """Begin the open round anew, with fresh noise and fresh shares, at most twice.

        For a round of two servers of which no sum was opened: messages were lost, or a server was.
        The accountants of the analyst are not charged again. A device cannot know that no sum was
        opened: its ledger is charged for the round once more. Shuffled shares have been seen when
        they come, so that their rounds are not repeated.
        """
        with self._store.lock:
            if self._open()["channel"]["transport"] != "two-servers":
                raise PrivacyError(
                    "shuffled shares have been seen, and a second round would show a second sum: "
                    "begin another collection, which is charged again."
                )
            name = f"attempt {self.round}"
            attempt = self._settings.get(name, 0) + 1
            if attempt >= MOST_ATTEMPTS:
                raise PrivacyError(
                    f"this round was tried {attempt} times, and devices answer no more attempts: "
                    "begin another collection that counts on fewer users."
                )
            self._step()
            self._settings[name] = attempt
            self._store.write_settings({name: self._settings[name]})
            self._go_on()

    def close_round(self, *totals: Any, n: int | None = None) -> None:
        """Go on with what the servers give out.

        Parameters
        ----------
        *totals : bytes, or iterable of bytes
            Messages: with two servers the :meth:`ShareServer.total` of each; with shuffled shares
            one iterable of all messages of the round, as the shuffler sends them on.
        n : int, default=None
            Number of users with shuffled shares: how many users have sent them, as the shuffler has
            counted.

        Raises
        ------
        ValueError
            If they are malformed, or not of the same users and of this attempt. Nothing has changed
            then.
        PrivacyError
            If there are fewer users than are counted on.
        """
        with self._store.lock:
            fields = self._open()
            needed = open_round(fields).needed
            if fields["channel"]["transport"] == "two-servers":
                total, count = _of_servers(fields, totals, needed.size)
            else:
                total, count = _of_shuffler(fields, totals, needed, n)
            if count < fields["users"]["adding"]:
                raise PrivacyError(f"{count} users are fewer than those who are counted on.")
            self._step()
            name = f"answer {self.round}"
            self._settings[name] = [total.tolist(), count]
            self._store.write_settings({name: self._settings[name]})
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
            raise NotFittedError(f"round {self.round} is open: close_round(...) goes on.")
        return self._fitted

    def _take_round(self):
        """Take over the sum of the open round, and go on with the fit."""
        total, n = self._settings[f"answer {self.round}"]
        self._rounds.append((np.array(total, dtype=np.int64), int(n)))
        self._go_on()


def _of_servers(fields, totals, size):
    """Sum and number of users of what the two servers gave out."""
    try:
        read = [json.loads(total) for total in totals]
        proper = sorted(one["which"] for one in read) == [0, 1]
        proper &= all(one["task"] == fields["hash"] for one in read)
        parts = [np.frombuffer(base64.b64decode(one["total"]), dtype="<u8") for one in read]
        proper &= all(len(part) == size for part in parts)
        same = len({(one["users"], one["n"]) for one in read}) == 1
    except (KeyError, TypeError, ValueError):
        proper = same = False
    if not proper:
        raise ValueError("two totals are expected, one of each server, for this round and attempt.")
    if not same:
        raise ValueError("the servers added up different users: let them agree on one list.")
    return summed_shares(np.array(parts)), int(read[0]["n"])


def _of_shuffler(fields, messages, needed, n):
    """Sum of shuffled shares; a missing message would make its coordinate uniform, and is seen."""
    if len(messages) != 1:
        raise ValueError("one iterable of all messages of the round is expected.")
    total, counts = [0] * needed.size, np.zeros(needed.size, dtype=int)
    for message in messages[0]:
        place, share = unpacked(fields, message, 1)
        if place >= needed.size:
            raise ValueError("a share names a coordinate that there is not.")
        total[place] = (total[place] + int(share[0])) % 2**MODULUS
        counts[place] += 1
    if type(n) is not int or not 1 <= n <= fields["users"]["n"]:
        raise ValueError(f"n={n!r} must be the number of users who have sent shares.")
    if not (counts == n * needed.shares).all():
        raise ValueError(
            f"{n} users send {n * needed.shares} shares of each coordinate, and another number "
            "came: a lost share makes its coordinate a random number. Begin another collection."
        )
    return np.array(total, dtype=np.uint64).view(np.int64), n
