"""Rewards that are learned when they come: nobody is held up, and the order tells nothing."""

import numpy as np
import pytest
from registry.replays import loss_of_copies, losses, numbered_answers, record_noise

from skpriv._estimation._moments import MomentsQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv.bandits import BanditCombiner, LinSquareCB, LinUCB, Loop, OnlineLinUCB, SquareCB
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import Budget, Numbering

COMMON = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
POLICIES = {
    "factor": lambda: LinUCB(update_every=10, horizon=400, **COMMON),
    "phases": lambda: LinSquareCB(update_every=10, horizon=70, **COMMON),
    "shared=False": lambda: LinUCB(
        update_every=10, horizon=400, shared=False, n_actions=2, **COMMON
    ),
}
ME = 33  # the event whose context, reward and delay are replaced


def serve(loop, n=90, mine=None, users=None, now=None):
    """Play; rewards come after random numbers of further ranks, and some never.

    The list ``now`` holds the seconds of a clock, which goes back.
    """
    rng = np.random.default_rng(1)
    due: dict = {}
    for k in range(n):
        if now:
            now[0] = -float(k)
        shared = loop.policy.shared
        contexts = rng.standard_normal((2, 3) if shared else 3)
        contexts /= np.linalg.norm(contexts, axis=-1, keepdims=True)
        reward, delay = rng.uniform(-1.0, 1.0), int(rng.integers(0, 40))
        if mine and k in mine:
            sign, reward, delay = mine[k]
            contexts = sign * np.full_like(contexts, 3.0**-0.5)
        loop.rank(f"visit {k}", contexts, user=None if users is None else users[k])
        due.setdefault(k + delay, []).append((f"visit {k}", reward))
        for event, value in due.pop(k, ()):
            assert loop.reward(event, value) == "taken"
    assert not loop.troubles
    return loop


def exact_sums(make, folder, monkeypatch, tape=None, max_visits=None, **given):
    """What got noise, its scale and what was told, which may be that of another run."""
    monkeypatch.setenv("SKPRIV_STATE", str(folder))
    folder.mkdir()
    exact, told = record_noise(monkeypatch, tape)
    loop = Loop(make(), folder / "file", in_order=False, max_visits=max_visits)
    return exact, told, serve(loop, **given)


