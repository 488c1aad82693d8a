"""From whatever is passed to `fit` as X and y to rows, in batches where a table is read in batches.

Every public door takes public properties first, and values by one conversion. Shapes, kinds and
names of columns are public, and scikit-learn checks them on zeros that stand for the rows. A method
that releases something leaves the values to its session, which looks at them after the charge. A
method that releases nothing (`predict`, `score`, `transform`) reads them here, and what is wrong
with them is one fixed sentence.
"""

import json
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from .._printing import installed
from ._base import KEPT_BYTES, ArrayRows, Rows, canonical
from ._batches import BatchRows, check_length, chosen_columns, frame, is_table, length, split
from ._dask import DaskRows
from ._dtypes import refuse_dtypes, refuse_no_numbers
from ._sources import Frame, ParquetFiles, arrow_schema, source_of
from ._values import (
    aloud, finite, floats, foreign, is_dask, named, numeric, public_shape, quietly, silence,
    stand_in,
)  # fmt: skip

if TYPE_CHECKING:
    from ._batches import FetchedRows

UNNAMED_INDEX = "__index_level_"  # how Arrow names the index of pandas that has no name


def is_lazy(X: Any) -> bool:
    """Whether X is rows, or something that is read in batches and should not be in memory."""
    if isinstance(X, Rows) or is_dask(X):
        return True
    if isinstance(X, np.memmap):
        return X.nbytes > KEPT_BYTES  # joblib makes smaller memory maps of any array
    source = None if isinstance(X, np.ndarray | list | tuple) else source_of(X)
    return source is not None and source.is_lazy


def from_table(
    table: Any, target: Any = None, features: Any = None, *, n: int | None = None
) -> "FetchedRows":
    """Rows of a table that is read in batches.

    Parameters
    ----------
    table : Arrow table, dataset, scanner or reader; data frame, of Dask too; DuckDB relation
        Lazy frames of polars and of other libraries that narwhals knows are read once for each
        answer. A reader, which can be read but once, is taken into memory when it is first read.
    target : str, default=None
        Name of the column of y; None if y is passed to `fit`.
    features : list of str, default=None
        Names of the columns of X; None is all columns but the target.
    n : int, default=None
        Public number of rows, at least 1. None takes that of a stored table, or of y if it is
        passed to `fit` as an array. Without either what a query makes is refused, since how many
        rows it finds may depend on private values: a lazy frame, a relation, a frame of Dask, a
        reader, a scanner, and a dataset of text or with a filter. A stated n is public; a pass that
        does not find n rows is refused.

    Returns
    -------
    BatchRows
        Rows that are passed to `fit` as its only argument.

    Raises
    ------
    ValueError
        Of columns that are not in the table; in a fit, if the number of rows is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.records import from_table
    >>> frame = pd.DataFrame({"x": [0.1, 0.5] * 10, "y": [0.2, 1.0] * 10})
    >>> model = SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), privacy="none"
    ... ).fit(from_table(frame, target="y"))
    >>> model.coef_.round(6)
    array([2.])
    """
    n = None if n is None else check_length(n)
    if is_dask(table):
        return DaskRows.of(table, target=target, features=features, n=n)
    source = source_of(table)
    if source is None:
        raise TypeError(
            f"a {type(table).__name__} is no table with named columns. from_parquet takes paths "
            "of Parquet files, and from_batches takes arrays. For a CSV file pass "
            "pyarrow.dataset.dataset(path, format='csv') and its number of rows, n."
        )
    target, features = chosen_columns(target, features, source.names)
    columns = [*features, *([] if target is None else [target])]

    def blocks() -> Any:
        for batch in source.batches(columns):
            yield split(batch, features, target)

    n = source.count() if n is None else n
    names = list(map(str, features))
    targets = None if target is None else partial(source.column, target)
    rows = BatchRows(
        blocks, n, len(features), names, stable=source.is_ordered, has_target=target is not None,
        targets=targets,
    )  # fmt: skip
    dtypes = source.dtypes()
    rows.dtypes = {name: dtypes[name] for name in columns}
    return rows


