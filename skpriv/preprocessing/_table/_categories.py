"""Columns with a public list of values: categories without an order, and levels with one."""

from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from ._columns import INDICATOR, LOST, READ, UNLISTED, Block, ColumnType, _Line, _set
from ._values import codes_of, composed, text

OTHER, MISSING = "other", "missing"


@dataclass(frozen=True)
class Categorical(ColumnType):
    """A column with a public list of categories, of which the first is the reference.

    Parameters
    ----------
    categories : list of str, int or bool
        Public: from a code book, never from the rows. Coefficients in the units of the table are
        effects against the first one.
    other : bool, default=True
        Whether cells that are not in the list have a category "other". If not, they are missing.
        Nothing about them is reported, neither in `fit` nor later.
    missing : None, "indicator" or a category, default=None
        What stands for a missing cell: "other" (without it, the zero row, which is the average of
        the categories), a category "missing" of its own, or this category.
    spellings : mapping of str to category, default=None
        Other spellings of listed categories, such as ``{"medecine": "Médecine"}``.

    Notes
    -----
    K categories are the K corners of a regular simplex on the unit sphere of K - 1 dimensions.
    Every row has norm 1, and all pairs are equally far apart. Their mean squared distance is 2K /
    (K - 1), the largest that K unit vectors can have. That of one-hot columns is 2. Their mean is
    zero, so that the columns are not collinear with an intercept, and a ridge treats all categories
    alike. There is a column for each category but the reference.

    Examples
    --------
    >>> from skpriv.preprocessing import Categorical
    >>> Categorical(["F", "M"], other=False)
    Categorical(categories=('F', 'M'), other=False, missing=None)
    """

    categories: Any = None
    other: bool = field(default=True, kw_only=True)
    missing: Any = field(default=None, kw_only=True)
    spellings: Any = field(default=None, kw_only=True, repr=False, hash=False)
    kind: ClassVar[str] = "categorical"

    def __post_init__(self):
        if self.categories is not None:
            _set(self, "categories", _listed("categories", self.categories))
        if not isinstance(self.other, bool):
            raise ValueError("other must be true or false.")
        _check_constant(self, self.categories)

    @property
    def is_open(self) -> bool:
        return self.categories is None

    @property
    def levels(self) -> list:
        """All categories of the block, "other" and "missing" where they are asked for."""
        names = [str(category) for category in self.categories]
        extra = [OTHER] * self.other + [MISSING] * (self.missing == INDICATOR)
        return names + [name for name in extra if name not in names]

    def encode(self, series: Any) -> np.ndarray:
        levels, codes = self.levels, codes_by_text(self.categories, self.spellings)
        nothing = len(levels)  # the zero row
        known = {name: code for code, name in enumerate(levels)}
        unknown = known[OTHER] if self.other else nothing
        if self.missing == INDICATOR:
            absent = known[MISSING]
        else:
            absent = unknown if self.missing is None else codes[_said(self.missing)]
        if not self.other:
            unknown = absent
        found = codes_of(series, codes, unknown, absent)
        return np.vstack([self._corners, np.zeros(len(levels) - 1)])[found]

    def states(self, series: Any) -> np.ndarray:
        listed = dict.fromkeys(codes_by_text(self.categories, self.spellings), READ)
        return codes_of(series, listed, UNLISTED if self.other else LOST, LOST)

    def decode(self, block: Any) -> Any:
        names = np.array(self.levels, dtype=object)
        values = names[np.argmax(block @ self._corners.T, axis=1)]
        absent = np.linalg.norm(block, axis=1) < 0.5
        absent |= (values == MISSING) & (self.missing == INDICATOR)
        return [None if no else value for value, no in zip(values, absent, strict=True)]

    def block(self, name: str) -> Any:
        names = [f"{name}={level}" for level in self.levels[1:]]
        corners = self._corners
        ranges = np.column_stack([corners.min(axis=0), corners.max(axis=0)])
        return Block(names, ranges, list(names), corners[1:] - corners[0], corners[0])

    @property
    def coded(self) -> Any:
        return self.levels, self._corners

    @cached_property
    def _corners(self):
        return simplex(len(self.levels))


