"""Attacks that a device, or a server that must open once, once fell to."""

import json
import os
import shutil
import sqlite3
from functools import partial

import numpy as np
import pytest
from registry.estimators import ssp
from registry.refusals import uncharged

from skpriv._sqlite import Database
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.linear_model import LinearRegression
from skpriv.privacy import Budget, Cost, Lattice, shares_needed
from skpriv.privacy._noise._lattice import LARGEST_VARIANCE
from skpriv.protocol import Collector, DeviceLedger, ShareServer, report
from skpriv.protocol._ledger import MOST_ATTEMPTS
from skpriv.protocol._sums import open_round, task_fields

N = 60
X = np.random.RandomState(0).uniform(-0.5, 0.5, (N, 1))
Y = X[:, 0]
ssp = partial(ssp, privacy="aggregate")


def answer(task, ledger, **parameters):
    return report(task, [0.2], 0.3, user=0, ledger=ledger, **parameters)


@pytest.mark.parametrize("delta", [1e-2, 0.9, 1.0 - 1e-12])
def test_the_delta_of_a_task_is_counted(delta, tmp_path):
    """Its maker chooses it: with a delta of nearly 1 the sum of one user is nearly exact."""
    ledger = DeviceLedger(tmp_path / "mine", epsilon=0.101, delta=1e-6)
    task = Collector(ssp(epsilon=0.01, delta=delta), 1, n_features=1, n_min=1).task
    with pytest.raises(BudgetExceeded):
        answer(task, ledger)
    with pytest.raises(PrivacyError, match="agreed to"):
        answer(task, ledger, largest_epsilon=0.01)
    assert ledger.spent == Budget(0.0) and ledger.n_answers == 0


def test_a_task_of_few_devices_is_refused(tmp_path):
    ledger = DeviceLedger(tmp_path / "mine", epsilon=1.0, delta=1e-6, n_min=50)
    with pytest.raises(PrivacyError, match="n_min=50"):
        answer(Collector(ssp(), N, n_features=1, n_min=49).task, ledger)
    assert ledger.n_answers == 0
    assert answer(Collector(ssp(), N, n_features=1, n_min=50).task, ledger)


def test_a_device_agrees_to_what_its_own_run_finds(tmp_path):
    """One collection of the device's own epsilon and delta is all that fits, and it does fit."""
    ledger = DeviceLedger(tmp_path / "mine", epsilon=1.0, delta=1e-6)
    task = Collector(ssp(), N, n_features=1).task
    answer(task, ledger)
    assert ledger.charges[0].cost == open_round(json.loads(task)).cost
    assert ledger.charges[0].cost == Cost.from_mu(Budget(1.0, 1e-6).mu)
    with pytest.raises(BudgetExceeded):
        answer(Collector(ssp(), N, n_features=1).task, ledger)
    with pytest.raises(BudgetExceeded):  # the first total stands in the file
        answer(Collector(ssp(), N, n_features=1).task, DeviceLedger(tmp_path / "mine", 9.0, 1e-6))


def test_shuffled_shares_are_paid_in_delta_too(tmp_path):
    ledger = DeviceLedger(tmp_path / "mine", epsilon=1.0, delta=1e-6)
    task = Collector(ssp(), N, n_features=1, n_min=N, transport="shuffled-shares").task
    answer(task, ledger)
    owed = (1.0 + np.e) * 2.0**-40  # (1 + exp(epsilon)) of the distance that shares may have
    assert ledger.charges[0].cost.delta == pytest.approx(owed, rel=1e-12)
    assert ledger.spent.epsilon <= 1.0 + 1e-9
    with pytest.raises(PrivacyError, match="as often as it may"):
        answer(task, ledger)


def reported(task, server):
    """All users have reported to a server."""
    server.open(task)
    for user in range(N):
        server.add(user, report(task, X[user], Y[user], user=user)[server.which])
    return server


