"""Rows of persons: a person is one record, whose rows come together."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._contracts import passed_on
from .._linalg import unwarned
from ._base import CHUNK_ROWS, KEPT_BYTES, ArrayRows, ChunkRows, Rows, Summed, added, in_threads
from ._subset import Subset

if TYPE_CHECKING:
    from .._contracts import Array
    from .._linalg import CompensatedSum


class PersonRows(Rows):
    """Private rows of which several belong to one person; the person is the record.

    At most ``largest`` rows of each person are used, which are chosen at random. A query that knows
    nothing of persons is averaged over the ``largest`` places that each person has, and a place
    without a row adds nothing. So replacing a person moves a sum by no more than replacing a row
    does: the mean of m terms moves by the mean of what the terms move, whatever rows come in place
    of others and however many they are (docs/mathematics/persons.md).

    A row with a value that is no finite number leaves its place empty.

    Parameters
    ----------
    rows : Rows
    codes : ndarray of int of shape (rows.n,)
        The person of each row, from 0 up to the number of persons.
    largest : int
        m, the public number of places of a person.
    permutation : callable
        ``permutation(n)`` draws a secret uniform order.
    change : callable, default=None
        ``change(X, y, starts)``: rows that replace those of persons before anything is asked, from
        the rows of the same person alone.

    Attributes
    ----------
    n : int
        Public number of persons.
    n_used : int
        Number of rows that are used: private.
    largest : int

    Examples
    --------
    >>> import numpy as np
    >>> from skpriv.records import ArrayRows, PersonRows, Summed
    >>> class Total(Summed):
    ...     shape = (1,)
    ...     def sum(self, X, y):
    ...         return np.array([y.sum()])
    >>> rows = ArrayRows(np.zeros((5, 2)), [1, 2, 3, 4, np.nan])
    >>> codes, permutation = np.array([0, 0, 1, 1, 1]), np.random.RandomState(0).permutation
    >>> persons = PersonRows(rows, codes, 3, permutation)
    >>> persons.n, persons.n_used, persons.sum(Total()) * 3
    (2, 5, array([10.]))
    """

    def __init__(
        self,
        rows: Rows,
        codes: np.ndarray,
        largest: int,
        permutation: Callable[[int], np.ndarray],
        change: Callable[..., Any] | None = None,
    ) -> None:
        self._rows = self._source = rows
        self._change = change
        self.n_features = rows.n_features
        self.n_jobs = rows.n_jobs
        self.ordered = rows.ordered
        self.n = int(codes.max()) + 1 if len(codes) else 0
        secret = permutation(self.n)
        sizes = np.bincount(codes, minlength=self.n)
        self._starts = np.append(0, np.cumsum(sizes))
        self._positions: np.ndarray | range = _shuffled(codes, _seed(permutation))
        self._positions = self._of(secret)  # from here on, persons are in a secret order
        self._starts = np.append(0, np.cumsum(sizes[secret]))
        self.use(largest)
        # Whether rows are kept in memory follows from public numbers, so the passes do, too.
        size = 8 * (self.n_features + 1) * self.n * largest
        dense = rows.has_target and not rows.stored_sparse
        self._fits = rows.at_hand and dense and size <= KEPT_BYTES
        self._on_workers: Rows | None = None
        self._clean = False  # whether all numbers of the rows in memory are known to be finite
        self._plain = False  # whether these are all rows, one of each person, as they came

    passes: int | None = passed_on(
        "_source.passes", "How often the rows were read; None if they are in memory."
    )

    def total(self, query: Summed, subset: Any = None) -> "CompensatedSum":
        """Sum over all persons or a subset of them, with its correction."""
        subset = self.chosen(subset)
        self._bring()
        if query.one_row_each:
            return self._rows.total(MeanOfPlaces(query, 1, self._clean), self._first(subset))
        if self._plain or (query.sum_persons is None and self._change is None):
            used = self._of(self._persons(subset))
            chosen = None if len(used) == self._rows.n else Subset(np.sort(used))
            return self._rows.total(MeanOfPlaces(query, self.largest, self._clean), chosen)
        if not self._rows.at_hand:
            return self._elsewhere().total(query, subset)

        pieces = self.person_pieces(self._chunk_length(query.width, False, subset), subset)
        return _sum_of_chunks(query, pieces, self.largest, self.n_jobs)

    def use(self, largest: int) -> None:
        """Use at most this number of rows of each person: the first ones in their random order."""
        sizes = np.diff(self._starts)
        self._positions = self._at(np.flatnonzero(_ranks(sizes) < largest))
        self._starts = np.append(0, np.cumsum(np.minimum(sizes, largest)))
        self.n_used = len(self._positions)
        self.largest = self.rows_each = largest

    def loaded(self, subset: Subset | None, most_bytes: int) -> Rows | None:
        """The rows of some persons as rows that are records, where all persons have one in memory.

        It takes no longer to ask about the rows of persons who have several where they are.
        """
        self._bring()
        if subset is None or not self._plain:
            return None
        return self._rows.loaded(Subset(self._of(self._persons(subset))), most_bytes)

    def made(self, function: Callable[..., Any], width: int, count: int) -> Rows | None:
        """All persons, with the rows of this width that a function makes of each chunk."""
        self._bring()
        if self._plain:
            return self._rows.made(function, width, count)
        if not self._rows.indexed:
            return None

        def make(piece: Callable[[], Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            X, y, starts = piece()
            return *function(X, y), starts

        pieces = self.person_pieces(self._chunk_length(None, False, None))
        chunks = list(in_threads(make, pieces, self.n_jobs, True))
        return PersonChunks(chunks, self.n, width, self.n_jobs, self.largest)

    def reduce(self, function: Any, merge: Any, start: int) -> Any:
        """``merge`` of ``function(X, y)`` of the rows that are used, beginning with ``start``."""
        if not self._rows.at_hand:
            return self._elsewhere().reduce(function, merge, start)
        return super().reduce(function, merge, start)

    def _bring(self) -> None:
        """Keep the rows that are used in memory, one person after the other, if they fit.

        Rows in memory stay as they are where each person has one, and no number is missing.
        """
        if not self._fits:
            return
        self._fits = False
        one_each = self.largest == 1 and self.n_used == self._rows.n and self._change is None
        if one_each and self._rows.indexed:
            self._plain = self._clean = all(map(np.all, self._rows.each(_finite_rows)))
        if not self._plain:
            ((_, fetch),) = self._brought(range(self.n))
            X, y = fetch(self._positions)
            self._clean = bool(_finite_rows(X, y).all())
            self._rows = ArrayRows(X, y, self._source.n_jobs)
            self._positions = range(len(y))

    def _elsewhere(self) -> Rows:
        """The same persons, whose rows were brought together where they are."""
        if self._on_workers is None:
            persons = np.repeat(np.arange(self.n), np.diff(self._starts))
            make = partial(_persons, largest=self.largest, change=self._change)
            self._on_workers = self._rows.by_person(self._positions, persons, make)
        return self._on_workers

    def pieces(self, max_rows: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Chunks of the rows that are used."""
        if self._change is not None:
            return (lambda one=one: one()[:2] for one in self.person_pieces(max_rows, subset))
        chosen = Subset(np.sort(self._of(self._persons(self.chosen(subset)))))
        return self._rows.pieces(max_rows, chosen, sparse)

    def person_pieces(
        self, max_rows: int, subset: Subset | None = None
    ) -> Iterator[Callable[[], Any]]:
        """Yield functions that load chunks (X, y, starts) of whole persons, of about ``max_rows``.

        Person g of a chunk has the rows from starts[g] up to starts[g + 1]; those with a value that
        is no finite number are left out, and so are persons without any other.
        """
        if not self._rows.at_hand:
            raise ValueError(
                "this needs the rows of a person together, and these rows are elsewhere: pass "
                "arrays, a data frame in memory, or files by skpriv.records.from_parquet."
            )
        step = max(1, max_rows // self.largest)
        for persons, fetch in self._brought(self._persons(subset)):
            for first in range(0, len(persons), step):
                yield partial(self._chunk, fetch, persons[first : first + step])

    def _chunk(
        self, fetch: Callable[..., Any], persons: np.ndarray | range
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of some persons, and where those of each begin."""
        X, y = fetch(self._of(persons))
        size = np.diff(self._starts)[np.asarray(persons, np.intp)]
        if not self._clean:
            keep = _finite_rows(X, y)
            size = np.bincount(np.repeat(np.arange(len(size)), size)[keep], minlength=len(size))
            X = X[keep]
            y = y[keep]
        starts = np.append(0, np.cumsum(size[size > 0]))
        if self._change is not None and len(y):
            with unwarned():
                X, y = self._change(X, y, starts)
        return X, y, starts

    def _brought(
        self, persons: np.ndarray | range
    ) -> Iterator[tuple[np.ndarray | range, Callable[..., Any]]]:
        """Yield persons and a function that gets rows by position, in parts that fit into memory.

        How many these are, and so how many passes there will be, follows from public numbers.
        """
        if self._rows.indexed:
            yield persons, partial(_picked, self._rows)
            return
        step = max(1, KEPT_BYTES // (8 * (self.n_features + 1) * self.largest))
        for first in range(0, len(persons), step):
            mine = persons[first : first + step]
            positions = np.sort(self._of(mine))
            chunks = self._rows.each(lambda X, y: (X, y), Subset(positions))
            X, y = map(np.concatenate, zip(*chunks))
            yield mine, partial(_found, positions, X, y)

    def one_each(self, subset: Any = None) -> Rows:
        """The first row of each person in the secret order, as rows that are records."""
        return self._rows.select(self._first(subset))

    def _persons(self, subset: Subset | None) -> np.ndarray | range:
        """Numbers of the persons of a subset."""
        return range(self.n) if subset is None else np.asarray(subset.positions, np.intp)

    def _of(self, persons: np.ndarray | range) -> Any:
        """Positions of the rows of some persons; of a range of persons a slice of all positions."""
        if isinstance(persons, range):
            return self._positions[self._starts[persons.start] : self._starts[persons.stop]]
        sizes = self._starts[persons + 1] - self._starts[persons]
        return self._at(np.repeat(self._starts[persons], sizes) + _ranks(sizes))

    def _first(self, subset: Subset | None) -> Subset:
        """The first row of each person in the secret order."""
        persons = np.asarray(self._persons(subset), np.intp)
        return Subset(np.sort(self._at(self._starts[persons])))

    def _at(self, places: np.ndarray) -> np.ndarray:
        """Positions of what is in some places, one person after the other."""
        return places if isinstance(self._positions, range) else self._positions[places]


class PersonChunks(ChunkRows):
    """Persons in memory, in chunks (X, y, starts) whose arrays keep their order in memory.

    Parameters
    ----------
    chunks : list of (ndarray, ndarray, ndarray)
    n, n_features : int
    n_jobs : int or None
    rows_each : int
    """

    def total(self, query: Summed, subset: Any = None) -> "CompensatedSum":
        """Sum over all persons, with its correction."""
        return _sum_of_chunks(query, self.pieces(0), self.rows_each, self.n_jobs)


def _sum_of_chunks(
    query: Summed, pieces: Iterable[Callable[[], Any]], largest: int, n_jobs: int | None
) -> "CompensatedSum":
    """Sum of a query over chunks (X, y, starts) of persons, with its correction."""

    def chunk_sum(piece: Callable[[], Any]) -> "Array":
        X, y, starts = piece()
        if query.sum_persons is not None:
            return query.sum_persons(X, y, starts, largest)
        return query.sum(X, y) / largest

    return added(query.shape, in_threads(chunk_sum, pieces, n_jobs))


def _persons(
    X: np.ndarray,
    y: np.ndarray,
    numbers: np.ndarray,
    largest: int,
    change: Callable[..., Any] | None,
) -> PersonRows:
    """Rows of persons all of whom are used, in this order."""
    return PersonRows(ArrayRows(X, y), numbers, largest, np.arange, change)


def _picked(rows: Rows, positions: np.ndarray | range) -> tuple[np.ndarray, np.ndarray]:
    """Rows at positions, of rows that can be taken in any order."""
    (piece,) = rows.pieces(len(positions), Subset(positions), False)
    return piece()


def _found(
    ascending: np.ndarray, X: np.ndarray, y: np.ndarray, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows at positions, of those that were brought together."""
    at = np.searchsorted(ascending, positions)
    return X[at], y[at]


def _seed(permutation: Callable[[int], np.ndarray]) -> np.ndarray:
    """Two words of a seed, from a secret permutation of 256 numbers: it has 127 bits."""
    return np.frombuffer(bytes(permutation(256)[:16].tolist()), "<u8")


def _ranks(sizes: np.ndarray) -> "Array":
    """Number of each row among those of its person, for so many rows of each."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _shuffled(codes: np.ndarray, seed: np.ndarray) -> np.ndarray:
    """Positions of the rows, one person after the other, whose rows are in a secret random order.

    Each row has a key, a cryptographic hash of the secret seed, the person and the number of the
    row among those of the person, and the rows of the smallest keys are first. Keys of different
    rows are independent, so that a uniform choice of the rows of each person is used, whatever the
    order of the rows is, and which it is does not depend on anybody else's rows.
    """
    by_person = np.argsort(codes, kind="stable")
    found = codes[by_person]
    first = np.flatnonzero(np.diff(found, prepend=-1))
    sizes = np.diff(first, append=len(found))
    for size in np.unique(sizes[sizes > 1]):  # one row needs no choice
        of_size = first[sizes == size, None]
        place = np.arange(size)
        for start in np.array_split(of_size, -(-len(of_size) * size // CHUNK_ROWS)):
            keys = _keys(seed, *(words.astype(np.uint64) for words in (found[start], place)))
            by_person[start + place] = by_person[start + np.argsort(keys, axis=1, kind="stable")]
    return by_person


def _keys(seed: np.ndarray, *words: Any) -> "Array":
    """SipHash-2-4 of arrays of words of 64 bits (Aumasson and Bernstein 2012), under a seed."""
    start = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]
    a, b, c, d = (np.array(start, np.uint64) ^ np.tile(seed, 2))[:, None]
    for word in (*words, np.uint64(8 * len(words) << 56)):
        a, b, c, d = _rounds(a, b, c, d ^ word, 2)
        a = a ^ word
    a, b, c, d = _rounds(a, b, c ^ np.uint64(0xFF), d, 4)
    return a ^ b ^ c ^ d


def _rounds(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rounds of SipHash, of 64-bit words that wrap around."""
    for _ in range(count):
        a = a + b
        c = c + d
        b = _turned(b, 13) ^ a
        d = _turned(d, 16) ^ c
        a = _turned(a, 32) + d
        c = c + b
        b = _turned(b, 17) ^ c
        d = _turned(d, 21) ^ a
        c = _turned(c, 32)
    return a, b, c, d


def _turned(words: np.ndarray, bits: int) -> "Array":
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


@dataclass(eq=False)
class MeanOfPlaces(Summed):
    """A query of rows, averaged over the places that each person has.

    Parameters
    ----------
    query : Query
    largest : int
        Places of a person.
    clean : bool
        Whether all numbers of all rows are known to be finite.
    """

    query: Summed
    largest: int
    clean: bool
    quiet = True  # a line of progress would tell how many rows persons have, which is private
    shape = passed_on("query.shape")
    width = passed_on("query.width")

    def sum(self, X: np.ndarray, y: np.ndarray) -> "Array":
        """Exact sum over a chunk of rows."""
        if not self.clean and not (keep := _finite_rows(X, y)).all():
            X = X[keep]
            y = None if y is None else y[keep]
        return self.query.sum(X, y) / self.largest


def _finite_rows(X: np.ndarray, y: np.ndarray | None) -> "Array":
    """Whether all numbers of a row are finite."""
    with unwarned():  # a warning would tell of a value
        keep = np.isfinite(X.sum(axis=1)) if X.shape[1] else np.ones(len(X), bool)
    if not keep.all():  # a value is not finite, or a sum of finite values has overflowed
        keep = np.isfinite(X).all(axis=1)
    return keep if y is None else keep & np.isfinite(y)