@dataclass(frozen=True)
class Ordinal(_Line):
    """A column of levels with an order, at equal steps; its coefficient is a change per level.

    Parameters
    ----------
    categories : list of str, int or bool
        The levels, at least two, from the lowest to the highest: public, never from the rows.
        What is not in the list is missing.
    missing : None, "indicator" or a level, default=None
        What stands for a missing cell: halfway, a column of its own, or this level.
    spellings : mapping of str to level, default=None
        Other spellings of levels, such as ``{"medecine": "Médecine"}``.

    Examples
    --------
    >>> from skpriv.preprocessing import Ordinal
    >>> Ordinal(["mild", "moderate", "severe"])
    Ordinal(categories=('mild', 'moderate', 'severe'), missing=None)
    """

    categories: Any = None
    missing: Any = field(default=None, kw_only=True)
    spellings: Any = field(default=None, kw_only=True, repr=False, hash=False)
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self):
        if self.categories is not None:
            _set(self, "categories", _listed("categories", self.categories))
            if len(self.categories) < 2:
                raise ValueError("categories must be at least two levels.")
        _check_constant(self, self.categories)

    @property
    def is_open(self) -> bool:
        return self.categories is None

    def _z(self, series):
        codes = codes_of(series, codes_by_text(self.categories, self.spellings), -1, -1)
        return np.where(codes < 0, np.nan, codes / self._half - 1.0)

    def _from_z(self, z):
        return self.categories[round((z + 1.0) * self._half)]

    @property
    def coded(self) -> Any:
        return self._levels_at([str(category) for category in self.categories])

    def _constant(self):
        if self.missing is None:
            return 0.0
        return codes_by_text(self.categories)[_said(self.missing)] / self._half - 1.0

    def _effect(self, name):
        return f"{name} per level", self._half, 1.0

    @property
    def _half(self):
        return (len(self.categories) - 1) / 2.0


def simplex(size):
    """Corners of a regular simplex on the unit sphere, one a row, in size - 1 dimensions.

    The first is c (1, ..., 1), the others are a e_j + b (1, ..., 1): with m = size - 1,
    c = -1 / sqrt(m), a = sqrt((m + 1) / m) and b = (1 - sqrt(m + 1)) / m^1.5. Then
    |corner|^2 = 1 and <corner, corner'> = -1 / m. (For two it is -1 and 1.)

    Returns
    -------
    ndarray of shape (size, size - 1), rows of norm at most 1 in floating point too
    """
    m = size - 1
    if m < 2:
        return np.array([[-1.0], [1.0]]) if m else np.zeros((1, 0))
    corners = np.full((size, m), (1.0 - sqrt(size)) / m**1.5)
    corners[1:] += sqrt(size / m) * np.eye(m)
    corners[0] = -1.0 / sqrt(m)
    # Each entry is rounded a few times, and the norm sums m squares.
    return corners * (1.0 - (m + 8) * np.finfo(np.float64).eps)


def _listed(name, values):
    if isinstance(values, str) or not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list.")
    if not values:
        raise ValueError(f"{name} must not be empty.")
    for value in values:
        if not isinstance(value, str | int | float):
            raise ValueError(f"{name} must be texts or numbers, not {value!r}.")
        if not str(value).strip():
            raise ValueError(f"{name} must not hold an empty text: that is a missing cell.")
    said = [_said(value) for value in values]
    twice = [value for value, one in zip(values, said, strict=True) if said.count(one) > 1]
    if twice:
        raise ValueError(f"{name} lists {twice[0]!r} twice (1, 1.0 and '1' are the same).")
    return tuple(values)


def _check_constant(column, categories):
    for spelling, listed in dict(column.spellings or {}).items():
        if _said(listed) not in codes_by_text(categories or ()):
            raise ValueError(f"spellings: {spelling!r} stands for {listed!r}, not in categories.")
    if column.missing is None or column.missing == INDICATOR or categories is None:
        return
    if _said(column.missing) not in codes_by_text(categories):
        raise ValueError(f'missing={column.missing!r} must be "indicator" or in categories.')


def _said(value):
    """Canonical text of a category; a marker of missing values stands for itself."""
    return text(value) if text(value) is not None else composed(str(value))


def codes_by_text(categories, spellings=None):
    """Code of each category, by canonical text, as it is written, and by other spellings."""
    written = {composed(str(value)): code for code, value in enumerate(categories)}
    known = written | {_said(value): code for code, value in enumerate(categories)}
    others = (spellings or {}).items()
    return {_said(spelling): known[_said(listed)] for spelling, listed in others} | known
