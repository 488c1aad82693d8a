"""The blocks of the README and of every page of the docs run, a page from top to bottom.

What a block prints stands below it, in a block of the language ``text``, and this test wrote it
there: ``SKPRIV_WRITE_OUTPUT=1 pytest tests/test_docs.py`` writes all outputs anew. Without the
variable the words of each output are compared with what the block prints now. Its numbers are
not: noise differs, and so do processors. Commands (``bash``) are run where an output is shown.
"""

import hashlib
import os
import re
import shlex
from dataclasses import fields
from pathlib import Path
from threading import Lock
from unittest.mock import patch

import numpy as np
import pytest

import skpriv
from skpriv._cli import main
from skpriv._cli._main import COMMANDS
from skpriv._codec import MODEL_VERSION
from skpriv._wire import WIRE_VERSION
from skpriv.bandits._service._store import EVENTS_VERSION
from skpriv.bandits._policy._state import STATE_VERSION
from skpriv.preprocessing._schema import TYPES, TableFormat
from skpriv.privacy import MODELS
from skpriv.privacy._ledger._ledger import LEDGER_VERSION

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^```(?P<language>python|bash)\n(?P<code>.*?)^```\n(?:\n?```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
TEXTS = {
    page.relative_to(ROOT).as_posix(): text
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if not {"auto_examples", "_build"} & set(page.parts)
    and BLOCK.search(text := page.read_text("utf-8"))
}
PAGES = [page for page, text in TEXTS.items() if "```python" in text or "```text" in text]
WRITE = bool(os.environ.get("SKPRIV_WRITE_OUTPUT"))
NUMBER = re.compile(r"[-+<]*\.?\d[\d.,:e+-]*%?")


class SameBytes:
    """Random bytes of the operating system, the same ones each time a page is run."""

    def __init__(self, page):
        digest = hashlib.sha256(page.encode()).digest()
        self.rng, self.lock = np.random.default_rng(list(digest)), Lock()

    def __call__(self, size=32):
        with self.lock:
            return self.rng.bytes(size)


def words(output):
    """Words of an output: numbers, spaces and rules are left out."""
    return [word for word in NUMBER.sub(" ", output).split() if word.strip("-=|+_.,:;()[]")]


def run_command(line):
    """Call the command line in this process."""
    program, *arguments = shlex.split(line, comments=True)
    arguments = arguments[2:] if program == "python" else arguments
    try:
        main(arguments)
    except SystemExit as stop:
        assert not stop.code, line


def printed(match, page, namespace, capsys):
    """What a block prints, or None where it is not run."""
    code = match["code"]
    if match["language"] == "bash":
        if match["output"] is None:
            return None
        for line in code.replace("\\\n", " ").splitlines():
            if line.strip():
                run_command(line)
    else:
        exec(compile(code, page, "exec"), namespace)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    return "\n".join(lines).strip("\n")


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_and_their_outputs_are_shown(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # of the help of a command
    same_bytes, namespace = SameBytes(page), {"__name__": "__main__"}
    written, end = [], 0
    # a page may add a model of its own
    with (
        patch.dict(MODELS),
        patch("os.urandom", same_bytes),
        patch("secrets.token_bytes", same_bytes),
    ):
        for match in BLOCK.finditer(TEXTS[page]):
            output = printed(match, page, namespace, capsys)
            if output is None:
                continue
            shown = match["output"] or ""
            if not WRITE:
                assert words(output) == words(shown), f"{page}: {match['code']}"
            elif words(output) != words(shown):
                source = f"```{match['language']}\n{match['code']}```\n"
                below = f"\n```text\n{output}\n```\n" if output else ""
                written += [TEXTS[page][end : match.start()], source + below]
                end = match.end()
    if WRITE and end:
        (ROOT / page).write_text("".join(written) + TEXTS[page][end:], encoding="utf-8")


def test_the_words_of_an_output_are_compared_and_its_numbers_are_not():
    first = words("age    0.117  0.0021 [0.1, 0.2]  <.0001\n-----\nNote 1: 20,000 rows")
    assert first == words("age  -3.1  4e-5  [1, 2]  .3\n--\nNote 2: 7 rows")
    assert first != words("years    0.117  0.0021 [0.1, 0.2]  <.0001\n-----\nNote 1: 20,000 rows")


def test_the_pages_that_must_run_have_something_to_run():
    for page in ("README.md", "docs/howto/model.md", "docs/howto/estimator.md"):
        assert page in PAGES


def test_every_command_is_shown_with_its_help_and_its_output():
    blocks = list(BLOCK.finditer(TEXTS["docs/commands.md"]))
    shown = [match["code"].split()[3:5] for match in blocks if match["language"] == "bash"]
    for command in COMMANDS:
        assert [command, "--help"] in shown, command
        assert len([one for one in shown if one[0] == command]) == 2, command


def test_every_key_of_a_schema_is_on_its_page():
    text = (ROOT / "docs" / "schema_file.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| (`.*) \|$", text, re.MULTILINE))
    of_types = {kind: set(re.findall(r"`(\w+)`", keys)) for kind, keys in rows.items()}
    assert of_types == {
        kind: {field.name for field in fields(column) if field.init}
        for kind, column in TYPES.items()
    }
    for key in ("type", "role", *(field.name for field in fields(TableFormat))):
        assert f"| `{key}` |" in text, key


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


def test_links_of_the_readme_work_on_an_index():
    """They are absolute, and those to the documentation lead to pages that are there."""
    site = "https://skpriv.readthedocs.io/en/stable/"
    text = (ROOT / "README.md").read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        assert target.startswith("https://"), target
        page = target.removeprefix(site)
        if page not in ("", target):
            assert (ROOT / "docs" / page.removesuffix(".html")).with_suffix(".md").exists(), target


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


def test_one_call_has_one_table_on_all_pages():
    """Its noise differs each time, and a reader must not take that for a difference of methods."""
    first = TEXTS["docs/index.md"].partition("```text\n")[2].partition("```")[0]
    assert first.startswith("Estimand")
    assert all(first in TEXTS[page] for page in ("README.md", "docs/user/first_table.md"))
