import numpy as np
import pytest
from sklearn.utils import Bunch

from skpriv._cli import main
from skpriv._cli._regret import SETTINGS, table, with_public

FAST = ["regret", "--horizon", "60", "--runs", "2"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_has_a_table_and_says_what_is_guaranteed(setting, capsys):
    assert main([*FAST, "--setting", setting, "--epsilons", "1"]) == 0
    out, err = capsys.readouterr()
    chosen = SETTINGS[setting]
    public = {"delta": chosen.delta, "horizon": 60}
    private = with_public(chosen.private, epsilon=1.0, **public)
    named = [*private.items(), *with_public(chosen.references, epsilon=np.inf, **public).items()]
    for name, policy in named:  # two may have one name
        assert f". {name}: {policy.guarantee}" in " ".join(out.split())
    for name, policy in private.items():
        assert f"\n{name}" in out
        assert f"(epsilon=1, delta={chosen.delta:g})" in str(policy.guarantee)
    assert "60 rounds, 2 runs" in out and "share of random" in out
    assert "epsilon 1:" in err and "2 of 2 runs" in err


def test_same_seed_same_table_with_a_picture_too(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path, tables = tmp_path / "regret.png", []
    for seed, options in ((3, []), (3, ["--plot", str(path)]), (4, [])):
        run = [*FAST, "--setting", "fliphat", "--epsilons", "1,8", "--seed", str(seed)]
        assert main([*run, *options]) == 0
        out, err = capsys.readouterr()
        assert (f"Wrote {path}." in err) == bool(options)
        tables.append(out)
    assert tables[0] == tables[1] != tables[2]
    assert path.stat().st_size > 10_000


def test_cells():
    final = np.array([[[10.0], [30.0]], [[80.0], [120.0]]])
    known = Bunch(regret_=final[1:], names=["RandomPolicy"])
    text = table({1.0: Bunch(regret_=final[:1], names=["A"])}, known)
    lines = [line.split() for line in str(text).splitlines()]
    assert lines[2] == ["regret", "20", "+-10"]
    assert lines[3] == ["share", "of", "random", "20.0%"]
    assert lines[-1] == ["share", "of", "random", "100.0%"]
