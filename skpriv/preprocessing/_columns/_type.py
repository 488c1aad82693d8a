"""What every type of column has: states of cells, and the block that a column becomes.

Every type maps a column to a block: an array of shape (n_rows, width) whose rows have an l2 norm
of at most 1. A missing cell is the zero row of its block, unless its type says otherwise.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._stored import frozen
from ...records import READ_AS_NUMBERS, present_names

if TYPE_CHECKING:
    from ..._contracts import Array


INDICATOR = "indicator"
OTHER = "other"
MISSING = "missing"
# States of a cell: it is taken as it is, moved to an end of the range, "other", cannot be read, or
# says that nothing is known.
READ, CLIPPED, UNLISTED, LOST, ABSENT = range(5)


@frozen
class Block:
    """What a column becomes: names of its columns, and their way back.

    ``ranges`` are the ends of each column, shape (width, 2). ``effects`` and ``matrix`` say how the
    coefficients of the block, `beta`, are told in the units of the column: ``matrix @ beta``. The
    intercept grows by ``offset @ beta``. ``cells`` are functions of the block, as coefficients and
    an intercept, that are 1 for a level, or for missing values, and 0 for all others. A cell that
    is the mean of all levels has a part of each. ``reference`` is the level of a list that the
    others are told against; it is empty of other columns.
    """

    names: list[Any]
    ranges: np.ndarray
    effects: list[Any]
    matrix: np.ndarray
    offset: np.ndarray
    cells: np.ndarray
    reference: str = ""


def level_cells(rows: np.ndarray) -> np.ndarray:
    """Functions of a block, one row each, that are 1 at one of these rows and 0 at all others.

    Parameters
    ----------
    rows : ndarray of shape (n_levels, width)
        Rows of the levels; there are no functions if one of them is a weighted sum of others.

    Returns
    -------
    ndarray of shape (n_levels, width + 1), the intercept last
    """
    with_one = np.column_stack([rows, np.ones(len(rows))])
    if np.linalg.matrix_rank(with_one) < len(rows):
        return np.empty((0, with_one.shape[1]))
    return np.linalg.pinv(with_one).T


class ColumnType:
    """Base class of the types of columns; not for direct use.

    A subclass is a dataclass of public facts, with the methods ``encode`` and ``decode`` between a
    column and its block, ``states`` of the cells, and ``block(name)``. Displays ask for the numbers
    of public values, of the rows of a block, and of cells, and for the one that effects are told
    against. `is_open` says whether a person has still to fill in the range or the list, and
    `to_fill_in` what that person writes.

    Attributes
    ----------
    coded : (list of str, ndarray) or None
        Levels and their rows of the block; None for numbers and dates.
    to_consider : tuple of str
        What a template asks for besides, and what may be left out.
    """

    kind: ClassVar[str]
    encode: Callable[[Any], np.ndarray]
    decode: Callable[[np.ndarray], list[Any]]
    states: Callable[[Any], np.ndarray]
    block: Callable[[str], Block]
    _public_values: Callable[[int], np.ndarray]
    _values_of: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    _values_in: Callable[[Any], tuple[np.ndarray, np.ndarray]]
    _reference: Any
    to_fill_in: ClassVar[tuple[str, ...]] = ()
    to_consider: ClassVar[tuple[str, ...]] = ('missing = "indicator"',)
    readable: ClassVar[Any] = READ_AS_NUMBERS  # kinds of dtypes whose cells it can read
    is_open: Any = False
    coded: Any = None
    _level_names: Any = None  # the reference first
    usual: Any = None
    missing: Any

    @property
    def stand_in(self) -> str:
        """What a cell without a value counts as where nobody said it; empty if somebody did."""
        return "" if self.missing is not None else "the middle of the range"

    @property
    def has_indicator(self) -> bool:
        """Whether missing cells have a column of their own."""
        return bool(self.missing == INDICATOR)

    def expected_shares(self, given: Any = None, smallest: float | None = None) -> dict[str, Any]:
        """Expected shares of the levels of a column, of which some are given.

        Parameters
        ----------
        given : mapping of str to float, default=None
            Shares of some levels. The others have equal parts of the rest, but for "other" and
            "missing", which have none.
        smallest : float, default=None
            Share of the last level, where nothing is given.

        Returns
        -------
        dict of str to float
            Share of each level, in [0, 1]; they add up to 1.
        """
        levels = [] if self.coded is None else list(self.coded[0])
        usual = [level for level in levels if level not in (OTHER, MISSING)]
        named = dict(given or {})
        if smallest is not None and not named and len(usual) > 1:
            named = {usual[-1]: smallest}
        names = present_names(named, [*levels, MISSING], "shares", "this column", what="levels")
        # As they are written in the list
        named = dict(zip(names, map(float, named.values()), strict=True))
        left = 1.0 - sum(named.values())
        rest = [level for level in usual if level not in named]
        if min([left, *named.values()]) < -1e-9:
            raise ValueError("shares must not be negative, nor add up to more than 1.")
        return named | dict.fromkeys(rest, max(left, 0.0) / max(len(rest), 1))

    def imagined(self, quantiles: np.ndarray, shares: Any) -> "Array":
        """Block of made-up cells, which have these shares of levels.

        Parameters
        ----------
        quantiles : ndarray of shape (n_rows,)
            Numbers in (0, 1), spread evenly.
        shares : dict of str to float
            The levels and their shares, from `expected_shares`.

        Returns
        -------
        ndarray of shape (n_rows, width)
            Encoded rows, as `encode` returns them.
        """
        names, rows = self.coded
        ends = np.cumsum([shares.get(name, 0.0) for name in names])
        return rows[np.searchsorted(ends[:-1], quantiles * ends[-1], side="right")]
