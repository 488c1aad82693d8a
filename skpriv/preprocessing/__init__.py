"""From public knowledge about the columns to rows of the unit ball."""

from ._base import PublicTransformer as PublicTransformer
from ._bounds_scaler import BoundsScaler, CoefficientMap
from ._check import CountsQuery as CountsQuery
from ._check import TableCheck, check_table
from ._columns._levels import Boolean, Ordinal
from ._columns._lists import Categorical
from ._columns._ranges import Date, Numeric
from ._encoder import TableEncoder
from ._encoder import as_schema as as_schema
from ._formula import FormulaEncoder
from ._schema import Schema, guessed_type
from ._schema import reads_as_value as reads_as_value
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
