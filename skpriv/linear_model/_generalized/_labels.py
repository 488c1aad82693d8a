"""Labels of records, and codes of public classes in their place."""

from collections.abc import Iterable, Set
from contextlib import suppress
from typing import Any

import numpy as np

from ..._estimation._public_maps import PublicTargets
from ..._linalg import blocks_of
from ..._stored import frozen, stored
from ...records import (
    READ_AS_NUMBERS,
    ArrayRows,
    cells,
    decoded,
    dtypes_of,
    identity,
    kind_of,
    public_shape,
    refuse_dtypes,
    silence,
    stand_in,
)


def checked_classes(classes: Any) -> np.ndarray:
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
    unordered = isinstance(classes, str | Set) or not isinstance(classes, Iterable)
    labels = [] if unordered else list(classes)
    kinds = int | float | bool | np.number | np.bool_
    of_one_kind = all(isinstance(c, kinds) and np.isfinite(float(c)) for c in labels)
    of_one_kind = of_one_kind or all(isinstance(c, str) for c in labels)
    if not (of_one_kind and 1 < len(set(map(identity, labels))) == len(labels)):
        raise ValueError(
            f"classes={classes!r} must be a list of at least two different labels, all numbers or "
            "all text: what y can be, in public. A list that is read off the labels is not private."
        )
    return np.array(labels)


def check_kind(y: Any, classes: np.ndarray) -> None:
    """Refuse labels whose dtype, a public one, is of the other kind than the classes.

    Raises
    ------
    ValueError
        If the labels are text and the classes numbers, or the other way round.
    """
    of_text = classes.dtype.kind == "U"
    dtypes = dtypes_of(y)
    refuse_dtypes(dtypes, "y", readable=READ_AS_NUMBERS)
    for dtype in dtypes.values():
        if kind_of(dtype) in (("numbers", "truth values") if of_text else ("texts",)):
            raise ValueError(
                f"classes={tuple(classes.tolist())!r} are {'text' if of_text else 'numbers'}, and "
                f"y has the dtype {dtype}: no label would be one of the classes. Pass classes of "
                "the kind of the labels."
            )


@silence()
def class_codes(y: Any, classes: np.ndarray, n: int) -> np.ndarray:
    """Position of each label among the classes, K of K for anything else; nothing is raised.

    Labels are compared by what they name (:func:`skpriv.records.identity`): "yes " is "yes".

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
    labels = None
    with suppress(Exception):
        labels = np.asarray(y, None if hasattr(y, "dtype") else object).reshape(-1)
        plain = labels.dtype.kind in ("U" if classes.dtype.kind == "U" else "biuf")
        labels = labels if plain and labels.size == n else None
    if labels is not None:
        for block in blocks_of(n, 8):  # to write where they are equal takes 20 times as long
            for code, label in enumerate(classes):
                found[block] += (code - found[block]) * (labels[block] == label)
    places = {identity(label): float(code) for code, label in enumerate(classes.tolist())}
    if labels is None:
        for i, label in zip(range(n), _each(y, n), strict=False):
            found[i] = places.get(identity(label), found[i])
    elif classes.dtype.kind == "U":  # those that are written in another way
        for place in np.flatnonzero(found == len(classes)):
            found[place] = places.get(identity(labels[place]), found[place])
    return found


def _each(y: Any, n: int) -> Iterable[Any]:
    """The n labels one by one, or none of them."""
    if isinstance(y, list | tuple):  # one label would decide which array NumPy makes of all others
        nested = len(public_shape(y)) == 2
        unpacked = (row[0] if isinstance(row, list | tuple) and len(row) == 1 else row for row in y)
        return unpacked if nested else y
    try:
        labels = list(np.asarray(decoded(y), object).reshape(-1))
    except Exception:  # a library fails at a whole column where it cannot read one label
        labels = cells(y) if hasattr(y, "to_list") or hasattr(y, "to_pylist") else []
    return labels if len(labels) == n else []


class LabelledRows(ArrayRows):
    """Rows in memory whose targets are labels, and codes of public classes where they are read.

    Any label becomes a code: that one is not a class is told by nothing.

    Parameters
    ----------
    X : array-like of shape (n_records, n_features)
    y : array-like of shape (n_records,)
    classes : ndarray of shape (n_classes,)
    """

    def __init__(self, X: Any, y: Any, classes: np.ndarray) -> None:
        super().__init__(X, stand_in(y))
        self._y = y
        self._classes = classes

    def _prepare(self) -> None:
        """Turn labels into codes and values into numbers."""
        if not self._ready:
            self._y = class_codes(self._y, self._classes, self.n)
        super()._prepare()


@stored
@frozen
class ClassTarget(PublicTargets):
    """The target r in [0, 1] of two classes; NaN, a row of zeros, for anything else.

    Parameters
    ----------
    values : tuple of float
        What stands for each class in the rows: its code, or the class itself where it is a number.
    """

    values: tuple[Any, ...]

    def scaled(self, y: np.ndarray) -> np.ndarray:
        """r of a chunk of targets."""
        found = [y == value for value in self.values]
        r = sum(float(code) * one for code, one in enumerate(found))
        is_class = np.logical_or.reduce(found)
        return r if is_class.all() else np.where(is_class, r, np.nan)
