"""The example of the docs, with fewer devices: drop-outs, repeated and cut answers, a restart."""

import importlib.util
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).parents[2] / "examples" / "production" / "devices.py"


def test_devices_over_http(capsys):
    spec = importlib.util.spec_from_file_location("devices", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    fitted, crowd = example.main(300)
    answered = [user for user in range(300) if not crowd.gone[user]]
    assert fitted.privacy_report_.rows[0].records == len(answered)
    assert crowd.refusals == {
        "again": sum(user % 50 == 0 for user in answered),
        "cut off": sum(user % 70 == 0 for user in answered),
    }
    assert np.isfinite(fitted.coef_).all()
    assert "after the restart" in capsys.readouterr().out
