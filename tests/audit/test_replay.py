"""Replays: honest fits hold, near their claim, and every kind of leak is found."""

import warnings
from functools import partial

import numpy as np
import pytest
from registry.estimators import iht, reweighted, ssp
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.pipeline import make_pipeline

from skpriv import BudgetAccountant
from skpriv.audit import replay
from skpriv.audit._replay import event_cost, stream_cost
from skpriv.audit._tape import Draw, Event
from skpriv.bandits import LinUCB, SquareCB
from skpriv.exceptions import InvalidValues
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import (
    Budget, Cost, GaussianNoise, NoiseSource, Query, ResponseNoise, charge, open_session,
    open_stream,
)  # fmt: skip
from skpriv.records import INVALID_VALUES


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 129])
def test_every_policy_holds_for_the_first_and_last_user(private_policy, place, rounds):
    found = replay(private_policy, *rounds(place=place))
    assert found.holds, str(found)
    assert found.differences == []


def test_logged_actions(rounds):
    (contexts, rewards), (other, other_rewards) = rounds()
    actions = np.zeros(len(contexts), dtype=int)
    pair = [(c, actions, r[:, 0]) for c, r in ((contexts, rewards), (other, other_rewards))]
    found = replay(lambda: LinUCB(privacy="central", delta=1e-3, random_state=0), *pair)
    assert found.holds and found.epsilon > 0.5


def test_sparse_rows():
    X = sparse.csr_array(sparse.random(300, 8, density=0.3, random_state=np.random.RandomState(0)))
    y = np.ones(300)
    other = X.copy().tolil()
    other[5] = -1.0
    found = replay(lambda: iht(n_nonzero_coefs=2, random_state=0), (X, y), (other.tocsr(), y))
    assert found.holds and found.epsilon > 0.1


PAIR = [(np.zeros((50, 1)), np.append([value], np.zeros(49))) for value in (-1.0, 1.0)]


class Total(Query):
    """Sum of y clipped to [-1, 1], which moves by 2; with a wrong declaration, if asked for."""

    name, shape = "total", (1,)

    def __init__(self, sensitivity=2.0):
        self._sensitivity = sensitivity

    @property
    def sensitivity(self):
        return self._sensitivity

    def sum(self, X, y):
        return np.array([np.clip(y, -1.0, 1.0).sum()])


class Leaky(RegressorMixin, BaseEstimator):
    """An estimator with one hole of a kind."""

    def __init__(self, *, hole="", epsilon=1.0, delta=1e-6, privacy="central", random_state=0):
        self.hole = hole
        self.epsilon = epsilon
        self.delta = delta
        self.privacy = privacy
        self.random_state = random_state

    def fit(self, X, y):
        session = open_session(self.privacy, X, y, Budget(self.epsilon, self.delta), 0)
        declared = 1.0 if self.hole == "sensitivity" else 2.0
        if self.hole == "shape of a query" and y[0] > 0.0:
            declared = 3.0
        answer = session.sum(Total(declared), 0.5)
        self.mean_ = float(answer.value[0]) / answer.n
        if self.hole == "attribute":
            self.largest_ = float(y.max())
        if self.hole == "nested attribute":
            self.state_ = [{"rows": [1.0, float(y[0])]}]
        if self.hole == "warning" and y[0] > 0.0:
            warnings.warn("large target", stacklevel=2)
        if self.hole == "error" and y[0] > 0.0:
            raise ValueError("a target is large")
        if self.hole == "count" and y[0] > 0.0:
            session.sum(Total(), 0.25)
        if self.hole == "share":
            session.sum(Total(), 0.25 if y[0] > 0.0 else 0.3)
        if self.hole == "charge":
            charge(Cost.from_epsilon(0.2 if y[0] > 0.0 else 0.1), "more")
        if self.hole == "warning beside a refusal" and y[0] > 0.0:
            warnings.warn("large target", stacklevel=2)
        if self.hole == "attribute beside a refusal" and y[0] > 0.0:
            self.largest_ = float(y.max())
        if self.hole.endswith("refusal") and y[0] > 0.0:
            raise InvalidValues(INVALID_VALUES)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


