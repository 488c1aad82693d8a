"""A column on a line: z in [-1, 1], and an indicator of missing values if it is asked for."""

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...records import silence
from ._type import CLIPPED, LOST, READ, Block, ColumnType, level_cells

if TYPE_CHECKING:
    from ..._contracts import Array, Scalar


class ColumnOnLine(ColumnType):
    """A column on a line: z in [-1, 1], and an indicator of missing values if it is asked for.

    A row of the block is (z, 0), or (0, 1) where the cell is missing: its norm is at most 1, so
    that the indicator needs no room of its own.

    A subclass has the public ends of its numbers (`_ends`). It reads the number of each cell, which
    is NaN where the cell is missing (`_read`). It knows the number of a public value, and the value
    of a number (`_number`, `_value`). An effect has a name (`_effect`), and is told in the units
    ``(z + offset) * scale``, of which `_units` is the pair (scale, offset).
    """

    _ends: Any
    _units: Any
    _read: Callable[[Any], np.ndarray]
    _number: Callable[[Any], float]
    _value: Callable[[float], Any]
    _effect: Callable[[str], str]
    reference_position: Any = -1.0  # Missing cells are told against the value at this position.

    def __repr__(self) -> str:
        # Parameters that were not set are left out: there are many, and a column has few.
        values = asdict(cast(Any, self)).items()
        said = ", ".join(f"{name}={value!r}" for name, value in values if value is not None)
        return f"{type(self).__name__}({said})"

    @silence()
    def encode(self, series: Any) -> np.ndarray:
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
        z = self._position(self._read(series))
        absent = np.isnan(z)
        if self.has_indicator:
            return np.column_stack([np.where(absent, 0.0, z), absent])
        constant = 0.0 if self.missing is None else self._position(self._number(self.missing))
        return np.where(absent, constant, z)[:, None]

    @silence()
    def states(self, series: Any) -> np.ndarray:
        """State of each cell: READ, CLIPPED or LOST.

        Parameters
        ----------
        series : series of a data frame
            Cells of the column.

        Returns
        -------
        ndarray of int of shape (n_rows,)
            One state for each cell.
        """
        numbers = self._read(series)
        low, high = self._ends
        outside = (numbers < low) | (numbers > high)
        return np.select([np.isnan(numbers), outside], [LOST, CLIPPED], READ)

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
        absent = (block[:, -1] > 0.5) & self.has_indicator
        return [None if no else self._from_z(z) for z, no in zip(block[:, 0], absent, strict=True)]

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
        scale, offset = self._units
        size = 1 + self.has_indicator
        names = [self._column_name(name), f"{name}=missing"]
        effects = [self._effect(name), self.missing_effect(name)]
        # f = beta z = (beta / scale) value - beta offset; a missing cell has z = 0.
        matrix = np.array([[1.0 / scale, 0.0], [-self.reference_position, 1.0]])[:size, :size]
        shift = np.array([-offset, 0.0])
        ranges = np.array([[-1.0, 1.0], [0.0, 1.0]])
        return Block(names[:size], ranges[:size], effects[:size], matrix, shift[:size], self._cells)

    @property
    def _cells(self) -> np.ndarray:
        """Cells of the levels, where there are two, and of missing values."""
        cells = level_cells(self.coded[1]) if self.coded else ()
        if len(cells) or not self.has_indicator:
            return np.reshape(cells, (-1, 2 + self.has_indicator))
        return np.array([[0.0, 1.0, 0.0]])

    def missing_effect(self, name: str) -> str:
        """Name of the effect of a missing cell.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        str
            The name, such as "age=missing against 50".
        """
        value = self._from_z(self.reference_position)
        return f"{name}=missing against {f'{value:g}' if isinstance(value, float) else value}"

    @property
    def _reference(self) -> "Scalar":
        """The value against which a missing cell is told."""
        return self._in_units(self.reference_position)

    def _public_values(self, count: int) -> "Array":
        """Values at equal steps over the range; of a column with levels the levels."""
        return self._in_units(np.linspace(-1.0, 1.0, count))

    def _values_of(self, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values of the rows of a block, and whether an indicator says that they are missing."""
        absent = (block[:, -1] > 0.5) & self.has_indicator
        return np.where(absent, self._reference, self._in_units(block[:, 0])), absent

    def _values_in(self, series: Any) -> tuple[np.ndarray, np.ndarray]:
        """The same of the cells of a column."""
        return self._values_of(self.encode(series))

    def _in_units(self, z: Any) -> Any:
        """The numbers of positions in [-1, 1], in the units in which effects are told."""
        scale, offset = self._units
        return (z + offset) * scale

    def _position(self, numbers: Any) -> Any:
        """Position of numbers in [-1, 1]; those outside of the range are moved to its ends."""
        low, high = self._ends
        half = self._half
        return np.clip((np.clip(numbers, low, high) - low - half) / half, -1.0, 1.0)

    def _from_z(self, z: Any) -> Any:
        """Value of a position."""
        low, high = self._ends
        number = low + (np.clip(z, -1.0, 1.0) + 1.0) * self._half
        return self._value(float(np.clip(number, low, high)))

    @property
    def _half(self) -> Any:
        low, high = self._ends
        return (high - low) / 2.0

    def _column_name(self, name: str) -> str:
        return name
