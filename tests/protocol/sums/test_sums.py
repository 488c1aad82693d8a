"""Devices, two servers and an analyst: the right sum, one charge, and nothing else to be seen."""

import itertools
import json
import os
from functools import partial
from hashlib import sha256

import numpy as np
import pytest
from registry.estimators import iht, reweighted, ssp
from registry.tasks import changed_task
from scipy import stats
from sklearn.base import clone

from skpriv import BudgetAccountant
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import LinearRegression
from skpriv.privacy import read_task, shares_needed, task_hash
from skpriv.protocol import Collector, DeviceLedger, ShareServer, _sums as _device, report
from skpriv.protocol._record import CHANNEL
from skpriv.protocol._sums import open_round

N = 40
NAMES = itertools.count()
X = np.random.RandomState(0).uniform(-0.7, 0.7, size=(N, 2))
Y = X @ [0.5, -0.5]
SUMS = {"privacy": "aggregate", "epsilon": 8.0}
ssp, reweighted = partial(ssp, **SUMS), partial(reweighted, **SUMS)


def send(task, servers, users=range(N), lost=()):
    """Let users answer a task; a lost message is (user, server)."""
    for server in servers:
        server.open(task)
    for user in users:
        messages = report(task, X[user], Y[user], user=user)
        for server, message in zip(servers, messages, strict=True):
            if (user, server.which) not in lost:
                server.add(user, message)


def collect(collector, servers, users=range(N), lost=()):
    """Answer all rounds, the first one with lost messages."""
    while collector.task is not None:
        send(collector.task, servers, users, lost)
        both = sorted(set(servers[0].users) & set(servers[1].users))
        collector.close_round(*(server.total(both) for server in servers))
        lost = ()
    return collector


@pytest.fixture
def two(tmp_path):
    """Makes two servers, each time with files of their own: pytest may give a folder twice."""
    return lambda: [ShareServer(which, tmp_path / f"{next(NAMES)}.server") for which in (0, 1)]


@pytest.mark.parametrize(
    "model",
    [ssp(), reweighted(), LinearRegression(bounds_X=(-0.7, 0.7), bounds_y=(-1.0, 1.0), **SUMS)],
    ids=lambda model: type(model).__name__,
)
def test_devices_fit_what_sums_can_fit(model, two):
    """Several rounds, each a sum of the same users; the report has every query at its price."""
    fitted = collect(Collector(model, N, n_features=2), two()).result()
    again = clone(model).set_params(random_state=0).fit(X, Y)
    rows, simulated = fitted.privacy_report_.rows, again.privacy_report_.rows
    assert [row.query for row in rows] == [row.query for row in simulated]
    assert fitted.privacy_report_.guarantee.epsilon <= 8.0 * (1.0 + 1e-9)
    assert "at least 38 of 40 devices" in str(fitted.privacy_report_)
    assert "on each device" in fitted.privacy_report_.randomness
    assert "simulated" in clone(model).fit(X, Y).privacy_report_.randomness


def test_the_sum_is_right(two):
    """With next to no noise the released moments are those of the records, to the grid."""
    collector = collect(Collector(ssp(epsilon=1e6), N, n_features=2), two())
    exact = ssp(privacy="none").fit(X, Y)
    np.testing.assert_allclose(collector.result().coef_, exact.coef_, atol=1e-2)
    released = collector.result()._equations
    np.testing.assert_allclose(released.design, exact._equations.design, atol=0.1)
    np.testing.assert_allclose(released.target, exact._equations.target, atol=0.1)


def test_a_device_adds_its_part_of_the_noise_to_its_rounded_vector(monkeypatch):
    """That of those who are counted on has, together, the scale for which a user has paid."""
    needed = open_round(read_task(Collector(ssp(), 10, n_features=2, n_min=8).task)).needed
    lattice, exact, drawn = needed.lattice, needed.query.sum(X[:1], Y[:1]).ravel(), []
    monkeypatch.setattr(_device, "discrete_gaussian", lambda *asked: drawn.append(asked) or 7)
    steps = _device.noisy_vector(needed, X[0], Y[0]) - 7
    assert abs(steps - exact / lattice.step).max() <= 0.5
    ((variance, centers, entropy),) = drawn
    assert 8 * variance * lattice.step**2 == pytest.approx(lattice.scale**2, rel=1e-12)
    assert centers.tolist() == [0.0] * needed.size and entropy is os.urandom


def test_one_server_sees_uniform_numbers():
    """Of equal records each coordinate of a share is uniform, at either server."""
    task = Collector(ssp(), N, n_features=2).task
    needed = open_round(read_task(task)).needed
    size, alone = needed.size, _device.noisy_vector(needed, [0.0, 0.0], 0.0)
    assert len(set(alone.tolist())) > size / 2  # each number has noise of its own
    sent = [report(task, [0.7, 0.7], 1.0, user=3) for _ in range(200)]
    for shares in zip(*sent, strict=True):
        numbers = [_device.unpacked(read_task(task), share, size)[1] for share in shares]
        for column in np.array(numbers).astype(float).T / 2.0**64:
            assert stats.kstest(column, "uniform").pvalue > 1e-9  # the noise has no seed


