"""People who come back: what is learned from them, and what it costs them."""

import pickle
import sqlite3
from contextlib import closing
from functools import partial
from itertools import combinations
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from registry.estimators import ssp
from registry.replays import loss_of_copies, losses, numbered_answers, record_noise
from registry.spellings import NOBODY, SAME
from registry.totals import Total
from scipy.linalg import toeplitz
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skpriv import BudgetAccountant
from skpriv.bandits import (
    FLIPHAT, ActionElimination, BanditCombiner, EpochGreedy, LinSquareCB, LinUCB, Loop,
    OnlineLinUCB, RandomPolicy, SquareCB, load,
)  # fmt: skip
from skpriv.bandits._policy._visits import Visits
from skpriv.exceptions import PrivacyError
from skpriv.privacy import Budget, Cost, Numbering, open_stream

M = 3
COMMON = {"epsilon": 1.0, "delta": 1e-6, "max_visits": M, "random_state": 0}
SSP = ssp(epsilon=0.4, fit_intercept=False, random_state=0, channel="gaussian")
EPOCHS = {"max_visits": M, "schedule": 40, "random_state": 0}
POLICIES = {
    "factor": lambda: LinUCB(**COMMON),
    "phases": lambda: LinSquareCB(update_every=10, horizon=70, **COMMON),
    "local": lambda: LinUCB(privacy="local", channel="gaussian", **COMMON),
    "online": lambda: OnlineLinUCB(horizon=400, **COMMON),
    "EpochGreedy": lambda: EpochGreedy(SSP, **EPOCHS),
    "SquareCB": lambda: SquareCB(SSP, **EPOCHS),
    "elimination": lambda: ActionElimination(SSP, **EPOCHS),
}


@pytest.mark.parametrize("changes", [{"privacy": "central"}, {"epsilon": float("inf")}])
@pytest.mark.parametrize("privacy", ["local", "shuffle", "central"])
def test_changed_parameters_change_no_promise_to_a_person(privacy, changes):
    policy, contexts = LinUCB(**COMMON, privacy=privacy), np.zeros((4, 3, 2))
    promised = policy.update(contexts, [0] * 4, [0.0] * 4, users=range(4)).guarantee
    assert policy.set_params(**changes).guarantee == promised and promised.epsilon > 0.99


def worst(column, places):
    """Largest norm of a sum of columns of a Toeplitz factor, over all sets of so many places."""
    factor = toeplitz(column, np.zeros(len(column)))
    sets = combinations(range(len(column)), places)
    return max(np.linalg.norm(factor[:, list(chosen)].sum(axis=1)) for chosen in sets)


@pytest.mark.parametrize("n_reads", [1, 2, 5, 8, 11])
@pytest.mark.parametrize("places", [1, 2, 3, 4])
def test_the_cost_of_places_is_the_largest_of_all_placements(n_reads, places):
    budget = Budget(1.0, 1e-6)
    stream = open_stream("central", Total(), budget, n_reads, random_state=0, places=places)
    costs = [worst(stream.column, a) for a in range(1, min(places, n_reads) + 1)]
    exact, shared = costs[-1], max(c**2 / a for a, c in enumerate(costs, 1))
    # of streams that share the places, none pays more than its part; of one it is exact
    assert stream.sensitivity == pytest.approx(sqrt(places * shared))
    assert stream.sensitivity >= exact - 1e-9
    if places <= n_reads:
        assert stream.sensitivity == pytest.approx(exact)
        assert sqrt(places) - 1e-9 <= exact / costs[0] <= places + 1e-9


def test_streams_of_single_records_are_not_spread():
    with pytest.raises(ValueError, match="single records"):
        open_stream("local", Total(), Budget(1.0, 1e-6), 9, random_state=0, places=2)


