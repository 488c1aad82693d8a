"""Numbers on which privacy or a level rests are tested: where one is changed, its test fails.

A new number in these rooms is one line of `registry/halved.py`.
"""

import pytest
from registry.halved import FREE, RESTS_ON, ROOT, changed, fails, found


def test_every_number_of_these_rooms_says_what_rests_on_it():
    said = {name.partition("[")[0] for name in RESTS_ON}
    free = {name for names in FREE.values() for name in names}
    numbers = set(found())
    new = numbers - said - free
    gone = (said | free) - numbers
    assert not new and not gone, f"name in registry/halved.py: {new}; take out: {gone}"
    assert not said & free


def test_a_number_is_changed_where_it_stands():
    source = "A = 2\nB = (0.1, 0.4)\n\nclass C:\n    D = {'x': 1.0, 'y': 3.0}\n"
    values = {}
    for name, factor in (("A", 0.5), ("B[1]", 2.0), ("C.D[y]", 0.5)):
        source = changed(source, name, factor)
    exec(source, values)
    assert (values["A"], values["B"], values["C"].D) == (1, (0.1, 0.8), {"x": 1.0, "y": 1.5})
    with pytest.raises(LookupError):
        changed(source, "E", 0.5)


@pytest.mark.parametrize("test", sorted({test for _, test in RESTS_ON.values()}))
def test_their_tests_exist(test):
    path, chosen, function = test.partition("::")
    source = (ROOT / path.partition(" ")[0]).read_text(encoding="utf-8")
    assert not chosen or f"def {function}(" in source


@pytest.mark.slow
@pytest.mark.parametrize("name", RESTS_ON)
def test_its_test_fails_where_it_is_changed(name, tmp_path):
    assert fails(name, tmp_path)
