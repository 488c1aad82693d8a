"""Numbers at which something is refused, or certified, and what is asked a little beside them.

The check of a threshold that is only asked far from its number may be off by a factor. Each
line of `THRESHOLDS` is asked at (1 - 1e-4) and (1 + 1e-4) of it, or at whole numbers at it and
beside it. `found` finds the comparisons of the rooms on which a guarantee rests.
"""

import ast
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sizes import parsed

import skpriv
from skpriv import Budget, BudgetAccountant
from skpriv.audit._replay import Replay
from skpriv.bandits import private_off_policy_value
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import MODELS, Cost, GaussianNoise, Query, charge, open_session, prepaid
from skpriv.privacy._accounting import _lattice
from skpriv.privacy._amplification import two_level_delta
from skpriv.privacy._noise import _lattice as _noise
from skpriv.privacy._query import MOST_RECORDS, reordered
from skpriv.privacy._session._parts import split
from skpriv.protocol import Collector, DeviceLedger, report

CLOSE = 1e-4
PACKAGE = Path(skpriv.__file__).parent
ROOMS = ("audit", "privacy", "protocol", "_wire.py", "bandits/_off_policy.py")
N = 40


@dataclass(frozen=True)
class Threshold:
    """A number up to which something is accepted.

    Parameters
    ----------
    accepts : callable
        ``accepts(number)`` is true, or does not raise a `PrivacyError`, a `BudgetExceeded` or a
        `ValueError`.
    at : float
        An int is asked at itself and the next one.
    above : bool
        Whether it is the other way round: accepted from this number on.
    """

    accepts: Callable
    at: float
    above: bool = False

    def sides(self):
        """What should be accepted, and what refused."""
        if isinstance(self.at, int):
            return (self.at, self.at - 1) if self.above else (self.at, self.at + 1)
        low, high = self.at * (1.0 - CLOSE), self.at * (1.0 + CLOSE)
        return (high, low) if self.above else (low, high)

    def accepted(self, number):
        """Whether a number is accepted."""
        try:
            return self.accepts(number) is not False
        except (BudgetExceeded, PrivacyError, ValueError):
            return False


def raises_or_not(function, *given, **named):
    """Accepted unless it raises, whatever is returned."""
    function(*given, **named)
    return True


class Total(Query):
    """The sum of the targets."""

    name, shape, sensitivity, norm = "total", (1,), 1.0, "l2"

    def sum(self, X, y):
        return np.array([y.sum()])


def session(n=N, privacy="central"):
    """A session about n records."""
    return open_session(privacy, np.zeros((n, 1)), np.zeros(n), Budget(1.0, 1e-6), 0, "who")


def charged(epsilon):
    """A release of so much epsilon where the total is 1."""
    with BudgetAccountant(1.0, 1e-6):
        charge(Cost.from_mu(Budget(epsilon, 1e-6).mu), "who")
    return True


def charged_aside(epsilon):
    """A shuffled release of so much epsilon where a half is set aside for such."""
    with BudgetAccountant(1.0, 1e-6, set_aside=(0.5, 1e-6)):
        charge(Cost.from_budget(Budget(epsilon, 1e-6)), "who")
    return True


def louder(times):
    """A session whose model names a law that costs so many times the share."""
    law = MODELS["central"]._law
    with patch.object(MODELS["central"], "_law", lambda *a: GaussianNoise(law(*a).scale / times)):
        session().sum(Total(), 0.5)
    return True


def paid(mu):
    """A step that costs so much where 1 was paid for it."""
    with BudgetAccountant(9.0, 1e-6), prepaid(Cost.from_mu(1.0)):
        charge(Cost.from_mu(mu), "step")
    return True


def shares(last, divide=False, privacy="central"):
    """A half of a session, or of a part of it, and then this share."""
    asked = split(session(privacy=privacy), N)[0] if divide else session()
    asked.sum(Total(), 0.5)
    asked.sum(Total(), last)
    return True


def divided(n):
    """Parts of so many records, and of ten."""
    split(session(), n, 10)
    return True


# Devices: a task of epsilon 2, of one report or of a sum


@cache
def task(privacy):
    """The text of a task."""
    noise = {"delta": 0.0, "channel": "codebook"} if privacy == "local" else {"delta": 1e-6}
    model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=2.0, privacy=privacy, **noise)
    return Collector(model, n_users=300, seed=0, n_features=2).task


