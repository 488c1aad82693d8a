"""Public tasks and the bytes of reports: what goes over the wire, for devices and servers.

This module needs the standard library and NumPy only.
"""

from typing import Any
import hashlib
import json

import numpy as np

from ._noise._codebook import codebook

WIRE_VERSION = 1
MAGIC = b"skp1"
TASK_BYTES = np.dtype(np.uint64).itemsize  # of the hash, by which a report names its task
SIZE, INDEX = np.dtype(np.uint16), np.dtype(np.uint32)  # of a direction, and in a codebook
SIZE_BYTES, INDEX_BYTES, LARGEST_SIZE = SIZE.itemsize, INDEX.itemsize, np.iinfo(SIZE).max
DEVICE_SEED_BYTES = 16  # only where a device draws the seed


def task_hash(fields: Any) -> str:
    """Hash of all fields of a task but the hash itself."""
    whole = {name: value for name, value in fields.items() if name != "hash"}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_task(task: Any) -> dict[str, Any]:
    """Fields of a task, checked against its version and hash.

    Raises
    ------
    ValueError
        If the text is no task, of another version, or was changed.
    """
    fields = json.loads(task)
    if isinstance(fields, dict) and "task" in fields:  # of a policy's public state
        fields = fields["task"]
    if not isinstance(fields, dict) or fields.get("version") != WIRE_VERSION:
        raise ValueError(f"this is no task of version {WIRE_VERSION}.")
    if fields.get("hash") != task_hash(fields):
        raise ValueError("the hash of the task does not fit its fields: it was changed on its way.")
    return fields


def is_known(users: Any, user: int) -> None:
    """Refuse what is not the number of a user."""
    whole = isinstance(user, (int, np.integer)) and not isinstance(user, bool)
    if not (whole and 0 <= user < users["n"]):
        raise ValueError(f"user={user!r} must be a number from 0 to {users['n'] - 1}.")


def user_seed(fields: Any, user: int) -> bytes:
    """Public seed of a user's codebook: the task and the user's number."""
    return bytes.fromhex(fields["hash"]) + int(user).to_bytes(8, "little")


def read_report(fields: Any, user: int, answer: Any) -> tuple:
    """(seed, size, index) of the bytes of a report to a task.

    Raises
    ------
    ValueError
        If they are malformed, of another round, or out of range.
    """
    channel = fields["channel"]
    drawn = DEVICE_SEED_BYTES if channel["seed"] == "device" else 0
    head = len(MAGIC) + TASK_BYTES
    body = head + SIZE_BYTES + INDEX_BYTES
    if not isinstance(answer, bytes) or answer[: len(MAGIC)] != MAGIC:
        raise ValueError("this is no report: bytes of skpriv.protocol.report are expected.")
    if answer[len(MAGIC) : head] != bytes.fromhex(fields["hash"])[:TASK_BYTES]:
        raise ValueError("the report answers another task: a wrong round, or another collection.")
    if len(answer) != body + drawn:
        raise ValueError(f"the report has {len(answer)} bytes, and is cut off or too long.")
    size = int.from_bytes(answer[head : head + SIZE_BYTES], "little")
    index = int.from_bytes(answer[head + SIZE_BYTES : body], "little")
    if index >= channel["count"]:
        raise ValueError(f"the report's index {index} is out of range.")
    if size != (channel["size"] or max(size, 2)):
        raise ValueError(f"the report is one of {size} coordinates, another number of features.")
    return answer[body:] or user_seed(fields, user), size, index


def report_bytes(fields: Any, size: int, index: Any, seed: Any = b"") -> bytes:
    """Report of an index, with the seed that the device drew, if any."""
    name = bytes.fromhex(fields["hash"])[:TASK_BYTES]
    numbers = size.to_bytes(SIZE_BYTES, "little") + index.to_bytes(INDEX_BYTES, "little")
    return MAGIC + name + numbers + seed


def reported_directions(fields: Any, size: int, answers: Any) -> np.ndarray:
    """Directions of (seed, index) pairs of reports to a task.

    Returns
    -------
    ndarray of shape (n_answers, size)
    """
    count = fields["channel"]["count"]
    return np.concatenate([codebook(seed, count, size, [index]) for seed, index in answers])
