"""Devices, two servers and an analyst: the right sum, one charge, and nothing else to be seen."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from skpriv import BudgetAccountant
from skpriv.exceptions import PrivacyError
from skpriv.linear_model import IHTRegressor, LinearRegression, ReweightedRegressor, SSPRegressor
from skpriv.privacy import read_task, shares_needed, task_hash
from skpriv.protocol import Collector, DeviceLedger, ShareServer, _sums as _device, report
from skpriv.protocol._sums import open_round

N, FEW = 120, 40
X = np.random.RandomState(0).uniform(-0.7, 0.7, size=(N, 2))
Y = X @ [0.5, -0.5]
BOUNDS = {"data_norm": 1.0, "bounds_y": (-1, 1)}


def ssp(**parameters):
    return SSPRegressor(**{**BOUNDS, "epsilon": 8.0, "privacy": "aggregate", **parameters})


def collect(collector, servers, users=range(N), lost=(), X=X, y=Y):
    """Answer all rounds; a lost message is (place of the round, user, server)."""
    for place in itertools.count():
        if collector.task is None:
            return collector
        for server in servers:
            server.open(collector.task)
        for user in users:
            messages = report(collector.task, X[user], y[user], user=user)
            for server, message in zip(servers, messages, strict=True):
                if (place, user, server.which) not in lost:
                    server.add(user, message)
        both = sorted(set(servers[0].users) & set(servers[1].users))
        collector.close_round(*(server.total(both) for server in servers))


@pytest.fixture
def two(tmp_path):
    """Makes two servers, each time with files of their own."""
    names = itertools.count()
    return lambda: [ShareServer(which, tmp_path / f"{next(names)}.server") for which in (0, 1)]


@pytest.mark.parametrize(
    "model",
    [
        ssp(),
        ReweightedRegressor(privacy="aggregate", epsilon=8.0, **BOUNDS),
        LinearRegression(
            privacy="aggregate", epsilon=8.0, bounds_X=(-0.7, 0.7), bounds_y=(-1.0, 1.0)
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_devices_fit_what_sums_can_fit(model, two):
    """Several rounds, each a sum of the same users; the report has every query at its price."""
    collector = collect(Collector(model, FEW, n_features=2), two(), range(FEW))
    fitted = collector.result()
    again = type(model)(**{**model.get_params(), "random_state": 0}).fit(X[:FEW], Y[:FEW])
    rows, simulated = fitted.privacy_report_.rows, again.privacy_report_.rows
    assert [row.query for row in rows] == [row.query for row in simulated]
    assert fitted.privacy_report_.guarantee.epsilon <= 8.0 * (1.0 + 1e-9)
    assert "at least 38 of 40 devices" in str(fitted.privacy_report_)
    assert "on each device" in fitted.privacy_report_.randomness
    assert "simulated" in type(model)(**model.get_params()).fit(X, Y).privacy_report_.randomness


def test_the_sum_is_right(two):
    """With next to no noise the released moments are those of the records, to the grid."""
    collector = collect(Collector(ssp(epsilon=1e6), N, n_features=2), two())
    exact = SSPRegressor(privacy="none", **BOUNDS).fit(X, Y)
    np.testing.assert_allclose(collector.result().coef_, exact.coef_, atol=1e-2)
    released = collector.result()._equations
    np.testing.assert_allclose(released.design, exact._equations.design, atol=0.1)
    np.testing.assert_allclose(released.target, exact._equations.target, atol=0.1)


def test_collected_and_simulated_sums_have_one_law(monkeypatch):
    """Repetitions of both: the same law of every released number."""
    noise = np.random.RandomState(1)
    task = Collector(ssp(), FEW, n_features=2, n_min=FEW).task
    opened = open_round(read_task(task)).needed
    exact = opened.query.sum(X[:FEW], Y[:FEW])
    collected = []
    for _ in range(60):
        total = np.zeros(opened.size, dtype=np.int64)
        for user in range(FEW):
            total += _device.noisy_vector(opened, X[user], Y[user], noise.bytes)
        collected.append(total * opened.lattice.step - exact.ravel())
    simulated = noise.normal(scale=opened.lattice.scale, size=(60, opened.size))
    for mine, other in zip(np.array(collected).T, simulated.T, strict=True):
        assert stats.ks_2samp(mine, other).pvalue > 1e-4
    spread = np.std(collected) / opened.lattice.scale
    assert 0.9 < spread < 1.1


def test_one_server_sees_uniform_numbers():
    """Of equal records each coordinate of a share is uniform, at either server."""
    task = Collector(ssp(), N, n_features=2).task
    needed = open_round(read_task(task)).needed
    size, alone = needed.size, _device.noisy_vector(needed, [0.0, 0.0], 0.0)
    assert len(set(alone.tolist())) > size / 2  # each number has noise of its own
    for which in (0, 1):
        shares = [report(task, [0.7, 0.7], 1.0, user=3)[which] for _ in range(500)]
        numbers = [_device.unpacked(read_task(task), share, size)[1] for share in shares]
        for column in np.array(numbers).astype(float).T / 2.0**64:
            assert stats.kstest(column, "uniform").pvalue > 1e-9  # the noise has no seed


def test_a_user_who_reaches_one_server_is_dropped_whole(two):
    users = range(118)
    collector = Collector(ssp(), N, n_features=2)
    collect(collector, two(), users, lost={(0, 3, 0), (0, 5, 1), (0, 7, 0)})
    assert [row.records for row in collector.result().privacy_report_.rows] == [115, 118]
    noise = collector.result().privacy_report_.rows[0].scale
    exact = Collector(ssp(), N, n_features=2)
    collect(exact, two(), users)
    # The noise of the users who are left is what the report tells.
    assert noise == pytest.approx(
        exact.result().privacy_report_.rows[0].scale * np.sqrt(115 / 118), rel=1e-6
    )


def test_too_few_users_are_not_opened_and_the_round_is_repeated_for_nothing(tmp_path, two):
    with BudgetAccountant(epsilon=9.0, delta=1e-5) as accountant:
        collector, servers = Collector(ssp(), N, n_features=2), two()
        first = collector.task
        for server in servers:
            server.open(first)
        ledger = DeviceLedger(str(tmp_path / "mine.db"), epsilon=20.0, delta=1e-6)
        for user in range(50):
            messages = report(first, X[user], Y[user], user=user, ledger=ledger if user else None)
            for server, message in zip(servers, messages, strict=True):
                server.add(user, message)
            ledger = DeviceLedger(str(tmp_path / f"{user}.db"), epsilon=20.0, delta=1e-6)
        with pytest.raises(PrivacyError, match="fewer than the 114"):
            servers[0].total(range(50))
        collector.repeat_round()
        assert collector.task != first
        again = report(collector.task, X[1], Y[1], user=1, ledger=ledger)
        with pytest.raises(ValueError, match="another task"):
            servers[0].add(1, again[0])
        collect(collector, servers)
        assert len(accountant.charges) == 1
    assert ledger.spent.epsilon == 8.0


def test_a_round_is_opened_once_for_one_set_of_users(two):
    """The sums of two sets of users that differ by one would show that one."""
    collector, servers = Collector(ssp(), N, n_features=2, n_min=10), two()
    for server in servers:
        server.open(collector.task)
    for user in range(N):
        for server, message in zip(
            servers, report(collector.task, X[user], Y[user], user=user), strict=True
        ):
            server.add(user, message)
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
    model = ReweightedRegressor(privacy="aggregate", epsilon=8.0, **BOUNDS)
    with BudgetAccountant(9.0, 1e-5, ledger=str(tmp_path / "ledger.db")) as accountant:
        collector = Collector(model, N, n_features=2, path=paths[0])
        servers = [ShareServer(which, paths[1 + which]) for which in (0, 1)]
        rounds = 0
        while collector.task is not None:
            for server in servers:
                server.open(collector.task)
            for user in range(N):
                for which, message in enumerate(
                    report(collector.task, X[user], Y[user], user=user)
                ):
                    servers[which].add(user, message)
                if user == 40 + rounds:
                    servers[rounds % 2].close()
                    servers[rounds % 2] = ShareServer(rounds % 2, paths[1 + rounds % 2])
            task = collector.task
            collector.close()
            collector = Collector.load(paths[0])
            assert collector.task == task
            collector.close_round(*(server.total(range(N)) for server in servers))
            rounds += 1
        assert rounds > 3 and len(accountant.charges) == 1
    assert np.isfinite(collector.result().coef_).all()


def test_shuffled_shares_add_up_and_are_paid_in_delta():
    users, few = 40, range(39)
    with BudgetAccountant(9.0, 1e-5, set_aside=(0.0, 1e-7)) as accountant:
        collector = Collector(ssp(), users, n_features=2, n_min=users, transport="shuffled-shares")
        while collector.task is not None:
            needed = open_round(read_task(collector.task)).needed
            assert needed.shares >= shares_needed(users, needed.size)
            messages = _of_users(collector.task, range(users))
            assert len(messages) == users * needed.size * needed.shares
            np.random.RandomState(0).shuffle(messages)
            with pytest.raises(ValueError, match="another number"):
                collector.close_round(messages[1:], n=users)
            with pytest.raises(PrivacyError, match="have been seen"):
                collector.repeat_round()
            with pytest.raises(PrivacyError, match="fewer than"):
                collector.close_round(_of_users(collector.task, few), n=len(few))
            collector.close_round(messages, n=users)
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
        with pytest.raises(ValueError, match="user="):
            first.add(user, mine)
    first.add(0, mine)
    with pytest.raises(ValueError, match="second share"):
        first.add(0, mine)
    assert first.users == [0] and second.users == []
    with pytest.raises(PrivacyError, match="see each record"):
        collector.add(0, mine)


def test_what_devices_cannot_do_is_refused_before_anybody_is_asked():
    with pytest.raises(PrivacyError, match="IHT|largest of all"):
        Collector(
            IHTRegressor(privacy="aggregate", data_max=1.0, bounds_y=(-1, 1)), N, n_features=2
        )
    with pytest.raises(ValueError, match="calibration_size"):
        Collector(ssp(calibration_size=0.2), N, n_features=2)
    with pytest.raises(ValueError, match="n_features"):
        Collector(ssp(), N)
    with pytest.raises(ValueError, match="n_min"):
        Collector(ssp(), N, n_features=2, n_min=N + 1)
    with pytest.raises(ValueError, match="transport"):
        Collector(ssp(), N, n_features=2, transport="pigeons")
    with pytest.raises(PrivacyError, match="delta"):
        Collector(ssp(delta=0.0), N, n_features=2)


def damaged(task, rng):
    """A task that a malicious server may have made, with a hash that fits."""
    fields = json.loads(task)
    values = [
        None, -1, 0, 1, 2**70, 1e308, -1e-300, "x", [], {}, True, [[[1] * 7, 120]], "central",
    ]  # fmt: skip
    name = rng.choice([*fields, "deep"])
    value = values[rng.randint(len(values))]
    if name == "deep":
        inner = fields[["estimator", "users", "channel"][rng.randint(3)]]
        inner = inner.get("params", inner)
        inner[list(inner)[rng.randint(len(inner))]] = value
    else:
        fields[name] = value
    fields["hash"] = task_hash(fields)
    return json.dumps(fields)


def test_a_malicious_task_learns_nothing_from_what_a_device_refuses(tmp_path):
    """Whatever the record is: the same refusal, or messages of the same lengths."""
    task = Collector(ssp(), N, n_features=2).task
    rng = np.random.RandomState(0)
    records = [([0.1, -0.2], 0.3), ([np.nan, np.inf], "HIV"), (["a", None], 1e308)]
    answered = 0
    for _ in range(300):
        bad = damaged(task, rng)
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
    model = ReweightedRegressor(privacy="aggregate", epsilon=8.0, **BOUNDS)
    collector, (first, second) = Collector(model, N, n_features=2, n_min=N), two()
    ledger = DeviceLedger(str(tmp_path / "mine.db"), epsilon=100.0, delta=1e-6)
    for server in (first, second):
        server.open(collector.task)
    for user in range(N):
        messages = report(
            collector.task, X[user], Y[user], user=user, ledger=ledger if user == 0 else None
        )
        first.add(user, messages[0])
        second.add(user, messages[1])
    collector.close_round(first.total(range(N)), second.total(range(N)))
    report(collector.task, X[0], Y[0], user=0, ledger=ledger)
    fields = json.loads(collector.task)
    fields["answers"].append([fields["answers"][0][0], N])
    fields["answers"][0][0][0] += 1
    fields["hash"] = task_hash(fields)
    with pytest.raises(PrivacyError, match="another task of one of these rounds"):
        report(json.dumps(fields), X[0], Y[0], user=0, ledger=ledger)
    with pytest.raises(PrivacyError, match="past is not"):
        first.open(json.dumps(fields))
    assert ledger.spent.epsilon == 8.0
