"""Questions about targets alone: their mean, where a fit starts, and their mean deviation.

A target r lies in [low, 1]; with a weight v in [0, 1] of its row it counts v times. All statements
are for replacing one record by another, marked with a prime.
"""

from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._linalg import unwarned
from .._stored import frozen_object, stored, stored_in_policies
from ..privacy import ROUNDING, Answer, Query

if TYPE_CHECKING:
    from ._loop._rows import PreparedRows
    from ._public_maps import PublicRows, PublicTargets

# A class, and the records that have a target, are taken to be no fewer records than these.
LEAST_RATE = 3.0
# Prior variance of a mean, in squared half-ranges, that is uniform on its range.
UNIFORM_VARIANCE = 1.0 / 3.0


def scaled_targets(
    row_map: "PublicRows | None",
    target_map: "PublicTargets | None",
    X: "PreparedRows | np.ndarray",
    y: np.ndarray,
    low: float,
    high: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Targets r in [low, high] of a chunk, NaN for none, and roots of weights in [0, 1].

    Without a map of targets they are r already. Rows with weights have their root as last column,
    and targets come multiplied by it.
    """
    r = y if target_map is None else target_map.scaled(y)
    if row_map is None or not row_map.weighted:
        return r, np.ones_like(r)
    roots = row_map.roots(X)
    with unwarned():
        return (r / roots).clip(low, high), roots


def best_linear(value: Any, noise: float, mean: float, variance: float) -> Any:
    """Best linear estimate of what has this prior mean and variance from its value with noise."""
    return mean + (value - mean) / (1.0 + noise**2 / variance)


class OfTargets:
    """Mixin of questions about targets, which read no column of X but that of weights."""

    row_map: Any

    @property
    def weighted(self) -> bool:
        """Whether the last column of X is the root of a weight."""
        return self.row_map is not None and self.row_map.weighted

    @property
    def width(self) -> int | None:
        """Number of columns of X that are read: none, or all (None) where there are weights."""
        return None if self.weighted else 0


@stored_in_policies
@frozen_object
class LocationQuery(OfTargets, Query):
    """Sums of v r and of v for weights v in [0, 1] and r in [low, 1] brought to [-1, 1].

    Without weights v is 1, or 0 for a record without a target. Only the sum of v r is asked where
    all records have a target, as those of a line have. The distance of two records is convex in v
    and in v', so that it is largest where both are 0 or 1: |r - r'| <= 2 for v = v' = 1, and
    |(r, 1)| <= sqrt(2) for v = 1 and v' = 0. Sensitivity 2, that of the mean alone.
    """

    target_map: Any
    low: float = -1.0
    row_map: Any = None  # with weights, or None
    prior_variance: float = UNIFORM_VARIANCE
    name: str = "mean of the target"
    sensitivity = 2.0 * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Two numbers, or one for a line without weights, which is told by ``low`` of -1."""
        return (1 if self.low and not self.weighted else 2,)

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sums over a chunk of rows."""
        r, roots = scaled_targets(self.row_map, self.target_map, X, y, self.low)
        has_target = np.isfinite(r)
        r = (2.0 * r[has_target] - (1.0 + self.low)) / (1.0 - self.low)
        v = roots[has_target] ** 2
        return np.array([v @ r, v.sum()])[: self.shape[0]]

    def read(self, answer: "Answer") -> "Location":
        """The `Location`, whose mean is the best linear estimate under a prior about the middle."""
        noise = answer.mean_scale
        (moment, *counted) = answer.mean
        least_part = LEAST_RATE / answer.n
        part = min(max(counted[0], 2.0 * noise, least_part), 1.0) if counted else 1.0
        half_range = (1.0 - self.low) / 2.0
        # A rate is not taken to be below that of a few records, nor the mean of counts below noise
        least = least_part if isfinite(self.prior_variance) else max(least_part, half_range * noise)
        margin = 0.0 if self.low else min(least / part, 0.25)
        moment = best_linear(float(moment) / part, noise / part, 0.0, self.prior_variance)
        mean = 1.0 - half_range + half_range * moment
        mean = float(np.clip(mean, self.low + margin, 1.0 - margin))
        return Location(mean, half_range * noise / part, part)


@stored
class Location(NamedTuple):
    """Released mean of the target, its noise, and the part of the records that have a target."""

    mean: float
    scale: float
    part: float


@frozen_object
class SpreadQuery(OfTargets, Query):
    """Sum of v min(|r - m|, 1) in [0, 1]: replacing a record moves it by at most 1."""

    target_map: Any
    location: float
    low: float = -1.0
    row_map: Any = None
    name = "mean deviation of the target"
    shape = (1,)
    sensitivity = 1.0 * ROUNDING

    def sum(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Exact sum over a chunk of rows."""
        r, roots = scaled_targets(self.row_map, self.target_map, X, y, self.low)
        return np.array([np.nansum(roots**2 * np.minimum(np.abs(r - self.location), 1.0))])
