"""Where private rows live: one protocol, which sessions sum over and nobody looks behind."""

from ._base import (
    CHUNK_ROWS, KEPT_BYTES, ArrayRows, Rows, Summed, WeightedRows, canonical, in_threads,
)  # fmt: skip
from ._batches import BatchRows, LazyValues, check_length, held_back
from ._dask import DaskRows, positional
from ._dtypes import READ_AS_NUMBERS, dtypes_of, kind_of, refuse_dtypes
from ._identity import (
    MISSING_WORDS, codes, identity, in_utc, moment, name_of, present_names, same_names,
)  # fmt: skip
from ._persons import PersonRows
from ._subset import SEED_BYTES, SeededOrder, Subset
from ._tables import (
    as_rows, check_public, check_shape, finite_numbers, from_batches, from_parquet, from_table,
    is_lazy, read_in_batches, readable,
)  # fmt: skip
from ._values import (
    INVALID_VALUES, aloud, arrow_classes, cells, decoded, finite, floats, in_memory, named,
    public_shape, public_zeros, quietly, silence,
)  # fmt: skip

# These names are for users. Those that are imported beside them are for builders of queries and
# estimators (docs/howto), and may change.
__all__ = ["LazyValues", "from_batches", "from_parquet", "from_table"]
