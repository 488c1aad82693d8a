"""From a table of mixed columns to rows of the unit ball, by a public schema."""

from dataclasses import field
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import qmc
from sklearn.utils.validation import check_is_fitted

from .._compat import fit_context
from .._estimation._cells import placed
from .._estimation._levels import USUAL_DEVIATIONS, usual_moments
from .._linalg import FLOAT_STEP
from .._parameters import parameters
from ..records import (
    as_rows, check_shape, floats, is_lazy, present_names, quietly, same_names,
)  # fmt: skip
from ._base import PublicTransformer
from ._bounds_scaler import CoefficientMap
from .._stored import stored
from ._columns._levels import Boolean
from ._columns._ranges import Numeric
from ._schema import Schema, column_names, columns_of

if TYPE_CHECKING:
    from ._columns._type import Block, ColumnType
    from .._contracts import Array


class SchemaEncoder(PublicTransformer):
    """Base class of transformers whose columns a schema describes; not for direct use.

    A subclass has `_chosen`, the names of the columns that it encodes, `_learn`, which derives
    public numbers from the schema, and `_encoded`, the encoded rows of a table in memory.
    """

    takes_numbers = False

    @property
    def _types(self) -> Schema:
        """The schema; it may have been passed as a mapping from names to types."""
        return as_schema(self.schema)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Match the schema with the columns; nothing is learnt from the rows.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_features)
            A frame of pandas, polars (lazy too), Arrow or another library that narwhals knows. Only
            the names of its columns are used.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a column of the schema is absent or has no range or list, or if a term of a formula
            has no bounds, names no column of the schema, or repeats another one.
        """
        names = column_names(X)
        schema = self._types
        self.columns_ = self._chosen(schema, names)
        schema.check_filled(self.columns_)
        schema.check_dtypes(X, self.columns_)
        self.feature_names_in_ = np.array(names, object)
        self.n_features_in_ = len(names)
        self._learn(schema)
        return self

    def _checked(self, X: Any) -> Any:
        present_names(self.columns_, column_names(X), "The fitted encoder", "X")
        self._types.check_dtypes(X, self.columns_)
        return as_rows(X) if is_lazy(X) else None

    def level_shares(self, given: Any, smallest: float | None = None) -> dict[str, Any]:
        """Expected shares of the levels of each encoded column, for made-up rows.

        Parameters
        ----------
        given : mapping of str to (mapping of str to float, or float)
            Shares of levels by column. A number is the share of true of a truth value.
        smallest : float, default=None
            Share of the smallest level of each list for which nothing is given.

        Returns
        -------
        dict of str to dict of str to float
            Share of each level by column; those of one column add up to 1.
        """
        check_is_fitted(self)
        schema = self._types
        shares = dict.fromkeys(self.columns_)
        present_names(given or {}, shares, "shares", "the encoder")
        for name, share in (shares | dict(given or {})).items():
            column = schema[name]
            if isinstance(share, Real):
                share = {column.coded[0][1] if isinstance(column, Boolean) else "a number": share}
            shares[name] = column.expected_shares(share, smallest)
        return shares

    @property
    def usual_target(self) -> tuple[Any, ...]:
        """Mean and standard deviation of the target by its usual range; empty without one."""
        schema = self._types
        column = None if schema.target is None else schema.get(schema.target)
        return usual_moments(*column.usual) if column is not None and column.usual else ()

    def imagined(self, cube: np.ndarray, shares: dict[str, Any]) -> "Array":
        """Encoded rows of a made-up table, whose columns do not depend on each other.

        Parameters
        ----------
        cube : ndarray of shape (n_rows, n_columns)
            Numbers in (0, 1) that are spread evenly: quantiles of the columns.
        shares : dict
            What `level_shares` returns.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            Encoded rows, as `transform` returns them.
        """
        check_is_fitted(self)
        schema = self._types
        blocks = {
            name: schema[name].imagined(quantiles, shares[name])
            for name, quantiles in zip(self.columns_, cube.T, strict=True)
        }
        return self._rows_of(blocks)

    @property
    def usual_out_(self) -> Any:
        """Usual ranges of the encoded columns by those of the schema, for ``usual_X``.

        None where the schema has none, and NaN for columns to which none applies. They are those of
        made-up rows, in which columns do not depend on each other.
        """
        check_is_fitted(self)
        schema = self._types
        guessed = np.array([bool(schema[name].usual) for name in self.columns_])
        if not guessed.any():
            return None
        cube = qmc.Halton(len(guessed), scramble=False).random(1025)[1:]
        rows, others = (
            self.imagined(quantiles, self.level_shares(None))
            for quantiles in (cube, np.where(guessed, cube[::-1], cube))
        )
        spread = np.std(rows, axis=0) * USUAL_DEVIATIONS / 2.0
        ends = (np.mean(rows, axis=0) + np.outer((-1.0, 1.0), spread)).clip(-1.0, 1.0).T
        return np.where(((rows != others).any(axis=0) & (spread > 0.0))[:, None], ends, np.nan)

    @property
    def _n_features_out(self) -> int:
        return len(self.get_feature_names_out())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # Rows are data frames, whose columns have names.
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


@stored
@parameters
class TableEncoder(SchemaEncoder):
    """Encode the columns of a data frame as rows of the unit ball, by a public schema.

    Numbers, dates, levels, truth values and categories, with holes and with values that nobody
    expected, become columns for a regressor with ``data_norm=1.0``. Nothing is learnt from the
    rows, so it costs no budget.

    Parameters
    ----------
    schema : Schema or mapping of str to column type
        The public type of each column: :class:`Numeric`, :class:`Categorical`, :class:`Ordinal`,
        :class:`Boolean` or :class:`Date`. Columns that it does not name are left out, and so are
        its target and its outcomes.

    Attributes
    ----------
    columns_ : list of str
        The columns that are encoded, in the order of the schema.

    blocks_ : dict of str to slice
        Where each of them stands in the output.

    bounds_out_ : ndarray of shape (n_encoded, 2)
        Ends of the range of each column of the output, for ``bounds_X`` of a regressor.

    linear_features_out_ : list of int
        Columns of the output that have two values, or belong to a list: levels, truth values and
        indicators of missing cells, for ``linear_features`` of an additive regressor.
    usual_out_ : ndarray of shape (n_encoded, 2) or None
        Usual range of each column of the output, by ``usual`` of the schema, for ``usual_X`` of a
        regressor; NaN where none is known, and None where the schema has none.
    norm_ : float
        The public divisor: the square root of the number of columns that are encoded, rounded up.

    n_features_in_ : int
        Number of columns of the frame seen in `fit`.

    feature_names_in_ : ndarray of shape (n_features,)
        Their names.

    See Also
    --------
    BoundsScaler : For arrays of numbers.

    Notes
    -----
    **Privacy guarantee**: `fit` learns the names of the columns, which are public, and nothing from
    the rows; `transform` maps each row by itself. It reads each cell by itself, too, since the type
    of a column depends on all of its rows. It is total: NaN, infinity, a text among numbers or an
    unknown category are missing or "other", as the schema says; no error, warning or attribute
    tells of them.

    **The norm.** A column becomes a block b_j of norm at most 1: a number z in [-1, 1], with its
    indicator the pair (z, 0) or (0, 1), a category a corner of a regular simplex on the unit sphere
    (:class:`Categorical`). The row is ``(b_1, ..., b_K) / sqrt(K)``: its squared norm is the mean
    of those of the blocks, at most 1. `norm_` is sqrt(K) rounded up by more than the rounding of
    it. A block of many categories thus takes the room of one column. The smallest of public weights
    whose squares sum to 1 is at most 1 / sqrt(K), so that no others leave more room to the column
    that has least. Each block reaches the sphere, in opposite or equally distant points, so that
    none can be larger.

    Each of k encoders and scalers side by side in a ``ColumnTransformer`` makes a part of norm at
    most 1, so that ``data_norm`` of the regressor is the square root of k. One encoder of all
    columns needs no ``ColumnTransformer``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpriv.preprocessing import Categorical, Numeric, Schema, TableEncoder
    >>> frame = pd.DataFrame({"age": [30, None, 999], "sex": ["M", "F", "?"]})
    >>> schema = Schema({
    ...     "age": Numeric(20, 60, missing="indicator"),
    ...     "sex": Categorical(["F", "M"], other=False),
    ... })
    >>> encoder = TableEncoder(schema).set_output(transform="pandas")
    >>> encoder.fit_transform(frame).round(3) + 0.0
         age  age=missing  sex=M
    0 -0.354        0.000  0.707
    1  0.000        0.707 -0.707
    2  0.707        0.000  0.000
    """

    schema: Any = field(kw_only=False)

    def _chosen(self, schema: Schema, names: list[str]) -> list[str]:
        """Columns of the schema that are in the frame; one that is absent may be the target."""
        given = schema.features
        found = dict(zip(given, same_names(given, names), strict=True))
        columns = [name for name, own in found.items() if own is not None]
        absent = [name for name, own in found.items() if own is None]
        strange = [name for name in names if name not in found.values()]
        target = schema.target is None and len(absent) == 1 and columns
        if target and isinstance(schema[absent[0]], Numeric | Boolean):
            if not get_close_matches(absent[0], strange, n=1, cutoff=0.8):
                absent = []  # It describes the target, which is y.
        who = "The schema (which may say what its target is, Schema(..., target=name))"
        present_names(absent, names, who, "X")
        if not columns:
            raise ValueError("The schema has no column but the target: describe the features too.")
        return columns

    def _learn(self, schema: Schema) -> None:
        """Places of the columns, the public norm, and ranges."""
        self.blocks_ = {}
        stop = 0
        for name in self.columns_:
            start = stop
            stop += len(schema[name].block(name).names)
            self.blocks_[name] = slice(start, stop)
        # Rounded up by more than the rounding of a squared norm of `stop` terms.
        slack = 1.0 + (stop + 8) * FLOAT_STEP
        self.norm_ = float(np.sqrt(len(self.columns_)) * slack)
        self.bounds_out_ = np.vstack([block.ranges for block in self._blocks()]) / self.norm_
        # The first column of a number or a date has a curve, all others have two values or levels.
        kinds = {block.start: schema[name].kind for name, block in self.blocks_.items()}
        self.linear_features_out_ = [
            column for column in range(stop) if kinds.get(column) not in ("numeric", "date")
        ]

    def _encoded(self, X: Any) -> np.ndarray:
        """Encoded rows of a table in memory."""
        frame = columns_of(X, self.columns_)
        schema = self._types
        return self._rows_of({name: schema[name].encode(frame[name]) for name in self.columns_})

    def _rows_of(self, blocks: dict[str, np.ndarray]) -> np.ndarray:
        """Rows of the blocks of all columns."""
        rows = np.hstack(list(blocks.values()))
        rows /= self.norm_
        return rows

    def inverse_transform(self, X: Any) -> Any:
        """Values of encoded rows: exact for those that `fit` knew and that were in their ranges.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_encoded)
            Encoded rows.

        Returns
        -------
        table : dict of str to list
            Values of each column, None where missing.
        """
        check_is_fitted(self)
        check_shape(X, "X", (None, self._n_features_out))
        columns = quietly(floats, X)
        return {
            name: self.inverse_column(name, columns[:, at]) for name, at in self.blocks_.items()
        }

    def inverse_column(self, name: str, X: Any) -> list[Any]:
        """Values of one column from its columns in the output, for the axis of a curve.

        Parameters
        ----------
        name : str
            Name of a column that is encoded.
        X : array-like of shape (n_values,) or (n_values, width)
            Encoded values, in ``blocks_[name]``; those of a number without an indicator may be
            one-dimensional.

        Returns
        -------
        list
            Values in the units of the table, None where missing.
        """
        column, at = self._column(name)
        width = at.stop - at.start
        units: list[Any] = quietly(lambda: column.decode(floats(X).reshape(-1, width) * self.norm_))
        return units

    def coded_levels(self, name: str) -> tuple[list[str], np.ndarray] | None:
        """Levels of a column and their rows in its columns of the output, in ``blocks_[name]``.

        Parameters
        ----------
        name : str
            Name of a column that is encoded.

        Returns
        -------
        (list of str, ndarray of shape (n_levels, width)), or None
            Levels with their encoded rows; None for numbers and dates.
        """
        coded = self._column(name)[0].coded
        return None if coded is None else (list(coded[0]), coded[1] / self.norm_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the encoded columns: "age", "age=missing", "sex=M".

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored, but for a check that they are those of `fit`.

        Returns
        -------
        ndarray of str
            Names in the order of the encoded columns.
        """
        check_is_fitted(self)
        if input_features is not None and list(input_features) != list(self.feature_names_in_):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array([name for block in self._blocks() for name in block.names], object)

    def coefficient_map(self) -> CoefficientMap:
        """The linear map from coefficients of encoded rows to effects in the units of the table.

        A number's effect is per unit, a date's per year since the low end of its range, a level's
        per level, that of a truth value is of true against false, that of a category against the
        first one. A missing number or date is told against ``typical`` of its type or the middle of
        the range, a missing level, truth value or category against the first one.

        Returns
        -------
        CoefficientMap
            ``names``, ``matrix``; ``apply(coef, intercept)``, ``covariance(covariance)``.
        """
        blocks = self._blocks()
        matrix = np.eye(self._n_features_out + 1)
        cells = []
        for block, at in zip(blocks, self.blocks_.values(), strict=True):
            matrix[at, at] = block.matrix / self.norm_
            matrix[-1, at] = block.offset / self.norm_
            cells.append(placed(block.cells, at, len(matrix) - 1))
        names = [name for block in blocks for name in block.effects]
        scale = np.append(np.full(len(matrix) - 1, self.norm_), 1.0)
        lists = {
            name: (block.reference, block.effects)
            for name, block in zip(self.columns_, blocks, strict=True)
            if block.reference
        }
        return CoefficientMap(names, matrix, np.vstack(cells) * scale, lists)

    def _column(self, name: str) -> "tuple[ColumnType, slice]":
        """The type of a column that is encoded, and its place in the output."""
        check_is_fitted(self)
        (name,) = present_names([name], self.blocks_, "name", "the encoder")
        return self._types[name], self.blocks_[name]

    def _blocks(self) -> "list[Block]":
        check_is_fitted(self, "norm_")
        schema = self._types
        return [schema[name].block(name) for name in self.columns_]


def as_schema(schema: Any) -> Schema:
    """A schema, of a mapping from names to types as well."""
    return schema if isinstance(schema, Schema) else Schema(schema)
