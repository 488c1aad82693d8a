"""A device's memory: no task is answered twice, and no more is lost than was agreed to."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from registry.estimators import ssp

from skpriv import BudgetAccountant
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.privacy import task_hash
from skpriv.protocol import Collector, DeviceLedger, report


def task(epsilon=2.0, seed=0):
    model = ssp(epsilon=epsilon, delta=0.0, privacy="local", channel="codebook")
    return Collector(model, 10, seed, n_features=2).task


def changed_task(**parts):
    """A task with other values in some of its parts, and the hash that belongs to them."""
    fields = json.loads(task())
    for part, change in parts.items():
        fields[part].update(change)
    return json.dumps({**fields, "hash": task_hash(fields)})


def answer(text, ledger, **params):
    return report(text, [0.1, 0.2], 0.3, user=3, ledger=ledger, **params)


def test_no_task_is_answered_twice(tmp_path):
    assert answer(task(), DeviceLedger(tmp_path / "mine.db", 100.0)) is not None
    again = DeviceLedger(tmp_path / "mine.db", 100.0)  # after a restart
    with pytest.raises(PrivacyError, match="as often as it may"):
        answer(task(), again)
    assert answer(task(seed=1), again) is not None
    assert again.spent.epsilon == 4.0 and again.n_answers == 2
    with pytest.raises(TypeError, match="must be a DeviceLedger"):
        answer(task(seed=2), tmp_path / "mine.db")


def test_answers_add_up_to_what_was_agreed_to(tmp_path):
    answer(task(2.0), DeviceLedger(tmp_path / "mine.db", 9.0))
    ledger = DeviceLedger(tmp_path / "mine.db", 5.0)  # the user has agreed to less since then
    answer(task(3.0), ledger)
    with pytest.raises(BudgetExceeded, match="Nothing was released or charged"):
        answer(task(0.1), ledger)
    assert ledger.spent.epsilon == 5.0  # what was refused was not written down
    assert str(ledger) == "2 answers, epsilon=5 of 5"
    # A larger number than that of the file allows no more.
    assert str(DeviceLedger(tmp_path / "mine.db", 60.0)) == "2 answers, epsilon=5 of 9"


def test_a_ledger_of_persons_takes_no_answer_about_a_record(tmp_path):
    BudgetAccountant(9.0, ledger=tmp_path / "mine.db", unit=("patient", 2))
    with pytest.raises(PrivacyError, match="would protect a row"):
        answer(task(), DeviceLedger(tmp_path / "mine.db", 9.0))


def test_nothing_is_charged_without_an_answer(tmp_path):
    ledger = DeviceLedger(tmp_path / "mine.db", 5.0)
    with pytest.raises(PrivacyError, match="largest_epsilon=1.0"):
        answer(task(2.0), ledger, largest_epsilon=1.0)
    with pytest.raises(ValueError, match="hash"):
        answer(task().replace('"round": 1', '"round": 2'), ledger)
    with pytest.raises(ValueError, match="features"):
        report(task(), [0.1], 0.3, user=3, ledger=ledger)
    assert ledger.spent.epsilon == 0.0


def test_threads_do_not_answer_twice(tmp_path):
    text, ledger = task(), DeviceLedger(tmp_path / "mine.db", 100.0)

    def answered(_):
        try:
            return answer(text, ledger) is not None
        except PrivacyError:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(answered, range(8))) == [False] * 7 + [True]


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, np.nan])
def test_an_agreement_is_a_number(tmp_path, epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        DeviceLedger(tmp_path / "mine.db", epsilon)


@pytest.mark.parametrize("change", [
    {"nearest": 0}, {"nearest": 64}, {"nearest": -1}, {"nearest": 2.0}, {"nearest": True},
    {"count": 0}, {"count": None}, {"count": "64"}, {"seed": "server"},
    {"epsilon": -1.0}, {"epsilon": None}, {"epsilon": "1"}, {"epsilon": True}, {"epsilon": 0},
    {"epsilon": 0.0}, {"epsilon": -0.0}, {"epsilon": 10**400},
])  # fmt: skip
def test_a_task_that_cannot_be_drawn_for_is_refused(change, tmp_path):
    ledger = DeviceLedger(tmp_path / "mine.db", 100.0)
    with pytest.raises(ValueError, match="the task has parts"):
        answer(changed_task(channel=change), ledger, largest_epsilon=50.0)
    assert ledger.n_answers == 0


def test_the_epsilon_that_is_drawn_by_is_charged_and_not_the_stated_one(tmp_path):
    text = changed_task(budget={"epsilon": 0.5}, channel={"epsilon": 5.0})
    ledger = DeviceLedger(tmp_path / "mine.db", 100.0)
    with pytest.raises(PrivacyError, match="epsilon=5.0, more than"):
        answer(text, ledger, largest_epsilon=1.0)
    assert answer(text, ledger) is not None
    assert ledger.spent.epsilon == 5.0


@pytest.mark.parametrize("change", [
    {"weights": {"kind": "halves", "matrix": [[1e-149, 0.0], [0.0, 0.0]]}},  # no root
    {"weights": {"kind": "halves", "matrix": [[1.0, 0.0], [0.0, 0.0]], "root": [[1.0, 1.0]] * 3}},
    {"weights": {"kind": "thirds", "matrix": [[1.0, 0.0], [0.0, 1.0]]}},
    {"weights": {"kind": "whole", "matrix": [[1.0, 0.0]]}},
    {"weights": {"kind": "residual", "theta": [1.0, 0.0], "limit": 0.0}},
    {"weights": {"kind": "residual", "theta": [1.0], "limit": 1.0}},
    {"weights": []}, {"bounds_y": [0.0, 0.0]}, {"bounds_y": ["0", "1"]}, {"data_norm": "1"},
    {"data_norm": None}, {"data_norm": -1.0}, {"parts": [1e300, 0.0]}, {"offset": "0"},
    {"low": [0.0, 0.0], "high": [0.0, 0.0]}, {"fit_intercept": 1},
])  # fmt: skip
def test_a_query_that_not_all_records_can_answer_is_refused_for_all(change, tmp_path):
    text, ledger = changed_task(query=change), DeviceLedger(tmp_path / "mine.db", 100.0)
    for x, y in [([0.0, 0.0], np.nan), ([0.9, 0.2], 0.5), ([np.nan, 0.0], 0.0), ([1e-9, 0], 1)]:
        with pytest.raises(ValueError, match="the task's query"):
            report(text, x, y, user=0, ledger=ledger)
    assert ledger.spent.epsilon == 0.0


@pytest.mark.parametrize("summed", [False, True])
def test_a_record_is_looked_at_after_the_charge(summed, tmp_path):
    class Record:
        shape, size = (2,), 2

        def __array__(self, dtype=None, copy=None):
            assert ledger.n_answers == 1
            return np.zeros(2)

    ledger = DeviceLedger(tmp_path / "mine.db", 100.0, 1e-6)
    text = Collector(ssp(privacy="aggregate"), 10, n_features=2).task if summed else task()
    assert report(text, Record(), 0.0, user=0, ledger=ledger) is not None
