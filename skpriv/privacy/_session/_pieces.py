"""Random parts of the rows of a session: pieces of one order, which only the session knows."""

from dataclasses import dataclass
from math import floor

import numpy as np

from ...exceptions import PrivacyError
from ...records import KEPT_BYTES, ArrayRows

PUBLIC_SUBSET = (
    "under a curator a part of the records must be a secret random one: pass as subset what "
    "session.part(fraction) returns, and no positions. A record that changes its place in the "
    "table would move others into a choice by position, or out of it."
)


@dataclass(frozen=True)
class Piece:
    """Records from one place of a session's random order up to another: two public numbers.

    Which records these are only the session knows. Under a curator nobody else ever does.

    Attributes
    ----------
    start, stop : int
        Places in the order.
    """

    start: int
    stop: int

    def __len__(self):
        return self.stop - self.start


class Pieces:
    """The pieces of a session's rows: their random order, and what of the rows is in memory.

    The order is drawn at the first question after a piece was handed out, whatever the rows are.
    Rows that are read again for each answer are kept while the session lasts, as far as
    `KEPT_BYTES` allow: all of them where they fit, or else pieces of them, and the targets of all;
    of rows in memory, pieces. The largest piece that was handed out is read with a smaller one
    inside of it, or with the targets, so that all of these take one pass.

    Parameters
    ----------
    rows : Rows
    source : NoiseSource
    """

    def __init__(self, rows, source):
        self._rows, self._source, self._order = rows, source, None
        self._kept, self._left, self._foreseen = [], KEPT_BYTES, {}
        self._all, self._targets = None, None
        self._mapped: tuple = None, None

    def prefix(self, start, stop, fraction):
        """The first records of those from one place up to another: a fraction of them."""
        piece = Piece(start, start + max(1, floor(fraction * (stop - start))))
        known = self._foreseen.get(start, piece)
        self._foreseen[start] = max(known, piece, key=len)
        return piece

    def users(self, piece):
        """Records of a piece."""
        self._rows.needs_order()
        if not 0 <= piece.start <= piece.stop <= self._rows.n:
            raise PrivacyError(
                f"a piece up to record {piece.stop} is not one of {self._rows.n} records."
            )
        return self._drawn().users(piece.start, piece.stop)

    def _drawn(self):
        if self._order is None:
            self._order = self._source.order(self._rows)
        return self._order

    def sum(self, query, subset):
        """Exact sum over a subset, or all records."""
        if self._foreseen:
            self._drawn()
        rows = self.whole()
        mapped = getattr(query, "mapped", None)
        if mapped is not None and subset is None and isinstance(rows, ArrayRows):
            found = self._of_function(rows, mapped)
            if found is not None:
                return found.sum(mapped.query())
        if rows.passes is None:
            return rows.sum(query) if subset is None else self._sum_of_part(query, subset)
        if subset is not None:
            return self._sum_of_part(query, subset)
        return (self._of_targets() if query.width == 0 else self._rows).sum(query)

    def whole(self):
        """All rows, in memory if they are or if they fit."""
        if self._all is None:
            found = self._rows.kept(None, self._left)
            self._all = self._rows if found is None else found
            if found is not None:
                self._left -= 8 * found.n * (found.n_features + 1)
        return self._all

    def _of_function(self, rows, mapped):
        """Rows that are a function of each record, kept while that is asked; None if too large."""
        if self._mapped[0] is not mapped.key:
            if not mapped.begin:
                return None
            self._mapped, size = (mapped.key, None), 8 * rows.n * (mapped.width + 1)
            if size <= self._left:
                X, y, start = np.empty((rows.n, mapped.width)), np.empty(rows.n), 0
                for values, targets in rows.each(mapped.records):
                    stop = start + len(targets)
                    X[start:stop], y[start:stop], start = values, targets, stop
                kept, self._left = ArrayRows(X, y), self._left - size
                kept.n_jobs = rows.n_jobs
                self._mapped = mapped.key, kept
        return self._mapped[1]

    def _of_targets(self):
        """Rows for questions about targets alone; the part that is asked next is read with them."""
        if self._targets is None:
            self._targets = self._rows
            piece = max(self._foreseen.values(), key=len, default=None)
            subset = None if piece is None or self._kept else self.users(piece)
            rows, targets = self._rows.kept_targets(subset, self._left)
            if targets is not None:
                self._left -= 8 * targets.n
                self._targets = targets
            if rows is not None:
                self._keep(subset, rows)
        return self._targets

    def _keep(self, subset, rows):
        self._left -= 8 * rows.n * (rows.n_features + 1)
        self._kept.append((subset, rows))

    def _sum_of_part(self, query, subset):
        everything = self.whole()
        for whole, rows in self._kept:
            places = subset.among(whole)
            if places is not None:
                return rows.sum(query, places)
        if len(subset) > self._left // 8:
            return everything.sum(query, subset)
        larger = map(self.users, (p for p in self._foreseen.values() if len(p) > len(subset)))
        for whole in (*larger, subset):
            places = subset.among(whole)
            rows = None if places is None else everything.kept(whole, self._left)
            if rows is not None:
                self._keep(whole, rows)
                return rows.sum(query, places)
        return everything.sum(query, subset)
