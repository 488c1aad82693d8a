"""What a device runs: from a public task and a private record to a few bytes, or to nothing.

NumPy and the standard library are all that is imported here, directly or not.
"""

from typing import Any
import json
import secrets
from math import inf, isfinite, sqrt

import numpy as np

from ..exceptions import PrivacyError
from ..privacy import (
    SEED_BYTES,
    codebook,
    draw_index,
    draw_sign,
    is_known,
    lifted,
    read_task,
    report_bytes,
    user_seed,
)

LARGEST_COUNT = 2**20  # of directions: a codebook is made in memory
SHORTEST = 1e-150  # of a row: the direction of a shorter one is not representable


def is_asked(users, user):
    """Whether a user is among those who answer: positions start to stop of a public order.

    The order is a permutation of n users by a public seed, drawn before anybody answered.
    """
    is_known(users, user)
    if users["stop"] - users["start"] == users["n"]:
        return True
    return bool(user in public_order(users["n"], users["seed"])[users["start"] : users["stop"]])


def public_order(n, seed):
    """Public random order of n users; NumPy keeps this generator's draws for ever."""
    return np.random.RandomState(seed).permutation(n)


def scaled_record(query, x, y):
    """(phi, r) of a record by the public maps of a query: |phi| <= 1 and |r| <= 1.

    Any record has an answer: what is not a finite number becomes a zero row or a zero target.
    """
    x = np.asarray(x, dtype=float).ravel()
    check_query(query, len(x))
    with np.errstate(all="ignore"):  # a warning would tell of the record
        long, short = query["parts"]
        unit = _in_box(query, x) if "low" in query else _in_ball(query, x)
        phi = long * unit
        if query["fit_intercept"]:
            phi = np.append(phi, short)
        r = _scaled_target(query, float(y) - query.get("offset", 0.0))
        return weighted(query["weights"], phi, r) if "weights" in query else (phi, r)


def check_query(query, n_features):
    """Refuse a query by which some records have no answer, or one of another size.

    A server could otherwise learn from what fails, and the ledger would not know. Nothing but the
    task and the public number of features is looked at.
    """
    if query["n_features"] not in (None, n_features):
        raise ValueError(
            f"a record has {query['n_features']} features in this task, not {n_features}."
        )
    p = n_features + bool(query.get("fit_intercept"))
    try:
        low, high = _numbers(query["bounds_y"], 2)
        proper = type(query["fit_intercept"]) is bool and low < high and high / 2.0 - low / 2.0 > 0
        parts, _ = _numbers(query["parts"], 2), _numbers(query.get("offset", 0.0))
        proper = proper and bool((np.abs(parts) <= 1.0).all())
        if "low" in query:
            low, high = (_numbers(query[name], n_features) for name in ("low", "high"))
            proper = proper and bool((high / 2.0 - low / 2.0 > 0.0).all())
        else:
            proper = proper and _numbers(query["data_norm"]) > 0.0
        proper = proper and _proper_weights(query.get("weights"), p)
    except (KeyError, TypeError, ValueError):
        proper = False
    if not proper:
        raise ValueError("the task's query has parts that are missing, or of a wrong kind or size.")


def _numbers(given, *shape):
    """An array of finite numbers of this shape."""
    array = np.asarray(given)
    if array.dtype.kind not in "if" or array.shape != shape or not np.isfinite(array).all():
        raise ValueError
    return array.astype(float)


def _proper_weights(weights, p):
    if weights is None:
        return True
    if weights["kind"] == "residual":
        _numbers(weights["theta"], p)
        return bool(_numbers(weights["limit"]) > 0.0)
    _numbers(weights["matrix"], p, p)
    if weights["kind"] == "halves":
        _numbers(weights["root"], p, p)
    return weights["kind"] in ("whole", "halves")


def weighted(weights, phi, r):
    """(h, k) of a record (phi, r): what re-weighted regression and descents ask about."""
    if weights["kind"] == "residual":
        residual = np.clip(np.array(weights["theta"]) @ phi, -1.0, 1.0) - r
        return phi, float(np.clip(residual / weights["limit"], -1.0, 1.0))
    whitened = np.array(weights["matrix"]) @ phi
    length = float(np.sqrt(whitened @ whitened))
    if weights["kind"] == "whole":
        return whitened / max(length, 1.0), r / max(length, 1.0)
    if not length > SHORTEST:
        return np.zeros(len(phi)), 0.0
    half = np.array(weights["root"]) @ phi / sqrt(length)
    return half / max(float(np.sqrt(half @ half)), 1.0), 0.0


def _in_ball(query, x):
    """Row of norm at most 1: clipped to a norm and divided by it."""
    largest = float(np.abs(x).max(initial=0.0))  # NaN and inf pass through
    if not isfinite(largest) or largest == 0.0:
        return np.zeros(len(x))
    unit = x / largest
    norm = float(np.sqrt(unit @ unit))  # of the row, in units of its largest entry
    return unit / max(norm, query["data_norm"] / largest)


def _in_box(query, x):
    """Row of norm at most 1: every feature clipped to +-1 / sqrt(d), which its range becomes."""
    low, high = np.array(query["low"]), np.array(query["high"])
    if query["fit_intercept"]:
        middle, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    else:
        middle, half = np.zeros(len(x)), np.maximum(np.abs(low), np.abs(high))
    limit = 1.0 / sqrt(len(x))
    with np.errstate(all="ignore"):
        unit = np.clip((x - middle) * (limit / half), -limit, limit)
    return np.where(np.isnan(unit), 0.0, unit)


