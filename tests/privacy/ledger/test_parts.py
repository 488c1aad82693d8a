"""Parts of the data: they hold below where they were entered, and nowhere else."""

import asyncio
from contextlib import ExitStack, contextmanager

import pytest

from skpriv.privacy import BudgetAccountant, Cost, charge, parallel_part

ONE = Cost.from_epsilon(1.0)


def parts(accountant):
    return [row.part for row in accountant.charges]


def test_a_partition_name_is_required(accountant):
    with pytest.raises(TypeError, match="partition"):
        accountant.part("north")
    with pytest.raises(TypeError, match="partition"):
        parallel_part("north")


def test_accountants_of_one_ledger_that_disagree_on_the_part_charge_all_records(tmp_path):
    path = tmp_path / "ledger"
    with BudgetAccountant(9.0, ledger=path) as outer, BudgetAccountant(8.0, ledger=path) as inner:
        with outer.part("a", partition="p"), inner.part("b", partition="p"):
            charge(ONE, "fit")
        with outer.part("a", partition="p"), inner.part("a", partition="p"):
            charge(ONE, "fit")
    assert parts(outer) == ["", "a"]


def _jobs(accountant):
    with accountant.part("north", partition="sites"):
        charge(ONE, "in the generator")
        yield
        charge(ONE, "again")


def test_a_generator_keeps_its_part_to_itself(accountant):
    jobs = _jobs(accountant)
    next(jobs)
    charge(ONE, "meanwhile")
    with accountant.part("south", partition="sites"):
        charge(ONE, "other part")
        next(jobs, None)
    # Called from the south about the north, it is about no part that is known.
    assert parts(accountant) == ["north", "", "south", ""]


def test_an_abandoned_generator_leaves_nothing(accountant):
    jobs = _jobs(accountant)
    next(jobs)
    del jobs
    charge(ONE, "afterwards")
    assert parts(accountant) == ["north", ""]


def test_out_of_order_exits_take_away_the_own_part_alone(accountant):
    first = accountant.part("a", partition="p")
    second = accountant.part("b", partition="q")
    first.__enter__()
    second.__enter__()
    charge(ONE, "both")
    first.__exit__(None, None, None)
    charge(ONE, "second")
    second.__exit__(None, None, None)
    charge(ONE, "none")
    assert parts(accountant) == ["a/b", "b", ""]


def test_a_part_entered_by_a_function_ends_with_it(accountant):
    def enter():
        part = accountant.part("a", partition="p")
        part.__enter__()
        return part

    part = enter()
    charge(ONE, "about all")
    part.__exit__(None, None, None)
    assert parts(accountant) == [""]


def test_context_managers_of_users_pass_their_part_on(accountant):
    @contextmanager
    def site(name):
        with accountant.part(name, partition="sites"):
            yield

    @contextmanager
    def nested(name):
        with ExitStack() as stack:
            stack.enter_context(site(name))
            yield

    with nested("north"):
        charge(ONE, "x")
    with ExitStack() as stack:
        stack.enter_context(nested("south"))
        charge(ONE, "y")
    charge(ONE, "z")
    assert parts(accountant) == ["north", "south", ""]


def test_tasks_of_one_thread_have_parts_of_their_own(accountant):
    async def job(name):
        with accountant.part(name, partition="sites"):
            await asyncio.sleep(0)
            charge(ONE, name)
            await asyncio.sleep(0)
        charge(ONE, "end")

    async def both():
        await asyncio.gather(job("north"), job("south"))

    asyncio.run(both())
    assert parts(accountant) == ["north", "south", "", ""]


def test_deep_calls_and_exceptions(accountant):
    def deep(n):
        return deep(n - 1) if n else charge(ONE, "deep")

    with pytest.raises(KeyError), accountant.part("a", partition="p"):
        deep(50)
        raise KeyError
    charge(ONE, "after")
    assert parts(accountant) == ["a", ""]
