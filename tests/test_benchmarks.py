"""Every benchmark records its raw numbers, with the versions and the commit that they are of."""

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if not path.name.startswith("_")]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_numbers_are_recorded(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {
        node.func.id for node in ast.walk(tree) if isinstance(getattr(node, "func", 0), ast.Name)
    }
    assert called & {"record", "written"}, "record raw numbers: see benchmarks/_record.py"


def test_what_is_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", ["benchmarks/some.py", "--seeds", "3"])
    import _record

    monkeypatch.setattr(_record, "HERE", tmp_path)
    _record.record("some", {"errors": np.arange(3.0), "name": "ssp", "worst": np.float64(0.5)})
    found = json.loads((tmp_path / "results" / "some.json").read_text(encoding="utf-8"))
    assert found["numbers"] == {"errors": [0.0, 1.0, 2.0], "name": "ssp", "worst": 0.5}
    facts = found["provenance"]
    assert facts["numpy"] == np.__version__ and "commit" in facts
    assert facts["command"] == "python benchmarks/some.py --seeds 3"
    assert all(f"{name} {facts[name]}" in capsys.readouterr().out for name in ["python"])
