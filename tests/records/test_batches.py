"""Rows in batches: the answers of rows in memory, whatever they come from and however cut."""

import threading
import warnings
from functools import partial
from unittest.mock import Mock

import narwhals.stable.v2 as nw
import numpy as np
import pytest
from registry.estimators import iht, improper, layered, line_data, reweighted, ssp
from registry.refusals import charged, uncharged
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant
from skpriv.linear_model import AdditiveRegressor, LinearRegression
from skpriv.preprocessing import BoundsScaler, Categorical, Numeric, TableEncoder
from skpriv.privacy._session import _pieces
from skpriv.records import (
    ArrayRows, Summed, _base as _records, _sources, _tables, from_batches, from_parquet,
    from_table, is_lazy,
)  # fmt: skip

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")

NAMES = ["a", "b", "c"]
N = 1500
LINE = LinearRegression(data_norm=1.0, bounds_y=(-1, 1))
ESTIMATORS = [ssp(), reweighted(), reweighted(solver="sgd"), layered(), improper(), LINE]
THREADED = [
    ssp(), reweighted(), LINE, AdditiveRegressor(bounds_X=(-0.5, 0.5), bounds_y=(-1, 1)),
]  # fmt: skip


def _frame():
    X, y = line_data(N)
    return pd.DataFrame(X, columns=NAMES).assign(y=y)


def _batches(X, y, *edges):
    edges = [0, *edges, len(y)]

    def batches():
        for start, stop in zip(edges, edges[1:], strict=False):
            yield X[start:stop], y[start:stop]

    return batches


def _folder(path, frame, parts=4):
    for part, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        table = pa.Table.from_pandas(frame.iloc[rows], preserve_index=False)
        pq.write_table(table, path / f"part{part}.parquet")
    return path


CONNECTIONS: list = []  # older relations of DuckDB do not keep their connection


def _duckdb(frame):
    """A connection that knows a frame by this name."""
    CONNECTIONS.append(pytest.importorskip("duckdb").connect())
    return CONNECTIONS[-1].register("frame", frame)


def _polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


def _csv(path, frame):
    frame.to_csv(path / "rows.csv", index=False)
    return str(path / "rows.csv")


# Tables of a frame, which may be written into a folder, and whether their number of rows is stated.
SOURCES = {
    "table": (lambda frame, path: pa.Table.from_pandas(frame), False),
    "reader": (lambda frame, path: pa.Table.from_pandas(frame).to_reader(100), True),
    "pandas": (lambda frame, path: frame, False),
    "dataset": (lambda frame, path: ds.dataset(_folder(path, frame)), False),
    "scanner": (lambda frame, path: ds.dataset(_folder(path, frame)).scanner(), True),
    "polars": (lambda frame, path: _polars(frame), False),
    "polars lazy": (lambda frame, path: _polars(frame).lazy(), True),
    "duckdb query": (lambda frame, path: _duckdb(frame).sql("select * from frame"), True),
    "duckdb csv": (lambda frame, path: _duckdb(frame).read_csv(_csv(path, frame)), True),
}


@pytest.mark.parametrize("kind", [*SOURCES, "parquet"])
def test_sources_give_the_same_fit(kind, tmp_path):
    X, y = line_data(N)
    expected = ssp(random_state=0).fit(X, y)
    if kind == "parquet":
        rows = from_parquet(_folder(tmp_path, _frame()), target="y")
    else:
        make, stated = SOURCES[kind]
        rows = from_table(make(_frame(), tmp_path), target="y", n=N if stated else None)
    assert rows.shape == (N, 3) and rows.passes == 0
    fitted = ssp(random_state=0).fit(rows)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-9)
    assert list(fitted.feature_names_in_) == NAMES and rows.passes == 1


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("privacy", ["none", "central"])
def test_batches_change_no_answer(estimator, privacy):
    X, y = line_data(N)
    estimator = clone(estimator).set_params(privacy=privacy, random_state=0)
    expected = clone(estimator).fit(X, y).coef_
    found = clone(estimator).fit(from_batches(_batches(X, y, 7, 8, 1400), n=N))
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-9, atol=1e-12)


