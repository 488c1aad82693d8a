"""Every kind of SQLite file that skpriv keeps: how one is made, and how one goes on with it.

``FILES[kind]`` is a pair of functions of a path. Whoever keeps another file adds it here.
"""

import numpy as np

from skpriv import BudgetAccountant
from skpriv._cli import main
from skpriv.bandits import LinUCB, Loop
from skpriv.linear_model import SSPRegressor
from skpriv.privacy import Cost, Numbering, charge
from skpriv.protocol import Collector, DeviceLedger, ShareServer, report

from .estimators import ssp

ROW, TARGET, USERS = [0.1, 0.2], 0.3, 4
CONTEXTS = np.full((2, 2), 0.1)


def devices(**options):
    options = {"privacy": "local", "channel": "codebook", "delta": 0.0, **options}
    return ssp(**{"epsilon": 20.0, "fit_intercept": False, "random_state": None, **options})


def answer(collector, users):
    for user in users:
        found = report(collector.task, ROW, TARGET, user=user)
        if found is not None:
            collector.add(user, found)


def make_ledger(path):
    with BudgetAccountant(3.0, 1e-5, ledger=path):
        charge(Cost.from_mu(0.1), "one")


def use_ledger(path):
    main(["budget", str(path)])
    with BudgetAccountant(ledger=path) as accountant:
        charge(Cost.from_mu(0.1), str(accountant))


def task(epsilon):
    return Collector(devices(epsilon=epsilon), n_users=USERS, seed=0, n_features=2).task


def make_device(path):
    report(task(20.0), ROW, TARGET, user=1, ledger=DeviceLedger(path, epsilon=50.0))


def use_device(path):
    ledger = DeviceLedger(path, epsilon=50.0)
    report(task(8.0), ROW, TARGET, user=1, ledger=ledger)
    str(ledger)


def make_collection(path):
    collector = Collector(devices(), n_users=USERS, seed=0, n_features=2, path=path)
    answer(collector, [0, 1])
    collector.close()


def use_collection(path):
    collector = Collector.load(path)
    try:
        answer(collector, [2, 3])
        str(collector.task)
    finally:
        collector.close()


def make_server(path):
    model = SSPRegressor(data_norm=1.0, bounds_y=(-1, 1), epsilon=8.0, privacy="aggregate")
    open_task = Collector(model, n_users=USERS, n_features=2).task
    server = ShareServer(0, path)
    server.open(open_task)
    for user in range(USERS):
        server.add(user, report(open_task, ROW, TARGET, user=user)[0])
    server.close()


def use_server(path):
    server = ShareServer(0, path)
    try:
        server.total(server.users)
    finally:
        server.close()


def service(path):
    return Loop(LinUCB(privacy="central", bounds_y=(0, 1), random_state=0), path)


def make_service(path):
    loop = service(path)
    for event in ("a", "b"):
        loop.rank(event, CONTEXTS)
    loop.reward("a", 1.0)
    loop._store.close()


def use_service(path):
    loop = None
    try:
        loop = service(path)
        loop.reward("b", 1.0)
        loop.rank("c", CONTEXTS)
        str(loop.status())
    finally:
        if loop is not None:
            loop._store.close()


def numbering(path):
    """A numbering whose file this is; its name is that of the file, without a folder."""
    found = Numbering()
    found._name = "a"
    found._place.path, found._place.name = str(path), "a"
    return found


def make_answers(path):
    made = Numbering()
    made._name = "a"
    with BudgetAccountant(1.0, ledger=path):
        made._place.ledgers = [str(path)]
        made.share()
    made.settle(0, np.ones((2, 1)))
    made.admit([b"person"], 1, 2)


def use_answers(path):
    found = numbering(path)
    found.settle(0, np.zeros((2, 1)))
    found.admit([b"person"], 2, 2)
    found.settle_made(1, ssp(), lambda model: model)


# By the module whose class is the file's
FILES = {
    "privacy._ledger._ledger": (make_ledger, use_ledger),
    "protocol._ledger": (make_device, use_device),
    "protocol._store": (make_collection, use_collection),
    "protocol._collector": (make_collection, use_collection),
    "protocol._sums": (make_server, use_server),
    "bandits._service._store": (make_service, use_service),
    "privacy._ledger._numbering": (make_answers, use_answers),
}