def test_a_closed_round_is_not_answered_again(tmp_path):
    ledger = DeviceLedger(tmp_path / "mine", epsilon=100.0, delta=1e-6)
    collector = Collector(ssp(), N, n_features=1, n_min=N)
    settings = collector._settings
    total = [0] * open_round(json.loads(collector.task)).needed.size
    for answers in ([], [(total, N)]):
        assert answer(json.dumps(task_fields(settings, answers, 0)), ledger)
    spent = ledger.spent
    for attempt in range(1, 5):
        with pytest.raises(PrivacyError, match="a later round"):
            answer(json.dumps(task_fields(settings, [], attempt)), ledger)
    assert ledger.spent == spent


def test_attempts_are_capped_and_charged(tmp_path):
    """Each may have been opened by a server that has forgotten the others."""
    ledger = DeviceLedger(tmp_path / "mine", epsilon=100.0, delta=1e-6)
    collector = Collector(ssp(), N, n_features=1)
    first = open_round(json.loads(collector.task))
    answer(collector.task, ledger)
    for _ in range(MOST_ATTEMPTS - 1):
        collector.repeat_round()
        answer(collector.task, ledger)
    mu2 = first.cost.gaussian + (MOST_ATTEMPTS - 1) * first.needed.cost.gaussian
    assert sum(charge.cost.gaussian for charge in ledger.charges) == pytest.approx(mu2, rel=1e-12)
    with pytest.raises(PrivacyError, match="no more attempts"):
        collector.repeat_round()
    for attempt in (0, MOST_ATTEMPTS):
        with pytest.raises(PrivacyError, match="as often as it may"):
            answer(json.dumps(task_fields(collector._settings, [], attempt)), ledger)
    tight = DeviceLedger(tmp_path / "other", epsilon=1.0, delta=1e-6)
    answer(collector.task, tight)
    with pytest.raises(BudgetExceeded):
        answer(json.dumps(task_fields(collector._settings, [], 7)), tight)


@pytest.fixture(scope="module")
def pasts():
    """Settings of a collection, and the answers of its rounds in two pasts."""
    model = LinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1), epsilon=4.0, privacy="aggregate")
    settings = Collector(model, 600, n_features=1, n_min=600, transport="shuffled-shares")._settings

    def past(second):
        """Answers of rounds, one of which says what another past contradicts."""
        answers = []
        for place in range(4):
            needed = open_round(task_fields(settings, answers, 0)).needed
            vector = np.zeros(needed.size)
            if place == 1:
                vector += second * 600 * needed.query.sensitivity / needed.lattice.step
            answers.append(([int(number) for number in np.rint(vector)], 600))
        return answers

    return settings, past(0.3), past(-1.0)


@pytest.mark.parametrize("descending", [True, False])
def test_rounds_go_up_along_one_past(descending, pasts, tmp_path):
    settings, one, other = pasts
    places = range(3, 0, -1) if descending else range(4)
    plan = [(one, place) for place in places] + [(other, place) for place in (2, 1, 0)]
    ledger, answered = DeviceLedger(tmp_path / "mine", 4.0, 1e-6), []
    for answers, place in plan:
        try:
            answer(json.dumps(task_fields(settings, answers[:place], 0)), ledger)
        except PrivacyError:
            continue
        answered.append((answers is one, place))
    assert answered == [(True, place) for place in (places if not descending else (3,))]


@pytest.mark.parametrize("transport", ["two-servers", "shuffled-shares"])
def test_what_no_honest_collection_asks_is_refused(transport):
    """A total of fewer users than are counted on, and shuffled shares that were sent before."""
    settings = Collector(ssp(), N, n_features=1, n_min=50, transport=transport)._settings
    total = [0] * open_round(task_fields(settings, [], 0)).needed.size
    open_round(task_fields(settings, [(total, 50)], 0))
    for n, attempt in [(49, 0), (50, 1)][: 1 if transport == "two-servers" else 2]:
        with pytest.raises(ValueError, match="nothing was answered"):
            open_round(task_fields(settings, [(total, n)], attempt))
    fields = json.loads(json.dumps(task_fields(settings, [], 0)))
    fields["estimator"]["params"]["privacy"] = "central"
    with pytest.raises(ValueError, match="nothing was answered"):
        open_round(fields)


