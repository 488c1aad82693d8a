"""What a release rests on: each part was run, and a run on code that has changed since is stale."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence" / "releases.md"
MOST_COMMITS = 50  # that touch the package, since a part was run
ROW = re.compile(r"\| ([\w-]+) \| ([0-9a-f]{7,40}) \| [^|]* \| ([^|]*) \|")


def parts():
    """Parts of `.ci/release`."""
    found = subprocess.run(
        ["bash", ROOT / ".ci" / "release", "list"], capture_output=True, text=True, check=True
    )
    return found.stdout.split()


def commits_since(commit):
    """How many commits touched the package since this one; None if it is not in the history."""
    command = ["git", "rev-list", "--count", f"{commit}..HEAD", "--", "skpriv"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(found.stdout) if found.returncode == 0 else None


def is_shallow():
    """Whether only the last commits are here."""
    command = ["git", "rev-parse", "--is-shallow-repository"]
    return "true" in subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def test_every_part_has_a_line():
    lines = re.findall(r"^\| ([\w-]+) \|", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    assert [line for line in lines if line != "Part"] == parts()


def test_every_slow_test_is_in_a_part():
    """Folders and files that `.ci/release` names: what is in none of them would never be run."""
    source = (ROOT / ".ci" / "release").read_text("utf-8")
    named = re.findall(r"tests/[\w/.]+", source.replace("tests/test_*.py", ""))
    missing = [str(path) for path in named if not (ROOT / path).exists()]
    assert not missing
    covered = [(ROOT / path).resolve() for path in named]
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "mark.slow" in path.read_text("utf-8"):
            inside = any(path == one or one in path.parents for one in covered)
            assert inside or path.parent == ROOT / "tests", path


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the history is not here")
def test_a_line_that_is_older_than_fifty_commits_is_called_stale():
    rows = ROW.findall(PAGE.read_text("utf-8"))
    assert rows
    for part, commit, result in rows:
        behind = commits_since(commit)
        if behind is None and is_shallow():
            pytest.skip("the history is cut off here")
        assert behind is not None, f"{part}: {commit} is no commit of the history"
        assert ("stale" in result) is (behind > MOST_COMMITS), f"{part}: {behind} commits"
