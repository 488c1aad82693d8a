"""A shape that is found by evaluation is not public: nothing is computed before a charge."""

import re

import numpy as np
import pytest
from registry.door_makers import DOORS, POLICIES, SIMULATED, prepare
from registry.doors import RELEASES, releases, wanted
from registry.estimators import NOISY, bounded, targets
from registry.spies import SPIES

from skpriv import BudgetAccountant
from skpriv.linear_model import (
    AdditiveRegressor, IHTRegressor, ImproperSGDRegressor, LinearRegression, LogisticRegression,
)  # fmt: skip
from skpriv.model_selection import PrivateSearchCV

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


WIDE = 4_000  # features, of whose products a fit has more than a gigabyte
OF_SUMS = ("LinUCB", "LinSquareCB", "OnlineLinUCB", "BanditCombiner")  # the last has one of them


@pytest.fixture
def small_machine(monkeypatch):
    """No array has a gigabyte."""
    empty = np.empty

    def limited(shape, *args, **options):
        if 2.0**27 < np.prod(shape, dtype=float) < 2.0**60:  # beyond, NumPy's own error is another
            raise MemoryError("Unable to allocate it")
        return empty(shape, *args, **options)

    monkeypatch.setattr(np, "empty", limited)


def refused(call):
    """Whether a call ended for want of memory; then nothing was charged, and it says so."""
    with BudgetAccountant(1e6, 0.5, set_aside=(10.0, 0.1)) as accountant:
        try:
            call()
        except MemoryError as error:
            assert re.search("charged.*fewer features", str(error))
            assert not accountant.charges
            return True
    return False


@pytest.mark.usefixtures("small_machine")
@pytest.mark.filterwarnings("ignore::skpriv.exceptions.PrivacyWarning")  # of few records
@pytest.mark.parametrize("Estimator, privacy", [
    # Curves choose their knots by the noise of reports, which takes minutes for so many
    pair for pair in NOISY if pair[0] is not AdditiveRegressor or pair[1] == "central"
])  # fmt: skip
def test_what_a_machine_has_no_memory_for_is_refused_before_a_charge(Estimator, privacy):
    """By the number of features, which is public; vectors of them are no matter."""
    vectors = Estimator in (IHTRegressor, ImproperSGDRegressor)
    n = 100 if vectors else 400  # these fits go to their ends
    X = np.broadcast_to(np.zeros(1), (n, WIDE))
    y = targets(Estimator, np.zeros(n))
    model = bounded(Estimator, epsilon=1.0, delta=1e-6, privacy=privacy)
    if "instruments" in model.get_params():
        model.set_params(instruments=[0], endogenous=[1])
    assert refused(lambda: model.fit(X, y)) is not vectors


@pytest.mark.usefixtures("small_machine")
def test_classes_count_as_well_as_features():
    model = LogisticRegression(classes=list(range(11)), data_norm=1.0)
    wide = np.zeros((40, WIDE // 10))
    assert refused(lambda: model.fit(wide, np.zeros(40)))


@pytest.mark.usefixtures("small_machine")
@pytest.mark.parametrize("name", sorted(POLICIES))
def test_so_is_a_policy_with_too_many_weights(name):
    wide = np.zeros((1, 2, WIDE))
    assert refused(lambda: POLICIES[name]().act(wide)) is (name in OF_SUMS)
    if "shared" in POLICIES[name]().get_params():
        for many in (5_000, 10**9):  # of the latter no address is as large
            own = POLICIES[name]().set_params(shared=False, n_actions=many)
            assert refused(lambda own=own: own.act(np.zeros((1, 9))))
            assert refused(lambda own=own: own.update(np.zeros((1, 9)), [0], [0.0]))


@pytest.mark.usefixtures("small_machine")
@pytest.mark.filterwarnings("ignore::skpriv.exceptions.PrivacyWarning")  # of few records
def test_so_is_a_search():
    X = np.broadcast_to(np.zeros(1), (400, WIDE))
    model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1))
    search = PrivateSearchCV(model, {"clip": ["auto", "wide"]}, epsilon=1.0, delta=1e-6)
    assert refused(lambda: search.fit(X, np.zeros(400)))
