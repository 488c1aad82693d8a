"""A malicious server: whatever it sends, it learns of a record through charged reports alone.

Random tasks are put together from good ones by changing, deleting and adding fields, and hashed
anew. Each is answered for records of one public shape whose cells and actions differ in every way.
All that can be seen without a charged report must be the same for all of them: whether there are
bytes, all bytes but the drawn index, the kind and the text of an error, warnings, and the charge.
"""

import json
import warnings
from contextlib import nullcontext
from numbers import Integral
from types import SimpleNamespace

import numpy as np
import pytest
from registry.tasks import JUNK, changed_task

from skpriv import linear_model
from skpriv._estimation._reports import LiftedMomentsQuery
from skpriv._estimation._public_maps import RecordMap
from skpriv.bandits import LinSquareCB, LinUCB
from skpriv.bandits._ucb._running import FEATURES_TO_CONSTANT
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.privacy import capabilities, task_hash
from skpriv.protocol import Collector, DeviceLedger, _device, _sums, act, report


class Poison:
    """A cell that tells when it is read before the charge, and that cannot be read."""

    ledger = None

    def _read(self, *_):
        assert Poison.ledger.charged
        raise RuntimeError("a private value")

    __float__ = __len__ = __iter__ = __array__ = __index__ = __repr__ = __str__ = _read
    __eq__ = __lt__ = __add__ = __mul__ = __bool__ = _read


class Ledger:
    """Charges of one answer."""

    def __init__(self):
        self.charged = []

    def charge(self, task, cost):
        assert 0.0 < cost.pure < float("inf")
        self.charged.append((task, cost.pure))


CELLS = [
    0.3, -0.7, 0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"), 10**400,
    True, None, "HIV positive", "0.5", b"x", 1j, [1.0, 2.0], {}, (), object(), np.float32(0.1),
    np.array([1.0]), np.array([]), np.datetime64("2020-01-01"), Poison(),
]  # fmt: skip
ACTIONS = [0, 1, 2, 3, 7, -1, 2**70, True, 1.0, "0", np.int64(1), Poison()]


def _good():
    """Good tasks of every kind, with the shape of a record."""
    matrix = [[0.8, 0.1], [0.1, 0.5]]
    weights = [
        None,
        {"kind": "whole", "matrix": matrix},
        {"kind": "halves", "matrix": matrix, "root": matrix},
        {"kind": "residual", "theta": [0.5, -0.5], "limit": 0.3},
    ]
    tasks = []
    for one in weights:
        query = LiftedMomentsQuery(RecordMap.of_norm(1.0, (-1.0, 1.0), False, 2)).wire()
        tasks.append(({**query, **({} if one is None else {"weights": one})}, (2,)))
    box = {key: value for key, value in tasks[0][0].items() if key != "data_norm"}
    tasks.append(({**box, "low": [-1.0, 0.0], "high": [1.0, 2.0], "fit_intercept": True}, (2,)))
    tasks.append(({**tasks[0][0], "n_features": None}, (3,)))
    fields = [
        ({
            "version": 1, "estimator": {}, "query": query,
            "channel": {
                "name": "codebook", "epsilon": 1.0, "size": 3, "count": 8, "nearest": 3,
                "seed": "user",
            },
            "budget": {"epsilon": 1.0, "delta": 0.0}, "round": 1,
            "users": {"n": 4, "seed": 0, "start": 0, "stop": 4},
        }, shape)
        for query, shape in tasks
    ]  # fmt: skip
    for shared in (True, False):
        policy = LinUCB(epsilon=1.0, delta=0.0, privacy="local", shared=shared, n_actions=3)
        state = json.loads(policy.public_state(n_actions=3 if shared else None, n_features=2))
        state["task"]["channel"].update(count=8, nearest=3)
        fields.append((state, (3, 2) if shared else (2,)))
    return fields


def _record(shape, rng, clean, arrays):
    """(x, y, action) of a public shape, in lists or arrays; cells of all kinds, or clean ones."""

    def cell():
        return rng.uniform(-1.0, 1.0) if clean else CELLS[rng.randint(len(CELLS))]

    x = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        x[place] = cell()
    return x if arrays else x.tolist(), cell(), ACTIONS[rng.randint(len(ACTIONS))]


