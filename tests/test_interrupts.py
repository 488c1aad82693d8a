"""An interrupt at any line leaves an object as it was or as it would be, or one that refuses.

What is as it was takes the same call again, and is then as it would be.
"""

import pytest
from registry.interrupts import CALLS, interrupted_at, moments

from skpriv import _sqlite
from skpriv.exceptions import PrivacyError, SkprivError

MOST = 8  # moments of a call in the fast suite; all of them in the slow one


@pytest.fixture(autouse=True)
def gives_the_gate_back():
    """Tracing interrupts where no signal does: between the last line of a `with` and its end.

    This thread would keep the gate of files, and others would wait for it in later tests.
    """
    yield
    while _sqlite._gate._is_owned():
        _sqlite._gate.release()


def half_changed(call, folder, some):
    """Yield lines after whose interrupt something else is seen, or after the call is made again."""

    def fresh(name):
        (folder / name).mkdir()
        return call.make(folder / name)

    thing = fresh("undisturbed")
    before = call.seen(thing, folder / "undisturbed")
    with call.around(thing):
        every = moments(lambda: call.act(thing), call.rooms)
    after = call.seen(thing, folder / "undisturbed")
    assert before != after
    final = [after, (after[0], before[1])] if call.lost else [after]
    for moment in some(every):
        thing = fresh(f"at {moment}")
        with call.around(thing):
            line = interrupted_at(lambda: call.act(thing), call.rooms, moment)  # noqa: B023
        found = call.seen(thing, folder / f"at {moment}")
        try:
            if found not in final:
                with call.around(thing):
                    call.act(thing)
            again = call.seen(thing, folder / f"at {moment}")
        except (SkprivError, ValueError) as error:
            again = error
        whole = found in (before, *final) and again in final
        if not (whole or isinstance(again, PrivacyError)):
            yield line, found, again


# An interrupt in what the end of an object calls is none that anybody hears.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("part", [
    pytest.param("some", id="some"), pytest.param("all", id="all", marks=pytest.mark.slow),
])  # fmt: skip
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_half_changed(name, part, tmp_path, monkeypatch):
    monkeypatch.setenv("SKPRIV_STATE", str(tmp_path))
    step = {"some": lambda every: every[:: -(-len(every) // MOST)], "all": lambda every: every}[
        part
    ]
    wrong = list(half_changed(CALLS[name], tmp_path, step))
    assert not wrong, wrong