def rounds(n, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((n, 3, 2)) / 2.0
    return contexts, rng.integers(0, 3, n), np.clip(contexts[:, 0, 0] * 2.0, -1.0, 1.0)


def run(make, data, users, monkeypatch, tape=None, size=9):
    (exact, answers), policy = record_noise(monkeypatch, tape), make()
    contexts, actions, rewards = data
    for start in range(0, len(rewards), size):
        part = slice(start, start + size)
        policy.act(contexts[part], users=users[part])
        policy.update(contexts[part], actions[part], rewards[part], users=users[part])
    return exact, answers, policy


@pytest.mark.parametrize("name", POLICIES)
def test_a_person_pays_no_more_than_is_said(name, monkeypatch):
    """All rounds of one person are replaced: a hundred of them, of which three are learned from."""
    n = 240
    data, rng = rounds(n), np.random.default_rng(1)
    users = rng.integers(1000, 2000, n).astype(object)
    mine = np.concatenate([np.arange(5, 80), np.arange(150, 175)])
    users[mine] = "me"
    first, tape, policy = run(POLICIES[name], data, users, monkeypatch)
    other = tuple(part.copy() for part in data)
    other[0][mine] = -4.0 * data[0][mine]
    other[2][mine] = np.where(data[2][mine] > 0, -1.0, 1.0)
    renamed = users.copy()
    renamed[mine] = "somebody else"
    second, _, again = run(POLICIES[name], other, renamed, monkeypatch, tape)
    guarantee = policy.guarantee
    assert guarantee.unit == "person" and str(M) in str(guarantee)
    promised = max(2.0 * cost.amount("zcdp") for cost in guarantee.costs)
    assert 0.0 < sum(losses(first, second)) <= promised
    assert policy.n_rounds_ == again.n_rounds_ == n


NOISY = [("central", 1e-6), ("aggregate", 1e-6), ("local", 1e-6), ("local", 0.0), ("shuffle", 1e-6)]


@pytest.mark.parametrize("privacy, delta", NOISY)
def test_the_promise_is_that_of_the_budget(privacy, delta):
    policy = LinUCB(**{**COMMON, "delta": delta, "privacy": privacy})
    aside = {"set_aside": (1.0, 1e-6)} if privacy == "shuffle" else {}
    currency = "pure" if delta == 0.0 else "gdp"
    with BudgetAccountant(1.0, max(delta, 1e-9), currency=currency, unit=("user", M), **aside) as a:
        before = policy.guarantee
        policy.act(np.zeros((1, 2, 2)))
        spent = a.spent
    assert before.unit == policy.guarantee.unit == "person"
    for told in (before, policy.guarantee, spent):
        assert told.epsilon == pytest.approx(1.0, rel=1e-6)
    assert policy.guarantee.delta <= max(delta, 1e-300) * 1.0001


@pytest.mark.parametrize("visits", [2, 5])
@pytest.mark.parametrize(
    "make",
    [
        lambda **own: FLIPHAT(epsilon=0.4, delta=1e-6, **own),
        *(
            partial(kind, clone(SSP).set_params(privacy=privacy, channel=channel))
            for kind in (EpochGreedy, SquareCB)
            for privacy, channel in [("central", "auto"), ("local", "gaussian"), ("local", "auto")]
        ),
    ],
)
def test_the_budget_of_an_oracle_is_that_of_a_person(make, visits):
    """Each fit has its part, by the currency in which it is paid."""
    policy = make(max_visits=visits, schedule=50)
    assert policy.guarantee.unit == "person"
    assert policy.guarantee.epsilon == pytest.approx(0.4, rel=1e-3)
    with BudgetAccountant(100.0, 1e-5, unit=("user", visits)) as accountant:
        data = rounds(100)
        policy.act(data[0])
        policy.update(*data, users=np.arange(100))
    assert policy.guarantee.epsilon == pytest.approx(0.4, rel=1e-3)
    assert len(accountant.charges) == 2 * visits  # a person may be in so many fits
    assert 0.0 < accountant.spent.epsilon < 0.41
    told = str(policy.privacy_report_).count(f"at most {visits} fits about each person")
    assert told == (visits > 1)
    assert policy.oracle_.epsilon > 0.99 * 0.4 / visits


def test_users_and_their_number_belong_together(tmp_path):
    contexts, actions, rewards = rounds(5)
    with pytest.raises(ValueError, match="max_visits="):
        LinUCB().act(contexts, users=range(5))
    policy = LinUCB(max_visits=2)
    with pytest.raises(NotFittedError, match="has not acted"):
        policy.privacy_report_
    policy.act(contexts)
    for users, message in ((None, "needs users"), (["a"], "shape")):
        with pytest.raises(ValueError, match=message):
            policy.update(contexts, actions, rewards, users=users)
    assert policy.n_rounds_ == 0
    with pytest.raises(ValueError, match="max_visits"):
        Loop(BanditCombiner([RandomPolicy()]), tmp_path / "service", max_visits=M)


def visits_in(folder):
    """Rounds of every person, as the file of the answers counts them."""
    (file,) = folder.glob("*.answers")
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute("SELECT count(*) FROM visits GROUP BY object, person")
        return [n for (n,) in found.fetchall()]


@pytest.mark.parametrize("name", ["factor", "phases", "SquareCB"])
def test_a_restored_service_knows_who_came_after_the_backup(name, tmp_path, monkeypatch):
    """Whatever branch learned from a person: the noisy answers of all pay for three rounds."""
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path / "state"))
    contexts, _, rewards = rounds(240)

    def serve(path, stop, start=0, backups=()):
        make = POLICIES[name]().set_params(max_visits=None)
        loop = Loop(make, tmp_path / path, max_visits=M)
        for k in range(start, stop, 5):
            if k in backups:
                loop.backup(tmp_path / f"copy {k}")
            names = [f"visit {k + j}" for j in range(5)]
            users = [
                "Ada Lovelace" if k % 10 == 0 else f"guest {k}",
                *(f"guest {name}" for name in names[1:]),
            ]
            loop.rank_many(names, contexts[k : k + 5], users=users)
            loop.reward_many(names, rewards[k : k + 5])
        assert not loop.troubles

    serve("service", stop=100, backups=(0, 20, 65))  # the first before anybody came
    for copy in (0, 20, 65):  # each of them goes beyond the others
        serve(f"copy {copy}", stop=110 + copy, start=copy)
    counts = visits_in(tmp_path / "state")
    assert max(counts) == M and counts.count(M) == 1
    for file in (tmp_path / "service", *(tmp_path / "state").iterdir()):
        assert b"Lovelace" not in file.read_bytes()
    again = Loop(POLICIES[name]().set_params(max_visits=None), tmp_path / "service", max_visits=M)
    assert again.policy.guarantee.unit == "person" and again.policy.n_rounds_ >= 80
    for nobody in (None, float("nan")):
        with pytest.raises(ValueError, match="who comes"):
            again.rank("nobody", contexts[0], user=nobody)


