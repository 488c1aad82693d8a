"""Arguments that note when they are computed: it must be after the charge."""

import numpy as np

# Every way to make numbers of an object, or to find out how many they are.
_WAYS = [
    "__array__", "__len__", "__iter__", "__getitem__", "__bool__", "__array_interface__",
    "__array_struct__", "__dataframe__", "__arrow_c_stream__", "__arrow_c_array__", "compute",
    "collect", "persist", "to_numpy", "to_list", "tolist", "to_pylist", "to_arrow", "to_pandas",
    "to_dask_array", "to_delayed", "values", "item", "count_rows", "toarray",
]  # fmt: skip


class Spy:
    """Something that is an array once it is computed, whose shape is not known before.

    Parameters
    ----------
    array : ndarray
    note : callable
        It is called whenever it is computed, or asked how long it is.
    """

    def __init__(self, array, note):
        self._array, self._note = np.asarray(array), note


class ShapedSpy(Spy):
    """The same with a public shape and dtype, as arrays have that are stored in files."""

    @property
    def shape(self):
        return self._array.shape

    @property
    def ndim(self):
        return self._array.ndim

    @property
    def dtype(self):
        return self._array.dtype


def _way(name):
    def compute(self, *arguments, **options):
        self._note(name)
        found = np.asarray(self._array)
        if name == "__len__":
            return len(found)
        if name == "__iter__":
            return iter(found)
        return found[arguments[0]] if name == "__getitem__" else found

    return compute


for _name in _WAYS:
    if not _name.startswith(("__array_", "__dataframe", "__arrow")):
        setattr(Spy, _name, _way(_name))


def noting(note):
    """A function of chunks that notes that they are computed."""

    def noted(part):
        note("a task")
        return part

    return noted


def dask_frame(array, note):
    """Columns of Dask that a query makes: of unknown length."""
    import dask.dataframe as dd
    import pandas as pd

    frame = dd.from_pandas(_columns(pd.DataFrame, array), npartitions=2, sort=False)
    made = frame.map_partitions(noting(note), meta=frame._meta)
    return made["x0"] if np.ndim(array) == 1 else made


def dask_array(array, note):
    """An array of Dask, of known length."""
    import dask.array as da

    array = np.asarray(array)
    chunks = (max(1, len(array) // 2), *array.shape[1:])
    return da.from_array(array, chunks=chunks).map_blocks(
        noting(note), dtype=array.dtype, meta=np.empty((0,) * array.ndim, array.dtype)
    )


def polars_query(array, note):
    """A lazy frame of polars."""
    import polars as pl

    frame = _columns(pl.DataFrame, array)
    return frame.lazy().map_batches(noting(note), schema=frame.schema, validate_output_schema=False)


CONNECTIONS: list = []


def duckdb_query(array, note):
    """A relation of DuckDB, whose rows are made by a function."""
    import duckdb
    import pandas as pd

    frame = _columns(pd.DataFrame, array)
    connection = duckdb.connect()
    CONNECTIONS.append(connection)  # a relation of an older DuckDB does not keep it alive

    def value(number: float) -> float:
        note("a row")
        return number

    connection.create_function("noted", value)
    connection.register("rows", frame)
    columns = ", ".join(f"noted({name}::double) as {name}" for name in frame.columns)
    return connection.sql(f"select {columns} from rows")


def arrow_reader(array, note):
    """A reader of Arrow, which can be read once."""
    import pandas as pd
    import pyarrow as pa

    table = pa.Table.from_pandas(_columns(pd.DataFrame, array))

    def batches():
        note("a batch")
        yield from table.to_batches()

    return pa.RecordBatchReader.from_batches(table.schema, batches())


def _columns(kind, array):
    table = np.asarray(array)
    table = table.reshape(len(table), -1)
    return kind({f"x{j}": table[:, j] for j in range(table.shape[1])})


SPIES = {
    "no shape": Spy,
    "a shape": ShapedSpy,
    "dask frame": dask_frame,
    "dask array": dask_array,
    "polars": polars_query,
    "duckdb": duckdb_query,
    "arrow": arrow_reader,
}