def test_x_and_y_may_be_cut_in_different_places():
    X, y = line_data(N)
    expected = ssp(random_state=0).fit(X, y).coef_
    table = pa.Table.from_pandas(_frame())
    rows = from_batches(lambda: (X[at : at + 70] for at in range(0, N, 70)))
    assert rows.n == N
    for target in (y, list(y), pd.Series(y), table.column("y"), table.select(["y"])):
        found = ssp(random_state=0).fit(rows, target)
        np.testing.assert_allclose(found.coef_, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="different numbers of rows"):
        rows.with_target(lambda: iter([y[:-1]])).sum(_Count())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_batches_of_every_library_have_named_columns(library):
    pytest.importorskip(library)
    X, y = line_data(200)
    table = nw.from_dict({**{f"x{i}": x for i, x in enumerate(X.T)}, "y": y}, backend=library)
    blocks = [table[start : start + 70].to_native() for start in range(0, 200, 70)]
    if library == "pyarrow":
        blocks = [batch for block in blocks for batch in block.to_batches()]
    rows = from_batches(lambda: blocks, target="y", features=["x2", "x0"])
    assert rows.names == ["x2", "x0"] and rows.n == 200
    expected = ssp(privacy="none").fit(X[:, [2, 0]], y).coef_
    np.testing.assert_allclose(ssp(privacy="none").fit(rows).coef_, expected, rtol=1e-9)


class _Count(Summed):
    shape, name = (1,), "count"

    def sum(self, X, y):
        return np.array([float(len(y))])


def test_sparse_batches_are_the_sparse_matrix():
    X, y = line_data(N)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    model = iht(n_nonzero_coefs=2, random_state=0)
    expected = clone(model).fit(sparse.csr_matrix(X), y).coef_
    batches = _batches(sparse.csr_matrix(X), y, 400, 401)
    found = clone(model).fit(from_batches(batches, n=N)).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_sums_do_not_depend_on_the_batches(monkeypatch):
    X, y = line_data(300)

    class Moments(_Count):
        shape = (3, 3)

        def sum(self, X, y):
            return X.T @ X

    expected = ArrayRows(X, y).sum(Moments())
    for chunk in (1, 2**22):
        monkeypatch.setattr(_records, "CHUNK_BYTES", chunk)
        for edges in ([], [1], range(1, 300)):
            rows = from_batches(_batches(X, y, *edges), n=300)
            np.testing.assert_allclose(rows.sum(Moments()), expected, rtol=1e-12)
            for subset in (slice(3, 240, 5), [0, 7, 299], y > 0):
                found = rows.sum(Moments(), subset)
                np.testing.assert_allclose(found, ArrayRows(X, y).sum(Moments(), subset), 1e-12)


@pytest.mark.parametrize("privacy", ["local", "shuffle"])
def test_each_user_answers_once(privacy):
    """Users come from a public order of blocks; no one is in two answers, and all are in one."""
    seen = []
    X, y = line_data(N)
    X[:, 0] = np.arange(N) / 1e5
    rows = from_batches(_batches(X, y, 300, 700), n=N)

    def spy(X):
        seen.extend(np.rint(X[:, 0] * 1e5).astype(int))
        return X

    with BudgetAccountant(float("inf")) as accountant:
        reweighted(privacy=privacy, random_state=0).fit(rows.mapped(spy, 3))
    assert len(accountant.charges) == 1
    assert len(seen) == len(set(seen)) and len(seen) > 1000


@pytest.mark.parametrize("index", [True, None, False])
def test_the_index_of_pandas_is_no_feature(index, tmp_path):
    _frame().iloc[::-1].to_parquet(tmp_path / "some.parquet", engine="pyarrow", index=index)
    assert from_parquet(tmp_path, target="y").names == NAMES


def test_an_unnamed_index_is_no_feature_where_nothing_else_says_so(tmp_path):
    """As a file of pandas that another program has rewritten, without what pandas says of it."""
    table = pa.Table.from_pandas(_frame().iloc[::-1], preserve_index=True)
    assert "__index_level_0__" in table.schema.names
    pq.write_table(table.replace_schema_metadata(None), tmp_path / "some.parquet")
    assert from_parquet(tmp_path, target="y").names == NAMES


