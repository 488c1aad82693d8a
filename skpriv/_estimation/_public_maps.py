"""Public bounds, and maps by them: a row to phi in the unit ball, a target to [-1, 1], and back.

Second moments are summed of the records that come out. With weights they are records of the same
unit ball: least squares with weights v = weight / max_weight in [0, 1] is least squares of the
records (s phi, s r), s = sqrt(v). They have |s phi| <= 1 and |s r| <= 1, as all records have,
whatever the weight is: every query of them keeps its sensitivity, and a change of the weight is a
change of the record like any other. A released residual Gram of them is that of weighted least
squares, sum v^2 zeta^2 phi phi'. The constant of phi is s times what it was and therefore no longer
public.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.linalg import norm as norm_of_rows
from scipy.sparse import csr_matrix, diags, hstack, issparse

from .._contracts import passed_on
from .._linalg import blocks_of, norm_of, row_norms, unwarned
from ..records import canonical, same_names
from .._stored import frozen, frozen_object, stored
from ._levels import usual_moments

if TYPE_CHECKING:
    from .._contracts import Array, Scalar

# Half-widths of ranges, and units of coefficients: far enough from the ends of float64, 2e-308 and
# 2e308, for the factors of a fit. At 1e-12 of its largest number a range has four digits left.
UNITS = 1e-300, 1e290
DIGITS = 1e-12
NARROW = (
    f"at least {2.0 * UNITS[0]:g} and {2.0 * DIGITS:g} of the larger number apart, or rounding "
    "is all that is left: subtract a public number from the column, or use other units"
)

# The advice for a bound that has no default, since one would clip silently.
REQUIRED = {
    "data_norm": (
        "the public l2 norm to which rows are clipped. BoundsScaler and TableEncoder make rows of "
        "norm at most 1: pass data_norm=1.0 after them. A default would clip other rows silently, "
        "and a norm read off X is not private."
    ),
    "data_max": (
        "the public number to which the entries of X are clipped, such as 1.0 after BoundsScaler. "
        "A default would clip rows silently, and a range read off X is not private."
    ),
    "bounds_X": (
        "the public range (low, high) of every column of X, in its units; behind a TableEncoder "
        "its bounds_out_. A default would clip silently, and a range read off the data is not "
        "private."
    ),
    "bounds_y": (
        "the public range (low, high) of the target, in its units. A default would clip targets "
        "silently, and a range read off y is not private."
    ),
}


def column_bounds(
    given: Any, names: Sequence[str], n_features: int, parameter: str
) -> tuple[np.ndarray, np.ndarray]:
    """Checked public ranges (low, high), each of shape (n_features,), in the order of the columns.

    Parameters
    ----------
    given : mapping, array-like of shape (n_features, 2) or (low, high)
        What pandas has labelled by the names of the columns is a mapping, too.
    names : list of str
        Names of the columns; empty if X has none.
    n_features : int
    parameter : str
        What errors call it.

    Raises
    ------
    ValueError
    """
    if isinstance(getattr(given, "index", None), Iterable):
        labels = list(given.index)
        if names and all(isinstance(label, str) for label in labels):
            given = dict(zip(labels, given.to_numpy(), strict=True))
    if isinstance(given, Mapping):
        if not names:
            raise ValueError(
                f"{parameter} is a mapping of feature names, but X has no feature names that are "
                "strings: pass a DataFrame that has, or an array of shape (n_features, 2) as "
                f"{parameter}."
            )
        found = same_names(names, given)
        absent = [name for name, column in zip(names, found) if column is None]
        if absent:
            raise ValueError(
                f"{parameter} has no range for {absent}: add a (low, high) for each, or leave "
                "these columns out of X."
            )
        given = [given[name] for name in found]
    of_lists = isinstance(given, tuple) and not any(isinstance(x, tuple) for x in given)
    if of_lists and n_features == 2 and [np.size(x) for x in given] == [2, 2]:
        pairs = np.asarray(given).tolist()
        ends = np.transpose(given).tolist()
        raise ValueError(
            f"{parameter} is a tuple of two lists, which may be the ranges of two columns or the "
            f"lowest and the highest values: pass a list of pairs, {[*map(tuple, pairs)]} or "
            f"{[*map(tuple, ends)]}."
        )
    try:
        pairs = np.asarray(given, float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{parameter} must be pairs (low, high) of numbers: public ranges that follow from "
            "what the features mean, one for each or one for all. None is read off the rows."
        ) from error
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (n_features, 1))
    if pairs.shape != (n_features, 2):
        raise ValueError(
            f"{parameter} has shape {pairs.shape}, but X has {n_features} features: pass "
            "one public range (low, high) for all of them, or a list with one for each, "
            f"[(low, high), ...], of shape ({n_features}, 2)."
        )
    low, high = pairs.T.copy()
    with unwarned():
        width = high - low
        proper = np.isfinite(pairs).all(axis=1) & np.isfinite(width) & (low < high)
        resolved = width / 2.0 >= np.maximum(UNITS[0], DIGITS * np.abs(pairs).max(axis=1))
    for fits, what in ((proper, "finite, with low < high"), (resolved, NARROW)):
        if not fits.all():
            column = int(np.flatnonzero(~fits)[0])
            name = f" of {names[column]!r}" if len(names) else f" of column {column}"
            name = "" if parameter == "bounds_y" else name
            raise ValueError(
                f"{parameter}{name} are ({low[column]:.16g}, {high[column]:.16g}): low and "
                f"high must be {what}."
            )
    return low, high


def check_units(bound: float | np.ndarray, radius: float, parameter: str) -> None:
    """Refuse public ranges that make the unit of a coefficient, radius / bound, no usable number.

    Parameters
    ----------
    bound : float or ndarray
        Half-widths of the features, or the norm of rows.
    radius : float
        Half the width of the range of y.
    parameter : str
        What the bound is called.

    Raises
    ------
    ValueError
    """
    with unwarned():
        units = np.atleast_1d(radius / np.asarray(bound))
    wrong = units[~((units >= UNITS[0]) & (units <= UNITS[1]))]
    if len(wrong):
        raise ValueError(
            f"a coefficient is measured in units of the width of bounds_y over that of "
            f"{parameter}, which is {wrong[0]:g} here: it must lie in [{UNITS[0]:g}, {UNITS[1]:g}] "
            "for numbers to hold it. Give X or y in other units."
        )


# phi = (t z, 1) / sqrt(1 + t^2), t = FEATURE_LENGTH: a unit vector z of features has three times
# the length of the constant, so that whitening starts from features that are above its noise.
FEATURE_LENGTH = 3.0
FOLD = 16  # rows of phi that one operation shifts and scales, which is twice as fast as by row


def _one_of_alike(columns: np.ndarray) -> np.ndarray:
    """The first column where all are the same: one number takes a third of the time of as many."""
    first = columns[..., :1]
    return first if (columns == first).all() else columns


class PublicRows:
    """Public map from a row to phi, with |phi| <= 1: what a fit may ask of any such map.

    A subclass has ``size``, ``n_features``, ``constant`` and ``rows(X)``. Everything else has a
    neutral answer here.

    Attributes
    ----------
    weighted : bool
        Whether rows have the root of a weight as their last column; see `roots`.
    bounded : bool
        Whether `outside` says which values are outside of their ranges.
    half_ranges : ndarray of shape (n_features, size) or None
        Vectors c with phi'c = a feature in half-ranges from its middle; None without ranges.
    parts : (float, float) or None
        Length of features and of the constant in phi; None of rows that are no line's.
    """

    size: Any
    n_features: Any
    constant: Any
    weighted = bounded = False
    half_ranges: Any = None
    parts: Any = None

    def rows(self, X: Any) -> np.ndarray:
        """Phi of a chunk of rows, of norm at most 1 up to rounding; total."""
        raise NotImplementedError

    @property
    def n_inputs(self) -> Any:
        """Columns of X that have ranges."""
        return self.n_features

    def roots(self, X: Any) -> np.ndarray:
        """Roots of the weights of a chunk of rows, in [0, 1]."""
        return np.ones(len(X))

    def plain_rows(self, X: Any) -> np.ndarray:
        """Phi of a chunk of rows, which the roots of their weights have not multiplied."""
        return self.rows(X)

    def along(self, X: Any, theta: np.ndarray) -> "Array":
        """Phi'theta of the same rows."""
        return self.plain_rows(X) @ theta

    def turn(self, W: np.ndarray) -> np.ndarray:
        """What `turned` takes for W."""
        return W

    def turned(self, X: Any, turn: Any) -> "Array":
        """W phi of a chunk of rows, of the `turn` of W."""
        return self.rows(X) @ turn.T

    def outside(self, X: Any) -> np.ndarray:
        """Whether each value is outside of its range, shape (n_rows, n_inputs)."""
        raise NotImplementedError

    def weigh(self, instruments: np.ndarray, X: Any) -> np.ndarray:
        """Instruments of rows, times the roots of their weights."""
        return instruments

    def in_blocks(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (slice, phi) of one block of ``rows`` after the other: it and a product of it fit
        into the cache. Sparse rows are one long block.
        """
        for block in blocks_of(X.shape[0], 1 if issparse(X) else 2 * self.size):
            yield block, self.rows(X[block])

    def span(self, theta: np.ndarray) -> tuple[float, float]:
        """Least and largest phi'theta of any row."""
        farthest = norm_of(theta)
        return -farthest, farthest

    def longest_row(self, W: np.ndarray) -> float:
        """Length of W phi of a long row inside of the bounds; 0 where none is known."""
        return 0.0

    def priors(self) -> Sequence[np.ndarray]:
        """Shapes L of priors theta = tau L c, beside those of all maps."""
        return ()


@stored
@frozen_object
class RowMap(PublicRows):
    """The public map from a row x to phi with ||phi|| <= 1: affine inside the bounds.

    With ranges of the features, z = (x - middle) / (half-width sqrt(d)) after clipping x to them;
    with ``data_norm``, z = x / data_norm after clipping x to that norm. With an intercept
    phi = (t z, 1) / sqrt(1 + t^2), without one phi = z (and then a range is centred at 0).

    Any `PublicRows` can stand in its place.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,), or None
        Ranges of the features.
    data_norm : float or None
        Without ranges: bound on the l2 norm of a row.
    fit_intercept : bool
    n_features : int
    feature_length : float
        t. Equal lengths, 1, give second moments of the least sensitivity for their size.
    """

    low: Any
    high: Any
    data_norm: float | Any
    fit_intercept: bool
    n_features: int
    feature_length: float = FEATURE_LENGTH
    bounded = True

    def __post_init__(self) -> None:
        _ = self._shift_and_scale  # now: a map does not tell whether it has read a row

    @cached_property
    def size(self) -> int:
        """Length p of phi."""
        return self.n_features + bool(self.fit_intercept)

    @cached_property
    def parts(self) -> tuple[float, float]:
        """Length of z and of the constant in phi."""
        root = sqrt(1.0 + self.feature_length**2)
        return (self.feature_length / root, 1.0 / root) if self.fit_intercept else (1.0, 0.0)

    @cached_property
    def constant(self) -> np.ndarray | None:
        """The vector c with phi'c = 1 for every row, shape (p,); None without an intercept."""
        if not self.fit_intercept:
            return None
        return np.append(np.zeros(self.n_features), 1.0 / self.parts[1])

    @cached_property
    def offset(self) -> "Array":
        """The row that is mapped to z = 0, shape (n_features,)."""
        if self.low is None or not self.fit_intercept:
            return np.zeros(self.n_features)
        return self.low / 2.0 + self.high / 2.0

    @cached_property
    def divisor(self) -> "Array":
        """What the features are divided by, shape (n_features,)."""
        if self.low is None:
            return np.full(self.n_features, self.data_norm)
        if self.fit_intercept:
            return (self.high / 2.0 - self.low / 2.0) * self._across
        return np.maximum(np.abs(self.low), np.abs(self.high)) * self._across

    @cached_property
    def _shift_and_scale(self) -> np.ndarray:
        """Shifts and factors of the columns of phi; the constant is written afterwards."""
        columns = np.zeros((2, self.size))
        columns[:, : self.n_features] = self.offset, self.parts[0] / self.divisor
        columns[:, self.n_features :] = columns[:, :1]
        return _one_of_alike(columns)

    @cached_property
    def _across(self) -> float:
        """Length of a corner of the ranges, in half-ranges."""
        return 1.0 if self.low is None else sqrt(max(1, self.n_features))

    @property
    def half_ranges(self) -> np.ndarray | None:
        """Vectors c with phi'c = a feature in half-ranges from its middle; None without ranges."""
        if self.low is None or not self.fit_intercept:
            return None
        return self._across / self.parts[0] * np.eye(self.n_features, self.size)

    @property
    def may_be_indicators(self) -> "Array":
        """Which features have the range (0, 1), as the indicator of a category has."""
        return (self.low == 0.0) & (self.high == 1.0)

    def span(self, theta: np.ndarray) -> tuple[float, float]:
        """Least and largest phi'theta of any row."""
        long, short = self.parts
        slopes = np.asarray(theta[: self.n_features])
        centre = short * theta[-1] if self.fit_intercept else 0.0
        if self.low is None:
            farthest = long * norm_of(slopes)
        else:
            farthest = long / self._across * np.abs(slopes).sum()
        return centre - farthest, centre + farthest

    def longest_row(self, W: np.ndarray) -> float:
        """Length of W phi of a row inside of the bounds that is as long as can easily be found.

        With ranges, of a corner: from the corner nearest to each coordinate of W phi, and from the
        opposite one, all features move to the ends that make it longer until none does. With
        ``data_norm``, of the longest row with one feature.

        Parameters
        ----------
        W : ndarray of shape (p, p)

        Returns
        -------
        float
        """
        long, short = self.parts
        A = long * W[:, : self.n_features]
        b = short * W[:, -1] if self.fit_intercept else np.zeros(len(W))
        if self.low is None:
            rows = np.concatenate([A.T, -A.T])
            return float(row_norms(rows + b).max(initial=0.0))
        A = A / self._across
        rows = np.where(np.concatenate([A, -A]) < 0.0, -1.0, 1.0)
        # The search stops by itself long before 50 moves
        for _ in range(50):
            better = np.where((rows @ A.T + b) @ A < 0.0, -1.0, 1.0)
            if (better == rows).all():
                break
            rows = better
        return float(row_norms(rows @ A.T + b).max(initial=0.0))

    def clipped(self, X: np.ndarray) -> "Array":
        """Rows within the bounds, in the units of X; NaN becomes the middle, or a zero row."""
        if self.low is not None:
            inside = np.asarray(X, float).clip(self.low, self.high)
            complete = not np.isnan(inside.min(initial=0.0))  # one pass in place of two
            return inside if complete else np.where(np.isnan(inside), self.offset, inside)
        X = np.asarray(X, float)
        X, norms = _finite(X, row_norms(X))
        return X * (self.data_norm / np.maximum(norms, self.data_norm))[:, None]

    def outside(self, X: np.ndarray) -> "Array":
        """Whether each value is outside of its range, or each row is too long, shape (n_rows,
        n_inputs). NaN is not.
        """
        if self.low is None:
            norms = norm_of_rows(X, axis=1) if issparse(X) else row_norms(X)
            return norms[:, None] > self.data_norm * (1.0 + 1e-9)
        return (X < _one_of_alike(self.low)) | (X > _one_of_alike(self.high))

    @property
    def n_inputs(self) -> int:
        """Ranges of columns, or the one of the norm of a row."""
        return 1 if self.low is None else self.n_features

    def rows(self, X: np.ndarray) -> "Array":
        """Clipped phi of a chunk of rows, of norm at most 1 up to rounding; total.

        NaN becomes the middle of its range, and a row that is not finite the zero row where only
        its norm is bounded. Sparse rows with a bounded norm have a sparse phi. Their values are
        clipped at 1e100 of it, so that no square overflows; those that underflow add nothing to 1.
        """
        if issparse(X):
            Z = clipped_entries(X / self.data_norm, 1e100)
            factors = self.parts[0] / np.maximum(np.sqrt(Z.power(2).sum(axis=1)), 1.0)
            constant = np.full((len(factors), self.size - self.n_features), self.parts[1])
            return hstack([diags(np.ravel(factors)) @ Z, constant], format="csr")
        if self.low is None:
            norms = row_norms(X)
            if norms.max(initial=0.0) <= self.data_norm:  # nothing is clipped
                return self._phi(X, 1.0 / self.data_norm)
            X, norms = _finite(X, norms)
            return self._phi(X, 1.0 / np.maximum(norms, self.data_norm)[:, None])
        # Clipping after the affine map is the same, and as few passes over the rows as can be.
        limit = self.parts[0] / self._across
        columns = self._shift_and_scale
        # A fit keeps one row of them
        shift, factors = columns if columns.shape[1] == 1 else np.tile(columns, FOLD)
        phi = np.zeros((-(-len(X) // FOLD) * FOLD, self.size))
        phi[: len(X), : self.n_features] = X
        wide = phi.reshape(-1, len(shift))
        wide -= shift
        wide *= factors
        phi = phi[: len(X)]
        phi.clip(-limit, limit, out=phi)
        phi[:, self.n_features :] = self.parts[1]
        if np.isnan(phi.max(initial=0.0)):
            np.nan_to_num(phi, copy=False, nan=0.0)
        return phi

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return phi without clipping, for predictions."""
        if self.low is None:
            return self._phi(X, 1.0 / self.data_norm)
        return self._phi((X - self.offset) / self.divisor, 1.0)

    def _phi(self, X: np.ndarray, factor: float | np.ndarray) -> np.ndarray:
        phi = np.empty((len(X), self.size))
        phi[:, : self.n_features] = X
        phi[:, self.n_features :] = 0.0
        phi *= factor * self.parts[0]  # as long vectors: of a part of the columns it is slower
        phi[:, self.n_features :] = self.parts[1]
        return phi

    def coefficient_map(self) -> np.ndarray:
        """Matrix L, shape (n_features + 1, p): (coef, intercept) = L theta of phi'theta = x'coef
        + intercept; the last row is zero without an intercept.
        """
        long, short = self.parts
        matrix = np.zeros((self.n_features + 1, self.size))
        slopes = long / self.divisor
        matrix[: self.n_features, : self.n_features] = np.diag(slopes)
        if self.fit_intercept:
            matrix[-1, : self.n_features] = -slopes * self.offset
            matrix[-1, -1] = short
        return matrix

    def whitening(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """W that gives features mean 0 and variance 1, if these are their moments in half-ranges.

        Without an intercept their mean squares are 1. Half of a range of rows of bounded norm is
        the norm over sqrt(d).
        """
        d = self.n_features
        long, short = self.parts
        W = np.eye(self.size)
        if self.fit_intercept:
            W /= short
            W[:d, :d] *= short / long * sqrt(d)
            W[:d, d] = -mean / short
        else:
            W[:d, :d] *= sqrt(d) / long
            variance = variance + mean**2
        W[:d] /= np.sqrt(np.clip(variance, 1e-14, 1.0))[:, None]
        return W

    def half_range_moments(self, low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance, in half-ranges, of normal features by their usual ranges."""
        ends = (np.array([low, high]) - self.offset) / self.divisor * sqrt(self.n_features)
        mean, deviation = usual_moments(*ends)
        return mean, deviation**2

    def theta_bound(self, coef_norm: float) -> float:
        """Bound on |theta| where (coef * half-width, intercept) has norm at most ``coef_norm``."""
        long, short = self.parts
        return coef_norm * max(self._across / long, 1.0 / short if self.fit_intercept else 0.0)

    def theta(self, coef: np.ndarray, intercept: float) -> "Array":
        """Return the parameter of phi for x'coef + intercept; undoes ``coefficient_map``."""
        long, short = self.parts
        theta = np.asarray(coef) * self.divisor / long
        if not self.fit_intercept:
            return theta
        return np.append(theta, (intercept + np.asarray(coef) @ self.offset) / short)

    line = theta  # of functions of the columns of X, as all maps of rows have it


class PublicTargets:
    """Public map from a target y to r: what a fit may ask of any such map.

    Attributes
    ----------
    bounded : bool
        Whether `outside` says which targets are outside of their bounds.
    """

    bounded = False

    def scaled(self, y: Any) -> Any:
        """Clipped r of a chunk of targets."""
        raise NotImplementedError

    def outside(self, y: Any) -> Any:
        """Whether each target is outside of its bounds, shape (n_rows,); NaN is not."""
        raise NotImplementedError


@stored
@frozen
class TargetMap(PublicTargets):
    """The public map from a target y to r in [-1, 1], keeping 0 at 0 if there is no intercept.

    Parameters
    ----------
    bounds_y : (float, float)
    fit_intercept : bool
    """

    bounds_y: tuple[float, float] | Any
    fit_intercept: bool
    bounded = True

    def __post_init__(self) -> None:
        _ = self.centre, self.radius  # now, as a `RowMap` does

    @cached_property
    def centre(self) -> float:
        """The target that is mapped to 0."""
        low, high = self.bounds_y
        return low / 2.0 + high / 2.0 if self.fit_intercept else 0.0

    @cached_property
    def radius(self) -> "Scalar":
        """Half the width of bounds_y, or the largest absolute value without an intercept."""
        low, high = self.bounds_y
        return high / 2.0 - low / 2.0 if self.fit_intercept else max(abs(low), abs(high))

    def scaled(self, y: np.ndarray) -> "Array":
        """Clipped r of a chunk of targets; NaN becomes 0."""
        scaled = np.asarray(y, float).clip(*self.bounds_y)
        scaled -= self.centre
        scaled /= self.radius
        # Again: of narrow bounds far from 0 the centre itself is rounded.
        scaled.clip(-1.0, 1.0, out=scaled)
        if np.isnan(scaled.sum()):
            np.nan_to_num(scaled, copy=False, nan=0.0)
        return scaled

    def outside(self, y: np.ndarray) -> "Array":
        """Whether each target is outside of bounds_y, or no number, shape (n_rows,)."""
        y = np.asarray(y, float)
        return ~((y >= self.bounds_y[0]) & (y <= self.bounds_y[1]))

    def unscale(self, value: np.ndarray) -> "Array":
        """From scaled units to those of y, clipped to bounds_y."""
        return np.clip(self.centre + self.radius * value, *self.bounds_y)


def clipped_entries(X: Any, limit: float) -> Any:
    """X with every entry clipped to [-limit, limit] and NaN replaced by 0; sparse stays sparse.

    Stored entries are entries of the matrix in canonical form only: duplicates are added up first.
    """
    if issparse(X):
        X = canonical(X)
        return csr_matrix((clipped_entries(X.data, limit), X.indices, X.indptr), shape=X.shape)
    Z = np.clip(X, -limit, limit)
    if np.isnan(Z.sum()):
        np.nan_to_num(Z, copy=False, nan=0.0)
    return Z


def _finite(X: np.ndarray, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their lengths; those that are not finite become zero rows."""
    finite = np.isfinite(norms)
    if finite.all():
        return X, norms
    return np.where(finite[:, None], X, 0.0), np.where(finite, norms, 0.0)


UNIT_TARGET = TargetMap((-1.0, 1.0), False)  # of s r


@frozen_object
class WeightedMap(PublicRows):
    """The map of rows (x, s) to s phi(x), where phi is another public map's.

    It stands in place of a `RowMap` without an intercept, whose constant is one of the coordinates.

    Parameters
    ----------
    plain : RowMap, or what stands in its place
    """

    plain: Any
    fit_intercept = False
    weighted = True

    size = passed_on("plain.size", "Length p of phi.")
    n_features = size  # of what `clipped` returns
    constant = passed_on("plain.constant", "The vector c with (s phi)'c = s.")
    priors = passed_on("plain.priors", "Shapes of priors of theta, which is that of phi.")

    def roots(self, X: np.ndarray) -> "Array":
        """Last column s of rows, in [0, 1]; what is not a number counts as 0."""
        return np.nan_to_num(X[:, -1].clip(0.0, 1.0), nan=0.0)

    def plain_rows(self, X: np.ndarray) -> "Array":
        """Phi of a chunk, without s."""
        return self.plain.rows(X[:, :-1])

    def rows(self, X: np.ndarray) -> "Array":
        """Return s phi of a chunk, of norm at most 1 up to rounding; total."""
        return self.plain_rows(X) * self.roots(X)[:, None]

    clipped = rows  # what is linear in them is fitted without an intercept of its own

    def weigh(self, instruments: np.ndarray, X: np.ndarray) -> "Array":
        """Instruments s e."""
        return instruments * self.roots(X)[:, None]

    def theta(self, coef: Any, intercept: Any) -> np.ndarray:
        """Return the parameter of phi: the coefficients themselves."""
        return np.asarray(coef)


@stored
@frozen_object
class RecordMap:
    """The public map from a record (x, y) to (phi, r), with |phi| <= 1 and |r| <= 1, and back.

    It is one value from the public checks of a fit to its last interval.

    Parameters
    ----------
    row_map : RowMap, or what stands in its place
    target_map : TargetMap, or what stands in its place
    """

    row_map: Any
    target_map: Any

    @classmethod
    def of_norm(
        cls,
        row_bound: float,
        bounds_y: tuple[float, float],
        fit_intercept: bool,
        n_features: int,
        feature_length: float = 1.0,
    ) -> "RecordMap":
        """Maps of rows of bounded norm, whose features are so many times as long as the constant.

        Parameters
        ----------
        row_bound : float
            Rows are clipped to this l2 norm; of sparse models, entries to this absolute value.
        bounds_y : (float, float)
        fit_intercept : bool
        n_features : int
        feature_length : float
        """
        rows = RowMap(None, None, row_bound, fit_intercept, n_features, feature_length)
        return cls(rows, TargetMap(bounds_y, fit_intercept))

    def weighted(self) -> "RecordMap":
        """Maps of records (s phi, s r), for rows that have their s and r in them."""
        return RecordMap(WeightedMap(self.row_map), UNIT_TARGET)

    def same_as(self, other: "RecordMap") -> bool:
        """Whether another map has the same public numbers, so that sums may be added up."""
        return bool(public_values(self) == public_values(other))

    # Values that it passes on from its two maps
    size = passed_on("row_map.size", "Length p of phi.")
    n_features = passed_on("row_map.n_features", "Number of features.")
    row_bound = passed_on("row_map.data_norm", "Norm of rows; None of ranges.")
    rows = passed_on("row_map.rows", "Clipped phi of a chunk of rows.")
    features = passed_on("row_map.features", "phi without clipping.")
    theta_bound = passed_on("row_map.theta_bound", "Bound on theta by coef_norm.")
    fit_intercept = passed_on("target_map.fit_intercept", "Whether there is one.")
    bounds_y = passed_on("target_map.bounds_y", "Range that targets are clipped to.")
    centre = passed_on("target_map.centre", "The target that is mapped to 0.")
    radius = passed_on("target_map.radius", "Distance of targets with r of 0 and 1.")
    target = passed_on("target_map.scaled", "Clipped r of a chunk of targets.")
    unscale = passed_on("target_map.unscale", "From [-1, 1] to the units of y.")

    def records(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Clipped (phi, r) of a chunk of rows and targets."""
        return self.rows(X), self.target(y)

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrix and shift from theta to coefficients and intercept in the units of X and y."""
        matrix = self.row_map.coefficient_map()
        target = self.target_map
        return target.radius * matrix, np.append(np.zeros(len(matrix) - 1), target.centre)

    def coefficients(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept in the units of X and y."""
        matrix, shift = self.units
        found = matrix @ theta + shift
        return found[:-1], float(found[-1])

    def theta(self, coef: np.ndarray, intercept: float) -> "Array":
        """Return the parameter of phi for these coefficients; undoes ``coefficients``."""
        intercept = (intercept - self.centre) / self.radius
        return self.row_map.theta(np.asarray(coef) / self.radius, intercept)

    def penalty(self, alpha: float) -> "Array":
        """Diagonal ridge on theta which equals ``alpha * ||coef||^2`` in the units of X and y.

        ||y - Xw||^2 + alpha ||w||^2 = radius^2 (||r - phi theta||^2 + sum penalty theta^2), with
        w = radius L theta; the intercept is free, as in scikit-learn's Ridge.
        """
        slopes = self.row_map.coefficient_map()[:-1]
        return alpha * (slopes**2).sum(axis=0)

    def wire(self) -> Any:
        """The maps as a public task has them."""
        rows = self.row_map
        if rows.parts is None:
            raise ValueError(
                "devices do not know these rows: only those of lines can be collected."
            )
        bounds = {"data_norm": rows.data_norm}
        if rows.low is not None and rows.high is not None:
            bounds = {"low": rows.low.tolist(), "high": rows.high.tolist()}
        return {
            "n_features": rows.n_features,
            **bounds,
            "parts": list(rows.parts),
            "bounds_y": list(self.bounds_y),
            "fit_intercept": bool(rows.fit_intercept),
        }


def public_values(value: Any) -> Any:
    """Plain values of public maps, to compare them."""
    if is_dataclass(value):
        inside = [getattr(value, item.name) for item in fields(value) if item.init]
        return [type(value).__name__, *map(public_values, inside)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [public_values(item) for item in value] if isinstance(value, tuple | list) else value
