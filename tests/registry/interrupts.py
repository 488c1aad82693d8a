"""Calls that change an object or a file, and what can be seen of it before and after them.

A call that is interrupted between two stores leaves an object half changed. `test_interrupts.py`
interrupts each call here at its lines. A new class whose instances change belongs here too: no rule
finds it.
"""

import gc
import sqlite3
import sys
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import skpriv
from skpriv import BudgetAccountant
from skpriv.bandits import BanditCombiner, LinUCB, Loop, RandomPolicy, SquareCB
from skpriv.linear_model import SSPRegressor
from skpriv.protocol import Collector, DeviceLedger, ShareServer, report

ROOT = Path(skpriv.__file__).parent
X = np.linspace(-0.7, 0.7, 40).reshape(20, 2)
Y = np.linspace(-1.0, 1.0, 20)
CONTEXTS = np.stack([X, X[::-1]], axis=1)
ACTIONS = np.arange(20) % 2


def ssp(**given):
    return SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), random_state=0, **given)


def for_devices():
    return ssp(epsilon=2.0, delta=0.0, privacy="local", channel="codebook", fit_intercept=False)


@dataclass
class Call:
    """One kind of call: how its object is made, the call, and what anybody can see of the object.

    ``make(folder)`` returns an object, ``act(thing)`` changes it, ``seen(thing, folder)`` is
    comparable, and ``rooms`` are the files whose lines are interrupted. What a call would have
    taught may be ``lost``: then its first part is as after, and its second as before. The call is
    made in the context ``around(thing)``; an interrupt in the end of a context is none of it.
    """

    make: Any
    act: Any
    seen: Any
    rooms: tuple
    lost: bool = False
    around: Any = nullcontext


def policy_seen(policy, folder):
    return policy.n_rounds_, policy.probabilities(CONTEXTS).round(9).tolist()


def begun(policy):
    policy.act(CONTEXTS[:1])
    return policy


def go_on(policy):
    """Give the rounds that the policy has not taken: it says how many it has."""
    taken = min(policy.n_rounds_, 19)  # what is half taken refuses one more
    policy.update(CONTEXTS[taken:], ACTIONS[taken:], Y[taken:])


def _in_a_ledger(_):
    ssp(epsilon=1.0, delta=1e-6).fit(X, Y)


def _itself(accountant):
    return accountant


def _collector(folder):
    return Collector(for_devices(), 20, 0, n_features=2)


def _collector_of_a_file(folder):
    Collector(for_devices(), 20, 0, n_features=2, path=folder / "reports.db").close()
    return folder / "reports.db"


def _after_a_restart(path):
    _one_answer(Collector.load(path))


def _nearly_all(folder):
    """A collector whose round ends with one more answer."""
    collector = _collector(folder)
    for user in range(20):
        if user != 7:
            collector.add(user, report(collector.task, X[user], Y[user], user=user))
    return collector


def _one_answer(collector):
    collector.add(7, report(collector.task, X[7], Y[7], user=7))


def _shared(folder):
    """A server of shares, with the first task, and the next one."""
    settings = {"n_users": 20, "seed": 0, "n_features": 2}
    model = ssp(epsilon=8.0, privacy="aggregate")
    tasks = [Collector(model, **settings).task for _ in range(2)]
    server = ShareServer(0, folder / "0.db")
    server.open(tasks[0])
    return server, tasks[1]


def _next_task(given):
    server, task = given
    server.open(task)
    server.add(7, report(task, X[7], Y[7], user=7)[0])


def _close_or_answer(collector):
    """Who has answered is not asked again: then the server ends the round, which it always may."""
    if collector.n_answers < 20:
        _one_answer(collector)
    else:
        collector.close_round()


def _collected(collector, folder):
    return collector.n_answers, collector.task, collector.round


def _served(folder):
    policy = LinUCB(privacy="none", bounds_y=(-1, 1), update_every=20, random_state=0)
    return Loop(policy, folder / "events.sqlite")


def _ranked(folder):
    loop = _served(folder)
    for at in range(4):
        loop.rank(f"visit {at}", CONTEXTS[at])
    return loop


def _rewarded(folder):
    loop = _ranked(folder)
    loop.reward_many([f"visit {at}" for at in range(4)], Y[:4])
    return loop


def _events(loop, folder):
    """What is in the file, and what the service says of it."""
    with closing(sqlite3.connect(folder / "events.sqlite")) as file:
        kept = file.execute("SELECT id, reward, learned FROM events ORDER BY number").fetchall()
        version = file.execute("SELECT version, first FROM policy").fetchall()
    again = _served(folder)
    return kept, version, again.n_events, again.n_learned, loop.n_events, loop.n_learned


def _learned(loop, folder):
    """How far it has learned; what was learned is removed from the file later."""
    found = _events(loop, folder)
    return [name for name, _, _ in found[0]], *found[1:]