def from_parquet(path: Any, target: Any = None, features: Any = None) -> "FetchedRows":
    """Rows of a Parquet file, or of a folder of them, read again for each answer.

    Parameters
    ----------
    path : str, path-like or list of them
        A file, a folder (also one with parts of its own), or files.
    target : str, default=None
        Name of the column of y; None if y is passed to `fit`.
    features : list of str, default=None
        Names of the columns of X; None is all columns but the target and the index of a frame that
        pandas wrote. No others are read.

    Returns
    -------
    BatchRows
        Rows that are passed to `fit` as its only argument.

    Examples
    --------
    >>> from skpriv.records import from_parquet
    >>> rows = from_parquet("visits/", target="cost")  # doctest: +SKIP
    >>> LinearRegression(bounds_X=bounds, bounds_y=(0, 100)).fit(rows)  # doctest: +SKIP
    """
    arrow = installed("pyarrow.dataset", "arrow", "from_parquet")
    path = [str(part) for part in path] if isinstance(path, list | tuple) else str(path)
    dataset = arrow.dataset(path, format="parquet", partitioning="hive")
    if features is None:  # without the index of a frame that pandas wrote
        absent = [target]
        with suppress(Exception):  # whoever wrote the file may have written anything there
            absent += json.loads(dataset.schema.metadata[b"pandas"])["index_columns"]
        features = [
            name
            for name in dataset.schema.names
            if name not in absent and not name.startswith(UNNAMED_INDEX)
        ]
    return from_table(ParquetFiles(dataset, arrow_schema(dataset.schema)), target, features)


@silence()
def from_batches(
    factory: Any, n: int | None = None, *, target: Any = None, features: Any = None
) -> BatchRows:
    """Rows that a function of yours iterates over, once for each answer.

    Parameters
    ----------
    factory : callable
        Without arguments; returns an iterable of batches, the same rows in the same order in each
        pass. A batch is a pair (X, y) of arrays, where X may be sparse, or a table with `target`
        among its columns, or X alone if y is passed to `fit`.
    n : int, default=None
        Public number of records; None counts them in a pass.
    target, features : default=None
        Columns of a batch that is a table, as in :func:`from_table`.

    Returns
    -------
    BatchRows
        Rows that are passed to `fit` as its only argument.

    Raises
    ------
    InvalidValues
        If the function raises an error, which may quote a cell: call it yourself to see which.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.linear_model import SSPRegressor
    >>> from skpriv.records import from_batches
    >>> def batches():
    ...     for seed in range(4):
    ...         X = np.random.RandomState(seed).uniform(-0.5, 0.5, size=(100, 2))
    ...         yield X, X @ [1.0, -1.0]
    >>> SSPRegressor(
    ...     data_norm=1.0, bounds_y=(-1, 1), privacy="none"
    ... ).fit(from_batches(batches, n=400)).coef_.round(6)
    array([ 1., -1.])
    """

    def pair(batch: Any) -> Any:
        if isinstance(batch, tuple):
            return batch
        if not is_table(batch) or (target is None and features is None):
            return batch, None
        own_target, chosen = chosen_columns(target, features, frame(batch).columns)
        return split(batch, chosen, own_target)

    def blocks() -> Any:
        return map(pair, foreign(factory))

    if not callable(factory) or (first := next(blocks(), None)) is None:
        raise ValueError("factory must be a function without arguments that makes batches anew.")
    n = sum(length(X) for X, _ in blocks()) if n is None else check_length(n)
    X = first[0]
    names = list(map(str, frame(X).columns)) if is_table(X) else None
    return BatchRows(blocks, n, public_shape(X)[1], names, has_target=first[1] is not None)


def read_in_batches(X: Any, y: Any = None) -> bool:
    """Whether a fit to X and y reads them in batches."""
    return type(X).__module__.startswith("pyarrow") or is_lazy(X) or is_dask(y)


def as_rows(X: Any, y: Any = None) -> Any:
    """Rows of what was passed as X and y; rows that have their y in them stay what they are."""
    if isinstance(X, Rows):
        if y is not None and X.has_target:
            raise ValueError("y is given twice: make the rows with target=None, or pass no y.")
        return X if y is None else X.with_target(*_target(y))
    if is_dask(X) or is_dask(y):
        return DaskRows.of(X, y)
    if isinstance(X, np.memmap) or not read_in_batches(X):
        if is_lazy(X) and y is None:  # a large mapped array without targets
            return BatchRows(lambda: [(X, None)], *X.shape, has_target=False)
        return ArrayRows(X, y)
    rows = from_table(X)
    return rows if y is None else rows.with_target(*_target(y))


