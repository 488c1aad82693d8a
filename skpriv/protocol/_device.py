"""What a device runs: from a public task and a private record to a few bytes, or to nothing.

NumPy and the standard library are all that is imported here, directly or not.
"""

import json
import secrets
from math import inf
from os import PathLike
from sys import float_info
from typing import TYPE_CHECKING, Any

import numpy as np

from .._contracts import is_whole
from .._wire import (
    DEVICE_SEED_BYTES, LARGEST_SIZE, codebook, draw_index, draw_sign, equally_good, is_known,
    lifted, read_task, report_bytes, user_seed,
)  # fmt: skip
from ..exceptions import PrivacyError
from ._record import CHANNEL, DAMAGED, check_size, chosen, floats, n_phi, scaled_record

if TYPE_CHECKING:
    from .._wire import Task, Users
    from .._contracts import Array

# A server that lies could stall devices. Collectors ask for at most 1,024 directions.
LARGEST_COUNT = 10_000
LARGEST_CODEBOOK = 16_000_000  # numbers that take 2 seconds and a gigabyte
LARGEST_ORDER = 100_000_000  # users whose order takes 7 seconds and 0.8 GB


def is_asked(users: "Users", user: Any) -> bool:
    """Whether a user is among those who answer: positions start to stop of a public order.

    The order is a permutation of n users by a public seed, drawn before anybody answered.
    """
    is_known(users, user)
    if users["stop"] - users["start"] == users["n"]:
        return True
    return user in public_order(users["n"], users["seed"])[users["start"] : users["stop"]]


def public_order(n: int, seed: int) -> np.ndarray:
    """Public random order of n users; NumPy keeps this generator's draws for ever."""
    check_size(n, LARGEST_ORDER, "users who are dealt out")
    return np.random.RandomState(seed).permutation(n)


def act(state: Any, contexts: Any) -> int:
    """Action that a bandit policy takes, computed on the user's own device.

    Parameters
    ----------
    state : str
        Public JSON text of a policy's ``public_state()``.
    contexts : array-like
        The user's private contexts in one round: the features of every action, of shape
        (n_actions, n_features), or of shape (n_features,) for a policy with ``shared=False``.

    Returns
    -------
    int
        The action of the largest upper confidence bound, whose bonus is one of those of the policy,
        drawn on the device, or any of several that are equal; or, of a policy by inverse gaps, an
        action drawn on the device. Any action before anything was learned.
    """
    fields = read_task(state)
    state_fields = json.loads(state)
    if "region" not in state_fields:
        raise ValueError("this is a task, which has no actions: pass a policy's public_state().")
    region = state_fields["region"]
    try:
        with np.errstate(all="ignore"):  # a warning would tell of the contexts
            query = fields["query"]
            phi = action_features(fields, contexts) / query["data_norm"]
            if query["fit_intercept"]:
                long, short = query["parts"]
                phi = np.column_stack([long * phi, np.full(len(phi), short)])
            if region is None:  # nothing was learned so far, and any action is as good
                return secrets.randbelow(len(phi))
            means = phi @ np.array(region["centre"])
            if "weight" in region:
                return _by_inverse_gaps(means, region["weight"])
            bonus = secrets.choice(region["bonuses"])
            squares = np.einsum("ij,ij->i", phi @ np.array(region["form"]), phi)
            index = means + bonus * np.sqrt(np.maximum(squares, 0.0))
            return _any_of(equally_good(index[None]))
    except PrivacyError:
        raise
    except Exception:  # whoever made the state may have left out anything
        raise ValueError(DAMAGED) from None


def _by_inverse_gaps(means: np.ndarray, weight: float) -> int:
    """One action: 1 / (K + weight gap) for each but the best ones, which share the rest."""
    best = equally_good(means[None])
    chances = np.where(best, 0.0, 1.0 / (len(means) + weight * (means.max() - means)))
    drawn = secrets.randbits(53) * 2.0**-53
    below = int((np.cumsum(chances) <= drawn).sum())
    return below if below < len(means) else _any_of(best)


def _any_of(marked: np.ndarray) -> int:
    """Draw one of the actions that are marked, shape (1, n_actions)."""
    return int(secrets.choice(np.flatnonzero(marked)))


def action_features(fields: "Task", contexts: Any) -> np.ndarray:
    """Features phi(x, a) of every action, of shape (n_actions, n_phi); zero where no number is."""
    actions = fields["policy"]
    size = fields["query"]["n_features"]
    shared = actions["shared"]
    n_actions = actions["n_actions"]
    rows = [floats(row) for row in contexts] if shared else [floats(contexts)]
    width = size if shared else size // n_actions
    check_size(0 if shared else n_actions * size, LARGEST_CODEBOOK, "numbers of actions")
    rows = [row if len(row) == width else np.zeros(width) for row in rows]
    found = np.nan_to_num(np.array(rows), posinf=0.0, neginf=0.0)
    return found if shared else np.kron(np.eye(n_actions), found)


def check_task(fields: dict[str, Any]) -> None:
    """Refuse a task by which nothing could be drawn, whoever made it: the record plays no part.

    The guarantee needs no more than that: any numbers of directions are as private.
    """
    channel = fields["channel"]
    query = fields["query"]
    if channel["name"] != "codebook" or query["name"] != "lifted moments":
        raise ValueError(f"no device can answer {query['name']!r} by {channel['name']!r} here.")
    count = channel["count"]
    epsilon = channel["epsilon"]
    size = query["n_features"]
    actions = fields.get("policy")
    proper = (
        is_whole(count, 2, inf)
        and is_whole(channel["nearest"], 1, count - 1)
        and type(epsilon) in (int, float)
        and 0.0 < epsilon <= float_info.max  # a whole number in JSON may be larger
        and channel["seed"] in ("user", "device")
        and (is_whole(size, 1, LARGEST_SIZE) or size is actions is None)
    )
    if actions is not None and proper:
        proper = is_whole(actions["n_actions"], 1, LARGEST_COUNT) and (
            actions["shared"] is True
            or actions["shared"] is False
            and not size % actions["n_actions"]
        )
    if not proper:
        raise ValueError(DAMAGED)
    check_size(count, LARGEST_COUNT, "directions")