def _seen(task, record, monkeypatch):
    """All that a server and a watcher of the ledger see but the index, and the law of that."""
    x, y, action = record
    ledger, laws = Ledger(), []
    Poison.ledger = ledger

    def draw_index(secret, directions, nearest, epsilon):
        assert ledger.charged and secret.shape == directions.shape[1:]
        laws.append((directions.tobytes(), nearest, epsilon))
        return _index(secret, directions, nearest, epsilon)

    monkeypatch.setattr(_device, "draw_index", draw_index)
    monkeypatch.setattr(_device.secrets, "token_bytes", bytes)
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            answer = report(task, x, y, user=1, action=action, ledger=ledger)
        except Exception as error:
            answer = type(error).__name__, str(error)
            assert not ledger.charged, answer  # after a charge there is an answer
    told = [str(warning.message) for warning in caught]
    if not isinstance(answer, bytes):
        assert not ledger.charged and not laws
        return answer, told
    (charged,), (law,) = ledger.charged, laws
    assert law[2] == charged[1]  # what is drawn by is what is charged
    return answer[:14] + answer[18:], told, charged, law


_index = _device.draw_index


def _attack(n_tasks, seed, monkeypatch):
    rng, good, answered = np.random.RandomState(seed), _good(), 0
    for _ in range(n_tasks):
        state, shape = good[rng.randint(len(good))]
        task = changed_task(state, rng)
        if rng.uniform() < 0.1:
            shape = (*shape[:-1], shape[-1] + 1)
        arrays = bool(rng.randint(2))
        expected = _seen(task, _record(shape, rng, True, arrays), monkeypatch)
        assert expected[1] == []
        answered += len(expected) > 2
        for _ in range(2):
            record = _record(shape, rng, False, arrays)
            assert _seen(task, record, monkeypatch) == expected, (task, expected)
    return answered


def test_nothing_but_charged_reports_depends_on_the_record(monkeypatch):
    assert _attack(300, 0, monkeypatch) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_nothing_but_charged_reports_depends_on_the_record_in_100_000_tasks(seed, monkeypatch):
    assert _attack(10_000, seed, monkeypatch) > 3_000


def _spent_until_refused(tasks, ledger):
    answered = 0
    for task in tasks:
        try:
            answered += report(task, [0.1, 0.2], 0.3, user=1, ledger=ledger) is not None
        except (BudgetExceeded, ValueError):
            continue
    return answered


def test_random_tasks_never_take_more_than_was_agreed_to(tmp_path):
    rng, good = np.random.RandomState(0), [task for task, shape in _good() if shape == (2,)]
    ledger = DeviceLedger(tmp_path / "mine.db", 3.0)
    tasks = [changed_task(good[rng.randint(len(good))], rng) for _ in range(60)]
    answered = _spent_until_refused(tasks, ledger)
    assert answered == ledger.n_answers > 2
    assert ledger.spent.epsilon <= 3.0 * (1.0 + 1e-9)
    _spent_until_refused(tasks, ledger)
    assert ledger.spent.epsilon <= 3.0 * (1.0 + 1e-9)


def test_no_action_is_told_by_a_wrong_number_of_actions(tmp_path):
    """Tasks for one action after the other, of no cost, once told exactly which was taken."""
    policy = LinUCB(epsilon=2.0, delta=0.0, privacy="local", shared=False, n_actions=8)
    state = json.loads(policy.public_state(n_features=3))
    x = [0.1, 0.2, 0.3]
    for action in (0, 3, 7):
        ledger = DeviceLedger(tmp_path / f"{action}.db", epsilon=20.0)
        told = []
        for k in range(1, 9):
            changed = json.loads(json.dumps(state))
            task = changed["task"]
            changed["n_actions"] = task["policy"]["n_actions"] = k
            task["query"]["n_features"], task["channel"]["size"] = 3 * k, 3 * k + 1
            task["hash"] = task_hash(task)
            told.append(type(report(json.dumps(changed), x, 1.0, user=0, action=action,
                                    ledger=ledger)))  # fmt: skip
        assert told == [bytes] * 8
        assert ledger.spent.epsilon == 16.0 and ledger.n_answers == 8


@pytest.mark.parametrize("action", [-1, 2, True, 1.0, "0"])
def test_an_action_that_there_is_not_is_a_row_of_zeros(action, monkeypatch):
    state = LinUCB(epsilon=1.0, delta=0.0, privacy="local").public_state(n_actions=2, n_features=2)
    seen = []
    monkeypatch.setattr(_device, "draw_index", lambda secret, *_: seen.append(secret) or 0)
    report(state, np.ones((2, 2)), 1.0, user=0, action=action)
    # A row of zeros leaves the constant, shorter than the features, and the reward
    constant = 1.0 / FEATURES_TO_CONSTANT
    expected = np.array([0.0, 0.0, constant, 1.0]) / np.hypot(constant, 1.0)
    np.testing.assert_allclose(np.abs(seen[0]), expected)
    with pytest.raises(ValueError, match="action is missing"):
        report(state, np.ones((2, 2)), 1.0, user=0)


