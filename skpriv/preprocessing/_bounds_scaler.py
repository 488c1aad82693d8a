"""Scaling into the unit ball by public ranges, and the way back for coefficients."""

from collections.abc import Mapping
from dataclasses import field
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from .._compat import fit_context, names_in
from .._estimation._public_maps import column_bounds
from .._linalg import FLOAT_STEP
from .._parameters import ArrayLike, parameters
from .._stored import frozen_object, stored
from ..records import check_public, floats, same_names, silence
from ._base import PublicTransformer

if TYPE_CHECKING:
    from .._contracts import Array


@frozen_object
class CoefficientMap:
    """The linear map from coefficients of transformed rows to those of the table's units.

    Parameters
    ----------
    names : list of str
        Names of the effects in the units of the table: "age per year", "sex=M".
    matrix : ndarray of shape (n_features + 1, n_features + 1)
        Acts on the coefficients and the intercept, which is last, on both sides.
    cells : ndarray of shape (n_cells, n_features + 1) or None, default=None
        Public functions of transformed rows, coefficients and an intercept, that are 1 for the rows
        of one cell of the table and 0 for all others: a level, or a missing value.
    lists : dict of str to (str, list of str)
        The reference level of each column with a list, and the names of the effects of its others.

    Examples
    --------
    >>> from skpriv.preprocessing import BoundsScaler
    >>> mapping = BoundsScaler([(20, 60)]).fit([[30.0]]).coefficient_map()
    >>> coef, intercept = mapping.apply([2.0], 1.0)
    >>> print(coef.round(6), round(intercept, 6))
    [0.1] -3.0
    """

    names: list[Any]
    matrix: np.ndarray
    cells: np.ndarray | None = None
    lists: Any = field(default_factory=dict)

    def apply(self, coef: Any, intercept: Any = 0.0) -> tuple[np.ndarray, float]:
        """Coefficients and intercept in the units of the table.

        Parameters
        ----------
        coef : array-like of shape (n_features,)
            Coefficients of transformed rows.
        intercept : float, default=0.0
            Intercept of transformed rows.

        Returns
        -------
        (coef, intercept) : ndarray of shape (n_features,), float
            Coefficients and intercept of rows of the table.
        """
        coef = np.asarray(coef, float)
        if coef.shape != (len(self.names),):
            raise ValueError(
                f"coef has shape {coef.shape}, but there are {len(self.names)} transformed "
                "features: pass one coefficient for each."
            )
        effects = self.matrix @ np.append(coef, intercept)
        return effects[:-1], float(effects[-1])


