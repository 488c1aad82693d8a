"""The privacy argument of the epoch policies, as far as code can keep it or break it."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from math import sqrt
from typing import ClassVar

import numpy as np
import pytest
from registry.estimators import reweighted, ssp
from registry.refusals import uncharged
from sklearn.base import clone

from skpriv.bandits import (
    FLIPHAT, ActionElimination, EpochGreedy, EpochSchedule, EpsilonGreedy, LinUCB, RandomPolicy,
    SquareCB,
)  # fmt: skip
from skpriv.bandits._policy._report import Epoch, EpochsReport
from skpriv.bandits._policy._draws import predicted
from skpriv.bandits._epochs._policy import epoch_length
from skpriv.exceptions import BudgetExceeded
from skpriv.linear_model import (
    LayeredRegressor, LinearRegression, LogisticRegression, ReweightedRegressor, SSPRegressor,
)  # fmt: skip
from skpriv.privacy import Budget, BudgetAccountant, Cost, Guarantee

SCHEDULE = (20, 30, 50)
classifier = partial(LogisticRegression, data_norm=1.0, classes=(0, 1))


def currency_of(policy):
    """In which one fit spends an accountant of its own budget exactly."""
    return "zcdp" if isinstance(policy, FLIPHAT) else "gdp"


@pytest.mark.parametrize("sizes", [[1], [7], [20], [19, 2], [49, 1], [200], [3, 100, 1]])
def test_epochs_are_disjoint_and_complete(make_rounds, recorder, sizes):
    """Whatever the batches: every row is fitted once, in order, in epochs of the schedule."""
    rounds, (oracle, log) = make_rounds(), recorder
    policy = EpochGreedy(oracle=oracle, schedule=SCHEDULE, random_state=0)
    actions = np.arange(200) % 5
    rewards = rounds.rewards(actions)
    policy.act(rounds.contexts[:1])
    start = turn = 0
    while start < 200:
        part = slice(start, start + sizes[turn % len(sizes)])
        policy.update(rounds.contexts[part], actions[part], rewards[part])
        start, turn = part.stop, turn + 1
    assert [len(y) for _, y in log] == [20, 30, 50, 50, 50]
    np.testing.assert_array_equal(
        np.concatenate([X for X, _ in log]), rounds.contexts[np.arange(200), actions]
    )
    np.testing.assert_array_equal(np.concatenate([y for _, y in log]), rewards)
    assert policy.epoch_ == 5
    assert policy.n_rounds_ == 200
    assert policy.rounds_until_update_ == 50
    assert not policy._batches  # forgotten


def test_a_run_costs_one_budget_and_two_runs_two(private_policy, make_rounds):
    rounds = make_rounds()
    with BudgetAccountant(10.0, 0.1, currency=currency_of(private_policy)) as accountant:
        rounds.play(private_policy, stop=100)
        once = accountant.spent.epsilon
        assert len(accountant.charges) == 3
        rounds.play(private_policy.reset())
        assert len(accountant.charges) == 3 + 5
        assert accountant.spent.epsilon > 1.2 * once
    report = private_policy.privacy_report_
    budget = private_policy._make_oracle()
    assert (report.budget.epsilon, report.budget.delta) == (budget.epsilon, budget.delta)
    assert report.total.fits(report.budget)
    # Epochs are charged in parallel, so the run costs what one epoch costs.
    assert report.total.epsilon(report.budget.delta) == pytest.approx(
        max(e.report.total.epsilon(report.budget.delta) for e in report.epochs)
    )
    spans = [epoch.rounds for epoch in report.epochs]
    assert spans == [(0, 20), (20, 50), (50, 100), (100, 150), (150, 200)]
    assert "joint differential privacy" in str(private_policy.guarantee)
    assert str(report.guarantee) in str(report)
    assert "150-199" in report._repr_html_()


def test_guarantees_before_the_first_round():
    local = EpochGreedy(oracle=ssp(epsilon=2.0, privacy="local"))
    assert str(local.guarantee).startswith("(epsilon=2, delta=1e-06) local differential privacy")
    for free in (
        EpochGreedy(oracle=ssp(privacy="none")),
        EpochGreedy(oracle=ssp(epsilon=float("inf"))),
        EpsilonGreedy(regressor=ssp()),
    ):
        assert free.guarantee == Guarantee.absent("user")
    assert "perfect" in str(RandomPolicy().guarantee)


def test_fits_that_share_rounds_add_up(make_rounds):
    regressor = ssp(epsilon=0.1, delta=1e-6, random_state=0)
    policy = EpsilonGreedy(regressor=regressor, schedule=50, random_state=0)
    with BudgetAccountant(epsilon=10.0, delta=1e-6) as accountant:
        make_rounds(100).play(policy)
        once = ssp(epsilon=0.1, delta=1e-6)
        assert accountant.spent.epsilon > 1.3 * once.epsilon
    assert policy.guarantee == policy.privacy_report_.guarantee
    assert not policy.guarantee.private
    assert policy.privacy_report_.total.epsilon(1e-6) == float("inf")


def test_exceeded_budget_changes_nothing(private_policy, make_rounds):
    rounds = make_rounds()
    rounds.play(private_policy, stop=15)
    before = pickle.dumps(private_policy.__getstate__())
    actions = np.zeros(185, dtype=int)
    with uncharged(error=BudgetExceeded, epsilon=1e-3):
        private_policy.update(rounds.contexts[15:], actions, rounds.noise[15:])
    assert pickle.dumps(private_policy.__getstate__()) == before
    assert private_policy.update(rounds.contexts[15:], actions, rounds.noise[15:]).epoch_ == 5


def test_oracle_refuses_short_epochs_before_it_is_charged(make_rounds):
    oracle = reweighted(privacy="local", random_state=0)
    short = EpochGreedy(oracle=oracle, schedule=1, random_state=0)
    with uncharged():
        make_rounds().play(short)
    assert (short.n_rounds_, short.epoch_) == (0, 0)


def test_secure_oracles_stay_secure(make_rounds):
    policy = EpochGreedy(oracle=ssp(random_state=None), schedule=50, random_state=0)
    make_rounds(100).play(policy)
    assert all(epoch.report.secure for epoch in policy.privacy_report_.epochs)


@pytest.mark.parametrize(
    "schedule, lengths",
    [
        ("doubling", [64, 128, 256, 512]),
        ("geometric", [64, 96, 144, 216]),
        ("fixed", [1000, 1000, 1000, 1000]),
        (7, [7, 7, 7, 7]),
        (np.int64(7), [7, 7, 7, 7]),
        ([3, 5], [3, 5, 5, 5]),
        (np.array([3, 5]), [3, 5, 5, 5]),
        (lambda j: 2**j, [1, 2, 4, 8]),
        (EpochSchedule(first=10, ratio=1.5), [10, 15, 22, 34]),
    ],
)
def test_schedules(schedule, lengths):
    assert [epoch_length(schedule, j) for j in range(4)] == lengths


@pytest.mark.parametrize(
    "schedule",
    ["weekly", 0, -1, True, [], [3, 0], [2.5], lambda j: 1.5, EpochSchedule(ratio=0.5), None],
)
def test_bad_schedules(schedule):
    policy = EpochGreedy(oracle=ssp(), schedule=schedule)
    with pytest.raises(ValueError):
        for epoch in range(2):
            policy.act(np.zeros((1, 2, 2)))
            epoch_length(schedule, epoch)


class Fails(SSPRegressor):
    """Fails at its second fit, before it is charged or when the answer has been given."""

    fits: ClassVar[list] = []
    charged: ClassVar[bool] = False

    def fit(self, X, y):
        self.fits.append(y)
        fails = len(self.fits) == 2
        if self.charged or not fails:
            super().fit(X, y)
        if fails:
            raise MemoryError("no room")
        return self


@pytest.mark.parametrize("charged", [False, True])
def test_a_fit_that_fails_is_made_again_only_if_nothing_was_charged(charged, make_rounds):
    """The error says which rounds were taken: given the others again, none is in two answers."""
    rounds, actions, rewards = make_rounds(), np.zeros(200, dtype=int), np.arange(200) / 200.0
    Fails.fits.clear()
    Fails.charged = charged
    oracle = Fails(data_norm=1.0, bounds_y=(-1, 1), random_state=0)
    policy = EpochGreedy(oracle=oracle, schedule=SCHEDULE, random_state=0)
    policy.act(rounds.contexts[:1])
    with BudgetAccountant(1.0, 1e-6) as accountant:
        policy.update(rounds.contexts[:15], actions[:15], rewards[:15])
        taken = 35 if charged else 5
        told = f"Of these 185 rounds, the first {taken} were taken"
        with pytest.raises(MemoryError, match=told) as caught:
            policy.update(rounds.contexts[15:], actions[15:], rewards[15:])
        assert caught.value.rounds_taken == taken
        assert (policy.n_rounds_, policy.epoch_, policy._filled) == (15 + taken, 1 + charged, 0)
        rest = slice(15 + taken, None)
        policy.update(rounds.contexts[rest], actions[rest], rewards[rest])
        assert accountant.spent.epsilon == pytest.approx(1.0)
    first, failed, *later = Fails.fits
    np.testing.assert_array_equal(failed, rewards[20:50])
    again = [] if charged else [failed]
    np.testing.assert_array_equal(np.concatenate(later), np.concatenate([*again, rewards[50:]]))
    assert (policy.n_rounds_, len(policy.privacy_report_.epochs)) == (200, 5)
    assert policy._n_pooled == 200 - 30 * charged


@pytest.mark.parametrize("apart", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_an_update_that_is_interrupted_has_taken_a_round_or_not(recorder, apart):
    """At each line of the policies in turn: no round is in two fits, and the error is right."""
    with ThreadPoolExecutor(1) as pool:  # an interrupted `except` stays open in its thread
        pool.submit(interrupt_lines, recorder, apart).result()


def interrupt_lines(recorder, apart):
    """Interrupt an update at each line, or at every fifth."""
    (oracle, log), contexts, rewards = recorder, np.ones((30, 2, 3)) / 2.0, np.arange(1, 31) / 64.0

    def give(start, stop):
        given = contexts[start:stop], np.zeros(stop - start, dtype=int), rewards[start:stop]
        policy.update(*given, users=range(start, stop))

    def interrupt(frame, event, argument):
        nonlocal left
        if "bandits" not in frame.f_code.co_filename:
            return None
        left -= event == "line"
        if not left:
            raise KeyboardInterrupt  # which ends the tracing, too
        return interrupt

    for line in count(1, apart):
        log.clear()
        policy = SquareCB(oracle, schedule=10, max_visits=1, random_state=0)
        policy.act(contexts)
        give(0, 7)
        left = line
        sys.settrace(interrupt)
        try:
            give(7, 14)
        except KeyboardInterrupt as error:
            taken = policy.n_rounds_ - 7
            assert taken in (0, 3, 7) and getattr(error, "rounds_taken", taken) == taken
        finally:
            sys.settrace(None)
        if left:
            break
        give(policy.n_rounds_, 30)
        found = np.concatenate([np.frombuffer(y) for y in {y.tobytes() for _, y in log}])
        assert len(np.unique(found[found > 0.0])) == sum(found > 0.0)
    assert line > 100


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_of_the_copies_of_a_policy_the_first_answers_for_an_epoch(make_rounds, copied):
    rounds, actions = make_rounds(), np.zeros(200, dtype=int)
    policy = EpochGreedy(oracle=ssp(), schedule=20, random_state=0)
    rounds.play(policy, stop=15)
    last = (rounds.contexts[15:20], actions[15:20], rounds.noise[15:20])
    copies = [copied(policy) for _ in range(5)]
    with BudgetAccountant(0.1, 1e-6), pytest.raises(BudgetExceeded):
        copies[0].update(*last)  # nothing was released: the epoch is still open
    assert copies[3].update(*last).epoch_ == 1
    with BudgetAccountant(1e-9) as accountant:  # no budget is left, and none is asked for
        for other in (policy, *copies[:3], copies[4]):
            other.update(last[0], last[1], -last[2])
            np.testing.assert_array_equal(other.oracle_.coef_, copies[3].oracle_.coef_)
    assert not accountant.charges
    assert copied(copies[3]).update(*(part[:1] for part in last)).n_rounds_ == 21


def test_an_answer_of_which_no_use_can_be_made_is_not_asked_for_again(make_rounds, recorder):
    rounds, (oracle, log) = make_rounds(), recorder
    policy = SquareCB(oracle=oracle, schedule=SCHEDULE, random_state=0)
    learn, failures = policy._learn, iter([None, ValueError("no use"), None, None, None])

    def learned(oracle, n_fitted):
        if failure := next(failures):
            raise failure
        learn(oracle, n_fitted)

    policy._learn = learned
    actions = policy.act(rounds.contexts)
    with pytest.raises(ValueError, match="(?s)no use.*the first 50 were taken"):
        policy.update(rounds.contexts, actions, rounds.noise)
    policy.update(rounds.contexts[50:], actions[50:], rounds.noise[50:])
    assert [len(y) for _, y in log] == [20, 30, 50, 50, 50]


def test_epochs_of_codebook_reports_are_pooled(make_rounds):
    """Reports by one code add up; what an oracle knows is told."""
    rounds = make_rounds()
    oracle = ssp(
        privacy="local", channel="codebook", epsilon=4.0, fit_intercept=False, random_state=0
    )
    policy = EpochGreedy(oracle=oracle, schedule=SCHEDULE, random_state=0)
    rounds.play(policy)
    assert policy.n_pooled_ == 200
    law = policy.oracle_._equations.law
    assert (law.reports, policy.oracle_._equations.n) == (200, 200)
    forgetful = clone(policy).set_params(forget=True)
    rounds.play(forgetful)
    assert forgetful.n_pooled_ == 50
    whole, last = (p.oracle_.confidence_interval(np.eye(3)) for p in (policy, forgetful))
    assert (whole.high - whole.low <= last.high - last.low).all()


def test_what_users_are_promised_who_come_again(make_rounds):
    """Group privacy: mu times m, locally mu times sqrt(m); of a budget alone, epsilon and delta."""
    mu = Budget(1.0, 1e-6).mu
    for privacy, channel, factor in (("central", "auto", 3.0), ("local", "gaussian", sqrt(3.0))):
        policy = LinUCB(epsilon=1.0, delta=1e-6, privacy=privacy, channel=channel, random_state=0)
        make_rounds().play(policy)
        once, thrice = policy.guarantee, policy.user_guarantee(3)
        assert (once.epsilon, thrice.delta) == (1.0, 1e-6)
        assert thrice.epsilon == pytest.approx(Cost.from_mu(factor * mu).epsilon(1e-6))
        assert "at most 3 rounds" in str(thrice) and "is in one round" in str(once)
        assert policy.user_guarantee(1) == once
    epochs = EpochGreedy(oracle=ssp(epsilon=1.0, delta=1e-6)).user_guarantee(3)
    assert (epochs.epsilon, epochs.delta) == pytest.approx((3.0, 3.0 * np.exp(2.0) * 1e-6))
    with pytest.raises(ValueError, match="visits"):
        policy.user_guarantee(0)
    assert not EpochGreedy(oracle=ssp(privacy="none")).user_guarantee(5).private


def test_actions_beyond_the_bounds_of_rewards_do_not_tie():
    """`predict` is clipped to ``bounds_y``; greedy actions are not those of clipped numbers."""
    X = np.random.RandomState(0).uniform(-1.0, 1.0, size=(20_000, 1))
    contexts = np.array([[[5.0], [9.0]]])
    for Estimator in (SSPRegressor, ReweightedRegressor):
        oracle = Estimator(data_norm=1.0, bounds_y=(0.0, 1.0), random_state=0)
        oracle.fit(X, np.clip(0.5 + 0.4 * X[:, 0], 0.0, 1.0))
        assert (oracle.predict(contexts[0]) == 1.0).all()
        assert np.diff(predicted(oracle, contexts)[0]) > 0.1


def test_a_run_is_no_more_private_than_its_weakest_epoch():
    X = np.random.RandomState(0).uniform(-0.5, 0.5, size=(200, 2))
    oracle = ssp(epsilon=9.0, delta=1e-6, random_state=0)
    spent = oracle.fit(X, X[:, 0]).privacy_report_
    promise = oracle.set_params(epsilon=1.0).fit(X, X[:, 0]).privacy_report_.guarantee
    promise = promise.protecting("user")
    report = EpochsReport("policy", promise, [Epoch((0, 200), spent)])
    assert promise.epsilon == 1.0 and report.guarantee.epsilon == report.budget.epsilon == 9.0
    assert f" {Budget(9.0, 1e-6).mu:.4g} " in str(report)  # what its epoch has spent
    assert EpochsReport("policy", promise, []).guarantee.epsilon == 1.0
    assert not EpochsReport("policy", promise, [Epoch((0, 200), None)]).guarantee.private


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (EpochGreedy(LinearRegression(bounds_X=(-1, 1))), "needs bounds_y, a public bound"),
        (EpochGreedy(LinearRegression(bounds_y=(-1, 1))), "needs bounds_X or data_norm, a public"),
        (EpochGreedy(SSPRegressor(bounds_y=(-1, 1))), "needs data_norm, a public bound"),
        (EpochGreedy(classifier(privacy="local")), "privacy='local' .*LogisticRegression"),
        (SquareCB(classifier(classes=("no", "yes"))), "possible rewards: pass numbers"),
        (ActionElimination(classifier()), "has asymptotic: pass the kind"),
        (ActionElimination(LayeredRegressor(), interval="posterior"), "has certified"),
    ],
)
def test_an_oracle_that_does_not_suit_is_refused_before_anybody_is_served(policy, message):
    with pytest.raises(ValueError, match=message):
        policy.act(np.zeros((2, 3, 4)))
    assert not hasattr(policy, "n_rounds_")


def test_an_action_that_comes_later_is_tried():
    """Nothing is known of it, and a prior of the size of the others' weights would hide that."""
    oracle = SSPRegressor(epsilon=5.0, data_norm=1.0, bounds_y=(0, 1), random_state=0)
    policy = EpochGreedy(oracle, shared=False, n_actions=3, schedule=500, random_state=0)
    rng, played = np.random.RandomState(0), 0
    for start in range(0, 4000, 100):
        X, mask = np.ones((100, 1)), np.array([True, True, start >= 1000])
        actions = policy.act(X, available=mask)
        played += int((actions == 2).sum())
        rewards = (rng.uniform(size=100) < np.array([0.5, 0.4, 0.9])[actions]).astype(float)
        policy.update(X, actions, rewards)
    assert played > 1000
