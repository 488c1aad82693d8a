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


OBJECTS = "no shape", "a shape"
IN_TURN = 2  # containers of libraries in which the fast suite tries an argument


def cases():
    """Each argument as each kind; as most containers of libraries, in turn, where tests are slow.

    A door that computes one container of one argument alone is found by three in five by the slow
    suite only.
    """
    containers = [kind for kind in SPIES if kind not in OBJECTS]
    for number, door in enumerate(WANTED):
        for place, kind in enumerate([*containers, *OBJECTS]):
            fast = kind in OBJECTS or (place - number) % len(containers) < IN_TURN
            marks = () if fast else pytest.mark.slow
            yield pytest.param(*door, kind, marks=marks, id="-".join((*door, kind)))


@pytest.mark.parametrize("name, argument, kind", cases())
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