def test_pipelines_are_lazy_and_equal(tmp_path):
    frame = _frame().assign(kind=np.arange(N) % 3)
    rows = from_parquet(_folder(tmp_path, frame), target="y")
    encoder = TableEncoder(
        {name: Numeric(-0.5, 0.5) for name in NAMES} | {"kind": Categorical([0, 1, 2])}
    )
    X = frame.drop(columns="y")
    for first in (encoder, BoundsScaler(dict.fromkeys(NAMES, (-0.5, 0.5)) | {"kind": (0, 2)})):
        pipeline = make_pipeline(first, ssp(random_state=0))
        expected = clone(pipeline).fit(X, frame["y"])
        lazy = clone(pipeline).fit(rows)
        assert is_lazy(lazy[:-1].transform(rows))
        np.testing.assert_allclose(lazy[-1].coef_, expected[-1].coef_, rtol=1e-9)
        predicted = lazy.predict(rows)
        assert len(predicted) == N and predicted.shape == (N,)
        np.testing.assert_allclose(predicted, expected.predict(X), rtol=1e-9)
        assert lazy.score(rows, frame["y"]) == pytest.approx(expected.score(X, frame["y"]))
        low, high = lazy[-1].confidence_interval(lazy[:-1].transform(rows), method="asymptotic")
        wanted = expected[-1].confidence_interval(expected[:-1].transform(X), method="asymptotic")
        np.testing.assert_allclose(np.asarray(low), wanted.low, rtol=1e-7)
        np.testing.assert_allclose(high.compute(), wanted.high, rtol=1e-7)


def test_maps_are_read_by_chunks(tmp_path, monkeypatch):
    X, y = line_data(N)
    stored = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=X.shape)
    stored[:] = X
    pipeline = make_pipeline(BoundsScaler((-0.5, 0.5)), ssp(random_state=0))
    expected = clone(pipeline).fit(np.asarray(stored), y)[-1].coef_
    assert not is_lazy(stored)
    monkeypatch.setattr(_tables, "KEPT_BYTES", 1)
    assert is_lazy(stored) and is_lazy(BoundsScaler((-0.5, 0.5)).fit(stored).transform(stored))
    np.testing.assert_allclose(clone(pipeline).fit(stored, y)[-1].coef_, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="y is given twice"):
        ssp().fit(from_table(_frame(), target="y"), y)


@pytest.mark.parametrize("value", [np.nan, np.inf, "text", None])
@pytest.mark.parametrize("column", ["a", "y"])
def test_values_are_refused_in_one_sentence_after_the_charge(value, column):
    frame = _frame().astype(object)
    frame.loc[777, column] = value
    with charged(), warnings.catch_warnings(action="error"):
        ssp(epsilon=1.0).fit(from_table(frame, target="y"))


