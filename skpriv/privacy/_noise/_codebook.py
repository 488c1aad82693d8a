"""The codebook channel as a device runs it: public directions, and one exact integer draw.

Needs NumPy and the standard library only. A secret unit vector v is reported as the *index* of one
of ``count`` public directions: each of the ``nearest`` ones with weight a, each of the others with
weight b. Both weights are integers with a / b <= e^epsilon, and one integer below the sum of all
weights decides. So no two secrets give an index probabilities of a larger ratio than e^epsilon:
delta is 0, whatever floating-point arithmetic made of v, of the directions and of their order
(proofs: docs/mathematics/codebook.md).
"""

from typing import Any
import hashlib
import secrets
from functools import lru_cache
from math import ceil, pi

import numpy as np

WEIGHT_BITS = 40  # of the weight b = 2^40 of a far direction
LARGEST_EPSILON = 64.0  # a larger one is not used: e^64 to one is certainty, for longer sums
GUARD_BITS = np.iinfo(np.uint64).bits  # more digits while the series of e^epsilon is summed


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
    if not 0.0 <= epsilon < float("inf"):
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
    """Ranks of n reports in the order of nearness, 0 the nearest: exact and cryptographic.

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

    def rank():
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
    words = np.frombuffer(bits, dtype="<u8").reshape(len(wanted), 2, pairs) >> np.uint64(11)
    uniform = (words.astype(float) + 0.5) * 2.0**-53  # in (0, 1)
    radius, angle = np.sqrt(-2.0 * np.log(uniform[:, 0])), 2.0 * pi * uniform[:, 1]
    normals = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :size]
    return normals / np.sqrt((normals * normals).sum(axis=1))[:, None]


def _bits(seed, index, size):
    return hashlib.shake_256(b"skpriv codebook 1" + index.to_bytes(4, "little") + seed).digest(size)


def draw_index(vector: Any, directions: Any, nearest: Any, epsilon: float) -> int:
    """Report of one secret unit vector: the index of a public direction.

    The order of the directions is a permutation for any input, NaN included, and the rank is drawn
    apart from it; so the guarantee needs no property of ``vector``.

    Parameters
    ----------
    vector : array-like of shape (size,)
    directions : ndarray of shape (count, size)
        Public, made without a look at the vector.
    nearest : int
    epsilon : float

    Returns
    -------
    int
    """
    with np.errstate(all="ignore"):
        order = np.argsort(-(directions @ np.asarray(vector, dtype=float)), kind="stable")
    return int(order[draw_ranks(1, len(directions), nearest, epsilon)[0]])


def lifted(rows: Any, signs: Any) -> np.ndarray:
    """Unit vectors sign (phi, sqrt(1 - phi'phi)) of rows phi in the unit ball.

    Their products with themselves hold phi phi', and their mean, if the sign has mean r, r phi: one
    report of them serves both moments.
    """
    rest = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", rows, rows), 0.0))
    whole = np.concatenate([rows, rest[:, None]], axis=1) * signs[:, None]
    return whole / np.sqrt(np.einsum("ij,ij->i", whole, whole))[:, None]


def draw_sign(mean: float) -> float:
    """1 or -1 with this mean, by 53 bits of the operating system.

    The coin is part of how the secret vector is made, not of its protection: the report's
    guarantee holds whatever the vector is, so that a coin of 53 bits costs bias of 2^-53 alone.
    """
    return 1.0 if secrets.randbits(53) * 2.0**-53 < (1.0 + mean) / 2.0 else -1.0