def _charges(accountant, folder):
    again = BudgetAccountant(ledger=folder / "ledger.json")
    return len(again.charges), again.spent.epsilon, accountant.spent.epsilon


def _answers(ledger, folder):
    again = DeviceLedger(folder / "mine.db", 100.0)
    return again.n_answers, again.spent.epsilon


POLICY = ("bandits", "privacy/_stream.py")
FILE = ("_sqlite.py",)
LEDGER = ("privacy/_ledger/_accountant.py", "privacy/_ledger/_ledger.py")
CALLS = {
    "accountant": Call(
        lambda folder: BudgetAccountant(10.0, 1e-3), _in_a_ledger,
        lambda accountant, folder: (len(accountant.charges), accountant.spent.epsilon),
        LEDGER, around=_itself,
    ),
    "ledger": Call(
        lambda folder: BudgetAccountant(10.0, 1e-3, ledger=folder / "ledger.json"), _in_a_ledger,
        _charges, (*LEDGER, *FILE), around=_itself,
    ),
    "ledger of a device": Call(
        lambda folder: DeviceLedger(folder / "mine.db", 100.0),
        lambda ledger: report(
            Collector(for_devices(), 20, 0, n_features=2).task, X[0], Y[0], user=0, ledger=ledger
        ),
        _answers, ("protocol/_ledger.py", "protocol/_device.py", *FILE),
    ),
    "answer of a device": Call(_collector, _one_answer, _collected, ("protocol",)),
    "answer after a restart": Call(
        _collector_of_a_file, _after_a_restart, lambda path, _: Collector.load(path).n_answers,
        ("protocol", *FILE),
    ),
    "last answer": Call(
        _nearly_all, _close_or_answer, lambda collector, _: (collector.task, collector.round),
        ("protocol/_collector.py", "protocol/_store.py"),
    ),
    "share server": Call(
        _shared, _next_task, lambda given, _: given[0].users, ("protocol/_sums.py",)
    ),
    "rank": Call(
        _ranked, lambda loop: loop.rank("new", CONTEXTS[5]), _events, ("bandits/_service", *FILE)
    ),
    "reward": Call(
        _ranked, lambda loop: loop.reward("visit 1", 0.5), _events, ("bandits/_service", *FILE)
    ),
    "learn": Call(
        _rewarded, lambda loop: loop.learn(force=True), _learned, ("bandits/_service", *FILE)
    ),
    "sums": Call(
        lambda folder: begun(LinUCB(privacy="none", random_state=0)), go_on, policy_seen, POLICY
    ),
    "epochs": Call(
        lambda folder: begun(SquareCB(ssp(privacy="none"), schedule=20, random_state=0)), go_on,
        policy_seen, POLICY, lost=True,
    ),
    "combiner": Call(
        lambda folder: begun(
            BanditCombiner(
                [LinUCB(privacy="none", random_state=0), RandomPolicy(random_state=0)],
                epsilon=float("inf"), horizon=400, update_every=20, random_state=0,
            )
        ), go_on, policy_seen, POLICY,
    ),
    "fit": Call(
        lambda folder: ssp(privacy="none").fit(X, Y), lambda model: model.fit(X, -Y),
        lambda model, folder: model.predict(X).round(9).tolist(), ("linear_model",),
    ),
}  # fmt: skip


def followed(call, rooms, hook):
    """Make a call, and ``hook(file, line)`` before each line of these rooms."""
    places = tuple(str(ROOT / one) for one in rooms)

    def line(frame, event, _):
        if event == "line":
            hook(frame.f_code.co_filename, frame.f_lineno)
        return line

    def opened(frame, *_):
        is_end = frame.f_code.co_name == "__del__"  # whose errors Python does not raise
        return line if frame.f_code.co_filename.startswith(places) and not is_end else None

    before = sys.gettrace()
    sys.settrace(opened)
    try:
        call()
    finally:
        sys.settrace(before)


def moments(call, rooms):
    """Numbers of the moments at which a call comes to each of its lines, first and last."""
    found = {}
    count = 0

    def hook(*line):
        nonlocal count
        found.setdefault(line, [count, count])[1] = count
        count += 1

    followed(call, rooms, hook)
    gc.freeze()  # what others left holds no file of this call, and is not looked through each time
    return sorted({at for both in found.values() for at in both})


def interrupted_at(call, rooms, moment):
    """Interrupt a call at a moment, and return the line; None if nobody was told."""
    count = 0
    places = []

    def hook(file, line):
        nonlocal count
        count += 1
        if count == moment + 1:
            places.append(f"{Path(file).relative_to(ROOT)}:{line}")
            raise KeyboardInterrupt

    try:
        followed(call, rooms, hook)
    except KeyboardInterrupt:
        pass
    gc.collect()  # what was interrupted may hold a file
    return places[0] if places else None
