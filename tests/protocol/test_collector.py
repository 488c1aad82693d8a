"""The server: what it refuses, what it remembers, and that it fits what `fit` simulates."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from registry.estimators import reweighted, ssp
from registry.processes import needs_fork, refused_in_a_fork
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skpriv import BudgetAccountant
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.privacy._ledger import _accountant as _lineage
from skpriv.protocol import Collector, report
from skpriv.protocol._device import is_asked

LEVEL, N = 1e-4, 100


def model(make=ssp, **params):
    options = {"epsilon": 2.0, "delta": 0.0, "privacy": "local", "channel": "codebook"}
    return make(**{**options, "fit_intercept": False, **params})


def records(n, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-0.7, 0.7, size=(n, 2))
    return X, np.sign(X @ [1.0, -0.5] + rng.uniform(-0.5, 0.5, n))


def answers(collector, X, y, users=None):
    task = collector.task
    for user in range(len(X)) if users is None else users:
        answer = report(task, X[user], y[user], user=user)
        if answer is not None:
            collector.add(user, answer)


def test_the_task_is_public_json():
    collector = Collector(model(bounds_y=(-2.0, 3.0)), 10, 7, n_features=2)
    task = json.loads(collector.task)
    assert set(task) == {
        "version", "estimator", "query", "channel", "budget", "round", "users", "hash"
    }  # fmt: skip
    assert task["budget"] == {"epsilon": 2.0, "delta": 0.0} and task["round"] == 1
    assert task["query"]["bounds_y"] == [-2.0, 3.0]
    # one parameter more or less is another task
    other = Collector(model(bounds_y=(-2.0, 3.5)), 10, 7, n_features=2)
    assert json.loads(other.task)["hash"] != task["hash"]
    assert Collector(model(bounds_y=(-2.0, 3.0)), 10, 7, n_features=2).task == collector.task


def test_a_round_ends_with_the_last_answer():
    X, y = records(40)
    collector = Collector(model(), 40, 0, n_features=2)
    answers(collector, X, y, range(39))
    assert collector.n_answers == 39
    with pytest.raises(NotFittedError, match="round 1 is open"):
        collector.result()
    answers(collector, X, y, [39])
    assert collector.task is None
    fitted = collector.result()
    assert fitted.n_features_in_ == 2 and np.isfinite(fitted.coef_).all()
    assert fitted.privacy_report_.rows[0].records == 40
    low, high = fitted.confidence_interval(X[:3])
    assert (low <= high).all()


def test_what_is_refused_changes_nothing(tmp_path):
    X, y = records(6)
    collector = Collector(model(), 6, 0, n_features=2, path=tmp_path / "reports.db")
    with pytest.raises(ValueError, match="nobody"):
        collector.close_round()
    answers(collector, X, y, [0, 1])
    good = report(collector.task, X[2], y[2], user=2)
    other = Collector(model(epsilon=1.0), 6, 0, n_features=2)
    count = json.loads(collector.task)["channel"]["count"].to_bytes(4, "little")
    for user, answer, message in [
        (0, good, "has answered"),
        (1, report(collector.task, X[1], y[1], user=1), "has answered"),
        *((user, good, "user=") for user in (6, -1, "2", 2.0, True, None, np.nan, 2**70, b"1")),
        *((2, body, "no report") for body in (b"", None, 7, "skp1", bytearray(good), [1, 2])),
        (2, good[:-1], "cut off"), (2, good[:4] + b"\xff" * 14, "another task"),
        (2, good[:12] + b"\4\0" + good[14:], "number of features"),
        (2, good + b"1", "too long"), (2, good[:14] + b"\xff\xff\xff\xff", "out of range"),
        (2, good[:14] + count, "out of range"),
        (2, report(other.task, X[2], y[2], user=2), "another task"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            collector.add(user, answer)
        assert collector.n_answers == 2
    collector.add(2, good)
    collector.close_round()
    for user in (2, 3):
        with pytest.raises(ValueError, match="too late"):
            collector.add(user, good)
    with pytest.raises(ValueError, match="closed"):
        collector.close_round()


def test_a_restart_loses_nothing(tmp_path):
    X, y = records(50)
    path = tmp_path / "reports.db"
    collector = Collector(model(), 50, 3, n_features=2, path=path)
    task = collector.task
    answers(collector, X, y, range(20))
    collector.close()
    with pytest.raises(ValueError, match="load"):
        Collector(model(), 50, 3, n_features=2, path=path)
    restored = Collector.load(path)
    assert restored.task == task and restored.n_answers == 20
    with pytest.raises(ValueError, match="has answered"):
        restored.add(3, report(task, X[3], y[3], user=3))
    answers(restored, X, y, range(20, 50))
    coef = restored.result().coef_
    restored.close()
    assert_array_equal(Collector.load(path).result().coef_, coef)


def test_the_first_report_may_tell_the_number_of_features(tmp_path):
    X, y = records(40)
    path = tmp_path / "open.db"
    collector = Collector(model(), 40, 0, path=path)
    task = collector.task
    assert json.loads(task)["query"]["n_features"] is None
    answers(collector, X, y, range(10))
    with pytest.raises(ValueError, match="number of features"):
        collector.add(12, report(task, [0.1, 0.2, 0.3], 1.0, user=12))
    collector.close()
    collector = Collector.load(path)
    assert collector.task == task
    answers(collector, X, y, range(10, 40))
    fitted = collector.result()
    assert fitted.coef_.shape == (2,) and fitted._equations.law.reports == 40
    assert fitted._equations.law.code.nearest == json.loads(task)["channel"]["nearest"]


def test_forged_reports_are_refused_in_words_or_are_reports():
    """Of any bytes and any user; the first one once had the server solve for 65,533 features."""
    rng, (X, y) = np.random.RandomState(0), records(30)
    for n_features in (None, 2):
        collector, n = Collector(model(), 30, 0, n_features=n_features), 0
        for user in range(30):
            good = report(collector.task, X[user], y[user], user=user)
            size = len(good) and good[12:14]
            wide = (2**16 - 1).to_bytes(2, "little")
            flipped = bytes([good[0], good[1] ^ 1 << rng.randint(8)])
            for forged in (
                None, b"", "report", good[: rng.randint(len(good))], good + b"\0",
                flipped + good[2:], good[:12] + wide + good[14:], good[:12] + b"\0\0" + good[14:],
                good[:14] + b"\xff" * 4 + good[18:], bytearray(good), good.replace(size, b""),
            ):  # fmt: skip
                with pytest.raises(ValueError, match="report|number"):
                    collector.add(user, forged)
            for stranger in (None, -1, 30, 2**70, "1", 1.0, True, [1]):
                with pytest.raises(ValueError, match="must be a number from 0 to 29"):
                    collector.add(stranger, good)
            assert collector.n_answers == n
            collector.add(user, good)
            n += 1
        assert np.isfinite(collector.result().coef_).all()


def test_the_first_report_may_tell_a_thousand_features_and_no_more():
    for n_features, refused in ((1001, True), (1000, False)):
        collector = Collector(model(), 30, 0)
        sent = report(collector.task, np.zeros(n_features), 0.0, user=0)
        if refused:
            with pytest.raises(ValueError, match="more than 1,000"):
                collector.add(0, sent)
        else:
            collector.add(0, sent)
        assert collector.n_answers == 1 - refused


def test_a_file_without_a_collection(tmp_path):
    with pytest.raises(ValueError, match="no collection"):
        Collector.load(tmp_path / "empty.db")


@pytest.mark.parametrize("params, message", [
    ({"privacy": "central", "channel": "auto"}, "codebook"),
    ({"channel": "gaussian", "delta": 1e-6}, "codebook"),
    ({"privacy": "none", "channel": "auto"}, "codebook"),
    ({"calibration_size": 0.2}, "calibration_size=None"),
])  # fmt: skip
def test_only_codebook_reports_are_collected(params, message):
    with pytest.raises(ValueError, match=message):
        Collector(model(**params), 10, 0, n_features=2)


@pytest.mark.parametrize("arguments", [
    {"n_users": 0}, {"n_users": 2.5}, {"seed": -1}, {"seed": None}, {"n_features": 0},
    {"n_features": 2**16 - 2}, {"n_users": True},
])  # fmt: skip
def test_parameters_are_checked(arguments):
    with pytest.raises(ValueError, match="|".join(arguments)):
        Collector(model(), **{"n_users": 10, "seed": 0, "n_features": 2, **arguments})


def test_shuffled_reports_carry_their_own_seed():
    X, y = records(2_000)
    shuffled = model(privacy="shuffle", epsilon=1.0, delta=1e-6)
    collector = Collector(shuffled, 2_000, 0, n_features=2)
    task = json.loads(collector.task)
    assert task["budget"] == {"epsilon": 1.0, "delta": 1e-6}
    assert task["channel"]["seed"] == "device" and task["channel"]["epsilon"] > 2.0  # amplified
    sent = [report(collector.task, X[user], y[user], user=user) for user in range(50)]
    assert len({answer[-16:] for answer in sent}) == 50
    # whoever hands an answer in, it says the same: the shuffler may give it any number
    for user, answer in enumerate(reversed(sent)):
        collector.add(user, answer)
    collector.close_round()
    assert collector.result().privacy_report_.rows[0].records == 50


def test_forged_reports_move_the_answer_by_a_bounded_amount():
    # all forgers choose the direction that pulls hardest along the first coordinate
    from skpriv._wire import INDEX_BYTES
    from skpriv.privacy import codebook, user_seed

    n, forged = 300, 15
    X, y = records(n)
    honest, attacked = (Collector(model(), n, 0, n_features=2) for _ in range(2))
    fields = json.loads(honest.task)
    sent = {user: report(honest.task, X[user], y[user], user=user) for user in range(n)}
    for user, answer in sent.items():
        honest.add(user, answer)
        if user < forged:
            book = codebook(user_seed(fields, user), fields["channel"]["count"], 3)
            index = int(book[:, 0].argmax())
            answer = answer[:-INDEX_BYTES] + index.to_bytes(INDEX_BYTES, "little")
        attacked.add(user, answer)
    one, other = (collector.result()._equations for collector in (honest, attacked))
    code = one.law.code
    # two unit directions differ by at most 2, their squares by at most 1 in operator norm
    assert np.linalg.norm(other.target - one.target) <= 2.0 * forged / code.mean
    assert np.linalg.norm(other.design - one.design, 2) <= forged / code.contrast
    # Not vacuous: all 15 honest reports would have to be near the forged direction by chance.
    assert np.linalg.norm(other.target - one.target) > 0.1 * forged / code.mean


def test_a_file_has_one_collector(tmp_path):
    X, y = records(10)
    path = tmp_path / "reports.db"
    first = Collector(model(), 10, 0, n_features=2, path=path)
    answers(first, X, y, range(4))
    second = Collector.load(path)  # a restart of a server that did not stop
    good = report(first.task, X[4], y[4], user=4)
    for call in (lambda: first.add(4, good), first.close_round):
        with pytest.raises(ValueError, match="taken this file over"):
            call()
    second.add(4, good)
    assert second.n_answers == 5


def test_a_copy_is_noticed(tmp_path):
    path, copy = tmp_path / "reports.db", tmp_path / "copy.db"
    Collector(model(), 10, 0, n_features=2, path=path).close()
    shutil.copy(path, copy)
    with pytest.warns(UserWarning, match="copy"):
        Collector.load(copy).close()
    Collector.load(copy).close()  # said once


def test_rounds_survive_a_restart_with_fewer_answers(tmp_path):
    X = np.random.RandomState(0).normal(size=(N, 2)) * [1.0, 0.3]
    y = np.sign(X[:, 0])
    path = tmp_path / "rounds.db"
    adaptive = model(reweighted, epsilon=8.0)
    collector = Collector(adaptive, N, 0, n_features=2, path=path)
    tasks, counts, earlier = [], [], []
    while collector.task is not None:
        task = collector.task
        tasks.append(task)
        asked = [user for user in range(N) if is_asked(json.loads(task)["users"], user)]
        assert not set(asked) & set(earlier)  # nobody is asked twice
        for user in earlier[:1]:
            stale = report(tasks[0], X[user], y[user], user=user)
            for number, reason in ((user, "not asked"), (asked[0], "another task")):
                with pytest.raises(ValueError, match=reason):
                    collector.add(number, stale)
        earlier += asked
        for user in asked[: len(asked) // 2]:
            collector.add(user, report(task, X[user], y[user], user=user))
        collector.close()
        collector = Collector.load(path)
        assert collector.task == task and collector.n_answers == len(asked) // 2
        collector.close_round()
        counts.append(len(asked) // 2)
    assert len(tasks) == 4 and len(set(tasks)) == 4
    rows = collector.result().privacy_report_.rows
    assert [row.records for row in rows] == counts
    assert all(row.cost.epsilon() == 8.0 for row in rows)


def test_every_other_bit_is_refused_or_is_another_answer():
    collector = Collector(model(), 10, 0, n_features=2)
    good = report(collector.task, [0.1, 0.2], 1.0, user=1)
    fields = json.loads(collector.task)
    for bit in range(8 * len(good)):
        forged = bytearray(good)
        forged[bit // 8] ^= 1 << bit % 8
        index = int.from_bytes(forged[14:], "little")
        if bit // 8 >= 14 and index < fields["channel"]["count"]:  # every index is an answer
            Collector(model(), 10, 0, n_features=2).add(1, bytes(forged))
        else:
            with pytest.raises(ValueError):
                collector.add(1, bytes(forged))
            assert collector.n_answers == 0


@pytest.mark.slow
def test_adaptive_rounds_have_the_law_of_the_simulated_fit():
    n, repetitions = 60, 100
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, 2)) * [1.0, 0.3]
    y = np.sign(X[:, 0] + rng.uniform(-1.0, 1.0, n))
    adaptive = model(reweighted, epsilon=12.0, n_spectral_iter=2)
    collected, simulated = np.empty((repetitions, 2)), np.empty((repetitions, 2))
    for seed in range(repetitions):
        collector, rounds = Collector(adaptive, n, seed, n_features=2), 0
        while collector.task is not None:
            answers(collector, X, y)
            rounds += 1
        assert rounds == 3
        collected[seed] = collector.result().coef_
        simulated[seed] = clone(adaptive).set_params(random_state=seed).fit(X, y).coef_
    for axis in ([1.0, 0.0], [0.0, 1.0], [0.8, -0.6]):
        assert stats.ks_2samp(collected @ axis, simulated @ axis).pvalue > LEVEL / 3


def _began(tmp_path, accountant):
    """A collection with ten users, of whom three have answered."""
    X, y = records(10)
    with accountant:
        collector = Collector(model(), 10, 0, n_features=2, path=tmp_path / "a.db")
        answers(collector, X, y, range(3))
    return collector, X, y


def test_loading_is_charged_to_whoever_has_not_paid(tmp_path):
    accountant = BudgetAccountant(epsilon=2.0)
    collector, X, y = _began(tmp_path, accountant)
    collector.close()
    with BudgetAccountant(epsilon=0.1) as poor, pytest.raises(BudgetExceeded):
        Collector.load(tmp_path / "a.db")
    with accountant, BudgetAccountant(epsilon=2.0) as other:
        collector = Collector.load(tmp_path / "a.db")
        answers(collector, X, y, range(3, 10))
        collector.close()
    with other:
        Collector.load(tmp_path / "a.db").close()
    assert poor.charges == [] and len(accountant.charges) == len(other.charges) == 1


@pytest.mark.filterwarnings("ignore:.*is not the file:UserWarning")
@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("first", ["copy", "original"])
def test_of_two_copies_one_goes_on(where, first, tmp_path):
    accountant, path, copied = BudgetAccountant(4.0), tmp_path / "a.db", tmp_path / "copy.db"
    collector, X, y = _began(tmp_path, accountant)
    shutil.copy(path, copied)
    shutil.copy(f"{path}-wal", f"{copied}-wal")
    good = [report(collector.task, X[user], y[user], user=user) for user in range(10)]
    with accountant if where == "inside" else BudgetAccountant(9.0):
        if first == "copy":
            Collector.load(copied).close()
        else:
            collector.add(3, good[3])
        with pytest.raises(PrivacyError, match="copy.*has gone on"):
            if first == "copy":
                collector.add(3, good[3])
            else:
                Collector.load(copied)
        # whoever was first goes on, and is paid for
        winner = collector if first == "original" else Collector.load(copied)
        for user in range(winner.n_answers, 10):
            winner.add(user, good[user])
        assert winner.result().privacy_report_.rows[0].records == 10
    assert accountant.spent.epsilon == 2.0


@pytest.mark.filterwarnings("ignore:.*is not the file:UserWarning")
def test_a_copy_that_was_left_behind_closes_no_round(tmp_path):
    """It would ask the users of the next round, whom the other one asks as well."""
    accountant, path, copied = BudgetAccountant(4.0), tmp_path / "a.db", tmp_path / "copy.db"
    collector, _, _ = _began(tmp_path, accountant)
    shutil.copy(path, copied)
    shutil.copy(f"{path}-wal", f"{copied}-wal")
    with accountant:
        Collector.load(copied).close()
    with pytest.raises(PrivacyError, match="copy.*has gone on"):
        collector.close_round()
    assert collector.round == 1


@pytest.mark.filterwarnings("ignore:.*is not the file:UserWarning")
def test_a_file_that_is_put_back_does_not_go_on(tmp_path):
    """Whatever earlier synced state it has, wherever it is put, and whoever is active."""
    accountant, path = BudgetAccountant(4.0), tmp_path / "a.db"
    collector, X, y = _began(tmp_path, accountant)
    states = []
    for user in range(3, 10):
        states.append([Path(f"{path}{end}").read_bytes() for end in ("", "-wal")])
        collector.add(user, report(collector.task, X[user], y[user], user=user))
    collector.close()
    for place, state in enumerate(states):
        for where in (path, tmp_path / f"{place}.db"):
            for end, content in zip(("", "-wal"), state, strict=True):
                Path(f"{where}{end}").write_bytes(content)
            for active in (accountant, BudgetAccountant(9.0)):
                with active, pytest.raises(PrivacyError, match="has gone on"):
                    Collector.load(where)


@pytest.mark.parametrize("after", ["the file", "the first ledger"])
def test_a_server_that_is_killed_between_its_file_and_a_ledger_goes_on(
    after, tmp_path, monkeypatch
):
    accountants = [BudgetAccountant(2.0), BudgetAccountant(3.0)]
    with accountants[0]:
        collector, X, y = _began(tmp_path, accountants[1])
    good = report(collector.task, X[3], y[3], user=3)
    told, tell = [], _lineage.advance

    def killed(transaction, lineage):
        if len(told) == (after == "the first ledger"):
            raise KeyboardInterrupt
        told.append(lineage)
        return tell(transaction, lineage)

    for _ in range(3):
        monkeypatch.setattr(_lineage, "advance", killed)
        with pytest.raises(KeyboardInterrupt):
            collector.add(3, good)
        monkeypatch.undo()
        told.clear()
        collector.close()
        collector = Collector.load(tmp_path / "a.db")
    collector.add(3, good)
    assert collector.n_answers == 4
    assert [len(accountant.charges) for accountant in accountants] == [1, 1]


@needs_fork
def test_a_fork_takes_no_reports_and_a_copy_is_not_made():
    collector = Collector(model(), 10, 0, n_features=2)
    good = report(collector.task, [0.1, 0.2], 1.0, user=1)
    assert refused_in_a_fork(lambda: collector.add(1, good))
    with pytest.raises(PrivacyError, match="not copied"):
        clone(collector, safe=False)
    collector.add(1, good)


@pytest.mark.parametrize("bounds", [(np.longdouble(-1), 1.0), np.array([-1, 1], np.longdouble)])
def test_bounds_may_be_long_numbers(bounds):
    task = Collector(model(bounds_y=bounds), n_users=3, seed=0, n_features=2).task
    assert task == Collector(model(bounds_y=(-1.0, 1.0)), n_users=3, seed=0, n_features=2).task
