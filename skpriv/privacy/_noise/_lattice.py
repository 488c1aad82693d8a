"""Numbers on a grid: released noise, and what a device rounds and shares."""

import os
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, frexp, ldexp
from sys import float_info
from typing import Any

import numpy as np

from .._accounting._lattice import WIDTH
from ._discrete_gaussian import GRANULARITY, discrete_gaussian, random_words

SMALLEST = float_info.min_exp - float_info.mant_dig  # the exponent of the smallest double
SLICE = 2**12  # coordinates that are drawn at once, whose arrays stay in the cache


def gaussian_on_grid(values: Any, scale: float, entropy: Callable[[int], bytes] = os.urandom):
    """Each value plus Gaussian noise that is rounded to a grid at random: an exact draw.

    Parameters
    ----------
    values : ndarray of floats
        What is no number counts as 0.
    scale : float
        Standard deviation, above 0. The result is a random function of the value plus Gaussian
        noise of at least this deviation, which does not depend on the value.
    entropy : callable, default=os.urandom

    Returns
    -------
    ndarray of the same shape
        Points of the grid, rounded to doubles.

    Notes
    -----
    The nearest point of the grid plus a draw about the rest of the value: that has the chance
    exp(-(point - value)^2 / (2 s^2)) over a constant for every point, with the exact value.
    """
    step, variance = grid(scale)
    with np.errstate(all="ignore"):
        flat = np.asarray(values, dtype=float).ravel()
        steps = flat / step  # by a power of two: exact
        nearest = np.rint(steps)
        points, rests = nearest * step, steps - nearest
        far = ~(np.abs(steps) < 2.0**52)  # larger doubles are points of the grid
        if far.any():
            points[far], rests[far] = np.nan_to_num(flat[far]), 0.0
        for start in range(0, flat.size, SLICE):
            part = slice(start, start + SLICE)
            # two points of the grid, whose exact sum is rounded: a function of it
            points[part] += step * discrete_gaussian(variance, rests[part], entropy)
    return points.reshape(np.shape(values))


@lru_cache(maxsize=64)
def grid(scale: float) -> tuple[float, int]:
    """Step of the grid, a power of two, and variance of the noise, in steps squared."""
    step = ldexp(1.0, max(frexp(scale)[1] - 1 - GRANULARITY, SMALLEST))
    return step, ceil((Fraction(scale) / Fraction(step)) ** 2) + int(WIDTH**2)


def rounded(values: np.ndarray, step: float) -> np.ndarray:
    """Nearest points of the grid, as 64-bit integers; what is no number is 0."""
    with np.errstate(all="ignore"):
        scaled = np.rint(np.asarray(values, dtype=float).ravel() / step)
    inside = np.abs(scaled) < 2.0**62
    return np.where(inside, scaled, 0.0).astype(np.int64)


def additive_shares(
    values: np.ndarray, shares: int, entropy: Callable[[int], bytes] = os.urandom
) -> np.ndarray:
    """Split each integer into uniform ones that add up to it modulo 2^64.

    Parameters
    ----------
    values : ndarray of shape (size,), of 64-bit integers
    shares : int
        How many of each; any number of them but all is uniform and independent of the value.
    entropy : callable, default=os.urandom

    Returns
    -------
    ndarray of shape (shares, size), of unsigned 64-bit integers
    """
    values = np.asarray(values, dtype=np.int64).view(np.uint64)
    mixed = random_words((shares - 1) * len(values), entropy).reshape(shares - 1, len(values))
    return np.vstack([mixed, values - mixed.sum(axis=0, dtype=np.uint64)])


def summed_shares(parts: np.ndarray) -> np.ndarray:
    """Sum of shares modulo 2^64, as signed integers."""
    return np.asarray(parts, dtype=np.uint64).sum(axis=0, dtype=np.uint64).view(np.int64)
