"""`skpriv learn`: rewards from a file for a service, and learning."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

from skpriv import BudgetAccountant
from skpriv._cli._main import main
from skpriv.bandits import EpochGreedy, LinUCB, Loop
from skpriv.linear_model import SSPRegressor

EVENTS = 45


def ranked(path, in_order=True, **given):
    """A service that has ranked some events, of names that look like numbers, and learns never."""
    policy = LinUCB(epsilon=1.0, bounds_y=(0, 1))
    loop = Loop(policy, path, learn="elsewhere", in_order=in_order, **given)
    for event in range(EVENTS):
        loop.rank(f"00{event}", np.eye(3))
    return loop


def lines(file, events, reward="1"):
    file.write_text("event,reward\n" + "".join(f"00{event},{reward}\n" for event in events))
    return str(file)


@pytest.mark.parametrize("in_order", [True, False])
def test_rewards_of_a_file_are_taken_once_and_learned(tmp_path, capsys, in_order):
    path = str(tmp_path / "service")
    loop = ranked(path, in_order)
    first = lines(tmp_path / "first.csv", range(30))
    assert main(["learn", path, first]) == 0
    learned = 40 if not in_order else 20  # at public numbers of ranks, or of rewards
    told = json.loads(capsys.readouterr().out)
    assert told == {"taken": 30, "learned": learned, "waiting": EVENTS - learned}
    second = tmp_path / "second.jsonl"
    objects = [{"event": f"00{event}", "reward": 0.5} for event in range(25, EVENTS)]
    second.write_text("\n".join(map(json.dumps, [*objects, {"event": 7, "reward": 1}])))
    assert main(["learn", path, str(second)]) == 0
    told = json.loads(capsys.readouterr().out)
    # Learned events take no more; 7 is not the name 007.
    assert (told["unknown"], told["taken"], told["repeated"]) == (1, EVENTS - 30, 5)
    assert loop.n_learned == 40 and not loop.troubles
    assert main(["learn", path]) == 0
    assert json.loads(capsys.readouterr().out) == {"learned": 0, "waiting": 5}


def test_a_wrong_file_takes_nothing_and_repeats_no_cell(tmp_path, capsys):
    path, file = str(tmp_path / "service"), tmp_path / "rewards.csv"
    loop = ranked(path)
    loop.reward("000", 1.0)
    wrong = {
        "event,reward\n001,secret\n": "number as each reward",
        "event,reward\n001,1\n002\n": "number as each reward",
        "event,reward\n001,nan\n": "ill in such cells",
        "event,reward\n,1\n": "an event's name has",
        "event,click\n001,1\n": "number as each reward",
    }
    for text, words in wrong.items():
        file.write_text(text)
        assert main(["learn", path, str(file)]) == 2
        told = capsys.readouterr().err
        assert words in told and "secret" not in told and "001" not in told
    objects = tmp_path / "rewards.jsonl"
    pair = '{"event": "001", "reward": %s}'
    for text in (
        '{"event": "001"}', "secret", '["event", "reward"]', "\n",
        pair % ("1" + "0" * 400), pair % ("[" * 100_000),
    ):  # fmt: skip
        objects.write_text(text)
        assert main(["learn", path, str(objects)]) == 2
        assert "secret" not in capsys.readouterr().err
    assert loop.reward("001", 1.0) == "taken"
    for service in (tmp_path / "absent", file):
        assert main(["learn", str(service)]) == 2
        assert not (tmp_path / "absent").exists()
    with pytest.raises(ValueError, match="no policy yet"):
        Loop(None, tmp_path / "new")


def test_the_cutoff_is_that_of_the_service(tmp_path, capsys):
    path, file = str(tmp_path / "service"), lines(tmp_path / "rewards.csv", range(EVENTS))
    ranked(path, cutoff=600.0, clock=lambda: time.time() - 1_000.0)
    assert main(["learn", path, file]) == 0
    assert json.loads(capsys.readouterr().out) == {"late": EVENTS, "learned": 40, "waiting": 5}


def test_another_process_charges_the_ledger_of_the_service(tmp_path):
    path, ledger = str(tmp_path / "service"), tmp_path / "ledger.db"
    with BudgetAccountant(1.0, 1e-6, ledger):
        ranked(path)
    before = BudgetAccountant(ledger=ledger).spent
    file = lines(tmp_path / "rewards.csv", range(EVENTS))
    command = [sys.executable, "-m", "skpriv", "learn", path, file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and json.loads(done.stdout)["learned"] == 40, done.stderr
    assert BudgetAccountant(ledger=ledger).spent == before
    assert Loop(None, path).policy.n_rounds_ == 40


def test_a_policy_that_cannot_learn_gives_another_exit_code(tmp_path, capsys, monkeypatch):
    path = str(tmp_path / "service")
    ranked(path)
    file = lines(tmp_path / "rewards.csv", range(EVENTS))

    def fails(self, *given, **named):
        raise ValueError("secret")

    monkeypatch.setattr(LinUCB, "update", fails)
    assert main(["learn", path, file]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out) == {"taken": EVENTS, "learned": 0, "waiting": EVENTS}
    assert "Learning failed with ValueError" in told.err and "secret" not in told.err


def test_each_epoch_is_charged_to_the_ledger_of_the_service(tmp_path):
    """Which may refuse it."""
    path, ledger = str(tmp_path / "service"), str(tmp_path / "ledger")
    oracle = SSPRegressor(data_norm=1.0, bounds_y=(0, 1), epsilon=1.0, fit_intercept=False)
    with BudgetAccountant(epsilon=10.0, delta=1e-3, ledger=ledger) as accountant:
        policy = EpochGreedy(oracle=oracle, schedule=20, shared=False, n_actions=2)
        loop = Loop(policy, path, learn="elsewhere")
        for event in range(EVENTS):
            loop.rank(f"00{event}", np.array([0.3, 0.3]))
    assert not accountant.charges
    assert main(["learn", path, lines(tmp_path / "all.csv", range(EVENTS))]) == 0
    assert [charge.part for charge in accountant.charges] == ["0", "1"]


@pytest.mark.parametrize("name", ["rewards.csv", "rewards.jsonl"])
def test_a_minute_without_rewards_learns_all_the_same(tmp_path, capsys, name):
    """Events whose cutoff has passed are learned, and it is no error that nothing came."""
    path = str(tmp_path / "service")
    ranked(path, cutoff=1e-9)
    (tmp_path / name).write_text("event,reward\n" if name.endswith("csv") else "")
    assert main(["learn", path, str(tmp_path / name)]) == 0
    assert json.loads(capsys.readouterr().out) == {"learned": 40, "waiting": EVENTS - 40}
