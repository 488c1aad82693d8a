"""Where private rows live: one protocol, which sessions sum over and nobody looks behind."""

from ._arrays import ArrayRows, as_rows, canonical
from ._base import CHUNK_ROWS, Rows
from ._subset import PublicOrder, Subset
from ._values import INVALID_VALUES, finite, numbers, public_shape, stand_in

__all__ = [
    "CHUNK_ROWS",
    "INVALID_VALUES",
    "ArrayRows",
    "PublicOrder",
    "Rows",
    "Subset",
    "as_rows",
    "canonical",
    "finite",
    "numbers",
    "public_shape",
    "stand_in",
]