HOLES = {
    "attribute": "attribute largest_",
    "nested attribute": "attribute state_[0]['rows'][1]",
    "warning": "warnings",
    "error": "error",
    "count": "answer 2 was not given",
    "share": "answer 2: share",
    "shape of a query": "answer 1: sensitivity",
    "charge": "charges",
    "warning beside a refusal": "warning",
    "attribute beside a refusal": "attribute largest_",
}


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("swap", [False, True])
def test_every_hole_is_found(hole, swap):
    found = replay(lambda: Leaky(hole=hole), *(PAIR[::-1] if swap else PAIR))
    assert not found.holds
    if not swap:
        assert any(text.startswith(HOLES[hole]) for text in found.differences), found.differences
    assert "FAILS" in str(found)


def test_an_honest_one_has_no_hole():
    found = replay(Leaky, *PAIR)
    assert found.holds and found.differences == []
    expected = Budget.from_mu(Budget(1.0, 1e-6).mu * np.sqrt(0.5), 1e-6).epsilon
    assert found.epsilon == pytest.approx(expected, rel=1e-6)


def test_an_answer_without_noise_is_not_free(monkeypatch):
    monkeypatch.setattr(NoiseSource, "add", lambda source, value, law: np.asarray(value))
    assert replay(Leaky, *PAIR).epsilon == np.inf

    def run(model, data):
        open_stream("none", Total(), Budget(np.inf, 0.0), 1, 0).push(*data).read()

    assert replay(Leaky, *PAIR, run=run).epsilon == np.inf


def test_a_person_of_several_reports_pays_each_by_its_own_budget():
    """Three shuffled reports of a third of the budget each are the claim, and not three of it."""
    rng, n, persons = np.random.RandomState(0), 600, 200
    pair = [(rng.uniform(-0.4, 0.4, size=(n, 3, 2)), rng.uniform(size=(n, 3)))]
    pair.append(tuple(part.copy() for part in pair[0]))
    pair[1][1][5::persons] = -1.0  # their rewards: whoever acts sees the own contexts
    users = np.arange(n) % persons

    def run(policy, data):
        for i in range(0, n, persons):
            some = slice(i, i + persons)
            actions = policy.act(data[0][some], users=users[some])
            rewards = data[1][some][np.arange(persons), actions]
            policy.update(data[0][some], actions, rewards, users=users[some])

    options = {"privacy": "shuffle", "delta": 1e-3, "max_visits": 3, "horizon": n}
    oracle = ssp(privacy="shuffle", delta=1e-3, channel="gaussian", random_state=0)
    for make in (
        lambda: LinUCB(**options, update_every=persons, random_state=0),
        lambda: SquareCB(oracle, schedule=persons, max_visits=3, random_state=0),
    ):
        found = replay(make, *pair, run=run, groups=users)
        assert found.holds and found.epsilon == pytest.approx(1.0, rel=1e-6), str(found)


@pytest.mark.parametrize("privacy", ["central", "aggregate", "local", "shuffle"])
def test_the_sensitivity_is_the_largest_change_of_a_stream_that_the_claim_allows(privacy):
    budget, changes = Budget(1.0, 1e-6), np.array([[2.0], [0.0], [0.0]])
    stream = open_stream(privacy, Total(), budget, 3, 0, batch=1000)
    paid, more = (stream_cost(stream, part * changes, budget).epsilon(1e-6) for part in (1, 1.01))
    assert paid == pytest.approx(1.0, rel=1e-5) and more > 1.001


def test_a_sensitivity_that_is_declared_too_small_costs_more():
    found = replay(lambda: Leaky(hole="sensitivity"), *PAIR)
    assert not found.holds and found.differences == []
    expected = Budget.from_mu(Budget(1.0, 1e-6).mu * 2.0 * np.sqrt(0.5), 1e-6).epsilon
    assert found.epsilon == pytest.approx(expected, rel=1e-6)


