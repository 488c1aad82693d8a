"""What a report says of bounds, by released answers: that they are too narrow, or too wide."""

from math import sqrt
from typing import Any

import numpy as np

from ..._linalg import quadratic_forms
from ...privacy import TOLD_ABOVE
from ._law import FITTED


def narrow_bounds(
    clipped: tuple[float, np.ndarray, float] | None, row_map: Any, names: list[str] | None
) -> str:
    """The note of a report on records that were clipped, by released counts of them.

    Parameters
    ----------
    clipped : tuple or None
        The counts that `ClippedRowsQuery` read.
    row_map : RowMap, or what stands in its place
    names : sequence of str, or None
        Names of the features.

    Returns
    -------
    str
        Empty where the bounds suit, or noise may explain what is seen.
    """
    if clipped is None:
        return ""
    part, parts, noise = clipped
    if part <= TOLD_ABOVE * noise:
        return ""
    features = range(row_map.n_inputs)
    labels = [_name(names, i) if row_map.low is not None else "data_norm" for i in features]
    shares = dict(zip([*labels, "the target"], parts, strict=False))
    limit = TOLD_ABOVE * noise * sqrt(len(parts))
    clear = sorted((name for name in shares if shares[name] > limit), key=shares.__getitem__)
    columns = ", ".join(f"{name} ({min(shares[name], part, 1.0):.1%})" for name in clear[:-4:-1])
    return (
        f"About {min(part, 1.0):.1%} of the rows are outside of their bounds and were clipped, "
        + (f"most of them in {columns}" if clear else "and noise hides in which columns")
        + ": these bounds may be too narrow."
    )


def wide_bounds(fit: Any, row_map: Any, names: list[str] | None) -> str:
    """The note of a report on ranges that are hardly used, as `narrow_bounds` does of others.

    It follows from the released Gram matrix of rows phi = W^-1 psi.

    The deviation of a feature is that of phi'c for the vector c that is the feature in
    half-ranges, less its mean. Values that are spread evenly over a tenth of their range have
    a variance of .01 / 3 square half-ranges; noise has that of the slopes in direction W^-T c.
    """
    one_line = fit.equations and row_map.size == len(fit.W) == len(fit.b)  # one linear part
    if not one_line or row_map.half_ranges is None:
        return ""
    pooled = fit.pooled(FITTED)
    gram = pooled.slope
    scale = pooled.slope_scale
    *lines, k = np.linalg.solve(fit.W.T, np.vstack([row_map.half_ranges, row_map.constant]).T).T
    c = np.array(lines)
    level = max(k @ gram @ k, scale)
    if level <= 0.0:  # no noise, and no row that counts
        return ""
    away = c - np.outer(c @ (gram @ k) / level, k)
    variance = quadratic_forms(away, gram) / level
    noise = scale * quadratic_forms(away) / level
    largest = variance + TOLD_ABOVE * noise
    feature = int(np.argmin(largest))
    if largest[feature] >= 0.01 / 3.0:
        return ""
    deviation = 0.5 * sqrt(max(largest[feature], 0.0))
    return (
        f"The standard deviation of {_name(names, feature)} is at most {deviation:.1%} of its "
        "range in bounds_X, which may be too wide, or few rows use it."
    )


def _name(names: list[str] | None, place: int) -> str:
    """Name of a feature."""
    return f"x{place}" if names is None else names[place]
