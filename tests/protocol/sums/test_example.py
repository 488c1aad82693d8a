"""The example of the docs, with fewer devices: two server processes, drop-outs, a restart."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "production"


@pytest.mark.slow
def test_sums_over_two_processes(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))  # the new processes import it, too
    example = importlib.import_module("sums")
    fitted, accountant, counts = example.main(200)
    monkeypatch.delitem(sys.modules, "sums")
    assert len(accountant.charges) == 1
    assert len(set(counts)) == 1 and 180 <= counts[0] < 200
    assert [row.records for row in fitted.privacy_report_.rows] == counts
    assert np.isfinite(fitted.coef_).all()
    assert "at least 180 of 200 devices" in capsys.readouterr().out
