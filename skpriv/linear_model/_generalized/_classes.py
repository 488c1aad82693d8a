"""Public classes: what the labels of private records are turned into, without a word about them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...records import ArrayRows, public_shape


def checked_classes(classes):
    """The public classes, in their order, as an array.

    Raises
    ------
    ValueError
        If they are not at least two different labels of one kind.
    """
    if classes is None:
        raise ValueError(
            "classes is required: the public list of what y can be, such as classes=(0, 1). A "
            "default would turn other labels into rows of zeros, and a list that is read off the "
            "labels is not private."
        )
    text = isinstance(classes, str) or not isinstance(classes, Iterable)
    labels = [] if text else list(classes)
    numbers = all(isinstance(c, int | float | bool | np.number | np.bool_) for c in labels)
    if numbers:
        numbers = bool(labels) and all(np.isfinite(float(c)) for c in labels)
    if not (numbers or all(isinstance(c, str) for c in labels)) or len(set(labels)) < max(
        2, len(labels)
    ):
        raise ValueError(
            f"classes={classes!r} must be at least two different labels, all numbers or all text: "
            "the public list of what y can be. A list that is read off the labels is not private."
        )
    return np.array(labels)


def check_kind(y, classes):
    """Refuse labels whose dtype, a public one, is of the other kind than the classes.

    Raises
    ------
    ValueError
        If the labels are text and the classes numbers, or the other way round.
    """
    dtype = getattr(y, "dtype", None)
    text = getattr(dtype, "kind", "") in "US" or str(dtype).startswith("str")
    numbers = getattr(dtype, "kind", "O") in "biuf"
    of_text = classes.dtype.kind == "U"
    if dtype is not None and (numbers if of_text else text):
        raise ValueError(
            f"classes={tuple(classes.tolist())!r} are {'text' if of_text else 'numbers'}, and y "
            f"has the dtype {dtype}: no label would be one of the classes. Pass classes of the "
            "kind of the labels."
        )


def codes(y, classes, n):
    """Position of each label among the classes, K of K for anything else; nothing is raised.

    Parameters
    ----------
    y : object
        Labels, of any kind.
    classes : ndarray of shape (n_classes,)
    n : int
        Number of records.

    Returns
    -------
    ndarray of float of shape (n,)
    """
    found = np.full(n, float(len(classes)))
    try:
        labels = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
        plain = labels.dtype.kind in ("U" if classes.dtype.kind == "U" else "biuf")
    except Exception:
        plain = False
    if plain and labels.size == n:
        labels = labels.reshape(-1)
        for code, label in enumerate(classes):
            found[labels == label] = code
        return found
    places = {label: float(code) for code, label in enumerate(classes.tolist())}
    for i, label in enumerate(_each(y, n)):
        try:
            found[i] = places.get(_alone(label), found[i])
        except Exception:  # it cannot be compared
            continue
    return found


def _each(y, n):
    """The n labels one by one, or none of them."""
    if isinstance(y, list | tuple):  # one label would decide which array NumPy makes of all others
        return map(_first, y[:n]) if len(public_shape(y)) == 2 else y[:n]
    try:
        labels = list(np.asarray(y, dtype=object).reshape(-1))
        return labels if len(labels) == n else []
    except Exception:
        return []


def _first(row):
    """The label of a row of one label."""
    return row[0] if isinstance(row, list | tuple) and len(row) == 1 else row


def _alone(label):
    """A label as Python has it; one that is masked is no label."""
    if np.ma.is_masked(label):
        return None
    return label.item() if isinstance(label, np.ndarray | np.generic) else label


class LabelledRows(ArrayRows):
    """Rows in memory whose targets are labels, and codes of public classes where they are read.

    Whatever a label is, it becomes a code: that one is not a class is told by nothing.

    Parameters
    ----------
    X : array-like of shape (n_records, n_features)
    y : array-like of shape (n_records,)
    classes : ndarray of shape (n_classes,)
    """

    def __init__(self, X: Any, y: Any, classes: np.ndarray) -> None:
        super().__init__(X, y)
        self._classes = classes
        self._coded = False

    def _prepare(self):
        """Turn labels into codes and values into numbers."""
        if not self._coded:
            self._y, self._coded = codes(self._y, self._classes, self.n), True
        super()._prepare()


@dataclass(frozen=True)
class ClassTarget:
    """The target r in [0, 1] of two classes; NaN, a row of zeros, for anything else.

    Parameters
    ----------
    values : tuple of float
        What stands for each class in the rows: its code, or the class itself where it is a number.
    """

    values: tuple

    def scaled(self, y):
        """r of a chunk of targets."""
        r = np.full(len(y), np.nan)
        for code, value in enumerate(self.values):
            r[y == value] = code
        return r


@dataclass(frozen=True)
class CountTarget:
    """Counts as parts of the largest: r = clip(y, low, high) / high.

    Parameters
    ----------
    bounds : (float, float)
    """

    bounds: tuple

    def scaled(self, y):
        """r of a chunk of targets, in [0, 1]; NaN stays NaN, a row of zeros."""
        return np.clip(y, *self.bounds) / self.bounds[1]
