"""The memory of a service: every acknowledged event is learned once, in the order of the ranks."""

import multiprocessing
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from registry.worlds import Noting

from skpriv.bandits import LinUCB, Loop
from skpriv.bandits._service._store import Transaction
from skpriv.exceptions import PrivacyError


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def contexts(k):
    return np.full((2, 3), float(k))


def loop(tmp_path, **options):
    return Loop(Noting(random_state=0), tmp_path / "service.sqlite", **options)


def test_order_is_that_of_the_ranks(tmp_path):
    service = loop(tmp_path)
    for k in range(5):
        service.rank(f"e{k}", contexts(k))
    for k in (3, 1, 0, 4, 2):
        assert service.reward(f"e{k}", k / 10) == "taken"
    assert service.policy.seen == [(k, k / 10) for k in range(5)]
    assert (service.n_events, service.n_learned) == (5, 5)


def test_actions_may_come_and_go_between_rounds(tmp_path):
    service = loop(tmp_path, learn_every=3)
    for k, n_actions in enumerate((2, 4, 3)):
        service.rank(f"e{k}", np.full((n_actions, 3), float(k)))
        service.reward(f"e{k}", k / 10)
    assert service.policy.seen == [(k, k / 10) for k in range(3)]


def test_repeated_late_and_unknown(tmp_path):
    clock = Clock()
    service = loop(tmp_path, cutoff=10.0, default_reward=-1.0, clock=clock)
    first = service.rank("a", contexts(0))
    assert service.rank("a", contexts(0)) == first
    service.rank("b", contexts(1))
    assert service.reward("nobody", 1.0) == "unknown"
    assert service.reward("b", 0.5) == "taken"
    assert service.reward("b", 0.9) == "repeated"
    assert service.n_learned == 0  # a still waits
    clock.now = 10.5
    assert service.reward("a", 1.0) == "late"
    assert service.learn() == 2
    assert [reward for *_, reward in service.policy.seen] == [-1.0, 0.5]
    assert service.reward("b", 0.9) == "repeated"
    assert service.reward("a", 0.9) == "late"


def test_learned_events_leave_no_context(tmp_path):
    service = loop(tmp_path)
    service.rank("a", contexts(0.123456789))
    service.reward("a", 0.25)
    rows = service._store.ask("SELECT row, reward, user FROM events")
    assert rows == [(None, None, None)]


def test_a_restart_goes_on(tmp_path):
    service = loop(tmp_path)
    service.rank_many(["e0", "e1", "e2"], [contexts(k) for k in range(3)])
    service.reward("e0", 0.0)
    again = loop(tmp_path)
    again.reward_many(["e1", "e2"], [0.1, 0.2])
    assert [x for x, *_ in again.policy.seen] == [0, 1, 2]
    with pytest.raises(PrivacyError, match="another policy"):
        Loop(LinUCB(), tmp_path / "service.sqlite")
    with pytest.raises(ValueError, match="contexts have shape"):
        again.rank("e3", [contexts(3)])


def test_a_clock_that_goes_back_is_told_while_events_wait_for_it(tmp_path):
    clock = Clock()
    service = loop(tmp_path, clock=clock)
    service.rank("a", contexts(0))
    clock.now = -600.0
    assert service.status()["clock_behind"] == 600.0
    service.rank("b", contexts(1))
    assert service.status()["clock_behind"] == 600.0  # a waits for its time all the same
    service.reward("a", 1.0)
    service.reward("b", 1.0)
    assert service.status()["clock_behind"] == 0.0


def test_another_question_under_a_used_name_is_an_error(tmp_path):
    service = loop(tmp_path)
    rng = np.random.default_rng(0)
    asked = rng.standard_normal((4, 3))
    first = service.rank("a", asked, np.ones(4, bool))
    for _ in ("waiting", "learned"):
        assert service.rank("a", asked) == first
        others = asked.copy()
        others[(first[0] + 1) % 4] += 1.0  # none of them was played
        for again in ((asked[::-1],), (asked[:3],), (others,), (asked, np.arange(4) < 3)):
            with pytest.raises(ValueError, match="another question"):
                service.rank("a", *again)
        with pytest.raises(ValueError, match="another question"):
            service.rank("a", asked, k=2)
        service.reward("a", 1.0)
    assert service.n_learned == 1
    assert loop(tmp_path).rank("a", asked) == first  # the key is that of all workers
    own = Loop(LinUCB(bounds_y=(0, 1), shared=False, n_actions=3), tmp_path / "own", learn_every=9)
    first = own.rank("a", asked[0])
    assert own.rank("a", asked[0]) == first
    with pytest.raises(ValueError, match="another question"):
        own.rank("a", asked[1])


