"""Sessions: charge, then read; shares; chunks and threads."""

import copy
import pickle

import numpy as np
import pytest
from registry.estimators import line_data
from registry.refusals import uncharged

from skpriv import Budget, BudgetAccountant
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.privacy import MODELS, Procedure, Query, open_session
from skpriv.records import ArrayRows, _base as _records

BUDGET = Budget(1.0, 1e-6)
NOISY = ["central", "local", "shuffle"]


class Moments(Query):
    """Sum of y x' x; X is bounded by construction of the tests."""

    name, shape, sensitivity = "moments", (3, 3), 1.0

    def sum(self, X, y):
        return (X * y[:, None]).T @ X


class Unreadable:
    """Rows, or targets of this shape, of which only the number may be asked."""

    def __init__(self, *shape):
        self.shape = shape or (1000, 3)

    def __len__(self):
        return self.shape[0]

    def __getattr__(self, name):
        # Older narwhals look for the first one, to tell the kind of object; dtypes are public.
        if name in ("__dataframe__", "dtype", "type"):
            raise AttributeError(name)
        raise AssertionError(f"{name} of the private rows was read")

    def __getitem__(self, index):
        raise AssertionError("private rows were read")


@pytest.mark.parametrize("privacy", MODELS)
def test_opening_charges_and_reads_nothing(privacy):
    aside = (1.0, 1e-6) if privacy == "shuffle" else None
    with BudgetAccountant(2.0, 1e-6, set_aside=aside) as accountant:
        if privacy == "none":
            with pytest.raises(BudgetExceeded):
                open_session(privacy, Unreadable(), Unreadable(1000), BUDGET, 0, "who")
            assert accountant.charges == []
        else:
            open_session(privacy, Unreadable(), Unreadable(1000), BUDGET, 0, "who")
            (charge,) = accountant.charges
            assert charge.name == "who"
            assert charge.cost.epsilon(BUDGET.delta) == pytest.approx(BUDGET.epsilon, rel=1e-9)


@pytest.mark.parametrize("privacy", NOISY)
def test_a_refusal_reads_nothing(privacy):
    with uncharged("who asks for", BudgetExceeded, epsilon=0.01):
        open_session(privacy, Unreadable(), Unreadable(1000), BUDGET, 0, "who")


@pytest.mark.parametrize("privacy", NOISY)
@pytest.mark.parametrize("budget", [Budget(1.0), Budget(0.0, 0.0)], ids=str)
def test_no_room_for_gaussian_noise(privacy, budget):
    with uncharged("pass (delta in|a positive, finite epsilon)", PrivacyError):
        open_session(privacy, Unreadable(), Unreadable(1000), budget)


@pytest.mark.parametrize("privacy", MODELS)
def test_shares_add_up_to_at_most_one(privacy):
    session = open_session(privacy, *line_data(1000), BUDGET, 0)
    for share in (0.1, 0.2, 0.7):  # 0.1 + 0.2 + 0.7 > 1 in floating point
        session.sum(Moments(), share)
    session._rows = ArrayRows(Unreadable(), Unreadable(1000))
    for share in (1e-6, 0.5):
        with pytest.raises(PrivacyError, match="add up to at most 1"):
            session.sum(Moments(), share)
    assert len(session.report.rows) == 3


@pytest.mark.parametrize("privacy", MODELS)
@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_is_a_part(privacy, share):
    session = open_session(privacy, *line_data(1000), BUDGET, 0)
    session._rows = ArrayRows(Unreadable(), Unreadable(1000))
    with pytest.raises(PrivacyError, match="share=.* above 0.*left"):
        session.sum(Moments(), share)
    assert session.report.rows == []


def _exact(X, y):
    return ArrayRows(X, y).sum(Moments())


def test_compensation_keeps_small_rows_beside_large_ones(monkeypatch):
    monkeypatch.setattr(_records, "CHUNK_BYTES", 1)
    X = np.ones((64 * 4, 3))
    y = np.repeat([1e17, 1.0, 0.0, -1e17], 64)
    assert _exact(X, y)[0, 0] == 64.0


class Failing(Moments):
    def sum(self, X, y):
        raise ZeroDivisionError("in a thread")


def test_an_error_in_a_chunk_is_raised(monkeypatch):
    monkeypatch.setattr(_records, "CHUNK_BYTES", 1)
    with pytest.raises(ZeroDivisionError, match="in a thread"):
        open_session("central", *line_data(1000), BUDGET, 0).sum(Failing(), 1.0)


class Scores(Moments):
    """Bounded coordinate by coordinate only."""

    name, shape, norm, sensitivity = "scores", (3,), "linf", 1.0

    def sum(self, X, y):
        return np.clip(X, -1, 1).sum(axis=0)


class Whole(Procedure):
    """The sum itself, as a procedure."""

    name, sensitivity = "whole", 1.0

    def run(self, rows):
        return rows.sum(Moments())


@pytest.mark.parametrize("privacy", MODELS)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_sessions_are_not_copied(privacy, duplicate):
    """A copy would answer again, with fresh noise, for the same charge."""
    session = open_session(privacy, *line_data(1000), BUDGET, 0)
    with pytest.raises(PrivacyError, match="not copied or pickled"):
        duplicate(session)


REFUSED = [
    ("central", "gdp", BUDGET, lambda session: session.top(Scores(), 1, 0.5)),
    ("central", "gdp", BUDGET, lambda session: session.sum(Scores(), 0.5)),
    ("central", "zcdp", BUDGET, lambda session: session.sum(Scores(), 0.5)),
    ("central", "pure", Budget(1.0), lambda session: session.top(Scores(), 1, 0.5)),
    ("central", "pure", Budget(1.0), lambda session: session.sum(Moments(), 0.5)),
    ("central", "pure", Budget(1.0), lambda session: session.release(Whole(), 0.5)),
    # A delta lets no Gaussian noise into a pure session.
    ("local", "pure", BUDGET, lambda session: session.sum(Moments(), 0.5)),
    ("central", "pure", BUDGET, lambda session: session.release(Whole(), 0.5)),
    ("central", "pure", BUDGET, lambda session: session.stream(Moments(), 8)),
]


@pytest.mark.parametrize(("privacy", "currency", "budget", "ask"), REFUSED)
def test_a_session_keeps_to_its_currency(privacy, currency, budget, ask):
    """Shares of mu^2, of rho and of epsilon do not add up to one budget."""
    rows = ArrayRows(Unreadable(), Unreadable(1000))
    session = open_session(privacy, rows, None, budget, 0, currency=currency)
    with pytest.raises(PrivacyError, match="currency|in l2|mu above 0"):
        ask(session)
    assert session.report.rows == []
    if currency == "zcdp":
        session = open_session("central", *line_data(1000), budget, 0, currency=currency)
        session.top(Scores(), 1, 0.5)
        session.release(Whole(), 0.5)
        assert session.report.total.fits(budget)


def test_a_failed_answer_has_used_its_share():
    """What was read may have been seen: the share is taken before a row is."""
    session = open_session("central", *line_data(1000), BUDGET, 0)
    with pytest.raises(ZeroDivisionError):
        session.sum(Failing(), 0.9)
    with pytest.raises(PrivacyError, match="add up to at most 1"):
        session.sum(Moments(), 0.2)
