"""Where private rows live: one protocol, which sessions sum over and nobody looks behind."""

from ._base import (
    CHUNK_ROWS as CHUNK_ROWS, KEPT_BYTES as KEPT_BYTES, ArrayRows as ArrayRows, Rows as Rows,
    Summed as Summed, WeightedRows as WeightedRows, canonical as canonical,
    in_threads as in_threads,
)  # fmt: skip
from ._batches import (
    BatchRows as BatchRows, LazyValues, check_length as check_length, held_back as held_back,
)  # fmt: skip
from ._dask import DaskRows as DaskRows, positional as positional
from ._dtypes import (
    READ_AS_NUMBERS as READ_AS_NUMBERS, dtypes_of as dtypes_of, kind_of as kind_of,
    public_zeros as public_zeros, refuse_dtypes as refuse_dtypes,
)  # fmt: skip
from ._identity import (
    MISSING_WORDS as MISSING_WORDS, codes as codes, identity as identity, in_utc as in_utc,
    moment as moment, name_of as name_of, present_names as present_names, same_names as same_names,
)  # fmt: skip
from ._persons import PersonRows as PersonRows
from ._subset import SEED_BYTES as SEED_BYTES, SeededOrder as SeededOrder, Subset as Subset
from ._tables import (
    as_rows as as_rows, check_public as check_public, check_shape as check_shape,
    finite_numbers as finite_numbers, from_batches, from_parquet, from_table, is_lazy as is_lazy,
    read_in_batches as read_in_batches, readable as readable,
)  # fmt: skip
from ._values import (
    INVALID_VALUES as INVALID_VALUES, aloud as aloud, arrow_classes as arrow_classes,
    cells as cells, decoded as decoded, finite as finite, floats as floats, in_memory as in_memory,
    named as named, public_shape as public_shape, quietly as quietly,
    silence as silence, stand_in as stand_in,
)  # fmt: skip

# These names are for users. Those that are imported beside them, each as itself, are for builders
# of queries and estimators (docs/howto), and may change.
__all__ = ["LazyValues", "from_batches", "from_parquet", "from_table"]
