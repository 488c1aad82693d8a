"""The total that stands in a ledger: it binds every caller, and belongs to one file alone."""

import copy
import pickle
import shutil
import sqlite3
from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context

import numpy as np
import pytest
from registry.processes import needs_fork

from skpriv._cli import main
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import (
    Budget,
    BudgetAccountant,
    Cost,
    Numbering,
    charge,
    charged_once,
    parallel_part,
)
from skpriv.privacy._ledger._accountant import activated, capture
from skpriv.privacy._ledger._ledger import LEDGER_VERSION, Ledger

HALF, ONE = Cost.from_epsilon(0.5), Cost.from_epsilon(1.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def sql(path, text, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(text, values).fetchall()


def test_a_caller_with_a_larger_total_is_bound_by_the_ledger(path, capsys):
    X, y = np.full((50, 1), 0.5), np.full(50, 0.5)
    fit = SSPRegressor(epsilon=40.0, delta=1e-6, data_norm=1.0, bounds_y=(0, 1)).fit
    assert main(["budget", str(path), "--epsilon", "2"]) == 0
    for caller in (
        BudgetAccountant(epsilon=50, ledger=path),
        BudgetAccountant(50.0, 1e-3, ledger=path),
        BudgetAccountant(50.0, 0.0, ledger=path),
        BudgetAccountant(float("inf"), 1e-6, ledger=path),
        BudgetAccountant(epsilon=50, ledger=Ledger(path)),
        pickle.loads(pickle.dumps(BudgetAccountant(50.0, 1e-6, ledger=path))),
    ):
        with caller, pytest.raises(BudgetExceeded, match="Nothing was released or charged"):
            fit(X, y)
        assert caller.charges == []
        assert caller.remaining.epsilon <= 2.0
    with pytest.raises(BudgetExceeded), Ledger(path).transaction() as held:
        held.record("x", Cost.from_mu(10.0), ())
    assert BudgetAccountant(epsilon=50, ledger=path).budget == Budget(2.0, 1e-6)


def test_a_caller_with_a_smaller_total_is_bound_by_its_own(path):
    BudgetAccountant(2.0, ledger=path)
    with BudgetAccountant(0.5, ledger=path) as smaller:
        charge(HALF, "a")
        with pytest.raises(BudgetExceeded):
            charge(HALF, "b")
    assert smaller.budget == Budget(0.5) and smaller.remaining == Budget(0.0)
    with BudgetAccountant(ledger=path) as rest:
        charge(ONE, "c")
    assert rest.budget == Budget(2.0) and rest.remaining == Budget(0.5)


def test_without_epsilon_the_ledger_says_all(path):
    first = BudgetAccountant(3.0, 1e-5, path, "zcdp", set_aside=(1.0, 1e-6))
    for taken in (BudgetAccountant(ledger=path), BudgetAccountant(None, None, path)):
        assert taken._limit == first._limit and taken.currency == "zcdp"
    # a total of one's own is counted in the ledger's currency too
    assert BudgetAccountant(9.0, ledger=path)._limit == first._limit
    with pytest.raises(ValueError, match="counts in 'zcdp'"):
        BudgetAccountant(1.0, 1e-6, path, "pure")
    with BudgetAccountant(9.0, 1e-5, path, set_aside=(8.0, 1e-6)):
        charge(Cost.from_budget(Budget(1.0, 1e-7)), "shuffled")
        with pytest.raises(BudgetExceeded, match="set_aside"):
            charge(Cost.from_budget(Budget(1.0, 1e-7)), "shuffled")


@pytest.mark.parametrize("make", [
    lambda path: BudgetAccountant(),
    lambda path: BudgetAccountant(ledger=path),
    lambda path: BudgetAccountant(delta=1e-6, ledger=path),
    lambda path: BudgetAccountant(ledger=Ledger(path)),
])  # fmt: skip
def test_without_any_total_there_is_no_accountant(make, path):
    with pytest.raises(ValueError, match="pass epsilon"):
        make(path)
    with BudgetAccountant(float("inf"), ledger=path):
        charge(ONE, "recorded alone")
    with pytest.raises(ValueError, match="pass epsilon"):
        BudgetAccountant(ledger=path)
    # what was recorded counts once there is a total
    assert BudgetAccountant(1.5, ledger=path).remaining == Budget(0.5)
    with BudgetAccountant(float("inf"), ledger=path), pytest.raises(BudgetExceeded):
        charge(ONE, "too much")


@needs_fork
def test_the_first_total_stands_whoever_comes_at_the_same_time(path):
    def first(epsilon):
        total = BudgetAccountant(epsilon, ledger=path).ledger.limit.budget
        path.with_name(f"of {epsilon}").write_text(str(total))

    workers = [get_context("fork").Process(target=first, args=(k,)) for k in (1.0, 2.0)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = {path.with_name(f"of {k}").read_text() for k in (1.0, 2.0)}
    assert found == {str(BudgetAccountant(ledger=path).budget)}


def _removed(path):
    path.unlink()
    BudgetAccountant(1.0, ledger=path)


def _put_back(path):
    shutil.copy(path.with_name("earlier"), path)


@pytest.mark.parametrize(
    "change, match", [(_removed, "removed and made again"), (_put_back, "lacks entries")]
)
def test_a_ledger_that_is_not_the_same_any_more_takes_no_charge(change, match, path):
    with BudgetAccountant(1.0, ledger=path) as accountant:
        shutil.copy(path, path.with_name("earlier"))
        charge(ONE, "all of it")
        change(path)
        handle = pickle.loads(pickle.dumps(capture()))
        with pytest.raises(PrivacyError, match=match):
            charge(HALF, "once more")
        with pytest.raises(PrivacyError, match=match), BudgetAccountant(1.0, ledger=path):
            charge(HALF, "under one that is opened now")
    with activated(handle), pytest.raises(PrivacyError, match=match):
        charge(HALF, "by a worker")
    with pytest.raises(PrivacyError, match=match):
        accountant.spent  # noqa: B018
    assert "ledger gone" in repr(accountant) and "ledger gone" in accountant._repr_html_()
    assert sql(path, "SELECT * FROM charges") == []


def test_what_was_spent_is_added_up_from_the_charges(path):
    with BudgetAccountant(2.0, ledger=path) as accountant:
        charge(ONE, "a")
    sql(path, "INSERT INTO charges SELECT * FROM charges")
    assert accountant.spent == BudgetAccountant(ledger=path).spent == Budget(2.0)
    sql(path, "UPDATE charges SET pure = NULL")  # what is no number is infinite
    assert accountant.spent == Budget(float("inf"))
    assert [row.cost.pure for row in accountant.charges] == [float("inf")] * 2
    with accountant, pytest.raises(BudgetExceeded):
        charge(HALF, "b")


def test_other_files_are_refused_with_a_clear_sentence(path, tmp_path):
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    sql(other, "CREATE TABLE charges (x)")  # as one of an older version has
    text.write_text("no ledger" * 100)
    BudgetAccountant(1.0, ledger=path)
    sql(path, f"PRAGMA user_version = {LEDGER_VERSION + 1}")
    for file, match in ((other, "is no ledger"), (text, "is no ledger"), (path, "a newer skpriv")):
        before = file.read_bytes()
        with pytest.raises(PrivacyError, match=match):
            BudgetAccountant(1.0, ledger=file)
        assert file.read_bytes() == before


def test_a_charge_keeps_who_when_and_what_for(path):
    before = datetime.now(UTC) - timedelta(seconds=1)
    with BudgetAccountant(9.0, ledger=path, who="a", purpose="May"):
        handle = pickle.loads(pickle.dumps(capture()))
        charge(HALF, "first")
        with BudgetAccountant(9.0, ledger=path, who="b", purpose="May"):
            charge(HALF, "second")
    with activated(handle):
        charge(HALF, "third")
    with BudgetAccountant(ledger=path) as accountant:
        charge(HALF, "fourth")
    said = [(row.name, row.who, row.purpose) for row in accountant.charges]
    assert said == [
        ("first", "a", "May"), ("second", "b", "May"), ("third", "a", "May"), ("fourth", "", "")
    ]  # fmt: skip
    for row in accountant.charges:
        assert before <= datetime.fromisoformat(row.when) <= datetime.now(UTC)


def test_answers_are_not_numbered_in_a_ledger_that_was_made_again(path):
    with BudgetAccountant(1.0, ledger=path):
        numbering = Numbering()
    other = copy.deepcopy(numbering)
    numbering.settle(0, np.array([[0.25]]))
    path.unlink()
    with BudgetAccountant(1.0, ledger=path):
        copy.deepcopy(Numbering())  # which makes the table of answers
    for use in (lambda: other.settle(0, np.array([[0.5]])), lambda: other.settle_made(1, 0.0, abs)):
        with pytest.raises(PrivacyError, match="made again"):
            use()


def test_of_copies_that_make_an_answer_at_once_the_first_one_counts(path):
    with BudgetAccountant(1.0, ledger=path):
        first = Numbering()
    second = copy.deepcopy(first)
    later = first.settle_made(0, "", lambda _: second.settle_made(0, "", lambda _: "sooner") + "!")
    assert later == "sooner"


def test_an_answer_that_died_is_charged_once(path):
    """Charge and answer are one record: what was charged and never seen costs no second time."""
    numbering = pickle.dumps(Numbering())

    def dies(_):
        charge(HALF, "fit")
        raise KeyboardInterrupt

    with BudgetAccountant(2.0, ledger=path) as accountant:
        for _ in range(4):
            with pytest.raises(KeyboardInterrupt):
                pickle.loads(numbering).settle_made(0, 0, dies)
        assert pickle.loads(numbering).settle_made(0, 0, lambda _: charge(HALF, "fit") or 7) == 7
        assert len(accountant.charges) == 1
        with charged_once("x"):  # two charges of one answer are two, and so is another price
            charge(HALF, "a")
            charge(HALF, "b")
        with charged_once("x"):
            charge(HALF, "a")
            charge(Cost.from_epsilon(0.25), "c")
    assert [row.name for row in accountant.charges] == ["fit", "a", "b", "c"]
    with BudgetAccountant(2.0) as other, charged_once("x"):  # each ledger has its own
        charge(HALF, "a")
    assert len(other.charges) == 1
    with BudgetAccountant(2.0) as divided:  # and so has each part of the data
        for name in ("a", "b", "a"):
            with parallel_part(name, partition=f"begun as {name}"), charged_once("x"):
                charge(HALF, name)
    assert [row.name for row in divided.charges] == ["a", "b"]


@pytest.mark.parametrize("column", [field.name for field in fields(Cost)])
def test_a_negative_charge_pays_nothing_back(column, path):
    """Who can write to the file must not make room for others: such a charge is infinite."""
    with BudgetAccountant(2.0, ledger=path) as accountant:
        charge(ONE, "a")
        charge(HALF, "b")
    sql(path, f"UPDATE charges SET {column} = CASE name WHEN 'a' THEN -0.1 ELSE 0.5 END")
    assert getattr(accountant.charges[0].cost, column) == float("inf")
    assert getattr(accountant.ledger.total(), column) == float("inf")
