"""The pages on extending skpriv work inside: the package with their changes keeps its laws."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
COPIED = "skpriv", "tests", "docs", "setup.cfg", "pyproject.toml"
STRUCTURE = (
    "tests/test_architecture.py", "tests/test_docstrings.py", "tests/test_parameters.py",
    "tests/test_extend.py", "tests/test_typing.py::test_public_functions_are_annotated",
)  # fmt: skip
NAMED = "not stays_small"  # the pages say that a cap may have to be raised
REGISTERED = "tests/privacy/test_sensitivity.py"
# The targets of each page, and what of them is about its class.
PAGES = {
    "estimator": [
        (STRUCTURE, NAMED),
        ((REGISTERED,), "TargetTotal or registered"),
        (
            (
                "tests/linear_model",
                "tests/test_common.py",
                "tests/test_codec.py",
                "tests/audit",
                "tests/test_doors.py",
            ),
            "MeanRegressor",
        ),
    ],
    "policy": [
        (STRUCTURE, NAMED),
        (("tests/bandits", "tests/test_doors.py"), "sometimes_random or SometimesRandom"),
    ],
    "query": [(STRUCTURE, NAMED), ((REGISTERED,), "FeatureTotals or registered")],
    "model": [
        (STRUCTURE, NAMED),
        (
            ("tests/test_typing.py", "tests/privacy", "tests/linear_model", "tests/bandits"),
            "committee or choices",
        ),
    ],
}
CHANGE = re.compile(r"^```diff\n(?P<file>\S+)\n(?P<lines>.*?)^```", re.M | re.S)
IMPORT = re.compile(r"^from skpriv\.extend import (?:\(.*?\)|[^(\n]*)\n", re.M | re.S)


def changed(folder, page):
    """Apply the changes that a page shows to a copy of the package.

    A block names a file. Its added lines go behind the line that stands before them; a file that
    does not exist begins with the page's first code, whose import from outside they replace.
    """
    text = (HOME / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
    for block in CHANGE.finditer(text):
        path = folder / block["file"]
        before, *_ = block["lines"].splitlines()
        added = re.sub(
            r"^\+", "", "".join(re.findall(r"^\+.*\n", block["lines"], re.M)), flags=re.M
        )
        if before.startswith("-"):
            assert not path.exists()
            path.write_text('"""A class of a page."""\n\n' + IMPORT.sub(lambda _: added, code))
            continue
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (at,) = (n for n, line in enumerate(lines) if line.startswith(before.removeprefix(" ")))
        lines.insert(at + 1, added)
        path.write_text("".join(lines), encoding="utf-8")


@pytest.mark.slow  # half a minute for each page
@pytest.mark.parametrize("page", PAGES)
def test_a_class_that_is_added_as_its_page_says_keeps_all_laws(page, tmp_path):
    for name in COPIED:
        source = HOME / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    changed(tmp_path, page)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    for targets, chosen in PAGES[page]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *targets]
        done = subprocess.run(
            [*command, "-k", chosen],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-6000:]
