"""The Python blocks of the README and of every page of the docs run, a page from top to bottom."""

import re
from pathlib import Path
from unittest.mock import patch

import pytest

import skpriv
from skpriv._codec import MODEL_VERSION
from skpriv._wire import WIRE_VERSION
from skpriv.bandits._service._store import EVENTS_VERSION
from skpriv.bandits._state import STATE_VERSION
from skpriv.privacy import MODELS
from skpriv.privacy._ledger._ledger import LEDGER_VERSION

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
    with patch.dict(MODELS):  # a page may add a model of its own
        for block in PAGES[page]:
            exec(compile(block, page, "exec"), namespace)


def test_the_pages_that_must_run_have_something_to_run():
    for page in ("README.md", "docs/howto/model.md", "docs/howto/estimator.md"):
        assert PAGES[page]


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE).group(1) == skpriv.__version__
    assert f"## [{skpriv.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_formats_of_saved_files_are_the_documented_ones():
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([A-Z][^|]*?) \| [^|]* \| (\d+) \|", page, re.MULTILINE))
    assert {name: int(version) for name, version in rows.items()} == {
        "Model": MODEL_VERSION,
        "Ledger": LEDGER_VERSION,
        "Policy": STATE_VERSION,
        "Events of a service": EVENTS_VERSION,
        "Tasks and reports of devices": WIRE_VERSION,
    }


def test_links_lead_somewhere():
    dead = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        if "auto_examples" in page.parts:
            continue
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"`[^`\n]*`", "", text)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = target.split("#")[0]
            built = "auto_examples" in path or "generated/" in path  # by Sphinx
            made = built or path.startswith(("http", "mailto", "<"))
            if path and not made and not (page.parent / path).exists():
                dead.append((page.name, target))
    assert not dead
