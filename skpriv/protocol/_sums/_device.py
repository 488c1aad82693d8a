"""What a device does for a sum: its vector, its part of the noise, and shares of both."""

import os
from typing import Any

import numpy as np

from ...exceptions import PrivacyError
from ...privacy import (
    INDEX_BYTES,
    TASK_BYTES,
    Budget,
    additive_shares,
    discrete_gaussian,
    is_known,
    rounded,
)
from .._record import floats, n_cells, number
from ._task import open_round, rounds_of

MAGIC = b"skps"


def sum_report(
    fields: Any,
    x: Any,
    y: Any,
    user: int,
    *,
    largest_epsilon: Any = None,
    ledger: Any = None,
) -> list[bytes]:
    """Messages of one user's device: shares of the own vector and of the own part of the noise.

    Parameters
    ----------
    fields : dict
        Fields of a task whose hash was checked.
    x, y : array-like of shape (n_features,), float
        The record. What is no number counts as zero.
    user : int
    largest_epsilon, ledger : float, DeviceLedger
        The same as for :func:`skpriv.protocol.report`. A collection is charged with its first
        answer, and another attempt at a round as that round once more.

    Returns
    -------
    list of bytes
        Messages: with two servers one message for each; else one for each share of each coordinate.

    Notes
    -----
    **Privacy guarantee**: any messages but those of all servers together are uniform numbers that
    do not depend on the record. All of them add up to the record's vector and noise of the task's
    variance, and see the record almost as it is.
    """
    opened = open_round(fields)
    is_known(fields["users"], user)
    if n_cells(x) != fields["n_features"]:
        raise ValueError(f"a record has {fields['n_features']} features in this task.")
    delta = 0.0 if ledger is None else ledger.budget.delta
    if largest_epsilon is not None and not opened.cost.fits(Budget(largest_epsilon, delta)):
        raise PrivacyError(
            f"the task asks for epsilon={opened.cost.epsilon(delta):g} at delta={delta:g}, more "
            f"than the largest_epsilon={largest_epsilon} that was agreed to. The delta is that of "
            "a DeviceLedger."
        )
    if ledger is not None:  # before the record is looked at
        # Shuffled shares have been seen when they come.
        again = opened.needed.cost if fields["channel"]["transport"] == "two-servers" else None
        ledger.charge(
            opened.collection, opened.cost, rounds_of(fields),
            again=again, adding=fields["users"]["adding"],
        )  # fmt: skip
    steps = noisy_vector(opened.needed, x, y)
    return packed(fields, additive_shares(steps, opened.needed.shares, os.urandom))


def noisy_vector(needed, x, y, entropy=os.urandom):
    """A record's vector in steps of the grid, with this user's part of the noise."""
    row = np.nan_to_num(floats(x), posinf=0.0, neginf=0.0)[None, :]
    target = np.nan_to_num(np.array([number(y)]), posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        vector = np.asarray(needed.query.sum(row, target), dtype=float)
    steps = rounded(vector, needed.lattice.step)
    return steps + discrete_gaussian(needed.lattice.variance, np.zeros(needed.size), entropy)


def packed(fields, shares):
    """Messages of shares of shape (n_shares, size)."""
    name = MAGIC + bytes.fromhex(fields["hash"])[:TASK_BYTES]
    if fields["channel"]["transport"] == "two-servers":
        return [
            name + server.to_bytes(INDEX_BYTES, "little") + share.astype("<u8").tobytes()
            for server, share in enumerate(shares)
        ]
    return [
        name + place.to_bytes(INDEX_BYTES, "little") + share.astype("<u8").tobytes()
        for place, column in enumerate(shares.T)
        for share in column[:, None]
    ]


def unpacked(fields, message, size):
    """(place, numbers) of a message to a task.

    Raises
    ------
    ValueError
        If it is malformed, of another attempt, or of another length.
    """
    head = len(MAGIC) + TASK_BYTES
    if not isinstance(message, bytes) or message[: len(MAGIC)] != MAGIC:
        raise ValueError("this is no share: bytes of skpriv.protocol.report are expected.")
    if message[len(MAGIC) : head] != bytes.fromhex(fields["hash"])[:TASK_BYTES]:
        raise ValueError("the share answers another task: another round, attempt or collection.")
    if len(message) != head + INDEX_BYTES + 8 * size:
        raise ValueError(f"the share has {len(message)} bytes, and is cut off or too long.")
    place = int.from_bytes(message[head : head + INDEX_BYTES], "little")
    return place, np.frombuffer(message[head + INDEX_BYTES :], dtype="<u8").astype(np.uint64)
