"""What a device runs: from a public task and a private record to a few bytes, or to nothing.

NumPy and the standard library are all that is imported here, directly or not.
"""

import hashlib
import json
import secrets
from math import isfinite, sqrt

import numpy as np

from ..exceptions import PrivacyError
from ..privacy import codebook, draw_index, draw_sign, lifted

VERSION = 1
MAGIC = b"skp1"
TASK_BYTES = 8  # of the hash, by which a report names its task
INDEX_BYTES = 4
SEED_BYTES = 16  # only where a device draws the seed


def task_hash(fields):
    """Hash of all fields of a task but the hash itself."""
    whole = {name: value for name, value in fields.items() if name != "hash"}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_task(task):
    """Fields of a task, checked against its version and hash.

    Raises
    ------
    ValueError
        If the text is no task, of another version, or was changed.
    """
    fields = json.loads(task)
    if not isinstance(fields, dict) or fields.get("version") != VERSION:
        raise ValueError(f"this is no task of version {VERSION}.")
    if fields.get("hash") != task_hash(fields):
        raise ValueError("the hash of the task does not fit its fields: it was changed on its way.")
    return fields


def is_asked(users, user):
    """Whether a user is among those who answer: positions start to stop of a public order.

    The order is a permutation of n users by a public seed, drawn before anybody answered.
    """
    is_known(users, user)
    if users["stop"] - users["start"] == users["n"]:
        return True
    return bool(user in public_order(users["n"], users["seed"])[users["start"] : users["stop"]])


def is_known(users, user):
    """Refuse what is not the number of a user."""
    if not isinstance(user, (int, np.integer)) or isinstance(user, bool):
        known = False
    else:
        known = 0 <= user < users["n"]
    if not known:
        raise ValueError(f"user={user!r} must be a number from 0 to {users['n'] - 1}.")


def public_order(n, seed):
    """Public random order of n users; NumPy keeps this generator's draws for ever."""
    return np.random.RandomState(seed).permutation(n)


def user_seed(fields, user):
    """Public seed of a user's codebook: the task and the user's number."""
    return bytes.fromhex(fields["hash"]) + int(user).to_bytes(8, "little")


def scaled_record(query, x, y):
    """(phi, r) of a record by the public scaling of a query: |phi| <= 1 and |r| <= 1.

    Any record has an answer: what is not a finite number becomes a zero row or a zero target.
    """
    x = np.asarray(x, dtype=float).ravel()
    if len(x) != query["n_features"]:
        raise ValueError(f"a record has {query['n_features']} features in this task, not {len(x)}.")
    shrink = sqrt(0.5) if query["fit_intercept"] else 1.0
    largest = float(np.abs(x).max(initial=0.0))  # NaN and inf pass through
    phi = np.zeros(len(x) + bool(query["fit_intercept"]))
    if isfinite(largest) and largest > 0.0:
        unit = x / largest
        norm = float(np.sqrt(unit @ unit))  # of the row, in units of its largest entry
        factor = shrink / max(norm, query["data_norm"] / largest)
        phi[: len(x)] = unit * factor
    if query["fit_intercept"]:
        phi[-1] = shrink
    return phi, _scaled_target(query, float(y))


def _scaled_target(query, y):
    if not y == y:
        return 0.0
    low, high = query["bounds_y"]
    if query["fit_intercept"]:
        centre, radius = low / 2 + high / 2, high / 2 - low / 2
    else:
        centre, radius = 0.0, max(abs(low), abs(high))
    return min(1.0, max(-1.0, (min(high, max(low, y)) - centre) / radius))


def report(task, x, y, *, user, largest_epsilon=None):
    """Answer of one user's device to a task.

    Parameters
    ----------
    task : str
        Public JSON text, of :attr:`skpriv.protocol.Collector.task`.
    x : array-like of shape (n_features,)
        The user's private features.
    y : float
        The user's private target.
    user : int
        The user's public number, from 0 to the number of users less 1.
    largest_epsilon : float, default=None
        What the user has agreed to lose to this task; a task that asks for more is refused.

    Returns
    -------
    bytes or None
        Under 1 kB; None if this user is not asked in this round, and then nothing may be sent.

    Raises
    ------
    ValueError
        If the task is damaged, or the record has another number of features.
    PrivacyError
        If the task asks for more than ``largest_epsilon``.

    Notes
    -----
    **Privacy guarantee**: epsilon-differential privacy of the bytes, delta = 0, whatever the task's
    server does with them: one index of a public codebook, drawn by one exact integer of the
    operating system (:func:`skpriv.privacy.draw_index`). It is a guarantee for one answer. A device
    must not answer the same task twice, and several answers of a user add up.

    Examples
    --------
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.protocol import Collector, report
    >>> model = SSPRegressor(epsilon=4.0, delta=0.0, privacy="local", channel="codebook")
    >>> collector = Collector(model, n_users=3, seed=0, n_features=2)
    >>> answer = report(collector.task, [0.3, 0.1], 0.5, user=1)
    >>> len(answer) < 1000
    True
    """
    fields = read_task(task)
    query, channel = fields["query"], fields["channel"]
    if channel["name"] != "codebook" or query["name"] != "lifted moments":
        raise ValueError(f"no device can answer {query['name']!r} by {channel['name']!r} here.")
    if largest_epsilon is not None and not channel["epsilon"] <= largest_epsilon:
        raise PrivacyError(
            f"the task asks for epsilon={channel['epsilon']}, more than the "
            f"largest_epsilon={largest_epsilon} that was agreed to."
        )
    if not is_asked(fields["users"], user):
        return None
    phi, r = scaled_record(query, x, y)
    secret = lifted(phi[None, :], np.array([draw_sign(r)]))[0]
    drawn = secrets.token_bytes(SEED_BYTES) if channel["seed"] == "device" else b""
    directions = codebook(drawn or user_seed(fields, user), channel["count"], channel["size"])
    index = draw_index(secret, directions, channel["nearest"], channel["epsilon"])
    name = bytes.fromhex(fields["hash"])[:TASK_BYTES]
    return MAGIC + name + index.to_bytes(INDEX_BYTES, "little") + drawn


def read_report(fields, user, answer):
    """(seed, index) of the bytes of a report to a task.

    Raises
    ------
    ValueError
        If they are malformed, of another round, or out of range.
    """
    drawn = SEED_BYTES if fields["channel"]["seed"] == "device" else 0
    head = len(MAGIC) + TASK_BYTES
    if not isinstance(answer, bytes) or answer[: len(MAGIC)] != MAGIC:
        raise ValueError("this is no report: bytes of skpriv.protocol.report are expected.")
    if answer[len(MAGIC) : head] != bytes.fromhex(fields["hash"])[:TASK_BYTES]:
        raise ValueError("the report answers another task: a wrong round, or another collection.")
    if len(answer) != head + INDEX_BYTES + drawn:
        raise ValueError(f"the report has {len(answer)} bytes, and is cut off or too long.")
    index = int.from_bytes(answer[head : head + INDEX_BYTES], "little")
    if index >= fields["channel"]["count"]:
        raise ValueError(f"the report's index {index} is out of range.")
    return answer[head + INDEX_BYTES :] or user_seed(fields, user), index