def test_a_user_who_reaches_one_server_is_dropped_whole(two):
    lost = {(3, 0), (5, 1), (7, 0)}
    some, all_ = (
        collect(Collector(ssp(), N, n_features=2, n_min=30), two(), range(38), lost=missing)
        for missing in (lost, ())
    )
    some, all_ = (collector.result().privacy_report_.rows for collector in (some, all_))
    assert [row.records for row in some] == [35, 38, 38]  # the last two about residuals and clips
    # The noise of the users who are left is what the report tells.
    assert some[0].scale == pytest.approx(all_[0].scale * np.sqrt(35 / 38), rel=1e-6)


def test_too_few_users_are_not_opened_and_the_round_is_repeated_for_nothing(two):
    with BudgetAccountant(epsilon=9.0, delta=1e-5) as accountant:
        collector, servers = Collector(ssp(), N, n_features=2), two()
        first = collector.task
        send(first, servers, range(37))
        with pytest.raises(PrivacyError, match="fewer than the 38"):  # a single one is missing
            servers[0].total(range(37))
        collector.repeat_round()
        assert collector.task != first
        with pytest.raises(ValueError, match="another task"):
            servers[0].add(30, report(collector.task, X[30], Y[30], user=30)[0])
        collect(collector, servers)
        assert len(accountant.charges) == 1


def test_a_round_is_opened_once_for_one_set_of_users(two):
    """The sums of two sets of users that differ by one would show that one."""
    collector, servers = Collector(ssp(), N, n_features=2, n_min=10), two()
    send(collector.task, servers, range(1, N))
    with pytest.raises(ValueError, match="has not reported"):
        servers[0].total(range(N))
    send(collector.task, servers, [0])
    whole = servers[0].total(range(N))
    assert servers[0].total(range(N)) == whole  # a message that was lost is sent again
    with pytest.raises(PrivacyError, match="opened for other users"):
        servers[0].total(range(1, N))
    assert servers[0].users == []  # nothing is left to be opened
    with pytest.raises(ValueError, match="closed"):
        servers[0].add(0, report(collector.task, X[0], Y[0], user=0)[0])
    fields = {**read_task(collector.task), "attempt": 1}
    fields["hash"] = task_hash(fields)
    with pytest.raises(PrivacyError, match="one sum of each round"):
        servers[0].open(json.dumps(fields))
    with pytest.raises(ValueError, match="different users"):
        collector.close_round(whole, servers[1].total(range(1, N)))


def test_servers_and_analyst_go_on_after_a_restart(tmp_path):
    """Each of the three is started again in the middle of a round, and nothing is paid twice."""
    paths = [str(tmp_path / name) for name in ("analyst.db", "first.db", "second.db")]
    with BudgetAccountant(9.0, 1e-5, ledger=str(tmp_path / "ledger.db")) as accountant:
        collector = Collector(reweighted(), N, n_features=2, path=paths[0])
        servers = [ShareServer(which, paths[1 + which]) for which in (0, 1)]
        rounds = 0
        while collector.task is not None:
            task, which = collector.task, rounds % 2
            send(task, servers, range(20))
            servers[which].close()
            servers[which] = ShareServer(which, paths[1 + which])
            send(task, servers, range(20, N))
            collector.close()
            collector = Collector.load(paths[0])
            assert collector.task == task
            collector.close_round(*(server.total(range(N)) for server in servers))
            rounds += 1
        assert rounds > 3 and len(accountant.charges) == 1
    assert np.isfinite(collector.result().coef_).all()


def test_shuffled_shares_add_up_and_are_paid_in_delta():
    few = range(N - 1)
    with BudgetAccountant(9.0, 1e-5, set_aside=(0.0, 1e-7)) as accountant:
        collector = Collector(ssp(), N, n_features=2, n_min=N, transport="shuffled-shares")
        while collector.task is not None:
            needed = open_round(read_task(collector.task)).needed
            assert needed.shares >= shares_needed(N, needed.size)
            messages = _of_users(collector.task, range(N))
            assert len(messages) == N * needed.size * needed.shares
            np.random.RandomState(0).shuffle(messages)
            with pytest.raises(ValueError, match="another number"):
                collector.close_round(messages[1:], n=N)
            with pytest.raises(PrivacyError, match="have been seen"):
                collector.repeat_round()
            with pytest.raises(PrivacyError, match="fewer than"):
                collector.close_round(_of_users(collector.task, few), n=len(few))
            collector.close_round(messages, n=N)
        (charge,) = accountant.charges
        assert charge.cost.delta > 0.0 and charge.cost.gaussian > 0.0
    guarantee = collector.result().privacy_report_.guarantee
    assert "the shuffler and the server do not collude" in str(guarantee)
    assert guarantee.epsilon == pytest.approx(8.0, rel=1e-6)


def _of_users(task, users):
    return [message for user in users for message in report(task, X[user], Y[user], user=user)]


