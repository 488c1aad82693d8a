"""Accountants: refusal before anything is recorded, nesting, parts, threads, pickles."""

import copy
import json
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registry.interrupts import interrupted_at, moments
from sklearn.base import clone

from skpriv.exceptions import BudgetExceeded
from skpriv.privacy import Budget, BudgetAccountant, Cost, charge, parallel_part
from skpriv.privacy._ledger import _context
from skpriv.privacy._ledger._accountant import activated, capture

HALF, ONE = Cost.from_epsilon(0.5), Cost.from_epsilon(1.0)


def names(accountant):
    return [row.name for row in accountant.charges]


def test_charges_only_inside_the_block():
    accountant = BudgetAccountant(1.0)
    charge(ONE, "before")
    with accountant as entered:
        charge(HALF, "inside")
    charge(ONE, "after")
    with pytest.raises(KeyError), accountant:
        raise KeyError
    charge(HALF, "after an error")
    assert entered is accountant
    assert names(accountant) == ["inside"]
    assert accountant.spent == accountant.remaining == Budget(0.5)


CONTEXT = ("privacy/_ledger/_context.py",)


def entered():
    """How often accountants of this process are entered, and what descendants are told of them."""
    name = f"{_context.identity(os.getpid())}.json"
    files = [folder / name for folder in _context.folders() if (folder / name).exists()]
    return len(_context._stack), sum(len(json.loads(file.read_text())) for file in files)


@pytest.fixture
def aside(monkeypatch):
    """Runs a function in a thread of its own, with a lock of its own.

    After an interrupt by tracing, `with` may keep a lock, and a thread an error that was handled.
    """

    def run(function):
        with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
            patch.setattr(_context, "_lock", threading.RLock())
            pool.submit(function).result()

    return run


# An interrupt may leave a file open, which is closed as its object ends.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("outer", [0, 1])
def test_a_block_that_is_interrupted_as_it_ends_has_ended(outer, aside):
    """Once, and not one more that is around it; an interrupt in its first line comes before it."""
    accountant = BudgetAccountant(1.0)

    def interrupted():
        accountant.__enter__()
        others = moments(accountant.__exit__, CONTEXT)[1:]
        assert len(others) > 5
        for moment in others:
            accountant.__enter__()
            assert interrupted_at(accountant.__exit__, CONTEXT, moment)
            assert entered() == (outer, outer)

    with accountant if outer else nullcontext():
        aside(interrupted)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("outer", [0, 1])
def test_a_block_that_is_interrupted_as_it_begins_has_not_begun(outer, aside):
    accountant = BudgetAccountant(1.0)

    def interrupted():
        every = moments(accountant.__enter__, CONTEXT)
        accountant.__exit__()
        assert len(every) > 5
        for moment in every:
            assert interrupted_at(accountant.__enter__, CONTEXT, moment)
            assert entered() == (outer, outer)

    with accountant if outer else nullcontext():
        aside(interrupted)


def test_refusal_names_what_was_asked_what_remains_and_the_remedy():
    with BudgetAccountant(1.0) as accountant:
        charge(HALF, "first")
        with pytest.raises(BudgetExceeded) as caught:
            charge(ONE, "LayeredRegressor")
        charge(HALF, "second")
    message = str(caught.value)
    assert message.startswith("LayeredRegressor asks for Budget(epsilon=1.0, delta=0.0)")
    assert "but Budget(epsilon=0.5, delta=0.0) remains of Budget(epsilon=1.0" in message
    assert "smaller epsilon" in message
    assert names(accountant) == ["first", "second"]
    assert accountant.remaining == Budget(0.0)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost.from_mu(0.1), "asks for a delta above 0, .*for example delta=1e-6"),
        (Cost.from_mu(float("inf")), "an infinite epsilon"),
    ],
)
def test_refusal_of_what_no_budget_can_hold(cost, text):
    with BudgetAccountant(1.0), pytest.raises(BudgetExceeded, match=text):
        charge(cost, "x")


