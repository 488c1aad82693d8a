"""Whatever reads a cell is silent: under every filter of warnings and every state of NumPy.

A warning or an error before the charge would answer a question about a single record, for nothing.
The doors are those of `registry/doors.py`, so that a new one is tried as it comes.
"""

import inspect
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from registry.door_makers import DOORS, SIMULATED, Clean, prepare
from registry.doors import public, wanted
from registry.refusals import charged
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant
from skpriv.exceptions import InvalidValues, PrivacyWarning
from skpriv.linear_model import SSPRegressor
from skpriv.preprocessing import BoundsScaler, FormulaEncoder, Numeric, Schema, TableEncoder
from skpriv.preprocessing._base import PublicTransformer
from skpriv.records import aloud, from_batches, silence

AUDITS = ("worst_pairs", "lower_bound", "replay")  # of rows that are made up
WANTED = sorted(
    door
    for door in wanted()[0]
    if door[0] not in AUDITS and not {door[0], door[0].split(".")[0]} & set(SIMULATED)
)
# Without noise, and so without a guarantee: the libraries that they ask refuse huge numbers.
NO_PRIVACY = ("EpsilonGreedy", "LassoBandit")
# Ends of ranges, next to them, far beyond, too small to be squared, and no numbers.
CELLS = [
    1.0, -1.0, np.nextafter(1.0, 2.0), 1e308, -1e308, 1e160, 5e-324, 1e-200, -0.0, np.inf, np.nan,
]  # fmt: skip
# Filters of warnings, NumPy's state, and the type of the array
STATES = [("error", "raise", float), ("always", "warn", object)]


class Replaced:
    """Cells of the last records of one argument."""

    def __init__(self, argument, dtype, cells):
        self.argument, self.dtype, self.cells = argument, dtype, cells

    def __call__(self, argument, array):
        if argument != self.argument:
            return array
        found = np.array(array, dtype=self.dtype)
        rows = found.reshape(len(found), -1) if found.ndim else found.reshape(1, 1)
        for row, cell in zip(rows[::-1], self.cells, strict=False):
            row[-1] = cell
        return found


def seen(name, given, filters, state):
    """What anybody sees of a call: its error, warnings, charges, and what was printed."""
    printed, error = StringIO(), None
    with (
        BudgetAccountant(1e6, 0.5) as accountant,
        warnings.catch_warnings(record=True) as told,
        np.errstate(all=state),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        warnings.simplefilter(filters)
        warnings.simplefilter("ignore", PrivacyWarning)  # of public facts: no row decides
        try:
            DOORS[name](given)
        except Exception as caught:
            error = caught
    words = {str(one.message) for one in told}
    return error, (type(error), str(error)), (words, len(accountant.charges), printed.getvalue())


def test_every_transformer_runs_in_the_guard_of_their_base_class():
    found = [
        kind for kind in public().values() if inspect.isclass(kind) and hasattr(kind, "transform")
    ]
    assert found
    for kind in found:
        assert issubclass(kind, PublicTransformer)
        assert kind.transform is PublicTransformer.transform


SCHEMA = {"a": Numeric(-1, 1), "b": Numeric(-1, 1)}
TRANSFORMERS = [
    TableEncoder(SCHEMA), FormulaEncoder("a + I(b**2)", SCHEMA), BoundsScaler((-1, 1)),
]  # fmt: skip


class PanicException(BaseException):
    """As polars raises it: no `Exception`."""


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("error", [ValueError, PanicException, FloatingPointError, Warning])
@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=lambda one: type(one).__name__)
def test_an_error_of_a_transformer_is_told_after_the_charge(transformer, error, lazy, monkeypatch):
    def encode(self, X):
        warnings.warn("HIV positive", error if error is Warning else UserWarning, stacklevel=1)
        raise error("HIV positive")

    monkeypatch.setattr(type(transformer), "_encoded", encode)
    X, y = pd.DataFrame(np.zeros((9, 2)), columns=["a", "b"]), np.zeros(9)
    rows = from_batches(lambda: [X], n=9) if lazy else X
    model = make_pipeline(clone(transformer), SSPRegressor(data_norm=1.0, bounds_y=(-1, 1)))
    with warnings.catch_warnings(record=True, action="always") as told, charged():
        model.fit(rows, y)
    assert not told


@pytest.mark.parametrize("name", ["read_target", "read_labels"])
def test_so_is_that_of_a_target(name, monkeypatch):
    def fail(self, series):
        raise ValueError("HIV positive")

    monkeypatch.setattr(Numeric, "encode", fail)
    schema = Schema({"y": Numeric(-1, 1)}, target="y")
    y = getattr(schema, name)(pd.DataFrame({"y": np.zeros(9)}))
    with charged():
        SSPRegressor(data_norm=1.0, bounds_y=(-1, 1)).fit(np.zeros((9, 2)), y)


def test_so_is_that_of_its_weights(monkeypatch):
    def fail(self, series):
        raise ValueError("HIV positive")

    monkeypatch.setattr(Numeric, "encode", fail)
    schema = Schema({"y": Numeric(-1, 1, missing="indicator")}, target="y")
    keywords = schema.weights(pd.DataFrame({"y": np.ones(9)}))
    assert not keywords["sample_weight"].any() and keywords["max_weight"] == 1.0


def test_what_is_public_is_heard_in_silence():
    with warnings.catch_warnings(record=True, action="always") as told, silence():
        warnings.warn("HIV positive", stacklevel=1)
        with aloud():
            warnings.warn("a name is missing", stacklevel=1)
        warnings.warn("HIV positive", stacklevel=1)
    assert [str(one.message) for one in told] == ["a name is missing"]


@pytest.fixture(autouse=True, scope="module")
def _fits():
    prepare()
    DOORS["report"](Clean())  # a device pays for a task once


@pytest.mark.parametrize("name, argument", WANTED, ids=lambda part: part)
def test_no_cell_is_heard(name, argument):
    for first, (filters, state, dtype) in enumerate(STATES):
        cells = CELLS[first:] + CELLS[:first]  # the first one is all that a single number can be
        _, clean, calm = seen(name, Replaced(argument, dtype, ()), filters, state)
        error, found, heard = seen(name, Replaced(argument, dtype, cells), filters, state)
        if isinstance(error, InvalidValues):  # it may be refused in the midst of what is paid
            assert heard[0] == calm[0] and heard[2] == calm[2]
            continue
        assert heard == calm
        assert found == clean or name.startswith(NO_PRIVACY)
