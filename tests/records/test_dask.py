"""Rows of Dask: the answers of rows in memory, one charge, and workers that die."""

import os
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from registry.estimators import iht, improper, layered, line_data, reweighted, ssp
from registry.refusals import charged, uncharged
from registry.totals import Total
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import AdditiveRegressor, IVRegressor, LinearRegression
from skpriv.model_selection import privacy_utility_curve
from skpriv.preprocessing import BoundsScaler, Numeric, TableEncoder
from skpriv.records import DaskRows, from_table, is_lazy

pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

NAMES = ["a", "b", "c"]
N = 1500
ENCODER = TableEncoder({name: Numeric(-0.5, 0.5) for name in NAMES})
ESTIMATORS = [
    ssp(),
    reweighted(),
    layered(),
    iht(n_nonzero_coefs=2),
    LinearRegression(data_norm=1.0, bounds_y=(-1, 1)),
    AdditiveRegressor(bounds_X=(-0.5, 0.5), bounds_y=(-1, 1)),
    improper(n_iter=4),
]


def _arrays():
    X, y = line_data(N)
    return da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=350)


def _frame(parts=5):
    X, y = line_data(N)
    return dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=parts)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, ssp(privacy="none")], ids=str)
def test_parts_change_no_answer(estimator):
    """Of frames see `test_predictions_are_lazy`."""
    X, y = line_data(N)
    estimator = clone(estimator).set_params(random_state=0)
    expected = clone(estimator).fit(X, y).predict(X[:50])
    with BudgetAccountant(float("inf")) as accountant:
        found = clone(estimator).fit(*_arrays())
    np.testing.assert_allclose(found.predict(X[:50]), expected, rtol=1e-9, atol=1e-9)
    assert len(accountant.charges) == 1
    assert found.privacy_report_.passes == 1  # so few rows are kept where they are


def test_rows_that_do_not_fit_are_read_for_each_question(monkeypatch):
    X, y = line_data(N)
    model = LinearRegression(data_norm=1.0, bounds_y=(-1, 1), random_state=0)
    expected = clone(model).fit(X, y).coef_
    monkeypatch.setattr("skpriv.privacy._session._pieces.KEPT_BYTES", 1000)
    found = model.fit(*_arrays())
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-9, atol=1e-9)
    assert found.privacy_report_.passes > 10


def test_the_local_model_asks_each_user_once():
    """Workers find their users from the public seed, as one process does."""
    from skpriv.records import from_batches

    X, y = line_data(N)
    model = reweighted(privacy="local", epsilon=8.0, random_state=0)
    gaussian = clone(model).set_params(channel="gaussian")  # "auto" is, of rows on workers
    expected = gaussian.fit(from_batches(lambda: [(X, y)], n=N)).coef_
    np.testing.assert_allclose(clone(model).fit(*_arrays()).coef_, expected, rtol=1e-9)


def test_unknown_lengths_are_stated():
    X, y = _arrays()
    X, y = (data[da.from_array(np.arange(N) % 3 > 0, chunks=400)] for data in (X, y.rechunk(400)))
    keep = np.arange(N) % 3 > 0
    expected = ssp(random_state=0).fit(line_data(N)[0][keep], line_data(N)[1][keep]).coef_
    model = ssp(random_state=0)
    with pytest.raises(ValueError, match=r"from_table\(table, n="):
        model.fit(X, y)
    for rows in ((from_table(X, n=999), y), (X, np.zeros(999)), (X, da.zeros(999))):
        with BudgetAccountant(1.0, 1e-6) as accountant:
            with pytest.raises(ValueError, match="did not find n=999 of them") as caught:
                model.fit(*rows)
        assert "1000" not in str(caught.value) and len(accountant.charges) == 1
    with uncharged("different numbers of rows"):
        model.fit(da.zeros((9, 3)), np.zeros(8))
    found = model.fit(from_table(X, n=1000), y)
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-9)


def test_the_number_of_rows_that_a_query_finds_is_not_told():
    model, (X, y), frame = ssp(), line_data(N), _frame()
    positive = frame[frame["a"] > 0]
    for make in (
        lambda: (from_table(positive, target="y"),),
        lambda: (positive[NAMES], positive["y"]),
        lambda: (frame[NAMES].map_partitions(lambda part: part), frame["y"].loc[:N]),
    ):
        with uncharged(r"from_table\(table, n="):
            model.fit(*make())
    with pytest.raises(ValueError, match=r"from_table\(table, n="):
        privacy_utility_curve(model, positive[NAMES], positive["y"])
    n = int((X[:, 0] > 0).sum())
    assert from_table(positive, target="y", n=n).n == n
    assert model.fit(frame[NAMES], y).coef_.shape == (3,)


