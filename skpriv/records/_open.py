"""From what is passed to `fit` as X and y to rows."""

import numpy as np

from ._arrays import ArrayRows
from ._base import Rows
from ._batches import BatchRows
from ._blocks import split
from ._dask import DaskRows, is_dask
from ._tables import Source, from_table, is_lazy


def read_in_batches(X, y=None):
    """Whether a fit to X and y reads them in batches."""
    return type(X).__module__.startswith("pyarrow") or is_lazy(X) or is_dask(y)


def as_rows(X, y=None):
    """Rows of what was passed as X and y; rows that have their y in them stay what they are."""
    if is_dask(X) or (is_dask(y) and not isinstance(X, Rows)):
        return DaskRows.of(X, y)
    if isinstance(X, Rows):
        return X if y is None else X.with_target(_target(y))
    if isinstance(X, np.memmap) or not read_in_batches(X):
        if is_lazy(X) and y is None:
            return BatchRows(lambda: [(X, None)], *X.shape, has_target=False)
        return ArrayRows(X, y)
    rows = from_table(X)
    return rows if y is None else rows.with_target(_target(y))


def _target(y):
    """Function that iterates over blocks of targets; Dask's stay what they are."""
    if is_dask(y):
        return y
    source = None if isinstance(y, np.ndarray | list | tuple) else Source.of(y)
    if source is None:
        y = np.asarray(y) if isinstance(y, list | tuple) else y
        return lambda: iter([y])
    if len(source.names) != 1:
        raise ValueError(f"y must have one column, not {len(source.names)}.")

    def blocks():
        for batch in source.batches(source.names):
            yield split(batch, [], source.names[0])[1]

    return blocks
