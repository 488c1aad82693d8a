"""The common parts of users' devices and servers: public tasks, codebooks, and bytes of reports.

Needs NumPy and the standard library only. A secret unit vector v is reported as the *index* of one
of ``count`` public directions: each of the ``nearest`` ones with weight a, each of the others with
weight b. Both weights are integers with a / b <= e^epsilon, and one integer below the sum of all
weights decides. So no two secrets give an index probabilities of a larger ratio than e^epsilon:
delta is 0, whatever floating-point arithmetic made of v, of the directions and of their order
(proofs: docs/mathematics/codebook.md).
"""

import hashlib
import json
import secrets
from functools import lru_cache
from math import ceil, inf, pi
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import numpy as np

from ._contracts import is_whole

if TYPE_CHECKING:

    class Users(TypedDict):
        """Their number, the seed of their public order, and the places of those who answer."""

        n: int
        seed: int
        start: int
        stop: int

    class Codes(TypedDict):
        """The public codebook of a round; its size is open where the first report says it."""

        name: Literal["codebook"]
        epsilon: float
        size: int | None
        count: int
        nearest: int
        seed: Literal["user", "device"]

    # The policy of a task, by whose actions features are chosen
    Actions = TypedDict("Actions", {"class": str, "id": str, "shared": bool, "n_actions": int})

    class Task(TypedDict):
        """The question to the devices of a round, each of which sends an index of a codebook."""

        version: int
        query: dict[str, Any]
        channel: Codes
        budget: dict[str, float]
        round: int
        users: Users
        hash: str
        estimator: NotRequired[dict[str, Any]]  # of a Collector
        policy: NotRequired[Actions]  # of a policy

    class Adding(TypedDict):
        """The number of users, and of those who are counted on for noise."""

        n: int
        adding: int

    class SumTask(TypedDict):
        """The question to the devices of a round, each of which sends shares of a sum."""

        version: int
        channel: dict[str, str]
        estimator: dict[str, Any]
        users: Adding
        n_features: int
        nonce: str
        answers: list[tuple[list[int], int]]
        attempt: int
        hash: str


WEIGHT_BITS = 40  # a far direction has the weight b = 2^40
# A larger epsilon is drawn with this one: e^64 to one is certainty, and the sums stay short.
LARGEST_EPSILON = 64.0
GUARD_BITS = np.iinfo(np.uint64).bits  # further binary digits while a series is summed


@lru_cache(maxsize=256)
def index_weights(epsilon: float) -> tuple[int, int]:
    """Integer weights (a, b) of near and far directions: a / b <= e^epsilon, exactly.

    The partial sums of the series of e^epsilon lie below it for epsilon >= 0, and every division
    here rounds down. The gap is below 2^-39.

    Parameters
    ----------
    epsilon : float >= 0, finite

    Examples
    --------
    >>> from skpriv.privacy import index_weights
    >>> near, far = index_weights(1.0)
    >>> far == 2**40, round(near / far, 9)
    (True, 2.718281828)
    """
    if not 0.0 <= epsilon < inf:
        raise ValueError(f"epsilon={epsilon!r} must be finite and at least 0.")
    numerator, denominator = min(float(epsilon), LARGEST_EPSILON).as_integer_ratio()
    term = total = 1 << (WEIGHT_BITS + GUARD_BITS)
    step = 0
    while term:
        step += 1
        term = term * numerator // (denominator * step)
        total += term
    return total >> GUARD_BITS, 1 << WEIGHT_BITS


def draw_ranks(n: int, count: Any, nearest: Any, epsilon: float) -> np.ndarray:
    """Draw the ranks of n reports in the order of nearness, exactly and from secure random bits.

    Parameters
    ----------
    n : int
    count, nearest : int
        Number of directions, and how many of them are near.
    epsilon : float

    Returns
    -------
    ndarray of int, shape (n,)
    """
    near, far = index_weights(epsilon)
    inside = nearest * near
    total = inside + (count - nearest) * far

    def rank() -> int:
        # The only draw that privacy rests on: one integer, uniform below the sum of the weights.
        drawn = secrets.randbelow(total)
        return drawn // near if drawn < inside else nearest + (drawn - inside) // far

    return np.fromiter((rank() for _ in range(n)), dtype=np.intp, count=n)


