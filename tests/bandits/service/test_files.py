"""A service's file that is cut off, damaged or on a full disk, and names that are none."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from skpriv._sqlite import Database
from skpriv.bandits import LinUCB, Loop
from skpriv.exceptions import PrivacyError, SkprivError, StorageError


def loop(path):
    return Loop(LinUCB(privacy="central", bounds_y=(0, 1), epsilon=1.0), path)


def served(path, stop=200):
    """A service that was used, and closed."""
    service, rng = loop(path), np.random.default_rng(0)
    names = [f"visit {k}" for k in range(stop)]
    service.rank_many(names, rng.standard_normal((stop, 3, 2)) / 3.0)
    service.reward_many(names[: stop // 2], rng.random(stop // 2))
    service._store.close()
    return path


def test_an_empty_file_does_not_begin_anew(tmp_path):
    path = served(tmp_path / "service")
    path.write_bytes(b"")
    with pytest.raises(PrivacyError, match="empty.*cut off"):
        loop(path)
    path.unlink()
    assert loop(path).n_events == 0


@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"skpriv"])
def test_damage_of_eight_kilobytes_is_told(fill, tmp_path):
    """Wherever it is: an error that names the file, or events and policy are as they were."""
    path = served(tmp_path / "service")
    whole = path.read_bytes()
    again, told = loop(path), 0
    before = again.status(), again._store.ask("SELECT * FROM events")
    again._store.close()
    damage = (fill * 8192)[:8192]
    for start in range(0, len(whole) - 8192, 4096):
        path.write_bytes(whole[:start] + damage + whole[start + 8192 :])
        try:
            again = loop(path)
            assert (again.status(), again._store.ask("SELECT * FROM events")) == before
            again._store.close()
        except SkprivError as error:
            assert "damaged" in str(error)
            told += 1
    assert told >= 10  # the others hit free pages


def test_a_damaged_policy_is_not_played(tmp_path):
    path = served(tmp_path / "service")
    database = Database(path, "test")
    ((state,),) = database.ask("SELECT state FROM policy")
    database.write(
        "UPDATE policy SET state = ?", state[:-60] + bytes([state[-60] ^ 1]) + state[-59:]
    )
    with pytest.raises(PrivacyError, match="policy.*Loop.*damaged"):
        loop(path)


@pytest.mark.parametrize("former", [
    "SELECT 1", "CREATE INDEX waiting ON events (number) WHERE reward IS NULL",
])  # fmt: skip
def test_a_file_of_another_version_says_which(former, tmp_path):
    """Tables of a version before may have what passes for programs now."""
    path = served(tmp_path / "service")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(former)
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises((PrivacyError, ValueError), match="version.* 9"):
        loop(path)


def test_no_place_and_a_full_disk_are_told_and_forgotten(tmp_path):
    for nowhere in (tmp_path, tmp_path / "none" / "service"):
        with pytest.raises(StorageError, match="must be a file.*folder"):
            loop(nowhere)
    path = served(tmp_path / "service")
    service = loop(path)
    with service._store.reading() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageError, match="full.*not acknowledged was not kept"):
            for k in range(100):
                service.rank_many([f"{k} {i}" for i in range(50)], np.full((50, 3, 2), 0.1))
        known = service.n_events
        connection.execute("PRAGMA max_page_count = 1000000")
    service.rank("more", np.full((3, 2), 0.1))
    assert service.n_events == known + 1


@pytest.mark.parametrize("name", ["", "x" * 10**7, "ä" * 501, ("a", "b" * 1_000), b""])
def test_an_event_has_a_name_of_some_size(name, tmp_path):
    service = loop(tmp_path / "service")
    with pytest.raises(ValueError, match="1 to 1,000 bytes|needs a name"):
        service.rank(name, np.full((3, 2), 0.1))
    with pytest.raises(ValueError, match="1 to 1,000 bytes|needs a name"):
        service.reward(name, 1.0)
    assert service.n_events == 0 and service.rank("x" * 1_000, np.full((3, 2), 0.1))


def test_workers_that_load_an_unseeded_policy_draw_actions_of_their_own(tmp_path):
    loop = Loop(LinUCB(bounds_y=(0, 1)), tmp_path / "events.sqlite")
    loop.rank("a", np.eye(2))
    with loop._store.reading() as held:
        draws = [held.policy()._rng.random_sample(4).tolist() for _ in range(2)]
    assert draws[0] != draws[1]


def test_a_file_grows_with_the_number_of_weights_and_not_with_its_square(tmp_path):
    """30 actions with 20 features of their own are 6,901 sums; a dense form has 360,000 numbers."""
    policy = LinUCB(epsilon=1.0, bounds_y=(0, 1), shared=False, n_actions=30, random_state=0)
    service = Loop(policy, tmp_path / "service")
    names = [f"visit {k}" for k in range(60)]
    service.rank_many(names, np.random.default_rng(0).standard_normal((60, 20)) / 5.0)
    service.reward_many(names, np.ones(60))
    assert service.n_learned == 60
    assert (tmp_path / "service").stat().st_size < 5e6


def test_no_file_begins_with_a_policy_that_has_acted(tmp_path):
    policy = LinUCB(bounds_y=(0, 1))
    policy.act(np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match="policy.*not acted"):
        Loop(policy, tmp_path / "service.sqlite")
    Loop(LinUCB(bounds_y=(0, 1)), tmp_path / "service.sqlite", cutoff=10.0)
    again = Loop(policy, tmp_path / "service.sqlite")  # its parameters are compared
    assert again.n_learned == 0


def past_their_cutoff(now, **given):
    """A service of which 40 events were ranked a second longer ago than its cutoff."""
    loop = Loop(LinUCB(bounds_y=(0, 1), random_state=0), cutoff=10.0, **given)
    for k in range(40):
        loop.rank(k, np.eye(2))
    now[0] += 11.0
    return loop


def test_the_file_keeps_the_cutoff_and_the_default_reward(tmp_path):
    """A number holds for all workers from then on; without one they are those of the file."""
    given = {"path": tmp_path / "service", "clock": lambda: now[0], "learn": "elsewhere"}
    now = [0.0]
    first = past_their_cutoff(now, **given)
    assert first.reward(0, 1.0) == "late"
    second = Loop(None, default_reward=1, cutoff=20, **given)
    assert second._store.ask("SELECT * FROM settings") == [(0, 20.0, 1.0, 0)]
    assert first.reward(0, 1.0) == "taken"
    now[0] = 21.0
    assert Loop(None, **given).learn() == 40
    assert [first.reward(k, 1.0) for k in (0, 1)] == ["repeated", "late"]


def test_events_that_had_passed_a_shorter_cutoff_wait_for_the_longer_one(tmp_path):
    """A worker that had looked before the change gave them the default reward."""
    given = {"path": tmp_path / "service", "clock": lambda: now[0]}
    now = [0.0]
    first = past_their_cutoff(now, learn_every=99, **given)
    assert first.learn() == 0  # it looked: all of them had passed the cutoff
    Loop(None, cutoff=20.0, learn="elsewhere", **given)
    assert first.learn(force=True) == 0 and first.reward(0, 1.0) == "taken"
    now[0] = 21.0
    assert first.learn(force=True) == 40


def test_no_event_waits_whose_reward_would_come_too_late(tmp_path, monkeypatch):
    """Those that a killed worker had begun to learn waited for a longer cutoff, and for nothing."""
    given = {"path": tmp_path / "service", "clock": lambda: now[0]}
    now = [0.0]
    first = past_their_cutoff(now, learn_every=99, **given)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LinUCB, "update", interrupted)
        first.learn(force=True)
    second = Loop(None, cutoff=20.0, **given)
    assert second.reward(0, 1.0) == "late" and second.reward(20, 1.0) == "taken"
    second.learn(force=True)
    assert second.n_learned == 21


def interrupted(*given, **named):
    raise KeyboardInterrupt
