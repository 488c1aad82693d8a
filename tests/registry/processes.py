"""Other processes: whether a function ends well in a fork, and functions that workers can have."""

import os
import signal
import sys
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from skpriv.exceptions import PrivacyError

try:
    import resource
except ImportError:  # of Unix alone
    resource = None
try:
    from joblib.externals import cloudpickle
except ImportError:  # newer versions of joblib depend on it instead
    import cloudpickle

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
needs_rlimit = pytest.mark.skipif(resource is None, reason="needs limits of Unix")
of_threads = pytest.mark.filterwarnings("ignore:This process .*multi-threaded:DeprecationWarning")


def forked(function):
    """Whether a function ends without an error in a fork of this process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(300)  # one that waits for a lock would wait for ever
            function()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@contextmanager
def largest_file(size):
    """No file of this process becomes larger, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an OSError takes its place
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def refused_in_a_fork(ask):
    """Whether what this process may ask is refused to a fork of it."""

    def refused():
        with pytest.raises(PrivacyError):
            ask()

    return forked(refused)


@contextmanager
def held_by_another_thread(lock):
    """A thread holds a lock, as it does while it works with what the lock is of."""
    taken, done = Event(), Event()

    def hold():
        with lock:
            taken.set()
            done.wait()

    thread = Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def by_value(module_name):
    """Pickle what a test file defines as it is: workers cannot import the file by this name."""
    cloudpickle.register_pickle_by_value(sys.modules[module_name])
    return cloudpickle