def test_malformed_shares_are_refused(two):
    collector, (first, second) = Collector(ssp(), N, n_features=2), two()
    with pytest.raises(ValueError, match="no task is open"):
        first.add(0, b"")
    first.open(collector.task)
    mine, other = report(collector.task, X[0], Y[0], user=0)
    for bad, message in (
        (b"", "no share"),
        (mine[:-1], "cut off"),
        (mine + b"\0", "cut off"),
        (mine[:4] + b"\0" * 8 + mine[12:], "another task"),
        (other, "server 1"),
        ("text", "no share"),
    ):
        with pytest.raises(ValueError, match=message):
            first.add(0, bad)
    for user in (-1, N, 1.5, True):
        for ask in (first.add, lambda user, _: report(collector.task, X[0], Y[0], user=user)):
            with pytest.raises(ValueError, match="user="):
                ask(user, mine)
    first.add(0, mine)
    with pytest.raises(ValueError, match="second share"):
        first.add(0, mine)
    assert first.users == [0] and second.users == []
    with pytest.raises(PrivacyError, match="see each record"):
        collector.add(0, mine)


def test_what_devices_cannot_do_is_refused_before_anybody_is_asked():
    for model, changed, error, message in (
        (iht(privacy="aggregate"), {}, PrivacyError, "largest of all"),
        (ssp(calibration_size=0.2), {}, ValueError, "calibration_size"),
        (ssp(), {"n_features": None}, ValueError, "n_features"),
        (ssp(), {"n_min": N + 1}, ValueError, "n_min"),
        (ssp(), {"transport": "pigeons"}, ValueError, "transport"),
        (ssp(delta=0.0), {}, PrivacyError, "delta"),
    ):
        with pytest.raises(error, match=message):
            Collector(model, N, **{"n_features": 2, **changed})
    task = json.loads(Collector(ssp(), N, n_features=2).task)
    task["estimator"]["params"]["calibration_size"] = 0.2  # parts pay less than all together
    task["hash"] = task_hash(task)
    with pytest.raises(PrivacyError, match="no parts"):
        report(json.dumps(task), [0.1, 0.2], 0.3, user=3)


def test_a_malicious_task_learns_nothing_from_what_a_device_refuses(tmp_path):
    """Whatever the record is: the same refusal, or messages of the same lengths."""
    task = json.loads(Collector(ssp(), N, n_features=2).task)
    rng = np.random.RandomState(0)
    records = [([0.1, -0.2], 0.3), ([np.nan, np.inf], "HIV"), (["a", None], 1e308)]
    answered = 0
    for _ in range(300):
        bad = changed_task(task, rng)
        told = set()
        for x, y in records:
            try:
                told.add(str([len(m) for m in report(bad, x, y, user=3)]))
            except (PrivacyError, ValueError) as error:
                told.add(f"{type(error)} {error}")
        assert len(told) == 1, (bad, told)
        answered += "[" in next(iter(told))[:1]
    assert answered > 0


def test_rounds_that_contradict_each_other_are_refused(tmp_path, two):
    """Shares of the budget add up along one past only: servers and devices see to it."""
    collector, servers = Collector(reweighted(), N, n_features=2, n_min=N), two()
    ledger = DeviceLedger(str(tmp_path / "mine.db"), epsilon=100.0, delta=1e-6)
    for _ in range(2):
        report(collector.task, X[0], Y[0], user=0, ledger=ledger)
        send(collector.task, servers)
        collector.close_round(*(server.total(range(N)) for server in servers))
    fields = json.loads(collector.task)
    fields["answers"][0][0][0] += 1
    fields["hash"] = task_hash(fields)
    with pytest.raises(PrivacyError, match="another task.*rounds"):
        report(json.dumps(fields), X[0], Y[0], user=0, ledger=ledger)
    with pytest.raises(PrivacyError, match="past is not"):
        servers[0].open(json.dumps(fields))
    assert ledger.spent.epsilon == 8.0


def test_a_collection_that_began_with_other_questions_does_not_go_on(two, tmp_path):
    """Shares of answers before and after a change of them would add up to more than the budget."""
    path = str(tmp_path / "collection")
    collector = Collector(ssp(), N, n_features=2, path=path)
    task = collector.task
    nonce = read_task(task)["nonce"]
    send(task, servers := two())
    collector.close_round(*(server.total(range(N)) for server in servers))
    collector._store.write_settings({"nonce": nonce.replace("-2", "-1")})
    collector.close()
    with pytest.raises(PrivacyError, match="version"):
        Collector.load(path)
    fields = {**read_task(task), "nonce": nonce[-32:]}
    with pytest.raises(ValueError, match="parts"):
        report(json.dumps({**fields, "hash": task_hash(fields)}), X[0], Y[0], user=0)


def test_questions_and_shares_change_with_the_name_of_the_channel():
    """Where this fails, give CHANNEL the next number, and the test the new digest."""
    line = LinearRegression(bounds_X=(-0.7, 0.7), bounds_y=(-1.0, 1.0), **SUMS)
    text = CHANNEL
    for model in (ssp(), reweighted(), line):
        for row in clone(model).set_params(random_state=0).fit(X, Y).privacy_report_.rows:
            text += f" {row.query} {row.share:.6g} {row.sensitivity:.6g}"
    assert sha256(text.encode()).hexdigest()[:8] == "0748bd64"
