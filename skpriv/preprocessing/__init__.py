"""From public knowledge about the columns to rows of the unit ball."""

from ._base import PublicTransformer as PublicTransformer
from ._bounds_scaler import BoundsScaler, CoefficientMap
from ._formula import FormulaEncoder
from ._check import CountsQuery as CountsQuery, TableCheck, check_table
from ._columns import Boolean, Categorical, Date, Numeric, Ordinal
from ._encoder import TableEncoder, as_schema as as_schema
from ._schema import Schema, guessed_type, reads_as_value as reads_as_value
from ._values import numbers_of as numbers_of

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
