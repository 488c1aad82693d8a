"""The examples of the docs, with fewer devices: drop-outs, repeated and cut answers, a restart."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "production"


@pytest.fixture
def imported(monkeypatch):
    """Imports an example by its name, as the processes that it starts do."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_devices_over_http(imported, capsys):
    fitted, crowd = imported("devices").main(300)
    answered = [user for user in range(300) if not crowd.gone[user]]
    assert fitted.privacy_report_.rows[0].records == len(answered)
    assert crowd.refusals == {
        "again": sum(user % 50 == 0 for user in answered),
        "cut off": sum(user % 70 == 0 for user in answered),
    }
    assert np.isfinite(fitted.coef_).all()
    assert "after the restart" in capsys.readouterr().out


@pytest.mark.slow
def test_sums_over_two_processes(imported, capsys):
    fitted, accountant, counts = imported("sums").main(200)
    assert len(accountant.charges) == 1
    assert len(set(counts)) == 1 and 180 <= counts[0] < 200
    assert [row.records for row in fitted.privacy_report_.rows] == counts
    assert np.isfinite(fitted.coef_).all()
    assert "at least 180 of 200 devices" in capsys.readouterr().out