def codebook(seed: Any, count: Any, size: int, indices: Any = None) -> np.ndarray:
    """Public unit directions of one report, a function of its public seed alone.

    Normal variables by Box and Muller from the bits of SHAKE-256, so that every platform and
    language can make the same ones. Accuracy needs them to be uniform on the sphere; privacy needs
    nothing but that the seed was chosen without a look at the secret.

    Parameters
    ----------
    seed : bytes
    count, size : int
        Number of directions, and their length.
    indices : sequence of int, default=None
        Indices of the directions that are wanted; all of them by default.

    Returns
    -------
    ndarray of shape (n_directions, size)

    Examples
    --------
    >>> from skpriv.privacy import codebook
    >>> directions = codebook(b"user 1", 64, 6)
    >>> directions.shape, bool(abs((directions**2).sum(axis=1) - 1.0).max() < 1e-12)
    ((64, 6), True)
    """
    wanted = range(count) if indices is None else indices
    pairs = ceil(size / 2)
    bits = b"".join(_bits(seed, int(index), 16 * pairs) for index in wanted)
    words = np.frombuffer(bits, "<u8").reshape(len(wanted), 2, pairs) >> np.uint64(11)
    uniform = (words.astype(float) + 0.5) * 2.0**-53  # in (0, 1)
    radius = np.sqrt(-2.0 * np.log(uniform[:, 0]))
    angle = 2.0 * pi * uniform[:, 1]
    normals = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :size]
    directions: np.ndarray = normals / np.sqrt((normals * normals).sum(axis=1))[:, None]
    return directions


def _bits(seed: bytes, index: int, size: int) -> bytes:
    return hashlib.shake_256(b"skpriv codebook 1" + index.to_bytes(4, "little") + seed).digest(size)


def draw_index(vector: Any, directions: Any, nearest: Any, epsilon: float) -> int:
    """Report of one secret unit vector: the index of a public direction.

    The order of the directions is a permutation for any input, NaN included, and the rank is drawn
    apart from it; so the guarantee needs no property of ``vector``.

    Parameters
    ----------
    vector : array-like of shape (size,)
        The secret vector, of norm 1.
    directions : ndarray of shape (count, size)
        Public, made without a look at the vector.
    nearest : int
        Number of directions that count as near to the vector, below ``count``.
    epsilon : float
        Privacy parameter of the report, above 0.

    Returns
    -------
    int
        Index of the reported direction, from 0 to ``count - 1``.
    """
    with np.errstate(all="ignore"):
        order = np.argsort(-(directions @ np.asarray(vector, float)), kind="stable")
    return int(order[draw_ranks(1, len(directions), nearest, epsilon)[0]])


def lifted(rows: Any, signs: Any) -> np.ndarray:
    """Unit vectors sign (phi, sqrt(1 - phi'phi)) of rows phi in the unit ball.

    Their products with themselves hold phi phi', and their mean, if the sign has mean r, r phi: one
    report of them serves both moments.
    """
    rest = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", rows, rows), 0.0))
    longer = np.concatenate([rows, rest[:, None]], axis=1) * signs[:, None]
    unit: np.ndarray = longer / np.sqrt(np.einsum("ij,ij->i", longer, longer))[:, None]
    return unit


def draw_sign(mean: float) -> float:
    """1 or -1 with this mean, by 53 bits of the operating system.

    The coin is part of how the secret vector is made, not of its protection: the report's
    guarantee holds whatever the vector is, so that a coin of 53 bits costs bias of 2^-53 alone.
    """
    return 1.0 if secrets.randbits(53) * 2.0**-53 < (1.0 + mean) / 2.0 else -1.0


WIRE_VERSION = 1
MAGIC = {"report": b"skp1", "share": b"skps"}  # first bytes of each kind of message
TASK_BYTES = np.dtype(np.uint64).itemsize  # a message has so many bytes of its task's hash
# How a report writes the length of a direction and its index in the codebook.
SIZE = np.dtype(np.uint16)
INDEX = np.dtype(np.uint32)
SIZE_BYTES = SIZE.itemsize
INDEX_BYTES = INDEX.itemsize
LARGEST_SIZE = np.iinfo(SIZE).max
DEVICE_SEED_BYTES = 16  # of the seed of a codebook, where the device draws it