def answers_of_copies(sign, folder, monkeypatch):
    """Noisy answers of a policy and of copies of it, each of which goes beyond the others.

    The same person comes to all of them, in other rounds.
    """
    monkeypatch.setenv("SKPRIV_STATE", str(folder))
    contexts, actions, _ = rounds(400)
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    copies = {0: LinUCB(**COMMON)}
    copies[0].act(contexts[:1])
    for start, first, stop in ((0, 0, 120), (20, 120, 240), (40, 240, 400)):
        policy = copies[start]
        for k in range(start, stop, 10):
            if k in (20, 40) and start == 0:
                copies[k] = pickle.loads(pickle.dumps(policy))
            part = slice(k, k + 10)
            mine = (np.arange(k, k + 10) % 9 == 0) & (k >= first)
            users = [f"me {sign}" if own else f"guest {k + at}" for at, own in enumerate(mine)]
            policy.update(contexts[part], actions[part], np.where(mine, sign, 1.0), users=users)
    return numbered_answers(folder), policy._sums._streams[0].noise.scale


def paid_by_copies(tmp_path, monkeypatch):
    first, scale = answers_of_copies(1.0, tmp_path / "first", monkeypatch)
    second, _ = answers_of_copies(-1.0, tmp_path / "second", monkeypatch)
    assert len(first) == 19
    return loss_of_copies(first, second, scale)


def test_the_answers_of_all_copies_move_by_what_was_said(tmp_path, monkeypatch):
    """One person is replaced, who comes to a policy and to its backups, with the same draws."""
    promised = Budget(1.0, 1e-6).mu ** 2
    assert 0.0 < paid_by_copies(tmp_path, monkeypatch) <= promised
    # With counts that are forgotten a person pays for every round.
    admit = Numbering.admit
    monkeypatch.setattr(
        Numbering, "admit", lambda self, people, number, most: admit(self, people, number, 99)
    )
    assert paid_by_copies(tmp_path / "again", monkeypatch) > promised


