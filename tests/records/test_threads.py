"""Threads of sums: kept, in order, never deadlocked, and gone in a child process."""

import logging
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from io import StringIO
from threading import Barrier, Event, current_thread
from types import SimpleNamespace

import numpy as np
import pytest
from registry.estimators import ssp
from registry.processes import forked, needs_fork, of_threads

from skpriv import _linalg
from skpriv._compat import fit_context
from skpriv.exceptions import InvalidValues
from skpriv.linear_model import LinearRegression
from skpriv.records import _base as _threads, _values, from_batches, from_table, silence
from skpriv.records._base import in_threads
from skpriv.records._values import silence_everywhere


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(_threads, "ALONE", 0.0)


def _squares(count, n_jobs=2, at_once=False):
    def square(x):
        with _linalg.one_blas_thread.vector_turn:
            return x * x

    return list(in_threads(square, range(count), n_jobs, at_once))


@pytest.mark.parametrize("given", [(1,), (2,), (5,), (1, True), (2, True)])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 50])
def test_results_come_in_order(count, given):
    assert _squares(count, *given) == [x * x for x in range(count)]


def test_two_threads_work_at_the_same_time_and_are_kept():
    meet, names = Barrier(2, timeout=60), set()

    def wait(x):
        if x > 0:  # the first one is done by the caller
            meet.wait()
            names.add(current_thread().name)

    for _ in range(3):
        list(in_threads(wait, range(7), 2))
    assert len(names) == 2 and all(name.startswith(_threads.NAME) for name in names)


def test_a_short_sum_wakes_nobody(monkeypatch):
    monkeypatch.setattr(_threads, "ALONE", 60.0)
    names = set(in_threads(lambda x: current_thread().name, range(50), 2))
    assert names == {current_thread().name}


def test_arguments_are_not_read_far_ahead():
    read = []
    found = in_threads(lambda x: x, (read.append(x) or x for x in range(100)), 2)
    for _ in range(5):
        next(found)
    assert len(read) <= 5 + 5
    found.close()
    assert _squares(9) == [x * x for x in range(9)]


def test_an_error_is_raised_and_the_threads_go_on():
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda x: 1.0 / (x - 5), range(50), 2))
    assert _squares(9) == [x * x for x in range(9)]


def test_a_sum_inside_of_a_sum_does_not_wait_for_itself():
    assert list(in_threads(lambda x: sum(_squares(9)), range(9), 2)) == [204] * 9


@of_threads
@needs_fork
def test_a_forked_child_makes_threads_and_locks_of_its_own():
    """And hears its warnings: what silences all threads was another one's."""

    def squared():
        assert not _values._everywhere and _squares(9) == [x * x for x in range(9)]

    assert _squares(9)
    with _linalg.one_blas_thread.vector_turn, silence_everywhere():
        assert forked(squared)


@pytest.fixture
def blas(monkeypatch):
    """A BLAS whose number of threads is noted: [now, how often it was changed]."""
    state = [8, 0]

    class Limit:
        def __init__(self, limits, user_api):
            assert user_api == "blas"
            self._before, state[0], state[1] = state[0], limits, state[1] + 1

        def restore_original_limits(self):
            state[0] = self._before

    monkeypatch.setattr(_linalg, "_blas_libraries", lambda: SimpleNamespace(limit=Limit))
    return state


def test_blas_has_its_threads_again_when_the_last_one_leaves(blas):
    for _ in range(2):
        with _linalg.one_blas_thread:
            with _linalg.one_blas_thread:
                assert blas[0] == 1
            assert blas[0] == 1
        assert blas[0] == 8
    assert blas[1] == 2


def test_a_fit_owns_the_cores(blas):
    seen = []

    class Estimator:
        @fit_context(prefer_skip_nested_validation=True)
        def fit(self, X, y=None):
            seen.append(blas[0])
            assert list(in_threads(lambda x: blas[0], range(9), 2)) == [1] * 9
            seen.append(blas[0])
            return self

        def _validate_params(self):
            pass

    Estimator().fit(np.zeros((2, 3)))
    assert seen == [1, 1] and blas[0] == 8
    with pytest.raises(TypeError, match="X"):
        Estimator().fit()
    assert blas[0] == 8


def test_the_algebra_of_a_fit_wakes_no_thread_of_blas(blas, monkeypatch):
    """They would wait in a loop on the cores of our threads, for half of the processor time."""
    seen = set()

    def noted(function):
        return lambda *arguments, **named: seen.add(blas[0]) or function(*arguments, **named)

    for name in ("eigh", "solve", "inv"):
        monkeypatch.setattr(np.linalg, name, noted(getattr(np.linalg, name)))
    X = np.random.default_rng(0).uniform(-1, 1, (2000, 3))
    LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), epsilon=8.0).fit(X, X[:, 0])
    assert seen == {1} and blas[0] == 8


class Failing:
    """What cannot be thrown away without an error, which nobody can catch."""

    def __del__(self):
        raise ValueError("7")


def test_errors_that_cannot_be_caught_are_unheard_in_silence_alone(monkeypatch):
    """Python writes their texts to the standard error, and they may be those of a cell."""
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    for _ in range(2):
        with silence():
            del (lambda: [Failing()])()[0]
        assert not heard
    with silence(), silence(False):
        del (lambda: [Failing()])()[0]
    del (lambda: [Failing()])()[0]
    assert len(heard) == 2 and sys.unraisablehook.before == heard.append