def test_rows_read_outside_of_a_session_are_found(records):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), ssp(random_state=0))
    found = replay(lambda: pipeline, *records(), claim=Budget(1.0, 1e-6))
    assert not found.holds
    assert any("StandardScaler" in text or "mean_" in text for text in found.differences)


def test_an_audit_of_exact_answers_claims_nothing(records):
    found = replay(lambda: ssp(privacy="none"), *records())
    assert found.claim.epsilon == found.epsilon == np.inf
    assert found.holds


def test_data_that_are_no_neighbours_are_refused(records):
    (X, y), (other, other_y) = records()
    with pytest.raises(ValueError, match="differ in 0 records"):
        replay(ssp, (X, y), (X, y))
    with pytest.raises(ValueError, match="differ in 2 records"):
        replay(ssp, (X, y), (X, np.append(-y[:2], y[2:])))
    with pytest.raises(ValueError, match="same number of records"):
        replay(ssp, (X, y), (X[1:], y[1:]))


def test_an_audit_is_charged_like_any_other_run(records):
    with BudgetAccountant(10.0, 1e-5) as accountant:
        replay(lambda: ssp(random_state=0), *records())
    assert len(accountant.charges) == 2


def test_no_model_that_was_never_fitted_holds(records):
    """An error of public numbers is the same on both data sets: nothing was audited."""
    make = partial(reweighted, privacy="local", random_state=0)
    with pytest.raises(ValueError, match="both runs ended.*n_samples=1 is too few"):
        replay(make, *records(n=1))
    with pytest.raises(ValueError, match="data_norm is required"):
        replay(lambda: SSPRegressor(bounds_y=(-1, 1)), *records())


class OwnNoise:
    """Least squares with a little noise of its own, and nothing else to be seen."""

    def fit(self, X, y):
        exact = np.linalg.lstsq(X, y, rcond=None)[0]
        self.coef_ = exact + np.random.default_rng().normal(0.0, 1e-3, exact.shape)


def test_noise_that_no_session_has_drawn_does_not_hold(records):
    found = replay(OwnNoise, *records(), claim=Budget(1.0, 1e-6))
    assert found.differences == ["attribute coef_"] and not found.holds


def test_a_draw_that_is_no_number_and_each_changed_report_are_paid():
    law = GaussianNoise(1.0)
    before, now = (Draw("add", np.array([value]), (law,), None) for value in (0.0, np.nan))
    first, second = (Event("draw", draws=[draw]) for draw in (before, now))
    assert event_cost(first, second, Budget(1.0, 1e-6)).gaussian == np.inf
    bit, records = ResponseNoise(1.0), (np.zeros((3, 1)), np.array([[1.0], [1.0], [0.0]]))
    sent = [Event("draw", draws=[Draw("responses", exact, (bit,), None)]) for exact in records]
    assert event_cost(*sent, Budget(1.0, 1e-6)).epsilon(0.0) == pytest.approx(2.0 * bit.log_ratio)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e300])
def test_changes_of_any_size_are_priced_where_numpy_raises(size):
    X, y = np.zeros((9, 1)), np.ones(9)
    other = np.vstack([[size], X[1:]])
    with np.errstate(all="raise"):
        assert replay(ssp, (X, y), (other, y)).holds


def test_a_pipeline_claims_what_its_last_step_does():
    X, y = np.zeros((60, 2)), np.zeros(60)
    other = np.append(1.0, y[1:])
    found = replay(lambda: make_pipeline(None, ssp()), (X, y), (X, other))
    assert found.claim == Budget(1.0, 1e-6) and found.holds


def test_a_replay_of_no_answer_says_that_none_was_tested(rounds):
    """A shuffler sends nothing on before its first batch is full."""
    D, D_prime = (tuple(part[:20] for part in both) for both in rounds(place=0))
    found = replay(lambda: LinUCB(privacy="shuffle", random_state=0), D, D_prime)
    assert found.answers == [] and "none was tested" in str(found)
    assert "holds" not in str(found)
