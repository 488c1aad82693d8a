"""No fit for nothing: workers of every kind find the accountants of the processes above them."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from registry.estimators import ssp
from registry.processes import by_value, forked, needs_fork, needs_rlimit

import skpriv
from skpriv.exceptions import BudgetExceeded, PrivacyError
from skpriv.privacy import Budget, BudgetAccountant, Cost, charge
from skpriv.privacy._ledger import _context as _registry

by_value(__name__)

# What a worker runs that cannot import this file: the charge of a fit.
FIT = "from skpriv.privacy import Cost, charge\ncharge(Cost.from_mu(0.02), 'fit')\n"
ORPHAN = (
    "import os, time\n"
    "parent = int(os.environ['SKPRIV_TEST_PARENT'])\n"  # it may have ended already
    "while os.getppid() == parent: time.sleep(0.01)\n"
    f"{FIT}"
    "os.write(int(os.environ['SKPRIV_TEST_PIPE']), b'done')\n"
)
EXHAUSTED = (
    "import os, resource\n"
    "from skpriv.privacy import Cost, charge\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
    "try:\n"
    "    while True: os.open(os.devnull, os.O_RDONLY)\n"
    "except OSError: pass\n"
    "try: charge(Cost.from_mu(0.02), 'fit')\n"
    "except OSError: os.write(1, b'refused')\n"
)
ROOT = str(Path(skpriv.__file__).parents[1])


def fit(_=None):
    """A fit of an estimator that the worker makes itself: it carries no handle."""
    ssp(epsilon=0.1).fit(np.ones((20, 2)) / 4, np.ones(20) / 4)
    return True


def try_to_fit():
    try:
        return fit()
    except BudgetExceeded:
        return False


def environment(**changes):
    paths = [ROOT, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **changes}


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_pool_made_before_the_block(method, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        list(pool.map(exec, [FIT] * 2))  # the workers live, and are charged to nobody
        for _ in range(2):
            with BudgetAccountant(50.0, 1e-3) as accountant:
                list(pool.map(exec, [FIT] * 3))
            assert len(accountant.charges) == 3
        list(pool.map(exec, [FIT] * 2))
    assert len(accountant.charges) == 3


def test_a_pool_of_loky_made_before_the_block():
    with Parallel(n_jobs=2) as parallel:
        parallel(delayed(fit)() for _ in range(2))
        with BudgetAccountant(50.0, 1e-3) as accountant:
            parallel(delayed(fit)() for _ in range(3))
        parallel(delayed(fit)() for _ in range(2))
    assert len(accountant.charges) == 3


@needs_fork
def test_a_worker_forked_in_a_part_does_not_stay_in_it(accountant):
    context = multiprocessing.get_context("fork")
    with accountant.part("north", partition="sites"):
        pool = context.Pool(1)
    with pool:
        pool.map(exec, [FIT])
    assert [row.part for row in accountant.charges] == [""]


def test_a_program_that_is_run_inside(accountant):
    """It has an accountant of its own, another folder of files, and no ancestors by name."""
    code = (
        "from skpriv import BudgetAccountant\n"
        "with BudgetAccountant(5.0, 1e-6) as own:\n"
        + "".join(f"    {line}\n" for line in FIT.splitlines())
        + "assert len(own.charges) == 1\n"
    )
    if sys.platform == "linux":  # elsewhere nobody tells of the parent of a parent
        code = f"import subprocess, sys\nsubprocess.check_call([sys.executable, '-c', {code!r}])"
    env = environment(SKPRIV_LINEAGE="", TMPDIR="/")
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    assert len(accountant.charges) == 1


@needs_fork
def test_a_grandchild_whose_parent_has_ended(accountant):
    """The chain of parents is broken; the environment still names the ancestors."""
    code = (
        "import os, subprocess, sys, skpriv\n"
        "pipe = int(os.environ['SKPRIV_TEST_PIPE'])\n"
        "os.environ['SKPRIV_TEST_PARENT'] = str(os.getpid())\n"
        f"subprocess.Popen([sys.executable, '-c', {ORPHAN!r}], pass_fds=[pipe])\n"
    )
    reading, writing = os.pipe()
    with os.fdopen(reading) as ended:
        env = environment(SKPRIV_TEST_PIPE=str(writing))
        subprocess.run([sys.executable, "-c", code], check=True, env=env, pass_fds=[writing])
        os.close(writing)
        assert ended.read() == "done"
    assert len(accountant.charges) == 1


# A fork of a block charges, and so does all that it starts: a fork, a program, and the program that
# takes its place at last.
COPY = (
    "import os, subprocess, sys, time\n"
    "from skpriv.privacy import BudgetAccountant\n"
    "path, when, pipe = sys.argv[1], sys.argv[2], int(sys.argv[3])\n"
    f"program = [sys.executable, '-c', {FIT!r}]\n"
    "accountant = BudgetAccountant(5.0, 1e-6, ledger=path)\n"
    "with accountant:\n"
    "    original = os.getpid()\n"
    "    reading, writing = os.pipe()\n"
    "    if os.fork() == 0:\n"
    "        os.close(writing)\n"
    "        os.read(reading, 1)\n"
    "        if not os.fork():\n"
    f"            exec({FIT!r})\n"
    "            os._exit(0)\n"
    "        os.wait()\n"
    "        subprocess.run(program, check=True)\n"
    "        os.set_inheritable(pipe, True)\n"
    "        os.execv(program[0], program)\n"
    "    if when == 'in the block': os.close(writing); os.wait()\n"
    "    if when == 'killed': os.kill(original, 9)\n"
    "    if when == 'a program': os.close(writing); os.execv(program[0], program)\n"
    "os.close(writing)\n"
)


@needs_fork
@pytest.mark.parametrize(
    ("when", "charges"), [("in the block", 3), ("ended", 3), ("killed", 3), ("a program", 4)]
)
def test_a_copy_of_a_block_lasts_whatever_its_original_does(when, charges, tmp_path):
    """A program that a fork started was charged to nobody once the original had left its block."""
    path = str(tmp_path / "ledger")
    reading, writing = os.pipe()
    with os.fdopen(reading) as ended:
        command = [sys.executable, "-c", COPY, path, when, str(writing)]
        subprocess.run(command, env=environment(), pass_fds=[writing], check=False)
        os.close(writing)
        ended.read()
    assert len(BudgetAccountant(ledger=path).charges) == charges


@needs_fork
def test_a_fork_that_leaves_its_copy_of_a_block_tells_its_programs(accountant):
    """What they inherit ends with the copy of the block."""

    def leave():
        assert _registry._BLOCKS in os.environ
        accountant.__exit__()
        assert os.environ[_registry._BLOCKS] == "[]"
        subprocess.run([sys.executable, "-c", FIT], check=True, env=environment())

    assert forked(leave)
    assert len(accountant.charges) == 1  # of the original, which is an ancestor and in its block


def test_the_budget_holds_across_workers():
    whole = Budget(0.1, 1e-6).mu * 2.0  # four fits
    with BudgetAccountant(Budget.from_mu(whole * 1.01, 1e-6).epsilon, 1e-6) as accountant:
        fitted = Parallel(n_jobs=2)(delayed(try_to_fit)() for _ in range(6))
    assert sorted(fitted) == [False] * 2 + [True] * 4
    assert len(accountant.charges) == 4


def test_nested_accountants_are_all_found(accountant):
    with BudgetAccountant(50.0, 1e-3, currency="zcdp", set_aside=(1.0, 1e-6)) as inner:
        Parallel(n_jobs=2)(delayed(fit)() for _ in range(2))
    Parallel(n_jobs=2)(delayed(fit)() for _ in range(1))
    assert (len(accountant.charges), len(inner.charges)) == (3, 2)


def test_what_is_announced_ends_with_the_block():
    me = f"{_registry.identity(os.getpid())}.json"
    places = [Path(folder, me) for folder in _registry.folders()]
    with BudgetAccountant(1.0) as accountant:
        assert sum(place.exists() for place in places) == 1
        with accountant:
            pass
        assert sum(place.exists() for place in places) == 1
    assert not any(place.exists() for place in places)


def test_a_folder_that_others_may_write_is_not_trusted(tmp_path, monkeypatch):
    open_to_all, own = tmp_path / "open", tmp_path / "own"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setattr(_registry, "folders", lambda: [open_to_all, own])
    with BudgetAccountant(1.0):
        assert not list(open_to_all.iterdir())
        assert len(list(own.iterdir())) == 1
    monkeypatch.setattr(_registry, "folders", lambda: [open_to_all])
    accountant = BudgetAccountant(1.0)
    with pytest.raises(PrivacyError, match="would not be charged"):
        accountant.__enter__()
    name = f"{_registry.identity(os.getppid())}.json"
    Path(open_to_all, name).write_text("[1]")
    charge(Cost.from_epsilon(0.5), "outside")
    assert accountant.charges == [] == _registry.announced()
    monkeypatch.setattr(_registry, "folders", lambda: [own])
    Path(own, name).write_text("[")  # what cannot be read is not passed over
    with pytest.raises(ValueError, match="line 1"):
        charge(Cost.from_epsilon(0.5), "outside")


@pytest.mark.skipif(sys.platform != "linux", reason="nobody tells of the parent of a parent")
def test_a_charge_does_not_look_through_processes_and_folders(accountant, monkeypatch):
    """Killed processes leave their files behind: thousands of them took most of a small fit."""

    def gone(*_, **options):
        raise FileNotFoundError

    _registry._process_facts.cache_clear()
    with monkeypatch.context() as patch:  # who cannot be looked up now is not forgotten for good
        patch.setattr(Path, "read_text", gone)
        assert _registry.ancestors()[0] == f"{os.getppid()}-{_registry._UNKNOWN}"
    found = _registry.ancestors()
    assert _registry.identity(os.getppid()) == found[0]
    looked_up = _registry._process_facts.cache_info().misses
    monkeypatch.delattr(os, "listdir")
    charge(Cost.from_epsilon(0.5), "fit")
    assert (
        len(accountant.charges) == 1 and _registry._process_facts.cache_info().misses == looked_up
    )


@needs_rlimit
@pytest.mark.parametrize("lineage", [True, False])
def test_a_worker_that_can_open_no_file_is_charged_or_refused(lineage):
    """What an ancestor has announced could not be read, and the fit was charged to nobody."""
    known = environment()
    if not lineage:
        del known[_registry._LINEAGE]
    with BudgetAccountant(50.0, 1e-3) as accountant:
        worker = [sys.executable, "-c", EXHAUSTED]
        told = subprocess.run(worker, env=known, capture_output=True, check=True)
    assert told.stdout == b"refused" and accountant.charges == []
