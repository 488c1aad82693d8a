"""Rows on a cluster: queries travel to the workers, sums come back by a tree."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial, reduce
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from .._linalg import CompensatedSum
from ..exceptions import InvalidValues
from ._base import ArrayRows, Rows, computed
from ._batches import (
    OTHER_LENGTH, BatchRows, FetchedRows, chosen_columns, dense, length, pick, stated,
)  # fmt: skip
from ._dtypes import dtypes_of
from ._subset import Subset
from ._values import (
    INVALID_VALUES, OTHER_ROWS, Unread, is_dask, is_dask_frame, public_shape, unless_unread,
)  # fmt: skip

if TYPE_CHECKING:
    from ._base import Summed

FAN_IN = 8  # number of sums that one task of the tree adds up


def positional(data: Any) -> Any:
    """Data of which rows can be taken by position: for a Dask frame, rows or an array instead."""
    if not is_dask_frame(data):
        return data
    if data.ndim == 2:
        return DaskRows.of(data)
    return computed(partial(data.to_dask_array, lengths=True))


class DaskRows(FetchedRows):
    """Rows in the partitions of a Dask array or frame, which stay where they are.

    A sum is a task for each partition and a tree over these; nothing but the p^2 numbers of the sum
    comes to the client, where charges are made and noise is drawn. A task that is run again, since
    its worker died, adds up the same rows again: it knows neither charges nor noise.

    Parameters
    ----------
    parts : list of dask.delayed.Delayed
        Partitions of pairs (X, y); y may be None.
    sizes : list of int
        Public number of rows of each part.
    n_features : int
    names : list of str, default=None
    steps : tuple of callables, default=()
        Applied to X of each chunk, on the workers.
    has_target : bool, default=True
        Whether parts have a y.
    n : int, default=None
        Public number of rows; None is that of y, once there is one. Sizes that do not add up to
        it are refused when rows are read, and so after the charge.

    Examples
    --------
    >>> import dask.array as da  # doctest: +SKIP
    >>> X, y = da.random.random((10_000_000, 20)), da.random.random(10_000_000)  # doctest: +SKIP
    >>> SSPRegressor(data_norm=1.0, bounds_y=(-1, 1)).fit(X, y)  # doctest: +SKIP
    """

    at_hand = False

    def __init__(
        self,
        parts: Any,
        sizes: Any,
        n_features: int,
        names: Any = None,
        *,
        steps: Any = (),
        has_target: bool = True,
        n: int | None = None,
    ) -> None:
        super().__init__(n_features, names, steps, has_target)
        found = list(parts), list(map(int, sizes))
        # Partitions and their lengths are found when rows are first read: to find them can mean to
        # compute values, which is for the time after a charge.
        self._partitions: Callable[[int | None], tuple[list[Any], Sequence[int]]] = lambda n: found
        self._n = n

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any = None,
        *,
        target: Any = None,
        features: Any = None,
        n: int | None = None,
    ) -> "DaskRows":
        """Rows of a Dask array or frame.

        Lengths of partitions that are not known are counted when rows are first read. Then the
        public number ``n`` is that of y, or of the table in memory or the Parquet files whose
        columns these are; without either the rows are refused.
        """
        if not is_dask(X):
            raise ValueError("y is of Dask, and X is not: pass both of the same kind.")
        if is_dask_frame(X):
            target, chosen = chosen_columns(target, features, list(X.columns), texts=False)
            names = list(map(str, chosen))
            width = len(chosen)
        else:
            X = X.rechunk({1: -1}) if X.ndim == 2 else X
            names = None
            width = X.shape[1]

        def pair(part: Any) -> tuple[Any, Any]:
            if names is None:
                return part, None
            return part[chosen], None if target is None else part[target]

        def find(n: int | None) -> tuple[list[Any], Sequence[int]]:
            parts, sizes = _found(X, n)
            return list(map(task(pair), parts)), sizes

        n = _public_length(X) if n is None else n
        rows = cls([], [], width, names, has_target=target is not None, n=n)
        dtypes = dtypes_of(X)
        read = dtypes if names is None else [*chosen, *([] if target is None else [target])]
        rows = rows._changed(
            _partitions=cache(find), dtypes={str(name): dtypes[name] for name in read}
        )
        return rows if y is None else rows.with_target(y)

    @property
    def _parts(self) -> list[Any]:
        return self._partitions(self._n)[0]

    @property
    def _sizes(self) -> Sequence[int]:
        return self._partitions(self._n)[1]

    @property
    def n(self) -> int:  # type: ignore[override]
        """Public number of records."""
        return stated(self._n, "table of Dask")

    def __getitem__(self, key: Any) -> "DaskRows":
        """Rows at ascending positions: parts of folds."""
        key = key[0] if isinstance(key, tuple) else key
        chosen = Subset.of(np.asarray(key), self.n)

        def find(n: int | None) -> tuple[list[Any], Sequence[int]]:
            parts = []
            sizes = []
            for part, (start, size) in zip(self._parts, self._ranges(), strict=True):
                where = chosen.between(start, start + size)
                picked = task(lambda part, where: (pick(part[0], where), None))
                parts.append(picked(part, where))
                sizes.append(len(where))
            return parts, sizes

        return self._changed(_partitions=cache(find), has_target=False, _n=len(chosen))

    def with_target(self, y: Any, n: int | None = None) -> "DaskRows":
        """The same rows with targets: of Dask, in as many rows a part, or n of them in memory."""
        if is_dask(y):
            y = y[y.columns[0]] if is_dask_frame(y) and y.ndim == 2 else y
            n = _public_length(y)
        elif not callable(y):
            n = public_shape(y)[0]
        if None not in (n, self._n) and n != self._n:
            raise ValueError(OTHER_ROWS)
        before = self._partitions

        def find(n: int | None) -> tuple[list[Any], Sequence[int]]:
            parts, sizes = before(n)
            found, lengths = _targets_of(y, n)
            if (
                not sum(sizes) == sum(lengths) == n
            ):  # found by queries, which is told after a charge
                return [], []
            if list(sizes) != list(lengths):  # Dask joins small files where it reads one column
                found, _ = _found(_array(found, lengths).rechunk((tuple(sizes),)), n)
            replaced = task(lambda part, y: (part[0], y))
            return list(starmap(replaced, zip(parts, found, strict=True))), sizes

        n = n if self._n is None else self._n
        return self._changed(_partitions=cache(find), has_target=True, _n=n)

    def evaluated(self, function: Any, kind: Any = None) -> Any:
        """Dask array of the values of a function of X; of several results, if ``kind`` says so."""
        from dask import delayed

        def array(at: int | None) -> Any:
            values = delayed(_values, pure=False)
            parts = [values(part, self._steps, function, at) for part in self._parts]
            return _array(parts, self._sizes)

        return array(None) if kind is None else kind(*map(array, range(len(kind._fields))))

    def total(self, query: "Summed", subset: Any = None) -> Any:
        """Sum with its correction, computed where the rows are."""
        subset = self.chosen(subset)
        local = [_local(subset, *place) for place in self._ranges()]
        empty = CompensatedSum(query.shape)
        return self._tree(lambda rows, *given: rows.total(*given), query, local, _merged, empty)

    def loaded(self, subset: Subset | None, most_bytes: int) -> "DaskRows | None":
        """The rows of a subset, which stay on their workers, if they are no more than that."""
        if not self.has_target or self._bytes(subset) > most_bytes:
            return None
        return self._cut(subset, self.n_features)

    def loaded_with_targets(
        self, subset: Subset | None, most_bytes: int
    ) -> "tuple[DaskRows | None, DaskRows | None]":
        """The rows of a subset and the targets of all rows, each on its worker; None: too many."""
        part = self.loaded(subset, most_bytes)
        used = 0 if part is None else self._bytes(subset)
        fits = self.has_target and 8 * self.n + used <= most_bytes
        return part, self._cut(None, 0) if fits else None

    def _bytes(self, subset: Subset | None) -> int:
        return 8 * len(self if subset is None else subset) * (self.n_features + 1)

    def _cut(self, subset: Subset | None, n_features: int) -> "DaskRows":
        """A subset with its first columns, made of each part once and kept where the part is."""
        import dask
        from dask import delayed

        self.passes += 1
        steps = delayed(self._steps, traverse=False)
        chosen = []
        sizes = []
        for part, (start, size) in zip(self._parts, self._ranges(), strict=True):
            where = _local(subset, start, size)
            chosen.append(task(_chosen_rows)(part, steps, where, n_features))
            sizes.append(size if where is None else len(where))
        found = computed(partial(dask.persist, *chosen))
        cut_rows = DaskRows(found, sizes, n_features, n=sum(sizes))
        cut_rows.check(self._refuses)
        return cut_rows

    def reduce(self, function: Any, merge: Any, start: int) -> Any:
        """Merge what a function makes of chunks, on the workers and then by a tree."""
        job = (function, merge, start)
        everywhere = [None for _ in self._ranges()]
        run = lambda rows, job, local: rows.reduce(*job)  # noqa: E731
        return self._tree(run, job, everywhere, lambda *found: reduce(merge, found), start)

    def _tree(
        self,
        run: Callable[..., Any],
        job: Any,
        local: Iterable[Subset | None],
        merged: Callable[..., Any],
        empty: Any,
    ) -> Any:
        """``run(rows, job, local)`` of each part, merged by a tree; what comes home is small."""
        from dask import delayed

        self.passes += 1
        shared = [delayed(item, traverse=False) for item in (job, self._steps)]
        found = [
            task(_of_part)(run, part, *shared, where, self._refuses)
            for part, where, size in zip(self._parts, local, self._sizes, strict=True)
            if size
        ]
        while len(found) > 1:
            groups = [found[at : at + FAN_IN] for at in range(0, len(found), FAN_IN)]
            found = [task(merged)(*group) for group in groups]
        return computed(found[0].compute) if found else empty

    def by_person(self, positions: Any, persons: Any, make: Any) -> "DaskRows":
        """Records that are persons, whose rows a shuffle of Dask brings to one worker each.

        They are kept there, in as many parts as the rows have.

        Parameters
        ----------
        positions : ndarray of intp
            Positions of the rows that are used.
        persons : ndarray of int
            Whose they are, ascending; none is left out.
        make : callable
            ``make(X, y, numbers)`` returns Rows of persons: those of a part, numbered from 0.
        """
        import dask
        import dask.dataframe as dd

        n = int(persons.max(initial=-1)) + 1
        largest = max(1, -(-n // len(self._parts)))
        places = np.argsort(positions)
        ascending = positions[places]
        part, number = np.divmod(persons, largest)
        sent = []
        for rows, (start, size) in zip(self._parts, self._ranges(), strict=True):
            first, last = np.searchsorted(ascending, [start, start + size])
            at = places[first:last]
            where = np.column_stack([at, number[at], part[at]])
            chosen = Subset(ascending[first:last] - start)
            sent.append(
                task(_sent)(rows, self._steps, self._refuses, self.n_features, chosen, where)
            )
        starts = np.arange(0, max(n, 1), largest)
        edges = [*range(len(starts)), len(starts) - 1]
        meta = _numbered(np.empty((0, self.n_features + 4)))
        frame = dd.from_delayed(sent, meta=meta, verify_meta=False)
        frame = frame.set_index(meta.columns[-1], divisions=list(map(float, edges)))
        brought = [task(_together)(rows, make) for rows in frame.to_delayed()]
        brought = computed(partial(dask.persist, *brought))
        return DaskRows(brought, np.minimum(starts + largest, n) - starts, self.n_features, n=n)

    def pieces(self, max_rows: Any, subset: Any = None, sparse: bool = True) -> Any:
        """Rows do not leave their worker: there are no chunks of them here."""
        raise ValueError(
            "this needs the rows themselves, and rows of Dask do not leave their worker: choose "
            "a channel or noise that is added to sums, such as Gaussian noise."
        )

    def _ranges(self) -> list[tuple[int, int]]:
        """First row and length of each part, which must be as many rows as is public."""
        if self._n is not None and sum(self._sizes) != self._n:
            raise ValueError(OTHER_LENGTH.format(n=self._n))
        starts = np.cumsum([0, *self._sizes])
        return [(int(start), size) for start, size in zip(starts, self._sizes)]


def _local(subset: Subset | None, start: int, size: int) -> Subset | None:
    """Which rows of a part are in a subset."""
    return None if subset is None else Subset(subset.between(start, start + size))


def _of_part(
    run: Callable[..., Any],
    part: Any,
    job: Any,
    steps: Sequence[Callable[..., Any]],
    local: Subset | None,
    refuses: bool,
) -> Any:
    """Result of a part, on its worker."""
    rows = _rows(part, steps)
    rows.n_jobs = 1  # Dask brings its own threads
    rows.shown = False  # and progress bars
    if refuses:
        rows.check()
    return run(rows, job, local)


def _chosen_rows(
    part: Any, steps: Sequence[Callable[..., Any]], local: Subset | None, n_features: int
) -> ArrayRows:
    """Chosen rows of a part, with their first columns, in memory."""
    rows = _rows(part, steps)
    chunks = [*rows.each(lambda X, y: (X[:, :n_features], y), local)]
    chunks.append((np.empty((0, n_features)), np.empty(0)))
    X, y = map(np.concatenate, zip(*chunks))
    return ArrayRows(X, y, 1)


def _rows(part: Any, steps: Sequence[Callable[..., Any]]) -> Rows:
    if isinstance(part, Rows):  # they were cut before
        return part
    return BatchRows(lambda: [part], length(part[0]), part[0].shape[1], steps=steps)


def _merged(*sums: CompensatedSum) -> CompensatedSum:
    """Sum of sums with their corrections."""
    return reduce(CompensatedSum.merge, sums, CompensatedSum(sums[0].value.shape))


def _found(data: Any, n: int | None) -> tuple[list[Any], Sequence[int]]:
    """Parts of an array or frame, and their lengths.

    There is a single part, which was not read, if a value keeps the parts from being made. It is
    refused when it is read, after the charge, whatever its public number of rows is.
    """
    from dask import delayed

    with suppress(InvalidValues):
        parts = _quiet(list(np.ravel(computed(data.to_delayed))))
        counted = task(lambda *sizes: sizes)(*map(task(length), parts))
        return parts, _array_sizes(data) or computed(counted.compute)
    return [delayed(Unread(InvalidValues(INVALID_VALUES)))], [n or 0]


def task(function: Callable[..., Any]) -> Any:
    """Make a function one of delayed values, none of which is heard or raises."""
    from dask import delayed

    return delayed(partial(unless_unread, function), pure=False)


def _quiet(parts: list[Any]) -> list[Any]:
    """The same parts of one graph, of which no task is heard or raises."""
    from dask._task_spec import Task, TaskRef, convert_legacy_graph
    from dask.delayed import Delayed

    def quiet(node: Any) -> Any:
        if type(node) is not Task:
            return node
        run = partial(unless_unread, partial(_run, node, list(node.dependencies)))
        return Task(node.key, run, *map(TaskRef, node.dependencies))

    nodes = convert_legacy_graph(dict(parts[0].dask))
    graph = {key: quiet(node) for key, node in nodes.items()}
    return [Delayed(part.key, graph) for part in parts]


def _run(node: Callable[..., Any], needed: list[Any], *values: Any) -> Any:
    """Result of a task of a graph."""
    return node(dict(zip(needed, values, strict=True)))


def _array(parts: list[Any], sizes: Sequence[int]) -> Any:
    """Array of Dask of numbers in parts of known lengths."""
    import dask.array as da

    column = task(lambda values: np.asarray(values).reshape(-1))
    pairs = zip(parts, sizes, strict=True)
    return da.concatenate([da.from_delayed(column(part), (size,), float) for part, size in pairs])


def _targets_of(y: Any, n: int | None) -> tuple[list[Any], Sequence[int]]:
    """Parts of targets and their lengths."""
    if is_dask(y):
        return _found(y, n)
    blocks = y() if callable(y) else [y]
    values = np.concatenate([dense(block).reshape(-1) for block in blocks])
    return [values], [len(values)]


def _array_sizes(data: Any) -> list[int] | None:
    """Lengths of the chunks of an array, if they are known; None of a frame."""
    sizes: list[Any] = [np.nan] if is_dask_frame(data) else list(data.chunks[0])
    return None if any(size != size for size in sizes) else sizes


def _public_length(data: Any) -> int | None:
    """Number of rows that is known without a query, else None.

    It is that of an array whose chunks are known, or of columns of a frame that is in memory or
    stored in files that say how many rows they have. Work on each cell alone keeps it.
    """
    sizes = _array_sizes(data)
    if sizes is None and is_dask_frame(data):
        from dask.dataframe.dask_expr.io import FromPandas, ReadParquet

        tables = _tables_of(data.expr)
        countable = len(tables) == 1 and isinstance(tables[0], FromPandas | ReadParquet)
        sizes = tables[0]._get_lengths() if countable else None
    return None if sizes is None else sum(sizes)


def _tables_of(expression: Any) -> list[Any]:
    """The different tables of an expression of Dask, below what is done with each cell alone."""
    from dask.dataframe.dask_expr._expr import Elemwise

    if not isinstance(expression, Elemwise):
        return [expression]
    tables = chain.from_iterable(map(_tables_of, expression.dependencies()))
    return list({table._name: table for table in tables}.values())


def _numbered(numbers: np.ndarray) -> Any:
    """Data frame of numbers, whose columns have numbers as names."""
    from pandas import DataFrame

    return DataFrame(numbers).rename(columns=str)


def _sent(
    part: Any,
    steps: Sequence[Callable[..., Any]],
    refuses: bool,
    n_features: int,
    chosen: Subset,
    where: np.ndarray,
) -> Any:
    """Chosen rows of a part, with their targets, and where they go: place, person and part."""
    rows = _rows(part, steps)
    rows.check(refuses)
    chunks = rows.each(lambda X, y: np.column_stack([X, y]), chosen)
    found = np.concatenate([np.empty((0, n_features + 1)), *chunks])
    return _numbered(np.column_stack([found, where]))


def _together(frame: Any, make: Callable[..., Rows]) -> Rows:
    """Persons of a part, whose rows are brought into the order of their places."""
    numbers = frame.sort_values(frame.columns[-2]).to_numpy()
    return make(numbers[:, :-3], numbers[:, -3], numbers[:, -1].astype(np.intp))


def _values(
    part: Any, steps: Sequence[Callable[..., Any]], function: Callable[..., Any], at: int | None
) -> np.ndarray:
    if isinstance(part, Unread):
        raise part.refused
    chunks = _rows((part[0], None), steps).each(lambda X, y: function(X))
    return np.concatenate([np.empty(0), *(found if at is None else found[at] for found in chunks)])
