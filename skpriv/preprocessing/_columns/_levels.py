"""Columns of levels at equal steps on a line: truth values, and levels with an order."""

from dataclasses import KW_ONLY, dataclass, field
from math import nan
from typing import Any

import numpy as np

from ..._stored import frozen, stored
from .._values import booleans_of, codes_of, truth_word
from ._line import ColumnOnLine
from ._lists import ColumnOfList, canonical_text, checked_list, codes_by_text
from ._type import INDICATOR


class ColumnOfLevels(ColumnOnLine):
    """A line of levels at equal steps, in their order: the number of a level is its place."""

    _levels: Any

    def _value(self, number: float) -> Any:
        return self._levels[round(number)]

    @property
    def _level_names(self) -> list[str]:
        return list(map(str, self._levels))

    def _public_values(self, count: int) -> np.ndarray:
        return np.arange(len(self._levels), dtype=float)

    @property
    def _ends(self) -> tuple[float, float]:
        return 0.0, len(self._levels) - 1.0

    @property
    def _units(self) -> tuple[float, float]:
        return self._half, 1.0

    @property
    def coded(self) -> Any:
        """Levels and their rows of the block."""
        names = self._level_names
        z = np.linspace(-1.0, 1.0, len(names))[:, None]
        if not self.has_indicator:
            return names, z
        return [*names, "missing"], np.vstack([np.pad(z, ((0, 0), (0, 1))), [[0.0, 1.0]]])


@stored
@dataclass(frozen=True, repr=False, kw_only=True)
class Boolean(ColumnOfLevels):
    """A column of true and false; 0 and 1, "yes" and "no" are understood.

    True is +1 and False is -1, which is all the room that one feature has. The coefficient in the
    units of the table is the effect of true against false.

    Parameters
    ----------
    missing : None, "indicator" or bool, default=None
        What stands for a missing cell: halfway, a column of its own, or this public constant.
    true, false : list of str or int, default=None
        The words of this column for true and for false, such as ``["ja", "j"]``, in letters of any
        size. They go before the usual ones: with ``true=[1], false=[2]`` the cell 2 is false. The
        first of each names the value in tables, such as "smoker=ja".

    Examples
    --------
    >>> from skpriv.preprocessing import Boolean
    >>> Boolean(true=["ja"], false=["nein"], missing=False)
    Boolean(missing=False, true=('ja',), false=('nein',))
    """

    missing: Any = None
    true: Any = None
    false: Any = None
    kind = "boolean"
    _number = staticmethod(float)

    def __post_init__(self) -> None:
        if self.missing not in (None, INDICATOR, True, False):
            raise ValueError('missing must be "indicator", true or false.')
        for name in ("true", "false"):
            if (words := getattr(self, name)) is not None:
                object.__setattr__(self, name, checked_list(words, name))
        words = [truth_word(word) for word in (*(self.true or ()), *(self.false or ()))]
        if len(set(words)) < len(words):
            raise ValueError("true and false must not have a word in common.")

    def _read(self, series: Any) -> np.ndarray:
        own = dict.fromkeys(self.true or (), 1.0) | dict.fromkeys(self.false or (), 0.0)
        return booleans_of(series, {truth_word(word): value for word, value in own.items()})

    @property
    def _levels(self) -> tuple[Any, ...]:
        """False and true, in the first words of the table for them."""
        return (self.false or (False,))[0], (self.true or (True,))[0]

    @property
    def coded(self) -> Any:
        """Levels and their rows of the block."""
        names, rows = super().coded
        return [{"False": "false", "True": "true"}.get(name, name) for name in names], rows

    def _effect(self, name: str) -> str:
        return f"{name}={self._levels[1]}"

    _column_name = _effect


@stored
@frozen
class Ordinal(ColumnOfList, ColumnOfLevels):
    """A column of levels with an order, at equal steps; its coefficient is a change per level.

    Parameters
    ----------
    categories : list of str, int or bool
        The levels, at least two, from the lowest to the highest: public, never from the rows. A
        cell that is not in the list is missing.
    missing : None, "indicator" or a level, default=None
        What stands for a missing cell: halfway, a column of its own, or this level.
    spellings : mapping of str to level, default=None
        Other spellings of levels, such as ``{"medecine": "Médecine"}``, and words for a missing
        cell, such as ``{"inconnu": "missing"}``.

    Examples
    --------
    >>> from skpriv.preprocessing import Ordinal
    >>> Ordinal(["mild", "moderate", "severe"])
    Ordinal(categories=('mild', 'moderate', 'severe'), missing=None)
    """

    categories: Any = None
    _: KW_ONLY
    missing: Any = None
    spellings: Any = field(default=None, repr=False, hash=False)
    kind = "ordinal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_open and len(self.categories) < 2:
            raise ValueError("categories must be at least two levels.")

    @property
    def _levels(self) -> Any:
        return self.categories

    def _read(self, series: Any) -> np.ndarray:
        codes = codes_of(series, codes_by_text(self.categories, self.spellings), -1, -1)
        return np.where(codes < 0, nan, codes)

    def _number(self, level: Any) -> Any:
        return codes_by_text(self.categories)[canonical_text(level)]

    def _effect(self, name: str) -> str:
        return f"{name} per level"
