"""What every public door does with rows: public properties first, values by one conversion.

Shapes, kinds and names of columns are public, and scikit-learn checks them on zeros that stand for
the rows. A method that releases something leaves the values to its session, which looks at them
after the charge. A method that releases nothing (`predict`, `score`, `transform`) reads them here,
and what is wrong with them is one fixed sentence.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ._arrays import canonical
from ._tables import as_rows, read_in_batches
from ._values import finite, floats, named, numeric, public_shape, quietly, stand_in

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
    given = None if isinstance(y, str) else y
    rows = as_rows(X, given) if read_in_batches(X, given) else None
    if rows is None:
        zeros, target = stand_in(X), y if given is None else stand_in(y)
        names = X if hasattr(X, "columns") else None
    else:
        few = min(rows.n, 2)  # checks copy a vector
        zeros, names = np.zeros((few, rows.n_features)), named(rows.names)
        target = y if isinstance(y, str) else np.zeros(few) if rows.has_target else None
    options = {"accept_sparse": accept_sparse, "dtype": np.float64, "ensure_all_finite": False}
    plain = _plain(zeros, target)
    if reset and not plain:
        options |= {} if isinstance(target, str) else {"y_numeric": True}
        validate_data(estimator, zeros, target, **options)
    elif not plain:
        check_array(zeros, estimator=estimator, **options)
    if names is not None or plain or not reset:
        zeros = zeros if names is None else names
        validate_data(estimator, zeros, reset=reset, skip_check_array=True)
    return rows


def _plain(zeros, target):
    """Whether nothing can be wrong with such zeros: a table of numbers, and a target of each row.

    What scikit-learn does to be sure takes as long as a question about a thousand rows.
    """
    if not isinstance(zeros, np.ndarray) or zeros.ndim != 2 or not zeros.size:
        return False
    absent = isinstance(target, str)
    alike = absent or (isinstance(target, np.ndarray) and target.shape == zeros.shape[:1])
    return alike and zeros.dtype == float and (absent or target.dtype == float)


def readable(
    estimator: Any, X: Any, *, accept_sparse: Any = False, dtypes: Any = np.float64
) -> Any:
    """Rows in memory as numbers, for a fitted estimator that releases nothing about them.

    Raises
    ------
    ValueError
        Of the shape or the names of columns, which are public.
    InvalidValues
        One fixed sentence, if a value is no finite number.
    """
    check_public(estimator, X, reset=False, accept_sparse=accept_sparse)
    if issparse(X):
        X = quietly(canonical, X)
    else:
        X = numeric(X)
        X = X if X.dtype in np.atleast_1d(dtypes) else X.astype(np.float64)
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
    if shape is None:
        return
    if len(found) != len(shape) or any(w not in (None, f) for w, f in zip(shape, found)):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        wanted += "," if len(shape) == 1 else ""
        raise ValueError(f"{name} of shape {found} must have shape ({wanted}).")