@pytest.mark.parametrize("epsilon, users", [(1e-3, 1), (1e-5, 3), (1e6, 3), (1.0, 10**6)])
def test_no_later_round_fails_after_the_charge(epsilon, users, tmp_path):
    """Every round of a collection that has begun has noise that a device can draw."""
    collector = Collector(ssp(epsilon=epsilon), users, n_features=1, n_min=users)
    ledger = DeviceLedger(tmp_path / "mine", epsilon, 1e-6)
    settings, answers = collector._settings, []
    while True:
        task = task_fields(settings, answers, 0)
        try:
            needed = open_round(task).needed
        except ValueError as error:
            assert "the last round is closed" in str(error)
            break
        answer(json.dumps(task), ledger)
        exact = np.ravel(needed.query.sum(np.full((1, 1), 0.2), np.array([0.3]))) * users
        noise = np.random.RandomState(0).normal(size=needed.size) * needed.lattice.scale
        total = np.clip((exact + noise) / needed.lattice.step, -(2.0**62), 2.0**62)
        answers.append(([int(number) for number in total], users))
    assert len(answers) > 1


@pytest.mark.parametrize(
    "model",
    [
        ssp(epsilon=1e-13, delta=1e-14),  # the first round does not fit
        ssp(epsilon=1e-13, delta=1e-7),  # the first one fits, and one with a smaller share does not
    ],
    ids=["first", "later"],
)
def test_what_no_device_can_answer_is_refused_before_any_charge(model):
    with uncharged("do not fit", PrivacyError):
        Collector(model, 1, n_features=1, n_min=1)


def test_the_widest_noise_of_a_grid_can_be_drawn():
    """The grid knows the sampler's limit, and a user's noise stays below it."""
    assert LARGEST_VARIANCE == 2**90
    for mu in np.logspace(-8, 0, 33):
        for size, adding in ((1, 1), (130, 7), (10_000, 10**6)):
            try:
                lattice = Lattice.calibrated(1.0, mu, size, adding, adding)
            except PrivacyError:
                continue
            assert 1 <= lattice.variance <= LARGEST_VARIANCE


def files(path):
    """What is on the disk: the file and what SQLite keeps beside it, but for the mark."""
    return [path.with_name(path.name + end) for end in ("", "-wal", "-journal")]


def kept(path, folder):
    folder.mkdir()
    for file in files(path):
        if file.exists():
            shutil.copy(file, folder)


def put_back(path, folder):
    for file in (*files(path), path.with_name(path.name + "-shm")):
        file.unlink(missing_ok=True)
    for file in folder.iterdir():
        shutil.copy(file, path.parent)


def test_a_server_that_is_put_back_opens_no_second_sum(tmp_path):
    """Whatever earlier state of its file is put back: the same sum, or none."""
    path, states = tmp_path / "server", []
    collector = Collector(ssp(epsilon=8.0), N, n_features=1, n_min=50)
    server = ShareServer(1, path)
    server.open(collector.task)
    for user in range(N):
        if user % 20 == 0:
            states.append(tmp_path / f"state {user}")
            kept(path, states[-1])
        server.add(user, report(collector.task, X[user], Y[user], user=user)[1])
    states.append(tmp_path / "all")
    kept(path, states[-1])
    whole = server.total(range(N))
    server.close()
    for state in states:
        put_back(path, state)
        with pytest.raises(PrivacyError, match="lacks entries"):
            ShareServer(1, path).total(range(1, N))
    put_back(path, tmp_path / "state 0")
    path.unlink()
    with pytest.raises(PrivacyError, match="lacks entries"):  # nor does one that begins anew
        ShareServer(1, path)
    assert json.loads(whole)["n"] == N