def test_silence_is_that_of_one_thread_and_ends():
    """Threads overlap, a filter is set inside, filters are copied, and an error ends it."""
    ours, theirs, one = silence(), silence(), ThreadPoolExecutor(1)

    def heard(x=None):
        before = len(found)
        warnings.warn("a value", stacklevel=1)
        return len(found) > before

    def both():
        return heard(), pool.submit(heard).result()

    with warnings.catch_warnings(record=True, action="always") as found, one as pool:
        ours.__enter__()
        assert both() == (False, True) and not any(in_threads(heard, range(9), 2))
        assert [*in_threads(lambda x: np.full(1, 1e308) * 10.0, range(9), 2)] == [np.inf] * 9
        with warnings.catch_warnings(action="error"):
            assert not silence()(heard)()
        copied = warnings.filters[:]
        pool.submit(theirs.__enter__).result()
        ours.__exit__(None, None, None)
        assert both() == (True, False)
        pool.submit(theirs.__exit__, None, None, None).result()
        warnings.filters[:] = copied
        assert both() == (True, True)
        with pytest.raises(KeyError), silence_everywhere(), silence():
            assert both() == (False, False)
            raise KeyError
        assert both() == (True, True)


RESTORED = """
import warnings
from skpriv.records import silence
other, ours = warnings.catch_warnings(), silence()
other.__enter__(), ours.__enter__(), other.__exit__(None, None, None)
warnings.warn("a value")
"""


def test_filters_that_another_thread_restores_let_nobody_hear():
    """They were copied before the first silence began."""
    done = subprocess.run([sys.executable, "-c", RESTORED], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


def _made(number):
    return Late.made[number]


class Late:
    """A step of the user, which is still running elsewhere when the fit has refused a cell."""

    n = 250_000
    made = {}

    def __init__(self):
        self.made[id(self)] = self
        self.running, self.refused, self.ended = Event(), Event(), Event()

    def __reduce__(self):
        """A worker of this process has the same object."""
        return _made, (id(self),)

    def warn(self):
        self.running.set()
        self.refused.wait(0.2)  # to the end, if the fit waits until the step has ended
        warnings.warn("Alice", stacklevel=1)
        self.ended.set()

    def fail(self):
        assert self.running.wait(9)
        raise ValueError("Alice")

    def dask(self):
        delayed = pytest.importorskip("dask").delayed
        frames = pytest.importorskip("dask.dataframe")
        parts = [delayed(step, pure=False)() for step in (self.fail, self.warn)]
        frame = frames.from_delayed(parts, meta={"a": float, "y": float}, verify_meta=False)
        return from_table(frame, target="y", n=self.n)

    def polars(self, target=0.0):
        """Parts have 100,000 rows each; a missing target is refused while others are made."""
        pl = pytest.importorskip("polars")
        table = pl.DataFrame({"a": np.arange(self.n) / self.n, "y": np.full(self.n, target)})

        def step(part):
            if part[0] > 0.0:
                self.warn()
            elif target == 0.0:
                self.fail()
            return part

        step_on = pl.col("a").map_batches(step, return_dtype=pl.Float64, is_elementwise=True)
        return from_table(table.lazy().with_columns(step_on), target="y", n=self.n)

    def polars_unread(self):
        return self.polars(np.nan)


def _of_a_pool():
    return pytest.importorskip("dask").config.set(pool=ThreadPoolExecutor(2))


def _of_a_cluster():
    """One of this process, whose log is here, too."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    return distributed.Client(processes=False, **options)


@pytest.mark.parametrize(
    ("library", "threads"),
    [
        (Late.dask, nullcontext),
        (Late.dask, _of_a_pool),
        (Late.dask, _of_a_cluster),
        (Late.polars, nullcontext),
        (Late.polars_unread, nullcontext),
    ],
)
def test_nobody_hears_a_step_of_the_user_that_ends_after_a_refusal(library, threads):
    """Nor does a log say what the error was, whoever's threads these are."""
    late = Late()
    log = StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger("distributed.worker").addHandler(handler)
    with threads(), warnings.catch_warnings(record=True, action="always") as told:
        rows = library(late)
        with pytest.raises(InvalidValues):
            ssp().fit(rows)
        late.refused.set()
        if not late.running.is_set():
            pytest.skip("this version runs a step on all rows at once")
        assert late.ended.wait(9)
        warned = [str(one.message) for one in told]
    logging.getLogger("distributed.worker").removeHandler(handler)
    assert "Alice" not in f"{warned}{log.getvalue()}" and not _values._everywhere


@pytest.mark.parametrize("step", ["warn", "fail"])
def test_nobody_hears_the_threads_of_a_function_that_makes_batches(step):
    """Neither before the charge nor in a fit."""
    late = Late()
    late.refused.set()
    late.running.set()

    def batches():
        with ThreadPoolExecutor(2) as pool:
            pool.submit(getattr(late, step) if read else int).result()
            yield np.zeros((9, 3)), np.zeros(9)

    for read in (True, False):
        with warnings.catch_warnings(record=True, action="always") as told:
            try:
                rows = from_batches(batches, n=9)
                read = True
                ssp().fit(rows)
            except InvalidValues as error:
                assert step == "fail" and "Alice" not in repr((error, error.__context__))
        assert "Alice" not in str([one.message for one in told])


@pytest.mark.parametrize("name", _values.OF_DASK)
def test_an_error_that_is_called_as_one_of_dask_is_not_repeated(name):
    def batches():
        raise type(name, (Exception,), {})("Alice")
        yield

    with pytest.raises(InvalidValues, match="no number|not a number") as caught:
        from_batches(batches)
    assert "Alice" not in str(caught.value) and caught.value.__context__ is None