@pytest.mark.parametrize("shared", [True, False])
def test_acting_quotes_no_cell(shared):
    """Whatever cells hold, there is an action, and neither an error nor a warning."""
    policy = LinUCB(
        epsilon=50.0, delta=0.0, privacy="local", shared=shared, n_actions=3, update_every=20
    )
    state = policy.public_state(n_actions=3 if shared else None, n_features=2)
    rng, shape = np.random.RandomState(0), (3, 2) if shared else (2,)
    Poison.ledger = Ledger()
    for arrays in (False, True):
        for _ in range(30):
            x, _, _ = _record(shape, rng, False, arrays)
            assert _device.act(state, x) in range(3)
    clean = _record(shape, rng, True, True)[0].astype(float)
    reports = [(u, report(state, clean, 1.0, user=u, action=0)) for u in range(40)]
    learned = policy.update_from_reports(reports).public_state()
    assert json.loads(learned)["region"] is not None
    for _ in range(60):
        x, _, _ = _record(shape, rng, False, bool(rng.randint(2)))
        assert _device.act(learned, x) in range(3)


def _forged(task, places):
    """A task with other values at some places, such as "channel.count", and a hash that fits."""
    task = json.loads(json.dumps(task))
    for place, value in places.items():
        *path, last = place.split(".")
        part = task
        for name in path:
            part = part[name]
        part[last] = value
    task["hash"] = task_hash(task)
    return json.dumps(task)


def _refused_for_its_size(task, x, words, **named):
    """A device refuses a task before it is charged or works, and says why."""
    ledger = Ledger()
    with pytest.raises((PrivacyError, ValueError), match=words):
        report(task, x, 0.1, user=1, ledger=ledger, **named)
    assert not ledger.charged


@pytest.mark.parametrize("places, words", [
    ({"channel.count": 10_001}, "more than 10,000 directions, .* must ask for less"),
    ({"channel.count": 10_000, "query.n_features": 2_000}, "numbers in a codebook"),
    ({"query.n_features": 65_535}, "65,535 features"),
    ({"users.n": 2**40, "users.stop": 2}, "users who are dealt out"),
])  # fmt: skip
def test_a_task_that_would_stall_a_device_is_refused(places, words):
    task, _ = _good()[0]
    x = [0.1] * places.get("query.n_features", 2)
    _refused_for_its_size(_forged(task, places), x, words)


@pytest.mark.parametrize("shared", [True, False])
def test_a_state_that_would_stall_a_device_is_refused(shared):
    """Rows of actions in lists have no public shape: the task alone says how long they are."""
    policy = LinUCB(epsilon=1.0, delta=0.0, privacy="local", shared=shared, n_actions=2)
    state = json.loads(policy.public_state(n_actions=2 if shared else None, n_features=2))
    wide = {"query.n_features": 60_000, "channel.count": 10_000}
    if not shared:
        wide["policy.n_actions"] = 10_000
    task = json.loads(_forged(state["task"], wide))
    state = json.dumps({**state, "task": task})
    x = [[0.1, 0.2]] * 2 if shared else [0.1] * 6
    _refused_for_its_size(state, x, "numbers in a codebook", action=0)
    if not shared:
        with pytest.raises(PrivacyError, match="numbers of actions"):
            act(state, x)


@pytest.mark.parametrize("Policy", [LinUCB, LinSquareCB])
@pytest.mark.parametrize("shared", [True, False])
def test_no_state_ends_act_but_by_a_sentence_about_it(Policy, shared):
    """Parts of a public state that are missing or strange, in the task or in what was learned."""
    policy = Policy(epsilon=8.0, delta=0.0, privacy="local", channel="codebook", random_state=0)
    policy.set_params(shared=shared, n_actions=3)
    state = policy.public_state(n_actions=3 if shared else None, n_features=2)
    x = np.full((3, 2), 0.1) if shared else [0.1, 0.1]
    policy.update_from_reports([(u, report(state, x, 1.0, user=u, action=0)) for u in range(40)])
    learned, rng, said = json.loads(policy.public_state()), np.random.RandomState(0), set()
    assert learned["region"] is not None
    for _ in range(200):
        changed = changed_task(learned, rng)
        if rng.randint(2):
            changed = json.loads(json.dumps(learned))
            name = sorted(changed["region"])[rng.randint(len(changed["region"]))]
            changed["region"] |= {name: JUNK[rng.randint(len(JUNK))]}
            if rng.randint(3) == 0:
                del changed["region"][name]
            changed = json.dumps(changed)
        try:
            act(changed, x)
        except ValueError as error:
            said.add(str(error).split(" ")[1])
    assert said <= {"hash", "is", "task"}  # changed on its way, no task, or damaged