def task_hash(fields: Any) -> str:
    """Hash of all fields of a task but the hash itself."""
    hashed = {name: value for name, value in fields.items() if name != "hash"}
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_task(task: Any) -> Any:
    """Fields of a task or sum task, checked against its version and hash alone.

    Raises
    ------
    ValueError
        If the text is no task, of another version, or was changed.
    """
    try:
        fields = json.loads(task)
    except (RecursionError, TypeError, ValueError):  # no JSON text at all
        fields = None
    if isinstance(fields, dict) and "task" in fields:  # the public state of a policy
        fields = fields["task"]
    if not isinstance(fields, dict) or fields.get("version") != WIRE_VERSION:
        raise ValueError(
            f"this is no task of version {WIRE_VERSION}: pass the text of a Collector's task, or "
            "of a policy's public_state(), as it was sent."
        )
    if fields.get("hash") != task_hash(fields):
        raise ValueError("the hash of the task does not fit its fields: it was changed on its way.")
    return fields


def is_known(users: "Users | Adding", user: Any) -> None:
    """Refuse anything but the number of a user of the task."""
    if not is_whole(user, 0, users["n"] - 1):
        raise ValueError(f"user={user!r} must be a number from 0 to {users['n'] - 1}.")


def user_seed(fields: "Task", user: int) -> bytes:
    """Public seed of a user's codebook: the task and the user's number."""
    return bytes.fromhex(fields["hash"]) + int(user).to_bytes(8, "little")


def read_report(fields: "Task", user: int, answer: Any) -> tuple[bytes, int, int]:
    """(seed, size, index) of the bytes of a report to a task.

    Raises
    ------
    ValueError
        If they are malformed, of another round, or out of range.
    """
    channel = fields["channel"]
    numbers = SIZE_BYTES + INDEX_BYTES
    drawn = DEVICE_SEED_BYTES if channel["seed"] == "device" else 0
    body = message_body(fields, "report", answer, numbers + drawn)
    size = int.from_bytes(body[:SIZE_BYTES], "little")
    index = int.from_bytes(body[SIZE_BYTES:numbers], "little")
    if index >= channel["count"]:
        raise ValueError(f"the report's index {index} is out of range.")
    if size != (channel["size"] or max(size, 2)):
        raise ValueError(f"the report is one of {size} coordinates, another number of features.")
    return body[numbers:] or user_seed(fields, user), size, index


def report_bytes(fields: "Task", size: int, index: int, seed: bytes) -> bytes:
    """Report of an index, with the seed that the device drew, if any."""
    numbers = size.to_bytes(SIZE_BYTES, "little") + index.to_bytes(INDEX_BYTES, "little")
    return message_head(fields, "report") + numbers + seed


def message_head(fields: "Task | SumTask", kind: str) -> bytes:
    """First bytes of a "report" or a "share": what it is, and the hash of the task it answers."""
    return MAGIC[kind] + bytes.fromhex(fields["hash"])[:TASK_BYTES]


def message_body(fields: "Task | SumTask", kind: str, message: Any, size: int) -> bytes:
    """The content of a message after its first bytes.

    Raises
    ------
    ValueError
        If it is no "report" or "share", answers another task, or its body has another size.
    """
    magic = MAGIC[kind]
    head = message_head(fields, kind)
    if not isinstance(message, bytes) or message[: len(magic)] != magic:
        raise ValueError(f"this is no {kind}: bytes of skpriv.protocol.report are expected.")
    if message[: len(head)] != head:
        raise ValueError(f"the {kind} answers another task: another round, attempt or collection.")
    if len(message) != len(head) + size:
        raise ValueError(f"the {kind} has {len(message)} bytes, and is cut off or too long.")
    return message[len(head) :]


def reported_directions(fields: "Task", size: int, answers: Any) -> np.ndarray:
    """Directions of (seed, index) pairs of reports to a task.

    Returns
    -------
    ndarray of shape (n_answers, size)
    """
    count = fields["channel"]["count"]
    return np.concatenate([codebook(seed, count, size, [index]) for seed, index in answers])


TIE_ROUNDING = 1e-12  # of the largest index of a round: by so little may those of equal rows differ


def equally_good(index: Any, available: Any = True) -> Any:
    """Which available actions have the largest index of their round, but for rounding.

    Actions are along axis 1. All available actions are as good where an index is no number.
    """
    top = np.where(available, index, -inf).max(axis=1, keepdims=True)
    low = np.where(available, index, inf).min(axis=1, keepdims=True)
    return available & ~(index < top - TIE_ROUNDING * (np.abs(top) + np.abs(low)))