@pytest.mark.parametrize(
    ("cost", "remedy"),
    [
        (Cost(approximate=0.5), "set_aside=(1.5, 1e-06) or more"),
        (Cost(delta=1e-7), "set_aside=(1, 1.1e-06) or more"),
        (Cost.from_epsilon(4.0), "for a pure epsilon=4,"),
        (Cost.from_epsilon(4.0), "currency='pure' adds up epsilons"),
    ],
)
def test_refusal_says_what_would_pay(cost, remedy):
    with BudgetAccountant(2.0, 1e-5, set_aside=(1.0, 1e-6)) as accountant:
        charge(Cost.from_budget(Budget(1.0, 1e-6)), "first")
        with pytest.raises(BudgetExceeded) as caught:
            charge(cost, "x")
    assert remedy in str(caught.value)
    assert names(accountant) == ["first"]


def test_an_infinite_budget_records_and_refuses_nothing():
    with BudgetAccountant(float("inf")) as accountant:
        charge(Cost.from_mu(float("inf")), "not private")
        charge(ONE, "private")
    assert len(accountant.charges) == 2
    assert accountant.spent == accountant.remaining == Budget(float("inf"))


@settings(deadline=None)
@given(
    st.floats(0.05, 10.0),
    st.sampled_from([1e-9, 1e-6, 1e-3]),
    st.lists(st.tuples(st.sampled_from(["mu", "rho", "epsilon"]), st.floats(0, 0.3)), max_size=3),
)
def test_what_remains_still_fits_and_little_more_does(epsilon, delta, costs):
    makers = {"mu": Cost.from_mu, "rho": Cost.from_rho, "epsilon": Cost.from_epsilon}
    with BudgetAccountant(epsilon, delta) as accountant:
        for kind, amount in costs:
            try:
                charge(makers[kind](amount), kind)
            except BudgetExceeded:
                continue
        left = accountant.remaining
        if left.mu > 1e-3 * accountant.budget.mu:
            with pytest.raises(BudgetExceeded):
                charge(Cost.from_mu(left.mu * 1.001), "too much")
        charge(Cost.from_mu(left.mu), "the rest")
    assert accountant.spent.epsilon <= epsilon * (1 + 1e-6)
    assert accountant.remaining.mu <= 1e-3 * accountant.budget.mu


def test_nested_accountants_all_record_or_none(tmp_path):
    for outer_epsilon, inner_epsilon in ((0.7, 2.0), (2.0, 0.7)):
        # Ledgers are charged in the order of their paths: each of the two refuses once.
        paths = tmp_path / f"a {outer_epsilon}", tmp_path / f"b {outer_epsilon}"
        with (
            BudgetAccountant(outer_epsilon, ledger=paths[0]) as outer,
            BudgetAccountant(inner_epsilon, ledger=paths[1]) as inner,
        ):
            charge(HALF, "both")
            with pytest.raises(BudgetExceeded):
                charge(HALF, "one of them refuses")
        assert names(outer) == names(inner) == ["both"]
        assert outer.spent == inner.spent == Budget(0.5)
    with outer:
        charge(HALF, "outer only")
    assert names(inner) == ["both"]


def test_entering_again_changes_nothing():
    accountant = BudgetAccountant(2.0)
    with accountant:
        with accountant, pickle.loads(pickle.dumps(accountant)):
            charge(HALF, "once")
        charge(HALF, "still active")
    charge(HALF, "not active")
    assert names(accountant) == ["once", "still active"]


def test_accountants_of_one_ledger_share_its_charges(tmp_path):
    path = tmp_path / "ledger"
    with BudgetAccountant(2.0, ledger=path) as outer, BudgetAccountant(1.0, ledger=path) as inner:
        charge(HALF, "recorded once")
        charge(HALF, "recorded once")
        with pytest.raises(BudgetExceeded):
            charge(HALF, "refused by the smaller budget")
    assert len(outer.charges) == 2
    assert outer.spent == inner.spent == Budget(1.0)
    with BudgetAccountant(2.0, ledger=path) as later:
        charge(ONE, "later")
        with pytest.raises(BudgetExceeded):
            charge(HALF, "too late")
    assert later.remaining == Budget(0.0)