@pytest.mark.parametrize("n", [N - 300, N - 1, N + 1])
def test_a_pass_with_other_rows_is_refused(n):
    """Where rows are kept in memory, too."""
    rows = from_batches(_batches(*line_data(N), 10, N - 300, N - 1), n=n)
    persons = {"groups": np.arange(n) // 2, "max_rows_per_group": 2}
    for ask in (
        lambda: rows.sum(_Count()), lambda: ssp().fit(rows),
        lambda: ssp().fit(rows, **persons), lambda: ssp(privacy="local").fit(rows),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"did not find n={n} of them") as caught:
            ask()
        assert str(N) not in str(caught.value)


def _queries(path):
    """Queries whose number of rows is that of the private values above 0, by name."""
    frame, pl = _frame(), pytest.importorskip("polars")
    found = {"dataset": ds.dataset(_folder(path, frame)).filter(ds.field("a") > 0)}
    found["scanner"] = found["dataset"].scanner()
    found["polars"] = _polars(frame).lazy().filter(pl.col("a") > 0)
    found["polars read"] = pl.scan_parquet(path / "*.parquet").filter(pl.col("a") > 0)
    found["duckdb"] = _duckdb(frame).sql("select * from frame where a > 0")
    # quotation marks in its cells decide how many rows it has
    found["dataset csv"] = ds.dataset(_csv(path, frame[frame["a"] > 0]), format="csv")
    return found


def test_the_number_of_rows_of_a_query_is_stated_and_not_told(tmp_path):
    n = int((_frame()["a"] > 0).sum())
    for name, table in _queries(tmp_path).items():
        with uncharged(r"from_table\(table, n=") as caught:
            ssp().fit(from_table(table, target="y"))
        assert not any(cell.isdigit() for cell in str(caught.value)), name
        rows = from_table(table, target="y", n=n)
        assert rows.n == n and rows.sum(_Count())[0] == n
        with pytest.raises(ValueError, match=f"did not find n={n + 1} of them") as caught:
            from_table(table, target="y", n=n + 1).sum(_Count())
        assert str(n) not in str(caught.value).replace(f"n={n + 1} ", "")
    for wrong in (0, -1, True, 2.5, "3"):
        for read in (
            partial(from_table, _frame(), target="y"),
            partial(from_batches, lambda: [np.ones((2, 2))]),
        ):
            with pytest.raises(ValueError, match="n must be a positive integer"):
                read(n=wrong)
    assert type(from_batches(lambda: [np.ones((200, 2))], np.uint8(200)).n) is int


def test_targets_in_memory_tell_the_number_of_lazy_rows():
    model = ssp(random_state=0)
    rows, y = _polars(_frame()).lazy().select(NAMES), line_data(N)[1]
    expected = clone(model).fit(*line_data(N)).coef_
    np.testing.assert_allclose(clone(model).fit(rows, y).coef_, expected, rtol=1e-9)
    fitted = make_pipeline(BoundsScaler((-0.5, 0.5)), clone(model)).fit(rows, y)
    assert fitted.predict(from_table(rows, n=N)).shape == (N,)
    with pytest.raises(ValueError, match=r"from_table\(table, n="):
        fitted.predict(rows)
    with pytest.raises(ValueError, match="different numbers of rows"):
        clone(model).fit(rows, y[:-1])


@pytest.mark.parametrize("library", ["polars", "panic", "duckdb"])
def test_a_query_that_fails_quotes_no_cell(library, monkeypatch):
    frame, pl = _frame().assign(a="HIV positive"), pytest.importorskip("polars")
    table = _polars(frame).lazy().with_columns(pl.col("a").cast(float))
    if library == "panic":  # an older polars, that cannot go on: it raises what is no Exception
        panic = Mock(side_effect=pl.exceptions.PanicException("HIV positive"))
        monkeypatch.delattr(pl.LazyFrame, "collect_batches", raising=False)
        monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    if library == "duckdb":
        table = _duckdb(frame).sql("select cast(a as double) as a, y from frame")
    with charged():
        ssp(epsilon=1.0).fit(from_table(table, target="y", n=N))


def test_a_reader_that_fails_quotes_no_cell():
    def batches():
        yield pa.record_batch({"a": [0.5]})
        raise ValueError("HIV positive")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.float64()}), batches())
    with charged():
        ssp(epsilon=1.0).fit(reader, [0.5])


def _unreadable(cells):
    """Texts of Arrow, the last of which is no UTF-8, as a file of Latin-1 makes them."""
    data = pa.array([*map(str.encode, cells), b"\xffHIV positive"], type=pa.binary())
    return pa.Array.from_buffers(pa.string(), len(data), data.buffers())


@pytest.mark.parametrize("kind", ["table", "batch", "batches", "parquet", "columns"])
def test_a_target_that_is_no_text_is_quoted_nowhere(kind, tmp_path):
    table = pa.table({"a": np.zeros(20), "y": _unreadable(["0.5"] * 19)})
    pq.write_table(table, tmp_path / "rows.parquet")
    arguments = {
        "table": lambda: (from_table(table, target="y"),),
        "batch": lambda: (from_table(table.to_batches()[0], target="y"),),
        "batches": lambda: (from_batches(lambda: [table], n=20, target="y"),),
        "parquet": lambda: (from_parquet(tmp_path / "rows.parquet", target="y"),),
        "columns": lambda: (np.zeros((20, 1)), table["y"]),
    }[kind]()
    batches = kind == "batches"  # whose types are not known before they are read
    with charged() if batches else uncharged("y.*holds texts.*in a schema") as caught:
        ssp(epsilon=1.0).fit(*arguments)
    assert batches or "HIV" not in str(caught.value)


