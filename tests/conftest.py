"""Fixtures that every test may use."""

import atexit
import gc
import os
import shutil
import sys
import tempfile

import pytest

# Pytest rewrites the assertions of all that is imported from its plug-ins, which takes seconds.
with pytest.MonkeyPatch.context() as patch:
    others = [one for one in sys.meta_path if not type(one).__module__.startswith("_pytest")]
    patch.setattr(sys, "meta_path", others)
    from hypothesis import settings

# The same examples in every run: a test that fails here fails everywhere. More of them are tried
# with SKPRIV_TEST_EXAMPLES=100, as .ci/release does.
settings.register_profile(
    "deterministic",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=int(os.environ.get("SKPRIV_TEST_EXAMPLES", "30")),
)
settings.load_profile("deterministic")


MEMORY = "/dev/shm"  # where Linux keeps files in memory


def pytest_configure():
    """Keep the files of the tests in memory, and refuse to test a checkout in place of a wheel.

    Every ledger waits until the disk has what was charged. On a disk that is half of the time of
    the suite, and no test can tell whether a disk keeps what it promised.
    """
    if os.path.isdir(MEMORY) and shutil.disk_usage(MEMORY).free > 2**30:
        os.environ.setdefault("TMPDIR", MEMORY)  # for the processes that tests start, too
        tempfile.tempdir = None  # so that it is looked up again
    if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the processors already
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        atexit.register(os._exit, 0)  # called last: to free what tests made takes seconds
    if os.environ.get("SKPRIV_TEST_INSTALLED"):
        import skpriv

        assert "site-packages" in skpriv.__file__, f"{skpriv.__file__} is not the installed package"


def pytest_collection_modifyitems(items):
    """The longest test begins first: at the end the other workers would wait for it."""
    items.sort(key=lambda item: item.name != "test_reveal_type")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Each worker has one part of the suite, so that it alone makes what files make once."""
    if config.getvalue("dist") == "load":
        from xdist.scheduler import WorkStealingScheduling

        return WorkStealingScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported stays: the garbage collector need not look through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 100)  # most of what a test makes is gone by itself before


@pytest.fixture
def three_rehearsals(monkeypatch):
    """Plans are rehearsed three times and not nine: for tests in which no error is compared."""
    monkeypatch.setattr("skpriv.linear_model._plan.REHEARSALS", 3)


@pytest.fixture
def no_picture(monkeypatch):
    """Pages have no picture, which takes most of their time: for tests of their words."""
    from skpriv.inspection._page import Html

    monkeypatch.setattr("skpriv.inspection._page._picture_html", lambda *_: Html())


def pytest_runtest_teardown():
    """Figures are closed: Matplotlib warns of the twenty-first that is open."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory):
    """Copies of streams and policies number their answers in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKPRIV_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(params=[int(seed) for seed in os.environ.get("SKPRIV_TEST_SEED", "0").split(",")])
def global_random_seed(request):
    """Seed of a test's only source of randomness; a test must pass for every one of them.

    Set SKPRIV_TEST_SEED to a comma-separated list of integers to try others, as .ci/release does.
    """
    return request.param
