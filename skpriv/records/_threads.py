"""Threads that are kept from one sum to the next, with results in order; and tasks of Dask."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from threading import current_thread
from time import perf_counter
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from .._linalg import one_blas_thread
from ..exceptions import InvalidValues
from ._values import INVALID_VALUES

ALONE = 0.02  # seconds of work before other threads help: to wake them costs up to one of these
NAME = "skpriv-sums"
ATTEMPTS = 20  # at a task whose workers die: it is the same sum each time, without any noise
_POOLS: dict[int, ThreadPoolExecutor] = {}
# A child has none of its parent's threads, and would wait for them.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOLS.clear)


def in_threads(function: Callable, arguments: Iterable, n_jobs: int | None = -1) -> Iterator[Any]:
    """Yield results in order; many arguments are spread over threads, each with one BLAS thread.

    The order of the results, and with it the rounding of their sum, does not depend on the number
    of threads. What is done within 20 ms is done by the caller alone.

    Parameters
    ----------
    function : callable
    arguments : iterable
        It is read by the caller, by at most two arguments a thread ahead.
    n_jobs : int or None, default=-1
        The number of threads, as in joblib.

    Returns
    -------
    iterator
    """
    first = list(islice(arguments := iter(arguments), 3))
    if len(first) <= 2:
        yield from map(function, first)
        return
    arguments = chain(first, arguments)
    with one_blas_thread():
        start = perf_counter()
        for argument in arguments:
            yield function(argument)
            if perf_counter() - start > ALONE:
                break
        n_jobs = effective_n_jobs(n_jobs)
        if n_jobs == 1 or current_thread().name.startswith(NAME):  # a thread waits for no other
            yield from map(function, arguments)
        else:
            yield from _in_pool(function, arguments, n_jobs)


def _in_pool(function, arguments, n_jobs):
    """Results in order, of at most two calls a thread at a time."""
    pool = _POOLS.get(n_jobs)
    if pool is None:
        pool = _POOLS.setdefault(n_jobs, ThreadPoolExecutor(n_jobs, NAME))
    waiting = deque(pool.submit(_quiet, function, one) for one in islice(arguments, 2 * n_jobs))
    try:
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(_quiet, function, one) for one in islice(arguments, 1))
            yield result
    finally:
        for call in waiting:
            call.cancel()


def _quiet(function, argument):
    """A call without warnings, which would tell of a value: a thread does not have what its caller
    said of them.
    """
    with np.errstate(all="ignore"):
        return function(argument)


def computed(task: Any) -> Any:
    """Value of a task of Dask; one that died with its workers is computed again.

    What goes wrong where the parts are made, such as a text that is cast to a number, may quote a
    value, and is not repeated.
    """
    for attempt in range(ATTEMPTS):
        try:
            return task.compute()
        except (OSError, MemoryError):
            raise
        except Exception as error:
            if type(error).__name__ not in ("KilledWorker", "CancelledError"):
                break
            if attempt == ATTEMPTS - 1:
                raise
    raise InvalidValues(INVALID_VALUES)