class _Unreadable:
    def __array__(self, *arguments, **named):
        raise RuntimeError("HIV positive")


@pytest.mark.parametrize("cell", ["HIV positive", [1.0, 2.0], _Unreadable()])
def test_listed_targets_of_lazy_rows_are_read_one_by_one_after_the_charge(cell):
    """NumPy makes one type of a list, or refuses it in the words of a cell."""
    X, y = line_data(40)
    table, targets = pa.table(dict(zip(NAMES, X.T, strict=True))), (y > 0.0).tolist()
    rows, others = _tables.as_rows(table, [*targets[:-1], cell]), targets[:-1]
    found = np.concatenate(list(rows.each(lambda X, y: y)))
    np.testing.assert_array_equal(found, [*others, np.nan])
    with charged():
        ssp(epsilon=1.0).fit(table, [*others, cell])


@pytest.mark.parametrize("kept", [0, 2**28])
def test_one_target_does_not_stand_for_the_rows_of_its_batch(kept, monkeypatch):
    monkeypatch.setattr(_pieces, "KEPT_BYTES", kept)
    X, y = line_data(N)
    for part in (y[:1], np.column_stack([y, y])):
        rows = from_batches(lambda: [(X, part)], n=len(X))  # noqa: B023
        with pytest.raises(ValueError, match="different numbers of rows"):
            ssp().fit(rows)


def test_errors_of_reading_end_the_fit_and_the_reader():
    X, y = line_data(50)

    def batches():
        yield X, y
        raise FileNotFoundError(2, "not here", "Alice.png")

    for read in (
        lambda rows: rows.sum(_Count()),
        lambda rows: list(rows.each(lambda X, y: None)),
    ):
        with pytest.raises(OSError, match="has failed") as caught:
            read(from_batches(batches, n=10**6))
        assert "Alice" not in repr((caught.value, caught.value.__context__))
    assert "skpriv-reader" not in str(threading.enumerate())


def test_a_batch_that_warns_is_read_in_silence():
    def batches():
        for _ in range(9):
            yield line_data(50)
            warnings.warn("a value", stacklevel=1)

    with warnings.catch_warnings(record=True, action="always") as told:
        from_batches(batches, n=450).sum(_Count())
    assert not told


def test_what_cannot_says_so_before_it_is_charged():
    with uncharged("requires y"):
        ssp().fit(from_batches(lambda: [line_data(N)[0]], n=N))


def test_rows_of_a_query_have_no_parts():
    """Their order may change from pass to pass, and a user would answer twice, or for others.

    With persons the error came after the charge, and only if some of them had too many rows.
    """
    rows = from_table(_polars(_frame()).lazy(), target="y", n=N)
    persons = {"groups": np.arange(N), "max_rows_per_group": 1}
    for privacy, options in (("local", {}), ("central", persons)):
        with uncharged("no fixed order"):
            ssp(privacy=privacy).fit(rows, **options)
    with pytest.raises(ValueError, match="no fixed order"):
        rows.sum(_Count(), slice(0, 10))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"target": "z"}, "not among the columns"),
        ({"features": ["z"]}, "not among the columns"),
        ({"target": "y", "features": ["a", "y"]}, "among the features"),
    ],
)
def test_wrong_columns(options, message):
    with pytest.raises(ValueError, match=message):
        from_table(_frame(), **options)
    with pytest.raises(TypeError, match="from_batches"):
        from_table(np.zeros((3, 2)))


@pytest.mark.parametrize(
    "names", [[0, 1], [1.5, 2.5], [b"a", b"b"], ["a", 1], ["a", "a"], [None, "a"]], ids=str
)
def test_columns_that_cannot_be_found_by_name(names):
    """A reader takes the number 1 for a place: it would be another column, or a row."""
    frame = pd.DataFrame(np.zeros((9, 2)), columns=pd.Index(names, dtype=object))
    for options in ({}, {"target": names[1]}):
        with uncharged("table.columns"):
            ssp().fit(from_table(frame, **options), *([] if options else [np.zeros(9)]))
    if names == ["a", "a"]:
        dask = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=1)
        for table in (frame, dask):
            with uncharged("table.columns.*: a"):
                ssp().fit(table, np.zeros(9))


