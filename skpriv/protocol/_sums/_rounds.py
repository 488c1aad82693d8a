"""Rounds in which nobody but a server with the other one sees more than a sum."""

import base64
import json
from secrets import token_hex

import numpy as np
from sklearn.base import clone

from ...exceptions import PrivacyError
from ...privacy import MODULUS, Devices, summed_shares
from .._ledger import MOST_ATTEMPTS
from .._settings import n_features_of
from ._device import unpacked
from ._task import TRANSPORTS, SumNeeded, SumRows, open_round, task_fields


class Sums:
    """How a collection of sums asks and takes its rounds: the same users answer all of them.

    Parameters
    ----------
    collection : Collector
        Its settings, its store and its rounds, (total, n) of each, are shared.
    """

    def __init__(self, collection):
        self._collection, self._estimator = collection, collection._estimator
        self._settings, self._store = collection._settings, collection._store
        self._rounds = collection._rounds

    @staticmethod
    def settings(estimator, n_users, n_features, *, seed, n_min, transport):
        """Settings of a new collection, all of them public; the seed is not used."""
        if getattr(estimator, "calibration_size", None) is not None:
            raise ValueError("devices answer all queries together: pass calibration_size=None.")
        n_min = max(1, -(-19 * int(n_users) // 20)) if n_min is None else n_min
        if not isinstance(n_min, (int, np.integer)) or not 1 <= n_min <= n_users:
            raise ValueError(f"n_min={n_min!r} must be a whole number from 1 to {n_users}.")
        transport = TRANSPORTS[0] if transport is None else transport
        if transport not in TRANSPORTS:
            raise ValueError(f"transport={transport!r} must be one of {list(TRANSPORTS)}.")
        known = n_features_of(estimator, n_features)
        if known is None:
            raise ValueError("n_features must be given: the public number of features of a record.")
        return {
            "n_min": int(n_min), "transport": transport, "n_features": known,
            "nonce": token_hex(16),
        }  # fmt: skip

    @property
    def n_answers(self):
        """Users in the last closed round."""
        return self._rounds[-1][1] if self._rounds else 0

    def go_on(self):
        """Fitted estimator, or the fields of the first sum that is not there."""
        settings = self._settings
        devices = Devices(settings["n_users"], settings["n_min"], settings["transport"])
        rows = SumRows(
            devices.total, settings["n_features"], devices, self._rounds,
            self._collection._paid_for, self._collection._lineage,
        )  # fmt: skip
        estimator = clone(self._estimator).set_params(random_state=None)
        attempt = settings.get(f"attempt {len(self._rounds) + 1}", 0)
        fields = task_fields(settings, self._rounds, attempt)
        if not self._rounds:
            open_round(fields)  # what no device would answer is refused before anything is charged
        try:
            return estimator.fit(rows, None), None
        except SumNeeded:
            return None, fields

    def add(self, fields, user, answer):
        """Refuse: shares go to the servers, and not to the analyst."""
        raise PrivacyError(
            "shares of users go to the two servers, or through the shuffler: an analyst who had "
            "them all would see each record. Pass what they give out to close_round."
        )

    def repeat(self):
        """Write down another attempt at the open round."""
        if self._settings["transport"] != TRANSPORTS[0]:
            raise PrivacyError(
                "shuffled shares have been seen, and a second round would show a second sum: "
                "begin another collection, which is charged again."
            )
        name = f"attempt {len(self._rounds) + 1}"
        attempt = self._settings.get(name, 0) + 1
        if attempt >= MOST_ATTEMPTS:
            raise PrivacyError(
                f"this round was tried {attempt} times, and devices answer no more attempts: "
                "begin another collection that counts on fewer users."
            )
        self._collection._step()
        self._settings[name] = attempt
        self._store.write_settings({name: attempt})

    def check_totals(self, fields, totals, n):
        """Sum of what the servers give out, to be kept."""
        needed = open_round(fields).needed
        if fields["channel"]["transport"] == TRANSPORTS[0]:
            total, count = _of_servers(fields, totals, needed.size)
        else:
            total, count = _of_shuffler(fields, totals, needed, n)
        if count < fields["users"]["adding"]:
            raise PrivacyError(f"{count} users are fewer than those who are counted on.")
        return {f"answer {len(self._rounds) + 1}": [total.tolist(), count]}

    def taken(self, fields):
        """Sum of the open round, and how many users are in it."""
        total, n = self._settings[f"answer {len(self._rounds) + 1}"]
        return np.array(total, dtype=np.int64), int(n)


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
