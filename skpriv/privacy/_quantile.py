"""Private quantiles of row norms and targets, from a noisy histogram on a public grid."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._linalg import row_norms
from ..records import canonical
from ._query import ROUNDING, Query

# Of a budget, for a question of one number or of a few beside those that matter: 2.5% more noise
# for these.
SIDE_SHARE = 0.05
NORM_BINS = 24  # each sqrt(2) below the next: down to 1 / 2900 of the outer bound
TARGET_BINS = 64  # of equal width
TOLD_ABOVE = 3.0  # deviations of its noise, above which a released number is told from 0
MOST_NOISE = 0.2  # of the records or of a range: with more, a number decides nothing


@dataclass(frozen=True)
class BoundsQuery(Query):
    """Counts of row norms and of targets in the bins of public grids, as one joint vector.

    Each block is one-hot: replacing a record moves two counts of a block by 1, hence each block by
    at most sqrt(2), and the b blocks that are asked for by sqrt(2 b) together. Attained.

    Parameters
    ----------
    outer_norm : float or None
        Public bound far above which no row norm matters; None: norms are not asked for.
    outer_bounds_y : (float, float) or None
        Public range outside of which no target matters; None: targets are not asked for.
    row_norm : {"l2", "linf"}, default="l2"
        Norm of the rows; "linf" takes sparse rows too.
    name : str
        What the privacy report calls it.

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.privacy import Budget, BoundsQuery, open_session
    >>> rng = np.random.RandomState(0)
    >>> X, y = rng.uniform(-1, 1, size=(20_000, 3)), rng.uniform(20, 30, size=20_000)
    >>> session = open_session("central", X, y, Budget(1.0, 1e-6), random_state=0)
    >>> query = BoundsQuery(outer_norm=100.0, outer_bounds_y=(-100.0, 100.0))
    >>> norm, (low, high) = query.bounds(session.sum(query, 0.05), 0.99, 0.99)
    >>> round(norm, 2), round(low, 2), round(high, 2)
    (1.56, 18.75, 31.25)
    """

    outer_norm: Any
    outer_bounds_y: Any
    row_norm: str = "l2"
    name: str = "quantiles of bounds"

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        """Whether sparse rows stay sparse."""
        return self.row_norm == "linf"

    @property
    def sensitivity(self) -> float:
        """Largest change when a record is replaced, rounded up."""
        blocks = (self.outer_norm is not None) + (self.outer_bounds_y is not None)
        return sqrt(2.0 * blocks) * ROUNDING

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of counts."""
        return (
            NORM_BINS * (self.outer_norm is not None)
            + TARGET_BINS * (self.outer_bounds_y is not None),
        )

    @property
    def norm_edges(self) -> Any:
        """Upper ends of the bins of norms; the last bin has all that is larger, too."""
        return self.outer_norm * 2.0 ** (-0.5 * np.arange(NORM_BINS - 1, -1, -1))

    @property
    def target_edges(self) -> Any:
        """Ends of the bins of targets; the first and last bin have all beyond them, too."""
        low, high = self.outer_bounds_y
        return np.linspace(low, high, TARGET_BINS + 1)

    def sum(self, X: Any, y: Any) -> np.ndarray:
        """Exact counts over a chunk of rows; what is not a number counts as large."""
        counts = []
        if self.outer_norm is not None:
            norms = np.nan_to_num(self._norms(X), nan=np.inf, posinf=np.inf)
            index = np.searchsorted(self.norm_edges[:-1], norms)
            counts.append(np.bincount(index, minlength=NORM_BINS))
        if self.outer_bounds_y is not None:
            index = np.searchsorted(self.target_edges[1:-1], y)
            counts.append(np.bincount(index, minlength=TARGET_BINS))
        return np.concatenate(counts).astype(float)

    def _norms(self, X):
        if self.row_norm == "l2":
            return row_norms(X)
        if not issparse(X):
            return abs(X).max(axis=1)
        return abs(canonical(X)).max(axis=1).toarray().ravel()

    def resolved(self, session: Any, share: float) -> bool:
        """Whether the answer for this share would tell a quantile from noise (public)."""
        if not session.records(share):
            return False
        bins = NORM_BINS if self.outer_bounds_y is None else TARGET_BINS / 2.0
        noise = TOLD_ABOVE * session.noise(self, share).scale * sqrt(bins)
        return noise <= MOST_NOISE * session.records(share)

    def bounds(self, answer: Any, norm_quantile: Any, target_quantile: Any) -> tuple:
        """Grid points next above the quantiles: a norm bound and a range, None if not asked for.

        Parameters
        ----------
        answer : Answer
        norm_quantile : float in (0, 1)
            Part of the rows whose norm shall be within the bound.
        target_quantile : float in (0, 1)
            Part of the targets within the range, the rest on either side alike.

        Returns
        -------
        (norm, bounds_y)
        """
        counts, norm, bounds_y = answer.value, None, None
        if self.outer_norm is not None:
            cut = _cut(counts[:NORM_BINS], answer, 1.0 - norm_quantile)
            norm = float(self.norm_edges[NORM_BINS - 1 - cut])
            counts = counts[NORM_BINS:]
        if self.outer_bounds_y is not None:
            edges, part = self.target_edges, (1.0 - target_quantile) / 2.0
            below, above = _cut(counts[::-1], answer, part), _cut(counts, answer, part)
            if below + above >= TARGET_BINS:  # noise alone: the cuts have passed each other
                below = above = 0
            bounds_y = (float(edges[below]), float(edges[TARGET_BINS - above]))
        return norm, bounds_y


def _cut(counts, answer, part):
    """How many of the last bins together have no more than this part of the records.

    Up to three standard deviations of a tail's noise do not count, and one bin remains.
    """
    tails = np.cumsum(counts[::-1])
    noise = TOLD_ABOVE * answer.noise.scale * np.sqrt(np.arange(1, len(tails) + 1))
    beyond = tails > np.maximum(part * answer.n, noise)
    return min(int(np.argmax(beyond)) if beyond.any() else 0, len(tails) - 1)