@stored
@parameters
class BoundsScaler(OneToOneFeatureMixin, PublicTransformer):
    """Map features with public ranges into the unit ball, whatever the rows are.

    Each feature is clipped to its range and mapped to [-1, 1], or to [0, 1] if it is in an
    exclusive group. Then all of them are divided by the largest l2 norm that a row can have: the
    square root of the number of exclusive groups plus the number of the other features. A one-hot
    block thus takes the room of one feature, however many categories it has.

    Parameters
    ----------
    bounds : mapping, array-like of shape (n_features, 2) or (low, high), default=(-1.0, 1.0)
        The public range of every feature, finite, with low < high. A mapping goes from feature
        name to ``(low, high)`` and needs X with feature names; it may name features that X does
        not have. One pair is the range of all features. Ranges must come from the meaning of the
        features, never from the rows: a minimum or maximum of private data is not private.

    exclusive : list of lists of feature names or column indices, default=None
        Groups of features of which at most one is nonzero in a row, as in a one-hot block. Their
        lower bounds must be 0, so that zeros stay zeros. The guarantee does not rest on it: a row
        with several nonzeros in a group has that group scaled down to norm one. Names that are
        not in X must be in `bounds`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of features seen in `fit`, if all of them are strings.

    low_, high_ : ndarray of shape (n_features,)
        `bounds`, in the order of the columns.

    groups_ : list of lists of int
        `exclusive`, as columns.

    norm_ : float
        The public divisor.

    Notes
    -----
    **Privacy guarantee**: `fit` learns the number and the names of the columns and nothing from
    the rows, so it costs no budget; `transform` maps each row by itself, and neither an error nor
    a warning tells of a value. Every transformed row
    has an l2 norm of at most 1 in floating point too, since `norm_` is rounded up; with
    ``data_norm=1.0`` an estimator therefore clips none of them.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.preprocessing import BoundsScaler
    >>> X = np.array([[30.0, 1.0, 0.0], [99.0, 0.0, 1.0]])
    >>> scaler = BoundsScaler([(20, 60), (0, 1), (0, 1)], exclusive=[[1, 2]])
    >>> scaler.fit_transform(X).round(3) + 0.0
    array([[-0.354,  0.707,  0.   ],
           [ 0.707,  0.   ,  0.707]])
    """

    takes_numbers = True

    bounds: Any = field(default=(-1.0, 1.0), kw_only=False)
    exclusive: ArrayLike | None = None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Match the public bounds with the columns; nothing is learnt from the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only the number of its columns and their names are used.
        y : None
            Ignored.

        Returns
        -------
        self : BoundsScaler
            The scaler.
        """
        check_public(self, X)
        self.low_, self.high_ = column_bounds(
            self.bounds, self._names(), self.n_features_in_, "bounds"
        )
        self.groups_ = self._column_groups()
        n_terms = self.n_features_in_ - sum(map(len, self.groups_)) + len(self.groups_)
        # Rounded up by more than the rounding of a squared norm of n_features_in_ terms.
        slack = 1.0 + (self.n_features_in_ + 4) * FLOAT_STEP
        self.norm_ = float(np.sqrt(n_terms) * slack)
        return self

    def _checked(self, X: Any) -> Any:
        return check_public(self, X, reset=False)

    def _encoded(self, X: Any) -> "Array":
        X = floats(X).clip(self.low_, self.high_)  # The steps below write into this copy.
        offset, scale = self._affine()
        X -= offset
        X /= scale
        X.clip(-1.0, 1.0, out=X)  # Rounding may have left [-1, 1].
        for group in self.groups_:
            norms = np.linalg.norm(X[:, group], axis=1, keepdims=True)
            X[:, group] /= np.maximum(norms, 1.0)
        X /= self.norm_
        return X

    def inverse_transform(self, X: Any) -> Any:
        """Map scaled rows back to the units of the features.

        Clipping cannot be undone: it is the inverse for rows within their ranges and with at most
        one nonzero in each exclusive group.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled rows.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Rows in the units of the features.
        """
        check_is_fitted(self)
        check_public(self, X, reset=False)
        offset, scale = self._affine()
        with silence():
            return floats(X) * self.norm_ * scale + offset

    def coefficient_map(self) -> "CoefficientMap":
        """The linear map from coefficients of scaled rows to coefficients in the features' units.

        Returns
        -------
        CoefficientMap
            ``names``, ``matrix``; ``apply(coef, intercept)``, ``covariance(covariance)``.
        """
        check_is_fitted(self)
        offset, scale = self._affine()
        # f = beta (x - offset) / (scale norm) + intercept
        slopes = 1.0 / (scale * self.norm_)
        matrix = np.diag(np.append(slopes, 1.0))
        matrix[-1, :-1] = -offset * slopes
        one = np.eye(len(matrix))
        cells = [one[column] * self.norm_ for group in self.groups_ for column in group]
        cells += [one[-1] - self.norm_ * one[group].sum(axis=0) for group in self.groups_]
        found = np.reshape(cells, (-1, len(matrix)))
        return CoefficientMap(list(self.get_feature_names_out()), matrix, found)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # To refuse a missing value or a text would be an answer about the rows.
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    def _affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Offset and scale of each column: its centre and half-width, or 0 and its high end."""
        scale = (self.high_ - self.low_) / 2.0
        offset = self.low_ + scale
        for group in self.groups_:
            offset[group] = 0.0
            scale[group] = self.high_[group]
        return offset, scale

    def _names(self) -> list[str]:
        """Names of the features; empty if X had none."""
        return names_in(self) or []

    def _column_groups(self) -> list[list[int]]:
        names = self._names()
        bounds = self.bounds if isinstance(self.bounds, Mapping) else {}
        groups: list[list[int]] = []
        for members in self.exclusive if self.exclusive is not None else []:
            if isinstance(members, (str, Real)):
                raise ValueError("exclusive must be a list of lists: write [[...], [...]].")
            groups.append([])
            for member in members:
                if isinstance(member, str):
                    (own,) = same_names([member], names)
                    if own is None and same_names([member], bounds) != [None]:
                        continue  # It is a feature of the data set which this X has not.
                    column = member if own is None else names.index(own)
                else:
                    column = member
                if column not in range(self.n_features_in_):
                    raise ValueError(f"exclusive names {member!r}, which is not a column of X.")
                if any(column in group for group in groups):
                    raise ValueError(f"exclusive names {member!r} twice: groups must not overlap.")
                if self.low_[column] != 0.0:
                    raise ValueError(
                        f"exclusive names {member!r}, whose lower bound is {self.low_[column]}: "
                        "it must be 0, so that zeros stay zeros."
                    )
                groups[-1].append(int(column))
        return [group for group in groups if group]
