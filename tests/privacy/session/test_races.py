"""Nobody gets two answers for one share: not by threads, nor by a query that asks on its own."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic, sleep

import numpy as np
import pytest
from registry.processes import (
    forked, held_by_another_thread, needs_fork, of_threads, refused_in_a_fork,
)  # fmt: skip
from registry.totals import Total

from skpriv._sqlite import FORK_WAIT, Database
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Budget, BudgetAccountant, TurnLock, open_session, open_stream
from skpriv.records import as_rows

X, Y = np.zeros((50, 1)), np.ones(50)


class Asking(Total):
    """Asks the session for all that is left while its own share is being taken."""

    def __init__(self, session):
        self.session = session

    @property
    def sensitivity(self):
        if self.session is not None:
            session, self.session = self.session, None
            session.sum(Total(), 1.0)
        return 1.0


def together(ask, threads=4):
    """How many of several threads get an answer."""
    answers = []

    def run():
        with suppress(PrivacyError):
            answers.append(ask())

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return len(answers)


@pytest.fixture
def hasty_threads():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("privacy", ["central", "local"])
def test_one_thread_gets_the_whole_share(privacy, hasty_threads):
    for seed in range(20):
        session = open_session(privacy, X, Y, Budget(1.0, 1e-6), seed)
        assert together(lambda session=session: session.sum(Total(), 1.0)) == 1


def test_one_thread_gets_the_last_read(hasty_threads):
    for seed in range(20):
        stream = open_stream("central", Total(), Budget(1.0, 1e-6), 1, random_state=seed)
        stream.push(X, Y)
        assert together(stream.read) == 1


def test_a_query_cannot_ask_while_its_share_is_taken():
    session = open_session("central", X, Y, Budget(1.0, 1e-6), 0)
    with pytest.raises(PrivacyError, match="prepares another answer"):
        session.sum(Asking(session), 1.0)


def test_rows_do_not_say_that_they_were_paid_for():
    rows = as_rows(X, Y)
    with pytest.raises(AttributeError):
        rows.paid_for = True
    with BudgetAccountant(1.0, 1e-6) as accountant:
        open_session("central", rows, None, Budget(0.5, 1e-7), 0)
    assert accountant.spent.epsilon > 0.0


@needs_fork
@pytest.mark.parametrize("privacy", ["central", "local"])
def test_a_fork_of_a_session_refuses(privacy):
    session = open_session(privacy, X, Y, Budget(1.0, 1e-6))
    assert refused_in_a_fork(lambda: session.sum(Total(), 1.0))
    assert session.sum(Total(), 1.0).n == len(Y)


@needs_fork
def test_a_query_that_forks_has_one_answer():
    """The child would have another one, with other noise, for the same charge."""
    session, children, code = open_session("central", X, Y, Budget(1.0, 1e-6)), [], 1

    class Forking(Total):
        @property
        def sensitivity(self):
            children.extend(() if children else [os.fork()])
            return 1.0

    try:
        session.sum(Forking(), 1.0)
    except PrivacyError:
        code = 0
    finally:
        if children == [0]:
            os._exit(code)
    assert os.waitpid(*children, 0)[1] == 0 and code == 1


@needs_fork
@of_threads
def test_a_fork_does_not_wait_for_a_thread_that_it_does_not_have():
    session = open_session("central", X, Y, Budget(1.0, 1e-6))
    with held_by_another_thread(session._lock):
        assert refused_in_a_fork(lambda: session.sum(Total(), 1.0))
    stream, lock = open_stream("central", Total(), Budget(1.0, 1e-6), 2), TurnLock()
    vars(stream).update(_lock=lock, _read=lambda: lock._depth)
    assert stream.read()  # a read is a turn
    with held_by_another_thread(lock):
        assert refused_in_a_fork(stream.read)
        assert forked(lambda: open_stream("central", Total(), Budget(1.0, 1e-6), 2).read())
        # A new thread may get the number of the one that holds the lock
        assert refused_in_a_fork(lambda: ThreadPoolExecutor().submit(lock.__enter__).result())
    with lock:
        assert refused_in_a_fork(lock.__enter__)


@pytest.mark.parametrize("privacy", ["central", "aggregate"])
def test_a_stream_waits_for_who_asks_before_it(privacy):
    """Two that begin at once could both find the budget free, and pay for it once."""
    session = open_session(privacy, X, Y, Budget(1.0, 1e-6), 0)
    begun = []
    thread = threading.Thread(target=lambda: begun.append(session.stream(Total(), 4, batch=10)))
    with session._lock:  # as whoever asks holds it
        thread.start()
        thread.join(0.2)
        assert not begun and session.used == 0.0
        fresh = open_session(privacy, X, Y, Budget(1.0, 1e-6))
        assert session.report.devices == fresh.report.devices
    thread.join()
    assert len(begun) == 1 and session.used == 1.0


@of_threads
@needs_fork
@pytest.mark.parametrize("nested", [False, True])
def test_a_fork_waits_for_the_end_of_a_transaction(nested, tmp_path):
    """SQLite in the child would wait two minutes for a thread that only the parent has."""
    files = [Database(tmp_path / name, "note") for name in ("a.db", "b.db")]
    for file in files:
        file.prepare("CREATE TABLE IF NOT EXISTS notes (note TEXT)")
    entered = threading.Event()

    def hold():
        with files[0].transaction():
            entered.set()
            sleep(0.2)
            if nested:
                files[1].ask("SELECT * FROM notes")

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    begin = monotonic()
    assert forked(lambda: files[0].write("INSERT INTO notes VALUES ('child')"))
    assert monotonic() - begin < FORK_WAIT
    thread.join()
    assert files[0].ask("SELECT * FROM notes") == [("child",)]
