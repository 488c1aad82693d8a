"""How a session reads its rows: random pieces in a secret order, and what it keeps in memory.

A `Piece` is a part of the records that a question is about. `Pieces` hands pieces out and adds up a
query over one, or over all records. It answers from the first of these that it has:

1. *prepared rows*: values that several queries need of each record, which were made once and are in
   memory (see `Query.prepared`);
2. the targets alone, for a query that reads no column of X;
3. a copy in memory of all rows, or of a piece that holds this one;
4. the rows themselves, which are read once more.
"""

from functools import cached_property
from math import floor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..._stored import frozen
from ...exceptions import PrivacyError
from ...records import KEPT_BYTES, Rows, Subset
from .._noise._laws import NoiseSource
from .._query import Query

if TYPE_CHECKING:
    from ...records import SeededOrder

    R = TypeVar("R", bound=Rows | None)


@frozen
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

    def __len__(self) -> int:
        return self.stop - self.start

    def common(self, other: "Piece") -> "Piece":
        """The records that are in this piece and in another one of the same session."""
        start = max(self.start, other.start)
        return Piece(start, max(start, min(self.stop, other.stop)))

    def holds(self, other: "Piece") -> bool:
        """Whether all records of another piece of the same session are in this one."""
        return self.start <= other.start and other.stop <= self.stop


