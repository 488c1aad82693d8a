"""The Python blocks of the README and of every page of the docs run, a page from top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    page.relative_to(ROOT).as_posix(): blocks
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "auto_examples" not in page.parts and (blocks := BLOCK.findall(page.read_text("utf-8")))
}


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in PAGES[page]:
        exec(compile(block, page, "exec"), namespace)


def test_the_readme_has_an_example():
    assert PAGES["README.md"]