@pytest.mark.parametrize("name", POLICIES)
def test_an_event_may_change_and_come_at_another_time_for_its_price(name, tmp_path, monkeypatch):
    """Replay of another context, reward and delay: whatever else came has its place."""
    make = POLICIES[name]
    base, tape, loop = exact_sums(make, tmp_path / "0", monkeypatch, mine={ME: (1.0, 1.0, 0)})
    promised = Budget(1.0, 1e-6).mu ** 2
    found = []
    for at, delay in enumerate((45, 10_000)):
        changed = {ME: (1.0, -1.0, delay)}
        other, _, again = exact_sums(make, tmp_path / f"{at + 1}", monkeypatch, tape, mine=changed)
        parts = losses(base, other)
        assert again.policy.n_rounds_ == loop.policy.n_rounds_
        assert again.policy.guarantee.epsilon == pytest.approx(1.0)
        found.append(sum(parts))
        # R x is made of columns: before the event nothing has changed
        assert not any(parts[: ME // 10])
    assert 0.0 < max(found) <= promised * (1.0 + 1e-9)
    assert max(found) > 0.2 * promised  # the price is not far above what is paid


def test_moments_of_two_records_have_no_negative_product(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    asked = MomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 3), square_weight=0.5)
    rows = rng.standard_normal((300, 3))
    rows /= np.maximum(np.linalg.norm(rows, axis=1), rng.uniform(0.1, 3.0, 300))[:, None]
    records = np.array([
        asked.sum(row[None], np.array([reward]))
        for row, reward in zip(rows, rng.uniform(-1.0, 1.0, 300), strict=True)
    ])  # fmt: skip
    assert (records @ records.T).min() > -1e-12
    assert (records**2).sum(axis=1).max() <= asked.sensitivity**2 / 2.0


@pytest.mark.parametrize("name", ["factor", "phases"])
def test_a_person_pays_for_so_many_events_whenever_they_come(name, tmp_path, monkeypatch):
    users = np.array([f"guest {k}" for k in range(100)], dtype=object)
    make, mine = POLICIES[name], [5, 31, 33, 60, 61, 70, 90, 91]
    users[mine] = "me"
    options = {"n": 100, "max_visits": 3, "users": users}
    first = {k: (1.0, 1.0, 0) for k in mine}
    base, tape, loop = exact_sums(make, tmp_path / "0", monkeypatch, mine=first, **options)
    for at, delays in enumerate(([0] * 8, [80, 20, 0, 30, 3, 7, 9, 0], [10_000] * 5 + [0] * 3)):
        changed = {k: (1.0, -1.0, delay) for k, delay in zip(mine, delays, strict=True)}
        folder = tmp_path / f"{at + 1}"
        other, _, _ = exact_sums(make, folder, monkeypatch, tape, mine=changed, **options)
        assert 0.0 < sum(losses(base, other)) <= Budget(1.0, 1e-6).mu ** 2
    assert loop.policy.guarantee.unit == "person"


def test_one_late_reward_does_not_hold_up_the_others(tmp_path):
    learned = {}
    for in_order in (True, False):
        loop = Loop(POLICIES["factor"](), tmp_path / f"{in_order}", in_order=in_order)
        rng = np.random.default_rng(0)
        for k in range(100):
            loop.rank(f"visit {k}", rng.standard_normal((2, 3)) / 3.0)
            if k != 3:
                loop.reward(f"visit {k}", 0.5)
        learned[in_order] = loop.n_learned
        if not in_order:
            assert loop.policy.n_rounds_ == 90 and loop.status()["waiting"] == 10
            assert loop.reward("visit 3", 1.0) == "taken"
            loop.rank("last", np.eye(3)[:2])
            loop.rank("last but one", np.eye(3)[:2])
            assert loop.status()["waiting"] == 2 and loop.policy.n_rounds_ == 100
            assert loop.reward("visit 3", 1.0) == "repeated"
    assert learned == {True: 0, False: 90}


def test_without_a_reward_the_default_counts_at_the_cutoff(tmp_path):
    now = [0.0]
    policy = LinUCB(update_every=10, horizon=400, **COMMON)
    loop = Loop(policy, tmp_path / "file", in_order=False, cutoff=10.0, default_reward=-1.0,
                clock=lambda: now[0])  # fmt: skip
    for k in range(30):
        loop.rank(f"visit {k}", np.eye(2) / 2.0)
        if k == 15:
            now[0] = 11.0
    assert loop.n_learned == loop.policy.n_rounds_ == 20
    assert loop.reward("visit 3", 1.0) == "late"
    assert loop.reward("visit 20", 1.0) == "taken"
    # The states are those of C x: the events of the first 16 ranks are in the second increment.
    stream, expected = loop.policy._sums._streams[0], np.array([0.0, 16.0])
    states = [state.value[-1] for state in stream._states]
    np.testing.assert_allclose(stream._weights @ states / 0.5, stream.column[1::-1] @ expected)


def test_the_number_of_rewards_in_a_sum_is_not_told(tmp_path):
    """Sums have public numbers of rounds, however many rewards came."""
    loop = serve(Loop(POLICIES["factor"](), tmp_path / "file", in_order=False))
    assert loop.policy._sums.mark.answer.n == loop.policy._sums.rounds == 80
    assert [mark.rounds for mark in loop.policy._windows._marks] == list(range(10, 90, 10))


def test_whoever_watches_does_not_learn_when_a_reward_came(tmp_path):
    """Rewards move from one sum to another, and nothing that is told of the service changes."""
    told = []
    for at, mine in enumerate((None, {ME: (1.0, 1.0, 0)}, {ME: (1.0, 1.0, 10_000)})):
        now = [0.0]
        options = {"in_order": False, "clock": lambda now=now: now[0]}
        loop = serve(Loop(POLICIES["factor"](), tmp_path / f"{at}", **options), mine=mine, now=now)
        again = None
        if mine:
            again = loop.rank(f"visit {ME}", np.full((2, 3), 3.0**-0.5))
        with pytest.raises(ValueError, match="another question"):
            loop.rank(f"visit {ME}", 0.5 * np.ones((2, 3)))
        told.append((loop.status(), loop.n_learned, loop.n_events, loop.policy.n_rounds_, again))
    assert told[0][:-1] == told[1][:-1] and told[1] == told[2]


def test_rounds_that_are_not_learned_from_are_not_counted_in_a_sum(tmp_path, monkeypatch):
    """The neutral reward may be outside of the range of the rewards, and is clipped to it."""
    users = np.array(["me" if k % 2 else f"guest {k}" for k in range(80)], dtype=object)
    make = lambda: POLICIES["factor"]().set_params(reward_offset=3.0)  # noqa: E731
    runs, tape = [], None
    for delay in (0, 10_000):
        mine = {k: (1.0, 1.0, delay) for k in range(1, 80, 2)}
        given = {"n": 80, "mine": mine, "max_visits": 1, "users": users}
        exact, told, _ = exact_sums(make, tmp_path / f"{delay}", monkeypatch, tape, **given)
        runs, tape = [*runs, exact], told
    assert 0.0 < sum(losses(*runs)) <= Budget(1.0, 1e-6).mu ** 2


def test_a_policy_that_has_acted_cannot_begin_out_of_order(tmp_path):
    """Its sums are calibrated to rounds in their places."""
    policy = POLICIES["factor"]()
    policy.act(np.eye(2)[None])
    with pytest.raises(ValueError, match="has acted"):
        Loop(policy, tmp_path / "file", in_order=False)


def answers_of_copies(value, folder, monkeypatch):
    """Noisy answers of a service and of three backups of it, in each of which a reward is late."""
    monkeypatch.setenv("SKPRIV_STATE", str(folder / "state"))
    folder.mkdir()
    contexts = np.random.default_rng(0).standard_normal((100, 2, 3))
    contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    contexts[13] = 3.0**-0.5
    loops = {0: Loop(POLICIES["factor"](), folder / "0", in_order=False)}
    for copy, late in ((0, 25), (20, 45), (21, 61), (22, 200)):
        loop = loops[copy]
        for k in range(copy, 100 if copy else 35):
            if k in (20, 21, 22) and not copy:
                loop.backup(folder / f"{k}")
                loops[k] = Loop(POLICIES["factor"](), folder / f"{k}", in_order=False)
            loop.rank(f"visit {k} of {copy}" if k > 22 else f"visit {k}", contexts[k])
            if k != 13:
                loop.reward(f"visit {k} of {copy}" if k > 22 else f"visit {k}", 0.5)
            if k == late:
                assert loop.reward("visit 13", value) == "taken"
        assert not loop.troubles
    return numbered_answers(folder / "state"), loops[0].policy._sums._streams[0].noise.scale


def test_an_event_is_in_one_sum_of_all_copies(tmp_path, monkeypatch):
    """It was learned before the crash, and its reward comes again to what was restored."""

    def cost(folder):
        first, scale = answers_of_copies(1.0, tmp_path / f"{folder} 1", monkeypatch)
        second, _ = answers_of_copies(-1.0, tmp_path / f"{folder} 2", monkeypatch)
        assert len(first) == 9
        return loss_of_copies(first, second, scale)

    promised = Budget(1.0, 1e-6).mu ** 2
    assert 0.0 < cost("counted") <= promised
    admit = Numbering.admit
    monkeypatch.setattr(
        Numbering, "admit", lambda self, come, number, most: admit(self, come, number, 99)
    )
    assert cost("not counted") > promised


@pytest.mark.parametrize("name", ["factor", "phases"])
def test_restored_backups_repeat_what_came(name, tmp_path):
    loop = Loop(POLICIES[name](), tmp_path / "file", in_order=False)
    serve(loop, n=105)
    loop.backup(tmp_path / "copy")
    again = Loop(POLICIES[name](), tmp_path / "copy", in_order=False)
    for k in range(105, 140):
        for one in (loop, again):
            one.rank(f"visit {k}", np.eye(3)[:2])
            one.reward(f"visit {k}", 1.0 if one is loop else -1.0)
    assert not loop.troubles and not again.troubles
    np.testing.assert_array_equal(
        loop.policy._sums.mark.answer.value, again.policy._sums.mark.answer.value
    )


def test_the_order_is_that_of_the_file_and_not_for_all_policies(tmp_path):
    Loop(POLICIES["factor"](), tmp_path / "file", in_order=False)
    with pytest.raises(PrivacyError, match="begun with in_order=False"):
        Loop(POLICIES["factor"](), tmp_path / "file")
    Loop(POLICIES["factor"](), tmp_path / "other")
    with pytest.raises(PrivacyError, match="begun with in_order=True"):
        Loop(POLICIES["factor"](), tmp_path / "other", in_order=False)
    ssp = SSPRegressor(epsilon=1.0, data_norm=1.0, bounds_y=(-1, 1))
    for policy in (
        LinUCB(privacy="none"), LinUCB(privacy="local"), LinUCB(privacy="shuffle"),
        LinUCB(width="certified"), OnlineLinUCB(), SquareCB(ssp), BanditCombiner([LinUCB()]),
        LinUCB(epsilon=np.inf),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="order of the ranks"):
            Loop(policy, tmp_path / "third", in_order=False)
    assert not (tmp_path / "third").exists()


def test_a_withdrawal_costs_no_more_than_a_reward(tmp_path, monkeypatch):
    """Of a user who comes again: a visit that did not count would let another one count."""
    makers = [
        lambda: LinUCB(update_every=4, horizon=12, **COMMON),
        lambda: LinUCB(update_every=5, privacy="local", channel="gaussian", **COMMON),
        lambda: SquareCB(SSPRegressor(data_norm=1.0, bounds_y=(-1, 1)), schedule=20),
    ]
    for at, make in enumerate(makers):
        released, tape = [], None
        for withdrawn in (False, True):
            folder = tmp_path / f"{at} {withdrawn}"
            folder.mkdir()
            monkeypatch.setenv("SKPRIV_STATE", str(folder))
            exact, tape = record_noise(monkeypatch, tape)
            loop = Loop(make(), folder / "file", max_visits=1)
            for k in range(40):
                mine = k in (0, 30)
                row = np.eye(3)[k % 7 % 2] * mine
                loop.rank(f"{k}", row[None], user="me" if mine else k)
                taken = loop.withdraw("0") if withdrawn and k == 0 else loop.reward(f"{k}", 1.0)
                assert taken == "taken"
                assert loop.rank(f"{k}", row[None], user="me" if mine else k)
            released.append(exact)
        assert 0.0 < sum(losses(*released)) <= Budget(1.0, 1e-6).mu ** 2 * (1.0 + 1e-9)
