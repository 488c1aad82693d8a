"""Public bounds that a user passes: what is missing, and what cannot be meant."""

from collections.abc import Iterable, Mapping

import numpy as np

# Half-widths of ranges, and units of coefficients: far enough from the ends of float64, 2e-308 and
# 2e308, for the factors of a fit. At 1e-12 of its largest number a range has four digits left.
UNITS, DIGITS = (1e-300, 1e290), 1e-12
NARROW = (
    f"at least {2.0 * UNITS[0]:g} and {2.0 * DIGITS:g} of the larger number apart, or rounding "
    "is all that is left: subtract a public number from the column, or use other units"
)

# What to pass for a bound that has no default, since one would clip silently.
REQUIRED = {
    "data_norm": (
        "the public l2 norm to which rows are clipped. BoundsScaler and TableEncoder make rows of "
        "norm at most 1: pass data_norm=1.0 after them. A default would clip other rows silently, "
        "and a norm read off X is not private."
    ),
    "data_max": (
        "the public number to which the entries of X are clipped, such as 1.0 after BoundsScaler. "
        "A default would clip rows silently, and a range read off X is not private."
    ),
    "bounds_X": (
        "the public range (low, high) of every column of X, in its units. A default would clip "
        "silently, and a range read off the data is not private."
    ),
    "bounds_y": (
        "the public range (low, high) of the target, in its units. A default would clip targets "
        "silently, and a range read off y is not private."
    ),
}


def column_bounds(given, names, n_features, parameter):
    """Checked public ranges (low, high), each of shape (n_features,), in the order of the columns.

    Parameters
    ----------
    given : mapping, array-like of shape (n_features, 2) or (low, high)
        What pandas has labelled by the names of the columns is a mapping, too.
    names : list of str
        Names of the columns; empty if X has none.
    n_features : int
    parameter : str
        What errors call it.

    Raises
    ------
    ValueError
    """
    if isinstance(getattr(given, "index", None), Iterable):
        labels = list(given.index)
        if names and all(isinstance(label, str) for label in labels):
            given = dict(zip(labels, given.to_numpy(), strict=True))
    if isinstance(given, Mapping):
        if not names:
            raise ValueError(
                f"{parameter} is a mapping of feature names, but X has no feature names that are "
                "strings: pass a DataFrame that has, or an array of shape (n_features, 2) as "
                f"{parameter}."
            )
        absent = [name for name in names if name not in given]
        if absent:
            raise ValueError(f"{parameter} has no range for {absent}: add a (low, high) for each.")
        given = [given[name] for name in names]
    try:
        pairs = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{parameter} must be pairs (low, high) of numbers: public ranges that follow from "
            "what the features mean, one for each or one for all. None is read off the rows."
        ) from error
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (n_features, 1))
    if pairs.shape != (n_features, 2):
        raise ValueError(
            f"{parameter} has shape {pairs.shape}, but X has {n_features} features: pass "
            "one public range (low, high) for all of them, or a list with one for each, "
            f"[(low, high), ...], of shape ({n_features}, 2)."
        )
    low, high = pairs.T.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        width = high - low
        proper = np.isfinite(pairs).all(axis=1) & np.isfinite(width) & (low < high)
        resolved = width / 2.0 >= np.maximum(UNITS[0], DIGITS * np.abs(pairs).max(axis=1))
    for fits, what in ((proper, "finite, with low < high"), (resolved, NARROW)):
        if not fits.all():
            column = int(np.flatnonzero(~fits)[0])
            name = repr(names[column]) if len(names) else f"column {column}"
            raise ValueError(
                f"{parameter} of {name} are ({low[column]:.16g}, {high[column]:.16g}): low and "
                f"high must be {what}."
            )
    return low, high


def check_units(bound, radius, parameter):
    """Refuse public ranges that make the unit of a coefficient, radius / bound, no usable number.

    Parameters
    ----------
    bound : float or ndarray
        Half-widths of the features, or the norm of rows.
    radius : float
        Half the width of the range of y.
    parameter : str
        What the bound is called.

    Raises
    ------
    ValueError
    """
    with np.errstate(over="ignore", divide="ignore"):
        units = np.atleast_1d(radius / np.asarray(bound))
    wrong = units[~((units >= UNITS[0]) & (units <= UNITS[1]))]
    if len(wrong):
        raise ValueError(
            f"a coefficient is measured in units of the width of bounds_y over that of "
            f"{parameter}, which is {wrong[0]:g} here: it must lie in [{UNITS[0]:g}, {UNITS[1]:g}] "
            "for numbers to hold it. Give X or y in other units."
        )