def test_a_hash_of_a_question_needs_a_key_that_the_file_does_not_have(tmp_path, monkeypatch):
    """Without it nobody finds out what was asked, and no service goes on that lost its answers."""
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path / "state"))
    service = loop(tmp_path)
    first = service.rank("a", contexts(1))
    content = (tmp_path / "service.sqlite").read_bytes()
    ((question,),) = service._store.ask("SELECT question FROM events")
    assert len(question) == 8 and len(service._key) == 32
    written = service._key, np.frombuffer(service._key, dtype=np.uint8).astype(float).tobytes()
    assert not any(key in content for key in written)
    (answers,) = (tmp_path / "state").glob("*.answers")
    answers.rename(tmp_path / "elsewhere")
    with pytest.raises(PrivacyError, match="gone.*Put the file back"):
        loop(tmp_path)
    assert service.rank("a", contexts(1)) == first and service.reward("a", 1.0) == "taken"


@pytest.mark.parametrize("shared", [True, False])
def test_errors_speak_of_the_shapes_that_rank_and_reward_take(shared, tmp_path):
    policy = LinUCB(bounds_y=(0, 1), shared=shared, n_actions=None if shared else 2)
    service = Loop(policy, tmp_path / "file")
    one = np.zeros((2, 3)) if shared else np.zeros(3)
    wrong, given = (np.zeros(3), "(3,)") if shared else (np.zeros((2, 3)), "(2, 3)")
    wanted = "(n_actions, n_features)" if shared else "(n_features,)"
    words = re.escape(f"contexts have shape {given} in each round, and must have {wanted}")
    for ask, asked in ((service.rank, ("a", wrong)), (service.rank_many, (["a"], wrong[None]))):
        with pytest.raises(ValueError, match=words):
            ask(*asked)
    with pytest.raises(ValueError, match=r"of bool of shape \(2,\), or"):
        service.rank("a", one, np.ones((2, 1), bool))
    service.rank("a", one)
    with pytest.raises(ValueError, match="3 features.*first"):
        service.rank("b", one[..., :2])
    for several in ([0.5], [0.5, 1.0]):
        with pytest.raises(ValueError, match="reward of shape"):
            service.reward("a", several)
    assert service.reward("a", np.float32(0.5)) == "taken" and service.n_events == 1


def test_an_error_in_learning_loses_nothing(tmp_path, monkeypatch):
    clock = Clock()
    service = loop(tmp_path, clock=clock)
    service.rank("a", contexts(0))
    monkeypatch.setattr(Noting, "_update", None)
    assert service.reward("a", 0.5) == "taken"
    ((when, sentence),) = service.troubles
    assert (when, service.status()["troubles"]) == (0.0, 1)
    assert "TypeError" in sentence and "tried again" in sentence
    service.rank("b", contexts(1))  # within a minute: it plays, and does not try
    assert service.n_learned == 0
    monkeypatch.undo()
    clock.now = 61.0
    service.rank("c", contexts(2))
    assert service.n_learned == len(service.policy.seen) == 1


@pytest.mark.parametrize("now", [-1e9, -100.0, 61.0, 1e9])
def test_learning_is_tried_again_whichever_way_the_clock_goes(now, tmp_path, monkeypatch):
    """A clock that had been ahead for a while kept a service from learning for as long."""
    clock = Clock()
    service = loop(tmp_path, clock=clock, cutoff=1e10)
    service.rank("a", contexts(0))
    monkeypatch.setattr(Noting, "_update", None)
    assert service.reward("a", 0.5) == "taken" and len(service.troubles) == 1
    monkeypatch.undo()
    clock.now = now
    service.rank("b", contexts(1))
    assert service.n_learned == 1 and len(service.troubles) == 1


