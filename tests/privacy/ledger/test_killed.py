"""Processes that are killed while they charge: nothing lost, nothing double, never too much."""

import os
import signal
import time

import numpy as np
import pytest
from registry.processes import needs_fork

from skpriv.exceptions import BudgetExceeded
from skpriv.privacy import Budget, BudgetAccountant, Cost, Ledger, charge

pytestmark = needs_fork
BUDGET = Budget(2.0, 1e-6)


def _start(path, name, mu):
    """A worker that charges until it is killed or the budget is spent.

    It says on a pipe what it is about to charge, and that it has been charged. So of every charge
    one knows whether it must be in the ledger, must not, or may: at most one a worker.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        os.close(reading)
        with BudgetAccountant(BUDGET.epsilon, BUDGET.delta, ledger=path):
            number = 0
            while True:
                os.write(writing, f"try {name}-{number}\n".encode())
                charge(Cost.from_mu(mu), f"{name}-{number}")
                os.write(writing, f"did {name}-{number}\n".encode())
                number += 1
    except BudgetExceeded:
        os.write(writing, b"full\n")
    finally:
        os._exit(0)


def _end(worker):
    """Kill a worker, and return what it said."""
    child, reading = worker
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        return [line for line in pipe if line.endswith("\n")]


def _attack(path, kills, workers, charges, seed):
    """Kill workers at random instants and start others; return what they said."""
    rng, mu = np.random.RandomState(seed), BUDGET.mu / charges**0.5
    living = [_start(path, f"w{index}", mu) for index in range(workers)]
    started, said = workers, []
    for _ in range(kills):
        time.sleep(rng.exponential(0.03))
        victim = rng.randint(workers)
        said.extend(_end(living[victim]))
        living[victim] = _start(path, f"w{started}", mu)
        started += 1
    # However slow the machine is: of each worker one charge at most is not acknowledged.
    while len(Ledger(path).charges()) <= min(started, charges - 1):
        time.sleep(0.01)
    for worker in living:
        said.extend(_end(worker))
    return mu, said


def _check(tmp_path, kills, workers, charges, seed=0):
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "ledger"
    mu, said = _attack(path, kills, workers, charges, seed)
    words = [line.split() for line in said]
    tried = {word[1] for word in words if word[0] == "try"}
    done = {word[1] for word in words if word[0] == "did"}
    with BudgetAccountant(BUDGET.epsilon, BUDGET.delta, ledger=path) as accountant:
        names = [row.name for row in accountant.charges]
        assert len(names) == len(set(names))  # none double
        assert done <= set(names) <= tried  # none lost, none invented
        assert len(set(names) - done) <= kills + workers  # one that was cut short a worker
        total = accountant.ledger.total()
        assert total.gaussian == pytest.approx(len(names) * mu**2, rel=1e-9)
        assert total.fits(BUDGET)
        assert len(names) <= charges
        for number in range(charges - len(names) if charges <= 1000 else 20):
            charge(Cost.from_mu(mu), f"rest-{number}")  # what is left can still be spent
        assert charges > 1000 or accountant.remaining == Budget(0.0)
    return len(done), len(tried)


def test_killed_processes_lose_nothing(tmp_path):
    done, tried = _check(tmp_path, kills=4, workers=4, charges=100_000)
    assert tried > done > 0
    _check(tmp_path / "small", kills=3, workers=4, charges=30)


@pytest.mark.slow
@pytest.mark.parametrize("charges", [500, 1_000_000])  # the budget runs out, or never does
def test_eight_processes_and_five_hundred_kills(tmp_path, charges):
    done, tried = _check(tmp_path, kills=500, workers=8, charges=charges)
    assert done > 300
    assert tried > done