def test_counts_are_not_put_back_to_an_earlier_day(tmp_path, monkeypatch):
    """Who came to an open epoch is written down, though no answer was given since."""
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path))
    contexts, actions, rewards = rounds(60)
    policy = pickle.loads(pickle.dumps(POLICIES["SquareCB"]()))
    policy.act(contexts)
    policy.save(tmp_path / "policy")
    policy.update(contexts[:20], actions[:20], rewards[:20], users=range(20))
    (file,) = tmp_path.glob("*.answers")
    older = file.read_bytes()
    policy.update(contexts[20:30], actions[20:30], rewards[20:30], users=range(20, 30))
    file.write_bytes(older)
    with pytest.raises(PrivacyError, match="put back"):
        policy.update(contexts[30:40], actions[30:40], rewards[30:40], users=range(30, 40))


def test_a_device_may_report_so_often_and_no_more():
    protocol = pytest.importorskip("skpriv.protocol")
    policy = LinUCB(
        epsilon=3.0, delta=0.0, privacy="local", channel="codebook", max_visits=2, random_state=0
    )
    state = policy.public_state(n_actions=2, n_features=2)
    assert policy.guarantee.unit == "person" and policy.guarantee.epsilon == pytest.approx(3.0)
    report = protocol.report(state, np.full((2, 2), 0.5), 1.0, user=7, action=0)
    policy.update_from_reports([(7, report), (7, report)])
    with pytest.raises(ValueError, match="2 times"):
        policy.update_from_reports([(7, report)])
    assert Cost.from_epsilon(1.5).pure == pytest.approx(policy._sums._streams[0].cost.pure)


def test_equal_numbers_are_one_person_and_what_is_missing_is_nobody():
    visits = Visits(1, Numbering())
    names = [{visits.hashed(user) for user in same} for same in SAME]
    assert all(len(found) == 1 and None not in found for found in names)
    assert len(set.union(*names)) == len(SAME)
    assert {visits.hashed(user) for user in NOBODY} == {None}


@pytest.mark.parametrize("again", [pd.Series([1, None]), [True, 8], ["1", 8], [np.int8(1), 8]])
@pytest.mark.parametrize("through_file", [False, True])
def test_a_person_written_in_another_way_is_not_learned_from_twice(
    again, through_file, tmp_path, monkeypatch
):
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path))
    policy = LinUCB(**{**COMMON, "max_visits": 1}, horizon=200, update_every=2)
    contexts, actions, rewards = np.full((2, 2, 3), 0.5), np.zeros(2, dtype=int), np.ones(2)
    policy.act(contexts, users=pd.Series([1, 2]))
    policy.update(contexts, actions, rewards, users=pd.Series([1, 2]))
    if through_file:
        policy.save(tmp_path / "policy")
        policy = load(tmp_path / "policy")
    policy.update(contexts, actions, rewards, users=again)
    stream = policy._sums._streams[0]
    assert stream.reads == 2 and stream._rates[0] == 1.0  # whose state is the newest increment
    newest, slower = stream._states[0].value, stream._states[1].value
    older = (slower - newest) / (1.0 - stream._rates[1])
    learned = again[1] == 8  # the other one is new, or nobody
    assert older.any() and bool(newest.any()) == learned
    if learned:
        np.testing.assert_allclose(older, 2.0 * newest, atol=1e-9)


class Broken(RandomPolicy):
    """A policy that takes its rounds and breaks afterwards, or breaks before it takes them."""

    n_rounds_, rounds_until_update_, _answer_number = 0, 10, 7

    def __init__(self, taken):
        self._visits, self.seen, self._taken = Visits(1, Numbering()), [], taken

    def _update(self, rows, rewards):
        self.seen.append(float(rows[0, 0]))
        error = RuntimeError("in the middle")
        if self._taken:
            self.n_rounds_, self.rounds_until_update_ = 1, 9
        raise error


@pytest.mark.parametrize("taken, second", [(True, 0.0), (False, 1.0)])
def test_a_visit_is_given_back_only_if_its_round_was_not_taken(taken, second):
    policy = Broken(taken)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            policy._update_parts(np.ones((1, 1)), np.ones(1), ["ann"])
    assert policy.seen == [1.0, second]
