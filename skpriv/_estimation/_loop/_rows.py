"""Whitened rows, and questions about rows: their Gram matrix, their margins and their bounds.

The way of a row: the public map takes x to phi with ||phi|| <= 1, and a released matrix W takes phi
to psi = W phi. A psi that is longer than 1 is shortened: w = min(1, 1 / ||psi||) and e = w psi, so
that ||e|| <= 1 whatever W is. For a row with weight v, w and e are multiplied by its root. A prime
marks the record that replaces another one.

`Whitened` makes e, w and |e| of each chunk of rows. Steps ask many times about the same W: a
session then makes these numbers once, and keeps them as `PreparedRows` (see `Query.prepared`).
"""

from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._stored import frozen_object, set_state
from ..._linalg import SQRT2, add_gram, blocks_of, row_norms, unvech, vech, vech_size
from ...privacy import ROUNDING, Answer, Query

if TYPE_CHECKING:
    from .._public_maps import RowMap
    from ..._contracts import Array, Scalar

SQUARES = 1.5  # c of `MarginsQuery`: as large as costs nothing


@frozen_object
class Whitened:
    """Makes rows e = w W phi and their w of a chunk, or reads those that are prepared.

    Parameters
    ----------
    row_map : RowMap, or what stands in its place, or None
        The public map from x to phi. None reads chunks of `PreparedRows`, which have no weights.
    W : ndarray of shape (p, p)
        W phi and Q W phi of a rotation Q are alike to all queries, whose noise is the same in every
        direction.
    target_map : TargetMap, or what stands in its place, default=None
        That of all queries about these rows: r is then kept in memory with the rows, and not y.
    by_person : bool, default=False
        Whether `PreparedRows` keep the numbers of a row side by side, as sums over persons read
        them.
    passing : bool, default=False
        Whether too few questions are about these rows for them to be prepared.
    """

    row_map: Any
    W: np.ndarray
    target_map: Any = None
    by_person: bool = False
    passing: bool = False

    @cached_property
    def _turn(self) -> "Array":
        return self.row_map.turn(self.W)

    @property
    def longest_along(self) -> "tuple[Array, Array]":
        """Principal directions of W, as columns, and how long rows inside of their bounds are along
        each at most.
        """
        directions = np.linalg.svd(self.W)[0]
        spans = [*map(self.row_map.span, directions.T @ self.W)]
        return directions, np.abs(spans).max(axis=1)

    def blocks(self, X: Any) -> Any:
        """Yield (slice, e, w, |e|, f) of one block of rows after the other.

        f is the factor that shortens a row to norm 1, and w is f times the root of the weight of
        the row. A block stays in the cache. X is a chunk of rows x, or `PreparedRows`.
        """
        if self.row_map is None:
            yield from X.blocks
            return
        for block in blocks_of(len(X), self.width):
            rows = X[block]
            e = self.row_map.turned(rows, self._turn)
            norms = row_norms(e)
            roots = self.row_map.roots(rows)
            factors = 1.0 / np.maximum(norms, 1.0)
            if norms.max(initial=0.0) > 1.0:
                e *= factors[:, None]
                roots = roots * factors
                norms = np.minimum(norms, 1.0)
            yield block, e, roots, norms, factors

    def prepared_for(self, query: Query) -> "tuple[Whitened, Query] | None":
        """The `Query.prepared` of a query about these rows: their maker, which is this object, and
        the same query of `PreparedRows`.

        It is None where rows have weights of their own, or the query has another map of targets.
        """
        targets = self.target_map
        others = targets is not None and getattr(query, "target_map", targets) is not targets
        if others or self.passing or self.row_map.weighted:
            return None
        of_prepared = copy(query)  # `replace` would derive its numbers again
        set_state(of_prepared, whitened=Whitened(None, self.W), shape=query.shape)
        if targets is not None:  # targets are scaled where rows are prepared
            set_state(of_prepared, target_map=None)
        return self, of_prepared

    @property
    def width(self) -> int:
        """Number of columns of prepared rows: e, w and |e|."""
        return len(self.W) + 2

    def records(self, X: np.ndarray, y: np.ndarray) -> "tuple[PreparedRows, np.ndarray]":
        """The `PreparedRows` of a chunk, and their targets."""
        targets = y if self.target_map is None else self.target_map.scaled(y)
        return PreparedRows(self, X), targets

    def gram(self, X: Any) -> np.ndarray:
        """Sum of ee' over a chunk."""
        gram = np.zeros(self.W.shape)
        for _, e, *_ in self.blocks(X):
            add_gram(gram, e)
        return gram