def _target(y: Any) -> Any:
    """Function that iterates over blocks of targets, and their number; Dask's stay as they are."""
    if is_dask(y):
        return y, None
    source = None if isinstance(y, np.ndarray | list | tuple) else source_of(y)
    if source is None:
        y = floats(y) if isinstance(y, list | tuple) else y  # each cell by itself
        return lambda: iter([y]), length(y)
    if len(source.names) != 1:
        raise ValueError(f"y must have one column, not {len(source.names)}.")
    return partial(source.column, source.names[0]), source.count()


NO_TARGET = "no_validation"  # scikit-learn's word for a call without y


def check_public(
    estimator: Any, X: Any, y: Any = NO_TARGET, *, reset: bool = True, accept_sparse: Any = False
) -> Any:
    """Check shapes, kinds and names of rows for an estimator; no value is looked at.

    Parameters
    ----------
    estimator : estimator
        It gets ``n_features_in_`` and ``feature_names_in_`` if ``reset``.
    X : array-like, data frame, sparse matrix or Rows
    y : array-like, default="no_validation"
        None is a target that is absent.
    reset : bool, default=True
        False compares with what `fit` has seen.
    accept_sparse : bool or list of str, default=False

    Returns
    -------
    Rows or None
        Rows that are read in batches; None of those in memory.
    """
    # They take a second to load, and whoever calls this has loaded them already.
    from sklearn.utils import check_array
    from sklearn.utils.validation import validate_data

    given = None if isinstance(y, str) else y
    rows = as_rows(X, given) if read_in_batches(X, given) else None
    if rows is None:
        zeros = stand_in(X)
        target = y if given is None else stand_in(y)
        names = X if isinstance(source_of(X), Frame) else None
    else:
        n_zeros = min(rows.n, 2) if rows.has_target else 2  # two rows of zeros stand for all
        zeros = np.zeros((n_zeros, rows.n_features))
        names = named(rows.names)
        target = y if isinstance(y, str) else np.zeros(n_zeros) if rows.has_target else None
    if not accept_sparse and issparse(X):
        raise TypeError(
            "X is sparse data, but dense rows are required: pass X.toarray(); in a pipeline pass "
            "OneHotEncoder(sparse_output=False) and ColumnTransformer(sparse_threshold=0). "
            "SSPRegressor and IHTRegressor take sparse rows."
        )
    if rows is None:
        refuse_no_numbers(X, "X")
    else:
        refuse_dtypes(rows.dtypes, "X or y")
    refuse_no_numbers(given, "y")
    options = {"accept_sparse": accept_sparse, "dtype": np.float64, "ensure_all_finite": False}
    with aloud():  # that names are missing is public
        if reset:
            options |= {} if isinstance(target, str) else {"y_numeric": True}
            validate_data(estimator, zeros, target, **options)
        else:
            check_array(zeros, estimator=estimator, **options)
        if names is not None or not reset:
            zeros = zeros if names is None else names
            validate_data(estimator, zeros, reset=reset, skip_check_array=True)
    return rows


def readable(estimator: Any, X: Any, *, accept_sparse: Any = False) -> Any:
    """Rows in memory as numbers, for a fitted estimator that releases nothing about them.

    Raises
    ------
    ValueError
        Of the shape or the names of columns, which are public.
    InvalidValues
        One fixed sentence, if a value is no finite number.
    """
    check_public(estimator, X, reset=False, accept_sparse=accept_sparse)
    X = quietly(canonical, X) if issparse(X) else numeric(X).astype(float, copy=False)
    finite(X)
    return X


def finite_numbers(data: Any, name: str, shape: Any = None) -> np.ndarray:
    """Float64 array of an argument, of a public shape, or one fixed sentence about its values.

    Parameters
    ----------
    data : array-like
    name : str
        Name of the argument, for an error about its shape.
    shape : tuple of (int or None), default=None
        None is any shape, and None in it any length.
    """
    check_shape(data, name, shape)
    values = floats(data)
    finite(values)
    return values


def check_shape(data: Any, name: str, shape: Any) -> None:
    """Refuse an argument of another public shape; None in it is any length."""
    found = public_shape(data)
    refuse_no_numbers(data, name)
    if shape is None:
        return
    if len(found) != len(shape) or any(w not in (None, f) for w, f in zip(shape, found)):
        wanted = str(tuple("any" if size is None else size for size in shape)).replace("'", "")
        raise ValueError(f"{name} of shape {found} must have shape {wanted}.")
