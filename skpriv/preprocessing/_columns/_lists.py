"""Columns with a public list: categories, which are corners of a simplex, and their texts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, field
from functools import cached_property
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._linalg import FLOAT_STEP, lengths_of
from ..._stored import frozen, stored
from ...records import READ_AS_NUMBERS, silence
from .._values import codes_of, composed, text
from ._type import (
    ABSENT,
    LOST,
    MISSING,
    OTHER,
    READ,
    UNLISTED,
    Block,
    ColumnType,
    level_cells,
)  # fmt: skip

if TYPE_CHECKING:
    from ..._contracts import Array


class ColumnOfList(ColumnType):
    """A column with a public list, which a person gives."""

    categories: Any
    spellings: Any
    other: Any = False
    readable = READ_AS_NUMBERS | {"dates", "periods", "times of day", "intervals"}
    to_fill_in = ("categories = []",)
    to_consider = (
        'spellings = { "..." = "..." }', 'missing = "indicator"',
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.categories is not None:
            object.__setattr__(self, "categories", checked_list(self.categories))
        codes = codes_by_text(self.categories or ())
        if not isinstance(self.spellings or {}, Mapping):
            raise ValueError("spellings must map other spellings to what is in categories.")
        for spelling, listed in (self.spellings or {}).items():
            if canonical_text(listed) not in {MISSING, *codes}:
                raise ValueError(
                    f"spellings: {spelling!r} stands for {listed!r}, which must be in categories, "
                    "or 'missing'."
                )
        constant = not (self.missing is None or self.has_indicator or self.is_open)
        if constant and canonical_text(self.missing) not in codes:
            raise ValueError(f'missing={self.missing!r} must be "indicator" or in categories.')

    @property
    def is_open(self) -> bool:
        """Whether a person has still to fill in the list."""
        return self.categories is None

    @silence()
    def states(self, series: Any) -> np.ndarray:
        """State of each cell: READ, UNLISTED, LOST or ABSENT.

        Parameters
        ----------
        series : series of a data frame
            Cells of the column.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            One state for each cell.
        """
        listed = {
            said: ABSENT if code is None else READ
            for said, code in codes_by_text(self.categories, self.spellings).items()
        }
        return codes_of(series, listed, UNLISTED if self.other else LOST, LOST)


@stored
@frozen
class Categorical(ColumnOfList):
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
        Other spellings of listed categories, such as ``{"medecine": "Médecine"}``, and words for a
        missing cell, such as ``{"inconnu": "missing"}``.

    Notes
    -----
    K categories are the K corners of a regular simplex on the unit sphere of K - 1 dimensions.
    Every row has norm 1, and all pairs are equally far apart. Their mean squared distance is 2K /
    (K - 1), the largest that K unit vectors can have. The distance of one-hot columns is 2. Their
    mean is zero, so that the columns are not collinear with an intercept, and a ridge treats all
    categories alike. There is a column for each category but the reference.

    Examples
    --------
    >>> from skpriv.preprocessing import Categorical
    >>> Categorical(["F", "M"], other=False)
    Categorical(categories=('F', 'M'), other=False, missing=None)
    """

    categories: Any = None
    _: KW_ONLY
    other: bool = True
    missing: Any = None
    spellings: Any = field(default=None, repr=False, hash=False)
    kind = "categorical"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.other, bool):
            raise ValueError("other must be true or false.")

    @property
    def stand_in(self) -> str:
        """What a cell that is missing or not listed counts as where nobody said it."""
        return "" if self.other or self.missing is not None else "the mean of all levels"

    @property
    def levels(self) -> list[str]:
        """All categories of the block, "other" and "missing" where they are asked for."""
        extra = [OTHER] * self.other + [MISSING] * self.has_indicator
        return list(dict.fromkeys([*map(str, self.categories), *extra]))

    @silence()
    def encode(self, series: Any) -> "Array":
        """Encode the cells of a column as rows of norm at most 1.

        Parameters
        ----------
        series : series of a data frame
            Cells of the column.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Encoded rows; cells that cannot be read are missing ones.
        """
        return np.vstack([self._corners, np.zeros(len(self.levels) - 1)])[self._codes(series)]

    _reference = 0.0  # the number of the first level

    @property
    def _level_names(self) -> list[str]:
        return self.levels

    def _public_values(self, count: int) -> np.ndarray:
        return np.arange(len(self.levels), dtype=float)

    def _values_of(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the levels of the rows of a block; none needs an indicator."""
        return np.argmax(block @ self._corners.T, axis=1), np.zeros(len(block), bool)

    def _values_in(self, series: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same of the cells of a column; one that is no level counts as the reference."""
        return self._codes(series) % len(self.levels), np.zeros(len(series), bool)

    def _codes(self, series: Any) -> np.ndarray:
        """Number of the level of each cell; their number where the cell is none of them."""
        levels = self.levels
        listed = codes_by_text(self.categories, self.spellings)
        nothing = len(levels)  # the number of the zero row
        unknown = levels.index(OTHER) if self.other else nothing
        if self.has_indicator:
            absent = levels.index(MISSING)
        else:
            absent = unknown if self.missing is None else listed[canonical_text(self.missing)]
        return codes_of(series, listed, unknown if self.other else absent, absent)

    def decode(self, block: np.ndarray) -> list[Any]:
        """Values of the rows of a block, None where missing: undoes `encode`.

        Parameters
        ----------
        block : ndarray of shape (n_rows, width)
            Encoded rows of the column.

        Returns
        -------
        list of shape (n_rows,)
            Cells in the units of the table.
        """
        values = np.array(self.levels, object)[np.argmax(block @ self._corners.T, axis=1)]
        absent = lengths_of(block) < 0.5
        absent |= (values == MISSING) & self.has_indicator
        return [None if no else value for value, no in zip(values, absent, strict=True)]

    def block(self, name: str) -> Block:
        """Names and way back of the block of a column of this name.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        Block
            Names of the encoded columns, their ranges, and the map to the units of the table.
        """
        names = [f"{name}={level}" for level in self.levels[1:]]
        corners = self._corners
        ranges = np.column_stack([corners.min(axis=0), corners.max(axis=0)])
        shifts = corners[1:] - corners[0]
        cells = level_cells(corners)
        return Block(names, ranges, list(names), shifts, corners[0], cells, self.levels[0])

    @property
    def coded(self) -> Any:
        """Levels and their rows of the block."""
        return self.levels, self._corners

    @cached_property
    def _corners(self) -> np.ndarray:
        return simplex(len(self.levels))


def simplex(size: int) -> np.ndarray:
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
    # Each entry was rounded a few times, and m squares are summed for the norm.
    return corners * (1.0 - (m + 8) * FLOAT_STEP)


def checked_list(values: Any, name: str = "categories") -> tuple[Any, ...]:
    """A public list as it is kept, or an error."""
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list.")
    if not values:
        raise ValueError(f"{name} must not be empty.")
    for value in values:
        if not isinstance(value, str | int | float) or value in (inf, -inf):
            raise ValueError(f"{name} must be texts or numbers, not {value!r}.")
        if not str(value).strip() or value != value:
            raise ValueError(f"{name} must not hold an empty text or NaN: that is a missing cell.")
    count = Counter(map(canonical_text, values))
    twice = [value for value in values if count[canonical_text(value)] > 1]
    if twice:
        raise ValueError(f"{name} lists {twice[0]!r} twice: 1, 1.0, True and '1' are the same.")
    return tuple(values)


def canonical_text(value: Any) -> str:
    """Canonical text of a category; a marker of missing values stands for itself."""
    return text(value) if text(value) is not None else composed(str(value))


def codes_by_text(
    categories: Iterable[Any], spellings: dict[str, str] | None = None
) -> dict[str, Any]:
    """Code of each category, by canonical text, as it is written, and by other spellings.

    A spelling of what is missing has none.
    """
    written = {composed(str(value)): code for code, value in enumerate(categories)}
    codes = written | {canonical_text(value): code for code, value in enumerate(categories)}
    others = (spellings or {}).items()
    return {
        canonical_text(spelling): codes.get(canonical_text(listed)) for spelling, listed in others
    } | codes