class PreparedRows:
    """The numbers e, w and |e| of the rows of a chunk, kept in memory, and their Gram matrix.

    All e are in one array, block after block. Within a block its columns follow one another, so
    that it is faster to multiply each row by a number; ``by_person`` its rows do.

    Attributes
    ----------
    shape : tuple of int
    blocks : list of tuple
        What `Whitened.blocks` yields.
    by_person : ndarray of shape (n_rows, p) or None
        All rows e, where they follow one another.
    """

    def __init__(self, whitened: Whitened, X: np.ndarray) -> None:
        self.shape = len(X), whitened.width
        self.blocks = []
        self._whitened_alone = Whitened(None, whitened.W)
        all_rows = np.empty((len(X), len(whitened.W)))
        self.by_person = all_rows if whitened.by_person else None
        for block, e, weights, lengths, _ in whitened.blocks(X):
            part = all_rows[block]
            rows = part if whitened.by_person else part.reshape(part.shape[::-1]).T
            rows[:] = e
            self.blocks.append((block, rows, weights, lengths, weights))

    @cached_property
    def gram(self) -> np.ndarray:
        """Sum of ee'."""
        return self._whitened_alone.gram(self)


@frozen_object
class WhiteningQuery(Query):
    """Sum of vech ee'.

    |ee' - e'e''|^2 = |e|^4 + |e'|^4 - 2 <e, e'>^2 <= 2 in the Frobenius norm: sensitivity sqrt(2),
    attained at orthogonal unit e and e'.
    """

    whitened: Whitened
    asked_again: bool = False  # the same rows are asked next
    name = "whitening"
    sensitivity = SQRT2 * ROUNDING

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (vech_size(len(self.whitened.W)),)

    @property
    def prepared(self) -> "tuple[Whitened, Query] | None":
        """The maker of prepared rows and this query of them, where it is asked again."""
        return self.whitened.prepared_for(self) if self.asked_again else None

    def sum(self, X: np.ndarray, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows."""
        return vech(self.whitened.gram(X))

    def gram(self, answer: "Answer") -> tuple[np.ndarray, float]:
        """Noisy mean of ee', and the standard deviation of its noise (GOE)."""
        return unvech(answer.value, len(self.whitened.W)) / answer.n, answer.mean_scale


@frozen_object
class MarginsQuery(Query):
    """Sums of z and c z^2 of each feature z, in half-ranges from the middle of its range.

    With a, a' in [-1, 1], t = |a + a'| and |a - a'| <= 2 - t, the square of the change of one
    feature is (a - a')^2 (1 + c^2 t^2), which is at most 4 where t + c^2 t (2 - t)^2 <= 4. The
    second term is at most 32 c^2 / 27, and 4 c^2 / 9 from t = 4 / 3 on, so that c = 3/2 will do: a
    feature changes by at most 2, and all d of them by 2 sqrt(d), attained at opposite corners.
    """

    row_map: "RowMap"
    name = "means and squares of features"

    @property
    def shape(self) -> tuple[int]:
        """Number of coordinates."""
        return (2 * self.row_map.n_features,)

    @property
    def sensitivity(self) -> "Scalar":
        """Declared sensitivity."""
        return 2.0 * self.row_map.n_features**0.5 * ROUNDING

    def sum(self, X: np.ndarray, y: Any) -> np.ndarray:
        """Exact sums over a chunk of rows."""
        d = self.row_map.n_features
        z = (self.row_map.rows(X)[:, :d] * (d**0.5 / self.row_map.parts[0])).clip(-1.0, 1.0)
        return np.concatenate([z.sum(axis=0), SQUARES * np.einsum("ij,ij->j", z, z)])


@frozen_object
class ClippedRowsQuery(Query):
    """Number of records outside of any bound, and outside of those of each value, over sqrt(d).

    The d values are the features, or the norm of a row, and the target where it has bounds. A
    record moves the first count by at most 1, and each of the d others by at most 1 / sqrt(d):
    sensitivity sqrt(2), attained by a record that leaves all bounds and one that leaves none.
    """

    row_map: "RowMap"
    target_map: Any = None
    name = "rows outside of their bounds"
    sensitivity = SQRT2 * ROUNDING
    takes_sparse = True

    @property
    def shape(self) -> tuple[int]:
        """Number of counts."""
        return (1 + self.row_map.n_inputs + self._bounds_target,)

    @property
    def _bounds_target(self) -> bool:
        return self.target_map is not None and self.target_map.bounded

    def sum(self, X: np.ndarray, y: Any) -> np.ndarray:
        """Exact counts over a chunk of rows."""
        counts = np.zeros(self.shape)
        for block in blocks_of(*X.shape):
            outside = self.row_map.outside(X[block])
            if self._bounds_target:
                outside = np.column_stack([outside, self.target_map.outside(y[block])])
            if outside.any():
                counts[0] += np.count_nonzero(outside.any(axis=1))
                counts[1:] += np.count_nonzero(outside, axis=0)
        counts[1:] /= np.sqrt(max(1, len(counts) - 1))
        return counts

    def read(self, answer: "Answer") -> tuple[float, np.ndarray, float]:
        """Noisy parts of the rows outside of any bound, and outside of those of each value.

        The third number is the standard deviation of the noise of the first.
        """
        root = np.sqrt(max(1, self.shape[0] - 1))
        parts = answer.mean
        return float(parts[0]), root * parts[1:], answer.mean_scale
