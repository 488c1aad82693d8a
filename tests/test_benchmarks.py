"""Every benchmark records its raw numbers, with the versions and the commit that they are of."""

import ast
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
sys.path.append(str(FOLDER))

import _pages  # noqa: E402
import _record  # noqa: E402
import bandit_fliphat  # noqa: E402
import figures  # noqa: E402

SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if not path.name.startswith("_")]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_numbers_are_recorded(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {
        node.func.id for node in ast.walk(tree) if isinstance(getattr(node, "func", 0), ast.Name)
    }
    assert called & {"record", "written"}, "record raw numbers: see benchmarks/_record.py"


@pytest.mark.filterwarnings("ignore")
def test_every_script_finds_what_it_imports():
    """Files of the package move; a library of a peer may not be installed."""
    ours = {"skpriv", *(path.stem for path in FOLDER.glob("*.py"))}
    for path in SCRIPTS:
        try:
            runpy.run_path(str(path))
        except ModuleNotFoundError as error:
            assert error.name.partition(".")[0] not in ours, path.name


def test_what_is_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", ["benchmarks/some.py", "--seeds", "3"])
    import _record

    monkeypatch.setattr(_record, "_git", lambda *command: "" if "status" in command else "abcdef0")
    monkeypatch.setattr(_record, "HERE", tmp_path)
    _record.record("some", {"errors": np.arange(3.0), "name": "ssp", "worst": np.float64(0.5)})
    found = json.loads((tmp_path / "results" / "some.json").read_text(encoding="utf-8"))
    assert found["numbers"] == {"errors": [0.0, 1.0, 2.0], "name": "ssp", "worst": 0.5}
    facts = found["provenance"]
    assert facts["numpy"] == np.__version__ and facts["commit"] == "abcdef0"
    assert facts["command"] == "python benchmarks/some.py --seeds 3"
    assert all(f"{name} {facts[name]}" in capsys.readouterr().out for name in ["python"])


def test_what_is_not_committed_is_not_recorded(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    import _record

    monkeypatch.setattr(_record, "_git", lambda *command: "M a.py" if "status" in command else "a")
    monkeypatch.setattr(_record, "HERE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["some.py", "--folder", "/home/somebody/rows"])
    _record.record("some", {})
    assert not (tmp_path / "results").exists() and "Not recorded" in capsys.readouterr().out
    assert _record.provenance()["command"] == "python benchmarks/some.py --folder rows"


# Records from before that rule: of changed files, or of a commit that is not in the history. They
# are to be measured again; the number may only fall.
MOST_UNTRACED = 7


@pytest.mark.skipif(not (FOLDER.parent / ".git").exists(), reason="the history is not here")
def test_records_name_commits_that_exist():
    untraced = set()
    for path in (FOLDER / "results").glob("*.json"):
        text = path.read_text(encoding="utf-8")
        commit = json.loads(text)["provenance"]["commit"]
        command = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
        found = (
            re.fullmatch("[0-9a-f]{7,40}", commit)
            and not subprocess.run(command, cwd=FOLDER, capture_output=True, check=False).returncode
        )
        untraced |= set() if found else {path.stem}
        assert not re.search(r"/(home|root|tmp|work|Users)/", text), path.name
    assert len(untraced) <= MOST_UNTRACED, sorted(untraced)


def test_every_figure_of_the_docs_is_drawn_from_a_record():
    shown = {path.stem for path in figures.FIGURES.iterdir()}
    assert shown == set(figures.MAKERS)
    for name, module, function in figures.MAKERS.values():
        source = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
        assert f"def {function}(numbers)" in source, name


def save_small(drawn, path):
    drawn.set_layout_engine("none")  # where its parts stand takes half of the time
    drawn.savefig(path, dpi=20)


@pytest.mark.parametrize("figure", sorted(figures.MAKERS))
def test_every_figure_is_drawn(figure, monkeypatch, tmp_path):
    """A record that lost a part, or a maker that does not know it, fails here."""
    folder = tmp_path / "new" / "folder"
    monkeypatch.setattr(figures, "save_figure", save_small)
    monkeypatch.setattr(sys, "argv", ["figures.py", "--only", figure, "--out", str(folder)])
    figures.main()
    assert [path.name for path in folder.iterdir()] == [f"{figure}.png"]


def test_a_figure_without_a_record_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(figures, "HERE", tmp_path)
    monkeypatch.setattr(figures, "FIGURES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["figures.py", "--only", "rate_layered"])
    figures.main()
    assert "rate_layered: not drawn" in capsys.readouterr().out and not list(tmp_path.iterdir())


def test_rates_are_drawn_as_they_are_recorded(monkeypatch, tmp_path):
    panel = ("a", [10, 100], ["one", "two"], np.ones((2, 3, 2)), {"n^(-1/2)": -0.5})
    monkeypatch.setattr(
        "_rates.record", lambda name, found: write(tmp_path / "results", name, found)
    )
    import _rates

    _rates.written("rate_iht", "d", "error", [panel])
    monkeypatch.setattr(figures, "HERE", tmp_path)
    monkeypatch.setattr(figures, "FIGURES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["figures.py", "--only", "rate_iht", "rate_layered"])
    figures.main()
    assert [path.name for path in tmp_path.glob("*.png")] == ["rate_iht.png"]


def write(folder, name, found):
    folder.mkdir()
    text = json.dumps({"numbers": found}, default=np.ndarray.tolist)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")


def test_tables_of_pages_are_those_of_the_records():
    """Header and numbers: `python benchmarks/_pages.py` writes them again."""
    shown = set()
    for page in _pages.pages():
        for name, table in _pages.MARK.findall(page.read_text("utf-8")):
            assert table == _pages.TABLES[name](), (page.name, name)
            shown.add(name)
    assert shown == set(_pages.TABLES)


def test_no_header_of_a_table_is_a_row_of_numbers():
    """A header may say 1 or 1e6 of an epsilon or a size, and holds no measurement."""
    measured = re.compile(r"\d+,(\d{3},)*\d(?!00)\d{2}|\d+\.\d{2,}|\.\d{3,}")
    for page in _pages.DOCS.rglob("*.md"):
        lines = page.read_text("utf-8").splitlines()
        for header, rule in zip(lines, lines[1:], strict=False):
            if re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", rule):
                cells = [cell.strip() for cell in header.strip().strip("|").split("|")]
                assert not [cell for cell in cells if measured.fullmatch(cell)], (page.name, header)


@pytest.mark.parametrize("script", ["linucb_comparison", "bandit_elimination"])
def test_the_policies_of_the_papers_scripts_play(script):
    """A script that names an option which is gone, or overrides a method, fails here."""
    from argparse import Namespace
    from importlib import import_module

    from skpriv.bandits import LinearEnvironment, simulate

    options = Namespace(epsilon=1.0, first=16, width="asymptotic", only=None)
    arguments = {"linucb_comparison": (1.0, 0.1, 0), "bandit_elimination": (options, "central")}
    policies = import_module(script).policies(*arguments[script])
    result = simulate(policies, LinearEnvironment(n_actions=4), 210, 1, random_state=0)
    assert np.isfinite(result.regret_).all() and len(result.names) == len(policies)


def test_help_names_the_option_that_all_scripts_take(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rate_iht.py", "--help"])
    assert not _record._takes_replace()
    assert _record.REPLACE in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["rate_iht.py", _record.REPLACE])
    assert _record._takes_replace() and sys.argv == ["rate_iht.py"]
    assert "nan" not in bandit_fliphat.cell(np.array([0.5]))