def _summed(name):
    """A task of sums of an estimator, of which the devices run the fit themselves."""
    kind = getattr(linear_model, name)
    params = {"data_norm": 1.0, "bounds_X": (-1, 1), "bounds_y": (0, 1), "classes": (0, 1)}
    known = kind._parameter_constraints
    both = known.keys() & {"data_norm", "bounds_X"} == {"data_norm", "bounds_X"}
    settings = {one: value for one, value in params.items() if one in known}
    if both:
        del settings["data_norm"]
    model = kind(epsilon=3.0, privacy="aggregate", **settings)
    return json.loads(Collector(model, n_users=100_000, n_features=2).task)


def _of_sums():
    """Public estimators that devices answer by sums, with those parameters that are counts."""
    for name in linear_model.__all__:
        limits = getattr(getattr(linear_model, name), "_parameter_constraints", {})
        try:
            task = _summed(name)
        except (AttributeError, PrivacyError, TypeError, ValueError):
            continue
        yield name, task, [
            one for one, kinds in limits.items()
            if any(getattr(kind, "type", None) is Integral for kind in kinds)
        ]  # fmt: skip


def test_no_count_of_a_task_of_sums_stalls_a_device(monkeypatch):
    """A device runs the fit of a task: each number that says how much it works has a bound."""
    assert capabilities("aggregate").summed
    monkeypatch.setattr(_sums, "LARGEST_SUMS", 200_000)  # 200 sums in place of 20,000
    seen = set()
    for name, task, counts in _of_sums():
        wide = _forged(task, {"n_features": 1_001})
        _refused_for_its_size(wide, [0.1] * 1_001, "1,000 features")
        for count in counts:
            endless = _forged(task, {f"estimator.params.{count}": 10**9})
            _refused_for_its_size(endless, [0.1] * 2, "nothing was answered")
        seen |= {(name, count) for count in counts} or {name}
    assert seen >= {
        "LinearRegression", "SSPRegressor", ("AdditiveRegressor", "knots"),
        ("ImproperSGDRegressor", "n_iter"), ("ReweightedRegressor", "n_spectral_iter"),
    }  # fmt: skip


def test_no_number_of_users_stalls_a_device_of_shuffled_shares():
    model = linear_model.SSPRegressor(
        data_norm=1.0, bounds_y=(-1, 1), epsilon=3.0, privacy="aggregate"
    )
    collector = Collector(model, n_users=1_000, n_features=2, transport="shuffled-shares")
    many = {"users.n": 2**31 - 1, "users.adding": 2**31 - 1}
    _refused_for_its_size(_forged(json.loads(collector.task), many), [0.1, 0.1], "10,000,000 users")


def test_the_bounds_of_a_device_are_where_they_should_be(monkeypatch):
    task = json.loads(json.dumps(_good()[0][0]))
    for count in (10_000, 10_001):
        task["channel"] |= {"count": count, "nearest": 1}
        with nullcontext() if count == 10_000 else pytest.raises(PrivacyError, match="directions"):
            _device.check_task(task)
    monkeypatch.setattr(np.random, "RandomState", lambda seed: SimpleNamespace(permutation=range))
    assert len(_device.public_order(100_000_000, 0)) == 100_000_000
    with pytest.raises(PrivacyError, match="100,000,000 users"):
        _device.public_order(100_000_001, 0)
    for size, words in ((1_000, "wrong kind or size"), (1_001, "20,000,000 numbers")):
        rows = _sums.SumRows(3, 2, [([0], 3)], False)
        rows._numbers = 20_000_000 - 1_000
        report_of = SimpleNamespace()
        with pytest.raises(ValueError, match=words):  # at the bound by the sum of its round alone
            rows.shared_sum(SimpleNamespace(shape=(size,)), None, 0.0, (report_of, None))


def test_honest_tasks_are_within_the_bounds_of_devices():
    """A collector asks for no more directions than a device makes, whatever the budget."""
    for epsilon in (0.1, 3.0, 20.0):
        code = linear_model.SSPRegressor(
            data_norm=1.0, bounds_y=(-1, 1), epsilon=epsilon, delta=0.0, privacy="local",
            channel="codebook",
        )  # fmt: skip
        task = Collector(code, n_users=3, seed=0, n_features=1_000).task
        assert report(task, [0.01] * 1_000, 0.1, user=0) is not None