def report(
    task: Any,
    x: Any,
    y: Any,
    *,
    user: int,
    action: Any = None,
    largest_epsilon: Any = None,
    ledger: Any = None,
) -> bytes | list[bytes] | None:
    """Answer of one user's device to a task.

    Parameters
    ----------
    task : str
        Public JSON text, of :attr:`skpriv.protocol.Collector.task` or a policy's
        ``public_state()``.
    x : array-like of shape (n_features,)
        The user's private features; with ``action``, the contexts as given to :func:`act`.
    y : float
        The user's private target or reward.
    user : int
        The user's public number, from 0 to the number of users less 1.
    action : int, default=None
        The action that was taken; the task of a policy needs it. The answer about an action that
        there is not is that of a row of zeros.
    largest_epsilon : float, default=None
        What the user has agreed to lose to this task; a task that asks for more is refused, and
        so is one that asks for nothing.
    ledger : DeviceLedger, default=None
        The device's memory: it is charged first, and refuses a second answer to a task, and what
        exceeds all that the user has agreed to lose.

    Returns
    -------
    bytes, list of bytes or None
        Under 1 kB. In the aggregate model a list of messages: one for each of the two servers, or
        one for each share of each coordinate. None if this user is not asked in this round, and
        then nothing may be sent.

    Raises
    ------
    ValueError
        If the task is damaged, the record has another number of features, or a policy's task comes
        without an action. The content of cells, and the action that was taken, play no part in it:
        what is no number counts as zero.
    TypeError
        If ``ledger`` is no `DeviceLedger`, but the path of one.
    PrivacyError
        If the task asks for more than ``largest_epsilon``, or the ledger refuses.

    Notes
    -----
    **Privacy guarantee**: epsilon-differential privacy of the bytes, delta = 0, whatever the task's
    server does with them: one index of a public codebook, drawn by one exact integer of the
    operating system (:func:`skpriv.privacy.draw_index`). It is a guarantee for one answer. A device
    must not answer the same task twice, and several answers of a user add up: a ledger sees to it.

    Whether a task is refused, and with which words, follows from the task, the user's number and
    the public shape of the record. All fields by which a record is read are covered by the hash by
    which a ledger knows a task.

    Examples
    --------
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.protocol import Collector, report
    >>> model = SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1),
    ...     epsilon=4.0, delta=0.0, privacy="local", channel="codebook",
    ... )
    >>> collector = Collector(model, n_users=3, seed=0, n_features=2)
    >>> answer = report(collector.task, [0.3, 0.1], 0.5, user=1)
    >>> len(answer) < 1000
    True
    """
    fields = read_task(task)
    if action is None and fields.get("policy") is not None:
        raise ValueError("action is missing: a policy's task needs the action that act returned.")
    if isinstance(ledger, str | PathLike):
        raise TypeError("ledger must be a DeviceLedger, such as DeviceLedger(path, epsilon=8.0).")
    if isinstance(fields.get("channel"), dict) and fields["channel"].get("name") == CHANNEL:
        from ._sums import sum_report

        return sum_report(fields, x, y, user, largest_epsilon=largest_epsilon, ledger=ledger)
    try:
        check_task(fields)
        channel = fields["channel"]
        if largest_epsilon is not None and not channel["epsilon"] <= largest_epsilon:
            raise PrivacyError(
                f"the task asks for epsilon={channel['epsilon']}, more than the "
                f"largest_epsilon={largest_epsilon} that was agreed to."
            )
        if not is_asked(fields["users"], user):
            return None
        size = n_phi(fields, x)
        size_of_direction = size + bool(fields["query"]["fit_intercept"]) + 1
        check_size(size_of_direction, LARGEST_SIZE, "features")
        check_size(channel["count"] * size_of_direction, LARGEST_CODEBOOK, "numbers in a codebook")
        seed = user_seed(fields, user)
        blank = scaled_record(fields["query"], np.zeros(size), 0.0)  # checks the query
    except (AttributeError, LookupError, MemoryError, OverflowError, TypeError):
        raise ValueError(DAMAGED) from None
    if ledger is not None:  # before the record is looked at
        from ..privacy import Cost  # late, because it loads SciPy

        ledger.charge(fields["hash"], Cost.from_epsilon(channel["epsilon"]))
    drawn = b""
    if channel["seed"] == "device":
        seed = drawn = secrets.token_bytes(DEVICE_SEED_BYTES)
    directions = codebook(seed, channel["count"], size_of_direction)
    secret = secret_direction(fields, size, x, y, action, blank)
    index = draw_index(secret, directions, channel["nearest"], channel["epsilon"])
    return report_bytes(fields, size_of_direction, index, drawn)


def secret_direction(
    fields: "Task",
    size: int,
    x: Any,
    y: Any,
    action: int | None,
    blank: tuple[np.ndarray, float],
) -> "Array":
    """Direction of the lifted record; of any record, in silence.

    An action that is none, and a record that cannot be read at all, is the blank record, all of it
    zero.
    """
    try:
        cells = chosen(fields, size, x, action)
        phi, r = blank if cells is None else scaled_record(fields["query"], cells, y)
    except Exception:  # the kind of error would tell something of the record
        phi, r = blank
    with np.errstate(all="ignore"):
        return lifted(phi[None, :], np.array([draw_sign(r)]))[0]
