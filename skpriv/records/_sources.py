"""Tables that are read in batches: one class for each kind of them, chosen once by `source_of`."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw

from ._batches import frame, split
from ._dtypes import dtypes_of, inner
from ._subset import BATCH_ROWS
from ._values import arrow_classes, foreign, known_table, unsaid

BATCH_BY_BATCH = {"batch_size": BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 0}


class Source(ABC):
    """A table of which the same rows are read each time; no row is looked at before.

    Parameters
    ----------
    table : object
        What its library calls a table.
    schema : mapping of str to dtype, or list of str

    Attributes
    ----------
    names : list of str
    is_ordered : bool
        Whether each pass has the rows in the same order.
    is_lazy : bool
        Whether all of it should not be in memory.
    """

    is_ordered = True
    is_lazy = True

    def __init__(self, table: Any, schema: Any) -> None:
        self._table = table
        self.names = list(schema)
        self._schema = schema

    def dtypes(self) -> dict[str, Any]:
        """Dtype of each column."""
        return dict(self._schema)

    def count(self) -> int | None:
        """Public number of rows of what is stored; None of a query, or of text."""
        return None

    @abstractmethod
    def _read(self, columns: list[str]) -> Any:
        """Batches of some columns."""

    def batches(self, columns: Iterable[str]) -> Iterator[Any]:
        """Iterate over batches of some columns; the text of a library's error is not repeated."""
        return foreign(self._read, list(dict.fromkeys(columns)))

    def column(self, name: str) -> Iterator[Any]:
        """Iterate over batches of one column."""
        for batch in self.batches([name]):
            yield split(batch, [], name)[1]


class Frame(Source):
    """A data frame or an Arrow table in memory."""

    is_lazy = False

    def dtypes(self) -> dict[str, Any]:
        """Dtype of each column."""
        return dtypes_of(self._table)

    def count(self) -> int | None:
        """Number of rows."""
        return len(self._table)

    def _read(self, columns: list[str]) -> Any:
        return iter([self._table.to_native()])


class LazyFrame(Source):
    """A query of polars, DuckDB or another library, by its frame of narwhals."""

    is_ordered = False

    def _read(self, columns: list[str]) -> Any:
        query = self._table.select(columns)
        with suppress(AttributeError):  # of older versions, which hand out no batches
            if query.implementation.is_duckdb():
                return query.to_native().to_arrow_reader(BATCH_ROWS)
            if query.implementation.is_polars():
                return _to_the_end(query.to_native().collect_batches(chunk_size=BATCH_ROWS))
        return iter([query.collect(backend="pyarrow").to_native()])


def _to_the_end(batches: Any) -> Iterator[Any]:
    """Iterate over batches of polars, whose threads go on until the last one is read."""
    try:
        yield from batches
    finally:
        with unsaid():
            deque(batches, maxlen=0)


class ArrowReader(Source):
    """A reader of Arrow, which can be read but once: its first pass takes it into memory."""

    @cached_property
    def _rows(self) -> Any:
        return self._table.read_all()

    def _read(self, columns: list[str]) -> Any:
        return self._rows.select(columns).to_batches(max_chunksize=BATCH_ROWS)


class ArrowScanner(Source):
    """A scanner of Arrow, which has chosen its columns before."""

    def _read(self, columns: list[str]) -> Any:
        return self._table.to_batches()


class ArrowDataset(Source):
    """A dataset of Arrow."""

    def count(self) -> int | None:
        """Number of rows by the footers of Parquet files; other files, and a filter, have none."""
        if self._table._scan_options:
            return None
        parts = list(self._table.get_fragments())
        footers = all("ParquetFileFragment" in arrow_classes(part) for part in parts)
        return sum(part.metadata.num_rows for part in parts) if footers else None

    def _read(self, columns: list[str]) -> Any:
        return self._table.scanner(columns=columns, **BATCH_BY_BATCH).to_batches()


class ParquetFiles(ArrowDataset):
    """A dataset of Parquet files without a filter, read one after the other.

    A scan of the dataset decodes whole row groups, many at a time: it needs the more memory the
    more files there are.
    """

    def _read(self, columns: list[str]) -> Any:
        from pyarrow.parquet import ParquetFile

        for part in self._table.get_fragments():
            if set(columns) <= set(part.physical_schema.names):
                with part.filesystem.open_input_file(part.path) as source:
                    # One megabyte of each column is read ahead.
                    file = ParquetFile(source, pre_buffer=False, buffer_size=2**20)
                    yield from file.iter_batches(BATCH_ROWS, columns=columns)
            else:  # a column stands in the names of folders
                yield from part.to_batches(
                    schema=self._table.schema, columns=columns, **BATCH_BY_BATCH
                )


def arrow_schema(schema: Any) -> dict[str, Any]:
    """Dtypes by name of a schema of Arrow."""
    return dict(zip(schema.names, map(inner, schema.types), strict=True))


def source_of(table: Any) -> Source | None:
    """Source of a table that can be read in batches, else None; no row is looked at."""
    if isinstance(table, Source):
        return table
    kinds = arrow_classes(table)
    if "RecordBatchReader" in kinds:
        return ArrowReader(table, arrow_schema(table.schema))
    if "Dataset" in kinds:
        return ArrowDataset(table, arrow_schema(table.schema))
    if "Scanner" in kinds:
        return ArrowScanner(table, arrow_schema(table.projected_schema))
    found = frame(table) if "RecordBatch" in kinds else known_table(table)
    if isinstance(found, nw.LazyFrame):
        return LazyFrame(found, found.collect_schema())
    return Frame(found, found.columns) if isinstance(found, nw.DataFrame) else None