def answered(privacy, epsilon=99.0, largest=None, n_min=None, delta=None):
    """A device whose user has agreed to this answers; without a delta it keeps no ledger."""
    with tempfile.TemporaryDirectory() as folder:
        agreed = {} if n_min is None else {"n_min": n_min}
        ledger = None
        if delta is not None:
            ledger = DeviceLedger(Path(folder) / "mine.db", epsilon=epsilon, delta=delta, **agreed)
        report(task(privacy), [0.1, 0.2], 0.3, user=1, largest_epsilon=largest, ledger=ledger)
    return True


def summed_cost(delta=1e-6):
    """What a sum costs at the delta that was agreed to."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = DeviceLedger(Path(folder) / "mine.db", epsilon=99.0, delta=delta)
        report(task("aggregate"), [0.1, 0.2], 0.3, user=1, ledger=ledger)
        return float(ledger.spent.epsilon)


def covers(least_propensity):
    """Whether a value of 1, of which cut ratios leave .875, is said to be exact."""
    played = (np.random.RandomState(0).rand(20_000) < 0.25).astype(int)
    found = private_off_policy_value(
        np.ones(20_000, dtype=int), played, np.ones(20_000), np.where(played, 0.25, 0.75),
        epsilon=1e6, delta=0.5, max_weight=3.0, least_propensity=least_propensity, random_state=0,
    )  # fmt: skip
    return found.high < 0.95


def lattice_check(origin):
    _lattice.Lattice.check(None, origin, 1.0)
    return True


def two_levels(top):
    two_level_delta(0.1, 1.0, 100, top, 1e-6)
    return True


LOCAL = 1.0 / (1.0 + np.exp(-1.0))
THRESHOLDS = {
    "audit/_replay.py holds": Threshold(
        lambda cost: Replay(cost, Budget(2.0, 1e-6), Cost()).holds, 2.0
    ),
    "privacy/_accounting/_cost.py fits": Threshold(
        lambda epsilon: Cost.from_epsilon(epsilon).fits(Budget(1.0, 0.0)), 1.0
    ),
    "privacy/_accounting/_cost.py fits, of mu": Threshold(
        lambda times: Cost.from_mu(times * Budget(1.0, 1e-6).mu).fits(Budget(1.0, 1e-6)), 1.0
    ),
    "privacy/_ledger/_ledger.py check": Threshold(charged, 1.0),
    "privacy/_ledger/_ledger.py check, of what is set aside": Threshold(charged_aside, 0.5),
    "privacy/_ledger/_ledger.py __post_init__": Threshold(
        lambda epsilon: raises_or_not(BudgetAccountant, 1.0, 1e-6, set_aside=(epsilon, 1e-6)), 1.0
    ),
    "privacy/_ledger/_context.py take": Threshold(paid, 1.0),
    "privacy/_session/_base.py check_share": Threshold(shares, 0.5),
    "privacy/_session/_base.py _pay": Threshold(louder, 1.0),
    "privacy/_session/_base.py check_share, of a part": Threshold(
        partial(shares, divide=True), 0.5
    ),
    "privacy/_session/_base.py check_share, of users who answer once": Threshold(
        partial(shares, divide=True, privacy="local"), 0.5
    ),
    "privacy/_session/_parts.py split": Threshold(divided, N - 10),
    "privacy/_amplification.py two_level_delta": Threshold(two_levels, LOCAL),
    "privacy/_query.py reordered": Threshold(partial(raises_or_not, reordered), MOST_RECORDS),
    "privacy/_accounting/_lattice.py check": Threshold(
        lattice_check, float(_lattice.LARGEST_ENTRY)
    ),
    "privacy/_noise/_lattice.py discrete_gaussian": Threshold(
        lambda v: raises_or_not(_noise.discrete_gaussian, v, np.zeros(1)), 1, above=True
    ),
    "privacy/_noise/_lattice.py discrete_gaussian, largest": Threshold(
        lambda v: raises_or_not(_noise.discrete_gaussian, v, np.zeros(1)), _noise.LARGEST_VARIANCE
    ),
    "protocol/_device.py report": Threshold(
        lambda largest: answered("local", largest=largest), 2.0, above=True
    ),
    "protocol/_sums.py sum_report": Threshold(
        lambda largest: answered("aggregate", largest=largest, delta=1e-6),
        summed_cost(),
        above=True,
    ),
    "protocol/_ledger.py charge": Threshold(
        lambda epsilon: answered("local", epsilon, delta=0.0), 2.0, above=True
    ),
    "protocol/_ledger.py charge, of a sum": Threshold(
        lambda epsilon: answered("aggregate", epsilon, delta=1e-6), summed_cost(), above=True
    ),
    "bandits/_off_policy.py private_off_policy_value": Threshold(covers, 1.0 / 3.0, above=True),
}  # fmt: skip


# Comparisons of these rooms that are no threshold of a guarantee, or asked elsewhere.
COUNT = "a number of things, of which there is one at least"
RANGE = "the range of a parameter, which `test_parameters.py` asks"
FORM = "the form of a message, which tests of malicious ones draw"
TURN = "whose turn it is, which the tests of the room play through"
SEARCH = "a search by bisection, whose end is tested by the law that it is of"
NOT_ASKED = {
    "audit/_lower_bound.py _choose": "which of two tests is taken, on samples of its own",
    "privacy/_amplification.py amplified_epsilon": "from where on nothing is amplified",
    "privacy/_ledger/_accountant.py _cells": "what a notebook shows",
    "privacy/_ledger/_ledger.py _prepared": "the version of a file",
    "privacy/_noise/_codebook_law.py simulated_directions": "a draw",
    "privacy/_noise/_codebook_noise.py responses": "a draw",
    "privacy/_noise/_lattice.py _proposals": "a draw",
    "privacy/_noise/_lattice.py rounded": "a draw",
    "privacy/_session/_pieces.py _may_keep": "what fits into memory",
    "protocol/_record.py check_query": FORM,
    "protocol/_record.py check_size": "how much a device works, by public numbers",
    "_wire.py index_weights": FORM,
    "_wire.py read_report": FORM,
    "privacy/_accounting/_cost.py _check_parameter": RANGE,
    "privacy/_accounting/_cost.py zcdp_delta": SEARCH,
    "privacy/_accounting/_cost.py falls": SEARCH,
    "privacy/_accounting/_cost.py _nonnegative": RANGE,
    "privacy/_accounting/_cost.py __post_init__": RANGE,
    "privacy/_accounting/_guarantee.py check_gaussian": RANGE,
    "privacy/_accounting/_guarantee.py visited": COUNT,
    "privacy/_accounting/_lattice.py shares_needed": SEARCH,
    "privacy/_accounting/_lattice.py enough": SEARCH,
    "privacy/_accounting/_lattice.py calibrated": "whole bits: `test_lattice.py` asks each refusal",
    "privacy/_accounting/_lattice.py has_room": "how fine the grid is, not how much noise",
    "privacy/_amplification.py _largest_mu": SEARCH,
    "privacy/_amplification.py proves": SEARCH,
    "privacy/_amplification.py amplified": COUNT,
    "privacy/_amplification.py _counted": COUNT,
    "privacy/_ledger/_ledger.py __init__": "the version of a file",
    "privacy/_noise/_codebook_law.py __post_init__": COUNT,
    "privacy/_noise/_codebook_noise.py sent": "the sign of a response",
    "privacy/_noise/_laws.py calibrated": RANGE,
    "privacy/_session/_pieces.py holds": "places of records, which tests of pieces enumerate",
    "privacy/_session/_pieces.py subset": "places of records, which tests of pieces enumerate",
    "privacy/_session/_open.py _check": COUNT,
    "privacy/_stream.py __init__": COUNT,
    "privacy/_stream.py _read": TURN,
    "privacy/_stream.py check": COUNT,
    "protocol/_collector.py collect": TURN,
    "protocol/_device.py check_task": FORM,
    "protocol/_ledger.py __init__": RANGE,
    "protocol/_record.py _proper_weights": FORM,
    "protocol/_store.py n_features_of": COUNT,
    "protocol/_sums.py _check": FORM,
    "protocol/_sums.py _of_shuffler": FORM,
    "protocol/_sums.py repeat": TURN,
    "protocol/_sums.py _open_for": TURN,
}


def found():
    """Functions of these rooms that compare sizes, to raise or to answer yes or no."""
    order = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    places = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(ROOMS):
            continue
        functions = [
            node for node in ast.walk(parsed(path)[1]) if isinstance(node, ast.FunctionDef)
        ]
        for function in functions:
            for node in ast.walk(function):
                asks = isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body)
                value = node.value if isinstance(node, ast.Return | ast.Assign) else None
                if isinstance(value, ast.Call) and ast.unparse(value.func) == "bool":
                    value = value.args[0]
                says = isinstance(value, ast.Compare | ast.BoolOp)
                if asks or says:
                    parts = ast.walk(node.test if asks else value)
                    if any(isinstance(getattr(one, "ops", [0])[0], order) for one in parts):
                        places.add(f"{name} {function.name}")
    return places
