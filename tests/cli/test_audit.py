"""`python -m skpriv audit`: the table, its exit code, half of the noise, wrong arguments."""

import pytest

from skpriv._cli import _audit
from skpriv._cli._main import main


def test_the_table_of_replays(capsys):
    assert main(["audit", "ssp", "--runs", "0"]) == 0
    text, said = capsys.readouterr()
    assert "audit: 4 of 4 attacks" in said and "attacks" not in text
    assert text.count("ssp") == 4 and "All 4 claims stand" in text
    costs = [float(line.split()[3]) for line in text.splitlines() if line.startswith("ssp")]
    assert all(0.9 < cost <= 1.0 for cost in costs)


def test_enough_is_asked_of_linear_regression(capsys):
    """Where only the mean is asked, and there is no intercept, nothing would be attacked."""
    assert main(["audit", "linear", "--runs", "0"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    costs = {row[1]: float(row[3]) for row in rows if row[:1] == ["linear"]}
    assert min(costs["central"], costs["aggregate"]) > 0.3


def test_lower_bounds_are_below_the_claim(capsys):
    assert main(["audit", "ssp", "--runs", "20", "--epsilon", "4", "--jobs", "1"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    bounds = [(float(row[4]), float(row[3])) for row in rows if row[:1] == ["ssp"]]
    assert len(bounds) == 4 and all(0.0 <= low <= replayed <= 4.0 for low, replayed in bounds)
    assert max(bounds)[0] > 1.0


@pytest.mark.parametrize("name", ["ssp", "fliphat", "online"])
def test_half_of_the_noise_fails(name, capsys):
    assert main(["audit", name, "--runs", "0", "--half-noise"]) == 1
    assert "FAIL" in capsys.readouterr().out


def test_an_attack_that_proves_more_than_the_claim_fails(monkeypatch, capsys):
    bound = type("Bound", (), {"epsilon": 1.5, "gaussian_epsilon": 1.5})
    monkeypatch.setattr(_audit, "lower_bound", lambda *data, **options: bound)
    assert main(["audit", "ssp", "--runs", "8"]) == 1
    assert "4 of 4 claims FAIL" in capsys.readouterr().out


def test_a_picture(tmp_path, capsys):
    file = tmp_path / "audit.png"
    assert main(["audit", "online", "--runs", "0", "--plot", str(file)]) == 0
    assert file.stat().st_size > 5_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "NAME 'nobody'"),
        (["--runs", "3"], "at least 8"),
        (["--plot", "a.txt"], "a.txt"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    assert main(["audit", *arguments]) == 2
    assert message in capsys.readouterr().err