class Pieces:
    """The pieces of a session's rows: their random order, and what of the rows is in memory.

    The order is drawn at the first question after a piece was handed out, whatever the rows are.
    Rows that are read again for each answer are kept while the session lasts, as far as
    `KEPT_BYTES` allow: all of them where they fit, or else pieces of them, and the targets of all;
    of rows in memory, pieces. The largest piece that was handed out is read with a smaller one
    inside of it, or with the targets, so that all of these take one pass.

    Rows that come in another order in each pass have pieces as well, of the records of one pass:
    places that are drawn at random hold a random subset of the records in whatever order they come
    (docs/mathematics/sensitivities.md). All questions about pieces are then answered from the copy
    that this pass has left, so that only pieces that fit into memory are handed out.

    Parameters
    ----------
    rows : Rows
    source : NoiseSource
    curator : bool
        Whether somebody is trusted to keep the order secret: without, no part can be chosen.
    """

    def __init__(self, rows: Rows, source: NoiseSource, curator: bool) -> None:
        self._rows = rows
        self._source = source
        self._secret = curator
        self._kept_pieces: list[tuple[Piece, Rows]] = []
        self._bytes_left = KEPT_BYTES
        self._foreseen: dict[int, Piece] = {}
        # The rows that a maker made (see `Query.prepared`), or None if they do not fit into memory;
        # the maker, and the piece of which they were made, or None for all records. Those of
        # another maker, of another piece or of all records take their place; those of a piece do
        # not take the place of those of all records. The first of all records in memory are made,
        # as many as fit: of rows that are read again, copies of what is asked next spare more.
        self._prepared_by: tuple[Any, Piece | None] | None = None
        self._prepared_rows: Rows | None = None
        self._subsets: dict[Piece, Subset] = {}
        self._subsets_inside: dict[tuple[Piece, Piece], Subset] = {}

    def prefix(self, start: int, stop: int, fraction: float) -> Piece | None:
        """The first records of those from one place up to another: a fraction of them.

        None is all of these, also where no part can be chosen in secret.
        """
        if not self._secret or not fraction < 1.0:
            return None
        piece = Piece(start, start + max(1, floor(fraction * (stop - start))))
        if not self._rows.ordered and not self._may_keep(piece):
            return None
        self._foreseen[start] = max(self._foreseen.get(start, piece), piece, key=len)
        return piece

    def _may_keep(self, piece: Piece) -> bool:
        """Whether one pass can leave a copy of this piece, and of what was handed out before it."""
        if self._kept_pieces:
            return any(larger.holds(piece) for larger, _ in self._kept_pieces)
        fits = 8 * len(piece) * (self._rows.n_features + 1) <= self._bytes_left
        return fits and all(p.holds(piece) or piece.holds(p) for p in self._foreseen.values())

    def subset_or_all(self, piece: Piece | None) -> Subset | None:
        """Which records a piece has, by their places in the table; None is all of them."""
        return None if piece is None else self.subset(piece)

    def subset(self, piece: Piece) -> Subset:
        """Which records a piece has, by their places in the table."""
        if not self._rows.ordered and not any(p.holds(piece) for p in self._foreseen.values()):
            self._rows.needs_order()
        if not 0 <= piece.start <= piece.stop <= self._rows.n:
            raise PrivacyError(
                f"a piece up to record {piece.stop} is not one of {self._rows.n} records."
            )
        if piece not in self._subsets:
            self._subsets[piece] = self._order.users(piece.start, piece.stop)
        return self._subsets[piece]

    @cached_property
    def _order(self) -> "SeededOrder":
        return self._source.order(self._rows)

    def sum(self, query: Query, piece: Piece | None) -> np.ndarray:
        """Exact sum over a piece, or all records."""
        if self._foreseen:
            self._order  # noqa: B018 - it is drawn now, whatever the rows are
        rows = self.all_rows
        prepared = query.prepared
        if prepared is not None:
            prepared_sum = self._sum_of_prepared(query, piece, *prepared)
            if prepared_sum is not None:
                return prepared_sum
        if query.width == 0 and rows is self._rows and rows.passes is not None:  # not at hand
            rows = self._targets
            if rows.indexed and self._rows.ordered:  # they are in memory now, in the same places
                return rows.sum(query, self.subset_or_all(piece))
        return rows.sum(query) if piece is None else self._sum_of_piece(query, piece)

    def _sum_of_prepared(
        self, query: Query, piece: Piece | None, maker: Any, of_prepared: Query
    ) -> np.ndarray | None:
        """Exact sum over rows that a maker has made, or makes now of rows in memory; or None.

        Rows that did not fit beside the first ones are asked as they are.
        """
        source: Any = self.all_rows if piece is None else dict(self._kept_pieces).get(piece)
        if source is not None and self._prepared_by not in ((maker, piece), (maker, None)):
            self._booked(self._prepared_rows, -1)
            # Emptied first: after an error, or for a question meanwhile, none pass for new ones
            self._prepared_rows = self._prepared_by = None
            room = self._bytes_left // (8 * source.rows_each * (maker.width + 1))
            if room >= source.n or (piece is None and source.indexed):
                self._prepared_rows = self._booked(
                    source.made(maker.records, maker.width, min(room, source.n))
                )
            self._prepared_by = (maker, piece)
        if self._prepared_rows is None or self._prepared_by != (maker, piece):
            return None
        count = self._prepared_rows.n
        total = self._prepared_rows.total(of_prepared)
        if count < source.n:
            total.merge(source.total(query, slice(count, None)))
        return total.value

    def _sum_of_piece(self, query: Query, piece: Piece) -> np.ndarray:
        """Exact sum over a piece, by a copy of it or of a larger one that is in memory or fits."""
        for larger, rows in self._kept_pieces:
            if larger.holds(piece):
                return rows.sum(query, self._subset_inside(piece, larger))
        if self._kept_pieces:  # the next pass may have other records in the same places
            self.all_rows.needs_order()
        if len(piece) <= self._bytes_left // 8:  # else not even a number of each record would fit
            foreseen = (p for p in self._foreseen.values() if p.holds(piece))
            for larger in (*foreseen, piece):
                copied = self._booked(self.all_rows.loaded(self.subset(larger), self._bytes_left))
                if copied is not None:
                    self._kept_pieces.append((larger, copied))
                    return copied.sum(query, self._subset_inside(piece, larger))
        self.all_rows.needs_order()
        return self.all_rows.sum(query, self.subset_or_all(piece))

    def _subset_inside(self, piece: Piece, larger: Piece) -> Subset | None:
        """Places of the records of a piece in a larger one; None if both are the same."""
        if piece == larger:
            return None
        if (piece, larger) not in self._subsets_inside:
            outer = self.subset(larger).positions
            inner = self.subset(piece).positions
            # positions need not ascend: see `audit.replay`
            inside = np.flatnonzero(np.isin(outer, inner, assume_unique=True))
            self._subsets_inside[piece, larger] = Subset(inside)
        return self._subsets_inside[piece, larger]

    @cached_property
    def all_rows(self) -> Rows:
        """All rows, in memory if they are or if they fit."""
        copied = self._booked(self._rows.loaded(None, self._bytes_left))
        return self._rows if copied is None else copied

    @cached_property
    def _targets(self) -> Rows:
        """Rows for queries about targets alone; the same pass reads the part that is asked next."""
        piece = None if self._kept_pieces else max(self._foreseen.values(), key=len, default=None)
        rows, targets = self._rows.loaded_with_targets(self.subset_or_all(piece), self._bytes_left)
        if rows is not None and piece is not None:
            self._kept_pieces.append((piece, self._booked(rows)))
        return self._rows if targets is None else self._booked(targets)

    def _booked(self, rows: "R", sign: int = 1) -> "R":
        """Take the memory of rows that are kept, or None, off what is left; -1 gives it back."""
        if rows is not None:
            self._bytes_left -= sign * 8 * rows.n * rows.rows_each * (rows.n_features + 1)
        return rows