def test_threads(tmp_path):
    service = loop(tmp_path)

    def visit(worker):
        for k in range(20):
            service.rank(f"{worker}-{k}", contexts(k))
            assert service.reward(f"{worker}-{k}", 0.5) == "taken"

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(visit, range(4)))
    assert service.policy.n_rounds_ == service.n_learned == 80


def _serve(path, worker, acknowledged):
    service = Loop(LinUCB(privacy="central", bounds_y=(0, 1), random_state=0), path)
    for k in range(10_000):
        service.rank(f"{worker}-{k}", np.eye(2))
        service.reward(f"{worker}-{k}", 1.0)
        acknowledged.value = k + 1


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_instant(tmp_path, seed):
    """Two processes, one of which is killed: what was acknowledged is there, and learned once."""
    rng, path = np.random.default_rng(seed), tmp_path / "service.sqlite"
    Loop(LinUCB(privacy="central", bounds_y=(0, 1), random_state=0), path)
    context = multiprocessing.get_context("fork")
    counts = [context.Value("q", 0, lock=False) for _ in range(2)]
    workers = [
        context.Process(target=_serve, args=(path, k, count)) for k, count in enumerate(counts)
    ]
    for worker in workers:
        worker.start()
    stop = time.monotonic() + 60.0
    while min(count.value for count in counts) < 5 and time.monotonic() < stop:
        time.sleep(0.01)
    for worker in workers:
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
    service = Loop(LinUCB(privacy="central", bounds_y=(0, 1), random_state=0), path, cutoff=1e-9)
    time.sleep(0.01)
    service.learn(force=True)
    assert service.policy.n_rounds_ == service.n_learned == service.n_events
    assert service.n_events >= sum(count.value for count in counts)


def test_events_are_named_as_people_are(tmp_path):
    """Equal numbers are one, and texts stay as they are: see tests/bandits/test_persons.py."""
    service = loop(tmp_path)
    names = [("a", 1), "('a', 1)", ("a", "1:b"), ("a1", "b"), 1, "1.0", b"\xfe", "\ud800"]
    for k, name in enumerate(names):
        service.rank(name, contexts(k))
    for same, k in ((("a", 1.0), 0), (["a", np.int64(1)], 0), (("a", "1"), 0), (1.0, 4)):
        service.rank(same, contexts(k))
    assert service.n_events == len(names)
    for k in reversed(range(len(names))):
        assert service.reward(names[k], k / 10) == "taken"
    assert service.policy.seen == [(k, k / 10) for k in range(len(names))]
    for nothing in (None, float("nan"), ("a", None), 2.0**60):
        for ask, given in ((service.rank, contexts(3)), (service.reward, 0.5)):
            with pytest.raises(ValueError, match="needs a name"):
                ask(nothing, given)


def test_requests_go_on_while_another_thread_learns(tmp_path, monkeypatch):
    """A copy learns: calls of others return before it is done, and their rewards are not lost."""
    policy = LinUCB(bounds_y=(0, 1), random_state=0)
    service, going_on, done = Loop(policy, tmp_path / "service"), threading.Event(), []
    update = LinUCB.update

    def slow(self, *given, **named):
        learner = update(self, *given, **named)
        assert going_on.wait(60.0)  # it is set by a request that did not wait for this
        return learner

    monkeypatch.setattr(LinUCB, "update", slow)
    for k in range(19):
        service.rank(k, np.eye(2))
        service.reward(k, 1.0)
    service.rank(19, np.eye(2))
    thread = threading.Thread(target=lambda: done.append(service.reward(19, 1.0)))
    thread.start()
    while not service._learning.locked():
        time.sleep(0.001)
    service.rank("meanwhile", np.eye(2))
    assert service.reward("meanwhile", 1.0) == "taken"
    assert service.n_learned == service.policy.n_rounds_ == 0  # what is played has not learned
    state = service.policy._rng.get_state()[2]
    going_on.set()
    thread.join()
    assert done == ["taken"] and service.n_learned == service.policy.n_rounds_ == 20
    assert service.policy._rng.get_state()[2] == state  # no draw of an action comes again
    assert service.reward(19, 0.5) == "repeated"


