"""Ledgers: parts, atomic checks across threads and processes, ownership of the file."""

import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from joblib import Parallel, delayed
from registry.processes import by_value, forked, needs_fork

from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.privacy import BudgetAccountant, Cost, charge
from skpriv.privacy._ledger._ledger import Ledger

by_value(__name__)

ONE = Cost.from_epsilon(1.0)


def record(ledger, name, cost, part=()):
    with ledger.transaction() as held:
        held.record(name, cost, part)


def test_records_in_order_and_adds_up():
    ledger = Ledger()
    assert ledger.total() == Cost()
    record(ledger, "a", ONE)
    record(ledger, "b", Cost.from_mu(float("inf")), (("", "north"), ("site", "1")))
    assert [charge[:3] for charge in ledger.charges()] == [
        ("a", "", ONE),
        ("b", "north/1", Cost.from_mu(float("inf"))),
    ]
    assert ledger.total() == ONE + Cost.from_mu(float("inf"))
    with pytest.raises(KeyError), ledger.transaction() as held:
        held.record("c", ONE, ())
        raise KeyError
    assert len(ledger.charges()) == 2  # what is cut short leaves no trace


def test_parts_of_a_partition_compose_by_maximum_and_partitions_add_up():
    ledger = Ledger()

    def charge(epsilon, *part):
        record(ledger, "q", Cost.from_epsilon(epsilon), part)
        return ledger.total().pure

    assert charge(1, ("site", "north")) == 1
    assert charge(1, ("site", "south")) == 1
    assert charge(2, ("site", "south")) == 3  # within a part costs add up
    assert charge(5) == 8  # about all records
    # Another partition need not be aligned: a record may be in both of the dearest parts.
    assert charge(4, ("epoch", "1")) == 12
    assert charge(4, ("epoch", "2")) == 12
    # A part may be divided again.
    assert charge(1, ("site", "north"), ("epoch", "1")) == 12
    assert charge(2, ("site", "north"), ("epoch", "2")) == 12
    assert charge(1, ("site", "north"), ("epoch", "2")) == 13


def _charge_many(accountant):
    """How many of ten charges are recorded."""
    done = 0
    with accountant:
        for _ in range(10):
            with suppress(BudgetExceeded):
                charge(ONE, "x")
                done += 1
    return done


def test_check_and_record_are_one_step_across_threads_and_processes():
    for run in (
        lambda jobs: sum(ThreadPoolExecutor(4).map(_charge_many, jobs)),
        lambda jobs: sum(Parallel(n_jobs=2)(delayed(_charge_many)(job) for job in jobs)),
    ):
        accountant = BudgetAccountant(25.0)
        assert run([accountant] * 4) == len(accountant.charges) == accountant.spent.epsilon == 25


def test_a_temporary_file_goes_with_its_owner_only():
    ledger = Ledger()
    record(ledger, "a", ONE)
    path, copy = ledger.path, pickle.loads(pickle.dumps(ledger))
    assert copy.total() == ONE
    del copy
    gc.collect()
    assert os.path.exists(path)
    copy = pickle.loads(pickle.dumps(ledger))
    del ledger
    gc.collect()
    assert not os.path.isfile(copy.path)
    assert not os.path.exists(os.path.dirname(path))
    for use in (copy.total, copy.charges, lambda: record(copy, "a", ONE)):
        with pytest.raises(PrivacyError, match=r"is gone.*clone"):
            use()
    assert not os.path.exists(path)


@needs_fork
def test_a_fork_shares_the_file_and_does_not_remove_it():
    ledgers = [Ledger()]

    def use_and_forget():
        record(ledgers[0], "child", ONE)
        ledgers.clear()
        gc.collect()

    assert forked(use_and_forget)
    assert [charge.name for charge in ledgers[0].charges()] == ["child"]


def test_a_given_path_lasts(tmp_path):
    path = tmp_path / "a name with % and #.sqlite"
    first = Ledger(path)
    record(first, "a", ONE)
    del first
    gc.collect()
    assert Ledger(path).total() == ONE


MARKS = [
    b"{}", b"[]", b'"x"', b"7", b"text", b'["a", "5"]', b'["a", 1, 2]', b"[1, 2]", b'["a", NaN]',
    b"\xff\xfe", b'["a", true]', b"[" * 20_000, b'["a", 1]' + b" " * 20_000,
]  # fmt: skip


@pytest.mark.parametrize("content", MARKS, ids=range(len(MARKS)))
def test_a_damaged_mark_is_told(content, tmp_path):
    path, mark = tmp_path / "ledger.db", tmp_path / "ledger.db.mark"
    ledger = Ledger(path)
    record(ledger, "a", ONE)
    mark.write_bytes(content)
    if content.startswith(b'["a", 1]'):  # a mark of another file, which says nothing of this one
        assert len(ledger.charges()) == 1
        return
    for use in (ledger.charges, lambda: record(ledger, "b", ONE)):
        with pytest.raises(PrivacyError, match="ledger.db.mark.*damaged.*remove the mark"):
            use()
    mark.unlink()
    record(ledger, "b", ONE)
    assert len(ledger.charges()) == 2 and mark.exists()


@pytest.mark.parametrize("with_mark", [False, True])
def test_a_copy_that_lacks_one_entry_is_refused(with_mark, tmp_path):
    """Also where its whole folder was put back, by the process that has made the entry."""
    path = tmp_path / "ledger.db"
    mark = tmp_path / "ledger.db.mark"
    record(Ledger(path), "a", ONE)
    before = path.read_bytes(), mark.read_bytes()
    record(Ledger(path), "b", ONE)
    path.write_bytes(before[0])
    if with_mark:
        mark.write_bytes(before[1])
    with pytest.raises(PrivacyError, match="lacks entries"):
        Ledger(path).charges()


@pytest.mark.parametrize("content", [b"", b"\0" * 60])
def test_a_mark_that_a_loss_of_power_has_emptied_is_none(content, tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    record(ledger, "a", ONE)
    (tmp_path / "ledger.db.mark").write_bytes(content)
    record(ledger, "b", ONE)
    assert len(ledger.charges()) == 2


@pytest.mark.parametrize("faster", [False, True])
def test_where_no_links_are_no_new_file_takes_the_place_of_another(faster, tmp_path, monkeypatch):
    """A file that another process had made in the meantime was replaced, with its charges."""
    path = tmp_path / "ledger.db"
    monkeypatch.setattr("os.link", lambda *paths: (_ for _ in ()).throw(OSError("no links")))
    if faster:
        record(Ledger(path), "a", ONE)
        monkeypatch.setattr(
            "os.path.isfile", lambda path, known=[False]: known.pop() if known else True
        )
    ledger = Ledger(path)
    record(ledger, "b", ONE)
    assert len(ledger.charges()) == 1 + faster
