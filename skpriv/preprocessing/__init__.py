"""From public knowledge about the columns to rows of the unit ball."""

from ._bounds_scaler import BoundsScaler, CoefficientMap
from ._formula import FormulaEncoder
from ._table._categories import Categorical, Ordinal
from ._table._check import TableCheck, check_table
from ._table._columns import Boolean, Date, Numeric
from ._table._encoder import TableEncoder
from ._table._schema import Schema, guessed_type

__all__ = [
    "Boolean",
    "BoundsScaler",
    "Categorical",
    "CoefficientMap",
    "Date",
    "FormulaEncoder",
    "Numeric",
    "Ordinal",
    "Schema",
    "TableCheck",
    "TableEncoder",
    "check_table",
    "guessed_type",
]