def test_an_opening_is_written_before_the_sum_is_formed(tmp_path, monkeypatch):
    path = tmp_path / "server"
    collector = Collector(ssp(epsilon=8.0), N, n_features=1, n_min=50)
    server = reported(collector.task, ShareServer(1, path))

    def crash(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ShareServer, "_formed", crash)
        with pytest.raises(KeyboardInterrupt):
            server.total(range(N))
    server.close()
    again = ShareServer(1, path)
    with pytest.raises(PrivacyError, match="opened for other users"):
        again.total(range(1, N))
    assert json.loads(again.total(range(N)))["n"] == N and again.users == []
    left = b"".join(file.read_bytes() for file in files(path) if file.exists())
    assert report(collector.task, X[0], Y[0], user=0)[1][-16:] not in left


def test_a_device_that_is_put_back_answers_nothing_once_more(tmp_path):
    path = tmp_path / "mine"
    ledger = DeviceLedger(path, epsilon=4.0, delta=1e-6)
    states = [tmp_path / "state 0"]
    kept(path, states[-1])
    for place in range(3):
        answer(Collector(ssp(), N, n_features=1).task, ledger)
        states.append(tmp_path / f"state {place + 1}")
        kept(path, states[-1])
    for state in states[:-1]:
        put_back(path, state)
        with pytest.raises(PrivacyError, match="lacks entries"):
            answer(Collector(ssp(), N, n_features=1).task, DeviceLedger(path, 4.0, 1e-6))
    put_back(path, states[-1])
    assert DeviceLedger(path, 4.0, 1e-6).n_answers == 3


def test_forged_totals_are_refused_in_words(tmp_path):
    """One server lies, or both: a number of users that is none, or brackets without an end."""
    collector = Collector(ssp(epsilon=8.0), N, n_features=1, n_min=50)
    servers = [
        reported(collector.task, ShareServer(which, tmp_path / f"{which}")) for which in (0, 1)
    ]
    totals = [json.loads(server.total(range(N))) for server in servers]
    junk = [None, -1, 1.0, 49, 61, 2**70, "60", [], {}, True, float("inf"), float("nan")]
    for name in totals[0]:
        for value in junk:
            for liars in (0, 1), (1,):
                forged = [{**total, name: value} if total["which"] in liars else total
                          for total in totals]  # fmt: skip
                if value == totals[1][name] or (name, liars) == ("users", (0, 1)):
                    continue
                with pytest.raises((ValueError, PrivacyError), match="expected|different|fewer"):
                    collector.close_round(*map(json.dumps, forged))
    for text in (b"", b"[" * 100_000, b"\xff", b"null", None, 7, "{}"):
        with pytest.raises(ValueError, match="two totals are expected"):
            collector.close_round(json.dumps(totals[0]), text)
    assert collector.round == 1
    collector.close_round(*map(json.dumps, totals))
    assert collector.round == 2


def test_a_server_needs_a_file():
    with pytest.raises(ValueError, match="must not forget"):
        ShareServer(0, None)


def test_every_file_is_synced_before_a_transaction_ends(tmp_path):
    for stays_open in (True, False):
        database = Database(tmp_path / f"{stays_open}", "test", stays_open=stays_open)
        database.create()
        assert database.ask("PRAGMA synchronous") == [(3,)]
        assert os.path.getsize(database.path) > 0


def test_a_file_that_nobody_holds_is_closed(tmp_path):
    database = Database(tmp_path / "file", "test", stays_open=True)
    database.create()
    database.ask("SELECT 1")
    connection = database._connection
    del database
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_shares_hide_a_sum_of_those_who_are_counted_on():
    """Of 20,000 users 100 may be all who shuffle honestly: they need more shares than all would."""
    task = Collector(ssp(), 20_000, n_features=1, n_min=100, transport="shuffled-shares").task
    needed = open_round(json.loads(task)).needed
    assert needed.shares >= shares_needed(100, needed.size) > shares_needed(20_000, needed.size)