def test_parts_compose_by_maximum():
    with BudgetAccountant(1.0) as accountant:
        for site in ("north", "south"):
            with accountant.part(site, partition="sites"):
                charge(HALF, site)
        assert accountant.spent == Budget(0.5)
        with accountant.part("north", partition="sites"):
            charge(HALF, "north")
            with pytest.raises(BudgetExceeded):
                charge(HALF, "north")
        with pytest.raises(BudgetExceeded):
            charge(HALF, "everywhere")
        with accountant.part("south", partition="sites"):
            charge(HALF, "south")
    assert [row.part for row in accountant.charges] == ["north", "south", "north", "south"]


def test_parallel_parts_are_for_all_accountants_and_one_partition():
    with BudgetAccountant(10.0) as outer, BudgetAccountant(10.0) as inner:
        for policy, dear in (("A", 1), ("B", 2)):
            for epoch in (1, 2):
                with parallel_part(epoch, partition=policy):
                    charge(ONE + ONE if epoch == dear else HALF, "oracle")
    # Epoch 1 of A may share records with epoch 2 of B: 2 + 2, and not max(2 + 0.5, 0.5 + 2).
    assert outer.spent == inner.spent == Budget(4.0)


def test_threads_are_charged_and_do_not_share_parts():
    with BudgetAccountant(10.0) as accountant, accountant.part("north", partition="sites"):
        charge(ONE, "here")
        with ThreadPoolExecutor() as pool:
            pool.submit(charge, ONE, "there")
    found = [(row.name, row.part) for row in accountant.charges]
    assert found == [("here", "north"), ("there", "")]
    assert accountant.spent == Budget(2.0)


def _job(handle):
    with activated(handle):
        charge(ONE, "job")


def test_a_handle_takes_the_part_along():
    with BudgetAccountant(10.0) as accountant, accountant.part("north", partition="sites"):
        handle = pickle.loads(pickle.dumps(capture()))
        with ThreadPoolExecutor() as pool:
            pool.submit(_job, handle)
        with parallel_part(1, partition="policy"):
            _job(handle)  # the part where the code is goes first
    assert [row.part for row in accountant.charges] == ["north", "north/1"]
    _job(handle)
    assert len(accountant.charges) == 3
    assert not capture()
    _job(capture())
    _job(None)
    assert len(accountant.charges) == 3


def test_a_handle_stays_active_until_the_last_job_has_ended():
    with BudgetAccountant(10.0) as accountant:
        handle = pickle.loads(pickle.dumps(capture()))
    first, second = activated(handle), activated(handle)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    charge(ONE, "second")
    second.__exit__(None, None, None)
    charge(ONE, "none")
    assert names(accountant) == ["second"]


def test_copies_are_the_accountant_itself():
    accountant = BudgetAccountant(1.0, 1e-6)
    for copied in (clone(accountant), copy.copy(accountant), copy.deepcopy([accountant])[0]):
        assert copied is accountant
    shared = pickle.loads(pickle.dumps(accountant))
    with shared:
        charge(Cost.from_mu(0.01), "through the copy")
    assert shared.charges == accountant.charges
    assert len(accountant.charges) == 1


def test_representations():
    accountant = BudgetAccountant(1.0)
    with accountant, accountant.part("<b>", partition="tags"):
        charge(HALF, "<i>")
    assert repr(accountant) == "BudgetAccountant(epsilon=1.0, delta=0.0, spent=0.5, charges=1)"
    page = accountant._repr_html_()
    assert "&lt;i&gt;" in page
    assert "&lt;b&gt;" in page
    assert "<i>" not in page