def test_columns_of_a_table_in_memory_or_in_files_keep_its_length(tmp_path):
    (X, y), frame, model = line_data(N), _frame(), ssp(random_state=0)
    expected = clone(model).fit(X, y).coef_
    frame.to_parquet(tmp_path / "rows", write_index=False)
    text = frame.assign(y=frame["y"].astype(str))
    for table in (
        frame,
        dd.read_parquet(tmp_path / "rows"),
        text.assign(y=text["y"].astype(float)),
    ):
        for rows in ((table[NAMES], table["y"]), (from_table(table, target="y"),)):
            found = clone(model).fit(*rows)
            np.testing.assert_allclose(found.coef_, expected, rtol=1e-9)


def test_targets_in_memory_are_cut_as_the_rows():
    X, y = line_data(N)
    expected = ssp(random_state=0).fit(X, y).coef_
    for target in (y, pd.Series(y), list(y)):
        found = ssp(random_state=0).fit(_arrays()[0], target).coef_
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = ssp(random_state=0)
    found.fit(
        from_table(_frame()[NAMES], n=N), _frame(3)["y"]
    )  # as dask reads one column of many small files
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-9)
    with pytest.raises(ValueError, match=f"did not find n={N} of them"):
        ssp().fit(from_table(_frame()[NAMES], n=N), _frame()["y"].loc[:9])
    with pytest.raises(ValueError, match="numbers of rows"):
        ssp().fit(_arrays()[0], y[:-1])


def test_predictions_are_lazy():
    """Whatever frames `set_output` asks for."""
    X, y = line_data(N)
    (array, target), frame, table = _arrays(), _frame(), pd.DataFrame(X, columns=NAMES)
    for first, rows, targets, memory in (
        (BoundsScaler((-0.5, 0.5)), array, target, X),
        (ENCODER, from_table(frame[NAMES], n=N), frame["y"], table),
    ):
        pipeline = make_pipeline(first, ssp(random_state=0))
        lazy = clone(pipeline).set_output(transform="pandas").fit(rows, targets)
        expected = clone(pipeline).fit(memory, y)
        predicted = lazy.predict(rows)
        assert isinstance(predicted, da.Array) and predicted.shape == (N,)
        np.testing.assert_allclose(predicted.compute(), expected.predict(memory), rtol=1e-9)
        points = lazy[:-1].transform(rows)
        assert is_lazy(points)
        low, high = lazy[-1].confidence_interval(points)
        wanted = expected[-1].confidence_interval(expected[:-1].transform(memory))
        np.testing.assert_allclose(low.compute(), wanted.low, rtol=1e-7)
        np.testing.assert_allclose(high.compute(), wanted.high, rtol=1e-7)


@pytest.mark.parametrize("named", [False, True])
def test_curves_have_folds_of_rows(named):
    """And keep the names of a frame."""
    (X, y), model = line_data(N), ssp(random_state=0)
    data = _arrays()
    if named:
        frame, X, model = _frame(), pd.DataFrame(X, columns=NAMES), make_pipeline(ENCODER, model)
        data = from_table(frame[NAMES], n=N), frame["y"]
    settings = {"epsilons": [4.0], "cv": KFold(2, shuffle=True, random_state=0), "n_repeats": 1}
    expected = privacy_utility_curve(model, X, y, **settings)
    found = privacy_utility_curve(model, *data, **settings)
    np.testing.assert_allclose(found.test_scores, expected.test_scores, rtol=1e-9)
    np.testing.assert_allclose(found.interval_widths, expected.interval_widths, rtol=1e-9)


def test_values_are_refused_in_one_sentence_after_the_charge():
    """What Dask says of one that it casts quotes it, before the charge if it makes parts then.

    Nor does anybody hear what a step of the graph warns of in a thread of Dask.
    """
    X, y = line_data(N)
    table = pd.DataFrame(X, columns=NAMES).assign(y=y, a=X[:, 0].astype(str))
    table.loc[777, "a"] = "Alice"
    text = dd.from_pandas(table, npartitions=5)
    cast = text.assign(a=text["a"].astype(float))

    def warns(part):
        warnings.warn("Alice", stacklevel=1)
        return part.assign(a=part["a"].astype(float))

    own = text.map_partitions(warns, meta=cast._meta)
    array = text[NAMES].to_dask_array(lengths=True).astype(float)
    unread = dd.from_pandas(table.assign(a=[*table["a"][1:], b"\xff"]), npartitions=5)
    X[777, 1] = np.nan
    for make in (
        lambda: (da.from_array(X, chunks=(400, 3)), y),
        lambda: (own[NAMES], y),
        lambda: (from_table(cast, target="y", n=N),),
        lambda: (from_table(own, target="y", n=N),),
        lambda: (from_table(cast[["b"]], n=N), cast["a"]),
        lambda: (array, y),
    ):
        with charged(), warnings.catch_warnings(record=True, action="always") as told:
            ssp(epsilon=1.0).fit(*make())
        assert not told
    with uncharged("'a' of X.*holds texts.*in a schema") as caught:
        ssp(epsilon=1.0).fit(from_table(unread, target="y", n=N))
    assert "xff" not in str(caught.value)