def test_two_who_learn_the_same_events_release_one_answer(tmp_path, monkeypatch):
    """The second is overtaken after it has learned: what it drew is what was released."""
    path, policies = tmp_path / "service", []
    one, two = (
        Loop(LinUCB(bounds_y=(0, 1)), path, learn="elsewhere") for _ in range(2)
    )  # unseeded: noise that is drawn twice would differ
    for k in range(20):
        one.rank(k, np.eye(2))
        one.reward(k, 1.0)
    assert one.n_learned == 0
    update = LinUCB.update

    def overtaken(self, *given, **named):
        policies.append(update(self, *given, **named))
        if len(policies) == 1:
            assert two.learn() == 20
        return self

    monkeypatch.setattr(LinUCB, "update", overtaken)
    assert one.learn() == 0 and len(policies) == 2
    first, second = (policy._sums.mark.answer.value for policy in policies)
    np.testing.assert_array_equal(first, second)
    assert one.policy.n_rounds_ == one.n_learned == 20 and not one.troubles


def test_no_reward_is_taken_of_an_event_that_is_learned_without_it(tmp_path, monkeypatch):
    """The clock of one process is behind that of another, which learns."""
    given, statuses, update = {"learn": "elsewhere", "cutoff": 10.0}, [], LinUCB.update
    one, two = (
        Loop(LinUCB(bounds_y=(0, 1)), tmp_path / "service", **given, clock=lambda now=now: now)
        for now in (100.0, 5.0)
    )
    for k in range(20):
        two.rank(k, np.eye(2))

    def meanwhile(self, *given, **named):
        statuses.append(two.reward(3, 1.0))
        return update(self, *given, **named)

    monkeypatch.setattr(LinUCB, "update", meanwhile)
    assert one.learn() == 20 and statuses == ["late"] == [two.reward(4, 1.0)]


def test_what_a_killed_process_did_not_forget_is_forgotten(tmp_path, monkeypatch):
    make = lambda: LinUCB(bounds_y=(0, 1), random_state=0)  # noqa: E731
    service = Loop(make(), tmp_path / "service")
    monkeypatch.setattr(Loop, "_forget", lambda self: None)  # as if it died before
    for k in range(20):
        service.rank(k, np.eye(2))
        service.reward(k, 1.0)
    monkeypatch.undo()
    assert service.n_learned == 20 and service.reward(3, 1.0) == "repeated"
    service = Loop(make(), tmp_path / "service")
    rows = service._store.ask("SELECT count(*) FROM events WHERE row IS NOT NULL")
    assert rows == [(0,)] and service.reward(3, 1.0) == "repeated"


def test_a_policy_that_could_not_be_read_is_read_again(tmp_path, monkeypatch):
    """The one in memory is older than the file, and must not pass for what the file has."""
    service, other = loop(tmp_path), loop(tmp_path)
    service.rank("a", contexts(0))
    other.rank("b", contexts(1))
    other.reward("a", 0.5)
    other.reward("b", 0.5)
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "policy", _unreadable)
        with pytest.raises(PrivacyError, match="cannot be read"):
            service.rank("c", contexts(2))
    service.rank("c", contexts(2))
    assert service.policy.seen == other.policy.seen == [(0, 0.5), (1, 0.5)]


def _unreadable(held):
    raise PrivacyError("The policy cannot be read.")


def test_what_failed_while_it_learned_is_read_from_the_file_again(tmp_path, monkeypatch):
    """Sums have the events of an attempt that failed after their read, and the next attempt's once.

    Meanwhile and afterwards the policy acts as it did.
    """
    make, answers = LinUCB._make_region, []
    for fails in (False, True):
        monkeypatch.setattr(LinUCB, "_make_region", make)
        clock = Clock()
        policy = LinUCB(epsilon=1.0, bounds_y=(0, 1), shared=False, n_actions=2, random_state=0)
        service = Loop(policy, tmp_path / f"service {fails}", clock=clock)
        if fails:
            monkeypatch.setattr(LinUCB, "_make_region", lambda *_: 1 / 0)
        for k in range(20):
            service.rank(f"e{k}", np.ones(3) / 2.0)
            service.reward(f"e{k}", 1.0)
        assert len(service.troubles) == fails and (service.n_learned == 0) == fails
        if fails:
            assert service.rank("meanwhile", np.ones(3))[1] == 0.5
            monkeypatch.setattr(LinUCB, "_make_region", make)
            clock.now = 61.0
            assert service.learn() == 20
        answers.append(service.policy._sums.mark.answer.value)
        assert service.policy._sums.pending == 0 and service.policy.n_rounds_ == 20
    np.testing.assert_array_equal(*answers)


