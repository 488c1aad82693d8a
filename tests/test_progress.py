import sys

import pytest

from skpriv._progress import progress


@pytest.mark.parametrize("live", [True, False])
def test_passes_results_on_and_ends_with_all_of_them(live, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: live)
    assert list(progress(iter("abcd"), 4, "fits", every=0.0)) == list("abcd")
    out, err = capsys.readouterr()
    lines = err.replace("\r", "\n").split("\n")
    assert out == "" and sum("of 4" in line for line in lines) == 4
    assert err.endswith("\n") and "4 of 4" in err


def test_says_little_in_a_log(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    list(progress(range(1000), 1000, "fits", every=0.0))
    assert capsys.readouterr().err.count("\n") == 10
