"""What transformers share: they learn nothing from rows, and read cells in silence."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..records import held_back, is_lazy

if TYPE_CHECKING:
    from .._contracts import K


def keeps_rows(transformer: "K") -> "K":
    """Class decorator of transformers: rows that are read in batches stay what they are.

    scikit-learn puts what `transform` returns into the data frame that `set_output`, or
    ``set_config(transform_output=...)``, asks for. This would read all rows, before a charge.
    """
    for name in ("transform", "fit_transform"):
        framed = getattr(transformer, name)

        @wraps(framed)
        def method(self: Any, X: Any, *arguments: Any, framed: Any = framed, **named: Any) -> Any:
            return (framed.__wrapped__ if is_lazy(X) else framed)(self, X, *arguments, **named)

        setattr(transformer, name, method)
    return transformer


@keeps_rows
class PublicTransformer(TransformerMixin, BaseEstimator):
    """Base class of transformers that learn nothing from rows; not for direct use.

    `transform` runs before the charge of the fit that follows it. So a subclass says apart what is
    public and what is not. `_checked` looks at names, shapes and dtypes. `_encoded` reads cells: no
    warning of it is heard, and an error becomes rows of NaN, which a fit refuses after its charge.

    Attributes
    ----------
    takes_numbers : bool
        Whether `_encoded` takes arrays of numbers, of rows that are read in batches, or tables.
    """

    takes_numbers: ClassVar[bool]
    _checked: Callable[[Any], Any]  # rows that are read in batches, None of those in memory
    _encoded: Callable[[Any], np.ndarray]

    def transform(self, X: Any) -> Any:
        """Map rows into the unit ball, each by itself.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows as for `fit`, of any values. Rows that are read in batches
            (:func:`skpriv.records.from_table`, lazy frames, Dask, large memory maps) stay where
            they are.

        Returns
        -------
        X_encoded : ndarray of shape (n_samples, n_encoded)
            Rows of l2 norm at most 1. A data frame, if `set_output` asks for one. Rows that are
            read in batches give rows that are encoded when they are read.

        Raises
        ------
        ValueError
            Of names, numbers and dtypes of columns, which are public.
        """
        check_is_fitted(self)
        rows = self._checked(X)
        names = list(self.get_feature_names_out())
        if is_lazy(X):
            named = None if rows.names is None else names
            return rows.mapped(self._guarded, len(names), named, numeric=self.takes_numbers)
        return self._guarded(X if rows is None else rows)

    def _guarded(self, X: Any) -> Any:
        """Encoded rows; where an error keeps them from being made, rows of NaN."""
        return held_back(self._encoded, X, np.full(len(self.get_feature_names_out()), np.nan))
