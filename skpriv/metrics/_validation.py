"""Validation that the interval scores share."""

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d


def check_vector(values, name):
    """One-dimensional float array; infinite ends of intervals are allowed, NaN is not."""
    values = column_or_1d(values, dtype=np.float64)
    check_array(values, ensure_2d=False, ensure_all_finite=False, input_name=name)
    if np.isnan(values).any():
        raise ValueError(f"{name} contains NaN.")
    return values


def check_interval(low, high):
    """The two ends as float arrays, in order and of one length."""
    low, high = check_vector(low, "low"), check_vector(high, "high")
    check_consistent_length(low, high)
    if (low > high).any():
        raise ValueError(
            f"low must not exceed high, but it does in row {np.flatnonzero(low > high)[0]}."
        )
    if np.isposinf(low).any() or np.isneginf(high).any():
        raise ValueError("low must be below +inf and high above -inf.")
    return low, high


def check_weight(sample_weight, *others):
    """Non-negative finite weights with a positive sum, or None."""
    if sample_weight is None:
        return None
    weight = check_vector(sample_weight, "sample_weight")
    check_consistent_length(weight, *others)
    if not np.isfinite(weight).all() or (weight < 0).any() or weight.sum() == 0:
        raise ValueError("sample_weight must be finite and non-negative, and not all zero.")
    return weight