def test_the_first_places_of_a_page_are_an_event(tmp_path):
    """They are different actions, the same if asked for again, and the first one is learned."""
    service, rng = loop(tmp_path), np.random.default_rng(0)
    asked = rng.standard_normal((30, 5, 3))
    ranked = [service.rank(f"e{k}", each, k=3) for k, each in enumerate(asked)]
    for actions, propensities in ranked:
        assert len(set(actions)) == 3 and propensities == [1 / 5, 1 / 4, 1 / 3]
    assert len({actions[0] for actions, _ in ranked}) == 5
    again = loop(tmp_path)
    assert [again.rank(f"e{k}", each, k=3) for k, each in enumerate(asked)] == ranked
    many = again.rank_many([f"e{k}" for k in range(30)], asked, k=3)
    np.testing.assert_array_equal(many[0], [actions for actions, _ in ranked])
    for k in (None, 2, 4):
        with pytest.raises(ValueError, match="another question"):
            again.rank("e0", asked[0], k=k)
    for k in (0, 6, -1, 1.5, "3", float("nan"), [3], 10**400):
        with pytest.raises(ValueError, match="number of available"):
            again.rank("new", asked[0], k=k)
    with pytest.raises(ValueError, match="number of available"):
        again.rank("new", asked[0], np.arange(5) < 2, k=3)
    assert again.n_events == 30
    again.reward("e0", 0.25)
    assert again.policy.seen == [(asked[0, ranked[0][0][0], 0], 0.25)]
    assert type(again.rank("new", asked[0])[0]) is int  # for JSON


@pytest.mark.parametrize("in_order", [True, False])
def test_a_withdrawn_event_adds_nothing_to_a_sum(in_order, tmp_path):
    """It keeps its place, holds up nothing, and is a visit; nothing tells that it was withdrawn."""
    policy = LinUCB(
        epsilon=1e6, bounds_y=(0, 1), shared=False, n_actions=2, update_every=5, random_state=0
    )
    service = Loop(policy, tmp_path / "file", max_visits=1, in_order=in_order)
    shown = np.zeros((2, 3))
    for k in range(15):
        name, context = f"e{k}", np.eye(3)[k % 3] * (0.1 + k / 20)
        action, _ = service.rank(name, context, user="me" if k in (1, 7) else k)
        if k in (1, 2, 8):
            assert service.withdraw(name) == "taken" and service.withdraw(name) == "repeated"
            assert service.reward(name, 1.0) == "repeated"
            assert service.rank(name, context, user="me")[0] == action
        else:
            assert service.reward(name, 1.0) == "taken"
            if k < 10 and k != 7:  # the second visit of one user
                shown[action] += 0.5 * context  # rewards less the middle, over half of the range
    service.rank("last", context, user="nobody")
    assert service.withdraw("never") == "unknown" and service.n_learned >= 10
    (mark,) = [each for each in service.policy._windows._marks if each.rounds == 10]
    np.testing.assert_allclose(mark.answer.value[:6].reshape(2, 3), 2.0 * shown, atol=0.1)


def test_visits_that_are_left_out_count_as_learned(tmp_path):
    policy = LinUCB(epsilon=1.0, bounds_y=(0, 1), update_every=10)
    service = Loop(policy, tmp_path / "file", max_visits=2)
    for k in range(50):
        service.rank(f"{k}", np.eye(3), user=k % 5)
        service.reward(f"{k}", 1.0)
    assert service.status()["learned"] == service.n_learned == 50  # of which 10 were used
    assert service.status()["waiting"] == 0


def test_a_withdrawn_event_is_late_once_it_was_learned(tmp_path):
    service = loop(tmp_path)
    service.rank("a", contexts(1))
    service.rank("b", contexts(2))
    assert service.withdraw("b") == "taken" and service.n_learned == 0
    service.reward("a", 0.5)
    assert service.policy.seen == [(1.0, 0.5), (0.0, 0.0)]
    assert service.withdraw("a") == "repeated" and service.withdraw("b") == "repeated"
    assert service.status()["waiting"] == 0
