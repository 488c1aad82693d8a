"""A shape that is found by evaluation is not public: nothing is computed before a charge."""

import numpy as np
import pytest
from registry.door_makers import DOORS, SIMULATED, prepare
from registry.doors import RELEASES, releases, wanted
from registry.spies import SPIES

from skpriv import BudgetAccountant

AUDITS = ("worst_pairs", "lower_bound", "replay")  # of rows that are made up
SERVICES = ("Loop",)  # they read what an application sends them, before there is a policy
WANTED = sorted(
    door
    for door in wanted()[0]
    if releases(door[0], (*RELEASES, "act", "rank", "probabilities"))
    and not {door[0], door[0].split(".")[0]} & {*SIMULATED, *AUDITS, *SERVICES}
)


class Spied:
    """One argument is a spy."""

    def __init__(self, argument, make):
        self.argument, self.make = argument, make

    def __call__(self, argument, array):
        return self.make(array) if argument == self.argument else array


@pytest.fixture(autouse=True, scope="module")
def _fits():
    prepare()


@pytest.mark.parametrize("kind", SPIES)
@pytest.mark.parametrize("name, argument", WANTED, ids=lambda part: part)
def test_nothing_is_computed_before_the_charge(name, argument, kind):
    early = []
    with BudgetAccountant(1e6, 0.5) as accountant:

        def note(how):
            if not accountant.charges:
                early.append(how)

        def make(array):
            if np.ndim(array) not in (1, 2) and kind not in ("no shape", "a shape"):
                pytest.skip("no table has this shape")
            return SPIES[kind](array, note)

        try:
            DOORS[name](Spied(argument, make))
            error = None
        except (TypeError, ValueError) as caught:
            error = caught
        charges = len(accountant.charges)
    assert not early
    # A refusal comes first, and is free of charge; a policy has been charged when it acted
    assert error is None or not charges or name.endswith(".update") or name == "act", error