@contextmanager
def cluster():
    """The client of two processes of Dask, which are asked from here on."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as workers, distributed.Client(workers) as client:
        yield client


def test_an_error_of_a_file_does_not_name_it():
    """Its name may be a cell."""

    def fails(part):
        raise FileNotFoundError(2, "not here", "Alice.png")

    table = _frame().map_partitions(fails, meta=_frame()._meta)
    with pytest.raises(OSError, match="has failed") as caught:
        ssp().fit(from_table(table, target="y", n=N))
    assert "Alice" not in repr((caught.value, caught.value.__context__))


def test_a_cluster_shuffles_a_table_of_the_user():
    """Its workers ask for a task again that belongs elsewhere, which is no error of a cell."""
    distributed = pytest.importorskip("distributed")
    X, y = line_data(N)
    expected = ssp(random_state=0).fit(X, y).coef_
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=False, **options):
        for table in (_frame().shuffle("a"), _frame().set_index("a", drop=False)):
            found = ssp(random_state=0).fit(from_table(table, target="y", n=N))
            np.testing.assert_allclose(found.coef_, expected, rtol=1e-9)


@pytest.mark.slow
def test_a_cluster_of_processes_changes_nothing():
    """All in one test, since each cluster takes seconds to start."""
    import dask

    with cluster() as client, dask.config.set(scheduler=client):
        test_parts_change_no_answer(LinearRegression(data_norm=1.0, bounds_y=(-1, 1)))
        test_parts_change_no_answer(ssp(privacy="none"))
        test_the_local_model_asks_each_user_once()
        test_predictions_are_lazy()
        test_values_are_refused_in_one_sentence_after_the_charge()
        for estimator in OF_PERSONS:
            test_rows_of_a_person_in_several_parts_are_brought_together(estimator, "central")


def test_reports_user_by_user_are_refused():
    with uncharged("channel='gaussian'", PrivacyError):
        ssp(privacy="local", channel="codebook").fit(*_arrays())
    with pytest.raises(ValueError, match="do not leave their worker"):
        next(from_table(_frame(), target="y", n=N).each(lambda X, y: None))


OF_PERSONS = [
    LinearRegression(data_norm=1.0, bounds_y=(-1, 1), effects="person"),
    LinearRegression(bounds_X=(-0.5, 0.5), bounds_y=(-1, 1)),
    IVRegressor(instruments=[1], endogenous=[0], bounds_X=(-0.5, 0.5), bounds_y=(-1, 1)),
    ssp(),
]


@pytest.mark.parametrize(
    ("estimator", "privacy"), [(OF_PERSONS[0], "none"), *((each, "central") for each in OF_PERSONS)]
)
def test_rows_of_a_person_in_several_parts_are_brought_together(estimator, privacy):
    """Some of a person's rows are left out, and one has a value that is missing."""
    X, y = line_data(N)
    y[7] = np.nan if privacy == "central" else y[7]  # without privacy it would be refused
    groups = np.arange(N) % 501  # two or three rows of each, in three parts
    model = clone(estimator).set_params(privacy=privacy, random_state=0, max_rows_per_group=2)
    expected = clone(model).fit(X, y, groups=groups).coef_
    data = da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=350)
    found = clone(model).fit(*data, groups=groups).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_workers_that_die_change_nothing():
    """Ten times a worker is killed while it sums: the answer and the charge of one fit."""
    X, y = line_data(N)
    expected = ssp(random_state=0).fit(X, y).coef_

    def slow(block):
        import time

        time.sleep(0.05)
        return block

    rows = da.from_array(X, chunks=(75, 3)).map_blocks(slow, dtype=float, meta=np.empty((0, 0)))
    for _ in range(10):
        with cluster() as client:
            pids = list(client.run(os.getpid).values())
            killer = threading.Timer(0.3, os.kill, (pids[0], 9))
            killer.start()
            with BudgetAccountant(float("inf")) as accountant:
                found = ssp(random_state=0).fit(rows, y)
            assert not killer.is_alive()  # it was killed before the fit had ended
            np.testing.assert_allclose(found.coef_, expected, rtol=1e-9)
            assert len(accountant.charges) == 1


@pytest.mark.parametrize("parts", [1, 8, 9, 65])
def test_a_tree_of_sums_has_each_row_once(parts):
    """Its branches have eight parts: with more of them there are several levels."""
    y = np.arange(2.0 * parts) / (2.0 * parts)
    rows = DaskRows.of(*(da.from_array(data, chunks=2) for data in (y[:, None], y)))
    assert rows.sum(Total())[0] == pytest.approx(y.sum())
