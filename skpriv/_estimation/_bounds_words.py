"""What a report says of bounds and labels, from what a fit has released."""

from math import sqrt

import numpy as np

from ..privacy import TOLD_ABOVE
from ._loop._fit import FITTED


def bounds_words(fit, rows, names):
    """What a report says of bounds; None where they suit, or noise may explain what is seen.

    Parameters
    ----------
    fit : LoopFit
    rows : RowMap, or what stands in its place
    names : sequence of str, or None
        Names of the features.
    """
    return " ".join(filter(None, (_narrow(fit, rows, names), _wide(fit, rows, names)))) or None


def _narrow(fit, rows, names):
    """Of records that were clipped, from released counts: all, and those of each value."""
    if fit.clipped is None:
        return ""
    part, parts, noise = fit.clipped
    if part <= TOLD_ABOVE * noise:
        return ""
    features = range(getattr(rows, "n_inputs", rows.n_features))
    labels = [_name(names, i) if rows.low is not None else "data_norm" for i in features]
    shares = dict(zip([*labels, "the target"], np.minimum(parts, 1.0), strict=False))
    first, *others = sorted(shares, key=shares.__getitem__, reverse=True)
    limit = TOLD_ABOVE * noise * sqrt(len(parts))
    clear = [first, *(name for name in others[:2] if shares[name] > limit)]
    return (
        f"About {min(part, 1.0):.1%} of the rows are outside of their bounds and were clipped, "
        f"most of them in {', '.join(f'{name} ({shares[name]:.1%})' for name in clear)}: these "
        "bounds may be too narrow."
    )


def _wide(fit, rows, names):
    """Of ranges that are hardly used, from the released Gram matrix of rows phi = W^-1 psi.

    The deviation of a feature is that of phi'c for the vector c that is the feature in
    half-ranges, less its mean. Values that are spread evenly over a tenth of their range have
    a variance of .01 / 3 square half-ranges; noise has that of the slopes in direction W^-T c.
    """
    known = fit.equations and rows.size == len(fit.W) == len(fit.b)  # one linear part
    if not known or getattr(rows, "half_ranges", None) is None:
        return ""
    gram, scale, _, _ = fit.pooled(FITTED)
    c, k = rows.half_ranges @ np.linalg.inv(fit.W), np.linalg.solve(fit.W.T, rows.constant)
    level = max(float(k @ gram @ k), scale)
    if level <= 0.0:  # no noise, and no row that counts
        return ""
    away = c - np.outer(c @ gram @ k / level, k)
    variance = np.einsum("ij,ij->i", away @ gram, away) / level
    noise = scale * np.einsum("ij,ij->i", away, away) / level
    most = variance + TOLD_ABOVE * noise
    used = int(np.argmin(most))
    if most[used] >= 0.01 / 3.0:
        return ""
    part = 0.5 * sqrt(max(most[used], 0.0))
    return (
        f"The standard deviation of {_name(names, used)} is at most {part:.1%} of its range in "
        "bounds_X, which may be too wide, or few rows use it."
    )


def _name(names, place):
    """Name of a feature."""
    return f"x{place}" if names is None else names[place]