@pytest.mark.parametrize("estimator", THREADED, ids=lambda e: type(e).__name__)
def test_the_number_of_threads_changes_no_digit(estimator, monkeypatch):
    monkeypatch.setattr(_records, "CHUNK_BYTES", 1)  # 64 rows a chunk
    X, y = line_data(N)
    estimator = clone(estimator).set_params(random_state=0)
    fits = [clone(estimator).set_params(n_jobs=jobs).fit(X, y) for jobs in (1, 3, -1)]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.predict(X), fits[0].predict(X))


def test_targets_are_read_without_their_rows(tmp_path, monkeypatch):
    """Where and how wide targets are takes a column of the files, and not all of them."""
    asked, scan = [], _sources.ParquetFiles._read

    def noted(self, columns):
        asked.append(columns)
        return scan(self, columns)

    monkeypatch.setattr(_sources.ParquetFiles, "_read", noted)
    X, y = line_data(N)
    pd.DataFrame(X, columns=NAMES).assign(y=y).to_parquet(tmp_path / "rows.parquet")
    model, found = LinearRegression(data_norm=1.0, bounds_y=(-1, 1), epsilon=8.0), []
    for most in (0, 8 * len(y), 2**20):  # nothing, the targets, or all of it is kept
        asked.clear()
        monkeypatch.setattr(_pieces, "KEPT_BYTES", most)
        model.set_params(random_state=0).fit(from_parquet(tmp_path, target="y"))
        found.append((list(asked), model.coef_))
    none, targets, everything = (columns for columns, _ in found)
    assert none[:2] == [["y"], ["y"]] and none[2] == [*NAMES, "y"]
    assert targets[0] == ["y"] and targets[1:] == none[2:] and everything == [[*NAMES, "y"]]
    for _, coef in found[1:]:
        np.testing.assert_allclose(coef, found[0][1], rtol=1e-9)


def test_linear_regression_reads_twice_what_does_not_fit(monkeypatch):
    """Once for the target and all that a part is asked, for the last step and the line, and for
    the length of the line.
    """
    X, y = line_data(100 * N)

    def blocks():
        for start in range(0, len(y), 40_000):
            yield X[start : start + 40_000], y[start : start + 40_000]

    model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), epsilon=30.0, random_state=0)
    expected = clone(model).fit(X, y)
    steps = sum(row.query == "scores" for row in expected.privacy_report_.rows)
    assert steps <= 5
    whitening = [row for row in expected.privacy_report_.rows if row.query.startswith("whit")]
    part = 8 * 4 * max(row.records for row in whitening)
    assert part < 8 * 4 * len(y)
    found = {
        8 * 4 * len(y): 1,  # all rows are kept
        part + 8 * len(y): 3,  # a part of them, and the targets: the length of the line is of all
        part: 5,  # a part of them: two questions are about the targets alone
        # The targets; margins, count, last and line, and its length
        8 * len(y): 1 + len(whitening) + steps + 5,
    }
    for most, passes in found.items():
        monkeypatch.setattr(_pieces, "KEPT_BYTES", most)
        found = clone(model).fit(from_batches(blocks, n=len(y)))
        assert found.privacy_report_.passes == passes
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)


def test_a_calibrated_fit_reads_four_times_what_does_not_fit(monkeypatch):
    """Targets and a part at once, the last step, the length of the line, and what is held out."""
    X, y = line_data(300 * N)
    model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), epsilon=30.0, random_state=0)
    model.set_params(calibration_size=0.1)
    expected = clone(model).fit(X, y)
    monkeypatch.setattr(_pieces, "KEPT_BYTES", 8 * 4 * len(y) * 2 // 3)
    found = model.fit(from_batches(lambda: [(X, y)], n=len(y)))
    assert found.privacy_report_.passes == 4
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