def _scaled_target(query, y):
    if not y == y:
        return 0.0
    low, high = query["bounds_y"]
    if query["fit_intercept"]:
        centre, radius = low / 2 + high / 2, high / 2 - low / 2
    else:
        centre, radius = 0.0, max(abs(low), abs(high))
    return min(1.0, max(-1.0, (min(high, max(low, y)) - centre) / radius))


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
        The first of the actions with the largest upper confidence bound, whose bonus is one of
        those of the policy, drawn on the device; or, of a policy by inverse gaps, an action drawn
        on the device. Any action before anything was learned.
    """
    whole = json.loads(state)
    phi = action_features(whole, contexts) / whole["task"]["query"]["data_norm"]
    region = whole["region"]
    if region is None:  # nothing has been learned: any action
        return secrets.randbelow(len(phi))
    if "weight" in region:
        return _by_inverse_gaps(phi @ np.array(region["centre"]), region["weight"])
    bonus = secrets.choice(region["bonuses"])
    squares = np.einsum("ij,ij->i", phi @ np.array(region["form"]), phi)
    index = phi @ np.array(region["centre"]) + bonus * np.sqrt(np.maximum(squares, 0.0))
    return int(np.argmax(index))


def _by_inverse_gaps(means, weight):
    """One action: 1 / (K + weight gap) for each but the best, which has the rest."""
    best = int(np.argmax(means))
    chances = 1.0 / (len(means) + weight * (means[best] - means))
    chances[best] = 0.0
    drawn = secrets.randbits(53) * 2.0**-53
    below = int((np.cumsum(chances) <= drawn).sum())
    return below if below < len(means) else best


def action_features(state, contexts):
    """Features phi(x, a) of every action, of shape (n_actions, n_phi)."""
    contexts = np.asarray(contexts, dtype=float)
    if state["shared"]:
        return contexts
    blocks = np.zeros((state["n_actions"], state["n_actions"], len(contexts)))
    index = np.arange(state["n_actions"])
    blocks[index, index] = contexts
    return blocks.reshape(state["n_actions"], -1)


def _taken(features, action):
    """Features of the action that was taken."""
    if isinstance(action, bool) or not isinstance(action, (int, np.integer)):
        raise ValueError(f"action={action!r} must be the number of an action.")
    if not 0 <= action < len(features):
        raise ValueError(f"action={action} must be from 0 to {len(features) - 1}.")
    return features[action]


def check_channel(channel):
    """Refuse a channel by which nothing could be drawn, whoever made the task.

    The guarantee needs no more than that: any numbers of directions are as private.
    """
    count, nearest, epsilon = (channel.get(name) for name in ("count", "nearest", "epsilon"))
    whole = all(type(number) is int for number in (count, nearest))
    if not whole or not 1 <= nearest < count <= LARGEST_COUNT:
        raise ValueError(f"the task's channel has count={count!r} and nearest={nearest!r}.")
    if type(epsilon) not in (int, float) or not 0.0 <= epsilon < inf:
        raise ValueError(f"the task's channel has epsilon={epsilon!r}.")
    if channel.get("seed") not in ("user", "device"):
        raise ValueError(f"the task's channel has seed={channel.get('seed')!r}.")


def report(
    task: Any,
    x: Any,
    y: Any,
    *,
    user: int,
    action: Any = None,
    largest_epsilon: Any = None,
    ledger: Any = None,
) -> bytes | None:
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
        For a policy: the action that was taken.
    largest_epsilon : float, default=None
        What the user has agreed to lose to this task; a task that asks for more is refused.
    ledger : DeviceLedger, default=None
        The device's memory: it is charged first, and refuses a second answer to a task, and what
        exceeds all that the user has agreed to lose.

    Returns
    -------
    bytes or None
        Under 1 kB; None if this user is not asked in this round, and then nothing may be sent.

    Raises
    ------
    ValueError
        If the task is damaged, or the record has another number of features.
    PrivacyError
        If the task asks for more than ``largest_epsilon``, or the ledger refuses.

    Notes
    -----
    **Privacy guarantee**: epsilon-differential privacy of the bytes, delta = 0, whatever the task's
    server does with them: one index of a public codebook, drawn by one exact integer of the
    operating system (:func:`skpriv.privacy.draw_index`). It is a guarantee for one answer. A device
    must not answer the same task twice, and several answers of a user add up: a ledger sees to it.

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
    query, channel = fields["query"], fields["channel"]
    if channel["name"] != "codebook" or query["name"] != "lifted moments":
        raise ValueError(f"no device can answer {query['name']!r} by {channel['name']!r} here.")
    check_channel(channel)
    if largest_epsilon is not None and not channel["epsilon"] <= largest_epsilon:
        raise PrivacyError(
            f"the task asks for epsilon={channel['epsilon']}, more than the "
            f"largest_epsilon={largest_epsilon} that was agreed to."
        )
    if not is_asked(fields["users"], user):
        return None
    if action is not None:
        x = _taken(action_features(json.loads(task), x), action)
    check_query(query, np.size(x))
    if ledger is not None:  # before the record is looked at
        ledger.charge(fields["hash"], channel["epsilon"])
    phi, r = scaled_record(query, x, y)
    with np.errstate(all="ignore"):
        secret = lifted(phi[None, :], np.array([draw_sign(r)]))[0]
    drawn = secrets.token_bytes(SEED_BYTES) if channel["seed"] == "device" else b""
    directions = codebook(drawn or user_seed(fields, user), channel["count"], len(secret))
    index = draw_index(secret, directions, channel["nearest"], channel["epsilon"])
    return report_bytes(fields, len(secret), index, drawn)
