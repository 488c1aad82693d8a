"""Secure aggregation: a curator's noise and answers, and nobody who chooses."""

import numpy as np
import pytest
from registry.refusals import uncharged

from skpriv import Budget
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import (
    AdditiveRegressor,
    IHTRegressor,
    LinearRegression,
    ReweightedRegressor,
    SSPRegressor,
)
from skpriv.privacy import Devices, Query, open_session
from skpriv.records import ArrayRows

BUDGET = Budget(1.0, 1e-6)
rng = np.random.RandomState(0)
X = rng.uniform(-1.0, 1.0, size=(2000, 3))
Y = np.clip(X @ [1.0, -0.5, 0.0] + rng.uniform(-0.5, 0.5, size=2000), -2.0, 2.0)
PUBLIC = {"bounds_X": (-1.0, 1.0), "bounds_y": (-2.0, 2.0), "random_state": 0}
BALL = {"data_norm": 1.8, "bounds_y": (-2.0, 2.0), "random_state": 0}


class Moments(Query):
    """Sum of clipped rows."""

    name, shape, sensitivity = "rows", (3,), 2.0

    def sum(self, X, y):
        return np.clip(X, -0.5, 0.5).sum(axis=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: LinearRegression(privacy=p, **PUBLIC),
        lambda p: LinearRegression(privacy=p, calibration_size=0.2, **PUBLIC),
        lambda p: AdditiveRegressor(privacy=p, knots=3, **PUBLIC),
        lambda p: SSPRegressor(privacy=p, **BALL),
        lambda p: ReweightedRegressor(privacy=p, **BALL),
        lambda p: ReweightedRegressor(privacy=p, solver="sgd", **BALL),
    ],
)
def test_a_fit_is_a_curators(make):
    """From one seed the same coefficients and intervals: the laws are a curator's to 1e-8."""
    fits = [make(privacy).fit(X, Y) for privacy in ("central", "aggregate")]
    first, second = (fit.predict(X[:20]) for fit in fits)
    tolerance = 1e-5 if getattr(fits[0], "calibration_size", None) is None else 0.5
    np.testing.assert_allclose(first, second, atol=tolerance)
    if getattr(fits[0], "solver", "moments") == "moments" and tolerance < 0.1:
        low, high = zip(*(f.confidence_interval(X[:5], method="asymptotic") for f in fits))
        np.testing.assert_allclose(low[0], low[1], atol=1e-4)
        np.testing.assert_allclose(high[0], high[1], atol=1e-4)
    if tolerance > 0.1:
        low, high = fits[1].prediction_interval(X)
        assert ((low <= Y) & (Y <= high)).mean() > 0.93


def test_persons_are_protected_together():
    groups = np.arange(2000) // 4
    fit = LinearRegression(privacy="aggregate", **PUBLIC).fit(
        X, Y, groups=groups, max_rows_per_group=4
    )
    assert fit.privacy_report_.guarantee.unit == "person"
    assert "one person" in str(fit.privacy_report_.guarantee)
    assert "500 of 500 devices" in str(fit.privacy_report_.guarantee)


@pytest.mark.parametrize(
    "model",
    [
        IHTRegressor(privacy="aggregate", data_max=1.0, bounds_y=(-2, 2)),
        SSPRegressor(privacy="aggregate", **{**BALL, "random_state": None}, delta=0.0),
    ],
)
def test_what_needs_more_than_sums_is_refused(model):
    with uncharged(error=PrivacyError):
        model.fit(X, Y)


def test_the_session_answers_sums_alone():
    session = open_session("aggregate", X, Y, BUDGET, 0)
    for ask in (lambda: session.top(Moments(), 1, 0.1), lambda: session.release(Moments(), 0.1)):
        with pytest.raises(PrivacyError, match="has no curator.*privacy='central'"):
            ask()
    with pytest.raises(PrivacyError, match="Gaussian noise alone"):
        open_session("aggregate", X, Y, BUDGET, 0, currency="zcdp")
    answer = session.sum(Moments(), 0.5)
    central = open_session("central", X, Y, BUDGET, 0).noise(Moments(), 0.5)
    assert 1.0 <= answer.noise.scale / central.scale <= 1.0 + 1e-6
    assert session.piece(0.1) is None  # all users are in every sum


def test_no_record_is_sent_with_one_users_part_of_the_noise():
    session = open_session("aggregate", X, Y, BUDGET, 0)
    law = session.noise(Moments(), 1.0)
    with pytest.raises(PrivacyError, match="would show the record"):
        law.collected(Moments(), session, range(3), None)
    lattice = law.lattice  # what one user adds, over what a report of the budget would need
    assert lattice.step * lattice.variance**0.5 < 0.05 * 2.0 / BUDGET.mu


def test_numbers_far_from_zero_are_refused():
    class Far(Moments):
        def sum(self, X, y):
            return super().sum(X, y) + 1e3 * len(y)

    with pytest.raises(PrivacyError, match="too far from zero"):
        open_session("aggregate", X, Y, BUDGET, 0).sum(Far(), 0.5)


def test_shares_of_a_sum_are_as_secure_as_its_part_of_the_budget_asks():
    """The distances of all sums add up to the one that was paid for in delta."""

    class OnDevices(ArrayRows):
        devices = Devices(2000, 2000, "shuffled-shares")

        def shared_sum(self, query, lattice, security, prices, subset):
            asked.append(security)
            return np.zeros(3), 2000

    session, asked = open_session("aggregate", OnDevices(X, Y), None, BUDGET, 0), []
    for share in (0.25, 0.75):
        session.sum(Moments(), share)
    assert asked == [0.25 * 2.0**-40, 0.75 * 2.0**-40]
